//! Runs transactions of PostgreSQL: statements, rows and values of the driver.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use jiff::Timestamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{IsolationLevel, Statement, Transaction, TransactionBuilder};

use super::error::ParamMismatch;
use super::session::{ConnectionDriver, ServerSession, number};
use crate::storage::database::engine::{
    ColumnType, EngineTransaction, Params, ReadRow, ResultRow, RowLock, SqlParam, StoredValue,
    TableColumn, VisitRow, params,
};
use crate::storage::database::error::{DbResult, damaged, wrong_value};
use crate::storage::database::facts::DatabaseFacts;

/// Rows that a database server sends at a time for a long result.
const DB_FETCH_ROWS: i32 = 500;

type Cause = Box<dyn std::error::Error + Sync + Send>;

impl<'r> FromSql<'r> for StoredValue<'r> {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Cause> {
        Ok(match *kind {
            Type::INT2 => Self::Int(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Self::Int(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Self::Int(i64::from_sql(kind, raw)?),
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
        // The readers refuse a wrong type, with a message about the type found.
        true
    }
}

impl ResultRow for tokio_postgres::Row {
    fn stored(&self, column: &str) -> DbResult<StoredValue<'_>> {
        // Every type is accepted, so only a name that the statement does not have fails. The connection is not
        // at fault.
        self.try_get(column).map_err(|cause| wrong_value(cause.to_string()).into())
    }

    fn first_column(&self) -> &str {
        self.columns().first().map_or("", |column| column.name())
    }
}

impl ToSql for SqlParam<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Cause> {
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT8) => number.to_sql(kind, out),
            (Self::Int(number), &Type::INT4) => i32::try_from(*number)?.to_sql(kind, out),
            (Self::Int(number), &Type::INT2) => i16::try_from(*number)?.to_sql(kind, out),
            (Self::Bool(is), &Type::BOOL) => is.to_sql(kind, out),
            // PostgreSQL's texts cannot contain this one character.
            (Self::Text(text), &Type::TEXT) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql(kind, out)
            }
            (Self::Text(text), &Type::TEXT) => text.to_sql(kind, out),
            (Self::Blob(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (Self::Int(_) | Self::Bool(_) | Self::Text(_) | Self::Blob(_), _) => {
                Err(ParamMismatch(kind.clone()).into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// Converts the parameters for the driver.
fn bound<'p>(params: Params<'p>) -> Vec<SqlParam<'p>> {
    params.iter().map(|value| value.to_param()).collect()
}

/// Lists the tables of this schema on which the role lacks a right that the service needs.
const TABLES_WITHOUT_RIGHTS: &str = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()
    AND NOT (has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'UPDATE')
        AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE'))
    ORDER BY tablename";

/// A transaction of a session.
pub(super) struct ServerTransaction<'a> {
    driver: &'a ConnectionDriver,
    transaction: Transaction<'a>,
    /// True if a statement wrote rows.
    pub(super) wrote: Cell<bool>,
}

impl<'a> ServerTransaction<'a> {
    /// Begins a read-only transaction that sees one consistent state.
    pub(super) fn snapshot(session: &'a mut ServerSession) -> DbResult<Self> {
        Self::start(session, |begin| {
            begin.isolation_level(IsolationLevel::RepeatableRead).read_only(true)
        })
    }

    /// Begins a write transaction. Each statement sees all earlier commits, independent of the server's
    /// default isolation level.
    pub(super) fn begin(session: &'a mut ServerSession) -> DbResult<Self> {
        Self::start(session, |begin| begin.isolation_level(IsolationLevel::ReadCommitted))
    }

    fn start(
        ServerSession { client, driver }: &'a mut ServerSession,
        set: impl FnOnce(TransactionBuilder<'a>) -> TransactionBuilder<'a>,
    ) -> DbResult<Self> {
        let transaction = driver.wait(set(client.build_transaction()).start())?;
        Ok(Self { driver, transaction, wrote: Cell::new(false) })
    }

    /// Runs `work`, which may panic, and commits its changes. A transaction without changes is rolled back,
    /// which needs no flush.
    ///
    /// After an error of the commit itself, it is unknown whether the transaction was committed.
    pub(super) fn run<T>(self, work: impl FnOnce(&Self) -> DbResult<T>) -> DbResult<T> {
        // After a panic too, the rollback must be sent: all nodes wait for the write lock.
        match catch_unwind(AssertUnwindSafe(|| work(&self))) {
            Ok(Ok(outcome)) if self.wrote.get() => {
                self.driver.wait(self.transaction.commit())?;
                Ok(outcome)
            }
            outcome => {
                // Sends the rollback at once, to release its locks, without waiting for the answer.
                drop(self.transaction);
                self.driver.flush();
                outcome.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }

    /// Returns the single number that a query finds.
    pub(super) fn number(&self, sql: &str) -> DbResult<i64> {
        number(&self.driver.wait(self.transaction.simple_query(sql))?)
    }

    /// Runs statements that write.
    pub(super) fn batch(&self, sql: &str) -> DbResult<()> {
        self.wrote.set(true);
        self.driver.wait(self.transaction.batch_execute(sql))
    }

    /// Waits for the cluster write lock. Returns the number of the schema under it.
    pub(super) fn lock_schema(&self) -> DbResult<i64> {
        self.number("SELECT schema FROM writer FOR UPDATE")
    }

    /// Sets a longer time limit for the statements of this session.
    pub(super) fn allow_time(&self, time: Duration) {
        self.driver.allow_time(time);
    }

    fn prepared(&self, sql: &str) -> DbResult<Statement> {
        self.driver.prepared(&self.transaction, sql)
    }

    /// Records that `sql` wrote rows, unless it is a query.
    fn note(&self, sql: &str, rows: bool) {
        // A statement with RETURNING returns rows too, so the text decides.
        if rows && !sql.trim_start().starts_with("SELECT") {
            self.wrote.set(true);
        }
    }
}

impl EngineTransaction for ServerTransaction<'_> {
    fn execute(&self, sql: &str, params: Params<'_>) -> DbResult<usize> {
        let statement = self.prepared(sql)?;
        let rows = self.driver.wait(self.transaction.execute_raw(&statement, bound(params)))?;
        self.note(sql, rows > 0);
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    fn read_first(&self, sql: &str, params: Params<'_>, read: ReadRow<'_>) -> DbResult<()> {
        let statement = self.prepared(sql)?;
        let first = self.driver.wait(async {
            let rows = self.transaction.query_raw(&statement, bound(params)).await?;
            let mut rows = pin!(rows);
            let first = rows.try_next().await?;
            // Reads to the end, because an error may follow the first row. The stream must not be polled
            // after its end.
            let mut more = first.is_some();
            while more {
                more = rows.try_next().await?.is_some();
            }
            Ok(first)
        })?;
        self.note(sql, first.is_some());
        first.map_or(Ok(()), |row| read(&row))
    }

    /// Fetches the rows in batches.
    fn read_each(&self, sql: &str, params: Params<'_>, each: VisitRow<'_>) -> DbResult<()> {
        let statement = self.prepared(sql)?;
        let portal = self.driver.wait(self.transaction.bind_raw(&statement, bound(params)))?;
        loop {
            let rows: Vec<_> = self.driver.wait(async {
                let rows = self.transaction.query_portal_raw(&portal, DB_FETCH_ROWS).await?;
                rows.try_collect().await
            })?;
            self.note(sql, !rows.is_empty());
            for row in &rows {
                if each(row)?.is_break() {
                    return Ok(());
                }
            }
            // A batch that is not full is the last one.
            if i32::try_from(rows.len()).is_ok_and(|count| count < DB_FETCH_ROWS) {
                return Ok(());
            }
        }
    }

    /// Fetches all rows in one round trip.
    fn read_all(&self, sql: &str, params: Params<'_>, each: ReadRow<'_>) -> DbResult<()> {
        let statement = self.prepared(sql)?;
        let rows: Vec<_> = self.driver.wait(async {
            self.transaction.query_raw(&statement, bound(params)).await?.try_collect().await
        })?;
        self.note(sql, !rows.is_empty());
        rows.iter().try_for_each(|row| each(row))
    }

    fn lock_clause(&self, hold: RowLock) -> &'static str {
        match hold {
            RowLock::UpdateSkipLocked => "FOR UPDATE SKIP LOCKED",
            RowLock::KeyShareSkipLocked => "FOR KEY SHARE SKIP LOCKED",
            RowLock::Update => "FOR UPDATE",
        }
    }

    fn columns(&self, table: &str) -> DbResult<Vec<TableColumn>> {
        let tx: &dyn EngineTransaction = self;
        let sql = "SELECT column_name::text AS name, data_type::text AS type
             FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name::text = ?1
             ORDER BY ordinal_position";
        tx.list(sql, params![table], |row| {
            let name: String = row.get("name")?;
            let kind = match row.text("type")? {
                "bigint" => ColumnType::Int,
                "boolean" => ColumnType::Bool,
                "text" => ColumnType::Text,
                "bytea" => ColumnType::Blob,
                other => return Err(damaged(format!("column {table}.{name}"), &other)),
            };
            Ok(TableColumn { name, kind })
        })
    }

    fn last_assigned_number(&self, table: &str, column: &str) -> DbResult<i64> {
        let tx: &dyn EngineTransaction = self;
        let highest = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        let highest: Option<i64> = tx.find_value(&highest, params![])?;
        let assigned = "SELECT coalesce(pg_sequence_last_value(
             CAST(pg_get_serial_sequence(?1, ?2) AS regclass)), 0)";
        let assigned: Option<i64> = tx.find_value(assigned, params![table, column])?;
        // Explicit numbers do not raise the sequence, and the row with the highest number may be removed.
        Ok(highest.max(assigned).unwrap_or_default())
    }

    fn reserve_numbers(&self, table: &str, column: &str, number: i64) -> DbResult<()> {
        let tx: &dyn EngineTransaction = self;
        // Raises the sequence, because explicitly inserted numbers do not.
        let sql = "SELECT setval(pg_get_serial_sequence(?1, ?2), ?3) WHERE ?3 > coalesce(
             pg_sequence_last_value(CAST(pg_get_serial_sequence(?1, ?2) AS regclass)), 0)";
        tx.exists(sql, params![table, column, number])?;
        // The text is a query, but its function writes.
        self.wrote.set(true);
        Ok(())
    }

    fn facts(&self) -> DbResult<DatabaseFacts> {
        let tx: &dyn EngineTransaction = self;
        let sql = "SELECT current_setting('server_version')::text";
        let version: String = tx.load_value(sql, params![])?;
        let role: String = tx.load_value("SELECT current_user::text", params![])?;
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let clock = Timestamp::from_millisecond(tx.load_value(sql, params![])?)
            .map_err(|why| damaged("the server's clock", &why))?;
        let open: i64 = tx.load_value("SELECT count(*) FROM pg_stat_activity", params![])?;
        let sql = "SELECT current_setting('max_connections')::bigint";
        let maximum: i64 = tx.load_value(sql, params![])?;
        Ok(DatabaseFacts {
            engine: format!("PostgreSQL {version}"),
            role: Some(role),
            clock: Some(clock),
            connections: Some((open, maximum)),
            inaccessible_tables: tx.list_values(TABLES_WITHOUT_RIGHTS, params![])?,
        })
    }

    #[cfg(test)]
    fn run_script(&self, sql: &str) -> DbResult<()> {
        self.batch(sql)
    }

    #[cfg(test)]
    fn refusing_script(&self, change: &str, table: &str) -> String {
        format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
             CREATE TRIGGER refuse BEFORE {change} ON {table}
             FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    }

    #[cfg(test)]
    fn accepting_script(&self, table: &str) -> String {
        format!("DROP TRIGGER refuse ON {table}")
    }
}
