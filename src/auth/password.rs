//! Passwords: argon2id on threads of its own, at low priority, behind a bounded queue.
//!
//! Hashing is slow on purpose. Its threads run when nobody else wants to, so that a flood of logins
//! waits and requests go on.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
};

use argon2::{Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier, Version};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};
use tokio::sync::oneshot;

use crate::error::{Error, Kind, Result};
use crate::telemetry;

type Work = Box<dyn FnOnce() + Send>;

/// How passwords are hashed.
#[derive(Clone, Debug)]
pub struct Hasher {
    argon2: Argon2<'static>,
}

impl Hasher {
    /// A hasher with `memory_kib` KiB and `iterations` passes. Fails when argon2 does not allow
    /// them.
    pub fn new(memory_kib: u32, iterations: u32) -> Result<Self> {
        let params = Params::new(memory_kib, iterations, 1, None);
        let params = params.map_err(|cause| Error::internal(format!("argon2: {cause}")))?;
        Ok(Self { argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params) })
    }

    /// The hash of `password` with a new salt, as a PHC string.
    pub fn hash(&self, password: &str) -> Result<String> {
        let hash = self.argon2.hash_password(password.as_bytes());
        let hash = hash.map_err(|cause| Error::internal(format!("argon2: {cause}")))?;
        Ok(hash.to_string())
    }

    /// Whether `password` is the one that `hash` was made from.
    #[must_use]
    pub fn verify(&self, password: &str, hash: &str) -> bool {
        let Ok(hash) = PasswordHash::new(hash) else { return false };
        self.argon2.verify_password(password.as_bytes(), &hash).is_ok()
    }
}

/// The threads that hash.
#[derive(Clone)]
pub(super) struct Passwords {
    hasher: Hasher,
    queue: SyncSender<Work>,
    /// What a password is compared with when there is no user of that name, so that the answer
    /// takes as long.
    nobody: Arc<str>,
}

impl Passwords {
    pub(super) fn start(hasher: Hasher, workers: usize, queue: usize) -> Result<Self> {
        let nobody = hasher.hash(super::Secret::new()?.reveal())?.into();
        let (queue, waiting) = mpsc::sync_channel::<Work>(queue);
        let waiting = Arc::new(Mutex::new(waiting));
        for index in 0..workers {
            let waiting = Arc::clone(&waiting);
            let name = format!("hash-{index}");
            let started = thread::Builder::new().name(name).spawn(move || work(&waiting));
            started.map_err(Error::internal)?;
        }
        Ok(Self { hasher, queue, nobody })
    }

    /// The comparison of a password with a hash, for work on these threads. Without a hash it
    /// never fits, after the same time.
    pub(super) fn fits(&self) -> impl Fn(&str, Option<&str>) -> bool + Send + 'static {
        let (hasher, nobody) = (self.hasher.clone(), Arc::clone(&self.nobody));
        move |password, hash| {
            metrics::counter!(telemetry::HASHES).increment(1);
            let matches = hasher.verify(password, hash.unwrap_or(&nobody));
            hash.is_some() && matches
        }
    }

    /// Runs `work` on a hashing thread.
    ///
    /// Fails with [`Kind::Overloaded`] when too many wait.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move || {
            // Nobody waits any more: the work is not worth its time.
            if !sender.is_closed() {
                drop(sender.send(work()));
            }
        });
        let overloaded = || Error::new(Kind::Overloaded, "Too many logins wait");
        self.queue.try_send(work).map_err(|refused| match refused {
            TrySendError::Full(_) => overloaded(),
            TrySendError::Disconnected(_) => Error::internal("the hashing threads are gone"),
        })?;
        receiver.await.map_err(|_| Error::internal("a hashing thread ended"))
    }
}

fn work(waiting: &Mutex<Receiver<Work>>) {
    // Only time that nobody else wants: a mere low priority still takes whole slices of a busy
    // core. Without it logins only compete harder.
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let thread = thread_priority::thread_native_id();
    if let Err(cause) = set_thread_priority_and_policy(thread, ThreadPriority::Min, idle) {
        tracing::warn!("hashing threads keep their priority: {cause}");
    }
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        // A panic ends one login, not the thread that all others wait for.
        if panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!("hashing a password panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_own_hash_only() {
        let hasher = Hasher::new(8, 1).unwrap();
        let hash = hasher.hash("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{hash}");
        assert_ne!(hash, hasher.hash("correct horse").unwrap());
        assert!(hasher.verify("correct horse", &hash));
        assert!(!hasher.verify("correct hors", &hash));
        assert!(!hasher.verify("correct horse", "not a hash"));
    }
}
