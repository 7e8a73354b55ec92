//! Bodies as they are sent: what lies in the store is read piece by piece.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use futures_util::{Stream, stream};

use super::{Extent, Media, Part, original::BLOCK_BYTES};
use crate::limits::STREAM_CHUNK_BYTES;

impl Media {
    /// The bytes of `parts` in order. A body of 30 MB holds one chunk in memory; reading runs on
    /// the runtime's threads for blocking calls, and every chunk is checked.
    pub fn stream(
        &self,
        parts: Vec<Part>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let begin = (self.clone(), VecDeque::from(parts));
        stream::try_unfold(begin, |(media, mut parts)| async move {
            let Some(part) = parts.pop_front() else { return Ok::<_, io::Error>(None) };
            let extent = match part {
                Part::Memory(bytes) => return Ok(Some((bytes, (media, parts)))),
                Part::Store(extent) => extent,
            };
            let (chunk, rest) = split(&extent);
            if let Some(rest) = rest {
                parts.push_front(Part::Store(rest));
            }
            let reader = media.clone();
            let read = tokio::task::spawn_blocking(move || reader.read_extent(&chunk)).await;
            let bytes = read.map_err(io::Error::other)?.map_err(|cause| {
                tracing::error!("a body broke off: {cause}");
                io::Error::other(cause)
            })?;
            Ok(Some((bytes, (media, parts))))
        })
    }
}

/// The next chunk of an extent, and what is left of it. It ends where a block of the original
/// does, so that no block is read and checked twice.
fn split(extent: &Extent) -> (Extent, Option<Extent>) {
    let (start, end) = (extent.range.start, extent.range.end);
    let chunk_end = start.saturating_add(STREAM_CHUNK_BYTES as u64) / BLOCK_BYTES * BLOCK_BYTES;
    let middle = end.min(chunk_end);
    let rest = (middle < end).then(|| Extent { range: middle..end, ..extent.clone() });
    (Extent { range: start..middle, ..extent.clone() }, rest)
}
