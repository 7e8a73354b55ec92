//! Runs statements in SQLite through its driver, `rusqlite`, and converts parameters and rows from and to the types
//! that all engines share.

use std::collections::HashSet;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Statement, ToSql, params_from_iter};

use super::check;
use crate::storage::database::engine::{
    ColumnType, EngineTransaction, Params, ReadRow, ResultRow, SqlParam, StoredValue, TableColumn,
    VisitRow, params,
};
use crate::storage::database::error::{DbResult, damaged, wrong_value};
use crate::storage::database::facts::{DatabaseFacts, DatabaseFlaw};

impl ResultRow for rusqlite::Row<'_> {
    fn stored(&self, column: &str) -> DbResult<StoredValue<'_>> {
        // The name is added, because some errors of the driver have only the position of the column.
        let value = self.get_ref(column);
        let value = value.map_err(|cause| wrong_value(format!("column {column}: {cause}")))?;
        Ok(match value {
            ValueRef::Null => StoredValue::Null,
            ValueRef::Integer(number) => StoredValue::Int(number),
            ValueRef::Real(_) => StoredValue::Other,
            ValueRef::Text(bytes) => StoredValue::Text(bytes),
            ValueRef::Blob(bytes) => StoredValue::Bytes(bytes),
        })
    }

    fn first_column(&self) -> &str {
        let statement: &Statement<'_> = self.as_ref();
        statement.column_name(0).unwrap_or_default()
    }
}

impl ToSql for SqlParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn bound<'p>(params: Params<'p>) -> impl rusqlite::Params {
    params_from_iter(params.iter().map(|value| value.to_param()))
}

fn prepared<'c>(connection: &'c rusqlite::Connection, sql: &str) -> DbResult<CachedStatement<'c>> {
    let statement = connection.prepare_cached(sql)?;
    // If two columns have the same name, only the first can be read.
    debug_assert!(has_distinct_columns(&statement), "two columns have the same name: {sql}");
    Ok(statement)
}

fn has_distinct_columns(statement: &Statement<'_>) -> bool {
    let names: HashSet<&str> = statement.column_names().into_iter().collect();
    names.len() == statement.column_count()
}

/// Statements run in the open transaction of the connection, or each in a transaction of its own.
impl EngineTransaction for rusqlite::Connection {
    fn execute(&self, sql: &str, params: Params<'_>) -> DbResult<usize> {
        Ok(self.prepare_cached(sql)?.execute(bound(params))?)
    }

    fn read_first(&self, sql: &str, params: Params<'_>, read: ReadRow<'_>) -> DbResult<()> {
        let mut statement = prepared(self, sql)?;
        let mut rows = statement.query(bound(params))?;
        rows.next()?.map_or(Ok(()), |row| read(row))
    }

    fn read_each(&self, sql: &str, params: Params<'_>, each: VisitRow<'_>) -> DbResult<()> {
        let mut statement = prepared(self, sql)?;
        let mut rows = statement.query(bound(params))?;
        while let Some(row) = rows.next()? {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn columns(&self, table: &str) -> DbResult<Vec<TableColumn>> {
        let tx: &dyn EngineTransaction = self;
        let sql = "SELECT name, type FROM pragma_table_info(?1) ORDER BY cid";
        tx.list(sql, params![table], |row| {
            let name: String = row.get("name")?;
            let kind = match row.text("type")? {
                "INTEGER" => ColumnType::Int,
                "TEXT" => ColumnType::Text,
                "BLOB" => ColumnType::Blob,
                other => return Err(damaged(format!("column {table}.{name}"), &other)),
            };
            Ok(TableColumn { name, kind })
        })
    }

    /// Returns the highest number in the table if it has no AUTOINCREMENT, because SQLite then records no other.
    fn last_assigned_number(&self, table: &str, column: &str) -> DbResult<i64> {
        let tx: &dyn EngineTransaction = self;
        let assigned = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        if let Some(number) = tx.find_value(assigned, params![table])? {
            return Ok(number);
        }
        let highest = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        Ok(tx.find_value(&highest, params![])?.unwrap_or_default())
    }

    fn reserve_numbers(&self, table: &str, _column: &str, number: i64) -> DbResult<()> {
        let tx: &dyn EngineTransaction = self;
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if !tx.changes(raise, params![table, number])? {
            // SQLite adds a table to `sqlite_sequence` only with its first row.
            let new = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
            return tx.run(new, params![table, number]);
        }
        Ok(())
    }

    fn facts(&self) -> DbResult<DatabaseFacts> {
        let tx: &dyn EngineTransaction = self;
        let version: String = tx.load_value("SELECT sqlite_version()", params![])?;
        Ok(DatabaseFacts { engine: format!("SQLite {version}"), ..DatabaseFacts::default() })
    }

    fn page_flaws(&self) -> DbResult<Vec<DatabaseFlaw>> {
        check::page_flaws(self, "integrity_check")
    }

    fn foreign_key_violations(&self) -> DbResult<Vec<DatabaseFlaw>> {
        check::foreign_key_violations(self)
    }

    #[cfg(test)]
    fn run_script(&self, sql: &str) -> DbResult<()> {
        Ok(self.execute_batch(sql)?)
    }

    #[cfg(test)]
    fn refusing_script(&self, change: &str, table: &str) -> String {
        format!(
            "CREATE TRIGGER refuse BEFORE {change} ON {table}
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    }

    #[cfg(test)]
    fn accepting_script(&self, _table: &str) -> String {
        "DROP TRIGGER refuse".to_owned()
    }
}
