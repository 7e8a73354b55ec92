//! Copies of only the originals, for a database with its own backup tools.

use super::copying::{
    CopyListener, CopyParameters, CopyTally, copy_named_originals, store_failed,
};
use super::folder::prepare;
use super::location::CopyLocation;
use crate::app::ownership::{refuse_foreign, replace_mark};
use crate::app::{OpenArchive, open_store};
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::storage::blobs::{BlobStore, StartPolicy};
use crate::storage::database::NamedOriginal;

/// Copies every original in the archive's store to `to`. Originals that exist in `to` are skipped; with
/// `verify` they are read, and damaged ones replaced. Returns the counts, and the number of originals that
/// could not be copied.
///
/// Copies all originals, including originals that no item refers to: a dump of the database may be older than
/// the copy, and refer to an original whose item was replaced since.
pub fn copy_originals(
    config: &Config,
    to: CopyLocation<'_>,
    verify: bool,
    on_event: CopyListener<'_>,
) -> Result<(CopyTally, usize)> {
    // The lock keeps a second backup out of the folder; a bucket has no locks.
    let _lock = match to {
        CopyLocation::Folder(dir) => Some(prepare(dir, true)?),
        CopyLocation::Bucket(_) => None,
    };
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = to.open_to_write(config)?;
    let named = listed_originals(&from)?;
    copy_named_originals(&from, &to, &named, copy_options(config, verify), on_event)
}

/// Copies every original of a backup into the archive's store: adds missing originals and replaces damaged
/// ones. The service may be running. Returns the counts, and the number of originals that could not be
/// copied.
pub fn restore_originals(
    config: &Config,
    from: CopyLocation<'_>,
    on_event: CopyListener<'_>,
) -> Result<(CopyTally, usize)> {
    let from = from.open_to_read(config)?;
    let to = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    to.check_writable().map_err(store_failed)?;
    let id = archive_of(config);
    if let Some(id) = &id {
        refuse_foreign(&to, id)?;
    }
    let named = listed_originals(&from)?;
    // A restore usually follows damage, so the originals that are present are read as well.
    let counts = copy_named_originals(&from, &to, &named, copy_options(config, true), on_event)?;
    // An existing mark has the right id already, as `refuse_foreign` has verified.
    if let Some(id) = id
        && to.mark().map_err(store_failed)?.is_none()
    {
        replace_mark(&to, &id).map_err(store_failed)?;
    }
    Ok(counts)
}

/// Returns the archive id in the settings' database, if that exists already: originals may be restored first.
fn archive_of(config: &Config) -> Option<String> {
    let archive = OpenArchive::open_to_examine(config).ok()?;
    archive.db.read_blocking(|tx| tx.archive_id()).ok()
}

fn copy_options(config: &Config, verify: bool) -> CopyParameters {
    // A copy that lacks some unreadable originals is better than no copy; they are counted as lost.
    CopyParameters { workers: config.ingest_workers(), verify, strict: false }
}

/// Lists the originals of a store in the form in which items refer to them.
fn listed_originals(store: &BlobStore) -> Result<Vec<NamedOriginal>> {
    let sizes = store.list_with_sizes().map_err(store_failed)?;
    // A store does not know its items, and a copy does not need them.
    let named = sizes.into_iter().map(|(hash, length)| NamedOriginal { hash, length, version: 0 });
    Ok(named.collect())
}
