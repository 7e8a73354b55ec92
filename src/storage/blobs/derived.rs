//! Stores the files derived from blobs, by the blob's hash and their kind.
//!
//! Derived files can be rebuilt, so a write is not flushed to disk. A file appears whole or not at all, and
//! readers detect damage from a crash with their own checks. The files are stored beside the blobs, so that
//! several machines build them once. The side files of a bucket are also cached on the disk, since each
//! render of a picture needs its side file.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use uuid::Uuid;

use super::bucket::Bucket;
use super::folder::failed;
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
    #[must_use]
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
    #[must_use]
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
        let key = bucket.key(kind.as_str(), hash);
        bucket.send(&key, hash, bytes.len() as u64, None, &mut |range| {
            Some(Bytes::copy_from_slice(super::part(bytes, &range)))
        })?;
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
        match &self.location {
            DerivedLocation::Folder(files) => files.length(kind, hash),
            DerivedLocation::Bucket(bucket, _) => {
                bucket.length(&bucket.key(kind.as_str(), hash), hash)
            }
        }
    }

    /// Opens a file of `length` bytes for reading ranges of it.
    pub fn reader(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        length: u64,
    ) -> Result<BlobReader, StoreError> {
        match &self.location {
            DerivedLocation::Folder(files) => files.reader(kind, hash, length),
            DerivedLocation::Bucket(bucket, _) => {
                let object = bucket.open_object(bucket.key(kind.as_str(), hash), hash, length)?;
                Ok(BlobReader::of_object(hash, length, object))
            }
        }
    }

    /// Removes a file. Succeeds if it does not exist.
    pub fn remove(&self, kind: DerivedKind, hash: ContentHash) -> Result<(), StoreError> {
        match &self.location {
            DerivedLocation::Folder(files) => files.remove(kind, hash),
            DerivedLocation::Bucket(bucket, cache) => {
                if kind == DerivedKind::Index {
                    cache.invalidate(hash);
                }
                bucket.remove(&bucket.key(kind.as_str(), hash), hash)
            }
        }
    }

    /// Lists the files that interrupted writes left on the disk.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        match &self.location {
            DerivedLocation::Folder(files) => files.leftovers(),
            // Uploads leave nothing on this machine; only the cache writes files.
            DerivedLocation::Bucket(_, cache) => cache.files().leftovers(),
        }
    }

    /// Lists the hashes that have a file of `kind`.
    pub fn list(&self, kind: DerivedKind) -> Result<Vec<ContentHash>, StoreError> {
        match &self.location {
            DerivedLocation::Folder(files) => files.list(kind),
            DerivedLocation::Bucket(bucket, _) => bucket.list(kind.as_str()),
        }
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

    fn path(&self, kind: DerivedKind, hash: ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.dir.join(kind.as_str()).join(&name[..2]).join(&name[2..])
    }

    pub(super) fn write(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        let tmp = self.dir.join(kind.as_str()).join(format!("tmp-{}", Uuid::now_v7()));
        // Renamed last: a reader sees the earlier file or the complete new one.
        let written = fs::File::create_new(&tmp).and_then(|mut file| {
            file.write_all(bytes)?;
            if let Some(parent) = path.parent() {
                modes::create_private_folder(parent)?;
            }
            modes::give_to_owner_of_folder(&tmp);
            fs::rename(&tmp, &path)
        });
        written.map_err(|cause| {
            // The error of the write is reported. A failed removal of its remains adds nothing.
            drop(fs::remove_file(&tmp));
            failed(&path)(cause)
        })
    }

    pub(super) fn read(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(kind, hash);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() <= bytes_max => {
                fs::read(&path).map(Some).map_err(failed(&path))
            }
            // Longer than any valid file of this kind: it is damaged, and is rebuilt like a missing one.
            Ok(_) => Ok(None),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    pub(super) fn length(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
    ) -> Result<Option<u64>, StoreError> {
        let path = self.path(kind, hash);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    pub(super) fn reader(
        &self,
        kind: DerivedKind,
        hash: ContentHash,
        length: u64,
    ) -> Result<BlobReader, StoreError> {
        BlobReader::open(&self.path(kind, hash), hash, length)
    }

    pub(super) fn remove(&self, kind: DerivedKind, hash: ContentHash) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(&path)(cause)),
            // Removal is idempotent: a different process may have removed the file first.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for kind in DerivedKind::iter() {
            found.extend(super::folder::abandoned(&self.folder(kind), "tmp-")?);
        }
        Ok(found)
    }

    pub(super) fn list(&self, kind: DerivedKind) -> Result<Vec<ContentHash>, StoreError> {
        super::folder::list(&self.folder(kind))
    }
}
