//! Compares the index with the items at one row of the item log, in both directions.

use std::collections::HashMap;
use std::path::Path;

use super::folder;
use super::shared::log_position;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::database::{CommitWatcher, DatabaseFlaw, Db, DbResult, LogPosition, ReadTx};
use search_index::{ANALYSIS, IndexSnapshot, SearchIndex, stamp};

/// The differences between an index and the items.
#[derive(Debug, Default)]
pub(super) struct IndexDifference {
    /// Versions of items that the index lacks.
    pub(super) missing: Vec<u32>,
    /// Versions in the index that belong to no item or to a different item.
    pub(super) stale: Vec<u32>,
    /// The end of the item log at which they were compared.
    pub(super) end: LogPosition,
}

/// Compares `snapshot` with the items at the end of the item log. Memory: 24 bytes a version.
pub(super) fn compare(
    feed: &mut CommitWatcher,
    snapshot: &IndexSnapshot,
) -> DbResult<IndexDifference> {
    let versions: HashMap<u32, u64> = snapshot.versions().collect();
    feed.read(move |tx| differences(tx, versions))
}

fn differences(tx: &ReadTx<'_>, mut versions: HashMap<u32, u64>) -> DbResult<IndexDifference> {
    let mut found = IndexDifference { end: tx.log_end()?, ..IndexDifference::default() };
    tx.each_version(|number, key, stored_ms| {
        match versions.remove(&number) {
            // The number alone is not enough: a restored archive assigns numbers again.
            Some(indexed) if indexed == stamp(key, stored_ms) => {}
            Some(_) => {
                found.stale.push(number);
                found.missing.push(number);
            }
            None => found.missing.push(number),
        }
        Ok(())
    })?;
    found.stale.extend(versions.into_keys());
    Ok(found)
}

/// Checks the search index of the first process over the data directory, below `dir`. The index may be a
/// moment behind the items: newer items are not expected in it.
///
/// Returns no flaws if there is no index, because the next start builds one.
pub fn check_index(feed: &mut CommitWatcher, dir: &Path) -> DbResult<Vec<DatabaseFlaw>> {
    let Some(path) = folder::find(dir) else { return Ok(Vec::new()) };
    let index = match SearchIndex::open(&path, 0) {
        Ok(index) => index,
        Err(cause) => return Ok(vec![flaw(cause.to_string())]),
    };
    let snapshot = index.snapshot();
    let mut flaws = Vec::new();
    // A running server removes files of segments that it merged, so their absence is not damage.
    for file in index.damaged_files().unwrap_or_default() {
        flaws.push(flaw(format!("the file {file} of the search index is damaged")));
    }
    let Some(position) = snapshot.position().cloned() else {
        flaws.push(flaw("the build of the search index was not completed".to_owned()));
        return Ok(flaws);
    };
    if position.analysis != ANALYSIS {
        flaws.push(flaw("the search index has another version".to_owned()));
        return Ok(flaws);
    }
    let versions: HashMap<u32, u64> = snapshot.versions().collect();
    flaws.extend(feed.read(move |tx| {
        let row = log_position(Some(&position));
        if tx.archive_id()? != position.archive {
            return Ok(vec![flaw("the search index belongs to another archive".to_owned())]);
        }
        let Some(replaced) = tx.replaced_since(&row)? else {
            let text = "the search index belongs to another state of the archive";
            return Ok(vec![flaw(text.to_owned())]);
        };
        item_flaws(tx, versions, row.row, &replaced)
    })?);
    Ok(flaws)
}

/// Replaces a wrong index below `dir`. An index that no process uses is removed, so that the next start
/// builds one. Otherwise every process is requested to rebuild its index.
pub fn replace_index(db: &Db, dir: &Path) -> Result<()> {
    if folder::discard(dir).map_err(Error::internal)? {
        return Ok(());
    }
    let now = clock::now();
    db.write_blocking(move |tx| tx.request_reindex(now))?;
    Ok(())
}

/// Lists the differences between `versions` and the items as of `row`. The versions in `replaced` were
/// replaced after it.
fn item_flaws(
    tx: &ReadTx<'_>,
    versions: HashMap<u32, u64>,
    row: i64,
    replaced: &[u32],
) -> DbResult<Vec<DatabaseFlaw>> {
    let IndexDifference { missing, mut stale, .. } = differences(tx, versions)?;
    // The index may lag: at its row these versions were current, and newer items did not exist yet.
    stale.retain(|number| !replaced.contains(number));
    let missing = missing.into_iter().filter(|number| i64::from(*number) <= row);
    let mut flaws = Vec::new();
    for number in missing.take(CHECK_FLAWS_MAX) {
        // Operators know items by their keys rather than by numbers.
        let key = tx.find_numbered(number)?.map(|(key, _)| key.to_string());
        let item = key.unwrap_or_else(|| number.to_string());
        flaws.push(flaw(format!("item {item}: search does not find it")));
    }
    for number in stale.into_iter().take(CHECK_FLAWS_MAX) {
        flaws.push(flaw(format!("version {number} in the search index belongs to no item")));
    }
    // One of the lists may have been truncated. The sum of their lengths does not show which.
    if flaws.len() >= CHECK_FLAWS_MAX {
        flaws.push(DatabaseFlaw::Truncated("there may be more such items".to_owned()));
    }
    Ok(flaws)
}

fn flaw(text: String) -> DatabaseFlaw {
    DatabaseFlaw::Index(text)
}
