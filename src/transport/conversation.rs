//! A conversation with a remote system to which items or mails are sent: its name in errors, and a timeout for every wait.

use std::{future::Future, time::Duration};

use crate::runtime::limits;
use crate::transport::error::{SendError, SendFault, SendStep};

/// Timeout for one response of a remote system, and for reading one chunk of a file that is sent.
const TRANSPORT_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeouts of a conversation, each for one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportTimeouts {
    /// The limit for connecting: name resolution, TCP and TLS.
    pub connect: Duration,
    /// The limit for one response, and for reading one chunk of a file that is sent.
    pub answer: Duration,
}

impl Default for TransportTimeouts {
    fn default() -> Self {
        Self { connect: limits::TRANSPORT_CONNECT_TIMEOUT, answer: TRANSPORT_ANSWER_TIMEOUT }
    }
}

impl TransportTimeouts {
    /// Returns the limit for a transfer of `bytes` bytes at the slowest accepted rate, and for the response to it.
    pub(super) fn transfer(&self, bytes: u64) -> Duration {
        self.answer.saturating_add(Duration::from_secs(bytes / limits::TRANSPORT_BYTES_S_MIN))
    }
}

/// A conversation with a remote system.
pub(super) struct RemoteConversation<'a> {
    /// The remote system's name in errors: `host:port` or a folder.
    pub(super) endpoint: String,
    pub(super) timeouts: TransportTimeouts,
    /// Texts that are removed from errors, such as a password that the remote system repeats.
    pub(super) secrets: Vec<&'a str>,
}

impl RemoteConversation<'_> {
    /// Builds the error of a failed step.
    pub(super) fn error(&self, step: SendStep, fault: impl Into<SendFault>) -> SendError {
        SendError::new(&self.endpoint, step, fault.into(), &self.secrets)
    }

    /// Returns the result of a step, with its fault as an error of this conversation.
    pub(super) fn check<T, E: Into<SendFault>>(
        &self,
        step: SendStep,
        outcome: Result<T, E>,
    ) -> Result<T, SendError> {
        outcome.map_err(|fault| self.error(step, fault))
    }

    /// Waits for `work`, at most for the response timeout.
    pub(super) async fn await_answer<T, E: Into<SendFault>>(
        &self,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        self.run_within(self.timeouts.answer, step, work).await
    }

    /// Waits for `work`, at most for the connection timeout.
    pub(super) async fn await_connection<T, E: Into<SendFault>>(
        &self,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        self.run_within(self.timeouts.connect, step, work).await
    }

    /// Waits for `work`, at most for `limit`.
    pub(super) async fn run_within<T, E: Into<SendFault>>(
        &self,
        limit: Duration,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        // Boxed, because the futures of transports are large.
        match tokio::time::timeout(limit, Box::pin(work)).await {
            Ok(outcome) => self.check(step, outcome),
            Err(_) => Err(self.error(step, SendFault::TimedOut(limit))),
        }
    }
}

/// Formats `host:port`, with brackets around an IPv6 address.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
