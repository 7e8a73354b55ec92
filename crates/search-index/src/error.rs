//! Why the index cannot answer.

use std::io;

/// Why the index cannot answer or be written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The time that a search may take is over.
    #[error("the search took too long")]
    TimedOut,
    /// Files of the index cannot be read or written, or are damaged.
    #[error("the search index cannot be used: {0}")]
    Engine(#[from] tantivy::TantivyError),
    /// A folder or file cannot be read or written.
    #[error("the search index cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// What the index gives, or why not.
pub type Result<T> = std::result::Result<T, IndexError>;
