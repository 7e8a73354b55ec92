//! What is needed of a database engine, as traits that `sqlite` and `postgres` implement.
//!
//! An [`DatabaseEngine`] opens an [`EngineConnection`] for each thread, which runs each piece of work as an
//! [`EngineTransaction`]. Statements are written against that one and name no driver: what differs between
//! engines is a method of it and nothing else.

use std::{fmt, ops::ControlFlow, sync::Arc};

use super::error::DbError;
use super::facts::{DatabaseFacts, DatabaseFlaw};
use crate::runtime::limits::CHECK_FLAWS_MAX;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It claims what waits in queues, beside one that writes.
    Claim,
    /// It notices what others write.
    Follow,
}

/// A database: where it is, and how connections to it are opened.
pub(super) trait DatabaseEngine: Send + Sync {
    /// Opens a connection. One to a server is made when it is first used, and again when it broke.
    fn open(
        self: Arc<Self>,
        purpose: ConnectionPurpose,
    ) -> Result<Box<dyn EngineConnection>, DbError>;

    /// Whether the database is another program's, perhaps on another machine. Claims run beside writes there, on
    /// a connection of their own.
    fn is_remote(&self) -> bool {
        false
    }

    /// The hosts to which it is reached over a network without TLS.
    fn hosts_without_tls(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A read that is given its transaction, or the reason why there is none.
pub(super) type Read = Box<dyn FnOnce(Result<&dyn EngineTransaction, DbError>) + Send>;
/// Work that is done in a transaction.
pub(super) type Work<'w> =
    Box<dyn FnOnce(&dyn EngineTransaction) -> Result<(), DbError> + Send + 'w>;

/// How a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// Fails with [`DbError::Moved`] where the archive lives elsewhere.
    Normal,
    /// Also where the archive lives elsewhere.
    EvenMoved,
    /// With what is changed overwritten in the file, where the engine can do that. A server has its own ways,
    /// such as `VACUUM`.
    Overwriting,
}

/// A connection, which one thread owns.
pub(super) trait EngineConnection: Send {
    /// Runs `read` against one state of the database.
    fn read(&mut self, read: Read);

    /// Runs statements that only read, each against the newest state or all against one.
    fn query(&mut self, look: Work<'_>) -> Result<(), DbError>;

    /// Runs `write` as one transaction, when those of others that write have ended.
    fn write(&mut self, mode: WriteMode, write: Work<'_>) -> Result<(), DbError>;

    /// Runs `claim` as one transaction: as a write, or beside one where the engine can do that.
    fn claim(&mut self, claim: Work<'_>) -> Result<(), DbError>;

    /// Folds the write-ahead log into the database and empties it, where there is one.
    ///
    /// Fails when somebody reads from it.
    fn checkpoint(&self) -> Result<(), DbError> {
        Ok(())
    }

    /// A number that changes when another connection committed, and seldom without that; a few
    /// microseconds.
    fn data_version(&mut self) -> Result<i64, DbError>;
}

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlParam<'p> {
    Null,
    Int(i64),
    Bool(bool),
    Text(&'p str),
    Blob(&'p [u8]),
}

impl fmt::Debug for SqlParam<'_> {
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
    fn to_param(&self) -> SqlParam<'_>;
}

/// The values of `?1` to `?n`, made by [`params!`].
pub(super) type Params<'p> = &'p [&'p dyn ToParam];

/// The values of `?1` to `?n`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$(&$value as &dyn $crate::storage::database::engine::ToParam),*] };
}
pub(super) use params;

impl ToParam for i64 {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Int(*self)
    }
}

impl ToParam for u32 {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Int(i64::from(*self))
    }
}

impl ToParam for bool {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Bool(*self)
    }
}

impl ToParam for str {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Text(self)
    }
}

impl ToParam for String {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Text(self)
    }
}

impl ToParam for Vec<u8> {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Blob(self)
    }
}

impl<T: ToParam> ToParam for Option<T> {
    fn to_param(&self) -> SqlParam<'_> {
        self.as_ref().map_or(SqlParam::Null, T::to_param)
    }
}

impl<T: ToParam + ?Sized> ToParam for &T {
    fn to_param(&self) -> SqlParam<'_> {
        T::to_param(self)
    }
}

/// A row that was found. The first column is 0.
pub(super) trait ResultRow {
    fn is_null(&self, at: usize) -> Result<bool, DbError>;
    fn int(&self, at: usize) -> Result<i64, DbError>;
    /// A number below 2^32.
    fn small_int(&self, at: usize) -> Result<u32, DbError>;
    fn bool(&self, at: usize) -> Result<bool, DbError>;
    fn string(&self, at: usize) -> Result<String, DbError>;
    fn bytes(&self, at: usize) -> Result<Vec<u8>, DbError>;

    /// The text at `at` without a copy of it.
    fn text(&self, at: usize) -> Result<&str, DbError>;

    /// The text at `at`, with marks for what is none: a row that is damaged there has a name too.
    fn lossy(&self, at: usize) -> Result<String, DbError>;
}

impl dyn ResultRow + '_ {
    /// The column at `at` as what it is read as.
    pub(super) fn get<T: ColumnValue>(&self, at: usize) -> Result<T, DbError> {
        T::read(self, at)
    }
}

/// What a column can be read as.
pub(super) trait ColumnValue: Sized {
    fn read(row: &dyn ResultRow, at: usize) -> Result<Self, DbError>;
}

/// Reads a column by the method of [`ResultRow`] for its type.
macro_rules! column {
    ($($kind:ty: $read:ident),*) => { $(impl ColumnValue for $kind {
        fn read(row: &dyn ResultRow, at: usize) -> Result<Self, DbError> {
            row.$read(at)
        }
    })* };
}
column!(i64: int, u32: small_int, bool: bool, String: string, Vec<u8>: bytes);

impl<T: ColumnValue> ColumnValue for Option<T> {
    fn read(row: &dyn ResultRow, at: usize) -> Result<Self, DbError> {
        if row.is_null(at)? { Ok(None) } else { T::read(row, at).map(Some) }
    }
}

/// How rows that a query finds are held until its transaction ends, where others work beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowLock {
    /// Nobody else changes or holds them. Those that somebody holds are not found: nobody waits.
    UpdateSkipLocked,
    /// Nobody removes them; others may change them and hold them so too. Those that are being removed are
    /// not found: nobody waits.
    KeyShareSkipLocked,
    /// Nobody else changes, removes or holds them. Waits for those who do.
    Update,
}

/// A transaction, as an engine implements it; statements read by the methods of `dyn EngineTransaction` below.
///
/// Statements are prepared once a connection and found again by their text.
pub(super) trait EngineTransaction {
    /// Runs a statement that gives no rows; how many it wrote.
    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, DbError>;

    /// Gives `read` the first row, if there is one.
    fn read_first(&self, sql: &str, params: Params<'_>, read: ReadRow<'_>) -> Result<(), DbError>;

    /// Gives `each` one row after the other, until it breaks. Rows are not gathered.
    fn read_each(&self, sql: &str, params: Params<'_>, each: VisitRow<'_>) -> Result<(), DbError>;

    /// Gives `each` all rows, which may be gathered before.
    fn read_all(&self, sql: &str, params: Params<'_>, each: ReadRow<'_>) -> Result<(), DbError> {
        self.read_each(sql, params, &mut |row| each(row).map(ControlFlow::Continue))
    }

    /// What stands at the end of a query whose rows are held so. Nothing where a transaction that writes is
    /// alone anyway.
    fn lock_clause(&self, _hold: RowLock) -> &'static str {
        ""
    }

    /// Leaves rows that refer to what is not there alone until the transaction ends.
    fn defer_foreign_keys(&self) -> Result<(), DbError>;

    /// The last number that was given in the column of a table, whose row may be gone.
    fn last_assigned_number(&self, table: &str, column: &str) -> Result<i64, DbError>;

    /// Sees to it that the numbers up to `number` are not given again.
    fn reserve_numbers(&self, table: &str, column: &str, number: i64) -> Result<(), DbError>;

    /// What the engine tells of itself.
    fn facts(&self) -> Result<DatabaseFacts, DbError>;

    /// What is wrong with the engine's own files; nothing where a server and its operator look after them.
    fn page_flaws(&self) -> Result<Vec<DatabaseFlaw>, DbError> {
        Ok(Vec::new())
    }

    /// Rows that refer to what is not there although the schema forbids it; none where the engine forbids it
    /// to everybody who writes.
    fn foreign_key_violations(&self) -> Result<Vec<DatabaseFlaw>, DbError> {
        Ok(Vec::new())
    }

    /// Runs statements that set a test's scene.
    #[cfg(test)]
    fn run_script(&self, sql: &str) -> Result<(), DbError>;

    /// Statements by which each `change`, `INSERT` or `UPDATE`, of a table is refused.
    #[cfg(test)]
    fn refusing_script(&self, change: &str, table: &str) -> String;

    /// The statement that ends that.
    #[cfg(test)]
    fn accepting_script(&self, table: &str) -> String;
}

/// Reads a row.
pub(super) type ReadRow<'r> = &'r mut dyn FnMut(&dyn ResultRow) -> Result<(), DbError>;
/// Reads a row, and says whether the next one is wanted.
pub(super) type VisitRow<'r> =
    &'r mut dyn FnMut(&dyn ResultRow) -> Result<ControlFlow<()>, DbError>;

impl dyn EngineTransaction + '_ {
    /// Reads the first row that is found.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&dyn ResultRow) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        let (mut read, mut found) = (Some(read), None);
        self.read_first(sql, params, &mut |row| {
            found = read.take().map(|read| read(row)).transpose()?;
            Ok(())
        })?;
        Ok(found)
    }

    /// The same where there is always a row.
    pub(super) fn load<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&dyn ResultRow) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.find(sql, params, read)?.ok_or_else(|| DbError::Damaged {
            what: sql.split_whitespace().collect::<Vec<_>>().join(" "),
            why: "it finds no row".to_owned(),
        })
    }

    /// The first column of the first row.
    pub(super) fn find_value<T: ColumnValue>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<T>, DbError> {
        self.find(sql, params, |row| row.get(0))
    }

    /// The same where there is always a row.
    pub(super) fn load_value<T: ColumnValue>(
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
        mut each: impl FnMut(&dyn ResultRow) -> Result<ControlFlow<()>, DbError>,
    ) -> Result<(), DbError> {
        self.read_each(sql, params, &mut each)
    }

    /// Reads all rows.
    pub(super) fn list<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&dyn ResultRow) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut found = Vec::new();
        self.read_all(sql, params, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The first column of all rows.
    pub(super) fn list_values<T: ColumnValue>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<T>, DbError> {
        self.list(sql, params, |row| row.get(0))
    }

    /// The flaws that `flaw` makes of rows, of which no more than the limit are read.
    pub(super) fn list_flaws(
        &self,
        sql: &str,
        of: &str,
        flaw: impl Fn(&dyn ResultRow) -> Result<DatabaseFlaw, DbError>,
    ) -> Result<Vec<DatabaseFlaw>, DbError> {
        let mut flaws = Vec::new();
        self.each(sql, params![], |row| {
            if flaws.len() == CHECK_FLAWS_MAX {
                flaws.push(DatabaseFlaw::Truncated(format!("there are more {of}")));
                return Ok(ControlFlow::Break(()));
            }
            flaws.push(flaw(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(flaws)
    }

    /// Where the archive of this database lives now, if it has moved.
    pub(super) fn moved_to(&self) -> Result<Option<String>, DbError> {
        self.find_value("SELECT value FROM state WHERE name = ?1", params![MOVED])
    }
}

/// The row of `state` in a database whose archive lives elsewhere now; its value says where.
pub(super) const MOVED: &str = "moved to";
