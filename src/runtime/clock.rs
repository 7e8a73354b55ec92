//! Reads the clocks of the system. All other code receives the time as an argument.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Reads the wall clock.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Blocks the calling thread for `time`, between two looks at a state that another process changes. Where an
/// event can be waited for, wait for the event.
#[expect(clippy::disallowed_methods, reason = "the one place that pauses a thread")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Measures elapsed time for logs, metrics, benchmarks and time limits. It affects a response only if a limit
/// is exceeded.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring from now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the milliseconds since the start, with fractions.
    pub fn elapsed_ms(&self) -> f64 {
        self.elapsed().as_secs_f64() * 1000.0
    }
}

/// Returns whether at least `time` has elapsed; true if there is no stopwatch yet.
pub fn has_elapsed(since: Option<Stopwatch>, time: Duration) -> bool {
    since.is_none_or(|since| since.elapsed() >= time)
}
