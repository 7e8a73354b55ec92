//! Bodies whose bytes lie partly in memory, partly in the store.
//!
//! The part in the store is read chunk by chunk as the client takes it, so a body of 30 MB holds
//! one chunk in memory. Reading runs on the runtime's threads for blocking calls.

use std::{collections::VecDeque, io, ops::Range};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;

use crate::limits::STREAM_CHUNK_BYTES;
use crate::media;
use crate::media::Media;
use crate::media::Tail;

/// A piece of a response's body.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Bytes in memory.
    Memory(Bytes),
    /// Bytes of a tail, counted from its start.
    Store(Tail, Range<u64>),
}

/// The pieces of the bytes `range` of `body`.
pub(super) fn pieces(body: &media::Body, range: Range<u64>) -> Vec<Piece> {
    let head = body.head.len() as u64;
    let mut pieces = Vec::with_capacity(2);
    if range.start < head {
        let index = |at: u64| usize::try_from(at.min(head)).unwrap_or(body.head.len());
        pieces.push(Piece::Memory(body.head.slice(index(range.start)..index(range.end))));
    }
    if let Some(tail) = body.tail.as_ref().filter(|_| range.end > head) {
        pieces.push(Piece::Store(tail.clone(), range.start.max(head) - head..range.end - head));
    }
    pieces
}

/// A body of `pieces`, in order.
pub(super) fn body(media: Media, pieces: Vec<Piece>) -> Body {
    if let [Piece::Memory(bytes)] = pieces.as_slice() {
        return Body::from(bytes.clone());
    }
    let pieces = VecDeque::from(pieces);
    Body::from_stream(stream::try_unfold((media, pieces), |(media, mut pieces)| async move {
        let Some(piece) = pieces.pop_front() else { return Ok::<_, io::Error>(None) };
        let (tail, range) = match piece {
            Piece::Memory(bytes) => return Ok(Some((bytes, (media, pieces)))),
            Piece::Store(tail, range) => (tail, range),
        };
        let end = range.end.min(range.start + STREAM_CHUNK_BYTES as u64);
        if end < range.end {
            pieces.push_front(Piece::Store(tail.clone(), end..range.end));
        }
        let reader = media.clone();
        let chunk = range.start..end;
        let read = tokio::task::spawn_blocking(move || reader.read_tail(&tail, chunk)).await;
        let bytes = read.map_err(io::Error::other)?.map_err(|cause| {
            tracing::error!("a body broke off: {cause}");
            io::Error::other(cause)
        })?;
        Ok(Some((Bytes::from(bytes), (media, pieces))))
    }))
}
