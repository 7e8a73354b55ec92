//! Holds the state shared by searches and the indexer, evaluates a search and reads its hits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::pool::SearchPool;
use super::{Freshness, IndexStatus, SearchCriteria, SearchHit, SearchResults, SeenVersions};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{SEARCH_REPLACED_MAX, SEARCH_TIME_MAX};
use crate::runtime::telemetry;
use crate::storage::database::{Db, DbResult, LogPosition, ReadTx};
use query::Facet;
use search_index::{
    CommitPosition, IndexError, IndexSnapshot, OrderPosition, ResultPage, SearchFilter,
    SearchIndex,
};

/// Time that a search waits for the index to contain items that were published before it began; after that it
/// answers with what the index holds.
const SEARCH_FRESH_WAIT: Duration = Duration::from_secs(1);
/// `Retry-After` in seconds while there is no complete index.
const SEARCH_RETRY_S: u32 = 10;

/// Versions that were replaced or withdrawn after a row of the item log.
type Replaced = Arc<Vec<u32>>;

/// The state shared by searches and the indexer.
pub(super) struct SearchShared {
    pub(super) db: Db,
    pool: SearchPool,
    pub(super) status: watch::Sender<IndexStatus>,
    /// The index, while it is complete.
    index: Mutex<Option<SearchIndex>>,
    /// The row of the item log up to which the index contains everything.
    pub(super) indexed: watch::Sender<i64>,
    pub(super) changes: watch::Sender<u64>,
    /// True if a search met a fault of the index.
    fault_seen: AtomicBool,
    /// The versions replaced after a position, as read by the last search. Other searches on the same
    /// snapshot reuse them.
    replaced: Mutex<(LogPosition, Replaced)>,
}

/// A request, prepared for the index.
pub(super) struct PreparedSearch {
    pub(super) filter: SearchFilter,
    pub(super) page: ResultPage,
    pub(super) facets: Vec<Facet>,
    now: Timestamp,
}

/// The matches in a snapshot, before their hits are read.
pub(super) struct SnapshotMatches {
    total: u64,
    numbers: Vec<u32>,
    facets: Vec<(Facet, Vec<(String, u64)>)>,
}

/// The outcome of reading the hits.
pub(super) enum FillOutcome<T, F> {
    /// The answer, or the reason that there is none.
    Answered(Result<T>),
    /// Versions were replaced that the evaluation did not know about, so it must be repeated.
    Replaced(F),
    /// The item log no longer contains the row of the snapshot.
    LogGap,
}

/// Creates a temporary error for the time in which the index is incomplete.
pub(super) fn unavailable(message: &str) -> Error {
    Error::new(ErrorKind::Unavailable, message)
        .with_code("search_index")
        .retry_after(SEARCH_RETRY_S)
}

/// Returns the versions in `replaced`, read from the item log. Fails if the log has a gap or there are too many:
/// without the list, items that were withdrawn would be found.
pub(super) fn require_replaced(replaced: Option<Vec<u32>>) -> Result<Vec<u32>> {
    replaced
        .filter(|replaced| replaced.len() <= SEARCH_REPLACED_MAX)
        .ok_or_else(|| unavailable("The search index is behind the archive"))
}

/// Returns the row of the item log up to which a commit of the index contains everything.
pub(super) fn log_position(position: Option<&CommitPosition>) -> LogPosition {
    match position {
        Some(position) => LogPosition { row: position.row, digest: position.digest.clone() },
        None => LogPosition::default(),
    }
}

impl SearchShared {
    pub(super) fn new(db: Db, status: IndexStatus) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            db,
            pool: SearchPool::start()?,
            status: watch::Sender::new(status),
            index: Mutex::default(),
            indexed: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            fault_seen: AtomicBool::new(false),
            replaced: Mutex::default(),
        }))
    }

    /// Returns the complete index.
    ///
    /// Fails while there is none.
    pub(super) fn index(&self) -> Result<SearchIndex> {
        if let Some(index) = &*self.index.lock() {
            return Ok(index.clone());
        }
        Err(match &*self.status.borrow() {
            IndexStatus::Disabled => {
                Error::new(ErrorKind::Unavailable, "This node does not search")
                    .with_code("search_disabled")
            }
            IndexStatus::Building { done, count } if *count > 0 => {
                unavailable(&format!("The search index is being built: {done} of {count} items"))
            }
            IndexStatus::Building { .. } | IndexStatus::Ready => {
                unavailable("The search index is being opened")
            }
        })
    }

    /// Makes searches use `index`. Without an index, searches fail with the reason in `status`.
    pub(super) fn publish(&self, index: Option<SearchIndex>, status: IndexStatus) {
        let complete = if index.is_some() { 1.0 } else { 0.0 };
        metrics::gauge!(telemetry::SEARCH_INDEX_WHOLE).set(complete);
        *self.index.lock() = index;
        self.status.send_replace(status);
    }

    /// Notifies waiting polls that the index shows other items than before.
    pub(super) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns whether a search met a fault of the index since the last call, and resets it.
    pub(super) fn take_fault(&self) -> bool {
        self.fault_seen.swap(false, Ordering::Relaxed)
    }

    /// Waits, for a moment at most, until the index contains all rows that this process wrote before.
    pub(super) async fn wait_until_fresh(&self, freshness: Freshness) -> Result<()> {
        let row = self.db.written_items().row();
        // Without an index, waiting is useless: the search fails later with the reason.
        if *self.indexed.borrow() >= row || self.index.lock().is_none() {
            return Ok(());
        }
        let mut indexed = self.indexed.subscribe();
        let fresh = indexed.wait_for(|reached| *reached >= row);
        let waited = tokio::time::timeout(SEARCH_FRESH_WAIT, fresh).await;
        match (waited, freshness) {
            (Ok(_), _) | (Err(_), Freshness::Preferred) => Ok(()),
            (Err(_), Freshness::Required) => {
                Err(unavailable("The search index does not hold the newest items yet"))
            }
        }
    }

    /// Prepares `request` for the index, as of `now`.
    pub(super) async fn prepare(
        &self,
        request: SearchCriteria,
        now: Timestamp,
    ) -> Result<PreparedSearch> {
        let after = match request.after {
            Some(key) => self.db.read(move |tx| tx.order_position_of(&key)).await?,
            None => None,
        };
        let filter = SearchFilter {
            media_type: request.media_type,
            query: request.query,
            facet_values: request.facet_values,
            near_picture: request.near_picture,
            products: request.products,
            products_excluded: request.products_excluded,
            coverage: request.coverage,
            from: request.from,
            until: request.until,
            statuses: request.statuses,
            hides_embargoed_at: (!request.sees_embargoed).then_some(now),
            after: after.map(|(order_ms, number)| OrderPosition { order_ms, number }),
            // The end of an embargo can make old versions match. The earlier search then excludes nothing.
            newer_than: request
                .excluding_seen
                .filter(|seen| seen.until.is_none_or(|until| now < until))
                .map(|seen| seen.number),
        };
        let page = ResultPage { sort: request.sort, skip: request.skip, size: request.size };
        Ok(PreparedSearch { filter, page, facets: request.facets, now })
    }

    /// Returns the versions replaced after `snapshot` if an earlier search has read them; otherwise an empty
    /// list.
    pub(super) fn known_replaced(&self, snapshot: &IndexSnapshot) -> Replaced {
        let cached = self.replaced.lock();
        // A list that was read for a different snapshot excludes the wrong versions.
        if cached.0 == log_position(snapshot.position()) {
            Arc::clone(&cached.1)
        } else {
            Arc::default()
        }
    }

    /// Evaluates `request` on a thread of the pool.
    pub(super) async fn evaluate_on_pool(
        &self,
        snapshot: &Arc<IndexSnapshot>,
        request: &Arc<PreparedSearch>,
        replaced: &Replaced,
    ) -> Result<SnapshotMatches> {
        let snapshot = Arc::clone(snapshot);
        let request = Arc::clone(request);
        let replaced = Arc::clone(replaced);
        let found = self.run_on_pool(SEARCH_TIME_MAX, move |is_expired| {
            evaluate(&snapshot, &request, &replaced, is_expired)
        });
        found.await
    }

    /// Runs `work` on a thread of the pool. The function passed to it returns whether `time_max` is over or
    /// the caller has gone.
    pub(super) async fn run_on_pool<T, F>(&self, time_max: Duration, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Fn() -> bool) -> std::result::Result<T, IndexError> + Send + 'static,
    {
        let outcome = self.pool.run(move |is_abandoned| {
            let watch = Stopwatch::start();
            work(&|| watch.elapsed() > time_max || is_abandoned())
        });
        match outcome.await? {
            Ok(found) => found.map_err(|cause| self.service_error(cause)),
            // A damaged file may be the cause, so the indexer checks all of them.
            Err(_panic) => {
                self.fault_seen.store(true, Ordering::Relaxed);
                Err(Error::internal("a search panicked"))
            }
        }
    }

    /// Reads the hits of `found` and lets `make` build the answer, in one transaction.
    pub(super) fn fill<T, F>(
        &self,
        tx: &ReadTx<'_>,
        snapshot: &IndexSnapshot,
        request: &PreparedSearch,
        found: Option<SnapshotMatches>,
        known: &Replaced,
        make: F,
    ) -> DbResult<FillOutcome<T, F>>
    where
        F: FnOnce(SearchResults, &ReadTx<'_>) -> Result<T>,
    {
        let position = log_position(snapshot.position());
        let Some(replaced) = tx.replaced_since(&position)? else { return Ok(FillOutcome::LogGap) };
        if replaced.len() > SEARCH_REPLACED_MAX {
            let message = "The search index is far behind the archive";
            return Ok(FillOutcome::Answered(Err(unavailable(message))));
        }
        // Matches are correct only if they exclude exactly the versions that this transaction sees as
        // replaced.
        let is_known = replaced == **known;
        let found = match found {
            Some(found) if is_known => found,
            Some(_) => {
                // For the next attempt, and for other searches on the same snapshot.
                let mut cached = self.replaced.lock();
                *cached = (position, Arc::new(replaced));
                return Ok(FillOutcome::Replaced(make));
            }
            None => {
                // Last attempt: evaluated in this transaction, whose view of replaced versions cannot change.
                let watch = Stopwatch::start();
                let found =
                    evaluate(snapshot, request, &replaced, &|| watch.elapsed() > SEARCH_TIME_MAX);
                match found {
                    Ok(found) => found,
                    Err(cause) => {
                        return Ok(FillOutcome::Answered(Err(self.service_error(cause))));
                    }
                }
            }
        };
        let mut hits = Vec::with_capacity(found.numbers.len());
        for number in found.numbers {
            match tx.find_numbered(number)? {
                Some((key, item)) => hits.push(SearchHit { key, item }),
                None => {
                    // Replaced versions were excluded, so index and database disagree.
                    tracing::error!(number, "search index: hit without an item, checking files");
                    self.fault_seen.store(true, Ordering::Relaxed);
                }
            }
        }
        let SnapshotMatches { total, facets, .. } = found;
        let until = snapshot.next_embargo(request.now.as_millisecond());
        let seen = SeenVersions {
            number: u32::try_from(position.row).unwrap_or(u32::MAX),
            until: until.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        };
        Ok(FillOutcome::Answered(make(SearchResults { total, hits, facets, seen }, tx)))
    }

    /// Maps a failed search to the error for the client.
    pub(super) fn service_error(&self, cause: IndexError) -> Error {
        match cause {
            IndexError::TimedOut => {
                let message = "The search took too long; narrow the query";
                Error::new(ErrorKind::Timeout, message).with_code("search_time")
            }
            IndexError::Engine(_) | IndexError::Io(_) => {
                self.fault_seen.store(true, Ordering::Relaxed);
                unavailable("The search index cannot be read").with_source(cause)
            }
        }
    }
}

fn evaluate(
    snapshot: &IndexSnapshot,
    request: &PreparedSearch,
    replaced: &[u32],
    is_expired: &dyn Fn() -> bool,
) -> std::result::Result<SnapshotMatches, IndexError> {
    let found = snapshot.find(&request.filter, replaced, is_expired)?;
    Ok(SnapshotMatches {
        total: found.total(),
        numbers: found.page(request.page, &request.filter.query, is_expired)?,
        facets: found.facets(&request.facets, is_expired)?,
    })
}
