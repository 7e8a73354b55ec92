//! The folder of a backup: its lock, its files and their checksums.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::copying::store_failed;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::{BlobStore, COPY_BYTES};
use model::ContentHash;

/// The lock file of a backup in progress; it also marks the folder as a backup of this product.
pub(super) const LOCK: &str = "backup.lock";

pub(super) fn failed(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{}: {cause}", path.display()))
}

/// Creates a folder and its missing parents; only the owner has access.
pub(super) fn create_private(dir: &Path) -> Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|cause| failed(dir, &cause))
}

/// Creates the file `path`, which must not exist, and writes it; only the owner has access.
pub(super) fn create_file<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> io::Result<T> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = write(&mut file)?;
    file.sync_all()?;
    Ok(written)
}

/// Creates the folder, or checks that it is a backup of this product. Locks it for this process, removes
/// leftovers of interrupted backups, and creates a subfolder for originals if `has_originals`.
pub(super) fn prepare(target: &Path, has_originals: bool) -> Result<File> {
    create_private(target)?;
    let lock = target.join(LOCK);
    if !lock.exists() {
        let mut entries = fs::read_dir(target).map_err(|cause| failed(target, &cause))?;
        if entries.next().is_some() {
            let message = format!("{} holds something other than a backup", target.display());
            return Err(Error::new(ErrorKind::Conflict, message));
        }
    }
    let lock_file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(|cause| failed(&lock, &cause))?;
    lock_file.try_lock().map_err(|cause| busy(target, cause))?;
    for name in entry_names(target)? {
        // This process holds the lock, so these files are leftovers of processes that ended.
        if name.contains(".part") {
            fs::remove_file(target.join(name)).map_err(|cause| failed(target, &cause))?;
        }
    }
    if !has_originals {
        return Ok(lock_file);
    }
    let originals = target.join("originals");
    create_private(&originals)?;
    BlobStore::open(&originals).and_then(|store| store.sweep()).map_err(store_failed)?;
    Ok(lock_file)
}

pub(super) fn busy(folder: &Path, cause: TryLockError) -> Error {
    match cause {
        TryLockError::WouldBlock => {
            let message = format!("{}: another process is using this backup", folder.display());
            Error::new(ErrorKind::Conflict, message)
        }
        TryLockError::Error(cause) => failed(&folder.join(LOCK), &cause),
    }
}

/// The names of the entries in a folder.
pub(super) fn entry_names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|cause| failed(dir, &cause))? {
        let entry = entry.map_err(|cause| failed(dir, &cause))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

pub(super) fn flush(dir: &Path) -> Result<()> {
    let flushed = File::open(dir).and_then(|dir| dir.sync_all());
    flushed.map_err(|cause| failed(dir, &cause))
}

/// Returns the SHA-256 of a copy of the database.
pub(super) fn database_copy_hash(path: &Path) -> Result<ContentHash> {
    copy_and_hash(path, &mut io::sink()).map_err(|cause| failed(path, &cause))
}

/// Returns an error about a copy of the database that does not have the checksum of the manifest.
pub(super) fn damaged_copy(path: &Path) -> Error {
    let message = format!("{} is damaged: its checksum differs", path.display());
    Error::new(ErrorKind::Conflict, message)
}

/// Copies a file and returns the SHA-256 of its bytes.
pub(super) fn copy_and_hash(from: &Path, to: &mut dyn Write) -> io::Result<ContentHash> {
    let mut from = File::open(from)?;
    let mut hash = ContentHash::hasher();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(hash.finish());
        }
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
}
