//! Uploads: bounded work on the runtime's threads for blocking calls.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Ingest, IngestError, IngestedItem, ItemBundle, UploadSpool, catch_panics};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::UPLOADS_WAITING_MAX;
use crate::storage::audit;
use model::ItemKey;

/// What comes in over the network; cheap to clone.
#[derive(Clone)]
pub struct Uploads {
    inner: Arc<UploadsInner>,
}

struct UploadsInner {
    ingest: Ingest,
    spool: UploadSpool,
    /// Uploads that are under way or wait.
    permits: Arc<Semaphore>,
    /// Uploads that are taken in.
    workers: Arc<Semaphore>,
}

/// The right to upload; it ends when this is dropped.
#[derive(Debug)]
pub struct UploadPermit {
    _permit: OwnedSemaphorePermit,
}

impl Uploads {
    /// Takes in `workers` uploads at a time.
    #[must_use]
    pub fn new(ingest: Ingest, spool: UploadSpool, workers: usize) -> Self {
        let seats = Arc::new(Semaphore::new(workers + UPLOADS_WAITING_MAX));
        let workers = Arc::new(Semaphore::new(workers));
        Self { inner: Arc::new(UploadsInner { ingest, spool, permits: seats, workers }) }
    }

    /// Where files lie while they are uploaded.
    #[must_use]
    pub fn spool(&self) -> &UploadSpool {
        &self.inner.spool
    }

    /// Makes room for an upload.
    ///
    /// Fails with [`ErrorKind::Overloaded`] when too many are under way.
    pub fn admit(&self) -> Result<UploadPermit> {
        match Arc::clone(&self.inner.permits).try_acquire_owned() {
            Ok(permit) => Ok(UploadPermit { _permit: permit }),
            Err(_) => Err(Error::overloaded("uploads", "Too many uploads are under way")),
        }
    }

    /// Takes an item in when it is its turn.
    ///
    /// The outer failure is ours, the inner one says what is wrong with the item.
    pub async fn ingest(
        &self,
        bundle: ItemBundle,
        now: Timestamp,
    ) -> Result<Result<IngestedItem, IngestError>> {
        self.work(move |ingest| ingest.ingest_bundle(&bundle, now)).await
    }

    /// Takes the item `key` out; gives whether it is there.
    pub async fn withdraw(&self, key: ItemKey, now: Timestamp) -> Result<bool> {
        self.work(move |ingest| ingest.withdraw(&key, now)).await?.map_err(Error::internal)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ingest) -> Result<T, IngestError> + Send + 'static,
    ) -> Result<Result<T, IngestError>> {
        let turn = Arc::clone(&self.inner.workers).acquire_owned().await;
        let turn = turn.map_err(Error::internal)?;
        let inner = Arc::clone(&self.inner);
        let carried = audit::capture_context();
        // The work goes on when the client leaves, and so does its turn.
        let done = tokio::task::spawn_blocking(move || {
            let outcome = carried.run(|| catch_panics(|| work(&inner.ingest)));
            drop(turn);
            outcome
        });
        match done.await.map_err(Error::internal)? {
            Err(IngestError::Db(cause)) => Err(cause.into()),
            Err(cause) if cause.is_internal() => {
                Err(Error::new(ErrorKind::Unavailable, "The archive cannot be written now")
                    .with_source(cause))
            }
            outcome => Ok(outcome),
        }
    }
}
