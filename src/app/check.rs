//! Checks the archive: the database itself, the database against the store, and derived files against the
//! originals.
//!
//! Other processes may write at the same time. The database is read in one transaction. A blob is stored
//! before an item refers to it and is not removed while an item refers to it, so a newly ingested item is not
//! reported as damaged. An original that no item refers to is checked once more before it is reported, and
//! again before it or its derived files are removed; files that appeared after the listing are not touched. A
//! check needs 200 bytes of memory per original.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::OpenArchive;
use super::demo::demo_warning;
use super::parallel::for_each_parallel;
use super::problem::file_of_original;
pub use super::problem::{ArchiveProblem, FileOfItem, Repair};
use super::progress::CheckProgress;
pub use super::progress::InterruptedCheck;
pub use super::standard_progress::StandardReport;
use super::warnings;
use crate::archive::ingest::{OriginalsState, UnreferencedOriginals, remove_unreferenced};
use crate::media;
use crate::media::original::OriginalFault;
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Result};
use crate::storage::blobs::DerivedKind;
use crate::storage::database::{DatabaseFlaw, DatabaseInspection, NamedOriginal};
use crate::storage::search::{check_index, replace_index};
use imaging::in_sequence;
use model::ContentHash;

/// Time for which an unreferenced original may belong to an ingest in progress.
const ORPHAN_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Interval at which a young unreferenced original is looked at again.
const ORPHAN_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Age from which an unreferenced original counts as an orphan.
const ORPHAN_AGE_MIN: Duration = Duration::from_secs(60);

/// The part of the originals that a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Every original and its derived files, byte for byte.
    Full,
    /// A random sample; for the other originals only presence and length are compared.
    Quick {
        /// Number of originals to read.
        sample: usize,
    },
}

/// The parameters of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest {
    pub depth: CheckDepth,
    /// Rebuilds wrong derived files, and removes orphaned derived files. Only in a full check.
    pub repair: bool,
    /// Skips the originals that an interrupted full check has read already.
    pub resume: bool,
    /// Removes the orphans that were stored at least this long ago.
    pub prune_age: Option<Duration>,
}

impl CheckRequest {
    /// Creates the request for a check that reads everything.
    pub fn full(repair: bool) -> Self {
        Self { depth: CheckDepth::Full, repair, resume: false, prune_age: None }
    }
}

/// The summary of a check, in addition to the reported problems.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CheckReport {
    /// Number of originals that items refer to.
    pub originals: usize,
    /// Number of originals that were read.
    pub read: usize,
    /// Number of problems that remain, including the problems that the interrupted check found.
    #[serde(rename = "problems")]
    pub remaining: usize,
    /// Number of removed derived files whose originals are gone.
    pub removed: usize,
    /// The orphans that remain.
    pub orphans: OriginalsTally,
    /// The orphans that were removed.
    #[serde(rename = "prunedOrphans")]
    pub pruned: OriginalsTally,
    /// True if all items were read. If false, some originals may not have been checked, and no orphans are
    /// reported.
    #[serde(rename = "allItemsRead")]
    pub is_complete: bool,
    /// The results of the interrupted check that this one continued.
    #[serde(rename = "resumed", skip_serializing_if = "Option::is_none")]
    pub earlier: Option<InterruptedCheck>,
    /// The progress of the standard renditions; `None` if no job makes them.
    #[serde(rename = "standardRenditions", skip_serializing_if = "Option::is_none")]
    pub standard: Option<StandardReport>,
}

/// The number and the total length of originals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OriginalsTally {
    pub count: usize,
    pub bytes: u64,
}

impl OriginalsTally {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// A check in progress.
pub(super) struct ArchiveCheck<'a> {
    pub(super) archive: &'a OpenArchive,
    repair: bool,
    prune_age: Option<Duration>,
    report: &'a (dyn Fn(&ArchiveProblem) + Sync),
    pub(super) remaining: AtomicUsize,
}

/// Checks the archive, and calls `on_problem` for each problem as it is found, from several threads.
///
/// A full check covers the database, every original, byte for byte, and the derived files. With `repair`,
/// wrong derived files are rebuilt and orphaned ones removed. Originals are never modified, and are removed
/// only with `prune_age`. In the database, only the search index and the progress of the check are modified.
/// Lost data can only be restored from a backup.
pub fn check(
    archive: &OpenArchive,
    config: &Config,
    request: CheckRequest,
    on_problem: &(dyn Fn(&ArchiveProblem) + Sync),
) -> Result<CheckReport> {
    let CheckRequest { depth, repair, resume, prune_age } = request;
    let remaining = AtomicUsize::new(0);
    let check = ArchiveCheck { archive, repair, prune_age, report: on_problem, remaining };
    let mut notes = warnings(config, &archive.db);
    notes.extend(demo_warning(&archive.db)?);
    notes.into_iter().for_each(|note| check.report(&ArchiveProblem::Warning(note)));
    let report = match depth {
        CheckDepth::Full => check.full(config, resume),
        CheckDepth::Quick { sample } => check.quick(config.ingest_workers(), sample),
    }?;
    // A database that cannot be read was reported above.
    let standard = StandardReport::load(&archive.db, config).unwrap_or_default();
    Ok(CheckReport { standard, ..report })
}

impl ArchiveCheck<'_> {
    fn full(self, config: &Config, resume: bool) -> Result<CheckReport> {
        let archive = self.archive;
        // The store is listed first: an original that arrives afterwards is in the database too, or in
        // neither list.
        let stored = archive.originals.store.list_with_sizes().map_err(Error::internal)?;
        let derived = archive.originals.list_derived().map_err(Error::internal)?;
        let found = archive.db.read_blocking(|tx| Ok(tx.inspect()))?;
        self.report_flaws(&found, config)?;
        let progress = CheckProgress::begin(&archive.db, &found.originals, resume)?;
        let pending = found.originals.iter().enumerate().skip(progress.first());
        for_each_parallel(config.ingest_workers(), pending, &|(index, named)| {
            progress.record_checked(index, self.original(*named));
            Ok(())
        })?;
        let mut removed = 0;
        let mut orphans = OrphanReport::default();
        // Orphans can only be identified if all items were read.
        if found.is_complete {
            let unnamed =
                stored.into_iter().filter(|(hash, _)| !is_named(&found.originals, hash)).collect();
            orphans = self.report_orphans(unnamed)?;
            if self.repair {
                let unnamed: BTreeSet<ContentHash> = derived
                    .iter()
                    .map(|(_, hash)| *hash)
                    .filter(|hash| !is_named(&found.originals, hash))
                    .collect();
                let orphaned = still_orphans(archive, unnamed.into_iter().collect())?;
                // Only files of the first listing are removed, because a later one may belong to
                // an ingest in progress.
                let swept = archive
                    .originals
                    .sweep_derived(&derived, &|hash| orphaned.binary_search(&hash).is_err());
                removed = swept.map_err(Error::internal)?;
            }
        }
        self.files(&config.cache_dir())?;
        let earlier = progress.finish();
        let earlier_problems = earlier.map_or(0, |earlier| earlier.problems);
        Ok(CheckReport {
            originals: found.originals.len(),
            read: found.originals.len() - earlier.map_or(0, |earlier| earlier.originals),
            earlier,
            remaining: self.remaining.into_inner() + earlier_problems,
            removed,
            orphans: orphans.left,
            pruned: orphans.pruned,
            is_complete: found.is_complete,
            standard: None,
        })
    }

    /// Reports each original in `unnamed`, with its length, that no item refers to even after a grace period.
    /// Removes the originals that are old enough.
    pub(super) fn report_orphans(&self, unnamed: Vec<(ContentHash, u64)>) -> Result<OrphanReport> {
        let lengths: BTreeMap<ContentHash, u64> = unnamed.into_iter().collect();
        let orphans = still_orphans(self.archive, lengths.keys().copied().collect())?;
        let pruned = match self.prune_age {
            Some(age) => prune(self.archive, &orphans, age)?,
            None => BTreeSet::new(),
        };
        let mut found = OrphanReport::default();
        for hash in orphans {
            let bytes = lengths[&hash];
            let is_pruned = pruned.contains(&hash);
            let tally = if is_pruned { &mut found.pruned } else { &mut found.left };
            tally.add(bytes);
            self.report(&ArchiveProblem::Orphaned { hash, bytes, is_pruned });
        }
        Ok(found)
    }

    pub(super) fn report(&self, problem: &ArchiveProblem) {
        if problem.remains() && !problem.is_warning() {
            self.remaining.fetch_add(1, Ordering::Relaxed);
        }
        (self.report)(problem);
    }

    /// Reports problems of the database and of the search index in the data directory. With `repair`,
    /// requests a new index if the current one is wrong.
    fn report_flaws(&self, found: &DatabaseInspection, config: &Config) -> Result<()> {
        for flaw in &found.flaws {
            self.report(&ArchiveProblem::Database { flaw: flaw.clone(), repaired: None });
        }
        let db = &self.archive.db;
        let dir = config.search_dir();
        let index_flaws = check_index(&mut db.commit_watcher()?, &dir);
        // A failure to read is reported as damage, and the check continues.
        let index_flaws =
            index_flaws.unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]);
        // One new index repairs all flaws of the current one, so it is requested at most once.
        let replaced =
            (self.repair && index_flaws.iter().any(is_of_index)).then(|| replace_index(db, &dir));
        let repaired = replaced.map(|outcome| outcome.map_err(|cause| cause.to_string()));
        for flaw in index_flaws {
            // A failure to read the database is not repaired by a new index.
            let repaired = repaired.clone().filter(|_| is_of_index(&flaw));
            self.report(&ArchiveProblem::Database { flaw, repaired });
        }
        Ok(())
    }

    /// Checks an original and its derived files; returns the number of problems that remain.
    pub(super) fn original(&self, named: NamedOriginal) -> usize {
        let NamedOriginal { hash, length, .. } = named;
        let mut result = self.archive.originals.check(hash, length);
        if result.as_ref().is_ok_and(|found| found.iter().any(is_derived)) {
            // A server may have been rebuilding the files at that moment, so check once more.
            result = self.archive.originals.check(hash, length);
        }
        let found = match result {
            Ok(found) if found.is_empty() => return 0,
            Ok(found) => found,
            Err(cause) => {
                let of = self.file_of(named);
                let why = cause.to_string();
                self.report(&ArchiveProblem::Unreadable { of, hash, why });
                return 1;
            }
        };
        // Finding the name reads the database, so only a faulty original gets one.
        let of = self.file_of(named);
        let derived = found.iter().any(is_derived);
        let repaired =
            (self.repair && derived).then(|| repair_derived(self.archive, named, &found));
        let mut remaining = 0;
        for finding in found {
            let of = of.clone();
            let problem = match finding {
                OriginalFault::Missing => ArchiveProblem::Missing { of, hash },
                OriginalFault::Changed => ArchiveProblem::Damaged { of, hash },
                OriginalFault::Derived(kind) => {
                    ArchiveProblem::Derived { kind, of, hash, repaired: repaired.clone() }
                }
            };
            remaining += usize::from(problem.remains());
            self.report(&problem);
        }
        remaining
    }

    /// Returns the name of the item's file that refers to an original at present.
    pub(super) fn file_of(&self, named: NamedOriginal) -> FileOfItem {
        let found = self.archive.db.read_blocking(move |tx| tx.files_of_version(named.version));
        file_of_original(found, named.hash)
    }

    /// Checks files outside the database: cached renditions and leftovers of interrupted writes.
    fn files(&self, cache: &Path) -> Result<()> {
        // The server skips a damaged file too, so its removal costs one render at most.
        media::check_cache(cache, &mut |file| {
            let repaired = self.remove_file(file);
            self.report(&ArchiveProblem::Cached { file: file.to_owned(), repaired });
        })
        .map_err(Error::internal)?;
        let mut leftovers = self.archive.originals.store.leftovers().map_err(Error::internal)?;
        leftovers.extend(self.archive.originals.derived.leftovers().map_err(Error::internal)?);
        for file in leftovers {
            let repaired = self.remove_file(&file);
            self.report(&ArchiveProblem::Leftover { file, repaired });
        }
        Ok(())
    }

    /// Removes a damaged or abandoned file, if this check makes repairs.
    fn remove_file(&self, file: &Path) -> Repair {
        self.repair.then(|| fs::remove_file(file).map_err(|cause| cause.to_string()))
    }
}

fn is_derived(fault: &OriginalFault) -> bool {
    matches!(fault, OriginalFault::Derived(_))
}

/// Returns whether `named`, which is sorted by hash, contains the original `hash`.
pub(super) fn is_named(named: &[NamedOriginal], hash: &ContentHash) -> bool {
    named.binary_search_by_key(hash, |original| original.hash).is_ok()
}

/// The orphans that a check found.
#[derive(Default)]
pub(super) struct OrphanReport {
    pub(super) left: OriginalsTally,
    pub(super) pruned: OriginalsTally,
}

/// Removes the orphans that were stored at least `age` ago, and returns them.
fn prune(
    archive: &OpenArchive,
    orphans: &[ContentHash],
    age: Duration,
) -> Result<BTreeSet<ContentHash>> {
    let mut old = Vec::new();
    for hash in orphans {
        let found = archive.originals.store.age(*hash).map_err(Error::internal)?;
        if found.is_some_and(|found| found >= age) {
            old.push(*hash);
        }
    }
    // Read in one transaction, so that no version is committed between the list and the state.
    let (named, flaws, since) = archive.db.read_blocking(|tx| {
        let (named, flaws) = tx.named_originals()?;
        Ok((named, flaws, OriginalsState::load(tx)?))
    })?;
    // An item that cannot be read may refer to any original.
    if !flaws.is_empty() {
        return Ok(BTreeSet::new());
    }
    old.retain(|hash| !is_named(&named, hash));
    let unreferenced = UnreferencedOriginals { since, hashes: old };
    let removed = remove_unreferenced(&archive.db, &archive.originals, &unreferenced)?;
    Ok(removed.into_iter().collect())
}

fn is_of_index(flaw: &DatabaseFlaw) -> bool {
    matches!(flaw, DatabaseFlaw::Index(_))
}

/// Returns the orphans that no item refers to even after a grace period.
fn still_orphans(
    archive: &OpenArchive,
    mut orphans: Vec<ContentHash>,
) -> Result<Vec<ContentHash>> {
    let mut commits = archive.db.commit_watcher()?;
    let stopwatch = Stopwatch::start();
    while !orphans.is_empty() {
        // Listing all originals is expensive, so it is repeated only after a commit. The first call always
        // reports a commit, which covers the time since the inspection.
        if commits.has_commits()? {
            let (named, _) = archive.db.read_blocking(|tx| tx.named_originals())?;
            orphans.retain(|hash| !is_named(&named, hash));
        }
        // A young original may belong to an ingest whose transaction has not been committed yet.
        let mut has_young = false;
        for hash in &orphans {
            let age = archive.originals.store.age(*hash).map_err(Error::internal)?;
            has_young |= age.is_some_and(|age| age < ORPHAN_AGE_MIN);
        }
        if !has_young || stopwatch.elapsed() >= ORPHAN_GRACE_PERIOD {
            break;
        }
        clock::pause(ORPHAN_POLL_INTERVAL);
    }
    Ok(orphans)
}

/// Repairs the derived files of an original that have the given faults, and checks them afterwards.
fn repair_derived(
    archive: &OpenArchive,
    NamedOriginal { hash, length, .. }: NamedOriginal,
    faults: &[OriginalFault],
) -> std::result::Result<(), String> {
    if faults.contains(&OriginalFault::Derived(DerivedKind::Standard)) {
        // The service makes the set again, in the sizes of its settings.
        archive.originals.remove_standard_set(hash).map_err(|cause| cause.to_string())?;
    }
    if faults.contains(&OriginalFault::Derived(DerivedKind::Index))
        || faults.contains(&OriginalFault::Derived(DerivedKind::Working))
    {
        let rebuilt = archive.originals.rebuild_files(hash, length, &in_sequence);
        rebuilt.map_err(|cause| cause.to_string())?;
    }
    // A failure to write is only logged during the rebuild, so the files are read back.
    match archive.originals.check(hash, length) {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(_) => Err("it cannot be written; see the log".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        sync::atomic::AtomicBool,
        time::{Duration, SystemTime},
    };

    use super::*;
    use crate::runtime::config::{self, SettingSources};

    #[test]
    fn a_repair_leaves_alone_what_comes_in_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (mut config, _) = config::load(&SettingSources::default()).unwrap();
        config.data.dir = dir.path().to_owned();
        let archive = OpenArchive::open_to_write(&config).unwrap();
        let deleted = archive.originals.store_bytes(b"replaced long ago").unwrap();
        let name = deleted.to_string();
        let path = dir.path().join("originals").join(&name[..2]).join(&name[2..]);
        let modified = SystemTime::from(clock::now()) - Duration::from_secs(7200);
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        let began = AtomicBool::new(false);
        let report = check(&archive, &config, CheckRequest::full(true), &|problem| {
            if matches!(problem, ArchiveProblem::Warning(_)) {
                return;
            }
            assert!(
                matches!(problem, ArchiveProblem::Orphaned { hash, .. } if *hash == deleted),
                "{problem}"
            );
            began.store(true, Ordering::Relaxed);
            archive.originals.store_bytes(b"comes in while the check runs").unwrap();
        });
        assert!(began.into_inner());
        assert_eq!(report.unwrap().removed, 1, "the side file of what is gone");
        let left = archive.originals.list_derived().unwrap();
        let arrived = ContentHash::new(b"comes in while the check runs");
        assert_eq!(left, [(DerivedKind::Index, arrived)]);
    }
}
