//! Word to systemd (`ColumnType=notify`): started, reloads, stops, still alive.
//!
//! Without the variable NOTIFY_SOCKET nothing is said. It and WATCHDOG_USEC are systemd's, no
//! settings of ours; the library reads them, and this is the only file that calls it.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::timeout;

use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::runtime::clock::Stopwatch;
use crate::storage::database::Db;
use model::account::OrganizationId;

/// Shortest time between two signs of life.
const WATCHDOG_PERIOD_MIN: Duration = Duration::from_millis(10);

fn extend_timeout(time: Duration) -> NotifyState<'static> {
    NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

/// The service serves; `status` is what `systemctl status` shows.
pub(super) fn ready(status: &str) {
    send_state(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The service reads its settings anew; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send_state(&[NotifyState::Reloading, now]),
        Err(cause) => tracing::warn!("systemd cannot be told of a reload: {cause}"),
    }
}

/// The service stops and takes up to `time` for it.
pub(super) fn stopping(time: Duration) {
    let status = NotifyState::Status("stopping: requests under way finish");
    send_state(&[NotifyState::Stopping, status, extend_timeout(time)]);
}

/// Says something; may wait for systemd, so it is no work for the async threads.
fn send_state(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!("systemd cannot be told how the service is: {cause}");
    }
}

/// The job that gives signs of life three times within the time that systemd waits for one
/// (`WatchdogSec=`), as long as the async threads run and the database answers. None where systemd waits for
/// none.
///
/// An error is an answer: a disk that fails or a queue that is full passes, and a restart would not
/// help. What does not answer in time hangs, and then one does; but for a database on another machine, which a
/// restart of this service does not mend: it would only lose what is in the caches.
pub(super) fn watchdog(db: Db) -> Option<impl BackgroundJob> {
    let limit = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())?;
    Some(Watchdog { db, limit, began: Stopwatch::start() })
}

struct Watchdog {
    db: Db,
    /// The time that systemd waits.
    limit: Duration,
    /// Since the last run began: the time that it takes must not delay the next sign.
    began: Stopwatch,
}

impl Watchdog {
    fn period(&self) -> Duration {
        (self.limit / 3).max(WATCHDOG_PERIOD_MIN)
    }
}

impl BackgroundJob for Watchdog {
    type Error = String;

    fn spec(&self) -> JobSpec {
        JobSpec::every("watchdog", self.period().saturating_sub(self.began.elapsed()))
    }

    async fn run(&mut self) -> Result<RunOutcome, String> {
        self.began = Stopwatch::start();
        let read = self.db.read(|tx| tx.find_organization(OrganizationId(0)).map(drop));
        // A look that waits for another machine ends in time for the sign.
        let time = if self.db.is_remote() { self.period() } else { self.limit };
        let answer = match timeout(time, read).await {
            Ok(answer) => answer.map_err(|cause| cause.to_string()),
            Err(_) if self.db.is_remote() => Err("the database does not answer".to_owned()),
            Err(_) => return Err("the database does not answer, no sign of life".to_owned()),
        };
        drop(tokio::task::spawn_blocking(|| send_state(&[NotifyState::Watchdog])).await);
        answer.map(|()| RunOutcome::Done)
    }
}
