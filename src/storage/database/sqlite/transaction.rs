//! Runs transactions of SQLite: statements, rows and values of the driver.

use rusqlite::{
    ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::check;
use crate::storage::database::engine::{
    ColumnType, EngineTransaction, Params, ReadRow, ResultRow, SqlParam, TableColumn, VisitRow,
    params,
};
use crate::storage::database::error::{DbError, damaged};
use crate::storage::database::facts::{DatabaseFacts, DatabaseFlaw};

impl ResultRow for rusqlite::Row<'_> {
    fn is_null(&self, at: usize) -> Result<bool, DbError> {
        Ok(self.get_ref(at)? == ValueRef::Null)
    }

    fn int(&self, at: usize) -> Result<i64, DbError> {
        Ok(self.get(at)?)
    }

    fn small_int(&self, at: usize) -> Result<u32, DbError> {
        Ok(self.get(at)?)
    }

    fn bool(&self, at: usize) -> Result<bool, DbError> {
        Ok(self.get(at)?)
    }

    fn string(&self, at: usize) -> Result<String, DbError> {
        Ok(self.get(at)?)
    }

    fn bytes(&self, at: usize) -> Result<Vec<u8>, DbError> {
        Ok(self.get(at)?)
    }

    fn text(&self, at: usize) -> Result<&str, DbError> {
        Ok(self.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?)
    }

    fn lossy(&self, at: usize) -> Result<String, DbError> {
        Ok(match self.get_ref(at)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Null | ValueRef::Real(_) => "?".to_owned(),
        })
    }
}

impl ToSql for SqlParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Bool(is) => ValueRef::Integer(i64::from(*is)),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn bound<'p>(params: Params<'p>) -> impl rusqlite::Params {
    params_from_iter(params.iter().map(|value| value.to_param()))
}

/// Statements run in the transaction that is open on the connection, or each as its own.
impl EngineTransaction for rusqlite::Connection {
    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, DbError> {
        Ok(self.prepare_cached(sql)?.execute(bound(params))?)
    }

    fn read_first(&self, sql: &str, params: Params<'_>, read: ReadRow<'_>) -> Result<(), DbError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(bound(params))?;
        rows.next()?.map_or(Ok(()), |row| read(row))
    }

    fn read_each(&self, sql: &str, params: Params<'_>, each: VisitRow<'_>) -> Result<(), DbError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(bound(params))?;
        while let Some(row) = rows.next()? {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn columns(&self, table: &str) -> Result<Vec<TableColumn>, DbError> {
        let tx: &dyn EngineTransaction = self;
        let sql = "SELECT name, type FROM pragma_table_info(?1) ORDER BY cid";
        tx.list(sql, params![table], |row| {
            let name: String = row.get(0)?;
            let kind = match row.text(1)? {
                "INTEGER" => ColumnType::Int,
                "TEXT" => ColumnType::Text,
                "BLOB" => ColumnType::Blob,
                other => return Err(damaged(format!("column {table}.{name}"), &other)),
            };
            Ok(TableColumn { name, kind })
        })
    }

    /// A table without AUTOINCREMENT has no other number than its highest.
    fn last_assigned_number(&self, table: &str, column: &str) -> Result<i64, DbError> {
        let tx: &dyn EngineTransaction = self;
        let assigned = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        if let Some(number) = tx.find_value(assigned, params![table])? {
            return Ok(number);
        }
        let highest = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        Ok(tx.find_value(&highest, params![])?.unwrap_or_default())
    }

    fn reserve_numbers(&self, table: &str, _column: &str, number: i64) -> Result<(), DbError> {
        let tx: &dyn EngineTransaction = self;
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if tx.execute(raise, params![table, number])? == 0 {
            // A table appears there with its first row.
            let new = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
            tx.execute(new, params![table, number])?;
        }
        Ok(())
    }

    fn facts(&self) -> Result<DatabaseFacts, DbError> {
        let tx: &dyn EngineTransaction = self;
        let version: String = tx.load_value("SELECT sqlite_version()", params![])?;
        Ok(DatabaseFacts { engine: format!("SQLite {version}"), ..DatabaseFacts::default() })
    }

    fn page_flaws(&self) -> Result<Vec<DatabaseFlaw>, DbError> {
        check::page_flaws(self, "integrity_check")
    }

    fn foreign_key_violations(&self) -> Result<Vec<DatabaseFlaw>, DbError> {
        check::foreign_key_violations(self)
    }

    #[cfg(test)]
    fn run_script(&self, sql: &str) -> Result<(), DbError> {
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
