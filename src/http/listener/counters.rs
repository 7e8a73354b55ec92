//! Traffic counters of one connection.
//!
//! The socket, request bodies and response bodies increment them; the connection's tick samples them. Nothing
//! on the hot path reads a clock or sets a timer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::task::Poll;

/// Shared counters of one connection.
///
/// They are read by sampling and guard no memory, so every access is relaxed.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    /// True if the last request came over HTTP/2.
    pub h2: AtomicBool,
    /// True if the connection is dropped because of its client: the socket is then reset instead of closed, so
    /// that the kernel discards the data that it holds for the client.
    pub reset: AtomicBool,
    /// Number of request heads read.
    pub requests: AtomicU64,
    /// Number of requests whose handler runs or whose response body is not finished.
    pub in_flight: AtomicUsize,
    /// Bytes read from the socket.
    pub socket_bytes: AtomicU64,
    /// Value of `socket_bytes` when the last request ended: a higher value means that a new head has begun.
    pub idle_mark: AtomicU64,
    /// Number of request bodies that a handler waits for.
    pub body_waits: AtomicUsize,
    /// Bytes of request bodies passed to handlers.
    pub body_bytes: AtomicU64,
    /// Bytes of response bodies that wait for the client: in the transport's buffers, beyond the capacity of
    /// the socket or the HTTP/2 window.
    pub unsent_bytes: AtomicU64,
    /// Number of response bodies from which the transport could read more.
    pub bodies_awaiting_transport: AtomicUsize,
    /// Bytes of response bodies that the transport has passed on. Bytes that leave the buffers of TLS after the
    /// end of a body count too.
    pub shipped_bytes: AtomicU64,
    /// True if the last write to the socket was blocked. Bytes may then wait that no response body accounts for:
    /// TLS buffers the end of a response after the transport has passed it on.
    pub write_blocked: AtomicBool,
}

/// A sample of [`ConnectionCounters`] at one tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionSample {
    pub h2: bool,
    pub requests: u64,
    /// True if a request is in progress: handled, being answered, or with unsent bytes.
    pub busy: bool,
    pub socket_bytes: u64,
    /// True if bytes arrived since the last request ended.
    pub head_begun: bool,
    /// True if a handler waits for the client's body.
    pub body_awaited: bool,
    pub body_bytes: u64,
    /// True if response bytes wait for the client.
    pub has_unsent: bool,
    pub shipped_bytes: u64,
}

impl ConnectionCounters {
    /// Records the result of a write to the socket.
    pub fn record_write(&self, result: &Poll<io::Result<usize>>) {
        if self.write_blocked.load(Relaxed) != result.is_pending() {
            self.write_blocked.store(result.is_pending(), Relaxed);
        }
        // While a body is passed on, `UnsentBytes` counts its bytes.
        if let Poll::Ready(Ok(count)) = result
            && self.in_flight.load(Relaxed) == 0
            && self.unsent_bytes.load(Relaxed) == 0
        {
            self.shipped_bytes.fetch_add(*count as u64, Relaxed);
        }
    }

    /// Reads all counters at one moment.
    pub fn sample(&self) -> ConnectionSample {
        let socket_bytes = self.socket_bytes.load(Relaxed);
        let has_unsent = self.unsent_bytes.load(Relaxed) > 0
            || self.bodies_awaiting_transport.load(Relaxed) > 0
            || self.write_blocked.load(Relaxed);
        ConnectionSample {
            h2: self.h2.load(Relaxed),
            requests: self.requests.load(Relaxed),
            // A response whose handler is done is in progress until the client has its bytes.
            busy: has_unsent || self.in_flight.load(Relaxed) > 0,
            socket_bytes,
            head_begun: socket_bytes != self.idle_mark.load(Relaxed),
            body_awaited: self.body_waits.load(Relaxed) > 0,
            body_bytes: self.body_bytes.load(Relaxed),
            has_unsent,
            shipped_bytes: self.shipped_bytes.load(Relaxed),
        }
    }
}

/// One request in progress, from its head to the end of its response body.
#[derive(Debug)]
pub struct InFlightRequest {
    /// The counters of its connection.
    pub counters: Arc<ConnectionCounters>,
}

impl InFlightRequest {
    /// Counts a request whose head has just been read.
    pub fn begin(counters: &Arc<ConnectionCounters>, h2: bool) -> Self {
        counters.h2.store(h2, Relaxed);
        counters.requests.fetch_add(1, Relaxed);
        counters.in_flight.fetch_add(1, Relaxed);
        Self { counters: Arc::clone(counters) }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        // Of concurrent HTTP/2 requests, only the last one to end makes the connection idle.
        if self.counters.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.counters.idle_mark.store(self.counters.socket_bytes.load(Relaxed), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_busy_until_the_last_request_ends() {
        let counters = Arc::new(ConnectionCounters::default());
        let (first, second) =
            (InFlightRequest::begin(&counters, true), InFlightRequest::begin(&counters, true));
        drop(first);
        assert!(counters.sample().busy);
        drop(second);
        assert_eq!(
            counters.sample(),
            ConnectionSample { h2: true, requests: 2, ..ConnectionSample::default() }
        );
    }

    #[test]
    fn bytes_after_the_last_request_begin_a_head() {
        let counters = Arc::new(ConnectionCounters::default());
        counters.socket_bytes.store(100, Relaxed);
        drop(InFlightRequest::begin(&counters, false));
        assert!(!counters.sample().head_begun);
        counters.socket_bytes.fetch_add(1, Relaxed);
        assert!(counters.sample().head_begun);
    }
}
