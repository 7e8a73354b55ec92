//! What searches and the thread of the index share, and how one search is evaluated and its hits read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::pool::{Outcome, Pool};
use super::{Found, Freshness, Hit, Request, Seen, Standing};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{
    SEARCH_FRESH_WAIT, SEARCH_REPLACED_MAX, SEARCH_RETRY_S, SEARCH_TIME_MAX,
};
use crate::runtime::telemetry;
use crate::storage::database::{Db, DbError, LogPosition, ReadTx};
use query::Facet;
use search_index::{Filter, Index, IndexError, Page, Place, Position, Snapshot};

/// Versions that were replaced or withdrawn behind a row of the item log.
type Replaced = Arc<Vec<u32>>;

/// What searches and the thread of the index share.
pub(super) struct Shared {
    pub(super) db: Db,
    pool: Pool,
    pub(super) standing: watch::Sender<Standing>,
    /// The index, while it is whole.
    index: Mutex<Option<Index>>,
    /// The row of the item log up to which the index holds everything.
    pub(super) indexed: watch::Sender<i64>,
    pub(super) changes: watch::Sender<u64>,
    /// Whether a search met a fault of the index.
    suspect: AtomicBool,
    /// What was replaced behind a snapshot that a search just read; others ask the same.
    replaced: Mutex<(LogPosition, Replaced)>,
}

/// A request, made ready for the index.
pub(super) struct Prepared {
    filter: Filter,
    page: Page,
    facets: Vec<Facet>,
    now: Timestamp,
}

/// What a snapshot gave, before its hits are read.
pub(super) struct Matches {
    total: u64,
    numbers: Vec<u32>,
    facets: Vec<(Facet, Vec<(String, u64)>)>,
}

/// How the reading of hits ended.
pub(super) enum Filled<T, F> {
    /// The answer, or why there is none.
    Made(Result<T>),
    /// Versions were replaced of which the evaluation did not know.
    Replaced(F),
    /// The item log does not hold the row of the snapshot any more.
    Lost,
}

/// An error that passes once the index is whole.
pub(super) fn unavailable(message: &str) -> Error {
    Error::new(Kind::Unavailable, message).with_code("search_index").retry_after(SEARCH_RETRY_S)
}

/// The row of the item log up to which a commit of the index holds everything.
pub(super) fn log_position(position: Option<&Position>) -> LogPosition {
    let of =
        |position: &Position| LogPosition { row: position.row, digest: position.digest.clone() };
    position.map(of).unwrap_or_default()
}

impl Shared {
    pub(super) fn new(db: Db, standing: Standing) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            db,
            pool: Pool::start()?,
            standing: watch::Sender::new(standing),
            index: Mutex::default(),
            indexed: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            suspect: AtomicBool::new(false),
            replaced: Mutex::default(),
        }))
    }

    /// The index, which is whole.
    ///
    /// Fails while there is none.
    pub(super) fn index(&self) -> Result<Index> {
        if let Some(index) = &*self.index.lock() {
            return Ok(index.clone());
        }
        Err(match &*self.standing.borrow() {
            Standing::Disabled => Error::new(Kind::Unavailable, "This node does not search")
                .with_code("search_disabled"),
            Standing::Building { done, count } if *count > 0 => {
                unavailable(&format!("The search index is being built: {done} of {count} items"))
            }
            Standing::Building { .. } | Standing::Ready => {
                unavailable("The search index is being opened")
            }
        })
    }

    /// Has searches use `index`, or none while `standing` says why.
    pub(super) fn publish(&self, index: Option<Index>, standing: Standing) {
        let whole = if index.is_some() { 1.0 } else { 0.0 };
        metrics::gauge!(telemetry::SEARCH_INDEX_WHOLE).set(whole);
        *self.index.lock() = index;
        self.standing.send_replace(standing);
    }

    /// Says that the index shows other items than before.
    pub(super) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Whether a search met a fault of the index since the last call.
    pub(super) fn take_suspicion(&self) -> bool {
        self.suspect.swap(false, Ordering::Relaxed)
    }

    /// Waits until the index holds what was written through this process before, for a moment at most.
    pub(super) async fn wait_until_fresh(&self, freshness: Freshness) -> Result<()> {
        let row = self.db.written_row();
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

    /// Makes `request` ready, as of `now`.
    pub(super) async fn prepare(&self, request: Request, now: Timestamp) -> Result<Prepared> {
        let after = match request.after {
            Some(key) => self.db.read(move |tx| tx.place_of(&key)).await?,
            None => None,
        };
        let filter = Filter {
            media_type: request.media_type,
            query: request.query,
            products: request.products,
            products_excluded: request.products_excluded,
            coverage: request.coverage,
            from: request.from,
            until: request.until,
            statuses: request.statuses,
            hides_embargoed_at: (!request.sees_embargoed).then_some(now),
            after: after.map(|(order_ms, number)| Place { order_ms, number }),
            newer_than: request
                .unseen
                .filter(|seen| seen.until.is_none_or(|until| now < until))
                .map(|seen| seen.number),
        };
        let page = Page { sort: request.sort, skip: request.skip, size: request.size };
        Ok(Prepared { filter, page, facets: request.facets, now })
    }

    /// The versions replaced behind `snapshot`, as far as other searches have read them.
    pub(super) fn known_replaced(&self, snapshot: &Snapshot) -> Replaced {
        let known = self.replaced.lock();
        match known.0 == log_position(snapshot.position()) {
            true => Arc::clone(&known.1),
            false => Arc::default(),
        }
    }

    /// Evaluates `request` on a thread for that.
    pub(super) async fn evaluate_aside(
        &self,
        snapshot: &Arc<Snapshot>,
        request: &Arc<Prepared>,
        replaced: &Replaced,
    ) -> Result<Matches> {
        let (snapshot, request) = (Arc::clone(snapshot), Arc::clone(request));
        let replaced = Arc::clone(replaced);
        let work = move |is_gone: &dyn Fn() -> bool| {
            let watch = Stopwatch::start();
            let is_over = || watch.elapsed() > SEARCH_TIME_MAX || is_gone();
            evaluate(&snapshot, &request, &replaced, &is_over)
        };
        match self.pool.run(work).await? {
            Outcome::Done(found) => found.map_err(|cause| self.refuse(cause)),
            Outcome::Panicked => {
                self.suspect.store(true, Ordering::Relaxed);
                Err(Error::internal("a search panicked"))
            }
        }
    }

    /// Reads the hits of what was `found`, and has `make` make the answer, in one transaction.
    pub(super) fn fill<T, F>(
        &self,
        tx: &ReadTx<'_>,
        snapshot: &Snapshot,
        request: &Prepared,
        found: Option<Matches>,
        known: &Replaced,
        make: F,
    ) -> Result<Filled<T, F>, DbError>
    where
        F: FnOnce(Found, &ReadTx<'_>) -> Result<T>,
    {
        let position = log_position(snapshot.position());
        let Some(replaced) = tx.replaced_since(&position)? else { return Ok(Filled::Lost) };
        if replaced.len() > SEARCH_REPLACED_MAX {
            let message = "The search index is far behind the archive";
            return Ok(Filled::Made(Err(unavailable(message))));
        }
        let is_known = replaced == **known;
        let found = match found {
            Some(found) if is_known => found,
            Some(_) => {
                let mut known = self.replaced.lock();
                *known = (position, Arc::new(replaced));
                return Ok(Filled::Replaced(make));
            }
            None => {
                let watch = Stopwatch::start();
                let is_over = || watch.elapsed() > SEARCH_TIME_MAX;
                match evaluate(snapshot, request, &replaced, &is_over) {
                    Ok(found) => found,
                    Err(cause) => return Ok(Filled::Made(Err(self.refuse(cause)))),
                }
            }
        };
        let mut hits = Vec::with_capacity(found.numbers.len());
        for number in found.numbers {
            match tx.find_numbered(number)? {
                Some((key, item)) => hits.push(Hit { key, item }),
                None => {
                    tracing::error!(number, "the search index holds a version that is no item's");
                    self.suspect.store(true, Ordering::Relaxed);
                }
            }
        }
        let Matches { total, facets, .. } = found;
        let until = snapshot.next_embargo(request.now.as_millisecond());
        let seen = Seen {
            number: u32::try_from(position.row).unwrap_or(u32::MAX),
            until: until.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        };
        Ok(Filled::Made(make(Found { total, hits, facets, seen }, tx)))
    }

    /// What a client learns of a search that failed.
    fn refuse(&self, cause: IndexError) -> Error {
        match cause {
            IndexError::TimedOut => {
                let message = "The search takes too long; search for less at a time";
                Error::new(Kind::Timeout, message).with_code("search_time")
            }
            IndexError::Engine(_) | IndexError::Io(_) => {
                self.suspect.store(true, Ordering::Relaxed);
                unavailable("The search index cannot be read").because(cause)
            }
        }
    }
}

fn evaluate(
    snapshot: &Snapshot,
    request: &Prepared,
    replaced: &[u32],
    is_over: &dyn Fn() -> bool,
) -> std::result::Result<Matches, IndexError> {
    let found = snapshot.find(&request.filter, replaced, is_over)?;
    Ok(Matches {
        total: found.total(),
        numbers: found.page(request.page, &request.filter.query, is_over)?,
        facets: found.facets(&request.facets, is_over)?,
    })
}
