//! Defines the errors of building an archive.

use thiserror::Error;

use crate::zip::name::EntryName;

/// The reason why an archive cannot be built from its entries.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// There are no entries; some readers consider an empty archive damaged.
    #[error("the archive has no entries")]
    Empty,
    /// There are more than [`ArchiveLayout::ENTRIES_MAX`](super::ArchiveLayout::ENTRIES_MAX) entries.
    #[error("the archive has {count} entries, at most {max} are allowed")]
    TooManyEntries { count: usize, max: usize },
    /// Two names differ only in case; some file systems would overwrite one with the other.
    #[error("the archive has two entries called {name}")]
    Duplicate {
        /// The name of the second entry.
        name: EntryName,
    },
    /// The archive's length does not fit 63 bits.
    #[error("the archive is longer than 2^63 bytes")]
    TooLong,
}
