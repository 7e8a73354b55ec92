//! Uploads: bounded work on the runtime's blocking threads.

use std::{fmt::Display, sync::Arc};

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Ingest, IngestError, IngestResult, IngestedItem, ItemBundle, PendingUploads, UploadSpool,
    catch_panics,
};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit;
use model::ItemKey;
use model::item::MetadataField;

/// Uploads that may wait for a free slot; more are answered 503.
const UPLOADS_WAITING_MAX: usize = 16;
/// Descriptions and pictures of unpublished uploads that are made at a time; further ones wait. They share the
/// workers of ingest, where more would delay wire feeds.
const UPLOAD_READINGS_MAX: usize = 2;

/// Ingests uploads over the network; cheap to clone.
#[derive(Clone)]
pub struct Uploads {
    inner: Arc<UploadsInner>,
}

struct UploadsInner {
    ingest: Ingest,
    spool: UploadSpool,
    /// Uploads that are received in parts.
    pending: PendingUploads,
    /// Permits for uploads in progress or waiting.
    permits: Arc<Semaphore>,
    /// Permits for descriptions and pictures of uploads.
    readings: Arc<Semaphore>,
    /// Permits for uploads that are being ingested.
    workers: Arc<Semaphore>,
}

/// The permit for one upload, or for one reading. Dropping it makes room for one more.
#[derive(Debug)]
pub struct UploadPermit {
    _permit: OwnedSemaphorePermit,
}

impl Uploads {
    /// Creates the uploads, which ingest `workers` items at a time.
    pub fn new(
        ingest: Ingest,
        spool: UploadSpool,
        pending: PendingUploads,
        workers: usize,
    ) -> Self {
        // An upload that waits for a worker holds files in the spool, so the number of waiting uploads is limited
        // too.
        let permits = Arc::new(Semaphore::new(workers + UPLOADS_WAITING_MAX));
        let readings = Arc::new(Semaphore::new(UPLOAD_READINGS_MAX));
        let workers = Arc::new(Semaphore::new(workers));
        let inner = UploadsInner { ingest, spool, pending, permits, readings, workers };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the spool for files that are being uploaded.
    pub fn spool(&self) -> &UploadSpool {
        &self.inner.spool
    }

    /// Returns the uploads that are received in parts.
    pub fn pending(&self) -> &PendingUploads {
        &self.inner.pending
    }

    /// Returns the fields that are mandatory in items that editors save or publish.
    pub fn required_fields(&self) -> &[MetadataField] {
        &self.inner.ingest.required_fields
    }

    /// Admits an upload.
    ///
    /// Fails with [`ErrorKind::Overloaded`] if too many are in progress.
    pub fn admit(&self) -> Result<UploadPermit> {
        match Arc::clone(&self.inner.permits).try_acquire_owned() {
            Ok(permit) => Ok(UploadPermit { _permit: permit }),
            Err(_) => Err(Error::overloaded("uploads", "Too many uploads are in progress")),
        }
    }

    /// Admits the description or the picture of an upload as soon as few enough others are in progress. They have
    /// permits of their own, so that editors who look at their uploads do not make a wire feed fail.
    pub async fn admit_reading(&self) -> Result<UploadPermit> {
        let permit = Arc::clone(&self.inner.readings).acquire_owned().await;
        Ok(UploadPermit { _permit: permit.map_err(Error::internal)? })
    }

    /// Ingests an item as soon as a worker is free.
    ///
    /// The outer error is a failure of the service, the inner error is the refusal of the item.
    pub async fn ingest(
        &self,
        bundle: ItemBundle,
        now: Timestamp,
    ) -> Result<IngestResult<IngestedItem>> {
        let key = bundle.key.clone();
        let outcome = self.work(move |ingest| ingest.ingest_bundle(&bundle, now)).await;
        self.record_failure(&key, &outcome, now);
        outcome
    }

    /// Records a refusal of `subject`, or a failure of the service to ingest it.
    pub(super) fn record_failure<T>(
        &self,
        subject: impl Display,
        outcome: &Result<IngestResult<T>>,
        now: Timestamp,
    ) {
        match outcome {
            Ok(Ok(_)) => {}
            Ok(Err(refused)) => self.inner.ingest.record_error(subject, refused, now),
            Err(failed) => self.inner.ingest.record_error(subject, failed, now),
        }
    }

    /// Withdraws the item `key`, and returns whether it exists.
    pub async fn withdraw(&self, key: ItemKey, now: Timestamp) -> Result<bool> {
        self.work(move |ingest| ingest.withdraw(&key, now)).await?.map_err(Error::internal)
    }

    /// Returns the ingest itself, for operations other than uploads.
    pub(super) fn ingest_here(&self) -> &Ingest {
        &self.inner.ingest
    }

    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ingest) -> IngestResult<T> + Send + 'static,
    ) -> Result<IngestResult<T>> {
        let worker_permit = Arc::clone(&self.inner.workers).acquire_owned().await;
        let worker_permit = worker_permit.map_err(Error::internal)?;
        let inner = Arc::clone(&self.inner);
        // The caller's context is bound to its task, and the work runs on a different thread.
        let audit_context = audit::capture_context();
        // The work continues when the client disconnects, so it holds its permit itself.
        let task = tokio::task::spawn_blocking(move || {
            let outcome = audit_context.run(|| catch_panics(|| work(&inner.ingest)));
            drop(worker_permit);
            outcome
        });
        match task.await.map_err(Error::internal)? {
            // A database error retains its kind: a full queue is not an outage.
            Err(IngestError::Db(cause)) => Err(cause.into()),
            Err(cause) if cause.is_internal() => {
                Err(Error::new(ErrorKind::Unavailable, "The archive cannot be written now")
                    .with_source(cause))
            }
            outcome => Ok(outcome),
        }
    }
}
