//! The content section: what callers may search for, the answers, waiting for new items.
//!
//! Parameters come in as typed values; what they mean is decided here, in pure functions. The text
//! of an answer is written where the hits are read, on a thread of the database: ten thousand
//! documents never hold up an async thread.

mod answer;
mod named;
mod period;
mod polls;
mod selection;

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;

pub use answer::{Listed, Reading};
pub use named::Sight;
pub use period::{Period, Recent, parse_day};
pub use selection::{Selection, coverage, covers, may_see_commissioned, unknown_agreement};

use crate::runtime::error::Result;
use crate::runtime::slots::{SlotHolder, SlotLimits};
use crate::storage::database::ReadTx;
use crate::storage::search::{Coverage, Found, Freshness, Request, Search, Seen};
use answer::Writer;
use model::ItemKey;
use model::item::{Layout, Links, RenditionSizes};
use polls::Polls;

/// How documents are served in an answer.
#[derive(Clone, Debug)]
pub struct Form<L> {
    /// How much of them.
    pub layout: Layout,
    /// How addresses are written.
    pub links: L,
}

/// A poll: what it asks for, and for whom it waits.
#[derive(Clone, Copy, Debug)]
pub struct Poll<'a, L> {
    /// Whose slot it takes while it waits.
    pub holder: Option<SlotHolder>,
    /// What it asks for.
    pub request: &'a Request,
    /// How its item is served.
    pub form: &'a Form<L>,
}

/// The content section; cheap to clone.
#[derive(Clone)]
pub struct Content {
    search: Search,
    sizes: RenditionSizes,
    polls: Arc<Polls>,
}

impl Content {
    /// The section over `search`; `polls` limits the long polls that wait at a time.
    #[must_use]
    pub fn new(search: Search, sizes: RenditionSizes, polls: SlotLimits) -> Self {
        Self { search, sizes, polls: Arc::new(Polls::new(polls)) }
    }

    /// The engine, for what is no answer of the content API.
    #[must_use]
    pub fn engine(&self) -> &Search {
        &self.search
    }

    /// The text of `{"hits": […], "total": n, "facets": {…}}`.
    ///
    /// Fails when too many searches wait.
    pub async fn search<L>(&self, request: Request, form: Form<L>, now: Timestamp) -> Result<Bytes>
    where
        L: Links + Send + 'static,
    {
        let writer = Writer { form, sizes: self.sizes };
        let asked = request.facets.clone();
        let make = move |found: Found, tx: &ReadTx<'_>| writer.whole(found, &asked, tx);
        self.search.search(request, Freshness::Preferred, now, make).await
    }

    /// The hits alone, as the text of a list.
    ///
    /// Fails when too many searches wait.
    pub async fn list<L>(&self, request: Request, form: Form<L>, now: Timestamp) -> Result<Bytes>
    where
        L: Links + Send + 'static,
    {
        let writer = Writer { form, sizes: self.sizes };
        let make = move |found: Found, tx: &ReadTx<'_>| writer.list(found, tx);
        self.search.search(request, Freshness::Preferred, now, make).await
    }

    /// The answer to a poll that nothing came for.
    #[must_use]
    pub fn nothing() -> Bytes {
        answer::nothing()
    }

    /// The items `keys`, in their order, as far as `coverage` has them, they may be seen at `now` and
    /// have room.
    ///
    /// Fails when too many searches wait.
    pub async fn listed<L>(
        &self,
        keys: Vec<ItemKey>,
        form: Form<L>,
        coverage: Coverage,
        now: Timestamp,
    ) -> Result<Listed>
    where
        L: Links + Send + 'static,
    {
        let writer = Writer { form, sizes: self.sizes };
        self.search.read(move |tx| writer.listed(&keys, &coverage, now, tx)).await
    }

    /// Those of `keys` that `sight` shows, in their order.
    ///
    /// Fails when too many searches wait.
    pub async fn seen(&self, keys: Vec<ItemKey>, sight: Sight) -> Result<Vec<ItemKey>> {
        self.search.read(move |tx| named::seen(keys, &sight, tx)).await
    }

    /// The text of a list with those of `keys` that `sight` shows, in their order, as far as one
    /// answer has room for them.
    ///
    /// Fails when too many searches wait.
    pub async fn named<L>(&self, keys: Vec<ItemKey>, form: Form<L>, sight: Sight) -> Result<Bytes>
    where
        L: Links + Send + 'static,
    {
        let writer = Writer { form, sizes: self.sizes };
        self.search.read(move |tx| writer.named(&keys, &sight, tx)).await
    }

    /// The text of `{"hits": […]}` with the first match as soon as there is one; with none once
    /// `wait` is over or `stop` comes.
    ///
    /// Fails when too many polls of the holder, or of all clients, wait already, and when too many
    /// searches do.
    pub async fn poll<L>(
        &self,
        poll: Poll<'_, L>,
        now: fn() -> Timestamp,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Bytes>
    where
        L: Links + Clone + Send + 'static,
    {
        let Poll { holder, request, form } = poll;
        // A later look evaluates only what the one before cannot have seen.
        let seen: Arc<Mutex<Option<Seen>>> = Arc::default();
        let look = || {
            let writer = Writer { form: form.clone(), sizes: self.sizes };
            let unseen = *seen.lock();
            let request = Request { unseen, ..request.clone() };
            let seen = Arc::clone(&seen);
            let make = move |found: Found, tx: &ReadTx<'_>| {
                *seen.lock() = Some(found.seen);
                writer.first(found, tx)
            };
            self.search.search(request, Freshness::Required, now(), make)
        };
        let found = self.polls.wait(holder, self.search.changes(), look, wait, stop).await?;
        Ok(found.unwrap_or_else(answer::nothing))
    }
}
