//! Runs one session with a PostgreSQL server: its socket, prepared statements and notifications.
//!
//! Callers block. While one waits for an answer, its thread drives the asynchronous client, `tokio_postgres`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, SimpleQueryMessage, Statement, Transaction};

use super::error::unreachable;
use super::server::PostgresServer;
use crate::runtime::limits::{
    DB_ANSWER_TIME, DB_BUSY_MS, DB_CONNECT_TIME, DB_KEEPALIVE_S, DB_KEEPALIVES,
    DB_WRITE_LOCK_IDLE_MS,
};
use crate::storage::database::engine::ConnectionPurpose;
use crate::storage::database::error::{DbError, DbResult, EngineError, damaged};

/// Statement timeout of a database server, in milliseconds.
const DB_STATEMENT_MS: u64 = 60_000;
/// Milliseconds after which a database server ends an idle transaction, so that a process that hangs does not
/// block the writes of others.
const DB_IDLE_MS: u64 = 60_000;
/// Prepared statements cached per connection. The program has fewer.
const DB_STATEMENTS_MAX: usize = 512;

/// A session with the server.
pub(super) struct ServerSession {
    /// Dropped first, so that the driver can still send the end of the session to the server.
    pub(super) client: tokio_postgres::Client,
    pub(super) driver: ConnectionDriver,
}

/// The parts of a session besides the client of `tokio_postgres`.
pub(super) struct ConnectionDriver {
    /// Drives the socket while a call waits for an answer; `None` once it ends.
    runtime: Option<Runtime>,
    /// Prepared statements by their text, with parameters as `?1`.
    prepared: RefCell<HashMap<Box<str>, Statement>>,
    signals: Arc<ServerSignals>,
    /// Time limit for an answer, longer than the server's own timeouts.
    answer_timeout: Cell<Duration>,
}

/// The messages that arrive without a request.
#[derive(Default)]
struct ServerSignals {
    /// True if a notification arrived.
    is_notified: AtomicBool,
    /// The reason that the connection ended.
    end: OnceLock<String>,
}

impl Drop for ConnectionDriver {
    fn drop(&mut self) {
        // A runtime must not block a thread that drives async tasks: that would panic.
        if Handle::try_current().is_err() {
            self.flush();
        }
        if let Some(runtime) = self.runtime.take() {
            // Does not block, so that this also works on async threads.
            runtime.shutdown_background();
        }
    }
}

impl ServerSession {
    /// Connects to the first host that accepts: a primary server, unless this process only reads.
    pub(super) fn open(server: &PostgresServer, purpose: ConnectionPurpose) -> DbResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|cause| unusable(server, &cause))?;
        let mut refused = Vec::new();
        for (index, config) in server.hosts() {
            let signals = Arc::new(ServerSignals::default());
            // If the password cannot be read, no other host is tried, because all have the same.
            let config = server.login(config).map_err(|cause| unusable(server, &cause))?;
            let connecting = connect_to(server, &config, purpose, Arc::clone(&signals));
            // Twice the timeout of `tokio_postgres`, which covers only the socket: a server may accept a connection and
            // never answer.
            match runtime.block_on(async { timeout(DB_CONNECT_TIME * 2, connecting).await }) {
                Ok(Ok(client)) => {
                    server.prefer_host(index);
                    let driver = ConnectionDriver {
                        runtime: Some(runtime),
                        prepared: RefCell::default(),
                        signals,
                        answer_timeout: Cell::new(DB_ANSWER_TIME),
                    };
                    return Ok(Self { driver, client });
                }
                Ok(Err(cause)) => refused.push(EngineError::from(cause).to_string()),
                Err(_) => refused.push("it does not answer".to_owned()),
            }
        }
        Err(unusable(server, &refused.join("; ")))
    }

    /// Returns the single number that a query finds, outside a transaction.
    pub(super) fn number(&self, sql: &str) -> DbResult<i64> {
        number(&self.driver.wait(self.client.simple_query(sql))?)
    }

    /// Runs statements outside a transaction.
    pub(super) fn batch(&self, sql: &str) -> DbResult<()> {
        self.driver.wait(self.client.batch_execute(sql))
    }

    /// Returns whether the session is open. The end of a connection may be noticed late.
    pub(super) fn is_alive(&self) -> bool {
        self.driver.flush();
        self.driver.signals.end.get().is_none() && !self.client.is_closed()
    }
}

/// Connects to a host and applies the settings of the session.
async fn connect_to(
    server: &PostgresServer,
    config: &tokio_postgres::Config,
    purpose: ConnectionPurpose,
    signals: Arc<ServerSignals>,
) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(server.tls()).await?;
    tokio::spawn(drive(connection, signals));
    client.batch_execute(&settings(purpose)).await?;
    // Notifications announce writes of other processes. A standby does not support `LISTEN`, so there writes are found
    // by polling.
    let follows = purpose == ConnectionPurpose::Follow;
    if follows && !(server.only_reads && is_standby(&client).await?) {
        listen(server, &client).await?;
    }
    Ok(client)
}

/// SQLSTATEs of a server that does not support notifications, or does not permit them for this role.
const NO_NOTIFY_CODES: [&str; 3] = ["0A000", "42601", "42501"];

/// Subscribes to notifications of writes. If the server cannot notify, writes are found by polling, as after a lost
/// notification.
async fn listen(
    server: &PostgresServer,
    client: &tokio_postgres::Client,
) -> Result<(), tokio_postgres::Error> {
    let Err(cause) = client.batch_execute("LISTEN wirephoto").await else { return Ok(()) };
    let code = cause.as_db_error().map(|reported| reported.code().code());
    if !code.is_some_and(|code| NO_NOTIFY_CODES.contains(&code)) {
        return Err(cause);
    }
    server.log_missing_notifications(&EngineError::from(cause));
    Ok(())
}

fn unusable(server: &PostgresServer, why: &dyn std::fmt::Display) -> DbError {
    DbError::from(unreachable(format!("{}: {why}", server.name())))
}

/// Returns whether the server is a standby.
async fn is_standby(client: &tokio_postgres::Client) -> Result<bool, tokio_postgres::Error> {
    let found = client.simple_query("SELECT pg_is_in_recovery()").await?;
    Ok(found
        .iter()
        .any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))))
}

/// Returns the settings of a session as statements.
///
/// Sequential scans are disabled: statements that must be fast have an index, which the planner would not use if its
/// statistics were outdated. Statements are short, so compiling them (`jit`) and parallel workers would only cost time.
fn settings(purpose: ConnectionPurpose) -> String {
    // All nodes wait for a node that hangs while it holds the write lock, so it gets less time.
    let idle = match purpose {
        ConnectionPurpose::Write | ConnectionPurpose::Claim => DB_WRITE_LOCK_IDLE_MS,
        ConnectionPurpose::Read | ConnectionPurpose::Follow => DB_IDLE_MS,
    };
    format!(
        "SET statement_timeout = {DB_STATEMENT_MS}; SET lock_timeout = {DB_BUSY_MS};
         SET idle_in_transaction_session_timeout = {idle};
         SET tcp_keepalives_idle = {DB_KEEPALIVE_S}; SET tcp_keepalives_interval = {DB_KEEPALIVE_S};
         SET tcp_keepalives_count = {DB_KEEPALIVES}; SET jit = off;
         SET work_mem = '16MB'; SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off;
         SET client_min_messages = error"
    )
}

/// Moves bytes between the socket and waiting calls, and records notifications and the end of the connection.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, signals: Arc<ServerSignals>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(_)) => {
                signals.is_notified.store(true, Ordering::Release);
            }
            Ok(_) => {}
            Err(cause) => {
                // Only the first reason is stored: it caused the later ones.
                drop(signals.end.set(EngineError::from(cause).to_string()));
                return;
            }
        }
    }
}

impl ConnectionDriver {
    /// Waits for an answer of the server, within the time limit.
    pub(super) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> DbResult<T> {
        let runtime = self.runtime.as_ref().ok_or(DbError::Closed)?;
        let limit = self.answer_timeout.get();
        let Ok(answered) = runtime.block_on(async { timeout(limit, answer).await }) else {
            // A late answer would be read as the answer to the next call, so the session ends.
            let why = format!("the server did not answer within {} s", limit.as_secs());
            drop(self.signals.end.set(why.clone()));
            return Err(unreachable(why).into());
        };
        answered.map_err(|cause| match self.signals.end.get() {
            // The driver only reports that the connection is closed.
            Some(why) if cause.is_closed() => unreachable(why.clone()).into(),
            Some(_) | None => cause.into(),
        })
    }

    /// Sets a longer time limit for the statements of this connection.
    pub(super) fn allow_time(&self, time: Duration) {
        self.answer_timeout.set(time);
    }

    /// Sends pending messages and receives messages that have arrived, without waiting.
    pub(super) fn flush(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async {
                // Three rounds: one polls the system, one reads and writes, one delivers the answers.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// Returns whether a notification arrived since the last call.
    pub(super) fn take_notified(&self) -> bool {
        self.signals.is_notified.swap(false, Ordering::AcqRel)
    }

    /// Returns the statement `sql`, prepared at its first use.
    pub(super) fn prepared(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
    ) -> DbResult<Statement> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(transaction.prepare(&numbered(sql)))?;
        let mut prepared = self.prepared.borrow_mut();
        // The limit only guards against statements whose text varies.
        if prepared.len() >= DB_STATEMENTS_MAX {
            prepared.clear();
        }
        prepared.insert(sql.into(), statement.clone());
        Ok(statement)
    }
}

/// Returns the single number that a query finds.
pub(super) fn number(found: &[SimpleQueryMessage]) -> DbResult<i64> {
    let number = found.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0)?.parse().ok()
    });
    // Only queries of this table can find none.
    number.ok_or_else(|| damaged("table writer", &"it does not have its one row"))
}

/// Runs `work`, which blocks, on a separate thread if this one runs async tasks.
pub(super) fn run_blocking<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if Handle::try_current().is_err() {
        return work();
    }
    let outcome = thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Converts parameters from `?1` to `$1`, except in quoted texts.
fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut quoted = false;
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        // A doubled quote within a text toggles twice.
        quoted ^= c == '\'';
        let is_parameter = c == '?' && !quoted && rest.peek().is_some_and(char::is_ascii_digit);
        text.push(if is_parameter { '$' } else { c });
    }
    text
}

/// Runs statements that set up a test, each by itself.
#[cfg(test)]
pub(in crate::storage::database) fn run(
    server: &PostgresServer,
    purpose: ConnectionPurpose,
    sql: &str,
) -> DbResult<()> {
    run_blocking(|| ServerSession::open(server, purpose)?.batch(sql))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ok_parameters_are_numbered_and_texts_stay() {
        let sql = "SELECT '?1', 'it''s ?2' WHERE a = ?1 AND b = ?12 OR '?' = c";
        let expected = "SELECT '?1', 'it''s ?2' WHERE a = $1 AND b = $12 OR '?' = c";
        assert_eq!(super::numbered(sql), expected);
    }
}
