//! Errors of push messages. They determine whether to retry the message and whether to remove its device.

use std::time::Duration;

use thiserror::Error;

/// The reason for a failed message. The texts name the service and its response, never a token or a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PushError {
    /// The token of the device will never work again.
    #[error("{reason}")]
    InvalidToken {
        /// The response of the service.
        reason: String,
    },
    /// The message can never be sent, but the device may be valid.
    #[error("{reason}")]
    Permanent {
        /// The response of the service.
        reason: String,
    },
    /// The service is down, busy or rejects our credentials; a retry may succeed.
    #[error("{reason}")]
    Retry {
        /// The service's response or the network error.
        reason: String,
        /// The service's `Retry-After`, at most a day.
        after: Option<Duration>,
    },
}

impl PushError {
    /// Builds a temporary failure without a `Retry-After`.
    pub(super) fn later(reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into(), after: None }
    }
}
