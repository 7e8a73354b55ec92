//! Writes a document as NewsML-G2 2.30, so that `.xml` has the same data as `.json`.
//!
//! A message contains a `packageItem`, the document's own item and one item per association, including nested
//! associations. [`PROPERTIES`] lists the place of each property; properties that have none in the standard
//! are written as extension properties (`extension`). Characters that XML 1.0 cannot represent (C0 controls
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

use super::MessageHeader;
use serde_json::Value;
use std::io;

/// Writes a document as a NewsML-G2 message in UTF-8.
///
/// `document` is an object of schema 1.6; unknown properties become extension properties. `out` receives many
/// small writes, so pass memory or a buffered writer. Takes linear time.
///
/// Fails only if writing to `out` fails.
///
/// Contract files-1, files-2, files-3.
pub fn newsml<W: io::Write>(
    document: &Value,
    message: &MessageHeader<'_>,
    mut out: W,
) -> io::Result<()> {
    package::write(document, message, &mut out)
}

#[cfg(test)]
mod tests;
