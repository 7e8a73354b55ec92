#![doc = include_str!("../README.md")]
//!
//! # How it is made
//!
//! An index is a folder. One [`IndexWriter`] adds versions of items and removes them; [`SearchIndex::refresh`]
//! makes what was committed visible, and a [`IndexSnapshot`] answers from exactly one commit, however
//! long it is kept. Nothing of an item is stored but what it is searched, ordered and counted by:
//! the answer to a search is numbers of versions.
//!
//! What is a word, and what of a document is searched, is [`query`]'s: the matcher
//! of notifications reads the same, and so agrees with the index.
//!
//! # How a search is evaluated
//!
//! Each segment holds its documents in the order of `_tstamp`, the latest first. Every condition of
//! a search (a word, a product, a range of dates) becomes a set of the documents of a segment. Sets
//! are kept, within a budget of bytes, for as long as their segment lives: segments never change,
//! so a set stays true. The sets are combined, removed documents are taken out, and what is left is
//! counted, ordered and counted by facet.

mod error;
mod evaluate;
mod facets;
mod index;
pub mod limits;
#[cfg(feature = "oracle")]
pub mod oracle;
mod order;
mod rank;
mod request;
mod schema;
mod segment;
mod sets;
mod stems;
mod words;
mod writer;

pub use error::{IndexError, Result};
pub use index::{IndexSnapshot, SearchIndex};
pub use request::{
    Coverage, FacetCounts, OrderPosition, ResultPage, SearchFilter, SortDate, SortOrder,
};
pub use writer::{CommitPosition, IndexWriter, ItemVersion, VersionAdder, stamp};

/// The version of what is made of a document. It rises whenever the schema or the spelling of a
/// term changes, and with the algorithms of stems; an index of another version has to be rebuilt.
pub const ANALYSIS: u32 = 3;
