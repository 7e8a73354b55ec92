//! Obtains the bytes of a planned rendition: from a cache, from a render under way, or by
//! starting one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Inner, Media, RenditionAnswer,
    budget::Payer,
    cache::{self, Body, Extent, Part},
    flight::{Outcome, Task},
    make::Watched,
    original::OriginalError,
    plan::Planned,
    timing::{StageClock, Timing},
};
use crate::runtime::clock::Stopwatch;
use crate::runtime::compute::{Full, Lease, give_way};
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::SLOW_RETRY_AFTER_S;
use crate::runtime::telemetry;
use imaging::{RasterError, Stage, Way};
use metadata::Caption;

/// Where the bytes came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// The memory tier.
    Memory,
    /// The disk tier.
    Disk,
    /// Rendered for this request or an equal one.
    Rendered {
        /// How they were made.
        way: Way,
        /// Where the time went.
        timing: Timing,
    },
}

impl Source {
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
pub struct Obtained {
    /// The bytes.
    pub body: Body,
    /// Where they came from.
    pub source: Source,
    /// Milliseconds the request waited for them.
    pub waited_ms: f64,
}

/// What a render made, for everybody who waits for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) body: Body,
    pub(super) way: Way,
    pub(super) timing: Timing,
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
                Self::new(Kind::Timeout, message).retry_after(SLOW_RETRY_AFTER_S).because(cause)
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
    Error::new(Kind::Unavailable, "The original cannot be read now").because(cause)
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
    pub fn find_cached(&self, answer: &RenditionAnswer) -> Option<Obtained> {
        let body = self.inner.cache.find_in_memory(&answer.planned);
        cache::count("memory", body.is_some());
        body.map(|body| Obtained { body, source: Source::Memory, waited_ms: 0.0 })
    }

    /// Reads an extent; it blocks on the disk.
    ///
    /// Fails when the original is missing or its bytes there are not what they were, and with
    /// [`Kind::Unavailable`] when the disk fails.
    pub fn read_extent(&self, extent: &Extent) -> Result<Bytes> {
        let Extent { blob, blob_length, ref range } = *extent;
        Ok(self.inner.originals.read(blob, blob_length, range.clone())?)
    }

    /// Checks, before anything is sent, that the originals of a body's extents are what they were;
    /// it blocks on the disk.
    ///
    /// Fails with [`Kind::Unavailable`] when the disk fails and with [`Kind::Internal`] when they are
    /// others, and a log line that names the original.
    pub fn check_extents(&self, body: &Body) -> Result<()> {
        for part in body.parts() {
            match part {
                Part::Memory(_) => {}
                Part::Store(extent) => {
                    self.inner.originals.verify(extent.blob, extent.blob_length)?;
                }
            }
        }
        Ok(())
    }

    /// The rendition's bytes.
    ///
    /// Fails with [`Kind::Overloaded`] when the queue is full, with [`Kind::Timeout`] when
    /// `patience` ends first, with [`Kind::Unavailable`] when the disk fails and with
    /// [`Kind::Internal`] when the original is missing or damaged.
    pub async fn obtain(&self, answer: &RenditionAnswer, patience: Duration) -> Result<Obtained> {
        self.obtain_for(answer, patience, Payer::Nobody).await
    }

    /// The rendition's bytes for somebody who pays for a render that is begun.
    ///
    /// Fails as [`Media::obtain`] does, and with [`Kind::Overloaded`] when the payer's reserve of
    /// megapixels does not suffice.
    pub async fn obtain_for(
        &self,
        answer: &RenditionAnswer,
        patience: Duration,
        payer: Payer,
    ) -> Result<Obtained> {
        let watch = Stopwatch::start();
        let obtained = |(body, source)| Obtained { body, source, waited_ms: watch.elapsed_ms() };
        tokio::time::timeout(patience, self.find_or_render(answer, payer))
            .await
            .map_err(|_| Error::new(Kind::Timeout, "The rendition took too long; try again"))?
            .map(obtained)
    }

    async fn find_or_render(
        &self,
        answer: &RenditionAnswer,
        payer: Payer,
    ) -> Result<(Body, Source)> {
        let planned = &answer.planned;
        if let Some(body) = self.inner.cache.find_in_memory(planned) {
            return Ok((body, Source::Memory));
        }
        if self.inner.cache.is_on_disk(planned) {
            let (media, wanted) = (self.clone(), planned.clone());
            let read = move || media.inner.cache.read_from_disk(&wanted);
            let read = tokio::task::spawn_blocking(read).await.map_err(Error::internal)?;
            if let Some(body) = read {
                return Ok((body, Source::Disk));
            }
        }
        let known = self.inner.originals.known(planned.plan.source.blob);
        let pixels = planned.plan.decoded_pixels(known);
        let pay = || self.inner.budget.take(payer, pixels);
        let (waiting, task) = self.inner.flight.join(planned.key, pay)?;
        if let Some(task) = task
            && self.start_render(answer, task).is_err()
        {
            self.inner.budget.give_back(payer, pixels);
        }
        let made = waiting.wait().await?;
        let Made { ref body, way, timing } = *made;
        Ok((body.clone(), Source::Rendered { way, timing }))
    }

    fn start_render(&self, answer: &RenditionAnswer, task: Task) -> Result<(), Full> {
        let media = self.clone();
        let planned = answer.planned.clone();
        let caption = answer.entry.caption_of(answer.association.as_ref()).0.clone();
        let known = self.inner.originals.known(planned.plan.source.blob);
        let memory = planned.plan.memory_bytes(known);
        // The task is shared with the refusal below; whichever side gets it speaks.
        let task = Arc::new(parking_lot::Mutex::new(Some(task)));
        let (own, watched) = (Arc::clone(&task), Arc::clone(&task));
        let queued = Stopwatch::start();
        let take = |task: &parking_lot::Mutex<Option<Task>>| task.lock().take();
        let work = move |lease: &Lease| {
            if let Some(task) = take(&own) {
                let queue_ms = queued.elapsed_ms();
                media.inner.run((&planned, &caption), task, queue_ms, lease);
            }
        };
        let wanted = move || {
            let task = watched.lock();
            task.as_ref().is_some_and(Task::is_wanted)
        };
        self.inner.compute.submit(memory, wanted, work).inspect_err(|Full| {
            metrics::counter!(telemetry::RENDERS, "outcome" => "refused").increment(1);
            if let Some(task) = take(&task) {
                task.finish(Err(RenderError::Overloaded));
            }
        })
    }
}

impl Made {
    /// Adds the render to the metrics.
    fn count(&self) {
        metrics::counter!(telemetry::RENDER_PATHS, "path" => self.way.as_str()).increment(1);
        for (stage, ms) in self.timing.stages() {
            metrics::histogram!(telemetry::STAGE_SECONDS, "stage" => stage).record(ms / 1000.0);
        }
    }
}

impl Inner {
    /// Renders on a worker thread, tells who waits, and fills the cache.
    fn run(
        &self,
        (planned, caption): (&Planned, &Caption),
        task: Task,
        queue_ms: f64,
        lease: &Lease,
    ) {
        if !task.is_wanted() {
            metrics::counter!(telemetry::RENDERS, "outcome" => "abandoned").increment(1);
            return;
        }
        let watch = Stopwatch::start();
        let stages = StageClock::start(queue_ms);
        let is_late = || {
            give_way();
            watch.elapsed() > self.settings.render_time
        };
        let make = |go_on: &(dyn Fn() -> bool + Sync)| {
            let begin = |stage| {
                stages.begin(stage);
                if stage == Stage::Decode {
                    // The original is open, so what could not be known is.
                    let known = self.originals.known(planned.plan.source.blob);
                    lease.shrink(planned.plan.memory_bytes(known));
                }
                go_on()
            };
            self.make(&planned.plan, caption, Watched { begin: &begin, go_on })
        };
        let mut rendered = make(&|| !is_late() && task.is_wanted());
        let stopped =
            |rendered: &Result<_, RenderError>| matches!(rendered, Err(RenderError::Abandoned));
        if stopped(&rendered) && !is_late() && task.is_wanted() {
            // Somebody came between the decision to drop the work and its end.
            rendered = make(&|| !is_late());
        }
        if stopped(&rendered) && is_late() {
            rendered = Err(RenderError::TooSlow(self.settings.render_time));
        }
        let timing = stages.finish();
        let outcome = rendered.map(|(body, way)| Arc::new(Made { body, way, timing }));
        let result = match &outcome {
            Ok(_) => "done",
            Err(RenderError::Abandoned) => "abandoned",
            Err(RenderError::TooSlow(_)) => "too_slow",
            Err(_) => "failed",
        };
        metrics::counter!(telemetry::RENDERS, "outcome" => result).increment(1);
        metrics::histogram!(telemetry::RENDER_SECONDS, "operation" => planned.operation)
            .record(watch.elapsed().as_secs_f64());
        if let Ok(made) = &outcome {
            made.count();
        }
        self.publish(planned, task, outcome);
    }

    fn publish(&self, planned: &Planned, task: Task, outcome: Outcome) {
        match &outcome {
            Ok(made) => {
                let body = made.body.clone();
                self.cache.insert(planned, &body);
                task.finish(outcome);
                self.cache.write_to_disk(planned, &body);
            }
            Err(RenderError::Abandoned) => task.finish(outcome),
            Err(error) => {
                let blob = planned.plan.source.blob;
                tracing::error!(%blob, operation = planned.operation, "render failed: {error}");
                task.finish(outcome);
            }
        }
    }
}
