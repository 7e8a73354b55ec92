//! Files that are stored under hashes, `ab/cdef…`, in a folder or in a bucket. Originals, the parts of uploads
//! and each kind of derived files are one such set.

use std::{fs, io, path::PathBuf, time::Duration};

use super::bucket::Bucket;
use super::folder::{failed, find_metadata, list, path_in};
use super::{BlobReader, StoreResult};
use model::ContentHash;

/// A set of files, each stored under a hash.
pub(super) enum HashedFiles<'a> {
    /// The files in this folder.
    Folder(PathBuf),
    /// The objects in this folder under the prefix of a bucket.
    Objects(&'a Bucket, &'static str),
}

impl HashedFiles<'_> {
    /// Opens a file of `length` bytes for reading ranges of it.
    pub(super) fn reader(&self, hash: ContentHash, length: u64) -> StoreResult<BlobReader> {
        match self {
            Self::Folder(dir) => BlobReader::open(&path_in(dir, hash), hash, length),
            Self::Objects(bucket, folder) => {
                let object = bucket.open_object(bucket.key(folder, hash), length)?;
                Ok(BlobReader::of_object(hash, length, object))
            }
        }
    }

    /// Returns the length of a file in bytes; `None` if it does not exist.
    pub(super) fn length(&self, hash: ContentHash) -> StoreResult<Option<u64>> {
        match self {
            Self::Folder(dir) => {
                Ok(find_metadata(&path_in(dir, hash))?.map(|metadata| metadata.len()))
            }
            Self::Objects(bucket, folder) => bucket.length(&bucket.key(folder, hash)),
        }
    }

    /// Returns the age of a file; `None` if it does not exist.
    pub(super) fn age(&self, hash: ContentHash) -> StoreResult<Option<Duration>> {
        match self {
            Self::Folder(dir) => {
                let path = path_in(dir, hash);
                let Some(metadata) = find_metadata(&path)? else { return Ok(None) };
                let written = metadata.modified().map_err(failed(&path))?;
                // A time in the future, from a clock that differs, counts as now.
                Ok(Some(written.elapsed().unwrap_or_default()))
            }
            Self::Objects(bucket, folder) => bucket.age(&bucket.key(folder, hash)),
        }
    }

    /// Removes a file. Idempotent: a different process may have removed it first.
    pub(super) fn remove(&self, hash: ContentHash) -> StoreResult<()> {
        match self {
            Self::Folder(dir) => {
                let path = path_in(dir, hash);
                match fs::remove_file(&path) {
                    Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                        Err(failed(&path)(cause))
                    }
                    Ok(()) | Err(_) => Ok(()),
                }
            }
            Self::Objects(bucket, folder) => bucket.remove(&bucket.key(folder, hash)),
        }
    }

    /// Lists the hashes that have a file, sorted.
    pub(super) fn list(&self) -> StoreResult<Vec<ContentHash>> {
        match self {
            Self::Folder(dir) => list(dir),
            Self::Objects(bucket, folder) => bucket.list(folder),
        }
    }
}
