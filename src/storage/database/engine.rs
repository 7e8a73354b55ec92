//! A transaction of whichever engine, as statements see it.
//!
//! What is in `statements` runs on any engine: it names no driver, so what differs between engines is
//! a method of [`Engine`] and nothing else. An engine is an arm of [`Engine`] and of [`Row`] and a
//! supertrait of [`Column`].

use std::{fmt, ops::ControlFlow};

use super::error::DbError;
use super::statements::check::Flaw;
use super::statements::facts::DatabaseFacts;
use super::{postgres, sqlite};
use crate::runtime::telemetry;

/// An error of an engine's driver.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// SQLite reports it.
    #[error(transparent)]
    Sqlite(sqlite::Sqlite),
    /// PostgreSQL reports it, or cannot be reached.
    #[error(transparent)]
    Postgres(postgres::Postgres),
}

impl EngineError {
    /// Whether the engine cannot work now: a state that passes, not a mistake.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        match self {
            Self::Sqlite(cause) => cause.is_resource(),
            Self::Postgres(cause) => cause.is_resource(),
        }
    }

    /// What those who watch are told of one that passes: `away`, `timeout`, `busy` or `other`.
    fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(cause) => cause.kind(),
            Self::Postgres(cause) => cause.kind(),
        }
    }

    /// Whether the database cannot be reached.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.kind() == "away"
    }

    /// Whether what is stored cannot be read as it was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(cause) => cause.is_damage(),
            Self::Postgres(cause) => cause.is_one_of(&["XX001", "XX002"]),
        }
    }

    /// Whether the turn to write did not come in time, and nothing was done.
    pub(super) fn is_busy(&self) -> bool {
        match self {
            Self::Sqlite(cause) => cause.is_busy(),
            Self::Postgres(cause) => cause.is_one_of(&["55P03"]),
        }
    }
}

impl From<EngineError> for DbError {
    /// Counts it where the engine cannot work now.
    fn from(error: EngineError) -> Self {
        if error.is_resource() {
            metrics::counter!(telemetry::DATABASE_ERRORS, "kind" => error.kind()).increment(1);
        }
        Self::Engine(error)
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Param<'p> {
    Null,
    Int(i64),
    Bool(bool),
    Text(&'p str),
    Blob(&'p [u8]),
}

impl fmt::Debug for Param<'_> {
    /// A driver writes parameters into the log when all lines of its own are wanted: texts are passwords of
    /// channels, keys and profiles too, so only their lengths are told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Bool(is) => write!(f, "{is}"),
            Self::Text(text) => write!(f, "text of {} bytes", text.len()),
            Self::Blob(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

/// What a parameter is made of.
pub(super) trait ToParam {
    fn to_param(&self) -> Param<'_>;
}

/// The values of `?1` to `?n`, made by [`params!`].
pub(super) type Params<'p> = &'p [&'p dyn ToParam];

/// The values of `?1` to `?n`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$(&$value as &dyn $crate::storage::database::engine::ToParam),*] };
}
pub(super) use params;

impl ToParam for i64 {
    fn to_param(&self) -> Param<'_> {
        Param::Int(*self)
    }
}

impl ToParam for u32 {
    fn to_param(&self) -> Param<'_> {
        Param::Int(i64::from(*self))
    }
}

impl ToParam for bool {
    fn to_param(&self) -> Param<'_> {
        Param::Bool(*self)
    }
}

impl ToParam for str {
    fn to_param(&self) -> Param<'_> {
        Param::Text(self)
    }
}

impl ToParam for String {
    fn to_param(&self) -> Param<'_> {
        Param::Text(self)
    }
}

impl ToParam for Vec<u8> {
    fn to_param(&self) -> Param<'_> {
        Param::Blob(self)
    }
}

impl<T: ToParam> ToParam for Option<T> {
    fn to_param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, T::to_param)
    }
}

impl<T: ToParam + ?Sized> ToParam for &T {
    fn to_param(&self) -> Param<'_> {
        T::to_param(self)
    }
}

/// What a column is read as, by every engine.
pub(super) trait Column: sqlite::FromColumn + postgres::FromColumn {}

impl Column for i64 {}
impl Column for u32 {}
impl Column for bool {}
impl Column for String {}
impl Column for Vec<u8> {}
impl<T: Column> Column for Option<T> {}

/// A row that was found.
#[derive(Clone, Copy)]
pub(super) enum Row<'r> {
    Sqlite(sqlite::Row<'r>),
    Postgres(postgres::Row<'r>),
}

impl Row<'_> {
    /// The column at `at`, the first of which is 0.
    pub(super) fn get<T: Column>(&self, at: usize) -> Result<T, DbError> {
        match self {
            Self::Sqlite(row) => row.get(at),
            Self::Postgres(row) => row.get(at),
        }
    }

    /// The text at `at` without a copy of it.
    pub(super) fn text(&self, at: usize) -> Result<&str, DbError> {
        match self {
            Self::Sqlite(row) => row.text(at),
            Self::Postgres(row) => row.text(at),
        }
    }

    /// The text at `at`, with marks for what is none: a row that is damaged there has a name too.
    pub(super) fn lossy(&self, at: usize) -> Result<String, DbError> {
        match self {
            Self::Sqlite(row) => row.lossy(at),
            Self::Postgres(row) => row.lossy(at),
        }
    }
}

/// How rows that a query finds are held until its transaction ends, where others work beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nobody else changes or holds them. Those that somebody holds are not found: nobody waits.
    Free,
    /// Nobody removes them; others may change them and hold them so too. Those that are being removed are
    /// not found: nobody waits.
    Kept,
    /// Nobody else changes, removes or holds them. Waits for those who do.
    Alone,
}

/// A transaction on a connection.
///
/// Statements are prepared once a connection and found again by their text.
#[derive(Clone, Copy)]
pub(super) enum Engine<'a> {
    Sqlite(sqlite::Client<'a>),
    Postgres(postgres::Client<'a>),
}

impl Engine<'_> {
    /// Runs a statement that gives no rows; how many it wrote.
    pub(super) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, DbError> {
        match self {
            Self::Sqlite(client) => client.execute(sql, params),
            Self::Postgres(client) => client.execute(sql, params),
        }
    }

    /// Reads the first row that is found.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        match self {
            Self::Sqlite(client) => client.first(sql, params, |row| read(&Row::Sqlite(row))),
            Self::Postgres(client) => client.first(sql, params, |row| read(&Row::Postgres(row))),
        }
    }

    /// The same where there is always a row.
    pub(super) fn load<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.find(sql, params, read)?.ok_or_else(|| DbError::Damaged {
            what: sql.split_whitespace().collect::<Vec<_>>().join(" "),
            why: "it finds no row".to_owned(),
        })
    }

    /// The first column of the first row.
    pub(super) fn find_value<T: Column>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<T>, DbError> {
        self.find(sql, params, |row| row.get(0))
    }

    /// The same where there is always a row.
    pub(super) fn load_value<T: Column>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<T, DbError> {
        self.load(sql, params, |row| row.get(0))
    }

    /// How many rows `sql` counts.
    pub(super) fn count(&self, sql: &str, params: Params<'_>) -> Result<usize, DbError> {
        let count: i64 = self.load_value(sql, params)?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Whether there is a row.
    pub(super) fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool, DbError> {
        Ok(self.find(sql, params, |_| Ok(()))?.is_some())
    }

    /// Gives `each` one row after the other, until it breaks. Rows are not gathered, so there may be
    /// any number of them, and `each` may run statements.
    pub(super) fn each(
        &self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, DbError>,
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(client) => client.each(sql, params, |row| each(&Row::Sqlite(row))),
            Self::Postgres(client) => client.each(sql, params, |row| each(&Row::Postgres(row))),
        }
    }

    /// Reads all rows.
    pub(super) fn list<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut found = Vec::new();
        match self {
            Self::Sqlite(_) => self.each(sql, params, |row| {
                found.push(read(row)?);
                Ok(ControlFlow::Continue(()))
            })?,
            // One question and one answer.
            Self::Postgres(client) => client.gathered(sql, params, |row| {
                found.push(read(&Row::Postgres(row))?);
                Ok(())
            })?,
        }
        Ok(found)
    }

    /// The first column of all rows.
    pub(super) fn list_values<T: Column>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<T>, DbError> {
        self.list(sql, params, |row| row.get(0))
    }
}

/// What each engine does its own way.
impl Engine<'_> {
    /// What stands at the end of a query whose rows are held so. Nothing where a transaction that writes is
    /// alone anyway.
    pub(super) fn holding(&self, hold: Hold) -> &'static str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(_) => match hold {
                Hold::Free => "FOR UPDATE SKIP LOCKED",
                Hold::Kept => "FOR KEY SHARE SKIP LOCKED",
                Hold::Alone => "FOR UPDATE",
            },
        }
    }

    /// Leaves rows that refer to what is not there alone until the transaction ends.
    pub(super) fn defer_references(&self) -> Result<(), DbError> {
        match self {
            Self::Sqlite(client) => client.defer_references(),
            Self::Postgres(client) => client.defer_references(),
        }
    }

    /// The last number that was given in the column of a table, whose row may be gone.
    pub(super) fn number_given(&self, table: &str, column: &str) -> Result<i64, DbError> {
        match self {
            Self::Sqlite(client) => client.number_given(table, column),
            Self::Postgres(client) => client.number_given(table, column),
        }
    }

    /// Sees to it that the numbers up to `number` are not given again.
    pub(super) fn pass_numbers(
        &self,
        table: &str,
        column: &str,
        number: i64,
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(client) => client.pass_numbers(table, column, number),
            Self::Postgres(client) => client.pass_numbers(table, column, number),
        }
    }

    /// What is wrong with the engine's own files.
    pub(super) fn facts(&self) -> Result<DatabaseFacts, DbError> {
        match self {
            Self::Sqlite(client) => client.facts(),
            Self::Postgres(client) => client.facts(),
        }
    }

    pub(super) fn page_flaws(&self) -> Result<Vec<Flaw>, DbError> {
        match self {
            Self::Sqlite(client) => client.page_flaws("integrity_check"),
            // Its files are looked after by the server and whoever keeps it.
            Self::Postgres(_) => Ok(Vec::new()),
        }
    }

    /// Rows that refer to what is not there although the schema forbids it.
    pub(super) fn lost_references(&self) -> Result<Vec<Flaw>, DbError> {
        match self {
            Self::Sqlite(client) => client.lost_references(),
            // It keeps them whoever writes.
            Self::Postgres(_) => Ok(Vec::new()),
        }
    }

    /// Runs statements that set a test's scene.
    #[cfg(test)]
    pub(super) fn run_script(&self, sql: &str) -> Result<(), DbError> {
        match self {
            Self::Sqlite(client) => client.run_script(sql),
            Self::Postgres(client) => client.run_script(sql),
        }
    }
}
