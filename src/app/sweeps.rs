//! What is removed now and then while the service runs, by one node at a time.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use crate::access::auth::Auth;
use crate::access::oauth::OAuth;
use crate::cluster::clock_guard::Steady;
use crate::cluster::membership::{Lease, Node};
use crate::distribution::delivery::Deliveries;
use crate::distribution::recipients::{Recipients, limits::RECIPIENTS_SWEEP};
use crate::runtime::clock;
use crate::runtime::limits::{
    ACCOUNTS_SWEEP, DELIVERIES_SWEEP, ITEM_LOG_KEPT, ITEM_LOG_SWEEP, USES_WRITTEN,
};
use crate::storage::database::Db;

/// Removes expired tokens, codes, sessions and old rows of the account log, now and then.
pub(super) async fn sweep_accounts(oauth: OAuth, (steady, node): (Arc<Steady>, Node)) {
    let mut beat = tokio::time::interval(ACCOUNTS_SWEEP);
    // A node that stood by does not catch up with what others did.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        node.held(Lease::Sweeping).await;
        beat.tick().await;
        if !steady.is_trusted() {
            continue;
        }
        // One transaction after the other, so that others get their turn in between.
        loop {
            match oauth.sweep(clock::now()).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed expired tokens and sessions"),
                Err(cause) => {
                    tracing::error!("expired tokens cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

/// Writes when sessions, tokens and keys were used last, now and then: each node writes what it saw.
pub(super) async fn write_uses(auth: Auth) {
    let mut ticks = tokio::time::interval(USES_WRITTEN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(cause) = auth.write_uses().await {
            tracing::warn!("the last use of sessions and keys cannot be written: {cause}");
        }
    }
}

/// Removes old rows of the item log, now and then: everybody who follows it has read them.
pub(super) async fn sweep_item_log(db: Db, (steady, node): (Arc<Steady>, Node)) {
    let mut beat = tokio::time::interval(ITEM_LOG_SWEEP);
    // A node that stood by does not catch up with what others did.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        node.held(Lease::Sweeping).await;
        beat.tick().await;
        if !steady.is_trusted() {
            continue;
        }
        loop {
            let before = clock::now() - ITEM_LOG_KEPT;
            match db.write(move |tx| tx.sweep_item_log(before)).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed old rows of the item log"),
                Err(cause) => {
                    tracing::error!("old rows of the item log cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

/// Removes deliveries that came to an end long ago, now and then.
pub(super) async fn sweep_deliveries(deliveries: Deliveries, (steady, node): (Arc<Steady>, Node)) {
    let mut beat = tokio::time::interval(DELIVERIES_SWEEP);
    // A node that stood by does not catch up with what others did.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        node.held(Lease::Sweeping).await;
        beat.tick().await;
        if !steady.is_trusted() {
            continue;
        }
        loop {
            match deliveries.sweep(clock::now()).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed old deliveries"),
                Err(cause) => {
                    tracing::error!("old deliveries cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

/// Removes old counts of mails, and recipients that nobody mails any more, now and then.
pub(super) async fn sweep_recipients(recipients: Recipients, steady: Arc<Steady>, node: Node) {
    let mut beat = tokio::time::interval(RECIPIENTS_SWEEP);
    // A node that stood by does not catch up with what others did.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        node.held(Lease::Sweeping).await;
        beat.tick().await;
        if !steady.is_trusted() {
            continue;
        }
        loop {
            match recipients.sweep(clock::now()).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed old recipients of mails"),
                Err(cause) => {
                    tracing::error!("old recipients of mails cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}
