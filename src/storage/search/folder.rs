//! Manages the folder of a process's index: `DATA/search/<slot>/<generation>`.
//!
//! Each process that searches over a data directory locks a slot. An index is built as `building` and renamed
//! to the next generation once it is complete, so that every existing generation is complete. The folder
//! contains derived state only: it can be removed while no process runs, and is rebuilt.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::runtime::modes;

/// Index folders in a data directory: one for each process that searches over it.
const INDEX_FOLDERS_MAX: usize = 64;
/// Folder name of a generation that is being built.
const BUILDING: &str = "building";

/// A slot, locked until this is dropped.
#[derive(Debug)]
pub(super) struct IndexFolder {
    path: PathBuf,
    _lock: File,
}

impl IndexFolder {
    /// Claims the first slot in `search`, the folder of all indexes, that no process holds.
    pub(super) fn claim(search: &Path) -> io::Result<Self> {
        modes::create_private_folder(search)?;
        for slot in 1..=INDEX_FOLDERS_MAX {
            if let Some(folder) = Self::try_claim(search.join(slot.to_string()))? {
                return Ok(folder);
            }
        }
        Err(io::Error::other(format!(
            "{INDEX_FOLDERS_MAX} processes search this directory already"
        )))
    }

    /// Claims the slot `path`. Returns `None` if a different process holds it.
    fn try_claim(path: PathBuf) -> io::Result<Option<Self>> {
        modes::create_private_folder(&path)?;
        let lock = path.join("lock");
        let file = File::options().write(true).create(true).truncate(false).open(&lock)?;
        // A command that runs as root must not lock the service out of its own folder.
        modes::give_to_owner_of_folder(&lock);
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { path, _lock: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(cause)) => Err(cause),
        }
    }

    /// Returns the newest complete generation.
    pub(super) fn newest(&self) -> Option<PathBuf> {
        newest(&self.path)
    }

    /// Creates an empty folder for a new index.
    pub(super) fn begin(&self) -> io::Result<PathBuf> {
        let path = self.path.join(BUILDING);
        // An interrupted build may have left files.
        remove(&path)?;
        modes::create_private_folder(&path)?;
        Ok(path)
    }

    /// Makes the new index the newest generation. Returns its folder.
    pub(super) fn publish(&self) -> io::Result<PathBuf> {
        let last = generations(&self.path).into_iter().max().unwrap_or_default();
        let path = self.path.join((last + 1).to_string());
        // The rename makes the whole index visible at once, and the sync makes the rename survive a crash.
        fs::rename(self.path.join(BUILDING), &path)?;
        File::open(&self.path)?.sync_all()?;
        Ok(path)
    }

    /// Removes every generation except `keep`, and the remains of an interrupted build.
    pub(super) fn remove_others(&self, keep: Option<&Path>) -> io::Result<()> {
        let mut others: Vec<PathBuf> = generations(&self.path)
            .iter()
            .map(|number| self.path.join(number.to_string()))
            .collect();
        others.push(self.path.join(BUILDING));
        others.iter().filter(|path| Some(path.as_path()) != keep).try_for_each(|path| remove(path))
    }
}

/// Finds the newest complete index of the first process over the data directory `dir`, for a command that
/// only reads it.
pub(super) fn find(dir: &Path) -> Option<PathBuf> {
    newest(&dir.join("1"))
}

/// Removes the index of the first process over the data directory `dir`, unless a process uses it. The next
/// start builds a new one. Returns whether it was removed.
pub(super) fn discard(dir: &Path) -> io::Result<bool> {
    match IndexFolder::try_claim(dir.join("1"))? {
        Some(folder) => folder.remove_others(None).map(|()| true),
        None => Ok(false),
    }
}

fn newest(slot: &Path) -> Option<PathBuf> {
    let number = generations(slot).into_iter().max()?;
    Some(slot.join(number.to_string()))
}

fn generations(slot: &Path) -> Vec<u64> {
    let entries = fs::read_dir(slot).into_iter().flatten().flatten();
    // Other names, such as the names of the lock and of a build, are not numbers.
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_over_one_directory_have_an_index_each() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) =
            (IndexFolder::claim(dir.path()).unwrap(), IndexFolder::claim(dir.path()).unwrap());
        assert_ne!(first.path, second.path);
        drop(first);
        assert_eq!(IndexFolder::claim(dir.path()).unwrap().path, dir.path().join("1"));
    }

    #[test]
    fn only_what_was_built_to_its_end_is_a_generation() {
        let dir = tempfile::tempdir().unwrap();
        let folder = IndexFolder::claim(dir.path()).unwrap();
        assert_eq!(folder.newest(), None);
        fs::write(folder.begin().unwrap().join("part"), "").unwrap();
        assert_eq!(folder.newest(), None, "it was interrupted");
        assert_eq!(fs::read_dir(folder.begin().unwrap()).unwrap().count(), 0);
        let first = folder.publish().unwrap();
        folder.begin().unwrap();
        let second = folder.publish().unwrap();
        assert_eq!(folder.newest().as_ref(), Some(&second));
        folder.remove_others(Some(&second)).unwrap();
        assert!(!first.exists() && second.exists());
        assert_eq!(find(dir.path()), Some(second));
    }
}
