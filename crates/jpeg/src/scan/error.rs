//! Defines the errors of random access to a scan.

use strum::IntoStaticStr;
use thiserror::Error;

/// The reason why random access to a scan failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ScanError {
    /// The coding process is progressive, arithmetic, lossless or hierarchical.
    #[error("it is not coded as a single baseline scan")]
    Process,
    /// The samples do not have 8 bits.
    #[error("its samples do not have 8 bits")]
    Precision,
    /// The file has several scans, or the scan lacks components or orders them differently from the frame.
    #[error("its components lie in several scans")]
    Scans,
    /// An MCU has more than ten blocks, or the sampling factors do not divide each other.
    #[error("its sampling is unusual")]
    Sampling,
    /// A table is missing, broken, or has no code for a symbol that must be written.
    #[error("a table is missing, damaged or too small")]
    Tables,
    /// The entropy-coded data violates a rule of the format.
    #[error("its picture data is damaged at MCU {mcu}")]
    Damaged {
        /// The MCU that could not be read, counted from 0 row by row.
        mcu: u32,
    },
    /// A coefficient is outside the range of 8-bit pictures; decoders give different results for it.
    #[error("a coefficient is out of range")]
    Range,
    /// The region is empty or extends beyond the picture.
    #[error("the region leaves the picture")]
    Outside,
    /// Required bytes are missing, the headers are broken, or the index belongs to a different file.
    #[error("bytes that the index refers to are missing")]
    Bytes,
    /// libjpeg-turbo refused a strip that was written from the scan, or decoded it to an unexpected size.
    #[error("a strip of it could not be decoded")]
    Strip,
    /// The file has 4 GiB or more.
    #[error("the file is too long to be indexed")]
    Length,
    /// The caller cancelled the work ([`ByteRanges::with_cancellation`](crate::scan::ByteRanges::with_cancellation)).
    #[error("the work was stopped")]
    Stopped,
}

impl ScanError {
    /// Returns a stable one-word name for metrics and logs.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
