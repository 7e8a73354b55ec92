//! An upload in parts. It shows when it is finished; one that is dropped before is taken back.

use std::collections::VecDeque;

use bytes::Bytes;
use object_store::{MultipartUpload, PutPayload, path::Path};

use super::bucket::{Bucket, BucketFailure, PendingReply};
use crate::runtime::limits::BUCKET_PARTS_MAX;

pub(super) struct PartUpload<'a> {
    bucket: &'a Bucket,
    /// There until it is finished.
    parts: Option<Box<dyn MultipartUpload>>,
    under_way: VecDeque<PendingReply<()>>,
}

impl<'a> PartUpload<'a> {
    pub(super) fn begin(bucket: &'a Bucket, key: &Path) -> Result<Self, BucketFailure> {
        let parts = Some(bucket.begin_upload(key)?);
        Ok(Self { bucket, parts, under_way: VecDeque::new() })
    }

    /// Sends the next part; waits while as many are under way as may be.
    pub(super) fn push(&mut self, part: Bytes) -> Result<(), BucketFailure> {
        if self.under_way.len() >= BUCKET_PARTS_MAX
            && let Some(first) = self.under_way.pop_front()
        {
            first.wait()?;
        }
        if let Some(parts) = &mut self.parts {
            let bytes = part.len() as u64;
            let sent = parts.put_part(PutPayload::from_bytes(part));
            self.under_way.push_back(self.bucket.request(bytes, sent));
        }
        Ok(())
    }

    /// Waits for all parts and makes them one object.
    pub(super) fn finish(mut self) -> Result<(), BucketFailure> {
        for part in self.under_way.drain(..) {
            part.wait()?;
        }
        let Some(mut parts) = self.parts.take() else { return Ok(()) };
        let finish = async move {
            let done = parts.complete().await;
            Ok((done, parts))
        };
        // Whatever becomes of the bucket: the parts come back with the answer, to be taken back.
        let (done, parts) = self.bucket.request_through_open_circuit(finish).wait()?;
        // What could not be finished is taken back with the rest.
        done.map(drop).map_err(|error| {
            self.parts = Some(parts);
            BucketFailure::Bucket(error)
        })
    }
}

impl Drop for PartUpload<'_> {
    /// Parts that belong to nothing cost the bucket's owner money.
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        // One that arrives after the end of its upload would stay.
        for part in self.under_way.drain(..) {
            drop(part.wait());
        }
        let taken_back =
            self.bucket.request_through_open_circuit(async move { parts.abort().await }).wait();
        if taken_back.is_err() {
            tracing::warn!(
                "an upload in parts could not be taken back; see docs/operations/s3.md"
            );
        }
    }
}
