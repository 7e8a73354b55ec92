//! The archive's way to other engines, while it is served: its database into PostgreSQL, its originals
//! into a bucket or another folder.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::backup::{CopyEvent, CopyParameters, CopyTally, copy_named_originals, store_failed};
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

/// Where the archive goes.
#[derive(Clone, Copy, Debug)]
pub struct MigrationRequest<'a> {
    /// The new database; without one only originals are copied.
    pub to: Option<&'a DatabaseUrl>,
    /// The new place of the originals; without one they stay where they are.
    pub store: Option<&'a OriginalsLocation>,
    /// The archive lives there from the end on, and takes no writes here any more.
    pub switch: bool,
    /// Reads the originals that are over there already, and copies those anew that are damaged.
    pub verify: bool,
}

/// What came over.
#[derive(Clone, Debug, Default)]
pub struct MigrationReport {
    /// Rows of the database, if it went.
    pub rows: Option<MigratedRows>,
    /// Originals, if they went.
    pub originals: Option<CopyTally>,
    /// Derived files that were copied.
    pub derived: usize,
    /// Originals that could not be copied because the archive had lost them, and rows of items
    /// that could not be read.
    pub lost: usize,
    /// The schema that the database of this archive had and the one that it has since, where it was brought
    /// up to date.
    pub upgraded: Option<(i64, i64)>,
    /// The key that secrets stay encrypted with over there, and where it comes from here.
    pub key: Option<(KeyId, KeySource)>,
}

/// What hears of the work; several threads call it.
pub type HearMove<'a> = &'a (dyn Fn(CopyEvent<'_>) + Sync);

/// The two stores of originals on the way.
#[derive(Clone)]
struct MigrationStores {
    from: BlobStore,
    to: BlobStore,
    workers: usize,
    verify: bool,
}

/// Records in the audit log that a migration begins. It takes the event along: a database that an
/// archive has moved from takes no writes, and the new one must be the same for the way back.
fn record(db: &Db, wanted: MigrationRequest<'_>) {
    let words = if wanted.switch { "migrate --switch begins" } else { "migrate begins" };
    let event = audit::event(AuditAction::Command).with_detail(words);
    if let Err(cause) = db.write_blocking(move |tx| tx.write_audit(&event)) {
        // The migration itself says why.
        tracing::debug!("the audit log does not name this migration: {cause}");
    }
}

/// Moves the archive of these settings; others go on reading and writing it, but for a moment at
/// the end of a `switch` in which writes wait.
///
/// What is over there already is not copied again, so a move that was cut short, or a rehearsal
/// without `switch`, is gone on with. Fails with [`ErrorKind::Conflict`] when the new database holds
/// another archive or what came over is not what was sent, with [`ErrorKind::Unavailable`] when either
/// side cannot be used; a `switch` also where an original cannot be read.
pub fn migrate(
    config: &Config,
    wanted: MigrationRequest<'_>,
    hear: HearMove<'_>,
    rows: ReportRows,
) -> Result<MigrationReport> {
    if wanted.to.is_some() && !config.database.url.0.is_empty() {
        let message = "database.url is set: only an archive in SQLite moves to PostgreSQL";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let archive = OpenArchive::open(config)?;
    let there = target(config, wanted)?;
    let id = archive.db.read_blocking(|tx| tx.archive_id())?;
    if let Some((stores, _)) = &there {
        refuse_foreign(&stores.to, &id)?;
    }
    record(&archive.db, wanted);
    let moving = wanted
        .to
        .map(|url| {
            let to = Db::connect(&url.0, &config.database_password())?;
            ArchiveMigration::begin(&archive.db, &to, rows)
        })
        .transpose()
        .map_err(refused)?;
    if let Some(moving) = &moving {
        moving.catch_up().map_err(refused)?;
    }
    let key = archive.db.secrets_key()?.map(|id| (id, key_source(config)));
    let mut moved =
        MigrationReport { upgraded: archive.db.upgraded(), key, ..MigrationReport::default() };
    let carried = match &there {
        Some((stores, derived)) => {
            let named = archive.db.read_blocking(|tx| {
                let (named, flaws) = tx.named_originals()?;
                Ok((named, flaws, tx.last_version()?))
            });
            let (named, flaws, last) = named?;
            flaws.iter().for_each(|flaw| hear(CopyEvent::Failed(&flaw.to_string())));
            let MigrationStores { workers, verify, .. } = *stores;
            // An original is not left behind because the disk failed for a moment.
            let how = CopyParameters { workers, verify, strict: wanted.switch };
            let (tally, lost) = copy_named_originals(&stores.from, &stores.to, &named, how, hear)?;
            moved.lost = lost + flaws.len();
            moved.originals = Some(tally);
            replace_mark(&stores.to, &id).map_err(store_failed)?;
            moved.derived = copy_derived(&archive, derived, stores.workers, &named)?;
            last
        }
        None => i64::MAX,
    };
    let Some(moving) = moving else { return Ok(moved) };
    moving.catch_up().map_err(refused)?;
    let late = Arc::new(Mutex::new(CopyTally::default()));
    let carry = copy_late_originals(there.map(|(stores, _)| stores), &late);
    let switch = wanted.switch.then(|| home_note(wanted));
    moved.rows = Some(moving.finish(carried, &carry, switch.as_deref()).map_err(refused)?);
    if let Some(tally) = &mut moved.originals {
        let late = late.lock();
        tally.copied += late.copied;
        tally.copied_bytes += late.copied_bytes;
    }
    Ok(moved)
}

/// What the old database says of where the archive lives; no passwords.
fn home_note(wanted: MigrationRequest<'_>) -> String {
    let to = wanted.to.map(DatabaseUrl::print).unwrap_or_default();
    match wanted.store {
        Some(place) => format!("{to}, with its originals in {}", place.print()),
        None => to,
    }
}

fn refused(cause: DbError) -> Error {
    match cause {
        DbError::Address(words) => {
            Error::new(ErrorKind::InvalidArgument, format!("--to: {words}"))
        }
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

/// The new place of the originals and of what is derived from them, opened.
fn target(
    config: &Config,
    wanted: MigrationRequest<'_>,
) -> Result<Option<(MigrationStores, DerivedStore)>> {
    let Some(place) = wanted.store else { return Ok(None) };
    if *place == config.store.originals {
        let message = "the originals lie there already: --store names another place";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let mut there = config.clone();
    there.store.originals = place.clone();
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = open_store(&there, StartPolicy::Fail).map_err(|cause| {
        Error::new(ErrorKind::Unavailable, "the new place of the originals cannot be used")
            .with_source(cause)
    })?;
    // No copies of side files: a service that runs here has its own in that folder.
    let derived = to.derived(&config.data.dir.join("derived"), 0).map_err(store_failed)?;
    let workers = config.ingest_workers();
    Ok(Some((MigrationStores { from, to, workers, verify: wanted.verify }, derived)))
}

/// Copies what is derived from these originals where it will be looked for: it could be made again,
/// but for a price. Nothing is to be done where both places are folders: they share it.
fn copy_derived(
    archive: &OpenArchive,
    to: &DerivedStore,
    workers: usize,
    named: &[NamedOriginal],
) -> Result<usize> {
    if !to.is_remote() {
        return Ok(0);
    }
    let from = archive.originals.derived();
    let copied = AtomicUsize::new(0);
    for kind in DerivedKind::ALL {
        let there = from.list(kind).map_err(store_failed)?;
        let is_named =
            |hash: &_| named.binary_search_by_key(hash, |one: &NamedOriginal| one.hash).is_ok();
        for_each_parallel(workers, there.into_iter().filter(is_named), &|hash| {
            if to.length(kind, hash).map_err(store_failed)?.is_some() {
                return Ok(());
            }
            // One that cannot be read is made again over there.
            if let Ok(Some(bytes)) = from.read(kind, hash, u64::MAX) {
                to.write(kind, hash, &bytes).map_err(store_failed)?;
                copied.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })?;
    }
    Ok(copied.into_inner())
}

/// Takes over originals that came in since the others were copied.
fn copy_late_originals(
    stores: Option<MigrationStores>,
    late: &Arc<Mutex<CopyTally>>,
) -> CopyOriginals {
    let Some(MigrationStores { from, to, workers, verify: _ }) = stores else {
        return Arc::new(|_| Ok(()));
    };
    let late = Arc::clone(late);
    Arc::new(move |named| {
        let how = CopyParameters { workers, verify: false, strict: true };
        let taken = copy_named_originals(&from, &to, named, how, &|_| {});
        let (tally, lost) = taken.map_err(|cause| DbError::File(cause.to_string()))?;
        if lost > 0 {
            let why = format!("{lost} originals that just came in are not there");
            return Err(DbError::File(why));
        }
        *late.lock() = tally;
        Ok(())
    })
}

/// Takes back that the archive of these settings moved to the database `to`: it lives here again and takes
/// writes. Nobody can live over there then: that database says of itself that it is not whole, as it did
/// before the move, and [`migrate`] goes on with it. Without `to` that database is not asked: it is gone.
///
/// Fails with [`ErrorKind::Conflict`] when the archive has not moved, or not to `to`, or when somebody may live
/// there: a node is there, or something was written since; with [`ErrorKind::Unavailable`] when it cannot be reached.
pub fn undo_migration(
    archive: &OpenArchive,
    config: &Config,
    to: Option<&DatabaseUrl>,
) -> Result<String> {
    let Some(home) = archive.db.moved_to()? else {
        return Err(Error::new(ErrorKind::Conflict, "this archive has not moved"));
    };
    if let Some(url) = to {
        if !is_home(&home, url) {
            let message = format!("this archive has moved to {home}; --to names another database");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let there = Db::connect(&url.0, &config.database_password()).map_err(unanswered)?;
        archive.db.invalidate_target(&there).map_err(unanswered)?;
    }
    archive.db.cancel_move()?;
    Ok(home)
}

fn unanswered(cause: DbError) -> Error {
    if matches!(&cause, DbError::Engine(cause) if cause.is_unreachable()) {
        let message =
            format!("{cause}; a database that is gone for good is not asked with --force");
        return Error::new(ErrorKind::Unavailable, message);
    }
    refused(cause)
}

/// Whether the archive that lives at `home` lives in the database at `url`.
fn is_home(home: &str, url: &DatabaseUrl) -> bool {
    let database =
        home.split_once(", with its originals in ").map_or(home, |(database, _)| database);
    without_password(database) == without_password(&url.print())
}

/// An address as it is shown without what tells that it has a password: that may be given elsewhere.
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
