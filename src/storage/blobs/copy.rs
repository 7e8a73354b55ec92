//! Copies blobs into a folder: into a backup, and back from it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use uuid::Uuid;

use super::folder::{BlobFolder, failed, move_in_place, path_in};
use super::{BlobReader, StoreError, StoreResult};
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
    pub(super) fn replace(
        &self,
        reader: &BlobReader,
        hash: ContentHash,
    ) -> StoreResult<CopyOutcome> {
        let path = path_in(&self.dir, hash);
        let tmp = self.dir.join("tmp").join(Uuid::now_v7().to_string());
        let copied = File::create_new(&tmp)
            .map_err(failed(&tmp))
            .and_then(|file| copy_checked(reader, hash, &file, &tmp));
        let outcome = copied.and_then(|refusal| match refusal {
            None => {
                move_in_place(&tmp, &path).map_err(failed(&path))?;
                Ok(CopyOutcome::Copied)
            }
            Some(error) => Ok(CopyOutcome::Refused(error)),
        });
        if !matches!(outcome, Ok(CopyOutcome::Copied)) {
            // The error of the copy is reported. A failed removal of its remains adds nothing.
            drop(fs::remove_file(&tmp));
        }
        outcome
    }

    pub(super) fn flush(&self) -> StoreResult<()> {
        // A new name is durable once its folder is flushed. Blobs are in subfolders of this folder.
        for entry in fs::read_dir(&self.dir).map_err(failed(&self.dir))? {
            let path = entry.map_err(failed(&self.dir))?.path();
            if path.is_dir() {
                File::open(&path).and_then(|dir| dir.sync_all()).map_err(failed(&path))?;
            }
        }
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(failed(&self.dir))
    }
}

/// Copies a blob into a new file and flushes it. Returns the mismatch if the blob does not match its hash.
fn copy_checked(
    reader: &BlobReader,
    hash: ContentHash,
    mut file: &File,
    path: &Path,
) -> StoreResult<Option<StoreError>> {
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
