//! Backs up the archive while it is being served, and restores it.
//!
//! A backup is a folder with a copy of the database, the originals, and the manifest `backup.json`. The
//! originals are stored by hash as in the data directory, or in a bucket. The manifest names the copy of the
//! database and is written last.
//!
//! The database is copied first, as a snapshot of one moment. An original is stored before the database
//! refers to it and is never removed, so everything that the snapshot refers to can be copied afterwards. If
//! the archive has its originals in a bucket, they are downloaded, so that the folder is self-contained.
//! Derived files are not copied. Mails and deliveries in folders are not copied either, because they have
//! left the archive.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::check::is_named;
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

/// The lock file of a backup in progress; it also marks the folder as a backup of this product.
const LOCK: &str = "backup.lock";
/// Progress of a copy, reported from several threads.
#[derive(Clone, Copy, Debug)]
pub enum CopyEvent<'a> {
    /// The number of copied pages of the database, and the total.
    Pages(u64, u64),
    /// The number of originals to copy next.
    Originals(u64),
    /// An original was processed.
    Original,
    /// A failure that does not stop the copy.
    Failed(&'a str),
}

/// The receiver of progress events.
pub type Hear<'a> = &'a (dyn Fn(CopyEvent<'_>) + Sync);

/// The parameters of a backup.
#[derive(Clone, Copy, Debug)]
pub struct BackupRequest<'a> {
    /// Folder of the backup, new or with an earlier backup.
    pub target: &'a Path,
    /// The bucket for the originals, reached with the settings `backup.*`; `None` copies them into the
    /// folder.
    pub bucket: Option<&'a OriginalsLocation>,
    /// Removes originals from the folder or bucket that the new backup does not refer to.
    pub prune: bool,
    /// Reads the originals that the target already has, and copies damaged ones again.
    pub verify: bool,
    /// Leaves the key of the database's secrets out of the folder.
    pub without_key: bool,
}

impl<'a> BackupRequest<'a> {
    fn location(&self) -> CopyLocation<'a> {
        self.bucket.map_or(CopyLocation::Folder(self.target), CopyLocation::Bucket)
    }
}

/// Counts of copied originals.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyTally {
    /// Originals copied in this run.
    pub copied: usize,
    /// Bytes copied in this run.
    pub copied_bytes: u64,
    /// Originals that the target had before this run.
    pub present: usize,
    /// Originals that were removed because no item refers to them.
    pub pruned: usize,
}

pub(super) fn failed(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{}: {cause}", path.display()))
}

pub(super) fn store_failed(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "a store of originals cannot be used").with_source(cause)
}

/// Fails if the database is not a file: PostgreSQL has its own backup tools, and a copy made without them
/// would be useless.
fn require_file_database(config: &Config) -> Result<()> {
    if config.database.url.0.is_empty() {
        return Ok(());
    }
    let message = "the database is PostgreSQL's (database.url): back it up and restore it with \
         pg_dump and pg_restore, and the originals after that with --originals-only; \
         docs/operations/postgresql.md says how";
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Backs up the data directory, while other processes continue to read and write it.
///
/// Terminates even under constant writes, because it copies the state at its start. An earlier backup in the
/// folder stays intact until the new one is complete. Fails, without writing a new `backup.json`, if the
/// folder holds other files, cannot be written or is full, or if the database is damaged. Originals that the
/// archive has lost are reported and counted.
pub fn backup(
    config: &Config,
    request: BackupRequest<'_>,
    now: Timestamp,
    progress: Hear<'_>,
) -> Result<(BackupManifest, CopyTally)> {
    require_file_database(config)?;
    let dir = config.data.dir.as_path();
    let target = request.target;
    if !dir.join(DATABASE_FILE_NAME).is_file() {
        let message =
            format!("{} holds no archive: there is no {DATABASE_FILE_NAME}", dir.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    // The lock prevents a restore or an upgrade during the copy of the database. Originals are
    // never removed, so they are copied without the lock: that may last hours, and an upgrade
    // should not have to wait for it.
    let shared = DirectoryLock::shared(dir)?;
    let _backup_lock = prepare(target, request.bucket.is_none())?;
    let name = format!("wirephoto-{}.db", now.strftime("%Y%m%dT%H%M%S%3fZ"));
    let part = target.join(format!("{name}.part"));
    let copied = Db::copy(dir, &part, &mut |done, total| progress(CopyEvent::Pages(done, total)));
    drop(shared);
    let outcome = copied
        .map_err(|cause| failed(target, &cause))
        .and_then(|schema| write_backup(config, request, name, &part, now, schema, progress));
    if outcome.is_err() {
        // Frees the space; a failure to remove the file is less relevant than the first error.
        drop(fs::remove_file(&part));
    }
    outcome
}

/// Opens the database to record a backup in its audit log.
///
/// Returns `None` if opening would upgrade the schema, because a backup is the first step of an upgrade, or
/// if the database no longer accepts writes.
#[must_use]
pub fn open_to_record(config: &Config) -> Option<Db> {
    audit::store_rows(config.audit.retention_days > 0);
    let dir = config.data.dir.as_path();
    // Fails if the schema has a different version.
    drop(Db::open_to_read(dir).ok()?);
    let db = Db::open(dir).ok()?;
    db.moved_to().is_ok_and(|new_location| new_location.is_none()).then_some(db)
}

/// Completes a backup: copies the originals that the database copy `part` refers to, writes the manifest, and
/// renames `part` to `name`.
fn write_backup(
    config: &Config,
    request: BackupRequest<'_>,
    name: String,
    part: &Path,
    now: Timestamp,
    schema: u32,
    progress: Hear<'_>,
) -> Result<(BackupManifest, CopyTally)> {
    let dir = config.data.dir.as_path();
    let target = request.target;
    let snapshot = DatabaseSnapshot::open(part)?;
    check_pages(&snapshot, dir)?;
    let (named, damaged_rows) = snapshot.read(|tx| tx.named_originals())?;
    let items = snapshot.read(|tx| tx.count_items())?;
    let key = copy_key(config, &snapshot, target, request.without_key)?;
    drop(snapshot);
    damaged_rows.iter().for_each(|row| progress(CopyEvent::Failed(&row.to_string())));
    // Lost originals are counted; they do not prevent the backup of the others.
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = request.location().open_to_write(config)?;
    let parameters =
        CopyParameters { workers: config.ingest_workers(), verify: request.verify, strict: false };
    let (mut tally, lost) = copy_named_originals(&from, &to, &named, parameters, progress)?;
    let manifest = BackupManifest {
        form: if request.bucket.is_some() { FORM_BUCKET } else { FORM },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: now,
        schema,
        database: name,
        database_bytes: fs::metadata(part).map_err(|cause| failed(part, &cause))?.len(),
        database_sum: database_copy_hash(part)?,
        items,
        originals: named.len(),
        originals_bytes: named.iter().map(|original| original.length).sum(),
        lost: lost + damaged_rows.len(),
        secrets_key: key.id,
        secrets_key_file: key.file,
        bucket: request.bucket.map(OriginalsLocation::print),
    };
    write_manifest(target, part, &manifest)?;
    // It is unknown which originals a damaged row refers to, and the backup may hold their last
    // copies.
    if request.prune && manifest.lost == 0 {
        tally.pruned = prune(&to, &named)?;
    } else if request.prune {
        progress(CopyEvent::Failed(
            "--prune was skipped: not all originals of the archive were found",
        ));
    }
    Ok((manifest, tally))
}

/// Creates the folder, or checks that it is a backup of this product. Locks it for this process, removes
/// leftovers of interrupted backups, and creates a subfolder for originals if `has_originals`.
pub(super) fn prepare(target: &Path, has_originals: bool) -> Result<File> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(target);
    created.map_err(|cause| failed(target, &cause))?;
    let lock = target.join(LOCK);
    if !lock.exists() {
        let mut entries = fs::read_dir(target).map_err(|cause| failed(target, &cause))?;
        if entries.next().is_some() {
            let message = format!("{} holds something other than a backup", target.display());
            return Err(Error::new(ErrorKind::Conflict, message));
        }
    }
    let lock_file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(|cause| failed(&lock, &cause))?;
    lock_file.try_lock().map_err(|cause| busy(target, cause))?;
    for name in entry_names(target)? {
        // This process holds the lock, so these files are leftovers of processes that ended.
        if name.contains(".part") {
            fs::remove_file(target.join(name)).map_err(|cause| failed(target, &cause))?;
        }
    }
    if !has_originals {
        return Ok(lock_file);
    }
    let originals = target.join("originals");
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&originals);
    created.map_err(|cause| failed(target, &cause))?;
    BlobStore::open(&originals).and_then(|store| store.sweep()).map_err(store_failed)?;
    Ok(lock_file)
}

fn busy(folder: &Path, cause: TryLockError) -> Error {
    match cause {
        TryLockError::WouldBlock => {
            let message = format!("{}: another process is using this backup", folder.display());
            Error::new(ErrorKind::Conflict, message)
        }
        TryLockError::Error(cause) => failed(&folder.join(LOCK), &cause),
    }
}

/// The names of the entries in a folder.
fn entry_names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|cause| failed(dir, &cause))? {
        let entry = entry.map_err(|cause| failed(dir, &cause))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Fails if pages of a copy are damaged; `source` is the path that the message names.
fn check_pages(snapshot: &DatabaseSnapshot, source: &Path) -> Result<()> {
    let flaws =
        // A database that cannot be checked counts as damaged.
        snapshot.page_flaws().unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]);
    let Some(first) = flaws.first() else { return Ok(()) };
    let message = format!("{}: the database is damaged: {first}", source.display());
    Err(Error::new(ErrorKind::Conflict, message))
}

/// The parameters of a copy of originals.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyParameters {
    pub(super) workers: usize,
    /// Reads the originals that the target already has, and copies damaged ones again.
    pub(super) verify: bool,
    /// True to fail at an original that cannot be read, because a retry may succeed; false to count it as
    /// lost.
    pub(super) strict: bool,
}

/// Copies the originals in `named` between stores. Returns the counts, and the number of originals that the
/// source store has lost. All copied originals are durable when this function returns.
pub(super) fn copy_named_originals(
    from: &BlobStore,
    to: &BlobStore,
    named: &[NamedOriginal],
    CopyParameters { workers, verify, strict }: CopyParameters,
    progress: Hear<'_>,
) -> Result<(CopyTally, usize)> {
    progress(CopyEvent::Originals(u64::try_from(named.len()).unwrap_or(u64::MAX)));
    let tally = Mutex::new(CopyTally::default());
    let lost = AtomicUsize::new(0);
    for_each_parallel(workers, named.iter(), &|NamedOriginal { hash, length, .. }| {
        let mut outcome = to.copy_from(from, *hash, *length).map_err(store_failed)?;
        let is_present = matches!(outcome, CopyOutcome::AlreadyPresent);
        if is_present && verify && !to.is_intact(*hash, *length) {
            outcome = to.replace(from, *hash, *length).map_err(store_failed)?;
        }
        let mut tally = tally.lock();
        match outcome {
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
                progress(CopyEvent::Failed(&format!("original {hash} is not copied: {why}")));
            }
        }
        drop(tally);
        progress(CopyEvent::Original);
        Ok(())
    })?;
    // The manifest must not name originals that a power failure can still lose.
    to.flush().map_err(store_failed)?;
    Ok((tally.into_inner(), lost.into_inner()))
}

/// Renames the copy of the database and writes the manifest that names it: from then on, the folder is the
/// new backup. Then removes the earlier copies.
fn write_manifest(target: &Path, part: &Path, manifest: &BackupManifest) -> Result<()> {
    let text = serde_json::to_string_pretty(manifest).map_err(Error::internal)?;
    let manifest_part = target.join(format!("{MANIFEST}.part"));
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&manifest_part).and_then(
            |mut file| {
                file.write_all(text.as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()
            },
        );
    written.map_err(|cause| failed(&manifest_part, &cause))?;
    // The following steps need no disk space.
    fs::rename(part, target.join(&manifest.database)).map_err(|cause| failed(target, &cause))?;
    // Flushed in between, so that the manifest never names a copy that does not exist.
    flush(target)?;
    fs::rename(&manifest_part, target.join(MANIFEST)).map_err(|cause| failed(target, &cause))?;
    flush(target)?;
    // Only now: until the new manifest is durable, the earlier copy is the backup.
    for name in entry_names(target)? {
        let older = name.starts_with("wirephoto-") && name.ends_with(".db");
        let older_key = is_older_key(&name, &manifest.key());
        if older_key || older && name != manifest.database {
            fs::remove_file(target.join(name)).map_err(|cause| failed(target, &cause))?;
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
    let mut pruned = 0;
    for hash in stored.into_iter().filter(|hash| !is_named(named, hash)) {
        store.remove(hash).map_err(store_failed)?;
        pruned += 1;
    }
    Ok(pruned)
}

/// The SHA-256 of a copy of the database.
pub(super) fn database_copy_hash(path: &Path) -> Result<ContentHash> {
    hash_file(path).map_err(|cause| failed(path, &cause))
}

/// The SHA-256 of a file.
fn hash_file(path: &Path) -> io::Result<ContentHash> {
    copy_and_hash(path, &mut io::sink())
}

/// Copies a file and returns the SHA-256 of its bytes.
fn copy_and_hash(from: &Path, to: &mut dyn Write) -> io::Result<ContentHash> {
    let mut from = File::open(from)?;
    let mut hash = ContentHash::hasher();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(hash.finish());
        }
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// Counts of the originals.
    pub tally: CopyTally,
    /// Number of originals that the backup has lost.
    pub lost: usize,
    /// A message about the key of the secrets, if the restored archive lacks it.
    pub lacks: Option<String>,
}

/// Restores the backup in `source` into the data directory, which must not hold an archive. The originals are
/// read from `bucket` if it is given, otherwise from the location in the backup's manifest.
///
/// The database is restored last, so an interrupted restore leaves no archive and can be repeated. All data
/// is verified against its checksums. Fails if the directory holds an archive or is in use, or if the backup
/// is incomplete or of a later version.
pub fn restore(
    config: &Config,
    source: &Path,
    bucket: Option<&OriginalsLocation>,
    progress: Hear<'_>,
) -> Result<RestoreReport> {
    require_file_database(config)?;
    let manifest = read_manifest(source)?;
    let recorded = manifest.place()?;
    let location = bucket.or(recorded.as_ref());
    let location = location.map_or(CopyLocation::Folder(source), CopyLocation::Bucket);
    let _shared_lock = match File::open(source.join(LOCK)) {
        Ok(lock) => {
            // A backup into the folder at the same time would replace files while they are read.
            lock.try_lock_shared().map_err(|cause| busy(source, cause))?;
            Some(lock)
        }
        // A copied backup may lack the lock file.
        Err(_) => None,
    };
    let dir = config.data.dir.as_path();
    require_empty(dir)?;
    // Read first, so that a missing or wrong key is found before anything is written.
    let key = key_to_restore(config, source, &manifest.key())?;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|cause| failed(dir, &cause))?;
    let exclusive_lock = DirectoryLock::exclusive(dir)?;
    // Another process may have started a restore there before this one acquired the lock.
    require_empty(dir)?;
    let part = dir.join(format!("{DATABASE_FILE_NAME}.part"));
    let database_copy = source.join(&manifest.database);
    copy_database(&database_copy, &part, &manifest)?;
    let snapshot = DatabaseSnapshot::open(&part)?;
    check_pages(&snapshot, &database_copy)?;
    let (named, damaged_rows) = snapshot.read(|tx| tx.named_originals())?;
    // Databases with an old schema have no archive id.
    let id = snapshot.read(|tx| tx.archive_id()).ok();
    drop(snapshot);
    damaged_rows.iter().for_each(|row| progress(CopyEvent::Failed(&row.to_string())));
    let from = location.open_to_read(config)?;
    let to = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    // Copying may last hours, so a store that cannot be written is found now.
    to.check_writable().map_err(store_failed)?;
    if let Some(id) = &id {
        refuse_foreign(&to, id)?;
    }
    let parameters =
        CopyParameters { workers: config.ingest_workers(), verify: true, strict: false };
    let (tally, lost) = copy_named_originals(&from, &to, &named, parameters, progress)?;
    if let Some(id) = id {
        replace_mark(&to, &id).map_err(store_failed)?;
    }
    // The key comes before the database: an archive without its key could not be served.
    restore_key(key)?;
    fs::rename(&part, dir.join(DATABASE_FILE_NAME)).map_err(|cause| failed(dir, &cause))?;
    flush(dir)?;
    drop(exclusive_lock);
    Ok(RestoreReport { tally, lost, lacks: lacking(config, &manifest.key()) })
}

/// Fails if `dir` holds an archive.
fn require_empty(dir: &Path) -> Result<()> {
    // A write-ahead log alone counts, too: it would be applied to the restored database.
    for name in [DATABASE_FILE_NAME.to_owned(), format!("{DATABASE_FILE_NAME}-wal")] {
        if dir.join(&name).exists() {
            let message = format!(
                "{} already holds an archive ({name}): move it away, or restore into another \
                 directory",
                dir.display()
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
    }
    Ok(())
}

/// Copies the database of a backup to `part` and verifies it against the manifest.
fn copy_database(copied: &Path, part: &Path, manifest: &BackupManifest) -> Result<()> {
    // An earlier attempt may have left this file.
    drop(fs::remove_file(part));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(part)
        .map_err(|cause| failed(part, &cause))?;
    let found = copy_and_hash(copied, &mut file).map_err(|cause| {
        let path: PathBuf = if copied.is_file() { part.into() } else { copied.into() };
        failed(&path, &cause)
    })?;
    file.sync_all().map_err(|cause| failed(part, &cause))?;
    if found == manifest.database_sum {
        return Ok(());
    }
    drop(fs::remove_file(part));
    let message = format!("{} is damaged: its checksum differs", copied.display());
    Err(Error::new(ErrorKind::Conflict, message))
}
