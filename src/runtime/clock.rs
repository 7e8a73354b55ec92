//! The only reader of clocks. Everything else takes the time as an argument.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Reads the wall clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Measures elapsed time for logs, metrics, benchmarks and limits of work; where no limit is reached it
/// never decides what is answered.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the steady clock")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Milliseconds since the start, with fractions.
    #[must_use]
    pub fn elapsed_ms(&self) -> f64 {
        self.elapsed().as_secs_f64() * 1000.0
    }
}
