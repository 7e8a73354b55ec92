//! The database: one handle, transactions as closures, no SQL outside `sqlite`.
//!
//! One thread owns the write connection and runs one closure as one transaction: it commits on
//! `Ok` and rolls back on `Err`. A few threads own a read connection each. Callers wait on
//! channels, so no async thread ever blocks. Other processes may write the same database; the
//! [`Follower`] notices.

mod sqlite;
mod threads;

use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::oneshot;

pub use sqlite::accounts::AccountChange;
pub use sqlite::channels::NewChannel;
pub use sqlite::collections::{Collection, CollectionHead, LostItem, NewCollection};
pub use sqlite::deliveries::{DeliveriesOf, Enqueued, NewDelivery, Outcome, Queue, Turn};
pub use sqlite::facts::Facts;
pub use sqlite::follow::{Change, Follower, Pulse};
pub use sqlite::grants::{Code, Family, NewCode, NewFamily, RefreshToken};
pub use sqlite::import::{
    NewAgreement, NewApiKey, NewClient, NewLicense, NewProduct, NewUser, Put,
};
pub use sqlite::items::{NewItem, StoredItem, Written};
pub use sqlite::notifications::{NewNotification, Watcher, WatchersOf};
pub use sqlite::operator::{ListedKey, ListedUser};
pub use sqlite::orders::{LiveOrder, OrdersOf, Reported};
pub use sqlite::outbox::{NewMessage, OutboxCount, Sent};
pub use sqlite::queues::{FoundStream, LogRow, QueuedItem};
pub use sqlite::search::{IndexChange, Lookup};
pub use sqlite::sessions::{Session, SigningKey};
pub use sqlite::tokens::Token;
pub use sqlite::users::NewMember;
pub use sqlite::{ReadTx, WriteTx};

use crate::error::{Error, Kind, Result};
use threads::Threads;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// SQLite reports an error.
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite_error::Sqlite),
    /// A row holds what this version did not write.
    #[error("database: {what} is damaged: {why}")]
    Damaged {
        /// Table and row.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Too many calls wait.
    #[error("too many database calls wait")]
    Overloaded,
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// The schema is of a later version of the product, or could not be brought up to date.
    #[error("database schema: {0}")]
    Schema(String),
}

/// The driver's error under a name of ours, so that only `sqlite` names the driver.
pub mod rusqlite_error {
    pub use super::sqlite::Sqlite;
}

impl From<DbError> for Error {
    fn from(cause: DbError) -> Self {
        match &cause {
            DbError::Overloaded | DbError::Closed => {
                Self::new(Kind::Unavailable, "The service is busy").because(cause)
            }
            DbError::Sqlite(sqlite) if sqlite.is_resource() => {
                Self::new(Kind::Unavailable, "The database cannot be used now").because(cause)
            }
            DbError::Sqlite(_) | DbError::Damaged { .. } | DbError::Schema(_) => {
                Self::internal(cause)
            }
        }
    }
}

/// The database of a data directory.
#[derive(Clone)]
pub struct Db {
    threads: Threads,
}

impl Db {
    /// Opens `wirephoto.db` in `dir`, makes it when missing and brings its schema up to date.
    pub fn open(dir: &Path) -> Result<Self, DbError> {
        let path = dir.join("wirephoto.db");
        sqlite::migrate(&path)?;
        Ok(Self { threads: Threads::start(&path)? })
    }

    /// Runs `read` on a reader thread against one consistent state.
    pub async fn read<T, F>(&self, read: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&tx))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `read` and blocks the calling thread; never called on an async thread.
    pub fn read_blocking<T, F>(&self, read: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.threads.submit_read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&tx))));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    /// Runs `search` on a thread for searches against one consistent state: searches may take
    /// long, and readers of single rows do not wait for them.
    pub async fn search<T, F>(&self, search: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_search(Box::new(move |outcome| {
            if sender.is_closed() {
                // Nobody waits for it any more.
                return;
            }
            drop(sender.send(outcome.and_then(|tx| search(&tx))));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Whether the index was made by this version of the product, and made to its end.
    pub fn index_is_current(&self) -> Result<bool, DbError> {
        self.read_blocking(|tx| tx.index_is_current())
    }

    /// Makes the index anew from the stored documents, whose days begin in `zone`; `report` hears
    /// how many of how many items are done. Others may write meanwhile. Blocks the calling thread.
    ///
    /// When it is cut short the index is found old by the next start. Fails when another process
    /// begins the same.
    pub fn reindex(
        &self,
        zone: &TimeZone,
        now: Timestamp,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<(), DbError> {
        let (run, last, count) = self.write_blocking(|tx| {
            Ok((tx.clear_index()?, tx.last_doc()?, tx.as_read().count_items()?))
        })?;
        let (mut after, mut done) = (0, 0);
        loop {
            let zone = zone.clone();
            let step =
                self.write_blocking(move |tx| tx.reindex_items(run, (after, last), &zone))?;
            let Some((reached, items)) = step else { break };
            after = reached;
            done += items;
            report(done, count);
        }
        self.write_blocking(move |tx| tx.end_reindex(run, now))
    }

    /// Runs `write` as one transaction; its outcome comes when it is on disk.
    pub async fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.threads.submit_write(Box::new(move |connection| {
            drop(sender.send(connection.write(write)));
        }))?;
        receiver.await.map_err(|_| DbError::Closed)?
    }

    /// Runs `write` as one transaction and blocks the calling thread until it is on disk; never
    /// called on an async thread.
    pub fn write_blocking<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        self.threads.write(write)
    }

    /// A connection of its own that tells whether something was written.
    pub fn pulse(&self) -> Result<Pulse, DbError> {
        Pulse::open(self.threads.path())
    }

    /// A connection of its own that tells what other processes and this one changed.
    pub fn follower(&self) -> Result<Follower, DbError> {
        Follower::open(self.threads.path())
    }
}
