//! One attempt with a secret: counted by what memory knows, else compared on a hashing thread, in
//! its turn where its name is paced.

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{
    Auth,
    pace::Paced,
    throttle::{Decision, Evaluated, Subject},
};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{FAILED_LOGINS_MAX, SWEEP_ROWS};
use crate::storage::database::WriteTx;

/// A secret on its way to a hashing thread.
pub(super) struct Attempt {
    pub(super) secret: String,
    /// The hash that it is compared with; without one it is wrong, after the same time.
    pub(super) hash: Option<String>,
    /// Whether a right secret is enough.
    pub(super) may_enter: bool,
    pub(super) address: IpAddr,
    pub(super) subject: Subject,
    /// What was decided of it where memory knew that it is wrong: it is counted already.
    pub(super) counted: Option<Decision>,
}

/// What the memory of verified secrets says of an attempt.
pub(super) enum Recalled {
    /// Nothing, or the attempt is locked out: the throttle decides what becomes of it.
    Nothing,
    Right,
    /// It is wrong and counted; what was decided before.
    Wrong(Decision),
}

impl Recalled {
    pub(super) fn counted(&self) -> Option<Decision> {
        match self {
            Self::Nothing | Self::Right => None,
            Self::Wrong(decision) => Some(*decision),
        }
    }
}

pub(super) enum Attempted {
    Right,
    Wrong,
    Throttled { wait_s: u64 },
}

/// An attempt on a hashing thread: refused by the throttle, or else verified and then counted.
struct Evaluation {
    auth: Auth,
    attempt: Arc<Attempt>,
    /// Whether the attempt has its turn.
    is_paced: bool,
    now: Timestamp,
    /// Where its failure is stored; a hashing thread has no runtime.
    runtime: Handle,
}

impl Evaluation {
    /// What becomes of an attempt that the throttle does not admit.
    fn refuse(&self) -> Option<Outcome> {
        let decision = self.auth.inner.throttle.decide(&self.attempt.subject, self.now);
        let is_admitted = match decision {
            Decision::Evaluate => true,
            Decision::Pace { .. } => self.is_paced,
            Decision::Locked { .. } => false,
        };
        (!is_admitted).then_some(Outcome { decision, fits: false, stored: None })
    }

    /// Whether the secret is right and enough. Takes the time of a slow hash in any case.
    fn verify(&self) -> bool {
        let Attempt { secret, hash, may_enter, .. } = &*self.attempt;
        self.auth.inner.passwords.verify(secret, hash.as_deref()) && *may_enter
    }

    /// Counts the result, and stores it where it is a failure that stands.
    fn count(&self, fits: bool) -> Outcome {
        let Self { auth, attempt, is_paced, now, runtime } = self;
        let evaluated = Evaluated { fits, is_paced: *is_paced };
        let decision = auth.inner.throttle.settle(&attempt.subject, evaluated, *now);
        let is_counted = !fits && decision == Decision::Evaluate;
        let store = || auth.store_failure(runtime, &attempt.subject, *now);
        Outcome { decision, fits, stored: is_counted.then(store) }
    }
}

/// What came out of a hashing thread.
struct Outcome {
    decision: Decision,
    fits: bool,
    /// Its failure on the way to the database.
    stored: Option<JoinHandle<()>>,
}

impl Auth {
    /// Counts an attempt that memory knows as `right` or wrong.
    pub(super) fn recall(
        &self,
        right: Option<bool>,
        subject: &Subject,
        now: Timestamp,
    ) -> Recalled {
        let Some(right) = right else { return Recalled::Nothing };
        match self.inner.throttle.settle_known(subject, right, now) {
            Decision::Locked { .. } => Recalled::Nothing,
            Decision::Pace { .. } | Decision::Evaluate if right => Recalled::Right,
            decision @ (Decision::Pace { .. } | Decision::Evaluate) => Recalled::Wrong(decision),
        }
    }

    /// Makes one attempt, in its turn where its name is paced, and stores its failure.
    pub(super) async fn attempt(&self, attempt: Attempt, now: Timestamp) -> Result<Attempted> {
        if let Some(decision) = attempt.counted {
            return self.refuse_counted(attempt, decision, now).await;
        }
        let attempt = Arc::new(attempt);
        let mut outcome = self.hash(Arc::clone(&attempt), false, now).await?;
        if let Decision::Pace { key, overrun, has_failed } = outcome.decision {
            let paced = Paced { key, address: attempt.address, overrun, has_failed };
            outcome = match self.inner.pacer.reserve(paced, now) {
                Ok(wait) => self.hash_in_turn(attempt, wait, now).await?,
                Err(wait_s) => return Ok(Attempted::Throttled { wait_s }),
            };
        }
        match outcome.decision {
            Decision::Locked { wait_s } => Ok(Attempted::Throttled { wait_s }),
            // Only attempts that did not have their turn are told to wait for it.
            Decision::Pace { .. } => Ok(Attempted::Throttled { wait_s: 1 }),
            Decision::Evaluate if outcome.fits => Ok(Attempted::Right),
            Decision::Evaluate => {
                wait_for(outcome.stored).await;
                Ok(Attempted::Wrong)
            }
        }
    }

    /// Refuses an attempt that is counted as wrong already, in the same way and after the same time
    /// as one that has to be evaluated: else the answer would tell which names memory knows.
    async fn refuse_counted(
        &self,
        attempt: Attempt,
        decision: Decision,
        now: Timestamp,
    ) -> Result<Attempted> {
        wait_for(Some(self.store_failure(&Handle::current(), &attempt.subject, now))).await;
        if let Decision::Pace { key, overrun, has_failed } = decision {
            let paced = Paced { key, address: attempt.address, overrun, has_failed };
            match self.inner.pacer.reserve(paced, now) {
                Ok(wait) => tokio::time::sleep(wait).await,
                Err(wait_s) => return Ok(Attempted::Throttled { wait_s }),
            }
        }
        let (auth, address) = (self.clone(), attempt.address);
        let verify = move || auth.inner.passwords.verify(&attempt.secret, attempt.hash.as_deref());
        self.inner.passwords.run(address, || None, verify, |_| Attempted::Wrong).await
    }

    /// Compares a secret in its turn, which is after `wait`, also when its client hangs up before:
    /// else networks that hang up would take turn after turn and never fail. As many tasks are there
    /// as slots.
    async fn hash_in_turn(
        &self,
        attempt: Arc<Attempt>,
        wait: Duration,
        now: Timestamp,
    ) -> Result<Outcome> {
        let (auth, then) = (self.clone(), now.checked_add(wait).unwrap_or(now));
        let turn = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            auth.hash(attempt, true, then).await
        });
        turn.await.map_err(Error::internal)?
    }

    /// Compares a secret on a hashing thread. The throttle decides just before, and again when it
    /// counts the result: a thousand guesses at once get no further than one after the other.
    async fn hash(
        &self,
        attempt: Arc<Attempt>,
        is_paced: bool,
        now: Timestamp,
    ) -> Result<Outcome> {
        let (address, runtime) = (attempt.address, Handle::current());
        let evaluation = Evaluation { auth: self.clone(), attempt, is_paced, now, runtime };
        if let Some(refused) = evaluation.refuse() {
            return Ok(refused);
        }
        let before = Arc::new(evaluation);
        let (during, after) = (Arc::clone(&before), Arc::clone(&before));
        let (refuse, verify) = (move || before.refuse(), move || during.verify());
        self.inner.passwords.run(address, refuse, verify, move |fits| after.count(fits)).await
    }

    /// Writes a failure to the database, whether its client waits for the answer or not. It is
    /// counted here already: where it cannot be written, other processes do not know of it.
    fn store_failure(
        &self,
        runtime: &Handle,
        subject: &Subject,
        now: Timestamp,
    ) -> JoinHandle<()> {
        let (auth, throttle) = (self.clone(), &self.inner.throttle);
        let (keys, window) = (subject.keys(), throttle.window_start(now));
        let must_bound = throttle.note_written();
        let write = move |tx: &WriteTx<'_>| {
            if must_bound {
                tx.sweep_failed_logins(window, SWEEP_ROWS)?;
                tx.bound_failed_logins(FAILED_LOGINS_MAX)?;
            }
            keys.iter().try_for_each(|key| tx.count_failed_login(key, window, now))
        };
        runtime.spawn(async move {
            if let Err(cause) = auth.inner.db.write(write).await {
                tracing::warn!("a failed login is counted by this process alone: {cause}");
            }
        })
    }
}

/// Waits until a failure is stored, so that other processes know of it when it is answered.
async fn wait_for(stored: Option<JoinHandle<()>>) {
    if let Some(stored) = stored {
        // It fails only while the process ends.
        drop(stored.await);
    }
}
