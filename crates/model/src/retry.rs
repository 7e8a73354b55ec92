//! The retry policy: exponential backoff with jitter and a deadline.

use std::time::Duration;

use jiff::Timestamp;

use crate::ContentHash;

/// The times at which a failed operation is retried, and the deadline at which it is given up.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The delay between the first and the second attempt; it doubles with each further attempt.
    pub first: Duration,
    /// The maximum delay between two attempts, unless `first` is longer.
    pub longest: Duration,
    /// The time after queueing at which the operation is given up.
    pub deadline: Duration,
}

/// The maximum number of doublings of the first delay. After that the delay is constant, regardless of the
/// settings.
const DOUBLINGS_MAX: u32 = 16;

/// The end time of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct AttemptEnd {
    /// The time of day at the end of the attempt.
    pub at: Timestamp,
    /// True if the clock was trusted at that time.
    pub is_clock_trusted: bool,
}

impl RetryPolicy {
    /// Builds a policy that retries forever.
    pub const fn without_deadline(first: Duration, longest: Duration) -> Self {
        Self { first, longest, deadline: Duration::MAX }
    }

    /// Returns the time of the next attempt, after `attempts` attempts of which the last one failed at `end`.
    ///
    /// Returns `None` if that would be after the deadline, counted from `queued`. While the clock is not trusted
    /// there is no deadline, so a clock jump never ends the retries.
    ///
    /// `name` identifies the operation; see [`RetryPolicy::jittered`].
    pub fn next_attempt(
        &self,
        name: &str,
        attempts: u32,
        queued: Timestamp,
        end: AttemptEnd,
    ) -> Option<Timestamp> {
        // Saturates, because settings may contain any duration.
        let at = end.at.saturating_add(self.jittered(name, attempts)).unwrap_or(Timestamp::MAX);
        let deadline = queued.saturating_add(self.deadline).unwrap_or(Timestamp::MAX);
        (at <= deadline || !end.is_clock_trusted).then_some(at)
    }

    /// Returns the delay before the next attempt: [`RetryPolicy::backoff`] plus up to 25% jitter.
    ///
    /// Jitter keeps operations that failed together from retrying together. It is derived from `name` and
    /// `attempts`, so it is equal in every process and different for each operation and attempt.
    pub fn jittered(&self, name: &str, attempts: u32) -> Duration {
        let base = self.backoff(attempts);
        let ContentHash(hash) = ContentHash::new(format!("{name}/{attempts}").as_bytes());
        // Only upwards, so no attempt starts before the backoff ends.
        base + base / 4 * u32::from(hash[0]) / 255
    }

    /// Returns the delay after `attempts` attempts, counted from 1. It doubles with each attempt.
    pub fn backoff(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(DOUBLINGS_MAX);
        // `first` is a setting and may exceed the maximum, which is a constant.
        self.first.saturating_mul(1 << doublings).min(self.longest.max(self.first))
    }

    /// Reports whether an operation was claimed more often than this policy permits attempts.
    ///
    /// An attempt that kills the process reports no failure; its claim just expires. Without this check the
    /// operation would be claimed forever. The deadline alone is not sufficient: after a weekend of downtime,
    /// queued operations get at least one more attempt.
    pub fn is_exhausted(&self, attempts: u32) -> bool {
        let mut remaining = self.deadline;
        let mut permitted = 1_u32;
        // Counts attempts one by one while the delay grows; after that the delay is constant.
        for doublings in 0..DOUBLINGS_MAX {
            let Some(rest) = remaining.checked_sub(self.backoff(doublings + 1)) else {
                return attempts > permitted;
            };
            remaining = rest;
            permitted += 1;
        }
        // At least 1, since a policy without a delay would divide by zero.
        let longest = self.backoff(DOUBLINGS_MAX + 1).as_nanos().max(1);
        let more = u32::try_from(remaining.as_nanos() / longest).unwrap_or(u32::MAX);
        attempts > permitted.saturating_add(more)
    }
}

/// A counter of consecutive failures, and the delays that follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    policy: RetryPolicy,
    failures: u32,
}

impl Backoff {
    /// Starts without a failure.
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, failures: 0 }
    }

    /// Counts a failure and returns the delay before the next attempt.
    pub fn fail(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.policy.backoff(self.failures)
    }

    /// Resets the delay after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_resets_after_a_success() {
        let (first, longest) = (Duration::from_millis(10), Duration::from_secs(1));
        let mut backoff = Backoff::new(RetryPolicy::without_deadline(first, longest));
        let waits: Vec<u128> = (0..9).map(|_| backoff.fail().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(backoff.failures(), 9);
        backoff.reset();
        assert_eq!(backoff.fail(), first);
    }

    #[test]
    fn a_first_wait_above_the_maximum_is_kept() {
        let hour = Duration::from_secs(3600);
        let policy = RetryPolicy::without_deadline(hour, Duration::from_secs(60));
        assert_eq!([1, 2, u32::MAX].map(|attempts| policy.backoff(attempts)), [hour; 3]);
    }

    #[test]
    fn an_endless_policy_never_gives_up() {
        let second = Duration::from_secs(1);
        let policy = RetryPolicy::without_deadline(second, second);
        assert!(!policy.is_exhausted(u32::MAX));
        let end = AttemptEnd { at: Timestamp::MAX, is_clock_trusted: true };
        let next = policy.next_attempt("a", 1, Timestamp::UNIX_EPOCH, end);
        assert_eq!(next, Some(Timestamp::MAX));
    }
}
