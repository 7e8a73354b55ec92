//! Stores the parts of unpublished uploads beside the originals, so that each node of a cluster can receive
//! the next part and assemble the file.
//!
//! A part has a random key instead of its hash, so that removing an upload never removes the bytes of a
//! different one. Unlike originals, parts are removed.

use std::time::Duration;

use super::folder::BlobFolder;
use super::hashed_files::HashedFiles;
use super::{BlobStore, StoreError, StoreLocation, StoreResult};
use model::ContentHash;

/// The folder of parts, beside the originals or under the prefix of their bucket.
const FOLDER: &str = "parts";

/// The parts of uploads; cheap to clone.
#[derive(Clone, Debug)]
pub struct PartStore {
    store: BlobStore,
}

impl BlobStore {
    /// Returns the store of the parts of uploads. It is created with the first part.
    pub fn parts(&self) -> PartStore {
        PartStore { store: self.clone() }
    }
}

fn folder_of(originals: &BlobFolder) -> BlobFolder {
    BlobFolder::at(&originals.dir.join(FOLDER))
}

impl PartStore {
    /// Writes a part under the unique key `key`. When this returns, the part is durable.
    pub fn write(&self, key: ContentHash, bytes: &[u8]) -> StoreResult<()> {
        // As with originals, parts in the store of a different archive would be lost.
        self.store.check_owner()?;
        match &self.store.place {
            StoreLocation::Folder(originals) => {
                // Nodes that only read the store must not create folders in it, so the folder is created
                // here.
                BlobFolder::open(&folder_of(originals).dir)?.write(key, bytes, &|_| {})
            }
            StoreLocation::Bucket(blobs) => {
                blobs.bucket.write(&blobs.bucket.key(FOLDER, key), bytes)
            }
        }
    }

    /// Reads a part of `length` bytes with the hash `checksum`.
    ///
    /// Fails with [`StoreError::Missing`] if it was removed, and with [`StoreError::Corrupted`] if its bytes
    /// differ.
    pub fn read(
        &self,
        key: ContentHash,
        length: u64,
        checksum: ContentHash,
    ) -> StoreResult<Vec<u8>> {
        let bytes = self.files().reader(key, length)?.read(0..length)?;
        if ContentHash::new(&bytes) == checksum {
            Ok(bytes)
        } else {
            Err(StoreError::Corrupted(key))
        }
    }

    /// Removes a part. Succeeds if it does not exist.
    pub fn remove(&self, key: ContentHash) -> StoreResult<()> {
        self.files().remove(key)
    }

    fn files(&self) -> HashedFiles<'_> {
        match &self.store.place {
            StoreLocation::Folder(originals) => HashedFiles::Folder(folder_of(originals).dir),
            StoreLocation::Bucket(blobs) => HashedFiles::Objects(&blobs.bucket, FOLDER),
        }
    }

    /// Lists the keys of all parts, sorted.
    pub fn list(&self) -> StoreResult<Vec<ContentHash>> {
        match self.files() {
            // The folder is created with the first part.
            HashedFiles::Folder(dir) if !dir.is_dir() => Ok(Vec::new()),
            files @ (HashedFiles::Folder(_) | HashedFiles::Objects(..)) => files.list(),
        }
    }

    /// Returns the age of a part; `None` if it does not exist.
    pub fn age(&self, key: ContentHash) -> StoreResult<Option<Duration>> {
        self.files().age(key)
    }

    /// Removes the files that interrupted writes left on this machine. Returns their number.
    pub fn sweep(&self) -> StoreResult<usize> {
        match &self.store.place {
            StoreLocation::Folder(originals) => {
                let parts = folder_of(originals);
                if parts.dir.is_dir() { parts.sweep() } else { Ok(0) }
            }
            // Parts are sent from memory, so no files are left.
            StoreLocation::Bucket(_) => Ok(0),
        }
    }
}
