//! Copies blobs into a folder: into a backup, and back from it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    time::Duration,
};

use uuid::Uuid;

use super::folder::{BlobFolder, failed};
use super::{BlobReader, BlobStore, StoreError};
use crate::runtime::modes;
use model::ContentHash;

/// The outcome of copying a blob from a different store.
#[derive(Debug)]
pub enum CopyOutcome {
    Copied,
    /// A blob of this length already existed.
    AlreadyPresent,
    /// The other store does not have the right bytes.
    Refused(StoreError),
}

impl BlobFolder {
    pub(super) fn age(&self, hash: ContentHash) -> Result<Option<Duration>, StoreError> {
        let path = self.path(hash);
        match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
            // A time in the future, from a clock that differs, counts as now.
            Ok(at) => Ok(Some(at.elapsed().unwrap_or_default())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(failed(&path)(cause)),
        }
    }

    pub(super) fn copy_from(
        &self,
        from: &BlobStore,
        hash: ContentHash,
        length: u64,
    ) -> Result<CopyOutcome, StoreError> {
        let path = self.path(hash);
        // Lengths are cheap to compare; `replace` handles blobs with wrong bytes.
        if fs::metadata(&path).is_ok_and(|found| found.len() == length) {
            return Ok(CopyOutcome::AlreadyPresent);
        }
        self.replace(from, hash, length)
    }

    pub(super) fn replace(
        &self,
        from: &BlobStore,
        hash: ContentHash,
        length: u64,
    ) -> Result<CopyOutcome, StoreError> {
        let path = self.path(hash);
        let reader = match from.reader(hash, length) {
            Ok(reader) => reader,
            Err(error) => return error.refusal().map(CopyOutcome::Refused),
        };
        let tmp = self.dir.join("tmp").join(Uuid::now_v7().to_string());
        let copied = File::create_new(&tmp)
            .map_err(failed(&tmp))
            .and_then(|file| copy_checked(&reader, hash, &file, &tmp));
        let outcome = match copied {
            Ok(None) => self.put_in_place(&tmp, &path).map(|()| CopyOutcome::Copied),
            Ok(Some(error)) => Ok(CopyOutcome::Refused(error)),
            Err(cause) => Err(cause),
        };
        if !matches!(outcome, Ok(CopyOutcome::Copied)) {
            // The error of the copy is reported. A failed removal of its remains adds nothing.
            drop(fs::remove_file(&tmp));
        }
        outcome
    }

    fn put_in_place(&self, tmp: &Path, path: &Path) -> Result<(), StoreError> {
        let parent = path.parent().unwrap_or(&self.dir);
        modes::create_private_folder(parent).map_err(failed(parent))?;
        modes::give_to_owner_of_folder(tmp);
        fs::rename(tmp, path).map_err(failed(path))
    }

    pub(super) fn flush(&self) -> Result<(), StoreError> {
        // A new name is durable once its folder is flushed. Blobs are in subfolders of this folder.
        for entry in fs::read_dir(&self.dir).map_err(failed(&self.dir))? {
            let path = entry.map_err(failed(&self.dir))?.path();
            if path.is_dir() {
                File::open(&path).and_then(|dir| dir.sync_all()).map_err(failed(&path))?;
            }
        }
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(failed(&self.dir))
    }

    pub(super) fn remove(&self, hash: ContentHash) -> Result<(), StoreError> {
        let path = self.path(hash);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed(&path)(cause)),
            // Removal is idempotent: a different process may have removed the blob first.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Copies a blob into a new file and flushes it. Returns the mismatch if the blob does not match its hash.
fn copy_checked(
    reader: &BlobReader,
    hash: ContentHash,
    mut file: &File,
    path: &Path,
) -> Result<Option<StoreError>, StoreError> {
    let mut found = ContentHash::hasher();
    for range in reader.pieces() {
        let chunk = match reader.read(range) {
            Ok(chunk) => chunk,
            Err(error) => return error.refusal().map(Some),
        };
        found.update(&chunk);
        file.write_all(&chunk).map_err(failed(path))?;
    }
    if found.finish() != hash {
        return Ok(Some(StoreError::Corrupted(hash)));
    }
    // Flushed before the rename: after a crash, the name must not refer to a file without its bytes.
    file.sync_all().map_err(failed(path))?;
    Ok(None)
}
