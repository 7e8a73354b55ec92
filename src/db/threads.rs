//! The threads that own the connections.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
};

use super::{DbError, ReadTx, WriteTx, sqlite::Connection};
use crate::limits::{DB_QUEUE_MAX, DB_READERS};

/// A read, given its transaction or the reason why there is none.
pub(super) type Read = Box<dyn FnOnce(Result<ReadTx<'_>, DbError>) + Send>;
type Write = Box<dyn FnOnce(&mut Connection) + Send>;

#[derive(Clone)]
pub(super) struct Threads {
    path: Arc<PathBuf>,
    reads: SyncSender<Read>,
    writes: SyncSender<Write>,
}

impl Threads {
    /// Opens the connections; the threads end when the last handle is dropped.
    pub(super) fn start(path: &Path) -> Result<Self, DbError> {
        let (reads, waiting) = mpsc::sync_channel::<Read>(DB_QUEUE_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for index in 0..DB_READERS {
            let connection = Connection::open(path)?;
            let waiting = Arc::clone(&waiting);
            spawn(&format!("db-read-{index}"), move || read_loop(&connection, &waiting))?;
        }
        let (writes, waiting) = mpsc::sync_channel::<Write>(DB_QUEUE_MAX);
        let mut connection = Connection::open(path)?;
        spawn("db-write", move || {
            for write in waiting {
                write(&mut connection);
            }
        })?;
        Ok(Self { path: Arc::new(path.to_owned()), reads, writes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn submit_read(&self, read: Read) -> Result<(), DbError> {
        self.reads.try_send(read).map_err(|refused| match refused {
            TrySendError::Full(_) => DbError::Overloaded,
            TrySendError::Disconnected(_) => DbError::Closed,
        })
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
        self.writes.send(job).map_err(|_| DbError::Closed)?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), DbError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|cause| DbError::Schema(format!("thread {name}: {cause}")))
}

fn read_loop(connection: &Connection, waiting: &Mutex<Receiver<Read>>) {
    loop {
        // A panic in a read ends its thread, not the queue: the receiver is whole.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next else { return };
        connection.read(read);
    }
}
