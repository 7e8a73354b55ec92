//! What a check tells of: each kind of damage with its word and its sentence.

use std::path::PathBuf;

use crate::storage::database::DatabaseFlaw;
use model::ContentHash;

/// Something wrong with the archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchiveProblem {
    /// An item names an original that is not in the store.
    Missing {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: ContentHash,
    },
    /// An original's bytes are not those that came in.
    Damaged {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: ContentHash,
    },
    /// An original is not as long as it was when it came in.
    Length {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: ContentHash,
        /// Bytes that the store has.
        found: u64,
        /// Bytes that came in.
        expected: u64,
    },
    /// The disk does not give an original.
    Unreadable {
        /// The item's file.
        of: FileOfItem,
        /// The original.
        hash: ContentHash,
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
        hash: ContentHash,
        /// Whether it was made again.
        repaired: Repair,
    },
    /// No item names an original.
    Orphaned {
        /// The original.
        hash: ContentHash,
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
        flaw: DatabaseFlaw,
        /// Whether the search index was made anew, where it is that.
        repaired: Repair,
    },
}

/// What became of a repair: `None` if none was tried, else why it failed.
pub type Repair = Option<Result<(), String>>;

/// A file of an item: `image/abc NormalHires`.
pub type FileOfItem = String;

impl ArchiveProblem {
    fn repaired(&self) -> Option<&Repair> {
        match self {
            Self::Derived { repaired, .. }
            | Self::Cached { repaired, .. }
            | Self::Leftover { repaired, .. }
            | Self::Database { repaired, .. } => Some(repaired),
            Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::Length { .. }
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
            Self::Length { of, hash, found, expected } => write!(
                f,
                "{of}: original {hash} was changed after it came in: it has {found} bytes and had \
                 {expected}"
            ),
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
                if !matches!(flaw, DatabaseFlaw::Index(_)) {
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
