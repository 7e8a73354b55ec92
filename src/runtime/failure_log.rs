//! Logs repeated failures: one line when they begin and one when they end.

use std::fmt::Display;
use std::time::Duration;

use parking_lot::Mutex;

use crate::runtime::clock::Stopwatch;

/// Logs transitions between failure and success, so that work that is repeated ten times a second does not
/// flood the log.
#[derive(Debug)]
pub struct FailureLog {
    name: &'static str,
    failing: bool,
}

impl FailureLog {
    /// Creates a log for the work called `name`, which is assumed to succeed at first.
    pub const fn new(name: &'static str) -> Self {
        Self { name, failing: false }
    }

    /// Sets whether a failure of the work was logged before.
    #[must_use]
    pub const fn with_failing(self, failing: bool) -> Self {
        Self { failing, ..self }
    }

    /// Logs the outcome of a run if it differs from the outcome of the previous run.
    pub fn record<T, E: Display>(&mut self, outcome: &Result<T, E>) {
        let name = self.name;
        match outcome {
            Err(cause) if !self.failing => {
                tracing::error!("job {name}: failed, retrying: {cause}");
            }
            Ok(_) if self.failing => tracing::info!("job {name}: works again"),
            Err(_) | Ok(_) => {}
        }
        self.failing = outcome.is_err();
    }

    /// Returns whether the last run failed.
    #[cfg(test)]
    pub const fn is_failing(&self) -> bool {
        self.failing
    }
}

/// Counts the failures of an outage that affects many threads, so that the log has one line for the first
/// failure and one for the end. The callers write the lines.
#[derive(Debug, Default)]
pub struct OutageLog {
    outage: Mutex<Option<Outage>>,
}

/// An outage that has not ended.
#[derive(Debug)]
struct Outage {
    began: Stopwatch,
    last: Stopwatch,
    failures: u64,
}

/// An outage that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedOutage {
    /// Number of failures in the outage.
    pub failures: u64,
    /// Time from the first failure to the end of the outage.
    pub lasted: Duration,
}

impl OutageLog {
    /// Creates a log without an outage.
    pub const fn new() -> Self {
        Self { outage: Mutex::new(None) }
    }

    /// Counts a failure. Returns whether it begins an outage, and so needs a log line.
    pub fn record(&self) -> bool {
        let now = Stopwatch::start();
        let mut outage = self.outage.lock();
        let is_first = outage.is_none();
        let outage = outage.get_or_insert(Outage { began: now, last: now, failures: 0 });
        outage.last = now;
        outage.failures = outage.failures.saturating_add(1);
        is_first
    }

    /// Ends the outage if it has had no failure for `quiet`. Called after a success, which may be chance
    /// while other calls fail.
    pub fn end_after(&self, quiet: Duration) -> Option<EndedOutage> {
        let ended = self.outage.lock().take_if(|outage| outage.last.elapsed() >= quiet)?;
        Some(EndedOutage { failures: ended.failures, lasted: ended.began.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_one_beginning_and_one_end_that_counts_its_failures() {
        let log = OutageLog::new();
        assert_eq!(log.end_after(Duration::ZERO), None);
        assert!(log.record());
        assert!(!log.record() && !log.record());
        assert_eq!(log.end_after(Duration::from_secs(3600)), None, "others may still fail");
        assert_eq!(log.end_after(Duration::ZERO).map(|ended| ended.failures), Some(3));
        assert_eq!(log.end_after(Duration::ZERO), None);
        assert!(log.record(), "a new outage");
    }
}
