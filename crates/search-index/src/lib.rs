#![doc = include_str!("../README.md")]
//!
//! # Implementation
//!
//! An index is a folder. One [`IndexWriter`] adds and removes versions of items. [`SearchIndex::refresh`] makes
//! committed changes visible, and an [`IndexSnapshot`] shows exactly one commit for as long as it is held. The
//! index stores only the data by which items are searched, sorted and counted; the result of a search is a list of
//! version numbers.
//!
//! [`query`] defines words and the searchable parts of a document. The matcher of notifications uses the same
//! definition, so it agrees with the index.
//!
//! # How a search is evaluated
//!
//! The documents of each segment are sorted by `_tstamp`, the latest first. Every condition of a search (a word, a
//! product, a range of dates) becomes a set of documents of the segment. Segments are immutable, so the sets are
//! cached for the lifetime of their segment, within a budget of bytes. A search combines the sets, subtracts the
//! removed documents, and counts, sorts and aggregates the remaining ones.

mod complete;
mod error;
mod evaluate;
mod facet_dictionary;
mod facets;
mod index;
mod near;
mod order;
mod page;
mod rank;
mod request;
mod respell;
mod schema;
mod segment;
mod sets;
mod stems;
#[cfg(feature = "oracle")]
pub mod testing;
mod words;
mod writer;

pub use complete::{CompletionRequest, Completions};
pub use error::{IndexError, Result};
pub use evaluate::MatchedDocuments;
pub use index::{IndexSnapshot, SearchIndex};
pub use request::{
    Coverage, FacetCondition, FacetCounts, OrderPosition, ResultPage, SearchFilter, SortDate,
    SortOrder,
};
pub use stems::is_form_of;
pub use writer::{CommitPosition, IndexWriter, ItemVersion, VersionAdder, stamp};

/// The version of the document analysis. It increases with every change of the schema, the spelling of terms or
/// the stemming algorithms. An index with a different version has to be rebuilt.
pub const ANALYSIS: u32 = 6;
