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
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use super::Archive;
use super::crowd::each;
use super::demo::demo_warning;
use super::services::search_dir;
use super::warnings;
use crate::clock::Stopwatch;
use crate::config::Config;
use crate::db::{Flaw, Inspection, Named};
use crate::error::{Error, Result};
use crate::item::Asset;
use crate::limits::{ORPHAN_PATIENCE, ORPHAN_YOUNG};
use crate::media;
use crate::media::original::{Finding, OriginalError, serially};
use crate::search::{check_index, replace_index};
use crate::store::Kind;
use crate::types::{Hash, ItemKey};

/// Something wrong with the archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// An item names an original that is not in the store.
    Missing {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: Hash,
    },
    /// An original's bytes are not those that came in.
    Damaged {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: Hash,
    },
    /// The disk does not give an original.
    Unreadable {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: Hash,
        /// What the system says.
        why: String,
    },
    /// A derived file is missing, damaged or of an older version.
    Derived {
        /// Which: `index`, `working` or `level`.
        kind: &'static str,
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: Hash,
        /// Whether it was made again.
        repaired: Repair,
    },
    /// No item names an original.
    Orphaned {
        /// The original.
        hash: Hash,
    },
    /// A file of the rendition cache is damaged.
    Cached {
        /// The file.
        file: PathBuf,
        /// Whether it was removed.
        repaired: Repair,
    },
    /// A file that an interrupted write left.
    Leftover {
        /// The file.
        file: PathBuf,
        /// Whether it was removed.
        repaired: Repair,
    },
    /// Something that an operator should know, and that is no damage.
    Warning(String),
    /// The database is not what it should be.
    Database {
        /// What is wrong.
        flaw: Flaw,
        /// Whether the search index was made anew, where it is that.
        repaired: Repair,
    },
}

/// What became of a repair: `None` if none was tried, else why it failed.
pub type Repair = Option<std::result::Result<(), String>>;

/// A file of an item: `image/abc NormalHires`.
pub type FileOfItem = String;

impl Problem {
    fn repaired(&self) -> Option<&Repair> {
        match self {
            Self::Derived { repaired, .. }
            | Self::Cached { repaired, .. }
            | Self::Leftover { repaired, .. }
            | Self::Database { repaired, .. } => Some(repaired),
            Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::Unreadable { .. }
            | Self::Orphaned { .. }
            | Self::Warning(_) => None,
        }
    }

    /// Whether it is about the way in which the archive is kept, and nothing of it is wrong.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Warning(_))
    }

    /// Whether it is still there.
    #[must_use]
    pub fn remains(&self) -> bool {
        !matches!(self.repaired(), Some(Some(Ok(()))))
    }

    /// What it is, in a word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if !self.remains() {
            return "repaired";
        }
        match self {
            Self::Missing { .. } => "missing",
            Self::Damaged { .. } | Self::Unreadable { .. } => "damaged",
            Self::Derived { .. } => "derived",
            Self::Orphaned { .. } => "orphaned",
            Self::Cached { .. } => "cache",
            Self::Leftover { .. } => "leftover",
            Self::Warning(_) => "warning",
            Self::Database { flaw, .. } => match flaw {
                Flaw::Page(_) => "database",
                Flaw::Reference(_) => "reference",
                Flaw::Row(_) => "row",
                Flaw::Index(_) => "index",
                Flaw::Secret(_) => "secret",
                Flaw::More(_) => "more",
            },
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ends =
            |f: &mut std::fmt::Formatter<'_>, ends: [&str; 3], repaired: &Repair| match repaired {
                None => write!(f, "; {}", ends[0]),
                Some(Ok(())) => write!(f, "; {}", ends[1]),
                Some(Err(cause)) => write!(f, "; {}: {cause}", ends[2]),
            };
        match self {
            Self::Missing { of, hash } => write!(f, "{of}: original {hash} is missing"),
            Self::Damaged { of, hash } => {
                write!(f, "{of}: original {hash} was changed after it came in")
            }
            Self::Unreadable { of, hash, why } => {
                write!(f, "{of}: original {hash} cannot be read: {why}")
            }
            Self::Derived { kind, of, hash, repaired } => {
                write!(f, "{of}: the {kind} file of original {hash} is missing or damaged")?;
                let later = "it will be made again when it is needed, or by --repair";
                ends(f, [later, "made again", "it cannot be made again"], repaired)
            }
            Self::Orphaned { hash } => write!(f, "original {hash} is named by no item"),
            Self::Warning(text) => f.write_str(text),
            Self::Cached { file, repaired } => {
                write!(f, "{}: this file of the rendition cache is damaged", file.display())?;
                let later = "it will be passed over, or removed by --repair";
                ends(f, [later, "removed", "it cannot be removed"], repaired)
            }
            Self::Leftover { file, repaired } => {
                write!(f, "{}: an interrupted write left this file", file.display())?;
                let later = "--repair removes it";
                ends(f, [later, "removed", "it cannot be removed"], repaired)
            }
            Self::Database { flaw, repaired } => {
                if !matches!(flaw, Flaw::Index(_)) {
                    return write!(f, "database: {flaw}");
                }
                write!(f, "search: {flaw}")?;
                let later = "--repair or `wirephoto reindex` has a new index built";
                let done = "a new index is built by the service, or when it starts";
                ends(f, [later, done, "it cannot be replaced"], repaired)
            }
        }
    }
}

/// What a check found beside the problems that it told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Originals that items name.
    pub originals: usize,
    /// Problems that remain.
    pub remaining: usize,
    /// Derived files of originals that are gone, which were removed.
    pub removed: usize,
    /// Whether all items were read. Else there may be originals that are named and were not
    /// looked at, and none is told to be nobody's.
    pub whole: bool,
}

/// A check under way.
struct Check<'a> {
    archive: &'a Archive,
    repair: bool,
    tell: &'a (dyn Fn(&Problem) + Sync),
    remaining: AtomicUsize,
}

/// Checks the database, every original, byte for byte, and what is derived from them; `tell` hears
/// of each problem as it is found, from several threads.
///
/// With `repair`, what is derived and not right is made again, and what of it nobody needs is
/// removed. Originals are never touched, nor is the database but for its search index: what is
/// lost there comes back from a backup.
pub fn check(
    archive: &Archive,
    config: &Config,
    repair: bool,
    tell: &(dyn Fn(&Problem) + Sync),
) -> Result<Report> {
    let check = Check { archive, repair, tell, remaining: AtomicUsize::new(0) };
    let mut notes = warnings(config, &archive.db);
    notes.extend(demo_warning(&archive.db)?);
    notes.into_iter().for_each(|note| check.tell(&Problem::Warning(note)));
    // The store first: what comes in meanwhile is then in the database too, or in neither list.
    let stored = archive.originals.store().list().map_err(Error::internal)?;
    let derived = archive.originals.list_derived().map_err(Error::internal)?;
    let found = archive.db.read_blocking(|tx| Ok(tx.inspect()))?;
    check.tell_flaws(&found, config)?;
    let workers = config.ingest_workers();
    each(workers, found.named.iter().copied(), &|named| check.original(named))?;
    let is_named = |hash: &Hash| found.named.binary_search_by_key(hash, |one| one.hash).is_ok();
    let mut removed = 0;
    // Whether an original is nobody's can be told only when all items were read.
    if found.whole {
        let orphans = stored.into_iter().filter(|hash| !is_named(hash)).collect();
        for hash in still_orphans(archive, orphans)? {
            check.tell(&Problem::Orphaned { hash });
        }
        if repair {
            let unnamed: BTreeSet<Hash> =
                derived.iter().map(|(_, hash)| *hash).filter(|hash| !is_named(hash)).collect();
            let gone = still_orphans(archive, unnamed.into_iter().collect())?;
            let keep = |hash| gone.binary_search(&hash).is_err();
            removed = archive.originals.sweep_derived(&derived, &keep).map_err(Error::internal)?;
        }
    }
    check.files(&config.data.dir.join("derived").join("cache"))?;
    let remaining = check.remaining.into_inner();
    Ok(Report { originals: found.named.len(), remaining, removed, whole: found.whole })
}

impl Check<'_> {
    fn tell(&self, problem: &Problem) {
        if problem.remains() && !problem.is_warning() {
            self.remaining.fetch_add(1, Ordering::Relaxed);
        }
        (self.tell)(problem);
    }

    /// Reports what is wrong with the database and with the search index of this data directory; with
    /// `repair` a new index is requested where that one is not right.
    fn tell_flaws(&self, found: &Inspection, config: &Config) -> Result<()> {
        for flaw in &found.flaws {
            self.tell(&Problem::Database { flaw: flaw.clone(), repaired: None });
        }
        let (db, dir) = (&self.archive.db, search_dir(config));
        let of_index = check_index(&mut db.feed()?, &dir);
        // A failure to read is reported as damage, and the rest of the check goes on.
        let of_index = of_index.unwrap_or_else(|cause| vec![Flaw::Page(cause.to_string())]);
        let replaced =
            (self.repair && of_index.iter().any(is_of_index)).then(|| replace_index(db, &dir));
        let repaired = replaced.map(|done| done.map_err(|cause| cause.to_string()));
        for flaw in of_index {
            let repaired = repaired.clone().filter(|_| is_of_index(&flaw));
            self.tell(&Problem::Database { flaw, repaired });
        }
        Ok(())
    }

    fn original(&self, named: Named) -> Result<()> {
        let Named { hash, length, .. } = named;
        let is_derived = |finding: &Finding| matches!(finding, Finding::Derived(_));
        let mut looked = self.archive.originals.check(hash, length);
        if looked.as_ref().is_ok_and(|found| found.iter().any(is_derived)) {
            // A server may have been at it just then.
            looked = self.archive.originals.check(hash, length);
        }
        let found = match looked {
            Ok(found) if found.is_empty() => return Ok(()),
            Ok(found) => found,
            Err(cause) => {
                let (of, why) = (self.file_of(named), cause.to_string());
                self.tell(&Problem::Unreadable { of, hash, why });
                return Ok(());
            }
        };
        let of = self.file_of(named);
        let derived = found.iter().any(is_derived);
        let repaired = (self.repair && derived).then(|| remake(self.archive, hash, length));
        for finding in found {
            let of = of.clone();
            self.tell(&match finding {
                Finding::Missing => Problem::Missing { of, hash },
                Finding::Changed => Problem::Damaged { of, hash },
                Finding::Derived(kind) => {
                    let kind = Kind::as_str(kind);
                    Problem::Derived { kind, of, hash, repaired: repaired.clone() }
                }
            });
        }
        Ok(())
    }

    /// The file of an item that an original is, as of now.
    fn file_of(&self, named: Named) -> FileOfItem {
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
            self.tell(&Problem::Cached { file, repaired });
        })
        .map_err(Error::internal)?;
        let mut left = self.archive.originals.store().leftovers().map_err(Error::internal)?;
        left.extend(self.archive.originals.derived().leftovers().map_err(Error::internal)?);
        for file in left {
            let repaired = remove(&file);
            self.tell(&Problem::Leftover { file, repaired });
        }
        Ok(())
    }
}

fn is_of_index(flaw: &Flaw) -> bool {
    matches!(flaw, Flaw::Index(_))
}

/// Those of `orphans` that no item names although they had time to come in.
fn still_orphans(archive: &Archive, mut orphans: Vec<Hash>) -> Result<Vec<Hash>> {
    let age = |hash: &Hash| archive.originals.store().age(*hash).map_err(Error::internal);
    let (mut pulse, waited) = (archive.db.pulse()?, Stopwatch::start());
    let (_sender, never) = mpsc::channel::<()>();
    while !orphans.is_empty() {
        if pulse.beats()? {
            let (named, _) = archive.db.read_blocking(|tx| tx.named_originals())?;
            orphans.retain(|hash| named.binary_search_by_key(hash, |one| one.hash).is_err());
        }
        let mut young = false;
        for hash in &orphans {
            young |= age(hash)?.is_some_and(|age| age < ORPHAN_YOUNG);
        }
        if !young || waited.elapsed() >= ORPHAN_PATIENCE {
            break;
        }
        // Nobody sends: this is a rest.
        if never.recv_timeout(Duration::from_millis(200)).is_ok() {
            break;
        }
    }
    Ok(orphans)
}

fn file_of(key: &ItemKey, asset: &Asset) -> FileOfItem {
    let association = asset.association.as_ref().map(|key| format!("{key}_")).unwrap_or_default();
    format!("{key} {association}{}{}", asset.name(), asset.extension().as_str())
}

/// Makes the derived files of an original again, and looks whether they are right then.
fn remake(archive: &Archive, hash: Hash, length: u64) -> std::result::Result<(), String> {
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
    use crate::config::{self, Sources};

    #[test]
    fn a_repair_leaves_alone_what_comes_in_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (mut config, _) = config::load(&Sources::default()).unwrap();
        config.data.dir = dir.path().to_owned();
        let archive = Archive::open(&config).unwrap();
        let gone = archive.originals.store_bytes(b"replaced long ago").unwrap();
        let name = gone.to_string();
        let path = dir.path().join("originals").join(&name[..2]).join(&name[2..]);
        let then = SystemTime::from(crate::clock::now()) - Duration::from_secs(7200);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        let began = AtomicBool::new(false);
        let report = check(&archive, &config, true, &|problem| {
            if problem.is_warning() {
                return;
            }
            assert!(matches!(problem, Problem::Orphaned { hash } if *hash == gone), "{problem}");
            began.store(true, Ordering::Relaxed);
            archive.originals.store_bytes(b"comes in while the check runs").unwrap();
        });
        assert!(began.into_inner());
        assert_eq!(report.unwrap().removed, 1, "the side file of what is gone");
        let left = archive.originals.list_derived().unwrap();
        let came = Hash::of(b"comes in while the check runs");
        assert_eq!(left, [(Kind::Index, came)]);
    }
}
