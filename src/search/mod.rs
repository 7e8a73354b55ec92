//! Search over all items: which ones, how many, in which order, counted by what.
//!
//! Media type, status, products, facets and dates of every item lie in memory as bitmaps and
//! columns; words are looked up in the database's index, and what was found of a word is kept and
//! carried on as items come in. A search sees exactly the items of one state of the database.

mod column;
mod count;
mod evaluate;
mod index;
mod leaves;
mod order;
mod rank;

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::clock::Stopwatch;
use crate::db::{Db, DbError, Lookup, ReadTx, StoredItem};
use crate::error::{Error, Result};
use crate::item::PubStatus;
use crate::limits::{SEARCH_TIME_MAX, SEARCH_TRIES};
use crate::query::{Facet, Query};
use crate::types::{ItemKey, MediaType};
use evaluate::{Evaluation, LookedUp};
use index::Index;
use leaves::Leaves;

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
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    index: RwLock<Index>,
    /// Held while news are read for the index, so that they are read once.
    reading: Mutex<()>,
    leaves: Leaves,
    changes: watch::Sender<u64>,
}

/// What a search came to: its result, or what it would make when the index had gone on meanwhile.
enum Outcome<T, F> {
    Made(Result<T>),
    Stale(F),
}

impl Search {
    /// Reads the index of `db` into memory; what is found of words is remembered within
    /// `memory_bytes`.
    pub fn start(db: Db, memory_bytes: u64) -> Result<Self> {
        let index = Index::read_from(&db)?;
        let inner = Inner {
            db,
            index: RwLock::new(index),
            reading: Mutex::new(()),
            leaves: Leaves::new(memory_bytes),
            changes: watch::Sender::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Searches, and gives what `make` makes of what was found.
    ///
    /// `make` runs on a thread of the database against the state that was searched.
    ///
    /// Fails when too many searches wait.
    pub async fn search<T, F>(&self, request: Request, now: Timestamp, mut make: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Found, &ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        let request = Arc::new(request);
        // Another search may take news in between the beginning of our transaction and our look at
        // the index; then ours is old and begins anew. It cannot happen often in a row.
        for _ in 0..SEARCH_TRIES {
            let (inner, request) = (Arc::clone(&self.inner), Arc::clone(&request));
            let search = move |tx: &ReadTx<'_>| match inner.find(tx, &request, now)? {
                Some(found) => Ok(Outcome::Made(make(found, tx))),
                None => Ok(Outcome::Stale(make)),
            };
            match self.inner.db.search(search).await? {
                Outcome::Made(made) => return made,
                Outcome::Stale(again) => make = again,
            }
        }
        Err(Error::overloaded("searches", "The archive changes too fast to search it"))
    }

    /// Reads items by name on a thread for searches, of which it takes as long as one.
    ///
    /// Fails when too many searches wait.
    pub async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T> + Send + 'static,
    {
        self.inner.db.search(move |tx| Ok(read(tx))).await?
    }

    /// Counts up whenever items were written; whoever waits for new ones looks again then.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Looks whether an embargo has ended by `now`, which makes an item new without a write.
    pub fn end_embargoes(&self, now: Timestamp) {
        let now_ms = now.as_millisecond();
        let is_over = |(_, until): &(u32, i64)| *until <= now_ms;
        if !self.inner.index().embargoed.iter().any(is_over) {
            return;
        }
        let mut index = self.inner.index.write().unwrap_or_else(PoisonError::into_inner);
        if index.end_embargoes(now_ms) {
            drop(index);
            self.inner.changes.send_modify(|count| *count += 1);
        }
    }

    /// Takes in what any process wrote since the last time; searches do so too.
    pub fn catch_up(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        self.inner.db.read_blocking(move |tx| inner.catch_up(tx).map(|_| ()))?;
        Ok(())
    }

    /// The row of the item log that the index stands at.
    #[must_use]
    pub fn seq(&self) -> i64 {
        i64::from(self.inner.index().seq)
    }

    /// Reads the index anew, whatever it stands at: the database lost rows that it holds.
    pub fn read_anew(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        Ok(self.inner.db.read_blocking(move |tx| inner.read_anew(tx))?)
    }
}

impl Inner {
    /// Brings the index to the state of `tx`; gives the end of the log there and where the index was
    /// made, or nothing when the index is beyond that state.
    fn catch_up(&self, tx: &ReadTx<'_>) -> Result<Option<(u32, u32)>, DbError> {
        let seq = tx.log_seq()?;
        if let Some(state) = self.state(seq) {
            return Ok(Some(state));
        }
        let _one = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        while self.index().seq < seq {
            let news = self.index().news(tx)?;
            if news.needs_all() {
                self.exchange(Index::read(tx)?);
            } else {
                self.index.write().unwrap_or_else(PoisonError::into_inner).take_in(news);
            }
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(self.state(seq))
    }

    fn read_anew(&self, tx: &ReadTx<'_>) -> Result<(), DbError> {
        let _one = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.exchange(Index::read(tx)?);
        // Numbers may have fallen: what was found until now in the index before is not told from later finds.
        self.leaves.clear();
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    fn exchange(&self, whole: Index) {
        self.leaves.clear();
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = whole;
    }

    /// The rows of the log that the index stands at and was made at, if it stands at `seq`.
    fn state(&self, seq: u32) -> Option<(u32, u32)> {
        let index = self.index();
        (index.seq == seq).then_some((seq, index.whole_at))
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `request` finds at the state of `tx`, or nothing when the index is beyond that state.
    fn find(
        &self,
        tx: &ReadTx<'_>,
        request: &Request,
        now: Timestamp,
    ) -> Result<Option<Found>, DbError> {
        let Some(state) = self.catch_up(tx)? else { return Ok(None) };
        let watch = Stopwatch::start();
        let mut find = |lookup: &Lookup| {
            // While the index is made anew it does not have all words; a search that takes too long
            // keeps others waiting.
            if watch.elapsed() > SEARCH_TIME_MAX || !tx.index_is_current()? {
                return Err(DbError::Overloaded);
            }
            self.leaves.find(tx, state, lookup)
        };
        let mut words = LookedUp::of(&request.query, &mut find)?;
        if request.sort == Sort::Relevance {
            rank::look_up(&request.query, &mut words, &mut find)?;
        }
        let after = match &request.after {
            Some(key) => tx.doc_of(key)?,
            None => None,
        };
        let index = self.index();
        if (index.seq, index.whole_at) != state {
            return Ok(None);
        }
        let evaluation = Evaluation { index: &index, words: &words };
        let mut found = evaluation.matching(request, now.as_millisecond());
        if let Some(after) = after {
            found = index.behind(&found, after);
        }
        let page = (request.skip, request.size);
        let docs = match request.sort {
            Sort::By { date, descending } => {
                order::by_date(&index, &found, (date, descending), page)
            }
            Sort::Relevance => rank::by_relevance(&index, &request.query, (&found, &words), page),
        };
        let facets = request.facets.iter();
        let facets = facets.map(|facet| (*facet, count::count(&index, &found, *facet))).collect();
        drop(index);
        let mut hits = Vec::with_capacity(docs.len());
        for doc in docs {
            hits.extend(tx.find_doc(doc)?.map(|(key, item)| Hit { key, item }));
        }
        Ok(Some(Found { total: found.len(), hits, facets }))
    }
}

#[cfg(test)]
mod matching_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;
