//! One attempt to log in with a secret: the throttle decides it, its secret is verified, and a failure is counted.
//!
//! Programs send a secret with every request. The cache of verified secrets knows the right secret for some minutes
//! after a client's network has presented it; then [`Auth::count_cached`] counts the attempt at once, without a slow
//! hash. Logins on pages, and attempts that are not accepted there, go to [`Auth::attempt`], which computes the slow
//! hash on a hashing thread.
//!
//! A user name that failed too often from all networks is paced: each of its attempts waits for its slot, a moment that
//! the pacer reserves for it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{runtime::Handle, task::JoinHandle};

use super::Auth;
use super::throttle::{EvaluatedAttempt, ThrottleDecision, ThrottleSubject};
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{FAILED_LOGINS_MAX, SWEEP_ROWS};

/// A secret that is about to be verified.
pub(super) struct VerificationAttempt {
    pub(super) secret: String,
    /// The slow hash of the right secret. Without a hash, as for an unknown user, every secret counts as wrong, after
    /// the same time.
    pub(super) hash: Option<String>,
    /// False if even the right secret is refused, as for an inactive user.
    pub(super) may_log_in: bool,
    /// The address of the client.
    pub(super) address: IpAddr,
    /// The failure counters that decide the attempt and that its failure increments.
    pub(super) subject: ThrottleSubject,
    /// The throttle's decision, if [`Auth::count_cached`] already counted the attempt as wrong.
    pub(super) counted_decision: Option<ThrottleDecision>,
}

/// The result of [`Auth::count_cached`].
pub(super) enum CachedVerdict {
    /// The cache does not know the right secret, or the attempt is locked out. Nothing was counted, and
    /// [`Auth::attempt`] decides.
    Undecided,
    Right,
    /// The secret is wrong, and the failure is counted. Holds the throttle's decision from before the count.
    Wrong(ThrottleDecision),
}

impl CachedVerdict {
    /// Returns the throttle's decision about an attempt that was counted as wrong.
    pub(super) fn counted_decision(&self) -> Option<ThrottleDecision> {
        let Self::Wrong(decision) = self else { return None };
        Some(*decision)
    }
}

/// The answer to an attempt.
pub(super) enum AttemptOutcome {
    /// The secret is right, and the user may log in.
    Right,
    /// The secret is wrong, or the user may not log in. The failure is counted.
    Wrong,
    /// Not answered now; the client can try again after `wait_s` seconds.
    Throttled { wait_s: u64 },
}

impl Auth {
    /// Counts an attempt whose result the cache of verified secrets knows: `right` is true for the right secret, false
    /// for a wrong one, and `None` if the cache does not know the right secret.
    pub(super) fn count_cached(
        &self,
        right: Option<bool>,
        subject: &ThrottleSubject,
        now: Timestamp,
    ) -> CachedVerdict {
        let Some(right) = right else { return CachedVerdict::Undecided };
        match self.inner.throttle.record_known_result(subject, right, now) {
            ThrottleDecision::Locked { .. } => CachedVerdict::Undecided,
            // Pacing slows guesses. The client's network has proved the secret recently, so it does not guess.
            ThrottleDecision::Pace(_) | ThrottleDecision::Evaluate if right => {
                CachedVerdict::Right
            }
            decision @ (ThrottleDecision::Pace(_) | ThrottleDecision::Evaluate) => {
                CachedVerdict::Wrong(decision)
            }
        }
    }

    /// Makes one attempt, in its slot if its user name is paced, and stores its failure. Without a free slot it is
    /// throttled.
    ///
    /// Fails if too many attempts wait for a hashing thread.
    pub(super) async fn attempt(
        &self,
        attempt: VerificationAttempt,
        now: Timestamp,
    ) -> Result<AttemptOutcome> {
        if let Some(decision) = attempt.counted_decision {
            return self.refuse_counted(attempt, decision, now).await;
        }
        let attempt = Arc::new(attempt);
        let mut outcome = self.evaluate(Arc::clone(&attempt), false, now).await?;
        // A paced attempt was not counted, so it is evaluated again in its slot.
        if let ThrottleDecision::Pace(name) = outcome.decision {
            outcome = match self.inner.pacer.reserve(name, attempt.address, now) {
                Ok(wait) => self.evaluate_in_slot(attempt, wait, now).await?,
                Err(wait_s) => return Ok(AttemptOutcome::Throttled { wait_s }),
            };
        }
        match outcome.decision {
            ThrottleDecision::Locked { wait_s } => Ok(AttemptOutcome::Throttled { wait_s }),
            // Does not happen: an attempt without a slot got one above, and an attempt in its slot is not paced
            // again.
            ThrottleDecision::Pace(_) => Ok(AttemptOutcome::Throttled { wait_s: 1 }),
            ThrottleDecision::Evaluate if outcome.is_accepted => Ok(AttemptOutcome::Right),
            ThrottleDecision::Evaluate => {
                await_stored(outcome.stored).await;
                Ok(AttemptOutcome::Wrong)
            }
        }
    }

    /// Refuses an attempt that was already counted as wrong, in the same way and after the same time as an
    /// attempt that must be verified: otherwise the response would reveal which user names are cached.
    async fn refuse_counted(
        &self,
        attempt: VerificationAttempt,
        decision: ThrottleDecision,
        now: Timestamp,
    ) -> Result<AttemptOutcome> {
        await_stored(Some(self.store_failure(&Handle::current(), &attempt.subject, now))).await;
        if let ThrottleDecision::Pace(name) = decision {
            match self.inner.pacer.reserve(name, attempt.address, now) {
                Ok(wait) => tokio::time::sleep(wait).await,
                Err(wait_s) => return Ok(AttemptOutcome::Throttled { wait_s }),
            }
        }
        let auth = self.clone();
        self.inner
            .passwords
            .run(
                attempt.address,
                // The attempt is counted already, so the throttle is not asked again.
                || None,
                // The result is known; the slow hash is computed for the time that it needs.
                move || auth.inner.passwords.verify(&attempt.secret, attempt.hash.as_deref()),
                |_| AttemptOutcome::Wrong,
            )
            .await
    }

    /// Evaluates an attempt in its slot, `wait` after `now`, even if its client disconnects before: otherwise networks
    /// that disconnect could use slot after slot and never fail. The number of slots bounds the number of tasks.
    async fn evaluate_in_slot(
        &self,
        attempt: Arc<VerificationAttempt>,
        wait: Duration,
        now: Timestamp,
    ) -> Result<EvaluationOutcome> {
        let auth = self.clone();
        let slot_time = now.checked_add(wait).unwrap_or(now);
        let task = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            auth.evaluate(attempt, true, slot_time).await
        });
        task.await.map_err(Error::internal)?
    }

    /// Evaluates an attempt on a hashing thread; `is_paced` is true if it has waited for its slot. The throttle decides
    /// just before the slow hash, and again when the result is counted: a thousand concurrent guesses get no further
    /// than sequential guesses.
    async fn evaluate(
        &self,
        attempt: Arc<VerificationAttempt>,
        is_paced: bool,
        now: Timestamp,
    ) -> Result<EvaluationOutcome> {
        let address = attempt.address;
        let runtime = Handle::current();
        let evaluation = AttemptEvaluation { auth: self.clone(), attempt, is_paced, now, runtime };
        // Decided here as well, so that a refused attempt occupies no place in the queue.
        if let Some(refused) = evaluation.refusal() {
            return Ok(refused);
        }
        // The steps run on a different thread and the first two may run twice, so each of them owns a reference.
        let for_refusal = Arc::new(evaluation);
        let for_verification = Arc::clone(&for_refusal);
        let for_count = Arc::clone(&for_refusal);
        self.inner
            .passwords
            .run(
                address,
                move || for_refusal.refusal(),
                move || for_verification.verify(),
                move |is_accepted| for_count.count(is_accepted),
            )
            .await
    }

    /// Starts to write a failure to the database, and continues even if its client no longer waits. This process has
    /// counted it already; if the write fails, other processes do not know of it.
    fn store_failure(
        &self,
        runtime: &Handle,
        subject: &ThrottleSubject,
        now: Timestamp,
    ) -> JoinHandle<()> {
        let auth = self.clone();
        let throttle = &self.inner.throttle;
        let keys = subject.keys();
        let window = throttle.window_start(now);
        // True for one of a thousand writes: enough to bound the table even under a flood of guesses.
        let must_bound = throttle.record_write();
        runtime.spawn(async move {
            let write = auth.inner.db.write(move |tx| {
                if must_bound {
                    tx.sweep_failed_logins(window, SWEEP_ROWS)?;
                    tx.bound_failed_logins(FAILED_LOGINS_MAX)?;
                }
                keys.iter().try_for_each(|key| tx.count_failed_login(key, window, now))
            });
            if let Err(cause) = write.await {
                tracing::warn!(
                    "login throttle: a failed login cannot be stored and counts in this process \
                     only: {cause}"
                );
            }
        })
    }
}

/// An attempt on a hashing thread. The thread calls [`refusal`](Self::refusal), and if the attempt is admitted
/// [`verify`](Self::verify) and [`count`](Self::count).
struct AttemptEvaluation {
    auth: Auth,
    attempt: Arc<VerificationAttempt>,
    /// True if the attempt has waited for its slot.
    is_paced: bool,
    /// The time of the attempt, or of its slot.
    now: Timestamp,
    /// The runtime that stores a failure; a hashing thread has no runtime.
    runtime: Handle,
}

impl AttemptEvaluation {
    /// Returns the outcome of an attempt that the throttle does not admit, or `None` if it is admitted.
    fn refusal(&self) -> Option<EvaluationOutcome> {
        let decision = self.auth.inner.throttle.decide(&self.attempt.subject, self.now);
        // An attempt that has waited for its slot is not paced again, but a lock that began meanwhile
        // applies.
        let is_admitted = match decision {
            ThrottleDecision::Evaluate => true,
            ThrottleDecision::Pace(_) => self.is_paced,
            ThrottleDecision::Locked { .. } => false,
        };
        (!is_admitted).then_some(EvaluationOutcome { decision, is_accepted: false, stored: None })
    }

    /// Returns whether the secret is right and the user may log in. Always lasts as long as a slow hash.
    fn verify(&self) -> bool {
        let VerificationAttempt { secret, hash, may_log_in, .. } = &*self.attempt;
        // The hash comes first, so that the response for an inactive user is not faster (contract login-24).
        self.auth.inner.passwords.verify(secret, hash.as_deref()) && *may_log_in
    }

    /// Counts the result of [`verify`](Self::verify), and starts to store a failure that the throttle counted.
    fn count(&self, is_accepted: bool) -> EvaluationOutcome {
        let Self { auth, attempt, is_paced, now, runtime } = self;
        let evaluated = EvaluatedAttempt { is_accepted, is_paced: *is_paced };
        let decision = auth.inner.throttle.record_result(&attempt.subject, evaluated, *now);
        // A failure that the throttle refuses at this point was not counted, so it is not stored
        // either.
        let is_counted = !is_accepted && decision == ThrottleDecision::Evaluate;
        let stored = is_counted.then(|| auth.store_failure(runtime, &attempt.subject, *now));
        EvaluationOutcome { decision, is_accepted, stored }
    }
}

/// The outcome of an evaluation.
struct EvaluationOutcome {
    /// [`ThrottleDecision::Evaluate`] if the attempt was verified and counted, otherwise the reason why it was not.
    decision: ThrottleDecision,
    /// True if the secret is right and the user may log in. Means nothing unless `decision` is
    /// [`ThrottleDecision::Evaluate`].
    is_accepted: bool,
    /// The task that writes a counted failure to the database.
    stored: Option<JoinHandle<()>>,
}

/// Waits until a failure is stored, so that other processes know of it before the response is sent.
async fn await_stored(stored: Option<JoinHandle<()>>) {
    if let Some(stored) = stored {
        // The task fails only while the process ends.
        drop(stored.await);
    }
}
