//! One conversation with another system: its name for errors, and a time-out for every wait.

use std::{future::Future, time::Duration};

use crate::runtime::limits;
use crate::transport::error::{SendError, SendFault, SendStep};

/// How long other systems may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportTimeouts {
    /// For a connection: name, TCP, TLS.
    pub connect: Duration,
    /// For one answer, and for each piece of our own files.
    pub answer: Duration,
}

impl Default for TransportTimeouts {
    fn default() -> Self {
        Self {
            connect: limits::TRANSPORT_CONNECT_TIMEOUT,
            answer: limits::TRANSPORT_ANSWER_TIMEOUT,
        }
    }
}

impl TransportTimeouts {
    /// For a transfer of `bytes` bytes at the slowest rate that is put up with.
    pub(super) fn transfer(&self, bytes: u64) -> Duration {
        self.answer.saturating_add(Duration::from_secs(bytes / limits::TRANSPORT_BYTES_S_MIN))
    }
}

/// A conversation with another system.
pub(super) struct RemoteConversation<'a> {
    /// The system, as errors name it: `host:port` or a folder.
    pub(super) place: String,
    pub(super) timeouts: TransportTimeouts,
    /// Texts that must not come back in an error.
    pub(super) secrets: Vec<&'a str>,
}

impl RemoteConversation<'_> {
    /// Ends the conversation with an error.
    pub(super) fn fail(&self, step: SendStep, fault: impl Into<SendFault>) -> SendError {
        SendError::new(&self.place, step, fault.into(), &self.secrets)
    }

    /// Waits for `work`, an answer's time at most.
    pub(super) async fn await_answer<T, E: Into<SendFault>>(
        &self,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        self.run_within(self.timeouts.answer, step, work).await
    }

    /// Waits for `work`, a connection's time at most.
    pub(super) async fn await_connection<T, E: Into<SendFault>>(
        &self,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        self.run_within(self.timeouts.connect, step, work).await
    }

    /// Waits for `work`, `limit` at most.
    pub(super) async fn run_within<T, E: Into<SendFault>>(
        &self,
        limit: Duration,
        step: SendStep,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, SendError> {
        match tokio::time::timeout(limit, Box::pin(work)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(self.fail(step, error)),
            Err(_) => Err(self.fail(step, SendFault::TimedOut(limit))),
        }
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn place(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
