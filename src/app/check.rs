//! The archive checked: the database from within, database against store, and what is derived
//! against the originals.
//!
//! Others may write meanwhile. The database is looked at in one read transaction; a blob is in the
//! store before an item names it, and stays. So nothing that just comes in is taken for damage,
//! but an original that no item names is looked at again before it is told, and so is one whose
//! derived files are to be removed; what came after they were listed is let alone. Memory: 200
//! bytes an original.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use super::OpenArchive;
use super::demo::demo_warning;
use super::parallel::for_each_parallel;
pub use super::problem::{ArchiveProblem, FileOfItem, Repair};
use super::progress::CheckProgress;
pub use super::progress::InterruptedCheck;
use super::services::search_dir;
use super::warnings;
use crate::media;
use crate::media::original::{OriginalError, OriginalFault, serially};
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{ORPHAN_AGE_MIN, ORPHAN_GRACE_PERIOD};
use crate::storage::blobs::DerivedKind;
use crate::storage::database::{DatabaseFlaw, DatabaseInspection, NamedOriginal};
use crate::storage::search::{check_index, replace_index};
use model::item::Asset;
use model::{ContentHash, ItemKey};

/// How much of the originals a check reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Every original and what is derived from it, byte for byte.
    Full,
    /// None but a random sample: of the others presence and length are compared.
    Quick {
        /// How many originals are read.
        sample: usize,
    },
}

/// What is asked of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckRequest {
    /// How much it reads.
    pub depth: CheckDepth,
    /// Recreates derived files that are not right, and removes those that nobody needs. A full check does so
    /// alone.
    pub repair: bool,
    /// Skips the originals that an interrupted full check has read.
    pub resume: bool,
}

impl CheckRequest {
    /// A check that reads everything.
    #[must_use]
    pub fn full(repair: bool) -> Self {
        Self { depth: CheckDepth::Full, repair, resume: false }
    }
}

/// What a check found beside the problems that it told.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckReport {
    /// Originals that items name.
    pub originals: usize,
    /// Originals that were read.
    pub read: usize,
    /// What an interrupted check had done that this one continues.
    pub earlier: Option<InterruptedCheck>,
    /// Problems that remain, those of the interrupted check included.
    pub remaining: usize,
    /// Derived files of originals that are gone, which were removed.
    pub removed: usize,
    /// Whether all items were read. Else there may be originals that are named and were not
    /// looked at, and none is told to be nobody's.
    pub is_complete: bool,
}

/// A check under way.
pub(super) struct ArchiveCheck<'a> {
    pub(super) archive: &'a OpenArchive,
    repair: bool,
    report: &'a (dyn Fn(&ArchiveProblem) + Sync),
    pub(super) remaining: AtomicUsize,
}

/// Checks the archive as `request` says; `tell` hears of each problem as it is found, from several
/// threads.
///
/// A full check covers the database, every original, byte for byte, and what is derived from them. With
/// `repair`, what is derived and not right is made again, and what of it nobody needs is removed.
/// Originals are never touched, nor is the database but for its search index and the note of how far the
/// check came: what is lost there comes back from a backup.
pub fn check(
    archive: &OpenArchive,
    config: &Config,
    request: CheckRequest,
    tell: &(dyn Fn(&ArchiveProblem) + Sync),
) -> Result<CheckReport> {
    let CheckRequest { depth, repair, resume } = request;
    let check = ArchiveCheck { archive, repair, report: tell, remaining: AtomicUsize::new(0) };
    let mut notes = warnings(config, &archive.db);
    notes.extend(demo_warning(&archive.db)?);
    notes.into_iter().for_each(|note| check.report(&ArchiveProblem::Warning(note)));
    match depth {
        CheckDepth::Full => check.full(config, resume),
        CheckDepth::Quick { sample } => check.quick(config.ingest_workers(), sample),
    }
}

impl ArchiveCheck<'_> {
    fn full(self, config: &Config, resume: bool) -> Result<CheckReport> {
        let archive = self.archive;
        // The store first: what comes in meanwhile is then in the database too, or in neither list.
        let stored = archive.originals.store().list().map_err(Error::internal)?;
        let derived = archive.originals.list_derived().map_err(Error::internal)?;
        let found = archive.db.read_blocking(|tx| Ok(tx.inspect()))?;
        self.report_flaws(&found, config)?;
        let progress = CheckProgress::begin(&archive.db, &found.originals, resume)?;
        let left = found.originals.iter().enumerate().skip(progress.first());
        for_each_parallel(config.ingest_workers(), left, &|(index, named)| {
            progress.record_checked(index, self.original(*named));
            Ok(())
        })?;
        let is_named = |hash: &ContentHash| {
            found.originals.binary_search_by_key(hash, |one| one.hash).is_ok()
        };
        let mut removed = 0;
        // Whether an original is nobody's can be told only when all items were read.
        if found.is_complete {
            let orphans = stored.into_iter().filter(|hash| !is_named(hash)).collect();
            self.report_orphans(orphans)?;
            if self.repair {
                let unnamed: BTreeSet<ContentHash> =
                    derived.iter().map(|(_, hash)| *hash).filter(|hash| !is_named(hash)).collect();
                let gone = still_orphans(archive, unnamed.into_iter().collect())?;
                let keep = |hash| gone.binary_search(&hash).is_err();
                let swept = archive.originals.sweep_derived(&derived, &keep);
                removed = swept.map_err(Error::internal)?;
            }
        }
        self.files(&config.data.dir.join("derived").join("cache"))?;
        let earlier = progress.finish();
        let of_earlier = earlier.map_or(0, |earlier| earlier.problems);
        Ok(CheckReport {
            originals: found.originals.len(),
            read: found.originals.len() - earlier.map_or(0, |earlier| earlier.originals),
            earlier,
            remaining: self.remaining.into_inner() + of_earlier,
            removed,
            is_complete: found.is_complete,
        })
    }

    /// Reports those of `orphans` that no item names although they had time to come in.
    pub(super) fn report_orphans(&self, orphans: Vec<ContentHash>) -> Result<()> {
        for hash in still_orphans(self.archive, orphans)? {
            self.report(&ArchiveProblem::Orphaned { hash });
        }
        Ok(())
    }

    pub(super) fn report(&self, problem: &ArchiveProblem) {
        if problem.remains() && !problem.is_warning() {
            self.remaining.fetch_add(1, Ordering::Relaxed);
        }
        (self.report)(problem);
    }

    /// Reports what is wrong with the database and with the search index of this data directory; with
    /// `repair` a new index is requested where that one is not right.
    fn report_flaws(&self, found: &DatabaseInspection, config: &Config) -> Result<()> {
        for flaw in &found.flaws {
            self.report(&ArchiveProblem::Database { flaw: flaw.clone(), repaired: None });
        }
        let (db, dir) = (&self.archive.db, search_dir(config));
        let of_index = check_index(&mut db.snapshot_reader()?, &dir);
        // A failure to read is reported as damage, and the rest of the check goes on.
        let of_index =
            of_index.unwrap_or_else(|cause| vec![DatabaseFlaw::Page(cause.to_string())]);
        let replaced =
            (self.repair && of_index.iter().any(is_of_index)).then(|| replace_index(db, &dir));
        let repaired = replaced.map(|done| done.map_err(|cause| cause.to_string()));
        for flaw in of_index {
            let repaired = repaired.clone().filter(|_| is_of_index(&flaw));
            self.report(&ArchiveProblem::Database { flaw, repaired });
        }
        Ok(())
    }

    /// Reads an original and what is derived from it; gives the number of problems that remain.
    pub(super) fn original(&self, named: NamedOriginal) -> usize {
        let NamedOriginal { hash, length, .. } = named;
        let is_derived = |finding: &OriginalFault| matches!(finding, OriginalFault::Derived(_));
        let mut looked = self.archive.originals.check(hash, length);
        if looked.as_ref().is_ok_and(|found| found.iter().any(is_derived)) {
            // A server may have been at it just then.
            looked = self.archive.originals.check(hash, length);
        }
        let found = match looked {
            Ok(found) if found.is_empty() => return 0,
            Ok(found) => found,
            Err(cause) => {
                let (of, why) = (self.file_of(named), cause.to_string());
                self.report(&ArchiveProblem::Unreadable { of, hash, why });
                return 1;
            }
        };
        let of = self.file_of(named);
        let derived = found.iter().any(is_derived);
        let repaired =
            (self.repair && derived).then(|| recreate_derived(self.archive, hash, length));
        let mut remaining = 0;
        for finding in found {
            let of = of.clone();
            let problem = match finding {
                OriginalFault::Missing => ArchiveProblem::Missing { of, hash },
                OriginalFault::Changed => ArchiveProblem::Damaged { of, hash },
                OriginalFault::Derived(kind) => {
                    let kind = DerivedKind::as_str(kind);
                    ArchiveProblem::Derived { kind, of, hash, repaired: repaired.clone() }
                }
            };
            remaining += usize::from(problem.remains());
            self.report(&problem);
        }
        remaining
    }

    /// The file of an item that an original is, as of now.
    pub(super) fn file_of(&self, named: NamedOriginal) -> FileOfItem {
        let found = self.archive.db.read_blocking(move |tx| tx.files_of_version(named.doc));
        let found = match found {
            Ok(found) => found,
            Err(cause) => return format!("an item that cannot be read ({cause})"),
        };
        let name = found.and_then(|(key, assets)| {
            let asset = assets.iter().find(|asset| asset.blob() == named.hash)?;
            Some(file_of(&key, asset))
        });
        name.unwrap_or_else(|| "an item that was replaced meanwhile".to_owned())
    }

    /// Files that no item names: of the cache, and those that interrupted writes left.
    fn files(&self, cache: &Path) -> Result<()> {
        let remove = |file: &Path| {
            self.repair.then(|| fs::remove_file(file).map_err(|cause| cause.to_string()))
        };
        media::check_cache(cache, &mut |file| {
            let (file, repaired) = (file.to_owned(), remove(file));
            self.report(&ArchiveProblem::Cached { file, repaired });
        })
        .map_err(Error::internal)?;
        let mut left = self.archive.originals.store().leftovers().map_err(Error::internal)?;
        left.extend(self.archive.originals.derived().leftovers().map_err(Error::internal)?);
        for file in left {
            let repaired = remove(&file);
            self.report(&ArchiveProblem::Leftover { file, repaired });
        }
        Ok(())
    }
}

fn is_of_index(flaw: &DatabaseFlaw) -> bool {
    matches!(flaw, DatabaseFlaw::Index(_))
}

/// Those of `orphans` that no item names although they had time to come in.
fn still_orphans(
    archive: &OpenArchive,
    mut orphans: Vec<ContentHash>,
) -> Result<Vec<ContentHash>> {
    let age = |hash: &ContentHash| archive.originals.store().age(*hash).map_err(Error::internal);
    let (mut pulse, waited) = (archive.db.commit_watcher()?, Stopwatch::start());
    let (_sender, never) = mpsc::channel::<()>();
    while !orphans.is_empty() {
        if pulse.has_commits()? {
            let (named, _) = archive.db.read_blocking(|tx| tx.named_originals())?;
            orphans.retain(|hash| named.binary_search_by_key(hash, |one| one.hash).is_err());
        }
        let mut young = false;
        for hash in &orphans {
            young |= age(hash)?.is_some_and(|age| age < ORPHAN_AGE_MIN);
        }
        if !young || waited.elapsed() >= ORPHAN_GRACE_PERIOD {
            break;
        }
        // Nobody sends: this is a rest.
        if never.recv_timeout(Duration::from_millis(200)).is_ok() {
            break;
        }
    }
    Ok(orphans)
}

/// How a file of an item is named: `image/abc NormalHires.jpg`.
pub(super) fn file_of(key: &ItemKey, asset: &Asset) -> FileOfItem {
    let association = asset.association.as_ref().map(|key| format!("{key}_")).unwrap_or_default();
    format!("{key} {association}{}{}", asset.name(), asset.extension().as_str())
}

/// Makes the derived files of an original again, and looks whether they are right then.
fn recreate_derived(
    archive: &OpenArchive,
    hash: ContentHash,
    length: u64,
) -> std::result::Result<(), String> {
    let told = |cause: OriginalError| cause.to_string();
    archive.originals.rebuild_files(hash, length, &serially).map_err(told)?;
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
        let archive = OpenArchive::open(&config).unwrap();
        let gone = archive.originals.store_bytes(b"replaced long ago").unwrap();
        let name = gone.to_string();
        let path = dir.path().join("originals").join(&name[..2]).join(&name[2..]);
        let then = SystemTime::from(crate::runtime::clock::now()) - Duration::from_secs(7200);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        let began = AtomicBool::new(false);
        let report = check(&archive, &config, CheckRequest::full(true), &|problem| {
            if problem.is_warning() {
                return;
            }
            assert!(
                matches!(problem, ArchiveProblem::Orphaned { hash } if *hash == gone),
                "{problem}"
            );
            began.store(true, Ordering::Relaxed);
            archive.originals.store_bytes(b"comes in while the check runs").unwrap();
        });
        assert!(began.into_inner());
        assert_eq!(report.unwrap().removed, 1, "the side file of what is gone");
        let left = archive.originals.list_derived().unwrap();
        let came = ContentHash::of(b"comes in while the check runs");
        assert_eq!(left, [(DerivedKind::Index, came)]);
    }
}
