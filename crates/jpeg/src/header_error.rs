//! Defines the errors of parsing the markers and the frame of a file.

use thiserror::Error;

/// The reason why [`JpegHeader::parse`](crate::header::JpegHeader::parse) refuses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file does not start with the SOI marker.
    #[error("the file is not a JPEG: it does not start with FF D8")]
    NotJpeg,
    /// The file ends before EOI.
    #[error("the file ends within the segment or scan at byte {offset}")]
    Truncated {
        /// Offset of the unfinished segment or scan, or of the position where a marker was expected.
        offset: usize,
    },
    /// A segment is inconsistent, or a marker occurs where it is not allowed.
    #[error("marker {marker:02X} at byte {offset} is not valid")]
    BadSegment {
        /// Code of the marker, its second byte.
        marker: u8,
        /// Offset of the marker in the file.
        offset: usize,
    },
    /// The file has a second frame: it is hierarchical, or two files were joined.
    #[error("a second frame starts at byte {offset}")]
    SecondFrame {
        /// Offset of the second frame's marker in the file.
        offset: usize,
    },
    /// A scan or EOI comes before any frame.
    #[error("the file has no frame")]
    NoFrame,
    /// EOI comes before any scan.
    #[error("the file has no scan")]
    NoScan,
    /// Width or height is zero. A height of zero announces a DNL segment after the first scan, which common
    /// decoders do not support either.
    #[error("the picture is {width}x{height}")]
    ZeroSize {
        /// Width that the frame declares.
        width: u32,
        /// Height that the frame declares.
        height: u32,
    },
    /// The file has more scans or segments than allowed.
    #[error("the file has more than {limit} {what}")]
    TooMany {
        /// The counted items: `scans` or `segments`.
        what: &'static str,
        /// The maximum in [`HeaderLimits`](crate::header::HeaderLimits).
        limit: u32,
    },
    /// The file has more metadata than allowed.
    #[error("the file has more than {limit} bytes of metadata")]
    TooMuchMetadata {
        /// The maximum in [`HeaderLimits`](crate::header::HeaderLimits).
        limit: usize,
    },
}
