//! Bodies as they are sent: what lies in the store is read piece by piece.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::{BlobExtent, BodyPart, Media, original::BLOCK_BYTES};
use crate::runtime::limits::{STREAM_CHUNK_BYTES, STREAM_CHUNKS_AHEAD};

impl Media {
    /// The bytes of `parts` in order. A body of 30 MB holds one chunk in memory, or
    /// [`STREAM_CHUNKS_AHEAD`] where each is a request to a bucket; no more is read than is taken.
    /// Reading runs on the runtime's threads for blocking calls, and every chunk is checked.
    pub fn stream(
        &self,
        parts: Vec<BodyPart>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let ahead = if self.inner.originals.store().is_remote() { STREAM_CHUNKS_AHEAD } else { 1 };
        let media = self.clone();
        let read = move |part| {
            let media = media.clone();
            async move {
                let chunk = match part {
                    BodyPart::Memory(bytes) => return Ok(bytes),
                    BodyPart::Store(chunk) => chunk,
                };
                let read = tokio::task::spawn_blocking(move || media.read_extent(&chunk)).await;
                read.map_err(io::Error::other)?.map_err(|cause| {
                    tracing::error!("a body broke off: {cause}");
                    io::Error::other(cause)
                })
            }
        };
        stream::iter(BodyChunks(VecDeque::from(parts))).map(read).buffered(ahead)
    }
}

/// Parts, those in the store in chunks.
struct BodyChunks(VecDeque<BodyPart>);

impl Iterator for BodyChunks {
    type Item = BodyPart;

    fn next(&mut self) -> Option<BodyPart> {
        let extent = match self.0.pop_front()? {
            BodyPart::Memory(bytes) => return Some(BodyPart::Memory(bytes)),
            BodyPart::Store(extent) => extent,
        };
        let (chunk, rest) = split(&extent);
        if let Some(rest) = rest {
            self.0.push_front(BodyPart::Store(rest));
        }
        Some(BodyPart::Store(chunk))
    }
}

/// The next chunk of an extent, and what is left of it. It ends where a block of the original
/// does, so that no block is read and checked twice.
fn split(extent: &BlobExtent) -> (BlobExtent, Option<BlobExtent>) {
    let (start, end) = (extent.range.start, extent.range.end);
    let chunk_end = start.saturating_add(STREAM_CHUNK_BYTES as u64) / BLOCK_BYTES * BLOCK_BYTES;
    let middle = end.min(chunk_end);
    let rest = (middle < end).then(|| BlobExtent { range: middle..end, ..extent.clone() });
    (BlobExtent { range: start..middle, ..extent.clone() }, rest)
}
