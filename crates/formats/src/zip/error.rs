//! Why entries make no archive.

use thiserror::Error;

use crate::zip::name::EntryName;

/// Why entries make no archive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// There is nothing to put into it; some readers take an empty archive for a damaged one.
    #[error("the archive has no entries")]
    Empty,
    /// There are more than [`Archive::ENTRIES_MAX`](super::ArchiveLayout::ENTRIES_MAX).
    #[error("the archive has {count} entries, at most {max} are allowed")]
    TooManyEntries {
        /// How many there are.
        count: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// Two names are the same but for case; some file systems would write one over the other.
    #[error("the archive has two entries called {name}")]
    Duplicate {
        /// The second one's name.
        name: EntryName,
    },
    /// The archive's length does not fit 63 bits.
    #[error("the archive is longer than 2^63 bytes")]
    TooLong,
}
