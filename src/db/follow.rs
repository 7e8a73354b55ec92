//! Notices what any process wrote: a cheap look that reads the log only when there is something.

use super::connection::{Connection, Place, Purpose};
use super::engine::{Engine, Row, params};
use super::{AccountChange, DbError};
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
    pub(super) fn open(place: &Place) -> Result<Self, DbError> {
        Ok(Self { connection: Connection::open(place, Purpose::Follow)?, data_version: -1 })
    }

    /// Whether another connection committed since the last call; a few microseconds.
    pub fn beats(&mut self) -> Result<bool, DbError> {
        let found = self.connection.data_version()?;
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
    pub(super) fn open(place: &Place) -> Result<Self, DbError> {
        let mut connection = Connection::open(place, Purpose::Follow)?;
        let (seq, account_seq) = connection.look(|engine| {
            let last = |sql| engine.load_value(sql, params![]);
            let seq = last("SELECT coalesce(max(seq), 0) FROM item_log")?;
            Ok((seq, last("SELECT coalesce(max(seq), 0) FROM account_log")?))
        })?;
        Ok(Self { connection, data_version: -1, seq, account_seq })
    }

    /// The row of the item log up to which changes were given out.
    #[must_use]
    pub fn seq(&self) -> i64 {
        self.seq
    }

    /// What was written since the last call; at most [`LOG_ROWS_MAX`] of a kind, the
    /// rest with the next call.
    pub fn changes(&mut self) -> Result<Change, DbError> {
        let data_version = self.connection.data_version()?;
        if data_version == self.data_version {
            return Ok(Change::default());
        }
        let (after, accounts_after) = (self.seq, self.account_seq);
        let (change, items, accounts) = self.connection.look(|engine| {
            let mut change = Change::default();
            let sql =
                "SELECT seq, media_type, id FROM item_log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let items = log_behind(engine, sql, after, |row| {
                // A row that names no item cannot be in any cache.
                let key = format!("{}/{}", row.text(1)?, row.text(2)?).parse::<ItemKey>();
                change.items.extend(key.ok());
                Ok(())
            })?;
            let sql = "SELECT seq, what, id FROM account_log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let accounts = log_behind(engine, sql, accounts_after, |row| {
                change.accounts.push(AccountChange::parse(row.text(1)?, row.text(2)?));
                Ok(())
            })?;
            Ok((change, items, accounts))
        })?;
        let ((seq, read), (account_seq, accounts_read)) = (items, accounts);
        self.seq = seq;
        self.account_seq = account_seq;
        if read < LOG_ROWS_MAX && accounts_read < LOG_ROWS_MAX {
            self.data_version = data_version;
        }
        Ok(change)
    }
}

/// Reads a log on behind the row `after`: where it stands then, and how many rows were read.
fn log_behind(
    engine: Engine<'_>,
    sql: &str,
    after: i64,
    mut each: impl FnMut(&Row<'_>) -> Result<(), DbError>,
) -> Result<(i64, usize), DbError> {
    let limit = i64::try_from(LOG_ROWS_MAX).unwrap_or(i64::MAX);
    let read: Vec<i64> = engine.list(sql, params![after, limit], |row| {
        each(row)?;
        row.get(0)
    })?;
    Ok((read.last().copied().unwrap_or(after), read.len()))
}
