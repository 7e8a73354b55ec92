//! Whose store it is: the id of the archive, which its database has too, in a file or object of its own
//! beside the originals.
//!
//! A node whose settings name another store than its database belongs to would take originals in that no
//! other node finds. So each write looks at the mark first: in a folder each time, in a bucket when
//! the last look is some seconds old.

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

/// The name of the file or object.
pub(super) const MARK: &str = "archive-id";
/// Its bytes at most: what is longer is no id.
pub(super) const MARK_BYTES_MAX: u64 = 128;
/// Time for which a bucket is believed to be the one that was looked at.
const MARK_CACHE_TTL: Duration = Duration::from_secs(5);
/// Time that a look at a store may take that finds out whether it can be reached.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Behind the id: the store replaces the one that the database knows.
const REPLACES: &str = "replaces";

/// What a store says of the archive that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// The id of the archive.
    pub id: String,
    /// Whether it replaces the store that the database knows: a command has brought the originals here.
    pub replaces: bool,
}

/// The archive that a store has to belong to, once that is known.
#[derive(Debug, Default)]
pub(super) struct StoreOwner {
    id: OnceLock<String>,
    /// Since a bucket was last seen to belong to it.
    seen: Mutex<Option<Stopwatch>>,
    /// Whether it was ever seen to.
    was_seen: AtomicBool,
    /// Where the originals lie by now, where the database names another place.
    moved_to: Mutex<Option<String>>,
}

impl StoreOwner {
    fn is_recently_verified(&self) -> bool {
        let seen = self.seen.lock();
        seen.is_some_and(|since| since.elapsed() < MARK_CACHE_TTL)
    }

    fn note(&self, seen: Option<Stopwatch>) {
        *self.seen.lock() = seen;
    }
}

impl BlobStore {
    /// The store, as messages name it.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            StoreLocation::Folder(folder) => folder.dir.display().to_string(),
            StoreLocation::Bucket(blobs) => blobs.bucket.name(),
        }
    }

    /// The id of the archive that the store says it belongs to; `None` where it says nothing.
    pub fn mark(&self) -> Result<Option<StoreMark>, StoreError> {
        match &self.place {
            StoreLocation::Folder(folder) => read_file(folder),
            StoreLocation::Bucket(blobs) => blobs.bucket.read_mark(None),
        }
    }

    /// Says this from now on, whatever it said before.
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

    /// Refuses every write from now on while the store does not say that it belongs to the archive `id`.
    /// What was expected first stays.
    pub fn expect_archive(&self, id: &str) {
        self.owner.id.get_or_init(|| id.to_owned());
    }

    /// Whether the store is certainly another one than that of this name: a folder may be called otherwise
    /// on another machine, a bucket is not.
    #[must_use]
    pub fn differs_from(&self, name: &str) -> bool {
        let is_bucket = |name: &str| name.starts_with("s3://");
        let own = self.name();
        name != own && (is_bucket(name) || is_bucket(&own))
    }

    /// Notes where the originals lie, as the database says. Where that is another place every write is refused
    /// from now on: another store has replaced this one while the process ran.
    pub fn note_claim(&self, claim: Option<&str>) {
        let moved = claim.filter(|claim| self.differs_from(claim)).map(str::to_owned);
        *self.owner.moved_to.lock() = moved;
    }

    fn check_claim(&self) -> Result<(), StoreError> {
        let Some(claim) = self.owner.moved_to.lock().clone() else { return Ok(()) };
        let why = format!("the database says that the originals lie in {claim} now");
        Err(StoreError::OtherArchive { place: self.name(), why })
    }

    /// Fails with [`StoreError::OtherArchive`] where the store does not belong to the archive that is
    /// expected.
    pub(super) fn check_owner(&self) -> Result<(), StoreError> {
        self.check_claim()?;
        let Some(expected) = self.owner.id.get() else { return Ok(()) };
        if self.is_remote() && self.owner.is_recently_verified() {
            return Ok(());
        }
        let since = Stopwatch::start();
        self.compare(expected, self.mark()?, since)
    }

    /// Whether the store can be reached and belongs to the archive that is expected, found out within some
    /// seconds. Blocks.
    pub fn check_reachable(&self) -> Result<(), StoreError> {
        let since = Stopwatch::start();
        let mark = match &self.place {
            StoreLocation::Folder(folder) => read_file(folder)?,
            StoreLocation::Bucket(blobs) => blobs.bucket.read_mark(Some(CHECK_TIMEOUT))?,
        };
        self.check_claim()?;
        match self.owner.id.get() {
            // A store that can only be read may have none.
            Some(_) if mark.is_none() && !self.owner.was_seen.load(Ordering::Relaxed) => Ok(()),
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
            self.owner.was_seen.store(true, Ordering::Relaxed);
            self.owner.note(Some(since));
            return Ok(());
        }
        self.owner.note(None);
        let why = match found {
            Some(StoreMark { id: found, .. }) => format!(
                "it belongs to the archive {found}, and the database is that of {expected}"
            ),
            None => format!(
                "{MARK} is missing in it, which says that it belongs to the archive {expected}"
            ),
        };
        Err(StoreError::OtherArchive { place: self.name(), why })
    }
}

fn parse(bytes: &[u8]) -> StoreMark {
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.split_whitespace();
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
            // A folder that is gone is no folder without a mark.
            fs::metadata(&folder.dir).map_err(failed(&folder.dir))?;
            Ok(None)
        }
        Err(cause) => Err(failed(&path)(cause)),
    }
}

fn write_file(folder: &BlobFolder, text: &str) -> Result<(), StoreError> {
    let path = folder.dir.join(MARK);
    let part = folder.temporary("mark");
    let written = File::create_new(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        modes::give_to_owner_of_folder(&part);
        fs::rename(&part, &path)?;
        File::open(&folder.dir)?.sync_all()
    });
    written.map_err(|cause| {
        // It was not written; that its remains cannot be removed either adds nothing.
        drop(fs::remove_file(&part));
        failed(&path)(cause)
    })
}

impl Bucket {
    /// What the mark says; `limit` is for a look that finds out whether the bucket answers, whatever is
    /// known of it.
    fn read_mark(&self, limit: Option<Duration>) -> Result<Option<StoreMark>, StoreError> {
        let bytes = self.small(MARK, MARK_BYTES_MAX, limit)?;
        Ok(bytes.map(|bytes| parse(&bytes)))
    }
}
