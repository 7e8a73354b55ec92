//! Obtains the bytes of a planned rendition: from a cache, from a render under way, or by
//! starting one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Inner, Media, RenditionAnswer,
    cache::{self, Body, Extent, Part},
    caption::Caption,
    flight::{Outcome, Task},
    original::OriginalError,
    plan::Planned,
    raster::{RasterError, Way},
    timing::{StageClock, Timing},
};
use crate::clock::Stopwatch;
use crate::error::{Error, Kind, Result};
use crate::telemetry;

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
    #[error("{0}")]
    Original(Arc<OriginalError>),
    #[error("{0}")]
    Picture(String),
}

impl From<RenderError> for Error {
    fn from(cause: RenderError) -> Self {
        match cause {
            RenderError::Overloaded => {
                Self::new(Kind::Overloaded, "Too many renditions are being made; try again")
            }
            RenderError::Abandoned
            | RenderError::Panicked
            | RenderError::Original(_)
            | RenderError::Picture(_) => Self::internal(cause),
        }
    }
}

impl From<OriginalError> for RenderError {
    fn from(cause: OriginalError) -> Self {
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
    /// Fails when the original is missing or its bytes there are not what they were.
    pub fn read_extent(&self, extent: &Extent) -> Result<Bytes> {
        let Extent { blob, blob_length, ref range } = *extent;
        self.inner.originals.read(blob, blob_length, range.clone()).map_err(Error::internal)
    }

    /// Checks, before anything is sent, that the originals of a body's extents are what they were;
    /// it blocks on the disk.
    ///
    /// Fails with [`Kind::Internal`], and a log line that names the original.
    pub fn check_extents(&self, body: &Body) -> Result<()> {
        for part in body.parts() {
            match part {
                Part::Memory(_) => {}
                Part::Store(extent) => self
                    .inner
                    .originals
                    .verify(extent.blob, extent.blob_length)
                    .map_err(Error::internal)?,
            }
        }
        Ok(())
    }

    /// The rendition's bytes.
    ///
    /// Fails with [`Kind::Overloaded`] when the queue is full, with [`Kind::Timeout`] when
    /// `patience` ends first, and with [`Kind::Internal`] when the original cannot be read.
    pub async fn obtain(&self, answer: &RenditionAnswer, patience: Duration) -> Result<Obtained> {
        let watch = Stopwatch::start();
        let obtained = |(body, source)| Obtained { body, source, waited_ms: watch.elapsed_ms() };
        tokio::time::timeout(patience, self.find_or_render(answer))
            .await
            .map_err(|_| Error::new(Kind::Timeout, "The rendition took too long; try again"))?
            .map(obtained)
    }

    async fn find_or_render(&self, answer: &RenditionAnswer) -> Result<(Body, Source)> {
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
        let (waiting, task) = self.inner.flight.join(planned.key);
        if let Some(task) = task {
            self.start_render(answer, task);
        }
        let made = waiting.wait().await?;
        let Made { ref body, way, timing } = *made;
        Ok((body.clone(), Source::Rendered { way, timing }))
    }

    fn start_render(&self, answer: &RenditionAnswer, task: Task) {
        let media = self.clone();
        let planned = answer.planned.clone();
        let caption = answer.entry.caption_of(answer.association.as_ref()).0.clone();
        let known = self.inner.originals.known(planned.plan.source.blob);
        let memory = planned.plan.memory_bytes(known);
        // The task is shared with the refusal below; whichever side gets it speaks.
        let task = Arc::new(std::sync::Mutex::new(Some(task)));
        let (own, watched) = (Arc::clone(&task), Arc::clone(&task));
        let queued = Stopwatch::start();
        let take = |task: &std::sync::Mutex<Option<Task>>| {
            task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        };
        let work = move || {
            if let Some(task) = take(&own) {
                media.inner.run(&planned, &caption, task, queued.elapsed_ms());
            }
        };
        let wanted = move || {
            let task = watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            task.as_ref().is_some_and(Task::is_wanted)
        };
        if self.inner.compute.submit(memory, wanted, work).is_err() {
            metrics::counter!(telemetry::RENDERS, "outcome" => "refused").increment(1);
            if let Some(task) = take(&task) {
                task.finish(Err(RenderError::Overloaded));
            }
        }
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
    fn run(&self, planned: &Planned, caption: &Caption, task: Task, queue_ms: f64) {
        if !task.is_wanted() {
            metrics::counter!(telemetry::RENDERS, "outcome" => "abandoned").increment(1);
            return;
        }
        let watch = Stopwatch::start();
        let stages = StageClock::start(queue_ms);
        let begin = |stage| {
            stages.begin(stage);
            task.is_wanted()
        };
        let mut rendered = self.make(&planned.plan, caption, &begin);
        if matches!(rendered, Err(RenderError::Abandoned)) && task.is_wanted() {
            // Somebody came between the decision to drop the work and its end.
            let begin = |stage| {
                stages.begin(stage);
                true
            };
            rendered = self.make(&planned.plan, caption, &begin);
        }
        let timing = stages.finish();
        let outcome = rendered.map(|(body, way)| Arc::new(Made { body, way, timing }));
        let result = match &outcome {
            Ok(_) => "done",
            Err(RenderError::Abandoned) => "abandoned",
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
