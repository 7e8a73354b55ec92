//! Operations on a picture, in the order written.

use std::fmt;

use crate::media_url::error::PathError;
use crate::media_url::extension::FileExtension;
use crate::{CropSpec, token};

/// One operation on a picture.
///
/// Contract media-13, media-17, media-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PictureOperation {
    /// Crops to a rectangle, in pixels of the rendition that the path names.
    Crop(CropSpec),
    /// Adds a watermark in the lower left corner.
    Watermark,
}

impl PictureOperation {
    /// Returns the name in URLs, without parameters: `-crop` or `-watermark`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crop(_) => token::CROP,
            Self::Watermark => token::WATERMARK,
        }
    }

    /// Builds the error for an extension that does not accept this operation.
    pub(crate) fn not_allowed_error(self, extension: FileExtension) -> PathError {
        PathError::OperationNotAllowed { operation: self.name(), extension }
    }

    /// Builds the error for a repetition of this operation.
    pub(crate) fn repeated_error(self) -> PathError {
        PathError::RepeatedOperation { operation: self.name() }
    }
}

impl fmt::Display for PictureOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crop(crop) => write!(f, "{crop}"),
            Self::Watermark => f.write_str(token::WATERMARK),
        }
    }
}

/// A list of operations in the order of application, at most one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationList(Vec<PictureOperation>);

impl OperationList {
    /// Returns the operations in the order of application.
    pub fn as_slice(&self) -> &[PictureOperation] {
        &self.0
    }

    /// Appends an operation, to be applied last.
    ///
    /// Fails with [`PathError::RepeatedOperation`].
    pub fn push(&mut self, operation: PictureOperation) -> Result<(), PathError> {
        if self.0.iter().any(|existing| existing.name() == operation.name()) {
            return Err(operation.repeated_error());
        }
        self.0.push(operation);
        Ok(())
    }
}
