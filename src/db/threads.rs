//! The threads that own the connections.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread::{self, JoinHandle},
};

use super::{DbError, ReadTx, WriteTx, lock::Lock, sqlite::Connection};
use crate::limits::{DB_QUEUE_MAX, DB_READERS, DB_SEARCHERS, SEARCH_QUEUE_MAX};

/// A read, given its transaction or the reason why there is none.
pub(super) type Read = Box<dyn FnOnce(Result<ReadTx<'_>, DbError>) + Send>;
/// A write, given the connection that it opens its transaction on.
pub(super) type Write = Box<dyn FnOnce(&mut Connection) + Send>;

#[derive(Clone)]
pub(super) struct Threads {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// Empty once the last handle is dropped.
    queues: Option<Queues>,
    threads: Vec<JoinHandle<()>>,
    /// Let go when all connections are closed.
    _lock: Lock,
}

struct Queues {
    reads: SyncSender<Read>,
    searches: SyncSender<Read>,
    writes: SyncSender<Write>,
}

impl Drop for Shared {
    /// Ends the threads and waits for them: the last connection to close folds the write-ahead
    /// log into the database.
    fn drop(&mut self) {
        self.queues = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed its connection too.
            drop(thread.join());
        }
    }
}

impl Threads {
    /// Opens the connections; the threads end with the last handle, and so does the hold on the
    /// data directory.
    pub(super) fn start(path: &Path, lock: Lock) -> Result<Self, DbError> {
        let mut threads = Vec::with_capacity(DB_READERS + DB_SEARCHERS + 1);
        let (reads, waiting) = mpsc::sync_channel::<Read>(DB_QUEUE_MAX);
        threads.extend(readers(path, ("db-read", DB_READERS), waiting)?);
        let (searches, waiting) = mpsc::sync_channel::<Read>(SEARCH_QUEUE_MAX);
        threads.extend(readers(path, ("db-search", DB_SEARCHERS), waiting)?);
        let (writes, waiting) = mpsc::sync_channel::<Write>(DB_QUEUE_MAX);
        let mut connection = Connection::open(path)?;
        connection.widen()?;
        threads.push(spawn("db-write", move || {
            for write in waiting {
                // A transaction that panics rolls back; the thread goes on for the others.
                let outcome = catch_unwind(AssertUnwindSafe(|| write(&mut connection)));
                if outcome.is_err() {
                    tracing::error!("a database transaction panicked");
                }
            }
        })?);
        let queues = Some(Queues { reads, searches, writes });
        Ok(Self {
            shared: Arc::new(Shared { path: path.to_owned(), queues, threads, _lock: lock }),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    pub(super) fn submit_read(&self, read: Read) -> Result<(), DbError> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.reads, read)
    }

    /// Queues a search without waiting for its turn.
    pub(super) fn submit_search(&self, search: Read) -> Result<(), DbError> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.searches, search)
    }

    /// Queues a write without waiting for its turn.
    pub(super) fn submit_write(&self, write: Write) -> Result<(), DbError> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.writes, write)
    }

    pub(super) fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        let job: Write = Box::new(move |connection| {
            drop(sender.send(connection.write(write)));
        });
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        queues.writes.send(job).map_err(|_| DbError::Closed)?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }
}

fn submit<T>(queue: &SyncSender<T>, job: T) -> Result<(), DbError> {
    queue.try_send(job).map_err(|refused| match refused {
        TrySendError::Full(_) => DbError::Overloaded,
        TrySendError::Disconnected(_) => DbError::Closed,
    })
}

/// Starts `count` threads that take reads from one queue, each on a connection of its own.
fn readers(
    path: &Path,
    (name, count): (&str, usize),
    waiting: Receiver<Read>,
) -> Result<Vec<JoinHandle<()>>, DbError> {
    let waiting = Arc::new(Mutex::new(waiting));
    let start = |index| {
        let connection = Connection::open(path)?;
        let waiting = Arc::clone(&waiting);
        spawn(&format!("{name}-{index}"), move || read_loop(&connection, &waiting))
    };
    (0..count).map(start).collect()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DbError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|cause| DbError::Schema(format!("thread {name}: {cause}")))
}

fn read_loop(connection: &Connection, waiting: &Mutex<Receiver<Read>>) {
    loop {
        // A thread that panicked while it waited leaves a receiver that is whole.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else { return };
        if catch_unwind(AssertUnwindSafe(|| connection.read(read))).is_err() {
            tracing::error!("reading the database panicked");
        }
    }
}
