//! The spool: uploaded files in the data directory, stored until their item is ingested.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::UPLOAD_ABANDONED;

/// The folder for files that are being uploaded.
#[derive(Clone, Debug)]
pub struct UploadSpool {
    dir: PathBuf,
    /// The maximum length of one file in bytes.
    pub file_bytes_max: u64,
}

impl UploadSpool {
    /// Opens the folder `dir`, creates it if it is missing, and removes files that an earlier process abandoned. A
    /// different process may be using the folder at the same time. A file may have `file_bytes_max` bytes, which
    /// the writer has to enforce.
    pub fn open(dir: &Path, file_bytes_max: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let age = entry.metadata().and_then(|found| found.modified()).map(|at| at.elapsed());
            // A different process may be writing to a younger file. A time in the future counts as young.
            let abandoned = matches!(age, Ok(Ok(age)) if age > UPLOAD_ABANDONED);
            let path = entry.path();
            if abandoned && path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(path)?;
            }
        }
        Ok(Self { dir: dir.to_owned(), file_bytes_max })
    }

    /// Creates an empty file for a part of an upload.
    pub async fn create(&self) -> Result<SpooledFile> {
        let spool = self.clone();
        let created = tokio::task::spawn_blocking(move || spool.create_blocking());
        created.await.map_err(Error::internal)?.map_err(unavailable)
    }

    pub(super) fn create_blocking(&self) -> io::Result<SpooledFile> {
        let path = self.dir.join(format!("{}.part", Uuid::now_v7()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(SpooledFile { path, file, bytes: 0 })
    }
}

/// A file that is being uploaded. Dropping it removes the file.
#[derive(Debug)]
pub struct SpooledFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl SpooledFile {
    /// Appends bytes to the file.
    pub async fn append(mut self, bytes: bytes::Bytes) -> Result<Self> {
        let written = tokio::task::spawn_blocking(move || self.write(&bytes).map(|()| self));
        written.await.map_err(Error::internal)?.map_err(unavailable)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Returns the number of bytes written until now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the path of the file on disk.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unavailable(cause: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "The upload cannot be stored now").with_source(cause)
}

impl Drop for SpooledFile {
    fn drop(&mut self) {
        // A file that cannot be removed now is removed when a server starts.
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_process_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().expect("folder");
        for (name, old) in [("left.part", true), ("fresh.part", false), ("other", true)] {
            let file = File::create(dir.path().join(name)).expect("made");
            if old {
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("set");
            }
        }
        let spool = UploadSpool::open(dir.path(), 3).expect("opened");
        let mut file = spool.create_blocking().expect("made");
        file.write(b"abc").expect("written");
        assert_eq!((fs::read(file.path()).expect("read"), file.bytes()), (b"abc".to_vec(), 3));
        drop(file);
        let left = fs::read_dir(dir.path()).expect("listed").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["fresh.part", "other"]);
    }
}
