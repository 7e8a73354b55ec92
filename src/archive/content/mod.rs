//! The content section: the items that callers may search for, the answers, and long polls for new items.
//!
//! Parameters arrive as typed values, and pure functions here decide their meaning. The text of an answer is
//! written on the database thread that reads the hits, so ten thousand documents never block an async thread.

mod answer;
mod period;
mod polls;
mod selection;
mod slow;
mod visibility;

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;

pub use answer::{ItemListing, ItemLookup, empty_answer};
pub use period::{RecentSpan, TimestampFilter, parse_day};
pub use selection::{ItemSelection, coverage, covers, may_see_commissioned, unknown_agreement};
pub use visibility::CallerVisibility;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::slots::SlotLimits;
use crate::storage::database::ReadTx;
use crate::storage::diagnostics::DiagnosticLog;
use crate::storage::search::{
    Coverage, Freshness, SearchCriteria, SearchEngine, SearchResults, SeenVersions,
};
use answer::AnswerWriter;
use metadata::RightsMetadata;
use model::item::{AssetGroup, DocumentLayout, MediaLinks, RenditionSizes};
use model::{ItemKey, PictureHash};
use polls::PollQueue;
use slow::SlowSearches;

/// The form of documents in an answer.
#[derive(Clone, Debug)]
pub struct DocumentForm {
    /// The layout, which decides the parts of each document that are included.
    pub layout: DocumentLayout,
    /// The writer of links.
    pub links: MediaLinks,
}

/// A long poll: its search and its client.
#[derive(Clone, Copy, Debug)]
pub struct SearchPoll<'a> {
    /// The client whose slot the poll occupies while it waits.
    pub holder: Option<RequestClient>,
    pub request: &'a SearchCriteria,
    /// The form of the item in the answer.
    pub form: &'a DocumentForm,
}

/// The content section; cheap to clone.
#[derive(Clone)]
pub struct Content {
    search: SearchEngine,
    sizes: RenditionSizes,
    /// The default rights of every picture.
    rights: Arc<RightsMetadata>,
    polls: Arc<PollQueue>,
    slow: SlowSearches,
}

impl Content {
    /// Creates the section over `search`; `rights` are the default rights, and `polls` limits the number of
    /// waiting long polls.
    pub fn new(
        search: SearchEngine,
        sizes: RenditionSizes,
        rights: Arc<RightsMetadata>,
        polls: SlotLimits,
    ) -> Self {
        let polls = Arc::new(PollQueue::new(polls));
        Self { search, sizes, rights, polls, slow: SlowSearches::default() }
    }

    /// Records searches of `slow_ms` milliseconds or longer in `log`, for operators. Records nothing if it is 0.
    #[must_use]
    pub fn recording_slow(self, log: DiagnosticLog, slow_ms: u32) -> Self {
        Self { slow: SlowSearches::new(log, slow_ms), ..self }
    }

    /// Records searches of `slow_ms` milliseconds or longer from now on, for all clones. Records nothing if it is 0.
    pub fn set_slow_ms(&self, slow_ms: u32) {
        self.slow.set_threshold(slow_ms);
    }

    fn writer(&self, form: DocumentForm) -> AnswerWriter {
        AnswerWriter { form, sizes: self.sizes, rights: Arc::clone(&self.rights) }
    }

    /// Returns the search engine, for uses outside the content API.
    pub fn engine(&self) -> &SearchEngine {
        &self.search
    }

    /// Searches, and returns the text of `{"hits": […], "total": n, "facets": {…}}`.
    ///
    /// Fails if too many searches are queued.
    pub async fn search(
        &self,
        request: SearchCriteria,
        form: DocumentForm,
        now: Timestamp,
    ) -> Result<Bytes> {
        let writer = self.writer(form);
        let requested = request.facets.clone();
        let answer = self.timed_search(request, now, move |found, tx| {
            writer.search_answer(found, &requested, tx)
        });
        answer.await
    }

    /// Searches, and returns only the hits, as the text of a list.
    ///
    /// Fails if too many searches are queued.
    pub async fn list(
        &self,
        request: SearchCriteria,
        form: DocumentForm,
        now: Timestamp,
    ) -> Result<Bytes> {
        let writer = self.writer(form);
        self.timed_search(request, now, move |found, tx| writer.hit_list(found, tx)).await
    }

    /// Searches, writes the answer with `write`, and records the search if it was slow.
    async fn timed_search<F>(
        &self,
        request: SearchCriteria,
        now: Timestamp,
        write: F,
    ) -> Result<Bytes>
    where
        F: FnOnce(SearchResults, &ReadTx<'_>) -> Result<Bytes> + Send + 'static,
    {
        let timed = self.slow.start(&request);
        // A slightly outdated answer serves a page better than an error.
        let answer = self.search.search(request, Freshness::Preferred, now, write).await;
        self.slow.end(timed, &answer, now);
        answer
    }

    /// Lists the items of `keys` that `coverage` includes and that are visible at `now`, in the order of `keys`.
    /// Stops when one answer is full.
    ///
    /// Fails if too many searches are queued.
    pub async fn listed_items(
        &self,
        keys: Vec<ItemKey>,
        form: DocumentForm,
        coverage: Coverage,
        now: Timestamp,
    ) -> Result<ItemListing> {
        let writer = self.writer(form);
        self.search.read(move |tx| writer.listed_items(&keys, &coverage, now, tx)).await
    }

    /// Returns the perceptual hash of the picture of an item; `None` if it has no picture, or if its picture
    /// cannot be compared.
    ///
    /// Fails with [`ErrorKind::NotFound`] if `visibility` does not show the item.
    pub async fn picture_hash(
        &self,
        key: ItemKey,
        visibility: CallerVisibility,
    ) -> Result<Option<PictureHash>> {
        self.search
            .read(move |tx| {
                let Some(item) = tx.find_item(&key)?.filter(|item| visibility.shows(item)) else {
                    let message = format!("There is no item {key}");
                    return Err(Error::new(ErrorKind::NotFound, message));
                };
                let picture = AssetGroup::of_item(&item.assets).whole_picture();
                Ok(picture.and_then(|picture| picture.picture_hash))
            })
            .await
    }

    /// Filters `keys` by `visibility`, in their order.
    ///
    /// Fails if too many searches are queued.
    pub async fn visible_items(
        &self,
        keys: Vec<ItemKey>,
        visibility: CallerVisibility,
    ) -> Result<Vec<ItemKey>> {
        self.search.read(move |tx| visibility::visible_items(keys, &visibility, tx)).await
    }

    /// Returns the text of a list of the items in `keys` that `visibility` shows, in the order of `keys`. Stops
    /// when one answer is full.
    ///
    /// Fails if too many searches are queued.
    pub async fn visible_list(
        &self,
        keys: Vec<ItemKey>,
        form: DocumentForm,
        visibility: CallerVisibility,
    ) -> Result<Bytes> {
        let writer = self.writer(form);
        self.search.read(move |tx| writer.visible_list(&keys, &visibility, tx)).await
    }

    /// Waits for the first match, and returns the text of `{"hits": […]}` with it. The list is empty if `wait` has
    /// elapsed or `stop` completes first.
    ///
    /// Fails if the holder, or all clients together, have too many polls waiting, and if too many searches are
    /// queued.
    pub async fn poll(
        &self,
        poll: SearchPoll<'_>,
        now: fn() -> Timestamp,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Bytes> {
        let SearchPoll { holder, request, form } = poll;
        // Each further search evaluates only versions that the previous search cannot have seen.
        let seen: Arc<Mutex<Option<SeenVersions>>> = Arc::default();
        let search_once = || {
            let writer = self.writer(form.clone());
            let unseen = *seen.lock();
            let request = SearchCriteria { excluding_seen: unseen, ..request.clone() };
            let seen = Arc::clone(&seen);
            // An outdated index would miss the item that woke the poll, and the poll would wait for the next item.
            self.search.search(request, Freshness::Required, now(), move |found, tx| {
                *seen.lock() = Some(found.seen);
                writer.first_hit(found, tx)
            })
        };
        let found =
            self.polls.wait(holder, self.search.changes(), search_once, wait, stop).await?;
        Ok(found.unwrap_or_else(empty_answer))
    }
}
