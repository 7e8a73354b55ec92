//! Stores originals in a bucket: `originals/ab/cdef…` by hash.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::bucket::{Bucket, ObjectKey};
use super::folder::{BlobFolder, failed, read_pieces};
use super::hashed_files::HashedFiles;
use super::written::NoteNew;
use super::{BlobReader, CopyOutcome, StoreError, StoreResult};
use model::ContentHash;

/// The folder of originals under the prefix.
pub(super) const FOLDER: &str = "originals";

/// The blobs of a bucket, and a local folder for files in progress.
#[derive(Clone, Debug)]
pub(super) struct BucketBlobs {
    pub(super) bucket: Bucket,
    pub(super) scratch: BlobFolder,
}

impl BucketBlobs {
    pub(super) fn key(&self, hash: ContentHash) -> ObjectKey {
        self.bucket.key(FOLDER, hash)
    }

    /// Returns whether the bucket has the bytes of this hash. Sending a file again repairs a damaged blob, so
    /// the bytes are verified. Reading them costs as much as sending them.
    fn holds(&self, hash: ContentHash, length: u64, note_new: NoteNew<'_>) -> StoreResult<bool> {
        let found = self.bucket.length(&self.key(hash))?;
        if found.is_none() {
            note_new(hash);
        }
        if found != Some(length) {
            return Ok(false);
        }
        // The cached head may belong to an object that was replaced since.
        self.bucket.invalidate(&self.key(hash));
        let reader = HashedFiles::Objects(&self.bucket, FOLDER).reader(hash, length)?;
        Ok(reader.checksum()? == hash)
    }

    pub(super) fn write(
        &self,
        hash: ContentHash,
        bytes: &[u8],
        note_new: NoteNew<'_>,
    ) -> StoreResult<()> {
        if self.holds(hash, bytes.len() as u64, note_new)? {
            return Ok(());
        }
        self.bucket.write(&self.key(hash), bytes)
    }

    /// Copies a file into the bucket. An object's name is its hash, so the file is read twice: to compute the
    /// name, and to send it.
    pub(super) fn copy(
        &self,
        source: &Path,
        seen: &mut dyn FnMut(&[u8]),
        note_new: NoteNew<'_>,
    ) -> StoreResult<(ContentHash, u64)> {
        let mut file = File::open(source).map_err(failed(source))?;
        let read = read_pieces(&mut file, &mut |chunk| {
            seen(chunk);
            Ok(())
        });
        let (hash, length) = read.map_err(failed(source))?;
        if self.holds(hash, length, note_new)? {
            return Ok((hash, length));
        }
        let mut file = File::open(source).map_err(failed(source))?;
        // `send` only learns that there are no more bytes. The reason is stored here.
        let mut failure = None;
        let mut part = |range: Range<u64>| {
            let bytes = read_exactly(&mut file, range.end - range.start);
            bytes.map_err(|cause| failure = Some(cause)).ok()
        };
        // The hash is verified again: a file in a watched folder may be written to in the meantime.
        let sent = self.bucket.send(&self.key(hash), length, Some(hash), &mut part)?;
        if sent {
            return Ok((hash, length));
        }
        let cause =
            failure.unwrap_or_else(|| io::Error::other("it was written to while it was read"));
        Err(failed(source)(cause))
    }

    pub(super) fn replace(
        &self,
        reader: &BlobReader,
        hash: ContentHash,
    ) -> StoreResult<CopyOutcome> {
        let mut failure = None;
        let mut part = |range| {
            let bytes = reader.read(range).map(Bytes::from);
            bytes.map_err(|error| failure = Some(error)).ok()
        };
        let length = reader.length;
        let sent = self.bucket.send(&self.key(hash), length, Some(hash), &mut part)?;
        if sent {
            return Ok(CopyOutcome::Copied);
        }
        failure.unwrap_or(StoreError::Corrupted(hash)).refusal().map(CopyOutcome::Refused)
    }
}

fn read_exactly(file: &mut File, length: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    file.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}
