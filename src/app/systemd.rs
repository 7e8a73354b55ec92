//! Notifies systemd (`Type=notify`) of start, reloads and stop, and feeds its watchdog.
//!
//! Without the variable NOTIFY_SOCKET nothing is sent. NOTIFY_SOCKET and WATCHDOG_USEC are variables of
//! systemd and not settings of this product; the library reads them, and this is the only file that calls it.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::timeout;

use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::runtime::clock::Stopwatch;
use crate::storage::database::Db;
use model::account::OrganizationId;

/// Minimum interval between two watchdog notifications.
const WATCHDOG_PERIOD_MIN: Duration = Duration::from_millis(10);

fn extend_timeout(time: Duration) -> NotifyState<'static> {
    NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

/// Notifies systemd that the service is ready; `systemctl status` shows `status`.
pub(super) fn ready(status: &str) {
    send_state(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Notifies systemd that the service reloads its settings; [`ready`] ends that state.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send_state(&[NotifyState::Reloading, now]),
        Err(cause) => tracing::warn!("systemd notification of a reload failed: {cause}"),
    }
}

/// Notifies systemd that the service is stopping, which lasts up to `time`.
pub(super) fn stopping(time: Duration) {
    let status = NotifyState::Status("stopping: finishing requests in flight");
    send_state(&[NotifyState::Stopping, status, extend_timeout(time)]);
}

/// Sends a notification; may block, so it must not run on the async threads.
fn send_state(states: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(states) {
        tracing::warn!("systemd notification failed: {cause}");
    }
}

/// Returns the job that notifies systemd's watchdog three times per timeout (`WatchdogSec=`), while the async
/// threads run and the database answers; `None` if systemd has no watchdog for this service.
///
/// An error counts as an answer: a failing disk or a full queue is transient, and a restart would not help. A
/// database that does not answer in time hangs, and a restart helps. The exception is a remote database,
/// where a restart of this service would only lose the contents of its caches.
pub(super) fn watchdog(db: Db) -> Option<impl BackgroundJob> {
    let limit = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())?;
    Some(Watchdog { db, limit, began: Stopwatch::start() })
}

struct Watchdog {
    db: Db,
    /// The timeout of the watchdog, `WatchdogSec=`.
    limit: Duration,
    /// Start of the last run, because its duration must not delay the next notification.
    began: Stopwatch,
}

impl Watchdog {
    fn period(&self) -> Duration {
        // With a tiny timeout, the job would run without a pause.
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
        // Any read shows that a database thread answers; a look-up by key is cheap.
        let read = self.db.read(|tx| tx.find_organization(OrganizationId(0)).map(drop));
        // A query to a remote database must time out early enough for the notification.
        let time = if self.db.is_remote() { self.period() } else { self.limit };
        let answer = match timeout(time, read).await {
            Ok(answer) => answer.map_err(|cause| cause.to_string()),
            Err(_) if self.db.is_remote() => Err("the database does not answer".to_owned()),
            Err(_) => {
                // Without a notification, systemd restarts the service.
                return Err("the database does not answer, so systemd is not notified".to_owned());
            }
        };
        drop(tokio::task::spawn_blocking(|| send_state(&[NotifyState::Watchdog])).await);
        answer.map(|()| RunOutcome::Done)
    }
}
