//! Removes originals to which no item refers: the originals of a refused ingest, and for the operator's check all
//! orphans.
//!
//! Originals are named by their content, so an ingest in flight, of any process, may find an original in the store and
//! rely on it just when it is removed. The write transactions of the database run one after the other and prevent this:
//!
//! 1. A removal announces itself in a transaction.
//! 2. In a second transaction it checks again that no item refers to the originals, removes them from the store, and
//!    ends the announcement. Items of ingests that committed earlier are seen by this check.
//! 3. An ingest that commits after the announcement notices it in its own transaction, and checks whether its originals
//!    still exist ([`OriginalsGuard`]).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

use super::error::catch_panics;
use super::{Ingest, IngestError, IngestResult};
use crate::media::original::OriginalStore;
use crate::runtime::clock;
use crate::storage::blobs::{BlobStore, StoreError, StoreResult};
use crate::storage::database::{Db, DbError, DbResult, OriginalRemovals, ReadTx, WriteTx};
use model::ContentHash;

/// The number of originals that are removed concurrently in one transaction: in a bucket each removal is a
/// request.
const REMOVED_AT_ONCE: usize = 16;
/// The number of attempts to remove originals while other removals interfere.
const ATTEMPTS_MAX: u32 = 5;
/// The interval between attempts to remove the originals of refused ingests while the database does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The number of originals of refused ingests that may wait for the database. Further originals stay orphans,
/// which a check reports.
const PENDING_MAX: usize = 10_000;

/// The state of the database at one time. Compared with a later state, it shows the removals and items since then.
#[derive(Clone, Debug)]
pub struct OriginalsState {
    removals: OriginalRemovals,
    /// The number of the newest version of any item.
    last_version: i64,
}

impl OriginalsState {
    /// Reads the current state.
    pub fn load(tx: &ReadTx<'_>) -> DbResult<Self> {
        Ok(Self { removals: tx.original_removals()?, last_version: tx.last_version()? })
    }
}

/// Originals that may be removed, unless an item refers to them by now.
#[derive(Clone, Debug)]
pub struct UnreferencedOriginals {
    /// A state in which no item referred to them.
    pub since: OriginalsState,
    pub hashes: Vec<ContentHash>,
}

/// Removes the originals, with their derived files, unless an item refers to them by now. Returns the removed ones.
///
/// Each transaction removes a few originals, so that other writes can run in between. Fails if the database or the
/// store does not answer.
pub fn remove_unreferenced(
    db: &Db,
    originals: &OriginalStore,
    unreferenced: &UnreferencedOriginals,
) -> DbResult<Vec<ContentHash>> {
    let mut removed = Vec::new();
    for hashes in unreferenced.hashes.chunks(REMOVED_AT_ONCE) {
        // Before the transaction, because waiting for a store that hangs would hold the write lock.
        originals.store.check_reachable().map_err(store_failure)?;
        let since = unreferenced.since.clone();
        let batch = UnreferencedOriginals { since, hashes: hashes.to_vec() };
        let removed_now = remove_batch(db, &originals.store, &batch)?;
        if let Err(cause) = for_each_at_once(&removed_now, |hash| originals.remove_derived(hash)) {
            // The derived files do no harm: they are rebuilt on demand and removed by `check --repair`.
            tracing::debug!("derived files of removed originals remain: {cause}");
        }
        removed.extend(removed_now);
    }
    Ok(removed)
}

/// Runs `remove` for each of a few originals on a separate thread. Fails if one of them fails.
fn for_each_at_once(
    hashes: &[ContentHash],
    remove: impl Fn(ContentHash) -> StoreResult<()> + Sync,
) -> StoreResult<()> {
    let remove = &remove;
    thread::scope(|scope| {
        let tasks: Vec<_> = hashes.iter().map(|hash| scope.spawn(move || remove(*hash))).collect();
        // All threads are joined before the first error is returned.
        let outcomes: Vec<_> = tasks.into_iter().map(ScopedJoinHandle::join).collect();
        outcomes.into_iter().try_for_each(|outcome| outcome.unwrap_or_else(|_| Err(panicked())))
    })
}

/// Announces a removal and performs it. Repeats both if a different process announces a removal in between.
fn remove_batch(
    db: &Db,
    store: &BlobStore,
    batch: &UnreferencedOriginals,
) -> DbResult<Vec<ContentHash>> {
    for _ in 0..ATTEMPTS_MAX {
        let id = Uuid::now_v7().to_string();
        let announced = id.clone();
        db.write_blocking(move |tx| tx.begin_removal(&announced))?;
        let store = store.clone();
        let batch = batch.clone();
        let removed = db.write_blocking(move |tx| remove_announced(tx, &store, &batch, &id))?;
        if let Some(removed) = removed {
            return Ok(removed);
        }
    }
    let why =
        "unreferenced originals remain in the store, because other processes remove originals too";
    Err(DbError::File(why.to_owned()))
}

/// Removes the originals of the announced removal `id`; `None` if a different removal was announced since.
fn remove_announced(
    tx: &WriteTx<'_>,
    store: &BlobStore,
    batch: &UnreferencedOriginals,
    id: &str,
) -> DbResult<Option<Vec<ContentHash>>> {
    if !tx.may_remove_originals(id)? {
        return Ok(None);
    }
    // Sorted by hash. Earlier versions did not refer to the originals.
    let referenced = tx.originals_after(batch.since.last_version)?;
    let mut removed = batch.hashes.clone();
    removed.retain(|hash| referenced.binary_search_by_key(hash, |named| named.hash).is_err());
    for_each_at_once(&removed, |hash| store.remove(hash)).map_err(store_failure)?;
    tx.end_removal(id)?;
    Ok(Some(removed))
}

fn panicked() -> StoreError {
    let cause = io::Error::other("the removal of an original panicked");
    StoreError::Io { path: "store".to_owned(), cause }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn store_failure(cause: StoreError) -> DbError {
    DbError::File(cause.to_string())
}

/// Makes sure that the originals of an item are in the store when its transaction commits.
pub(super) struct OriginalsGuard {
    /// The state before the ingest stored or found them; `None` if the item has no files.
    pub(super) before: Option<OriginalsState>,
    pub(super) store: BlobStore,
    pub(super) hashes: Vec<ContentHash>,
}

impl OriginalsGuard {
    /// Fails if one of the originals is missing. Reads only one row if no removal was announced since `before`.
    pub(super) fn check(&self, tx: &WriteTx<'_>) -> DbResult<()> {
        let Some(before) = &self.before else { return Ok(()) };
        let now = tx.original_removals()?;
        if !before.removals.may_have_continued(&now) {
            return Ok(());
        }
        for hash in &self.hashes {
            if self.store.age(*hash).map_err(store_failure)?.is_none() {
                let why = format!("original {hash} was removed meanwhile: send the item again");
                return Err(DbError::File(why));
            }
        }
        Ok(())
    }
}

/// Originals of refused ingests that wait for the database; shared by the threads of one process.
#[derive(Clone, Default)]
pub(super) struct PendingRemovals(Arc<Mutex<RemovalQueue>>);

#[derive(Default)]
struct RemovalQueue {
    waiting: VecDeque<UnreferencedOriginals>,
    /// True while a thread retries the removals.
    is_retrying: bool,
}

impl PendingRemovals {
    /// Removes the originals now, or else as soon as the database and the store answer.
    fn remove(&self, db: &Db, originals: &OriginalStore, refused: UnreferencedOriginals) {
        if let Err(cause) = remove_unreferenced(db, originals, &refused) {
            tracing::debug!("the originals of a refused item are removed later: {cause}");
            self.enqueue(db, originals, refused);
        }
    }

    /// Removes the originals as soon as the database and the store answer.
    fn enqueue(&self, db: &Db, originals: &OriginalStore, refused: UnreferencedOriginals) {
        let mut queue = self.0.lock();
        let count: usize = queue.waiting.iter().map(|waiting| waiting.hashes.len()).sum();
        if count + refused.hashes.len() > PENDING_MAX {
            return;
        }
        queue.waiting.push_back(refused);
        if queue.is_retrying {
            return;
        }
        let pending = self.clone();
        let db = db.clone();
        let originals = originals.clone();
        let builder = thread::Builder::new().name("refused-originals".to_owned());
        let started = builder.spawn(move || pending.retry(&db, &originals));
        queue.is_retrying = started.is_ok();
    }

    /// Retries until no originals wait.
    fn retry(&self, db: &Db, originals: &OriginalStore) {
        while self.continues() {
            // Not parked: the end of a scope of threads, as in a removal, would wake the thread at once.
            clock::pause(RETRY_INTERVAL);
            while let Some(next) = self.first() {
                let removed = remove_unreferenced(db, originals, &next);
                // A final error is not retried. An archive that has been migrated, for example, accepts no writes.
                if removed.is_err_and(|cause| !cause.is_final()) {
                    // Originals that fail for a reason of their own must not hold up the rest.
                    self.0.lock().waiting.rotate_left(1);
                    break;
                }
                self.0.lock().waiting.pop_front();
            }
        }
    }

    fn first(&self) -> Option<UnreferencedOriginals> {
        self.0.lock().waiting.front().cloned()
    }

    /// Returns whether originals wait. If not, the calling thread must end, because the next refusal starts a new one.
    fn continues(&self) -> bool {
        let mut queue = self.0.lock();
        queue.is_retrying = !queue.waiting.is_empty();
        queue.is_retrying
    }
}

impl Ingest {
    /// Runs `work`, which stores files and writes an item, with a copy of this ingest that lists the originals it adds
    /// to the store. If `work` writes no item, as `is_written` decides, they are removed again.
    ///
    /// Fails before anything is stored if the database does not answer.
    pub(super) fn storing<T>(
        &self,
        is_written: impl Fn(&T) -> bool,
        work: impl FnOnce(&Self) -> IngestResult<T>,
    ) -> IngestResult<T> {
        let before = self.db.read_blocking(OriginalsState::load)?;
        let (originals, new_originals) = self.originals.listing_new();
        let ingest = Self { originals, before: Some(before.clone()), ..self.clone() };
        let outcome = catch_panics(|| work(&ingest));
        let hashes = new_originals.take();
        if hashes.is_empty() || outcome.as_ref().is_ok_and(is_written) {
            return outcome;
        }
        // After an error the item may have been committed nevertheless, so the removal checks the database.
        let refused = UnreferencedOriginals { since: before, hashes };
        let db = &self.db;
        let originals = &self.originals;
        if outcome.as_ref().is_err_and(IngestError::is_internal) {
            // A removal now would let the client wait for the same failure a second time.
            self.pending_removals.enqueue(db, originals, refused);
        } else {
            self.pending_removals.remove(db, originals, refused);
        }
        outcome
    }

    /// Guards the originals of an item that is about to be written.
    pub(super) fn guard(&self, hashes: Vec<ContentHash>) -> OriginalsGuard {
        let store = self.originals.store.clone();
        OriginalsGuard { before: self.before.clone(), store, hashes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::DecodeLimits;
    use crate::runtime::config::{self, SettingSources};
    use crate::storage::blobs::DerivedStore;

    /// An archive without items.
    struct Archive {
        dir: tempfile::TempDir,
        db: Db,
        originals: OriginalStore,
    }

    impl Archive {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let db = Db::open(dir.path()).unwrap();
            let store = BlobStore::open(&dir.path().join("originals")).unwrap();
            let derived = DerivedStore::open(&dir.path().join("derived")).unwrap();
            let config = config::load(&SettingSources::default()).unwrap().0;
            let header = DecodeLimits::from_config(&config).header;
            Self { dir, db, originals: OriginalStore::new(store, derived, header) }
        }

        fn state(&self) -> OriginalsState {
            self.db.read_blocking(OriginalsState::load).unwrap()
        }

        fn remove(&self, since: OriginalsState, hash: ContentHash) -> Vec<ContentHash> {
            let unreferenced = UnreferencedOriginals { since, hashes: vec![hash] };
            remove_unreferenced(&self.db, &self.originals, &unreferenced).unwrap()
        }

        /// Commits a transaction of an ingest that began with `before` and found this original.
        fn commits(&self, before: OriginalsState, hash: ContentHash) -> DbResult<()> {
            let store = self.originals.store.clone();
            let guard = OriginalsGuard { before: Some(before), store, hashes: vec![hash] };
            self.db.write_blocking(move |tx| guard.check(tx))
        }

        fn has(&self, hash: ContentHash) -> bool {
            self.originals.store.age(hash).unwrap().is_some()
        }
    }

    #[test]
    fn an_ingest_that_relies_on_a_removed_original_is_not_committed() {
        let archive = Archive::new();
        let before = archive.state();
        let hash = archive.originals.store_bytes(b"found by a second ingest").unwrap();
        assert!(archive.commits(before.clone(), hash).is_ok());
        assert_eq!(archive.remove(before.clone(), hash), [hash]);
        assert!(!archive.has(hash) && archive.originals.list_derived().unwrap().is_empty());
        let refused = archive.commits(before.clone(), hash).unwrap_err().to_string();
        assert!(refused.contains("was removed meanwhile"), "{refused}");
        // It is sent again, before or after the removal ended.
        archive.originals.store_bytes(b"found by a second ingest").unwrap();
        assert!(archive.commits(before, hash).is_ok());
        assert!(archive.commits(archive.state(), hash).is_ok());
    }

    #[test]
    fn an_interrupted_removal_makes_every_later_ingest_look_at_its_originals() {
        let archive = Archive::new();
        archive.db.write_blocking(|tx| tx.begin_removal("killed")).unwrap();
        let before = archive.state();
        let missing = ContentHash::new(b"removed by the killed process");
        assert!(archive.commits(before.clone(), missing).is_err());
        let present = archive.originals.store_bytes(b"present").unwrap();
        assert!(archive.commits(before, present).is_ok());
        // The next removal ends the state.
        let other = archive.originals.store_bytes(b"other").unwrap();
        assert_eq!(archive.remove(archive.state(), other), [other]);
        assert!(archive.commits(archive.state(), present).is_ok());
    }

    #[test]
    fn a_store_lists_what_it_adds_and_nothing_that_was_there() {
        let archive = Archive::new();
        archive.originals.store_bytes(b"was there").unwrap();
        let (originals, new_originals) = archive.originals.listing_new();
        originals.store_bytes(b"was there").unwrap();
        let added = originals.store_bytes(b"new").unwrap();
        let file = archive.dir.path().join("file");
        std::fs::write(&file, b"new file").unwrap();
        let (copied, _) = originals.store_file(&file).unwrap();
        originals.store_file(&file).unwrap();
        assert_eq!(new_originals.take(), [added, copied]);
        assert!(new_originals.take().is_empty());
    }
}
