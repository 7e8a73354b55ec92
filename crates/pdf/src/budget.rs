//! What one document may still cost.

use crate::{PdfError, PdfLimits};

/// The rest of what [`PdfLimits`] allows for one call.
#[derive(Debug)]
pub(super) struct WorkBudget {
    limits: PdfLimits,
    decoded_bytes: usize,
    operators: u64,
    steps: u64,
}

/// Steps of tint and shading functions that are allowed for each operator.
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

    /// Deepest nesting that is followed.
    pub(super) fn depth_max(&self) -> usize {
        self.limits.depth
    }

    /// Bytes that streams may still unpack to.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Takes `bytes` of unpacked data.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), PdfError> {
        match self.decoded_bytes.checked_sub(bytes) {
            Some(rest) => {
                self.decoded_bytes = rest;
                Ok(())
            }
            None => Err(PdfError::TooMuchData { max: self.limits.decoded_bytes }),
        }
    }

    /// Takes one operator of a content stream.
    pub(super) fn take_operation(&mut self) -> Result<(), PdfError> {
        match self.operators.checked_sub(1) {
            Some(rest) => {
                self.operators = rest;
                Ok(())
            }
            None => Err(PdfError::TooManyOperators { max: self.limits.operators }),
        }
    }

    /// Takes `steps` of function evaluation.
    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), PdfError> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.steps.checked_sub(steps) {
            Some(rest) => {
                self.steps = rest;
                Ok(())
            }
            None => Err(PdfError::TooManyOperators { max: self.limits.operators }),
        }
    }

    /// Refuses an image that has too many pixels.
    pub(super) fn check_image(&self, width: usize, height: usize) -> Result<(), PdfError> {
        let wide = u64::try_from(width).unwrap_or(u64::MAX);
        let high = u64::try_from(height).unwrap_or(u64::MAX);
        let max = self.limits.image_pixels;
        if wide.saturating_mul(high) > max || wide > EDGE_MAX || high > EDGE_MAX {
            return Err(PdfError::ImageTooLarge { width: wide, height: high, max });
        }
        Ok(())
    }
}

/// Longest edge of an image in pixels, so that a row of many components stays small.
const EDGE_MAX: u64 = 1 << 20;
