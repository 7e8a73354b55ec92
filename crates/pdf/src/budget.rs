//! Counts down the work that one call of this library may still do.
//!
//! A hostile PDF of a few kilobytes can ask for unlimited work: streams that decompress to gigabytes, or a function
//! that is evaluated for every colour of a page. So each call begins with a [`WorkBudget`] made of its [`PdfLimits`],
//! and pays for its work as it goes along:
//!
//! - a **byte** for each byte of a decompressed stream or decoded image,
//! - an **operator** for each operator of a content stream, and for other pieces of similar size, such as a vertex,
//! - a **step** for each step of a function, for example of a tint.
//!
//! An amount is spent for good, whichever stream or page it was for. Once one does not suffice, the call ends with an
//! error that names the limit. Limits that do not add up, on the size of an image and on nesting, are only compared.

use crate::{PdfError, PdfLimits};

/// Steps of functions for each operator of [`PdfLimits::operators`]: enough for a function of a few dozen steps at every
/// operator, although most operators need none.
const STEPS_PER_OPERATOR: u64 = 32;

/// The maximum width or height of an image in pixels, which bounds the memory for a row.
const EDGE_MAX: u64 = 1 << 20;

/// The amounts that one call may still spend, and its other limits.
#[derive(Debug)]
pub(super) struct WorkBudget {
    /// The limits at the start of the call, which errors name.
    limits: PdfLimits,
    decoded_bytes: usize,
    operators: u64,
    steps: u64,
}

impl WorkBudget {
    /// Creates the budget of a call, of which nothing has been spent.
    pub(super) fn new(limits: &PdfLimits) -> WorkBudget {
        WorkBudget {
            limits: *limits,
            decoded_bytes: limits.decoded_bytes,
            operators: limits.operators,
            steps: limits.operators.saturating_mul(STEPS_PER_OPERATOR),
        }
    }

    /// Spends `bytes` of decoded data.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), PdfError> {
        let rest = self.decoded_bytes.checked_sub(bytes);
        self.decoded_bytes =
            rest.ok_or(PdfError::TooMuchData { max: self.limits.decoded_bytes })?;
        Ok(())
    }

    /// Returns the number of bytes of decoded data that can still be spent, so that decoders can stop in time.
    pub(super) fn remaining_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Spends one operator of a content stream, or a piece of similar size.
    pub(super) fn take_operator(&mut self) -> Result<(), PdfError> {
        let rest = self.operators.checked_sub(1);
        self.operators = rest.ok_or_else(|| self.too_many_operators())?;
        Ok(())
    }

    /// Spends `steps` of functions.
    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), PdfError> {
        let rest = self.steps.checked_sub(u64::try_from(steps).unwrap_or(u64::MAX));
        // The number of steps follows from the limit on operators, so the error names that limit.
        self.steps = rest.ok_or_else(|| self.too_many_operators())?;
        Ok(())
    }

    fn too_many_operators(&self) -> PdfError {
        PdfError::TooManyOperators { max: self.limits.operators }
    }

    /// Refuses an image that has too many pixels or is too wide or high, before memory is allocated for it.
    pub(super) fn check_image(&self, width: usize, height: usize) -> Result<(), PdfError> {
        let width = u64::try_from(width).unwrap_or(u64::MAX);
        let height = u64::try_from(height).unwrap_or(u64::MAX);
        let max = self.limits.image_pixels;
        if width.saturating_mul(height) > max || width > EDGE_MAX || height > EDGE_MAX {
            return Err(PdfError::ImageTooLarge { width, height, max });
        }
        Ok(())
    }

    /// Refuses an object at the nesting level `depth` beyond the limit; `what` names its kind in the error, such as a
    /// function.
    pub(super) fn check_depth(&self, depth: usize, what: &'static str) -> Result<(), PdfError> {
        let max = self.limits.depth;
        if depth > max { Err(PdfError::TooDeep { what, max }) } else { Ok(()) }
    }
}
