//! Files that are being uploaded: they lie in the data directory until their item is taken in.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::limits::UPLOAD_ABANDONED;

/// The folder for files that are being uploaded.
#[derive(Clone, Debug)]
pub struct Spool {
    dir: PathBuf,
}

impl Spool {
    /// Opens the folder `dir`, which is made when it is missing, and removes what an earlier
    /// process left there; another one may be at work beside this one.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let age = entry.metadata().and_then(|found| found.modified()).map(|at| at.elapsed());
            let abandoned = matches!(age, Ok(Ok(age)) if age > UPLOAD_ABANDONED);
            let path = entry.path();
            if abandoned && path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(path)?;
            }
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// Makes an empty file.
    pub fn create(&self) -> io::Result<SpooledFile> {
        let path = self.dir.join(format!("{}.part", Uuid::now_v7()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(SpooledFile { path, file, bytes: 0 })
    }
}

/// A file that is being uploaded; it is removed when this is dropped.
#[derive(Debug)]
pub struct SpooledFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl SpooledFile {
    /// Adds bytes; blocks.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpooledFile {
    fn drop(&mut self) {
        // What cannot be removed now is when the next server starts.
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
        let spool = Spool::open(dir.path()).expect("opened");
        let mut file = spool.create().expect("made");
        file.write(b"abc").expect("written");
        assert_eq!((fs::read(file.path()).expect("read"), file.bytes()), (b"abc".to_vec(), 3));
        drop(file);
        let left = fs::read_dir(dir.path()).expect("listed").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["fresh.part", "other"]);
    }
}
