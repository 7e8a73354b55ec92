//! Checks the time limit of a search.

use crate::error::{IndexError, Result};

/// Returns true if the time limit of a search is exceeded.
pub(crate) type DeadlineCheck<'a> = &'a dyn Fn() -> bool;

/// Fails with [`IndexError::TimedOut`] if the time limit is exceeded.
pub(crate) fn ensure_time(is_over: DeadlineCheck<'_>) -> Result<()> {
    if is_over() { Err(IndexError::TimedOut) } else { Ok(()) }
}
