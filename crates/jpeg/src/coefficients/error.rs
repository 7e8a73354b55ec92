//! Defines the errors of reading and changing coefficients.

use geometry::Size;
use thiserror::Error;

use crate::header_error::HeaderError;

/// The reason why the coefficients of a file could not be read or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CoefficientError {
    /// The markers of the file cannot be read or exceed a limit.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The coding process is arithmetic, lossless or hierarchical.
    #[error("it is not coded with Huffman codes as a sequential or progressive picture")]
    Process,
    /// The samples do not have 8 bits.
    #[error("its samples do not have 8 bits")]
    Precision,
    /// An MCU of all components has more than ten blocks, or the operation needs sampling factors that divide each
    /// other.
    #[error("its sampling is unusual")]
    Sampling,
    /// The picture has more pixels than allowed.
    #[error("{size} image, more than {pixels_max} pixels")]
    TooLarge {
        /// The size that the file declares.
        size: Size,
        /// The maximum number of pixels that is allowed.
        pixels_max: u64,
    },
    /// A table is missing or broken.
    #[error("a table is missing or damaged")]
    Tables,
    /// A scan has parameters that the format does not allow, or that do not continue the scans before it.
    #[error("scan {scan} does not continue the scans before it")]
    Script {
        /// The number of the scan, counted from 0.
        scan: u32,
    },
    /// The entropy-coded data of a scan violates a rule of the format or ends early.
    #[error("scan {scan} is damaged")]
    Damaged {
        /// The number of the scan, counted from 0.
        scan: u32,
    },
    /// A coefficient is outside the range of 8-bit pictures.
    #[error("a coefficient is out of range")]
    Range,
    /// The scans leave out coefficients or bits of coefficients.
    #[error("its scans do not hold all coefficients")]
    Incomplete,
    /// The file has 4 GiB or more.
    #[error("the file is too long")]
    Length,
    /// The region is empty or extends beyond the picture.
    #[error("the region leaves the picture")]
    Outside,
    /// The caller cancelled the work.
    #[error("the work was stopped")]
    Stopped,
}
