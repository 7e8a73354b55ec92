//! Obtains the bytes of a planned rendition: from a cache, from a render under way, or by
//! starting one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Media, MediaState, RenditionAnswer,
    cache::{self, BlobExtent, BodyPart, RenditionBody},
    in_flight::{Outcome, RenderTask},
    make::RenderHooks,
    original::OriginalError,
    plan::PlannedRendition,
    rate_limit::RenderPayer,
    timing::{RenderTiming, StageClock},
};
use crate::runtime::clock::Stopwatch;
use crate::runtime::compute::{MemoryLease, QueueFull, yield_to_waiting};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::SLOW_RETRY_AFTER_S;
use crate::runtime::telemetry;
use imaging::{RasterError, RenderPath, RenderStage};
use metadata::Caption;

/// Where the bytes came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RenditionSource {
    /// The memory tier.
    Memory,
    /// The disk tier.
    Disk,
    /// Rendered for this request or an equal one.
    Rendered {
        /// How they were made.
        way: RenderPath,
        /// Where the time went.
        timing: RenderTiming,
    },
}

impl RenditionSource {
    /// The word in log lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Rendered { .. } => "miss",
        }
    }
}

/// A rendition's bytes.
#[derive(Debug)]
pub struct ObtainedRendition {
    /// The bytes.
    pub body: RenditionBody,
    /// Where they came from.
    pub source: RenditionSource,
    /// Milliseconds the request waited for them.
    pub waited_ms: f64,
}

/// What a render made, for everybody who waits for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RenderedBody {
    pub(super) body: RenditionBody,
    pub(super) render_path: RenderPath,
    pub(super) timing: RenderTiming,
}

/// Why a render gave no picture. Cloned to everybody who waits for it.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum RenderError {
    #[error("the render queue is full")]
    Overloaded,
    #[error("the renderer panicked")]
    Panicked,
    #[error("nobody waited any more")]
    Abandoned,
    #[error("it took more than {0:?} of work (media.render_time_s) and was stopped")]
    TooSlow(Duration),
    #[error("{0}")]
    Original(Arc<OriginalError>),
    #[error("{0}")]
    Picture(String),
}

impl From<RenderError> for Error {
    fn from(cause: RenderError) -> Self {
        match cause {
            RenderError::Overloaded => {
                Self::overloaded("render_queue", "Too many renditions are being made; try again")
            }
            RenderError::Original(ref original) if original.is_resource() => unreadable(cause),
            RenderError::TooSlow(limit) => {
                let message = format!(
                    "Making this rendition took more than {limit:?} of work, so it was stopped"
                );
                Self::new(ErrorKind::Timeout, message)
                    .retry_after(SLOW_RETRY_AFTER_S)
                    .with_source(cause)
            }
            RenderError::Abandoned
            | RenderError::Panicked
            | RenderError::Original(_)
            | RenderError::Picture(_) => Self::internal(cause),
        }
    }
}

/// The failure of a disk that has an original.
fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unavailable, "The original cannot be read now").with_source(cause)
}

/// Counts an original that a request found to be damaged. Each answer that fails because of one, and each
/// render, comes by here once.
fn count_damage(cause: &OriginalError) {
    if cause.is_damage() {
        metrics::counter!(telemetry::ORIGINALS_DAMAGED).increment(1);
    }
}

impl From<OriginalError> for Error {
    fn from(cause: OriginalError) -> Self {
        count_damage(&cause);
        if cause.is_resource() { unreadable(cause) } else { Self::internal(cause) }
    }
}

impl From<OriginalError> for RenderError {
    fn from(cause: OriginalError) -> Self {
        count_damage(&cause);
        Self::Original(Arc::new(cause))
    }
}

impl From<RasterError> for RenderError {
    fn from(cause: RasterError) -> Self {
        if cause == RasterError::Abandoned {
            return Self::Abandoned;
        }
        Self::Picture(cause.to_string())
    }
}

impl Media {
    /// The rendition from the memory tier, at once or not at all.
    #[must_use]
    pub fn find_cached(&self, answer: &RenditionAnswer) -> Option<ObtainedRendition> {
        let body = self.inner.cache.find_in_memory(&answer.planned);
        cache::count("memory", body.is_some());
        body.map(|body| ObtainedRendition {
            body,
            source: RenditionSource::Memory,
            waited_ms: 0.0,
        })
    }

    /// Reads an extent; it blocks on the disk.
    ///
    /// Fails when the original is missing or its bytes there are not what they were, and with
    /// [`ErrorKind::Unavailable`] when the disk fails.
    pub fn read_extent(&self, extent: &BlobExtent) -> Result<Bytes> {
        let BlobExtent { blob, blob_length, ref range } = *extent;
        Ok(self.inner.originals.read(blob, blob_length, range.clone())?)
    }

    /// Checks, before anything is sent, that the originals of a body's extents are what they were;
    /// it blocks on the disk.
    ///
    /// Fails with [`ErrorKind::Unavailable`] when the disk fails and with [`ErrorKind::Internal`] when they are
    /// others, and a log line that names the original.
    pub fn check_extents(&self, body: &RenditionBody) -> Result<()> {
        for part in body.parts() {
            match part {
                BodyPart::Memory(_) => {}
                BodyPart::Store(extent) => {
                    self.inner.originals.verify(extent.blob, extent.blob_length)?;
                }
            }
        }
        Ok(())
    }

    /// The rendition's bytes.
    ///
    /// Fails with [`ErrorKind::Overloaded`] when the queue is full, with [`ErrorKind::Timeout`] when
    /// `patience` ends first, with [`ErrorKind::Unavailable`] when the disk fails and with
    /// [`ErrorKind::Internal`] when the original is missing or damaged.
    pub async fn obtain(
        &self,
        answer: &RenditionAnswer,
        patience: Duration,
    ) -> Result<ObtainedRendition> {
        self.obtain_for(answer, patience, RenderPayer::Server).await
    }

    /// The rendition's bytes for somebody who pays for a render that is begun.
    ///
    /// Fails as [`Media::obtain`] does, and with [`ErrorKind::Overloaded`] when the payer's reserve of
    /// megapixels does not suffice.
    pub async fn obtain_for(
        &self,
        answer: &RenditionAnswer,
        patience: Duration,
        payer: RenderPayer,
    ) -> Result<ObtainedRendition> {
        let watch = Stopwatch::start();
        let obtained =
            |(body, source)| ObtainedRendition { body, source, waited_ms: watch.elapsed_ms() };
        tokio::time::timeout(patience, self.find_or_render(answer, payer))
            .await
            .map_err(|_| Error::new(ErrorKind::Timeout, "The rendition took too long; try again"))?
            .map(obtained)
    }

    async fn find_or_render(
        &self,
        answer: &RenditionAnswer,
        payer: RenderPayer,
    ) -> Result<(RenditionBody, RenditionSource)> {
        let planned = &answer.planned;
        if let Some(body) = self.inner.cache.find_in_memory(planned) {
            return Ok((body, RenditionSource::Memory));
        }
        if self.inner.cache.is_on_disk(planned) {
            let (media, wanted) = (self.clone(), planned.clone());
            let read = move || media.inner.cache.read_from_disk(&wanted);
            let read = tokio::task::spawn_blocking(read).await.map_err(Error::internal)?;
            if let Some(body) = read {
                return Ok((body, RenditionSource::Disk));
            }
        }
        let known = self.inner.originals.cached_summary(planned.plan.source.blob);
        let pixels = planned.plan.decoded_pixels(known);
        let pay = || self.inner.rate_limiter.acquire(payer, pixels);
        let (waiting, task) = self.inner.in_flight.join(planned.key, pay)?;
        if let Some(task) = task
            && self.start_render(answer, task).is_err()
        {
            self.inner.rate_limiter.refund(payer, pixels);
        }
        let made = waiting.wait().await?;
        let RenderedBody { ref body, render_path: way, timing } = *made;
        Ok((body.clone(), RenditionSource::Rendered { way, timing }))
    }

    /// Queues a render. Where the queue is full, everybody who waits for it is refused.
    fn start_render(&self, answer: &RenditionAnswer, task: RenderTask) -> Result<(), QueueFull> {
        let plan = &answer.planned.plan;
        let memory = plan.memory_bytes(self.inner.originals.cached_summary(plan.source.blob));
        let task = Arc::new(task);
        let render = RenderRun {
            inner: Arc::clone(&self.inner),
            planned: Arc::clone(&answer.planned),
            caption: answer.entry.caption_of(answer.association.as_ref()).0.clone(),
            task: Arc::clone(&task),
            queued: Stopwatch::start(),
        };
        let queued = Arc::clone(&task);
        let is_wanted = move || queued.has_waiters();
        self.inner.compute.submit(memory, is_wanted, move |lease| render.run(lease)).inspect_err(
            |QueueFull| {
                count_outcome("refused");
                task.finish(Err(RenderError::Overloaded));
            },
        )
    }
}

impl RenderedBody {
    /// Adds the render to the metrics.
    fn count(&self) {
        metrics::counter!(telemetry::RENDER_PATHS, "path" => self.render_path.as_str())
            .increment(1);
        for (stage, ms) in self.timing.stages() {
            metrics::histogram!(telemetry::STAGE_SECONDS, "stage" => stage).record(ms / 1000.0);
        }
    }
}

/// A render on its way through the pool.
struct RenderRun {
    inner: Arc<MediaState>,
    planned: Arc<PlannedRendition>,
    caption: Caption,
    task: Arc<RenderTask>,
    queued: Stopwatch,
}

impl RenderRun {
    /// Renders on a worker thread, publishes the outcome to the requests that wait, and fills the cache.
    fn run(&self, lease: &MemoryLease) {
        if !self.task.has_waiters() {
            count_outcome("abandoned");
            return;
        }
        let work = Stopwatch::start();
        let stages = StageClock::start(self.queued.elapsed_ms());
        let rendered = self.make(&work, &stages, lease);
        let timing = stages.finish();
        let outcome =
            rendered.map(|(body, way)| Arc::new(RenderedBody { body, render_path: way, timing }));
        count_outcome(match &outcome {
            Ok(_) => "done",
            Err(RenderError::Abandoned) => "abandoned",
            Err(RenderError::TooSlow(_)) => "too_slow",
            Err(_) => "failed",
        });
        metrics::histogram!(telemetry::RENDER_SECONDS, "operation" => self.planned.operation)
            .record(work.elapsed().as_secs_f64());
        if let Ok(made) = &outcome {
            made.count();
        }
        self.publish(outcome);
    }

    /// Makes the rendition while a request waits for it and its time lasts.
    fn make(
        &self,
        work: &Stopwatch,
        stages: &StageClock,
        lease: &MemoryLease,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let time_max = self.inner.settings.render_time;
        let in_time = || {
            yield_to_waiting();
            work.elapsed() <= time_max
        };
        let is_stopped = |made: &Result<_, _>| matches!(made, Err(RenderError::Abandoned));
        let mut made = self.attempt(&|| in_time() && self.task.has_waiters(), stages, lease);
        if is_stopped(&made) && in_time() && self.task.has_waiters() {
            // A request joined between the decision to drop the work and its end.
            made = self.attempt(&in_time, stages, lease);
        }
        if is_stopped(&made) && !in_time() {
            return Err(RenderError::TooSlow(time_max));
        }
        made
    }

    /// Makes the rendition as long as `should_continue` holds.
    fn attempt(
        &self,
        should_continue: &(dyn Fn() -> bool + Sync),
        stages: &StageClock,
        lease: &MemoryLease,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let plan = &self.planned.plan;
        let begin = |stage| {
            stages.begin(stage);
            if stage == RenderStage::Decode {
                // Now that the original is open, the exact need for memory is known.
                lease.shrink(
                    plan.memory_bytes(self.inner.originals.cached_summary(plan.source.blob)),
                );
            }
            should_continue()
        };
        let watched = RenderHooks { begin: &begin, should_continue };
        self.inner.make(plan, &self.caption, watched)
    }

    fn publish(&self, outcome: Outcome) {
        match &outcome {
            Ok(made) => {
                let body = made.body.clone();
                self.inner.cache.insert(&self.planned, &body);
                self.task.finish(outcome);
                self.inner.cache.write_to_disk(&self.planned, &body);
            }
            Err(RenderError::Abandoned) => self.task.finish(outcome),
            Err(error) => {
                let (blob, operation) = (self.planned.plan.source.blob, self.planned.operation);
                tracing::error!(%blob, operation, "render failed: {error}");
                self.task.finish(outcome);
            }
        }
    }
}

fn count_outcome(outcome: &'static str) {
    metrics::counter!(telemetry::RENDERS, "outcome" => outcome).increment(1);
}
