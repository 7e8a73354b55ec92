//! Opens files below a folder that untrusted senders write into, without following symbolic links.
//!
//! Every component of the path is opened relative to the folder before it, and all reads use the opened file.
//! Replacing a folder or a file with a link at any moment therefore has no effect. Readers that need a path,
//! including other processes, get the path of the opened file in `/proc`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::runtime::modes;

/// The handling of a missing folder on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingFolder {
    Fails,
    /// The folder is created, with the permissions for others that the umask at the start allows.
    Created,
}

/// A file or folder that stays the opened one, even if its path is replaced.
#[derive(Debug)]
pub(super) struct PinnedPath {
    path: PathBuf,
    opened: Option<OwnedFd>,
}

impl PinnedPath {
    /// Creates a path that is used as it is, without an open file.
    pub(super) fn unpinned(path: &Path) -> Self {
        Self { path: path.to_owned(), opened: None }
    }

    fn from_opened(opened: OwnedFd) -> Self {
        let process = std::process::id();
        let number = opened.as_raw_fd();
        // In a child process, `/proc/self` would refer to the child.
        Self { path: format!("/proc/{process}/fd/{number}").into(), opened: Some(opened) }
    }

    /// Returns the path of the opened file, which is also valid in child processes.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the regular file `name` in this folder.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<Self> {
        match &self.opened {
            Some(folder) => open_file_at(folder, name).map(Self::from_opened),
            None => Ok(Self { path: self.path.join(name), opened: None }),
        }
    }
}

/// Opens the regular file at `path` below `root`.
///
/// Fails with a message that names the symbolic link, if the path contains one.
pub(super) fn file(root: &Path, path: &Path) -> io::Result<PinnedPath> {
    let within = path.strip_prefix(root).map_err(io::Error::other)?;
    let name = within.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder =
        open_folder(root, within.parent().unwrap_or(Path::new("")), MissingFolder::Fails)?;
    open_file_at(&folder, name).map(PinnedPath::from_opened)
}

/// Opens the folder at `path` below `root`.
pub(super) fn folder(root: &Path, path: &Path) -> io::Result<PinnedPath> {
    let within = path.strip_prefix(root).map_err(io::Error::other)?;
    open_folder(root, within, MissingFolder::Fails).map(PinnedPath::from_opened)
}

/// Opens the folder `within` below `root`. The root itself may be a link, because the operator controls it.
pub(super) fn open_folder(
    root: &Path,
    within: &Path,
    missing: MissingFolder,
) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(root, flags, Mode::empty())?;
    for part in within.components() {
        // `..` would lead out of the root.
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut is_new = false;
        if missing == MissingFolder::Created {
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => is_new = true,
                Err(rustix::io::Errno::EXIST) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        let opened = rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
        folder = opened.map_err(|cause| refused(name, cause))?;
        // The umask of the process is private, so the mode for others is set afterwards.
        if is_new {
            modes::set_shared_file_mode(&folder, 0o777)?;
        }
    }
    Ok(folder)
}

fn open_file_at(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    // Opening a pipe without a writer must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty());
    let opened = File::from(opened.map_err(|cause| refused(name, cause))?);
    if opened.metadata()?.is_file() {
        return Ok(opened.into());
    }
    let message = format!("{} is not a regular file", name.to_string_lossy());
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

fn refused(name: &OsStr, cause: rustix::io::Errno) -> io::Error {
    // A link fails with `ELOOP`, or with `ENOTDIR` if a folder is expected (`open(2)`).
    if !matches!(cause, rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) {
        return cause.into();
    }
    let message = format!("{}: symbolic links are not followed", name.to_string_lossy());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Returns whether a folder has an entry with this name, even a link.
pub(super) fn exists(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Writes a new file into a folder, in place of any entry with this name, with the permissions for others that the
/// umask at the start allows.
pub(super) fn write(folder: &OwnedFd, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    modes::create_shared_at(folder, name, 0o666)?.write_all(bytes)
}

/// Moves the entry `from` of the folder `source` to the name `to` in the folder `target`.
pub(super) fn rename(
    source: &OwnedFd,
    from: &OsStr,
    target: &OwnedFd,
    to: &OsStr,
) -> io::Result<()> {
    Ok(rustix::fs::renameat(source, from, target, to)?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn no_link_on_the_way_is_followed_and_an_opened_file_stays_the_one_it_was() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret.jpg"), "secret").unwrap();
        fs::create_dir(root.path().join("desk")).unwrap();
        let path = root.path().join("desk/a.jpg");
        fs::write(&path, "picture").unwrap();
        let pinned = file(root.path(), &path).unwrap();
        // The folder is replaced with a link to another one that has a file with the same name.
        fs::rename(root.path().join("desk"), root.path().join("away")).unwrap();
        fs::write(outside.path().join("a.jpg"), "secret").unwrap();
        symlink(outside.path(), root.path().join("desk")).unwrap();
        assert_eq!(fs::read(pinned.path()).unwrap(), b"picture");
        let refused = file(root.path(), &path).unwrap_err();
        assert!(refused.to_string().contains("symbolic links"), "{refused}");
        assert!(folder(root.path(), &root.path().join("desk")).is_err());
        // A symbolic link, and an entry that is not a file.
        symlink(outside.path().join("secret.jpg"), root.path().join("b.jpg")).unwrap();
        assert!(file(root.path(), &root.path().join("b.jpg")).is_err());
        assert!(file(root.path(), &root.path().join("away")).is_err());
        assert!(file(root.path(), &root.path().join("away/../../b.jpg")).is_err());
    }

    #[test]
    fn a_file_of_a_pinned_folder_is_read_although_the_folder_is_swapped() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let item = root.path().join("image/x");
        fs::create_dir_all(&item).unwrap();
        fs::write(item.join("item.json"), "{}").unwrap();
        fs::write(outside.path().join("item.json"), "secret").unwrap();
        let pinned = folder(root.path(), &item).unwrap();
        fs::rename(&item, root.path().join("image/y")).unwrap();
        symlink(outside.path(), &item).unwrap();
        let document = pinned.file(OsStr::new("item.json")).unwrap();
        assert_eq!(fs::read(document.path()).unwrap(), b"{}");
        let names: Vec<_> = fs::read_dir(pinned.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }
}
