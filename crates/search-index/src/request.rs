//! Defines the parameters of a search: filter, order and page.

use jiff::Timestamp;
use model::item::PubStatus;
use model::{MediaType, PictureHash};
use query::{Facet, Query};

/// The order of hits. Ties are ordered by the time at which versions were stored, in the same direction; among
/// equally relevant hits the latest come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// Sort by a date.
    By {
        date: SortDate,
        /// True if the latest hits come first.
        descending: bool,
    },
    /// The most relevant first: BM25 with the headline weighted above the rest.
    Relevance,
}

/// A date to sort hits by. Items without it come last in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDate {
    Order,
    Date,
    VersionCreated,
    VersionStored,
}

/// The items that a caller's agreements allow a search to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    Everything,
    /// Items with at least one of these product codes.
    Products(Vec<String>),
}

/// A condition on the values of a facet. It compares whole, unfolded values, as the facet counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetCondition {
    pub facet: Facet,
    /// The values of which an item must have at least one, or none if they are excluded.
    pub values: Vec<String>,
    pub is_excluded: bool,
}

/// The conditions that found items satisfy.
#[derive(Clone, Debug)]
pub struct SearchFilter {
    /// Items of this media type only.
    pub media_type: Option<MediaType>,
    pub query: Query,
    /// The conditions on the values of facets; all of them must hold.
    pub facet_values: Vec<FacetCondition>,
    /// Only items whose picture looks nearly like the picture with this hash.
    pub near_picture: Option<PictureHash>,
    /// Product codes of which an item must have at least one; no condition if empty.
    pub products: Vec<String>,
    /// Product codes of which an item must have none.
    pub products_excluded: Vec<String>,
    /// The coverage of the caller's agreements.
    pub coverage: Coverage,
    /// Start of the range of `_tstamp`, inclusive.
    pub from: Option<Timestamp>,
    /// End of the range of `_tstamp`, exclusive.
    pub until: Option<Timestamp>,
    /// The publication statuses to find.
    pub statuses: Vec<PubStatus>,
    /// The time at which items under embargo are hidden; `None` if they are found.
    pub hides_embargoed_at: Option<Timestamp>,
    /// Only items after this position in the order of `_tstamp`.
    pub after: Option<OrderPosition>,
    /// Only versions with a larger number; segments without such versions are skipped.
    pub newer_than: Option<u32>,
}

/// A position in the order of `_tstamp`: the time in milliseconds, then the version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderPosition {
    /// `_tstamp`, milliseconds since 1970.
    pub order_ms: i64,
    /// The version number, which orders equal times.
    pub number: u32,
}

/// A page of hits.
#[derive(Clone, Copy, Debug)]
pub struct ResultPage {
    pub sort: SortOrder,
    /// Number of hits to skip.
    pub skip: usize,
    /// Maximum number of hits.
    pub size: usize,
}

/// The most frequent values of a facet, each with its number of matches, in descending order; ties are ordered by
/// text.
pub type FacetCounts = (Facet, Vec<(String, u64)>);
