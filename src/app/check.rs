//! The archive checked: database against store, and what is derived against the originals.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use super::Archive;
use crate::error::{Error, Result};
use crate::item::Asset;
use crate::limits::CHECK_ROWS;
use crate::media::original::{Finding, OriginalError, serially};
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
    /// A derived file is missing, damaged or of an older version.
    Derived {
        /// Which: `index`, `working` or `level`.
        kind: &'static str,
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: Hash,
        /// Why it could not be made again, if that was tried.
        repaired: Option<std::result::Result<(), String>>,
    },
    /// No item names an original.
    Orphaned {
        /// The original.
        hash: Hash,
    },
}

/// A file of an item: `image/abc NormalHires`.
pub type FileOfItem = String;

impl Problem {
    /// Whether it is still there.
    #[must_use]
    pub fn remains(&self) -> bool {
        !matches!(self, Self::Derived { repaired: Some(Ok(())), .. })
    }

    /// Whether it is in the way of serving: an orphan is not.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Damaged { .. } => "damaged",
            Self::Derived { repaired: Some(Ok(())), .. } => "repaired",
            Self::Derived { .. } => "derived",
            Self::Orphaned { .. } => "orphaned",
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { of, hash } => write!(f, "{of}: original {hash} is missing"),
            Self::Damaged { of, hash } => {
                write!(f, "{of}: original {hash} was changed after it came in")
            }
            Self::Derived { kind, of, hash, repaired } => {
                write!(f, "{of}: the {kind} file of original {hash} is missing or damaged")?;
                match repaired {
                    None => write!(f, "; it will be made again when it is needed, or by --repair"),
                    Some(Ok(())) => write!(f, "; made again"),
                    Some(Err(cause)) => write!(f, "; it cannot be made again: {cause}"),
                }
            }
            Self::Orphaned { hash } => write!(f, "original {hash} is named by no item"),
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Originals that items name.
    pub originals: usize,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Derived files of originals that are gone, which were removed.
    pub removed: usize,
}

/// Checks every original, byte for byte, and what is derived from it, on `workers` threads.
///
/// With `repair`, derived files that are not right are made again and those of originals that no
/// item names are removed. Originals are never touched: what is lost there comes back from a
/// backup.
pub fn check(archive: &Archive, repair: bool, workers: usize) -> Result<Report> {
    // The store first: what comes in meanwhile is then in the database too, or in neither list.
    let stored = archive.originals.store().list().map_err(Error::internal)?;
    let named = named(archive)?;
    let originals = named.len();
    let wanted: BTreeSet<Hash> = named.keys().map(|(hash, _)| *hash).collect();
    let queue = Mutex::new(named.into_iter());
    let problems = Mutex::new(Vec::new());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(((hash, length), of)) = next else { return };
                    match check_one(archive, (hash, length), &of, repair) {
                        Ok(found) => {
                            problems.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                        }
                        Err(error) => {
                            failure
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    let orphans = stored.into_iter().filter(|hash| !wanted.contains(hash));
    problems.extend(orphans.map(|hash| Problem::Orphaned { hash }));
    problems.sort();
    let removed = if repair {
        let keep = |hash| wanted.contains(&hash);
        archive.originals.sweep_derived(&keep).map_err(Error::internal)?
    } else {
        0
    };
    Ok(Report { originals, problems, removed })
}

/// The originals that items name, with a file that each belongs to.
fn named(archive: &Archive) -> Result<HashMap<(Hash, u64), FileOfItem>> {
    let mut named = HashMap::new();
    let mut after = 0;
    loop {
        let rows = archive.db.read_blocking(move |tx| tx.list_assets(after, CHECK_ROWS))?;
        let Some((last, _, _)) = rows.last() else { return Ok(named) };
        after = *last;
        for (_, key, assets) in &rows {
            for asset in assets {
                let of = file_of(key, asset);
                named.entry((asset.blob(), asset.length())).or_insert(of);
            }
        }
    }
}

fn file_of(key: &ItemKey, asset: &Asset) -> FileOfItem {
    let association = asset.association.as_ref().map(|key| format!("{key}_")).unwrap_or_default();
    format!("{key} {association}{}{}", asset.name(), asset.extension().as_str())
}

fn check_one(
    archive: &Archive,
    (hash, length): (Hash, u64),
    of: &str,
    repair: bool,
) -> Result<Vec<Problem>> {
    let found = archive.originals.check(hash, length).map_err(Error::internal)?;
    let of = of.to_owned();
    let mut problems = Vec::new();
    let mut kinds = Vec::new();
    for finding in found {
        match finding {
            Finding::Missing => problems.push(Problem::Missing { of: of.clone(), hash }),
            Finding::Changed => problems.push(Problem::Damaged { of: of.clone(), hash }),
            Finding::Derived(kind) => kinds.push(kind),
        }
    }
    if kinds.is_empty() {
        return Ok(problems);
    }
    let repaired = repair.then(|| remake(archive, hash, length));
    let derived = |kind: Kind| Problem::Derived {
        kind: kind.as_str(),
        of: of.clone(),
        hash,
        repaired: repaired.clone(),
    };
    problems.extend(kinds.into_iter().map(derived));
    Ok(problems)
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
