//! Operations on a picture, in the order written.

use std::fmt;

use crate::media_url::error::PathError;
use crate::media_url::extension::Extension;
use crate::{CropSpec, token};

/// One operation on a picture.
///
/// Contract media-13, media-17, media-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Cuts a rectangle, in pixels of the rendition that the path names.
    Crop(CropSpec),
    /// Inserts the mark in the lower left corner.
    Watermark,
}

impl Operation {
    /// The operation's name as it stands in URLs, without parameters: `-crop` or `-watermark`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crop(_) => token::CROP,
            Self::Watermark => token::WATERMARK,
        }
    }

    /// The refusal of this operation before an extension that does not take it.
    pub(crate) fn not_taken(self, extension: Extension) -> PathError {
        PathError::OperationNotTaken { operation: self.name(), extension }
    }

    /// The refusal of this operation when it is already there.
    pub(crate) fn repeated(self) -> PathError {
        PathError::RepeatedOperation { operation: self.name() }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crop(crop) => write!(f, "{crop}"),
            Self::Watermark => f.write_str(token::WATERMARK),
        }
    }
}

/// Operations in the order in which they apply, at most one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operations(Vec<Operation>);

impl Operations {
    /// The operations, first applied first.
    pub fn as_slice(&self) -> &[Operation] {
        &self.0
    }

    /// Adds an operation that applies last.
    ///
    /// Fails with [`PathError::RepeatedOperation`].
    pub fn push(&mut self, operation: Operation) -> Result<(), PathError> {
        if self.0.iter().any(|known| known.name() == operation.name()) {
            return Err(operation.repeated());
        }
        self.0.push(operation);
        Ok(())
    }
}
