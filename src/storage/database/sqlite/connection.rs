//! Connects to a database file: opens, migrates, reads and writes it.

use std::path::{Path, PathBuf};
use std::{sync::Arc, time::Duration};

use rusqlite::{OpenFlags, TransactionBehavior};

use super::migrations;
use crate::runtime::limits::DB_BUSY_MS;
use crate::storage::database::engine::{
    ConnectionPurpose, DatabaseEngine, EngineConnection, EngineTransaction, Read, Work, WriteMode,
    params,
};
use crate::storage::database::error::{DbError, DbResult};
use crate::storage::database::migrations::{Migration, latest};

/// Page cache of one read connection, KiB.
const DB_CACHE_KIB: i64 = 16 * 1024;
/// Page cache of the write connection, KiB: room for a batch of an archive with its index, so that no page
/// has to be written twice.
const DB_WRITE_CACHE_KIB: i64 = 96 * 1024;
/// Reads a number that rises when a different connection commits.
const DATA_VERSION: &str = "PRAGMA data_version";

/// A database in a file.
pub(in crate::storage::database) struct DatabaseFile {
    pub(in crate::storage::database) path: PathBuf,
    /// True if the file is never written.
    pub(in crate::storage::database) only_reads: bool,
}

impl DatabaseEngine for DatabaseFile {
    fn open(self: Arc<Self>, purpose: ConnectionPurpose) -> DbResult<Box<dyn EngineConnection>> {
        if self.only_reads {
            return Ok(Box::new(FileConnection::open_to_read(&self.path)?));
        }
        let connection = FileConnection::open(&self.path)?;
        if purpose == ConnectionPurpose::Write {
            connection.raw.pragma_update(None, "cache_size", -DB_WRITE_CACHE_KIB)?;
        }
        Ok(Box::new(connection))
    }
}

/// A connection to a database file.
pub(in crate::storage::database) struct FileConnection {
    raw: rusqlite::Connection,
}

impl FileConnection {
    fn open(path: &Path) -> DbResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let opened = Self::with(path, flags)?;
        opened.raw.pragma_update(None, "journal_mode", "WAL")?;
        opened.raw.pragma_update(None, "synchronous", "FULL")?;
        // Off by default, and set for each connection.
        opened.raw.pragma_update(None, "foreign_keys", "ON")?;
        Ok(opened)
    }

    /// Opens the database so that its file cannot be written. Readers record their positions in the file
    /// `-shm` beside it, which is written.
    fn open_to_read(path: &Path) -> DbResult<Self> {
        Self::with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn with(path: &Path, flags: OpenFlags) -> DbResult<Self> {
        let connection = open_with(path, flags)?;
        connection.pragma_update(None, "cache_size", -DB_CACHE_KIB)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { raw: connection })
    }

    /// Runs `write` as an exclusive write transaction.
    fn run(&mut self, mode: WriteMode, write: Work<'_>) -> DbResult<()> {
        // A transaction that changes from reading to writing may fail despite the busy timeout.
        let transaction = self.raw.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let tx: &dyn EngineTransaction = &*transaction;
        // Costs a few microseconds, little compared with the flush of a commit.
        if mode != WriteMode::EvenMoved
            && let Some(moved_to) = tx.moved_to()?
        {
            return Err(DbError::Moved(moved_to));
        }
        write(tx)?;
        Ok(transaction.commit()?)
    }
}

impl EngineConnection for FileConnection {
    fn read(&mut self, read: Read) {
        match self.raw.unchecked_transaction() {
            // Dropping a transaction without writes ends it. There is nothing to commit.
            Ok(transaction) => read(Ok(&*transaction)),
            Err(error) => read(Err(error.into())),
        }
    }

    fn run_query(&mut self, work: Work<'_>) -> DbResult<()> {
        // Without a transaction, which would prevent the write-ahead log from being emptied.
        work(&self.raw)
    }

    fn run_write(&mut self, mode: WriteMode, write: Work<'_>) -> DbResult<()> {
        if mode != WriteMode::Overwriting {
            return self.run(mode, write);
        }
        // Overwriting costs writes, so it is enabled only for this transaction.
        self.raw.pragma_update(None, "secure_delete", "ON")?;
        let outcome = self.run(mode, write);
        self.raw.pragma_update(None, "secure_delete", "OFF")?;
        outcome
    }

    fn run_claim(&mut self, claim: Work<'_>) -> DbResult<()> {
        self.run(WriteMode::Normal, claim)
    }

    fn checkpoint(&self) -> DbResult<()> {
        let busy: i64 =
            self.raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        // The pragma reports a failure in its result, not as an error.
        if busy == 0 {
            return Ok(());
        }
        Err(DbError::InUse("others read from the write-ahead log".to_owned()))
    }

    fn data_version(&mut self) -> DbResult<i64> {
        let tx: &dyn EngineTransaction = &self.raw;
        tx.load_value(DATA_VERSION, params![])
    }
}

/// Opens the file at `path`, and waits for locks of other connections.
pub(super) fn open_with(path: &Path, flags: OpenFlags) -> DbResult<rusqlite::Connection> {
    // One thread owns the connection, so SQLite's own mutex protects nothing.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(DB_BUSY_MS))?;
    Ok(connection)
}

/// Creates the database if it is missing, and upgrades its schema to the one that `migrations` lead to.
pub(in crate::storage::database) fn migrate(
    path: &Path,
    migrations: &[Migration],
) -> DbResult<FileConnection> {
    let mut connection = FileConnection::open(path)?;
    // A current database is not locked, because other processes may be writing to it.
    if migrations::stored_schema(&connection.raw)?.number < latest(migrations) {
        migrations::run(&mut connection.raw, migrations, path)?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::migrations::SQLITE;

    #[test]
    fn who_only_reads_cannot_write_and_sees_what_others_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.db");
        let write = |connection: &FileConnection, sql: &str| connection.raw.execute_batch(sql);
        let writer = migrate(&path, &SQLITE).unwrap();
        let mut reader = FileConnection::open_to_read(&path).unwrap();
        let before = reader.data_version().unwrap();
        write(&writer, "INSERT INTO state (name, value) VALUES ('a', 'b')").unwrap();
        assert_ne!(reader.data_version().unwrap(), before);
        let tx: &dyn EngineTransaction = &reader.raw;
        let found =
            tx.find_value::<String>("SELECT value FROM state WHERE name = ?1", params!["a"]);
        assert_eq!(found.unwrap().as_deref(), Some("b"));
        let refused = write(&reader, "DELETE FROM state").map_err(DbError::from);
        assert!(matches!(refused, Err(DbError::Engine(cause)) if cause.is_resource()));
        // Also if no other process has it open.
        drop((writer, reader));
        let alone = FileConnection::open_to_read(&path).unwrap();
        let tx: &dyn EngineTransaction = &alone.raw;
        assert!(tx.exists("SELECT 1 FROM state", params![]).unwrap());
    }
}
