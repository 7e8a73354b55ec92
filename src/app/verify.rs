//! Verifies a copy of the originals against a database: every original that the database refers to exists
//! with the right length, and optionally the right bytes.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;

use super::backup::{CopyLocation, open_copy, require_archive, store_failed};
use super::connect;
use super::parallel::for_each_parallel;
use super::problem::{ArchiveProblem, file_of_original};
use super::quick_check::StoreComparison;
use crate::runtime::config::{Config, OriginalsLocation};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::StoreError;
use crate::storage::database::{DatabaseSnapshot, Db, DbError, NamedOriginal, ReadTx};

/// The parameters of a verification.
#[derive(Clone, Copy, Debug)]
pub struct VerifyRequest<'a> {
    /// The folder of a backup; `None` verifies the database of the settings.
    pub backup: Option<&'a Path>,
    /// The location of the originals, if it differs from the location in the backup.
    pub place: Option<&'a OriginalsLocation>,
    /// Reads the originals and verifies their checksums.
    pub read: bool,
}

/// The result of a verification.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// The location of the originals.
    pub place: String,
    /// Number of originals that the database refers to.
    pub originals: usize,
    /// Number of originals that were read.
    pub read: usize,
    /// Number of originals that are missing, or have a different length or different bytes, plus the item
    /// rows that cannot be read.
    pub problems: usize,
    /// Number of originals that the database does not refer to, which is harmless.
    pub unnamed: usize,
}

/// The database that refers to the originals.
enum VerifiedDatabase {
    Copy(Box<Mutex<DatabaseSnapshot>>),
    Served(Db),
}

impl VerifiedDatabase {
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTx<'_>) -> std::result::Result<T, DbError> + Send + 'static,
    ) -> std::result::Result<T, DbError> {
        match self {
            Self::Copy(copy) => copy.lock().read(read),
            Self::Served(db) => db.read_blocking(read),
        }
    }

    fn file_of(&self, named: NamedOriginal) -> String {
        file_of_original(self.read(move |tx| tx.files_of_version(named.version)), named.hash)
    }
}

/// Verifies a copy of the originals against a database; calls `on_problem` for each problem, from several
/// threads.
///
/// Fails if the copy or the database cannot be used: an incomplete backup, a copy of the database whose
/// checksum differs from the manifest, a bucket that refuses access.
pub fn verify(
    config: &Config,
    request: VerifyRequest<'_>,
    on_problem: &(dyn Fn(&ArchiveProblem) + Sync),
) -> Result<VerifyReport> {
    let (source, recorded) = match request.backup {
        Some(dir) => {
            let (copy, recorded) = open_copy(dir)?;
            (VerifiedDatabase::Copy(Box::new(Mutex::new(copy))), recorded)
        }
        None => (VerifiedDatabase::Served(database(config)?), None),
    };
    let location = match (request.place, &recorded, request.backup) {
        // A location in the request overrides the location in the manifest: the originals may have moved
        // since.
        (Some(location), ..) | (None, Some(location), _) => CopyLocation::Bucket(location),
        (None, None, Some(dir)) => CopyLocation::Folder(dir),
        (None, None, None) => {
            let message =
                "--bucket or --originals is needed: the copy to compare the database with";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
    };
    let store = location.open_to_read(config)?;
    // The database is read first, because an original is stored before the database refers to it.
    let (named, rows) = source.read(|tx| tx.named_originals())?;
    let stored = store.list_with_sizes().map_err(store_failed)?;
    let problems = AtomicUsize::new(0);
    let report = |problem: &ArchiveProblem| {
        problems.fetch_add(1, Ordering::Relaxed);
        on_problem(problem);
    };
    for flaw in rows {
        report(&ArchiveProblem::Database { flaw, repaired: None });
    }
    let found = StoreComparison::new(&named, &stored);
    found.report(|named| source.file_of(named), report);
    let to_read = if request.read { found.present } else { Vec::new() };
    let read = to_read.len();
    for_each_parallel(config.ingest_workers(), to_read.into_iter(), &|named| {
        match store.checksum(named.hash, named.length) {
            Ok(found) if found == named.hash => {}
            // A store that does not answer says nothing about the originals, so the verification
            // ends.
            Err(cause @ (StoreError::Unavailable { .. } | StoreError::Io { .. })) => {
                return Err(store_failed(cause));
            }
            Ok(_) | Err(_) => {
                report(&ArchiveProblem::Damaged { of: source.file_of(named), hash: named.hash });
            }
        }
        Ok(())
    })?;
    Ok(VerifyReport {
        place: location.print(),
        originals: named.len(),
        read,
        problems: problems.load(Ordering::Relaxed),
        unnamed: found.unnamed.len(),
    })
}

/// Opens the database of the settings.
fn database(config: &Config) -> Result<Db> {
    if !config.database.url.0.is_empty() {
        return connect(config, true);
    }
    let dir = config.data.dir.as_path();
    require_archive(dir)?;
    Ok(Db::open_to_read(dir)?)
}
