//! Keeps the caches of this process consistent with the writes of any process to the database.
//!
//! Each write adds rows to the item log (changed items) or the account log (changed users, revoked credentials). The
//! follower reads the new rows of both and invalidates the cached entries that they name.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::access::auth::Auth;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::{BlockingJob, JobSpec, JobThread, RunOutcome, StopSignal};
use crate::cluster::membership::ClusterNode;
use crate::media::Media;
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::limits::FOLLOW_POLL_MS;
use crate::runtime::telemetry;
use crate::storage::database::{AccountChange, DbError, FollowedChanges, LogFollower};
use model::ItemKey;

/// The follower of both logs, with the caches that it invalidates.
struct CacheFollower {
    log: LogFollower,
    media: Media,
    auth: Auth,
    /// Queue of items whose standard renditions are pre-rendered; `None` if this node pre-renders none.
    to_prerender: Option<mpsc::Sender<ItemKey>>,
    /// The row of the item log up to which this process serves no outdated versions of items.
    followed: watch::Sender<i64>,
    node: ClusterNode,
}

/// Starts the follower. Publishes the row of the item log that it has reached to `followed` and to the other
/// nodes.
pub(in crate::app) fn start_follower(
    media: &Media,
    auth: &Auth,
    to_prerender: Option<mpsc::Sender<ItemKey>>,
    followed: watch::Sender<i64>,
    guard: &ClusterGuard,
) -> Result<JobThread> {
    let node = guard.node();
    let began = Stopwatch::start();
    let log = auth.db().log_follower()?;
    // The caches are empty, so anything read from now on is at least this recent.
    node.set_followed(log.seq);
    node.record_end_of_log(began);
    let follower = CacheFollower {
        log,
        media: media.clone(),
        auth: auth.clone(),
        to_prerender,
        followed,
        node: node.clone(),
    };
    JobThread::start(follower, guard)
}

impl BlockingJob for CacheFollower {
    type Error = DbError;

    fn spec(&self) -> JobSpec {
        JobSpec::every("follow", Duration::from_millis(FOLLOW_POLL_MS))
    }

    fn run(&mut self, _stop: &StopSignal) -> Result<RunOutcome, DbError> {
        let followed = self.follow();
        if followed.is_err() {
            // Sessions and keys may have been revoked without notice, so nothing is served from the
            // cache until following works.
            self.auth.invalidate(&[AccountChange::Everything]);
        }
        self.media.report();
        followed.map(|()| RunOutcome::Done)
    }
}

impl CacheFollower {
    fn follow(&mut self) -> Result<(), DbError> {
        // Measured from before the read: a commit during the read counts as not seen yet.
        let began = Stopwatch::start();
        let change = self.log.changes()?;
        self.invalidate(&change);
        self.prerender(&change.items);
        // CDN caches are purged, and other nodes act, up to the published position. This process must not serve
        // outdated versions then, so it invalidates its caches before.
        self.publish_position();
        // With further rows to read, the caches are not current yet.
        if !change.has_more {
            self.node.record_end_of_log(began);
        }
        Ok(())
    }

    /// Invalidates the cached entries that `change` names.
    fn invalidate(&self, change: &FollowedChanges) {
        if !change.items.is_empty() {
            let count = u64::try_from(change.items.len()).unwrap_or(u64::MAX);
            metrics::counter!(telemetry::ITEMS_CHANGED).increment(count);
            self.media.item_changed(&change.items);
        }
        if change.has_lost_rows {
            tracing::error!(
                "the database lost rows that had been read; another server may have taken over \
                 without them; cached items are invalidated"
            );
            self.media.invalidate_all();
        }
        self.auth.invalidate(&change.accounts);
    }

    /// Queues items for pre-rendering. If the queue is full, the first request renders them.
    fn prerender(&self, items: &[ItemKey]) {
        let Some(queue) = &self.to_prerender else { return };
        // Stops at a full queue, because it has no room for the following items either.
        let _full = items.iter().try_for_each(|item| queue.try_send(item.clone()));
    }

    fn publish_position(&self) {
        let seq = self.log.seq;
        // Compared, because `send_replace` wakes the receivers for an equal value too.
        if *self.followed.borrow() != seq {
            self.node.set_followed(seq);
            self.followed.send_replace(seq);
        }
    }
}
