//! Scheduled mails: digests of the items since the last mail (contract notifications-17).
//!
//! Matched items collect in the notification's queue, and a run empties the queue. So each mail starts where the
//! previous one ended, regardless of changes of the clock or the schedule and of downtime in between.

use std::collections::HashSet;

use jiff::{Timestamp, tz::TimeZone};
use uuid::Uuid;

use super::match_batch::MatchBatch;
use crate::archive::content::{RecentSpan, TimestampFilter};
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::{MATCHING_TIME, QUEUED_ITEMS_MAX};
use crate::storage::database::{DbError, DbResult, NewMessage, QueuedItem, WriteTx};
use model::account::{MessageContent, MessageTransport, Notification, NotificationMethod};
use model::limits::DIGEST_ITEMS_MAX;
use model::schedule::Schedule;

/// Scheduled mails that one transaction prepares.
const DIGESTS_AT_A_TIME: usize = 50;

/// Prepares the mails that are due by `now`. Returns whether there are more.
///
/// If the service was down, one run replaces all runs that were missed.
pub(super) fn run(tx: &WriteTx<'_>, now: Timestamp, batch: &mut MatchBatch) -> DbResult<bool> {
    let due = tx.due_notifications(now, DIGESTS_AT_A_TIME)?;
    let watch = Stopwatch::start();
    for number in &due {
        // The transaction holds the cluster write lock, for which all other writers wait.
        if watch.elapsed() > MATCHING_TIME {
            return Ok(true);
        }
        let notification = match tx.notification_of_number(*number) {
            Ok(Some(notification)) => notification,
            Ok(None) => continue,
            // One damaged row must not block other mails.
            Err(DbError::Damaged { what, why }) => {
                tracing::error!("digest schedule disabled, {what} is damaged: {why}");
                tx.set_next_run(*number, None)?;
                continue;
            }
            Err(cause) => return Err(cause),
        };
        // Only scheduled mails have a next run. A next run on any other row is removed, or the row would be due
        // forever.
        let NotificationMethod::ScheduledEmail { schedule, timezone, .. } = &notification.method
        else {
            tx.set_next_run(*number, None)?;
            continue;
        };
        // From `now`, not from the missed run: one mail replaces all runs that were missed.
        let next = match Schedule::parse(schedule, timezone) {
            Ok(schedule) => schedule.next_after(now),
            // The schedule parsed when it was written, but its zone may since have been removed from the time zone
            // database.
            Err(cause) => {
                tracing::error!(notification = %notification.id, "digest schedule disabled: {cause}");
                None
            }
        };
        tx.set_next_run(*number, next)?;
        write(tx, &notification, now, batch)?;
    }
    Ok(due.len() == DIGESTS_AT_A_TIME)
}

/// Converts the queue of a notification to a mail unless it is empty. If the outbox is full, the items stay queued
/// for the next run.
fn write(
    tx: &WriteTx<'_>,
    notification: &Notification,
    now: Timestamp,
    batch: &mut MatchBatch,
) -> DbResult<()> {
    let queued = tx.queued_items(notification.number, QUEUED_ITEMS_MAX)?;
    if queued.is_empty() {
        return Ok(());
    }
    let mut items = recent(tx, queued, notification.query.tr.as_deref(), now)?;
    if !items.is_empty() {
        let more = items.len().saturating_sub(DIGEST_ITEMS_MAX);
        items.truncate(DIGEST_ITEMS_MAX);
        let content = MessageContent::Digest { items, more };
        let Notification { number, user, .. } = *notification;
        let id = Uuid::now_v7();
        let new = NewMessage { id, transport: MessageTransport::Mail, number, user, content };
        if !batch.write_message(tx, &new, now)? {
            return Ok(());
        }
    }
    // Items outside `tr` are removed too, because no later run would list them either.
    tx.empty_queue(notification.number)
}

/// Returns the items within the time range `tr`, newest first, without duplicates.
fn recent(
    tx: &WriteTx<'_>,
    queued: Vec<QueuedItem>,
    tr: Option<&str>,
    now: Timestamp,
) -> DbResult<Vec<String>> {
    let recent = tr.and_then(|word| word.parse::<RecentSpan>().ok());
    let period = TimestampFilter { recent, ..TimestampFilter::default() };
    // Ranges go back weeks or months to the same time of day, so the zone does not matter.
    let (from, _) = period.bounds(now, &TimeZone::UTC);
    let mut items = Vec::new();
    let mut seen = HashSet::new();
    for QueuedItem { key, .. } in queued.into_iter().rev() {
        let is_recent = match from {
            None => true,
            Some(from) => {
                let found = tx.find_version(&key)?;
                found.is_some_and(|(_, item)| from <= item.order_time)
            }
        };
        if is_recent && seen.insert(key.clone()) {
            items.push(key.to_string());
        }
    }
    Ok(items)
}
