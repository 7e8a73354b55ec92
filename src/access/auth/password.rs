//! Password hashing: argon2id on dedicated threads, at low priority, behind a bounded queue.
//!
//! Hashing is slow on purpose. Its threads run with idle priority, so that a flood of logins waits while
//! requests are served. On a machine that is never idle, these threads would never run: a hash that has
//! waited for [`HASH_QUIET_WAIT`] is computed by an extra thread with normal priority, which pauses for
//! fifteen times as long as it works.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version};
use parking_lot::{Condvar, Mutex};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};
use tokio::sync::oneshot;

use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{HASH_ITERATIONS_MAX, HASH_MEMORY_KIB_MAX};
use crate::runtime::telemetry;
use model::network;

/// Time that a password hash waits for an idle core before it becomes overdue.
const HASH_QUIET_WAIT: std::time::Duration = std::time::Duration::from_millis(400);
/// Number of [`HASH_QUIET_WAIT`]s after which a password hash is abandoned: half a minute in all.
const HASH_QUIET_WAITS_MAX: u32 = 75;
/// Overdue password hashes that may wait for the thread with a guaranteed CPU share.
const HASHES_URGENT_MAX: usize = 64;
/// Ratio of pauses to work of the thread for overdue hashes: its share is a sixteenth of a core. During a flood of logins,
/// the throughput of cache hits falls to 0.89 of normal with a share of a tenth, and to 0.79 with a quarter.
const HASH_PAUSE_FACTOR: u32 = 15;

/// A comparison that any of several threads may perform. It does nothing if it was done already or its caller stopped
/// waiting.
type Work = Arc<dyn Fn() + Send + Sync>;

/// Hashes and verifies passwords with argon2id.
#[derive(Clone, Debug)]
pub struct Argon2Hasher {
    argon2: Argon2<'static>,
}

impl Argon2Hasher {
    /// Creates a hasher with `memory_kib` KiB and `iterations` passes. Fails if argon2 does not accept these
    /// parameters.
    pub fn new(memory_kib: u32, iterations: u32) -> Result<Self> {
        // One lane: each hash has a single thread.
        let params = Params::new(memory_kib, iterations, 1, None);
        let params = params.map_err(|cause| Error::internal(format!("argon2: {cause}")))?;
        Ok(Self { argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params) })
    }

    /// Returns the hash of `password` with a new salt, as a PHC string.
    pub fn hash(&self, password: &str) -> Result<String> {
        let hash = self.argon2.hash_password(password.as_bytes());
        let hash = hash.map_err(|cause| Error::internal(format!("argon2: {cause}")))?;
        Ok(hash.to_string())
    }

    /// Returns whether `hash` is a PHC string of argon2id, the form of the hashes that are compared with passwords, and
    /// costs at most [`HASH_MEMORY_KIB_MAX`] and [`HASH_ITERATIONS_MAX`].
    pub fn is_hash(hash: &str) -> bool {
        let Ok(hash) = PasswordHash::new(hash) else { return false };
        // Each comparison has the costs that the string states, not those of the settings.
        let Ok(costs) = Params::try_from(&hash) else { return false };
        // The string may end before the hash itself, and then no password fits.
        hash.hash.is_some()
            && hash.algorithm.as_str() == Algorithm::Argon2id.as_str()
            && costs.m_cost() <= HASH_MEMORY_KIB_MAX
            && costs.t_cost() <= HASH_ITERATIONS_MAX
    }

    /// Returns whether `hash` was computed from `password`.
    pub fn verify(&self, password: &str, hash: &str) -> bool {
        let Ok(hash) = PasswordHash::new(hash) else { return false };
        self.argon2.verify_password(password.as_bytes(), &hash).is_ok()
    }
}

/// Work that waits for the idle threads. A caller that stops waiting removes its work ([`AwaitedHash`]).
#[derive(Default)]
struct HashQueue {
    state: Mutex<HashQueueState>,
    wake: Condvar,
}

#[derive(Default)]
struct HashQueueState {
    waiting: VecDeque<Work>,
    /// Number of callers that wait for a result, by their network: their work is queued or being hashed.
    waiting_by_network: HashMap<IpAddr, usize>,
    closed: bool,
}

impl HashQueue {
    /// Waits for the next work; `None` when the queue is closed.
    fn pop(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            // No caller is left that could wait for the rest of the queue.
            if state.closed {
                return None;
            }
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            self.wake.wait(&mut state);
        }
    }
}

/// Owner of the queue, which is closed when the last owner is dropped.
struct HashQueueCloser(Arc<HashQueue>);

impl Drop for HashQueueCloser {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.wake.notify_all();
    }
}

/// Work for which a caller from a network waits.
struct AwaitedHash<'a> {
    queue: &'a HashQueue,
    work: Work,
    network: IpAddr,
}

impl Drop for AwaitedHash<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.waiting.retain(|other| !Arc::ptr_eq(other, &self.work));
        // An entry without callers is removed, or the map would grow with every network that logs
        // in.
        match state.waiting_by_network.get(&self.network).copied().unwrap_or(0) {
            0 | 1 => drop(state.waiting_by_network.remove(&self.network)),
            more => drop(state.waiting_by_network.insert(self.network, more - 1)),
        }
    }
}

/// The pool of hashing threads.
#[derive(Clone)]
pub(super) struct HashingThreads {
    hasher: Argon2Hasher,
    queue: Arc<HashQueueCloser>,
    queue_max: usize,
    /// Maximum number of callers of one network that may wait for a result.
    per_network_max: usize,
    /// Work that has waited too long.
    urgent: SyncSender<Work>,
    /// The hash that a password is compared with if there is no user of that name, so that the response is
    /// not faster.
    dummy_hash: Arc<str>,
}

impl HashingThreads {
    /// Starts `workers` threads. At most `queue_max` comparisons may wait for them, and
    /// `per_network_max` from one network.
    pub(super) fn start(
        hasher: Argon2Hasher,
        workers: usize,
        queue_max: usize,
        per_network_max: usize,
    ) -> Result<Self> {
        let dummy_hash = hasher.hash(super::RandomSecret::new()?.reveal())?.into();
        let shared_queue = Arc::new(HashQueue::default());
        for index in 0..workers {
            let worker_queue = Arc::clone(&shared_queue);
            let name = format!("hash-{index}");
            let started =
                thread::Builder::new().name(name).spawn(move || run_idle_worker(&worker_queue));
            started.map_err(Error::internal)?;
        }
        let (urgent, waiting) = mpsc::sync_channel::<Work>(HASHES_URGENT_MAX);
        let builder = thread::Builder::new().name("hash-urgent".to_owned());
        builder.spawn(move || run_urgent_worker(&waiting)).map_err(Error::internal)?;
        let queue = Arc::new(HashQueueCloser(shared_queue));
        Ok(Self { hasher, queue, queue_max, per_network_max, urgent, dummy_hash })
    }

    /// Returns whether `hash` was computed from `password`. Returns false after the same time if there is no
    /// hash. Slow: call it only on these threads.
    pub(super) fn verify(&self, password: &str, hash: Option<&str>) -> bool {
        let matches = self.hasher.verify(password, hash.unwrap_or(&self.dummy_hash));
        hash.is_some() && matches
    }

    /// Runs `evaluate` on a hashing thread and passes its result to `complete`, unless `begin`, which is called
    /// just before, returns a result. `begin` and `evaluate` may run twice, `complete` runs at most once.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if too many wait, in all or from the
    /// network of `address`.
    pub(super) async fn run<E: 'static, T: Send + 'static>(
        &self,
        address: IpAddr,
        begin: impl Fn() -> Option<T> + Send + Sync + 'static,
        evaluate: impl Fn() -> E + Send + Sync + 'static,
        complete: impl FnOnce(E) -> T + Send + 'static,
    ) -> Result<T> {
        let (sender, mut receiver) = oneshot::channel();
        // Taken by the first thread that has a result.
        let completion = Mutex::new(Some((complete, sender)));
        let work: Work = Arc::new(move || {
            if completion.lock().as_ref().is_none_or(|(_, sender)| sender.is_closed()) {
                return;
            }
            let evaluated = begin().map_or_else(|| Ok(evaluate()), Err);
            // The urgent thread and an idle thread may both work on it; the first result counts.
            let Some((complete, sender)) = completion.lock().take() else { return };
            if evaluated.is_ok() {
                metrics::counter!(telemetry::HASHES).increment(1);
            }
            // The caller may have stopped waiting; then the result is dropped.
            drop(sender.send(evaluated.map_or_else(|refusal| refusal, complete)));
        });
        let awaited = self.enqueue(work, network(address))?;
        let mut is_urgent = false;
        for _ in 0..HASH_QUIET_WAITS_MAX {
            if let Ok(result) = tokio::time::timeout(HASH_QUIET_WAIT, &mut receiver).await {
                return result.map_err(|_| Error::internal("a hashing thread ended"));
            }
            // The work stays in the idle queue too: the first thread to finish it decides.
            is_urgent = is_urgent || self.urgent.try_send(Arc::clone(&awaited.work)).is_ok();
        }
        Err(overloaded())
    }

    /// Queues work for as long as its caller waits for it.
    fn enqueue(&self, work: Work, network: IpAddr) -> Result<AwaitedHash<'_>> {
        let queue = self.queue.0.as_ref();
        let mut state = queue.state.lock();
        // Queued and running work counts, so that one network cannot occupy the whole queue.
        if state
            .waiting_by_network
            .get(&network)
            .is_some_and(|count| *count >= self.per_network_max)
        {
            let message = "Too many logins from this address are waiting";
            return Err(Error::overloaded("client_logins", message));
        }
        if state.waiting.len() >= self.queue_max {
            return Err(overloaded());
        }
        *state.waiting_by_network.entry(network).or_default() += 1;
        state.waiting.push_back(Arc::clone(&work));
        // Unlocked before the notification, or the woken thread would wait for the lock at once.
        drop(state);
        queue.wake.notify_one();
        Ok(AwaitedHash { queue, work, network })
    }
}

fn overloaded() -> Error {
    Error::overloaded("logins", "Too many logins are waiting")
}

fn run_idle_worker(queue: &HashQueue) {
    // Idle priority uses only spare time: a merely low priority still gets whole time slices of a
    // busy core. If the system refuses it, logins only compete harder.
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let thread = thread_priority::thread_native_id();
    if let Err(cause) = set_thread_priority_and_policy(thread, ThreadPriority::Min, idle) {
        tracing::warn!("password hashing: idle priority cannot be set: {cause}");
    }
    while let Some(work) = queue.pop() {
        perform(&work);
    }
}

/// Runs the thread for work that has waited for too long: it uses at most a sixteenth of a core.
fn run_urgent_worker(waiting: &Receiver<Work>) {
    // Nothing is ever sent here: the receive timeout is the pause.
    let (_sender, pause) = mpsc::channel::<()>();
    while let Ok(work) = waiting.recv() {
        let watch = Stopwatch::start();
        perform(&work);
        drop(work);
        if pause.recv_timeout(watch.elapsed() * HASH_PAUSE_FACTOR).is_ok() {
            return;
        }
    }
}

fn perform(work: &Work) {
    // A panic ends one login, not the thread for which all others wait.
    if panic::catch_unwind(AssertUnwindSafe(&**work)).is_err() {
        tracing::error!("password hashing: a comparison panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn what_waits_for_long_is_done_while_the_idle_threads_cannot() {
        let passwords = HashingThreads::start(Argon2Hasher::new(8, 1).unwrap(), 1, 2, 2).unwrap();
        // The only idle thread hangs in a comparison, as on a machine that is never idle.
        let (go, stuck) = mpsc::channel::<()>();
        let (stuck, tried) = (Mutex::new(stuck), AtomicBool::new(false));
        let hang = move || tried.swap(true, SeqCst) || stuck.lock().recv().is_ok();
        let counted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&counted);
        let complete = move |fits: bool| {
            counter.fetch_add(1, SeqCst);
            fits
        };
        assert!(passwords.run(HOME, || None, hang, complete).await.unwrap());
        assert!(!passwords.run(HOME, || None, || false, |fits| fits).await.unwrap());
        assert_eq!(passwords.run(HOME, || Some(7), || true, |_| 8).await.unwrap(), 7);
        // More than the queue holds, one after the other: finished work does not block it.
        for _ in 0..4 {
            assert_eq!(passwords.run(HOME, || Some(7), || true, |_| 8).await.unwrap(), 7);
        }
        assert_eq!(passwords.queue.0.state.lock().waiting.len(), 0);
        drop(go);
        assert!(passwords.run(HOME, || None, || true, |fits| fits).await.unwrap());
        assert_eq!(counted.load(SeqCst), 1);
    }

    #[tokio::test]
    async fn one_address_cannot_take_all_places() {
        let passwords = HashingThreads::start(Argon2Hasher::new(8, 1).unwrap(), 1, 8, 2).unwrap();
        let (go, stuck) = mpsc::channel::<()>();
        let stuck = Mutex::new(stuck);
        let hang = move || stuck.lock().recv().is_ok();
        let (other, passwords) = ("192.0.2.1".parse().unwrap(), &passwords);
        let hanging = passwords.run(HOME, || None, hang, |fits| fits);
        let waiting = passwords.run(HOME, || None, || true, |fits| fits);
        let third = async {
            let refused = passwords.run(HOME, || None, || true, |fits| fits).await.unwrap_err();
            assert_eq!(refused.details()[0].error_code, "client_logins");
            let network = passwords.enqueue(Arc::new(|| ()), other).map(|awaited| awaited.network);
            assert_eq!(network.ok(), Some(other), "another address has its own places");
            drop(go);
        };
        let (hung, waited, ()) = tokio::join!(hanging, waiting, third);
        assert_eq!((hung.unwrap(), waited.unwrap()), (false, true));
        assert!(passwords.queue.0.state.lock().waiting_by_network.is_empty());
    }

    #[test]
    fn a_password_fits_its_own_hash_only() {
        let hasher = Argon2Hasher::new(8, 1).unwrap();
        let hash = hasher.hash("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{hash}");
        assert_ne!(hash, hasher.hash("correct horse").unwrap());
        assert!(hasher.verify("correct horse", &hash));
        assert!(!hasher.verify("correct hors", &hash));
        assert!(!hasher.verify("correct horse", "not a hash"));
    }
}
