//! Names of an archive's entries, safe to unpack anywhere.

use std::fmt;

use thiserror::Error;

use crate::limits::ARCHIVE_NAME_BYTES_MAX;

/// The name of an entry: letters, digits, `_`, `.` and `-` of ASCII, no two dots in a row, no dot
/// at either end. So it names a file in the folder it is unpacked to, on every system, and can
/// neither leave it nor hide.
///
/// Names contain only the id, the suffix and the extension (contract files-11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryName(Box<str>);

/// Why a text is no name of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntryNameError {
    /// There is none.
    #[error("the entry's name is empty")]
    Empty,
    /// It is longer than [`EntryName::BYTES_MAX`].
    #[error("the entry's name has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes that are allowed.
        max: usize,
    },
    /// It holds a character that no name may hold.
    #[error("the entry's name has the character {found:?}, expected A-Z a-z 0-9 _ . -")]
    BadCharacter {
        /// The character.
        found: char,
    },
    /// It has a dot at an end or two in a row.
    #[error("the entry's name {found:?} has a dot at an end or two in a row")]
    Dots {
        /// The name.
        found: String,
    },
}

impl EntryName {
    /// The most bytes of a name.
    pub const BYTES_MAX: usize = ARCHIVE_NAME_BYTES_MAX;

    /// Parses a name; nothing is decoded, trimmed or folded.
    ///
    /// Fails with [`EntryNameError`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, EntryNameError> {
        if text.is_empty() {
            return Err(EntryNameError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(EntryNameError::TooLong { bytes: text.len(), max: Self::BYTES_MAX });
        }
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if let Some(found) = text.chars().find(|&c| !is_good(c)) {
            return Err(EntryNameError::BadCharacter { found });
        }
        if text.starts_with('.') || text.ends_with('.') || text.contains("..") {
            return Err(EntryNameError::Dots { found: text.to_owned() });
        }
        Ok(Self(text.into()))
    }

    /// The name as it stands in the archive.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
