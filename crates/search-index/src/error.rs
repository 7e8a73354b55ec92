//! Defines the errors of the index.

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
