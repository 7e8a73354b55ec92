//! Stores blobs in a folder: `ab/cdef…` by hash, `tmp/` for files being written.
//!
//! A write creates a file in `tmp/`, flushes it to disk and renames it. Then the folder is flushed. A crash
//! leaves a whole blob, or a file in `tmp/` that the next start removes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::written::NoteNew;
use super::{COPY_BYTES, StoreError, StoreResult};
use crate::runtime::modes;
use model::ContentHash;

/// Age after which an untouched file in `tmp/` counts as left by a process that has ended.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub(super) struct BlobFolder {
    pub(super) dir: PathBuf,
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.display().to_string();
    move |cause| StoreError::Io { path, cause }
}

/// Returns whether the file at `path` has these bytes; `false` if it cannot be read.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    // Comparing the lengths first avoids reading a file that differs.
    let same_length = fs::metadata(path).is_ok_and(|found| found.len() == bytes.len() as u64);
    let Some(mut file) = same_length.then(|| File::open(path).ok()).flatten() else {
        return false;
    };
    let mut buffer = vec![0; COPY_BYTES];
    bytes.chunks(COPY_BYTES).all(|expected| {
        let chunk = &mut buffer[..expected.len()];
        file.read_exact(chunk).is_ok() && chunk == expected
    })
}

/// Returns whether there is no file at `path`; `false` if that is not known.
///
/// A blob that counts as new is removed again if its ingest is refused, so an error must not make it new.
fn is_absent(path: &Path) -> bool {
    path.try_exists().is_ok_and(|exists| !exists)
}

impl BlobFolder {
    pub(super) fn open(dir: &Path) -> StoreResult<Self> {
        let tmp = dir.join("tmp");
        modes::create_private_folder(&tmp).map_err(failed(&tmp))?;
        Ok(Self::at(dir))
    }

    pub(super) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(super) fn write(
        &self,
        hash: ContentHash,
        bytes: &[u8],
        note_new: NoteNew<'_>,
    ) -> StoreResult<()> {
        let path = path_in(&self.dir, hash);
        let parent = path.parent().unwrap_or(&self.dir);
        // A damaged blob is replaced: sending a file again repairs it.
        if holds(&path, bytes) {
            // The process that wrote it may not have flushed the folders yet.
            return self.flush_folders(parent).map_err(failed(&path));
        }
        if is_absent(&path) {
            note_new(hash);
        }
        // A UUID is unique across machines; process ids repeat between containers.
        let tmp = self.dir.join("tmp").join(Uuid::now_v7().to_string());
        write_and_flush(&tmp, bytes)
            .and_then(|()| move_in_place(&tmp, &path))
            .and_then(|()| self.flush_folders(parent))
            .map_err(remove_and_report(&tmp, &path))
    }

    /// Flushes the folder of a blob and its parent folder, which list new entries.
    fn flush_folders(&self, parent: &Path) -> io::Result<()> {
        File::open(parent)?.sync_all()?;
        File::open(&self.dir)?.sync_all()
    }

    pub(super) fn temporary(&self, extension: &str) -> PathBuf {
        self.dir.join("tmp").join(format!("{}.{extension}", Uuid::now_v7()))
    }

    pub(super) fn copy(
        &self,
        source: &Path,
        seen: &mut dyn FnMut(&[u8]),
        note_new: NoteNew<'_>,
    ) -> StoreResult<(ContentHash, u64)> {
        let tmp = self.dir.join("tmp").join(Uuid::now_v7().to_string());
        let copied = copy_and_flush(source, &tmp, seen);
        let moved = copied.and_then(|(hash, length)| {
            let path = path_in(&self.dir, hash);
            if is_absent(&path) {
                note_new(hash);
            }
            move_in_place(&tmp, &path)?;
            self.flush_folders(path.parent().unwrap_or(&self.dir))?;
            Ok((hash, length))
        });
        moved.map_err(remove_and_report(&tmp, source))
    }

    pub(super) fn sizes(&self) -> StoreResult<Vec<(ContentHash, u64)>> {
        let mut sizes = Vec::new();
        for hash in list(&self.dir)? {
            // A blob may be removed after the folder was listed.
            let metadata = find_metadata(&path_in(&self.dir, hash))?;
            sizes.extend(metadata.map(|metadata| (hash, metadata.len())));
        }
        Ok(sizes)
    }

    pub(super) fn sweep(&self) -> StoreResult<usize> {
        let leftovers = self.leftovers()?;
        Ok(leftovers.iter().filter(|path| fs::remove_file(path).is_ok()).count())
    }

    pub(super) fn leftovers(&self) -> StoreResult<Vec<PathBuf>> {
        abandoned(&self.dir.join("tmp"), "")
    }
}

/// Lists the files in `dir` whose names begin with `start` and that are older than [`ABANDONED_AGE`].
pub(super) fn abandoned(dir: &Path, start: &str) -> StoreResult<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let entry = entry.map_err(failed(dir))?;
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed());
        // A file that cannot be inspected, or whose time is in the future, may be in use.
        let is_old = matches!(age, Ok(Ok(age)) if age > ABANDONED_AGE);
        if is_old && entry.file_name().to_string_lossy().starts_with(start) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Gives the finished file `tmp` its name. Readers see the earlier file or the complete new one.
pub(super) fn move_in_place(tmp: &Path, path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        modes::create_private_folder(parent)?;
    }
    modes::give_to_owner_of_folder(tmp);
    fs::rename(tmp, path)
}

/// Removes the temporary file of a failed write, and maps the failure to an error at `path`.
pub(super) fn remove_and_report(tmp: &Path, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |cause| {
        // The error of the write is reported. A failed removal of its remains adds nothing.
        drop(fs::remove_file(tmp));
        failed(path)(cause)
    }
}

pub(super) fn write_and_flush(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Copies `source` to `target`. Returns the hash and the number of the bytes.
fn copy_and_flush(
    source: &Path,
    target: &Path,
    seen: &mut dyn FnMut(&[u8]),
) -> io::Result<(ContentHash, u64)> {
    let mut from = File::open(source)?;
    let mut to = OpenOptions::new().write(true).create_new(true).open(target)?;
    let found = read_pieces(&mut from, &mut |chunk| {
        seen(chunk);
        to.write_all(chunk)
    })?;
    to.sync_all()?;
    Ok(found)
}

/// Reads a file to its end in pieces of [`COPY_BYTES`], the last one shorter. Returns the hash and the number of the
/// bytes.
pub(super) fn read_pieces(
    from: &mut File,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(ContentHash, u64)> {
    let mut hash = ContentHash::hasher();
    let mut length = 0;
    let mut chunk = Vec::with_capacity(COPY_BYTES);
    loop {
        chunk.clear();
        // Fills the whole piece, except the last one, even if the system returns fewer bytes per read.
        from.take(COPY_BYTES as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            return Ok((hash.finish(), length));
        }
        hash.update(&chunk);
        length += chunk.len() as u64;
        take(&chunk)?;
    }
}

/// Returns the path of the file under `hash` in the folder `dir`.
pub(super) fn path_in(dir: &Path, hash: ContentHash) -> PathBuf {
    let name = hash.to_string();
    dir.join(&name[..2]).join(&name[2..])
}

/// Returns the metadata of a file; `None` if it does not exist.
pub(super) fn find_metadata(path: &Path) -> StoreResult<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(failed(path)(cause)),
    }
}

/// Lists the hashes whose files are stored in `dir` as `ab/cdef…`.
pub(super) fn list(dir: &Path) -> StoreResult<Vec<ContentHash>> {
    let mut found = Vec::new();
    for folder in fs::read_dir(dir).map_err(failed(dir))? {
        let folder = folder.map_err(failed(dir))?;
        let start = folder.file_name().to_string_lossy().into_owned();
        // `tmp/`, the mark and files of the operator are not blobs.
        if start.len() != 2 || !folder.path().is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path()).map_err(failed(dir))? {
            let name = file.map_err(failed(dir))?.file_name();
            found.extend(format!("{start}{}", name.to_string_lossy()).parse::<ContentHash>().ok());
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_examined_is_not_absent() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        assert!(is_absent(&file));
        fs::write(&file, b"here").unwrap();
        assert!(!is_absent(&file));
        // The system reports that the parent is no folder.
        assert!(!is_absent(&file.join("below")));
    }
}
