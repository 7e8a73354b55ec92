//! SQLite behind the database handle: connections, driver, migrations, and what only SQLite does its
//! way.
//!
//! WAL mode with `synchronous=FULL`: what a transaction promised is on disk when it returns.
//!
//! An engine brings what is here: a connection that reads in one state and writes one after the
//! other; the schema; statements, rows and values of its driver ([`Client`], [`Row`]); errors that say
//! whether they pass; a number that rises when others committed; checks and copies
//! of itself. `statements` says what it must understand.

mod check;
mod client;
pub(super) mod copy;
mod facts;
mod migrations;

use std::{path::Path, time::Duration};

use rusqlite::{ErrorCode, OpenFlags, TransactionBehavior};

pub(super) use client::{Client, FromColumn, Row};

use super::engine::{Engine, EngineError, params};
use super::statements::moving::moved_to;
use super::threads::Read;
use super::transactions::{ReadTx, WriteTx};
use crate::runtime::limits::{DB_BUSY_MS, DB_CACHE_KIB, DB_WRITE_CACHE_KIB};
use crate::storage::database::error::DbError;

/// An error of the driver.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Sqlite(#[from] rusqlite::Error);

impl Sqlite {
    /// Whether others had the database for longer than is waited for.
    pub(super) fn is_busy(&self) -> bool {
        let code = self.0.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Whether what lies in the file is not what was written, or the disk did not give it whole.
    pub(super) fn is_damage(&self) -> bool {
        self.0.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
    }

    /// What those who watch are told of one that passes.
    pub(super) fn kind(&self) -> &'static str {
        if self.is_busy() { "busy" } else { "other" }
    }

    /// Whether the disk is full, the database busy or the file unreadable: a state that passes,
    /// not a mistake.
    ///
    /// Where the disk fails to give a page SQLite calls the database corrupt, as it does where the
    /// page is damaged; a client can do the same about both.
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
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
            )
        )
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        EngineError::Sqlite(Sqlite(error)).into()
    }
}

/// Rises when another connection committed.
const DATA_VERSION: &str = "PRAGMA data_version";

pub(super) struct Connection {
    raw: rusqlite::Connection,
}

impl Connection {
    pub(super) fn open(path: &Path) -> Result<Self, DbError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let opened = Self::with(path, flags)?;
        opened.raw.pragma_update(None, "journal_mode", "WAL")?;
        opened.raw.pragma_update(None, "synchronous", "FULL")?;
        opened.raw.pragma_update(None, "foreign_keys", "ON")?;
        Ok(opened)
    }

    /// Opens the database so that nothing of its file is written, whatever is asked. Who reads notes up to
    /// where in the file beside it, `-shm`, so that one is written.
    pub(super) fn open_to_read(path: &Path) -> Result<Self, DbError> {
        Self::with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn with(path: &Path, flags: OpenFlags) -> Result<Self, DbError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(DB_BUSY_MS))?;
        connection.pragma_update(None, "cache_size", -DB_CACHE_KIB)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { raw: connection })
    }

    /// Gives the connection the memory of the one that writes.
    pub(super) fn widen(&self) -> Result<(), DbError> {
        Ok(self.raw.pragma_update(None, "cache_size", -DB_WRITE_CACHE_KIB)?)
    }

    /// The connection for statements that are a transaction each.
    pub(super) fn engine(&self) -> Engine<'_> {
        Client(&self.raw).engine()
    }

    /// A number that rises when another connection committed; a few microseconds.
    pub(super) fn data_version(&self) -> Result<i64, DbError> {
        self.engine().load_value(DATA_VERSION, params![])
    }

    pub(super) fn read(&self, read: Read) {
        match self.raw.unchecked_transaction() {
            // Dropping a transaction that only read ends it; there is nothing to commit.
            Ok(transaction) => read(Ok(ReadTx::new(Client(&transaction).engine()))),
            Err(error) => read(Err(error.into())),
        }
    }

    /// Runs `write` as a transaction.
    ///
    /// Fails with [`DbError::Moved`] when the archive lives elsewhere now.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.run(write, false)
    }

    /// The same in a database whose archive may live elsewhere.
    pub(super) fn write_anyway<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.run(write, true)
    }

    /// The same, with what it changes overwritten by zeros in the file.
    pub(super) fn write_over<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.raw.pragma_update(None, "secure_delete", "ON")?;
        let outcome = self.run(write, false);
        self.raw.pragma_update(None, "secure_delete", "OFF")?;
        outcome
    }

    /// Folds the write-ahead log into the database and empties it.
    ///
    /// Fails when somebody reads from it.
    pub(super) fn empty_log(&self) -> Result<(), DbError> {
        let busy: i64 =
            self.raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy == 0 {
            return Ok(());
        }
        Err(DbError::InUse("others read from the write-ahead log".to_owned()))
    }

    fn run<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
        here_after_all: bool,
    ) -> Result<T, DbError> {
        let transaction = self.raw.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let engine = Client(&transaction).engine();
        let tx = WriteTx::new(engine);
        // A few microseconds beside the flush of a commit.
        if let Some(home) = moved_to(engine)?.filter(|_| !here_after_all) {
            return Err(DbError::Moved(home));
        }
        let outcome = write(&tx);
        drop(tx);
        let outcome = outcome?;
        transaction.commit()?;
        Ok(outcome)
    }
}

/// Makes the database when it is missing and brings its schema up to date.
pub(super) fn migrate(path: &Path) -> Result<Connection, DbError> {
    let mut connection = Connection::open(path)?;
    migrations::all()
        .to_latest(&mut connection.raw)
        .map_err(|cause| DbError::Schema(format!("{}: {cause}", path.display())))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_reads_cannot_write_and_sees_what_others_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.db");
        let write = |connection: &Connection, sql: &str| connection.raw.execute_batch(sql);
        let writer = migrate(&path).unwrap();
        let reader = Connection::open_to_read(&path).unwrap();
        let before = reader.data_version().unwrap();
        write(&writer, "INSERT INTO state (name, value) VALUES ('a', 'b')").unwrap();
        assert_ne!(reader.data_version().unwrap(), before);
        let found = reader
            .engine()
            .find_value::<String>("SELECT value FROM state WHERE name = ?1", params!["a"]);
        assert_eq!(found.unwrap().as_deref(), Some("b"));
        let refused = write(&reader, "DELETE FROM state").map_err(Sqlite);
        assert!(refused.is_err_and(|cause| cause.is_resource()));
        // Also where nobody else has it open.
        drop((writer, reader));
        let alone = Connection::open_to_read(&path).unwrap();
        assert!(alone.engine().exists("SELECT 1 FROM state", params![]).unwrap());
    }
}
