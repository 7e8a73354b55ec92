//! Notices what any process wrote: a cheap look that reads the log only when there is something.

use std::path::Path;

use rusqlite::params;

use super::{Connection, accounts::AccountChange};
use crate::db::DbError;
use crate::limits::LOG_ROWS_MAX;
use crate::types::ItemKey;

/// What changed since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Items that were written, in the order of the log.
    pub items: Vec<ItemKey>,
    /// What changed in accounts.
    pub accounts: Vec<AccountChange>,
}

/// Notices that something was written, by whichever process, on a connection of its own.
pub struct Pulse {
    connection: Connection,
    data_version: i64,
}

impl Pulse {
    pub(in crate::db) fn open(path: &Path) -> Result<Self, DbError> {
        Ok(Self { connection: Connection::open(path)?, data_version: -1 })
    }

    /// Whether another connection committed since the last call; a few microseconds.
    pub fn beats(&mut self) -> Result<bool, DbError> {
        let sql = "PRAGMA data_version";
        let mut statement = self.connection.raw.prepare_cached(sql)?;
        let found: i64 = statement.query_row([], |row| row.get(0))?;
        Ok(std::mem::replace(&mut self.data_version, found) != found)
    }
}

/// Follows the item log and the account log on a connection of its own.
pub struct Follower {
    connection: Connection,
    data_version: i64,
    seq: i64,
    account_seq: i64,
}

impl Follower {
    pub(in crate::db) fn open(path: &Path) -> Result<Self, DbError> {
        let connection = Connection::open(path)?;
        let mut follower = Self { connection, data_version: -1, seq: 0, account_seq: 0 };
        follower.seq = follower.number("SELECT coalesce(max(seq), 0) FROM item_log")?;
        follower.account_seq = follower.number("SELECT coalesce(max(seq), 0) FROM account_log")?;
        Ok(follower)
    }

    fn number(&self, sql: &str) -> Result<i64, DbError> {
        Ok(self.connection.raw.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// What was written since the last call; at most [`LOG_ROWS_MAX`] of a kind, the
    /// rest with the next call.
    pub fn changes(&mut self) -> Result<Change, DbError> {
        // Rises when another connection committed; a few microseconds when nothing did.
        let data_version = self.number("PRAGMA data_version")?;
        if data_version == self.data_version {
            return Ok(Change::default());
        }
        let mut change = Change::default();
        let mut statement = self.connection.raw.prepare_cached(
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
        let (account_seq, more) = self.account_changes(&mut change.accounts)?;
        self.seq = seq;
        self.account_seq = account_seq;
        if read < LOG_ROWS_MAX && !more {
            self.data_version = data_version;
        }
        Ok(change)
    }

    /// Reads the account log on: where it stands then, and whether there is more of it.
    fn account_changes(&self, changes: &mut Vec<AccountChange>) -> Result<(i64, bool), DbError> {
        let mut statement = self.connection.raw.prepare_cached(
            "SELECT seq, what, id FROM account_log WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )?;
        let limit = i64::try_from(LOG_ROWS_MAX).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![self.account_seq, limit])?;
        let (mut seq, mut read) = (self.account_seq, 0);
        while let Some(row) = rows.next()? {
            seq = row.get(0)?;
            let (what, id): (String, String) = (row.get(1)?, row.get(2)?);
            changes.push(AccountChange::parse(&what, &id));
            read += 1;
        }
        Ok((seq, read == LOG_ROWS_MAX))
    }
}
