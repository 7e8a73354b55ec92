//! Runs the threads that evaluate searches, with a bounded queue. There are only a few threads, so that
//! searches never use all cores and renders continue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::runtime::error::{Error, Result};
use crate::runtime::limits::SEARCH_QUEUE_MAX;

/// Threads that evaluate searches.
const SEARCH_THREADS: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// The thread pool. Dropping it ends the threads.
#[derive(Debug)]
pub(super) struct SearchPool {
    /// `None` once the pool is shutting down.
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl SearchPool {
    pub(super) fn start() -> Result<Self> {
        let (jobs, queue) = sync_channel::<Job>(SEARCH_QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(SEARCH_THREADS);
        for _ in 0..SEARCH_THREADS {
            let queue = Arc::clone(&queue);
            let thread = thread::Builder::new().name("search".to_owned());
            threads.push(thread.spawn(move || work(&queue)).map_err(Error::internal)?);
        }
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs `work` on a thread of the pool. Work whose caller has gone before it starts is skipped. During
    /// the work, the function passed to it returns whether the caller has gone.
    ///
    /// Fails if the queue is full. The inner result is an error if the work panicked.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<thread::Result<T>>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(queue_full)?;
        let submitted = jobs.try_send(Box::new(move || {
            if sender.is_closed() {
                return;
            }
            // A panic must not end the thread, because no thread would replace it.
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&|| sender.is_closed())));
            drop(sender.send(outcome));
        }));
        submitted.map_err(|_| queue_full())?;
        receiver.await.map_err(Error::internal)
    }
}

fn queue_full() -> Error {
    Error::overloaded("searches", "Too many searches are waiting")
}

impl Drop for SearchPool {
    fn drop(&mut self) {
        // The threads end when the sender of their queue is dropped.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        // A separate statement, or the lock would be held while the job runs.
        let job = queue.lock().recv();
        let Ok(job) = job else { return };
        job();
    }
}
