//! The traits that a database engine implements. `sqlite` and `postgres` are the two implementations.
//!
//! A [`DatabaseEngine`] opens an [`EngineConnection`] for each thread, which runs each unit of work as an
//! [`EngineTransaction`]. Statements are written against that trait and name no driver: every difference
//! between the engines is one of its methods.

use std::{borrow::Cow, fmt, net::IpAddr, ops::ControlFlow, sync::Arc};

use jiff::Timestamp;
use uuid::Uuid;

use super::error::{DbError, DbResult, wrong_value};
use super::facts::{DatabaseFacts, DatabaseFlaw};
use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::audit::{AuditAction, AuditOutcome, CredentialKind};
use crate::storage::diagnostics::DiagnosticKind;
use model::account::{
    AgreementId, AgreementType, ChannelMethod, DeliveryState, DeviceKind, FamilyId, LicensePeriod,
    MessageState, MessageTransport, NotificationKind, OrderId, OrganizationId, PasswordLinkKind,
    ProductId, ScopeSet, UserId,
};
use model::item::PubStatus;
use model::{ContentHash, CropSpec, ItemId, MediaType};

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// Reads single rows or searches.
    Read,
    Write,
    /// Claims queue messages, concurrently with a write.
    Claim,
    /// Detects commits of other connections.
    Follow,
}

/// A database: its address, and the code to open connections to it.
pub(super) trait DatabaseEngine: Send + Sync {
    /// Opens a connection. A connection to a server is established at its first use, and again after it
    /// broke.
    fn open(self: Arc<Self>, purpose: ConnectionPurpose) -> DbResult<Box<dyn EngineConnection>>;

    /// Returns whether the database is a separate server, perhaps on a different machine. Claims then run
    /// concurrently with writes, on a dedicated connection.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the hosts to which the engine connects over a network without TLS.
    fn hosts_without_tls(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A read, called with its transaction or with the reason that there is none.
pub(super) type Read = Box<dyn FnOnce(DbResult<&dyn EngineTransaction>) + Send>;
/// Work to be done in a transaction.
pub(super) type Work<'w> = Box<dyn FnOnce(&dyn EngineTransaction) -> DbResult<()> + Send + 'w>;

/// The mode of a write transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// Fails with [`DbError::Moved`] if the archive has moved.
    Normal,
    /// Writes even if the archive has moved.
    EvenMoved,
    /// Overwrites deleted content in the file, if the engine can do that. A server has its own means, such as
    /// `VACUUM`.
    Overwriting,
}

/// A connection, which one thread owns.
pub(super) trait EngineConnection: Send {
    /// Runs `read` against one consistent state of the database.
    fn read(&mut self, read: Read);

    /// Runs statements that only read, each against the newest state or all against one.
    fn run_query(&mut self, work: Work<'_>) -> DbResult<()>;

    /// Runs `write` as one transaction, after the write transactions of other connections have ended.
    fn run_write(&mut self, mode: WriteMode, write: Work<'_>) -> DbResult<()>;

    /// Runs `claim` as one transaction: as a write, or concurrently with one if the engine supports that.
    fn run_claim(&mut self, claim: Work<'_>) -> DbResult<()>;

    /// Folds the write-ahead log into the database and empties it, if the engine has such a log.
    ///
    /// Fails while a different connection reads from it.
    fn checkpoint(&self) -> DbResult<()> {
        Ok(())
    }

    /// Returns a number that changes when a different connection commits, and rarely otherwise. Costs a few
    /// microseconds.
    fn data_version(&mut self) -> DbResult<i64>;
}

/// The value of a statement's parameter.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum SqlParam<'p> {
    Null,
    Int(i64),
    Bool(bool),
    Text(Cow<'p, str>),
    Blob(&'p [u8]),
}

impl fmt::Debug for SqlParam<'_> {
    /// Shows only lengths. At its most verbose level a driver logs parameters, and texts include passwords of
    /// channels, keys and profiles.
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

/// A value that can be passed as a parameter.
pub(super) trait ToParam {
    fn to_param(&self) -> SqlParam<'_>;
}

/// The values of `?1` to `?n`, built by [`params!`].
pub(super) type Params<'p> = &'p [&'p dyn ToParam];

/// Builds the values of `?1` to `?n`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$(&$value as &dyn $crate::storage::database::engine::ToParam),*] };
}
pub(super) use params;

impl ToParam for SqlParam<'_> {
    fn to_param(&self) -> SqlParam<'_> {
        self.clone()
    }
}

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

impl ToParam for Timestamp {
    /// Times are stored in milliseconds since 1970.
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Int(self.as_millisecond())
    }
}

impl ToParam for str {
    fn to_param(&self) -> SqlParam<'_> {
        SqlParam::Text(Cow::Borrowed(self))
    }
}

/// Implements [`ToParam`] for types that are stored as the text of their `as_str`.
macro_rules! words {
    ($($kind:ty),*) => { $(impl ToParam for $kind {
        fn to_param(&self) -> SqlParam<'_> {
            SqlParam::Text(Cow::Borrowed(self.as_str()))
        }
    })* };
}
words!(String, AgreementType, AuditAction, AuditOutcome, ChannelMethod, CredentialKind);
words!(DeliveryState, DeviceKind, DiagnosticKind, ItemId, LicensePeriod, MediaType, MessageState);
words!(MessageTransport, NotificationKind, PasswordLinkKind, PubStatus);

/// Implements [`ToParam`] for types that are stored as the text that they display.
macro_rules! displayed {
    ($($kind:ty),*) => { $(impl ToParam for $kind {
        fn to_param(&self) -> SqlParam<'_> {
            SqlParam::Text(Cow::Owned(self.to_string()))
        }
    })* };
}
displayed!(ContentHash, CropSpec, IpAddr, ScopeSet, Uuid);

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

/// A value of a row, as an engine stores it.
#[derive(Clone, Copy)]
pub(super) enum StoredValue<'r> {
    Null,
    Int(i64),
    Bool(bool),
    /// Bytes of a text, which may be invalid in a damaged file.
    Text(&'r [u8]),
    Bytes(&'r [u8]),
    /// A type that no column of the schema has.
    Other,
}

impl StoredValue<'_> {
    fn type_error(self, column: &str, expected: &str) -> DbError {
        let found = match self {
            Self::Null => "nothing",
            Self::Int(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Other => "something else",
        };
        wrong_value(format!("column {column} holds {found}, expected {expected}")).into()
    }
}

/// A row of a result. Its columns are read by their names, which are distinct within a statement.
pub(super) trait ResultRow {
    /// Reads a column. Fails if the statement has none with that name.
    fn stored(&self, column: &str) -> DbResult<StoredValue<'_>>;

    /// Returns the name of the first column. The engine generates a name for an expression without an alias.
    fn first_column(&self) -> &str;
}

impl dyn ResultRow + '_ {
    /// Reads a column as the requested type.
    pub(super) fn get<T: ColumnValue>(&self, column: &str) -> DbResult<T> {
        T::read(self, column)
    }

    /// Reads the first column, for statements that return only one.
    fn value<T: ColumnValue>(&self) -> DbResult<T> {
        T::read(self, self.first_column())
    }

    fn int(&self, column: &str) -> DbResult<i64> {
        let value = self.stored(column)?;
        let StoredValue::Int(number) = value else {
            return Err(value.type_error(column, "a number"));
        };
        Ok(number)
    }

    fn bool(&self, column: &str) -> DbResult<bool> {
        let value = self.stored(column)?;
        match value {
            StoredValue::Bool(is) => Ok(is),
            // SQLite stores booleans as numbers.
            StoredValue::Int(number) => Ok(number != 0),
            StoredValue::Null
            | StoredValue::Text(_)
            | StoredValue::Bytes(_)
            | StoredValue::Other => Err(value.type_error(column, "true or false")),
        }
    }

    fn string(&self, column: &str) -> DbResult<String> {
        self.text(column).map(str::to_owned)
    }

    fn bytes(&self, column: &str) -> DbResult<Vec<u8>> {
        let value = self.stored(column)?;
        let StoredValue::Bytes(bytes) = value else {
            return Err(value.type_error(column, "bytes"));
        };
        Ok(bytes.to_vec())
    }

    /// Reads a text without copying it.
    pub(super) fn text(&self, column: &str) -> DbResult<&str> {
        let value = self.stored(column)?;
        let StoredValue::Text(bytes) = value else {
            return Err(value.type_error(column, "text"));
        };
        std::str::from_utf8(bytes).map_err(|_| value.type_error(column, "text in UTF-8"))
    }

    /// Reads a text with replacement characters for invalid bytes, because a damaged row still needs a name
    /// in messages.
    pub(super) fn lossy(&self, column: &str) -> DbResult<String> {
        Ok(match self.stored(column)? {
            StoredValue::Text(bytes) | StoredValue::Bytes(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            StoredValue::Int(number) => number.to_string(),
            StoredValue::Bool(is) => is.to_string(),
            StoredValue::Null | StoredValue::Other => "?".to_owned(),
        })
    }
}

/// A type that a column can be read as.
pub(super) trait ColumnValue: Sized {
    fn read(row: &dyn ResultRow, column: &str) -> DbResult<Self>;
}

/// Implements [`ColumnValue`] by the method of [`ResultRow`] for the type.
macro_rules! column {
    ($($kind:ty: $read:ident),*) => { $(impl ColumnValue for $kind {
        fn read(row: &dyn ResultRow, column: &str) -> DbResult<Self> {
            row.$read(column)
        }
    })* };
}
column!(i64: int, bool: bool, String: string, Vec<u8>: bytes);

/// Implements [`ColumnValue`] for numbers that are never negative, such as counts.
macro_rules! unsigned {
    ($($kind:ty),*) => { $(impl ColumnValue for $kind {
        fn read(row: &dyn ResultRow, column: &str) -> DbResult<Self> {
            let number = row.int(column)?;
            Self::try_from(number).map_err(|_| {
                wrong_value(format!("column {column} holds {number}, expected a count")).into()
            })
        }
    })* };
}
unsigned!(u32, u64, usize);

/// Implements [`ToParam`] for sizes and limits.
macro_rules! sizes {
    ($($kind:ty),*) => { $(impl ToParam for $kind {
        fn to_param(&self) -> SqlParam<'_> {
            // A limit above `i64` has no effect, and every file is shorter.
            SqlParam::Int(i64::try_from(*self).unwrap_or(i64::MAX))
        }
    })* };
}
sizes!(u64, usize);

/// Implements [`ColumnValue`] and [`ToParam`] for ids that are stored as numbers.
macro_rules! ids {
    ($($Id:ident),*) => { $(
        impl ColumnValue for $Id {
            fn read(row: &dyn ResultRow, column: &str) -> DbResult<Self> {
                row.int(column).map(Self)
            }
        }

        impl ToParam for $Id {
            fn to_param(&self) -> SqlParam<'_> {
                SqlParam::Int(self.0)
            }
        }
    )* };
}
ids!(AgreementId, FamilyId, OrderId, OrganizationId, ProductId, UserId);

impl<T: ColumnValue> ColumnValue for Option<T> {
    fn read(row: &dyn ResultRow, column: &str) -> DbResult<Self> {
        if matches!(row.stored(column)?, StoredValue::Null) {
            return Ok(None);
        }
        T::read(row, column).map(Some)
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Int,
    Bool,
    Text,
    Blob,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: ColumnType,
}

/// The lock on the rows of a query until its transaction ends, if transactions run concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowLock {
    /// No other transaction may change or lock the rows. Rows that are already locked are skipped without
    /// waiting.
    UpdateSkipLocked,
    /// No other transaction may remove the rows. Others may change them and acquire the same lock. Rows that
    /// are being removed are skipped without waiting.
    KeyShareSkipLocked,
    /// No other transaction may change, remove or lock the rows. Waits for transactions that hold them.
    Update,
}

/// A transaction, as an engine implements it. Statements read through the methods of `dyn EngineTransaction`
/// below.
///
/// Each connection prepares a statement once and finds it again by its text.
pub(super) trait EngineTransaction {
    /// Runs a statement that returns no rows. Returns the number of rows that it wrote.
    fn execute(&self, sql: &str, params: Params<'_>) -> DbResult<usize>;

    /// Calls `read` with the first row, if there is one.
    fn read_first(&self, sql: &str, params: Params<'_>, read: ReadRow<'_>) -> DbResult<()>;

    /// Calls `each` with one row after the other until it breaks. Rows are streamed, not collected.
    fn read_each(&self, sql: &str, params: Params<'_>, each: VisitRow<'_>) -> DbResult<()>;

    /// Calls `each` with all rows, which may be collected first.
    fn read_all(&self, sql: &str, params: Params<'_>, each: ReadRow<'_>) -> DbResult<()> {
        self.read_each(sql, params, &mut |row| each(row).map(ControlFlow::Continue))
    }

    /// Returns the clause at the end of a query that locks its rows. Empty if write transactions never run
    /// concurrently.
    fn lock_clause(&self, _hold: RowLock) -> &'static str {
        ""
    }

    /// Lists the columns of a table, in their order.
    fn columns(&self, table: &str) -> DbResult<Vec<TableColumn>>;

    /// Returns the last number that was assigned in the column of a table. Its row may have been removed.
    fn last_assigned_number(&self, table: &str, column: &str) -> DbResult<i64>;

    /// Ensures that the numbers up to `number` are not assigned again.
    fn reserve_numbers(&self, table: &str, column: &str, number: i64) -> DbResult<()>;

    /// Returns the facts that the engine reports about itself.
    fn facts(&self) -> DbResult<DatabaseFacts>;

    /// Checks the engine's own files. Does nothing for a server, whose operator maintains them.
    fn page_flaws(&self) -> DbResult<Vec<DatabaseFlaw>> {
        Ok(Vec::new())
    }

    /// Lists foreign-key violations. Empty if the engine enforces foreign keys for every connection.
    fn foreign_key_violations(&self) -> DbResult<Vec<DatabaseFlaw>> {
        Ok(Vec::new())
    }

    /// Runs statements that set up a test.
    #[cfg(test)]
    fn run_script(&self, sql: &str) -> DbResult<()>;

    /// Returns statements that refuse each `change`, `INSERT` or `UPDATE`, of a table.
    #[cfg(test)]
    fn refusing_script(&self, change: &str, table: &str) -> String;

    /// Returns the statement that undoes [`EngineTransaction::refusing_script`].
    #[cfg(test)]
    fn accepting_script(&self, table: &str) -> String;
}

/// A callback that reads a row.
pub(super) type ReadRow<'r> = &'r mut dyn FnMut(&dyn ResultRow) -> DbResult<()>;
/// A callback that reads a row and returns whether to continue.
pub(super) type VisitRow<'r> = &'r mut dyn FnMut(&dyn ResultRow) -> DbResult<ControlFlow<()>>;

impl dyn EngineTransaction + '_ {
    /// Reads the first row of a result, if there is one.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&dyn ResultRow) -> DbResult<T>,
    ) -> DbResult<Option<T>> {
        // Moved out of an option, because the trait's callback could be called again.
        let mut read = Some(read);
        let mut found = None;
        self.read_first(sql, params, &mut |row| {
            found = read.take().map(|read| read(row)).transpose()?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the first row of a query that always finds one. Fails with [`DbError::Damaged`] otherwise.
    pub(super) fn load<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&dyn ResultRow) -> DbResult<T>,
    ) -> DbResult<T> {
        self.find(sql, params, read)?.ok_or_else(|| DbError::Damaged {
            // Statements are written over several lines, and a message has one line.
            what: sql.split_whitespace().collect::<Vec<_>>().join(" "),
            why: "it finds no row".to_owned(),
        })
    }

    /// Reads the first column of the first row, if there is one.
    pub(super) fn find_value<T: ColumnValue>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> DbResult<Option<T>> {
        self.find(sql, params, |row| row.value())
    }

    /// Reads the first column of a query that always finds a row.
    pub(super) fn load_value<T: ColumnValue>(&self, sql: &str, params: Params<'_>) -> DbResult<T> {
        self.load(sql, params, |row| row.value())
    }

    /// Reads the number that a `count` query returns.
    pub(super) fn count(&self, sql: &str, params: Params<'_>) -> DbResult<usize> {
        self.load_value(sql, params)
    }

    /// Returns whether the query finds a row.
    pub(super) fn exists(&self, sql: &str, params: Params<'_>) -> DbResult<bool> {
        Ok(self.find(sql, params, |_| Ok(()))?.is_some())
    }

    /// Runs a statement. Returns whether it wrote a row.
    pub(super) fn changes(&self, sql: &str, params: Params<'_>) -> DbResult<bool> {
        Ok(self.execute(sql, params)? > 0)
    }

    /// Runs a statement, however many rows it writes.
    pub(super) fn run(&self, sql: &str, params: Params<'_>) -> DbResult<()> {
        self.execute(sql, params).map(drop)
    }

    /// Calls `each` with one row after the other. Rows are streamed, so their number is not limited, and
    /// `each` may run statements.
    pub(super) fn each(
        &self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(&dyn ResultRow) -> DbResult<()>,
    ) -> DbResult<()> {
        self.read_each(sql, params, &mut |row| each(row).map(ControlFlow::Continue))
    }

    /// Calls `each` with one row after the other until it breaks. Rows are streamed.
    pub(super) fn each_until(
        &self,
        sql: &str,
        params: Params<'_>,
        mut each: impl FnMut(&dyn ResultRow) -> DbResult<ControlFlow<()>>,
    ) -> DbResult<()> {
        self.read_each(sql, params, &mut each)
    }

    /// Reads all rows into memory.
    pub(super) fn list<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&dyn ResultRow) -> DbResult<T>,
    ) -> DbResult<Vec<T>> {
        let mut found = Vec::new();
        self.read_all(sql, params, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the first column of all rows.
    pub(super) fn list_values<T: ColumnValue>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> DbResult<Vec<T>> {
        self.list(sql, params, |row| row.value())
    }

    /// Collects the flaws that `flaw` derives from rows: at most [`CHECK_FLAWS_MAX`], and a note if there are
    /// more.
    pub(super) fn list_flaws(
        &self,
        sql: &str,
        of: &str,
        flaw: impl Fn(&dyn ResultRow) -> DbResult<DatabaseFlaw>,
    ) -> DbResult<Vec<DatabaseFlaw>> {
        let mut flaws = Vec::new();
        self.each_until(sql, params![], |row| {
            // A damaged table can have millions of flaws, and the first ones suffice.
            if flaws.len() == CHECK_FLAWS_MAX {
                flaws.push(DatabaseFlaw::Truncated(format!("there are more {of}")));
                return Ok(ControlFlow::Break(()));
            }
            flaws.push(flaw(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(flaws)
    }

    /// Returns the present place of this database's archive, if it has moved.
    pub(super) fn moved_to(&self) -> DbResult<Option<String>> {
        self.find_value("SELECT value FROM state WHERE name = ?1", params![MOVED])
    }
}

/// The row of `state` in a database whose archive has moved; its value names the new place.
pub(super) const MOVED: &str = "moved to";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    fn read<T: ColumnValue + Send + 'static>(db: &Db, column: &'static str) -> Result<T, DbError> {
        let sql = "SELECT name, value FROM state WHERE name = 'archive id'";
        db.read_blocking(move |tx| tx.tx.load(sql, params![], |row| row.get(column)))
    }

    #[test]
    fn a_column_is_read_by_its_name_and_errors_name_it() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        assert_eq!(read::<String>(&db, "name").unwrap(), "archive id");
        for (column, words) in [("value", "column value"), ("absent", "absent")] {
            let refused = read::<i64>(&db, column).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
            // A mistake in a statement is no reason to connect again.
            assert!(matches!(refused, DbError::Engine(cause) if !cause.is_resource()), "{column}");
        }
    }
}
