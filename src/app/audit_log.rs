//! Writes queued events of the audit log to the database, and removes old events.

use std::pin::pin;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::MissedTickBehavior};

use crate::cluster::jobs::{self, BackgroundJob};
use crate::runtime::clock;
use crate::storage::audit::{AuditEvent, PendingEvents};
use crate::storage::database::Db;

/// Interval at which the windows of throttled logins are checked for their end.
const AUDIT_WINDOWS_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);
/// Attempts to write a batch, for a database that is briefly unavailable.
const AUDIT_WRITE_ATTEMPTS: u32 = 5;
/// Delay between two attempts to write a batch.
const AUDIT_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(1);
/// Interval at which expired rows are removed.
const AUDIT_SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(600);
/// Rows removed in one transaction.
const AUDIT_SWEEP_ROWS: usize = 1000;

/// Writes events in batches until `ended` becomes true, then the remaining events.
pub(super) async fn write_events(
    db: Db,
    mut pending: PendingEvents,
    ended: watch::Receiver<bool>,
) {
    let mut end = pin!(jobs::stopped(ended));
    let mut windows = tokio::time::interval(AUDIT_WINDOWS_CHECK_INTERVAL);
    // After a stall, one check is enough.
    windows.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let batch = tokio::select! {
            // A tick or the end loses no event: `next` removes events from the queue only when it returns.
            batch = pending.next() => batch,
            _ = windows.tick() => {
                pending.end_windows(clock::now(), false);
                continue;
            }
            () = &mut end => break,
        };
        write(&db, &pending, batch, AUDIT_WRITE_ATTEMPTS).await;
    }
    pending.end_windows(clock::now(), true);
    loop {
        let batch = pending.take();
        if batch.is_empty() {
            return;
        }
        // A single attempt: the process must not hang because its database is down.
        write(&db, &pending, batch, 1).await;
    }
}

/// Writes a batch in one transaction, in at most `attempts_max` attempts. Events that could not be written
/// are counted; they exist only as log lines.
async fn write(db: &Db, pending: &PendingEvents, batch: Vec<AuditEvent>, attempts_max: u32) {
    let batch = Arc::new(batch);
    for attempts_left in (0..attempts_max).rev() {
        let events = Arc::clone(&batch);
        let insertion =
            db.write(move |tx| events.iter().try_for_each(|event| tx.insert_audit(event)));
        match insertion.await {
            Ok(()) => break,
            Err(_) if attempts_left > 0 => tokio::time::sleep(AUDIT_RETRY_DELAY).await,
            Err(cause) => {
                pending.count_lost(batch.len());
                tracing::error!("audit log: events cannot be stored: {cause}");
            }
        }
    }
    let lost = pending.lost();
    if lost > 0 {
        tracing::warn!(lost, "audit log: events were not stored and exist only as log lines");
    }
}

/// Returns the job that removes events older than `days` days, or all events if `days` is 0.
pub(super) fn sweep_events(db: &Db, days: u32) -> impl BackgroundJob + use<> {
    jobs::sweep("sweep-audit-log", AUDIT_SWEEP_INTERVAL, db, move |db, now| async move {
        db.write(move |tx| tx.sweep_audit(oldest(days, now), AUDIT_SWEEP_ROWS)).await
    })
}

/// Returns the time before which events are removed.
fn oldest(days: u32, now: Timestamp) -> Timestamp {
    if days == 0 {
        return Timestamp::MAX;
    }
    now.checked_sub(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stay_for_as_many_days_as_the_setting_says() {
        let now: Timestamp = "2026-05-04T12:00:00Z".parse().unwrap();
        assert_eq!(oldest(1, now).to_string(), "2026-05-03T12:00:00Z");
        assert_eq!(oldest(0, now), Timestamp::MAX);
        assert_eq!(oldest(u32::MAX, now), Timestamp::MIN);
    }
}
