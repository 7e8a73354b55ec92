//! Obtains the bytes of a planned rendition: from a cache, from the store if it is stored there, from a render in
//! flight, or by starting a render.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use strum::IntoStaticStr;

use super::cache::{self, BlobExtent, BodyPart, RenditionBody};
use super::in_flight::{Outcome, RenderTask};
use super::inputs::{ReadMemory, RenderInputs};
use super::make::{RenderHooks, RenditionTexts};
use super::plan::PlannedRendition;
use super::rate_limit::RenderPayer;
use super::render_error::RenderError;
use super::sets_in_flight::SetAdmission;
use super::timing::{RenderTiming, StageClock};
use super::{Media, MediaState, PublicRendition, RenditionAnswer};
use crate::runtime::clock::Stopwatch;
use crate::runtime::compute::{MemoryLease, QueuePlace, yield_to_waiting};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::{Admission, FairPermit, QueueFull};
use crate::runtime::telemetry;
use imaging::{RenderPath, RenderStage};

/// Encoders that take at least this many times as long as JPEG's share a budget of their own.
const SLOW_ENCODING_COST_MIN: u32 = 50;

/// The source of a rendition's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum RenditionSource {
    Memory,
    Disk,
    /// Rendered for this request or an equal one, because no cache had the bytes.
    #[strum(serialize = "miss")]
    Rendered {
        render_path: RenderPath,
        /// The duration of each stage.
        timing: RenderTiming,
    },
}

model::impl_as_str!(RenditionSource);

/// The bytes of a rendition, with their source and the time that the request waited.
#[derive(Debug)]
pub struct ObtainedRendition {
    pub body: RenditionBody,
    pub source: RenditionSource,
    /// The milliseconds that the request waited for the bytes.
    pub waited_ms: f64,
}

/// The result of a render, shared by all requests that wait for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RenderedBody {
    pub(super) body: RenditionBody,
    pub(super) render_path: RenderPath,
    pub(super) timing: RenderTiming,
}

impl Media {
    /// Returns the rendition from the memory tier; never waits.
    pub fn find_cached(&self, answer: &RenditionAnswer) -> Option<ObtainedRendition> {
        let body = self.inner.cache.find_in_memory(&answer.planned);
        cache::count("memory", body.is_some());
        body.map(|body| ObtainedRendition {
            body,
            source: RenditionSource::Memory,
            waited_ms: 0.0,
        })
    }

    /// Returns the bytes of a rendition that was public, if [`Media::is_public`] holds and the memory tier has them.
    pub fn find_public(&self, rendition: &PublicRendition, now: Timestamp) -> Option<Bytes> {
        if !self.is_public(rendition, now) {
            return None;
        }
        let body = self.inner.cache.find_in_memory(&rendition.planned)?;
        let [BodyPart::Memory(bytes)] = body.parts() else { return None };
        cache::count("memory", true);
        Some(bytes.clone())
    }

    /// Reads an extent; blocks on the disk.
    ///
    /// Fails if the original is missing or modified, and with [`ErrorKind::Unavailable`] if the disk fails.
    pub fn read_extent(&self, extent: &BlobExtent) -> Result<Bytes> {
        let BlobExtent { blob, blob_length, ref range } = *extent;
        Ok(self.inner.originals.read(blob, blob_length, range.clone())?)
    }

    /// Verifies the originals of a body's extents before anything is sent; blocks on the disk.
    ///
    /// Fails with [`ErrorKind::Unavailable`] if the disk fails. If an original is modified, it fails with
    /// [`ErrorKind::Internal`] and logs the hash of the original.
    pub fn check_extents(&self, body: &RenditionBody) -> Result<()> {
        for part in body.parts() {
            if let BodyPart::Store(extent) = part {
                self.inner.originals.verify(extent.blob, extent.blob_length)?;
            }
        }
        Ok(())
    }

    /// Obtains the bytes of a rendition.
    ///
    /// Fails with [`ErrorKind::Overloaded`] if the queue is full, with [`ErrorKind::Timeout`] if the `timeout`
    /// expires first, with [`ErrorKind::Unavailable`] if the disk fails, and with [`ErrorKind::Internal`] if the
    /// original is missing or damaged.
    pub async fn obtain(
        &self,
        answer: &RenditionAnswer,
        timeout: Duration,
    ) -> Result<ObtainedRendition> {
        self.obtain_for(answer, timeout, RenderPayer::Server).await
    }

    /// Obtains the bytes of a rendition, and charges `payer` for a render that has to be started.
    ///
    /// Fails as [`Media::obtain`] does, and with [`ErrorKind::Overloaded`] if the payer exceeds its rate limit.
    pub async fn obtain_for(
        &self,
        answer: &RenditionAnswer,
        timeout: Duration,
        payer: RenderPayer,
    ) -> Result<ObtainedRendition> {
        let stopwatch = Stopwatch::start();
        // The timeout drops only this waiter. The render continues if other requests wait for it.
        let found = tokio::time::timeout(timeout, self.find_or_render(answer, payer)).await;
        let (body, source) = found.map_err(|_| {
            Error::new(ErrorKind::Timeout, "The rendition took too long; try again")
        })??;
        Ok(ObtainedRendition { body, source, waited_ms: stopwatch.elapsed_ms() })
    }

    async fn find_or_render(
        &self,
        answer: &RenditionAnswer,
        payer: RenderPayer,
    ) -> Result<(RenditionBody, RenditionSource)> {
        let planned = &answer.planned;
        // `find_cached`, which requests call first, has already counted this look-up as a hit or a miss.
        if let Some(body) = self.inner.cache.find_in_memory(planned) {
            return Ok((body, RenditionSource::Memory));
        }
        // The index of the disk tier is in memory, so a miss occupies no blocking thread.
        if self.inner.cache.is_on_disk(planned) {
            let media = self.clone();
            let requested = planned.clone();
            let read =
                tokio::task::spawn_blocking(move || media.inner.cache.read_from_disk(&requested));
            let found = read.await.map_err(Error::internal)?;
            // An entry that was evicted in the meantime, or cannot be read, is rendered again.
            if let Some(body) = found {
                return Ok((body, RenditionSource::Disk));
            }
        }
        // A read is not a render: it is not charged, and does not wait for a worker.
        if planned.plan.is_stored()
            && let Some(read) = self.read_stored(answer, payer.client()).await?
        {
            return Ok(read.into_body());
        }
        let has_random_access = self.inner.originals.has_random_access(planned.plan.source.blob);
        let charge = RenderCharge { payer, pixels: planned.charged_pixels(has_random_access) };
        loop {
            // The request that starts the render pays for it. The other requests share it free of charge (contract
            // reliability-2).
            let (waiter, task) = self
                .inner
                .in_flight
                .join(planned.key, || self.inner.rate_limiter.acquire(payer, charge.pixels))?;
            let is_joined = task.is_none();
            if let Some(task) = task {
                self.start_render(answer, task, charge);
            }
            match waiter.wait().await {
                // The exhausted share belongs to the client that started the render, not to this client.
                Err(RenderError::Overloaded(QueueFull::ClientShare)) if is_joined => {}
                rendered => return Ok(rendered?.as_ref().clone().into_body()),
            }
        }
    }

    /// Returns whether the rendition can be answered at once: it is cached, or its encoder is fast.
    pub fn is_ready(&self, answer: &RenditionAnswer) -> bool {
        let planned = &answer.planned;
        !is_slow(planned)
            || self.inner.cache.find_in_memory(planned).is_some()
            || self.inner.cache.is_on_disk(planned)
    }

    /// Renders in the background for later requests, unless a render is in flight.
    ///
    /// Returns false, and does nothing, if the cache is disabled.
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
            // No request waits. Later requests find the rendition in the cache, or render it.
            if let Err(error) = media.obtain_for(&answer, limit, payer).await {
                tracing::debug!(key = %answer.entry.key, "rendition not rendered ahead: {error}");
            }
        });
        true
    }

    /// Starts a render. If the queue has no place for its client, all requests that wait for the render are
    /// refused.
    fn start_render(
        &self,
        answer: &RenditionAnswer,
        task: RenderTask<RenderedBody>,
        charge: RenderCharge,
    ) {
        let render = RenderRun {
            inner: Arc::clone(&self.inner),
            planned: Arc::clone(&answer.planned),
            texts: RenditionTexts::new(answer),
            task: Arc::new(task),
            charge,
            queued: Stopwatch::start(),
            encoder: None,
            read: None,
        };
        let client = charge.payer.client();
        let place = if is_slow(&answer.planned) {
            self.inner.slow_encoders.admit(client).map(RenderPlace::Encoder)
        } else {
            self.inner.compute.reserve(client).map(RenderPlace::Worker)
        };
        match place {
            Ok(place) => drop(tokio::spawn(render.prepare(place))),
            Err(full) => render.refuse(full),
        }
    }
}

/// The place of a render in the first queue in which it waits.
enum RenderPlace {
    Worker(QueuePlace),
    /// A place in the queue for a slow encoder, before the queue for a worker.
    Encoder(Admission),
}

/// Returns whether encoding is so much slower than JPEG that such renders have a budget of their own.
fn is_slow(planned: &PlannedRendition) -> bool {
    planned.format.encoding_cost() >= SLOW_ENCODING_COST_MIN
}

impl RenderedBody {
    pub(super) fn into_body(self) -> (RenditionBody, RenditionSource) {
        let source =
            RenditionSource::Rendered { render_path: self.render_path, timing: self.timing };
        (self.body, source)
    }

    /// Adds the render to the metrics.
    pub(super) fn count(&self) {
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

/// The inputs that a render read before it queued for a worker.
struct ReadAhead {
    /// `None` if the worker has to read them. Removed by the first attempt.
    inputs: Mutex<Option<RenderInputs>>,
    ms: f64,
    #[expect(dead_code, reason = "dropping it frees the memory of the inputs")]
    memory: ReadMemory,
}

/// A render, from its place in a queue to its end in the pool.
struct RenderRun {
    inner: Arc<MediaState>,
    planned: Arc<PlannedRendition>,
    texts: RenditionTexts,
    task: Arc<RenderTask<RenderedBody>>,
    charge: RenderCharge,
    queued: Stopwatch,
    /// The permit of a slow encoder, held until the render has ended.
    encoder: Option<FairPermit>,
    read: Option<ReadAhead>,
}

impl RenderRun {
    /// Refuses all requests that wait for the render, and refunds its client.
    fn refuse(&self, full: QueueFull) {
        count_outcome("refused");
        self.inner.rate_limiter.refund(self.charge.payer, self.charge.pixels);
        self.task.finish(Err(RenderError::Overloaded(full)));
    }

    /// Waits for a slow encoder if the render needs one, reads its inputs, and queues it for a worker.
    async fn prepare(mut self, place: RenderPlace) {
        let place = match place {
            RenderPlace::Worker(place) => place,
            RenderPlace::Encoder(admission) => {
                let Some(encoder) = self.wait_for_encoder(admission).await else {
                    return count_outcome("abandoned");
                };
                self.encoder = Some(encoder);
                match self.inner.compute.reserve(self.charge.payer.client()) {
                    Ok(place) => place,
                    Err(full) => return self.refuse(full),
                }
            }
        };
        match self.read_ahead().await {
            Ok(read) => self.read = Some(read),
            Err(RenderError::Overloaded(full)) => return self.refuse(full),
            Err(cause) => return self.end(Err(cause)),
        }
        self.submit_in(place);
    }

    /// Waits for an encoder; `None` once no request waits for the render.
    async fn wait_for_encoder(&self, admission: Admission) -> Option<FairPermit> {
        match admission {
            Admission::Permit(encoder) => Some(encoder),
            Admission::Queued(wait) => tokio::select! {
                encoder = wait.permit() => Some(encoder),
                // Frees the place for a render that a request waits for.
                () = self.task.abandoned() => None,
            },
        }
    }

    /// Reads the inputs on a thread that may block.
    async fn read_ahead(&self) -> Result<ReadAhead, RenderError> {
        let stopwatch = Stopwatch::start();
        let client = self.charge.payer.client();
        let bytes = self.planned.plan.read_bytes();
        let permit = tokio::select! {
            permit = self.inner.store_reads.admit(client, bytes) => permit,
            // Frees the places, and the encoder, for a render that a request waits for.
            () = self.task.abandoned() => return Err(RenderError::Abandoned),
        };
        let permit = permit.map_err(RenderError::Overloaded)?;
        if !self.task.has_waiters() {
            return Err(RenderError::Abandoned);
        }
        let inner = Arc::clone(&self.inner);
        let planned = Arc::clone(&self.planned);
        let read = tokio::task::spawn_blocking(move || inner.read_ahead(&planned.plan));
        let inputs = read.await.unwrap_or(Err(RenderError::Panicked))?;
        let memory = permit.end_turn();
        Ok(ReadAhead { inputs: Mutex::new(inputs), ms: stopwatch.elapsed_ms(), memory })
    }

    /// Queues the render again, in a new place. If the queue is full, all requests that wait for the render are
    /// refused.
    fn submit(self) {
        match self.inner.compute.reserve(self.charge.payer.client()) {
            Ok(place) => self.submit_in(place),
            Err(full) => self.refuse(full),
        }
    }

    fn submit_in(self, place: QueuePlace) {
        let plan = &self.planned.plan;
        let memory = plan.memory_bytes(self.inner.originals.has_random_access(plan.source.blob));
        // Lets a full queue drop abandoned renders before it refuses new ones.
        let queued_task = Arc::clone(&self.task);
        place.submit(memory, move || queued_task.has_waiters(), move |lease| self.run(lease));
    }

    /// Renders on a worker thread. If a different job is making the standard set that the render needs, the render
    /// is queued again after that job.
    fn run(self, lease: &MemoryLease) {
        // All requests may have ended while the render was queued.
        if !self.task.has_waiters() {
            count_outcome("abandoned");
            return;
        }
        let plan = &self.planned.plan;
        if plan.standard.is_none() {
            return self.complete(lease);
        }
        let sets = self.inner.sets_in_flight.clone();
        let original = plan.source.blob;
        match sets.admit(original, self, Self::submit) {
            // The claim ends when the set is stored, and at the latest with the render.
            SetAdmission::Admitted(render, _claim) => render.complete(lease),
            SetAdmission::Waiting => {}
            SetAdmission::Refused(render) => render.refuse(QueueFull::AllPlaces),
        }
    }

    /// Renders, publishes the outcome to the waiting requests, and fills the cache.
    fn complete(&self, lease: &MemoryLease) {
        let work = Stopwatch::start();
        let read_ms = self.read.as_ref().map(|read| read.ms);
        let queue_ms = self.queued.elapsed_ms() - read_ms.unwrap_or(0.0);
        let stages = StageClock::start(queue_ms, read_ms);
        let rendered = self.render(&work, &stages, lease);
        let timing = stages.finish();
        let outcome = rendered
            .map(|(body, render_path)| Arc::new(RenderedBody { body, render_path, timing }));
        metrics::histogram!(telemetry::RENDER_SECONDS, "operation" => self.planned.operation)
            .record(work.elapsed().as_secs_f64());
        if let Ok(rendered) = &outcome {
            rendered.count();
        }
        self.end(outcome);
    }

    /// Counts and publishes the outcome.
    fn end(&self, outcome: Outcome<RenderedBody>) {
        count_outcome(match &outcome {
            Ok(_) => "done",
            Err(RenderError::Abandoned) => "abandoned",
            Err(RenderError::TooSlow(_)) => "too_slow",
            Err(RenderError::Overloaded(_)) => "refused",
            Err(_) => "failed",
        });
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
        // Called between the steps of the render, where a yield to requests costs least.
        let in_time = || {
            yield_to_waiting();
            work.elapsed() <= time_max
        };
        let mut rendered = self.attempt(&|| in_time() && self.task.has_waiters(), stages, lease);
        if is_abandoned(&rendered) && in_time() && self.task.has_waiters() {
            // A request joined between the decision to abandon the render and its end.
            rendered = self.attempt(&in_time, stages, lease);
        }
        // The renderer reports both causes as abandoned. Only a timeout is an error for clients.
        if is_abandoned(&rendered) && !in_time() {
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
        // A second attempt finds no inputs here and reads them again.
        let inputs = self.read.as_ref().and_then(|read| read.inputs.lock().take());
        self.inner.make(plan, &self.texts, hooks, inputs)
    }

    fn publish(&self, outcome: Outcome<RenderedBody>) {
        match &outcome {
            Ok(rendered) => {
                // Waiting requests get the body before the write to disk, which may be slow.
                let body = rendered.body.clone();
                self.inner.cache.insert(&self.planned, &body);
                self.task.finish(outcome);
                self.inner.cache.write_to_disk(&self.planned, &body);
            }
            // Neither a client that disconnects nor a refusal is a failure of the server, so nothing is logged.
            Err(RenderError::Abandoned | RenderError::Overloaded(_)) => self.task.finish(outcome),
            Err(error) => {
                log_failure(&self.planned, error);
                self.task.finish(outcome);
            }
        }
    }
}

pub(super) fn log_failure(planned: &PlannedRendition, error: &RenderError) {
    let blob = planned.plan.source.blob;
    tracing::error!(%blob, operation = planned.operation, "render failed: {error}");
}

fn count_outcome(outcome: &'static str) {
    metrics::counter!(telemetry::RENDERS, "outcome" => outcome).increment(1);
}

fn is_abandoned<T>(rendered: &Result<T, RenderError>) -> bool {
    matches!(rendered, Err(RenderError::Abandoned))
}
