//! The blob store: originals by content hash.
//!
//! A blob has a key (the SHA-256 of its bytes), a length and bytes; nothing above this unit knows
//! a path. A blob appears whole or not at all and never changes, so readers need no lock and
//! writing the same bytes twice is one blob. Today a folder lies behind it.

mod derived;
mod folder;

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
};

pub use derived::{Derived, Kind};
use folder::Folder;

use crate::types::Hash;

/// Why a blob could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No blob has this key.
    #[error("blob {0} is missing from the store")]
    Missing(Hash),
    /// The blob on disk is not as long as it was when it came in.
    #[error("blob {hash} has {found} bytes, expected {expected}")]
    Length {
        /// Its key.
        hash: Hash,
        /// Bytes found.
        found: u64,
        /// Bytes when it came in.
        expected: u64,
    },
    /// The disk or folder failed.
    #[error("blob store {path}: {cause}")]
    Io {
        /// Folder or file.
        path: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
}

/// Bytes of a piece of a file that is copied.
pub const COPY_BYTES: usize = 256 * 1024;

/// A blob store.
#[derive(Clone, Debug)]
pub struct Store {
    folder: Folder,
}

impl Store {
    /// Opens the folder `dir`, which is made when it is missing.
    ///
    /// Fails with [`StoreError::Io`] when it cannot be made or written.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { folder: Folder::open(dir)? })
    }

    /// Writes `bytes` under their hash; a blob that is there already stays as it is.
    ///
    /// When this returns the blob is on disk, name and all.
    pub fn write(&self, bytes: &[u8]) -> Result<Hash, StoreError> {
        let hash = Hash::of(bytes);
        self.folder.write(hash, bytes)?;
        Ok(hash)
    }

    /// Copies the file at `source` in, piece by piece; `seen` gets each piece of
    /// [`COPY_BYTES`] bytes, the last one shorter.
    ///
    /// When this returns the blob is on disk, name and all.
    pub fn copy(
        &self,
        source: &Path,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(Hash, u64), StoreError> {
        self.folder.copy(source, seen)
    }

    /// A path for a file that is being made and stored afterwards; what an interrupted process
    /// leaves there is swept as half-written blobs are.
    #[must_use]
    pub fn temporary(&self, extension: &str) -> PathBuf {
        self.folder.temporary(extension)
    }

    /// Reads a whole blob of `length` bytes.
    pub fn read(&self, hash: Hash, length: u64) -> Result<Vec<u8>, StoreError> {
        self.folder.read(hash, length)
    }

    /// Opens a blob of `length` bytes for reading parts of it.
    pub fn reader(&self, hash: Hash, length: u64) -> Result<BlobReader, StoreError> {
        self.folder.reader(hash, length)
    }

    /// The keys of all blobs, sorted.
    pub fn list(&self) -> Result<Vec<Hash>, StoreError> {
        self.folder.list()
    }

    /// Removes what interrupted writes left behind; gives how many files it removed.
    pub fn sweep(&self) -> Result<usize, StoreError> {
        self.folder.sweep()
    }
}

/// An open blob or derived file.
#[derive(Debug)]
pub struct BlobReader {
    hash: Hash,
    file: std::fs::File,
    length: u64,
    stamp: u64,
}

impl BlobReader {
    /// Opens the file of `hash` at `path`, which must have `length` bytes.
    fn open(path: &Path, hash: Hash, length: u64) -> Result<Self, StoreError> {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::open(path).map_err(|cause| {
            if cause.kind() == io::ErrorKind::NotFound {
                StoreError::Missing(hash)
            } else {
                folder::failed(path)(cause)
            }
        })?;
        let facts = file.metadata().map_err(folder::failed(path))?;
        if facts.len() != length {
            return Err(StoreError::Length { hash, found: facts.len(), expected: length });
        }
        let numbers = [facts.ino(), facts.dev(), facts.mtime().cast_unsigned()];
        let stamp =
            numbers.into_iter().fold(facts.mtime_nsec().cast_unsigned(), |stamp, number| {
                // Any good mixture does: two stamps are compared for being the same.
                (stamp ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            });
        Ok(Self { hash, file, length, stamp })
    }

    /// A number that changes when somebody writes the file or puts another in its place.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Bytes in all.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the bytes `range`, which lie inside the blob.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        use std::io::Read;
        let io = |cause| StoreError::Io { path: self.hash.to_string(), cause };
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|cause| io(io::Error::other(cause)))?;
        // Memory that is read into need not be cleared first.
        let mut bytes = Vec::with_capacity(length);
        let from = At { file: &self.file, at: range.start };
        from.take(range.end - range.start).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() < length {
            return Err(io(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(bytes)
    }
}

/// Reads a file from a place of its own, so that threads can share it.
struct At<'a> {
    file: &'a std::fs::File,
    at: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(dir.path()).expect("store");
        (dir, store)
    }

    #[test]
    fn what_is_written_is_read_back_whole_and_in_parts() {
        let (_dir, store) = store();
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let hash = store.write(&bytes).expect("written");
        assert_eq!(store.read(hash, 100_000).expect("read"), bytes);
        let reader = store.reader(hash, 100_000).expect("opened");
        assert_eq!(reader.read(99_990..100_000).expect("part"), bytes[99_990..]);
    }

    #[test]
    fn the_same_bytes_are_one_blob() {
        let (dir, store) = store();
        let first = store.write(b"picture").expect("written");
        assert_eq!(store.write(b"picture").expect("written"), first);
        let files = walk(dir.path());
        assert_eq!(files, 1);
    }

    fn walk(dir: &Path) -> usize {
        let entries =
            std::fs::read_dir(dir).expect("folder").map(|entry| entry.expect("entry").path());
        entries.map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
    }

    #[test]
    fn a_blob_of_another_length_is_refused() {
        let (_dir, store) = store();
        let hash = store.write(b"picture").expect("written");
        assert!(matches!(store.read(hash, 8), Err(StoreError::Length { found: 7, .. })));
        assert!(matches!(store.read(Hash([7; 32]), 8), Err(StoreError::Missing(_))));
    }
}
