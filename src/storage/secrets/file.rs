//! Reads and writes the key file: one key a line, as 64 hex digits. Lines that begin with `#` are comments.
//!
//! The first key is the current one, except during a rotation. The file is created and replaced atomically,
//! and file and folder are flushed to disk before a value is sealed with one of its keys.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::{SecretError, SecretKey};
use crate::runtime::modes;

/// Keys in a key file: the current one and, during a rotation, those before and after it.
const SECRET_KEYS_MAX: usize = 16;
/// Bytes of a key file that are read.
const SECRET_KEY_FILE_BYTES_MAX: u64 = 64 * 1024;
/// The comment at the head of the file.
const HEAD: &str = "# Wirephoto encrypts passwords of channels and its signing key in the \
                    database with this key.\n# Without it they are lost: store a copy separately \
                    from the database.\n";

fn unusable(path: &Path, cause: &dyn std::fmt::Display) -> SecretError {
    SecretError::File(format!("secrets.key_file {}: {cause}", path.display()))
}

/// Reads the keys of a file.
///
/// Fails with the name of the file if it is missing, contains no key, or contains anything else.
pub fn read(path: &Path) -> Result<Vec<SecretKey>, SecretError> {
    let mut text = String::new();
    File::open(path)
        // A wrong path, such as a device or a log file, must not fill the memory.
        .and_then(|file| file.take(SECRET_KEY_FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|cause| unusable(path, &cause))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = lines.filter(|line| !line.starts_with('#')).map(SecretKey::parse);
    let keys = keys.collect::<Result<Vec<_>, _>>().map_err(|cause| unusable(path, &cause))?;
    match keys.len() {
        0 => Err(unusable(path, &"it holds no key")),
        1..=SECRET_KEYS_MAX => Ok(keys),
        count => Err(unusable(
            path,
            &format!("it holds {count} keys, at most {SECRET_KEYS_MAX} are allowed"),
        )),
    }
}

/// Creates the file with `keys`. Returns `false` and changes nothing if it already exists.
pub fn create(path: &Path, keys: &[SecretKey]) -> Result<bool, SecretError> {
    let part = write_part(path, keys)?;
    // A hard link is atomic and fails if the file exists, unlike a rename, so the first file stays.
    let linked = fs::hard_link(&part, path);
    drop(fs::remove_file(&part));
    match linked {
        Ok(()) => flush_folder(path).map(|()| true),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(unusable(path, &cause)),
    }
}

/// Replaces or creates the file. A replaced file keeps its owner, group and mode.
///
/// Fails without a change if this process may not give the new file to the owner of the old one.
pub fn replace(path: &Path, keys: &[SecretKey]) -> Result<(), SecretError> {
    let part = write_part(path, keys)?;
    let replaced = keep_access(path, &part).and_then(|()| fs::rename(&part, path));
    replaced.map_err(|cause| {
        drop(fs::remove_file(&part));
        unusable(path, &cause)
    })?;
    flush_folder(path)
}

/// Gives the file `part` the owner, group and mode of the file at `path`, if it exists.
///
/// Root may rotate keys for a service that runs as a different user, which could not read a private file of
/// root. The group gets at most read access, all others none.
fn keep_access(path: &Path, part: &Path) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) => old,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(cause),
    };
    let new = fs::metadata(part)?;
    // Only root may give a file to a different owner, so `chown` is called only if it changes something.
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Before the mode, which opens the file to its group, so that only the right group gets access.
        std::os::unix::fs::chown(part, Some(old.uid()), Some(old.gid())).map_err(|cause| {
            let owner = format!("{}:{}", old.uid(), old.gid());
            io::Error::new(
                cause.kind(),
                format!("the new file cannot be given to {owner}: {cause}"),
            )
        })?;
    }
    fs::set_permissions(part, fs::Permissions::from_mode(old.mode() & 0o640))
}

/// Locks the key file at `path` for a process that rotates it, until the returned file is dropped.
///
/// Fails while a different process holds the lock.
pub fn lock(path: &Path) -> Result<File, SecretError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // Beside the key file, because a rotation replaces that together with any lock on it.
    name.push(".lock");
    let lock_path = path.with_file_name(name);
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).mode(0o600).open(&lock_path);
    let file = opened.map_err(|cause| unusable(path, &cause))?;
    modes::give_to_owner_of_folder(&lock_path);
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(unusable(path, &"another process rotates it")),
        Err(TryLockError::Error(cause)) => Err(unusable(path, &cause)),
    }
}

/// Writes `keys` to a file beside `path` that only its owner may read.
fn write_part(path: &Path, keys: &[SecretKey]) -> Result<std::path::PathBuf, SecretError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    // An earlier process with the same process id may have left one.
    drop(fs::remove_file(&part));
    let mut text = HEAD.to_owned();
    for key in keys {
        text.push_str(&key.print());
        text.push('\n');
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|cause| {
        drop(fs::remove_file(&part));
        unusable(path, &cause)
    })?;
    // The service and the command that creates the key may run as different users.
    modes::give_to_owner_of_folder(&part);
    Ok(part)
}

fn flush_folder(path: &Path) -> Result<(), SecretError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flushed = File::open(folder.unwrap_or(Path::new("."))).and_then(|dir| dir.sync_all());
    flushed.map_err(|cause| unusable(path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_private_and_the_first_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let keys = [SecretKey::draw().unwrap()];
        assert!(create(&path, &keys).unwrap());
        assert!(!create(&path, &[SecretKey::draw().unwrap()]).unwrap());
        assert_eq!(read(&path).unwrap(), keys);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_key_file_that_is_replaced_stays_readable_for_those_who_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let keys = [SecretKey::draw().unwrap()];
        create(&path, &keys).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        // Root rotates for a service that reads the file as a different user, or by its group.
        for (mode, kept) in [(0o640, 0o640), (0o600, 0o600), (0o644, 0o640)] {
            if is_root {
                std::os::unix::fs::chown(&path, Some(4711), Some(4712)).unwrap();
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::metadata(&path).unwrap();
            replace(&path, &keys).unwrap();
            let after = fs::metadata(&path).unwrap();
            assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
            assert_eq!(after.mode() & 0o777, kept, "of {mode:o}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn err_a_file_without_a_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let refused = |text: Option<&str>| {
            if let Some(text) = text {
                fs::write(&path, text).unwrap();
            }
            read(&path).unwrap_err().to_string()
        };
        for text in [None, Some("# nothing\n"), Some("abc\n")] {
            assert!(refused(text).contains("secrets.key_file"), "{text:?}");
        }
    }
}
