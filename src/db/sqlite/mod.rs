//! SQLite behind the database handle: connections, transactions, migrations.
//!
//! WAL mode with `synchronous=FULL`: what a transaction promised is on disk when it returns.

pub(super) mod accounts;
pub(super) mod channels;
mod collected;
pub(super) mod collections;
pub(super) mod deliveries;
#[cfg(test)]
mod delivery_tests;
pub(super) mod facts;
pub(super) mod follow;
pub(super) mod grants;
pub(super) mod import;
#[cfg(test)]
mod import_tests;
mod index;
pub(super) mod items;
mod keys;
mod migrations;
pub(super) mod notifications;
pub(super) mod operator;
pub(super) mod orders;
pub(super) mod outbox;
pub(super) mod queues;
pub(super) mod search;
pub(super) mod sessions;
pub(super) mod tokens;
pub(super) mod users;

use std::{cell::RefCell, collections::HashMap, path::Path, time::Duration};

use jiff::Timestamp;
use rusqlite::{ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::{DbError, threads::Read};
use crate::limits::{DB_BUSY_MS, DB_CACHE_KIB, DB_WRITE_CACHE_KIB};
use crate::query::Facet;

fn damaged(what: impl Into<String>, why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: what.into(), why: why.to_string() }
}

/// A time that is stored in milliseconds; `what` names its row.
fn time(what: &str, ms: i64) -> Result<Timestamp, DbError> {
    Timestamp::from_millisecond(ms).map_err(|why| damaged(what, &why))
}

/// An error of the driver.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Sqlite(#[from] rusqlite::Error);

impl Sqlite {
    /// Whether the disk is full, the database busy or the file unreadable: a state that passes,
    /// not a mistake.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        let code = self.0.sqlite_error_code();
        matches!(
            code,
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::OutOfMemory
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
            )
        )
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Sqlite(error))
    }
}

/// Reads one consistent state of the database.
pub struct ReadTx<'a> {
    connection: &'a rusqlite::Connection,
}

/// Reads and writes in one transaction.
pub struct WriteTx<'a> {
    transaction: Transaction<'a>,
    /// What this transaction changed in accounts.
    changes: RefCell<Vec<accounts::AccountChange>>,
    /// What the connection knows of the numbers of facets' values.
    facet_values: &'a RefCell<FacetValues>,
}

/// The numbers of values by facet.
type FacetValues = [HashMap<String, u32>; Facet::ALL.len()];

impl WriteTx<'_> {
    /// The same transaction for reading.
    #[must_use]
    pub fn as_read(&self) -> ReadTx<'_> {
        ReadTx { connection: &self.transaction }
    }

    fn forget_facet_values(&self) {
        *self.facet_values.borrow_mut() = FacetValues::default();
    }
}

#[cfg(test)]
impl WriteTx<'_> {
    /// Runs statements that set a test's scene.
    pub fn run_sql(&self, sql: &str) -> Result<(), DbError> {
        Ok(self.transaction.execute_batch(sql)?)
    }
}

pub(super) struct Connection {
    raw: rusqlite::Connection,
    facet_values: RefCell<FacetValues>,
    /// The state of the database for which those hold: another process may have written others.
    facets_at: i64,
}

impl Connection {
    pub(super) fn open(path: &Path) -> Result<Self, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(DB_BUSY_MS))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.pragma_update(None, "cache_size", -DB_CACHE_KIB)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { raw: connection, facet_values: RefCell::default(), facets_at: 0 })
    }

    /// Gives the connection the memory of the one that writes.
    pub(super) fn widen(&self) -> Result<(), DbError> {
        Ok(self.raw.pragma_update(None, "cache_size", -DB_WRITE_CACHE_KIB)?)
    }

    pub(super) fn read(&self, read: Read) {
        match self.raw.unchecked_transaction() {
            // Dropping a transaction that only read ends it; there is nothing to commit.
            Ok(transaction) => read(Ok(ReadTx { connection: &transaction })),
            Err(error) => read(Err(error.into())),
        }
    }

    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let facet_values = &self.facet_values;
        let transaction = self.raw.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Rises when another connection committed, which may have emptied the index.
        let data_version = "PRAGMA data_version";
        let at = transaction.prepare_cached(data_version)?.query_row([], |row| row.get(0))?;
        let tx = WriteTx { transaction, changes: RefCell::default(), facet_values };
        if at != self.facets_at {
            tx.forget_facet_values();
        }
        // Until the end, so that a panic in between leaves nothing that is believed.
        self.facets_at = -1;
        let outcome = write(&tx).and_then(|outcome| {
            tx.transaction.commit()?;
            Ok(outcome)
        });
        self.facets_at = at;
        if outcome.is_err() {
            // Numbers that were given out within are gone with it.
            *facet_values.borrow_mut() = FacetValues::default();
        }
        outcome
    }
}

/// Makes the database when it is missing and brings its schema up to date.
pub(super) fn migrate(path: &Path) -> Result<(), DbError> {
    let mut connection = Connection::open(path)?;
    migrations::all()
        .to_latest(&mut connection.raw)
        .map_err(|cause| DbError::Schema(format!("{}: {cause}", path.display())))?;
    connection.start_index()
}
