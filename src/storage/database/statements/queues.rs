//! Stores the queues of notifications: matched items that were not yet read or sent, and the position in the
//! item log up to which it was matched.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, key_text, optional_time, parse, read_key, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use crate::storage::database::statements::items::StoredItem;
use model::ItemKey;
use model::account::UserId;

/// Name of the cursor up to which the item log was matched with notifications.
const MATCHING: &str = "matching";
/// Name of the counter that rises whenever items become available in queues.
const STREAMS: &str = "streams";

/// A row of the item log for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    pub seq: i64,
    /// The item; `None` for a row without an item.
    pub key: Option<ItemKey>,
    pub is_newly_indexed: bool,
    pub at: Timestamp,
}

/// An item in the queue of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedItem {
    /// Its position in the order of all queues.
    pub position: i64,
    pub key: ItemKey,
    /// The row of the item log that put it into the queue.
    pub seq: i64,
}

/// A stream and its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// The number of the notification.
    pub number: i64,
    /// Time of its last use.
    pub active: Timestamp,
}

fn read_queued_item(row: &dyn ResultRow) -> DbResult<QueuedItem> {
    Ok(QueuedItem { position: row.get("position")?, key: read_key(row)?, seq: row.get("seq")? })
}

impl ReadTx<'_> {
    /// Returns the row of the item log up to which notifications were matched.
    pub fn matched_seq(&self) -> DbResult<i64> {
        self.tx.load_value("SELECT seq FROM cursors WHERE name = ?1", params![MATCHING])
    }

    /// Returns the number of the newest row of the item log, and the time of the first row after `after`.
    pub fn matching_backlog(&self, after: i64) -> DbResult<(i64, Option<Timestamp>)> {
        let sql = "SELECT coalesce(max(seq), 0) FROM item_log";
        let newest = self.tx.load_value(sql, params![])?;
        let sql = "SELECT at_ms FROM item_log WHERE seq > ?1 ORDER BY seq LIMIT 1";
        let oldest = self.tx.find_value(sql, params![after])?;
        Ok((newest, optional_time("item_log", oldest)?))
    }

    /// Lists the rows of the item log after `after`, at most `limit`.
    pub fn log_rows(&self, after: i64, limit: usize) -> DbResult<Vec<LogRow>> {
        let sql = "SELECT seq, media_type, id, newly_indexed, at_ms FROM item_log WHERE seq > ?1
             ORDER BY seq LIMIT ?2";
        self.tx.list(sql, params![after, limit], |row| {
            Ok(LogRow {
                seq: row.get("seq")?,
                // The row that requests a rebuild of the search index names no item.
                key: key_text(row, "id")?.parse().ok(),
                is_newly_indexed: row.get("newly_indexed")?,
                at: time("item_log", row.get("at_ms")?)?,
            })
        })
    }

    /// Finds the current version of an item with its number.
    pub fn find_version(&self, key: &ItemKey) -> DbResult<Option<(i64, StoredItem)>> {
        let columns = StoredItem::columns();
        let sql =
            format!("SELECT {columns}, item_id FROM items WHERE media_type = ?1 AND id = ?2");
        self.tx.find(&sql, params![key.media_type, key.id], |row| {
            Ok((row.get("item_id")?, StoredItem::read(row, &format!("item {key}"))?))
        })
    }

    /// Lists the documents of the `limit` items that were written last.
    pub fn newest_documents(&self, limit: usize) -> DbResult<Vec<(ItemKey, String)>> {
        let sql = "SELECT media_type, id, document FROM items ORDER BY item_id DESC LIMIT ?1";
        self.tx.list(sql, params![limit], |row| Ok((read_key(row)?, row.get("document")?)))
    }

    /// Returns whether a version of an item that counts as newly indexed was written after the row `after`,
    /// up to its current version `number`.
    pub fn is_newly_indexed_after(&self, number: i64, after: i64) -> DbResult<bool> {
        let sql = "SELECT previous_seq, newly_indexed FROM item_log WHERE seq = ?1";
        let mut version = number;
        // Each version refers to an earlier row, so this ends.
        while version > after {
            let row = self.tx.find(sql, params![version], |row| {
                Ok((row.get("previous_seq")?, row.get("newly_indexed")?))
            })?;
            let Some((previous, is_newly_indexed)): Option<(Option<i64>, bool)> = row else {
                return Ok(false);
            };
            if is_newly_indexed {
                return Ok(true);
            }
            let Some(previous) = previous.filter(|previous| *previous < version) else {
                return Ok(false);
            };
            version = previous;
        }
        Ok(false)
    }

    /// Returns whether the item waits for the end of an embargo to be matched.
    pub fn is_deferred(&self, key: &ItemKey) -> DbResult<bool> {
        let sql = "SELECT 1 FROM embargoed_items WHERE media_type = ?1 AND id = ?2";
        self.tx.exists(sql, params![key.media_type, key.id])
    }

    /// Lists items whose embargo ended by `now`, at most `limit`.
    pub fn released_items(&self, now: Timestamp, limit: usize) -> DbResult<Vec<ItemKey>> {
        let sql = "SELECT media_type, id FROM embargoed_items WHERE until_ms <= ?1
             ORDER BY until_ms, media_type, id LIMIT ?2";
        self.tx.list(sql, params![now, limit], read_key)
    }

    /// Finds the stream `id` of the user, if it was used at `expired` or later.
    pub fn find_stream(
        &self,
        id: Uuid,
        user: UserId,
        expired: Timestamp,
    ) -> DbResult<Option<StreamRow>> {
        let sql = "SELECT number, active_ms FROM notifications
             WHERE notification_id = ?1 AND user_id = ?2 AND active_ms >= ?3";
        self.tx.find(sql, params![id, user, expired], |row| {
            Ok(StreamRow {
                number: row.get("number")?,
                active: time("stream", row.get("active_ms")?)?,
            })
        })
    }

    /// Lists the first `limit` items in the queue of the notification, in order.
    pub fn queued_items(&self, number: i64, limit: usize) -> DbResult<Vec<QueuedItem>> {
        let sql = "SELECT position, media_type, id, seq FROM queued_items WHERE number = ?1
             ORDER BY position LIMIT ?2";
        self.tx.list(sql, params![number, limit], read_queued_item)
    }

    /// Returns the last sequence number at which items became available, and the streams whose queues
    /// received items after `after`. The list is `None` if it is longer than `limit`.
    pub fn available_streams(
        &self,
        after: i64,
        limit: usize,
    ) -> DbResult<(i64, Option<Vec<Uuid>>)> {
        let sequence = self.stream_sequence()?;
        if sequence <= after {
            return Ok((sequence, Some(Vec::new())));
        }
        let sql = "SELECT DISTINCT notification_id FROM queued_items
             JOIN notifications USING (number) WHERE available_seq > ?1 LIMIT ?2";
        // One more than the limit distinguishes a truncated list from a complete one.
        let ids = self.tx.list(sql, params![after, limit.saturating_add(1)], |row| {
            parse::<Uuid>("a stream", row.text("notification_id")?)
        })?;
        Ok((sequence, Some(ids).filter(|ids| ids.len() <= limit)))
    }

    /// Returns the last sequence number at which items became available.
    pub fn stream_sequence(&self) -> DbResult<i64> {
        self.tx.load_value("SELECT seq FROM cursors WHERE name = ?1", params![STREAMS])
    }

    /// Counts the items in all queues, up to `max`.
    pub fn count_queued_items(&self, max: usize) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM queued_items LIMIT ?1) AS counted";
        self.tx.count(sql, params![max])
    }

    /// Lists the numbers of scheduled notifications whose run is due at `now`, at most `limit`.
    pub fn due_notifications(&self, now: Timestamp, limit: usize) -> DbResult<Vec<i64>> {
        let sql = "SELECT number FROM notifications WHERE next_ms <= ?1 ORDER BY next_ms LIMIT ?2";
        self.tx.list_values(sql, params![now, limit])
    }
}

impl WriteTx<'_> {
    /// Moves the cursor of matching from `from` to `seq`. Returns `false` if a different process has moved
    /// it.
    pub fn set_matched_seq(&self, from: i64, seq: i64) -> DbResult<bool> {
        let sql = "UPDATE cursors SET seq = ?1 WHERE name = ?2 AND seq = ?3";
        self.tx.changes(sql, params![seq, MATCHING, from])
    }

    /// Returns the next sequence number for items that become available, which is above all earlier ones in
    /// the order of commits.
    pub fn next_stream_sequence(&self) -> DbResult<i64> {
        // The update holds the row until the commit, so numbers rise in the order of commits.
        let sql = "UPDATE cursors SET seq = seq + 1 WHERE name = ?1 RETURNING seq";
        self.tx.load_value(sql, params![STREAMS])
    }

    /// Defers the matching of an item until its embargo ends.
    pub fn defer_item(&self, key: &ItemKey, until: Timestamp) -> DbResult<()> {
        let sql = "INSERT INTO embargoed_items (media_type, id, until_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT (media_type, id) DO UPDATE SET until_ms = excluded.until_ms";
        self.tx.run(sql, params![key.media_type, key.id, until])
    }

    /// Removes the deferral of an item.
    pub fn undefer_item(&self, key: &ItemKey) -> DbResult<()> {
        let sql = "DELETE FROM embargoed_items WHERE media_type = ?1 AND id = ?2";
        self.tx.run(sql, params![key.media_type, key.id])
    }

    /// Appends an item to a notification's queue, with the sequence number `sequence`. An item that is
    /// already in the queue keeps its position and gets the row `seq`.
    pub fn queue_item(&self, number: i64, key: &ItemKey, seq: i64, sequence: i64) -> DbResult<()> {
        let sql = "INSERT INTO queued_items (number, media_type, id, seq, available_seq)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (number, media_type, id)
             DO UPDATE SET seq = excluded.seq, available_seq = excluded.available_seq";
        self.tx.run(sql, params![number, key.media_type, key.id, seq, sequence])
    }

    /// Claims the first `limit` unclaimed items of a queue, in order, for an incarnation.
    pub fn claim_queued_items(
        &self,
        number: i64,
        limit: usize,
        incarnation: Uuid,
    ) -> DbResult<Vec<QueuedItem>> {
        let sql =
            "UPDATE queued_items SET incarnation = ?3 WHERE incarnation IS NULL AND position IN
                 (SELECT position FROM queued_items WHERE number = ?1 AND incarnation IS NULL
                  ORDER BY position LIMIT ?2)
             RETURNING position, media_type, id, seq";
        let mut claimed =
            self.tx.list(sql, params![number, limit, incarnation], read_queued_item)?;
        // `RETURNING` promises no order.
        claimed.sort_unstable_by_key(|item| item.position);
        Ok(claimed)
    }

    /// Releases items that the incarnation has claimed. They keep their positions.
    pub fn release_queued_items(&self, positions: &[i64], incarnation: Uuid) -> DbResult<()> {
        // A new sequence number would wake every waiting poll in vain.
        if positions.is_empty() {
            return Ok(());
        }
        let sequence = self.next_stream_sequence()?;
        let sql = "UPDATE queued_items SET incarnation = NULL, available_seq = ?3
             WHERE position = ?1 AND incarnation = ?2";
        for position in positions {
            self.tx.run(sql, params![position, incarnation, sequence])?;
        }
        Ok(())
    }

    /// Removes the oldest items of a queue, and retains the `max` newest. Returns the number of removed
    /// items.
    pub fn trim_queue(&self, number: i64, max: usize) -> DbResult<usize> {
        let sql = "DELETE FROM queued_items WHERE number = ?1 AND position <=
                 (SELECT position FROM queued_items WHERE number = ?1
                  ORDER BY position DESC LIMIT 1 OFFSET ?2)";
        self.tx.execute(sql, params![number, max])
    }

    /// Removes an item that the incarnation has claimed and read, by its position, unless it was queued again
    /// for a later row than the one read. Returns whether it was removed.
    pub fn remove_queued_item(
        &self,
        position: i64,
        seq: i64,
        incarnation: Uuid,
    ) -> DbResult<bool> {
        let sql =
            "DELETE FROM queued_items WHERE position = ?1 AND seq <= ?2 AND incarnation = ?3";
        self.tx.changes(sql, params![position, seq, incarnation])
    }

    /// Removes all items from a queue.
    pub fn empty_queue(&self, number: i64) -> DbResult<()> {
        let sql = "DELETE FROM queued_items WHERE number = ?1";
        self.tx.run(sql, params![number])
    }

    /// Records the use of a stream at `now`.
    pub fn touch_stream(&self, number: i64, now: Timestamp) -> DbResult<()> {
        // Several nodes record polls in any order. The latest use counts.
        let sql = "UPDATE notifications SET active_ms = ?1 WHERE number = ?2 AND active_ms < ?1";
        self.tx.run(sql, params![now, number])
    }

    /// Sets the next run of a scheduled notification; `None`: no further run.
    pub fn set_next_run(&self, number: i64, next: Option<Timestamp>) -> DbResult<()> {
        let sql = "UPDATE notifications SET next_ms = ?1 WHERE number = ?2";
        self.tx.run(sql, params![next, number])
    }
}
