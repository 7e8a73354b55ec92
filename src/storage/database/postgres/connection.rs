//! Connects to a PostgreSQL server: establishes a connection at its first use, reconnects with exponential backoff, and
//! runs reads, writes and claims in transactions.
//!
//! The single row of the table `writer` serves as the write lock of the cluster, and has the *version*, a counter of
//! transactions that wrote rows. Followers, which bring caches and the search index up to date, read the logs when the
//! version has changed.

use std::{sync::Arc, time::Duration};

use super::error::{ends_session, unreachable};
use super::migrations;
use super::server::PostgresServer;
use super::session::{ServerSession, run_blocking};
use super::transaction::ServerTransaction;
use crate::runtime::clock::Stopwatch;
use crate::storage::database::engine::{
    ConnectionPurpose, DatabaseEngine, EngineConnection, Read, Work, WriteMode,
};
use crate::storage::database::error::{DbError, DbResult};

/// The first backoff after a failed attempt to connect; doubles with each failure.
const DB_RETRY_FIRST: Duration = Duration::from_millis(100);
/// Maximum backoff: a server that has recovered is in use again within this time.
const DB_RETRY_MAX: Duration = Duration::from_secs(2);
/// Raises the version and notifies followers, at the end of a transaction that wrote rows.
const RAISE_VERSION: &str =
    "UPDATE writer SET version = version + 1; SELECT pg_notify('wirephoto', '')";
/// Reads the version of the database.
const READ_VERSION: &str = "SELECT version FROM writer";

impl DatabaseEngine for PostgresServer {
    fn open(self: Arc<Self>, purpose: ConnectionPurpose) -> DbResult<Box<dyn EngineConnection>> {
        Ok(Box::new(ServerConnection {
            server: self,
            purpose,
            session: None,
            last_failure: None,
            last_version: None,
            sessions: 0,
        }))
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn hosts_without_tls(&self) -> Vec<String> {
        Self::hosts_in_clear_text(self)
    }
}

/// A connection that is established at its first use, and again after it broke.
struct ServerConnection {
    server: Arc<PostgresServer>,
    purpose: ConnectionPurpose,
    session: Option<Box<ServerSession>>,
    /// The last failed attempt to connect; `None` after a success.
    last_failure: Option<FailedAttempt>,
    /// The last result of `data_version`, and the time since it was read.
    last_version: Option<(Stopwatch, i64)>,
    /// Number of sessions opened so far.
    sessions: i64,
}

/// A failed attempt to connect.
struct FailedAttempt {
    since: Stopwatch,
    /// Time after which the next attempt is allowed.
    backoff: Duration,
    why: String,
}

impl ServerConnection {
    /// Returns the session, opened again if none works.
    fn session(&mut self) -> DbResult<&mut ServerSession> {
        if self.session.as_ref().is_none_or(|session| !session.is_alive()) {
            self.session = None;
            self.connect()?;
        }
        self.session.as_deref_mut().ok_or(DbError::Closed)
    }

    /// Opens a session.
    ///
    /// Fails at once during the backoff after a failed attempt: callers get their answer without waiting, and
    /// a server that is starting is not flooded with connections.
    fn connect(&mut self) -> DbResult<()> {
        let mut backoff = DB_RETRY_FIRST;
        if let Some(failure) = &self.last_failure {
            if failure.since.elapsed() < failure.backoff {
                return Err(unreachable(failure.why.clone()).into());
            }
            backoff = DB_RETRY_MAX.min(failure.backoff * 2);
        }
        match ServerSession::open(&self.server, self.purpose) {
            Ok(opened) => {
                self.session = Some(Box::new(opened));
                self.last_failure = None;
                // A different server may have answered, so the version is read again.
                self.last_version = None;
                self.sessions = self.sessions.wrapping_add(1);
                Ok(())
            }
            Err(cause) => {
                let since = Stopwatch::start();
                let why = cause.to_string();
                self.last_failure = Some(FailedAttempt { since, backoff, why });
                Err(cause)
            }
        }
    }

    /// Drops the session if the error makes it unusable.
    fn drop_if_unusable<T>(&mut self, outcome: &DbResult<T>) {
        if outcome.as_ref().is_err_and(ends_session) {
            self.session = None;
        }
    }

    /// Runs `work` in a write transaction and commits its changes.
    fn transact(
        &mut self,
        work: impl FnOnce(&ServerTransaction<'_>) -> DbResult<()>,
    ) -> DbResult<()> {
        let transaction = self.session().and_then(ServerTransaction::begin);
        let outcome = transaction.and_then(|tx| tx.run(work));
        self.drop_if_unusable(&outcome);
        outcome
    }
}

impl EngineConnection for ServerConnection {
    fn read(&mut self, read: Read) {
        let session = match self.session() {
            Ok(session) => session,
            Err(cause) => return read(Err(cause)),
        };
        let failed = match ServerTransaction::snapshot(session) {
            Ok(tx) => {
                let ended = tx.run(|tx| {
                    read(Ok(tx));
                    Ok(())
                });
                // The read has already reported its outcome to its caller.
                return drop(ended);
            }
            Err(cause) => cause,
        };
        // A session that cannot begin a transaction is useless to the next call too.
        self.session = None;
        read(Err(failed));
    }

    fn run_query(&mut self, work: Work<'_>) -> DbResult<()> {
        run_blocking(|| {
            let transaction = self.session().and_then(ServerTransaction::snapshot);
            let outcome = transaction.and_then(|tx| tx.run(|tx| work(tx)));
            self.drop_if_unusable(&outcome);
            outcome
        })
    }

    /// Fails with [`DbError::Schema`] if a different version of the software has changed the schema. The modes differ
    /// only for SQLite: an archive is never migrated away from a server, and a server removes deleted content itself.
    fn run_write(&mut self, _mode: WriteMode, write: Work<'_>) -> DbResult<()> {
        let server = Arc::clone(&self.server);
        self.transact(|tx| {
            migrations::expect_current(&server, tx.lock_schema()?)?;
            write(tx)?;
            // After a transaction without changes, followers would read the logs in vain.
            if tx.wrote.get() { tx.batch(RAISE_VERSION) } else { Ok(()) }
        })
    }

    fn run_claim(&mut self, claim: Work<'_>) -> DbResult<()> {
        // Without the write lock, so that claims run concurrently, and without a new version, because no follower reads
        // the queues.
        self.transact(|tx| claim(tx))
    }

    /// Returns the version, combined with the number of the session: a standby that became the primary may have
    /// reached the same version by other writes.
    fn data_version(&mut self) -> DbResult<i64> {
        run_blocking(|| {
            let is_notified = self.session()?.driver.take_notified();
            // Without a notification, the version is read again only after the poll interval.
            if let Some((since, version)) = &self.last_version
                && !is_notified
                && since.elapsed() < self.server.poll_interval
            {
                return Ok(*version);
            }
            let found = self.session()?.number(READ_VERSION);
            self.drop_if_unusable(&found);
            // 40 bits for the version are enough for a trillion writes.
            let version = found?.wrapping_add(self.sessions << 40);
            self.last_version = Some((Stopwatch::start(), version));
            Ok(version)
        })
    }
}
