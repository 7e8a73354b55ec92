//! What is removed now and then while the service runs, by one node at a time.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::MissedTickBehavior;

use crate::clock::{self, Stopwatch};
use crate::db::{Db, FoldSizes};
use crate::delivery::Deliveries;
use crate::limits::{
    ACCOUNTS_SWEEP, DB_FOLD_LOOK, DB_FOLD_REST, DELIVERIES_SWEEP, ITEM_LOG_KEPT, ITEM_LOG_SWEEP,
};
use crate::nodes::{Lease, Node};
use crate::oauth::OAuth;
use crate::recipients::{Recipients, limits::RECIPIENTS_SWEEP};
use crate::steady::Steady;

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

/// Makes lists of frequent words as items come in, where the database needs them.
pub(super) async fn fold_words(db: Db, node: Node) {
    let Some(folder) = db.folder(FoldSizes::default()) else { return };
    let folder = Arc::new(Mutex::new(folder));
    let mut failing = false;
    loop {
        node.held(Lease::Sweeping).await;
        let one = Arc::clone(&folder);
        let step = move || {
            let watch = Stopwatch::start();
            let more = one.lock().unwrap_or_else(PoisonError::into_inner).step();
            (more, watch.elapsed())
        };
        let (done, took) = match tokio::task::spawn_blocking(step).await {
            Ok(said) => said,
            Err(cause) => {
                tracing::error!("lists of frequent words are not made: {cause}");
                return;
            }
        };
        // One line when it starts to fail and one when it works again.
        match (&done, failing) {
            (Err(cause), false) => {
                tracing::warn!("lists of frequent words are made later: {cause}");
            }
            (Ok(_), true) => tracing::info!("lists of frequent words are made again"),
            (Ok(_), false) | (Err(_), true) => {}
        }
        failing = done.is_err();
        // The database has others to serve: a step is followed by a rest as long.
        let rest = if done.unwrap_or(false) { took.max(DB_FOLD_REST) } else { DB_FOLD_LOOK };
        tokio::time::sleep(rest).await;
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
