//! A response body that withholds its last byte until its items are acknowledged.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::distribution::notifications::StreamResponse;
use crate::runtime::error::Result;

type AcknowledgeFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Sends all but the last byte, acknowledges the items, then sends the last byte.
///
/// If the client disconnects before that, the body is dropped and the items stay in the queue. If they cannot be
/// acknowledged, the response ends early, so that no client treats it as complete.
pub(super) struct AcknowledgingBody {
    head: Bytes,
    acknowledgement: Option<AcknowledgeFuture>,
    /// True once the connection had a chance to send the head.
    flushed: bool,
    tail: Bytes,
}

impl AcknowledgingBody {
    pub(super) fn new(response: StreamResponse) -> Self {
        let StreamResponse { text: mut head, acknowledgement } = response;
        // Without its last byte the JSON is incomplete for every parser.
        let tail = head.split_off(head.len().saturating_sub(1));
        let acknowledgement: AcknowledgeFuture = Box::pin(acknowledgement.acknowledge());
        Self { head, acknowledgement: Some(acknowledgement), flushed: false, tail }
    }
}

impl Body for AcknowledgingBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        if !self.head.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.head)))));
        }
        if !std::mem::replace(&mut self.flushed, true) {
            // A pending body makes the connection flush the data that it has.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(acknowledging) = &mut self.acknowledgement {
            let Poll::Ready(outcome) = acknowledging.as_mut().poll(context) else {
                return Poll::Pending;
            };
            self.acknowledgement = None;
            if let Err(cause) = outcome {
                self.tail = Bytes::new();
                return Poll::Ready(Some(Err(std::io::Error::other(cause))));
            }
        }
        let tail = std::mem::take(&mut self.tail);
        Poll::Ready((!tail.is_empty()).then(|| Ok(Frame::data(tail))))
    }

    fn is_end_stream(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        // The exact length becomes `Content-Length`, which lets a client detect a response that ended early.
        let left = self.head.len() + self.tail.len();
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}
