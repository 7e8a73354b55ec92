//! Stores the files derived from blobs, by the blob's hash and their kind.
//!
//! Derived files can be rebuilt, so a write is not flushed to disk. A file appears whole or not at all, and
//! readers detect damage from a crash with their own checks. The files are stored beside the blobs, so that
//! several machines build them once. The side files of a bucket are also cached on the disk, since each
//! render of a picture needs its side file.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use uuid::Uuid;

use super::bucket::Bucket;
use super::folder::{abandoned, failed, find_metadata, move_in_place, path_in, remove_and_report};
use super::hashed_files::HashedFiles;
use super::side_file_cache::SideFileCache;
use super::{BlobReader, StoreError};
use crate::runtime::modes;
use model::ContentHash;

/// The kind of a derived file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DerivedKind {
    /// The entry points for random access to an original.
    Index,
    /// An original's picture in a format that permits random access.
    Working,
    /// The picture data of the standard renditions.
    Standard,
}

impl DerivedKind {
    /// Returns the word in file names and messages.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

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
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { location: DerivedLocation::Folder(DerivedFolder::open(dir)?) })
    }

    /// Opens the derived files of a bucket. `dir` caches at most `copies_bytes` bytes of side files.
    pub(super) fn in_bucket(
        bucket: Bucket,
        dir: &Path,
        copies_bytes: u64,
    ) -> Result<Self, StoreError> {
        let cache = SideFileCache::open(dir, copies_bytes)?;
        Ok(Self { location: DerivedLocation::Bucket(bucket, Arc::new(cache)) })
    }

    /// Returns whether each read uses the network.
    pub fn is_remote(&self) -> bool {
        matches!(self.location, DerivedLocation::Bucket(..))
    }

    /// Writes a file, replacing an existing one.
    pub fn write(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let (bucket, cache) = match &self.location {
            DerivedLocation::Folder(files) => return files.write(kind, hash, bytes),
            DerivedLocation::Bucket(bucket, cache) => (bucket, cache),
        };
        bucket.write(&bucket.key(kind.as_str(), hash), hash, bytes)?;
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
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let (bucket, cache) = match &self.location {
            DerivedLocation::Folder(files) => return files.read(kind, hash, bytes_max),
            DerivedLocation::Bucket(bucket, cache) => (bucket, cache),
        };
        // The other kinds can be as large as originals, so they are not cached.
        if kind != DerivedKind::Index {
            return bucket.read(bucket.key(kind.as_str(), hash), hash, bytes_max);
        }
        if let Some(copy) = cache.read(hash, bytes_max) {
            return Ok(Some(copy));
        }
        let found = bucket.read(bucket.key(kind.as_str(), hash), hash, bytes_max)?;
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
    pub fn length(&self, kind: DerivedKind, hash: ContentHash) -> Result<Option<u64>, StoreError> {
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
    ) -> Result<BlobReader, StoreError> {
        self.files(kind).reader(hash, length)
    }

    /// Removes a file. Succeeds if it does not exist.
    pub fn remove(&self, kind: DerivedKind, hash: ContentHash) -> Result<(), StoreError> {
        if kind == DerivedKind::Index {
            self.invalidate(hash);
        }
        self.files(kind).remove(hash)
    }

    /// Lists the files that interrupted writes left on the disk.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        match &self.location {
            DerivedLocation::Folder(files) => files.leftovers(),
            // Uploads leave nothing on this machine; only the cache writes files.
            DerivedLocation::Bucket(_, cache) => cache.files.leftovers(),
        }
    }

    /// Lists the hashes that have a file of `kind`.
    pub fn list(&self, kind: DerivedKind) -> Result<Vec<ContentHash>, StoreError> {
        self.files(kind).list()
    }
}

/// Derived files in a folder: `index/ab/cdef…`.
#[derive(Clone, Debug)]
pub(super) struct DerivedFolder {
    dir: PathBuf,
}

impl DerivedFolder {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        for kind in DerivedKind::iter() {
            let folder = dir.join(kind.as_str());
            modes::create_private_folder(&folder).map_err(failed(&folder))?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    pub(super) fn folder(&self, kind: DerivedKind) -> PathBuf {
        self.dir.join(kind.as_str())
    }

    pub(super) fn of_kind(&self, kind: DerivedKind) -> HashedFiles<'_> {
        HashedFiles::Folder(self.folder(kind))
    }

    pub(super) fn write(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let path = path_in(&self.folder(kind), hash);
        let tmp = self.folder(kind).join(format!("tmp-{}", Uuid::now_v7()));
        fs::File::create_new(&tmp)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| move_in_place(&tmp, &path))
            .map_err(remove_and_report(&tmp, &path))
    }

    pub(super) fn read(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = path_in(&self.folder(kind), hash);
        let metadata = find_metadata(&path)?;
        // A file longer than any valid one of this kind is damaged, and is rebuilt like a missing one.
        if metadata.is_none_or(|metadata| metadata.len() > bytes_max) {
            return Ok(None);
        }
        fs::read(&path).map(Some).map_err(failed(&path))
    }

    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for kind in DerivedKind::iter() {
            found.extend(abandoned(&self.folder(kind), "tmp-")?);
        }
        Ok(found)
    }
}
