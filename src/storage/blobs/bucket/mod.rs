//! Stores blobs and derived files in a bucket: `originals/ab/cdef…`, `index/ab/cdef…` and so on.
//!
//! Calls block, so callers use threads that may block. Requests to the bucket run on dedicated threads, which
//! never wait for callers, so each call returns: with the answer, or at its time limit. While the
//! [`CircuitBreaker`] is open, calls fail at once.
//!
//! An object appears whole or not at all. All reads of an opened object carry the tag of its first response
//! (`If-Match`). If the object was replaced since, the read fails and the next one opens it again.

mod object;
mod upload;

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use futures_util::TryStreamExt;
use moka::sync::Cache;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use uuid::Uuid;

pub(super) use object::BucketObject;
use object::{ObjectHead, get};
use upload::PartUpload;

use super::circuit_breaker::{self, BucketFault, CircuitBreaker};
use super::s3::BucketSettings;
use super::{StoreError, StoreResult, s3_answer};
use crate::runtime::clock;
use crate::runtime::limits::BUCKET_BYTES_S_MIN;
use model::ContentHash;

/// Bytes of one part of a multipart upload into a bucket; S3 allows 10,000 parts.
const BUCKET_PART_BYTES: usize = 8 * 1024 * 1024;
/// Time for which the opened state of an object is cached. Reads of an object replaced since then fail.
const BUCKET_OPEN_CACHE_TTL: Duration = Duration::from_secs(10);
/// Bytes of the cache for the starts of opened objects.
const BUCKET_OPEN_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Retries of a request to a bucket, within `store.give_up_s`.
const BUCKET_RETRIES_MAX: usize = 4;
/// Attempt timeout per endpoint in a request that is not retried: less than half of a readiness probe.
const BUCKET_SINGLE_ATTEMPT_TIME: Duration = Duration::from_millis(900);
/// Timeout for listing all originals in a bucket: at a tenth of a second per thousand, 30 million.
const BUCKET_LIST_TIME: Duration = Duration::from_secs(3600);
/// Number of threads for requests to a bucket, which sign requests and wait.
const THREADS: usize = 2;
/// A folder under the prefix that never contains an object. Listing it is the cheapest probe.
const EMPTY_PREFIX: &str = "nothing";
/// The folder under the prefix for the short-lived objects that prove write access.
const PROBE_PREFIX: &str = "probe";
const PROBE_CONTENT: &[u8] = b"Wirephoto writes this to test its write access, and removes it.\n";

/// A bucket; cheap to clone.
#[derive(Clone)]
pub(super) struct Bucket {
    inner: Arc<BucketInner>,
}

struct BucketInner {
    clients: ObjectClients,
    place: String,
    prefix: Path,
    give_up: Duration,
    permits: Arc<Semaphore>,
    heads: Cache<Path, Arc<ObjectHead>>,
    /// `Some` until this is dropped.
    runtime: Option<Runtime>,
}

/// The key of the object that holds a blob.
#[derive(Clone, Debug)]
pub(super) struct ObjectKey {
    path: Path,
    hash: ContentHash,
}

impl Drop for BucketInner {
    fn drop(&mut self) {
        // A runtime that waits for its threads must not be dropped on a thread of a different runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.place)
    }
}

/// The reaction to a bucket that does not answer in time while it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPolicy {
    /// Opening the store fails.
    Fail,
    /// The server starts with the circuit open: requests that need the bucket fail until it answers.
    Serve,
}

/// The object-store clients of one bucket.
pub(super) struct ObjectClients {
    pub(super) all: Arc<dyn ObjectStore>,
    /// For requests that are not retried.
    pub(super) once: Arc<dyn ObjectStore>,
    pub(super) breaker: Arc<CircuitBreaker>,
    /// The connection settings; `None` for a bucket in memory.
    pub(super) settings: Option<BucketSettings>,
}

/// The cause of a failed request.
#[derive(Debug, thiserror::Error)]
pub(super) enum BucketFailure {
    /// The bucket refused the request, or failed.
    #[error("{}", s3_answer::describe(.0))]
    Bucket(object_store::Error),
    /// No answer arrived in time, or our own threads have ended.
    #[error("{0}")]
    TimedOut(io::Error),
}

/// The reply to a request in flight.
pub(super) struct PendingReply<T> {
    receiver: mpsc::Receiver<Result<T, BucketFailure>>,
}

impl<T> PendingReply<T> {
    /// Blocks until the reply arrives or its time limit is over.
    pub(super) fn wait(self) -> Result<T, BucketFailure> {
        self.receiver.recv().unwrap_or_else(|_| {
            let cause = io::Error::other("the threads for the bucket have ended");
            Err(BucketFailure::TimedOut(cause))
        })
    }
}

impl Bucket {
    /// Opens the bucket and checks that it answers.
    ///
    /// Fails with [`StoreError::Setting`], which names the setting that is likely to be wrong.
    pub(super) fn open(settings: &BucketSettings, policy: StartPolicy) -> StoreResult<Self> {
        let breaker = Arc::new(CircuitBreaker::new(settings.place()));
        let first = Arc::default();
        let objects = ObjectClients {
            all: settings.open(&breaker, &first, BUCKET_RETRIES_MAX, None)?,
            once: settings.open(&breaker, &first, 0, Some(BUCKET_SINGLE_ATTEMPT_TIME))?,
            breaker,
            settings: Some(settings.clone()),
        };
        let prefix = Path::from(settings.prefix.as_str());
        let name = format!("s3://{}", settings.bucket);
        let bucket = Self::over(objects, name, prefix, settings.give_up, settings.requests)?;
        match bucket.check_access() {
            Ok(()) => Ok(bucket),
            // Cached content is served in the meantime, and a probe closes the circuit.
            Err(failure) if policy == StartPolicy::Serve && failure.is_slow() => {
                bucket.inner.clients.breaker.open_circuit(&failure.to_string());
                Ok(bucket)
            }
            Err(BucketFailure::Bucket(error)) => Err(settings.setting_error("", &error)),
            Err(BucketFailure::TimedOut(cause)) => {
                let why = format!("{}: {cause}", settings.place());
                Err(StoreError::Setting { setting: "store.endpoint", why })
            }
        }
    }

    /// Creates a bucket over any object store.
    pub(super) fn over(
        clients: ObjectClients,
        place: String,
        prefix: Path,
        give_up: Duration,
        requests: usize,
    ) -> StoreResult<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|cause| StoreError::Io {
                path: "threads for the bucket".to_owned(),
                cause,
            })?;
        let heads = Cache::builder()
            .max_capacity(BUCKET_OPEN_CACHE_BYTES)
            .weigher(|_: &Path, head: &Arc<ObjectHead>| {
                // The constant covers the key, the counters and the slot of the map.
                u32::try_from(head.start.len() + 512).unwrap_or(u32::MAX)
            })
            .time_to_live(BUCKET_OPEN_CACHE_TTL)
            .build();
        let empty = prefix.clone().join(EMPTY_PREFIX);
        let once = Arc::clone(&clients.once);
        runtime.spawn(probe_until_closed(once, Arc::clone(&clients.breaker), empty, give_up));
        let inner = BucketInner {
            clients,
            place,
            prefix,
            give_up,
            permits: Arc::new(Semaphore::new(requests)),
            heads,
            runtime: Some(runtime),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(super) fn key(&self, folder: &str, hash: ContentHash) -> ObjectKey {
        let name = hash.to_string();
        let path = self.inner.prefix.clone().join(folder).join(&name[..2]).join(&name[2..]);
        ObjectKey { path, hash }
    }

    /// Begins a request that transfers `bytes` bytes once a permit is free; fails while the circuit is open.
    pub(super) fn request<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> PendingReply<T> {
        self.begin(self.time_for(bytes), self.with_permit(work))
    }

    /// Begins a request even while the circuit is open.
    pub(super) fn request_through_open_circuit<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> PendingReply<T> {
        self.spawn(self.time_for(0), false, self.with_permit(work))
    }

    fn with_permit<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> impl Future<Output = object_store::Result<T>> + Send + 'static {
        let permits = Arc::clone(&self.inner.permits);
        async move {
            // The semaphore is never closed, so this cannot fail.
            let _permit = permits.acquire().await;
            work.await
        }
    }

    fn time_for(&self, bytes: u64) -> Duration {
        self.inner.give_up.saturating_add(Duration::from_secs(bytes / BUCKET_BYTES_S_MIN))
    }

    /// Begins work with the time limit `limit`, unless the circuit is open.
    fn begin<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> PendingReply<T> {
        let Some(refusal) = self.inner.clients.breaker.open_error() else {
            return self.spawn(limit, true, work);
        };
        // An open circuit lets one request through as the probe if the bucket refuses listings anyway.
        if self.inner.clients.breaker.take_probe() {
            return self.spawn(limit, false, work);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        // The channel has capacity for it.
        drop(sender.send(Err(BucketFailure::TimedOut(refusal))));
        PendingReply { receiver }
    }

    /// Begins work even while the circuit is open. If `abortable`, opening the circuit aborts it.
    fn spawn<T: Send + 'static>(
        &self,
        limit: Duration,
        abortable: bool,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> PendingReply<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let runtime = self.inner.runtime.as_ref().expect("it is there until this is dropped");
        let breaker = Arc::clone(&self.inner.clients.breaker);
        let began = breaker.now();
        runtime.spawn(async move {
            let finished = tokio::select! {
                finished = tokio::time::timeout(limit, work) => finished,
                // Failures of other requests have opened the circuit.
                error = breaker.abort_error(), if abortable => {
                    drop(sender.send(Err(BucketFailure::TimedOut(error))));
                    return;
                }
            };
            let outcome = match finished {
                Ok(outcome) => outcome.map_err(BucketFailure::Bucket),
                Err(_) => {
                    let message = format!("the bucket did not answer within {limit:?}");
                    // The attempt in flight is dropped here and cannot report its own failure.
                    breaker.record_failure(began, BucketFault::NoAnswer, &message);
                    let cause = io::Error::new(io::ErrorKind::TimedOut, message);
                    Err(BucketFailure::TimedOut(cause))
                }
            };
            // The receiver is gone if the caller no longer waits.
            drop(sender.send(outcome));
        });
        PendingReply { receiver }
    }

    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.inner.clients.all)
    }

    /// Checks that the bucket answers and permits listing.
    fn check_access(&self) -> Result<(), BucketFailure> {
        let empty_prefix = self.inner.prefix.clone().join(EMPTY_PREFIX);
        self.request(0, probe(self.objects(), empty_prefix)).wait()
    }

    /// Writes the state of the circuit to the metrics.
    pub(super) fn report(&self) {
        self.inner.clients.breaker.report();
    }

    /// Returns the bucket with its prefix, as messages name it.
    pub(super) fn name(&self) -> String {
        let BucketInner { place, prefix, .. } = self.inner.as_ref();
        match prefix.as_ref() {
            "" => place.clone(),
            prefix => format!("{place}/{prefix}"),
        }
    }

    /// Reads at most `bytes_max` bytes of an object directly under the prefix. Returns `None` if it does not
    /// exist. With a `limit`, sends a single request with that time limit, even while the circuit is open.
    pub(super) fn small(
        &self,
        name: &'static str,
        bytes_max: u64,
        limit: Option<Duration>,
    ) -> StoreResult<Option<Bytes>> {
        let key = self.inner.prefix.clone().join(name);
        let found = match limit {
            None => self.request(bytes_max, get(self.objects(), key.clone(), 0..bytes_max, None)),
            Some(limit) => {
                let once = Arc::clone(&self.inner.clients.once);
                let attempt = get(once, key.clone(), 0..bytes_max, None);
                // Exceeding this short limit is not a failure of the bucket: other requests wait longer.
                self.spawn(self.inner.give_up, false, s3_answer::within(limit, attempt))
            }
        };
        match found.wait() {
            Ok((_, bytes)) => Ok(Some(bytes)),
            // An empty object has no first byte, so the service refuses the range.
            Err(BucketFailure::Bucket(error)) if s3_answer::is_too_short(&error) => {
                Ok(Some(Bytes::new()))
            }
            Err(BucketFailure::Bucket(error))
                if s3_answer::is_missing(&error) && !s3_answer::is_without_bucket(&error) =>
            {
                Ok(None)
            }
            Err(failure) => Err(self.unavailable(&key, failure)),
        }
    }

    /// Returns whether a folder contains no object.
    pub(super) fn is_empty(&self, folder: &str) -> StoreResult<bool> {
        let key = self.inner.prefix.clone().join(folder);
        let objects = self.objects();
        let prefix = key.clone();
        let list = async move { objects.list(Some(&prefix)).try_next().await };
        let first = self.request(0, list).wait();
        Ok(first.map_err(|failure| self.unavailable(&key, failure))?.is_none())
    }

    /// Writes an object directly under the prefix.
    pub(super) fn put_small(&self, name: &'static str, bytes: Bytes) -> StoreResult<()> {
        let key = self.inner.prefix.clone().join(name);
        self.put(&key, bytes).map_err(|failure| self.unavailable(&key, failure))
    }

    /// Writes an object in one request.
    fn put(&self, key: &Path, bytes: Bytes) -> Result<(), BucketFailure> {
        let objects = self.objects();
        let key = key.clone();
        let length = bytes.len() as u64;
        let put = async move { objects.put(&key, PutPayload::from_bytes(bytes)).await.map(drop) };
        self.request(length, put).wait()
    }

    fn delete(&self, key: &Path) -> Result<(), BucketFailure> {
        let objects = self.objects();
        let key = key.clone();
        self.request(0, async move { objects.delete(&key).await }).wait()
    }

    fn unavailable(&self, key: &Path, failure: BucketFailure) -> StoreError {
        let place = format!("{}/{key}", self.inner.place);
        StoreError::Unavailable { place, cause: failure.into() }
    }

    /// Writes a small object, reads it and removes it.
    ///
    /// Fails with [`StoreError::Setting`] if the bucket refuses one of these requests, and with
    /// [`StoreError::Unavailable`] if it does not answer in time.
    pub(super) fn check_writable(&self) -> StoreResult<()> {
        let key = self.inner.prefix.clone().join(PROBE_PREFIX).join(Uuid::now_v7().to_string());
        let written = self.put(&key, Bytes::from_static(PROBE_CONTENT));
        written.map_err(self.access_error("a small object cannot be written: "))?;
        let range = 0..PROBE_CONTENT.len() as u64;
        let got = self.request(0, get(self.objects(), key.clone(), range, None)).wait();
        // Removed even if it could not be read, so that no probe remains.
        let removed = self.delete(&key);
        got.map_err(self.access_error("a small object cannot be read: "))?;
        removed.map_err(self.access_error("a small object cannot be removed: "))
    }

    /// Maps the failure of a step of [`Bucket::check_writable`] to an error.
    fn access_error(&self, what: &'static str) -> impl Fn(BucketFailure) -> StoreError {
        let place = self.inner.place.clone();
        let settings = self.inner.clients.settings.clone();
        move |failure| match (failure, &settings) {
            (BucketFailure::Bucket(error), Some(settings)) if !s3_answer::is_slow(&error) => {
                settings.setting_error(what, &error)
            }
            (failure, _) => {
                let cause = io::Error::other(format!("{what}{failure}"));
                StoreError::Unavailable { place: place.clone(), cause }
            }
        }
    }

    /// Maps a failure at `key` to the error for its blob.
    pub(super) fn failed(&self, key: &ObjectKey) -> impl Fn(BucketFailure) -> StoreError {
        let place = format!("{}/{}", self.inner.place, key.path);
        let bucket = self.clone();
        let key = key.clone();
        move |failure| {
            // The cached head may be the cause: it may have the tag of a replaced object.
            bucket.invalidate(&key);
            let cause = match failure {
                // The cause is a wrong setting, so no blob may be reported as missing.
                BucketFailure::Bucket(error) if s3_answer::is_without_bucket(&error) => {
                    io::Error::new(io::ErrorKind::NotFound, s3_answer::describe(&error))
                }
                BucketFailure::Bucket(error) if s3_answer::is_missing(&error) => {
                    return StoreError::Missing(key.hash);
                }
                BucketFailure::Bucket(error) if s3_answer::is_replaced(&error) => {
                    io::Error::other("it was replaced while it was read")
                }
                failure @ (BucketFailure::TimedOut(_) | BucketFailure::Bucket(_)) => {
                    failure.into()
                }
            };
            StoreError::Unavailable { place: place.clone(), cause }
        }
    }

    /// Drops the cached head of an object, so that the next read sends a request to the bucket.
    pub(super) fn invalidate(&self, key: &ObjectKey) {
        self.inner.heads.invalidate(&key.path);
    }

    fn head(&self, key: &Path) -> Result<ObjectMeta, BucketFailure> {
        let objects = self.objects();
        let key = key.clone();
        self.request(0, async move { objects.head(&key).await }).wait()
    }

    /// Returns the metadata of an object; `None` if it does not exist.
    fn find(&self, key: &ObjectKey) -> StoreResult<Option<ObjectMeta>> {
        match self.head(&key.path).map_err(self.failed(key)) {
            Ok(facts) => Ok(Some(facts)),
            Err(StoreError::Missing(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns the length of an object in bytes; `None` if it does not exist.
    pub(super) fn length(&self, key: &ObjectKey) -> StoreResult<Option<u64>> {
        Ok(self.find(key)?.map(|facts| facts.size))
    }

    /// Returns the age of an object; `None` if it does not exist.
    pub(super) fn age(&self, key: &ObjectKey) -> StoreResult<Option<Duration>> {
        let Some(facts) = self.find(key)? else { return Ok(None) };
        let ago = clock::now().as_millisecond() - facts.last_modified.timestamp_millis();
        // A time in the future, from a clock that differs, counts as now.
        Ok(Some(Duration::from_millis(u64::try_from(ago).unwrap_or(0))))
    }

    /// Writes an object of `length` bytes, which `next` returns range by range. Replaces an existing one.
    ///
    /// Returns `false` if `next` returns `None` or if the bytes do not have the hash `expected`. Nothing
    /// becomes visible then.
    pub(super) fn send(
        &self,
        key: &ObjectKey,
        length: u64,
        expected: Option<ContentHash>,
        next: &mut dyn FnMut(Range<u64>) -> Option<Bytes>,
    ) -> StoreResult<bool> {
        let failed = self.failed(key);
        self.invalidate(key);
        let part = BUCKET_PART_BYTES as u64;
        let mut hasher = ContentHash::hasher();
        let mut update_hash = |bytes: &Bytes| {
            if expected.is_some() {
                hasher.update(bytes);
            }
        };
        if length <= part {
            let Some(bytes) = next(0..length) else { return Ok(false) };
            update_hash(&bytes);
            if expected.is_some_and(|expected| hasher.finish() != expected) {
                return Ok(false);
            }
            self.put(&key.path, bytes).map_err(failed)?;
            return Ok(true);
        }
        let mut upload = PartUpload::begin(self, &key.path).map_err(&failed)?;
        let mut start = 0;
        while start < length {
            let end = length.min(start + part);
            let Some(bytes) = next(start..end) else { return Ok(false) };
            update_hash(&bytes);
            upload.push(bytes).map_err(&failed)?;
            start = end;
        }
        // Dropping the upload aborts it, so wrong bytes never become an object.
        if expected.is_some_and(|expected| hasher.finish() != expected) {
            return Ok(false);
        }
        upload.finish().map_err(&failed)?;
        // `FailoverStore` may assume that an upload was completed through a different address. The length
        // proves it.
        let found = self.length(key)?.unwrap_or(0);
        if found != length {
            return Err(StoreError::Length { hash: key.hash, found, expected: length });
        }
        Ok(true)
    }

    pub(super) fn begin_upload(
        &self,
        key: &Path,
    ) -> Result<Box<dyn object_store::MultipartUpload>, BucketFailure> {
        let objects = self.objects();
        let key = key.clone();
        self.request(0, async move { objects.put_multipart(&key).await }).wait()
    }

    /// Removes an object. Succeeds if it does not exist.
    pub(super) fn remove(&self, key: &ObjectKey) -> StoreResult<()> {
        self.invalidate(key);
        match self.delete(&key.path).map_err(self.failed(key)) {
            Ok(()) | Err(StoreError::Missing(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Lists the hashes that have an object in `folder`, sorted.
    pub(super) fn list(&self, folder: &str) -> StoreResult<Vec<ContentHash>> {
        Ok(self.sizes(folder)?.into_iter().map(|(hash, _)| hash).collect())
    }

    /// Lists the hashes that have an object in `folder` with the length of each in bytes, sorted.
    pub(super) fn sizes(&self, folder: &str) -> StoreResult<Vec<(ContentHash, u64)>> {
        let objects = self.objects();
        let within = self.inner.prefix.clone().join(folder);
        let key = ObjectKey { path: within.clone(), hash: ContentHash([0; 32]) };
        let list = async move {
            let mut found = Vec::new();
            let mut listed = objects.list(Some(&within));
            while let Some(facts) = listed.try_next().await? {
                found.extend(hash_of(&facts.location).map(|hash| (hash, facts.size)));
            }
            found.sort_unstable();
            Ok(found)
        };
        // Without a permit, because a listing could hold it for an hour.
        let listed = self.begin(BUCKET_LIST_TIME, list).wait();
        listed.map_err(self.failed(&key))
    }
}

impl BucketFailure {
    /// Returns whether the failure is a missing answer rather than a refusal.
    fn is_slow(&self) -> bool {
        match self {
            Self::TimedOut(_) => true,
            Self::Bucket(error) => s3_answer::is_slow(error),
        }
    }
}

impl From<BucketFailure> for io::Error {
    fn from(failure: BucketFailure) -> Self {
        match failure {
            BucketFailure::TimedOut(cause) => cause,
            BucketFailure::Bucket(error) => Self::other(s3_answer::describe(&error)),
        }
    }
}

/// Lists a folder that is always empty: the cheapest request that the bucket can answer.
async fn probe(objects: Arc<dyn ObjectStore>, empty_prefix: Path) -> object_store::Result<()> {
    objects.list(Some(&empty_prefix)).try_next().await.map(drop)
}

/// Probes a bucket while its circuit is open, at most once a second. For each refused probe, one client
/// request may be let through as the probe ([`CircuitBreaker::take_probe`]).
async fn probe_until_closed(
    objects: Arc<dyn ObjectStore>,
    breaker: Arc<CircuitBreaker>,
    empty_prefix: Path,
    limit: Duration,
) {
    loop {
        breaker.wait_until_open().await;
        tokio::time::sleep(circuit_breaker::PROBE_INTERVAL).await;
        let listing = probe(Arc::clone(&objects), empty_prefix.clone());
        match tokio::time::timeout(limit, listing).await {
            Ok(Ok(())) => breaker.record_success(),
            Ok(Err(error)) if s3_answer::is_refusal(&error) => breaker.record_probe_refusal(),
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Parses the hash at the end of a key: `…/ab/cdef…`.
fn hash_of(key: &Path) -> Option<ContentHash> {
    let mut parts = key.as_ref().rsplit('/');
    let rest = parts.next()?;
    let start = parts.next()?;
    if start.len() == 2 { format!("{start}{rest}").parse().ok() } else { None }
}
