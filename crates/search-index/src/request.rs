//! What is searched for.

use jiff::Timestamp;
use model::MediaType;
use model::item::PubStatus;
use query::{Facet, Query};

/// The order of hits. Hits that are equal in it are ordered by when they were stored, in the same
/// direction; of equally relevant ones the latest come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// By a date.
    By {
        /// Which.
        date: SortDate,
        /// Whether the latest come first.
        descending: bool,
    },
    /// The most relevant first: BM25 with the headline weighted above the rest.
    Relevance,
}

/// A date that hits are ordered by. Items without it come last in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDate {
    /// `_tstamp`.
    Order,
    /// `date`.
    Date,
    /// `versioncreated`.
    VersionCreated,
    /// `versionstored`.
    VersionStored,
}

/// Which items a caller's agreements let a search see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All of them.
    Everything,
    /// Those with one of these product codes.
    Products(Vec<String>),
}

/// Which items are found.
#[derive(Clone, Debug)]
pub struct SearchFilter {
    /// Items of this media type only.
    pub media_type: Option<MediaType>,
    /// The query.
    pub query: Query,
    /// Product codes of which an item has one; empty: whatever it has.
    pub products: Vec<String>,
    /// Product codes of which an item has none.
    pub products_excluded: Vec<String>,
    /// What the caller's agreements cover.
    pub coverage: Coverage,
    /// The first `_tstamp`, inclusive.
    pub from: Option<Timestamp>,
    /// The end of `_tstamp`, exclusive.
    pub until: Option<Timestamp>,
    /// The publication statuses that are found.
    pub statuses: Vec<PubStatus>,
    /// The moment at which items under embargo are hidden; none: they are found.
    pub hides_embargoed_at: Option<Timestamp>,
    /// Only items that come after this place in the order of `_tstamp`.
    pub after: Option<OrderPosition>,
    /// Only versions with a larger number: segments without one are not evaluated.
    pub newer_than: Option<u32>,
}

/// A place in the order of `_tstamp`: the time in milliseconds, then the number of the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderPosition {
    /// `_tstamp`.
    pub order_ms: i64,
    /// The number of the version.
    pub number: u32,
}

/// A page of hits.
#[derive(Clone, Copy, Debug)]
pub struct ResultPage {
    /// The order.
    pub sort: SortOrder,
    /// Hits passed over.
    pub skip: usize,
    /// Hits at most.
    pub size: usize,
}

/// The most frequent values of a facet with the number of matches, the most frequent first,
/// equally frequent ones by their text.
pub type FacetCounts = (Facet, Vec<(String, u64)>);
