//! The database: one handle, transactions as closures, no SQL outside.
//!
//! `statements` holds what is read and written, in SQL for any engine; `engine` is what it needs of
//! one; `sqlite` is the engine that there is.
//!
//! One thread owns the write connection and runs one closure as one transaction: it commits on
//! `Ok` and rolls back on `Err`. A few threads own a read connection each. Callers wait on
//! channels, so no async thread ever blocks. Other processes may write the same database; the
//! [`Follower`] notices.

mod engine;
mod follow;
mod lock;
mod sqlite;
mod statements;
mod threads;

use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::oneshot;

pub use engine::EngineError;
pub use follow::{Change, Follower, Pulse};
pub use lock::Lock;
pub use sqlite::copy::Snapshot;
pub use statements::accounts::AccountChange;
pub use statements::channels::NewChannel;
pub use statements::check::{Flaw, Inspection, Named};
pub use statements::collections::{Collection, CollectionHead, LostItem, NewCollection};
pub use statements::deliveries::{DeliveriesOf, Enqueued, NewDelivery, Outcome, Queue, Turn};
pub use statements::facts::Facts;
pub use statements::grants::{Code, Family, NewCode, NewFamily, RefreshToken};
pub use statements::import::{
    NewAgreement, NewApiKey, NewClient, NewLicense, NewProduct, NewUser, Put,
};
pub use statements::items::{NewItem, StoredItem, Written};
pub use statements::notifications::{NewNotification, Watcher, WatchersOf};
pub use statements::operator::{ListedKey, ListedUser};
pub use statements::orders::{LiveOrder, OrdersOf, Reported};
pub use statements::outbox::{NewMessage, OutboxCount, Sent};
pub use statements::purges::{Purge, PurgesWaiting};
pub use statements::queues::{FoundStream, LogRow, QueuedItem};
pub use statements::search::{IndexChange, Lookup};
pub use statements::sessions::{Session, SigningKey};
pub use statements::tokens::Token;
pub use statements::users::NewMember;
pub use statements::{ReadTx, WriteTx};

use crate::error::{Error, Kind, Result};
use sqlite::copy::{Standing, copy, latest, look};
use threads::Threads;

/// The name of the database in a data directory.
pub const DATABASE: &str = "wirephoto.db";

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The engine reports an error.
    #[error("database: {0}")]
    Engine(EngineError),
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
    /// Others work on the data directory in a way that does not allow this.
    #[error("{0}")]
    InUse(String),
    /// A copy of the database cannot be written.
    #[error("{0}")]
    File(String),
}

impl From<DbError> for Error {
    fn from(cause: DbError) -> Self {
        match &cause {
            DbError::Overloaded => {
                Self::overloaded("database_queue", "The service is busy").because(cause)
            }
            DbError::Closed => Self::new(Kind::Unavailable, "The service is busy").because(cause),
            DbError::Engine(engine) if engine.is_resource() => {
                Self::new(Kind::Unavailable, "The database cannot be used now").because(cause)
            }
            DbError::InUse(words) | DbError::File(words) => {
                Self::new(Kind::Unavailable, words.clone())
            }
            DbError::Engine(_) | DbError::Damaged { .. } | DbError::Schema(_) => {
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
    ///
    /// An older schema is brought up to date by whoever is alone with the directory: what runs
    /// there was made for the older one. Fails with [`DbError::Schema`] when a later version of the
    /// product made the schema, and leaves the database as it is; with [`DbError::InUse`] when
    /// somebody else works on the directory who must be alone, or must not be there.
    pub fn open(dir: &Path) -> Result<Self, DbError> {
        let path = dir.join(DATABASE);
        let mut lock = Lock::share(dir)?;
        // What is open stays open until the threads' connections are: whoever closes the last one removes
        // the log, and a full disk has no room for a new one.
        let (standing, looked) = look(&path)?;
        let first = match standing {
            Standing::New | Standing::Current => sqlite::migrate(&path)?,
            Standing::Older(found) => {
                drop(lock);
                let alone = Lock::alone(dir)?;
                tracing::warn!(
                    from = found,
                    to = latest()?,
                    "the schema of the database is brought up to date; earlier versions of \
                     wirephoto cannot use it then, and a backup from before is the way back"
                );
                let first = sqlite::migrate(&path)?;
                drop(alone);
                lock = Lock::share(dir)?;
                first
            }
        };
        let threads = Threads::start(&path, lock)?;
        drop((looked, first));
        Ok(Self { threads })
    }

    /// Copies the database in `dir`, of this schema or an earlier one, into a new file `to`, while
    /// others read and write it; `report` hears how many of how many pages are done. Gives the
    /// number of the schema.
    pub fn copy(dir: &Path, to: &Path, report: &mut dyn FnMut(u64, u64)) -> Result<u32, DbError> {
        copy(&dir.join(DATABASE), to, report)
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
