//! A copy of the archive, made while it is served, and its way back.
//!
//! A backup is a folder: one copy of the database, the originals by their hashes as in the data
//! directory or in a bucket, and `backup.json`, which names the database and is written last. The database comes
//! first, as one state of one moment; an original is in the store before a state names it and is
//! never removed, so all that this state names can be copied after it. Where they lie in a bucket,
//! they are fetched: the folder is whole on its own. What is derived is not copied, nor are mails
//! and deliveries that were written to folders: they have left the archive.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::manifest::{BackupManifest, FORM, FORM_BUCKET, MANIFEST, read_manifest};
use super::open_store;
use super::original_copies::CopyLocation;
use super::ownership::{refuse_foreign, replace_mark};
use super::parallel::for_each_parallel;
use super::secrets::{copy_key, is_older_key, key_to_restore, lacking, restore_key};
use crate::runtime::config::{Config, OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit;
use crate::storage::blobs::{BlobStore, COPY_BYTES, CopyOutcome, StartPolicy, StoreError};
use crate::storage::database::{
    DATABASE_FILE_NAME, DatabaseFlaw, DatabaseSnapshot, Db, DirectoryLock, NamedOriginal,
};
use model::ContentHash;

/// The name of the lock of a backup under way; it marks the folder as ours.
const LOCK: &str = "backup.lock";
/// What is heard of work under way, from several threads.
#[derive(Clone, Copy, Debug)]
pub enum CopyEvent<'a> {
    /// Pages of the database, of how many.
    Pages(u64, u64),
    /// So many originals come now.
    Originals(u64),
    /// One of them is done.
    Original,
    /// Something could not be done; the rest goes on.
    Failed(&'a str),
}

/// Who hears of it.
pub type Hear<'a> = &'a (dyn Fn(CopyEvent<'_>) + Sync);

/// How a backup is made.
#[derive(Clone, Copy, Debug)]
pub struct BackupRequest<'a> {
    /// The folder, a new one or one of an earlier backup.
    pub target: &'a Path,
    /// The bucket for the originals, reached with the settings `backup.*`; without one they go into the folder.
    pub bucket: Option<&'a OriginalsLocation>,
    /// Removes originals from the folder or bucket that the new state does not name.
    pub prune: bool,
    /// Reads the originals that are there already, and copies those anew that are damaged.
    pub verify: bool,
    /// Leaves the key of the database's secrets out of the folder.
    pub without_key: bool,
}

impl<'a> BackupRequest<'a> {
    fn place(&self) -> CopyLocation<'a> {
        self.bucket.map_or(CopyLocation::Folder(self.target), CopyLocation::Bucket)
    }
}

/// What became of the originals.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyTally {
    /// Copied now.
    pub copied: usize,
    /// Bytes of these.
    pub copied_bytes: u64,
    /// There already.
    pub present: usize,
    /// Removed, since no item names them.
    pub pruned: usize,
}

pub(super) fn failed(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{}: {cause}", path.display()))
}

pub(super) fn store_failed(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "a store of originals cannot be used").with_source(cause)
}

/// Fails where the database is not a file: its server has tools of its own, and a copy made without
/// them would be none.
fn is_a_file(config: &Config) -> Result<()> {
    if config.database.url.0.is_empty() {
        return Ok(());
    }
    let message = "the database is PostgreSQL's (database.url): back it up and restore it with \
         pg_dump and pg_restore, and the originals after that with --originals-only; \
         docs/operations/postgresql.md says how";
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Makes a backup of the data directory; others go on reading and writing it.
///
/// It ends under constant writing, because it copies the state of the moment at which it begins.
/// The earlier backup in the folder stays whole until the new one is. Fails, and leaves no new
/// `backup.json`, when the folder holds something else, cannot be written or is full, or when the
/// database is damaged. Originals that the archive has lost are told and counted.
pub fn backup(
    config: &Config,
    wanted: BackupRequest<'_>,
    now: Timestamp,
    hear: Hear<'_>,
) -> Result<(BackupManifest, CopyTally)> {
    is_a_file(config)?;
    let (dir, target) = (config.data.dir.as_path(), wanted.target);
    if !dir.join(DATABASE_FILE_NAME).is_file() {
        let message =
            format!("{} holds no archive: there is no {DATABASE_FILE_NAME}", dir.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    // Nobody restores or upgrades while the database is copied. Originals are never removed, so
    // they are copied without it: that may take hours, and an upgrade does not wait for it.
    let shared = DirectoryLock::shared(dir)?;
    let _alone = prepare(target, wanted.bucket.is_none())?;
    let name = format!("wirephoto-{}.db", now.strftime("%Y%m%dT%H%M%S%3fZ"));
    let part = target.join(format!("{name}.part"));
    let copied = Db::copy(dir, &part, &mut |done, all| hear(CopyEvent::Pages(done, all)));
    drop(shared);
    let made = copied
        .map_err(|cause| failed(target, &cause))
        .and_then(|schema| write_backup(config, wanted, name, &part, now, schema, hear));
    if made.is_err() {
        // It gives its room back; that it cannot be removed adds nothing.
        drop(fs::remove_file(&part));
    }
    made
}

/// Opens the database for the event of a backup in its audit log; `Fail` where that would change its
/// schema, since upgrades begin with a backup, or where it takes no writes any more.
#[must_use]
pub fn open_to_record(config: &Config) -> Option<Db> {
    audit::store_rows(config.audit.retention_days > 0);
    let dir = config.data.dir.as_path();
    // Fails where the schema is another one.
    drop(Db::open_to_read(dir).ok()?);
    let db = Db::open(dir).ok()?;
    db.moved_to().is_ok_and(|home| home.is_none()).then_some(db)
}

/// Makes the backup of the name, moment and schema in the folder, around the copy of the database
/// that lies in `part` until the backup is whole.
fn write_backup(
    config: &Config,
    wanted: BackupRequest<'_>,
    name: String,
    part: &Path,
    now: Timestamp,
    schema: u32,
    hear: Hear<'_>,
) -> Result<(BackupManifest, CopyTally)> {
    let (dir, target) = (config.data.dir.as_path(), wanted.target);
    let snapshot = DatabaseSnapshot::open(part)?;
    check_pages(&snapshot, dir)?;
    let (named, rows) = snapshot.read(|tx| tx.named_originals())?;
    let items = snapshot.read(|tx| tx.count_items())?;
    let key = copy_key(config, &snapshot, target, wanted.without_key)?;
    drop(snapshot);
    rows.iter().for_each(|row| hear(CopyEvent::Failed(&row.to_string())));
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = wanted.place().open_to_write(config)?;
    let how =
        CopyParameters { workers: config.ingest_workers(), verify: wanted.verify, strict: false };
    let (mut tally, lost) = copy_named_originals(&from, &to, &named, how, hear)?;
    let manifest = BackupManifest {
        form: if wanted.bucket.is_some() { FORM_BUCKET } else { FORM },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: now,
        schema,
        database: name,
        database_bytes: fs::metadata(part).map_err(|cause| failed(part, &cause))?.len(),
        database_sum: database_copy_hash(part)?,
        items,
        originals: named.len(),
        originals_bytes: named.iter().map(|one| one.length).sum(),
        lost: lost + rows.len(),
        secrets_key: key.id,
        secrets_key_file: key.file,
        bucket: wanted.bucket.map(OriginalsLocation::print),
    };
    write_manifest(target, part, &manifest)?;
    // What a damaged row names cannot be told, and a copy in the backup may be the last one.
    if wanted.prune && manifest.lost == 0 {
        tally.pruned = prune(&to, &named)?;
    } else if wanted.prune {
        hear(CopyEvent::Failed("--prune was left out: not all that the archive names was found"));
    }
    Ok((manifest, tally))
}

/// Makes the folder or looks whether it is one of ours, takes it for this process alone, and
/// removes what interrupted backups left. It gets a folder for originals where it is to have them.
pub(super) fn prepare(target: &Path, has_originals: bool) -> Result<File> {
    let fail = |cause: io::Error| failed(target, &cause);
    DirBuilder::new().recursive(true).mode(0o700).create(target).map_err(fail)?;
    let lock = target.join(LOCK);
    if !lock.exists() && fs::read_dir(target).map_err(fail)?.next().is_some() {
        let message = format!("{} holds something else than a backup of ours", target.display());
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let held = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(|cause| failed(&lock, &cause))?;
    held.try_lock().map_err(|cause| busy(target, cause))?;
    for name in entry_names(target)? {
        if name.contains(".part") {
            fs::remove_file(target.join(name)).map_err(fail)?;
        }
    }
    if !has_originals {
        return Ok(held);
    }
    let originals = target.join("originals");
    DirBuilder::new().recursive(true).mode(0o700).create(&originals).map_err(fail)?;
    BlobStore::open(&originals).and_then(|store| store.sweep()).map_err(store_failed)?;
    Ok(held)
}

fn busy(folder: &Path, cause: TryLockError) -> Error {
    match cause {
        TryLockError::WouldBlock => {
            let message = format!("{}: another process works on this backup", folder.display());
            Error::new(ErrorKind::Conflict, message)
        }
        TryLockError::Error(cause) => failed(&folder.join(LOCK), &cause),
    }
}

/// The names of the files in a folder.
fn entry_names(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).map_err(|cause| failed(dir, &cause))?;
    let name = |entry: io::Result<fs::DirEntry>| {
        entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    entries.map(name).collect::<io::Result<_>>().map_err(|cause| failed(dir, &cause))
}

/// Fails when pages of a copy are damaged; `of` is what it is a copy of.
fn check_pages(snapshot: &DatabaseSnapshot, of: &Path) -> Result<()> {
    let flaws =
        snapshot.page_flaws().unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]);
    let Some(first) = flaws.first() else { return Ok(()) };
    let message = format!("{}: the database is damaged: {first}", of.display());
    Err(Error::new(ErrorKind::Conflict, message))
}

/// How originals are taken over.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyParameters {
    /// Threads.
    pub(super) workers: usize,
    /// Reads those that are there already, and takes the ones that are damaged over anew.
    pub(super) verify: bool,
    /// Ends with one that cannot be read, which a later try may bring; else it counts as lost.
    pub(super) strict: bool,
}

/// Takes the originals `named` over from one store to the other: what became of them, and how many
/// the first one has lost. All that were taken over are on disk when this returns.
pub(super) fn copy_named_originals(
    from: &BlobStore,
    to: &BlobStore,
    named: &[NamedOriginal],
    CopyParameters { workers, verify, strict }: CopyParameters,
    hear: Hear<'_>,
) -> Result<(CopyTally, usize)> {
    hear(CopyEvent::Originals(u64::try_from(named.len()).unwrap_or(u64::MAX)));
    let tally = Mutex::new(CopyTally::default());
    let lost = AtomicUsize::new(0);
    for_each_parallel(workers, named.iter(), &|NamedOriginal { hash, length, .. }| {
        let mut taken = to.copy_from(from, *hash, *length).map_err(store_failed)?;
        let there = matches!(taken, CopyOutcome::AlreadyPresent);
        if there && verify && !to.is_intact(*hash, *length) {
            taken = to.replace(from, *hash, *length).map_err(store_failed)?;
        }
        let mut tally = tally.lock();
        match taken {
            CopyOutcome::Copied => {
                tally.copied += 1;
                tally.copied_bytes += length;
            }
            CopyOutcome::AlreadyPresent => tally.present += 1,
            CopyOutcome::Refused(why @ StoreError::Io { .. }) if strict => {
                return Err(store_failed(why));
            }
            CopyOutcome::Refused(why) => {
                lost.fetch_add(1, Ordering::Relaxed);
                hear(CopyEvent::Failed(&format!("original {hash} is not copied: {why}")));
            }
        }
        drop(tally);
        hear(CopyEvent::Original);
        Ok(())
    })?;
    to.flush().map_err(store_failed)?;
    Ok((tally.into_inner(), lost.into_inner()))
}

/// Gives the copy of the database its name and writes the note that names it: from then on the
/// folder is this backup. Then the earlier copies go.
fn write_manifest(target: &Path, part: &Path, manifest: &BackupManifest) -> Result<()> {
    let fail = |cause: io::Error| failed(target, &cause);
    let text = serde_json::to_string_pretty(manifest).map_err(Error::internal)?;
    let note = target.join(format!("{MANIFEST}.part"));
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&note).and_then(
            |mut file| {
                file.write_all(text.as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()
            },
        );
    written.map_err(|cause| failed(&note, &cause))?;
    // From here on nothing needs room.
    fs::rename(part, target.join(&manifest.database)).map_err(fail)?;
    flush(target)?;
    fs::rename(&note, target.join(MANIFEST)).map_err(fail)?;
    flush(target)?;
    for name in entry_names(target)? {
        let older = name.starts_with("wirephoto-") && name.ends_with(".db");
        let older_key = is_older_key(&name, &manifest.key());
        if older_key || older && name != manifest.database {
            fs::remove_file(target.join(name)).map_err(fail)?;
        }
    }
    Ok(())
}

fn flush(dir: &Path) -> Result<()> {
    let flushed = File::open(dir).and_then(|dir| dir.sync_all());
    flushed.map_err(|cause| failed(dir, &cause))
}

fn prune(store: &BlobStore, named: &[NamedOriginal]) -> Result<usize> {
    let stored = store.list().map_err(store_failed)?;
    let is_named = |hash: &ContentHash| named.binary_search_by_key(hash, |one| one.hash).is_ok();
    let mut pruned = 0;
    for hash in stored.into_iter().filter(|hash| !is_named(hash)) {
        store.remove(hash).map_err(store_failed)?;
        pruned += 1;
    }
    Ok(pruned)
}

/// The SHA-256 of a copy of the database.
pub(super) fn database_copy_hash(path: &Path) -> Result<ContentHash> {
    sum(path).map_err(|cause| failed(path, &cause))
}

/// The SHA-256 of a file.
fn sum(path: &Path) -> io::Result<ContentHash> {
    copy_and_sum(path, &mut io::sink())
}

/// Copies a file; gives the SHA-256 of its bytes.
fn copy_and_sum(from: &Path, to: &mut dyn Write) -> io::Result<ContentHash> {
    let (mut from, mut hash) = (File::open(from)?, ContentHash::hasher());
    let mut piece = vec![0; COPY_BYTES];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok(hash.finish());
        }
        hash.update(&piece[..read]);
        to.write_all(&piece[..read])?;
    }
}

/// What was restored.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// What became of the originals.
    pub tally: CopyTally,
    /// Originals that the backup has lost.
    pub lost: usize,
    /// What the restored archive lacks: the key of its secrets.
    pub lacks: Option<String>,
}

/// Restores the backup in `source` into the data directory, which must hold no archive. Its originals lie in
/// `bucket` if it is given, else where the backup says.
///
/// The database comes last: a restore that was cut short leaves no archive and can be repeated.
/// Everything is checked against its sum on the way. Fails when the directory holds an archive,
/// somebody works on it, or the backup is not whole or of a later version.
pub fn restore(
    config: &Config,
    source: &Path,
    bucket: Option<&OriginalsLocation>,
    hear: Hear<'_>,
) -> Result<RestoreReport> {
    is_a_file(config)?;
    let manifest = read_manifest(source)?;
    let noted = manifest.place()?;
    let place = bucket.or(noted.as_ref());
    let place = place.map_or(CopyLocation::Folder(source), CopyLocation::Bucket);
    let _reading = match File::open(source.join(LOCK)) {
        Ok(lock) => {
            lock.try_lock_shared().map_err(|cause| busy(source, cause))?;
            Some(lock)
        }
        // A copy of a backup may lack it.
        Err(_) => None,
    };
    let dir = config.data.dir.as_path();
    let fail = |cause: io::Error| failed(dir, &cause);
    require_empty(dir)?;
    let key = key_to_restore(config, source, &manifest.key())?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
    let alone = DirectoryLock::exclusive(dir)?;
    // Somebody may have restored or begun one there before the lock was ours.
    require_empty(dir)?;
    let part = dir.join(format!("{DATABASE_FILE_NAME}.part"));
    let copied = source.join(&manifest.database);
    copy_database(&copied, &part, &manifest)?;
    let snapshot = DatabaseSnapshot::open(&part)?;
    check_pages(&snapshot, &copied)?;
    let (named, rows) = snapshot.read(|tx| tx.named_originals())?;
    // A schema of before has none.
    let id = snapshot.read(|tx| tx.archive_id()).ok();
    drop(snapshot);
    rows.iter().for_each(|row| hear(CopyEvent::Failed(&row.to_string())));
    let from = place.open_to_read(config)?;
    let to = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    to.check_writable().map_err(store_failed)?;
    if let Some(id) = &id {
        refuse_foreign(&to, id)?;
    }
    let how = CopyParameters { workers: config.ingest_workers(), verify: true, strict: false };
    let (tally, lost) = copy_named_originals(&from, &to, &named, how, hear)?;
    if let Some(id) = id {
        replace_mark(&to, &id).map_err(store_failed)?;
    }
    // Before the database: an archive without its key could not be served.
    restore_key(key)?;
    fs::rename(&part, dir.join(DATABASE_FILE_NAME)).map_err(fail)?;
    flush(dir)?;
    drop(alone);
    Ok(RestoreReport { tally, lost, lacks: lacking(config, &manifest.key()) })
}

/// Fails when there is an archive in `dir`.
fn require_empty(dir: &Path) -> Result<()> {
    for name in [DATABASE_FILE_NAME.to_owned(), format!("{DATABASE_FILE_NAME}-wal")] {
        if dir.join(&name).exists() {
            let message = format!(
                "{} holds an archive already ({name}): move it away, or restore into another \
                 directory",
                dir.display()
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
    }
    Ok(())
}

/// Copies the database of a backup to `part` and compares it with what the note says.
fn copy_database(copied: &Path, part: &Path, manifest: &BackupManifest) -> Result<()> {
    // An earlier try may have left one.
    drop(fs::remove_file(part));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(part)
        .map_err(|cause| failed(part, &cause))?;
    let found = copy_and_sum(copied, &mut file).map_err(|cause| {
        let path: PathBuf = if copied.is_file() { part.into() } else { copied.into() };
        failed(&path, &cause)
    })?;
    file.sync_all().map_err(|cause| failed(part, &cause))?;
    if found == manifest.database_sum {
        return Ok(());
    }
    drop(fs::remove_file(part));
    let message = format!("{} is damaged: its sum is another one", copied.display());
    Err(Error::new(ErrorKind::Conflict, message))
}
