//! What is to become of a message that did not arrive, and of its device.

use std::time::Duration;

use thiserror::Error;

use crate::runtime::limits;

/// Why a message did not arrive. The texts name the service and what it said, never a token or a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PushError {
    /// The device is gone: its token will never work again.
    #[error("{said}")]
    InvalidToken {
        /// What the service said.
        said: String,
    },
    /// The message cannot be sent, however often it is tried; the device may be fine.
    #[error("{said}")]
    Permanent {
        /// What the service said.
        said: String,
    },
    /// The service is down, busy or does not know us; a later try may help.
    #[error("{said}")]
    Retry {
        /// What went wrong.
        said: String,
        /// How long the service wants to be left alone, a day at most.
        after: Option<Duration>,
    },
}

impl PushError {
    /// A failure without a wish of the service.
    pub(super) fn later(said: impl Into<String>) -> Self {
        Self::Retry { said: said.into(), after: None }
    }
}

/// An error with its causes.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// One line of printable text without `secrets`, shortened.
pub(super) fn clean(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, "***");
    }
    let words: Vec<&str> = text
        .split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(limits::TRANSPORT_ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
