//! The bytes of a rendition: a short list of parts, each in memory or in the store.
//!
//! The body refers to bytes that a rendition shares with its original, and does not copy them. So the body of an
//! original of 40 MB with new metadata needs a few kilobytes of memory.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use crate::runtime::limits::BODY_PARTS_MAX;
use model::ContentHash;

/// A range of an original's bytes that is sent unchanged from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobExtent {
    pub blob: ContentHash,
    /// The length of the original in bytes.
    pub blob_length: u64,
    /// The range of bytes, inside the original.
    pub range: Range<u64>,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPart {
    Memory(Bytes),
    /// A range of bytes in the store.
    Store(BlobExtent),
}

impl BodyPart {
    /// Returns the length of the part in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Store(extent) => extent.range.end.saturating_sub(extent.range.start),
        }
    }

    /// Returns whether the part has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes `range` of the part; `range` is inside it.
    fn slice(&self, range: Range<u64>) -> Self {
        match self {
            Self::Memory(bytes) => {
                // Slicing shares the buffer, so a range of a large body costs no copy.
                Self::Memory(bytes.slice(memory_index(range.start)..memory_index(range.end)))
            }
            Self::Store(extent) => {
                let start = extent.range.start;
                let range = start + range.start..start + range.end;
                Self::Store(BlobExtent { range, ..extent.clone() })
            }
        }
    }

    /// Returns the number of bytes that the part holds in memory.
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            // These bytes are in the store, so they do not count against the cache in memory.
            Self::Store(_) => 0,
        }
    }
}

fn memory_index(at: u64) -> usize {
    usize::try_from(at).expect("inside bytes that are in memory")
}

/// The bytes of a rendition as parts in order. Cheap to clone; no part is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenditionBody(Arc<[BodyPart]>);

impl RenditionBody {
    /// Creates a body of `parts`, without the empty parts. At most [`BODY_PARTS_MAX`] may remain.
    pub fn new(parts: impl IntoIterator<Item = BodyPart>) -> Self {
        let parts: Arc<[BodyPart]> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        assert!(parts.len() <= BODY_PARTS_MAX, "a body of {} parts", parts.len());
        Self(parts)
    }

    /// Creates a body with any number of parts, as in archives. It is sent once and never cached.
    pub fn new_unbounded(parts: impl IntoIterator<Item = BodyPart>) -> Self {
        Self(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }

    /// Returns the whole body, if it is a single part in memory.
    pub fn in_memory(&self) -> Option<Bytes> {
        match self.parts() {
            [BodyPart::Memory(bytes)] => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Creates a body of one part in memory.
    pub fn memory(bytes: impl Into<Bytes>) -> Self {
        Self::new([BodyPart::Memory(bytes.into())])
    }

    /// Returns the parts in their order.
    pub fn parts(&self) -> &[BodyPart] {
        &self.0
    }

    /// Returns the total length in bytes.
    pub fn len(&self) -> u64 {
        self.0.iter().map(BodyPart::len).sum()
    }

    /// Returns whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes that the body holds in memory.
    pub fn memory_bytes(&self) -> usize {
        self.0.iter().map(BodyPart::memory_bytes).sum()
    }

    /// Returns the parts that make up the bytes `range`, truncated at the end of the body.
    pub fn slice(&self, range: Range<u64>) -> Vec<BodyPart> {
        let mut parts = Vec::with_capacity(self.0.len());
        let mut start = 0;
        for part in &*self.0 {
            let end = start + part.len();
            let from = range.start.max(start);
            let to = range.end.min(end);
            // Parts outside the range are left out, because a part must not be empty.
            if from < to {
                parts.push(part.slice(from - start..to - start));
            }
            start = end;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The original that extents point into.
    fn original() -> Vec<u8> {
        (100..200).collect()
    }

    fn memory(bytes: &'static [u8]) -> BodyPart {
        BodyPart::Memory(Bytes::from_static(bytes))
    }

    fn stored(range: Range<u64>) -> BodyPart {
        BodyPart::Store(BlobExtent { blob: ContentHash([9; 32]), blob_length: 100, range })
    }

    fn bytes_of(parts: &[BodyPart]) -> Vec<u8> {
        let bytes = |part: &BodyPart| match part {
            BodyPart::Memory(bytes) => bytes.to_vec(),
            BodyPart::Store(extent) => {
                let index = |at| usize::try_from(at).unwrap();
                original()[index(extent.range.start)..index(extent.range.end)].to_vec()
            }
        };
        parts.iter().flat_map(bytes).collect()
    }

    #[test]
    fn every_range_of_any_list_of_parts_is_that_range_of_the_whole() {
        for body in [
            RenditionBody::memory(&b"picture"[..]),
            RenditionBody::new([stored(3..9)]),
            RenditionBody::new([memory(b"head"), stored(10..30)]),
            RenditionBody::new([memory(b"head"), stored(10..20), memory(b"rows"), stored(40..45)]),
            RenditionBody::new([stored(0..5), stored(50..52), memory(b"a"), memory(b"end")]),
            RenditionBody::new([]),
        ] {
            let full = bytes_of(body.parts());
            assert_eq!(body.len(), full.len() as u64);
            assert_eq!(body.is_empty(), full.is_empty());
            for start in 0..=full.len() {
                for end in start..=full.len() {
                    let parts = body.slice(start as u64..end as u64);
                    assert_eq!(bytes_of(&parts), full[start..end], "{body:?} {start}..{end}");
                    assert!(parts.iter().all(|part| !part.is_empty()), "{body:?} {start}..{end}");
                }
            }
            assert_eq!(bytes_of(&body.slice(0..u64::MAX)), full);
        }
    }

    #[test]
    fn empty_parts_are_left_out_and_only_memory_counts_as_memory() {
        let body = RenditionBody::new([memory(b""), memory(b"head"), stored(7..7), stored(0..90)]);
        assert_eq!(body.parts(), [memory(b"head"), stored(0..90)]);
        assert_eq!((body.memory_bytes(), body.len()), (4, 94));
    }

    #[test]
    #[should_panic(expected = "a body of 9 parts")]
    fn a_body_of_too_many_parts_is_a_mistake_of_ours() {
        drop(RenditionBody::new([(); BODY_PARTS_MAX + 1].map(|()| memory(b"x"))));
    }
}
