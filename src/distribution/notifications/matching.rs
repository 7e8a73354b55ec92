//! Matching: reads the item log in order and queues each new item for the notifications that match it.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use strum::{IntoEnumIterator, VariantNames};
use uuid::Uuid;

use super::match_batch::MatchBatch;
use super::notification_matcher::{MatchedNotification, NotificationMatcher, record_heartbeat};
use super::{Notifications, digest};
use crate::archive::content::TimestampFilter;
use crate::cluster::membership::{ClusterLease, limits::NOTIFICATION_LOG_RETENTION};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::limits::{MATCHING_TIME, QUEUED_ITEMS_MAX, STREAM_EXPIRY, SWEEP_ROWS};
use crate::runtime::telemetry;
use crate::storage::database::{
    DbError, DbResult, EngineError, LogRow, NewMessage, StoredItem, WriteTx,
};
use crate::transport::push::Push;
use model::ItemKey;
use model::account::{MessageContent, MessageTransport, NotificationKind};
use model::item::{Document, PubStatus};

/// Rows of the item log that one transaction matches.
const MATCHING_ROWS: usize = 500;
/// Time for which unreadable items block matching: a disk error may be temporary, damage is
/// permanent.
const MATCHING_STALL_MAX: std::time::Duration = std::time::Duration::from_secs(20);
/// Retention of parked messages.
const OUTBOX_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Parked messages of all users; the oldest are removed.
const OUTBOX_PARKED_MAX: usize = 100_000;

/// Unreadable items that block matching or are skipped.
#[derive(Default)]
pub(super) struct UnreadableItems {
    /// The time since they first made a transaction fail.
    since: Option<Stopwatch>,
    /// The items to skip. A transaction that finds an unreadable item fails, so the skip takes effect in the next
    /// one.
    items: HashSet<ItemKey>,
}

impl UnreadableItems {
    /// Records a failed read. A transient disk error may be gone at the next read; an item that stays damaged is
    /// skipped after [`MATCHING_STALL_MAX`].
    fn record_failure(&mut self, key: &ItemKey, cause: &EngineError) {
        let since = self.since.get_or_insert_with(Stopwatch::start);
        if since.elapsed() >= MATCHING_STALL_MAX && self.items.insert(key.clone()) {
            tracing::error!(item = %key, "matching skips an unreadable item: {cause}");
        }
    }
}

/// The state of one matching transaction.
struct MatchTransaction<'a, 'tx> {
    tx: &'a WriteTx<'tx>,
    matcher: &'a mut NotificationMatcher,
    push: &'a Push,
    /// Collects items that cannot be read.
    unreadable: &'a Mutex<UnreadableItems>,
    skipped: HashSet<ItemKey>,
    now: Timestamp,
    batch: MatchBatch,
}

impl Notifications {
    /// Does the work that is due by `now`: matches new rows of the item log and items whose embargo ended, and
    /// prepares scheduled mails. Returns whether more work is due immediately. Blocks.
    ///
    /// A transaction does nothing if this node does not hold [`ClusterLease::Matching`].
    pub fn step(&self, now: Timestamp) -> Result<bool> {
        // Checked with a read, since most polls find nothing and all nodes share the write lock.
        if !self.is_anything_due(now)? {
            return Ok(false);
        }
        // Large reads come before the transaction, which holds the cluster write lock.
        self.refresh()?;
        self.retry_unreadable()?;
        let inner = Arc::clone(&self.inner);
        let incarnation = self.inner.services.guard.node().incarnation();
        let batch = self.db().write_blocking(move |tx| {
            if !tx.holds_lease(ClusterLease::Matching.as_str(), incarnation)? {
                return Ok(None);
            }
            // A panic during a refresh is harmless: after an unfinished refresh, the next one reads everything.
            let mut matcher = inner.matcher.lock();
            matcher.refresh(tx)?;
            let skipped = inner.unreadable.lock().items.clone();
            let mut transaction = MatchTransaction {
                tx,
                matcher: &mut matcher,
                push: &inner.services.push,
                unreadable: &inner.unreadable,
                skipped,
                now,
                batch: MatchBatch::default(),
            };
            transaction.read_log()?;
            transaction.match_released()?;
            // A digest includes every item that arrived before its run, so the log is first read to its end.
            if !transaction.batch.more {
                transaction.batch.more = digest::run(tx, now, &mut transaction.batch)?;
            }
            transaction.trim()?;
            Ok(Some(transaction.batch))
        })?;
        let Some(batch) = batch else {
            self.inner.services.guard.node().lose_lease(ClusterLease::Matching);
            *self.inner.unreadable.lock() = UnreadableItems::default();
            return Ok(false);
        };
        // The transaction committed, so matching has passed the unreadable items.
        *self.inner.unreadable.lock() = UnreadableItems::default();
        self.inner.streams.wake(&batch.streams);
        for (wake, written) in self.inner.wakes.iter().zip(batch.messages) {
            if written {
                wake.notify_one();
            }
        }
        report(&batch);
        Ok(batch.more)
    }

    /// Retries unreadable items before they are skipped, because a skipped item reaches no notification.
    fn retry_unreadable(&self) -> Result<()> {
        let items: Vec<ItemKey> = self.inner.unreadable.lock().items.iter().cloned().collect();
        for key in items {
            let again = key.clone();
            match self.db().read_blocking(move |tx| tx.find_version(&again).map(drop)) {
                Ok(()) => {
                    self.inner.unreadable.lock().items.remove(&key);
                }
                Err(DbError::Engine(cause)) if cause.is_damage() => {}
                // This error is not about the item.
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }

    /// Returns whether any work is due, without reading it.
    fn is_anything_due(&self, now: Timestamp) -> Result<bool> {
        let work = self.db().read_blocking(move |tx| {
            // Past the end of the log, which avoids the search for the oldest waiting row.
            let (newest, _) = tx.matching_backlog(i64::MAX)?;
            Ok(newest > tx.matched_seq()?
                || !tx.released_items(now, 1)?.is_empty()
                || !tx.due_notifications(now, 1)?.is_empty())
        })?;
        Ok(work)
    }

    /// Brings the in-memory matcher up to date, so that a node that becomes the matching node has little to read.
    /// Blocks.
    pub fn refresh(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        Ok(self.db().read_blocking(move |tx| inner.matcher.lock().refresh(tx))?)
    }

    /// Removes expired streams and messages if the clock is `trusted`, and reports the backlog. Called
    /// periodically. Blocks.
    pub fn sweep(&self, now: Timestamp, trusted: bool) -> Result<()> {
        // The change logs are retained for at least an hour, so periodic refreshes never miss rows.
        self.refresh()?;
        let matcher = self.inner.matcher.lock();
        let log_seq = matcher.log_seq();
        let count = matcher.len();
        drop(matcher);
        let log_seq = self.swept_log_position(log_seq);
        let incarnation = self.inner.services.guard.node().incarnation();
        let holds_lease = self.db().write_blocking(move |tx| {
            if !tx.holds_lease(ClusterLease::Matching.as_str(), incarnation)? {
                return Ok(false);
            }
            // While the database could not be written, no stream could be used either; the heartbeat accounts for
            // this.
            record_heartbeat(tx, now)?;
            tx.release_orphaned_claims(now)?;
            if trusted {
                // A clock that jumped ahead must not expire streams that clients still use.
                tx.sweep_streams(now - STREAM_EXPIRY, SWEEP_ROWS)?;
                tx.sweep_messages(now - OUTBOX_RETENTION, SWEEP_ROWS)?;
            }
            // Limited by number, so an untrusted clock does not matter.
            tx.trim_messages(OUTBOX_PARKED_MAX)?;
            tx.sweep_notification_log(log_seq)?;
            Ok(true)
        })?;
        if !holds_lease {
            self.inner.services.guard.node().lose_lease(ClusterLease::Matching);
            return Ok(());
        }
        self.report_waiting(now, count)
    }

    /// Zeroes the gauges of a node without the lease, because the lease holder reports the backlog.
    pub fn report_nothing(&self) {
        metrics::gauge!(telemetry::MATCHING_LAG_SECONDS).set(0.0);
        metrics::gauge!(telemetry::MATCHING_BEHIND).set(0);
        metrics::gauge!(telemetry::QUEUED_ITEMS).set(0);
        for transport in MessageTransport::VARIANTS.iter().copied() {
            metrics::gauge!(telemetry::OUTBOX_WAITING, "transport" => transport).set(0);
            metrics::gauge!(telemetry::OUTBOX_PARKED, "transport" => transport).set(0);
        }
    }

    /// Returns the row of the notification log up to which standby nodes have read it too.
    fn swept_log_position(&self, read: i64) -> i64 {
        let mut log = self.inner.log_read.lock();
        let (later, since) = log.later;
        // Measured as elapsed time, so that a clock jump does not remove rows that a standby node has yet to read.
        if since.is_none_or(|since| since.elapsed() >= NOTIFICATION_LOG_RETENTION) {
            log.earlier = later;
            log.later = (read, Some(Stopwatch::start()));
        }
        log.earlier
    }

    fn report_waiting(&self, now: Timestamp, notifications: usize) -> Result<()> {
        let (behind, since, queued, counts) = self.db().read_blocking(move |tx| {
            let matched = tx.matched_seq()?;
            let (newest, since) = tx.matching_backlog(matched)?;
            let mut counts = Vec::new();
            for transport in MessageTransport::iter() {
                counts.push((transport.as_str(), tx.count_messages(transport)?));
            }
            Ok((newest - matched, since, tx.count_queued_items(usize::MAX)?, counts))
        })?;
        // Negative after the clock was set back; a gauge of a delay must not show that.
        let lag = since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0));
        metrics::gauge!(telemetry::MATCHING_LAG_SECONDS).set(lag);
        metrics::gauge!(telemetry::MATCHING_BEHIND).set(u32::try_from(behind).unwrap_or(0));
        metrics::gauge!(telemetry::QUEUED_ITEMS).set(to_u32(queued));
        metrics::gauge!(telemetry::NOTIFICATIONS).set(to_u32(notifications));
        for (transport, transport_counts) in counts {
            metrics::gauge!(telemetry::OUTBOX_WAITING, "transport" => transport)
                .set(to_u32(transport_counts.waiting));
            metrics::gauge!(telemetry::OUTBOX_PARKED, "transport" => transport)
                .set(to_u32(transport_counts.parked));
        }
        Ok(())
    }
}

impl MatchTransaction<'_, '_> {
    /// Reads more of the item log, for at most [`MATCHING_TIME`], since other writers wait.
    fn read_log(&mut self) -> DbResult<()> {
        let watch = Stopwatch::start();
        let from = self.tx.matched_seq()?;
        let rows = self.tx.log_rows(from, MATCHING_ROWS)?;
        let mut left = rows.len();
        let mut reached = None;
        for row in rows {
            log_skipped(row.key.as_ref(), self.match_row(&row))?;
            reached = Some(row.seq);
            left -= 1;
            if watch.elapsed() > MATCHING_TIME {
                break;
            }
        }
        if let Some(seq) = reached {
            // Compare-and-set, in case a different node has advanced the position.
            if !self.tx.set_matched_seq(from, seq)? {
                let why = format!("another node continued from row {from}");
                return Err(DbError::Damaged { what: "the position of matching".to_owned(), why });
            }
            self.batch.more = left > 0 || self.tx.matching_backlog(seq)?.0 > seq;
        }
        Ok(())
    }

    /// Matches the item of a row that counts as newly indexed.
    ///
    /// The present state of the item is matched. If a later row made the item new again, that row is matched
    /// instead, so that no user gets one version twice.
    fn match_row(&mut self, row: &LogRow) -> DbResult<()> {
        let Some(key) = row.key.as_ref().filter(|key| !self.skipped.contains(key)) else {
            return Ok(());
        };
        let is_deferred = self.tx.is_deferred(key)?;
        // A row that is not new still matters for a deferred item, because it may lift or move the embargo.
        if !row.is_newly_indexed && !is_deferred {
            return Ok(());
        }
        let Some((version, item)) = self.find(key)? else { return Ok(()) };
        if version > row.seq
            && (!row.is_newly_indexed || self.tx.is_newly_indexed_after(version, row.seq)?)
        {
            return Ok(());
        }
        if let Some(until) = item.embargoed.filter(|until| *until > self.now) {
            return self.tx.defer_item(key, until);
        }
        if is_deferred {
            self.tx.undefer_item(key)?;
        }
        // A lifted embargo makes the item new for every notification, including later ones.
        let seq = if row.is_newly_indexed { row.seq } else { i64::MAX };
        self.match_item(key, version, &item, seq)
    }

    /// Matches items whose embargo ended.
    fn match_released(&mut self) -> DbResult<()> {
        let watch = Stopwatch::start();
        for key in self.tx.released_items(self.now, MATCHING_ROWS)? {
            if watch.elapsed() > MATCHING_TIME {
                self.batch.more = true;
                break;
            }
            // Removed before it is matched, because a damaged item must not return in every transaction.
            self.tx.undefer_item(&key)?;
            let outcome = self.match_released_item(&key);
            log_skipped(Some(&key), outcome)?;
        }
        Ok(())
    }

    /// Loads the present version of the item.
    fn find(&self, key: &ItemKey) -> DbResult<Option<(i64, StoredItem)>> {
        let found = self.tx.find_version(key);
        if let Err(DbError::Engine(cause)) = &found
            && cause.is_damage()
        {
            self.unreadable.lock().record_failure(key, cause);
        }
        found
    }

    fn match_released_item(&mut self, key: &ItemKey) -> DbResult<()> {
        if self.skipped.contains(key) {
            return Ok(());
        }
        let Some((version, item)) = self.find(key)? else { return Ok(()) };
        match item.embargoed.filter(|until| *until > self.now) {
            Some(until) => self.tx.defer_item(key, until),
            None => self.match_item(key, version, &item, i64::MAX),
        }
    }

    /// Queues an item for the notifications that match it and were created before the row `seq`.
    fn match_item(
        &mut self,
        key: &ItemKey,
        version: i64,
        item: &StoredItem,
        seq: i64,
    ) -> DbResult<()> {
        // Avoids parsing every document of an archive without notifications.
        if self.matcher.is_empty() {
            return Ok(());
        }
        let document = match Document::from_stored(&item.document) {
            Ok(document) => document,
            // One damaged document must not block the other items.
            Err(cause) => {
                tracing::error!("matching skips item {key}: {cause}");
                return Ok(());
            }
        };
        // Withdrawn and withheld items produce no notifications, and expired items neither.
        let has_expired = document.time("expires").is_some_and(|at| at <= self.now);
        if document.pub_status() != PubStatus::Usable || has_expired {
            return Ok(());
        }
        self.batch.items += 1;
        for (number, matched) in self.matcher.matching(key, &document, item, self.now) {
            if seq > matched.after_seq && self.is_recent(matched, item) {
                self.deliver_match(number, matched, key, version)?;
            }
        }
        Ok(())
    }

    /// Returns whether an item is recent enough for a notification. Scheduled mails check this when they are
    /// written.
    fn is_recent(&self, matched: MatchedNotification, item: &StoredItem) -> bool {
        let period = TimestampFilter { recent: matched.recent, ..TimestampFilter::default() };
        let (from, _) = period.bounds(self.now, self.matcher.zone());
        matched.kind == NotificationKind::ScheduledEmail
            || from.is_none_or(|from| from <= item.order_time)
    }

    fn deliver_match(
        &mut self,
        number: i64,
        matched: MatchedNotification,
        key: &ItemKey,
        version: i64,
    ) -> DbResult<()> {
        self.batch.matches[matched.kind as usize] += 1;
        match matched.kind {
            NotificationKind::Stream => {
                self.queue(number, key, version)?;
                self.batch.streams.push(matched.id);
            }
            NotificationKind::ScheduledEmail => self.queue(number, key, version)?,
            NotificationKind::Email => {
                let content = MessageContent::Item { item: key.to_string() };
                self.message(MessageTransport::Mail, number, matched, content)?;
            }
            NotificationKind::Mobile => {
                for device in self.tx.list_devices(matched.user)? {
                    // Without credentials of the push service, its messages would only fill the outbox.
                    if self.push.reaches(device.kind) {
                        let content = MessageContent::push(key, &device.token, device.kind);
                        let transport = MessageTransport::for_device(device.kind);
                        self.message(transport, number, matched, content)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn queue(&mut self, number: i64, key: &ItemKey, version: i64) -> DbResult<()> {
        // One number for all items of the transaction, because its commit makes them visible together.
        let sequence = match self.batch.stream_sequence {
            Some(sequence) => sequence,
            None => self.tx.next_stream_sequence()?,
        };
        self.batch.stream_sequence = Some(sequence);
        self.batch.queues.push(number);
        self.tx.queue_item(number, key, version, sequence)
    }

    fn message(
        &mut self,
        transport: MessageTransport,
        number: i64,
        matched: MatchedNotification,
        content: MessageContent,
    ) -> DbResult<()> {
        let id = Uuid::now_v7();
        let new = NewMessage { id, transport, number, user: matched.user, content };
        self.batch.write_message(self.tx, &new, self.now)?;
        Ok(())
    }

    /// Drops the oldest items of overfull queues.
    fn trim(&mut self) -> DbResult<()> {
        // Deduplicated, so that each queue is trimmed and each stream woken once per transaction.
        self.batch.queues.sort_unstable();
        self.batch.queues.dedup();
        self.batch.streams.sort_unstable();
        self.batch.streams.dedup();
        for number in &self.batch.queues {
            let lost = self.tx.trim_queue(*number, QUEUED_ITEMS_MAX)?;
            self.batch.lost += u64::try_from(lost).unwrap_or_default();
        }
        Ok(())
    }
}

/// Converts a count for a gauge; a count that is too large becomes the maximum.
fn to_u32(count: impl TryInto<u32>) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// Logs and skips damaged rows, because one of them must not block the other items.
fn log_skipped(key: Option<&ItemKey>, outcome: DbResult<()>) -> DbResult<()> {
    match outcome {
        Err(DbError::Damaged { what, why }) => {
            let item = key.map(ToString::to_string).unwrap_or_default();
            tracing::error!(item, "matching skips an item: {what} is damaged: {why}");
            Ok(())
        }
        other => other,
    }
}

fn report(batch: &MatchBatch) {
    metrics::counter!(telemetry::MATCHED_ITEMS).increment(batch.items);
    metrics::counter!(telemetry::NOTIFICATIONS_LOST).increment(batch.lost);
    for (kind, count) in NotificationKind::VARIANTS.iter().zip(batch.matches) {
        metrics::counter!(telemetry::MATCHES, "type" => *kind).increment(count);
    }
}
