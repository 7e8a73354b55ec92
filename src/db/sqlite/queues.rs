//! What notifications found and nobody read or sent yet: queued items, and how far the item log was
//! matched.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::items::Raw;
use super::{ReadTx, WriteTx, damaged, time};
use crate::account::UserId;
use crate::db::{DbError, StoredItem};
use crate::types::ItemKey;

/// Name of the place in the item log up to which notifications were looked for.
const MATCHING: &str = "matching";

/// A row of the item log as matching reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its number.
    pub seq: i64,
    /// The item; `None` for a row that is about no item.
    pub key: Option<ItemKey>,
    /// Whether the item counts as newly indexed.
    pub fresh: bool,
    /// When it was written.
    pub at: Timestamp,
}

/// An item that waits in the queue of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedItem {
    /// Its place in the order of all queues.
    pub place: i64,
    /// The item.
    pub key: ItemKey,
    /// The row of the item log that it was put in for.
    pub seq: i64,
}

/// A stream that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundStream {
    /// The notification's number.
    pub number: i64,
    /// When it was last used.
    pub active: Timestamp,
}

fn parse_key(what: &str, media_type: &str, id: &str) -> Result<ItemKey, DbError> {
    format!("{media_type}/{id}").parse().map_err(|why| damaged(what, &why))
}

fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl ReadTx<'_> {
    /// The row of the item log up to which notifications were looked for.
    pub fn matched_seq(&self) -> Result<i64, DbError> {
        let mut statement =
            self.connection.prepare_cached("SELECT seq FROM cursors WHERE name = ?1")?;
        Ok(statement.query_row([MATCHING], |row| row.get(0))?)
    }

    /// The number of the newest row of the item log, and when the first row behind `after` was
    /// written.
    pub fn matching_backlog(&self, after: i64) -> Result<(i64, Option<Timestamp>), DbError> {
        let newest = "SELECT coalesce(max(seq), 0) FROM item_log";
        let newest = self.connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?;
        let oldest = "SELECT at_ms FROM item_log WHERE seq > ?1 ORDER BY seq LIMIT 1";
        let oldest: Option<i64> =
            self.connection.prepare_cached(oldest)?.query_row([after], |r| r.get(0)).optional()?;
        Ok((newest, oldest.map(|ms| time("item_log", ms)).transpose()?))
    }

    /// The rows of the item log behind `after`, `limit` of them.
    pub fn log_rows(&self, after: i64, limit: usize) -> Result<Vec<LogRow>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, media_type, id, fresh, at_ms FROM item_log WHERE seq > ?1
             ORDER BY seq LIMIT ?2",
        )?;
        let mut rows = statement.query(params![after, int(limit)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (media_type, id): (String, String) = (row.get(1)?, row.get(2)?);
            found.push(LogRow {
                seq: row.get(0)?,
                // The row that says that the index was made anew names no item.
                key: format!("{media_type}/{id}").parse().ok(),
                fresh: row.get(3)?,
                at: time("item_log", row.get(4)?)?,
            });
        }
        Ok(found)
    }

    /// The current version of an item with its number.
    pub fn find_version(&self, key: &ItemKey) -> Result<Option<(i64, StoredItem)>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT document, assets, embargoed_ms, stored_ms, order_ms, item_id FROM items
             WHERE media_type = ?1 AND id = ?2",
        )?;
        let found = statement
            .query_row(params![key.media_type.as_str(), key.id.as_str()], |row| {
                Ok((row.get(5)?, Raw::read(row)?))
            })
            .optional()?;
        let item = |(number, raw): (i64, Raw)| Ok((number, raw.item(&format!("item {key}"))?));
        found.map(item).transpose()
    }

    /// The documents of the `limit` items that were written last.
    pub fn newest_documents(&self, limit: usize) -> Result<Vec<(ItemKey, String)>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT media_type, id, document FROM items ORDER BY item_id DESC LIMIT ?1",
        )?;
        let mut rows = statement.query([int(limit)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (media_type, id): (String, String) = (row.get(0)?, row.get(1)?);
            found.push((parse_key("items", &media_type, &id)?, row.get(2)?));
        }
        Ok(found)
    }

    /// Whether a version of an item that counts as newly indexed was written behind the row `after`,
    /// up to its current version `number`.
    pub fn is_fresh_behind(&self, number: i64, after: i64) -> Result<bool, DbError> {
        let sql = "SELECT previous, fresh FROM item_log WHERE seq = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut at = number;
        // Each version names an earlier row, so this ends.
        while at > after {
            let row =
                statement.query_row([at], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((previous, fresh)): Option<(Option<i64>, bool)> = row else {
                return Ok(false);
            };
            if fresh {
                return Ok(true);
            }
            let Some(previous) = previous.filter(|previous| *previous < at) else {
                return Ok(false);
            };
            at = previous;
        }
        Ok(false)
    }

    /// Whether the item waits for the end of an embargo to be matched.
    pub fn is_held(&self, key: &ItemKey) -> Result<bool, DbError> {
        let sql = "SELECT 1 FROM embargoed_items WHERE media_type = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists(params![key.media_type.as_str(), key.id.as_str()])?)
    }

    /// Items whose embargo ended by `now`, `limit` of them.
    pub fn released_items(&self, now: Timestamp, limit: usize) -> Result<Vec<ItemKey>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT media_type, id FROM embargoed_items WHERE until_ms <= ?1
             ORDER BY until_ms, media_type, id LIMIT ?2",
        )?;
        let rows = statement.query_map(params![now.as_millisecond(), int(limit)], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        rows.iter().map(|(kind, id)| parse_key("embargoed_items", kind, id)).collect()
    }

    /// The stream of that name and user, if it was used at `expired` or later.
    pub fn find_stream(
        &self,
        id: Uuid,
        user: UserId,
        expired: Timestamp,
    ) -> Result<Option<FoundStream>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT number, active_ms FROM notifications
             WHERE notification_id = ?1 AND user_id = ?2 AND active_ms >= ?3",
        )?;
        let wanted = params![id.to_string(), user.0, expired.as_millisecond()];
        let found: Option<(i64, i64)> =
            statement.query_row(wanted, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let stream = |(number, ms)| Ok(FoundStream { number, active: time("stream", ms)? });
        found.map(stream).transpose()
    }

    /// The first `limit` items in the queue of the notification, in their order.
    pub fn queued_items(&self, number: i64, limit: usize) -> Result<Vec<QueuedItem>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT place, media_type, id, seq FROM queued_items WHERE number = ?1
             ORDER BY place LIMIT ?2",
        )?;
        let mut rows = statement.query(params![number, int(limit)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (media_type, id): (String, String) = (row.get(1)?, row.get(2)?);
            let key = parse_key("queued_items", &media_type, &id)?;
            found.push(QueuedItem { place: row.get(0)?, key, seq: row.get(3)? });
        }
        Ok(found)
    }

    /// How many items wait in all queues.
    pub fn count_queued_items(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM queued_items";
        let count: i64 = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Scheduled notifications whose run is due at `now`, `limit` of them, with their numbers.
    pub fn due_notifications(&self, now: Timestamp, limit: usize) -> Result<Vec<i64>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT number FROM notifications WHERE next_ms <= ?1 ORDER BY next_ms LIMIT ?2",
        )?;
        let rows =
            statement.query_map(params![now.as_millisecond(), int(limit)], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl WriteTx<'_> {
    /// Says up to which row of the item log notifications were looked for.
    pub fn set_matched_seq(&self, seq: i64) -> Result<(), DbError> {
        let sql = "UPDATE cursors SET seq = ?1 WHERE name = ?2";
        self.transaction.prepare_cached(sql)?.execute(params![seq, MATCHING])?;
        Ok(())
    }

    /// Puts an item off until its embargo ends.
    pub fn hold_item(&self, key: &ItemKey, until: Timestamp) -> Result<(), DbError> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO embargoed_items VALUES (?1, ?2, ?3)")?
            .execute(params![key.media_type.as_str(), key.id.as_str(), until.as_millisecond()])?;
        Ok(())
    }

    /// Puts an item off no longer.
    pub fn release_item(&self, key: &ItemKey) -> Result<(), DbError> {
        let sql = "DELETE FROM embargoed_items WHERE media_type = ?1 AND id = ?2";
        let mut statement = self.transaction.prepare_cached(sql)?;
        statement.execute(params![key.media_type.as_str(), key.id.as_str()])?;
        Ok(())
    }

    /// Puts an item at the end of a notification's queue. One that waits there already keeps its
    /// place and is from now on there for the row `seq`.
    pub fn queue_item(&self, number: i64, key: &ItemKey, seq: i64) -> Result<(), DbError> {
        self.transaction
            .prepare_cached(
                "INSERT INTO queued_items (number, media_type, id, seq) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET seq = excluded.seq",
            )?
            .execute(params![number, key.media_type.as_str(), key.id.as_str(), seq])?;
        Ok(())
    }

    /// Removes the oldest items of a queue beyond the `max` newest; gives how many.
    pub fn trim_queue(&self, number: i64, max: usize) -> Result<usize, DbError> {
        let mut statement = self.transaction.prepare_cached(
            "DELETE FROM queued_items WHERE number = ?1 AND place <=
                 (SELECT place FROM queued_items WHERE number = ?1
                  ORDER BY place DESC LIMIT 1 OFFSET ?2)",
        )?;
        Ok(statement.execute(params![number, int(max)])?)
    }

    /// Removes items that were read from a queue: each by its place, unless it was put in again for
    /// a row behind the one that was read; gives how many.
    pub fn unqueue_items(&self, places: &[(i64, i64)]) -> Result<usize, DbError> {
        let sql = "DELETE FROM queued_items WHERE place = ?1 AND seq <= ?2";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let mut removed = 0;
        for (place, seq) in places {
            removed += statement.execute([place, seq])?;
        }
        Ok(removed)
    }

    /// Removes everything from a queue.
    pub fn empty_queue(&self, number: i64) -> Result<(), DbError> {
        let sql = "DELETE FROM queued_items WHERE number = ?1";
        self.transaction.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    /// Says that a stream is used at `now`.
    pub fn touch_stream(&self, number: i64, now: Timestamp) -> Result<(), DbError> {
        let sql = "UPDATE notifications SET active_ms = max(active_ms, ?1) WHERE number = ?2";
        self.transaction.prepare_cached(sql)?.execute([now.as_millisecond(), number])?;
        Ok(())
    }

    /// Sets the next run of a scheduled notification; `None`: it has none any more.
    pub fn set_next_run(&self, number: i64, next: Option<Timestamp>) -> Result<(), DbError> {
        let sql = "UPDATE notifications SET next_ms = ?1 WHERE number = ?2";
        let next = next.map(Timestamp::as_millisecond);
        self.transaction.prepare_cached(sql)?.execute(params![next, number])?;
        Ok(())
    }
}
