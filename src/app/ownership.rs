//! Ensures that the database and the store of originals belong together: both hold the id of the archive.
//!
//! A process whose settings combine the database of one archive with the store of another one would ingest
//! photographs that other nodes do not find, so it does not start. A new store, or one that
//! other tools copied, has no id; it gets one from the first process that finds the database's originals in it.

use std::{sync::mpsc, time::Duration};

use uuid::Uuid;

use super::OpenArchive;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::{Config, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::STORE_SAMPLE_ITEMS;
use crate::storage::audit::{self, AuditAction};
use crate::storage::blobs::{BlobStore, StoreError, StoreMark};
use crate::storage::database::{DATABASE_FILE_NAME, Db, StoreClaim};

/// Interval between attempts to determine the owner of a store that did not answer.
const OWNERSHIP_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// How long to wait for another process that is marking the store, and the polling interval.
const MARK_MAX: Duration = Duration::from_secs(2);
const MARK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The owner of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreOwnership {
    /// The archive of the database.
    Ours,
    /// Unknown for the time being, for this reason; the store refuses writes until it is determined.
    Unknown(String),
}

/// The names of a store and a database in messages.
#[derive(Clone, Debug)]
pub(super) struct ArchiveNames {
    database: String,
    store: String,
}

impl ArchiveNames {
    pub(super) fn store(&self) -> &str {
        &self.store
    }

    /// Returns the names of the store and of the settings' database.
    pub(super) fn new(config: &Config, store: &BlobStore) -> Self {
        let database = match config.database.url.0.as_str() {
            "" => config.data.dir.join(DATABASE_FILE_NAME).display().to_string(),
            _ => config.database.url.print(),
        };
        Self { database, store: store.name() }
    }
}

/// The records of the store's ownership that a process may write when it opens an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnershipUse {
    /// Nothing: the process reads, and may look at a copy that does not replace the store yet.
    Examine,
    /// The archive's id, into a store without one: the process stores originals, and refuses a store that does
    /// not replace the one of the database yet.
    Write,
    /// The replacement of the database's store by this one: the process serves the archive, or has restored both.
    Serve,
}

/// Determines whether the store belongs to the database's archive, and writes what `usage` allows. A store that
/// has the originals, or that is the first store of a new archive, gets the archive's id. From then on the store
/// refuses writes whenever its id is another one.
///
/// Fails with [`ErrorKind::Conflict`] when the store belongs to another archive, or has no id and lacks the
/// originals.
pub(super) fn determine_ownership(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    usage: OwnershipUse,
) -> Result<StoreOwnership> {
    let (id, claim) = db.read_blocking(|tx| Ok((tx.archive_id()?, tx.claimed_store()?)))?;
    // Even if the mark cannot be read now, later writes to the store verify it.
    store.expect_archive(&id);
    if usage == OwnershipUse::Examine {
        return examine(db, store, names, db.is_read_only()).map(|_| StoreOwnership::Ours);
    }
    let mark = match store.mark() {
        Ok(mark) => mark,
        Err(cause) => return undecided(cause),
    };
    match mark {
        Some(found) if found.id == id => {
            determine_marked(db, store, names, usage, &MarkedStore { found, claim })
        }
        Some(found) => Err(names.foreign_store(&found.id, &id)),
        // A store without an id next to a claim on another one may be a copy that was made by other
        // tools. It must be adopted explicitly: the database names the other store, and the next
        // start would refuse this one.
        None => match claim.filter(|claim| store.differs_from(claim, None)) {
            Some(claim) => Err(names.store_moved(&claim)),
            None => determine_unmarked(db, store, names, &id),
        },
    }
}

/// The mark of a store with the id of the archive, and the store that the database names.
struct MarkedStore {
    found: StoreMark,
    claim: Option<StoreClaim>,
}

/// Handles a store with the id of the archive.
fn determine_marked(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    usage: OwnershipUse,
    MarkedStore { found, claim }: &MarkedStore,
) -> Result<StoreOwnership> {
    let other = claim.as_ref().filter(|claim| store.differs_from(claim, Some(found)));
    if let Some(claim) = other {
        // The mark of a replacement, left by a restore or a migration, overrides the claim on the
        // store before, once a node serves from it.
        if !found.replaces {
            return Err(names.store_moved(claim));
        }
        if usage == OwnershipUse::Write {
            return Err(names.not_in_use_yet(claim));
        }
    }
    let is_recorded =
        !found.replaces && claim.as_ref().is_some_and(|claim| has_store_id(claim, found));
    // A read-only node cannot record the claim; the next node that writes does.
    if usage != OwnershipUse::Serve || db.is_read_only() || is_recorded {
        return Ok(StoreOwnership::Ours);
    }
    // The database of an archive that has moved takes no writes, and the caller refuses to serve it.
    if db.moved_to()?.is_some() {
        return Ok(StoreOwnership::Ours);
    }
    // The database comes first: after an interruption the mark still asks for the replacement, and
    // the next start repeats it.
    let store_id = record_claim(db, names, found)?;
    let mark = StoreMark { store_id: Some(store_id), replaces: false, ..found.clone() };
    if mark == *found {
        return Ok(StoreOwnership::Ours);
    }
    match store.set_mark(&mark) {
        Ok(()) => Ok(StoreOwnership::Ours),
        Err(cause) if found.replaces => undecided(cause),
        Err(cause) => {
            // A store that cannot be written is still read, and the next start tries again.
            tracing::debug!("the store has no id of its own: {cause}");
            Ok(StoreOwnership::Ours)
        }
    }
}

/// Returns whether the claim names the store's own id in the mark `found`.
fn has_store_id(claim: &StoreClaim, found: &StoreMark) -> bool {
    claim.store_id.is_some() && claim.store_id == found.store_id
}

/// Records in the database that the archive has the store with the mark `found`; returns the store's id.
fn record_claim(db: &Db, names: &ArchiveNames, found: &StoreMark) -> Result<String> {
    let name = names.store.clone();
    let marked = found.store_id.clone();
    Ok(db.write_blocking(move |tx| {
        let recorded = tx.as_read().claimed_store()?.filter(|claim| claim.name == name);
        // Nodes that start at once give a store one id.
        let store_id = marked.or_else(|| recorded.and_then(|claim| claim.store_id));
        let store_id = store_id.unwrap_or_else(new_store_id);
        tx.replace_store(&StoreClaim { name, store_id: Some(store_id.clone()) })?;
        Ok(store_id)
    })?)
}

fn new_store_id() -> String {
    Uuid::now_v7().to_string()
}

fn undecided(cause: StoreError) -> Result<StoreOwnership> {
    // Only an outage ends without the operator, so only an outage is waited for.
    if matches!(cause, StoreError::Unavailable { .. }) {
        return Ok(StoreOwnership::Unknown(cause.to_string()));
    }
    Err(unusable(cause))
}

/// Handles a store without an id.
fn determine_unmarked(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    id: &str,
) -> Result<StoreOwnership> {
    let sampled = match check_unmarked(db, store, names, db.is_read_only())? {
        Ok(sampled) => sampled,
        Err(cause) => return undecided(cause),
    };
    // A read-only node can neither claim the store nor mark it.
    if db.is_read_only() {
        return Ok(StoreOwnership::Ours);
    }
    let new = StoreClaim { name: names.store.clone(), store_id: Some(new_store_id()) };
    let claimed = new.clone();
    let claim = db.write_blocking(move |tx| tx.claim_store(&claimed))?;
    if sampled == 0
        && let Some(claim) = &claim
    {
        match is_marked_by_another(db, store, names, id, &claim.name)? {
            Ok(true) => return Ok(StoreOwnership::Ours),
            Ok(false) => {}
            Err(cause) => return undecided(cause),
        }
    }
    let store_id = claim.unwrap_or(new).store_id;
    match store.set_mark(&StoreMark { id: id.to_owned(), store_id, replaces: false }) {
        Ok(()) => {
            tracing::info!("{} belongs to the archive {id} from now on", names.store);
            Ok(StoreOwnership::Ours)
        }
        // A store that cannot be written is still read; writes fail on their own.
        Err(cause) => Ok(StoreOwnership::Unknown(format!(
            "cannot write the id of the archive to it: {cause}"
        ))),
    }
}

/// Looks for originals of the database in a store without an id; returns how many were looked up. Writes
/// nothing.
///
/// Fails with [`ErrorKind::Conflict`] when the store lacks them, or has originals although the database has no
/// items. The inner error says that the store cannot be read.
fn check_unmarked(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    only_reads: bool,
) -> Result<std::result::Result<usize, StoreError>> {
    let (present, sampled) = match sample(db, store) {
        Ok(counts) => counts,
        Err(cause) => return Ok(Err(cause)),
    };
    // A store without an id that lacks most of the sample is probably a wrong one, such as an unmounted disk.
    if present * 2 < sampled {
        return Err(names.originals_missing(present, sampled));
    }
    // Without items there is nothing to compare, so originals in the store may be those of any
    // archive. A read-only node does not claim them.
    if sampled == 0 && !only_reads {
        match store.is_empty() {
            Ok(true) => {}
            Ok(false) => return Err(names.unidentified_store()),
            Err(cause) => return Ok(Err(cause)),
        }
    }
    Ok(Ok(sampled))
}

/// Waits for another process to mark a store without an id, where an archive without items has the `claim` on a
/// store; returns whether it did. Writes nothing.
///
/// Fails with [`ErrorKind::Conflict`] when it did not and the claim is on another store. The inner error says
/// that the store cannot be read.
fn is_marked_by_another(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    id: &str,
    claim: &str,
) -> Result<std::result::Result<bool, StoreError>> {
    // Another process may be about to mark this store.
    match wait_for_mark(store, id) {
        Ok(false) => {}
        marked => return Ok(marked),
    }
    // Equal names of a bucket mean the same bucket, and a folder next to the database is the same folder;
    // folders on several machines may only have equal names.
    if claim != names.store || (db.is_remote() && !store.is_remote()) {
        return Err(names.second_store());
    }
    Ok(Ok(false))
}

/// Waits until another process marks the store with the archive `id`; returns whether that happened in time.
fn wait_for_mark(store: &BlobStore, id: &str) -> std::result::Result<bool, StoreError> {
    let (_open, never) = mpsc::channel::<()>();
    let since = Stopwatch::start();
    loop {
        if store.mark()?.is_some_and(|mark| mark.id == id) {
            return Ok(true);
        }
        if since.elapsed() >= MARK_MAX {
            return Ok(false);
        }
        // Nothing is ever sent, so this only waits.
        match never.recv_timeout(MARK_POLL_INTERVAL) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// Determines whether the store belongs to the database's archive, without modifying either. `only_reads` is
/// whether the nodes of these settings are read-only.
///
/// Fails where [`determine_ownership`] would, so that no node starts; also when the store does not answer.
pub(super) fn examine(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    only_reads: bool,
) -> Result<StoreOwnership> {
    let (id, claim) = db.read_blocking(|tx| Ok((tx.archive_id()?, tx.claimed_store()?)))?;
    let mark = store.mark().map_err(unusable)?;
    let replaces = mark.as_ref().is_some_and(|found| found.replaces);
    if let Some(found) = mark.as_ref().filter(|found| found.id != id) {
        return Err(names.foreign_store(&found.id, &id));
    }
    let other = claim.as_ref().filter(|claim| store.differs_from(claim, mark.as_ref()));
    if let Some(claim) = other.filter(|_| !replaces) {
        return Err(names.store_moved(claim));
    }
    if mark.is_some() {
        return Ok(StoreOwnership::Ours);
    }
    let sampled = check_unmarked(db, store, names, only_reads)?.map_err(unusable)?;
    if sampled == 0
        && !only_reads
        && let Some(claim) = claim
        && is_marked_by_another(db, store, names, &id, &claim.name)?.map_err(unusable)?
    {
        return Ok(StoreOwnership::Ours);
    }
    // An examination writes no id; the next process that opens the archive does.
    Ok(StoreOwnership::Unknown("it has no id of an archive yet".to_owned()))
}

impl ArchiveNames {
    fn store_moved(&self, claim: &StoreClaim) -> Error {
        let Self { database, store } = self;
        let claim = &claim.name;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the originals of the database {database} are in {claim} now, but store.originals \
                 is {store}; if this store replaces the other one, run `wirephoto store adopt`"
            ),
        )
    }

    fn not_in_use_yet(&self, claim: &StoreClaim) -> Error {
        let Self { database, store } = self;
        let claim = &claim.name;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "{store} is a copy that does not replace the store of the database {database}, \
                 {claim}, yet: start the service with these settings, or run `wirephoto store \
                 adopt`, before originals are stored in it or removed from it"
            ),
        )
    }

    fn foreign_store(&self, found: &str, id: &str) -> Error {
        let Self { database, store } = self;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the store of originals {store} belongs to another archive ({found}) than the \
                 database {database} ({id}): check store.originals and database.url; if this \
                 store replaces the other one, run `wirephoto store adopt`"
            ),
        )
    }

    fn originals_missing(&self, present: usize, sampled: usize) -> Error {
        let Self { database, store } = self;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the store of originals {store} has {present} of {sampled} originals of the \
                 database {database} that were checked, and no id of an archive: check store.originals (is \
                 a disk not mounted?); if they are lost, `wirephoto store adopt --force` assigns \
                 this store nevertheless"
            ),
        )
    }

    fn unidentified_store(&self) -> Error {
        let Self { database, store } = self;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the store of originals {store} has originals but no id of an archive, and the \
                 database {database} has no items: check store.originals and database.url; if \
                 they belong together, run `wirephoto store adopt`"
            ),
        )
    }

    fn second_store(&self) -> Error {
        let Self { database, store } = self;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the database {database} has another store of originals than {store}, which has \
                 no id of an archive: check store.originals, which has to be the same on all \
                 nodes; if this store replaces the other one, run `wirephoto store adopt`"
            ),
        )
    }
}

/// Counts how many originals of the oldest and newest items are in the store, and how many were looked up.
fn sample(db: &Db, store: &BlobStore) -> std::result::Result<(usize, usize), StoreError> {
    let named = db.read_blocking(|tx| tx.sample_originals(STORE_SAMPLE_ITEMS));
    let named = named.map_err(|cause| StoreError::Io {
        path: "items".to_owned(),
        cause: std::io::Error::other(cause),
    })?;
    let mut present = 0;
    for hash in &named {
        present += usize::from(store.age(*hash)?.is_some());
    }
    Ok((present, named.len()))
}

fn unusable(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "the store of originals cannot be used").with_source(cause)
}

/// Checks the ownership of a store that did not answer again in the background; the thread ends on success.
pub(super) fn retry_ownership_check(db: Db, store: BlobStore, names: ArchiveNames) -> Result<()> {
    let thread = std::thread::Builder::new().name("store-owner".to_owned());
    let spawned = thread.spawn(move || check_until_ours(&db, &store, &names));
    spawned.map(drop).map_err(Error::internal)
}

/// Checks the ownership of a store repeatedly until it is the archive's, and logs the reason why it is not.
fn check_until_ours(db: &Db, store: &BlobStore, names: &ArchiveNames) {
    let store_name = &names.store;
    let (_open, never) = mpsc::channel::<()>();
    let mut last_reason = None;
    loop {
        // Nothing is ever sent, so this only waits.
        match never.recv_timeout(OWNERSHIP_RETRY_INTERVAL) {
            Ok(()) | Err(_) => {}
        }
        let why = match determine_ownership(db, store, names, OwnershipUse::Serve) {
            Ok(StoreOwnership::Ours) => return,
            Ok(StoreOwnership::Unknown(why)) => why,
            Err(cause) => cause.to_string(),
        };
        // The same reason would fill the log every two seconds.
        if last_reason.as_ref() != Some(&why) {
            tracing::error!(
                "uploads are refused, store ownership is unknown: {store_name}: {why}"
            );
            last_reason = Some(why);
        }
    }
}

/// The result of adopting a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionReport {
    /// Id of the archive.
    pub archive: String,
    /// Id in the store before, if it had one.
    pub previous: Option<String>,
    /// Name of the store.
    pub store: String,
    /// Number of originals that items refer to.
    pub named: usize,
    /// Number of these originals that are missing in the store.
    pub missing: usize,
}

/// Assigns the store of the settings to the database of the settings, regardless of its previous owner, and
/// counts the originals that are missing there.
///
/// Fails with [`ErrorKind::Conflict`] if most of them are missing and `is_forced` is false, because the
/// settings then most likely name a wrong location.
pub fn adopt(config: &Config, is_forced: bool) -> Result<AdoptionReport> {
    let archive = OpenArchive::open_without_ownership(config)?;
    let store = archive.originals.store();
    store.check_writable().map_err(unusable)?;
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    let mark = store.mark().map_err(unusable)?;
    let (named, _) = archive.db.read_blocking(|tx| tx.named_originals())?;
    let stored = store.list().map_err(unusable)?;
    let missing =
        named.iter().filter(|original| stored.binary_search(&original.hash).is_err()).count();
    if missing * 2 > named.len() && !is_forced {
        let claim = archive.db.read_blocking(|tx| tx.claimed_store())?;
        let claim = claim.map(|claim| claim.name);
        return Err(mostly_missing(&store.name(), missing, named.len(), claim.as_deref()));
    }
    // A copy that other tools made has the id of the store that it was copied from.
    let store_id = Some(new_store_id());
    let new = StoreMark { id: id.clone(), store_id: store_id.clone(), replaces: false };
    store.set_mark(&new).map_err(unusable)?;
    let event =
        audit::event(AuditAction::Command).with_detail(format!("store adopt: {}", store.name()));
    let claim = StoreClaim { name: store.name(), store_id };
    archive.db.write_blocking(move |tx| {
        tx.replace_store(&claim)?;
        tx.write_audit(&event)
    })?;
    let previous = mark.map(|mark| mark.id);
    Ok(AdoptionReport { archive: id, previous, store: store.name(), named: named.len(), missing })
}

fn mostly_missing(store: &str, missing: usize, named: usize, claim: Option<&str>) -> Error {
    let claim = claim.filter(|claim| *claim != store);
    let claim = claim.map(|claim| format!("; the database says that they are in {claim}"));
    let claim = claim.unwrap_or_default();
    let message = format!(
        "{store} lacks {missing} of {named} originals{claim}: check store.originals; if they are \
         lost, `wirephoto store adopt --force` assigns this store nevertheless"
    );
    Error::new(ErrorKind::Conflict, message)
}

/// Fails when the target store of a copy belongs to another archive than `id`.
pub(super) fn refuse_foreign(store: &BlobStore, id: &str) -> Result<()> {
    match store.mark().map_err(unusable)?.map(|mark| mark.id) {
        Some(found) if found != id => {
            let message = format!(
                "{} belongs to another archive ({found}) than the one to be copied ({id})",
                store.name()
            );
            Err(Error::new(ErrorKind::Conflict, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Marks a store, into which a command copied the originals of the archive `id`, as the replacement of the
/// previous one. A store that has an id already keeps it, so that a repeated copy changes nothing.
pub(super) fn replace_mark(store: &BlobStore, id: &str) -> std::result::Result<(), StoreError> {
    let known = store.mark()?.and_then(|mark| mark.store_id);
    let store_id = Some(known.unwrap_or_else(new_store_id));
    store.set_mark(&StoreMark { id: id.to_owned(), store_id, replaces: true })
}
