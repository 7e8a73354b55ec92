//! Reads a stream: claims items and builds the response with them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::Notifications;
use super::streams::{ReadOutcome, StreamBatch, StreamQueues, StreamReader};
use crate::access::auth::Principal;
use crate::archive::content::{self, DocumentForm, ItemLookup};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};

/// The response to a poll that found items.
///
/// The last byte must not be sent before [`StreamAcknowledgement::acknowledge`] has completed: a client that has
/// the last byte has received the items.
pub struct StreamResponse {
    /// The JSON `{"hits": […]}`.
    pub text: Bytes,
    pub acknowledgement: StreamAcknowledgement,
}

/// Items in flight to a client. If it is dropped without an acknowledgement, the items are released to their
/// places in the queue.
pub struct StreamAcknowledgement {
    streams: Arc<StreamQueues>,
    batch: StreamBatch,
    read: Vec<(i64, i64)>,
}

impl StreamAcknowledgement {
    /// Removes the items from the queue.
    ///
    /// Fails if the database cannot be written. The items are then still queued, and the response must not be
    /// completed.
    pub async fn acknowledge(self) -> Result<()> {
        self.streams.acknowledge(self.batch, self.read).await
    }
}

impl Notifications {
    /// Reads up to `size` items of the caller's stream `id`, and waits until there are some. Returns `None` when
    /// `wait` has passed or `stop` completes.
    ///
    /// Fails with `read_only` for credentials that change nothing, with
    /// [`crate::runtime::error::ErrorKind::NotFound`] if the caller has no such stream or it expired, and with
    /// [`crate::runtime::error::ErrorKind::Overloaded`] if too many readers wait.
    pub async fn read_stream(
        &self,
        caller: &Principal,
        id: Uuid,
        size: usize,
        form: &DocumentForm,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<StreamResponse>> {
        // What is read leaves the stream.
        caller.require_write()?;
        let reader = StreamReader { stream: id, user: caller.user().id, size };
        self.inner
            .streams
            .read(
                reader,
                // Boxed and short-lived, because a reader waits most of the time.
                |claimed| Box::pin(self.stream_response(claimed, caller, form.clone())),
                wait,
                stop,
            )
            .await
    }

    /// Builds the response for the claimed items, if any of them can be shown now.
    ///
    /// Items that the caller's agreements no longer cover are removed from the queue instead (contract
    /// notifications-13).
    async fn stream_response(
        &self,
        claimed: StreamBatch,
        caller: &Principal,
        form: DocumentForm,
    ) -> Result<ReadOutcome<StreamResponse>> {
        // Responses hold whole documents in memory, so only a few are built at a time.
        let permit = self.inner.answers.acquire().await.map_err(Error::internal)?;
        let keys = claimed.items.iter().map(|item| item.key.clone()).collect();
        // The reader may have waited for a minute; rights count when items are delivered.
        let now = clock::now();
        let coverage = content::coverage(Some(caller), &[], now);
        let listed = self.inner.services.content.listed_items(keys, form, coverage, now).await?;
        drop(permit);
        let mut read: Vec<(i64, i64)> = Vec::new();
        for (item, lookup) in claimed.items.iter().zip(&listed.read) {
            match lookup {
                ItemLookup::Found(version) => read.push((item.position, *version)),
                // Removed at the queued version, so that a newer version that is queued again stays.
                ItemLookup::Hidden => read.push((item.position, item.seq)),
                // Stays in the queue, because its newest version will be queued shortly.
                ItemLookup::Early => {}
            }
        }
        let streams = Arc::clone(&self.inner.streams);
        if listed.hits == 0 {
            if read.is_empty() {
                return Ok(ReadOutcome::Early);
            }
            // Hidden items are removed without a response, or the reader would claim them repeatedly.
            streams.acknowledge(claimed, read).await?;
            return Ok(ReadOutcome::Gone);
        }
        Ok(ReadOutcome::Found(StreamResponse {
            text: listed.text,
            acknowledgement: StreamAcknowledgement { streams, batch: claimed, read },
        }))
    }
}
