//! Request and response bodies that record which side waits for the other, so that slow clients can be detected.
//!
//! The transport is the HTTP implementation, hyper. A response's bytes count as unsent from the moment the transport
//! takes them from the body until it passes them to the socket. They stay unsent if the client stops reading: the socket
//! is full, or over HTTP/2 the window is closed. A request body counts as awaited while a handler polls it without
//! getting data.

use crate::http::listener::counters::{ConnectionCounters, InFlightRequest};
use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

/// Bytes of a response in the transport; they count as unsent until it passes them to the socket.
#[derive(Debug)]
pub struct UnsentBytes {
    bytes: Bytes,
    counters: Arc<ConnectionCounters>,
}

impl UnsentBytes {
    fn new(bytes: Bytes, counters: &Arc<ConnectionCounters>) -> Self {
        counters.unsent_bytes.fetch_add(bytes.len() as u64, Relaxed);
        Self { bytes, counters: Arc::clone(counters) }
    }
}

impl Buf for UnsentBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn chunks_vectored<'a>(&'a self, dst: &mut [IoSlice<'a>]) -> usize {
        self.bytes.chunks_vectored(dst)
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.counters.unsent_bytes.fetch_sub(count as u64, Relaxed);
        self.counters.shipped_bytes.fetch_add(count as u64, Relaxed);
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        // The rest of a cancelled stream is never sent, so no client is slow to receive it.
        self.counters.unsent_bytes.fetch_sub(self.bytes.len() as u64, Relaxed);
    }
}

/// Sets `state`, which `count` counts while it is true. Each body counts once, however often it is polled.
fn set_counted(state: &mut bool, value: bool, count: &AtomicUsize) {
    match (*state, value) {
        (false, true) => count.fetch_add(1, Relaxed),
        (true, false) => count.fetch_sub(1, Relaxed),
        (true, true) | (false, false) => return,
    };
    *state = value;
}

/// A response body that keeps its request in flight and wraps its data as [`UnsentBytes`].
#[derive(Debug)]
pub struct ResponseBody {
    body: Body,
    request: InFlightRequest,
    /// True while the transport must act next: it has data to send, or has not polled yet. Over HTTP/2 it does not
    /// poll while the window is closed.
    awaiting_transport: bool,
}

impl ResponseBody {
    /// Wraps the body of the response to `request`.
    pub fn new(body: Body, request: InFlightRequest) -> Self {
        let has_data = !http_body::Body::is_end_stream(&body);
        let mut response = Self { body, request, awaiting_transport: false };
        response.set_awaiting_transport(has_data);
        response
    }

    fn set_awaiting_transport(&mut self, awaiting: bool) {
        let count = &self.request.counters.bodies_awaiting_transport;
        set_counted(&mut self.awaiting_transport, awaiting, count);
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.set_awaiting_transport(false);
    }
}

impl http_body::Body for ResponseBody {
    type Data = UnsentBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<UnsentBytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // After a frame the transport has bytes to send; pending or ended bodies wait for no client.
        self.set_awaiting_transport(matches!(polled, Poll::Ready(Some(Ok(_)))));
        let counters = &self.request.counters;
        polled.map_ok(|frame| frame.map_data(|bytes| UnsentBytes::new(bytes, counters)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request body that records when a handler waits for the client.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    /// True while a handler waits for data from the client.
    waiting: bool,
    counters: Arc<ConnectionCounters>,
}

impl RequestBody {
    /// Wraps the body of a request for its handler. An empty body is not wrapped, because no handler waits for it.
    pub fn wrap(body: Incoming, counters: &Arc<ConnectionCounters>) -> Body {
        if http_body::Body::is_end_stream(&body) {
            return Body::empty();
        }
        Body::new(Self { body, waiting: false, counters: Arc::clone(counters) })
    }

    fn set_waiting(&mut self, waiting: bool) {
        set_counted(&mut self.waiting, waiting, &self.counters.body_waits);
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // While a read is pending, the handler waits for bytes that the client has not sent yet.
        self.set_waiting(polled.is_pending());
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.counters.body_bytes.fetch_add(bytes.len() as u64, Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_unsent_until_they_are_passed_on_or_dropped() {
        let counters = Arc::new(ConnectionCounters::default());
        let mut unsent = UnsentBytes::new(Bytes::from_static(b"picture"), &counters);
        assert_eq!(counters.unsent_bytes.load(Relaxed), 7);
        unsent.advance(4);
        assert_eq!(counters.unsent_bytes.load(Relaxed), 3);
        drop(unsent);
        assert_eq!(counters.unsent_bytes.load(Relaxed), 0);
        assert_eq!(counters.shipped_bytes.load(Relaxed), 4);
    }

    #[test]
    fn a_response_awaits_the_transport_until_it_ends_or_has_no_data() {
        let counters = Arc::new(ConnectionCounters::default());
        let begin = || InFlightRequest::begin(&counters, true);
        let awaiting = || counters.bodies_awaiting_transport.load(Relaxed);
        let mut body = ResponseBody::new(Body::from("picture"), begin());
        assert_eq!(awaiting(), 1, "it was not polled yet");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let frame = http_body::Body::poll_frame(Pin::new(&mut body), &mut cx);
        assert!(matches!(frame, Poll::Ready(Some(Ok(_)))));
        assert_eq!(awaiting(), 1, "its data was taken, and it was not polled again");
        let end = http_body::Body::poll_frame(Pin::new(&mut body), &mut cx);
        assert!(matches!(end, Poll::Ready(None)));
        assert_eq!(awaiting(), 0);
        let stream = futures_util::stream::pending::<Result<Bytes, axum::Error>>();
        let mut pending = ResponseBody::new(Body::from_stream(stream), begin());
        assert_eq!(awaiting(), 1);
        assert!(http_body::Body::poll_frame(Pin::new(&mut pending), &mut cx).is_pending());
        assert_eq!(awaiting(), 0, "the stream has no data yet");
        drop(ResponseBody::new(Body::from("dropped"), begin()));
        drop(ResponseBody::new(Body::empty(), begin()));
        assert_eq!(awaiting(), 0);
    }

    #[test]
    fn a_response_keeps_its_length_and_its_request() {
        let counters = Arc::new(ConnectionCounters::default());
        let body =
            ResponseBody::new(Body::from("picture"), InFlightRequest::begin(&counters, false));
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(7));
        assert!(counters.sample().busy);
        drop(body);
        assert!(!counters.sample().busy);
    }
}
