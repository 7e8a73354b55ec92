//! The content section: what callers may search for, the answers, waiting for new items.
//!
//! Parameters come in as typed values; what they mean is decided here, in pure functions. The text
//! of an answer is written where the hits are read, on a thread of the database: ten thousand
//! documents never hold up an async thread.

mod answer;
mod period;
mod polls;
mod selection;
mod visibility;

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;

pub use answer::{ItemListing, ItemLookup};
pub use period::{RecentSpan, TimestampFilter, parse_day};
pub use selection::{ItemSelection, coverage, covers, may_see_commissioned, unknown_agreement};
pub use visibility::CallerVisibility;

use crate::runtime::error::Result;
use crate::runtime::slots::{SlotHolder, SlotLimits};
use crate::storage::database::ReadTx;
use crate::storage::search::{
    Coverage, Freshness, SearchCriteria, SearchEngine, SearchResults, SeenVersions,
};
use answer::AnswerWriter;
use model::ItemKey;
use model::item::{DocumentLayout, MediaLinks, RenditionSizes};
use polls::PollQueue;

/// How documents are served in an answer.
#[derive(Clone, Debug)]
pub struct DocumentForm<L> {
    /// How much of them.
    pub layout: DocumentLayout,
    /// How addresses are written.
    pub links: L,
}

/// A poll: what it asks for, and for whom it waits.
#[derive(Clone, Copy, Debug)]
pub struct SearchPoll<'a, L> {
    /// Whose slot it takes while it waits.
    pub holder: Option<SlotHolder>,
    /// What it asks for.
    pub request: &'a SearchCriteria,
    /// How its item is served.
    pub form: &'a DocumentForm<L>,
}

/// The content section; cheap to clone.
#[derive(Clone)]
pub struct Content {
    search: SearchEngine,
    sizes: RenditionSizes,
    polls: Arc<PollQueue>,
}

impl Content {
    /// The section over `search`; `polls` limits the long polls that wait at a time.
    #[must_use]
    pub fn new(search: SearchEngine, sizes: RenditionSizes, polls: SlotLimits) -> Self {
        Self { search, sizes, polls: Arc::new(PollQueue::new(polls)) }
    }

    /// The engine, for what is no answer of the content API.
    #[must_use]
    pub fn engine(&self) -> &SearchEngine {
        &self.search
    }

    /// The text of `{"hits": […], "total": n, "facets": {…}}`.
    ///
    /// Fails when too many searches wait.
    pub async fn search<L>(
        &self,
        request: SearchCriteria,
        form: DocumentForm<L>,
        now: Timestamp,
    ) -> Result<Bytes>
    where
        L: MediaLinks + Send + 'static,
    {
        let writer = AnswerWriter { form, sizes: self.sizes };
        let asked = request.facets.clone();
        let make =
            move |found: SearchResults, tx: &ReadTx<'_>| writer.search_answer(found, &asked, tx);
        self.search.search(request, Freshness::Preferred, now, make).await
    }

    /// The hits alone, as the text of a list.
    ///
    /// Fails when too many searches wait.
    pub async fn list<L>(
        &self,
        request: SearchCriteria,
        form: DocumentForm<L>,
        now: Timestamp,
    ) -> Result<Bytes>
    where
        L: MediaLinks + Send + 'static,
    {
        let writer = AnswerWriter { form, sizes: self.sizes };
        let make = move |found: SearchResults, tx: &ReadTx<'_>| writer.hit_list(found, tx);
        self.search.search(request, Freshness::Preferred, now, make).await
    }

    /// The answer to a poll that nothing came for.
    #[must_use]
    pub fn empty_answer() -> Bytes {
        answer::empty_answer()
    }

    /// The items `keys`, in their order, as far as `coverage` has them, they may be seen at `now` and
    /// have room.
    ///
    /// Fails when too many searches wait.
    pub async fn listed_items<L>(
        &self,
        keys: Vec<ItemKey>,
        form: DocumentForm<L>,
        coverage: Coverage,
        now: Timestamp,
    ) -> Result<ItemListing>
    where
        L: MediaLinks + Send + 'static,
    {
        let writer = AnswerWriter { form, sizes: self.sizes };
        self.search.read(move |tx| writer.listed_items(&keys, &coverage, now, tx)).await
    }

    /// Those of `keys` that `sight` shows, in their order.
    ///
    /// Fails when too many searches wait.
    pub async fn visible_items(
        &self,
        keys: Vec<ItemKey>,
        sight: CallerVisibility,
    ) -> Result<Vec<ItemKey>> {
        self.search.read(move |tx| visibility::visible_items(keys, &sight, tx)).await
    }

    /// The text of a list with those of `keys` that `sight` shows, in their order, as far as one
    /// answer has room for them.
    ///
    /// Fails when too many searches wait.
    pub async fn visible_list<L>(
        &self,
        keys: Vec<ItemKey>,
        form: DocumentForm<L>,
        sight: CallerVisibility,
    ) -> Result<Bytes>
    where
        L: MediaLinks + Send + 'static,
    {
        let writer = AnswerWriter { form, sizes: self.sizes };
        self.search.read(move |tx| writer.visible_list(&keys, &sight, tx)).await
    }

    /// The text of `{"hits": […]}` with the first match as soon as there is one; with none once
    /// `wait` is over or `stop` comes.
    ///
    /// Fails when too many polls of the holder, or of all clients, wait already, and when too many
    /// searches do.
    pub async fn poll<L>(
        &self,
        poll: SearchPoll<'_, L>,
        now: fn() -> Timestamp,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Bytes>
    where
        L: MediaLinks + Clone + Send + 'static,
    {
        let SearchPoll { holder, request, form } = poll;
        // A later look evaluates only what the one before cannot have seen.
        let seen: Arc<Mutex<Option<SeenVersions>>> = Arc::default();
        let look = || {
            let writer = AnswerWriter { form: form.clone(), sizes: self.sizes };
            let unseen = *seen.lock();
            let request = SearchCriteria { excluding_seen: unseen, ..request.clone() };
            let seen = Arc::clone(&seen);
            let make = move |found: SearchResults, tx: &ReadTx<'_>| {
                *seen.lock() = Some(found.seen);
                writer.first_hit(found, tx)
            };
            self.search.search(request, Freshness::Required, now(), make)
        };
        let found = self.polls.wait(holder, self.search.changes(), look, wait, stop).await?;
        Ok(found.unwrap_or_else(answer::empty_answer))
    }
}
