#![doc = include_str!("../README.md")]
//!
//! # Implementation
//!
//! A query is parsed once into a tree, [`Query`]. A search index looks up the leaves of the tree;
//! [`Query::matches`] and [`matching::InterestMatcher`] evaluate them on one document in memory. All of them read
//! a document through [`IndexedDocument`], so their results agree.

mod address;
mod error;
mod facet;
mod field;
mod filter;
mod fold;
mod html;
mod indexed;
pub mod limits;
mod matches;
pub mod matching;
mod number;
mod parse;
mod picture;
mod print;
mod property;
mod range;
mod scan;
mod time_interval;
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

pub use address::find_item;
pub use error::QueryError;
pub use facet::Facet;
pub use field::{DateField, TextField};
pub use filter::{FilterError, FilterField, ItemFilter, filter_text, narrowed_text, phrase};
pub use fold::{Word, word_spans, words};
pub use indexed::{IndexedDocument, IndexedFacts, RightsTerms};
pub use number::{FiniteNumber, NumberField, NumericRange};
pub use parse::{parse, parse_with_forms};
pub use picture::{COLOURS, ORIENTATIONS, PictureFacts};
pub use tree::{DateRange, LookupTokens, Query, WordPattern, id_token, property_token_prefix};
