//! The grammar of media URLs: parse and print, without looking anything up.
//!
//! A [`MediaPath`] is what follows `/media/`:
//!
//! ```text
//! <mediaType>/<id>[-crop_…]                                          the item
//! <mediaType>/<id>[-crop_…]/pricelist                                its licences
//! <mediaType>/<id>[-<operation>…][_<variant><usage>].<extension>     a file of it
//! <mediaType>/<id>/<association>[-<operation>…]_<variant><usage>.<extension>
//! ```
//!
//! Names are read from the right: extension, suffix, operations; what is left is the id or the
//! association. Only what is known is taken off (see [`token`](crate::token)), because ids
//! hold `-` and `_`. Operations stay in the order written, at most one of each. Names match
//! without regard to case, ids and `pricelist` do not.
//!
//! A parsed path holds meaning, not spelling: `x.jpg` and `x_normalhires.JPG` are equal and print
//! alike. Whether the item exists, and what the caller may have, is decided elsewhere.
//!
//! Contract media-1.

mod error;
mod extension;
mod format;
mod operation;
mod parse;

use std::fmt;

pub use crate::media_url::error::PathError;
pub use crate::media_url::extension::{DocumentExtension, FileExtension};
pub use crate::media_url::format::{FormatError, MediaFormat};
pub use crate::media_url::operation::{OperationList, PictureOperation};
pub use crate::{AssociationKey, AssociationKeyError, RenditionExtension};
use crate::{CropSpec, ItemKey, RenditionName};

/// What a media URL asks for, below `/media/`.
///
/// Made by [`MediaPath::parse`] or by the constructors, it always prints to a path that parses to
/// an equal value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaPath {
    key: ItemKey,
    target: MediaTarget,
}

/// What of the item a media path names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MediaTarget {
    /// The item itself: the customer web site, or a delivery. The crop of a stored `uri`, in pixels of the
    /// item's hires image, stays on it.
    Item(Option<CropSpec>),
    /// The licences that the caller could use.
    Pricelist,
    /// A picture, a printable graphic or a video.
    Rendition(RenditionFile),
    /// A document made from the item as a whole.
    Document(DocumentFile),
}

/// A rendition of the item, or of an object associated with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RenditionFile {
    association: Option<AssociationKey>,
    operations: OperationList,
    name: RenditionName,
    extension: RenditionExtension,
}

impl RenditionFile {
    /// The associated object; `None` is the item's own rendition.
    pub fn association(&self) -> Option<&AssociationKey> {
        self.association.as_ref()
    }

    /// The operations in the order in which they apply; only a `.jpg` has any.
    pub fn operations(&self) -> &[PictureOperation] {
        self.operations.as_slice()
    }

    /// The rendition; a URL without a suffix means the Normal Hires.
    ///
    /// Without a suffix it is the Normal Hires (contract media-3).
    pub fn name(&self) -> RenditionName {
        self.name
    }

    /// The extension.
    pub fn extension(&self) -> RenditionExtension {
        self.extension
    }
}

/// A document made from the item as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DocumentFile {
    extension: DocumentExtension,
    crop: Option<CropSpec>,
}

impl DocumentFile {
    /// The extension.
    pub fn extension(self) -> DocumentExtension {
        self.extension
    }

    /// The crop, in pixels of the item's hires image; only a `.json` has one.
    pub fn crop(self) -> Option<CropSpec> {
        self.crop
    }
}

impl MediaPath {
    /// The most bytes of a path that are looked at; the longest canonical path has fewer than 400.
    pub const BYTES_MAX: usize = 1024;

    /// Parses the raw path below `/media/`, without query; nothing is percent-decoded.
    ///
    /// Fails with [`PathError`], which names the part that is wrong.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        parse::parse(path)
    }

    /// Prints the canonical spelling; the same as `to_string`.
    pub fn print(&self) -> String {
        self.to_string()
    }

    /// The path of an item itself.
    pub fn item(key: ItemKey) -> Self {
        Self { key, target: MediaTarget::Item(None) }
    }

    /// The path of an item's licences.
    pub fn pricelist(key: ItemKey) -> Self {
        Self { key, target: MediaTarget::Pricelist }
    }

    /// The path of a rendition of an item.
    pub fn rendition(key: ItemKey, name: RenditionName, extension: RenditionExtension) -> Self {
        let operations = OperationList::default();
        let file = RenditionFile { association: None, operations, name, extension };
        Self { key, target: MediaTarget::Rendition(file) }
    }

    /// The path of a rendition of an object associated with an item.
    pub fn association(
        key: ItemKey,
        association: AssociationKey,
        name: RenditionName,
        extension: RenditionExtension,
    ) -> Self {
        let operations = OperationList::default();
        let file = RenditionFile { association: Some(association), operations, name, extension };
        Self { key, target: MediaTarget::Rendition(file) }
    }

    /// The path of a document made from an item.
    pub fn document(key: ItemKey, extension: DocumentExtension) -> Self {
        Self { key, target: MediaTarget::Document(DocumentFile { extension, crop: None }) }
    }

    /// The same path with one more operation, behind those that it has.
    ///
    /// Fails with [`PathError::RepeatedOperation`], [`PathError::OperationNotAllowed`] (anything but
    /// a `.jpg`, and a crop of a `.json` and of the item itself) or [`PathError::MissingExtension`].
    pub fn with_operation(mut self, operation: PictureOperation) -> Result<Self, PathError> {
        match &mut self.target {
            MediaTarget::Item(crop) => match operation {
                PictureOperation::Crop(_) if crop.is_some() => {
                    return Err(operation.repeated_error());
                }
                PictureOperation::Crop(spec) => *crop = Some(spec),
                PictureOperation::Watermark => return Err(missing_extension(operation)),
            },
            MediaTarget::Pricelist => return Err(missing_extension(operation)),
            MediaTarget::Rendition(file) if file.extension.accepts_operations() => {
                file.operations.push(operation)?;
            }
            MediaTarget::Rendition(file) => {
                return Err(operation.not_allowed_error(FileExtension::Rendition(file.extension)));
            }
            MediaTarget::Document(file) => file.add(operation)?,
        }
        Ok(self)
    }

    /// The item.
    pub fn key(&self) -> &ItemKey {
        &self.key
    }

    /// What of the item is asked for.
    pub fn target(&self) -> &MediaTarget {
        &self.target
    }
}

fn missing_extension(operation: PictureOperation) -> PathError {
    PathError::MissingExtension { found: operation.name().to_owned() }
}

impl DocumentFile {
    /// Adds a crop; no other operation, and only to a `.json`.
    fn add(&mut self, operation: PictureOperation) -> Result<(), PathError> {
        match operation {
            PictureOperation::Crop(_) if self.crop.is_some() => Err(operation.repeated_error()),
            PictureOperation::Crop(crop) if self.extension.accepts_crop() => {
                self.crop = Some(crop);
                Ok(())
            }
            PictureOperation::Crop(_) | PictureOperation::Watermark => {
                Err(operation.not_allowed_error(FileExtension::Document(self.extension)))
            }
        }
    }
}

impl fmt::Display for MediaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        match &self.target {
            MediaTarget::Item(None) => Ok(()),
            MediaTarget::Item(Some(crop)) => write!(f, "{crop}"),
            MediaTarget::Pricelist => write!(f, "/{}", parse::PRICELIST),
            MediaTarget::Rendition(file) => write!(f, "{file}"),
            MediaTarget::Document(file) => write!(f, "{file}"),
        }
    }
}

impl fmt::Display for RenditionFile {
    /// What follows the id.
    ///
    /// The suffix is left out of an item's Normal Hires `.pdf` and `.eps`, as the contract
    /// lists them, and written everywhere else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(association) = &self.association {
            write!(f, "/{association}")?;
        }
        for operation in self.operations() {
            write!(f, "{operation}")?;
        }
        let bare = match self.extension {
            RenditionExtension::Pdf | RenditionExtension::Eps => self.association.is_none(),
            RenditionExtension::Image(_) | RenditionExtension::Mp4 => false,
        };
        if !(bare && self.name == RenditionName::NORMAL_HIRES) {
            write!(f, "_{}", self.name)?;
        }
        f.write_str(self.extension.as_str())
    }
}

impl fmt::Display for DocumentFile {
    /// What follows the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(crop) = self.crop {
            write!(f, "{crop}")?;
        }
        f.write_str(self.extension.as_str())
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
