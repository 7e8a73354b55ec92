//! Defines the error of the parser.

use model::shorten;

/// A syntax error in a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {position}")]
pub struct QueryError {
    /// A description of the mistake, such as `expected a word after -`.
    pub what: String,
    /// The position of the mistake in characters, from 1. If something is missing at the end of the text, it is
    /// the position after the last character.
    pub position: usize,
}

impl QueryError {
    /// Builds the error for a mistake at a position in characters, from 1.
    pub(super) fn new(what: impl Into<String>, position: usize) -> Self {
        Self { what: what.into(), position }
    }
}

/// Shortens the client's text for a message.
pub(super) fn excerpt(text: &str) -> String {
    const CHARS: usize = 40;
    shorten(text, CHARS)
}
