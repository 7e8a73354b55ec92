//! Ensures that the database and the store of originals belong together: both hold the id of the archive.
//!
//! A process whose settings combine the database of one archive with the store of a different archive would
//! ingest photographs that other nodes do not find, so it does not start. A new store, or a store that other
//! tools copied, has no id; the first process that finds the database's originals in it writes the id.

use std::time::Duration;

use uuid::Uuid;

use super::OpenArchive;
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::config::{Config, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction};
use crate::storage::blobs::{BlobStore, StoreError, StoreMark};
use crate::storage::database::{DATABASE_FILE_NAME, Db, StoreClaim};

/// First and last items, so many of each, whose originals are looked up in a store without an archive id.
const STORE_SAMPLE_ITEMS: usize = 16;
/// Interval between attempts to determine the owner of a store that did not answer.
const OWNERSHIP_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum wait for a process that is marking the store, and the polling interval.
const MARK_MAX: Duration = Duration::from_secs(2);
const MARK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The owner of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreOwnership {
    /// The archive of the database.
    Ours,
    /// Unknown for now, with the reason; the store refuses writes until its owner is determined.
    Unknown(String),
}

/// A check of whether a store belongs to the archive of a database.
pub(super) struct OwnershipCheck {
    db: Db,
    store: BlobStore,
    names: ArchiveNames,
}

/// The names of a store and a database in messages.
struct ArchiveNames {
    database: String,
    store: String,
}

/// Returns the location of the settings' database, without passwords.
pub(super) fn database_name(config: &Config) -> String {
    match config.database.url.0.as_str() {
        "" => config.data.dir.join(DATABASE_FILE_NAME).display().to_string(),
        _ => config.database.url.print(),
    }
}

/// The records of the store's ownership that a process may write when it opens an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnershipUse {
    /// No record: the process only reads, and may examine a copy that does not replace the store yet.
    Examine,
    /// The archive's id, in a store without an id. The process stores originals, and refuses a store that
    /// does not replace the database's store yet.
    Write,
    /// The replacement of the database's store by this store. The process serves the archive, or has restored
    /// both.
    Serve,
}

impl OwnershipCheck {
    /// Creates the check of the store and of the settings' database.
    pub(super) fn new(config: &Config, db: &Db, store: &BlobStore) -> Self {
        let names = ArchiveNames { database: database_name(config), store: store.name() };
        Self { db: db.clone(), store: store.clone(), names }
    }

    /// Returns the name of the store in messages.
    pub(super) fn store_name(&self) -> &str {
        &self.names.store
    }

    /// Determines whether the store belongs to the database's archive, and writes the records that `usage`
    /// allows. A store that has the originals, or that is the first store of a new archive, gets the archive's
    /// id. From then on the store refuses writes whenever it has a different id.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the store belongs to a different archive, or has no id and lacks the
    /// originals.
    pub(super) fn determine(&self, usage: OwnershipUse) -> Result<StoreOwnership> {
        let (id, claim) =
            self.db.read_blocking(|tx| Ok((tx.archive_id()?, tx.claimed_store()?)))?;
        // Even if the mark cannot be read now, later writes to the store verify it.
        self.store.expect_archive(&id);
        if usage == OwnershipUse::Examine {
            return self.examine(self.db.is_read_only()).map(|_| StoreOwnership::Ours);
        }
        self.determine_from_mark(usage, &id, claim).or_else(unknown_in_outage)
    }

    /// Determines the owner of the store from its mark, or from its originals if it has no mark.
    fn determine_from_mark(
        &self,
        usage: OwnershipUse,
        id: &str,
        claim: Option<StoreClaim>,
    ) -> Result<StoreOwnership> {
        match self.store.mark().map_err(unusable)? {
            Some(found) if found.id == id => self.determine_marked(usage, &found, claim.as_ref()),
            Some(found) => Err(self.names.foreign_store(&found.id, id)),
            // If the database claims a different store, a store without an id may be a copy that other tools
            // made. It must be adopted explicitly: the database names the other store, and the next start would
            // refuse this store.
            None => match claim.filter(|claim| self.store.differs_from(claim, None)) {
                Some(claim) => Err(self.names.store_without_id(&claim)),
                None => self.determine_unmarked(id),
            },
        }
    }

    /// Handles a store with the id of the archive; the database names the store `claim`.
    fn determine_marked(
        &self,
        usage: OwnershipUse,
        found: &StoreMark,
        claim: Option<&StoreClaim>,
    ) -> Result<StoreOwnership> {
        let other = claim.filter(|claim| self.store.differs_from(claim, Some(found)));
        if let Some(claim) = other {
            // The mark of a replacement, left by a restore or a migration, overrides the claim on the previous
            // store once a node serves from the new store.
            if !found.replaces {
                return Err(self.names.store_moved(claim));
            }
            if usage == OwnershipUse::Write {
                return Err(self.names.not_in_use_yet(claim));
            }
        }
        let is_recorded = !found.replaces && claim.is_some_and(|claim| has_store_id(claim, found));
        // A read-only node cannot record the claim; the next node that writes does.
        if usage != OwnershipUse::Serve || self.db.is_read_only() || is_recorded {
            return Ok(StoreOwnership::Ours);
        }
        // The database of a moved archive refuses writes, and the caller refuses to serve it.
        if self.db.moved_to()?.is_some() {
            return Ok(StoreOwnership::Ours);
        }
        // The database is written first: after an interruption the mark still requests the replacement, and the
        // next start repeats it.
        let store_id = self.record_claim(found)?;
        let mark = StoreMark { store_id: Some(store_id), replaces: false, ..found.clone() };
        if mark == *found {
            return Ok(StoreOwnership::Ours);
        }
        match self.store.set_mark(&mark) {
            Ok(()) => Ok(StoreOwnership::Ours),
            Err(cause) if found.replaces => Err(unusable(cause)),
            Err(cause) => {
                // A store that cannot be written is still read, and the next start retries.
                tracing::debug!("the store has no id of its own: {cause}");
                Ok(StoreOwnership::Ours)
            }
        }
    }

    /// Records in the database that the archive has the store with the mark `found`; returns the store's id.
    fn record_claim(&self, found: &StoreMark) -> Result<String> {
        let name = self.names.store.clone();
        let marked = found.store_id.clone();
        Ok(self.db.write_blocking(move |tx| {
            let recorded = tx.claimed_store()?.filter(|claim| claim.name == name);
            // Nodes that start at the same time must give the store the same id.
            let store_id = marked.or_else(|| recorded.and_then(|claim| claim.store_id));
            let store_id = store_id.unwrap_or_else(new_store_id);
            tx.replace_store(&StoreClaim { name, store_id: Some(store_id.clone()) })?;
            Ok(store_id)
        })?)
    }

    /// Handles a store without an id.
    fn determine_unmarked(&self, id: &str) -> Result<StoreOwnership> {
        let sampled = self.check_unmarked(self.db.is_read_only())?;
        // A read-only node can neither claim the store nor mark it.
        if self.db.is_read_only() {
            return Ok(StoreOwnership::Ours);
        }
        let new = StoreClaim { name: self.names.store.clone(), store_id: Some(new_store_id()) };
        let claimed = new.clone();
        let claim = self.db.write_blocking(move |tx| tx.claim_store(&claimed))?;
        if sampled == 0
            && let Some(claim) = &claim
            && self.is_marked_by_another(id, &claim.name)?
        {
            return Ok(StoreOwnership::Ours);
        }
        let store_id = claim.unwrap_or(new).store_id;
        match self.store.set_mark(&StoreMark { id: id.to_owned(), store_id, replaces: false }) {
            Ok(()) => {
                tracing::info!("{} belongs to the archive {id} from now on", self.names.store);
                Ok(StoreOwnership::Ours)
            }
            // A store that cannot be written is still read; writes fail on their own.
            Err(cause) => Ok(StoreOwnership::Unknown(format!(
                "cannot write the id of the archive to it: {cause}"
            ))),
        }
    }

    /// Looks for a sample of the database's originals in a store without an id; returns the size of the sample.
    /// Writes nothing.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the store lacks most of the sample, or has originals although the
    /// database has no items, and with [`ErrorKind::Unavailable`] if the store cannot be read.
    fn check_unmarked(&self, only_reads: bool) -> Result<usize> {
        let (present, sampled) = self.sample().map_err(unusable)?;
        // A store without an id that lacks most of the sample is probably the wrong store, such as an unmounted
        // disk.
        if present * 2 < sampled {
            return Err(self.names.originals_missing(present, sampled));
        }
        // Without items there is nothing to compare, so the originals in the store may belong to any archive. A
        // read-only node does not claim them.
        if sampled == 0 && !only_reads && !self.store.is_empty().map_err(unusable)? {
            return Err(self.names.unidentified_store());
        }
        Ok(sampled)
    }

    /// Waits for a different process to mark a store without an id, for an archive that has no items and claims
    /// the store `claim`. Returns whether the store was marked. Writes nothing.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the store was not marked and the claim is on a different store. Fails
    /// with [`ErrorKind::Unavailable`] if the store cannot be read.
    fn is_marked_by_another(&self, id: &str, claim: &str) -> Result<bool> {
        // A process that started at the same time may be about to mark this store.
        if self.wait_for_mark(id).map_err(unusable)? {
            return Ok(true);
        }
        // Buckets with equal names are the same bucket. Folders with equal names are the same folder if the
        // database is a file; with a remote database, they may be on different machines.
        if claim != self.names.store || (self.db.is_remote() && !self.store.is_remote()) {
            return Err(self.names.second_store());
        }
        Ok(false)
    }

    /// Waits until a different process marks the store with the archive `id`; returns whether it did in time.
    fn wait_for_mark(&self, id: &str) -> std::result::Result<bool, StoreError> {
        let since = Stopwatch::start();
        loop {
            if self.store.mark()?.is_some_and(|mark| mark.id == id) {
                return Ok(true);
            }
            if since.elapsed() >= MARK_MAX {
                return Ok(false);
            }
            clock::pause(MARK_POLL_INTERVAL);
        }
    }

    /// Determines whether the store belongs to the database's archive, without modifying either. `only_reads` is
    /// true if the nodes of these settings are read-only.
    ///
    /// Fails whenever [`Self::determine`] would fail, so that no node starts, and also if the store does not
    /// answer.
    pub(super) fn examine(&self, only_reads: bool) -> Result<StoreOwnership> {
        let (id, claim) =
            self.db.read_blocking(|tx| Ok((tx.archive_id()?, tx.claimed_store()?)))?;
        let mark = self.store.mark().map_err(unusable)?;
        let replaces = mark.as_ref().is_some_and(|found| found.replaces);
        if let Some(found) = mark.as_ref().filter(|found| found.id != id) {
            return Err(self.names.foreign_store(&found.id, &id));
        }
        let other = claim.as_ref().filter(|claim| self.store.differs_from(claim, mark.as_ref()));
        if let Some(claim) = other.filter(|_| !replaces) {
            return Err(match mark {
                Some(_) => self.names.store_moved(claim),
                None => self.names.store_without_id(claim),
            });
        }
        if mark.is_some() {
            return Ok(StoreOwnership::Ours);
        }
        let sampled = self.check_unmarked(only_reads)?;
        if sampled == 0
            && !only_reads
            && let Some(claim) = claim
            && self.is_marked_by_another(&id, &claim.name)?
        {
            return Ok(StoreOwnership::Ours);
        }
        // An examination writes no id; the next process that opens the archive does.
        Ok(StoreOwnership::Unknown("it has no id of an archive yet".to_owned()))
    }

    /// Counts the originals of the oldest and newest items that are in the store. Returns the count and the size
    /// of the sample.
    fn sample(&self) -> std::result::Result<(usize, usize), StoreError> {
        let named = self.db.read_blocking(|tx| tx.sample_originals(STORE_SAMPLE_ITEMS));
        let named = named.map_err(|cause| StoreError::Io {
            path: "items".to_owned(),
            cause: std::io::Error::other(cause),
        })?;
        let mut present = 0;
        for hash in &named {
            present += usize::from(self.store.age(*hash)?.is_some());
        }
        Ok((present, named.len()))
    }

    /// Starts a thread that repeats the check of a store that did not answer, and ends on success.
    pub(super) fn retry(self) -> Result<()> {
        let thread = std::thread::Builder::new().name("store-owner".to_owned());
        let spawned = thread.spawn(move || self.repeat_until_ours());
        spawned.map(drop).map_err(Error::internal)
    }

    /// Repeats the check until the store belongs to the archive, and logs each new reason for a failure.
    fn repeat_until_ours(&self) {
        let store_name = self.store_name();
        let mut last_reason = None;
        loop {
            clock::pause(OWNERSHIP_RETRY_INTERVAL);
            let why = match self.determine(OwnershipUse::Serve) {
                Ok(StoreOwnership::Ours) => return,
                Ok(StoreOwnership::Unknown(why)) => why,
                Err(cause) => cause.to_string(),
            };
            // Logging the same reason at each check would add a line every two seconds.
            if last_reason.as_ref() != Some(&why) {
                tracing::error!(
                    "uploads are refused, store ownership is unknown: {store_name}: {why}"
                );
                last_reason = Some(why);
            }
        }
    }
}

/// Returns an unknown owner for an outage of the store: only an outage ends without the operator's help, so only
/// an outage is waited for.
fn unknown_in_outage(error: Error) -> Result<StoreOwnership> {
    let cause = error.cause_as::<StoreError>();
    let outage = cause.filter(|cause| matches!(cause, StoreError::Unavailable { .. }));
    match outage.map(ToString::to_string) {
        Some(why) => Ok(StoreOwnership::Unknown(why)),
        None => Err(error),
    }
}

/// Returns whether the claim names the store's own id in the mark `found`.
fn has_store_id(claim: &StoreClaim, found: &StoreMark) -> bool {
    claim.store_id.is_some() && claim.store_id == found.store_id
}

fn new_store_id() -> String {
    Uuid::now_v7().to_string()
}

impl ArchiveNames {
    fn store_moved(&self, claim: &StoreClaim) -> Error {
        let Self { database, store } = self;
        let claim = &claim.name;
        conflict(format!(
            "the originals of the database {database} are in {claim} now, but store.originals \
             is {store}; if this store replaces the other one, run `wirephoto store adopt`"
        ))
    }

    /// The originals need not be where the database says: after a migration it names the previous store until a
    /// node starts with the new one.
    fn store_without_id(&self, claim: &StoreClaim) -> Error {
        let Self { database, store } = self;
        let claim = &claim.name;
        conflict(format!(
            "the database {database} names {claim} as the store of its originals, and {store} has \
             no id of an archive: check store.originals, which after a migration is the location \
             that --store named; if this store replaces the other one, run `wirephoto store adopt`"
        ))
    }

    fn not_in_use_yet(&self, claim: &StoreClaim) -> Error {
        let Self { database, store } = self;
        let claim = &claim.name;
        conflict(format!(
            "{store} is a copy that does not replace the store of the database {database}, \
             {claim}, yet: start the service with these settings, or run `wirephoto store \
             adopt`, before originals are stored in it or removed from it"
        ))
    }

    fn foreign_store(&self, found: &str, id: &str) -> Error {
        let Self { database, store } = self;
        conflict(format!(
            "the store of originals {store} belongs to another archive ({found}) than the \
             database {database} ({id}): check store.originals and database.url; if this \
             store replaces the other one, run `wirephoto store adopt`"
        ))
    }

    fn originals_missing(&self, present: usize, sampled: usize) -> Error {
        let Self { database, store } = self;
        conflict(format!(
            "the store of originals {store} has {present} of {sampled} originals of the \
             database {database} that were checked, and no id of an archive: check \
             store.originals (is a disk not mounted?); if they are lost, `wirephoto store adopt \
             --force` assigns this store nevertheless"
        ))
    }

    fn unidentified_store(&self) -> Error {
        let Self { database, store } = self;
        conflict(format!(
            "the store of originals {store} has originals but no id of an archive, and the \
             database {database} has no items: check store.originals and database.url; if \
             they belong together, run `wirephoto store adopt`"
        ))
    }

    fn second_store(&self) -> Error {
        let Self { database, store } = self;
        conflict(format!(
            "the database {database} has another store of originals than {store}, which has \
             no id of an archive: check store.originals, which has to be the same on all \
             nodes; if this store replaces the other one, run `wirephoto store adopt`"
        ))
    }
}

fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message)
}

fn unusable(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "the store of originals cannot be used").with_source(cause)
}

/// The result of adopting a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionReport {
    /// Id of the archive.
    pub archive: String,
    /// Previous id in the store, if it had one.
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
/// settings then most likely name the wrong location.
pub fn adopt(config: &Config, is_forced: bool) -> Result<AdoptionReport> {
    let archive = OpenArchive::open_without_ownership(config)?;
    let store = &archive.originals.store;
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
    // A copy that other tools made has the store id of its source, so the store gets a new one.
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
    conflict(message)
}

/// Fails if the target store of a copy belongs to an archive other than `id`.
pub(super) fn refuse_foreign(store: &BlobStore, id: &str) -> Result<()> {
    match store.mark().map_err(unusable)?.map(|mark| mark.id) {
        Some(found) if found != id => {
            let message = format!(
                "{} belongs to another archive ({found}) than the one to be copied ({id})",
                store.name()
            );
            Err(conflict(message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Marks a store as the replacement of the previous store, after a command copied the originals of the
/// archive `id` into it. A store that already has its own id keeps it, so that a repeated copy changes
/// nothing.
pub(super) fn replace_mark(store: &BlobStore, id: &str) -> std::result::Result<(), StoreError> {
    let known = store.mark()?.and_then(|mark| mark.store_id);
    let store_id = Some(known.unwrap_or_else(new_store_id));
    store.set_mark(&StoreMark { id: id.to_owned(), store_id, replaces: true })
}
