//! Operations on a picture, in the order of the URL.

use std::fmt;

use crate::media_url::error::PathError;
use crate::media_url::extension::FileExtension;
use crate::{CropSpec, ResizeSpec, token};

/// One operation on a picture.
///
/// Contract media-13, media-17, media-18.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PictureOperation {
    /// Crops to a rectangle, in pixels of the rendition named by the path.
    Crop(CropSpec),
    /// Adds a watermark in the lower left corner.
    Watermark,
    /// Scales to a different size.
    Resize(ResizeSpec),
}

impl PictureOperation {
    /// Returns the name in URLs, without parameters, such as `-crop`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Crop(_) => token::CROP,
            Self::Watermark => token::WATERMARK,
            Self::Resize(resize) => resize.name(),
        }
    }

    /// Builds the error for an extension that does not accept this operation.
    pub(crate) fn not_allowed_error(&self, extension: FileExtension) -> PathError {
        PathError::OperationNotAllowed { operation: self.name(), extension }
    }

    /// Builds the error for a repetition of this operation.
    pub(crate) fn repeated_error(&self) -> PathError {
        PathError::RepeatedOperation { operation: self.name() }
    }
}

impl fmt::Display for PictureOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crop(crop) => write!(f, "{crop}"),
            Self::Watermark => f.write_str(token::WATERMARK),
            Self::Resize(resize) => write!(f, "{resize}"),
        }
    }
}

/// A list of operations in the order of application: at most one crop, one watermark and one size.
///
/// The list is canonical: a watermark comes after a size, because it is always drawn on the scaled picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationList(Vec<PictureOperation>);

impl OperationList {
    /// Returns the operations in the order of application.
    pub fn as_slice(&self) -> &[PictureOperation] {
        &self.0
    }

    /// Appends an operation, which is applied last.
    ///
    /// Fails with [`PathError::RepeatedOperation`], [`PathError::SecondSize`], [`PathError::CropAfterSize`] or
    /// [`PathError::BesidePreset`].
    pub fn push(&mut self, operation: PictureOperation) -> Result<(), PathError> {
        if self.0.iter().any(|existing| existing.name() == operation.name()) {
            return Err(operation.repeated_error());
        }
        let size = self.0.iter().find_map(|existing| match existing {
            PictureOperation::Resize(resize) => Some(resize),
            PictureOperation::Crop(_) | PictureOperation::Watermark => None,
        });
        match (&operation, size) {
            (PictureOperation::Resize(second), Some(first)) => {
                return Err(PathError::SecondSize { first: first.name(), second: second.name() });
            }
            // A crop is in pixels of the named rendition; a size before it would change those pixels.
            (PictureOperation::Crop(_), Some(size)) => {
                return Err(PathError::CropAfterSize { size: size.name() });
            }
            // The preset defines whether there is a watermark.
            (PictureOperation::Watermark, Some(ResizeSpec::Preset(_))) => {
                return Err(PathError::BesidePreset { operation: operation.name() });
            }
            (PictureOperation::Resize(ResizeSpec::Preset(_)), None)
                if self.0.contains(&PictureOperation::Watermark) =>
            {
                return Err(PathError::BesidePreset { operation: token::WATERMARK });
            }
            _ => {}
        }
        let is_size = matches!(operation, PictureOperation::Resize(_));
        let at = match self.0.last() {
            Some(PictureOperation::Watermark) if is_size => self.0.len() - 1,
            _ => self.0.len(),
        };
        self.0.insert(at, operation);
        Ok(())
    }
}
