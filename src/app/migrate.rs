//! Migrates the archive while it is being served: its database to PostgreSQL, its originals to a bucket or
//! a different folder.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use strum::IntoEnumIterator;

use super::backup::{
    CopyEvent, CopyListener, CopyParameters, CopyTally, copy_named_originals, store_failed,
};
use super::check::is_named;
use super::ownership::{refuse_foreign, replace_mark};
use super::parallel::for_each_parallel;
use super::secrets::key_source;
use super::{OpenArchive, open_store};
use crate::runtime::config::{Config, DatabaseUrl, OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction};
use crate::storage::blobs::{BlobStore, DerivedKind, DerivedStore, StartPolicy};
use crate::storage::database::{
    ArchiveMigration, CopyOriginals, Db, DbError, MigratedRows, NamedOriginal, ReportRows,
};
use crate::storage::secrets::{KeyId, KeySource};

/// The parameters of a migration.
#[derive(Clone, Copy, Debug)]
pub struct MigrationRequest<'a> {
    /// The new database; `None` copies only originals.
    pub to: Option<&'a DatabaseUrl>,
    /// The new location of the originals; `None` leaves them where they are.
    pub store: Option<&'a OriginalsLocation>,
    /// Switches to the new location at the end; the old archive then refuses writes. False is a dry run.
    pub switch: bool,
    /// Reads the originals that were copied earlier, and copies damaged originals again.
    pub verify: bool,
}

/// The result of a migration.
#[derive(Clone, Debug, Default)]
pub struct MigrationReport {
    /// Rows of the database, if it was copied.
    pub rows: Option<MigratedRows>,
    /// Counts of the originals, if they were copied.
    pub originals: Option<CopyTally>,
    /// Number of derived files that were copied.
    pub derived: usize,
    /// Number of originals that could not be copied because the archive had lost them, plus the item rows
    /// that could not be read.
    pub lost: usize,
    /// The schema versions before and after, if opening the database upgraded its schema.
    pub upgraded: Option<(i64, i64)>,
    /// The key that the secrets stay encrypted with, and its source on this node.
    pub key: Option<(KeyId, KeySource)>,
}

/// The source and the target store of the originals.
#[derive(Clone)]
struct MigrationStores {
    from: BlobStore,
    to: BlobStore,
    workers: usize,
    verify: bool,
}

/// Records the start of a migration in the audit log. The event is copied with the other rows: a database
/// that an archive has been moved from refuses writes, and the new database must be equal to it so that the
/// migration can be undone.
fn record(db: &Db, request: MigrationRequest<'_>) {
    let detail = if request.switch { "migrate --switch begins" } else { "migrate begins" };
    let event = audit::event(AuditAction::Command).with_detail(detail);
    if let Err(cause) = db.write_blocking(move |tx| tx.write_audit(&event)) {
        // The migration itself reports the cause.
        tracing::debug!("migration cannot be recorded in the audit log: {cause}");
    }
}

/// Migrates the archive of these settings. Other processes continue to read and write it, except for a moment
/// at the end of a `switch` in which writes wait.
///
/// Data that was copied earlier is skipped, so an interrupted migration, or a dry run without `switch`, can
/// be continued. Fails with [`ErrorKind::Conflict`] if the new database holds a different archive or the
/// copied rows differ from the source, with [`ErrorKind::Unavailable`] if either side cannot be used, and
/// with `switch` also if an original cannot be read.
pub fn migrate(
    config: &Config,
    request: MigrationRequest<'_>,
    on_event: CopyListener<'_>,
    rows: ReportRows,
) -> Result<MigrationReport> {
    if request.to.is_some() && !config.database.url.0.is_empty() {
        let message =
            "database.url is set: only an archive in SQLite can be migrated to PostgreSQL";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let archive = OpenArchive::open(config)?;
    let new_stores = target(config, request)?;
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    if let Some((stores, _)) = &new_stores {
        refuse_foreign(&stores.to, &id)?;
    }
    record(&archive.db, request);
    let migration = request
        .to
        .map(|url| {
            let to = Db::connect(&url.0, &config.database_password())?;
            ArchiveMigration::begin(&archive.db, &to, rows)
        })
        .transpose()
        .map_err(refused)?;
    // Copies most rows while writes continue, so that the final step is short.
    if let Some(migration) = &migration {
        migration.catch_up().map_err(refused)?;
    }
    let key = archive.db.secrets_key()?.map(|id| (id, key_source(config)));
    let mut report =
        MigrationReport { upgraded: archive.db.upgraded, key, ..MigrationReport::default() };
    let copied_through = match &new_stores {
        Some((stores, derived)) => {
            let named = archive.db.read_blocking(|tx| {
                let (named, flaws) = tx.named_originals()?;
                // One transaction reads both, so that no version is committed between the list and the
                // number.
                Ok((named, flaws, tx.last_version()?))
            });
            let (named, flaws, last) = named?;
            flaws.iter().for_each(|flaw| on_event(CopyEvent::Failed(&flaw.to_string())));
            let MigrationStores { workers, verify, .. } = *stores;
            // A switch must not lose an original because of a transient disk error.
            let parameters = CopyParameters { workers, verify, strict: request.switch };
            let (tally, lost) =
                copy_named_originals(&stores.from, &stores.to, &named, parameters, on_event)?;
            report.lost = lost + flaws.len();
            report.originals = Some(tally);
            replace_mark(&stores.to, &id).map_err(store_failed)?;
            report.derived = copy_derived(&archive, derived, stores.workers, &named)?;
            last
        }
        // The originals are not migrated, so the final step copies no originals.
        None => i64::MAX,
    };
    let Some(migration) = migration else { return Ok(report) };
    // Copies the rows that were written while the originals were copied.
    migration.catch_up().map_err(refused)?;
    let late_tally = Arc::new(Mutex::new(CopyTally::default()));
    let copy_late = copy_late_originals(new_stores.map(|(stores, _)| stores), &late_tally);
    let switch = request.switch.then(|| home_note(request));
    report.rows =
        Some(migration.finish(copied_through, &copy_late, switch.as_deref()).map_err(refused)?);
    if let Some(tally) = &mut report.originals {
        let late_tally = late_tally.lock();
        tally.copied += late_tally.copied;
        tally.copied_bytes += late_tally.copied_bytes;
    }
    Ok(report)
}

/// Returns the new location without passwords, as the old database records it.
fn home_note(request: MigrationRequest<'_>) -> String {
    let to = request.to.map(DatabaseUrl::print).unwrap_or_default();
    match request.store {
        Some(location) => format!("{to}, with its originals in {}", location.print()),
        None => to,
    }
}

fn refused(cause: DbError) -> Error {
    match cause {
        DbError::Address(why) => Error::new(ErrorKind::InvalidArgument, format!("--to: {why}")),
        // A retry cannot succeed: the target holds a different archive, or its rows differ.
        DbError::InUse(_) | DbError::Damaged { .. } => {
            Error::new(ErrorKind::Conflict, cause.to_string())
        }
        DbError::Engine(_)
        | DbError::Overloaded
        | DbError::Closed
        | DbError::Schema(_)
        | DbError::Moved(_)
        | DbError::ReadsOnly
        | DbError::Secret(_)
        | DbError::File(_) => Error::new(ErrorKind::Unavailable, cause.to_string()),
    }
}

/// Opens the new location of the originals and of their derived files.
fn target(
    config: &Config,
    request: MigrationRequest<'_>,
) -> Result<Option<(MigrationStores, DerivedStore)>> {
    let Some(location) = request.store else { return Ok(None) };
    if *location == config.store.originals {
        let message = "the originals are there already: --store needs another location";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let mut new_config = config.clone();
    new_config.store.originals = location.clone();
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = open_store(&new_config, StartPolicy::Fail).map_err(|cause| {
        Error::new(ErrorKind::Unavailable, "the new location of the originals cannot be used")
            .with_source(cause)
    })?;
    // Without a local cache of side files, because a running service has its own in that folder.
    let derived = to.derived(&config.derived_dir(), 0).map_err(store_failed)?;
    let workers = config.ingest_workers();
    Ok(Some((MigrationStores { from, to, workers, verify: request.verify }, derived)))
}

/// Copies the derived files of these originals to the new location: rebuilding them is possible but
/// expensive. Does nothing if both locations are folders, because they share the derived files.
fn copy_derived(
    archive: &OpenArchive,
    to: &DerivedStore,
    workers: usize,
    named: &[NamedOriginal],
) -> Result<usize> {
    let from = &archive.originals.derived;
    if !from.is_remote() && !to.is_remote() {
        return Ok(0);
    }
    let copied = AtomicUsize::new(0);
    for kind in DerivedKind::iter() {
        let hashes = from.list(kind).map_err(store_failed)?;
        // Derived files of originals that no item refers to are not needed.
        let hashes = hashes.into_iter().filter(|hash| is_named(named, hash));
        for_each_parallel(workers, hashes, &|hash| {
            if to.length(kind, hash).map_err(store_failed)?.is_some() {
                return Ok(());
            }
            // A file that cannot be read is rebuilt in the new location.
            if let Ok(Some(bytes)) = from.read(kind, hash, u64::MAX) {
                to.write(kind, hash, &bytes).map_err(store_failed)?;
                copied.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
    }
    Ok(copied.into_inner())
}

/// Copies originals that arrived after the main copy.
fn copy_late_originals(
    stores: Option<MigrationStores>,
    late_tally: &Arc<Mutex<CopyTally>>,
) -> CopyOriginals {
    let Some(MigrationStores { from, to, workers, verify: _ }) = stores else {
        return Arc::new(|_| Ok(()));
    };
    let late_tally = Arc::clone(late_tally);
    Arc::new(move |named| {
        // With a switch, all writers wait for this step, so it does not read earlier copies again.
        let parameters = CopyParameters { workers, verify: false, strict: true };
        let outcome = copy_named_originals(&from, &to, named, parameters, &|_| {});
        let (tally, lost) = outcome.map_err(|cause| DbError::File(cause.to_string()))?;
        // After a switch, no process reads the old store any more, so the loss would be permanent.
        if lost > 0 {
            let why = format!("{lost} originals that were just ingested are missing");
            return Err(DbError::File(why));
        }
        *late_tally.lock() = tally;
        Ok(())
    })
}

/// Undoes the switch to the database `to`: this archive is used again and accepts writes. The database `to`
/// is marked as incomplete, as it was before the switch, so it cannot be served, and [`migrate`] can continue
/// with it. Without `to`, the new database is not contacted, because it is lost.
///
/// Fails with [`ErrorKind::Conflict`] if the archive was not switched, or not to `to`, or if `to` may be in
/// use: a node is registered there, or something was written since. Fails with [`ErrorKind::Unavailable`] if
/// `to` cannot be reached.
pub fn undo_migration(
    archive: &OpenArchive,
    config: &Config,
    to: Option<&DatabaseUrl>,
) -> Result<String> {
    let Some(home) = archive.db.moved_to()? else {
        return Err(Error::new(ErrorKind::Conflict, "this archive has not been migrated"));
    };
    if let Some(url) = to {
        if !is_home(&home, url) {
            let message = format!("this archive has moved to {home}; --to names another database");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        // The new database is marked first: an interruption leaves neither of the two in use,
        // instead of both.
        let new_database =
            Db::connect(&url.0, &config.database_password()).map_err(connection_error)?;
        archive.db.invalidate_target(&new_database).map_err(connection_error)?;
    }
    archive.db.cancel_move()?;
    Ok(home)
}

fn connection_error(cause: DbError) -> Error {
    if matches!(&cause, DbError::Engine(cause) if cause.is_unreachable()) {
        let message = format!(
            "{cause}; with --force the new database is not asked, for one that is lost for good"
        );
        return Error::new(ErrorKind::Unavailable, message);
    }
    refused(cause)
}

/// Returns whether the recorded location `home` is the database at `url`.
fn is_home(home: &str, url: &DatabaseUrl) -> bool {
    let database =
        home.split_once(", with its originals in ").map_or(home, |(database, _)| database);
    without_password(database) == without_password(&url.print())
}

/// Returns a printed URL without any trace of a password, which may be configured elsewhere instead.
fn without_password(shown: &str) -> String {
    let mut text = shown.replacen("postgresql://", "postgres://", 1).replacen(":***@", "@", 1);
    for (hidden, rest) in [("&password=***", ""), ("?password=***&", "?"), ("?password=***", "")] {
        text = text.replacen(hidden, rest, 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_known_by_its_address_with_and_without_its_password() {
        let check = |home: &str, to: &str, is: bool| {
            assert_eq!(is_home(home, &DatabaseUrl::parse(to).unwrap()), is, "{home}, {to}");
        };
        check("postgres://wp:***@db/wp", "postgres://wp:other@db/wp", true);
        check("postgres://wp:***@db/wp", "postgres://wp@db/wp", true);
        check("postgres://wp@db/wp", "postgresql://wp:x@db/wp", true);
        check("postgres://wp@db/wp, with its originals in s3://b/p", "postgres://wp@db/wp", true);
        check("postgres:///wp?host=/run&password=***", "postgres:///wp?host=/run", true);
        check("postgres:///wp?password=***&host=/run", "postgres:///wp?host=/run", true);
        check("postgres://wp@db/wp", "postgres://wp@db/other", false);
        check("postgres://wp@db/wp", "postgres://wp@elsewhere/wp", false);
    }
}
