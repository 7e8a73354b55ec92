//! Counts failed logins, for all nodes and across restarts.

use jiff::Timestamp;

use super::{ReadTx, WriteTx, parse, time};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ContentHash;

/// A counter of failures since the first one of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedLogins {
    /// Hash of the counted subject.
    pub key: ContentHash,
    /// Number of failed attempts.
    pub failures: u32,
    /// Time of the first of these failures.
    pub since: Timestamp,
}

/// The range of window starts for which a counter is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStart {
    /// Counters that began at this time or earlier have expired.
    pub after: Timestamp,
    /// Counters that began after this time were written by a clock that ran ahead.
    pub until: Timestamp,
}

/// Number of counters read by one statement.
const KEYS_MAX: usize = 4;

impl ReadTx<'_> {
    /// Lists the counters of the keys, including expired ones. A key that never failed has no counter.
    pub fn list_failed_logins(&self, keys: &[ContentHash]) -> DbResult<Vec<FailedLogins>> {
        let mut found = Vec::new();
        // Not every engine accepts a list as a parameter, so the number of keys is fixed.
        for keys in keys.chunks(KEYS_MAX) {
            let sql = "SELECT key_hash, failures, since_ms FROM failed_logins
                 WHERE key_hash IN (?1, ?2, ?3, ?4)";
            // A missing key is NULL, which equals no key.
            let values = params![keys.first(), keys.get(1), keys.get(2), keys.get(3)];
            found.extend(self.tx.list(sql, values, |row| {
                let what = "a counter of failed logins";
                let failures: i64 = row.get("failures")?;
                Ok(FailedLogins {
                    key: parse(what, row.text("key_hash")?)?,
                    failures: u32::try_from(failures).unwrap_or(u32::MAX),
                    since: time(what, row.get("since_ms")?)?,
                })
            })?);
        }
        Ok(found)
    }
}

impl WriteTx<'_> {
    /// Counts one failure of `key`. A counter that is not valid by `window` restarts at `now`.
    pub fn count_failed_login(
        &self,
        key: &ContentHash,
        window: WindowStart,
        now: Timestamp,
    ) -> DbResult<()> {
        // A start in the future comes from a clock that ran ahead, and would lock for too long.
        let sql = "INSERT INTO failed_logins (key_hash, failures, since_ms) VALUES (?1, 1, ?2)
             ON CONFLICT (key_hash) DO UPDATE SET
                 failures = CASE
                     WHEN failed_logins.since_ms > ?3 AND failed_logins.since_ms <= ?4
                     THEN failed_logins.failures + 1 ELSE 1 END,
                 since_ms = CASE
                     WHEN failed_logins.since_ms > ?3 AND failed_logins.since_ms <= ?4
                     THEN failed_logins.since_ms ELSE excluded.since_ms END";
        self.tx.run(sql, params![key, now, window.after, window.until])
    }

    /// Removes counters that are not valid, at most `limit`.
    pub fn sweep_failed_logins(&self, window: WindowStart, limit: usize) -> DbResult<usize> {
        let sql = "DELETE FROM failed_logins WHERE key_hash IN
                 (SELECT key_hash FROM failed_logins WHERE since_ms <= ?1 OR since_ms > ?2
                  LIMIT ?3)";
        self.tx.execute(sql, params![window.after, window.until, limit])
    }

    /// Removes counters beyond `max`, fewest failures first.
    pub fn bound_failed_logins(&self, max: usize) -> DbResult<usize> {
        let count = self.tx.count("SELECT count(*) FROM failed_logins", params![])?;
        let Some(excess) = count.checked_sub(max).filter(|excess| *excess > 0) else {
            return Ok(0);
        };
        // A flood of new names must not push out the counters that lock.
        let sql = "DELETE FROM failed_logins WHERE key_hash IN
                 (SELECT key_hash FROM failed_logins
                  ORDER BY failures, since_ms, key_hash LIMIT ?1)";
        self.tx.execute(sql, params![excess])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    /// Returns the window of 60 s that ends at `second`.
    fn window(second: i64) -> WindowStart {
        WindowStart { after: at(second - 60), until: at(second + 60) }
    }

    fn key(name: &str) -> ContentHash {
        ContentHash::new(name.as_bytes())
    }

    fn fail(db: &Db, name: &str, second: i64) {
        let key = key(name);
        let count =
            move |tx: &WriteTx<'_>| tx.count_failed_login(&key, window(second), at(second));
        db.write_blocking(count).unwrap();
    }

    fn counted(db: &Db, name: &str) -> Option<(u32, Timestamp)> {
        let key = key(name);
        let found = db.read_blocking(move |tx| tx.list_failed_logins(&[key])).unwrap();
        assert!(found.len() < 2 && found.iter().all(|row| row.key == key));
        found.first().map(|row| (row.failures, row.since))
    }

    #[test]
    fn failures_add_up_within_a_window_and_begin_again_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        assert_eq!(counted(&db, "a"), None);
        fail(&db, "a", 0);
        fail(&db, "a", 59);
        fail(&db, "b", 59);
        assert_eq!(counted(&db, "a"), Some((2, at(0))));
        fail(&db, "a", 60);
        assert_eq!(counted(&db, "a"), Some((1, at(60))), "the first failure has expired");
        fail(&db, "a", -10);
        assert_eq!(counted(&db, "a"), Some((1, at(-10))), "the clock ran ahead");
        let both = [key("a"), key("b"), key("c")];
        let both = db.read_blocking(move |tx| tx.list_failed_logins(&both)).unwrap();
        assert_eq!(both.len(), 2);
    }

    #[test]
    fn expired_counters_are_swept_and_the_rest_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        for (name, second) in
            [("old", 0), ("once", 50), ("twice", 50), ("twice", 51), ("far", 500)]
        {
            fail(&db, name, second);
        }
        let swept = db.write_blocking(|tx| tx.sweep_failed_logins(window(70), 100)).unwrap();
        assert_eq!(swept, 2);
        assert_eq!((counted(&db, "old"), counted(&db, "far")), (None, None));
        assert_eq!(db.write_blocking(|tx| tx.bound_failed_logins(2)).unwrap(), 0);
        assert_eq!(db.write_blocking(|tx| tx.bound_failed_logins(1)).unwrap(), 1);
        assert_eq!(counted(&db, "once"), None);
        assert_eq!(counted(&db, "twice"), Some((2, at(50))));
    }
}
