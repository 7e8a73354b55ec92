//! Modes of files: what only the service's own user may read, and what others read as well.
//!
//! Everything that the process creates is private from [`make_private`] on, whatever umask it was
//! started with. Files that leave the service (deliveries, results beside a watched folder, the log)
//! get the mode that the umask of the start allows.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::OnceLock,
};

use rustix::fs::Mode;

/// The mode bits that group and others have of what is open to them.
const GROUP_AND_OTHERS: u32 = 0o077;

/// The mode bits that the umask of the start leaves; unset until [`make_private`].
static MODE_ALLOWED: OnceLock<u32> = OnceLock::new();

/// Makes every file and folder that this process creates from now on private to its user.
///
/// Called once, before threads start: the umask belongs to the whole process.
pub fn make_private() {
    let before = rustix::process::umask(Mode::from_raw_mode(GROUP_AND_OTHERS));
    MODE_ALLOWED.get_or_init(|| 0o777 & !before.bits());
}

/// Returns `mode` as the umask of the start allows it, for files that others are meant to read;
/// nothing while the umask was not changed.
#[must_use]
pub fn shared_mode(mode: u32) -> Option<u32> {
    MODE_ALLOWED.get().map(|allowed| mode & allowed)
}

/// Gives the file at `path` the mode `mode`, as far as the umask of the start allows it.
fn share(path: &Path, mode: u32) -> io::Result<()> {
    match shared_mode(mode) {
        Some(mode) => fs::set_permissions(path, Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// The same for a file that is open.
pub fn set_shared_file_mode(file: &File, mode: u32) -> io::Result<()> {
    match shared_mode(mode) {
        Some(mode) => file.set_permissions(Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// Creates the folder `dir` and the missing folders above it, open to others as far as the umask of
/// the start allows.
pub fn create_shared_folder(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        create_shared_folder(parent)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => share(dir, 0o777),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Creates the folder `dir` and the missing folders above it, and gives each that root creates to the
/// owner of the folder it lies in.
pub fn create_private_folder(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        create_private_folder(parent)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => {
            give_to_owner_of_folder(dir);
            Ok(())
        }
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Writes a new file that others may read as far as the umask of the start allows.
pub fn write_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    set_shared_file_mode(&file, 0o666)?;
    file.write_all(bytes)
}

/// Gives what root created at `path` to the owner of the folder that it lies in.
///
/// The service runs as that owner and has to read it, and a private file of root would keep it out.
/// Does nothing for other users; a file system without owners is no failure.
pub fn give_to_owner_of_folder(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(folder) = path.parent().and_then(|parent| fs::metadata(parent).ok()) else { return };
    if folder.uid() != 0 {
        drop(std::os::unix::fs::chown(path, Some(folder.uid()), Some(folder.gid())));
    }
}

/// The number of the user that started the process, whatever the environment says.
#[must_use]
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The mode of the file or folder at `path` if group or others have any right to it.
#[must_use]
pub fn find_open_mode(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    (mode & GROUP_AND_OTHERS != 0).then_some(mode)
}

/// Bytes that a process without special rights may still write to the file system of `dir`.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(dir)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_is_told_apart_from_a_private_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(find_open_mode(dir.path()), None);
        fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).unwrap();
        assert_eq!(find_open_mode(dir.path()), Some(0o750));
    }

    #[test]
    fn shared_folders_are_created_with_those_above_them() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create_shared_folder(&deep).unwrap();
        create_shared_folder(&deep).unwrap();
        write_shared(&deep.join("note"), b"text").unwrap();
        assert_eq!(fs::read(deep.join("note")).unwrap(), b"text");
    }
}
