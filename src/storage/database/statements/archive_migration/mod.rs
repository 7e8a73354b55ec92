//! Reads and writes the rows that migrate to a different database, of the same or the other engine.
//!
//! Most tables are small compared with the items and are copied as a whole. Items and the item log have
//! rising numbers and rows that never change, so they are copied in batches, each after the last number in
//! the target. The search index is not copied: each process at the target builds its own.

mod tables;

use std::ops::{ControlFlow, RangeInclusive};

use super::{ReadTx, WriteTx, damaged, key_text, parse_json};
use crate::runtime::limits::MIGRATION_BATCH_ROWS;
use crate::storage::database::engine::{
    ColumnType, EngineTransaction, MOVED, ResultRow, SqlParam, TableColumn, ToParam, params,
};
use crate::storage::database::error::DbResult;
use crate::storage::database::migrations::SCHEMA_HASH;
use crate::storage::database::statements::check::NamedOriginal;
use model::ContentHash;
use model::item::Asset;
use tables::COLUMNS_LEFT_OUT;

#[cfg(test)]
pub(crate) use tables::LEFT_OUT;
pub(crate) use tables::{ITEM_LOG, ITEMS, MigratedTable, TABLES};

/// Bytes of copied rows after which a migration commits.
const MIGRATION_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Bound values of one insert statement of a migration; SQLite accepts 32,766, PostgreSQL 65,535.
const MIGRATION_STATEMENT_VALUES_MAX: usize = 8192;
/// The row of `state` in a database that is the target of an unfinished migration.
const MIGRATION_TARGET: &str = "migration target";

/// A value of a migrated column. SQLite has no booleans, so booleans of both engines are compared as numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MigratedValue {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl MigratedValue {
    fn read(row: &dyn ResultRow, column: &TableColumn) -> DbResult<Self> {
        let name = column.name.as_str();
        let value = match column.kind {
            ColumnType::Int => row.get::<Option<i64>>(name)?.map(Self::Int),
            ColumnType::Bool => row.get::<Option<bool>>(name)?.map(|is| Self::Int(i64::from(is))),
            ColumnType::Text => {
                let text: Option<String> = row.get(name)?;
                // PostgreSQL refuses texts that contain a zero character.
                text.map(|text| Self::Text(text.replace('\0', "\u{fffd}")))
            }
            ColumnType::Blob => row.get::<Option<Vec<u8>>>(name)?.map(Self::Blob),
        };
        Ok(value.unwrap_or(Self::Null))
    }

    /// Returns the value as the parameter for a column of this type.
    fn param(&self, kind: ColumnType) -> SqlParam<'_> {
        match self {
            Self::Null => SqlParam::Null,
            Self::Int(number) if kind == ColumnType::Bool => SqlParam::Bool(*number != 0),
            Self::Int(number) => SqlParam::Int(*number),
            Self::Text(text) => SqlParam::Text(text.into()),
            Self::Blob(bytes) => SqlParam::Blob(bytes),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) => size_of::<Self>(),
            Self::Text(text) => size_of::<Self>() + text.len(),
            Self::Blob(bytes) => size_of::<Self>() + bytes.len(),
        }
    }
}

/// Some rows of a table, in their order.
#[derive(Debug)]
pub(crate) struct RowBatch {
    pub(crate) table: &'static MigratedTable,
    /// The names of the columns, in the order of the values.
    columns: String,
    rows: Vec<Vec<MigratedValue>>,
}

impl RowBatch {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of the last row of a table that is ordered by its first column.
    pub(crate) fn last(&self) -> Option<i64> {
        match self.rows.last()?.first()? {
            MigratedValue::Int(number) => Some(*number),
            MigratedValue::Null | MigratedValue::Text(_) | MigratedValue::Blob(_) => None,
        }
    }
}

impl MigratedTable {
    /// Returns the condition on the rows that are migrated.
    fn row_condition(&self) -> String {
        if self.name != "state" {
            return "TRUE".to_owned();
        }
        // The state of the migration itself is not migrated, and each engine has its own schema.
        format!("name NOT IN ('{MIGRATION_TARGET}', '{MOVED}', '{SCHEMA_HASH}')")
    }
}

/// Lists the columns of a table that are migrated.
fn migrated_columns(
    tx: &dyn EngineTransaction,
    table: &MigratedTable,
) -> DbResult<Vec<TableColumn>> {
    let mut columns = tx.columns(table.name)?;
    columns.retain(|column| !COLUMNS_LEFT_OUT.contains(&column.name.as_str()));
    Ok(columns)
}

/// Returns the names of columns as a statement lists them.
fn column_list(columns: &[TableColumn]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}

/// Returns the placeholders for the values of the row with the index `row`, such as `(?4, ?5, ?6)`.
fn row_placeholders(row: usize, width: usize) -> String {
    let placeholders = (1..=width).map(|column| format!("?{}", row * width + column));
    format!("({})", placeholders.collect::<Vec<_>>().join(", "))
}

fn read_values(row: &dyn ResultRow, columns: &[TableColumn]) -> DbResult<Vec<MigratedValue>> {
    columns.iter().map(|column| MigratedValue::read(row, column)).collect()
}

impl ReadTx<'_> {
    /// Calls `each` with all rows of a table in batches.
    pub(crate) fn for_each_batch(
        &self,
        table: &'static MigratedTable,
        mut each: impl FnMut(RowBatch) -> DbResult<()>,
    ) -> DbResult<()> {
        let columns = migrated_columns(self.tx, table)?;
        let names = column_list(&columns);
        let MigratedTable { name, order, .. } = table;
        let condition = table.row_condition();
        let sql = format!("SELECT {names} FROM {name} WHERE {condition} ORDER BY {order}");
        let mut rows = Vec::new();
        let mut bytes = 0;
        self.tx.each(&sql, params![], |row| {
            let row = read_values(row, &columns)?;
            bytes += row.iter().map(MigratedValue::size_bytes).sum::<usize>();
            rows.push(row);
            // Documents can be long, so the number of rows alone does not bound the memory.
            if rows.len() >= MIGRATION_BATCH_ROWS || bytes >= MIGRATION_BATCH_BYTES {
                bytes = 0;
                let rows = std::mem::take(&mut rows);
                each(RowBatch { table, columns: names.clone(), rows })?;
            }
            Ok(())
        })?;
        if rows.is_empty() { Ok(()) } else { each(RowBatch { table, columns: names, rows }) }
    }

    /// Reads the next rows of a table with numbers above `after`. An empty batch is the end.
    pub(crate) fn next_batch(
        &self,
        table: &'static MigratedTable,
        after: i64,
    ) -> DbResult<RowBatch> {
        let columns = migrated_columns(self.tx, table)?;
        let names = column_list(&columns);
        let MigratedTable { name, order, .. } = table;
        let sql =
            format!("SELECT {names} FROM {name} WHERE {order} > ?1 ORDER BY {order} LIMIT ?2");
        let mut rows = Vec::new();
        let mut bytes = 0;
        self.tx.each_until(&sql, params![after, MIGRATION_BATCH_ROWS], |row| {
            let row = read_values(row, &columns)?;
            bytes += row.iter().map(MigratedValue::size_bytes).sum::<usize>();
            rows.push(row);
            // The statement limits the number of rows. Long documents fill a batch earlier.
            let full = bytes >= MIGRATION_BATCH_BYTES;
            Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(RowBatch { table, columns: names, rows })
    }

    /// Returns the highest number in a table that is copied in batches; 0 for an empty table.
    pub(crate) fn reached(&self, table: &MigratedTable) -> DbResult<i64> {
        let sql = format!("SELECT coalesce(max({}), 0) FROM {}", table.order, table.name);
        self.tx.load_value(&sql, params![])
    }

    /// Lists the numbers of all items, ascending.
    pub(crate) fn numbers_of_items(&self) -> DbResult<Vec<i64>> {
        // Without ORDER BY, only an index of the numbers is read, which is small compared with the items.
        let mut found: Vec<i64> = self.tx.list_values("SELECT item_id FROM items", params![])?;
        found.sort_unstable();
        Ok(found)
    }

    /// Lists the numbers of all items, ascending, each with a digest that identifies its version: two
    /// archives may have assigned the same numbers.
    pub(crate) fn marks_of_items(&self) -> DbResult<Vec<(i64, ContentHash)>> {
        let sql = "SELECT item_id, media_type, id, stored_ms FROM items ORDER BY item_id";
        let mut found = Vec::new();
        self.tx.each(sql, params![], |row| {
            let stored_ms: i64 = row.get("stored_ms")?;
            // A version never changes, so its key and time identify it without its document.
            let mark = format!("{} {stored_ms}", key_text(row, "id")?);
            found.push((row.get("item_id")?, ContentHash::new(mark.as_bytes())));
            Ok(())
        })?;
        Ok(found)
    }

    /// Computes a digest of the rows of a table with these numbers.
    pub(crate) fn mark_of_rows(
        &self,
        table: &'static MigratedTable,
        numbers: &RangeInclusive<i64>,
    ) -> DbResult<ContentHash> {
        let columns = migrated_columns(self.tx, table)?;
        let names = column_list(&columns);
        let MigratedTable { name, order, .. } = table;
        let sql = format!(
            "SELECT {names} FROM {name} WHERE {order} >= ?1 AND {order} <= ?2 ORDER BY {order}"
        );
        let mut mark = ContentHash::hasher();
        self.tx.each(&sql, params![*numbers.start(), *numbers.end()], |row| {
            mark.update(format!("{:?}\n", read_values(row, &columns)?).as_bytes());
            Ok(())
        })?;
        Ok(mark.finish())
    }

    /// Computes a digest of the rows of each migrated table. For items it covers their versions, which never
    /// change.
    pub(crate) fn marks_of_tables(&self) -> DbResult<Vec<(&'static str, ContentHash)>> {
        let mut marks = Vec::with_capacity(TABLES.len() + 2);
        let mut mark = ContentHash::hasher();
        for (doc, version) in self.marks_of_items()? {
            mark.update(format!("{doc} {version}\n").as_bytes());
        }
        marks.push((ITEMS.name, mark.finish()));
        for table in TABLES.iter().chain([&ITEM_LOG]) {
            let mut mark = ContentHash::hasher();
            self.for_each_batch(table, |batch| {
                batch.rows.iter().for_each(|row| mark.update(format!("{row:?}\n").as_bytes()));
                Ok(())
            })?;
            marks.push((table.name, mark.finish()));
        }
        Ok(marks)
    }

    /// Counts the rows of a table that are migrated.
    pub(crate) fn rows_of(&self, table: &MigratedTable) -> DbResult<usize> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", table.name, table.row_condition());
        self.tx.count(&sql, params![])
    }

    /// Lists the originals of items with numbers above `after`, each once.
    pub fn originals_after(&self, after: i64) -> DbResult<Vec<NamedOriginal>> {
        let mut named = Vec::new();
        let sql = "SELECT item_id, assets FROM items WHERE item_id > ?1 ORDER BY item_id";
        self.tx.each(sql, params![after], |row| {
            let version: i64 = row.get("item_id")?;
            let what = format!("item number {version}");
            let assets: Vec<Asset> = parse_json(&what, row.text("assets")?)?;
            for asset in &assets {
                named.push(NamedOriginal { hash: asset.blob(), length: asset.length(), version });
            }
            Ok(())
        })?;
        // Items may share an original, which is copied once.
        named.sort_unstable();
        named.dedup_by_key(|original| (original.hash, original.length));
        Ok(named)
    }

    /// Returns the number of the newest version of any item.
    pub fn last_version(&self) -> DbResult<i64> {
        self.reached(&ITEMS)
    }

    /// Returns the last number that the engine assigned in a table. Its row may have been removed.
    pub(crate) fn last_assigned_number(&self, table: &MigratedTable) -> DbResult<Option<i64>> {
        table.numbered.map(|column| self.tx.last_assigned_number(table.name, column)).transpose()
    }

    /// Returns the present place of this database's archive, if it has moved.
    pub(crate) fn moved_to(&self) -> DbResult<Option<String>> {
        self.tx.moved_to()
    }

    /// Returns whether a migration into this database is unfinished.
    pub(crate) fn is_migration_target(&self) -> DbResult<bool> {
        Ok(self.find_state(MIGRATION_TARGET)?.is_some())
    }

    /// Returns whether the database has never been used: no items, no users, and no running service.
    pub(crate) fn is_empty(&self) -> DbResult<bool> {
        // A running node counts too: it may write its first item at any moment.
        let sql = "SELECT 1 WHERE EXISTS (SELECT 1 FROM items) OR EXISTS (SELECT 1 FROM users)
             OR EXISTS (SELECT 1 FROM organizations) OR EXISTS (SELECT 1 FROM nodes)";
        Ok(!self.tx.exists(sql, params![])?)
    }
}

impl WriteTx<'_> {
    /// Marks this database as the target of an unfinished migration, or removes the mark.
    pub(crate) fn mark_migration_target(&self, is_unfinished: bool) -> DbResult<()> {
        self.set_state(MIGRATION_TARGET, is_unfinished.then_some("from another database"))
    }

    /// Marks the archive as moved to a different database, or removes the mark.
    pub(crate) fn note_moved(&self, to: Option<&str>) -> DbResult<()> {
        self.set_state(MOVED, to)
    }

    /// Removes one batch of rows of a table that is copied as a whole. Returns their number, 0 at the end.
    pub(crate) fn clear_some(&self, table: &MigratedTable) -> DbResult<usize> {
        let MigratedTable { name, order, .. } = table;
        let condition = table.row_condition();
        // PostgreSQL's `DELETE` has no `LIMIT`, so a subquery selects the rows.
        let sql = format!(
            "DELETE FROM {name} WHERE ({order}) IN
             (SELECT {order} FROM {name} WHERE {condition} ORDER BY {order} LIMIT ?1)"
        );
        self.tx.execute(&sql, params![MIGRATION_BATCH_ROWS])
    }

    /// Removes all rows of a table that is copied as a whole.
    pub(crate) fn clear_table(&self, table: &MigratedTable) -> DbResult<()> {
        let sql = format!("DELETE FROM {} WHERE {}", table.name, table.row_condition());
        self.tx.run(&sql, params![])
    }

    /// Inserts rows, and compares the values stored by the engine with the given ones.
    pub(crate) fn insert_batch(&self, batch: &RowBatch) -> DbResult<()> {
        let RowBatch { table, columns: names, rows } = batch;
        let columns = migrated_columns(self.tx, table)?;
        if column_list(&columns) != *names {
            return Err(damaged(table.name, &"its columns are not those of the other database"));
        }
        // Both engines limit the parameters of one statement.
        let rows_max = (MIGRATION_STATEMENT_VALUES_MAX / columns.len()).max(1);
        let mut remaining = rows.as_slice();
        while !remaining.is_empty() {
            // Powers of two, so that batches of any length use few distinct statements, which stay prepared.
            let (chunk, tail) = remaining.split_at(1 << remaining.len().min(rows_max).ilog2());
            self.insert_rows(table, &columns, chunk)?;
            remaining = tail;
        }
        Ok(())
    }

    /// Inserts rows with one statement.
    fn insert_rows(
        &self,
        table: &MigratedTable,
        columns: &[TableColumn],
        rows: &[Vec<MigratedValue>],
    ) -> DbResult<()> {
        let list = column_list(columns);
        let width = columns.len();
        let placeholders = (0..rows.len()).map(|row| row_placeholders(row, width));
        let sql = format!(
            "INSERT INTO {} ({list}) VALUES {} RETURNING {list}",
            table.name,
            placeholders.collect::<Vec<_>>().join(", ")
        );
        let mut cells = Vec::with_capacity(rows.len() * width);
        for row in rows {
            for (value, column) in row.iter().zip(columns) {
                cells.push(value.param(column.kind));
            }
        }
        let values: Vec<&dyn ToParam> =
            cells.iter().map(|value| -> &dyn ToParam { value }).collect();
        let mut stored = self.tx.list(&sql, &values, |row| read_values(row, columns))?;
        let mut expected: Vec<&Vec<MigratedValue>> = rows.iter().collect();
        // Engines may return the rows in any order.
        stored.sort_unstable();
        expected.sort_unstable();
        let mut pairs = expected.iter().enumerate();
        match pairs.find(|(at, row)| stored.get(*at) != Some(**row)) {
            None if stored.len() == expected.len() => Ok(()),
            other => {
                let first = other.and_then(|(_, row)| row.first());
                let what = format!("{} {first:?}", table.name);
                Err(damaged(what, &"it was copied with other values"))
            }
        }
    }

    /// Inserts items, replacing earlier versions.
    pub(crate) fn insert_items(&self, batch: &RowBatch) -> DbResult<()> {
        for row in &batch.rows {
            let [_, media_type, id, ..] = row.as_slice() else { continue };
            let sql = "SELECT item_id FROM items WHERE media_type = ?1 AND id = ?2";
            let media_type = media_type.param(ColumnType::Text);
            let id = id.param(ColumnType::Text);
            let earlier: Option<i64> = self.tx.find_value(sql, params![media_type, id])?;
            // An item that was replaced between two batches arrives again under a new number.
            if let Some(doc) = earlier {
                self.delete_version(doc)?;
            }
        }
        self.insert_batch(batch)
    }

    /// Removes a version of an item that no longer exists in the source.
    pub(crate) fn delete_version(&self, doc: i64) -> DbResult<()> {
        self.tx.run("DELETE FROM items WHERE item_id = ?1", params![doc])
    }

    /// Removes the rows of the item log below `floor`.
    pub(crate) fn trim_item_log(&self, floor: i64) -> DbResult<()> {
        self.tx.run("DELETE FROM item_log WHERE seq < ?1", params![floor])
    }

    /// Ensures that the numbers up to `number` are not assigned again.
    pub(crate) fn reserve_numbers(&self, table: &MigratedTable, number: i64) -> DbResult<()> {
        let Some(column) = table.numbered else { return Ok(()) };
        self.tx.reserve_numbers(table.name, column, number)
    }
}
