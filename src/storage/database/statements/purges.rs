//! Stores the cache purges that CDNs have yet to receive: keys with their due time, and the position in the
//! item log up to which it was read for them. Each endpoint has its own queue, so a slow endpoint delays no
//! other.

use jiff::Timestamp;

use super::{ReadTx, WriteTx, key_text, optional_time, time};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ItemKey;

/// Prefix of the cursor up to which the item log was read for an endpoint. The endpoint's name follows.
const CURSOR_PREFIX: &str = "purging ";

/// A key to be purged at a CDN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPurge {
    pub number: i64,
    pub key: String,
    /// Time at which the cached content changed.
    pub since: Timestamp,
}

/// The backlog of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeBacklog {
    /// Number of keys, including keys that are due later.
    pub keys: u64,
    /// Number of keys that are due.
    pub due: u64,
    /// Due time of the first key.
    pub next: Option<Timestamp>,
    /// Time of the first row of the item log that was not yet read for keys.
    pub unread: Option<Timestamp>,
}

fn cursor_name(endpoint: &str) -> String {
    format!("{CURSOR_PREFIX}{endpoint}")
}

impl ReadTx<'_> {
    /// Lists the endpoints, with the row of the item log up to which each has read it for keys.
    pub fn purging_endpoints(&self) -> DbResult<Vec<(String, i64)>> {
        let sql = "SELECT name, seq FROM cursors ORDER BY name";
        let mut endpoints = Vec::new();
        self.tx.each(sql, params![], |row| {
            if let Some(endpoint) = row.text("name")?.strip_prefix(CURSOR_PREFIX) {
                endpoints.push((endpoint.to_owned(), row.get("seq")?));
            }
            Ok(())
        })?;
        Ok(endpoints)
    }

    /// Returns the row of the item log up to which the endpoint has read it for keys. Returns `None` if there
    /// is no such endpoint.
    pub fn purged_seq(&self, endpoint: &str) -> DbResult<Option<i64>> {
        let sql = "SELECT seq FROM cursors WHERE name = ?1";
        self.tx.find_value(sql, params![cursor_name(endpoint)])
    }

    /// Lists the keys of the endpoint that are due at `now`, at most `limit`, longest due first.
    pub fn due_purges(
        &self,
        endpoint: &str,
        now: Timestamp,
        limit: usize,
    ) -> DbResult<Vec<PendingPurge>> {
        let sql = "SELECT purge_id, key, since_ms FROM purges WHERE endpoint = ?1 AND due_ms <= ?2
             ORDER BY due_ms, purge_id LIMIT ?3";
        self.tx.list(sql, params![endpoint, now, limit], |row| {
            Ok(PendingPurge {
                number: row.get("purge_id")?,
                key: row.get("key")?,
                since: time("purges", row.get("since_ms")?)?,
            })
        })
    }

    /// Returns the backlog of the endpoint at `now`.
    pub fn purges_waiting(&self, endpoint: &str, now: Timestamp) -> DbResult<PurgeBacklog> {
        let sql = "SELECT at_ms FROM item_log
             WHERE seq > (SELECT seq FROM cursors WHERE name = ?1) ORDER BY seq LIMIT 1";
        let unread = self.tx.find_value(sql, params![cursor_name(endpoint)])?;
        let unread = optional_time("item_log", unread)?;
        let sql = "SELECT count(*) AS keys, count(CASE WHEN due_ms <= ?2 THEN 1 END) AS due,
                 min(due_ms) AS next_ms
             FROM purges WHERE endpoint = ?1";
        self.tx.load(sql, params![endpoint, now], |row| {
            Ok(PurgeBacklog {
                keys: row.get("keys")?,
                due: row.get("due")?,
                next: optional_time("purges", row.get("next_ms")?)?,
                unread,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Sets the endpoints. Purges that were refused become due at once, because the operator may have removed
    /// the reason before the start.
    ///
    /// A new endpoint inherits the backlog of removed endpoints, so that a corrected address receives the
    /// purges that the wrong one missed. If no endpoint was removed, the new one begins at the end of the
    /// item log, and the keys of items under embargo are due when the embargo ends. `key` derives the key of
    /// an item.
    pub fn start_purging(
        &self,
        endpoints: &[String],
        key: fn(&ItemKey) -> String,
    ) -> DbResult<()> {
        let known = self.purging_endpoints()?;
        let (retained, removed): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(endpoint, _)| endpoints.contains(endpoint));
        for endpoint in endpoints
            .iter()
            .filter(|endpoint| !retained.iter().any(|(known, _)| known == *endpoint))
        {
            // From the earliest position, because a repeated purge is harmless and a missing one is not.
            match removed.iter().map(|(_, seq)| *seq).min() {
                Some(seq) => self.take_over(endpoint, seq, &removed)?,
                None => self.begin_purging(endpoint, key)?,
            }
        }
        for (endpoint, _) in &removed {
            // A cursor that never moves would retain the item log forever.
            let sql = "DELETE FROM cursors WHERE name = ?1";
            self.tx.run(sql, params![cursor_name(endpoint)])?;
        }
        let sql = "DELETE FROM purges WHERE ?1 || endpoint NOT IN (SELECT name FROM cursors)";
        self.tx.run(sql, params![CURSOR_PREFIX])?;
        // A key has one row per due time, so duplicates are removed: the refused row of the same time, and
        // all but the newest of several refused ones.
        let sql = "DELETE FROM purges WHERE EXISTS (
                 SELECT 1 FROM purges AS one
                 WHERE one.refusals > 0 AND one.endpoint = purges.endpoint AND one.key = purges.key
                     AND ((purges.refusals = 0 AND purges.due_ms = one.since_ms)
                         OR (purges.refusals > 0 AND purges.since_ms = one.since_ms
                             AND purges.purge_id < one.purge_id)))";
        self.tx.run(sql, params![])?;
        // Set to unique values first, because engines check uniqueness row by row.
        let sql = "UPDATE purges SET due_ms = -purge_id WHERE refusals > 0";
        self.tx.run(sql, params![])?;
        let sql = "UPDATE purges SET due_ms = since_ms, refusals = 0 WHERE refusals > 0";
        self.tx.run(sql, params![])
    }

    fn take_over(&self, endpoint: &str, seq: i64, removed: &[(String, i64)]) -> DbResult<()> {
        let sql = "INSERT INTO cursors (name, seq) VALUES (?1, ?2)";
        self.tx.run(sql, params![cursor_name(endpoint), seq])?;
        for (from, _) in removed {
            // Several removed endpoints may have the same key in their backlog.
            let sql = "INSERT INTO purges (endpoint, key, due_ms, since_ms, repeated, refusals)
                 SELECT ?1, key, due_ms, since_ms, repeated, refusals FROM purges
                 WHERE endpoint = ?2 ORDER BY due_ms, purge_id
                 ON CONFLICT (endpoint, key, due_ms) DO NOTHING";
            self.tx.run(sql, params![endpoint, from])?;
        }
        Ok(())
    }

    fn begin_purging(&self, endpoint: &str, key: fn(&ItemKey) -> String) -> DbResult<()> {
        let sql = "INSERT INTO cursors (name, seq) SELECT ?1, coalesce(max(seq), 0) FROM item_log";
        self.tx.run(sql, params![cursor_name(endpoint)])?;
        let sql = "SELECT media_type, id, until_ms FROM embargoed_items";
        self.tx.each(sql, params![], |row| {
            if let Ok(item) = key_text(row, "id")?.parse() {
                self.insert_purge(endpoint, &key(&item), row.get("until_ms")?, false)?;
            }
            Ok(())
        })
    }

    /// Reads up to `limit` rows of the item log for an endpoint, up to the row `seq`, and queues the keys of
    /// items that changed: due at once, once more after they were sent, and at the end of an embargo. Returns
    /// the number of rows that were read.
    ///
    /// A new item was not cached before, and a cache stores its absence only briefly. No purges of the
    /// endpoint are sent in the meantime, so a key that is already queued is not queued again.
    pub fn note_purges(
        &self,
        endpoint: &str,
        seq: i64,
        limit: usize,
        now: Timestamp,
        key: fn(&ItemKey) -> String,
    ) -> DbResult<usize> {
        let Some(after) = self.purged_seq(endpoint)? else { return Ok(0) };
        let sql =
            "SELECT item_log.seq, item_log.media_type, item_log.id, change, at_ms, embargoed_ms
             FROM item_log LEFT JOIN items
                 ON items.media_type = item_log.media_type AND items.id = item_log.id
             WHERE item_log.seq > ?1 AND item_log.seq <= ?2 ORDER BY item_log.seq LIMIT ?3";
        let mut reached = after;
        let mut count = 0;
        self.tx.each(sql, params![after, seq, limit], |row| {
            reached = row.get("seq")?;
            count += 1;
            // The row that requests a rebuild of the search index names no item.
            let Ok(item) = key_text(row, "id")?.parse() else { return Ok(()) };
            let at: i64 = row.get("at_ms")?;
            let embargoed: Option<i64> = row.get("embargoed_ms")?;
            // A clock that ran ahead must not delay the purge.
            let due = at.min(now.as_millisecond());
            let key = key(&item);
            if row.text("change")? == "replaced" && !self.is_purge_queued(endpoint, &key, due)? {
                self.insert_purge(endpoint, &key, due, true)?;
            }
            // The response changes once more when the embargo ends, without a row in the log.
            if let Some(until) = embargoed.filter(|until| *until > at) {
                self.insert_purge(endpoint, &key, until, false)?;
            }
            Ok(())
        })?;
        let sql = "UPDATE cursors SET seq = ?1 WHERE name = ?2";
        self.tx.run(sql, params![reached, cursor_name(endpoint)])?;
        Ok(count)
    }

    /// Returns whether the key is due by then and will be sent once more after that.
    fn is_purge_queued(&self, endpoint: &str, key: &str, at_ms: i64) -> DbResult<bool> {
        let sql = "SELECT 1 FROM purges
             WHERE endpoint = ?1 AND key = ?2 AND due_ms <= ?3 AND repeated AND refusals = 0";
        self.tx.exists(sql, params![endpoint, key, at_ms])
    }

    /// Queues a key with a new row number, so that completing a row that is being sent does not remove this
    /// one.
    fn insert_purge(&self, endpoint: &str, key: &str, due_ms: i64, again: bool) -> DbResult<()> {
        let sql = "DELETE FROM purges WHERE endpoint = ?1 AND key = ?2 AND due_ms = ?3";
        self.tx.run(sql, params![endpoint, key, due_ms])?;
        let sql = "INSERT INTO purges (endpoint, key, due_ms, since_ms, repeated, refusals)
             VALUES (?1, ?2, ?3, ?3, ?4, 0)";
        self.tx.run(sql, params![endpoint, key, due_ms, again])
    }

    /// Queues a key, due at `now`, in every endpoint, or in `endpoints` if no server has created any yet.
    pub fn note_purge(&self, key: &str, endpoints: &[String], now: Timestamp) -> DbResult<()> {
        let known = self.purging_endpoints()?;
        let known: Vec<String> = known.into_iter().map(|(endpoint, _)| endpoint).collect();
        let endpoints = if known.is_empty() { endpoints } else { &known };
        endpoints
            .iter()
            .try_for_each(|endpoint| self.insert_purge(endpoint, key, now.as_millisecond(), false))
    }

    /// Removes rows that a CDN has received. If `again` is given, rows of changes are due once more at that
    /// time.
    pub fn complete_purges(&self, numbers: &[i64], again: Option<Timestamp>) -> DbResult<()> {
        let again = again.map(Timestamp::as_millisecond);
        for number in numbers {
            // With `cdn.purge_again_s = 0` no key is sent twice, so the mark is ignored.
            let sql = "DELETE FROM purges WHERE purge_id = ?1 AND (NOT repeated OR ?2)";
            self.tx.run(sql, params![number, again.is_none()])?;
            if let Some(again) = again {
                self.make_room(*number, again)?;
                let sql =
                    "UPDATE purges SET due_ms = ?2, since_ms = ?2, repeated = FALSE, refusals = 0
                     WHERE purge_id = ?1";
                self.tx.run(sql, params![number, again])?;
            }
        }
        Ok(())
    }

    /// Removes other rows of the key with that due time, because a key has one row per due time.
    fn make_room(&self, number: i64, due_ms: i64) -> DbResult<()> {
        let sql = "DELETE FROM purges WHERE purge_id <> ?1 AND due_ms = ?2
             AND (endpoint, key) = (SELECT endpoint, key FROM purges WHERE purge_id = ?1)";
        self.tx.run(sql, params![number, due_ms])
    }

    /// Postpones rows that a CDN refused until `until`.
    pub fn postpone_purges(&self, numbers: &[i64], until: Timestamp) -> DbResult<()> {
        let until = until.as_millisecond();
        let sql = "UPDATE purges SET due_ms = ?2, refusals = refusals + 1 WHERE purge_id = ?1";
        for number in numbers {
            self.make_room(*number, until)?;
            self.tx.run(sql, params![number, until])?;
        }
        Ok(())
    }

    /// Removes keys of the endpoint whose content changed before `before`, because no cache stores it any
    /// longer. Returns their number.
    pub fn drop_expired_purges(&self, endpoint: &str, before: Timestamp) -> DbResult<usize> {
        let sql = "DELETE FROM purges WHERE endpoint = ?1 AND since_ms < ?2";
        self.tx.execute(sql, params![endpoint, before])
    }
}
