//! The query language, and what of a document it searches (Spec §4 Shared parameters `q`; agreed:
//! words, `AND` `OR` `NOT` `+` `-`, parentheses, phrases, prefixes, fields, ranges of dates and
//! numbers; as in Lucene's language `&&` `||` `!` `*` and comparisons).
//!
//! A query is parsed once into a [`Query`]. The database looks its leaves up in an index of words,
//! notifications try it on one document in memory; both read a document through [`Indexed`], so
//! that they agree. Nothing here knows SQL or HTTP.

mod address;
mod facet;
mod field;
mod fold;
mod html;
mod indexed;
pub mod limits;
mod matches;
pub mod matching;
mod moment;
mod number;
mod parse;
mod print;
mod property;
mod range;
mod scan;
mod tree;

#[cfg(test)]
mod indexed_tests;
#[cfg(test)]
mod lucene_tests;
#[cfg(test)]
mod matches_tests;
#[cfg(test)]
mod parse_tests;
#[cfg(test)]
pub(crate) mod samples;

pub use facet::Facet;
pub use field::{DateField, Place};
pub use fold::{Word, words};
pub use indexed::Indexed;
pub use number::{Number, NumberField, Numbers};
pub use parse::{QueryError, parse, parse_with_forms};
pub use tree::{Dates, Query, Tokens, Words, id_token, named_start};
