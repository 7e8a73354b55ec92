//! Writes files to a folder on this machine.
//!
//! Channels name folders below one root that the operator sets. Each path component is opened relative to its
//! parent, and symbolic links are not followed. A user with write access to a delivery folder therefore cannot
//! redirect writes outside it, not even by a race.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::fs::{AtFlags, Mode, OFlags};
use tokio::io::AsyncWriteExt;

use crate::runtime::modes;
use crate::transport::conversation::{RemoteConversation, TransportTimeouts};
use crate::transport::error::{SendError, SendFault, SendRefusal, SendStep};
use crate::transport::file::{OutgoingFile, OutgoingReader};
use crate::transport::settings::{FieldProblem, FolderPath, SettingsReader};

/// The mode of delivered folders, before the umask.
const FOLDER_MODE: u32 = 0o755;
/// The mode of delivered files, before the umask. Unlike all other files of the process, they are readable by other
/// users.
const FILE_MODE: u32 = 0o644;

/// The destination folder below the root.
#[derive(Debug)]
pub(super) struct DirectoryTarget {
    path: FolderPath,
}

impl DirectoryTarget {
    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        Ok(Self { path: FolderPath::read(fields, "path", false)? })
    }

    /// Writes `files` to the folder, each first under a temporary name, which is then renamed atomically. Readers
    /// see a complete file or none, even after a crash.
    pub(super) async fn send(
        &self,
        root: &Path,
        timeouts: TransportTimeouts,
        id: &str,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let endpoint = format!("folder {}", self.path.parts.join("/"));
        let conversation = RemoteConversation { endpoint, timeouts, secrets: Vec::new() };
        let root = root.to_owned();
        let parts = self.path.parts.clone();
        let folder = conversation
            .await_answer(SendStep::Folder, run_blocking(move || open_folder(&root, &parts)))
            .await?;
        for file in files {
            // The dot hides the file from readers, and the id distinguishes it from the files of other deliveries.
            let temporary = format!(".{}.{id}.part", file.name);
            let limit = timeouts.transfer(file.size_bytes);
            let written = write(&folder, file, &temporary, timeouts);
            if let Err(error) = conversation.run_within(limit, SendStep::Upload, written).await {
                // Removes the partial file after a full disk or an interrupted read.
                let _ignored = rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty());
                return Err(error);
            }
            let folder = folder.try_clone().map_err(SendFault::Local);
            let folder = conversation.check(SendStep::Rename, folder)?;
            let name = file.name.clone();
            let renamed = run_blocking(move || {
                // The content is already on disk; the sync below makes the new name survive a crash.
                rustix::fs::renameat(&folder, &temporary, &folder, &name)?;
                Ok(rustix::fs::fsync(&folder)?)
            });
            conversation.await_answer(SendStep::Rename, renamed).await?;
        }
        Ok(())
    }
}

impl From<rustix::io::Errno> for SendFault {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Local(error.into())
    }
}

/// Runs disk operations on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SendFault> + Send + 'static,
) -> Result<T, SendFault> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| SendFault::Local(io::Error::other(error)))?
}

/// Opens the folder `parts` below `root` and creates missing parts. The root must exist, because a missing root
/// may be a disk that is not mounted.
fn open_folder(root: &Path, parts: &[String]) -> Result<OwnedFd, SendFault> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The root may be a symbolic link, since the operator chose it.
    let mut folder = rustix::fs::open(root, flags, Mode::empty())?;
    for part in parts {
        let is_new = match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(FOLDER_MODE)) {
            Ok(()) => {
                // The entry has to survive a crash together with the files in it.
                rustix::fs::fsync(&folder)?;
                true
            }
            Err(rustix::io::Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let opened = rustix::fs::openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty());
        folder = match opened {
            Ok(opened) => opened,
            // The part is a file, or a link that was not followed.
            Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {
                return Err(SendRefusal::NoFolder(part.clone()).into());
            }
            Err(error) => return Err(error.into()),
        };
        // An existing folder keeps the mode that its owner set.
        if is_new {
            modes::set_shared_file_mode(&folder, FOLDER_MODE).map_err(SendFault::Local)?;
        }
    }
    Ok(folder)
}

async fn write(
    folder: &OwnedFd,
    file: &OutgoingFile,
    name: &str,
    timeouts: TransportTimeouts,
) -> Result<(), SendFault> {
    let folder = folder.try_clone().map_err(SendFault::Local)?;
    let name = name.to_owned();
    let created = run_blocking(move || {
        modes::create_shared_at(folder, name.as_ref(), FILE_MODE).map_err(SendFault::Local)
    });
    let mut target = tokio::fs::File::from_std(created.await?);
    let mut reader = OutgoingReader::open(file, timeouts.answer).await?;
    while let Some(chunk) = reader.next().await? {
        target.write_all(&chunk).await.map_err(SendFault::Local)?;
    }
    // Writes run in the background; this waits for the last one and reports its error.
    target.flush().await.map_err(SendFault::Local)?;
    target.sync_all().await.map_err(SendFault::Local)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn directory(path: &str) -> DirectoryTarget {
        let settings = if path.is_empty() { json!({}) } else { json!({ "path": path }) };
        DirectoryTarget::read(&mut SettingsReader::new(settings.as_object().unwrap())).unwrap()
    }

    fn files(content: &'static str) -> Vec<OutgoingFile> {
        let bytes = Bytes::from_static(content.as_bytes());
        vec![OutgoingFile::from_bytes("a.jpg", "image/jpeg", bytes).unwrap()]
    }

    async fn send(root: &Path, path: &str, files: &[OutgoingFile]) -> Result<(), SendError> {
        directory(path).send(root, TransportTimeouts::default(), "d1", files).await
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_file_arrives_complete_and_a_retry_replaces_it() {
        let root = tempfile::tempdir().unwrap();
        for content in ["first", "second, longer"] {
            send(root.path(), "desk/in", &files(content)).await.unwrap();
            let path = root.path().join("desk/in");
            assert_eq!(names(&path), ["a.jpg"]);
            assert_eq!(fs::read_to_string(path.join("a.jpg")).unwrap(), content);
        }
    }

    #[tokio::test]
    async fn links_lead_nowhere() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), root.path().join("out")).unwrap();
        let error = send(root.path(), "out", &files("x")).await.unwrap_err();
        assert!(!error.is_temporary());
        assert_eq!(
            error.to_string(),
            "folder out, finding the folder: out is not a folder; links are not followed"
        );
        let target = outside.path().join("target");
        fs::write(&target, "untouched").unwrap();
        for name in ["a.jpg", ".a.jpg.d1.part"] {
            symlink(&target, root.path().join(name)).unwrap();
        }
        send(root.path(), "", &files("x")).await.unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(root.path().join("a.jpg")).unwrap(), "x");
        assert!(!root.path().join("a.jpg").is_symlink());
    }

    #[tokio::test]
    async fn a_file_that_breaks_off_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let short = OutgoingFile::new("a.jpg", "image/jpeg", 9, || async {
            let pieces = futures_util::stream::iter([Ok(Bytes::from_static(b"abc"))]);
            Ok(Box::pin(pieces) as crate::transport::Content)
        });
        let error = send(root.path(), "in", &[short.unwrap()]).await.unwrap_err();
        assert!(matches!(*error.fault, SendFault::Length { .. }) && error.is_temporary());
        assert!(names(&root.path().join("in")).is_empty());
    }

    #[tokio::test]
    async fn a_missing_root_is_temporary() {
        let root = tempfile::tempdir().unwrap();
        let error = send(&root.path().join("unmounted"), "a", &files("x")).await.unwrap_err();
        assert!(error.is_temporary() && !root.path().join("unmounted").exists(), "{error}");
    }
}
