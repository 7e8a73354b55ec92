//! A bounded queue in front of the worker pool.
//!
//! Work is taken in order while a worker is free and the estimated memory of all work under way
//! stays within the budget; one piece alone may exceed it, and small pieces may pass a large one
//! that waits for memory. A full queue drops what nobody wants any more, then refuses at once. Work
//! belongs to the pool: whoever asked for it may leave.
//!
//! The workers are nice (class batch, niceness 5): a picture that is at hand should not wait for one
//! that is being made. A nice thread still keeps its core until its slice is over, one to three
//! milliseconds, so a render also gives way between its steps ([`yield_to_waiting`]). The idle class would
//! yield at once, but beside other busy programs a render in it never ends, and its request runs
//! into its time limit. When no worker took work for
//! [`RENDER_STALL`] while some waits, one more thread of ordinary priority takes it and rests three
//! times as long as it works.

use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rayon::{ThreadPool, ThreadPoolBuilder};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};

use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Error;
use crate::runtime::error::Result;
use crate::runtime::limits::{
    RENDER_BYPASS_MAX, RENDER_PAUSE_FACTOR, RENDER_STALL, RENDER_YIELD_INTERVAL, SWEEP_PART,
};
use crate::runtime::telemetry;

/// Memory that work on threads of its own takes together.
///
/// A share waits until it fits; one alone may exceed the budget. Who waits for more holds what it
/// has, so when all that is left waits, the first in line goes on.
pub struct MemoryBudget {
    state: Mutex<BudgetState>,
    freed: Condvar,
    bytes_max: u64,
}

#[derive(Default)]
struct BudgetState {
    bytes: u64,
    /// Shares whose work goes on.
    working: usize,
    /// The number of the next one that waits, and of the one that is first in line.
    next: u64,
    first: u64,
}

/// A part of [`MemoryBudget`]; it ends when this is dropped.
pub struct MemoryShare<'a> {
    memory: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self { state: Mutex::default(), freed: Condvar::new(), bytes_max }
    }

    /// Waits for `bytes`. Blocks.
    #[must_use]
    pub fn acquire(&self, bytes: u64) -> MemoryShare<'_> {
        self.wait(self.state.lock(), bytes);
        MemoryShare { memory: self, bytes }
    }

    /// Waits for its turn, then counts `bytes` and one that works.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, BudgetState>, bytes: u64) {
        let number = state.next;
        state.next += 1;
        while number != state.first
            || (state.working > 0 && state.bytes.saturating_add(bytes) > self.bytes_max)
        {
            self.freed.wait(&mut state);
        }
        state.first += 1;
        state.working += 1;
        state.bytes = state.bytes.saturating_add(bytes);
        drop(state);
        self.freed.notify_all();
    }
}

impl MemoryShare<'_> {
    /// Waits until there is room for `more` besides. Blocks.
    pub fn grow(&mut self, more: u64) {
        let mut state = self.memory.state.lock();
        state.working -= 1;
        self.memory.freed.notify_all();
        self.memory.wait(state, more);
        self.bytes = self.bytes.saturating_add(more);
    }
}

impl Drop for MemoryShare<'_> {
    fn drop(&mut self) {
        let mut state = self.memory.state.lock();
        state.working -= 1;
        state.bytes = state.bytes.saturating_sub(self.bytes);
        drop(state);
        self.memory.freed.notify_all();
    }
}

/// Runs `work(0)` … `work(count - 1)` on the threads of the pool that it is called from, or of a
/// common one outside; returns when all are done.
pub fn run_parallel(count: usize, work: &(dyn Fn(usize) + Sync)) {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    (0..count).into_par_iter().for_each(work);
}

type Work = Box<dyn FnOnce(&MemoryLease) + Send>;

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the render queue is full")]
pub struct QueueFull;

struct PoolJob {
    since: Stopwatch,
    memory_bytes: u64,
    is_wanted: Box<dyn Fn() -> bool + Send>,
    work: Work,
}

/// Where work is done.
#[derive(Clone, Copy, Debug)]
enum ThreadKind {
    Worker,
    /// By the thread for work that no worker gets to take.
    Overflow,
}

#[derive(Default)]
struct PoolState {
    waiting: VecDeque<PoolJob>,
    running: usize,
    memory_bytes: u64,
    /// How often in a row the piece at the front was overtaken.
    bypassed: usize,
    /// Pieces that run besides those of the workers.
    overflow_jobs: usize,
    /// Since when no worker took work.
    last_taken: Option<Stopwatch>,
    /// Refusals until a full queue is looked through again.
    refusals_since_sweep: usize,
}

impl PoolState {
    /// Drops what nobody wants any more. Looking through a queue of `waiting_max` takes time, so in
    /// a flood not every refusal does it.
    fn drop_abandoned(&mut self, waiting_max: usize) {
        if self.refusals_since_sweep > 0 {
            self.refusals_since_sweep -= 1;
            return;
        }
        self.waiting.retain(|job| (job.is_wanted)());
        if self.waiting.len() >= waiting_max {
            self.refusals_since_sweep = waiting_max / SWEEP_PART;
        }
    }
}

/// The memory that a piece of work under way counts for.
pub struct MemoryLease {
    shared: Arc<ComputeShared>,
    memory_bytes: AtomicU64,
}

impl MemoryLease {
    /// The work turned out to need only `memory_bytes`: what is left goes to others at once. More
    /// than it was queued with is never granted.
    pub fn shrink(&self, memory_bytes: u64) {
        let mut state = self.shared.state.lock();
        let held = self.memory_bytes.load(Ordering::Relaxed);
        let less = memory_bytes.min(held);
        self.memory_bytes.store(less, Ordering::Relaxed);
        state.memory_bytes = state.memory_bytes.saturating_sub(held - less);
        ComputeShared::dispatch_waiting(&self.shared, &mut state);
    }
}

struct ComputeShared {
    pool: ThreadPool,
    state: Mutex<PoolState>,
    workers: usize,
    waiting_max: usize,
    memory_bytes_max: u64,
}

/// The pool with its queue.
#[derive(Clone)]
pub struct ComputePool {
    shared: Arc<ComputeShared>,
}

impl ComputePool {
    /// A pool of `workers` threads, a queue of `waiting_max` and a memory budget in bytes.
    ///
    /// Fails when the system gives no threads.
    pub fn start(workers: usize, waiting_max: usize, memory_bytes_max: u64) -> Result<Self> {
        let workers = workers.max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|index| format!("render-{index}"))
            .start_handler(|_| lower_priority())
            .build()
            .map_err(Error::internal)?;
        let state = Mutex::new(PoolState::default());
        let shared = ComputeShared { pool, state, workers, waiting_max, memory_bytes_max };
        let compute = Self { shared: Arc::new(shared) };
        watch_for_stalls(&compute.shared)?;
        metrics::gauge!(telemetry::WORKERS)
            .set(f64::from(u32::try_from(workers).unwrap_or(u32::MAX)));
        compute.shared.report(&compute.shared.state.lock());
        Ok(compute)
    }

    /// Queues `work`, which is expected to take `memory_bytes` at its peak.
    ///
    /// Fails with [`QueueFull`] when as many pieces wait as may. A panic in `work` ends that piece
    /// alone.
    pub fn submit(
        &self,
        memory_bytes: u64,
        wanted: impl Fn() -> bool + Send + 'static,
        work: impl FnOnce(&MemoryLease) + Send + 'static,
    ) -> Result<(), QueueFull> {
        let mut state = self.shared.state.lock();
        if state.waiting.len() >= self.shared.waiting_max {
            state.drop_abandoned(self.shared.waiting_max);
        }
        if state.waiting.len() >= self.shared.waiting_max {
            return Err(QueueFull);
        }
        let (wanted, work) = (Box::new(wanted), Box::new(work));
        state.waiting.push_back(PoolJob {
            since: Stopwatch::start(),
            memory_bytes,
            is_wanted: wanted,
            work,
        });
        ComputeShared::dispatch_waiting(&self.shared, &mut state);
        Ok(())
    }
}

/// Niceness 5 in the terms of `thread_priority`, which go from 99 for -20 down to 0 for 19.
const NICE: u8 = 34;

/// Lets the thread that calls it, and those that it starts, yield to those that answer.
pub fn lower_priority() {
    let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    let thread = thread_priority::thread_native_id();
    let Ok(nice) = ThreadPriorityValue::try_from(NICE) else { return };
    let nice = ThreadPriority::Crossplatform(nice);
    if let Err(cause) = set_thread_priority_and_policy(thread, nice, batch) {
        tracing::warn!("a thread keeps its priority: {cause}");
    }
}

thread_local! {
    /// When this thread last gave way.
    static LAST_YIELD: Cell<Stopwatch> = Cell::new(Stopwatch::start());
}

/// Lets threads that wait for this core go first, once every [`RENDER_YIELD_INTERVAL`] at most. Work calls it
/// between its steps.
pub fn yield_to_waiting() {
    if LAST_YIELD.get().elapsed() >= RENDER_YIELD_INTERVAL {
        std::thread::yield_now();
        LAST_YIELD.set(Stopwatch::start());
    }
}

/// Starts the thread that takes work when the workers cannot.
fn watch_for_stalls(shared: &Arc<ComputeShared>) -> Result<()> {
    // A pool of one: what the work spreads stays on this thread.
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(|_| "render-stalled".to_owned())
        .build()
        .map_err(Error::internal)?;
    let shared = Arc::downgrade(shared);
    pool.spawn(move || run_stalled_jobs(&shared));
    Ok(())
}

fn run_stalled_jobs(shared: &Weak<ComputeShared>) {
    // Nothing ever comes through here: waiting for it is the rest.
    let (_kept, rest) = mpsc::channel::<()>();
    let mut pause = RENDER_STALL / 4;
    while rest.recv_timeout(pause).is_err() {
        let Some(shared) = shared.upgrade() else { return };
        pause = RENDER_STALL / 4;
        if let Some(run) = ComputeShared::take_stalled_job(&shared) {
            let watch = Stopwatch::start();
            run(ThreadKind::Overflow);
            pause = watch.elapsed() * RENDER_PAUSE_FACTOR;
        }
    }
}

impl ComputeShared {
    fn report(&self, state: &PoolState) {
        let gauge = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        metrics::gauge!(telemetry::QUEUE_DEPTH).set(gauge(state.waiting.len()));
        metrics::gauge!(telemetry::WORKERS_BUSY).set(gauge(state.running));
    }

    /// Hands waiting work to free workers.
    fn dispatch_waiting(shared: &Arc<Self>, state: &mut PoolState) {
        while state.running < shared.workers + state.overflow_jobs {
            let Some(run) = Self::take_next_job(shared, state) else { break };
            state.last_taken = Some(Stopwatch::start());
            shared.pool.spawn(move || run(ThreadKind::Worker));
        }
        shared.report(state);
    }

    /// Work that waits while no worker gets to take any.
    fn take_stalled_job(shared: &Arc<Self>) -> Option<impl FnOnce(ThreadKind) + use<>> {
        let mut state = shared.state.lock();
        let stalls = |since: Stopwatch| since.elapsed() >= RENDER_STALL;
        // Workers that are busy with long renders took none for a while either: the piece itself
        // must have waited.
        let waited = state.waiting.front().is_some_and(|job| stalls(job.since));
        if !waited || !state.last_taken.is_some_and(stalls) {
            return None;
        }
        let run = Self::take_next_job(shared, &mut state)?;
        state.overflow_jobs = 1;
        metrics::counter!(telemetry::RENDERS_STALLED).increment(1);
        Some(run)
    }

    /// The next work that fits into the memory, which counts as running from here on; what is given
    /// does it and says when it is done.
    fn take_next_job(
        shared: &Arc<Self>,
        state: &mut PoolState,
    ) -> Option<impl FnOnce(ThreadKind) + Send + 'static + use<>> {
        let fits = |job: &PoolJob| {
            state.running == 0
                || state.memory_bytes.saturating_add(job.memory_bytes) <= shared.memory_bytes_max
        };
        // What needs less memory may pass what needs more, but not for ever.
        let window = if state.bypassed < RENDER_BYPASS_MAX { state.waiting.len() } else { 1 };
        let index = state.waiting.iter().take(window).position(fits)?;
        state.bypassed = if index == 0 { 0 } else { state.bypassed + 1 };
        let PoolJob { memory_bytes, work, .. } = state.waiting.remove(index)?;
        state.running += 1;
        state.memory_bytes = state.memory_bytes.saturating_add(memory_bytes);
        let memory_bytes = AtomicU64::new(memory_bytes);
        let lease = MemoryLease { shared: Arc::clone(shared), memory_bytes };
        Some(move |place| {
            // The waiter learns of a panic because its slot is dropped unanswered.
            if catch_unwind(AssertUnwindSafe(|| work(&lease))).is_err() {
                tracing::error!("a render panicked");
            }
            let mut state = lease.shared.state.lock();
            state.running -= 1;
            match place {
                ThreadKind::Worker => {}
                ThreadKind::Overflow => state.overflow_jobs = 0,
            }
            let held = lease.memory_bytes.load(Ordering::Relaxed);
            state.memory_bytes = state.memory_bytes.saturating_sub(held);
            Self::dispatch_waiting(&lease.shared, &mut state);
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, sync::mpsc::RecvTimeoutError::Timeout as TIMEOUT, time::Duration};

    use super::*;

    /// Time in which what must wait would have gone on.
    const A_WHILE: Duration = Duration::from_millis(100);

    /// A pool whose single worker is busy until the sender is dropped.
    fn busy(waiting_max: usize, budget: u64) -> (ComputePool, mpsc::Sender<()>) {
        let compute = ComputePool::start(1, waiting_max, budget).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        let hold = move |_: &MemoryLease| {
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
            .submit(1, || true, move |_: &MemoryLease| done.send(()).expect("the test listens"))
            .expect("room");
        assert_eq!(compute.submit(1, || true, |_| ()), Err(QueueFull));
        drop(release);
        finished.recv().expect("the waiting work ran");
    }

    #[test]
    fn a_full_queue_drops_what_nobody_wants() {
        let (compute, release) = busy(1, 100);
        compute.submit(1, || false, |_| panic!("nobody wanted it")).expect("room");
        let (done, finished) = mpsc::channel();
        let work = move |_: &MemoryLease| done.send(()).expect("the test listens");
        compute.submit(1, || true, work).expect("room for what is wanted");
        drop(release);
        finished.recv().expect("ran");
    }

    #[test]
    fn small_work_passes_work_that_waits_for_memory() {
        let compute = ComputePool::start(2, 8, 100).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (said, order) = mpsc::channel();
        let (large, small) = (said.clone(), said);
        compute.submit(60, || true, move |_| assert!(held.recv().is_err())).expect("room");
        compute.submit(60, || true, move |_| large.send("large").expect("heard")).expect("room");
        compute.submit(10, || true, move |_| small.send("small").expect("heard")).expect("room");
        assert_eq!(order.recv(), Ok("small"));
        drop(release);
        assert_eq!(order.recv(), Ok("large"));
    }

    #[test]
    fn work_that_no_worker_gets_to_take_is_done_beside_them() {
        // The only worker hangs, as it does on a machine that is never idle.
        let (compute, release) = busy(1, 100);
        let (done, finished) = mpsc::channel();
        for n in 0..3 {
            let done = done.clone();
            let work = move |_: &MemoryLease| {
                run_parallel(2, &|_| ());
                done.send(n).expect("the test listens");
            };
            compute.submit(1, || true, work).expect("room");
            assert_eq!(finished.recv(), Ok(n));
        }
        drop(release);
        let work = move |_: &MemoryLease| done.send(7).expect("the test listens");
        compute.submit(1, || true, work).expect("room");
        assert_eq!(finished.recv(), Ok(7));
    }

    #[test]
    fn work_that_has_just_come_does_not_stall_because_a_long_piece_is_under_way() {
        let (compute, release) = busy(4, 100);
        let (done, finished) = mpsc::channel::<()>();
        assert!(finished.recv_timeout(RENDER_STALL).is_err(), "the worker is busy for long");
        compute.submit(1, || true, move |_| drop(done)).expect("room");
        let waited = compute.shared.state.lock().waiting.front().map(|job| job.since);
        let taken = ComputeShared::take_stalled_job(&compute.shared).is_some();
        // A machine that was asleep in between shows nothing.
        assert!(!taken || waited.is_none_or(|since| since.elapsed() >= RENDER_STALL));
        drop(release);
        assert!(finished.recv().is_err(), "the worker did it, or the thread beside it");
    }

    #[test]
    fn a_panic_ends_one_piece_of_work_alone() {
        let compute = ComputePool::start(1, 4, 100).expect("threads");
        compute.submit(1, || true, |_| panic!("on purpose")).expect("room");
        let (done, finished) = mpsc::channel();
        compute
            .submit(1, || true, move |_: &MemoryLease| done.send(7).expect("the test listens"))
            .expect("room");
        assert_eq!(finished.recv(), Ok(7));
    }

    #[test]
    fn work_beyond_the_memory_budget_runs_alone() {
        let compute = ComputePool::start(2, 8, 100).expect("threads");
        let running = Arc::new(Mutex::new((0, 0)));
        let (done, finished) = mpsc::channel();
        for _ in 0..6 {
            let (running, done) = (Arc::clone(&running), done.clone());
            let work = move |_: &MemoryLease| {
                let mut counts = running.lock();
                counts.0 += 1;
                counts.1 = counts.1.max(counts.0);
                drop(counts);
                std::thread::yield_now();
                running.lock().0 -= 1;
                done.send(()).expect("the test listens");
            };
            compute.submit(80, || true, work).expect("room");
        }
        (0..6).for_each(|_| finished.recv().expect("ran"));
        assert_eq!(running.lock().1, 1);
    }

    #[test]
    fn memory_that_turns_out_not_to_be_needed_goes_to_others() {
        let compute = ComputePool::start(2, 8, 100).expect("threads");
        let (go, held) = mpsc::channel::<()>();
        let (said, heard) = mpsc::channel();
        let (begun, begin) = mpsc::channel();
        let large = move |lease: &MemoryLease| {
            lease.shrink(200);
            begun.send(()).expect("the test listens");
            held.recv().expect("the test says when");
            lease.shrink(10);
            assert!(held.recv().is_err(), "the test lets go by dropping its end");
        };
        compute.submit(90, || true, large).expect("room");
        begin.recv().expect("the large one runs, with no more than it was queued with");
        compute.submit(80, || true, move |_| said.send(()).expect("heard")).expect("room");
        assert_eq!(heard.recv_timeout(A_WHILE), Err(TIMEOUT), "it waits for memory");
        go.send(()).expect("heard");
        heard.recv().expect("it runs beside the other");
    }

    #[test]
    fn shares_of_memory_wait_for_each_other_and_one_alone_may_exceed_it() {
        let memory = MemoryBudget::new(100);
        let alone = memory.acquire(500);
        drop(alone);
        let (said, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = memory.acquire(60);
            scope.spawn(|| {
                let second = memory.acquire(60);
                said.send(()).expect("heard");
                drop(second);
            });
            assert_eq!(heard.recv_timeout(A_WHILE), Err(TIMEOUT), "there is no room for both");
            drop(first);
            heard.recv().expect("now there is");
        });
        assert_eq!(memory.state.lock().bytes, 0);
    }

    #[test]
    fn shares_that_all_wait_for_more_do_not_wait_for_ever() {
        let memory = MemoryBudget::new(100);
        let beyond = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mut share = memory.acquire(30);
                        share.grow(90);
                        // It has more than there is, so all others wait.
                        assert_eq!(beyond.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(memory.state.lock().working, 1);
                        std::thread::yield_now();
                        beyond.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let state = memory.state.lock();
        assert_eq!((state.bytes, state.working), (0, 0));
    }

    #[test]
    fn shares_at_once_are_as_many_as_fit() {
        let memory = MemoryBudget::new(100);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        for _ in 0..50 {
            // Two fit: that both are there at once is waited for, and a third never comes.
            let both = Barrier::new(2);
            std::thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| {
                        let _share = memory.acquire(40);
                        let count = now.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(count, Ordering::SeqCst);
                        both.wait();
                        std::thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
        }
        assert_eq!(most.into_inner(), 2);
    }
}
