//! SQLite as [`Engine`] uses it: statements, rows and values of the driver.

use std::ops::ControlFlow;

use rusqlite::{
    CachedStatement, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

pub(in crate::storage::database) use rusqlite::types::FromSql as FromColumn;

use crate::storage::database::engine::{Engine, Param, Params, params};
use crate::storage::database::error::DbError;

/// A row that was found.
#[derive(Clone, Copy)]
pub(in crate::storage::database) struct Row<'r>(&'r rusqlite::Row<'r>);

impl Row<'_> {
    pub(in crate::storage::database) fn get<T: FromColumn>(
        &self,
        at: usize,
    ) -> Result<T, DbError> {
        Ok(self.0.get(at)?)
    }

    pub(in crate::storage::database) fn text(&self, at: usize) -> Result<&str, DbError> {
        Ok(self.0.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?)
    }

    pub(in crate::storage::database) fn lossy(&self, at: usize) -> Result<String, DbError> {
        Ok(match self.0.get_ref(at)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Null | ValueRef::Real(_) => "?".to_owned(),
        })
    }
}

impl ToSql for Param<'_> {
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

/// A connection within a transaction.
#[derive(Clone, Copy)]
pub(in crate::storage::database) struct Client<'a>(pub(super) &'a rusqlite::Connection);

impl<'a> Client<'a> {
    pub(super) fn engine(self) -> Engine<'a> {
        Engine::Sqlite(self)
    }

    fn prepared(self, sql: &str) -> Result<CachedStatement<'a>, DbError> {
        Ok(self.0.prepare_cached(sql)?)
    }

    pub(in crate::storage::database) fn execute(
        self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<usize, DbError> {
        Ok(self.prepared(sql)?.execute(bound(params))?)
    }

    pub(in crate::storage::database) fn first<T>(
        self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        let mut statement = self.prepared(sql)?;
        let mut rows = statement.query(bound(params))?;
        rows.next()?.map(|row| read(Row(row))).transpose()
    }

    pub(in crate::storage::database) fn each(
        self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, DbError>,
    ) -> Result<(), DbError> {
        let mut statement = self.prepared(sql)?;
        let mut rows = statement.query(bound(params))?;
        while let Some(row) = rows.next()? {
            if each(Row(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(in crate::storage::database) fn defer_references(self) -> Result<(), DbError> {
        Ok(self.0.pragma_update(None, "defer_foreign_keys", "ON")?)
    }

    /// Without AUTOINCREMENT a table has no other number than its highest.
    pub(in crate::storage::database) fn number_given(
        self,
        table: &str,
        column: &str,
    ) -> Result<i64, DbError> {
        let given = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        if let Some(number) = self.first(given, params![table], |row| row.get(0))? {
            return Ok(number);
        }
        let highest = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        Ok(self.first(&highest, params![], |row| row.get(0))?.unwrap_or_default())
    }

    pub(in crate::storage::database) fn pass_numbers(
        self,
        table: &str,
        _column: &str,
        number: i64,
    ) -> Result<(), DbError> {
        let known = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if self.execute(known, params![table, number])? == 0 {
            let new = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
            self.execute(new, params![table, number])?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(in crate::storage::database) fn run_script(self, sql: &str) -> Result<(), DbError> {
        Ok(self.0.execute_batch(sql)?)
    }
}
