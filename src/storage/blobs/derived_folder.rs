//! A folder of derived files: each kind has a folder of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};
use uuid::Uuid;

use super::StoreResult;
use super::folder::{abandoned, failed, find_metadata, move_in_place, path_in, remove_and_report};
use super::hashed_files::HashedFiles;
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

model::impl_as_str!(DerivedKind);

/// Derived files in a folder: `index/ab/cdef…`.
#[derive(Clone, Debug)]
pub(super) struct DerivedFolder {
    dir: PathBuf,
}

impl DerivedFolder {
    pub(super) fn open(dir: &Path) -> StoreResult<Self> {
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
    ) -> StoreResult<()> {
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
    ) -> StoreResult<Option<Vec<u8>>> {
        let path = path_in(&self.folder(kind), hash);
        let metadata = find_metadata(&path)?;
        // A file longer than any valid one of this kind is damaged, and is rebuilt like a missing one.
        if metadata.is_none_or(|metadata| metadata.len() > bytes_max) {
            return Ok(None);
        }
        fs::read(&path).map(Some).map_err(failed(&path))
    }

    pub(super) fn leftovers(&self) -> StoreResult<Vec<PathBuf>> {
        let mut found = Vec::new();
        for kind in DerivedKind::iter() {
            found.extend(abandoned(&self.folder(kind), "tmp-")?);
        }
        Ok(found)
    }
}
