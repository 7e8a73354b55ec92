//! Builds zip archives whose length and bytes are known before the first byte is sent.
//!
//! An [`ArchiveLayout`] contains the offsets of all headers and contents. It generates the headers itself and
//! states which part of which entry fills the rest. `Content-Length`, range requests and repeated downloads with
//! identical bytes thus need no pass through the contents, and memory does not grow with them. The caller provides
//! the contents, with length and CRC-32 known in advance.
//!
//! Follows PKWARE's APPNOTE 6.3.10. Lengths and checksums are in the local headers, without data descriptors, so
//! that streaming readers can extract entries too. The layout is our own, because the zip crate's `new_stream`
//! (9.4) writes a data descriptor after every entry, cannot start in the middle and knows the length only at the
//! end.

mod error;
mod headers;
mod layout;
mod name;
mod pack;
mod time;

pub use crate::zip::error::ArchiveError;
pub use crate::zip::layout::{ArchiveLayout, ArchivePiece};
pub use crate::zip::name::{EntryName, EntryNameError};
pub use crate::zip::pack::{deflate, pack};
pub use crate::zip::time::DosTime;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// The file name; archives have no directories.
    pub name: EntryName,
    /// The method by which the contents are stored.
    pub method: CompressionMethod,
    /// Length of the stored contents in bytes, after compression if they are compressed.
    pub size_bytes: u64,
    /// CRC-32 of the uncompressed contents (ISO 3309, as in PNG).
    pub crc32: u32,
    /// The time of the last modification.
    pub modified: DosTime,
}

impl ArchiveEntry {
    /// Returns the length of the uncompressed contents in bytes.
    pub fn uncompressed_bytes(&self) -> u64 {
        match self.method {
            CompressionMethod::Stored => self.size_bytes,
            CompressionMethod::Deflated { unpacked_bytes } => unpacked_bytes,
        }
    }
}

/// The method by which an entry's contents are stored in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionMethod {
    /// Uncompressed, for pictures, videos and PDFs, which are compressed already.
    Stored,
    /// A raw DEFLATE stream (RFC 1951), for texts.
    Deflated {
        /// The uncompressed length in bytes.
        unpacked_bytes: u64,
    },
}

#[cfg(test)]
mod tests;
