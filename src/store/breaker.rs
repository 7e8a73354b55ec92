//! Whether a bucket is asked at all.
//!
//! A request to a bucket that hangs waits for its time-out on a thread of its own, and renders wait
//! behind it that could be answered. So a bucket from which nothing but failures came for a while is
//! left alone: what needs it fails at once, and one request a second finds out when it answers again.
//! Whatever is in a cache goes on being served.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::clock::Stopwatch;
use crate::telemetry;

/// Time in which nothing but failures came, after which a bucket is left alone. A service that loses
/// a machine, or is upgraded, answers again before.
const FAILING_MAX: Duration = Duration::from_secs(5);
/// Failures of which that time has to consist: a single connection that broke unnoticed shows nothing.
const FAILURES_MIN: u32 = 2;
/// Time between two requests that find out whether it is back.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What is known of a bucket from the answers to its requests.
#[derive(Debug)]
pub(super) struct Breaker {
    /// The bucket, as messages name it.
    place: String,
    watch: Stopwatch,
    state: Mutex<State>,
    opened: Notify,
}

/// Times are since the start.
#[derive(Debug, Default)]
struct State {
    /// When the last good answer came.
    good: Option<Duration>,
    failing: Option<Failing>,
    left_alone: Option<LeftAlone>,
}

/// Requests of which none was answered well.
#[derive(Clone, Copy, Debug)]
struct Failing {
    /// When the first of them began.
    since: Duration,
    /// When the last of them failed.
    last: Duration,
    count: u32,
}

/// A bucket that is not asked.
#[derive(Debug)]
struct LeftAlone {
    since: Duration,
    /// What went wrong last.
    why: String,
}

impl State {
    /// A request that began then has failed now: `true` when the bucket is left alone from now on.
    fn failed(&mut self, (began, now): (Duration, Duration), why: &str) -> bool {
        if let Some(left_alone) = &mut self.left_alone {
            why.clone_into(&mut left_alone.why);
            return false;
        }
        if self.good.is_some_and(|good| good >= began) {
            // Another one was answered meanwhile: it was not the bucket.
            return false;
        }
        let joined = self.failing.filter(|known| began <= known.last + FAILING_MAX);
        let known = joined.unwrap_or(Failing { since: began, last: now, count: 0 });
        let failing = Failing { since: known.since.min(began), last: now, count: known.count + 1 };
        self.failing = Some(failing);
        let open =
            failing.count >= FAILURES_MIN && now.saturating_sub(failing.since) >= FAILING_MAX;
        if open {
            self.leave_alone(failing.since, why);
        }
        open
    }

    fn leave_alone(&mut self, since: Duration, why: &str) {
        self.left_alone = Some(LeftAlone { since, why: why.to_owned() });
    }

    /// A good answer came: since when the bucket was left alone, if it was.
    fn answered(&mut self, now: Duration) -> Option<Duration> {
        self.good = Some(now);
        self.failing = None;
        self.left_alone.take().map(|left_alone| left_alone.since)
    }
}

impl Breaker {
    /// For the bucket that messages call `place`, of which nothing is known.
    pub(super) fn new(place: String) -> Self {
        Self { place, watch: Stopwatch::start(), state: Mutex::default(), opened: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole at every unlock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time at which a request begins, for [`Breaker::failed`].
    pub(super) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// A request that began then was not answered, or not as a bucket answers that is well.
    pub(super) fn failed(&self, began: Duration, why: &str) {
        let opened = self.lock().failed((began, self.now()), why);
        if opened {
            self.tell(why);
        }
    }

    /// Leaves the bucket alone from now on, whatever was known of it.
    pub(super) fn leave_alone(&self, why: &str) {
        let now = self.now();
        self.lock().leave_alone(now, why);
        self.tell(why);
    }

    fn tell(&self, why: &str) {
        self.report();
        let place = &self.place;
        tracing::error!("{place} only fails: it is left alone until it answers again: {why}");
        self.opened.notify_one();
    }

    /// Writes to the metrics whether the bucket is left alone.
    pub(super) fn report(&self) {
        let away = self.lock().left_alone.is_some();
        metrics::gauge!(telemetry::BUCKET_AWAY).set(f64::from(u8::from(away)));
    }

    /// A good answer came.
    pub(super) fn answered(&self) {
        let now = self.now();
        let Some(since) = self.lock().answered(now) else { return };
        self.report();
        let seconds = now.saturating_sub(since).as_secs();
        tracing::info!(seconds, "{} answers again", self.place);
    }

    /// Why the bucket is not to be asked now.
    pub(super) fn refusal(&self) -> Option<io::Error> {
        let state = self.lock();
        let why = &state.left_alone.as_ref()?.why;
        let said = format!("it is not asked, because it only failed: {why}");
        Some(io::Error::other(said))
    }

    /// Waits until the bucket is left alone.
    pub(super) async fn left_alone(&self) {
        loop {
            let opened = self.opened.notified();
            if self.lock().left_alone.is_some() {
                return;
            }
            opened.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The times of failures, each with its beginning, and at which of them the bucket is left alone.
    fn check(failures: &[(u64, u64)], expected: Option<usize>) {
        let mut state = State::default();
        let opened = failures
            .iter()
            .position(|(began, now)| state.failed((at(*began), at(*now)), "it hangs"));
        assert_eq!(opened, expected, "{failures:?}");
    }

    #[test]
    fn a_bucket_that_only_fails_for_a_while_is_left_alone() {
        check(&[(0, 10_000), (10_100, 20_100)], Some(1));
        check(&[(0, 10_000), (100, 10_100)], Some(1));
        check(&[(0, 1), (1000, 1001), (4000, 4001), (5000, 5001), (6000, 6001)], Some(3));
    }

    #[test]
    fn one_failure_or_some_far_apart_show_nothing() {
        check(&[(0, 60_000)], None);
        check(&[(0, 1), (6000, 6001), (20_000, 20_001)], None);
        check(&[(0, 1), (10, 11), (20, 21), (4900, 4901)], None);
    }

    #[test]
    fn an_answer_to_another_request_shows_that_it_is_well() {
        let mut state = State::default();
        assert!(!state.failed((at(0), at(10_000)), "it hangs"));
        assert_eq!(state.answered(at(10_500)), None);
        assert!(!state.failed((at(200), at(10_600)), "it hangs"), "it began before the answer");
        assert!(!state.failed((at(10_700), at(20_700)), "it hangs"));
        assert!(state.failed((at(20_800), at(30_800)), "it hangs"));
        assert!(!state.failed((at(31_000), at(32_000)), "it refuses"), "only once");
        assert_eq!(state.left_alone.as_ref().map(|open| open.why.as_str()), Some("it refuses"));
        assert_eq!(state.answered(at(40_000)), Some(at(10_700)));
        assert_eq!(state.answered(at(41_000)), None);
    }
}
