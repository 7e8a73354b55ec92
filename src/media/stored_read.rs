//! Reads renditions that the store contains as they are: the *standard set* of an original, which are its common
//! renditions, stored beside it, and the original's own picture data.
//!
//! Such a read needs no render worker and does not count towards the rate limit of the client. Equal reads in flight
//! are done once, for all requests that wait for them.

use std::sync::Arc;

use super::in_flight::RenderTask;
use super::inputs::{ReadPermit, RenderSourceBytes};
use super::make::{RenderHooks, RenditionTexts};
use super::plan::PlannedRendition;
use super::render::{RenderedBody, log_failure};
use super::render_error::RenderError;
use super::timing::StageClock;
use super::{Media, MediaState, RenditionAnswer};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::{QueueFull, RequestClient};
use imaging::RenderStage;

impl Media {
    /// Reads a rendition that the store contains as it is; `None` if the standard set has to be made first.
    pub(super) async fn read_stored(
        &self,
        answer: &RenditionAnswer,
        client: Option<RequestClient>,
    ) -> Result<Option<RenderedBody>> {
        loop {
            let key = answer.planned.key;
            let (waiter, task) = self.inner.reads_in_flight.join(key, || Ok::<_, Error>(()))?;
            let is_joined = task.is_none();
            if let Some(task) = task {
                let read = StoredRead {
                    inner: Arc::clone(&self.inner),
                    planned: Arc::clone(&answer.planned),
                    texts: RenditionTexts::new(answer),
                    task,
                    requested: Stopwatch::start(),
                };
                // A separate task, because the request that started the read may end before the requests that
                // joined it.
                tokio::spawn(read.run(client));
            }
            match waiter.wait().await {
                // The exhausted share belongs to the client that started the read, not to this client.
                Err(RenderError::Overloaded(QueueFull::ClientShare)) if is_joined => {}
                read => return Ok(read?.as_ref().clone()),
            }
        }
    }
}

/// A read that one request has started and that others may have joined.
struct StoredRead {
    inner: Arc<MediaState>,
    planned: Arc<PlannedRendition>,
    texts: RenditionTexts,
    task: RenderTask<Option<RenderedBody>>,
    /// Runs since the read was requested.
    requested: Stopwatch,
}

impl StoredRead {
    /// Waits until the client may read, and reads on a thread that may block.
    async fn run(self, client: Option<RequestClient>) {
        let bytes = self.planned.plan.read_bytes();
        let permit = tokio::select! {
            permit = self.inner.store_reads.admit(client, bytes) => permit,
            // No request waits any more, so the place in the queue is left to a read with a waiting request.
            () = self.task.abandoned() => return,
        };
        match permit {
            Ok(permit) => drop(tokio::task::spawn_blocking(move || self.read_and_publish(permit))),
            Err(full) => self.task.finish(Err(RenderError::Overloaded(full))),
        }
    }

    /// Reads the rendition, publishes it to the waiting requests, and fills the cache.
    fn read_and_publish(&self, permit: ReadPermit) {
        let read = self.read();
        // The next read may begin while this rendition is written to the cache.
        drop(permit);
        if let Err(error) = &read {
            log_failure(&self.planned, error);
        }
        let body = read.as_ref().ok().and_then(Option::as_ref).map(|read| read.body.clone());
        if let Some(body) = &body {
            // Before the task ends, so that a later request finds either the task or the cached body.
            self.inner.cache.insert(&self.planned, body);
        }
        self.task.finish(read.map(Arc::new));
        // After the answer, because no request has to wait for the disk.
        if let Some(body) = &body {
            self.inner.cache.write_to_disk(&self.planned, body);
        }
    }

    /// Reads the rendition; `None` if the standard set has to be made first.
    fn read(&self) -> Result<Option<RenderedBody>, RenderError> {
        let plan = &self.planned.plan;
        let stages = StageClock::start(self.requested.elapsed_ms(), None);
        stages.begin(RenderStage::Read);
        let Some(inputs) = self.inner.read_ahead(plan)? else { return Ok(None) };
        if matches!(inputs.source, RenderSourceBytes::MissingSet) {
            return Ok(None);
        }
        let hooks = RenderHooks {
            begin: &|stage| {
                stages.begin(stage);
                true
            },
            should_continue: &|| true,
        };
        let (body, render_path) = self.inner.make(plan, &self.texts, hooks, Some(inputs))?;
        let rendered = RenderedBody { body, render_path, timing: stages.finish() };
        rendered.count();
        Ok(Some(rendered))
    }
}
