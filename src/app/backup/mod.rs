//! Backs up the archive while it is being served, and restores it.
//!
//! A backup is a folder with a copy of the database, the originals, and the manifest `backup.json`. The
//! originals are stored by hash as in the data directory, or in a bucket. The manifest names the copy of the
//! database and is written last.
//!
//! The database is copied first, as a snapshot of one moment. An original is stored before an item refers to
//! it and stays while one does, so the originals of the snapshot can be copied afterwards. The exception is
//! an original whose item was replaced since: `check --prune-orphans` may remove it during the copy, and the
//! backup then counts it as lost.
//!
//! If the archive has its originals in a bucket, they are downloaded, so that the folder is self-contained.
//! Derived files are not copied. Mails and deliveries in folders are not copied either, because they have
//! left the archive.

mod copying;
mod folder;
mod location;
mod manifest;
mod originals;
mod restore;

use std::{fs, io::Write, path::Path};

use jiff::Timestamp;

pub use copying::{CopyEvent, CopyListener, CopyTally};
pub(super) use copying::{CopyParameters, copy_named_originals, store_failed};
pub use location::CopyLocation;
pub use originals::{copy_originals, restore_originals};
pub use restore::{RestoreReport, restore};

use super::check::is_named;
use super::open_store;
use super::secrets::{copy_key, is_older_key};
use crate::runtime::config::{Config, OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit;
use crate::storage::blobs::{BlobStore, StartPolicy};
use crate::storage::database::{
    DATABASE_FILE_NAME, DatabaseFlaw, DatabaseSnapshot, Db, DirectoryLock, NamedOriginal,
};
use folder::{create_file, damaged_copy, database_copy_hash, entry_names, failed, flush, prepare};
use manifest::{BackupManifest, FORM, FORM_BUCKET, MANIFEST, read_manifest};

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

/// Fails if the data directory holds no archive in SQLite.
pub(super) fn require_archive(dir: &Path) -> Result<()> {
    if dir.join(DATABASE_FILE_NAME).is_file() {
        return Ok(());
    }
    let message = format!("{} holds no archive: there is no {DATABASE_FILE_NAME}", dir.display());
    Err(Error::new(ErrorKind::NotFound, message))
}

/// Opens the copy of the database in the backup `dir`, verified against its checksum. Also returns the location of
/// the originals if they are not in the folder.
pub(super) fn open_copy(dir: &Path) -> Result<(DatabaseSnapshot, Option<OriginalsLocation>)> {
    let manifest = read_manifest(dir)?;
    let copied = dir.join(&manifest.database);
    if database_copy_hash(&copied)? != manifest.database_sum {
        return Err(damaged_copy(&copied));
    }
    Ok((DatabaseSnapshot::open(&copied)?, manifest.place()?))
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
    progress: CopyListener<'_>,
) -> Result<(BackupManifest, CopyTally)> {
    require_file_database(config)?;
    let dir = config.data.dir.as_path();
    let target = request.target;
    require_archive(dir)?;
    // The lock prevents a restore or an upgrade during the copy of the database. The originals are
    // copied without the lock: that may last hours, and an upgrade should not have to wait for it.
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
    progress: CopyListener<'_>,
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

/// Fails if pages of a copy are damaged; `source` is the path that the message names.
fn check_pages(snapshot: &DatabaseSnapshot, source: &Path) -> Result<()> {
    let flaws =
        // A database that cannot be checked counts as damaged.
        snapshot.page_flaws().unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]);
    let Some(first) = flaws.first() else { return Ok(()) };
    let message = format!("{}: the database is damaged: {first}", source.display());
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Renames the copy of the database and writes the manifest that names it: from then on, the folder is the
/// new backup. Then removes the earlier copies.
fn write_manifest(target: &Path, part: &Path, manifest: &BackupManifest) -> Result<()> {
    let text = serde_json::to_string_pretty(manifest).map_err(Error::internal)?;
    let manifest_part = target.join(format!("{MANIFEST}.part"));
    let written = create_file(&manifest_part, |file| writeln!(file, "{text}"));
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

fn prune(store: &BlobStore, named: &[NamedOriginal]) -> Result<usize> {
    let stored = store.list().map_err(store_failed)?;
    let mut pruned = 0;
    for hash in stored.into_iter().filter(|hash| !is_named(named, hash)) {
        store.remove(hash).map_err(store_failed)?;
        pruned += 1;
    }
    Ok(pruned)
}
