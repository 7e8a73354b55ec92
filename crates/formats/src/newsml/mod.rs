//! Writes a document as NewsML-G2, so that `.xml` has the same data as `.json`.
//!
//! A message contains a `packageItem`, the document's own item and one item per association, including nested
//! associations. [`PROPERTIES`] lists the place of each property; properties that have none in the standard
//! are written as extension properties (`extension`). Version 2.35 adds rights and provenance to 2.30 and
//! changes nothing else (`rights`). Characters that XML 1.0 cannot represent (C0 controls
//! other than tab and line ends, U+FFFE, U+FFFF) are removed.

mod codes;
mod concepts;
mod content;
mod content_meta;
mod event;
mod extension;
mod item;
mod item_meta;
pub(super) mod lexical;
mod package;
mod planning;
mod properties;
mod rights;
mod xhtml;
mod xml;

pub use properties::PROPERTIES;
pub use properties::PropertyPlacement;

#[cfg(test)]
pub(super) use codes::SCHEMES;
#[cfg(test)]
pub(super) use concepts::SUBJECTS;

use super::DocumentRights;
use super::MessageHeader;
use serde_json::Value;
use std::io;

/// A version of the standard.
///
/// Some clients compare the version in a message with the one that they know, so the older one stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum NewsmlVersion {
    /// 2.30, without rights and provenance besides those of the document.
    V2_30,
    /// 2.35, with `digitalSourceType` and `dataMining`.
    #[default]
    V2_35,
}

impl NewsmlVersion {
    /// Every version that can be written.
    pub const ALL: [Self; 2] = [Self::V2_30, Self::V2_35];

    /// Returns the number of the version as in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2_30 => "2.30",
            Self::V2_35 => "2.35",
        }
    }

    /// Finds the version with this number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Reports whether messages of this version state rights and provenance.
    fn has_rights(self) -> bool {
        match self {
            Self::V2_30 => false,
            Self::V2_35 => true,
        }
    }
}

/// Writes a document as a NewsML-G2 message in UTF-8.
///
/// `document` is an object of schema 1.6; unknown properties become extension properties. `rights` are
/// stated where it says nothing and the version has a place for them. `out` receives many small writes, so pass memory
/// or a buffered writer. Takes linear time.
///
/// Fails only if writing to `out` fails.
///
/// Contract files-1, files-2, files-3.
pub fn newsml<W: io::Write>(
    document: &Value,
    rights: &DocumentRights,
    message: &MessageHeader<'_>,
    mut out: W,
) -> io::Result<()> {
    package::write(document, rights, message, &mut out)
}

#[cfg(test)]
mod tests;
