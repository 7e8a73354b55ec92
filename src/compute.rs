//! A bounded queue in front of the worker pool.
//!
//! Work is taken in order while a worker is free and the estimated memory of all work under way
//! stays within the budget; one piece alone may exceed it, and small pieces may pass a large one
//! that waits for memory. A full queue drops what nobody wants any more, then refuses at once. Work
//! belongs to the pool: whoever asked for it may leave.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;
use crate::error::Result;
use crate::limits::BYPASS_MAX;
use crate::telemetry;

/// Runs `work(0)` … `work(count - 1)` on the threads of the pool that it is called from, or of a
/// common one outside; returns when all are done.
pub fn spread(count: usize, work: &(dyn Fn(usize) + Sync)) {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    (0..count).into_par_iter().for_each(work);
}

type Work = Box<dyn FnOnce() + Send>;

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the render queue is full")]
pub struct Full;

struct Job {
    memory_bytes: u64,
    wanted: Box<dyn Fn() -> bool + Send>,
    work: Work,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    running: usize,
    memory_bytes: u64,
    /// How often in a row the piece at the front was overtaken.
    bypassed: usize,
}

struct Shared {
    pool: ThreadPool,
    state: Mutex<State>,
    workers: usize,
    waiting_max: usize,
    memory_bytes_max: u64,
}

/// The pool with its queue.
#[derive(Clone)]
pub struct Compute {
    shared: Arc<Shared>,
}

impl Compute {
    /// A pool of `workers` threads, a queue of `waiting_max` and a memory budget in bytes.
    ///
    /// Fails when the system gives no threads.
    pub fn start(workers: usize, waiting_max: usize, memory_bytes_max: u64) -> Result<Self> {
        let workers = workers.max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|index| format!("render-{index}"))
            .build()
            .map_err(Error::internal)?;
        let state = Mutex::new(State::default());
        let shared = Shared { pool, state, workers, waiting_max, memory_bytes_max };
        let compute = Self { shared: Arc::new(shared) };
        metrics::gauge!(telemetry::WORKERS)
            .set(f64::from(u32::try_from(workers).unwrap_or(u32::MAX)));
        compute.shared.report(&compute.shared.lock());
        Ok(compute)
    }

    /// Queues `work`, which is expected to take `memory_bytes` at its peak.
    ///
    /// Fails with [`Full`] when as many pieces wait as may. A panic in `work` ends that piece
    /// alone.
    pub fn submit(
        &self,
        memory_bytes: u64,
        wanted: impl Fn() -> bool + Send + 'static,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Full> {
        let mut state = self.shared.lock();
        if state.waiting.len() >= self.shared.waiting_max {
            state.waiting.retain(|job| (job.wanted)());
        }
        if state.waiting.len() >= self.shared.waiting_max {
            return Err(Full);
        }
        let (wanted, work) = (Box::new(wanted), Box::new(work));
        state.waiting.push_back(Job { memory_bytes, wanted, work });
        Shared::pump(&self.shared, &mut state);
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain counters, whole at every unlock; a panic elsewhere cannot tear it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, state: &State) {
        let gauge = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        metrics::gauge!(telemetry::QUEUE_DEPTH).set(gauge(state.waiting.len()));
        metrics::gauge!(telemetry::WORKERS_BUSY).set(gauge(state.running));
    }

    /// Hands waiting work to free workers.
    fn pump(shared: &Arc<Self>, state: &mut State) {
        while state.running < shared.workers {
            let fits = |job: &Job| {
                state.running == 0
                    || state.memory_bytes.saturating_add(job.memory_bytes)
                        <= shared.memory_bytes_max
            };
            // What needs less memory may pass what needs more, but not for ever.
            let window = if state.bypassed < BYPASS_MAX { state.waiting.len() } else { 1 };
            let Some(index) = state.waiting.iter().take(window).position(fits) else { break };
            state.bypassed = if index == 0 { 0 } else { state.bypassed + 1 };
            let Some(Job { memory_bytes, work, .. }) = state.waiting.remove(index) else { break };
            state.running += 1;
            state.memory_bytes = state.memory_bytes.saturating_add(memory_bytes);
            let own = Arc::clone(shared);
            shared.pool.spawn(move || {
                // The waiter learns of a panic because its slot is dropped unanswered.
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    tracing::error!("a render panicked");
                }
                let mut state = own.lock();
                state.running -= 1;
                state.memory_bytes = state.memory_bytes.saturating_sub(memory_bytes);
                Self::pump(&own, &mut state);
            });
        }
        shared.report(state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A pool whose single worker is busy until the sender is dropped.
    fn busy(waiting_max: usize, budget: u64) -> (Compute, mpsc::Sender<()>) {
        let compute = Compute::start(1, waiting_max, budget).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        let hold = move || {
            started.send(()).expect("the test listens");
            assert!(held.recv().is_err(), "the test lets go by dropping its end");
        };
        compute.submit(1, || true, hold).expect("room");
        start.recv().expect("started");
        (compute, release)
    }

    #[test]
    fn a_full_queue_refuses_and_recovers() {
        let (compute, release) = busy(1, 100);
        let (done, finished) = mpsc::channel();
        compute
            .submit(1, || true, move || done.send(()).expect("the test listens"))
            .expect("room");
        assert_eq!(compute.submit(1, || true, || ()), Err(Full));
        drop(release);
        finished.recv().expect("the waiting work ran");
    }

    #[test]
    fn a_full_queue_drops_what_nobody_wants() {
        let (compute, release) = busy(1, 100);
        compute.submit(1, || false, || panic!("nobody wanted it")).expect("room");
        let (done, finished) = mpsc::channel();
        let work = move || done.send(()).expect("the test listens");
        compute.submit(1, || true, work).expect("room for what is wanted");
        drop(release);
        finished.recv().expect("ran");
    }

    #[test]
    fn small_work_passes_work_that_waits_for_memory() {
        let compute = Compute::start(2, 8, 100).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (said, order) = mpsc::channel();
        let (large, small) = (said.clone(), said);
        compute.submit(60, || true, move || assert!(held.recv().is_err())).expect("room");
        compute.submit(60, || true, move || large.send("large").expect("heard")).expect("room");
        compute.submit(10, || true, move || small.send("small").expect("heard")).expect("room");
        assert_eq!(order.recv(), Ok("small"));
        drop(release);
        assert_eq!(order.recv(), Ok("large"));
    }

    #[test]
    fn a_panic_ends_one_piece_of_work_alone() {
        let compute = Compute::start(1, 4, 100).expect("threads");
        compute.submit(1, || true, || panic!("on purpose")).expect("room");
        let (done, finished) = mpsc::channel();
        compute.submit(1, || true, move || done.send(7).expect("the test listens")).expect("room");
        assert_eq!(finished.recv(), Ok(7));
    }

    #[test]
    fn work_beyond_the_memory_budget_runs_alone() {
        let compute = Compute::start(2, 8, 100).expect("threads");
        let running = Arc::new(Mutex::new((0, 0)));
        let (done, finished) = mpsc::channel();
        for _ in 0..6 {
            let (running, done) = (Arc::clone(&running), done.clone());
            let work = move || {
                let mut counts = running.lock().expect("no panic");
                counts.0 += 1;
                counts.1 = counts.1.max(counts.0);
                drop(counts);
                std::thread::yield_now();
                running.lock().expect("no panic").0 -= 1;
                done.send(()).expect("the test listens");
            };
            compute.submit(80, || true, work).expect("room");
        }
        (0..6).for_each(|_| finished.recv().expect("ran"));
        assert_eq!(running.lock().expect("no panic").1, 1);
    }
}
