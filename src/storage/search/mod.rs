//! Search over all items: which ones, how many, in which order, counted by what.
//!
//! The index is Tantivy's (`crates/search-index`), in a folder of this process below `DATA/search`. It is
//! fed from the item log by a thread of its own (`indexer`); the database stays the only truth. A search
//! takes a snapshot of the index, evaluates it on a thread of `pool`, and then reads the hits in one
//! transaction of the database, which also tells what was replaced or withdrawn since the snapshot: none of
//! that is in any hit, total or count.

mod build;
mod consistency;
mod folder;
mod indexer;
mod pool;
mod shared;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{Timestamp, tz::TimeZone};
use tokio::sync::watch;

use crate::runtime::error::Result;
use crate::runtime::limits::SEARCH_ATTEMPTS_MAX;
use crate::storage::database::{Db, ReadTx, StoredItem};
use indexer::Indexer;
use model::item::PubStatus;
use model::{ItemKey, MediaType};
use query::{Facet, Query};
use shared::{FillOutcome, SearchShared, unavailable};

pub use consistency::{check_index, replace_index};
pub use search_index::{Coverage, SortDate, SortOrder};

/// What is searched for.
#[derive(Clone, Debug)]
pub struct SearchCriteria {
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
    /// Only what an earlier search of the same kind cannot have seen.
    pub excluding_seen: Option<SeenVersions>,
    /// The order of hits.
    pub sort: SortOrder,
    /// Hits passed over.
    pub skip: usize,
    /// Hits at most.
    pub size: usize,
    /// What all matches are counted by.
    pub facets: Vec<Facet>,
}

/// What a search has seen: versions up to a number, none of which matches later either, until an embargo
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenVersions {
    /// The largest number of a version.
    pub number: u32,
    /// The end of the first embargo behind the search.
    pub until: Option<Timestamp>,
}

/// What a search does when the index does not hold all items that were taken in before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It waits for a moment, then answers with what there is.
    Preferred,
    /// It waits for a moment, then fails with [`Kind::Unavailable`](crate::runtime::error::ErrorKind::Unavailable).
    Required,
}

/// An item that was found.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// Its identity.
    pub key: ItemKey,
    /// The item.
    pub item: StoredItem,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct SearchResults {
    /// How many items match.
    pub total: u64,
    /// The hits, in order.
    pub hits: Vec<SearchHit>,
    /// Of each facet that was asked for: its most frequent values with the number of matches,
    /// the most frequent first.
    pub facets: Vec<(Facet, Vec<(String, u64)>)>,
    /// What it has seen.
    pub seen: SeenVersions,
}

/// Where and how an index is kept.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// The folder of the indexes of all processes over a data directory.
    pub dir: PathBuf,
    /// Memory for what was found of single words and filters, in bytes.
    pub memory_bytes: u64,
    /// The time zone in which the days of documents begin.
    pub zone: TimeZone,
}

/// The index of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexStatus {
    /// It has none and never will.
    Disabled,
    /// It is being built or compared with the items, of which `done` are done.
    Building {
        /// Items that are done.
        done: u64,
        /// Items in all, as far as that is known.
        count: u64,
    },
    /// It is whole.
    Ready,
}

/// Search; cheap to clone. The index is closed with the last one.
#[derive(Clone)]
pub struct SearchEngine {
    shared: Arc<SearchShared>,
    _indexer: Arc<Option<Indexer>>,
}

impl SearchEngine {
    /// Opens the index of this process in the background, and builds it where there is none that can be
    /// used. Searches fail with [`Kind::Unavailable`](crate::runtime::error::ErrorKind::Unavailable) until it is whole.
    ///
    /// Fails when the folder cannot be used.
    pub fn start(db: Db, settings: IndexSettings) -> Result<Self> {
        let shared = SearchShared::new(db, IndexStatus::Building { done: 0, count: 0 })?;
        let indexer = Indexer::start(Arc::clone(&shared), settings)?;
        Ok(Self { shared, _indexer: Arc::new(Some(indexer)) })
    }

    /// A search without an index: every search fails, items are read by name.
    pub fn disabled(db: Db) -> Result<Self> {
        let shared = SearchShared::new(db, IndexStatus::Disabled)?;
        Ok(Self { shared, _indexer: Arc::new(None) })
    }

    /// Searches, and gives what `make` makes of what was found.
    ///
    /// `make` runs on a thread of the database in the transaction in which the hits were read.
    ///
    /// Fails when too many searches wait, when the search takes too long, and while there is no whole index.
    pub async fn search<T, F>(
        &self,
        request: SearchCriteria,
        freshness: Freshness,
        now: Timestamp,
        mut make: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(SearchResults, &ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        let shared = &self.shared;
        // Behind the wait: an index that was built meanwhile may have taken the place of another one.
        shared.wait_until_fresh(freshness).await?;
        let index = shared.index()?;
        let request = Arc::new(shared.prepare(request, now).await?);
        for tries in 1.. {
            let snapshot = index.snapshot();
            let known = shared.known_replaced(&snapshot);
            let found = match tries < SEARCH_ATTEMPTS_MAX {
                true => Some(shared.evaluate_on_pool(&snapshot, &request, &known).await?),
                false => None,
            };
            let (shared, request) = (Arc::clone(shared), Arc::clone(&request));
            let fill =
                move |tx: &ReadTx<'_>| shared.fill(tx, &snapshot, &request, found, &known, make);
            match self.shared.db.search(fill).await? {
                FillOutcome::Answered(made) => return made,
                FillOutcome::Replaced(again) => make = again,
                FillOutcome::LogGap => break,
            }
        }
        Err(unavailable("The search index is compared with the archive"))
    }

    /// Reads items by name on a thread for searches, of which it takes as long as one.
    ///
    /// Fails when too many searches wait.
    pub async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.db.search(move |tx| Ok(read(tx))).await?
    }

    /// Counts up whenever the index shows other items, and when an embargo ends.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// How many rows of the item log the index does not hold yet, whoever wrote them.
    pub async fn rows_behind(&self) -> Result<i64> {
        let end = self.shared.db.read(|tx| tx.log_end()).await?;
        Ok(end.row.saturating_sub(*self.shared.indexed.borrow()).max(0))
    }

    /// How the index of this process stands.
    #[must_use]
    pub fn status(&self) -> IndexStatus {
        self.shared.standing.borrow().clone()
    }
}

#[cfg(test)]
mod matching_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;
