//! Copies the database while others write to it, and reads such a copy.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};

use super::check;
use super::connection::open_with;
use super::migrations::stored_schema;
use crate::storage::database::error::{DbError, DbResult, damaged};
use crate::storage::database::facts::DatabaseFlaw;
use crate::storage::database::migrations::{Migration, SQLITE, SchemaStatus};
use crate::storage::database::transactions::ReadTx;

/// Database pages that a backup copies per step: 8 MB, then the progress bar advances.
const COPY_PAGES: i32 = 2000;
/// Times that a step may find the copy locked, though no other process uses it.
const COPY_TRIES_MAX: u32 = 100;

/// Opens the database at `path` without creating or changing it.
fn open(path: &Path) -> DbResult<rusqlite::Connection> {
    open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Compares the schema of the database at `path` with the one that `migrations` lead to, without changing it.
/// Also returns the connection, which the caller keeps open.
///
/// Fails with [`DbError::Schema`] if this version cannot use it.
pub(in crate::storage::database) fn inspect_schema(
    path: &Path,
    only_reads: bool,
    migrations: &[Migration],
) -> DbResult<(SchemaStatus, Option<rusqlite::Connection>)> {
    // Not an error: the first start creates the database.
    if !path.exists() {
        return Ok((SchemaStatus::New, None));
    }
    let opened =
        if only_reads { open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY) } else { open(path) };
    let connection = opened?;
    let stored = stored_schema(&connection)?;
    let status = SchemaStatus::compare(&stored, migrations, &path.display())?;
    Ok((status, Some(connection)))
}

/// Copies the database at `from` into a new file `to`, which only its owner may read. Calls `report` with the
/// number of copied pages and of all pages. Returns the number of the schema.
///
/// The copy is one consistent state of the database at the moment when it begins. The surrounding read
/// transaction preserves that state, so writers neither wait for the copy nor make it start over. In the
/// meantime, the write-ahead log grows by their writes. The copy is on disk when this returns.
pub(in crate::storage::database) fn copy(
    from: &Path,
    to: &Path,
    report: &mut dyn FnMut(u64, u64),
) -> DbResult<u32> {
    let source = open(from)?;
    let stored = stored_schema(&source)?;
    SchemaStatus::compare(&stored, &SQLITE, &from.display())?;
    let number = u32::try_from(stored.number).map_err(|why| damaged("user_version", &why))?;
    // SQLite keeps the mode of an existing file, so the copy is never readable for others.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    drop(created.map_err(|cause| file_error(to, &cause))?);
    let mut target = open(to)?;
    // No journal: an interrupted copy is discarded, and the whole file is flushed at the end.
    target.pragma_update(None, "journal_mode", "OFF")?;
    target.pragma_update(None, "synchronous", "OFF")?;
    let reading = source.unchecked_transaction()?;
    // SQLite begins the snapshot with the first read, not with the transaction.
    reading.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    copy_pages(&source, &mut target, report)?;
    drop(reading);
    drop(target);
    // The result is a single file without a write-ahead log beside it.
    let target = open(to)?;
    target.pragma_update(None, "journal_mode", "DELETE")?;
    drop(target);
    let flushed = File::open(to).and_then(|file| file.sync_all());
    flushed.map_err(|cause| file_error(to, &cause))?;
    Ok(number)
}

fn file_error(path: &Path, cause: &std::io::Error) -> DbError {
    DbError::File(format!("{}: {cause}", path.display()))
}

fn copy_pages(
    source: &rusqlite::Connection,
    target: &mut rusqlite::Connection,
    report: &mut dyn FnMut(u64, u64),
) -> DbResult<()> {
    let backup = Backup::new(source, target)?;
    let mut busy = 0;
    loop {
        let step = backup.step(COPY_PAGES)?;
        let progress = backup.progress();
        let pages = u64::try_from(progress.pagecount).unwrap_or_default();
        let remaining = u64::try_from(progress.remaining).unwrap_or_default();
        report(pages.saturating_sub(remaining), pages);
        if step == StepResult::Done {
            return Ok(());
        }
        if step != StepResult::More {
            busy += 1;
            if busy > COPY_TRIES_MAX {
                return Err(DbError::File("another process holds the copy locked".to_owned()));
            }
        }
    }
}

/// A copy of a database, which is never written.
pub struct DatabaseSnapshot {
    connection: rusqlite::Connection,
}

impl DatabaseSnapshot {
    /// Opens the copy at `path`.
    ///
    /// Fails with [`DbError::Schema`] if this version cannot use it.
    pub fn open(path: &Path) -> DbResult<Self> {
        let connection = open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        SchemaStatus::compare(&stored_schema(&connection)?, &SQLITE, &path.display())?;
        Ok(Self { connection })
    }

    /// Runs `read` against the copy.
    pub fn read<T>(&self, read: impl FnOnce(&ReadTx<'_>) -> DbResult<T>) -> DbResult<T> {
        read(&ReadTx::new(&self.connection))
    }

    /// Checks its pages. [`crate::storage::database::DatabaseInspection`] checks whether each index matches
    /// its table.
    pub fn page_flaws(&self) -> DbResult<Vec<DatabaseFlaw>> {
        check::page_flaws(&self.connection, "quick_check")
    }
}
