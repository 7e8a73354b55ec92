//! Runs CPU-bound work, such as renders, on a worker pool behind a bounded queue.
//!
//! Jobs start in the order of a [`FairQueue`] while a worker is free and the estimated memory of all running
//! jobs stays within the budget. A single job may exceed the budget, and small jobs may overtake a large one
//! that waits for memory. While jobs of callers with credentials wait, anonymous ones leave a worker free for
//! them. A full queue first drops jobs whose requests were abandoned, then refuses new ones at once (load
//! shedding). A job belongs to the pool and outlives its request.
//!
//! The workers run at low priority (class batch, niceness 5), so that cache hits do not wait for renders. A
//! nice thread still keeps its core until its time slice ends, one to three milliseconds, so a render also
//! yields between its steps ([`yield_to_waiting`]). The idle class would yield at once, but next to other
//! busy programs a render in it never ends, and its request reaches its timeout. If no worker starts a job
//! for [`RENDER_STALL`] while some wait, one extra thread of normal priority runs them and pauses three times
//! as long as it works.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};

use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::{FairQueue, QueueFull, QueuePlaces, RequestClient};
use crate::runtime::telemetry;

/// Renders that may overtake one that waits for memory, so that small ones do not wait for a
/// large one and the large one does not starve.
const RENDER_BYPASS_MAX: usize = 64;
/// Time after which a waiting render that no worker claimed runs on an extra thread, because other
/// programs keep all cores busy.
const RENDER_STALL: std::time::Duration = std::time::Duration::from_secs(1);
/// Minimum interval between two yields of a render to other threads: far below the scheduler's time slice,
/// far above the cost of the call.
const RENDER_YIELD_INTERVAL: std::time::Duration = std::time::Duration::from_micros(200);
/// Ratio of the extra render thread's pauses to its work: its share is a quarter of a core.
const RENDER_PAUSE_FACTOR: u32 = 3;
/// A full render queue is swept for abandoned requests once per this fraction of its length in
/// refusals (64: every 1/64).
const SWEEP_PART: usize = 64;

/// Runs `work(0)` … `work(count - 1)` in parallel and returns when all are done.
///
/// Uses the pool of the calling thread, or the global pool outside of one.
pub fn run_parallel(count: usize, work: &(dyn Fn(usize) + Sync)) {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    (0..count).into_par_iter().for_each(work);
}

type Work = Box<dyn FnOnce(&MemoryLease) + Send>;

struct PoolJob {
    since: Stopwatch,
    memory_bytes: u64,
    is_wanted: Box<dyn Fn() -> bool + Send>,
    work: Work,
}

/// The kind of thread that runs a job.
#[derive(Clone, Copy, Debug)]
enum ThreadKind {
    Worker,
    /// The extra thread for jobs that no worker starts.
    Overflow,
}

struct PoolState {
    waiting: FairQueue<PoolJob>,
    running: usize,
    memory_bytes: u64,
    /// Number of times in a row that the job at the front was overtaken.
    bypassed: usize,
    /// Number of jobs on the overflow thread, 0 or 1.
    overflow_jobs: usize,
    /// Time since a worker last started a job.
    last_taken: Option<Stopwatch>,
    /// Refusals until the full queue is swept again.
    refusals_since_sweep: usize,
}

impl PoolState {
    fn new(places: QueuePlaces) -> Self {
        Self {
            waiting: FairQueue::new(places),
            running: 0,
            memory_bytes: 0,
            bypassed: 0,
            overflow_jobs: 0,
            last_taken: None,
            refusals_since_sweep: 0,
        }
    }

    /// Returns whether `job` fits into `memory_bytes_max` beside the running jobs.
    fn fits(&self, job: &PoolJob, memory_bytes_max: u64) -> bool {
        // A job that exceeds the budget runs alone, or it would never start (contract reliability-11).
        self.running == 0 || self.memory_bytes.saturating_add(job.memory_bytes) <= memory_bytes_max
    }

    /// Reserves a place for `client`. If the queue is full, drops jobs whose requests were abandoned.
    ///
    /// A sweep costs time in proportion to `waiting_max`, so under overload only some refusals trigger one.
    fn reserve(
        &mut self,
        client: Option<RequestClient>,
        waiting_max: usize,
    ) -> Result<(), QueueFull> {
        let refused = match self.waiting.reserve(client) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        if self.refusals_since_sweep > 0 {
            self.refusals_since_sweep -= 1;
            return Err(refused);
        }
        // Only a refusal pays for the sweep: workers skip abandoned jobs anyway.
        self.waiting.retain(|job| (job.is_wanted)());
        let reserved = self.waiting.reserve(client);
        if reserved.is_err() {
            self.refusals_since_sweep = waiting_max / SWEEP_PART;
        }
        reserved
    }
}

/// A place in the queue of a [`ComputePool`], released when it is dropped.
pub struct QueuePlace {
    shared: Arc<ComputeShared>,
    client: Option<RequestClient>,
    is_filled: bool,
}

impl QueuePlace {
    /// Queues `work` in this place, under the conditions of [`ComputePool::submit`].
    pub fn submit(
        mut self,
        memory_bytes: u64,
        is_wanted: impl Fn() -> bool + Send + 'static,
        work: impl FnOnce(&MemoryLease) + Send + 'static,
    ) {
        let is_wanted = Box::new(is_wanted);
        let work = Box::new(work);
        let job = PoolJob { since: Stopwatch::start(), memory_bytes, is_wanted, work };
        self.is_filled = true;
        let mut state = self.shared.state.lock();
        state.waiting.push(self.client, job);
        ComputeShared::dispatch_waiting(&self.shared, &mut state);
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if !self.is_filled {
            self.shared.state.lock().waiting.release(self.client);
        }
    }
}

/// The memory charged to a running job.
pub struct MemoryLease {
    shared: Arc<ComputeShared>,
    memory_bytes: AtomicU64,
}

impl MemoryLease {
    /// Reduces the charge to `memory_bytes`, so that other jobs can start at once. Never raises it.
    pub fn shrink(&self, memory_bytes: u64) {
        let mut state = self.shared.state.lock();
        // Relaxed suffices, here and at the end of the job: both hold the lock.
        let charged = self.memory_bytes.load(Ordering::Relaxed);
        let needed = memory_bytes.min(charged);
        self.memory_bytes.store(needed, Ordering::Relaxed);
        state.memory_bytes = state.memory_bytes.saturating_sub(charged - needed);
        ComputeShared::dispatch_waiting(&self.shared, &mut state);
    }
}

struct ComputeShared {
    pool: ThreadPool,
    state: Mutex<PoolState>,
    workers: usize,
    places: QueuePlaces,
    memory_bytes_max: u64,
}

/// A pool of worker threads with its queue; cheap to clone.
#[derive(Clone)]
pub struct ComputePool {
    shared: Arc<ComputeShared>,
}

impl ComputePool {
    /// Starts `workers` threads with a queue of `places` and a memory budget in bytes.
    ///
    /// Fails if the operating system cannot create the threads.
    pub fn start(workers: usize, places: QueuePlaces, memory_bytes_max: u64) -> Result<Self> {
        let workers = workers.max(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .thread_name(|index| format!("render-{index}"))
            .start_handler(|_| lower_priority())
            .build()
            .map_err(Error::internal)?;
        let state = Mutex::new(PoolState::new(places));
        let shared = ComputeShared { pool, state, workers, places, memory_bytes_max };
        let compute = Self { shared: Arc::new(shared) };
        watch_for_stalls(&compute.shared)?;
        metrics::gauge!(telemetry::WORKERS).set(gauge_value(workers));
        // The gauges exist from the start, not only after the first job.
        compute.shared.report(&compute.shared.state.lock());
        Ok(compute)
    }

    /// The number of worker threads.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// The places of the queue.
    pub fn places(&self) -> QueuePlaces {
        self.shared.places
    }

    /// Reserves a place in the queue for a job of `client`, which is `None` for the server itself.
    ///
    /// A full queue first drops jobs that are no longer wanted.
    pub fn reserve(&self, client: Option<RequestClient>) -> Result<QueuePlace, QueueFull> {
        self.shared.state.lock().reserve(client, self.shared.places.all)?;
        Ok(QueuePlace { shared: Arc::clone(&self.shared), client, is_filled: false })
    }

    /// Queues `work` of `client`, which is `None` for the server itself. The work is expected to need
    /// `memory_bytes` at its peak.
    ///
    /// A full queue drops jobs whose `is_wanted` returns false. Fails with [`QueueFull`] if it still has no
    /// place. A panic in `work` ends that job only.
    pub fn submit(
        &self,
        client: Option<RequestClient>,
        memory_bytes: u64,
        is_wanted: impl Fn() -> bool + Send + 'static,
        work: impl FnOnce(&MemoryLease) + Send + 'static,
    ) -> Result<(), QueueFull> {
        self.reserve(client)?.submit(memory_bytes, is_wanted, work);
        Ok(())
    }
}

/// Niceness 5 on the scale of `thread_priority`, which runs from 99 for -20 down to 0 for 19.
const NICE: u8 = 34;

/// Lowers the priority of the calling thread, and of threads that it starts, below the threads that serve
/// requests.
pub fn lower_priority() {
    let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    let thread = thread_priority::thread_native_id();
    let Ok(nice) = ThreadPriorityValue::try_from(NICE) else { return };
    let nice = ThreadPriority::Crossplatform(nice);
    // Not fatal: renders at normal priority delay cache hits, but they work.
    if let Err(cause) = set_thread_priority_and_policy(thread, nice, batch) {
        tracing::warn!("cannot lower the priority of a thread: {cause}");
    }
}

thread_local! {
    /// Time since this thread last yielded.
    static LAST_YIELD: Cell<Stopwatch> = Cell::new(Stopwatch::start());
}

/// Yields the core to waiting threads, at most once every [`RENDER_YIELD_INTERVAL`].
///
/// Renders call it between their steps.
pub fn yield_to_waiting() {
    if LAST_YIELD.get().elapsed() >= RENDER_YIELD_INTERVAL {
        std::thread::yield_now();
        LAST_YIELD.set(Stopwatch::start());
    }
}

/// Starts the extra thread, which runs jobs that the workers cannot start.
fn watch_for_stalls(shared: &Arc<ComputeShared>) -> Result<()> {
    // A pool with one thread: work that the job parallelizes stays on it.
    let pool = ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(|_| "render-stalled".to_owned())
        .build()
        .map_err(Error::internal)?;
    // A weak reference, so that this thread does not keep an unused pool alive.
    let shared = Arc::downgrade(shared);
    pool.spawn(move || run_stalled_jobs(&shared));
    Ok(())
}

fn run_stalled_jobs(shared: &Weak<ComputeShared>) {
    // Nothing is ever sent: the receive timeout serves as an interruptible sleep.
    let (_sender, timer) = mpsc::channel::<()>();
    let mut pause = RENDER_STALL / 4;
    while timer.recv_timeout(pause).is_err() {
        let Some(shared) = shared.upgrade() else { return };
        pause = RENDER_STALL / 4;
        if let Some(run) = ComputeShared::take_stalled_job(&shared) {
            let stopwatch = Stopwatch::start();
            run(ThreadKind::Overflow);
            // This thread has normal priority, so pauses keep it from delaying requests.
            pause = stopwatch.elapsed() * RENDER_PAUSE_FACTOR;
        }
    }
}

/// Converts a count into the value of a metric.
fn gauge_value(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

impl ComputeShared {
    fn report(&self, state: &PoolState) {
        metrics::gauge!(telemetry::QUEUE_DEPTH).set(gauge_value(state.waiting.len()));
        metrics::gauge!(telemetry::WORKERS_BUSY).set(gauge_value(state.running));
    }

    /// Starts waiting jobs on free workers.
    fn dispatch_waiting(shared: &Arc<Self>, state: &mut PoolState) {
        while state.running < shared.workers + state.overflow_jobs {
            let Some(run) = Self::take_next_job(shared, state) else { break };
            state.last_taken = Some(Stopwatch::start());
            shared.pool.spawn(move || run(ThreadKind::Worker));
        }
        shared.report(state);
    }

    /// Removes and returns the next job if it has waited too long and no worker starts any.
    fn take_stalled_job(shared: &Arc<Self>) -> Option<impl FnOnce(ThreadKind) + use<>> {
        let mut state = shared.state.lock();
        // Workers that are busy with long renders started nothing for a while either, so the job
        // itself must have waited.
        let first = state.waiting.iter().next();
        let has_waited = first.is_some_and(|job| job.since.elapsed() >= RENDER_STALL);
        let is_stalled = state.last_taken.is_some_and(|since| since.elapsed() >= RENDER_STALL);
        if !has_waited || !is_stalled {
            return None;
        }
        let run = Self::take_next_job(shared, &mut state)?;
        // Raises the limit of running jobs by one, so that this job does not use the slot of a worker.
        state.overflow_jobs = 1;
        metrics::counter!(telemetry::RENDERS_STALLED).increment(1);
        Some(run)
    }

    /// Removes the next job that fits into the memory, and counts it as running.
    ///
    /// The returned closure runs the job and then frees its slot and memory.
    fn take_next_job(
        shared: &Arc<Self>,
        state: &mut PoolState,
    ) -> Option<impl FnOnce(ThreadKind) + Send + 'static + use<>> {
        // A job that needs less memory may overtake one that needs more, but not forever.
        let window = if state.bypassed < RENDER_BYPASS_MAX { state.waiting.len() } else { 1 };
        // While callers with credentials wait for memory, anonymous jobs leave one worker to them.
        let known = state.waiting.known_len();
        let leaves_worker = known == 0 || state.running + 1 < shared.workers;
        let index = state.waiting.iter().take(window).enumerate().position(|(index, job)| {
            (index < known || leaves_worker) && state.fits(job, shared.memory_bytes_max)
        })?;
        state.bypassed = if index == 0 { 0 } else { state.bypassed + 1 };
        let PoolJob { memory_bytes, work, .. } = state.waiting.remove(index)?;
        state.running += 1;
        state.memory_bytes = state.memory_bytes.saturating_add(memory_bytes);
        let memory_bytes = AtomicU64::new(memory_bytes);
        let lease = MemoryLease { shared: Arc::clone(shared), memory_bytes };
        Some(move |kind| {
            // The waiter notices a panic because its channel is dropped without a result.
            if catch_unwind(AssertUnwindSafe(|| work(&lease))).is_err() {
                tracing::error!("a render panicked");
            }
            let mut state = lease.shared.state.lock();
            state.running -= 1;
            match kind {
                ThreadKind::Worker => {}
                ThreadKind::Overflow => state.overflow_jobs = 0,
            }
            // The job may have reduced its charge since it started.
            let charged = lease.memory_bytes.load(Ordering::Relaxed);
            state.memory_bytes = state.memory_bytes.saturating_sub(charged);
            Self::dispatch_waiting(&lease.shared, &mut state);
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::RecvTimeoutError::Timeout as TIMEOUT, time::Duration};

    use super::*;

    /// Time in which what must wait would have gone on.
    const A_WHILE: Duration = Duration::from_millis(100);

    /// A queue of which one client may have half.
    fn places(all: usize) -> QueuePlaces {
        QueuePlaces::new(all, 0.5)
    }

    /// A pool whose single worker is busy until the sender is dropped.
    fn busy(waiting_max: usize, budget: u64) -> (ComputePool, mpsc::Sender<()>) {
        let compute = ComputePool::start(1, places(waiting_max), budget).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        let hold = move |_: &MemoryLease| {
            started.send(()).expect("the test listens");
            assert!(held.recv().is_err(), "the test lets go by dropping its end");
        };
        compute.submit(None, 1, || true, hold).expect("room");
        start.recv().expect("started");
        (compute, release)
    }

    #[test]
    fn a_full_queue_refuses_and_recovers() {
        let (compute, release) = busy(1, 100);
        let (done, finished) = mpsc::channel();
        compute
            .submit(
                None,
                1,
                || true,
                move |_: &MemoryLease| done.send(()).expect("the test listens"),
            )
            .expect("room");
        assert_eq!(compute.submit(None, 1, || true, |_| ()), Err(QueueFull::AllPlaces));
        drop(release);
        finished.recv().expect("the waiting work ran");
    }

    #[test]
    fn a_full_queue_drops_abandoned_work() {
        let (compute, release) = busy(1, 100);
        compute.submit(None, 1, || false, |_| panic!("nobody wanted it")).expect("room");
        let (done, finished) = mpsc::channel();
        let work = move |_: &MemoryLease| done.send(()).expect("the test listens");
        compute.submit(None, 1, || true, work).expect("room for what is wanted");
        drop(release);
        finished.recv().expect("ran");
    }

    #[test]
    fn an_anonymous_client_fills_its_share_and_delays_no_caller_with_credentials() {
        let attacker = Some(RequestClient::Network([192, 0, 2, 1].into()));
        let customer = Some(RequestClient::User(model::account::UserId(7)));
        let (compute, release) = busy(8, 100);
        let (sender, order) = mpsc::channel();
        for number in 0..4 {
            let sender = sender.clone();
            compute
                .submit(attacker, 1, || true, move |_| sender.send(number).expect("heard"))
                .expect("room");
        }
        assert_eq!(compute.submit(attacker, 1, || true, |_| ()), Err(QueueFull::ClientShare));
        // A place that is reserved and not used goes back.
        let first = compute.reserve(customer).expect("room");
        let others = [(); 3].map(|()| compute.reserve(customer).expect("room"));
        assert_eq!(compute.reserve(None).err(), Some(QueueFull::AllPlaces));
        first.submit(1, || true, move |_| sender.send(9).expect("heard"));
        drop(others);
        drop(compute.reserve(customer).expect("the other places are free again"));
        drop(release);
        assert_eq!(order.iter().collect::<Vec<_>>(), [9, 0, 1, 2, 3]);
    }

    #[test]
    fn anonymous_work_leaves_a_worker_to_callers_with_credentials() {
        let attacker = Some(RequestClient::Network([192, 0, 2, 1].into()));
        let customer = Some(RequestClient::User(model::account::UserId(7)));
        let compute = ComputePool::start(2, places(8), 100).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (sender, order) = mpsc::channel();
        compute
            .submit(attacker, 60, || true, move |_| assert!(held.recv().is_err()))
            .expect("room");
        let large = sender.clone();
        let small = sender;
        compute
            .submit(customer, 60, || true, move |_| large.send("customer").expect("heard"))
            .expect("room");
        compute
            .submit(attacker, 10, || true, move |_| small.send("attacker").expect("heard"))
            .expect("room");
        // There is memory for the small job, but the customer waits for the other worker.
        assert_eq!(order.recv_timeout(A_WHILE), Err(TIMEOUT));
        drop(release);
        let ran: std::collections::BTreeSet<_> = order.iter().collect();
        assert_eq!(ran.len(), 2);
    }

    #[test]
    fn small_work_passes_work_that_waits_for_memory() {
        let compute = ComputePool::start(2, places(8), 100).expect("threads");
        let (release, held) = mpsc::channel::<()>();
        let (sender, order) = mpsc::channel();
        let (large, small) = (sender.clone(), sender);
        compute.submit(None, 60, || true, move |_| assert!(held.recv().is_err())).expect("room");
        compute
            .submit(None, 60, || true, move |_| large.send("large").expect("heard"))
            .expect("room");
        compute
            .submit(None, 10, || true, move |_| small.send("small").expect("heard"))
            .expect("room");
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
            compute.submit(None, 1, || true, work).expect("room");
            assert_eq!(finished.recv(), Ok(n));
        }
        drop(release);
        let work = move |_: &MemoryLease| done.send(7).expect("the test listens");
        compute.submit(None, 1, || true, work).expect("room");
        assert_eq!(finished.recv(), Ok(7));
    }

    #[test]
    fn work_that_has_just_come_does_not_stall_because_a_long_piece_is_under_way() {
        let (compute, release) = busy(4, 100);
        let (done, finished) = mpsc::channel::<()>();
        assert!(finished.recv_timeout(RENDER_STALL).is_err(), "the worker is busy for long");
        compute.submit(None, 1, || true, move |_| drop(done)).expect("room");
        let waited = compute.shared.state.lock().waiting.iter().next().map(|job| job.since);
        let taken = ComputeShared::take_stalled_job(&compute.shared).is_some();
        // A machine that was asleep in between shows nothing.
        assert!(!taken || waited.is_none_or(|since| since.elapsed() >= RENDER_STALL));
        drop(release);
        assert!(finished.recv().is_err(), "the worker did it, or the thread beside it");
    }

    #[test]
    fn a_panic_ends_one_piece_of_work_alone() {
        let compute = ComputePool::start(1, places(4), 100).expect("threads");
        compute.submit(None, 1, || true, |_| panic!("on purpose")).expect("room");
        let (done, finished) = mpsc::channel();
        compute
            .submit(
                None,
                1,
                || true,
                move |_: &MemoryLease| done.send(7).expect("the test listens"),
            )
            .expect("room");
        assert_eq!(finished.recv(), Ok(7));
    }

    #[test]
    fn work_beyond_the_memory_budget_runs_alone() {
        let compute = ComputePool::start(2, places(8), 100).expect("threads");
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
            compute.submit(None, 80, || true, work).expect("room");
        }
        (0..6).for_each(|_| finished.recv().expect("ran"));
        assert_eq!(running.lock().1, 1);
    }

    #[test]
    fn memory_that_turns_out_not_to_be_needed_goes_to_others() {
        let compute = ComputePool::start(2, places(8), 100).expect("threads");
        let (go, held) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let (begun, begin) = mpsc::channel();
        let large = move |lease: &MemoryLease| {
            lease.shrink(200);
            begun.send(()).expect("the test listens");
            held.recv().expect("the test says when");
            lease.shrink(10);
            assert!(held.recv().is_err(), "the test lets go by dropping its end");
        };
        compute.submit(None, 90, || true, large).expect("room");
        begin.recv().expect("the large one runs, with no more than it was queued with");
        compute.submit(None, 80, || true, move |_| sender.send(()).expect("heard")).expect("room");
        assert_eq!(receiver.recv_timeout(A_WHILE), Err(TIMEOUT), "it waits for memory");
        go.send(()).expect("heard");
        receiver.recv().expect("it runs beside the other");
    }
}
