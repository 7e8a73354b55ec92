//! Builds a search index from all items, while items continue to change.
//!
//! Each write of an item stores a new version, whose number is that of its row in the item log. A build reads the
//! versions up to the end of the log at its start; later ones are indexed afterwards, from the log.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::DocumentAnalysis;
use crate::runtime::error::{Error, Result};
use crate::storage::database::{
    CommitWatcher, Db, DbResult, IndexedVersion, LogPosition, VersionPage,
};
use search_index::{
    ANALYSIS, CommitPosition, IndexWriter, ItemVersion, SearchIndex, VersionAdder,
};

/// Number of items that are read in one transaction while an index is built.
const INDEX_BUILD_ITEMS: usize = 1000;
/// Number of pages of items that are read ahead of the page being indexed.
const PAGES_AHEAD: usize = 2;

/// Returns the position of a commit of the index of `archive` that contains everything up to `row` of the item log,
/// analysed with `settings`.
pub(super) fn commit_position(archive: &str, settings: &str, row: &LogPosition) -> CommitPosition {
    CommitPosition {
        archive: archive.to_owned(),
        analysis: ANALYSIS,
        row: row.row,
        digest: row.digest.clone(),
        settings: settings.to_owned(),
    }
}

/// Builds an index of all items in the empty folder `path`. Returns the position in the item log from which later
/// changes have to be indexed; `None` if the build was stopped.
///
/// Calls `proceeds` with the number of indexed items and the number of all items; the build stops if it returns false.
///
/// One thread reads, two analyse, two write. Fails if the database or the disk fails.
pub(super) fn build(
    db: &Db,
    path: &Path,
    analysis: &DocumentAnalysis,
    proceeds: &dyn Fn(u64, u64) -> bool,
) -> Result<Option<CommitPosition>> {
    let mut feed = db.commit_watcher()?;
    let (archive, end, count) =
        feed.read(|tx| Ok((tx.archive_id()?, tx.log_end()?, tx.count_items()?)))?;
    let last = u32::try_from(end.row).unwrap_or(u32::MAX);
    // Without a cache of results, because no search uses this index yet.
    let index = SearchIndex::create(path, 0).map_err(Error::internal)?;
    let mut writer = index.building_writer().map_err(Error::internal)?;
    let finished = thread::scope(|scope| -> Result<bool> {
        let (pages, received) = sync_channel(PAGES_AHEAD);
        scope.spawn(move || {
            let mut after = Some(0);
            while let Some(reached) = after {
                let page = read_page(&mut feed, reached, last);
                // An error ends the loop, and is sent as well.
                after = page.as_ref().ok().and_then(|page| page.reached);
                // The receiver is dropped when the build stops or fails.
                if pages.send(page).is_err() {
                    return;
                }
            }
        });
        let mut done = 0;
        for page in received {
            let versions = page?.versions;
            add(&mut writer, &versions, analysis)?;
            done += u64::try_from(versions.len()).unwrap_or_default();
            if !proceeds(done, count) {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    // Without a commit, the folder counts as an interrupted build, which the next build removes.
    if !finished {
        return Ok(None);
    }
    let position = commit_position(&archive, &analysis.settings(), &end);
    writer.commit(&position).map_err(Error::internal)?;
    writer.finish().map_err(Error::internal)?;
    Ok(Some(position))
}

/// Reads the next page of versions with numbers above `after` up to `last`. Skips versions on a damaged page of the
/// database.
fn read_page(feed: &mut CommitWatcher, after: u32, last: u32) -> DbResult<VersionPage> {
    match feed.read(move |tx| tx.list_versions_after(after, last, INDEX_BUILD_ITEMS)) {
        // One damaged page of the database fails the whole query, so the versions are read one by one.
        Err(cause) if cause.is_damage() => {
            let window = u32::try_from(INDEX_BUILD_ITEMS).unwrap_or(u32::MAX);
            let end = after.saturating_add(window).min(last);
            let versions = read_each(feed, after + 1..=end)?;
            Ok(VersionPage { reached: (end < last).then_some(end), versions })
        }
        page => page,
    }
}

/// Reads all versions with numbers above `after` up to `last`.
pub(super) fn read_versions(
    feed: &mut CommitWatcher,
    after: u32,
    last: u32,
) -> DbResult<Vec<IndexedVersion>> {
    let mut versions = Vec::new();
    let mut next = Some(after);
    while let Some(after) = next {
        let page = read_page(feed, after, last)?;
        versions.extend(page.versions);
        next = page.reached;
    }
    Ok(versions)
}

/// Reads versions one by one. Skips versions on a damaged page of the database.
pub(super) fn read_each(
    feed: &mut CommitWatcher,
    numbers: impl Iterator<Item = u32>,
) -> DbResult<Vec<IndexedVersion>> {
    let mut versions = Vec::new();
    for number in numbers {
        match feed.read(move |tx| tx.find_version_numbered(number)) {
            Ok(version) => versions.extend(version),
            Err(cause) if cause.is_damage() => {
                tracing::error!("search index: version {number} cannot be read: {cause}");
            }
            // Not the fault of this version, so skipping it would lose it; the caller's retry may succeed.
            Err(cause) => return Err(cause),
        }
    }
    Ok(versions)
}

/// Adds versions to an index. A version whose document is damaged is logged and skipped, so that it does not
/// prevent the others from being indexed.
pub(super) fn add(
    writer: &mut IndexWriter,
    versions: &[IndexedVersion],
    analysis: &DocumentAnalysis,
) -> Result<()> {
    // Most of the time is spent on analysis, so two threads share it, each with an adder of its own.
    let (first, second) = versions.split_at(versions.len().div_ceil(2));
    let [mut first_adder, mut second_adder] = writer.adders();
    // To start a thread costs more than to analyse a single version.
    if second.is_empty() {
        return add_each(&mut first_adder, first, analysis);
    }
    thread::scope(|scope| {
        let second = scope.spawn(|| add_each(&mut second_adder, second, analysis));
        let added = add_each(&mut first_adder, first, analysis);
        second.join().unwrap_or_else(|_| Err(Error::internal("an item could not be read")))?;
        added
    })
}

fn add_each(
    adder: &mut VersionAdder<'_>,
    versions: &[IndexedVersion],
    analysis: &DocumentAnalysis,
) -> Result<()> {
    for version in versions {
        let indexed = match analysis.index_version(version) {
            Ok(indexed) => indexed,
            Err(cause) => {
                tracing::error!("search index: item {} is damaged: {cause}", version.key);
                continue;
            }
        };
        let item = ItemVersion {
            number: version.number,
            key: &version.key,
            stored_ms: version.stored_ms,
            status: version.status,
            order_ms: version.order_ms,
            embargoed_ms: version.embargoed_ms,
            indexed: &indexed,
        };
        adder.add(&item).map_err(Error::internal)?;
    }
    Ok(())
}
