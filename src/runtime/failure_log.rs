//! Logs the failures of repeated work: one line when it starts to fail and one when it recovers.

use std::fmt::Display;

/// Logs transitions between failure and success, so that work repeated ten times a second does not flood the
/// log.
#[derive(Debug)]
pub struct FailureLog {
    name: &'static str,
    failing: bool,
}

impl FailureLog {
    /// Creates a log for the work called `name`, which is assumed to succeed at first.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, failing: false }
    }

    /// Sets whether a failure of the work was logged before.
    #[must_use]
    pub const fn with_failing(self, failing: bool) -> Self {
        Self { failing, ..self }
    }

    /// Logs the outcome of a run if it differs from that of the previous run.
    pub fn record<T, E: Display>(&mut self, outcome: &Result<T, E>) {
        let name = self.name;
        match (outcome, self.failing) {
            (Err(cause), false) => tracing::error!("job {name}: failed, retrying: {cause}"),
            (Ok(_), true) => tracing::info!("job {name}: works again"),
            (Err(_), true) | (Ok(_), false) => {}
        }
        self.failing = outcome.is_err();
    }

    /// Whether the last run failed.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.failing
    }
}
