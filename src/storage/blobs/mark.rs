//! Reads and writes the mark of a store: the id of its archive, which the database also has, in a file or
//! object beside the originals.
//!
//! A node whose settings name the store of another archive would write originals that no other node finds. So
//! each write checks the mark first: in a folder every time, in a bucket when the last check is some seconds
//! old.

use std::{
    fs::{self, File},
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::bucket::Bucket;
use super::folder::{BlobFolder, failed};
use super::{BlobStore, StoreError, StoreLocation};
use crate::runtime::clock::Stopwatch;
use crate::runtime::modes;

/// Name of the file or object.
pub(super) const MARK: &str = "archive-id";
/// Maximum length in bytes: longer content is not an id.
pub(super) const MARK_BYTES_MAX: u64 = 128;
/// Period for which a verified bucket is not checked again.
const MARK_CACHE_TTL: Duration = Duration::from_secs(5);
/// Time limit of a check that finds out whether a store can be reached.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The word behind the id where the store replaces the one that the database knows.
const REPLACES: &str = "replaces";

/// The mark of a store: the archive that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// The id of the archive.
    pub id: String,
    /// Whether it replaces the store that the database knows: a command has copied the originals to it.
    pub replaces: bool,
}

/// The archive that a store has to belong to, once it is known.
#[derive(Debug, Default)]
pub(super) struct StoreOwner {
    id: OnceLock<String>,
    /// Time since a bucket was last verified to belong to the archive.
    last_verified: Mutex<Option<Stopwatch>>,
    /// Whether the store was ever verified.
    was_verified: AtomicBool,
    /// The present place of the originals, where the database names another one than this store.
    moved_to: Mutex<Option<String>>,
}

impl StoreOwner {
    fn is_recently_verified(&self) -> bool {
        let last = self.last_verified.lock();
        last.is_some_and(|since| since.elapsed() < MARK_CACHE_TTL)
    }

    fn note(&self, verified: Option<Stopwatch>) {
        *self.last_verified.lock() = verified;
    }
}

impl BlobStore {
    /// Returns the name of the store in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            StoreLocation::Folder(folder) => folder.dir.display().to_string(),
            StoreLocation::Bucket(blobs) => blobs.bucket.name(),
        }
    }

    /// Reads the mark of the store; `None` where it has none.
    pub fn mark(&self) -> Result<Option<StoreMark>, StoreError> {
        match &self.place {
            StoreLocation::Folder(folder) => read_file(folder),
            StoreLocation::Bucket(blobs) => blobs.bucket.read_mark(None),
        }
    }

    /// Writes the mark of the store, replacing an earlier one.
    pub fn set_mark(&self, mark: &StoreMark) -> Result<(), StoreError> {
        let text = match mark.replaces {
            true => format!("{} {REPLACES}\n", mark.id),
            false => format!("{}\n", mark.id),
        };
        match &self.place {
            StoreLocation::Folder(folder) => write_file(folder, &text),
            StoreLocation::Bucket(blobs) => blobs.bucket.put_small(MARK, Bytes::from(text)),
        }
    }

    /// Refuses every write from now on unless the store's mark has the archive id `id`. Only the first call
    /// has an effect.
    pub fn expect_archive(&self, id: &str) {
        self.owner.id.get_or_init(|| id.to_owned());
    }

    /// Returns whether the store is certainly another one than that of this name: a folder may have another
    /// path on another machine, but the name of a bucket is the same everywhere.
    #[must_use]
    pub fn differs_from(&self, name: &str) -> bool {
        let is_bucket = |name: &str| name.starts_with("s3://");
        let own = self.name();
        name != own && (is_bucket(name) || is_bucket(&own))
    }

    /// Records where the originals are stored according to the database. If that is another place, every
    /// write is refused from now on: another store has replaced this one while the process ran.
    pub fn note_claim(&self, claim: Option<&str>) {
        let moved_to = claim.filter(|claim| self.differs_from(claim)).map(str::to_owned);
        *self.owner.moved_to.lock() = moved_to;
    }

    fn check_claim(&self) -> Result<(), StoreError> {
        let Some(claim) = self.owner.moved_to.lock().clone() else { return Ok(()) };
        let why = format!("the database says that the originals are in {claim} now");
        Err(StoreError::OtherArchive { place: self.name(), why })
    }

    /// Fails with [`StoreError::OtherArchive`] where the store does not belong to the expected archive.
    pub(super) fn check_owner(&self) -> Result<(), StoreError> {
        self.check_claim()?;
        let Some(expected) = self.owner.id.get() else { return Ok(()) };
        // The check costs a request to a bucket, but only a small local read in a folder.
        if self.is_remote() && self.owner.is_recently_verified() {
            return Ok(());
        }
        // Taken before the read: the answer may be as old as the request.
        let since = Stopwatch::start();
        self.compare(expected, self.mark()?, since)
    }

    /// Checks within some seconds that the store can be reached and belongs to the expected archive. Blocks.
    pub fn check_reachable(&self) -> Result<(), StoreError> {
        let since = Stopwatch::start();
        let mark = match &self.place {
            StoreLocation::Folder(folder) => read_file(folder)?,
            StoreLocation::Bucket(blobs) => blobs.bucket.read_mark(Some(CHECK_TIMEOUT))?,
        };
        self.check_claim()?;
        match self.owner.id.get() {
            // A read-only store may have no mark.
            Some(_) if mark.is_none() && !self.owner.was_verified.load(Ordering::Relaxed) => {
                Ok(())
            }
            Some(expected) => self.compare(expected, mark, since),
            None => Ok(()),
        }
    }

    fn compare(
        &self,
        expected: &str,
        found: Option<StoreMark>,
        since: Stopwatch,
    ) -> Result<(), StoreError> {
        if found.as_ref().is_some_and(|found| found.id == expected) {
            self.owner.was_verified.store(true, Ordering::Relaxed);
            self.owner.note(Some(since));
            return Ok(());
        }
        // The next write must look again: the operator may have corrected the store.
        self.owner.note(None);
        let why = match found {
            Some(StoreMark { id: found, .. }) => format!(
                "it belongs to the archive {found}, and the database is that of {expected}"
            ),
            None => format!(
                "{MARK} is missing in it, which marks it as that of the archive {expected}"
            ),
        };
        Err(StoreError::OtherArchive { place: self.name(), why })
    }
}

fn parse(bytes: &[u8]) -> StoreMark {
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.split_whitespace();
    // The id appears in messages, and anyone who can write to the store chooses it.
    let clean = |word: &str| word.chars().filter(|c| !c.is_control()).collect();
    let id = words.next().map(clean).unwrap_or_default();
    StoreMark { id, replaces: words.next() == Some(REPLACES) }
}

fn read_file(folder: &BlobFolder) -> Result<Option<StoreMark>, StoreError> {
    use std::io::Read;
    let path = folder.dir.join(MARK);
    let mut bytes = Vec::new();
    let read =
        File::open(&path).and_then(|file| file.take(MARK_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(parse(&bytes))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            // A missing folder is an error, not a folder without a mark.
            fs::metadata(&folder.dir).map_err(failed(&folder.dir))?;
            Ok(None)
        }
        Err(cause) => Err(failed(&path)(cause)),
    }
}

fn write_file(folder: &BlobFolder, text: &str) -> Result<(), StoreError> {
    let path = folder.dir.join(MARK);
    let tmp = folder.temporary("mark");
    let written = File::create_new(&tmp).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        modes::give_to_owner_of_folder(&tmp);
        fs::rename(&tmp, &path)?;
        File::open(&folder.dir)?.sync_all()
    });
    written.map_err(|cause| {
        // The error of the write is reported; a failed removal of its remains adds nothing.
        drop(fs::remove_file(&tmp));
        failed(&path)(cause)
    })
}

impl Bucket {
    /// Reads the mark; with a `limit` even while the circuit is open, to check that the bucket answers.
    fn read_mark(&self, limit: Option<Duration>) -> Result<Option<StoreMark>, StoreError> {
        let bytes = self.small(MARK, MARK_BYTES_MAX, limit)?;
        Ok(bytes.map(|bytes| parse(&bytes)))
    }
}
