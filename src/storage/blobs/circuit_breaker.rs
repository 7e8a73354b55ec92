//! The circuit breaker of a bucket, which decides whether requests are sent at all.
//!
//! A request to a bucket that hangs occupies a thread until its timeout, and renders that could be answered
//! queue behind it. So the circuit opens after a period with failures only: requests then fail at once. While
//! it is open, one probe a second detects the recovery of the bucket. The probe is an empty listing. If
//! listings are refused and refusals opened the circuit, it is the next client request. Cached content
//! continues to be served.

use std::{io, mem, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::runtime::clock::Stopwatch;
use crate::runtime::telemetry;

/// Period of failures without a success after which the circuit opens. A service that loses a machine or is
/// upgraded recovers sooner.
const FAILING_MAX: Duration = Duration::from_secs(5);
/// Minimum number of failures in that period: a single broken connection proves nothing.
const FAILURES_MIN: u32 = 2;
/// Interval between two probes of an open circuit.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The circuit breaker of a bucket. It derives its state from the outcomes of requests.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// The bucket, as messages name it.
    place: String,
    stopwatch: Stopwatch,
    state: Mutex<BreakerState>,
    circuit_opened: Notify,
    /// Aborts the requests in flight when the circuit opens.
    abort: Notify,
}

/// The state of the breaker. Times are durations since its start.
#[derive(Debug, Default)]
struct BreakerState {
    /// Time of the last success.
    last_success: Option<Duration>,
    failing: Option<FailureStreak>,
    open_circuit: Option<OpenCircuit>,
}

/// A run of failed requests without a success in between.
#[derive(Clone, Copy, Debug)]
struct FailureStreak {
    /// Start of the first of them.
    since: Duration,
    /// Time at which the last of them failed.
    last: Duration,
    count: u32,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BucketFault {
    /// No answer arrived, or an answer that asks the client to retry later.
    NoAnswer,
    /// The credentials are refused.
    Refused,
}

/// The facts of an open circuit.
#[derive(Debug)]
struct OpenCircuit {
    since: Duration,
    /// The kind of failure that opened the circuit.
    fault: BucketFault,
    /// The message of the most recent failure.
    why: String,
    /// True if the next request is let through as the probe.
    is_probe_due: bool,
}

impl BreakerState {
    /// Records the failure at `now` of a request that began at `began`. Returns `true` if it opens the
    /// circuit.
    fn record_failure(
        &mut self,
        began: Duration,
        now: Duration,
        fault: BucketFault,
        why: &str,
    ) -> bool {
        // Already open: only the most recent message is stored.
        if let Some(open) = &mut self.open_circuit {
            why.clone_into(&mut open.why);
            return false;
        }
        if self.last_success.is_some_and(|success| success >= began) {
            // A different request succeeded in the meantime: the bucket is not at fault.
            return false;
        }
        // A failure long after the last one starts a new streak, so isolated failures never add up.
        let previous = self.failing.filter(|streak| began <= streak.last + FAILING_MAX);
        let streak = previous.unwrap_or(FailureStreak { since: began, last: now, count: 0 });
        // Failures arrive in the order of their ends, so a later one may have begun first.
        let failing =
            FailureStreak { since: streak.since.min(began), last: now, count: streak.count + 1 };
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

    /// Handles a refused probe. Returns `true` if the refusal proves that the bucket answers. If refusals
    /// opened the circuit, it proves nothing: the next request becomes the probe.
    fn closes_on_refusal(&mut self) -> bool {
        let Some(open) = &mut self.open_circuit else { return false };
        open.is_probe_due = open.fault == BucketFault::Refused;
        !open.is_probe_due
    }

    /// Returns whether the next request is the probe: at most once per refused probe.
    fn take_probe(&mut self) -> bool {
        let open = self.open_circuit.as_mut();
        // Reset at once, so that of many waiting requests only one reaches a bucket that may still refuse.
        open.is_some_and(|open| mem::take(&mut open.is_probe_due))
    }

    /// Records a success. Returns the time at which the circuit opened, if it was open.
    fn record_success(&mut self, now: Duration) -> Option<Duration> {
        self.last_success = Some(now);
        self.failing = None;
        self.open_circuit.take().map(|open| open.since)
    }
}

impl CircuitBreaker {
    /// Creates a closed circuit for the bucket `place`, which is its name in messages.
    pub(super) fn new(place: String) -> Self {
        Self {
            place,
            stopwatch: Stopwatch::start(),
            state: Mutex::default(),
            circuit_opened: Notify::new(),
            abort: Notify::new(),
        }
    }

    /// Returns the time at which a request begins, for [`CircuitBreaker::record_failure`].
    pub(super) fn now(&self) -> Duration {
        self.stopwatch.elapsed()
    }

    /// Records that a request that began at `began` got no answer, or an answer that a healthy bucket does
    /// not give.
    pub(super) fn record_failure(&self, began: Duration, fault: BucketFault, why: &str) {
        let opened = self.state.lock().record_failure(began, self.now(), fault, why);
        if opened {
            self.announce(why);
        }
    }

    /// Opens the circuit, regardless of earlier answers.
    pub(super) fn open_circuit(&self, why: &str) {
        let now = self.now();
        self.state.lock().open(now, BucketFault::NoAnswer, why);
        self.announce(why);
    }

    fn announce(&self, why: &str) {
        self.report();
        let place = &self.place;
        tracing::error!("{place} keeps failing: circuit open until a probe succeeds: {why}");
        // One permit is stored for the single probing task, so it cannot miss the notification.
        self.circuit_opened.notify_one();
        self.abort.notify_waiters();
    }

    /// Writes the state of the circuit to the metrics.
    pub(super) fn report(&self) {
        telemetry::set_bucket_circuit_open(self.state.lock().open_circuit.is_some());
    }

    /// Records a success, which closes an open circuit.
    pub(super) fn record_success(&self) {
        let now = self.now();
        let Some(since) = self.state.lock().record_success(now) else { return };
        self.report();
        let seconds = now.saturating_sub(since).as_secs();
        tracing::info!(seconds, "{} answers again: circuit closed", self.place);
    }

    /// Records that a probe was refused. The refusal is an answer, and closes the circuit: a key that may not
    /// list may still read. If refusals opened the circuit, the next request is let through instead
    /// ([`CircuitBreaker::take_probe`]).
    pub(super) fn record_probe_refusal(&self) {
        if self.state.lock().closes_on_refusal() {
            self.record_success();
        }
    }

    /// Returns whether a request is let through although the circuit is open: once for each refused probe.
    /// Its result says more about the bucket than a listing that is refused anyway.
    pub(super) fn take_probe(&self) -> bool {
        self.state.lock().take_probe()
    }

    /// Returns the reason that requests fail at once; `None` while the circuit is closed.
    pub(super) fn open_error(&self) -> Option<io::Error> {
        let state = self.state.lock();
        let why = &state.open_circuit.as_ref()?.why;
        let message = format!("circuit open after repeated failures: {why}");
        Some(io::Error::other(message))
    }

    /// Waits until the circuit opens. Returns the error for requests in flight, which would otherwise wait
    /// for their timeout.
    pub(super) async fn abort_error(&self) -> io::Error {
        let mut aborted = std::pin::pin!(self.abort.notified());
        // Registers before the state is checked, so that a notification between check and wait is not lost.
        aborted.as_mut().enable();
        if let Some(error) = self.open_error() {
            return error;
        }
        aborted.await;
        // A probe may have closed the circuit again before this task ran.
        self.open_error()
            .unwrap_or_else(|| io::Error::other("circuit open after repeated failures"))
    }

    /// Waits until the circuit is open.
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

    /// Checks which of the failures, given by their beginning and end, opens the circuit.
    fn check(failures: &[(u64, u64)], expected: Option<usize>) {
        let mut state = BreakerState::default();
        let opened = failures.iter().position(|(began, now)| {
            state.record_failure(at(*began), at(*now), BucketFault::NoAnswer, "it hangs")
        });
        assert_eq!(opened, expected, "{failures:?}");
    }

    #[tokio::test]
    async fn calls_in_flight_end_when_the_circuit_opens() {
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
    fn a_bucket_that_keeps_failing_opens_the_circuit() {
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
            // The probe fails too.
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
