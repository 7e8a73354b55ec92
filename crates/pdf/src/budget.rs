//! Tracks the remaining budget of work for one document.

use crate::{PdfError, PdfLimits};

/// The remaining budget of one call, which starts with [`PdfLimits`].
#[derive(Debug)]
pub(super) struct WorkBudget {
    limits: PdfLimits,
    decoded_bytes: usize,
    operators: u64,
    steps: u64,
}

/// Steps of tint and shading functions allowed per operator.
const STEPS_PER_OPERATOR: u64 = 32;

impl WorkBudget {
    pub(super) fn new(limits: &PdfLimits) -> WorkBudget {
        WorkBudget {
            limits: *limits,
            decoded_bytes: limits.decoded_bytes,
            operators: limits.operators,
            steps: limits.operators.saturating_mul(STEPS_PER_OPERATOR),
        }
    }

    /// Returns the maximum nesting depth.
    pub(super) fn depth_max(&self) -> usize {
        self.limits.depth
    }

    /// Returns the number of bytes to which streams may still decompress.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Spends `bytes` of decompressed data.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), PdfError> {
        match self.decoded_bytes.checked_sub(bytes) {
            Some(rest) => {
                self.decoded_bytes = rest;
                Ok(())
            }
            None => Err(PdfError::TooMuchData { max: self.limits.decoded_bytes }),
        }
    }

    /// Spends one operator of a content stream.
    pub(super) fn take_operation(&mut self) -> Result<(), PdfError> {
        match self.operators.checked_sub(1) {
            Some(rest) => {
                self.operators = rest;
                Ok(())
            }
            None => Err(PdfError::TooManyOperators { max: self.limits.operators }),
        }
    }

    /// Spends `steps` of function evaluation.
    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), PdfError> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.steps.checked_sub(steps) {
            Some(rest) => {
                self.steps = rest;
                Ok(())
            }
            // The steps follow from the limit on operators, so the error names that limit.
            None => Err(PdfError::TooManyOperators { max: self.limits.operators }),
        }
    }

    /// Refuses an image with too many pixels.
    pub(super) fn check_image(&self, width: usize, height: usize) -> Result<(), PdfError> {
        let width = u64::try_from(width).unwrap_or(u64::MAX);
        let height = u64::try_from(height).unwrap_or(u64::MAX);
        let max = self.limits.image_pixels;
        if width.saturating_mul(height) > max || width > EDGE_MAX || height > EDGE_MAX {
            return Err(PdfError::ImageTooLarge { width, height, max });
        }
        Ok(())
    }
}

/// The maximum width or height of an image in pixels, which bounds the size of a row.
const EDGE_MAX: u64 = 1 << 20;
