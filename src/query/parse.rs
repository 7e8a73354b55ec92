//! Text to tree.

use jiff::tz::TimeZone;

use super::field::Place;
use super::tree::{Query, Words};

/// Why a text is no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {position}")]
pub struct QueryError {
    /// What is wrong.
    pub what: String,
    /// Where, in characters; the first is 1.
    pub position: usize,
}

/// Parses the parameter `q`; dates without a time are days in `zone`.
///
/// An empty text, or one of spaces only, is every document.
pub fn parse(text: &str, _zone: &TimeZone) -> Result<Query, QueryError> {
    let leaf =
        |word| Query::Words(Words { place: Place::Anywhere, words: vec![word], prefix: false });
    let leaves: Vec<_> = super::words(text).map(leaf).collect();
    Ok(if leaves.is_empty() { Query::All } else { Query::And(leaves) })
}
