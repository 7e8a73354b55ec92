//! Whether a bucket is asked at all.
//!
//! A request to a bucket that hangs waits for its time-out on a thread of its own, and renders wait
//! behind it that could be answered. So a bucket from which nothing but failures came for a while is
//! left alone: what needs it fails at once, and one request a second finds out when it answers again: a list of
//! nothing, and where that is refused as everything else was, the next request that somebody has.
//! Whatever is in a cache goes on being served.

use std::{io, mem, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::runtime::clock::Stopwatch;
use crate::runtime::telemetry;

/// Time in which nothing but failures came, after which a bucket is left alone. A service that loses
/// a machine, or is upgraded, answers again before.
const FAILING_MAX: Duration = Duration::from_secs(5);
/// Failures of which that time has to consist: a single connection that broke unnoticed shows nothing.
const FAILURES_MIN: u32 = 2;
/// Time between two requests that find out whether it is back.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of a bucket from the answers to its requests.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// The bucket, as messages name it.
    place: String,
    watch: Stopwatch,
    state: Mutex<BreakerState>,
    circuit_opened: Notify,
    /// Ends what is under way when that begins.
    abort: Notify,
}

/// Times are since the start.
#[derive(Debug, Default)]
struct BreakerState {
    /// When the last good answer came.
    last_success: Option<Duration>,
    failing: Option<FailureStreak>,
    open_circuit: Option<OpenCircuit>,
}

/// Requests of which none was answered well.
#[derive(Clone, Copy, Debug)]
struct FailureStreak {
    /// When the first of them began.
    since: Duration,
    /// When the last of them failed.
    last: Duration,
    count: u32,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketFault {
    /// There was no answer, or one that says to come again.
    NoAnswer,
    /// Who asks may not.
    Refused,
}

/// A bucket that is not asked.
#[derive(Debug)]
struct OpenCircuit {
    since: Duration,
    /// What it was that went wrong when that began.
    fault: BucketFault,
    /// What went wrong last.
    why: String,
    /// Whether the next request is let through, to find out by it whether the bucket is back.
    is_probe_due: bool,
}

impl BreakerState {
    /// A request that began then has failed now: `true` when the bucket is left alone from now on.
    fn record_failure(
        &mut self,
        began: Duration,
        now: Duration,
        fault: BucketFault,
        why: &str,
    ) -> bool {
        if let Some(left_alone) = &mut self.open_circuit {
            why.clone_into(&mut left_alone.why);
            return false;
        }
        if self.last_success.is_some_and(|good| good >= began) {
            // Another one was answered meanwhile: it was not the bucket.
            return false;
        }
        let joined = self.failing.filter(|known| began <= known.last + FAILING_MAX);
        let known = joined.unwrap_or(FailureStreak { since: began, last: now, count: 0 });
        let failing =
            FailureStreak { since: known.since.min(began), last: now, count: known.count + 1 };
        self.failing = Some(failing);
        let open =
            failing.count >= FAILURES_MIN && now.saturating_sub(failing.since) >= FAILING_MAX;
        if open {
            self.open(failing.since, fault, why);
        }
        open
    }

    fn open(&mut self, since: Duration, fault: BucketFault, why: &str) {
        self.open_circuit =
            Some(OpenCircuit { since, fault, why: why.to_owned(), is_probe_due: false });
    }

    /// It refuses to say whether it is back: `true` when that shows that it is. Where refusals are why it is
    /// left alone, the next request shows it.
    fn closes_on_refusal(&mut self) -> bool {
        let Some(left_alone) = &mut self.open_circuit else { return false };
        left_alone.is_probe_due = left_alone.fault == BucketFault::Refused;
        !left_alone.is_probe_due
    }

    /// Whether a request that is to be made now is the one that finds out.
    fn take_probe(&mut self) -> bool {
        self.open_circuit
            .as_mut()
            .is_some_and(|left_alone| mem::take(&mut left_alone.is_probe_due))
    }

    /// A good answer came: since when the bucket was left alone, if it was.
    fn record_success(&mut self, now: Duration) -> Option<Duration> {
        self.last_success = Some(now);
        self.failing = None;
        self.open_circuit.take().map(|left_alone| left_alone.since)
    }
}

impl CircuitBreaker {
    /// For the bucket that messages call `place`, of which nothing is known.
    pub(super) fn new(place: String) -> Self {
        let (opened, leaving) = (Notify::new(), Notify::new());
        Self {
            place,
            watch: Stopwatch::start(),
            state: Mutex::default(),
            circuit_opened: opened,
            abort: leaving,
        }
    }

    /// The time at which a request begins, for [`CircuitBreaker::failed`].
    pub(super) fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// A request that began then was not answered, or not as a bucket answers that is well.
    pub(super) fn record_failure(&self, began: Duration, fault: BucketFault, why: &str) {
        let opened = self.state.lock().record_failure(began, self.now(), fault, why);
        if opened {
            self.tell(why);
        }
    }

    /// Leaves the bucket alone from now on, whatever was known of it.
    pub(super) fn open_circuit(&self, why: &str) {
        let now = self.now();
        self.state.lock().open(now, BucketFault::NoAnswer, why);
        self.tell(why);
    }

    fn tell(&self, why: &str) {
        self.report();
        let place = &self.place;
        tracing::error!("{place} only fails: it is left alone until it answers again: {why}");
        self.circuit_opened.notify_one();
        self.abort.notify_waiters();
    }

    /// Writes to the metrics whether the bucket is left alone.
    pub(super) fn report(&self) {
        let away = self.state.lock().open_circuit.is_some();
        metrics::gauge!(telemetry::BUCKET_CIRCUIT_OPEN).set(f64::from(u8::from(away)));
    }

    /// A good answer came.
    pub(super) fn record_success(&self) {
        let now = self.now();
        let Some(since) = self.state.lock().record_success(now) else { return };
        self.report();
        let seconds = now.saturating_sub(since).as_secs();
        tracing::info!(seconds, "{} answers again", self.place);
    }

    /// The bucket refused to say whether it is back. It answers, and whoever may not list may read, unless
    /// refusals were why it is left alone: then the next request is let through ([`CircuitBreaker::takes_trial`]).
    pub(super) fn record_probe_refusal(&self) {
        if self.state.lock().closes_on_refusal() {
            self.record_success();
        }
    }

    /// Whether a request is let through although the bucket is left alone: what came of it says more than
    /// a list that is refused anyway. One for each time that this was refused.
    pub(super) fn take_probe(&self) -> bool {
        self.state.lock().take_probe()
    }

    /// Why the bucket is not to be asked now.
    pub(super) fn open_error(&self) -> Option<io::Error> {
        let state = self.state.lock();
        let why = &state.open_circuit.as_ref()?.why;
        let said = format!("it is not asked, because it only failed: {why}");
        Some(io::Error::other(said))
    }

    /// Ends when the bucket is left alone, with what is to be said of it: a request that is under way
    /// has nothing to wait for.
    pub(super) async fn abort_error(&self) -> io::Error {
        let mut told = std::pin::pin!(self.abort.notified());
        // Whoever tells between the look and the wait is heard.
        told.as_mut().enable();
        if let Some(said) = self.open_error() {
            return said;
        }
        told.await;
        self.open_error().unwrap_or_else(|| io::Error::other("it only failed"))
    }

    /// Waits until the bucket is left alone.
    pub(super) async fn wait_until_open(&self) {
        loop {
            let opened = self.circuit_opened.notified();
            if self.state.lock().open_circuit.is_some() {
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
        let mut state = BreakerState::default();
        let opened = failures.iter().position(|(began, now)| {
            state.record_failure(at(*began), at(*now), BucketFault::NoAnswer, "it hangs")
        });
        assert_eq!(opened, expected, "{failures:?}");
    }

    #[tokio::test]
    async fn what_is_under_way_ends_when_a_bucket_is_left_alone() {
        let breaker = CircuitBreaker::new("bucket x".to_owned());
        let mut waits = std::pin::pin!(breaker.abort_error());
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
        });
        assert!(now.await);
        breaker.open_circuit("it hangs");
        assert!(waits.await.to_string().contains("it hangs"));
        assert!(
            breaker.abort_error().await.to_string().contains("it hangs"),
            "it is left alone already"
        );
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
        let mut state = BreakerState::default();
        assert!(!state.record_failure(at(0), at(10_000), BucketFault::NoAnswer, "it hangs"));
        assert_eq!(state.record_success(at(10_500)), None);
        assert!(
            !state.record_failure(at(200), at(10_600), BucketFault::NoAnswer, "it hangs"),
            "it began before the answer"
        );
        assert!(!state.record_failure(at(10_700), at(20_700), BucketFault::NoAnswer, "it hangs"));
        assert!(state.record_failure(at(20_800), at(30_800), BucketFault::NoAnswer, "it hangs"));
        assert!(
            !state.record_failure(at(31_000), at(32_000), BucketFault::Refused, "it refuses"),
            "only once"
        );
        assert_eq!(state.open_circuit.as_ref().map(|open| open.why.as_str()), Some("it refuses"));
        assert_eq!(state.record_success(at(40_000)), Some(at(10_700)));
        assert_eq!(state.record_success(at(41_000)), None);
    }

    #[test]
    fn a_refusal_to_say_whether_it_is_back_shows_that_it_answers() {
        let mut state = BreakerState::default();
        for fault in [BucketFault::NoAnswer, BucketFault::Refused] {
            for began in [0, 1000, 6000] {
                state.record_failure(at(began), at(began + 1), fault, "it fails");
            }
            // The question itself fails too.
            state.record_failure(at(7000), at(7001), BucketFault::Refused, "it answers 403");
            assert!(!state.take_probe(), "nobody asked yet: {fault:?}");
            assert_eq!(state.closes_on_refusal(), fault == BucketFault::NoAnswer, "{fault:?}");
            let trials = [state.take_probe(), state.take_probe()];
            assert_eq!(trials, [fault == BucketFault::Refused, false], "one: {fault:?}");
            assert_eq!(state.record_success(at(8000)), Some(at(0)));
            assert!(!state.closes_on_refusal() && !state.take_probe());
            state = BreakerState::default();
        }
    }
}
