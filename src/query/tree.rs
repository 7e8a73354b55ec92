//! A parsed query.

use jiff::Timestamp;

use super::field::{DateField, Place};
use super::fold::Word;

/// A query as a tree. Its depth and the number of its leaves are bounded by the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Every document.
    All,
    /// Documents with these words.
    Words(Words),
    /// Documents with a date in this range.
    Dates(Dates),
    /// Documents that satisfy all of these, at least one.
    And(Vec<Query>),
    /// Documents that satisfy one of these, at least one.
    Or(Vec<Query>),
    /// Documents that do not satisfy this.
    Not(Box<Query>),
}

/// A word, a phrase, or the beginning of a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// Where they stand.
    pub place: Place,
    /// One word, or several that stand side by side within one value; at least one.
    pub words: Vec<Word>,
    /// Whether the last one is only the beginning of a word.
    pub prefix: bool,
}

/// A range of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dates {
    /// Which date.
    pub field: DateField,
    /// The first moment, inclusive.
    pub from: Option<Timestamp>,
    /// The end, exclusive.
    pub until: Option<Timestamp>,
}

impl Words {
    /// The tokens that stand side by side in the index.
    #[must_use]
    pub fn tokens(&self) -> Vec<String> {
        let token = |word: &Word| match self.place {
            Place::Named(field) => format!("{field}={}", word.folded),
            Place::Anywhere | Place::Headline | Place::Description | Place::Body => {
                word.folded.clone()
            }
        };
        self.words.iter().map(token).collect()
    }

    /// The tags that must be there too, for words with accents.
    #[must_use]
    pub fn exact_tokens(&self) -> Vec<String> {
        Vec::new()
    }
}
