//! Coalesces the jobs that make standard sets: if several jobs need the set of one original, only one makes it.
//!
//! A job must not block its worker until the set exists. A worker that waits for the parts of its own job runs a
//! second job in the meantime. If that job needed the set that the first job is making, it would wait forever. So
//! a job that finds the set claimed ends, and is queued again when the claim ends.

use std::collections::{HashMap, hash_map::Entry};
use std::sync::Arc;

use parking_lot::Mutex;

use model::ContentHash;

/// Jobs that wait until the standard set of one original is made; more are refused.
const SET_WAITERS_MAX: usize = 256;
/// Originals whose standard sets are known to be there, of 32 bytes each.
const SETS_KNOWN_MAX: u64 = 100_000;

/// A call that queues a job again.
type WaitingJob = Box<dyn FnOnce() + Send>;

/// The claims of jobs on standard sets, by the hash of the original; cheap to clone.
#[derive(Clone)]
pub(super) struct SetsInFlight {
    claims: Arc<Mutex<HashMap<ContentHash, OpenClaim>>>,
    /// Originals whose sets are known to exist, so that no job has to wait. If a set is removed later, several
    /// jobs may make it.
    known: moka::sync::Cache<ContentHash, ()>,
}

/// A claim, and the jobs that wait for its end.
struct OpenClaim {
    /// Distinguishes this claim from a later one on the same set.
    id: Arc<()>,
    waiting: Vec<WaitingJob>,
}

/// The claim of a job on a set, which ends when it is dropped.
pub(super) struct SetClaim {
    sets: SetsInFlight,
    original: ContentHash,
    id: Arc<()>,
}

/// The admission of a job that needs a standard set.
pub(super) enum SetAdmission<J> {
    /// The job continues. It has the claim, unless the set is known to exist.
    Admitted(J, Option<SetClaim>),
    /// The set is claimed. The job is queued again when the claim ends.
    Waiting,
    /// Too many jobs already wait for the set.
    Refused(J),
}

impl SetsInFlight {
    /// Creates a registry without claims or known sets.
    pub(super) fn new() -> Self {
        Self { claims: Arc::default(), known: moka::sync::Cache::new(SETS_KNOWN_MAX) }
    }

    /// Admits a job that needs the set of `original`; `queue` queues it again if it has to wait.
    pub(super) fn admit<J: Send + 'static>(
        &self,
        original: ContentHash,
        job: J,
        queue: fn(J),
    ) -> SetAdmission<J> {
        if self.known.contains_key(&original) {
            return SetAdmission::Admitted(job, None);
        }
        match self.claims.lock().entry(original) {
            Entry::Vacant(free) => {
                let id = Arc::new(());
                free.insert(OpenClaim { id: Arc::clone(&id), waiting: Vec::new() });
                SetAdmission::Admitted(job, Some(SetClaim { sets: self.clone(), original, id }))
            }
            Entry::Occupied(mut claim) => {
                let waiting = &mut claim.get_mut().waiting;
                if waiting.len() >= SET_WAITERS_MAX {
                    return SetAdmission::Refused(job);
                }
                waiting.push(Box::new(move || queue(job)));
                SetAdmission::Waiting
            }
        }
    }

    /// Lets all jobs continue that need the set of `original`: it is stored, or it cannot be stored.
    pub(super) fn release(&self, original: ContentHash) {
        // Before the claim ends, so that the queued jobs find the set known.
        self.known.insert(original, ());
        self.end(original, |_| true);
    }

    /// Ends the claim on the set of `original` that `is_it` accepts, and queues the jobs that wait for it.
    fn end(&self, original: ContentHash, is_it: impl FnOnce(&OpenClaim) -> bool) {
        let mut claims = self.claims.lock();
        let ended = claims.get(&original).is_some_and(is_it);
        let ended = ended.then(|| claims.remove(&original)).flatten();
        // Queueing takes the lock of the pool, and may end a job at once.
        drop(claims);
        ended.into_iter().flat_map(|claim| claim.waiting).for_each(|queue| queue());
    }
}

impl Drop for SetClaim {
    fn drop(&mut self) {
        // A later job may have claimed the set after this claim was released.
        self.sets.end(self.original, |claim| Arc::ptr_eq(&claim.id, &self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    const ORIGINAL: ContentHash = ContentHash([7; 32]);

    /// A job that reports its number when it is queued again.
    struct NumberedJob(usize, Sender<usize>);

    impl NumberedJob {
        fn queue(self) {
            self.1.send(self.0).expect("the test receives");
        }
    }

    struct Scene {
        sets: SetsInFlight,
        sender: Sender<usize>,
        queued: Receiver<usize>,
    }

    impl Scene {
        fn new() -> Self {
            let (sender, queued) = mpsc::channel();
            Self { sets: SetsInFlight::new(), sender, queued }
        }

        fn admit(&self, number: usize) -> SetAdmission<NumberedJob> {
            let job = NumberedJob(number, self.sender.clone());
            self.sets.admit(ORIGINAL, job, NumberedJob::queue)
        }

        fn claim(&self, number: usize) -> SetClaim {
            match self.admit(number) {
                SetAdmission::Admitted(_, claim) => claim.expect("the set is not known"),
                SetAdmission::Waiting | SetAdmission::Refused(_) => panic!("it is claimed"),
            }
        }

        fn queued(&self) -> Vec<usize> {
            self.queued.try_iter().collect()
        }
    }

    #[test]
    fn jobs_wait_for_the_one_that_makes_the_set() {
        let scene = Scene::new();
        let first = scene.claim(1);
        for number in [2, 3] {
            assert!(matches!(scene.admit(number), SetAdmission::Waiting), "{number}");
        }
        let other = scene.sets.admit(ContentHash([8; 32]), (), |()| {});
        assert!(matches!(other, SetAdmission::Admitted((), Some(_))), "another set is free");
        assert_eq!(scene.queued(), [0; 0]);
        scene.sets.release(ORIGINAL);
        assert_eq!(scene.queued(), [2, 3]);
        // The set is there, so no job waits any more.
        assert!(matches!(scene.admit(2), SetAdmission::Admitted(_, None)));
        drop(first);
        assert_eq!(scene.queued(), [0; 0]);
    }

    #[test]
    fn a_job_that_fails_leaves_the_set_to_another() {
        let scene = Scene::new();
        let first = scene.claim(1);
        assert!(matches!(scene.admit(2), SetAdmission::Waiting));
        drop(first);
        assert_eq!(scene.queued(), [2]);
        let second = scene.claim(2);
        assert!(matches!(scene.admit(3), SetAdmission::Waiting));
        drop(second);
        assert_eq!(scene.queued(), [3]);
    }

    #[test]
    fn an_old_claim_does_not_end_a_later_one() {
        let scene = Scene::new();
        let first = scene.claim(1);
        scene.sets.release(ORIGINAL);
        scene.sets.known.invalidate(&ORIGINAL);
        let _second = scene.claim(2);
        assert!(matches!(scene.admit(3), SetAdmission::Waiting));
        drop(first);
        assert_eq!(scene.queued(), [0; 0]);
        assert!(matches!(scene.admit(4), SetAdmission::Waiting));
    }

    #[test]
    fn only_so_many_jobs_wait_for_a_set() {
        let scene = Scene::new();
        let _first = scene.claim(0);
        for number in 0..SET_WAITERS_MAX {
            assert!(matches!(scene.admit(number), SetAdmission::Waiting), "{number}");
        }
        assert!(matches!(scene.admit(SET_WAITERS_MAX), SetAdmission::Refused(_)));
    }
}
