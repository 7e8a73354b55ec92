//! Matches items against notifications, and wakes the readers of streams.

use std::time::Duration;

use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::{BlockingJob, JobSpec, JobThread, RunOutcome, StopSignal};
use crate::cluster::membership::ClusterLease;
use crate::distribution::notifications::Notifications;
use crate::runtime::clock::{self, Stopwatch, has_elapsed};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::FOLLOW_POLL_MS;
use crate::storage::database::CommitWatcher;

/// Poll interval of the matcher, in milliseconds.
const MATCHING_MS: u64 = 20;
/// Interval of the matcher's checks for events due by time (ends of embargoes, scheduled mails), in
/// milliseconds.
const MATCHING_CLOCK_MS: u64 = 250;
/// Interval of the notification sweep: records a heartbeat, releases orphaned claims, removes expired
/// streams, counts waiting messages.
const NOTIFICATIONS_SWEEP: Duration = Duration::from_secs(10);

/// Matches the writes of any process against the notifications, and runs their scheduled work.
struct MatchingJob {
    commits: CommitWatcher,
    notifications: Notifications,
    guard: ClusterGuard,
    /// True if the last step left work.
    more: bool,
    last_step: Option<Stopwatch>,
    last_sweep: Option<Stopwatch>,
    /// Time since the matcher's data in memory was refreshed while this node was on standby.
    last_refresh: Option<Stopwatch>,
}

/// Starts the matching job on its own thread.
pub(in crate::app) fn start_matcher(
    notifications: &Notifications,
    guard: &ClusterGuard,
) -> Result<JobThread> {
    let matcher = MatchingJob {
        commits: notifications.commit_watcher()?,
        notifications: notifications.clone(),
        guard: guard.clone(),
        more: true,
        last_step: None,
        last_sweep: None,
        last_refresh: None,
    };
    JobThread::start(matcher, guard)
}

impl BlockingJob for MatchingJob {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("match", Duration::from_millis(MATCHING_MS))
            .on_holder_of(ClusterLease::Matching)
    }

    fn run(&mut self, _stop: &StopSignal) -> Result<RunOutcome> {
        // After the loss of the lease, the first standby run refreshes at once.
        self.last_refresh = None;
        // A superfluous step is harmless, a missed commit is not, so a failed check counts as a commit.
        let is_written = self.commits.has_commits().unwrap_or(true);
        // Embargoes end and scheduled mails come due without a commit.
        let is_due = has_elapsed(self.last_step, Duration::from_millis(MATCHING_CLOCK_MS));
        if !self.more && !is_written && !is_due {
            return Ok(RunOutcome::Idle);
        }
        self.last_step = Some(Stopwatch::start());
        // After a failure, retry when the next step is due instead of at once.
        self.more = false;
        let more = self.notifications.step(clock::now())?;
        if has_elapsed(self.last_sweep, NOTIFICATIONS_SWEEP) {
            self.last_sweep = Some(Stopwatch::start());
            self.notifications.sweep(clock::now(), self.guard.trusts_clock())?;
        }
        self.more = more;
        Ok(if more { RunOutcome::More } else { RunOutcome::Done })
    }

    /// Keeps the matcher's data in memory current, so that it can take over at once.
    fn stand_by(&mut self) {
        // The previous holder of the lease may have left work.
        self.more = true;
        if !has_elapsed(self.last_refresh, NOTIFICATIONS_SWEEP) {
            return;
        }
        self.last_refresh = Some(Stopwatch::start());
        // The holder of the lease reports the backlog; this node's last values would be counted
        // twice.
        self.notifications.report_nothing();
        if let Err(cause) = self.notifications.refresh() {
            tracing::warn!("standby matcher: notifications cannot be read: {cause}");
        }
    }
}

/// Wakes readers of streams for which other processes queued messages.
struct ReaderWaker {
    commits: CommitWatcher,
    notifications: Notifications,
    /// True if there was a write since the readers were last woken.
    due: bool,
}

/// Starts the waker of stream readers.
pub(in crate::app) fn start_reader_waker(
    notifications: &Notifications,
    guard: &ClusterGuard,
) -> Result<JobThread> {
    let commits = notifications.commit_watcher()?;
    let notifications = notifications.clone();
    JobThread::start(ReaderWaker { commits, notifications, due: true }, guard)
}

impl BlockingJob for ReaderWaker {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("wake-readers", Duration::from_millis(FOLLOW_POLL_MS))
    }

    fn run(&mut self, _stop: &StopSignal) -> Result<RunOutcome> {
        // The flag stays set if waking fails, so that the next run retries.
        self.due |= self.commits.has_commits().unwrap_or(true);
        if !self.due {
            return Ok(RunOutcome::Idle);
        }
        self.notifications.wake_readers()?;
        self.due = false;
        Ok(RunOutcome::Done)
    }
}
