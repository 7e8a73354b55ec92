//! Timers: work that runs beside the requests.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::Duration,
};

use tokio::sync::{mpsc::Sender, watch};
use tokio::time::MissedTickBehavior;

use crate::access::auth::Auth;
use crate::archive::collections::Collections;
use crate::archive::ingest::watch::{Watch, Watcher};
use crate::cluster::clock_guard::Steady;
use crate::cluster::membership::{Lease, Node};
use crate::distribution::notifications::Notifications;
use crate::media::Media;
use crate::runtime::clock;
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::{
    COLLECTIONS_SWEEP, FOLLOW_MS, MATCHING_CLOCK_MS, MATCHING_MS, NOTIFICATIONS_SWEEP,
};
use crate::runtime::telemetry;
use crate::storage::database::{AccountChange, Follower, Pulse};
use model::ItemKey;

/// Follows what any process writes to the database until `stop` is dropped: changed items and accounts
/// leave the caches. The search index follows by itself, so that nothing here waits for it.
/// Items that were written are sent to `wanted`, so that their standard renditions are made before
/// somebody asks; those that find no room there are left to the first request. Up to which row of
/// the item log all of that is done, is told to `followed` and to the other nodes.
pub fn follow(
    mut follower: Follower,
    (media, auth): (&Media, &Auth),
    wanted: Option<&Sender<ItemKey>>,
    (followed, node): (&watch::Sender<i64>, &Node),
    stop: &Receiver<()>,
) {
    let mut failing = false;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(Duration::from_millis(FOLLOW_MS))
    {
        let watch = Stopwatch::start();
        let outcome = follower.changes().map(|change| {
            if !change.items.is_empty() {
                let count = u64::try_from(change.items.len()).unwrap_or(u64::MAX);
                metrics::counter!(telemetry::ITEMS_CHANGED).increment(count);
                media.item_changed(&change.items);
                if let Some(wanted) = wanted {
                    // A full queue ends it: what comes later has no room either.
                    let mut keys = change.items.iter();
                    while keys.next().is_some_and(|key| wanted.try_send(key.clone()).is_ok()) {}
                }
            }
            if change.lost {
                tracing::error!(
                    "the database lost rows that were read: did another server take over without them? \
                     What is known of items is read anew"
                );
                media.forget_everything();
            }
            auth.forget(&change.accounts);
            change.more
        });
        // One line when it starts to fail and one when it works again, not ten a second.
        match (&outcome, failing) {
            (Err(cause), false) => tracing::error!("changes cannot be followed: {cause}"),
            (Ok(_), true) => tracing::info!("changes are followed again"),
            (Err(_), true) | (Ok(_), false) => {}
        }
        failing = outcome.is_err();
        // Nobody is given the old versions from here any more.
        if !failing && *followed.borrow() != follower.seq() {
            node.follow(follower.seq());
            followed.send_replace(follower.seq());
        }
        if matches!(outcome, Ok(false)) {
            node.saw_end_of_log(watch);
        }
        if failing {
            // What cannot be followed may have ended: look everything up until it can.
            auth.forget(&[AccountChange::Everything]);
        }
        media.report();
    }
}

/// Wakes readers of streams for whom another process queued something, until `stop` is dropped.
pub fn wake_readers(mut pulse: Pulse, notifications: &Notifications, stop: &Receiver<()>) {
    let (mut failing, mut due) = (false, true);
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(Duration::from_millis(FOLLOW_MS))
    {
        due |= pulse.beats().unwrap_or(true);
        if !due {
            continue;
        }
        let outcome = notifications.wake_readers();
        due = outcome.is_err();
        match (&outcome, failing) {
            (Err(cause), false) => tracing::error!("readers of streams cannot be woken: {cause}"),
            (Ok(()), true) => tracing::info!("readers of streams are woken again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        failing = outcome.is_err();
    }
}

/// Stands by until this node matches: keeps in memory what the matcher knows. Gives `false` when `stop`
/// is dropped.
fn stand_by(node: &Node, notifications: &Notifications, stop: &Receiver<()>) -> bool {
    let mut read: Option<Stopwatch> = None;
    while !node.holds(Lease::Matching) {
        if read.as_ref().is_none_or(|read| read.elapsed() >= NOTIFICATIONS_SWEEP) {
            read = Some(Stopwatch::start());
            notifications.report_nothing();
            if let Err(cause) = notifications.refresh() {
                tracing::warn!("notifications cannot be read while another node matches: {cause}");
            }
        }
        let wait = Duration::from_millis(FOLLOW_MS);
        if stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
    }
    true
}

/// Matches what any process writes with the notifications until `stop` is dropped, and does what
/// notifications do by the clock; as long as this node is the one that does.
pub fn matching(
    mut pulse: Pulse,
    notifications: &Notifications,
    (steady, node): (&Steady, &Node),
    stop: &Receiver<()>,
) {
    let beats = Duration::from_millis(MATCHING_CLOCK_MS);
    let (mut looked, mut swept) = (None::<Stopwatch>, None::<Stopwatch>);
    let (mut failing, mut more) = (false, true);
    loop {
        let wait = if more { Duration::ZERO } else { Duration::from_millis(MATCHING_MS) };
        if stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        if !node.holds(Lease::Matching) {
            if !stand_by(node, notifications, stop) {
                return;
            }
            more = true;
        }
        let written = pulse.beats().unwrap_or(true);
        let is_over = |watch: &Option<Stopwatch>, time: Duration| {
            watch.as_ref().is_none_or(|watch| watch.elapsed() >= time)
        };
        if !more && !written && !is_over(&looked, beats) {
            continue;
        }
        looked = Some(Stopwatch::start());
        let mut outcome = notifications.step(clock::now());
        if outcome.is_ok() && is_over(&swept, NOTIFICATIONS_SWEEP) {
            swept = Some(Stopwatch::start());
            let swept = notifications.sweep(clock::now(), steady.is_trusted());
            outcome = outcome.and_then(|more| swept.map(|()| more));
        }
        match (&outcome, failing) {
            (Err(cause), false) => tracing::error!("items cannot be matched: {cause}"),
            (Ok(_), true) => tracing::info!("items are matched again"),
            (Err(_), true) | (Ok(_), false) => {}
        }
        failing = outcome.is_err();
        more = outcome.unwrap_or(false);
    }
}

/// Takes items that have expired out of collections, now and then.
pub async fn expire(collections: Collections, (steady, node): (Arc<Steady>, Node)) {
    let mut beat = tokio::time::interval(COLLECTIONS_SWEEP);
    // A node that stood by does not catch up with what others did.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        node.held(Lease::Sweeping).await;
        beat.tick().await;
        if !steady.is_trusted() {
            continue;
        }
        // One transaction after the other, so that others get their turn in between.
        let outcome = loop {
            match collections.sweep(clock::now()).await {
                Ok(0) => break Ok(()),
                Ok(items) => tracing::debug!(items, "took expired items out of collections"),
                Err(cause) => break Err(cause),
            }
        };
        match (&outcome, failing) {
            (Err(cause), false) => {
                tracing::error!("expired items cannot be taken out of collections: {cause}");
            }
            (Ok(()), true) => tracing::info!("expired items are taken out of collections again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        failing = outcome.is_err();
    }
}

/// Looks at the watched folder every `interval` until `stop` is dropped, as long as this node is the one
/// that does.
pub fn watch(mut watch: Watch, interval: Duration, node: &Node, stop: &Receiver<()>) {
    let stops = || stop.try_recv() != Err(TryRecvError::Empty);
    let watcher = Watcher { now: &clock::now, stops: &stops };
    let mut failing = false;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(interval) {
        if !node.holds(Lease::Watching) {
            continue;
        }
        let outcome = watch.look(&watcher);
        match (&outcome, failing) {
            (Err(cause), false) => tracing::error!("the watched folder cannot be read: {cause}"),
            (Ok(()), true) => tracing::info!("the watched folder can be read again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        failing = outcome.is_err();
    }
}
