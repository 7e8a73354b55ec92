//! Uploads an object in parts. The object appears when the upload is finished. Dropping an unfinished upload
//! aborts it.

use std::collections::VecDeque;

use bytes::Bytes;
use object_store::{MultipartUpload, PutPayload, path::Path};

use super::{Bucket, BucketFailure, PendingReply};

/// Parts of one original in flight.
const BUCKET_PARTS_MAX: usize = 3;

pub(super) struct PartUpload<'a> {
    bucket: &'a Bucket,
    /// `Some` until the upload is finished.
    parts: Option<Box<dyn MultipartUpload>>,
    in_flight: VecDeque<PendingReply<()>>,
}

impl<'a> PartUpload<'a> {
    pub(super) fn begin(bucket: &'a Bucket, key: &Path) -> Result<Self, BucketFailure> {
        let parts = Some(bucket.begin_upload(key)?);
        Ok(Self { bucket, parts, in_flight: VecDeque::new() })
    }

    /// Sends the next part. Waits while the maximum number of parts is in flight.
    pub(super) fn push(&mut self, part: Bytes) -> Result<(), BucketFailure> {
        if self.in_flight.len() >= BUCKET_PARTS_MAX
            && let Some(first) = self.in_flight.pop_front()
        {
            first.wait()?;
        }
        if let Some(parts) = &mut self.parts {
            let bytes = part.len() as u64;
            let sent = parts.put_part(PutPayload::from_bytes(part));
            self.in_flight.push_back(self.bucket.request(bytes, sent));
        }
        Ok(())
    }

    /// Waits for all parts and completes the object.
    pub(super) fn finish(mut self) -> Result<(), BucketFailure> {
        for part in self.in_flight.drain(..) {
            part.wait()?;
        }
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        let finish = async move {
            let done = parts.complete().await;
            Ok((done, parts))
        };
        // Sent even while the circuit is open: the answer returns the parts, so that `drop` can abort them.
        let (done, parts) = self.bucket.request_through_open_circuit(finish).wait()?;
        // `drop` aborts an upload that could not be completed.
        done.map(drop).map_err(|error| {
            self.parts = Some(parts);
            BucketFailure::Bucket(error)
        })
    }
}

impl Drop for PartUpload<'_> {
    /// Aborts an unfinished upload, because its parts would cost the bucket's owner money.
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        // A part that arrives after the abort would stay.
        for part in self.in_flight.drain(..) {
            drop(part.wait());
        }
        let aborted =
            self.bucket.request_through_open_circuit(async move { parts.abort().await }).wait();
        if aborted.is_err() {
            tracing::warn!(
                "multipart upload: abort failed, its parts remain; see docs/operations/s3.md"
            );
        }
    }
}
