//! Obtains the bytes of a planned rendition: from a cache, from a render in flight, or by starting one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Media, MediaState, RenditionAnswer,
    cache::{self, BlobExtent, BodyPart, RenditionBody},
    in_flight::{Outcome, RenderTask},
    make::{RenderHooks, RenditionTexts},
    original::OriginalError,
    plan::PlannedRendition,
    rate_limit::RenderPayer,
    rights::EffectiveRights,
    sets_in_flight::SetAdmission,
    slow_encoders::EncoderAdmission,
    timing::{RenderTiming, StageClock},
};
use crate::runtime::clock::Stopwatch;
use crate::runtime::compute::{MemoryLease, QueueFull, yield_to_waiting};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{SLOW_ENCODING_COST_MIN, SLOW_RETRY_AFTER_S};
use crate::runtime::telemetry;
use imaging::{RasterError, RenderPath, RenderStage};
use metadata::Caption;

/// The source of a rendition's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RenditionSource {
    Memory,
    Disk,
    /// Rendered for this request or an equal one.
    Rendered {
        way: RenderPath,
        /// The time that each stage took.
        timing: RenderTiming,
    },
}

impl RenditionSource {
    /// The word for the source in log lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            // Also a render that another request started: no cache had the bytes.
            Self::Rendered { .. } => "miss",
        }
    }
}

/// The bytes of a rendition, and how they were obtained.
#[derive(Debug)]
pub struct ObtainedRendition {
    pub body: RenditionBody,
    pub source: RenditionSource,
    /// Milliseconds that the request waited for the bytes.
    pub waited_ms: f64,
}

/// The result of a render, shared by all requests that wait for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RenderedBody {
    pub(super) body: RenditionBody,
    pub(super) render_path: RenderPath,
    pub(super) timing: RenderTiming,
}

/// The reason why a render failed. Cloned for each request that waits for it.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum RenderError {
    #[error("the render queue is full")]
    Overloaded,
    #[error("the renderer panicked")]
    Panicked,
    #[error("no request was waiting any more")]
    Abandoned,
    #[error("it took more than {0:?} of processing time (media.render_time_s) and was stopped")]
    TooSlow(Duration),
    #[error("{0}")]
    Original(Arc<OriginalError>),
    #[error("{0}")]
    Picture(String),
}

impl From<RenderError> for Error {
    fn from(cause: RenderError) -> Self {
        match cause {
            RenderError::Overloaded => Self::overloaded(
                "render_queue",
                "Too many renditions are being rendered; try again",
            ),
            // The disk or bucket may recover, so a retry helps; damage stays a 500.
            RenderError::Original(ref original) if original.is_resource() => unreadable(cause),
            RenderError::TooSlow(limit) => {
                let message = format!(
                    "Rendering took more than {limit:?} of processing time, so it was stopped"
                );
                Self::new(ErrorKind::Timeout, message)
                    .retry_after(SLOW_RETRY_AFTER_S)
                    .with_source(cause)
            }
            // An abandoned render reaches no client: it was abandoned because none waits.
            RenderError::Abandoned
            | RenderError::Panicked
            | RenderError::Original(_)
            | RenderError::Picture(_) => Self::internal(cause),
        }
    }
}

/// The error for a disk or bucket with an original that cannot be read.
fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unavailable, "The original cannot be read now").with_source(cause)
}

/// Counts an original that a request found to be damaged. Every failed answer and every failed render calls
/// this exactly once.
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
    /// Returns the rendition from the memory tier; never waits.
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

    /// Reads an extent; blocks on the disk.
    ///
    /// Fails when the original is missing or modified, and with [`ErrorKind::Unavailable`] when the disk
    /// fails.
    pub fn read_extent(&self, extent: &BlobExtent) -> Result<Bytes> {
        let BlobExtent { blob, blob_length, ref range } = *extent;
        Ok(self.inner.originals.read(blob, blob_length, range.clone())?)
    }

    /// Verifies the originals of a body's extents before anything is sent; blocks on the disk.
    ///
    /// Fails with [`ErrorKind::Unavailable`] when the disk fails, and with [`ErrorKind::Internal`] and a log
    /// line with the original's hash when an original is modified.
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

    /// Obtains the bytes of a rendition.
    ///
    /// Fails with [`ErrorKind::Overloaded`] when the queue is full, with [`ErrorKind::Timeout`] when the
    /// `timeout` expires first, with [`ErrorKind::Unavailable`] when the disk fails, and with
    /// [`ErrorKind::Internal`] when the original is missing or damaged.
    pub async fn obtain(
        &self,
        answer: &RenditionAnswer,
        timeout: Duration,
    ) -> Result<ObtainedRendition> {
        self.obtain_for(answer, timeout, RenderPayer::Server).await
    }

    /// Obtains the bytes of a rendition, and charges `payer` for a render that has to be started.
    ///
    /// Fails as [`Media::obtain`] does, and with [`ErrorKind::Overloaded`] when the payer exceeds its rate
    /// limit.
    pub async fn obtain_for(
        &self,
        answer: &RenditionAnswer,
        timeout: Duration,
        payer: RenderPayer,
    ) -> Result<ObtainedRendition> {
        let stopwatch = Stopwatch::start();
        let obtained =
            |(body, source)| ObtainedRendition { body, source, waited_ms: stopwatch.elapsed_ms() };
        // The time-out drops this waiter only; the render goes on if others wait for it.
        tokio::time::timeout(timeout, self.find_or_render(answer, payer))
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
        // `find_cached`, which requests call first, has counted this look-up as a hit or a miss.
        if let Some(body) = self.inner.cache.find_in_memory(planned) {
            return Ok((body, RenditionSource::Memory));
        }
        // The index of the disk tier is in memory, so a miss occupies no blocking thread.
        if self.inner.cache.is_on_disk(planned) {
            let (media, requested) = (self.clone(), planned.clone());
            let read = move || media.inner.cache.read_from_disk(&requested);
            let found = tokio::task::spawn_blocking(read).await.map_err(Error::internal)?;
            // An entry that was evicted meanwhile, or cannot be read, is rendered again.
            if let Some(body) = found {
                return Ok((body, RenditionSource::Disk));
            }
        }
        let has_random_access = self.inner.originals.has_random_access(planned.plan.source.blob);
        let pixels = planned.charged_pixels(has_random_access);
        // Called only for the request that starts the render; the others share it free of charge
        // (contract reliability-2).
        let charge = || self.inner.rate_limiter.acquire(payer, pixels);
        let (waiter, task) = self.inner.in_flight.join(planned.key, charge)?;
        if let Some(task) = task {
            self.start_render(answer, task, RenderCharge { payer, pixels });
        }
        let rendered = waiter.wait().await?;
        let RenderedBody { ref body, render_path, timing } = *rendered;
        Ok((body.clone(), RenditionSource::Rendered { way: render_path, timing }))
    }

    /// Whether the rendition can be answered at once: it is cached, or encoding it takes little time.
    #[must_use]
    pub fn is_ready(&self, answer: &RenditionAnswer) -> bool {
        let planned = &answer.planned;
        !is_slow(planned)
            || self.inner.cache.find_in_memory(planned).is_some()
            || self.inner.cache.is_on_disk(planned)
    }

    /// Renders in the background for later requests, unless a render is in flight.
    ///
    /// Returns false, and does nothing, where no cache would keep the result.
    #[must_use]
    pub fn render_ahead(&self, answer: RenditionAnswer, payer: RenderPayer) -> bool {
        if !self.inner.cache.is_enabled() {
            return false;
        }
        if self.inner.in_flight.contains(answer.planned.key) {
            return true;
        }
        let media = self.clone();
        tokio::spawn(async move {
            let limit = media.inner.settings.render_time;
            // No request waits: the requests that want it later find it in the cache, or render it.
            if let Err(error) = media.obtain_for(&answer, limit, payer).await {
                tracing::debug!(key = %answer.entry.key, "rendition not rendered ahead: {error}");
            }
        });
        true
    }

    /// Queues a render. If the queue is full, all requests that wait for it are refused.
    fn start_render(&self, answer: &RenditionAnswer, task: RenderTask, charge: RenderCharge) {
        let render = RenderRun {
            inner: Arc::clone(&self.inner),
            planned: Arc::clone(&answer.planned),
            caption: answer.entry.caption_of(answer.association.as_ref()).0.clone(),
            rights: answer.entry.effective_rights(answer.association.as_ref()),
            task: Arc::new(task),
            charge,
            queued: Stopwatch::start(),
            encoder: None,
        };
        if !is_slow(&answer.planned) {
            return render.submit();
        }
        let place = match self.inner.slow_encoders.admit() {
            Ok(EncoderAdmission::Encoder(encoder)) => {
                return RenderRun { encoder: Some(encoder), ..render }.submit();
            }
            Ok(EncoderAdmission::Queued(place)) => place,
            Err(QueueFull) => return refuse(&self.inner, &render.task, charge),
        };
        let task = Arc::clone(&render.task);
        tokio::spawn(async move {
            tokio::select! {
                encoder = place.encoder() => RenderRun { encoder, ..render }.submit(),
                // Frees the place for a render that a request waits for.
                () = task.abandoned() => count_outcome("abandoned"),
            }
        });
    }
}

/// Refuses all requests that wait for a render, which then costs the client nothing.
fn refuse(inner: &MediaState, task: &RenderTask, charge: RenderCharge) {
    count_outcome("refused");
    inner.rate_limiter.refund(charge.payer, charge.pixels);
    task.finish(Err(RenderError::Overloaded));
}

/// Whether encoding takes so much longer than JPEG that such renders have a budget of their own.
fn is_slow(planned: &PlannedRendition) -> bool {
    planned.format.encoding_cost() >= SLOW_ENCODING_COST_MIN
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

/// The charge of one render to a client's rate limit.
#[derive(Clone, Copy)]
struct RenderCharge {
    payer: RenderPayer,
    pixels: u64,
}

/// A render in the pool.
struct RenderRun {
    inner: Arc<MediaState>,
    planned: Arc<PlannedRendition>,
    caption: Caption,
    rights: Arc<EffectiveRights>,
    task: Arc<RenderTask>,
    charge: RenderCharge,
    queued: Stopwatch,
    /// The permit of a slow encoder, held until the render has ended.
    #[expect(dead_code, reason = "dropping it frees the encoder")]
    encoder: Option<OwnedSemaphorePermit>,
}

impl RenderRun {
    /// Queues the render. If the queue is full, all requests that wait for it are refused.
    fn submit(self) {
        let plan = &self.planned.plan;
        let memory = plan.memory_bytes(self.inner.originals.has_random_access(plan.source.blob));
        // Lets a full queue drop abandoned renders before it refuses new ones.
        let queued_task = Arc::clone(&self.task);
        let is_wanted = move || queued_task.has_waiters();
        let (inner, task, charge) = (Arc::clone(&self.inner), Arc::clone(&self.task), self.charge);
        if inner.compute.submit(memory, is_wanted, move |lease| self.run(lease)).is_err() {
            refuse(&inner, &task, charge);
        }
    }

    /// Renders on a worker thread, unless another job makes the standard set that the render needs: then it is
    /// queued again after that.
    fn run(self, lease: &MemoryLease) {
        // The requests may have ended while the render was queued.
        if !self.task.has_waiters() {
            count_outcome("abandoned");
            return;
        }
        let plan = &self.planned.plan;
        if plan.standard.is_none() {
            return self.complete(lease);
        }
        let (sets, original) = (self.inner.sets_in_flight.clone(), plan.source.blob);
        match sets.admit(original, self, Self::submit) {
            // The claim ends when the set is kept, and with the render at the latest.
            SetAdmission::Admitted(render, _claim) => render.complete(lease),
            SetAdmission::Waiting => {}
            SetAdmission::Refused(render) => refuse(&render.inner, &render.task, render.charge),
        }
    }

    /// Renders, publishes the outcome to the waiting requests, and fills the cache.
    fn complete(&self, lease: &MemoryLease) {
        let work = Stopwatch::start();
        let stages = StageClock::start(self.queued.elapsed_ms());
        let rendered = self.render(&work, &stages, lease);
        let timing = stages.finish();
        let outcome = rendered
            .map(|(body, render_path)| Arc::new(RenderedBody { body, render_path, timing }));
        count_outcome(match &outcome {
            Ok(_) => "done",
            Err(RenderError::Abandoned) => "abandoned",
            Err(RenderError::TooSlow(_)) => "too_slow",
            Err(_) => "failed",
        });
        metrics::histogram!(telemetry::RENDER_SECONDS, "operation" => self.planned.operation)
            .record(work.elapsed().as_secs_f64());
        if let Ok(rendered) = &outcome {
            rendered.count();
        }
        self.publish(outcome);
    }

    /// Renders while a request waits and the time limit is not exceeded.
    fn render(
        &self,
        work: &Stopwatch,
        stages: &StageClock,
        lease: &MemoryLease,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let time_max = self.inner.settings.render_time;
        // Called between the steps of the render, where a yield to requests costs the least.
        let in_time = || {
            yield_to_waiting();
            work.elapsed() <= time_max
        };
        let is_stopped = |rendered: &Result<_, _>| matches!(rendered, Err(RenderError::Abandoned));
        let mut rendered = self.attempt(&|| in_time() && self.task.has_waiters(), stages, lease);
        if is_stopped(&rendered) && in_time() && self.task.has_waiters() {
            // A request joined between the decision to abandon the render and its end.
            rendered = self.attempt(&in_time, stages, lease);
        }
        // The renderer reports both reasons as abandoned; only this one is an error for clients.
        if is_stopped(&rendered) && !in_time() {
            return Err(RenderError::TooSlow(time_max));
        }
        rendered
    }

    /// Renders once, for as long as `should_continue` returns true.
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
                // The original is open now, so the memory that the render needs is known exactly.
                let has_random_access = self.inner.originals.has_random_access(plan.source.blob);
                lease.shrink(plan.memory_bytes(has_random_access));
            }
            should_continue()
        };
        let hooks = RenderHooks { begin: &begin, should_continue };
        let texts = RenditionTexts { caption: &self.caption, rights: &self.rights };
        self.inner.make(plan, texts, hooks)
    }

    fn publish(&self, outcome: Outcome) {
        match &outcome {
            Ok(rendered) => {
                // Waiting requests get the body before the write to disk, which may be slow.
                let body = rendered.body.clone();
                self.inner.cache.insert(&self.planned, &body);
                self.task.finish(outcome);
                self.inner.cache.write_to_disk(&self.planned, &body);
            }
            // A client that disconnects is no failure of the server, so nothing is logged.
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
