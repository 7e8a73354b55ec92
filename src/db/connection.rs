//! A connection to whichever engine holds the database.

use std::{path::PathBuf, sync::Arc};

use super::engine::Engine;
use super::statements::WriteTx;
use super::threads::Read;
use super::{DbError, postgres, sqlite};

/// Where the database is.
#[derive(Clone)]
pub(super) enum Place {
    /// SQLite's file.
    File(PathBuf),
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

    /// Runs `write` as one transaction.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        match self {
            Self::Sqlite(connection) => connection.write(write),
            Self::Postgres(connection) => connection.write(write),
        }
    }

    /// Runs `write` in a database whose archive may live elsewhere.
    pub(super) fn write_anyway<T>(
        &mut self,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        match self {
            Self::Sqlite(connection) => connection.write_anyway(write),
            // Archives do not move away from it.
            Self::Postgres(connection) => connection.write(write),
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
