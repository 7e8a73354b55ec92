//! One service behind several addresses: where one does not answer, the next one is asked.
//!
//! The address that answered last is asked first. Requests are signed for the address that they go to, so
//! each has a client of its own. All requests may be repeated: an object is written under the hash of its
//! bytes, and parts of an upload under their numbers, at whichever address.

use std::{
    fmt,
    future::Future,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
    aws::AmazonS3,
    multipart::{MultipartStore, PartId},
    path::Path,
};

use super::s3;

/// Rest after a round in which no address answered; it doubles with each.
const REST_FIRST: Duration = Duration::from_millis(100);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(3);

/// A bucket that several addresses lead to.
#[derive(Clone)]
pub(super) struct Endpoints {
    inner: Arc<Inner>,
}

struct Inner {
    all: Vec<Arc<AmazonS3>>,
    /// The one that is asked first.
    first: AtomicUsize,
    /// Rounds through all of them after the first one.
    rounds: usize,
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} endpoints", self.inner.all.len())
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Endpoints {
    /// Over these, of which there is one at least; each tries nothing again by itself.
    pub(super) fn new(all: Vec<AmazonS3>, rounds: usize) -> Self {
        let all = all.into_iter().map(Arc::new).collect();
        Self { inner: Arc::new(Inner { all, first: AtomicUsize::new(0), rounds }) }
    }

    fn first(&self) -> &Arc<AmazonS3> {
        &self.inner.all[self.inner.first.load(Ordering::Relaxed) % self.inner.all.len()]
    }

    /// Asks one after the other until one answers, also that it refuses.
    async fn ask<T, F: Future<Output = Result<T>>>(
        &self,
        work: impl Fn(Arc<AmazonS3>) -> F,
    ) -> Result<T> {
        let count = self.inner.all.len();
        let mut rest = REST_FIRST;
        let mut round = 0;
        loop {
            let start = self.inner.first.load(Ordering::Relaxed);
            let mut failed = None;
            for at in (0..count).map(|step| (start + step) % count) {
                match work(Arc::clone(&self.inner.all[at])).await {
                    Err(cause) if s3::is_elsewhere_perhaps(&cause) => failed = Some(cause),
                    answered => {
                        self.inner.first.store(at, Ordering::Relaxed);
                        return answered;
                    }
                }
            }
            match failed {
                Some(cause) if round >= self.inner.rounds => return Err(cause),
                Some(_) | None => {}
            }
            round += 1;
            tokio::time::sleep(rest).await;
            rest = REST_MAX.min(rest * 2);
        }
    }
}

#[async_trait]
impl ObjectStore for Endpoints {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.ask(|at| {
            let (payload, options) = (payload.clone(), options.clone());
            async move { at.put_opts(location, payload, options).await }
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let id = self
            .ask(|at| {
                let options = options.clone();
                async move { at.create_multipart_opts(location, options).await }
            })
            .await?;
        let parts = Arc::default();
        let of = Arc::new((self.clone(), location.clone(), id));
        Ok(Box::new(Parts { of, next: 0, parts }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.ask(|at| {
            let options = options.clone();
            async move { at.get_opts(location, options).await }
        })
        .await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.ask(|at| async move { at.get_ranges(location, ranges).await }).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let endpoints = self.clone();
        let delete = move |location: Result<Path>| {
            let endpoints = endpoints.clone();
            async move {
                let location = location?;
                endpoints
                    .ask(|at| {
                        let location = location.clone();
                        async move { at.delete(&location).await }
                    })
                    .await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    /// A list that breaks off is not gone on with elsewhere: whoever asks begins again.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.first().list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.ask(|at| async move { at.list_with_delimiter(prefix).await }).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.ask(|at| {
            let options = options.clone();
            async move { at.copy_opts(from, to, options).await }
        })
        .await
    }
}

/// An upload in parts.
#[derive(Debug)]
struct Parts {
    /// The bucket, the key and the number of the upload.
    of: Arc<(Endpoints, Path, String)>,
    next: usize,
    /// The parts that arrived, by their numbers.
    parts: Arc<std::sync::Mutex<Vec<(usize, PartId)>>>,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let number = self.next;
        self.next += 1;
        let (of, parts) = (Arc::clone(&self.of), Arc::clone(&self.parts));
        async move {
            let (endpoints, location, id) = of.as_ref();
            let part = endpoints
                .ask(|at| {
                    let data = data.clone();
                    async move { at.put_part(location, id, number, data).await }
                })
                .await?;
            let mut parts = parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            parts.push((number, part));
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut parts =
            self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        parts.sort_unstable_by_key(|(number, _)| *number);
        if parts.len() != self.next {
            let source = "not all parts have arrived".into();
            return Err(Error::Generic { store: "S3", source });
        }
        let parts: Vec<PartId> = parts.into_iter().map(|(_, part)| part).collect();
        let (endpoints, location, id) = self.of.as_ref();
        endpoints
            .ask(|at| {
                let parts = parts.clone();
                async move { at.complete_multipart(location, id, parts).await }
            })
            .await
    }

    async fn abort(&mut self) -> Result<()> {
        let (endpoints, location, id) = self.of.as_ref();
        endpoints.ask(|at| async move { at.abort_multipart(location, id).await }).await
    }
}
