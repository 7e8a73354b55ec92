//! Defines the errors of the index, and checks the time limit of a search.

use std::io;

/// The reason why the index cannot be searched or written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The search exceeded its time limit.
    #[error("the search took too long")]
    TimedOut,
    /// Files of the index are damaged, or cannot be read or written.
    #[error("the search index cannot be used: {0}")]
    Engine(#[from] tantivy::TantivyError),
    /// A folder or file cannot be read or written.
    #[error("the search index cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// The result type of the index.
pub type Result<T> = std::result::Result<T, IndexError>;

/// Returns true if the time limit of a search is exceeded.
pub(crate) type DeadlineCheck<'a> = &'a dyn Fn() -> bool;

/// Fails with [`IndexError::TimedOut`] if the time limit is exceeded.
pub(crate) fn ensure_time(is_over: DeadlineCheck<'_>) -> Result<()> {
    if is_over() { Err(IndexError::TimedOut) } else { Ok(()) }
}
