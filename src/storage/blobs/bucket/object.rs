//! Opens objects and reads ranges of the version that was opened.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, path::Path};

use super::{Bucket, BucketFailure, ObjectKey, StoreError, StoreResult, s3_answer};
use crate::runtime::limits::BUCKET_READ_BYTES;
use model::ContentHash;

/// Concurrent requests for one scattered read. A crop of 600 rows reads about 40 ranges.
const BUCKET_READS_MAX: usize = 16;
/// Bytes read from the start of an object when it is opened: usually everything before the picture data.
const BUCKET_OPEN_BYTES: u64 = 32 * 1024;
/// Bytes that the first request for a whole derived file asks for: more than nearly all standard sets have.
const BUCKET_WHOLE_BYTES: u64 = 1024 * 1024;

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
    pub(super) key: ObjectKey,
    pub(super) head: Arc<ObjectHead>,
}

impl fmt::Debug for BucketObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key.path)
    }
}

/// Returns a number that changes when the object is replaced.
pub(super) fn stamp(metadata: &ObjectMeta) -> u64 {
    let text = match &metadata.e_tag {
        Some(etag) => format!("{} {etag}", metadata.size),
        // Some services send no tag. Two writes within a millisecond then get the same stamp.
        None => format!("{} {}", metadata.size, metadata.last_modified.timestamp_millis()),
    };
    let hash = ContentHash::new(text.as_bytes()).0;
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
    let metadata = found.meta.clone();
    if etag.is_some() && metadata.e_tag.is_some() && etag != metadata.e_tag {
        // Some services ignore `If-Match`.
        let source = "it has another tag".into();
        return Err(object_store::Error::Precondition { path: key.to_string(), source });
    }
    Ok((metadata, found.bytes().await?))
}

impl Bucket {
    /// Opens the object, which must have `length` bytes, and reads its start.
    pub(crate) fn open_object(&self, key: ObjectKey, length: u64) -> StoreResult<BucketObject> {
        let head = self.object_head(&key, length)?;
        let found = head.length;
        if found != length {
            return Err(StoreError::Length { hash: key.hash, found, expected: length });
        }
        Ok(BucketObject { bucket: self.clone(), key, head })
    }

    /// Returns the cached or fetched head of an object, with at most `bytes_max` bytes of its start.
    fn object_head(&self, key: &ObjectKey, bytes_max: u64) -> StoreResult<Arc<ObjectHead>> {
        if let Some(head) = self.inner.heads.get(&key.path) {
            return Ok(head);
        }
        let head = self.fetch_head(key, bytes_max.min(BUCKET_OPEN_BYTES))?;
        self.inner.heads.insert(key.path.clone(), Arc::clone(&head));
        Ok(head)
    }

    /// Fetches the head of an object, with at most `bytes` bytes of its start.
    fn fetch_head(&self, key: &ObjectKey, bytes: u64) -> StoreResult<Arc<ObjectHead>> {
        let found = match bytes {
            // HTTP cannot express an empty range.
            0 => self.head(&key.path).map(|facts| (facts, Bytes::new())),
            _ => {
                let start = get(self.objects(), key.path.clone(), 0..bytes, None);
                match self.request(bytes, start).wait() {
                    // The object is empty, so the service refuses every range of it.
                    Err(BucketFailure::Bucket(error)) if s3_answer::is_too_short(&error) => {
                        self.head(&key.path).map(|facts| (facts, Bytes::new()))
                    }
                    other => other,
                }
            }
        };
        let (facts, start) = found.map_err(self.failed(key))?;
        let stamp = stamp(&facts);
        Ok(Arc::new(ObjectHead { etag: facts.e_tag, length: facts.size, stamp, start }))
    }

    /// Writes an object with these bytes. Replaces an existing one.
    pub(crate) fn write(&self, key: &ObjectKey, bytes: &[u8]) -> StoreResult<()> {
        let sent = self.send(key, bytes.len() as u64, None, &mut |range| {
            Some(Bytes::copy_from_slice(&bytes[index(range.start)..index(range.end)]))
        });
        sent.map(drop)
    }

    /// Reads a whole object of at most `bytes_max` bytes; `None` if it does not exist or is longer.
    pub(crate) fn read(&self, key: ObjectKey, bytes_max: u64) -> StoreResult<Option<Vec<u8>>> {
        // One request for the whole of a usual object, since each request costs a round trip.
        let head = match self.fetch_head(&key, bytes_max.min(BUCKET_WHOLE_BYTES)) {
            Ok(head) if head.length <= bytes_max => head,
            Ok(_) | Err(StoreError::Missing(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        let length = head.length;
        let object = BucketObject { bucket: self.clone(), key, head };
        object.read(0..length).map(Some)
    }
}

/// Converts an offset to an index into bytes in memory.
fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

impl BucketObject {
    pub(crate) fn stamp(&self) -> u64 {
        self.head.stamp
    }

    /// Reads the bytes `range`, which must be inside the object.
    pub(crate) fn read(&self, range: Range<u64>) -> StoreResult<Vec<u8>> {
        Ok(self.read_many(&[range])?.pop().unwrap_or_default())
    }

    /// Reads several ranges concurrently.
    ///
    /// A long range needs several requests. Bytes from the start of the object are already in memory.
    pub(crate) fn read_many(&self, ranges: &[Range<u64>]) -> StoreResult<Vec<Vec<u8>>> {
        let in_memory = self.head.start.len() as u64;
        let mut missing = Vec::new();
        for range in ranges {
            let mut start = range.start.max(in_memory);
            while start < range.end {
                let end = range.end.min(start.saturating_add(BUCKET_READ_BYTES));
                missing.push(start..end);
                start = end;
            }
        }
        // All at once: requests for many small ranges together last one round trip, not one each.
        let mut chunks = self.fetch(missing)?.into_iter();
        let mut read = Vec::with_capacity(ranges.len());
        for range in ranges {
            let from = index(range.start.min(in_memory));
            let to = index(range.end.min(in_memory));
            let length = range.end.saturating_sub(range.start);
            let mut bytes = Vec::with_capacity(index(length));
            bytes.extend_from_slice(&self.head.start[from..to]);
            while (bytes.len() as u64) < length {
                let Some(chunk) = chunks.next() else { break };
                bytes.extend_from_slice(&chunk);
            }
            read.push(bytes);
        }
        Ok(read)
    }

    /// Fetches ranges of at most [`BUCKET_READ_BYTES`] each, several concurrently. Returns them in order.
    fn fetch(&self, ranges: Vec<Range<u64>>) -> StoreResult<Vec<Bytes>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let objects = self.bucket.objects();
        let permits = Arc::clone(&self.bucket.inner.permits);
        let key = self.key.path.clone();
        let etag = self.head.etag.clone();
        let fetches = ranges.into_iter().map(move |range| {
            let objects = Arc::clone(&objects);
            let permits = Arc::clone(&permits);
            let key = key.clone();
            let etag = etag.clone();
            async move {
                // The semaphore is never closed, so this cannot fail.
                let _permit = permits.acquire().await;
                let length = range.end - range.start;
                let (_, bytes) = get(objects, key, range, etag).await?;
                if bytes.len() as u64 == length {
                    return Ok(bytes);
                }
                // A range beyond the end gets fewer bytes, not an error (RFC 9110 §14.1.2).
                let source = format!("received {} of {length} bytes", bytes.len()).into();
                Err(object_store::Error::Generic { store: "S3", source })
            }
        });
        let all = stream::iter(fetches).buffered(BUCKET_READS_MAX);
        // Each range acquires a permit of its own, so this is not a `request`, which holds one.
        let pending = self.bucket.begin(self.bucket.time_for(bytes), all.try_collect());
        pending.wait().map_err(self.bucket.failed(&self.key))
    }
}
