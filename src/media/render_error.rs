//! The reasons why a render fails, and the errors that clients get for them.

use std::{sync::Arc, time::Duration};

use super::original::OriginalError;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::fair_queue::QueueFull;
use crate::runtime::telemetry;
use imaging::RasterError;

/// `Retry-After` in seconds for a render that exceeded its time limit: it will probably exceed it again,
/// and each attempt costs that time.
const SLOW_RETRY_AFTER_S: u32 = 60;

/// The reason why a render failed. Cloned for each request that waits for it.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum RenderError {
    #[error(transparent)]
    Overloaded(QueueFull),
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
            RenderError::Overloaded(QueueFull::AllPlaces) => Self::overloaded(
                "render_queue",
                "Too many renditions are being rendered; try again",
            ),
            RenderError::Overloaded(QueueFull::ClientShare) => Self::overloaded(
                "client_render_queue",
                "Too many renditions of this client are waiting to be rendered; try again",
            ),
            // The disk or bucket may recover, so a retry helps. A damaged original stays a 500.
            RenderError::Original(ref original) if original.is_resource() => unreadable(cause),
            RenderError::TooSlow(limit) => {
                let message = format!(
                    "Rendering took more than {limit:?} of processing time, so it was stopped"
                );
                Self::new(ErrorKind::Timeout, message)
                    .retry_after(SLOW_RETRY_AFTER_S)
                    .with_source(cause)
            }
            // An abandoned render has no client to answer: it was abandoned because none waits.
            RenderError::Abandoned
            | RenderError::Panicked
            | RenderError::Original(_)
            | RenderError::Picture(_) => Self::internal(cause),
        }
    }
}

/// Returns the error for a disk or bucket with an original that cannot be read.
fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unavailable, "The original cannot be read now").with_source(cause)
}

/// Counts an original that a request found to be damaged. Every failed answer and every failed render calls this
/// exactly once.
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
