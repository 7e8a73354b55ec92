//! Reading a stream: items under way and the answer that carries them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::Notifications;
use super::streams::{ReadOutcome, StreamBatch, StreamQueues, StreamReader};
use crate::access::auth::Principal;
use crate::archive::content;
use crate::archive::content::{DocumentForm, ItemLookup};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::storage::database::QueuedItem;
use model::item::MediaLinks;

/// The answer to a poll with items.
///
/// The last byte must not be sent before [`StreamAcknowledgement::acknowledge`] is done: whoever has it has the items.
pub struct StreamResponse {
    /// The text of `{"hits": […]}`.
    pub text: Bytes,
    settle: StreamAcknowledgement,
}

impl StreamResponse {
    /// The text, and what has to be done before its last byte is sent.
    #[must_use]
    pub fn into_parts(self) -> (Bytes, StreamAcknowledgement) {
        (self.text, self.settle)
    }
}

/// Items that are on their way to a client. Where it is dropped instead of settled, they go back to
/// their places.
pub struct StreamAcknowledgement {
    streams: Arc<StreamQueues>,
    batch: StreamBatch,
    read: Vec<(i64, i64)>,
}

impl StreamAcknowledgement {
    /// Takes the items off the queue, for good.
    ///
    /// Fails when the database cannot be written; then they are still there, and nothing of the
    /// answer must get through.
    pub async fn acknowledge(self) -> Result<()> {
        let Self { streams, batch: taken, read } = self;
        streams.acknowledge(taken, read).await
    }
}

impl Notifications {
    /// Up to `size` items of the caller's stream `id` as soon as there are some; nothing once `wait`
    /// is over or `stop` comes.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::NotFound`] when the caller has no such stream or it
    /// expired, with [`crate::runtime::error::ErrorKind::Overloaded`] when too many wait.
    pub async fn read_stream<L>(
        &self,
        caller: &Principal,
        id: Uuid,
        size: usize,
        form: &DocumentForm<L>,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<StreamResponse>>
    where
        L: MediaLinks + Clone + Send + 'static,
    {
        let streams = &self.inner.streams;
        // On the heap and only while it is done: most of the time a reader waits.
        let give = |taken| Box::pin(self.stream_response(taken, caller, form.clone()));
        let reader = StreamReader { stream: id, user: caller.user().id, size };
        streams.read(reader, give, wait, stop).await
    }

    /// The answer that carries what was taken, if any of it can be given now.
    ///
    /// What the caller's agreements do not cover any more is not given
    /// (contract notifications-13).
    async fn stream_response<L>(
        &self,
        taken: StreamBatch,
        caller: &Principal,
        form: DocumentForm<L>,
    ) -> Result<ReadOutcome<StreamResponse>>
    where
        L: MediaLinks + Send + 'static,
    {
        let turn = self.inner.answers.acquire().await.map_err(Error::internal)?;
        let keys = taken.items.iter().map(|item| item.key.clone()).collect();
        let now = clock::now();
        let coverage = content::coverage(Some(caller), &[], now);
        let listed = self.inner.services.content.listed_items(keys, form, coverage, now).await?;
        drop(turn);
        let places = taken.items.iter().zip(&listed.read);
        let leaves = |(item, reading): (&QueuedItem, &ItemLookup)| match reading {
            ItemLookup::Found(version) => Some((item.place, *version)),
            // It leaves as it was put in; put in again it is there again.
            ItemLookup::Hidden => Some((item.place, item.seq)),
            ItemLookup::Early => None,
        };
        let read: Vec<(i64, i64)> = places.filter_map(leaves).collect();
        let streams = Arc::clone(&self.inner.streams);
        if listed.hits == 0 {
            if read.is_empty() {
                return Ok(ReadOutcome::Early);
            }
            streams.acknowledge(taken, read).await?;
            return Ok(ReadOutcome::Gone);
        }
        Ok(ReadOutcome::Found(StreamResponse {
            text: listed.text,
            settle: StreamAcknowledgement { streams, batch: taken, read },
        }))
    }
}
