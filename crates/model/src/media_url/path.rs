//! Defines media paths and their targets, and prints them.

use std::fmt;

use imaging::ImageFormat;

use crate::media_url::error::PathError;
use crate::media_url::extension::{DocumentExtension, FileExtension};
use crate::media_url::operation::{OperationList, PictureOperation};
use crate::{
    AssociationKey, CropSpec, ItemKey, RenditionExtension, RenditionName, RenditionUsage,
};

/// The third part of the path to an item's licences.
pub(super) const PRICELIST: &str = "pricelist";

/// A parsed media URL, below `/media/`.
///
/// A path from [`MediaPath::parse`] or from a constructor prints to a text that parses to an equal value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaPath {
    pub(super) key: ItemKey,
    pub(super) target: MediaTarget,
}

/// The part or form of the item that a media path names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MediaTarget {
    /// The item itself, for the customer web site or a delivery. The crop of a stored `uri`, in pixels of the
    /// item's Hires image, is preserved.
    Item(Option<CropSpec>),
    /// The licences available to the caller.
    Pricelist,
    /// An image, a printable graphic or a video.
    Rendition(RenditionFile),
    /// A document generated from the whole item.
    Document(DocumentFile),
}

/// A rendition of the item, or of an object associated with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RenditionFile {
    /// The associated object; `None` for the item's own rendition.
    pub association: Option<AssociationKey>,
    operations: OperationList,
    /// The name of the rendition, which is Normal Hires for a URL without a suffix (contract media-3).
    pub name: RenditionName,
    pub extension: RenditionExtension,
}

impl RenditionFile {
    /// Returns the operations in the order of application; only pictures have operations.
    pub fn operations(&self) -> &[PictureOperation] {
        self.operations.as_slice()
    }

    /// Reports whether this is a Hires without an operation, which exists only in the format of its original.
    pub fn is_whole_hires(&self) -> bool {
        self.name.usage == RenditionUsage::Hires && self.operations().is_empty()
    }
}

/// A document generated from the whole item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DocumentFile {
    pub extension: DocumentExtension,
    /// The crop, in pixels of the item's Hires image; only a `.json` has one.
    pub crop: Option<CropSpec>,
}

impl MediaPath {
    /// The maximum length of a path in bytes; the longest canonical path has fewer than 400.
    pub const BYTES_MAX: usize = 1024;

    /// Prints the canonical spelling, like `to_string`.
    pub fn print(&self) -> String {
        self.to_string()
    }

    /// Builds the path of a rendition of an item.
    pub fn rendition(key: ItemKey, name: RenditionName, extension: RenditionExtension) -> Self {
        let operations = OperationList::default();
        let file = RenditionFile { association: None, operations, name, extension };
        Self { key, target: MediaTarget::Rendition(file) }
    }

    /// Builds the path of a rendition of an object associated with an item.
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

    /// Builds the path of a document generated from an item.
    pub fn document(key: ItemKey, extension: DocumentExtension) -> Self {
        Self { key, target: MediaTarget::Document(DocumentFile { extension, crop: None }) }
    }

    /// Returns the path with one more operation, applied after the existing ones.
    ///
    /// Fails with [`PathError::RepeatedOperation`], with [`PathError::OperationNotAllowed`] (pictures accept
    /// operations, a `.json` and the item itself accept only a crop), with [`PathError::MissingExtension`], or
    /// like [`OperationList::push`].
    pub fn with_operation(mut self, operation: PictureOperation) -> Result<Self, PathError> {
        match &mut self.target {
            MediaTarget::Item(crop) => match operation {
                PictureOperation::Crop(_) if crop.is_some() => {
                    return Err(operation.repeated_error());
                }
                PictureOperation::Crop(spec) => *crop = Some(spec),
                // The URI of an item may have the crop of its stored `uri`, but a watermark or size needs a
                // picture.
                PictureOperation::Watermark | PictureOperation::Resize(_) => {
                    return Err(missing_extension(&operation));
                }
            },
            MediaTarget::Pricelist => return Err(missing_extension(&operation)),
            MediaTarget::Rendition(file) if file.extension.is_image() => {
                file.operations.push(operation)?;
            }
            // Only an image can be cropped and watermarked (contract media-19).
            MediaTarget::Rendition(file) => {
                return Err(operation.not_allowed_error(FileExtension::Rendition(file.extension)));
            }
            MediaTarget::Document(file) => file.add(&operation)?,
        }
        Ok(self)
    }

    /// Returns the key of the item.
    pub fn key(&self) -> &ItemKey {
        &self.key
    }

    /// Returns the requested part or form of the item.
    pub fn target(&self) -> &MediaTarget {
        &self.target
    }

    /// Returns the path of the same picture in the format `format`. Paths of other files stay unchanged, and so
    /// does a Hires without an operation.
    #[must_use]
    pub fn with_image_format(mut self, format: ImageFormat) -> Self {
        if let MediaTarget::Rendition(file) = &mut self.target
            && file.extension.is_image()
            && !file.is_whole_hires()
        {
            file.extension = RenditionExtension::Image(format);
        }
        self
    }
}

fn missing_extension(operation: &PictureOperation) -> PathError {
    PathError::MissingExtension { found: operation.name().to_owned() }
}

impl DocumentFile {
    /// Adds a crop to a `.json`. Refuses other operations and crops of other documents.
    fn add(&mut self, operation: &PictureOperation) -> Result<(), PathError> {
        match operation {
            PictureOperation::Crop(_) if self.crop.is_some() => Err(operation.repeated_error()),
            PictureOperation::Crop(crop) if self.extension.accepts_crop() => {
                self.crop = Some(*crop);
                Ok(())
            }
            PictureOperation::Crop(_)
            | PictureOperation::Watermark
            | PictureOperation::Resize(_) => {
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
            MediaTarget::Pricelist => write!(f, "/{PRICELIST}"),
            MediaTarget::Rendition(file) => write!(f, "{file}"),
            MediaTarget::Document(file) => write!(f, "{file}"),
        }
    }
}

impl fmt::Display for RenditionFile {
    /// Prints the text that follows the id.
    ///
    /// Omits the suffix of an item's Normal Hires `.pdf` and `.eps`, as in the contract, and prints it for all
    /// other renditions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(association) = &self.association {
            write!(f, "/{association}")?;
        }
        for operation in self.operations() {
            write!(f, "{operation}")?;
        }
        let is_print_file =
            matches!(self.extension, RenditionExtension::Pdf | RenditionExtension::Eps);
        let has_short_form = is_print_file && self.association.is_none();
        if !(has_short_form && self.name == RenditionName::NORMAL_HIRES) {
            write!(f, "_{}", self.name)?;
        }
        f.write_str(self.extension.as_str())
    }
}

impl fmt::Display for DocumentFile {
    /// Prints the text that follows the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(crop) = self.crop {
            write!(f, "{crop}")?;
        }
        f.write_str(self.extension.as_str())
    }
}
