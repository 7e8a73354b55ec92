//! Stores blobs: originals by content hash.
//!
//! A blob has a key (the SHA-256 of its bytes), a length and bytes. No code above this unit knows a path. A
//! blob appears whole or not at all and never changes, so readers need no lock, and writing the same bytes
//! twice is idempotent. The store is a folder or an S3 bucket. All calls block, on the disk or on the
//! network.

mod bucket;
mod circuit_breaker;
mod copy;
mod credentials;
mod derived;
mod derived_folder;
mod endpoints;
mod folder;
mod hashed_files;
mod mark;
mod originals;
mod parts;
mod s3;
mod s3_answer;
mod side_file_cache;
#[cfg(test)]
mod tests;
mod written;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use bucket::StartPolicy;
use bucket::{Bucket, BucketObject};
pub use copy::CopyOutcome;
pub use credentials::CredentialSource;
pub use derived::DerivedStore;
pub use derived_folder::DerivedKind;
use folder::BlobFolder;
use hashed_files::HashedFiles;
use mark::StoreOwner;
pub use mark::{StoreMark, StoreMismatch};
use originals::BucketBlobs;
pub use parts::PartStore;
pub use s3::BucketSettings;
pub use written::NewBlobs;

use crate::runtime::limits::BUCKET_READ_BYTES;
use model::ContentHash;

/// The reason that a blob could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No blob has this key.
    #[error("blob {0} is missing from the store")]
    Missing(ContentHash),
    /// The stored blob has a different length than at ingest.
    #[error("blob {hash} has {found} bytes, expected {expected}")]
    Length {
        hash: ContentHash,
        /// Length found, in bytes.
        found: u64,
        /// Length at ingest, in bytes.
        expected: u64,
    },
    /// The stored blob has different bytes than at ingest.
    #[error("blob {0} has other bytes than at ingest")]
    Corrupted(ContentHash),
    /// The disk or folder failed.
    #[error("blob store {path}: {cause}")]
    Io {
        /// Path of the folder or file.
        path: String,
        /// The error of the system. Not exposed as `source`, which would repeat it in messages.
        cause: io::Error,
    },
    /// The bucket failed, refused or did not answer.
    #[error("{place}: {cause}")]
    Unavailable {
        place: String,
        /// The bucket's error, or the reason that there was no answer. Not exposed as `source`, which would
        /// repeat it in messages.
        cause: io::Error,
    },
    /// The store belongs to a different archive, or has no mark.
    #[error("{place}: {why}")]
    OtherArchive {
        place: String,
        /// The mark found and the expected mark.
        why: String,
    },
    /// The bucket cannot be used with these settings.
    #[error("{setting}: {why}")]
    Setting {
        /// The setting that is likely to be wrong.
        setting: &'static str,
        why: String,
    },
}

/// The result of an operation of a blob store.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// Returns `Ok` for an error that concerns one blob, and `Err` for an error that concerns the whole
    /// store.
    fn refusal(self) -> Result<Self, Self> {
        match self {
            // A disk may fail at one file only, so a copy continues and reports it.
            Self::Missing(_) | Self::Length { .. } | Self::Corrupted(_) | Self::Io { .. } => {
                Ok(self)
            }
            Self::Unavailable { .. } | Self::OtherArchive { .. } | Self::Setting { .. } => {
                Err(self)
            }
        }
    }
}

/// Returns the error for a setting with which the bucket cannot be used.
fn bad(setting: &'static str, why: impl Into<String>) -> StoreError {
    StoreError::Setting { setting, why: why.into() }
}

/// Size of the pieces in which a file is copied, in bytes.
pub const COPY_BYTES: usize = 256 * 1024;

/// A blob store, in a folder or in a bucket.
#[derive(Clone, Debug)]
pub struct BlobStore {
    place: StoreLocation,
    owner: Arc<StoreOwner>,
    /// The list of blobs that this handle adds; `None` if this handle lists none.
    new_blobs: Option<NewBlobs>,
}

#[derive(Clone, Debug)]
enum StoreLocation {
    Folder(BlobFolder),
    Bucket(BucketBlobs),
}

impl BlobStore {
    /// Opens the folder `dir`, and creates it if it is missing.
    ///
    /// Fails with [`StoreError::Io`] if it cannot be created or written.
    pub fn open(dir: &Path) -> StoreResult<Self> {
        Ok(Self::new(StoreLocation::Folder(BlobFolder::open(dir)?)))
    }

    /// Opens the existing folder `dir` for reading. It need not be writable.
    pub fn open_existing(dir: &Path) -> Self {
        Self::new(StoreLocation::Folder(BlobFolder::at(dir)))
    }

    fn new(place: StoreLocation) -> Self {
        Self { place, owner: Arc::default(), new_blobs: None }
    }

    /// Returns a handle of the same store with a list of the blobs that the handle adds.
    pub fn listing_new(&self) -> (Self, NewBlobs) {
        let new_blobs = NewBlobs::default();
        (Self { new_blobs: Some(new_blobs.clone()), ..self.clone() }, new_blobs)
    }

    /// Notes that the blob is about to be added to the store.
    fn note_new(&self, hash: ContentHash) {
        if let Some(new_blobs) = &self.new_blobs {
            new_blobs.note(hash);
        }
    }

    /// Opens a bucket. Files to be uploaded are created in the folder `scratch`.
    ///
    /// Fails with [`StoreError::Setting`] if the bucket does not answer or refuses.
    pub fn in_bucket(
        settings: &BucketSettings,
        scratch: &Path,
        policy: StartPolicy,
    ) -> StoreResult<Self> {
        Self::over(Bucket::open(settings, policy)?, scratch)
    }

    fn over(bucket: Bucket, scratch: &Path) -> StoreResult<Self> {
        let scratch = BlobFolder::open(scratch)?;
        Ok(Self::new(StoreLocation::Bucket(BucketBlobs { bucket, scratch })))
    }

    /// Opens the derived files of the blobs: in the folder `dir`, or beside the blobs in their bucket with at
    /// most `copies_bytes` bytes of side files cached in `dir`.
    pub fn derived(&self, dir: &Path, copies_bytes: u64) -> StoreResult<DerivedStore> {
        match &self.place {
            StoreLocation::Folder(_) => DerivedStore::open(dir),
            StoreLocation::Bucket(blobs) => {
                DerivedStore::in_bucket(blobs.bucket.clone(), dir, copies_bytes)
            }
        }
    }

    /// Proves write access. Opening a folder has already proved it. In a bucket, a small object is written,
    /// read and removed.
    ///
    /// Fails with [`StoreError::Setting`] if the bucket refuses, and with [`StoreError::Unavailable`] if it
    /// does not answer in time.
    pub fn check_writable(&self) -> StoreResult<()> {
        let StoreLocation::Bucket(blobs) = &self.place else { return Ok(()) };
        blobs.bucket.check_writable()
    }

    /// Writes the state of the bucket's circuit to the metrics. It may have changed before the metrics were
    /// collected.
    pub fn report(&self) {
        if let StoreLocation::Bucket(blobs) = &self.place {
            blobs.bucket.report();
        }
    }

    /// Returns whether each read uses the network.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, StoreLocation::Bucket(_))
    }

    /// Writes `bytes` under their hash. An existing blob stays unchanged.
    ///
    /// When this returns, the blob and its name are on disk.
    pub fn write(&self, bytes: &[u8]) -> StoreResult<ContentHash> {
        let hash = ContentHash::new(bytes);
        // Every write checks the mark: originals in the store of a different archive would be lost.
        self.check_owner()?;
        let note_new = |hash| self.note_new(hash);
        match &self.place {
            StoreLocation::Folder(folder) => folder.write(hash, bytes, &note_new)?,
            StoreLocation::Bucket(blobs) => blobs.write(hash, bytes, &note_new)?,
        }
        Ok(hash)
    }

    /// Copies the file at `source` into the store. Calls `seen` with each piece of [`COPY_BYTES`] bytes, the
    /// last one shorter.
    ///
    /// When this returns, the blob and its name are on disk.
    pub fn copy(
        &self,
        source: &Path,
        seen: &mut dyn FnMut(&[u8]),
    ) -> StoreResult<(ContentHash, u64)> {
        self.check_owner()?;
        let note_new = |hash| self.note_new(hash);
        match &self.place {
            StoreLocation::Folder(folder) => folder.copy(source, seen, &note_new),
            StoreLocation::Bucket(blobs) => blobs.copy(source, seen, &note_new),
        }
    }

    /// Returns a path for a file that is created first and stored later. [`BlobStore::sweep`] removes files
    /// that an interrupted process leaves there.
    pub fn temporary(&self, extension: &str) -> PathBuf {
        self.local().temporary(extension)
    }

    fn files(&self) -> HashedFiles<'_> {
        match &self.place {
            StoreLocation::Folder(folder) => HashedFiles::Folder(folder.dir.clone()),
            StoreLocation::Bucket(blobs) => HashedFiles::Objects(&blobs.bucket, originals::FOLDER),
        }
    }

    /// Returns the local folder for files in progress.
    fn local(&self) -> &BlobFolder {
        match &self.place {
            StoreLocation::Folder(folder) => folder,
            StoreLocation::Bucket(blobs) => &blobs.scratch,
        }
    }

    /// Reads a whole blob of `length` bytes.
    pub fn read(&self, hash: ContentHash, length: u64) -> StoreResult<Vec<u8>> {
        self.reader(hash, length)?.read(0..length)
    }

    /// Opens a blob of `length` bytes for reading ranges of it.
    pub fn reader(&self, hash: ContentHash, length: u64) -> StoreResult<BlobReader> {
        self.files().reader(hash, length)
    }

    /// Lists the keys of all blobs, sorted.
    pub fn list(&self) -> StoreResult<Vec<ContentHash>> {
        self.files().list()
    }

    /// Lists the keys of all blobs with their lengths in bytes, sorted by key.
    ///
    /// Reads no blob: a folder returns the metadata of each file, a bucket includes them in its listing.
    pub fn list_with_sizes(&self) -> StoreResult<Vec<(ContentHash, u64)>> {
        match &self.place {
            StoreLocation::Folder(folder) => folder.sizes(),
            StoreLocation::Bucket(blobs) => blobs.bucket.sizes(originals::FOLDER),
        }
    }

    /// Removes the files that interrupted writes left on this machine. Returns their number.
    ///
    /// A bucket does not list parts of interrupted uploads. Its own lifecycle rule removes them.
    pub fn sweep(&self) -> StoreResult<usize> {
        self.local().sweep()
    }

    /// Lists the files that [`BlobStore::sweep`] would remove.
    pub fn leftovers(&self) -> StoreResult<Vec<PathBuf>> {
        self.local().leftovers()
    }

    /// Returns whether the store contains no blob.
    pub fn is_empty(&self) -> StoreResult<bool> {
        match &self.place {
            StoreLocation::Folder(_) => Ok(self.list()?.is_empty()),
            StoreLocation::Bucket(blobs) => blobs.bucket.is_empty(originals::FOLDER),
        }
    }

    /// Returns the age of a blob; `None` if it does not exist.
    pub fn age(&self, hash: ContentHash) -> StoreResult<Option<Duration>> {
        self.files().age(hash)
    }

    /// Copies a blob of `length` bytes from a different store, unless one of this length exists, and verifies
    /// its bytes.
    ///
    /// When this returns, the blob is on disk. [`BlobStore::flush`] also makes its name durable. Fails if
    /// this store cannot be written, or if the other store is a bucket that does not answer.
    pub fn copy_from(
        &self,
        from: &Self,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<CopyOutcome> {
        self.check_owner()?;
        // The existing blob is not read, so a second run of a backup or migration costs little. `replace`
        // handles blobs with wrong bytes.
        let present = match (&self.place, self.files().length(hash)) {
            // A file that cannot be examined is replaced.
            (StoreLocation::Folder(_), Err(_)) => None,
            (_, found) => found?,
        };
        if present == Some(length) {
            return Ok(CopyOutcome::AlreadyPresent);
        }
        self.replace_unchecked(from, hash, length)
    }

    /// Copies a blob from a different store even if one exists, to repair it. The existing blob is replaced
    /// only after the whole copy has been verified.
    pub fn replace(
        &self,
        from: &Self,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<CopyOutcome> {
        self.check_owner()?;
        self.replace_unchecked(from, hash, length)
    }

    /// Replaces a blob in this store, whose mark has been checked.
    fn replace_unchecked(
        &self,
        from: &Self,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<CopyOutcome> {
        let reader = match from.reader(hash, length) {
            Ok(reader) => reader,
            Err(error) => return error.refusal().map(CopyOutcome::Refused),
        };
        match &self.place {
            StoreLocation::Folder(folder) => folder.replace(&reader, hash),
            StoreLocation::Bucket(blobs) => blobs.replace(&reader, hash),
        }
    }

    /// Drops cached metadata of a blob, which may be some seconds old in a bucket, so that the next reader
    /// fetches it.
    pub fn invalidate(&self, hash: ContentHash) {
        if let StoreLocation::Bucket(blobs) = &self.place {
            blobs.bucket.invalidate(&blobs.key(hash));
        }
    }

    /// Returns whether the blob exists with the bytes of its hash; `false` if it cannot be read.
    pub fn is_intact(&self, hash: ContentHash, length: u64) -> bool {
        self.checksum(hash, length).is_ok_and(|found| found == hash)
    }

    /// Computes the hash of the blob's present bytes by reading them all.
    pub fn checksum(&self, hash: ContentHash, length: u64) -> StoreResult<ContentHash> {
        // The cached head of an object would hide that it was replaced.
        self.invalidate(hash);
        self.reader(hash, length)?.checksum()
    }

    /// Flushes the names of all blobs to disk.
    pub fn flush(&self) -> StoreResult<()> {
        // A bucket acknowledges an object only when it is durable.
        let StoreLocation::Folder(folder) = &self.place else { return Ok(()) };
        folder.flush()
    }

    /// Removes a blob. In the archive's own store, this needs coordination with all ingests, because they
    /// rely on the existence of blobs that they find.
    pub fn remove(&self, hash: ContentHash) -> StoreResult<()> {
        self.files().remove(hash)
    }
}

/// An open blob or derived file.
#[derive(Debug)]
pub struct BlobReader {
    hash: ContentHash,
    /// The length in bytes.
    pub length: u64,
    /// A number that changes when the blob is written to or replaced.
    pub stamp: u64,
    source: BlobSource,
}

#[derive(Debug)]
enum BlobSource {
    File(std::fs::File),
    Object(BucketObject),
}

impl BlobReader {
    /// Opens the file of `hash` at `path`, which must have `length` bytes.
    fn open(path: &Path, hash: ContentHash, length: u64) -> StoreResult<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::open(path).map_err(|cause| {
            if cause.kind() == io::ErrorKind::NotFound {
                StoreError::Missing(hash)
            } else {
                folder::failed(path)(cause)
            }
        })?;
        let metadata = file.metadata().map_err(folder::failed(path))?;
        if metadata.len() != length {
            return Err(StoreError::Length { hash, found: metadata.len(), expected: length });
        }
        // Includes the inode, because a file that replaces an old one may have the same time.
        let numbers = [metadata.ino(), metadata.dev(), metadata.mtime().cast_unsigned()];
        let stamp =
            numbers.into_iter().fold(metadata.mtime_nsec().cast_unsigned(), |stamp, number| {
                // Any good mixing function is sufficient: stamps are only compared for equality.
                (stamp ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            });
        Ok(Self { hash, length, stamp, source: BlobSource::File(file) })
    }

    fn of_object(hash: ContentHash, length: u64, object: BucketObject) -> Self {
        Self { hash, length, stamp: object.stamp(), source: BlobSource::Object(object) }
    }

    /// Returns the ranges of the whole blob, in pieces of an efficient size: multiples of [`COPY_BYTES`], the
    /// last one shorter.
    pub fn pieces(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (length, step) = match &self.source {
            BlobSource::File(_) => (self.length, COPY_BYTES as u64),
            // Larger steps, since each one is a request.
            BlobSource::Object(_) => (self.length, BUCKET_READ_BYTES),
        };
        (0..length.div_ceil(step)).map(move |index| index * step..length.min((index + 1) * step))
    }

    /// Reads the bytes `range`, which must be inside the blob.
    pub fn read(&self, range: Range<u64>) -> StoreResult<Vec<u8>> {
        match &self.source {
            BlobSource::File(file) => self.read_file(file, &range),
            BlobSource::Object(object) => object.read(range),
        }
    }

    /// Reads several ranges, concurrently if that is faster.
    pub fn read_many(&self, ranges: &[Range<u64>]) -> StoreResult<Vec<Vec<u8>>> {
        match &self.source {
            BlobSource::File(file) => {
                ranges.iter().map(|range| self.read_file(file, range)).collect()
            }
            BlobSource::Object(object) => object.read_many(ranges),
        }
    }

    /// Computes the hash of the present bytes by reading them all.
    fn checksum(&self) -> StoreResult<ContentHash> {
        let mut found = ContentHash::hasher();
        for range in self.pieces() {
            found.update(&self.read(range)?);
        }
        Ok(found.finish())
    }

    fn read_file(&self, file: &std::fs::File, range: &Range<u64>) -> StoreResult<Vec<u8>> {
        use std::io::Read;
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|cause| self.io_error(io::Error::other(cause)))?;
        // `read_to_end` into spare capacity avoids clearing the memory first.
        let mut bytes = Vec::with_capacity(length);
        let cursor = FileCursor { file, position: range.start };
        let read = cursor.take(length as u64).read_to_end(&mut bytes);
        read.map_err(|cause| self.io_error(cause))?;
        // The file was cut off after it was opened.
        if bytes.len() < length {
            return Err(self.io_error(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(bytes)
    }

    fn io_error(&self, cause: io::Error) -> StoreError {
        StoreError::Io { path: self.hash.to_string(), cause }
    }
}

/// Reads a file at its own position, so that threads can share the handle.
struct FileCursor<'a> {
    file: &'a std::fs::File,
    position: u64,
}

impl io::Read for FileCursor<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let read = self.file.read_at(bytes, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
