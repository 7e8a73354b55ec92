//! The retry policy: exponential backoff with jitter and a deadline.

use std::time::Duration;

use jiff::Timestamp;

use crate::ContentHash;

/// When something that failed is tried again, and when it is given up.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Time from the first attempt to the second; it doubles with each.
    pub first: Duration,
    /// Longest time between two attempts, unless `first` is longer.
    pub longest: Duration,
    /// Time after which what never succeeded is given up.
    pub deadline: Duration,
}

/// Doublings of the first wait after which it grows no more, whatever the settings are.
const DOUBLINGS_MAX: u32 = 16;

/// When an attempt ended.
#[derive(Clone, Copy, Debug)]
pub struct AttemptEnd {
    /// The time of day.
    pub at: Timestamp,
    /// Whether the clock that said so is trusted.
    pub is_clock_trusted: bool,
}

impl RetryPolicy {
    /// The policy of what is tried for ever.
    #[must_use]
    pub const fn without_deadline(first: Duration, longest: Duration) -> Self {
        Self { first, longest, deadline: Duration::MAX }
    }

    /// When the next attempt is due after so many, of which the last one failed at `end`. Gives nothing
    /// where that would be later than the deadline after `queued`, unless the clock is not trusted: one that
    /// jumped gives nothing up.
    ///
    /// `name` is that of the thing tried: see [`RetryPolicy::jittered`].
    #[must_use]
    pub fn next_attempt(
        &self,
        name: &str,
        attempts: u32,
        queued: Timestamp,
        end: AttemptEnd,
    ) -> Option<Timestamp> {
        let at = end.at.saturating_add(self.jittered(name, attempts)).unwrap_or(Timestamp::MAX);
        let deadline = queued.saturating_add(self.deadline).unwrap_or(Timestamp::MAX);
        (at <= deadline || !end.is_clock_trusted).then_some(at)
    }

    /// Time until the next attempt after so many: [`RetryPolicy::backoff`] and up to a quarter more, so that
    /// things that failed together do not come back together. The quarter comes from the name: the same in
    /// every process, another one for each thing and attempt.
    #[must_use]
    pub fn jittered(&self, name: &str, attempts: u32) -> Duration {
        let base = self.backoff(attempts);
        let ContentHash(hash) = ContentHash::of(format!("{name}/{attempts}").as_bytes());
        base + base / 4 * u32::from(hash[0]) / 255
    }

    /// Time until the next attempt after so many, counted from 1: twice as long after each.
    #[must_use]
    pub fn backoff(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(DOUBLINGS_MAX);
        self.first.saturating_mul(1 << doublings).min(self.longest.max(self.first))
    }

    /// Whether something was claimed more often than the attempts of this policy can be.
    ///
    /// An attempt that kills the process is never judged, and its claim just ends; without this it would be
    /// claimed for ever. The time alone does not tell: a service that was off over a weekend tries what
    /// waited at least once more.
    #[must_use]
    pub fn is_exhausted(&self, attempts: u32) -> bool {
        let (mut left, mut tries) = (self.deadline, 1_u32);
        for doublings in 0..DOUBLINGS_MAX {
            let Some(rest) = left.checked_sub(self.backoff(doublings + 1)) else {
                return attempts > tries;
            };
            (left, tries) = (rest, tries + 1);
        }
        let longest = self.backoff(DOUBLINGS_MAX + 1).as_nanos().max(1);
        let more = u32::try_from(left.as_nanos() / longest).unwrap_or(u32::MAX);
        attempts > tries.saturating_add(more)
    }
}

/// Failures in a row, and how long they are waited out.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    policy: RetryPolicy,
    failures: u32,
}

impl Backoff {
    /// No failure yet.
    #[must_use]
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// Counts a failure; the time until the next attempt.
    pub fn fail(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.policy.backoff(self.failures)
    }

    /// Resets the delay to the first one, after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures since the last success.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let (first, longest) = (Duration::from_millis(10), Duration::from_secs(1));
        let mut backoff = Backoff::new(RetryPolicy::without_deadline(first, longest));
        let waits: Vec<u128> = (0..9).map(|_| backoff.fail().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(backoff.failures(), 9);
        backoff.reset();
        assert_eq!(backoff.fail(), first);
    }

    #[test]
    fn a_first_wait_that_is_longer_than_the_longest_counts() {
        let hour = Duration::from_secs(3600);
        let policy = RetryPolicy::without_deadline(hour, Duration::from_secs(60));
        assert_eq!([1, 2, u32::MAX].map(|attempts| policy.backoff(attempts)), [hour; 3]);
    }

    #[test]
    fn an_endless_policy_gives_nothing_up() {
        let second = Duration::from_secs(1);
        let policy = RetryPolicy::without_deadline(second, second);
        assert!(!policy.is_exhausted(u32::MAX));
        let end = AttemptEnd { at: Timestamp::MAX, is_clock_trusted: true };
        let next = policy.next_attempt("a", 1, Timestamp::UNIX_EPOCH, end);
        assert_eq!(next, Some(Timestamp::MAX));
    }
}
