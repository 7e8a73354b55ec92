//! NewsML-G2 2.30 of a document: what `.json` says, `.xml` says.
//!
//! A message holds a `packageItem`, the document's own item and one item per association, also of
//! associations within associations. Which property stands where is in [`PROPERTIES`]; what the
//! standard has no place for stands in an extension property (`extension`). Characters that XML
//! 1.0 cannot carry (C0 controls other than tab and line ends, U+FFFE, U+FFFF) are left out.

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
/// `document` is an object of schema 1.6; what it holds beyond that becomes extension properties.
/// `out` gets many small writes: give it memory or a buffer. Linear in the document.
///
/// Fails only when `out` does.
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
