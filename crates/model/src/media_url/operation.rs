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
    /// Cuts a rectangle, in pixels of the rendition that the path names.
    Crop(CropSpec),
    /// Inserts the mark in the lower left corner.
    Watermark,
}

impl PictureOperation {
    /// The operation's name as it stands in URLs, without parameters: `-crop` or `-watermark`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crop(_) => token::CROP,
            Self::Watermark => token::WATERMARK,
        }
    }

    /// The refusal of this operation before an extension that does not take it.
    pub(crate) fn not_allowed_error(self, extension: FileExtension) -> PathError {
        PathError::OperationNotAllowed { operation: self.name(), extension }
    }

    /// The refusal of this operation when it is already there.
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

/// Operations in the order in which they apply, at most one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationList(Vec<PictureOperation>);

impl OperationList {
    /// The operations, first applied first.
    pub fn as_slice(&self) -> &[PictureOperation] {
        &self.0
    }

    /// Adds an operation that applies last.
    ///
    /// Fails with [`PathError::RepeatedOperation`].
    pub fn push(&mut self, operation: PictureOperation) -> Result<(), PathError> {
        if self.0.iter().any(|known| known.name() == operation.name()) {
            return Err(operation.repeated_error());
        }
        self.0.push(operation);
        Ok(())
    }
}
