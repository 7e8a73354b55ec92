//! A temporary folder for one run.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use uuid::Uuid;

use crate::runtime::error::{Error, ErrorKind, Result};

/// A folder that is removed with its contents.
#[derive(Debug)]
pub(super) struct ScratchFolder {
    path: PathBuf,
}

impl ScratchFolder {
    /// Creates a folder with a unique name in the existing folder `within`. Only the owner has access,
    /// because the photographs may be unpublished.
    pub(super) fn make(within: &Path) -> Result<Self> {
        let path = within.join(format!("wirephoto-bench-{}", Uuid::now_v7()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self { path }),
            Err(cause) => Err(failed(&path, "cannot be created", cause)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder; the error names it, because copies of photographs remain in it.
    pub(super) fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.path)
            .map_err(|cause| failed(&self.path, "cannot be removed", cause))
    }
}

impl Drop for ScratchFolder {
    /// Removes the folder after a panic; any other run has removed it already.
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

fn failed(path: &Path, what: &str, cause: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{} {what}", path.display())).with_source(cause)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_scratch_folder_is_private_and_removed_however_the_run_ends() {
        let outside = tempfile::tempdir().unwrap();
        for is_removed in [true, false] {
            let folder = ScratchFolder::make(outside.path()).unwrap();
            let path = folder.path().to_owned();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
            fs::create_dir(path.join("originals")).unwrap();
            fs::write(path.join("originals/a"), "picture").unwrap();
            if is_removed {
                folder.remove().unwrap();
            } else {
                drop(folder);
            }
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_place_that_is_missing_is_named() {
        let outside = tempfile::tempdir().unwrap();
        let error = ScratchFolder::make(&outside.path().join("nowhere")).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
