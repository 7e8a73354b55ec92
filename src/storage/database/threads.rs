//! Runs the threads that own the connections, with a bounded queue for each kind of work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::engine::{ConnectionPurpose, DatabaseEngine, EngineConnection, Read, WriteMode};
use super::error::{DbError, DbResult};
use super::lock::DirectoryLock;
use super::transactions::WriteTx;
use crate::runtime::clock::Stopwatch;
use crate::runtime::limits::SEARCH_QUEUE_MAX;
use crate::runtime::telemetry;
use crate::storage::secrets::Keyring;

/// Database calls that may wait for a reader thread.
const DB_QUEUE_MAX: usize = 1024;
/// Urgent writes that may wait, and that are done before one of the others: heartbeats, of which a process
/// has one at a time.
const DB_URGENT_WRITES_MAX: usize = 8;
/// Reader threads; each has a read connection.
const DB_READERS: usize = 2;
/// Search threads; each has a connection. Searches compute more than they wait.
const DB_SEARCHERS: usize = 2;
/// Maximum wait for all connections of a kind to open.
const OPEN_MAX: Duration = Duration::from_secs(2);
/// A write, called with the connection on which it opens its transaction.
pub(super) type Write = Box<dyn FnOnce(&mut dyn EngineConnection) + Send>;

/// A unit of work in the queue of its threads.
struct QueuedWork<T> {
    work: T,
    /// The kind of work and the time since it was queued; `None` for a wake-up.
    queued: Option<(&'static str, Stopwatch)>,
}

impl<T> QueuedWork<T> {
    fn new(kind: &'static str, work: T) -> Self {
        Self { work, queued: Some((kind, Stopwatch::start())) }
    }

    /// Removes the work from its queue and records the time for which it waited.
    fn dequeue(self) -> T {
        if let Some((kind, since)) = self.queued {
            let seconds = since.elapsed().as_secs_f64();
            metrics::histogram!(telemetry::DATABASE_WAIT_SECONDS, "kind" => kind).record(seconds);
        }
        self.work
    }
}

#[derive(Clone)]
pub(super) struct DatabaseThreads {
    shared: Arc<ThreadsShared>,
}

struct ThreadsShared {
    engine: Arc<dyn DatabaseEngine>,
    /// `None` once the last handle is dropped.
    queues: Option<WorkQueues>,
    threads: Vec<JoinHandle<()>>,
    /// Released when all connections are closed. A server's database has its own locks.
    _lock: Option<DirectoryLock>,
}

struct WorkQueues {
    reads: SyncSender<QueuedWork<Read>>,
    searches: SyncSender<QueuedWork<Read>>,
    writes: SyncSender<QueuedWork<Write>>,
    /// Urgent writes, which run before the others.
    urgent: SyncSender<QueuedWork<Write>>,
    /// `None` if claims are writes.
    claims: Option<SyncSender<QueuedWork<Write>>>,
}

impl Drop for ThreadsShared {
    /// Ends the threads and waits for them, because the last connection to close folds the write-ahead log
    /// into the database.
    fn drop(&mut self) {
        // The threads end when the senders of their queues are dropped.
        self.queues = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed its connection too.
            drop(thread.join());
        }
    }
}

impl DatabaseThreads {
    /// Opens the connections. The threads end with the last handle, which also releases the lock of the data
    /// directory.
    pub(super) fn start(
        engine: Arc<dyn DatabaseEngine>,
        lock: Option<DirectoryLock>,
    ) -> DbResult<Self> {
        let mut threads = Vec::with_capacity(DB_READERS + DB_SEARCHERS + 2);
        let (reads, queue) = mpsc::sync_channel(DB_QUEUE_MAX);
        threads.extend(readers(&engine, "db-read", DB_READERS, queue)?);
        let (searches, queue) = mpsc::sync_channel(SEARCH_QUEUE_MAX);
        threads.extend(readers(&engine, "db-search", DB_SEARCHERS, queue)?);
        let (writes, queue) = mpsc::sync_channel(DB_QUEUE_MAX);
        let (urgent, urgent_queue) = mpsc::sync_channel(DB_URGENT_WRITES_MAX);
        let connection = Arc::clone(&engine).open(ConnectionPurpose::Write)?;
        threads.push(writer("db-write", connection, queue, Some(urgent_queue))?);
        // Claims run concurrently with writes there, so they need their own connection and thread.
        let claims = if engine.is_remote() {
            let (claims, queue) = mpsc::sync_channel(DB_QUEUE_MAX);
            let connection = Arc::clone(&engine).open(ConnectionPurpose::Claim)?;
            threads.push(writer("db-claim", connection, queue, None)?);
            Some(claims)
        } else {
            None
        };
        let queues = Some(WorkQueues { reads, searches, writes, urgent, claims });
        Ok(Self { shared: Arc::new(ThreadsShared { engine, queues, threads, _lock: lock }) })
    }

    pub(super) fn engine(&self) -> &Arc<dyn DatabaseEngine> {
        &self.shared.engine
    }

    pub(super) fn submit_read(&self, read: Read) -> DbResult<()> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.reads, QueuedWork::new("read", read))
    }

    /// Opens the connection of each read and search thread by running work on it. Errors are reported to the
    /// first caller that uses the connection.
    pub(super) fn open_readers(&self) {
        run_on_each(DB_READERS, &|read| self.submit_read(read));
        run_on_each(DB_SEARCHERS, &|read| self.submit_search(read));
    }

    /// Queues a search. Fails at once if the queue is full.
    pub(super) fn submit_search(&self, search: Read) -> DbResult<()> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.searches, QueuedWork::new("search", search))
    }

    /// Queues a write. Fails at once if the queue is full.
    pub(super) fn submit_write(&self, write: Write) -> DbResult<()> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        submit(&queues.writes, QueuedWork::new("write", write))
    }

    /// Queues a claim. Fails at once if the queue is full.
    pub(super) fn submit_claim(&self, claim: Write) -> DbResult<()> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        // SQLite has one writer at a time, so claims queue with the writes there.
        let claims = queues.claims.as_ref().unwrap_or(&queues.writes);
        submit(claims, QueuedWork::new("claim", claim))
    }

    /// Runs `write` after all queued ones. Also returns the last row of the item log that it wrote; 0 if there
    /// is none.
    pub(super) fn write<T: Send + 'static>(
        &self,
        mode: WriteMode,
        keys: Keyring,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<(T, i64)> {
        self.run(move |connection| connection.write(mode, &keys, write))
    }

    /// Runs `write` as [`DatabaseThreads::write`] does, but before all queued ones.
    pub(super) fn write_urgent<T: Send + 'static>(
        &self,
        keys: Keyring,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<(T, i64)> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit_urgent(Box::new(move |connection| {
            drop(sender.send(connection.write(WriteMode::Normal, &keys, write)));
        }))?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }

    fn submit_urgent(&self, write: Write) -> DbResult<()> {
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        queues.urgent.send(QueuedWork::new("write", write)).map_err(|_| DbError::Closed)?;
        // Wakes an idle thread. A full queue means that the thread is busy and checks the urgent writes
        // itself.
        let wake: Write = Box::new(|_| {});
        drop(queues.writes.try_send(QueuedWork { work: wake, queued: None }));
        Ok(())
    }

    /// Empties the write-ahead log, if there is one and no connection reads from it. Otherwise it is removed
    /// when the last connection closes.
    pub(super) fn checkpoint(&self) {
        if let Err(cause) = self.run(|connection| connection.checkpoint()) {
            tracing::warn!(
                "database: checkpoint failed; the write-ahead log may contain unencrypted secrets \
                 until the last process closes the database: {cause}"
            );
        }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn EngineConnection) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let job: Write = Box::new(move |connection| drop(sender.send(work(connection))));
        let queues = self.shared.queues.as_ref().ok_or(DbError::Closed)?;
        // Blocks while the queue is full, because the callers are threads rather than async tasks.
        queues.writes.send(QueuedWork::new("write", job)).map_err(|_| DbError::Closed)?;
        receiver.recv().map_err(|_| DbError::Closed)?
    }
}

fn submit<T>(queue: &SyncSender<T>, job: T) -> DbResult<()> {
    queue.try_send(job).map_err(|refused| match refused {
        TrySendError::Full(_) => DbError::Overloaded,
        TrySendError::Disconnected(_) => DbError::Closed,
    })
}

/// Starts a thread that runs one transaction after the other on its connection. Urgent ones run first.
fn writer(
    name: &str,
    mut connection: Box<dyn EngineConnection>,
    queue: Receiver<QueuedWork<Write>>,
    urgent: Option<Receiver<QueuedWork<Write>>>,
) -> DbResult<JoinHandle<()>> {
    spawn(name, move || {
        for write in queue {
            // Bounded, so that urgent writes cannot starve the others.
            let urgent_writes =
                urgent.iter().flat_map(Receiver::try_iter).take(DB_URGENT_WRITES_MAX);
            for write in urgent_writes.chain([write]) {
                let write = write.dequeue();
                // A transaction that panics rolls back, and the thread continues with the next one.
                let outcome = catch_unwind(AssertUnwindSafe(|| write(&mut *connection)));
                if outcome.is_err() {
                    tracing::error!("a database transaction panicked");
                }
            }
        }
    })
}

/// Starts `count` threads that run reads from one queue, each on its own connection.
fn readers(
    engine: &Arc<dyn DatabaseEngine>,
    name: &str,
    count: usize,
    queue: Receiver<QueuedWork<Read>>,
) -> DbResult<Vec<JoinHandle<()>>> {
    let queue = Arc::new(Mutex::new(queue));
    let mut threads = Vec::with_capacity(count);
    for index in 0..count {
        let connection = Arc::clone(engine).open(ConnectionPurpose::Read)?;
        let queue = Arc::clone(&queue);
        threads.push(spawn(&format!("{name}-{index}"), move || read_loop(connection, &queue))?);
    }
    Ok(threads)
}

/// Runs an empty read on each of the `count` threads behind `submit`. Waits for [`OPEN_MAX`] per thread at
/// most.
fn run_on_each(count: usize, submit: &dyn Fn(Read) -> DbResult<()>) {
    // Each job blocks its thread until all threads have one, because one thread could otherwise run several
    // jobs.
    let arrived = Arc::new(AtomicUsize::new(0));
    let (done, all) = mpsc::sync_channel(count);
    for _ in 0..count {
        let arrived = Arc::clone(&arrived);
        let done = done.clone();
        let submitted = submit(Box::new(move |_| {
            arrived.fetch_add(1, Ordering::SeqCst);
            let since = Stopwatch::start();
            while arrived.load(Ordering::SeqCst) < count && since.elapsed() < OPEN_MAX {
                thread::park_timeout(Duration::from_millis(1));
            }
            done.send(()).ok();
        }));
        if submitted.is_err() {
            return;
        }
    }
    for _ in 0..count {
        // A connection that is still not open then is opened at its first use.
        all.recv_timeout(OPEN_MAX).ok();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> DbResult<JoinHandle<()>> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|cause| DbError::Schema(format!("thread {name}: {cause}")))
}

fn read_loop(
    mut connection: Box<dyn EngineConnection>,
    queue: &Mutex<Receiver<QueuedWork<Read>>>,
) {
    loop {
        // A thread that panicked while it waited leaves an intact receiver.
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(read) = next.map(QueuedWork::dequeue) else { return };
        if catch_unwind(AssertUnwindSafe(|| connection.read(read))).is_err() {
            tracing::error!("a database read panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::sqlite::DatabaseFile;

    #[test]
    fn what_others_wait_for_is_written_before_what_waits() {
        let dir = tempfile::tempdir().expect("folder");
        let file = DatabaseFile { path: dir.path().join("some.db"), only_reads: false };
        let threads = DatabaseThreads::start(Arc::new(file), None).expect("started");
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| -> Write {
            let order = Arc::clone(&order);
            Box::new(move |_| order.lock().expect("whole").push(what))
        };
        let (jobs, again) = ((note("one"), note("two"), note("beat")), threads.clone());
        let busy: Write = Box::new(move |_| {
            let (one, two, beat) = jobs;
            again.submit_write(one).expect("room");
            again.submit_write(two).expect("room");
            again.submit_urgent(beat).expect("room");
        });
        threads.submit_write(busy).expect("room");
        while order.lock().expect("whole").len() < 3 {
            thread::yield_now();
        }
        assert_eq!(*order.lock().expect("whole"), ["beat", "one", "two"]);
    }
}
