//! One session with the server: its socket, its statements, what it hears.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::{Future, poll_fn},
    panic::resume_unwind,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::{Builder, Handle, Runtime},
    time::timeout,
};
use tokio_postgres::{AsyncMessage, SimpleQueryMessage, Statement, Transaction};

use super::error::unreachable;
use super::server::PostgresServer;
use crate::runtime::limits::{
    DB_ANSWER_TIME, DB_BUSY_MS, DB_CONNECT_TIME, DB_IDLE_MS, DB_KEEPALIVE_S, DB_KEEPALIVES,
    DB_STATEMENT_MS, DB_STATEMENTS_MAX, DB_WRITE_LOCK_IDLE_MS,
};
use crate::storage::database::engine::ConnectionPurpose;
use crate::storage::database::error::{DbError, EngineError};

/// A session.
pub(super) struct ServerSession {
    /// Goes first: then the driver still says goodbye to the server.
    pub(super) client: tokio_postgres::Client,
    pub(super) driver: ConnectionDriver,
}

/// What a session works with beside the driver's client.
pub(super) struct ConnectionDriver {
    /// Drives the socket while somebody waits for an answer; empty once it ends.
    runtime: Option<Runtime>,
    /// By the text of the statement as it is written in `statements`.
    prepared: RefCell<HashMap<Box<str>, Statement>>,
    signals: Arc<ServerSignals>,
    /// For how long an answer is waited for: longer than a server that works takes to give up itself.
    answer_timeout: Cell<Duration>,
}

/// What comes unasked.
#[derive(Default)]
struct ServerSignals {
    /// Whether a notification came.
    is_notified: AtomicBool,
    /// Why the connection ended.
    end: OnceLock<String>,
}

impl Drop for ConnectionDriver {
    fn drop(&mut self) {
        if Handle::try_current().is_err() {
            self.flush();
        }
        if let Some(runtime) = self.runtime.take() {
            // Also where nothing may block.
            runtime.shutdown_background();
        }
    }
}

impl ServerSession {
    /// Connects to the first host that takes it: one that writes, unless this process only reads.
    pub(super) fn open(
        server: &PostgresServer,
        purpose: ConnectionPurpose,
    ) -> Result<Self, DbError> {
        let unusable = |why: &dyn std::fmt::Display| {
            DbError::from(unreachable(format!("{}: {why}", server.name())))
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|cause| unusable(&cause))?;
        let mut refused = Vec::new();
        for (at, config) in server.hosts() {
            let heard = Arc::new(ServerSignals::default());
            let config = match server.login(config) {
                Ok(config) => config,
                Err(cause) => return Err(unusable(&cause)),
            };
            let greeting = connect_to(server, &config, purpose, Arc::clone(&heard));
            // The time of the driver is that of a socket; a server may take it and then say nothing.
            match runtime.block_on(async { timeout(DB_CONNECT_TIME * 2, greeting).await }) {
                Ok(Ok(client)) => {
                    server.prefer_host(at);
                    let patience = Cell::new(DB_ANSWER_TIME);
                    let (runtime, prepared) = (Some(runtime), RefCell::default());
                    return Ok(Self {
                        driver: ConnectionDriver {
                            runtime,
                            prepared,
                            signals: heard,
                            answer_timeout: patience,
                        },
                        client,
                    });
                }
                Ok(Err(cause)) => refused.push(EngineError::from(cause).to_string()),
                Err(_) => refused.push("it does not answer".to_owned()),
            }
        }
        Err(unusable(&refused.join("; ")))
    }

    /// The one number that a query gives, in no transaction.
    pub(super) fn number(&self, sql: &str) -> Result<i64, DbError> {
        number(&self.driver.wait(self.client.simple_query(sql))?)
    }

    /// Runs statements, in no transaction.
    pub(super) fn batch(&self, sql: &str) -> Result<(), DbError> {
        self.driver.wait(self.client.batch_execute(sql))
    }

    /// Whether the server has not ended it, as far as that was noticed.
    pub(super) fn is_alive(&self) -> bool {
        self.driver.flush();
        self.driver.signals.end.get().is_none() && !self.client.is_closed()
    }
}

/// Connects to a host and says what holds for the session.
async fn connect_to(
    server: &PostgresServer,
    config: &tokio_postgres::Config,
    purpose: ConnectionPurpose,
    heard: Arc<ServerSignals>,
) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(server.tls()).await?;
    tokio::spawn(drive(connection, heard));
    client.batch_execute(&settings(purpose)).await?;
    let follows = purpose == ConnectionPurpose::Follow;
    // A server that follows another one has nobody who notifies: it is looked at now and then.
    if follows && !(server.is_read_only() && is_copy(&client).await?) {
        listen(server, &client).await?;
    }
    Ok(client)
}

/// What a server says that does not know notifications, or does not let this role have them.
const NO_NOTIFY_CODES: [&str; 3] = ["0A000", "42601", "42501"];

/// Asks for notifications. One that cannot give them is looked at now and then, as where one was lost.
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

/// Whether the server follows another one.
async fn is_copy(client: &tokio_postgres::Client) -> Result<bool, tokio_postgres::Error> {
    let found = client.simple_query("SELECT pg_is_in_recovery()").await?;
    let is = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"));
    Ok(found.iter().any(is))
}

/// What holds for a session, as statements. Every statement has its index; a plan that reads a whole
/// table is one that was made from numbers that are old.
fn settings(purpose: ConnectionPurpose) -> String {
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

/// Moves bytes between the socket and those who wait, and notes what comes unasked.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, heard: Arc<ServerSignals>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(_)) => heard.is_notified.store(true, Ordering::Release),
            Ok(_) => {}
            Err(cause) => {
                // The first reason counts; there is no second one.
                drop(heard.end.set(EngineError::from(cause).to_string()));
                return;
            }
        }
    }
}

impl ConnectionDriver {
    /// Waits for an answer of the server.
    pub(super) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DbError> {
        let runtime = self.runtime.as_ref().ok_or(DbError::Closed)?;
        let limit = self.answer_timeout.get();
        let Ok(answered) = runtime.block_on(async { timeout(limit, answer).await }) else {
            // What still comes belongs to nobody: the session is over.
            let why = format!("the server did not answer within {} s", limit.as_secs());
            drop(self.signals.end.set(why.clone()));
            return Err(unreachable(why).into());
        };
        answered.map_err(|cause| match self.signals.end.get() {
            Some(why) if cause.is_closed() => unreachable(why.clone()).into(),
            Some(_) | None => cause.into(),
        })
    }

    /// Lets statements of this connection take longer than others.
    pub(super) fn allow_time(&self, time: Duration) {
        self.answer_timeout.set(time);
    }

    /// Sends what is on its way and takes what came, without waiting for anything.
    pub(super) fn flush(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async {
                // One round asks the system, one reads and writes, one lets answers be noticed.
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
            });
        }
    }

    /// Whether a notification came since the last call.
    pub(super) fn take_notified(&self) -> bool {
        self.signals.is_notified.swap(false, Ordering::AcqRel)
    }

    /// The statement `sql`, prepared once.
    pub(super) fn prepared(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
    ) -> Result<Statement, DbError> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.wait(transaction.prepare(&numbered(sql)))?;
        let mut prepared = self.prepared.borrow_mut();
        if prepared.len() >= DB_STATEMENTS_MAX {
            prepared.clear();
        }
        prepared.insert(sql.into(), statement.clone());
        Ok(statement)
    }
}

/// The one number that a query gives.
pub(super) fn number(found: &[SimpleQueryMessage]) -> Result<i64, DbError> {
    let number = found.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0)?.parse().ok()
    });
    number.ok_or_else(|| DbError::Damaged {
        what: "table writer".to_owned(),
        why: "it does not have its one row".to_owned(),
    })
}

/// Runs `work` where it may block: on a thread of its own if this one drives async tasks.
pub(super) fn run_blocking<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if Handle::try_current().is_err() {
        return work();
    }
    let outcome = thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The statement with `$1` for `?1`.
fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut quoted = false;
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        quoted ^= c == '\'';
        let is_parameter = c == '?' && !quoted && rest.peek().is_some_and(char::is_ascii_digit);
        text.push(if is_parameter { '$' } else { c });
    }
    text
}

/// Runs statements that set a test's scene, each by itself.
#[cfg(test)]
pub(in crate::storage::database) fn run(
    server: &PostgresServer,
    purpose: ConnectionPurpose,
    sql: &str,
) -> Result<(), DbError> {
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
