//! PostgreSQL as [`Engine`] uses it: statements, rows and values of the driver.

use std::{cell::Cell, ops::ControlFlow, pin::pin};

use futures_util::TryStreamExt;
use tokio_postgres::{
    Statement, Transaction,
    types::{FromSql, IsNull, ToSql, Type, private::BytesMut},
};

use super::server::Postgres;
use super::session::Desk;
use crate::runtime::limits::DB_PORTION_ROWS;
use crate::storage::database::engine::{Engine, Param, Params, params};
use crate::storage::database::error::DbError;

/// The bytes of a value as the server sends them, and what they are.
#[derive(Clone, Copy)]
enum Raw<'r> {
    Null,
    /// Big-endian, of 2, 4 or 8 bytes.
    Int(&'r [u8]),
    Bool(bool),
    Text(&'r [u8]),
    Bytes(&'r [u8]),
    Other,
}

type Cause = Box<dyn std::error::Error + Sync + Send>;

impl<'r> FromSql<'r> for Raw<'r> {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Cause> {
        Ok(match *kind {
            Type::INT2 | Type::INT4 | Type::INT8 => Self::Int(raw),
            Type::BOOL => Self::Bool(raw != [0]),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                Self::Text(raw)
            }
            Type::BYTEA => Self::Bytes(raw),
            _ => Self::Other,
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Cause> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl Raw<'_> {
    fn wrong(self, expected: &str) -> DbError {
        let found = match self {
            Self::Null => "nothing",
            Self::Int(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::Other => "something else",
        };
        Postgres::Value(format!("a column holds {found}, expected {expected}")).into()
    }

    fn int(self) -> Result<i64, DbError> {
        let Self::Int(bytes) = self else { return Err(self.wrong("a number")) };
        match *bytes {
            [a, b] => Ok(i64::from(i16::from_be_bytes([a, b]))),
            [a, b, c, d] => Ok(i64::from(i32::from_be_bytes([a, b, c, d]))),
            _ => bytes.try_into().map(i64::from_be_bytes).map_err(|_| self.wrong("a number")),
        }
    }
}

/// What can be read from a column.
pub(in crate::storage::database) trait FromColumn: Sized {
    fn from_column(value: Value<'_>) -> Result<Self, DbError>;
}

/// The value of a column.
#[derive(Clone, Copy)]
pub(in crate::storage::database) struct Value<'r>(Raw<'r>);

impl FromColumn for i64 {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        value.0.int()
    }
}

impl FromColumn for u32 {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        Self::try_from(value.0.int()?).map_err(|_| value.0.wrong("a number below 2^32"))
    }
}

impl FromColumn for bool {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        let Raw::Bool(is) = value.0 else { return Err(value.0.wrong("true or false")) };
        Ok(is)
    }
}

impl FromColumn for String {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        text(value.0).map(str::to_owned)
    }
}

impl FromColumn for Vec<u8> {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        let Raw::Bytes(bytes) = value.0 else { return Err(value.0.wrong("bytes")) };
        Ok(bytes.to_vec())
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(value: Value<'_>) -> Result<Self, DbError> {
        if matches!(value.0, Raw::Null) { Ok(None) } else { T::from_column(value).map(Some) }
    }
}

fn text(raw: Raw<'_>) -> Result<&str, DbError> {
    let Raw::Text(bytes) = raw else { return Err(raw.wrong("a text")) };
    std::str::from_utf8(bytes).map_err(|_| raw.wrong("a text in UTF-8"))
}

/// A row that was found.
#[derive(Clone, Copy)]
pub(in crate::storage::database) struct Row<'r>(&'r tokio_postgres::Row);

impl Row<'_> {
    fn raw(&self, at: usize) -> Result<Raw<'_>, DbError> {
        Ok(self.0.try_get(at)?)
    }

    pub(in crate::storage::database) fn get<T: FromColumn>(
        &self,
        at: usize,
    ) -> Result<T, DbError> {
        T::from_column(Value(self.raw(at)?))
    }

    pub(in crate::storage::database) fn text(&self, at: usize) -> Result<&str, DbError> {
        text(self.raw(at)?)
    }

    pub(in crate::storage::database) fn lossy(&self, at: usize) -> Result<String, DbError> {
        Ok(match self.raw(at)? {
            Raw::Text(bytes) | Raw::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Raw::Bool(is) => is.to_string(),
            raw @ Raw::Int(_) => raw.int()?.to_string(),
            Raw::Null | Raw::Other => "?".to_owned(),
        })
    }
}

/// A value that is not of the type that a statement expects.
#[derive(Debug, thiserror::Error)]
#[error("a parameter is not what the statement expects, which is {0}")]
pub(super) struct Mismatch(String);

impl ToSql for Param<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Cause> {
        match (*self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT8) => number.to_sql(kind, out),
            (Self::Int(number), &Type::INT4) => i32::try_from(number)?.to_sql(kind, out),
            (Self::Int(number), &Type::INT2) => i16::try_from(number)?.to_sql(kind, out),
            (Self::Bool(is), &Type::BOOL) => is.to_sql(kind, out),
            // The one character that PostgreSQL's texts do not have.
            (Self::Text(text), &Type::TEXT) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql(kind, out)
            }
            (Self::Text(text), &Type::TEXT) => text.to_sql(kind, out),
            (Self::Blob(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (Self::Int(_) | Self::Bool(_) | Self::Text(_) | Self::Blob(_), _) => {
                Err(Mismatch(kind.to_string()).into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// The parameters as the driver takes them.
fn bound<'p>(params: Params<'p>) -> Vec<Param<'p>> {
    params.iter().map(|value| value.to_param()).collect()
}

/// A transaction on a connection.
#[derive(Clone, Copy)]
pub(in crate::storage::database) struct Client<'a> {
    desk: &'a Desk,
    transaction: &'a Transaction<'a>,
    /// Whether a statement wrote something.
    wrote: &'a Cell<bool>,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        desk: &'a Desk,
        transaction: &'a Transaction<'a>,
        wrote: &'a Cell<bool>,
    ) -> Self {
        Self { desk, transaction, wrote }
    }

    pub(super) fn engine(self) -> Engine<'a> {
        Engine::Postgres(self)
    }

    fn prepared(self, sql: &str) -> Result<Statement, DbError> {
        self.desk.prepared(self.transaction, sql)
    }

    /// Notes that `sql` had an effect, if it is one that has.
    fn note(self, sql: &str, rows: bool) {
        if rows && !sql.trim_start().starts_with("SELECT") {
            self.wrote.set(true);
        }
    }

    pub(in crate::storage::database) fn execute(
        self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<usize, DbError> {
        let statement = self.prepared(sql)?;
        let rows = self.desk.wait(self.transaction.execute_raw(&statement, bound(params)))?;
        self.note(sql, rows > 0);
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    pub(in crate::storage::database) fn first<T>(
        self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        let statement = self.prepared(sql)?;
        let first = self.desk.wait(async {
            let rows = self.transaction.query_raw(&statement, bound(params)).await?;
            let mut rows = pin!(rows);
            let first = rows.try_next().await?;
            // What comes behind it may be an error; behind the end nothing may be asked for.
            let mut more = first.is_some();
            while more {
                more = rows.try_next().await?.is_some();
            }
            Ok(first)
        })?;
        self.note(sql, first.is_some());
        first.map(|row| read(Row(&row))).transpose()
    }

    /// Gives `each` all rows, which are fetched together.
    pub(in crate::storage::database) fn gathered(
        self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let statement = self.prepared(sql)?;
        let rows: Vec<_> = self.desk.wait(async {
            self.transaction.query_raw(&statement, bound(params)).await?.try_collect().await
        })?;
        self.note(sql, !rows.is_empty());
        rows.iter().try_for_each(|row| each(Row(row)))
    }

    /// Gives `each` one row after the other, which are fetched in portions.
    pub(in crate::storage::database) fn each(
        self,
        sql: &str,
        params: Params<'_>,
        each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, DbError>,
    ) -> Result<(), DbError> {
        self.portions(sql, params, DB_PORTION_ROWS, each)
    }

    /// The same with a portion of so many rows.
    pub(super) fn portions(
        self,
        sql: &str,
        params: Params<'_>,
        size: i32,
        mut each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, DbError>,
    ) -> Result<(), DbError> {
        let statement = self.prepared(sql)?;
        let portal = self.desk.wait(self.transaction.bind_raw(&statement, bound(params)))?;
        loop {
            let rows: Vec<_> = self.desk.wait(async {
                self.transaction.query_portal_raw(&portal, size).await?.try_collect().await
            })?;
            self.note(sql, !rows.is_empty());
            for row in &rows {
                if each(Row(row))?.is_break() {
                    return Ok(());
                }
            }
            // Fewer than were asked for are the last ones.
            if i32::try_from(rows.len()).is_ok_and(|count| count < size) {
                return Ok(());
            }
        }
    }

    pub(in crate::storage::database) fn defer_references(self) -> Result<(), DbError> {
        self.desk.wait(self.transaction.batch_execute("SET CONSTRAINTS ALL DEFERRED"))
    }

    pub(in crate::storage::database) fn number_given(
        self,
        table: &str,
        column: &str,
    ) -> Result<i64, DbError> {
        let highest = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        let highest: Option<i64> = self.first(&highest, params![], |row| row.get(0))?;
        let given = "SELECT coalesce(pg_sequence_last_value(
             CAST(pg_get_serial_sequence(?1, ?2) AS regclass)), 0)";
        let given: Option<i64> = self.first(given, params![table, column], |row| row.get(0))?;
        Ok(highest.max(given).unwrap_or_default())
    }

    pub(in crate::storage::database) fn pass_numbers(
        self,
        table: &str,
        column: &str,
        number: i64,
    ) -> Result<(), DbError> {
        // Its own number, which explicit ones do not raise.
        let sql = "SELECT setval(pg_get_serial_sequence(?1, ?2), ?3) WHERE ?3 > coalesce(
             pg_sequence_last_value(CAST(pg_get_serial_sequence(?1, ?2) AS regclass)), 0)";
        self.first(sql, params![table, column, number], |_| Ok(()))?;
        self.wrote.set(true);
        Ok(())
    }

    #[cfg(test)]
    pub(in crate::storage::database) fn run_script(self, sql: &str) -> Result<(), DbError> {
        self.wrote.set(true);
        self.desk.wait(self.transaction.batch_execute(sql))
    }
}
