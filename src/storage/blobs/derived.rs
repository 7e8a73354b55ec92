//! Stores the files derived from blobs, by the blob's hash and their kind.
//!
//! Derived files can be rebuilt, so a write is not flushed to disk. A file appears whole or not at all, and
//! readers detect damage from a crash with their own checks. The files are stored beside the blobs, so that
//! several machines build them once. The side files of a bucket are also cached on the disk, since each
//! render of a picture needs its side file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bucket::Bucket;
use super::derived_folder::{DerivedFolder, DerivedKind};
use super::hashed_files::HashedFiles;
use super::side_file_cache::SideFileCache;
use super::{BlobReader, StoreResult};
use model::ContentHash;

/// The derived files of a store's blobs.
#[derive(Clone, Debug)]
pub struct DerivedStore {
    location: DerivedLocation,
}

#[derive(Clone, Debug)]
enum DerivedLocation {
    Folder(DerivedFolder),
    Bucket(Bucket, Arc<SideFileCache>),
}

impl DerivedStore {
    /// Opens the folder `dir`, and creates it if it is missing.
    pub fn open(dir: &Path) -> StoreResult<Self> {
        Ok(Self { location: DerivedLocation::Folder(DerivedFolder::open(dir)?) })
    }

    /// Opens the derived files of a bucket. `dir` caches at most `copies_bytes` bytes of side files.
    pub(super) fn in_bucket(bucket: Bucket, dir: &Path, copies_bytes: u64) -> StoreResult<Self> {
        let cache = SideFileCache::open(dir, copies_bytes)?;
        Ok(Self { location: DerivedLocation::Bucket(bucket, Arc::new(cache)) })
    }

    /// Returns whether each read uses the network.
    pub fn is_remote(&self) -> bool {
        matches!(self.location, DerivedLocation::Bucket(..))
    }

    /// Writes a file, replacing an existing one.
    pub fn write(&self, kind: DerivedKind, hash: ContentHash, bytes: &[u8]) -> StoreResult<()> {
        let (bucket, cache) = match &self.location {
            DerivedLocation::Folder(files) => return files.write(kind, hash, bytes),
            DerivedLocation::Bucket(bucket, cache) => (bucket, cache),
        };
        bucket.write(&bucket.key(kind.as_str(), hash), bytes)?;
        // Only side files are cached: each render of a picture reads one.
        if kind == DerivedKind::Index {
            cache.insert(hash, bytes);
        }
        Ok(())
    }

    /// Reads a file of at most `bytes_max` bytes. Returns `None` if it does not exist or is longer.
    pub fn read(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes_max: u64,
    ) -> StoreResult<Option<Vec<u8>>> {
        let (bucket, cache) = match &self.location {
            DerivedLocation::Folder(files) => return files.read(kind, hash, bytes_max),
            DerivedLocation::Bucket(bucket, cache) => (bucket, cache),
        };
        // The other kinds can be as large as originals, so they are not cached.
        if kind != DerivedKind::Index {
            return bucket.read(bucket.key(kind.as_str(), hash), bytes_max);
        }
        if let Some(copy) = cache.read(hash, bytes_max) {
            return Ok(Some(copy));
        }
        let found = bucket.read(bucket.key(kind.as_str(), hash), bytes_max)?;
        if let Some(bytes) = &found {
            cache.insert(hash, bytes);
        }
        Ok(found)
    }

    /// Removes the cached copy of a side file, so that the next read fetches it from the bucket. Returns
    /// `false` if there is no cache.
    pub fn invalidate(&self, hash: ContentHash) -> bool {
        match &self.location {
            DerivedLocation::Folder(_) => false,
            DerivedLocation::Bucket(_, cache) => {
                cache.invalidate(hash);
                true
            }
        }
    }

    /// Returns the length of a file in bytes; `None` if it does not exist.
    pub fn length(&self, kind: DerivedKind, hash: ContentHash) -> StoreResult<Option<u64>> {
        self.files(kind).length(hash)
    }

    fn files(&self, kind: DerivedKind) -> HashedFiles<'_> {
        match &self.location {
            DerivedLocation::Folder(files) => files.of_kind(kind),
            DerivedLocation::Bucket(bucket, _) => HashedFiles::Objects(bucket, kind.as_str()),
        }
    }

    /// Opens a file of `length` bytes for reading ranges of it.
    pub fn reader(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<BlobReader> {
        self.files(kind).reader(hash, length)
    }

    /// Removes a file. Succeeds if it does not exist.
    pub fn remove(&self, kind: DerivedKind, hash: ContentHash) -> StoreResult<()> {
        if kind == DerivedKind::Index {
            self.invalidate(hash);
        }
        self.files(kind).remove(hash)
    }

    /// Lists the files that interrupted writes left on the disk.
    pub fn leftovers(&self) -> StoreResult<Vec<PathBuf>> {
        match &self.location {
            DerivedLocation::Folder(files) => files.leftovers(),
            // Uploads leave nothing on this machine; only the cache writes files.
            DerivedLocation::Bucket(_, cache) => cache.files.leftovers(),
        }
    }

    /// Lists the hashes that have a file of `kind`.
    pub fn list(&self, kind: DerivedKind) -> StoreResult<Vec<ContentHash>> {
        self.files(kind).list()
    }
}
