//! Restores a backup.

use std::fs::{self, File};
use std::path::Path;

use super::copying::{
    CopyEvent, CopyListener, CopyParameters, CopyTally, copy_named_originals, store_failed,
};
use super::folder::{
    LOCK, busy, copy_and_hash, create_file, create_private, damaged_copy, failed, flush,
};
use super::location::CopyLocation;
use super::manifest::{BackupManifest, read_manifest};
use super::{check_pages, require_file_database};
use crate::app::open_store;
use crate::app::ownership::{refuse_foreign, replace_mark};
use crate::app::secrets::{key_to_restore, missing_key_message, restore_key};
use crate::runtime::config::{Config, OriginalsLocation};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::StartPolicy;
use crate::storage::database::{DATABASE_FILE_NAME, DatabaseSnapshot, DirectoryLock};

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// Counts of the originals.
    pub tally: CopyTally,
    /// Number of originals that the backup has lost.
    pub lost: usize,
    /// A message about the key of the secrets, if the restored archive lacks it.
    pub missing_key: Option<String>,
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
    progress: CopyListener<'_>,
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
    create_private(dir)?;
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
    Ok(RestoreReport { tally, lost, missing_key: missing_key_message(config, &manifest.key()) })
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
    let found = create_file(part, |file| copy_and_hash(copied, file)).map_err(|cause| {
        let path = if copied.is_file() { part } else { copied };
        failed(path, &cause)
    })?;
    if found == manifest.database_sum {
        return Ok(());
    }
    drop(fs::remove_file(part));
    Err(damaged_copy(copied))
}
