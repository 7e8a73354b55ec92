//! A connection to whichever engine holds the database.

use std::{path::PathBuf, sync::Arc};

use super::engine::Engine;
use super::error::DbError;
use super::threads::Read;
use super::transactions::{ClaimTx, WriteTx};
use super::{postgres, sqlite};
use crate::storage::audit::Event;

/// Where the database is.
#[derive(Clone)]
pub(super) enum Place {
    /// SQLite's file.
    File(PathBuf),
    /// The same, of which nothing is written.
    FileToRead(PathBuf),
    /// A database of a PostgreSQL server.
    Server(Arc<postgres::Server>),
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It takes up what waits, beside one that writes.
    Claim,
    /// It notices what others write.
    Follow,
}

/// A connection, which one thread owns.
pub(super) enum Connection {
    Sqlite(sqlite::Connection),
    Postgres(postgres::Connection),
}

impl Connection {
    /// Opens a connection. One to a server is made when it is first used, and again when it broke.
    pub(super) fn open(place: &Place, purpose: Purpose) -> Result<Self, DbError> {
        match place {
            Place::File(path) => {
                let connection = sqlite::Connection::open(path)?;
                if purpose == Purpose::Write {
                    connection.widen()?;
                }
                Ok(Self::Sqlite(connection))
            }
            Place::FileToRead(path) => Ok(Self::Sqlite(sqlite::Connection::open_to_read(path)?)),
            Place::Server(server) => {
                Ok(Self::Postgres(postgres::Connection::new(Arc::clone(server), purpose)))
            }
        }
    }

    /// Runs `read` against one state of the database.
    pub(super) fn read(&mut self, read: Read) {
        match self {
            Self::Sqlite(connection) => connection.read(read),
            Self::Postgres(connection) => connection.read(read),
        }
    }

    /// Runs `write` as one transaction. What it recorded in the audit log is logged once it is
    /// committed.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write = with_events(write);
        log_events(match self {
            Self::Sqlite(connection) => connection.write(write),
            Self::Postgres(connection) => connection.write(write),
        })
    }

    /// Runs `claim` as one transaction: as a write, or beside one where the engine can do that.
    pub(super) fn claim<T>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        match self {
            Self::Sqlite(connection) => connection.write(|tx| claim(&tx.as_claim())),
            Self::Postgres(connection) => connection.claim(claim),
        }
    }

    /// Runs `write` in a database whose archive may live elsewhere.
    pub(super) fn write_anyway<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write = with_events(write);
        log_events(match self {
            Self::Sqlite(connection) => connection.write_anyway(write),
            // Archives do not move away from it.
            Self::Postgres(connection) => connection.write(write),
        })
    }

    /// Runs `write` as one transaction after which nothing of what it changed is left in the file.
    /// A server has its own ways, such as `VACUUM`.
    pub(super) fn write_over<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let write = with_events(write);
        log_events(match self {
            Self::Sqlite(connection) => connection.write_over(write),
            Self::Postgres(connection) => connection.write(write),
        })
    }

    /// Folds the write-ahead log into the database and empties it.
    pub(super) fn empty_log(&self) -> Result<(), DbError> {
        match self {
            Self::Sqlite(connection) => connection.empty_log(),
            Self::Postgres(_) => Ok(()),
        }
    }

    /// A number that changes when another connection committed, and seldom without that; a few
    /// microseconds.
    pub(super) fn data_version(&mut self) -> Result<i64, DbError> {
        match self {
            Self::Sqlite(connection) => connection.data_version(),
            Self::Postgres(connection) => connection.data_version(),
        }
    }

    /// Runs statements that only read.
    pub(super) fn look<T: Send>(
        &mut self,
        look: impl FnOnce(Engine<'_>) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        match self {
            Self::Sqlite(connection) => look(connection.engine()),
            Self::Postgres(connection) => connection.look(look),
        }
    }
}

/// The transaction `write`, which also gives what it recorded in the audit log.
fn with_events<T>(
    write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
) -> impl FnOnce(&WriteTx<'_>) -> Result<(T, Vec<Event>), DbError> {
    |tx| write(tx).map(|outcome| (outcome, tx.take_events()))
}

/// Logs the events of a transaction that is committed.
fn log_events<T>(written: Result<(T, Vec<Event>), DbError>) -> Result<T, DbError> {
    let (outcome, events) = written?;
    events.iter().for_each(Event::log);
    Ok(outcome)
}
