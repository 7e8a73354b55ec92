//! Checks the names of an archive's entries, which must be safe to extract anywhere.

use std::fmt;

use thiserror::Error;

/// The name of an entry: ASCII letters, digits, `_`, `.` and `-`, without two consecutive dots and without a dot
/// at either end. It thus names a visible file inside the directory of extraction on every system and prevents
/// path traversal.
///
/// Names contain only the id, the suffix and the extension (contract files-11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryName(Box<str>);

/// The reason why a text is not a valid entry name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntryNameError {
    /// The name is empty.
    #[error("the entry's name is empty")]
    Empty,
    /// The name is longer than [`EntryName::BYTES_MAX`].
    #[error("the entry's name has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// The name contains a forbidden character.
    #[error("the entry's name has the character {found:?}, expected A-Z a-z 0-9 _ . -")]
    BadCharacter { found: char },
    /// The name has a dot at either end, or two consecutive dots.
    #[error("the entry's name {found:?} has a dot at an end or two in a row")]
    Dots { found: String },
}

impl EntryName {
    /// The maximum length of a name in bytes, as in common file systems.
    pub const BYTES_MAX: usize = 255;

    /// Parses a name, without decoding, trimming or case folding.
    ///
    /// Fails with [`EntryNameError`], which describes the problem.
    pub fn parse(text: &str) -> Result<Self, EntryNameError> {
        if text.is_empty() {
            return Err(EntryNameError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(EntryNameError::TooLong { bytes: text.len(), max: Self::BYTES_MAX });
        }
        if let Some(found) = text.chars().find(|&c| !is_allowed(c)) {
            return Err(EntryNameError::BadCharacter { found });
        }
        if text.starts_with('.') || text.ends_with('.') || text.contains("..") {
            return Err(EntryNameError::Dots { found: text.to_owned() });
        }
        Ok(Self(text.into()))
    }

    /// Returns the name as written in the archive.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
