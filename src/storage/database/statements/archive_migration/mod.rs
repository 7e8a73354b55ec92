//! Rows on their way from one database to another, of whichever engines.
//!
//! Most tables are small beside the items and go as a whole. Items and the item log carry numbers that
//! only rise and rows that never change, so they go in portions, each behind the last number that is
//! there. The search index is no part of it: each process over there builds its own.

mod tables;

use std::ops::{ControlFlow, RangeInclusive};

use super::{ReadTx, WriteTx, damaged, int};
use crate::runtime::limits::{
    MIGRATION_BATCH_BYTES, MIGRATION_BATCH_ROWS, MIGRATION_STATEMENT_VALUES_MAX,
};
use crate::storage::database::engine::{MOVED, ResultRow, SqlParam, ToParam, params};
use crate::storage::database::error::DbError;
use crate::storage::database::statements::check::NamedOriginal;
use model::ContentHash;
use model::item::Asset;

use tables::ColumnType::{self, Blob, Bool, Int, Text};
pub(in crate::storage::database) use tables::{ITEM_LOG, ITEMS, MigratedTable, TABLES};

/// The row of `state` in a database that is being filled from another: it is not whole.
const FILLING: &str = "moving in";

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MigratedValue {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Blob(Vec<u8>),
}

impl MigratedValue {
    fn read(row: &dyn ResultRow, at: usize, kind: ColumnType) -> Result<Self, DbError> {
        Ok(match kind {
            Int => row.get::<Option<i64>>(at)?.map_or(Self::Null, Self::Int),
            Bool => row.get::<Option<bool>>(at)?.map_or(Self::Null, Self::Bool),
            // Not every engine takes a text with a zero in it.
            Text => row
                .get::<Option<String>>(at)?
                .map_or(Self::Null, |text| Self::Text(text.replace('\0', "\u{fffd}"))),
            Blob => row.get::<Option<Vec<u8>>>(at)?.map_or(Self::Null, Self::Blob),
        })
    }

    fn size_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) | Self::Bool(_) => size_of::<Self>(),
            Self::Text(text) => size_of::<Self>() + text.len(),
            Self::Blob(bytes) => size_of::<Self>() + bytes.len(),
        }
    }
}

impl ToParam for MigratedValue {
    fn to_param(&self) -> SqlParam<'_> {
        match self {
            Self::Null => SqlParam::Null,
            Self::Int(number) => SqlParam::Int(*number),
            Self::Bool(is) => SqlParam::Bool(*is),
            Self::Text(text) => SqlParam::Text(text),
            Self::Blob(bytes) => SqlParam::Blob(bytes),
        }
    }
}

/// Some rows of a table, in their order.
#[derive(Debug)]
pub(in crate::storage::database) struct RowBatch {
    table: &'static MigratedTable,
    rows: Vec<Vec<MigratedValue>>,
}

impl RowBatch {
    /// How many rows there are.
    pub(in crate::storage::database) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::storage::database) fn table_name(&self) -> &'static str {
        self.table.name
    }

    /// The number of the last row of a table that is ordered by its first column.
    pub(in crate::storage::database) fn last(&self) -> Option<i64> {
        match self.rows.last()?.first()? {
            MigratedValue::Int(number) => Some(*number),
            MigratedValue::Null
            | MigratedValue::Bool(_)
            | MigratedValue::Text(_)
            | MigratedValue::Blob(_) => None,
        }
    }
}

impl MigratedTable {
    pub(in crate::storage::database) fn name(&self) -> &'static str {
        self.name
    }

    /// Its columns, each behind its own name and a dot.
    #[cfg(test)]
    pub(in crate::storage::database) fn columns(&self) -> Vec<String> {
        self.columns.iter().map(|(column, _)| format!("{}.{column}", self.name)).collect()
    }

    fn list(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }

    fn read(&self, row: &dyn ResultRow) -> Result<Vec<MigratedValue>, DbError> {
        let columns = self.columns.iter().enumerate();
        columns.map(|(at, (_, kind))| MigratedValue::read(row, at, *kind)).collect()
    }

    /// What of its rows stays where it is.
    fn rest(&self) -> &'static str {
        // A note on the move itself.
        if self.name == "state" { "name NOT IN ('moving in', 'moved to')" } else { "TRUE" }
    }
}

impl ReadTx<'_> {
    /// Gives `each` all rows of a table in portions.
    pub(in crate::storage::database) fn for_each_batch(
        &self,
        table: &'static MigratedTable,
        mut each: impl FnMut(RowBatch) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {} ORDER BY {}",
            table.list(),
            table.name,
            table.rest(),
            table.order
        );
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.tx.each(&sql, params![], |row| {
            let row = table.read(row)?;
            bytes += row.iter().map(MigratedValue::size_bytes).sum::<usize>();
            rows.push(row);
            if rows.len() >= MIGRATION_BATCH_ROWS || bytes >= MIGRATION_BATCH_BYTES {
                bytes = 0;
                each(RowBatch { table, rows: std::mem::take(&mut rows) })?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if rows.is_empty() { Ok(()) } else { each(RowBatch { table, rows }) }
    }

    /// The next rows of a table with numbers behind `after`; none when there are no more.
    pub(in crate::storage::database) fn next_batch(
        &self,
        table: &'static MigratedTable,
        after: i64,
    ) -> Result<RowBatch, DbError> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {number} > ?1 ORDER BY {number} LIMIT ?2",
            table.list(),
            table.name,
            number = table.order
        );
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.tx.each(&sql, params![after, int(MIGRATION_BATCH_ROWS)], |row| {
            let row = table.read(row)?;
            bytes += row.iter().map(MigratedValue::size_bytes).sum::<usize>();
            rows.push(row);
            let full = bytes >= MIGRATION_BATCH_BYTES;
            Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(RowBatch { table, rows })
    }

    /// The highest number in a table that goes in portions; 0 where there is none.
    pub(in crate::storage::database) fn reached(
        &self,
        table: &MigratedTable,
    ) -> Result<i64, DbError> {
        let sql = format!("SELECT coalesce(max({}), 0) FROM {}", table.order, table.name);
        self.tx.load_value(&sql, params![])
    }

    /// The numbers of all items, rising.
    pub(in crate::storage::database) fn numbers_of_items(&self) -> Result<Vec<i64>, DbError> {
        // In no order: an index of the numbers is read then, which is a small part of the items.
        let mut found: Vec<i64> = self.tx.list_values("SELECT item_id FROM items", params![])?;
        found.sort_unstable();
        Ok(found)
    }

    /// The numbers of all items, rising, each with what tells its version from any other one: two
    /// archives may have given the same numbers.
    pub(in crate::storage::database) fn marks_of_items(
        &self,
    ) -> Result<Vec<(i64, ContentHash)>, DbError> {
        let sql = "SELECT item_id, media_type, id, stored_ms FROM items ORDER BY item_id";
        let mut found = Vec::new();
        self.tx.each(sql, params![], |row| {
            let stored_ms: i64 = row.get(3)?;
            let mark = format!("{}/{} {stored_ms}", row.text(1)?, row.text(2)?);
            found.push((row.get(0)?, ContentHash::of(mark.as_bytes())));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// What tells the rows with these numbers of a table from any others.
    pub(in crate::storage::database) fn mark_of_rows(
        &self,
        table: &'static MigratedTable,
        numbers: &RangeInclusive<i64>,
    ) -> Result<ContentHash, DbError> {
        let sql = format!(
            "SELECT {} FROM {} WHERE {number} >= ?1 AND {number} <= ?2 ORDER BY {number}",
            table.list(),
            table.name,
            number = table.order
        );
        let mut mark = ContentHash::hasher();
        self.tx.each(&sql, params![*numbers.start(), *numbers.end()], |row| {
            mark.update(format!("{:?}\n", table.read(row)?).as_bytes());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(mark.finish())
    }

    /// What tells the rows of each table that is moved from any others. Of the items it is their versions,
    /// which never change.
    pub(in crate::storage::database) fn marks_of_tables(
        &self,
    ) -> Result<Vec<(&'static str, ContentHash)>, DbError> {
        let mut marks = Vec::with_capacity(TABLES.len() + 2);
        let mut mark = ContentHash::hasher();
        for (doc, version) in self.marks_of_items()? {
            mark.update(format!("{doc} {version}\n").as_bytes());
        }
        marks.push((ITEMS.name, mark.finish()));
        for table in TABLES.iter().chain([&ITEM_LOG]) {
            let mut mark = ContentHash::hasher();
            self.for_each_batch(table, |portion| {
                portion.rows.iter().for_each(|row| mark.update(format!("{row:?}\n").as_bytes()));
                Ok(())
            })?;
            marks.push((table.name, mark.finish()));
        }
        Ok(marks)
    }

    /// How many rows of a table are moved.
    pub(in crate::storage::database) fn rows_of(
        &self,
        table: &MigratedTable,
    ) -> Result<usize, DbError> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", table.name, table.rest());
        self.tx.count(&sql, params![])
    }

    /// The originals that items with numbers behind `after` name, each once.
    pub(in crate::storage::database) fn originals_after(
        &self,
        after: i64,
    ) -> Result<Vec<NamedOriginal>, DbError> {
        let mut named = Vec::new();
        let sql = "SELECT item_id, assets FROM items WHERE item_id > ?1 ORDER BY item_id";
        self.tx.each(sql, params![after], |row| {
            let doc: i64 = row.get(0)?;
            let assets = serde_json::from_str::<Vec<Asset>>(row.text(1)?)
                .map_err(|why| damaged(format!("item number {doc}"), &why))?;
            let of =
                |asset: &Asset| NamedOriginal { hash: asset.blob(), length: asset.length(), doc };
            named.extend(assets.iter().map(of));
            Ok(ControlFlow::Continue(()))
        })?;
        named.sort_unstable();
        named.dedup_by_key(|one| (one.hash, one.length));
        Ok(named)
    }

    /// The number of the newest version of any item.
    pub fn last_version(&self) -> Result<i64, DbError> {
        self.reached(&ITEMS)
    }

    /// The last number that the engine gave in a table, whose row may be gone.
    pub(in crate::storage::database) fn last_assigned_number(
        &self,
        table: &MigratedTable,
    ) -> Result<Option<i64>, DbError> {
        table.numbered.map(|column| self.tx.last_assigned_number(table.name, column)).transpose()
    }

    /// Where the archive of this database lives now, if it has moved.
    pub(in crate::storage::database) fn moved_to(&self) -> Result<Option<String>, DbError> {
        self.tx.moved_to()
    }

    /// Whether the database is being filled from another one, which was not ended.
    pub(in crate::storage::database) fn is_being_filled(&self) -> Result<bool, DbError> {
        self.tx.exists("SELECT 1 FROM state WHERE name = ?1", params![FILLING])
    }

    /// Whether nothing was ever kept here, no items and no users, and no service runs.
    pub(in crate::storage::database) fn is_empty(&self) -> Result<bool, DbError> {
        let sql = "SELECT 1 WHERE EXISTS (SELECT 1 FROM items) OR EXISTS (SELECT 1 FROM users)
             OR EXISTS (SELECT 1 FROM organizations) OR EXISTS (SELECT 1 FROM nodes)";
        Ok(!self.tx.exists(sql, params![])?)
    }
}

impl WriteTx<'_> {
    fn note(&self, name: &str, value: Option<&str>) -> Result<(), DbError> {
        self.tx.execute("DELETE FROM state WHERE name = ?1", params![name])?;
        if let Some(value) = value {
            let sql = "INSERT INTO state (name, value) VALUES (?1, ?2)";
            self.tx.execute(sql, params![name, value])?;
        }
        Ok(())
    }

    /// Says that this database is being filled from another one, or that it is whole.
    pub(in crate::storage::database) fn note_filling(&self, is: bool) -> Result<(), DbError> {
        self.note(FILLING, is.then_some("from another database"))
    }

    /// Says where the archive lives from now on, or that it lives here.
    pub(in crate::storage::database) fn note_moved(
        &self,
        to: Option<&str>,
    ) -> Result<(), DbError> {
        self.note(MOVED, to)
    }

    /// Removes some rows of a table that is moved as a whole; gives how many, 0 where no more are found so.
    pub(in crate::storage::database) fn clear_some(
        &self,
        table: &MigratedTable,
    ) -> Result<usize, DbError> {
        let sql = format!(
            "DELETE FROM {name} WHERE ({order}) IN
             (SELECT {order} FROM {name} WHERE {} ORDER BY {order} LIMIT {MIGRATION_BATCH_ROWS})",
            table.rest(),
            name = table.name,
            order = table.order
        );
        self.tx.execute(&sql, params![])
    }

    /// Empties a table that is moved as a whole.
    pub(in crate::storage::database) fn clear_table(
        &self,
        table: &MigratedTable,
    ) -> Result<(), DbError> {
        let sql = format!("DELETE FROM {} WHERE {}", table.name, table.rest());
        self.tx.execute(&sql, params![]).map(drop)
    }

    /// Writes rows, and compares what the engine took with what it was given.
    pub(in crate::storage::database) fn insert_batch(
        &self,
        portion: &RowBatch,
    ) -> Result<(), DbError> {
        let RowBatch { table, rows } = portion;
        let most = (MIGRATION_STATEMENT_VALUES_MAX / table.columns.len()).max(1);
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            // Powers of two: portions of any length take few statements, which stay prepared.
            let (some, more) = rest.split_at(1 << rest.len().min(most).ilog2());
            self.insert_rows(table, some)?;
            rest = more;
        }
        Ok(())
    }

    /// Writes rows with one statement.
    fn insert_rows(
        &self,
        table: &MigratedTable,
        rows: &[Vec<MigratedValue>],
    ) -> Result<(), DbError> {
        let list = table.list();
        let width = table.columns.len();
        let row = |at: usize| {
            let places = (1..=width).map(|place| format!("?{}", at * width + place));
            format!("({})", places.collect::<Vec<_>>().join(", "))
        };
        let sql = format!(
            "INSERT INTO {} ({list}) VALUES {} RETURNING {list}",
            table.name,
            (0..rows.len()).map(row).collect::<Vec<_>>().join(", ")
        );
        let values: Vec<&dyn ToParam> =
            rows.iter().flatten().map(|value| -> &dyn ToParam { value }).collect();
        let mut taken = self.tx.list(&sql, &values, |row| table.read(row))?;
        let mut given: Vec<&Vec<MigratedValue>> = rows.iter().collect();
        // They come back in an order that no engine promises.
        taken.sort_unstable();
        given.sort_unstable();
        let differs = |(at, row): &(usize, &&Vec<MigratedValue>)| taken.get(*at) != Some(**row);
        match given.iter().enumerate().find(differs) {
            None if taken.len() == given.len() => Ok(()),
            other => {
                let first = other.and_then(|(_, row)| row.first());
                let what = format!("{} {first:?}", table.name);
                Err(damaged(what, &"it came over with other values"))
            }
        }
    }

    /// Writes items, in the place of earlier versions.
    pub(in crate::storage::database) fn insert_items(
        &self,
        portion: &RowBatch,
    ) -> Result<(), DbError> {
        for row in &portion.rows {
            let [_, media_type, id, ..] = row.as_slice() else { continue };
            let sql = "SELECT item_id FROM items WHERE media_type = ?1 AND id = ?2";
            let earlier: Option<i64> = self.tx.find_value(sql, params![media_type, id])?;
            if let Some(doc) = earlier {
                self.delete_version(doc)?;
            }
        }
        self.insert_batch(portion)
    }

    /// Removes a version of an item that is not there any more where it came from.
    pub(in crate::storage::database) fn delete_version(&self, doc: i64) -> Result<(), DbError> {
        self.tx.execute("DELETE FROM items WHERE item_id = ?1", params![doc]).map(drop)
    }

    /// Removes the rows of the item log that are not behind `floor`.
    pub(in crate::storage::database) fn trim_item_log(&self, floor: i64) -> Result<(), DbError> {
        self.tx.execute("DELETE FROM item_log WHERE seq < ?1", params![floor]).map(drop)
    }

    /// Sees to it that the numbers up to `number` are not given again.
    pub(in crate::storage::database) fn reserve_numbers(
        &self,
        table: &MigratedTable,
        number: i64,
    ) -> Result<(), DbError> {
        let Some(column) = table.numbered else { return Ok(()) };
        self.tx.reserve_numbers(table.name, column, number)
    }
}
