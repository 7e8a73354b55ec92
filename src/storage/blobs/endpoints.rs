//! Sends requests to one service behind several addresses, with failover to the next address.
//!
//! Requests are sent first to the address that answered last. A request is signed for its address, so each
//! address has its own client. All requests are idempotent: an object is written under the hash of its bytes,
//! and parts of an upload under their numbers, at any address. Completing an upload that was already
//! completed at a different address counts as success: the sender checks the object's length afterwards.
//!
//! The bucket counts as failing if no address answered. A failing address proves nothing while others answer.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::aws::AmazonS3;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, Extensions, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};

use super::circuit_breaker::{BucketFault, CircuitBreaker};
use super::s3_answer;

/// Backoff after the first round without an answer from any address. It doubles with each round.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// Upper limit of the backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(3);

/// A bucket that is reached at several addresses.
#[derive(Clone)]
pub(super) struct FailoverStore {
    /// At least one client. The clients do not retry by themselves.
    pub(super) clients: Arc<[Arc<AmazonS3>]>,
    /// Index of the address to try first, shared by all clients of the bucket.
    pub(super) first: Arc<AtomicUsize>,
    /// Rounds through all addresses after the first one.
    pub(super) rounds: usize,
    /// Time limit of each attempt; `None` leaves it to the client.
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) breaker: Arc<CircuitBreaker>,
}

impl fmt::Debug for FailoverStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} endpoints", self.clients.len())
    }
}

impl fmt::Display for FailoverStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FailoverStore {
    /// Tries one address after the other until one answers. A refusal is an answer.
    async fn try_each<T, F: Future<Output = Result<T>>>(
        &self,
        work: impl Fn(Arc<AmazonS3>) -> F,
    ) -> Result<T> {
        let Self { clients, first, rounds, breaker, .. } = self;
        let mut backoff = BACKOFF_FIRST;
        let mut round = 0;
        let began = breaker.now();
        loop {
            let start = first.load(Ordering::Relaxed);
            let mut failed = None;
            for index in (0..clients.len()).map(|step| (start + step) % clients.len()) {
                match self.within(work(Arc::clone(&clients[index]))).await {
                    Err(cause) if s3_answer::may_succeed_elsewhere(&cause) => {
                        // Stored before the next address is tried: other requests skip the failed address,
                        // and so does the next attempt if this one is cut off now.
                        first.store((index + 1) % clients.len(), Ordering::Relaxed);
                        failed = Some(cause);
                    }
                    answered => {
                        first.store(index, Ordering::Relaxed);
                        return answered;
                    }
                }
            }
            // Once per round: only if every address failed, the bucket is at fault.
            if let Some(cause) = failed {
                breaker.record_failure(began, BucketFault::NoAnswer, &s3_answer::describe(&cause));
                if round >= *rounds {
                    return Err(cause);
                }
            }
            round += 1;
            tokio::time::sleep(backoff).await;
            backoff = BACKOFF_MAX.min(backoff * 2);
        }
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.attempt_timeout {
            Some(limit) => s3_answer::within(limit, work).await,
            None => work.await,
        }
    }
}

#[async_trait]
impl ObjectStore for FailoverStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.try_each(|client| {
            let payload = payload.clone();
            let options = options.clone();
            async move { client.put_opts(location, payload, options).await }
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let id = self
            .try_each(|client| {
                let options = options.clone();
                async move { client.create_multipart_opts(location, options).await }
            })
            .await?;
        let parts = Arc::default();
        let upload = Arc::new((self.clone(), location.clone(), id));
        Ok(Box::new(FailoverUpload { upload, next: 0, parts }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.try_each(|client| {
            let options = options.clone();
            async move { client.get_opts(location, options).await }
        })
        .await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let endpoints = self.clone();
        let removed = locations.then(move |location| {
            let endpoints = endpoints.clone();
            async move {
                let location = location?;
                endpoints
                    .try_each(|client| {
                        let location = location.clone();
                        async move { client.delete(&location).await }
                    })
                    .await?;
                Ok(location)
            }
        });
        removed.boxed()
    }

    /// Lists objects. A listing that breaks off is not continued at a different address: the caller starts
    /// over.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let endpoints = self.clone();
        let prefix = prefix.cloned();
        let begin = async move {
            endpoints
                .try_each(|client| {
                    // `fuse`, because an empty listing is polled again after its end.
                    let mut list = client.list(prefix.as_ref()).fuse();
                    // Fetches the first page here, so that its failure leads to the next address.
                    async move {
                        let first = list.next().await.transpose()?;
                        Ok(stream::iter(first.map(Ok)).chain(list))
                    }
                })
                .await
        };
        stream::once(begin).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.try_each(|client| async move { client.list_with_delimiter(prefix).await }).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.try_each(|client| {
            let options = options.clone();
            async move { client.copy_opts(from, to, options).await }
        })
        .await
    }
}

/// An upload in parts. Each part may use a different address.
#[derive(Debug)]
struct FailoverUpload {
    /// The bucket, the key and the id of the upload.
    upload: Arc<(FailoverStore, Path, String)>,
    next: usize,
    /// The parts that arrived, by number.
    parts: Arc<parking_lot::Mutex<Vec<(usize, PartId)>>>,
}

#[async_trait]
impl MultipartUpload for FailoverUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let number = self.next;
        self.next += 1;
        let upload = Arc::clone(&self.upload);
        let parts = Arc::clone(&self.parts);
        async move {
            let (endpoints, location, id) = upload.as_ref();
            let part = endpoints
                .try_each(|client| {
                    let data = data.clone();
                    async move { client.put_part(location, id, number, data).await }
                })
                .await?;
            let mut parts = parts.lock();
            parts.push((number, part));
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut parts = self.parts.lock().clone();
        // Parts arrive in any order, and the service requires them in ascending order.
        parts.sort_unstable_by_key(|(number, _)| *number);
        if parts.len() != self.next {
            let source = "not all parts have arrived".into();
            return Err(Error::Generic { store: "S3", source });
        }
        let parts: Vec<PartId> = parts.into_iter().map(|(_, part)| part).collect();
        let (endpoints, location, id) = self.upload.as_ref();
        let completed = endpoints
            .try_each(|client| {
                let parts = parts.clone();
                async move { client.complete_multipart(location, id, parts).await }
            })
            .await;
        match completed {
            // A different address completed it without being able to answer, so the upload no longer exists.
            Err(Error::NotFound { .. }) => {
                Ok(PutResult { e_tag: None, version: None, extensions: Extensions::default() })
            }
            other => other,
        }
    }

    async fn abort(&mut self) -> Result<()> {
        let (endpoints, location, id) = self.upload.as_ref();
        endpoints
            .try_each(|client| async move { client.abort_multipart(location, id).await })
            .await
    }
}
