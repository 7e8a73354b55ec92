//! Files made from blobs, by the blob's hash and their kind.
//!
//! Derived state: each file can be made again, so a write is not flushed to disk. A file appears
//! whole or not at all; what a crash tore is found by the checks of whoever reads it. They lie where
//! the blobs do, so that several machines make them once; of a bucket's side files there are copies
//! on the disk, since each render of a picture needs its own.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use uuid::Uuid;

use super::bucket::Bucket;
use super::folder::failed;
use super::near::Near;
use super::{BlobReader, StoreError};
use crate::runtime::modes;
use model::Hash;

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

/// The derived files of a store's blobs.
#[derive(Clone, Debug)]
pub struct Derived {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Folder(Files),
    Bucket(Bucket, Arc<Near>),
}

impl Derived {
    /// Opens the folder `dir`, which is made when it is missing.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { place: Place::Folder(Files::open(dir)?) })
    }

    /// Those in a bucket; `dir` is for copies of side files, `copies_bytes` of them at most.
    pub(super) fn in_bucket(
        bucket: Bucket,
        dir: &Path,
        copies_bytes: u64,
    ) -> Result<Self, StoreError> {
        let near = Near::open(dir, copies_bytes)?;
        Ok(Self { place: Place::Bucket(bucket, Arc::new(near)) })
    }

    /// Whether each read waits for a network.
    #[must_use]
    pub fn is_far(&self) -> bool {
        matches!(self.place, Place::Bucket(..))
    }

    /// Writes a file; one that is there is replaced.
    pub fn write(&self, kind: Kind, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let (bucket, near) = match &self.place {
            Place::Folder(files) => return files.write(kind, hash, bytes),
            Place::Bucket(bucket, near) => (bucket, near),
        };
        let key = bucket.key(kind.as_str(), hash);
        let mut part = |range| Some(Bytes::copy_from_slice(super::part(bytes, &range)));
        bucket.send(&key, hash, bytes.len() as u64, None, &mut part)?;
        if kind == Kind::Index {
            near.keep(hash, bytes);
        }
        Ok(())
    }

    /// Reads a file of at most `bytes_max` bytes; `None` if there is none, or a longer one.
    pub fn read(
        &self,
        kind: Kind,
        hash: Hash,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let (bucket, near) = match &self.place {
            Place::Folder(files) => return files.read(kind, hash, bytes_max),
            Place::Bucket(bucket, near) => (bucket, near),
        };
        if kind != Kind::Index {
            return bucket.read(bucket.key(kind.as_str(), hash), hash, bytes_max);
        }
        if let Some(copy) = near.read(hash, bytes_max) {
            return Ok(Some(copy));
        }
        let found = bucket.read(bucket.key(kind.as_str(), hash), hash, bytes_max)?;
        if let Some(bytes) = &found {
            near.keep(hash, bytes);
        }
        Ok(found)
    }

    /// Forgets the copy of a side file, so that the next read goes to where it lies; `false` where
    /// there are no copies.
    pub fn forget(&self, hash: Hash) -> bool {
        match &self.place {
            Place::Folder(_) => false,
            Place::Bucket(_, near) => {
                near.forget(hash);
                true
            }
        }
    }

    /// Bytes of a file; `None` if there is none.
    pub fn length(&self, kind: Kind, hash: Hash) -> Result<Option<u64>, StoreError> {
        match &self.place {
            Place::Folder(files) => files.length(kind, hash),
            Place::Bucket(bucket, _) => bucket.length(&bucket.key(kind.as_str(), hash), hash),
        }
    }

    /// Opens a file of `length` bytes for reading parts of it.
    pub fn reader(&self, kind: Kind, hash: Hash, length: u64) -> Result<BlobReader, StoreError> {
        match &self.place {
            Place::Folder(files) => files.reader(kind, hash, length),
            Place::Bucket(bucket, _) => {
                let object = bucket.look(bucket.key(kind.as_str(), hash), hash, length)?;
                Ok(BlobReader::of_object(hash, length, object))
            }
        }
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, kind: Kind, hash: Hash) -> Result<(), StoreError> {
        match &self.place {
            Place::Folder(files) => files.remove(kind, hash),
            Place::Bucket(bucket, near) => {
                near.forget(hash);
                bucket.remove(&bucket.key(kind.as_str(), hash), hash)
            }
        }
    }

    /// What interrupted writes left on the disk.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        match &self.place {
            Place::Folder(files) => files.leftovers(),
            Place::Bucket(_, near) => near.files().leftovers(),
        }
    }

    /// The hashes that have a file of `kind`.
    pub fn list(&self, kind: Kind) -> Result<Vec<Hash>, StoreError> {
        match &self.place {
            Place::Folder(files) => files.list(kind),
            Place::Bucket(bucket, _) => bucket.list(kind.as_str()),
        }
    }
}

/// Derived files in a folder: `index/ab/cdef…`.
#[derive(Clone, Debug)]
pub(super) struct Files {
    dir: PathBuf,
}

impl Files {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        for kind in Kind::ALL {
            let folder = dir.join(kind.as_str());
            modes::create_private_folder(&folder).map_err(failed(&folder))?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    pub(super) fn folder(&self, kind: Kind) -> PathBuf {
        self.dir.join(kind.as_str())
    }

    fn path(&self, kind: Kind, hash: Hash) -> PathBuf {
        let name = hash.to_string();
        self.dir.join(kind.as_str()).join(&name[..2]).join(&name[2..])
    }

    pub(super) fn write(&self, kind: Kind, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        let tmp = self.dir.join(kind.as_str()).join(format!("tmp-{}", Uuid::now_v7()));
        let written = fs::File::create_new(&tmp).and_then(|mut file| {
            file.write_all(bytes)?;
            if let Some(parent) = path.parent() {
                modes::create_private_folder(parent)?;
            }
            modes::give_to_owner_of_folder(&tmp);
            fs::rename(&tmp, &path)
        });
        written.map_err(|cause| {
            // The write failed; that its remains cannot be removed either adds nothing.
            drop(fs::remove_file(&tmp));
            failed(&path)(cause)
        })
    }

    pub(super) fn read(
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

    pub(super) fn length(&self, kind: Kind, hash: Hash) -> Result<Option<u64>, StoreError> {
        let path = self.path(kind, hash);
        match fs::metadata(&path) {
            Ok(facts) => Ok(Some(facts.len())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    pub(super) fn reader(
        &self,
        kind: Kind,
        hash: Hash,
        length: u64,
    ) -> Result<BlobReader, StoreError> {
        BlobReader::open(&self.path(kind, hash), hash, length)
    }

    pub(super) fn remove(&self, kind: Kind, hash: Hash) -> Result<(), StoreError> {
        let path = self.path(kind, hash);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(&path)(cause)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            found.extend(super::folder::abandoned(&self.dir.join(kind.as_str()), "tmp-")?);
        }
        Ok(found)
    }

    pub(super) fn list(&self, kind: Kind) -> Result<Vec<Hash>, StoreError> {
        let dir = self.dir.join(kind.as_str());
        super::folder::list(&dir)
    }
}
