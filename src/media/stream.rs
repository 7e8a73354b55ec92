//! Streams bodies: parts in the store are read piece by piece during the transfer.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::{BlobExtent, BodyPart, Media, original::BLOCK_BYTES};
use crate::runtime::limits::STREAM_CHUNK_BYTES;

/// Chunks prefetched from a bucket for one body, since each request waits for the network.
const STREAM_CHUNKS_AHEAD: usize = 3;

impl Media {
    /// Streams the bytes of `parts` in order. Every chunk is verified. A body of 30 MB holds one chunk in memory,
    /// or [`STREAM_CHUNKS_AHEAD`] if each chunk is a request to a bucket. Reading pauses while the client does not
    /// read. Reads run on the runtime's blocking threads.
    pub fn stream(
        &self,
        parts: Vec<BodyPart>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        // Prefetching hides the round trip of each read from a bucket; a local disk has none.
        let prefetched =
            if self.inner.originals.store.is_remote() { STREAM_CHUNKS_AHEAD } else { 1 };
        let media = self.clone();
        stream::iter(BodyChunks(VecDeque::from(parts)))
            .map(move |chunk| media.clone().read_chunk(chunk))
            .buffered(prefetched)
    }

    /// Returns the bytes of a chunk. Bytes in the store are read and verified.
    async fn read_chunk(self, chunk: BodyPart) -> io::Result<Bytes> {
        let extent = match chunk {
            BodyPart::Memory(bytes) => return Ok(bytes),
            BodyPart::Store(extent) => extent,
        };
        let read = tokio::task::spawn_blocking(move || self.read_extent(&extent)).await;
        read.map_err(io::Error::other)?.map_err(|cause| {
            // The status was already sent, so only a broken body shows the failure.
            tracing::error!("response body aborted: {cause}");
            io::Error::other(cause)
        })
    }
}

/// Splits parts in the store into chunks.
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

/// Splits off the next chunk of an extent. It ends on a block boundary of the original, so that no block is
/// read and verified twice.
fn split(extent: &BlobExtent) -> (BlobExtent, Option<BlobExtent>) {
    let start = extent.range.start;
    let end = extent.range.end;
    let chunk_end = start.saturating_add(STREAM_CHUNK_BYTES as u64) / BLOCK_BYTES * BLOCK_BYTES;
    let split_at = end.min(chunk_end);
    let rest = (split_at < end).then(|| BlobExtent { range: split_at..end, ..extent.clone() });
    (BlobExtent { range: start..split_at, ..extent.clone() }, rest)
}
