//! Searches all items: hits, totals, order and facet counts.
//!
//! The index is Tantivy's (`crates/search-index`), in a folder of this process below `DATA/search`. A
//! dedicated thread (`indexer`) feeds it from the item log. The database remains the only source of truth. A
//! search evaluates a snapshot of the index on a thread of `pool`, and then reads the hits in one database
//! transaction. That transaction also lists the versions replaced or withdrawn since the snapshot, so that
//! none of them is in any hit, total or count.

mod analysis;
mod build;
mod consistency;
mod folder;
mod indexer;
mod pool;
mod shared;
mod suggestions;
mod within;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::runtime::error::Result;
use crate::storage::database::{Db, LogPosition, ReadTx, StoredItem};
use indexer::Indexer;
use model::item::PubStatus;
use model::{ItemKey, MediaType, PictureHash};
use query::{Facet, Query};
use shared::{FillOutcome, SearchShared, log_position, unavailable};

pub use analysis::DocumentAnalysis;
pub use consistency::{check_index, replace_index};
pub use search_index::{Coverage, FacetCondition, SortDate, SortOrder, is_form_of};
pub use suggestions::{SearchSuggestions, SuggestionRequest};
pub use within::SearchMatches;

/// Attempts to evaluate a search while items are replaced meanwhile; the last attempt runs within the
/// transaction that reads the hits.
const SEARCH_ATTEMPTS_MAX: usize = 3;

/// The criteria of a search.
#[derive(Clone, Debug)]
pub struct SearchCriteria {
    /// The media type of the items; `None`: all.
    pub media_type: Option<MediaType>,
    pub query: Query,
    /// Conditions on the values of facets, all of which hold.
    pub facet_values: Vec<FacetCondition>,
    /// The hash of a picture. Only items whose pictures look nearly the same are found.
    pub near_picture: Option<PictureHash>,
    /// Product codes of which an item must have at least one; empty: no restriction.
    pub products: Vec<String>,
    /// Product codes of which an item must have none.
    pub products_excluded: Vec<String>,
    /// The content that the caller's agreements cover.
    pub coverage: Coverage,
    /// The start of the range of `_tstamp`, inclusive.
    pub from: Option<Timestamp>,
    /// The end of the range of `_tstamp`, exclusive.
    pub until: Option<Timestamp>,
    /// The publication statuses to find.
    pub statuses: Vec<PubStatus>,
    /// True if items under embargo are found.
    pub sees_embargoed: bool,
    /// The item after which results begin in the order of `_tstamp`. An unknown item counts as `None`.
    pub after: Option<ItemKey>,
    /// Excludes versions that an earlier search of the same kind has seen.
    pub excluding_seen: Option<SeenVersions>,
    /// The order of hits.
    pub sort: SortOrder,
    /// Number of hits to skip.
    pub skip: usize,
    /// Maximum number of hits.
    pub size: usize,
    /// The facets by which all matches are counted.
    pub facets: Vec<Facet>,
}

/// The versions that a search has seen: all versions up to a number. A version that did not match does not
/// match later either, until an embargo ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenVersions {
    /// The largest version number.
    pub number: u32,
    /// The end of the first embargo after the search; `None` if there is no embargo.
    pub until: Option<Timestamp>,
}

/// The behaviour of a search while the index lacks items that were stored before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Waits for a moment, then answers from the current index.
    Preferred,
    /// Waits for a moment, then fails with
    /// [`ErrorKind::Unavailable`](crate::runtime::error::ErrorKind::Unavailable).
    Required,
}

/// An item found by a search.
#[derive(Clone, Debug)]
pub struct SearchHit {
    pub key: ItemKey,
    pub item: StoredItem,
}

/// The results of a search.
#[derive(Clone, Debug)]
pub struct SearchResults {
    /// Number of items that match.
    pub total: u64,
    /// The hits, in order.
    pub hits: Vec<SearchHit>,
    /// The most frequent values of each requested facet with their numbers of matches, most frequent first.
    pub facets: Vec<(Facet, Vec<(String, u64)>)>,
    /// The versions that the search has seen.
    pub seen: SeenVersions,
}

/// The location and limits of an index.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// The folder of the indexes of all processes over a data directory.
    pub dir: PathBuf,
    /// Memory for cached results of single words and filters, in bytes.
    pub memory_bytes: u64,
    /// The settings for the analysis of versions.
    pub analysis: DocumentAnalysis,
}

/// The state of this process's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexStatus {
    /// This process has no index and never will.
    Disabled,
    /// The index is being built or compared with the items.
    Building {
        /// Number of items that are done.
        done: u64,
        /// Number of all items; 0 until it is known.
        count: u64,
    },
    /// The index is complete.
    Ready,
}

/// Identifies the view of searches, for caches of their results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEpoch {
    position: LogPosition,
    /// The time at which the end of an embargo shows more items without a commit, in milliseconds since 1970.
    next_embargo_ms: Option<i64>,
}

/// The search engine. Cheap to clone. Dropping the last clone closes the index.
#[derive(Clone)]
pub struct SearchEngine {
    shared: Arc<SearchShared>,
    _indexer: Arc<Option<Indexer>>,
}

impl SearchEngine {
    /// Opens the index of this process in the background, and builds one if no usable index exists. Until it
    /// is complete, searches fail with
    /// [`ErrorKind::Unavailable`](crate::runtime::error::ErrorKind::Unavailable).
    ///
    /// Fails if the item log cannot be read or the threads cannot be started.
    pub fn start(db: Db, settings: IndexSettings) -> Result<Self> {
        let shared = SearchShared::new(db, IndexStatus::Building { done: 0, count: 0 })?;
        let indexer = Indexer::start(Arc::clone(&shared), settings)?;
        Ok(Self { shared, _indexer: Arc::new(Some(indexer)) })
    }

    /// Creates a search engine without an index. Every search fails; items can still be read by name.
    pub fn disabled(db: Db) -> Result<Self> {
        let shared = SearchShared::new(db, IndexStatus::Disabled)?;
        Ok(Self { shared, _indexer: Arc::new(None) })
    }

    /// Searches, and returns the response that `make` builds from the results.
    ///
    /// `make` runs on a thread of the database, in the transaction in which the hits were read.
    ///
    /// Fails if too many searches wait, if the search exceeds its time limit, and while there is no complete
    /// index.
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
        // After the wait, because a rebuilt index may have replaced the previous one in the meantime.
        shared.wait_until_fresh(freshness).await?;
        let index = shared.index()?;
        let request = Arc::new(shared.prepare(request, now).await?);
        for attempt in 1.. {
            let snapshot = index.snapshot();
            let replaced = shared.known_replaced(&snapshot);
            // The last attempt evaluates inside the transaction, where no further replacement can happen.
            let found = if attempt < SEARCH_ATTEMPTS_MAX {
                Some(shared.evaluate_on_pool(&snapshot, &request, &replaced).await?)
            } else {
                None
            };
            let shared = Arc::clone(shared);
            let request = Arc::clone(&request);
            let filled = self
                .shared
                .db
                .search(move |tx| shared.fill(tx, &snapshot, &request, found, &replaced, make));
            match filled.await? {
                FillOutcome::Answered(response) => return response,
                FillOutcome::Replaced(unused) => make = unused,
                // Until the indexer has repaired the index, its numbers may belong to other items.
                FillOutcome::LogGap => break,
            }
        }
        Err(unavailable("The search index is compared with the archive"))
    }

    /// Reads items by name on a search thread, because it lasts as long as a search.
    ///
    /// Fails if too many searches wait.
    pub async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.db.search(move |tx| Ok(read(tx))).await?
    }

    /// Returns a counter that increases whenever the index shows other items, and when an embargo ends.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Returns the epoch of searches at `now`. It changes with every commit of the index, together with the
    /// results of searches, and when an embargo ends.
    ///
    /// Fails while there is no complete index.
    pub fn epoch(&self, now: Timestamp) -> Result<IndexEpoch> {
        let snapshot = self.shared.index()?.snapshot();
        Ok(IndexEpoch {
            position: log_position(snapshot.position()),
            next_embargo_ms: snapshot.next_embargo(now.as_millisecond()),
        })
    }

    /// Returns the number of rows of the item log, from all processes, that the index does not contain yet.
    pub async fn rows_behind(&self) -> Result<i64> {
        let end = self.shared.db.read(|tx| tx.log_end()).await?;
        // A database that lost rows ends before the index does.
        Ok(end.row.saturating_sub(*self.shared.indexed.borrow()).max(0))
    }

    /// Returns the state of this process's index.
    pub fn status(&self) -> IndexStatus {
        self.shared.status.borrow().clone()
    }
}

#[cfg(test)]
mod matching_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;
