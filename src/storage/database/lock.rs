//! Locks a data directory, by a lock on a file in it that ends with its process.
//!
//! The service and every command share the lock. A change of the schema or of the whole archive needs it
//! exclusively, because the other processes rely on them. The lock is advisory: it binds only this program.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::error::{DbError, DbResult};
use crate::runtime::modes;

/// Name of the lock file, which remains when the lock is released.
const LOCK_FILE_NAME: &str = "wirephoto.lock";

/// A lock on a data directory, released on drop.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Acquires the shared lock of `dir`.
    ///
    /// Fails with [`DbError::InUse`] while a different process holds it exclusively.
    pub fn shared(dir: &Path) -> DbResult<Self> {
        let file = open(dir).map_err(|cause| unusable(dir, &cause))?;
        // Never waits, because an error says more than a start that hangs.
        match file.try_lock_shared() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(DbError::InUse(format!(
                "another process is restoring or upgrading {}; try again when it has finished",
                dir.display()
            ))),
            Err(TryLockError::Error(cause)) => Err(unusable(dir, &cause)),
        }
    }

    /// Acquires the exclusive lock of `dir`.
    ///
    /// Fails with [`DbError::InUse`] while other processes, such as the service, hold it.
    pub fn exclusive(dir: &Path) -> DbResult<Self> {
        let file = open(dir).map_err(|cause| unusable(dir, &cause))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(DbError::InUse(format!(
                "another process is using {}: stop the service and every other process that uses \
                 it",
                dir.display()
            ))),
            Err(TryLockError::Error(cause)) => Err(unusable(dir, &cause)),
        }
    }
}

/// Opens an existing file read-only, because a different user may have created it.
fn open(dir: &Path) -> io::Result<File> {
    let path = dir.join(LOCK_FILE_NAME);
    match File::open(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            // Not `create_new`, because two processes that start at once must lock the same file.
            let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
            // A command that root runs first must not lock the service out.
            modes::give_to_owner_of_folder(&path);
            opened
        }
        opened => opened,
    }
}

fn unusable(dir: &Path, cause: &io::Error) -> DbError {
    DbError::InUse(format!("{} cannot be locked: {cause}", dir.join(LOCK_FILE_NAME).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_share_a_directory_and_one_has_it_alone() {
        let dir = tempfile::tempdir().expect("folder");
        let shared = [DirectoryLock::shared(dir.path()), DirectoryLock::shared(dir.path())];
        assert!(shared.iter().all(Result::is_ok));
        assert!(matches!(DirectoryLock::exclusive(dir.path()), Err(DbError::InUse(_))));
        drop(shared);
        let alone = DirectoryLock::exclusive(dir.path()).expect("nobody is there");
        assert!(matches!(DirectoryLock::shared(dir.path()), Err(DbError::InUse(_))));
        assert!(matches!(DirectoryLock::exclusive(dir.path()), Err(DbError::InUse(_))));
        drop(alone);
        assert!(DirectoryLock::shared(dir.path()).is_ok());
    }
}
