//! Writes a document as NewsML-G2, so that `.xml` has the same data as `.json`.
//!
//! A message contains a `packageItem`, the document's own item and one item per association, including nested
//! associations. [`PROPERTIES`] lists the place of each property; properties without a place in the standard are
//! written as extension properties (`extension`). Version 2.35 adds rights and provenance to 2.30 and changes
//! nothing else (`rights`). Characters that XML 1.0 cannot represent (C0 controls other than tab and line ends,
//! U+FFFE, U+FFFF) are removed.

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

pub use package::newsml;
pub use properties::{PROPERTIES, PropertyPlacement};

#[cfg(test)]
pub(super) use codes::SCHEMES;
#[cfg(test)]
pub(super) use concepts::SUBJECTS;

use serde_json::{Map, Value};
use strum::{EnumIter, EnumString, IntoStaticStr, VariantNames};

/// A version of the standard.
///
/// Some clients compare the version in a message with the version that they know, so the older version stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[derive(EnumIter, EnumString, IntoStaticStr, VariantNames)]
pub enum NewsmlVersion {
    /// Without rights and provenance except the properties of the document.
    #[strum(serialize = "2.30")]
    V2_30,
    /// With `digitalSourceType` and `dataMining`.
    #[default]
    #[strum(serialize = "2.35")]
    V2_35,
}

model::impl_as_str!(NewsmlVersion);

/// The parts of a NewsML-G2 message that are not in the document.
#[derive(Debug, Clone, Copy)]
pub struct MessageHeader<'a> {
    /// The time at which the message is sent, RFC 3339. Use a time stored with the document, so that the bytes and
    /// the entity tag are the same for every request.
    pub sent: &'a str,
    /// The sender: the agency's name. It is also the `provider` of every item.
    pub sender: &'a str,
    /// The version of the standard that the message follows.
    pub version: NewsmlVersion,
}

/// Returns the text of a member of an object, which may be empty.
fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
