//! Files made from blobs, by the blob's hash and their kind.
//!
//! Derived state: each file can be made again, so a write is not flushed to disk. A file appears
//! whole or not at all; what a crash tore is found by the checks of whoever reads it.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use super::folder::failed;
use super::{BlobReader, StoreError};
use crate::types::Hash;

/// What a derived file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Where an original can be entered.
    Index,
    /// An original's picture in a form that can be entered.
    Working,
    /// A smaller copy.
    Level,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Index, Self::Working, Self::Level];

    /// The word in file names and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Working => "working",
            Self::Level => "level",
        }
    }
}

/// The derived files of a store's blobs, in a folder: `index/ab/cdef…`.
#[derive(Clone, Debug)]
pub struct Derived {
    dir: PathBuf,
}

impl Derived {
    /// Opens the folder `dir`, which is made when it is missing.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        for kind in Kind::ALL {
            let folder = dir.join(kind.as_str());
            fs::create_dir_all(&folder).map_err(failed(&folder))?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    fn path(&self, kind: Kind, hash: Hash) -> PathBuf {
        let name = hash.to_string();
        self.dir.join(kind.as_str()).join(&name[..2]).join(&name[2..])
    }

    /// Writes a file; one that is there is replaced.
    pub fn write(&self, kind: Kind, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        let tmp = self.dir.join(kind.as_str()).join(format!("tmp-{}", Uuid::now_v7()));
        let written = fs::File::create_new(&tmp).and_then(|mut file| {
            file.write_all(bytes)?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::rename(&tmp, &path)
        });
        written.map_err(|cause| {
            // The write failed; that its remains cannot be removed either adds nothing.
            drop(fs::remove_file(&tmp));
            failed(&path)(cause)
        })
    }

    /// Reads a file of at most `bytes_max` bytes; `None` if there is none, or a longer one.
    pub fn read(
        &self,
        kind: Kind,
        hash: Hash,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(kind, hash);
        match fs::metadata(&path) {
            Ok(facts) if facts.len() <= bytes_max => {
                fs::read(&path).map(Some).map_err(failed(&path))
            }
            Ok(_) => Ok(None),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    /// Bytes of a file; `None` if there is none.
    pub fn length(&self, kind: Kind, hash: Hash) -> Result<Option<u64>, StoreError> {
        let path = self.path(kind, hash);
        match fs::metadata(&path) {
            Ok(facts) => Ok(Some(facts.len())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    /// Opens a file of `length` bytes for reading parts of it.
    pub fn reader(&self, kind: Kind, hash: Hash, length: u64) -> Result<BlobReader, StoreError> {
        BlobReader::open(&self.path(kind, hash), hash, length)
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, kind: Kind, hash: Hash) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(&path)(cause)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The hashes that have a file of `kind`; what interrupted writes left is removed.
    pub fn list(&self, kind: Kind) -> Result<Vec<Hash>, StoreError> {
        let dir = self.dir.join(kind.as_str());
        super::folder::list(&dir)
    }
}
