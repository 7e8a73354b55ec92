//! The grammar of media URLs. This module parses and prints them, without any look-up.
//!
//! A [`MediaPath`] is the part of a URL that follows `/media/`:
//!
//! ```text
//! <mediaType>/<id>[-crop_…]                                          the item
//! <mediaType>/<id>[-crop_…]/pricelist                                its licences
//! <mediaType>/<id>[-<operation>…][_<variant><usage>].<extension>     a file of it
//! <mediaType>/<id>/<association>[-<operation>…]_<variant><usage>.<extension>
//! ```
//!
//! Names are parsed from the right: extension, suffix, operations; the rest is the id or the association. Only
//! known tokens are stripped (see [`token`](crate::token)), because ids may contain `-` and `_`. Operations keep
//! their order, at most one of each. Names are matched ignoring case, ids and `pricelist` exactly.
//!
//! Equality of parsed paths ignores spelling: `x.jpg` and `x_normalhires.JPG` are equal and print alike. A path
//! does not imply that the item exists, or that the caller may have it.
//!
//! Contract media-1.

mod error;
mod extension;
mod format;
mod operation;
mod parse;
mod path;

pub use crate::media_url::error::PathError;
pub use crate::media_url::extension::{DocumentExtension, FileExtension};
pub use crate::media_url::format::{FormatError, MediaFormat};
pub use crate::media_url::operation::{OperationList, PictureOperation};
pub use crate::media_url::path::{DocumentFile, MediaPath, MediaTarget, RenditionFile};
pub use crate::{AssociationKey, AssociationKeyError, RenditionExtension};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
