//! Reads and writes the mark of a store, in a file or object beside the originals. The mark has the ids of
//! the archive and of the store itself, which the database also has.
//!
//! If the settings of a node named the store of a different archive, the node would write originals that no
//! other node finds. So each write checks the mark first: every time in a folder, and in a bucket if the last
//! check is some seconds old. The store's own id distinguishes the current store of an archive from an
//! earlier one, which has the same archive id. The path of a folder cannot, because it may differ between
//! machines.

use std::fs::{self, File};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::folder::{BlobFolder, failed, move_in_place, remove_and_report, write_and_flush};
use super::{BlobStore, StoreError, StoreLocation, StoreResult};
use crate::runtime::clock::Stopwatch;
use crate::storage::database::StoreClaim;

/// Name of the file or object.
pub(super) const MARK: &str = "archive-id";
/// Maximum length in bytes. Longer content is not an id.
pub(super) const MARK_BYTES_MAX: u64 = 128;
/// Period for which a verified bucket is not checked again.
const MARK_CACHE_TTL: Duration = Duration::from_secs(5);
/// Time limit of the check whether a store can be reached.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The word after the id if the store replaces the one that the database knows.
const REPLACES: &str = "replaces";
/// The prefix of the word with the id of the store.
const STORE_ID: &str = "store=";

/// The mark of a store: the archive that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMark {
    /// The id of the archive.
    pub id: String,
    /// The id of the store itself; `None` until a node serves from the store.
    pub store_id: Option<String>,
    /// True if it replaces the store that the database knows: a command has copied the originals to it.
    pub replaces: bool,
}

/// The archive that a store must belong to, once it is known.
#[derive(Debug, Default)]
pub(super) struct StoreOwner {
    id: OnceLock<String>,
    /// Time since a bucket was last verified to belong to the archive.
    last_verified: Mutex<Option<Stopwatch>>,
    /// True if the store was ever verified.
    was_verified: AtomicBool,
    /// The mark that was read last.
    last_mark: Mutex<Option<StoreMark>>,
    /// The store that the database names.
    claim: Mutex<Option<StoreClaim>>,
    /// The mismatch found by the last check of a reachable store.
    mismatch: Mutex<Option<StoreMismatch>>,
}

/// The reason that a reachable store is not the archive's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMismatch {
    /// The database names a different store, which has replaced this one.
    Replaced,
    /// The mark belongs to a different archive, or is missing.
    Foreign,
}

impl StoreOwner {
    fn is_recently_verified(&self) -> bool {
        let last = self.last_verified.lock();
        last.is_some_and(|since| since.elapsed() < MARK_CACHE_TTL)
    }
}

impl BlobStore {
    /// Returns the name of the store in messages.
    pub fn name(&self) -> String {
        match &self.place {
            StoreLocation::Folder(folder) => folder.dir.display().to_string(),
            StoreLocation::Bucket(blobs) => blobs.bucket.name(),
        }
    }

    /// Reads the mark of the store. Returns `None` if the store has no mark.
    pub fn mark(&self) -> StoreResult<Option<StoreMark>> {
        self.read_mark(None)
    }

    /// Reads the mark. With a `limit`, reads it even while the circuit of the bucket is open, to check that the
    /// bucket answers.
    fn read_mark(&self, limit: Option<Duration>) -> StoreResult<Option<StoreMark>> {
        match &self.place {
            StoreLocation::Folder(folder) => read_file(folder),
            StoreLocation::Bucket(blobs) => {
                let bytes = blobs.bucket.small(MARK, MARK_BYTES_MAX, limit)?;
                Ok(bytes.map(|bytes| parse(&bytes)))
            }
        }
    }

    /// Writes the mark of the store, replacing an earlier one.
    pub fn set_mark(&self, mark: &StoreMark) -> StoreResult<()> {
        let text = print(mark);
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

    /// Returns whether the store, which has this `mark`, differs from the `claim` of the database.
    ///
    /// The name of a bucket is the same everywhere. A folder may have a different path on each machine, so
    /// the id of the store decides.
    pub fn differs_from(&self, claim: &StoreClaim, mark: Option<&StoreMark>) -> bool {
        let own = self.name();
        let has_own_name = claim.name == own;
        if !has_own_name && (is_bucket_name(&claim.name) || is_bucket_name(&own)) {
            return true;
        }
        match (&claim.store_id, mark) {
            (Some(claimed), Some(StoreMark { store_id: Some(found), .. })) => claimed != found,
            // A mark without an id: a node is about to write the id, or the store was replaced before.
            (Some(_), Some(StoreMark { store_id: None, .. })) => !has_own_name,
            (None, _) | (_, None) => false,
        }
    }

    /// Records the store that the database names. If it differs from this one, it has replaced this one while
    /// the process ran: every write is refused from now on.
    pub fn note_claim(&self, claim: Option<StoreClaim>) {
        *self.owner.claim.lock() = claim;
    }

    /// Returns the reason that the last [`BlobStore::check_reachable`] refused the store although it
    /// answered.
    pub fn mismatch(&self) -> Option<StoreMismatch> {
        *self.owner.mismatch.lock()
    }

    fn check_claim(&self) -> StoreResult<()> {
        let Some(claim) = self.owner.claim.lock().clone() else { return Ok(()) };
        // Nothing is known about the store itself without its mark.
        let Some(mark) = self.owner.last_mark.lock().clone() else { return Ok(()) };
        if !self.differs_from(&claim, Some(&mark)) {
            return Ok(());
        }
        let why = format!("the database says that the originals are in {} now", claim.name);
        Err(StoreError::OtherArchive { place: self.name(), why })
    }

    /// Fails with [`StoreError::OtherArchive`] if the store does not belong to the expected archive.
    pub(super) fn check_owner(&self) -> StoreResult<()> {
        let Some(expected) = self.owner.id.get() else { return self.check_claim() };
        // The check costs a request to a bucket, but only a small local read in a folder.
        if self.is_remote() && self.owner.is_recently_verified() {
            return self.check_claim();
        }
        // Started before the read: the answer may be as old as the request.
        let since = Stopwatch::start();
        self.compare(expected, self.mark()?, since)?;
        self.check_claim()
    }

    /// Checks within some seconds that the store can be reached and belongs to the expected archive. Blocks.
    pub fn check_reachable(&self) -> StoreResult<()> {
        let outcome = self.reach();
        *self.owner.mismatch.lock() = match &outcome {
            Err(StoreError::OtherArchive { .. }) if self.check_claim().is_err() => {
                Some(StoreMismatch::Replaced)
            }
            Err(StoreError::OtherArchive { .. }) => Some(StoreMismatch::Foreign),
            Ok(()) | Err(_) => None,
        };
        outcome
    }

    fn reach(&self) -> StoreResult<()> {
        let since = Stopwatch::start();
        let mark = self.read_mark(Some(CHECK_TIMEOUT))?;
        match self.owner.id.get() {
            // A read-only store may have no mark.
            Some(_) if mark.is_none() && !self.owner.was_verified.load(Ordering::Relaxed) => {}
            Some(expected) => self.compare(expected, mark, since)?,
            None => {}
        }
        self.check_claim()
    }

    fn compare(
        &self,
        expected: &str,
        found: Option<StoreMark>,
        since: Stopwatch,
    ) -> StoreResult<()> {
        self.owner.last_mark.lock().clone_from(&found);
        if found.as_ref().is_some_and(|found| found.id == expected) {
            self.owner.was_verified.store(true, Ordering::Relaxed);
            *self.owner.last_verified.lock() = Some(since);
            return Ok(());
        }
        // The next write must check again: the operator may have corrected the store.
        *self.owner.last_verified.lock() = None;
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

fn is_bucket_name(name: &str) -> bool {
    name.starts_with("s3://")
}

/// Prints a mark: the id of the archive, followed by its other words, separated by spaces.
fn print(mark: &StoreMark) -> String {
    let StoreMark { id, store_id, replaces } = mark;
    let mut text = id.clone();
    if *replaces {
        text.push_str(&format!(" {REPLACES}"));
    }
    if let Some(store_id) = store_id {
        text.push_str(&format!(" {STORE_ID}{store_id}"));
    }
    text.push('\n');
    text
}

fn parse(bytes: &[u8]) -> StoreMark {
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.split_whitespace();
    let id = words.next().map(without_controls).unwrap_or_default();
    let mut mark = StoreMark { id, store_id: None, replaces: false };
    for word in words {
        if word == REPLACES {
            mark.replaces = true;
        } else if let Some(store_id) = word.strip_prefix(STORE_ID) {
            mark.store_id = Some(without_controls(store_id));
        }
    }
    mark
}

/// Removes control characters from an id. Anyone who can write to the store chooses it, and messages contain
/// it.
fn without_controls(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).collect()
}

fn read_file(folder: &BlobFolder) -> StoreResult<Option<StoreMark>> {
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

fn write_file(folder: &BlobFolder, text: &str) -> StoreResult<()> {
    let path = folder.dir.join(MARK);
    let tmp = folder.temporary("mark");
    write_and_flush(&tmp, text.as_bytes())
        .and_then(|()| move_in_place(&tmp, &path))
        .and_then(|()| File::open(&folder.dir)?.sync_all())
        .map_err(remove_and_report(&tmp, &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(store_id: Option<&str>, replaces: bool) -> StoreMark {
        StoreMark { id: "archive".to_owned(), store_id: store_id.map(str::to_owned), replaces }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for store_id in [None, Some("one")] {
            for replaces in [false, true] {
                let mark = mark(store_id, replaces);
                assert_eq!(parse(print(&mark).as_bytes()), mark);
            }
        }
    }

    fn claim(name: &str, store_id: Option<&str>) -> StoreClaim {
        StoreClaim { name: name.to_owned(), store_id: store_id.map(str::to_owned) }
    }

    /// Checks whether the store differs from a claim if it has the mark `found`.
    fn check(store: &BlobStore, claim: &StoreClaim, found: Option<&StoreMark>, expected: bool) {
        assert_eq!(store.differs_from(claim, found), expected, "{claim:?} and {found:?}");
    }

    #[test]
    fn a_folder_is_known_by_its_id_and_without_one_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let store = BlobStore::open(dir.path()).unwrap();
        let own = claim(&store.name(), Some("one"));
        let elsewhere = claim("/elsewhere", Some("one"));
        let unmarked = mark(None, false);
        check(&store, &elsewhere, Some(&mark(Some("one"), false)), false);
        check(&store, &own, Some(&mark(Some("two"), false)), true);
        // A store that had no id yet when a node replaced it.
        check(&store, &elsewhere, Some(&unmarked), true);
        check(&store, &own, Some(&unmarked), false);
        // An archive that no node has served.
        check(&store, &claim("/elsewhere", None), Some(&unmarked), false);
        check(&store, &claim("/elsewhere", None), Some(&mark(Some("one"), true)), false);
        check(&store, &claim("s3://bucket/prefix", None), Some(&unmarked), true);
        check(&store, &elsewhere, None, false);
    }
}
