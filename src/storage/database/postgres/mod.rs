//! PostgreSQL behind the database handle: connections that come back, one writer among all nodes,
//! driver, schema, and what only PostgreSQL does its way.
//!
//! **Writing.** Whoever writes holds the one row of the table `writer` until its transaction ends, so
//! that transactions of all nodes come one after the other, as in SQLite, and numbers of the logs
//! become visible in their order. Its statements then see what the last holder committed (`READ
//! COMMITTED`). Reading waits for nobody: it sees one state (`REPEATABLE READ`). With the turn comes the number
//! of the schema: who was made for another one writes nothing.
//!
//! **Taking up what waits.** A claim ([`Connection::claim`]) has a connection of its own and does not take the
//! writer's turn: it raises no version, gives out no number of a log, and tells nobody. It takes rows of a queue
//! by `FOR UPDATE SKIP LOCKED`, so claims of all nodes go on beside each other and beside one that
//! writes, and no two get the same row.
//!
//! - *The life lasts.* Before it takes anything it locks the row of its own life (`FOR KEY SHARE`), which a beat
//!   may change and nobody may remove. Whoever ends that life waits, and frees then what the claim took; who
//!   came first leaves the claim no row to lock, and it takes nothing. So nothing is `sending` in the
//!   name of a life that is over.
//! - *No deadlock.* A claim waits for nobody: rows that somebody holds are passed over, those of queues and that
//!   of its life. The one who looks for what a lost answer left behind (`free_lost_messages`) does wait, for the
//!   row of its own life and then for messages; the writer takes them in the same order, first removing lives and
//!   then freeing what they had, and nothing that changes messages before locks a life that others see.
//! - *Another schema.* A claim does not look at its number: whoever changes it ends all lives ([`lives`]), and so
//!   there is none that a claim could hold.
//! - *A node that hangs* in the middle of a claim is cut off long before it is taken for dead
//!   (`DB_TURN_IDLE_MS`), and so is one whose machine is gone.
//!
//! Deliveries are claimed by whoever has the turn: how many of a channel and of an organization are under way
//! is counted over all rows, and must not change meanwhile.
//!
//! **Noticing.** A transaction that wrote something raises `writer.version` and notifies. Who follows
//! listens, and asks for the version when it heard something and now and then without that, so
//! that a notification that was lost costs a moment and no more.
//!
//! **Connections.** Each belongs to one thread, which drives its socket while it waits for an answer.
//! One that broke is made again with the next use, with rests in between that grow; meanwhile callers
//! are told that the database cannot be used now. Whether a transaction was committed whose answer was
//! lost, nobody knows: it is told as a failure.

mod client;
mod facts;
mod lives;
mod migrations;
mod server;
mod session;
mod tls;
#[cfg(test)]
mod upgrade_tests;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio_postgres::{IsolationLevel, SimpleQueryMessage, Transaction};

pub(super) use client::{Client, FromColumn, Row};
#[cfg(test)]
pub(super) use migrations::run;
pub(super) use migrations::{look, migrate};
pub use server::Postgres;
pub(super) use server::Server;

use super::connection::Purpose;
use super::engine::Engine;
use super::threads::Read;
use super::transactions::{ClaimTx, ReadTx, WriteTx};
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::{DB_RETRY_FIRST, DB_RETRY_MAX};
use crate::storage::database::error::DbError;
use session::{Desk, Session};

/// Takes the turn of the one who writes; the number is that of the schema by now.
const TAKE_TURN: &str = "SELECT schema FROM writer FOR UPDATE";
/// What the schema is, for one who takes no turn.
const SCHEMA: &str = "SELECT schema FROM writer";
/// Says that something was written, with the end of the transaction.
const TELL: &str = "UPDATE writer SET version = version + 1; SELECT pg_notify('wirephoto', '')";
/// What was written so far.
const VERSION: &str = "SELECT version FROM writer";

/// A connection that is made when it is used, and made again when it broke.
pub(super) struct Connection {
    server: Arc<Server>,
    purpose: Purpose,
    session: Option<Box<Session>>,
    /// Why there is no session.
    lost: Option<Lost>,
    /// `writer.version` as it was last seen, and when.
    seen: Option<(Stopwatch, i64)>,
    /// Sessions that were made.
    sessions: i64,
}

/// A connection that could not be made.
struct Lost {
    since: Stopwatch,
    rest: Duration,
    why: String,
}

impl Connection {
    pub(super) fn new(server: Arc<Server>, purpose: Purpose) -> Self {
        Self { server, purpose, session: None, lost: None, seen: None, sessions: 0 }
    }

    /// The session, made anew where there is none that works.
    ///
    /// Fails at once while the last try is not long ago: those who wait are answered, and a server
    /// that starts is not besieged.
    fn session(&mut self) -> Result<&mut Session, DbError> {
        if self.session.as_ref().is_some_and(|session| !session.is_alive()) {
            self.session = None;
        }
        let Self { session, lost, seen, .. } = self;
        if session.is_none() {
            if let Some(lost) = lost
                && lost.since.elapsed() < lost.rest
            {
                return Err(Postgres::Unreachable(lost.why.clone()).into());
            }
            match Session::open(&self.server, self.purpose) {
                Ok(opened) => {
                    (*session, *lost, *seen) = (Some(Box::new(opened)), None, None);
                    self.sessions = self.sessions.wrapping_add(1);
                }
                Err(cause) => {
                    let rest = lost.as_ref().map_or(DB_RETRY_FIRST, |lost| lost.rest * 2);
                    let (since, why) = (Stopwatch::start(), cause.to_string());
                    *lost = Some(Lost { since, rest: rest.min(DB_RETRY_MAX), why });
                    return Err(cause);
                }
            }
        }
        session.as_deref_mut().ok_or(DbError::Closed)
    }

    /// Forgets a session that an error says is of no use any more.
    fn check<T>(&mut self, outcome: &Result<T, DbError>) {
        if let Err(DbError::Engine(super::EngineError::Postgres(cause))) = outcome
            && cause.ends_session()
        {
            self.session = None;
        }
    }

    /// Runs `read` with what it needs, or the reason why there is nothing.
    pub(super) fn read(&mut self, read: Read) {
        let session = match self.session() {
            Ok(session) => session,
            Err(cause) => return read(Err(cause)),
        };
        let Session { desk, client } = session;
        let failed = match desk.wait(snapshot(client)) {
            Ok(transaction) => {
                let wrote = Cell::new(false);
                let client = Client::new(desk, &transaction, &wrote);
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| read(Ok(ReadTx::new(client.engine())))));
                // Dropping a transaction ends it; nobody waits for the answer.
                drop(transaction);
                desk.settle();
                return outcome.unwrap_or_else(|panic| resume_unwind(panic));
            }
            Err(cause) => cause,
        };
        self.session = None;
        read(Err(failed));
    }

    /// Runs statements that only read.
    pub(super) fn look<T: Send>(
        &mut self,
        look: impl FnOnce(Engine<'_>) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        aside(|| {
            let Session { desk, client } = self.session()?;
            let transaction = desk.wait(snapshot(client))?;
            let wrote = Cell::new(false);
            let outcome = look(Client::new(desk, &transaction, &wrote).engine());
            drop(transaction);
            desk.settle();
            self.check(&outcome);
            outcome
        })
    }

    /// Runs `write` as one transaction, when those of other nodes and threads have ended.
    ///
    /// An error of the commit itself leaves open whether it was done. Fails with [`DbError::Schema`] when the
    /// schema is none of this version, since another one brought it up to date.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let outcome = self.write_once(write);
        self.check(&outcome);
        outcome
    }

    fn write_once<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.session()?;
        let Self { session: Some(session), server, .. } = self else {
            return Err(DbError::Closed);
        };
        let Session { desk, client } = session.as_mut();
        let transaction = desk.wait(latest(client))?;
        let wrote = Cell::new(false);
        let run = || -> Result<T, DbError> {
            turn(desk, &transaction, server)?;
            let outcome = write(&WriteTx::new(Client::new(desk, &transaction, &wrote).engine()))?;
            if wrote.get() {
                desk.wait(transaction.batch_execute(TELL))?;
            }
            Ok(outcome)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            // What wrote nothing has nothing to flush.
            Ok(Ok(outcome)) if wrote.get() => {
                desk.wait(transaction.commit())?;
                Ok(outcome)
            }
            ended => {
                // The turn is given back at once, whatever happened.
                drop(transaction);
                desk.settle();
                ended.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }

    /// Runs `claim` as one transaction, whoever writes or claims meanwhile.
    ///
    /// An error of the commit itself leaves open whether it was done.
    pub(super) fn claim<T>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let outcome = self.claim_once(claim);
        self.check(&outcome);
        outcome
    }

    fn claim_once<T>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let Session { desk, client } = self.session()?;
        let transaction = desk.wait(latest(client))?;
        let wrote = Cell::new(false);
        let run = || claim(&ClaimTx::new(Client::new(desk, &transaction, &wrote).engine()));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(outcome)) if wrote.get() => {
                desk.wait(transaction.commit())?;
                Ok(outcome)
            }
            ended => {
                // What it holds is given back at once.
                drop(transaction);
                desk.settle();
                ended.unwrap_or_else(|panic| resume_unwind(panic))
            }
        }
    }

    /// The number of what was written so far, as far as it is known here, with that of the session: another
    /// server that took over may have come to the same number by other writes.
    pub(super) fn data_version(&mut self) -> Result<i64, DbError> {
        aside(|| {
            let heard = self.session()?.desk.hears();
            if let Some((since, version)) = &self.seen
                && !heard
                && since.elapsed() < self.server.look()
            {
                return Ok(*version);
            }
            let Session { desk, client } = self.session()?;
            let found = desk.wait(client.simple_query(VERSION)).and_then(|found| number(&found));
            self.check(&found);
            let version = found?.wrapping_add(self.sessions << 40);
            self.seen = Some((Stopwatch::start(), version));
            Ok(version)
        })
    }
}

/// Begins to read one state.
fn snapshot(
    client: &mut tokio_postgres::Client,
) -> impl Future<Output = Result<Transaction<'_>, tokio_postgres::Error>> {
    let begin = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    begin.read_only(true).start()
}

/// Begins to write: each statement sees what was committed before it, whatever the server is set to.
fn latest(
    client: &mut tokio_postgres::Client,
) -> impl Future<Output = Result<Transaction<'_>, tokio_postgres::Error>> {
    client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start()
}

/// Waits for the turn to write.
///
/// Fails with [`DbError::Schema`] when the schema is none of this version.
fn turn(desk: &Desk, transaction: &Transaction<'_>, server: &Server) -> Result<(), DbError> {
    migrations::expect(server, number(&desk.wait(transaction.simple_query(TAKE_TURN))?)?)
}

/// The one number that a query gives.
fn number(found: &[SimpleQueryMessage]) -> Result<i64, DbError> {
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
fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    let outcome = thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}
