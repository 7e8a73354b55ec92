//! Reads ranges of an opened object, all from the version that was opened.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, path::Path};

use super::{Bucket, StoreError};
use crate::runtime::limits::{BUCKET_READ_BYTES, BUCKET_READS_MAX};
use model::ContentHash;

/// The result of the request that opened an object.
#[derive(Debug)]
pub(super) struct ObjectHead {
    pub(super) etag: Option<String>,
    pub(super) length: u64,
    pub(super) stamp: u64,
    /// The first bytes of the object.
    pub(super) start: Bytes,
}

/// An opened object, of which ranges can be read.
pub(in crate::storage::blobs) struct BucketObject {
    pub(super) bucket: Bucket,
    pub(super) key: Path,
    pub(super) hash: ContentHash,
    pub(super) head: Arc<ObjectHead>,
}

impl fmt::Debug for BucketObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)
    }
}

/// Returns a number that changes when the object is replaced.
pub(super) fn stamp(facts: &ObjectMeta) -> u64 {
    let text = match &facts.e_tag {
        Some(etag) => format!("{} {etag}", facts.size),
        None => format!("{} {}", facts.size, facts.last_modified.timestamp_millis()),
    };
    let hash = ContentHash::of(text.as_bytes()).0;
    let (numbers, _) = hash.as_chunks::<8>();
    numbers.first().map_or(0, |first| u64::from_le_bytes(*first))
}

/// Reads a range of the object, provided that it still has the tag `etag`.
pub(super) async fn get(
    objects: Arc<dyn ObjectStore>,
    key: Path,
    range: Range<u64>,
    etag: Option<String>,
) -> object_store::Result<(ObjectMeta, Bytes)> {
    let range = Some(GetRange::Bounded(range));
    let options = GetOptions { range, if_match: etag.clone(), ..GetOptions::default() };
    let found = objects.get_opts(&key, options).await?;
    let facts = found.meta.clone();
    if etag.is_some() && facts.e_tag.is_some() && etag != facts.e_tag {
        // Not all services support `If-Match`.
        let source = "it has another tag".into();
        return Err(object_store::Error::Precondition { path: key.to_string(), source });
    }
    Ok((facts, found.bytes().await?))
}

impl BucketObject {
    pub(in crate::storage::blobs) fn stamp(&self) -> u64 {
        self.head.stamp
    }

    /// Reads the bytes `range`, which must be inside the object.
    pub(in crate::storage::blobs) fn read(
        &self,
        range: Range<u64>,
    ) -> Result<Vec<u8>, StoreError> {
        Ok(self.read_many(&[range])?.pop().unwrap_or_default())
    }

    /// Reads several ranges concurrently.
    ///
    /// A long range takes several requests; bytes from the start of the object are already in memory.
    pub(in crate::storage::blobs) fn read_many(
        &self,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let here = self.head.start.len() as u64;
        let mut wanted = Vec::new();
        for range in ranges {
            let mut at = range.start.max(here);
            while at < range.end {
                let end = range.end.min(at.saturating_add(BUCKET_READ_BYTES));
                wanted.push(at..end);
                at = end;
            }
        }
        let mut pieces = self.fetch(wanted)?.into_iter();
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let join = |range: &Range<u64>| {
            let (from, to) = (range.start.min(here), range.end.min(here));
            let mut bytes = Vec::with_capacity(index(range.end.saturating_sub(range.start)));
            bytes.extend_from_slice(&self.head.start[index(from)..index(to)]);
            while (bytes.len() as u64) < range.end.saturating_sub(range.start) {
                let Some(piece) = pieces.next() else { break };
                bytes.extend_from_slice(&piece);
            }
            bytes
        };
        Ok(ranges.iter().map(join).collect())
    }

    /// Fetches ranges of at most [`BUCKET_READ_BYTES`] each, several concurrently; returns them in order.
    fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>, StoreError> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let (objects, turns) = (self.bucket.objects(), Arc::clone(&self.bucket.inner.permits));
        let (key, etag) = (self.key.clone(), self.head.etag.clone());
        let one = move |range: Range<u64>| {
            let (objects, turns) = (Arc::clone(&objects), Arc::clone(&turns));
            let (key, etag) = (key.clone(), etag.clone());
            async move {
                // The semaphore is never closed, so this cannot fail.
                let _turn = turns.acquire().await;
                let length = range.end - range.start;
                let (_, bytes) = get(objects, key, range, etag).await?;
                if bytes.len() as u64 == length {
                    return Ok(bytes);
                }
                let source = format!("received {} of {length} bytes", bytes.len()).into();
                Err(object_store::Error::Generic { store: "S3", source })
            }
        };
        let all = stream::iter(ranges.into_iter().map(one)).buffered(BUCKET_READS_MAX);
        let pending = self.bucket.begin(self.bucket.time_for(bytes), all.try_collect());
        pending.wait().map_err(self.bucket.failed(&self.key, self.hash))
    }
}
