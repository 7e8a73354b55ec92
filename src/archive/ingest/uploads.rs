//! Uploads: bounded work on the runtime's blocking threads.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Ingest, IngestError, IngestedItem, ItemBundle, UploadSpool, catch_panics};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::UPLOADS_WAITING_MAX;
use crate::storage::audit;
use model::ItemKey;

/// Ingests uploads over the network; cheap to clone.
#[derive(Clone)]
pub struct Uploads {
    inner: Arc<UploadsInner>,
}

struct UploadsInner {
    ingest: Ingest,
    spool: UploadSpool,
    /// Permits for uploads in progress or waiting.
    permits: Arc<Semaphore>,
    /// Permits for uploads that are being ingested.
    workers: Arc<Semaphore>,
}

/// The permit for one upload; dropping it makes room for another one.
#[derive(Debug)]
pub struct UploadPermit {
    _permit: OwnedSemaphorePermit,
}

impl Uploads {
    /// Ingests `workers` uploads at a time.
    #[must_use]
    pub fn new(ingest: Ingest, spool: UploadSpool, workers: usize) -> Self {
        let seats = Arc::new(Semaphore::new(workers + UPLOADS_WAITING_MAX));
        let workers = Arc::new(Semaphore::new(workers));
        Self { inner: Arc::new(UploadsInner { ingest, spool, permits: seats, workers }) }
    }

    /// The spool for files that are being uploaded.
    #[must_use]
    pub fn spool(&self) -> &UploadSpool {
        &self.inner.spool
    }

    /// Admits an upload.
    ///
    /// Fails with [`ErrorKind::Overloaded`] when too many are in progress.
    pub fn admit(&self) -> Result<UploadPermit> {
        match Arc::clone(&self.inner.permits).try_acquire_owned() {
            Ok(permit) => Ok(UploadPermit { _permit: permit }),
            Err(_) => Err(Error::overloaded("uploads", "Too many uploads are in progress")),
        }
    }

    /// Ingests an item as soon as a worker is free.
    ///
    /// The outer error is a failure of the service, the inner one the refusal of the item.
    pub async fn ingest(
        &self,
        bundle: ItemBundle,
        now: Timestamp,
    ) -> Result<Result<IngestedItem, IngestError>> {
        self.work(move |ingest| ingest.ingest_bundle(&bundle, now)).await
    }

    /// Withdraws the item `key`; returns whether it exists.
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
        // The work continues when the client disconnects, so it holds its permit itself.
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
