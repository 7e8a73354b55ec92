//! Ensures that the database and the store of originals belong together: both hold the id of the archive.
//!
//! A process whose settings combine the database of one archive with the store of another one would ingest
//! photographs that other nodes do not find, so it does not start. A store from an earlier version has no id;
//! it gets one from the first process that finds the database's originals in it.

use std::{sync::mpsc, time::Duration};

use super::OpenArchive;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::{Config, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::STORE_SAMPLE_ITEMS;
use crate::storage::audit::{self, AuditAction};
use crate::storage::blobs::{BlobStore, StoreError, StoreMark};
use crate::storage::database::{DATABASE_FILE_NAME, Db};

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

    pub(super) fn of(config: &Config, store: &BlobStore) -> Self {
        let database = match config.database.url.0.as_str() {
            "" => config.data.dir.join(DATABASE_FILE_NAME).display().to_string(),
            _ => config.database.url.print(),
        };
        Self { database, store: store.name() }
    }
}

/// Determines whether the store belongs to the database's archive. Writes the archive's id into a store
/// without an id that has the originals, or that is the first store of a new archive. From then on the store
/// refuses writes whenever its id is another one.
///
/// Fails with [`ErrorKind::Conflict`] when the store belongs to another archive, or has no id and lacks the
/// originals.
pub(super) fn determine_ownership(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
) -> Result<StoreOwnership> {
    let (id, claim) = db.read_blocking(|tx| Ok((tx.archive_id()?, tx.claimed_store()?)))?;
    // Even if the mark cannot be read now, later writes to the store verify it.
    store.expect_archive(&id);
    let mark = match store.mark() {
        Ok(mark) => mark,
        Err(cause) => return undecided(cause),
    };
    match mark {
        Some(found) if found.id == id => determine_marked(db, store, names, found, claim),
        Some(found) => Err(names.foreign_store(&found.id, &id)),
        // A store without an id next to a claim on another one may be a copy that was made by other
        // tools. It must be adopted explicitly: the database names the other store, and the next
        // start would refuse this one.
        None => match claim.filter(|claim| store.differs_from(claim)) {
            Some(claim) => Err(names.store_moved(&claim)),
            None => determine_unmarked(db, store, names, &id),
        },
    }
}

/// Handles a store with the id of the archive.
fn determine_marked(
    db: &Db,
    store: &BlobStore,
    names: &ArchiveNames,
    found: StoreMark,
    claim: Option<String>,
) -> Result<StoreOwnership> {
    let is_known = claim.as_ref().is_some_and(|claim| !store.differs_from(claim));
    // The mark of a replacement, left by a restore or a migration, overrides the claim on the
    // store before.
    if let Some(claim) = claim.filter(|_| !is_known && !found.replaces) {
        return Err(names.store_moved(&claim));
    }
    // A read-only node cannot record the claim; the next node that writes does.
    if db.is_read_only() || (is_known && !found.replaces) {
        return Ok(StoreOwnership::Ours);
    }
    let name = names.store.clone();
    // The database comes first: after an interruption the mark still asks for the replacement, and
    // the next start repeats it.
    db.write_blocking(move |tx| tx.replace_store(&name))?;
    if found.replaces
        && let Err(cause) = store.set_mark(&StoreMark { replaces: false, ..found })
    {
        return undecided(cause);
    }
    Ok(StoreOwnership::Ours)
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
    let name = names.store.clone();
    let claim = db.write_blocking(move |tx| tx.claim_store(&name))?;
    if sampled == 0
        && let Some(claim) = claim
    {
        match is_marked_by_another(db, store, names, id, &claim)? {
            Ok(true) => return Ok(StoreOwnership::Ours),
            Ok(false) => {}
            Err(cause) => return undecided(cause),
        }
    }
    match store.set_mark(&StoreMark { id: id.to_owned(), replaces: false }) {
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
    if let Some(claim) = claim.as_ref().filter(|claim| store.differs_from(claim) && !replaces) {
        return Err(names.store_moved(claim));
    }
    if mark.is_some() {
        return Ok(StoreOwnership::Ours);
    }
    let sampled = check_unmarked(db, store, names, only_reads)?.map_err(unusable)?;
    if sampled == 0
        && !only_reads
        && let Some(claim) = claim
        && is_marked_by_another(db, store, names, &id, &claim)?.map_err(unusable)?
    {
        return Ok(StoreOwnership::Ours);
    }
    // An examination writes no id; the next process that opens the archive does.
    Ok(StoreOwnership::Unknown("it has no id of an archive yet".to_owned()))
}

impl ArchiveNames {
    fn store_moved(&self, claim: &str) -> Error {
        let Self { database, store } = self;
        Error::new(
            ErrorKind::Conflict,
            format!(
                "the originals of the database {database} are in {claim} now, but store.originals \
                 is {store}; if this store replaces the other one, run `wirephoto store adopt`"
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
    let retry = move || {
        let store_name = names.store.clone();
        let (_open, never) = mpsc::channel::<()>();
        let mut last_reason = None;
        let mut report = |why: String| {
            // The same reason would fill the log every two seconds.
            if last_reason.as_ref() != Some(&why) {
                tracing::error!(
                    "uploads are refused, store ownership is unknown: {store_name}: {why}"
                );
                last_reason = Some(why);
            }
        };
        loop {
            // Nothing is ever sent, so this only waits.
            match never.recv_timeout(OWNERSHIP_RETRY_INTERVAL) {
                Ok(()) | Err(_) => {}
            }
            match determine_ownership(&db, &store, &names) {
                Ok(StoreOwnership::Ours) => return,
                Ok(StoreOwnership::Unknown(why)) => report(why),
                Err(cause) => report(cause.to_string()),
            }
        }
    };
    let thread = std::thread::Builder::new().name("store-owner".to_owned());
    thread.spawn(retry).map(drop).map_err(Error::internal)
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
    let previous = store.mark().map_err(unusable)?.map(|mark| mark.id);
    let (named, _) = archive.db.read_blocking(|tx| tx.named_originals())?;
    let stored = store.list().map_err(unusable)?;
    let missing = named.iter().filter(|one| stored.binary_search(&one.hash).is_err()).count();
    if missing * 2 > named.len() && !is_forced {
        let claim = archive.db.read_blocking(|tx| tx.claimed_store())?;
        return Err(mostly_missing(&store.name(), missing, named.len(), claim.as_deref()));
    }
    store.set_mark(&StoreMark { id: id.clone(), replaces: false }).map_err(unusable)?;
    let event =
        audit::event(AuditAction::Command).with_detail(format!("store adopt: {}", store.name()));
    let name = store.name();
    archive.db.write_blocking(move |tx| {
        tx.replace_store(&name)?;
        tx.write_audit(&event)
    })?;
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
/// previous one.
pub(super) fn replace_mark(store: &BlobStore, id: &str) -> std::result::Result<(), StoreError> {
    store.set_mark(&StoreMark { id: id.to_owned(), replaces: true })
}
