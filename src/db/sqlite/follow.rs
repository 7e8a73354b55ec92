//! Notices what any process wrote: a cheap look that reads the log only when there is something.

use std::path::Path;

use rusqlite::params;

use super::Connection;
use crate::db::DbError;
use crate::limits::LOG_ROWS_MAX;
use crate::types::ItemKey;

/// What changed since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Items that were written, in the order of the log.
    pub items: Vec<ItemKey>,
    /// Whether users or keys were written.
    pub accounts: bool,
}

/// Follows the item log and the version of the accounts on a connection of its own.
pub struct Follower {
    connection: Connection,
    data_version: i64,
    seq: i64,
    accounts: i64,
}

impl Follower {
    pub(in crate::db) fn open(path: &Path) -> Result<Self, DbError> {
        let connection = Connection::open(path)?;
        let mut follower = Self { connection, data_version: -1, seq: 0, accounts: 0 };
        follower.seq = follower.number("SELECT coalesce(max(seq), 0) FROM item_log")?;
        follower.accounts = follower.accounts_version()?;
        Ok(follower)
    }

    fn number(&self, sql: &str) -> Result<i64, DbError> {
        Ok(self.connection.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    fn accounts_version(&self) -> Result<i64, DbError> {
        self.number("SELECT version FROM versions WHERE what = 'accounts'")
    }

    /// What was written since the last call; at most [`LOG_ROWS_MAX`] items, the rest with the
    /// next call.
    pub fn changes(&mut self) -> Result<Change, DbError> {
        // Rises when another connection committed; a few microseconds when nothing did.
        let data_version = self.number("PRAGMA data_version")?;
        if data_version == self.data_version {
            return Ok(Change::default());
        }
        let mut change = Change::default();
        let mut statement = self.connection.0.prepare_cached(
            "SELECT seq, media_type, id FROM item_log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )?;
        let limit = i64::try_from(LOG_ROWS_MAX).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![self.seq, limit])?;
        let mut read = 0;
        let mut seq = self.seq;
        while let Some(row) = rows.next()? {
            seq = row.get(0)?;
            let (media_type, id): (String, String) = (row.get(1)?, row.get(2)?);
            // A row that names no item cannot be in any cache.
            change.items.extend(format!("{media_type}/{id}").parse::<ItemKey>().ok());
            read += 1;
        }
        drop(rows);
        drop(statement);
        let accounts = self.accounts_version()?;
        change.accounts = accounts != self.accounts;
        self.accounts = accounts;
        self.seq = seq;
        if read < LOG_ROWS_MAX {
            self.data_version = data_version;
        }
        Ok(change)
    }
}
