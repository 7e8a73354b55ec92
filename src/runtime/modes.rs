//! Sets file modes: private to the service's user, or shared with others.
//!
//! After [`make_private`], everything that the process creates is private, regardless of the umask it was
//! started with. Files meant for others (deliveries, results in a watched folder, the log) get the mode that
//! the original umask allows.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, Mode, OFlags};

/// The mode bits of group and others.
const GROUP_AND_OTHERS: u32 = 0o077;

/// The mode bits that the original umask allows; unset until [`make_private`].
static MODE_ALLOWED: OnceLock<u32> = OnceLock::new();

/// Makes every file and folder that this process creates from now on private to its user.
///
/// Called once, before threads start: the umask belongs to the whole process.
pub fn make_private() {
    let previous = rustix::process::umask(Mode::from_raw_mode(GROUP_AND_OTHERS));
    MODE_ALLOWED.get_or_init(|| 0o777 & !previous.bits());
}

/// Returns `mode` restricted by the original umask, for files that others are meant to read. Returns `None`
/// before [`make_private`].
fn shared_mode(mode: u32) -> Option<u32> {
    MODE_ALLOWED.get().map(|allowed| mode & allowed)
}

/// Sets the mode of the file at `path`, restricted by the original umask.
fn share(path: &Path, mode: u32) -> io::Result<()> {
    match shared_mode(mode) {
        Some(mode) => fs::set_permissions(path, Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// Sets the mode of an open file or folder, restricted by the original umask.
pub fn set_shared_file_mode(file: impl AsFd, mode: u32) -> io::Result<()> {
    match shared_mode(mode) {
        Some(mode) => Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?),
        None => Ok(()),
    }
}

/// Creates the file `name` in an open folder, in place of any entry with this name, with `mode` restricted by the
/// original umask. Never writes to a link or file that a different user placed there.
pub fn create_shared_at(folder: impl AsFd, name: &OsStr, mode: u32) -> io::Result<File> {
    // `O_EXCL` follows no link and replaces nothing, so an existing entry is removed first.
    match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(cause) => return Err(cause.into()),
    }
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(mode))?);
    set_shared_file_mode(&file, mode)?;
    Ok(file)
}

/// Creates the folder `dir` and its missing parents with mode 777, restricted by the original umask.
pub fn create_shared_folder(dir: &Path) -> io::Result<()> {
    // The umask of the process removes these bits, so the mode is set afterwards.
    create_folder(dir, &|created| share(created, 0o777))
}

/// Creates the folder `dir` and its missing parents. If root creates one, the owner of its parent folder
/// becomes its owner.
pub fn create_private_folder(dir: &Path) -> io::Result<()> {
    create_folder(dir, &|created| {
        give_to_owner_of_folder(created);
        Ok(())
    })
}

/// Creates the folder `dir` and its missing parents, and calls `on_created` for each.
fn create_folder(dir: &Path, on_created: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        create_folder(parent, on_created)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => on_created(dir),
        // A different process created the folder in the meantime.
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Writes a new file with mode 666, restricted by the original umask.
pub fn write_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    set_shared_file_mode(&file, 0o666)?;
    file.write_all(bytes)
}

/// Makes the owner of the parent folder the owner of the file or folder that root created at `path`.
///
/// The service runs as that owner and could not read a private file of root. Does nothing for other users. A
/// file system without owners is not an error.
pub fn give_to_owner_of_folder(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(folder) = path.parent().and_then(|parent| fs::metadata(parent).ok()) else { return };
    if folder.uid() != 0 {
        drop(std::os::unix::fs::chown(path, Some(folder.uid()), Some(folder.gid())));
    }
}

/// Returns the id of the user that started the process, regardless of the environment.
pub fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Returns the mode of the file or folder at `path` if group or others have any access to it.
pub fn find_open_mode(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    (mode & GROUP_AND_OTHERS != 0).then_some(mode)
}

/// Returns the bytes that an unprivileged process can still write to the file system of `dir`.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    Ok(disk_space(dir)?.free_bytes)
}

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that an unprivileged process can still write.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// Returns the space of the file system of `dir`.
pub fn disk_space(dir: &Path) -> io::Result<DiskSpace> {
    let stats = rustix::fs::statvfs(dir)?;
    Ok(DiskSpace {
        // `f_bfree` would include the blocks that are reserved for root.
        free_bytes: stats.f_bavail.saturating_mul(stats.f_frsize),
        total_bytes: stats.f_blocks.saturating_mul(stats.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_and_private_folders_are_distinguished() {
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
