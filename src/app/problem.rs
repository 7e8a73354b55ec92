//! The problems that a check reports, each with a keyword and a sentence.

use std::path::PathBuf;

use crate::storage::blobs::DerivedKind;
use crate::storage::database::{DatabaseFlaw, DbError};
use model::item::Asset;
use model::{ContentHash, ItemKey};

/// A problem of the archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchiveProblem {
    /// An item refers to an original that is not in the store.
    Missing { of: FileOfItem, hash: ContentHash },
    /// The bytes of an original do not match its hash.
    Damaged { of: FileOfItem, hash: ContentHash },
    /// The length of an original differs from its length at ingest.
    Length {
        of: FileOfItem,
        hash: ContentHash,
        /// Length in the store in bytes.
        found: u64,
        /// Length at ingest in bytes.
        expected: u64,
    },
    /// An original cannot be read from the disk.
    Unreadable {
        of: FileOfItem,
        hash: ContentHash,
        /// The error of the operating system.
        why: String,
    },
    /// A derived file is missing or damaged.
    Derived {
        kind: DerivedKind,
        of: FileOfItem,
        hash: ContentHash,
        /// The repair: the file is rebuilt, or removed if it is a standard set.
        repaired: Repair,
    },
    /// No item refers to an original, which is harmless.
    Orphaned {
        hash: ContentHash,
        bytes: u64,
        /// True if the original was removed.
        is_pruned: bool,
    },
    /// A file of the rendition cache is damaged.
    Cached {
        file: PathBuf,
        /// The repair: the file is removed.
        repaired: Repair,
    },
    /// A leftover file of an interrupted write.
    Leftover {
        file: PathBuf,
        /// The repair: the file is removed.
        repaired: Repair,
    },
    /// Advice for the operator; nothing is damaged.
    Warning(String),
    /// The database has a flaw.
    Database {
        flaw: DatabaseFlaw,
        /// The repair: a new search index is requested, if the flaw is in the index.
        repaired: Repair,
    },
}

/// The result of a repair: `None` if no repair was attempted, an error text if it failed.
pub type Repair = Option<Result<(), String>>;

/// A file of an item: `image/abc NormalHires`.
pub type FileOfItem = String;

/// Returns the name of an item's file: `image/abc NormalHires.jpg`.
pub(super) fn file_of(key: &ItemKey, asset: &Asset) -> FileOfItem {
    let association = asset.association.as_ref().map(|key| format!("{key}_")).unwrap_or_default();
    format!("{key} {association}{}{}", asset.name(), asset.extension().as_str())
}

/// Returns the name of the item's file that refers to the original `hash`, if the item version that was looked up
/// still exists.
pub(super) fn file_of_original(
    found: Result<Option<(ItemKey, Vec<Asset>)>, DbError>,
    hash: ContentHash,
) -> FileOfItem {
    let found = match found {
        Ok(found) => found,
        Err(cause) => return format!("an item that cannot be read ({cause})"),
    };
    let name = found.and_then(|(key, assets)| {
        let asset = assets.iter().find(|asset| asset.blob() == hash)?;
        Some(file_of(&key, asset))
    });
    name.unwrap_or_else(|| "an item that was replaced meanwhile".to_owned())
}

impl ArchiveProblem {
    /// Returns whether the problem is advice or harmless, and not damage.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Warning(_) | Self::Orphaned { .. })
    }

    /// Returns whether the problem was not repaired.
    pub fn remains(&self) -> bool {
        !matches!(
            self,
            Self::Derived { repaired: Some(Ok(())), .. }
                | Self::Cached { repaired: Some(Ok(())), .. }
                | Self::Leftover { repaired: Some(Ok(())), .. }
                | Self::Database { repaired: Some(Ok(())), .. }
        )
    }

    /// Returns the keyword of the problem in JSON.
    pub fn word(&self) -> &'static str {
        if !self.remains() {
            return "repaired";
        }
        match self {
            Self::Missing { .. } => "missing",
            Self::Damaged { .. } | Self::Length { .. } | Self::Unreadable { .. } => "damaged",
            Self::Derived { .. } => "derived",
            Self::Orphaned { .. } => "orphaned",
            Self::Cached { .. } => "cache",
            Self::Leftover { .. } => "leftover",
            Self::Warning(_) => "warning",
            Self::Database { flaw, .. } => match flaw {
                DatabaseFlaw::Page(_) => "database",
                DatabaseFlaw::Reference(_) => "reference",
                DatabaseFlaw::Row(_) => "row",
                DatabaseFlaw::Index(_) => "index",
                DatabaseFlaw::Secret(_) => "secret",
                DatabaseFlaw::Truncated(_) => "more",
            },
        }
    }
}

impl std::fmt::Display for ArchiveProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { of, hash } => write!(f, "{of}: original {hash} is missing"),
            Self::Damaged { of, hash } => {
                write!(f, "{of}: original {hash} was changed after ingest")
            }
            Self::Length { of, hash, found, expected } => write!(
                f,
                "{of}: original {hash} was changed after ingest: it has {found} bytes and had \
                 {expected}"
            ),
            Self::Unreadable { of, hash, why } => {
                write!(f, "{of}: original {hash} cannot be read: {why}")
            }
            Self::Derived { kind, of, hash, repaired } => {
                let (state, outcomes) = match kind {
                    DerivedKind::Index | DerivedKind::Working => {
                        let later = "it is rebuilt when it is needed, or by --repair";
                        ("missing or damaged", [later, "rebuilt", "it cannot be rebuilt"])
                    }
                    // A missing set is no problem.
                    DerivedKind::Standard => {
                        let later = "it is made again when it is needed; --repair removes it";
                        let done = "removed; it is made again when it is needed";
                        ("damaged", [later, done, "it cannot be removed"])
                    }
                };
                let kind = kind.as_str();
                write!(f, "{of}: the {kind} file of original {hash} is {state}")?;
                write_outcome(f, outcomes, repaired)
            }
            Self::Orphaned { hash, bytes, is_pruned } => {
                let removed = if *is_pruned { "; removed" } else { "" };
                write!(f, "no item refers to original {hash} of {bytes} bytes{removed}")
            }
            Self::Warning(text) => f.write_str(text),
            Self::Cached { file, repaired } => {
                write!(f, "{}: this file of the rendition cache is damaged", file.display())?;
                let later = "it is skipped, or removed by --repair";
                write_outcome(f, [later, "removed", "it cannot be removed"], repaired)
            }
            Self::Leftover { file, repaired } => {
                write!(f, "{}: an interrupted write left this file", file.display())?;
                let later = "--repair removes it";
                write_outcome(f, [later, "removed", "it cannot be removed"], repaired)
            }
            Self::Database { flaw, repaired } => {
                // Only the search index can be rebuilt, so other flaws have no repair to report.
                if !matches!(flaw, DatabaseFlaw::Index(_)) {
                    return write!(f, "database: {flaw}");
                }
                write!(f, "search: {flaw}")?;
                let later = "--repair or `wirephoto reindex` has a new index built";
                let done = "a new index is built by the service, or when it starts";
                write_outcome(f, [later, done, "it cannot be replaced"], repaired)
            }
        }
    }
}

/// Writes the outcome of a repair: the first of `texts` if no repair was attempted, the second if it
/// succeeded, the third with the cause if it failed.
fn write_outcome(
    f: &mut std::fmt::Formatter<'_>,
    texts: [&str; 3],
    repaired: &Repair,
) -> std::fmt::Result {
    match repaired {
        None => write!(f, "; {}", texts[0]),
        Some(Ok(())) => write!(f, "; {}", texts[1]),
        Some(Err(cause)) => write!(f, "; {}: {cause}", texts[2]),
    }
}
