//! Migrates the archive of a database into a different database, of the same or the other engine, while it is
//! in use.
//!
//! Large tables are copied in batches, round after round, until few rows are new. The rest is then copied
//! from one state of this database, and all tables are compared by their number of rows. If the archive
//! switches to the new database, this one holds its write lock in the meantime. A dry run blocks no writers.
//! An interrupted migration is started again: the batches resume where they ended, and the new database is
//! marked as incomplete until the end.

use std::sync::Arc;

use super::engine::WriteMode;
use super::error::{DbError, DbResult, damaged};
use super::handle::Db;
use super::statements::archive_migration::{ITEM_LOG, ITEMS, MigratedTable, RowBatch, TABLES};
use super::statements::check::NamedOriginal;
use super::transactions::ReadTx;
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::{MIGRATION_BATCH_ROWS, MIGRATION_LOCK_ATTEMPTS_MAX};

/// Catch-up rounds of a migration while the old database is written, before writers are blocked.
const MIGRATION_ROUNDS_MAX: usize = 100;

/// Reports copied rows: the table, and the number of its rows in the last write.
pub type ReportRows = Arc<dyn Fn(&'static str, usize) + Send + Sync>;

/// Copies the originals that were added last, while the write lock is held. Called again if that step must be
/// repeated.
pub type CopyOriginals = Arc<dyn Fn(&[NamedOriginal]) -> DbResult<()> + Send + Sync>;

/// The result of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigratedRows {
    /// Number of rows by table, equal in both databases.
    pub tables: Vec<(&'static str, usize)>,
    /// Milliseconds for which the write lock was held, or would have been held if this was a dry run.
    pub held_ms: u64,
}

impl MigratedRows {
    /// Returns the number of rows of a table.
    pub fn count(&self, table: &str) -> usize {
        self.tables.iter().find(|(name, _)| *name == table).map_or(0, |(_, rows)| *rows)
    }
}

/// A migration from one database into a different one.
#[derive(Clone)]
pub struct ArchiveMigration {
    from: Db,
    to: Db,
    report: ReportRows,
}

fn foreign() -> DbError {
    let why = "the new database was filled from another archive, or from this one before it was \
               restored: recreate it";
    DbError::InUse(why.to_owned())
}

fn possibly_in_use(why: &str) -> DbError {
    DbError::InUse(format!("the archive may be in use where it was migrated to: {why}"))
}

impl ArchiveMigration {
    /// Begins the migration: `to` must be empty, or left by an earlier migration of this archive.
    ///
    /// Fails with [`DbError::InUse`] if `to` contains a different archive.
    pub fn begin(from: &Db, to: &Db, report: ReportRows) -> DbResult<Self> {
        // Marked before the first row, so that no service starts on the new database until the end.
        to.write_blocking(|tx| {
            if !tx.is_migration_target()? && !tx.is_empty()? {
                let why = "the new database holds an archive already, or a service runs on it";
                return Err(DbError::InUse(why.to_owned()));
            }
            tx.mark_migration_target(true)
        })?;
        let migration = Self { from: from.clone(), to: to.clone(), report };
        let comparison = migration.clone();
        from.read_blocking(move |tx| {
            comparison.compare_marks(tx)?;
            comparison.compare_log(tx)
        })?;
        Ok(migration)
    }

    /// Copies the new rows of the items and their log until few are left, while other processes continue to
    /// write. Returns the number of the last item.
    pub fn catch_up(&self) -> DbResult<i64> {
        // Bounded, because an archive that is written faster than it is copied would never catch up.
        for _ in 0..MIGRATION_ROUNDS_MAX {
            let rows = self.follow(&|table, after| {
                self.from.read_blocking(move |tx| tx.next_batch(table, after))
            })?;
            // The rest is small enough to be copied under the write lock.
            if rows <= MIGRATION_BATCH_ROWS {
                break;
            }
        }
        self.to.read_blocking(|tx| tx.reached(&ITEMS))
    }

    /// Copies the rows of the item log and of the items after the last ones in the new database. `next` reads
    /// them. Returns their number.
    fn follow(
        &self,
        next: &dyn Fn(&'static MigratedTable, i64) -> DbResult<RowBatch>,
    ) -> DbResult<usize> {
        let mut rows = 0;
        for table in [&ITEM_LOG, &ITEMS] {
            let reached = self.to.read_blocking(move |tx| tx.reached(table))?;
            let mut batch = next(table, reached)?;
            while let Some(last) = batch.last() {
                rows += batch.len();
                self.put(batch)?;
                batch = next(table, last)?;
            }
        }
        Ok(rows)
    }

    fn put(&self, batch: RowBatch) -> DbResult<()> {
        let name = batch.table.name;
        let rows = batch.len();
        self.to.write_blocking(move |tx| {
            if name == ITEMS.name {
                // An item may have been copied before under a different number. Rows of the log never are.
                tx.insert_items(&batch)
            } else {
                tx.insert_batch(&batch)
            }
        })?;
        (self.report)(name, rows);
        Ok(())
    }

    /// Copies the remaining rows under the write lock, with the originals of items numbered above `carried`,
    /// and compares both databases. With `switch` the archive moves: this database refuses writes from then
    /// on and names `switch` as the archive's place.
    ///
    /// Idempotent: a database that has already moved to `switch` may finish an interrupted migration.
    pub fn finish(
        &self,
        carried: i64,
        carry: &CopyOriginals,
        switch: Option<&str>,
    ) -> DbResult<MigratedRows> {
        let moved_to = self.from.read_blocking(|tx| tx.moved_to())?;
        let has_moved = moved_to.is_some();
        if let Some(moved_to) = moved_to.filter(|place| switch.is_none_or(|to| place != to)) {
            return Err(DbError::Moved(moved_to));
        }
        let mut attempts = 1;
        let copied = loop {
            // A database that has moved already refuses writes, so it needs no write lock.
            match self.copy_rest(carried, carry, switch.filter(|_| !has_moved)) {
                Err(DbError::Engine(cause))
                    if cause.is_busy() && attempts < MIGRATION_LOCK_ATTEMPTS_MAX =>
                {
                    attempts += 1;
                    tracing::warn!("the old database is busy, retrying: {cause}");
                }
                outcome => break outcome?,
            }
        };
        // This database is marked as moved first, so that the two never both accept writes.
        if switch.is_some() {
            self.to.write_blocking(|tx| tx.mark_migration_target(false))?;
        }
        Ok(copied)
    }

    /// Copies the remaining rows, under the write lock if the archive switches.
    fn copy_rest(
        &self,
        carried: i64,
        carry: &CopyOriginals,
        switch: Option<&str>,
    ) -> DbResult<MigratedRows> {
        // Slow work is done before the lock is acquired. One transaction per table, because the engine would
        // otherwise check foreign keys against the rows just deleted.
        for table in TABLES.iter().rev() {
            // An interrupted migration may have left more rows than one statement should delete.
            while self.to.write_blocking(move |tx| tx.clear_some(table))? > 0 {}
            self.to.write_blocking(move |tx| tx.clear_table(table))?;
        }
        // Writers continued while the tables were cleared.
        self.catch_up()?;
        let migration = self.clone();
        let carry = Arc::clone(carry);
        let target = switch.map(str::to_owned);
        let (mut copied, held) = match target {
            // A dry run reads one snapshot and blocks no writer.
            None => {
                self.from.read_blocking(move |tx| migration.copy_remaining(tx, carried, &carry))?
            }
            // One transaction, so that the next writer after the comparison finds that the archive moved.
            Some(to) => self.from.write_blocking(move |tx| {
                let copied = migration.copy_remaining(tx, carried, &carry)?;
                tx.note_moved(Some(&to))?;
                Ok(copied)
            })?,
        };
        copied.held_ms = u64::try_from(held.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(copied)
    }

    /// Copies the remaining rows. Also returns a stopwatch that was started before.
    fn copy_remaining(
        &self,
        here: &ReadTx<'_>,
        carried: i64,
        carry: &CopyOriginals,
    ) -> DbResult<(MigratedRows, Stopwatch)> {
        let held = Stopwatch::start();
        self.follow(&|table, after| here.next_batch(table, after))?;
        self.remove_replaced(here)?;
        let floor = here.log_floor()?;
        self.to.write_blocking(move |tx| tx.trim_item_log(floor))?;
        carry(&here.originals_after(carried)?)?;
        for table in TABLES {
            // Triggers may have inserted rows in the meantime.
            self.to.write_blocking(move |tx| tx.clear_table(table))?;
            here.for_each_batch(table, |batch| self.put(batch))?;
        }
        // Followers and clients know the numbers of removed rows, so these are not assigned again.
        for table in TABLES.iter().chain([&ITEM_LOG]) {
            if let Some(number) = here.last_assigned_number(table)? {
                self.to.write_blocking(move |tx| tx.reserve_numbers(table, number))?;
            }
        }
        Ok((self.compare(here)?, held))
    }

    /// Fails if the copied part of the item log differs from this one.
    fn compare_log(&self, here: &ReadTx<'_>) -> DbResult<()> {
        let floor = here.log_floor()?;
        let reached = self.to.read_blocking(|tx| tx.reached(&ITEM_LOG))?;
        // Rows that were trimmed here are trimmed in the new database later, so they are not compared.
        let rows = floor..=reached;
        if floor == 0 || rows.is_empty() {
            return Ok(());
        }
        let same_rows = rows.clone();
        let there = self.to.read_blocking(move |tx| tx.mark_of_rows(&ITEM_LOG, &same_rows))?;
        if there == here.mark_of_rows(&ITEM_LOG, &rows)? { Ok(()) } else { Err(foreign()) }
    }

    /// Fails if the new database contains items of a different archive.
    fn compare_marks(&self, here: &ReadTx<'_>) -> DbResult<()> {
        let there = self.to.read_blocking(|tx| tx.marks_of_items())?;
        let reached = there.last().map_or(0, |(doc, _)| *doc);
        // Later items have not been copied yet.
        for (doc, mark) in here.marks_of_items()?.iter().take_while(|(doc, _)| *doc <= reached) {
            let found = there.binary_search_by_key(doc, |(doc, _)| *doc).ok();
            if found.map(|at| there[at].1) != Some(*mark) {
                return Err(foreign());
            }
        }
        Ok(())
    }

    /// Deletes versions of items in the new database that were replaced here since they were copied. A
    /// version never changes, so its number identifies it.
    fn remove_replaced(&self, here: &ReadTx<'_>) -> DbResult<()> {
        let current = here.numbers_of_items()?;
        let mut replaced = self.to.read_blocking(|tx| tx.numbers_of_items())?;
        replaced.retain(|doc| current.binary_search(doc).is_err());
        for batch in replaced.chunks(MIGRATION_BATCH_ROWS) {
            let batch = batch.to_vec();
            self.to.write_blocking(move |tx| {
                batch.iter().try_for_each(|doc| tx.delete_version(*doc))
            })?;
        }
        Ok(())
    }

    fn compare(&self, here: &ReadTx<'_>) -> DbResult<MigratedRows> {
        let mut tables = Vec::with_capacity(TABLES.len() + 2);
        for table in [&ITEMS, &ITEM_LOG].into_iter().chain(TABLES) {
            let rows = here.rows_of(table)?;
            let there = self.to.read_blocking(move |tx| tx.rows_of(table))?;
            if rows != there {
                let what = format!("the new database, table {}", table.name);
                let why = format!("it has {there} rows where the old one has {rows}");
                return Err(damaged(what, &why));
            }
            tables.push((table.name, rows));
        }
        Ok(MigratedRows { tables, held_ms: 0 })
    }
}

impl Db {
    /// Returns the present place of this database's archive, if it has moved.
    pub fn moved_to(&self) -> DbResult<Option<String>> {
        self.read_blocking(|tx| tx.moved_to())
    }

    /// Returns whether a migration into this database is unfinished: its content is incomplete.
    pub fn is_migration_target(&self) -> DbResult<bool> {
        self.read_blocking(|tx| tx.is_migration_target())
    }

    /// Ensures that `to`, the database to which this archive moved, is not in use: marks it as incomplete
    /// again, as before the move.
    ///
    /// Fails with [`DbError::InUse`] if `to` may be in use: it has nodes, or rows that differ from the copied
    /// ones.
    pub fn invalidate_target(&self, to: &Self) -> DbResult<()> {
        // No lock is needed here: a moved archive refuses writes.
        let here = self.read_blocking(|tx| tx.marks_of_tables())?;
        to.write_blocking(move |tx| {
            if let Some(node) = tx.list_nodes()?.first() {
                return Err(possibly_in_use(&format!("the node {} uses it", node.node)));
            }
            // An earlier attempt has marked it already.
            if tx.is_migration_target()? {
                return Ok(());
            }
            let marks = tx.marks_of_tables()?;
            if let Some((table, _)) = here.iter().find(|mark| !marks.contains(mark)) {
                return Err(possibly_in_use(&format!(
                    "its table {table} has changed since the migration"
                )));
            }
            tx.mark_migration_target(true)
        })
    }

    /// Makes this database the place of its archive again.
    pub fn cancel_move(&self) -> DbResult<()> {
        // Writes although the archive has moved, because it removes the mark that refuses every other write.
        let keys = self.keys.clone();
        self.threads.write(WriteMode::EvenMoved, keys, |tx| tx.note_moved(None)).map(drop)
    }
}
