//! Zip archives whose length and every byte are known before the first one is sent.
//!
//! An [`ArchiveLayout`] is a layout: it knows where each header and each entry's contents lie, writes
//! headers itself and says which part of which entry fills the rest. So `Content-Length`, `RangeLiteral`
//! and a repetition of the same bytes need no run through the contents, and memory does not grow
//! with them. Contents are the caller's, with length and CRC-32 known in advance.
//!
//! Follows PKWARE's APPNOTE 6.3.10. Lengths and sums stand in the local headers, without data
//! descriptors, so that readers of streams can take entries apart too. This is our own layout,
//! because the zip crate's `new_stream` (9.4) writes a data descriptor after every entry, cannot
//! start in the middle and knows the length only at the end.

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

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// Its name; the archive has no folders.
    pub name: EntryName,
    /// How its contents stand in the archive.
    pub method: CompressionMethod,
    /// Bytes that its contents take in the archive: packed, if they are.
    pub size_bytes: u64,
    /// CRC-32 of the contents, unpacked (ISO 3309, as in PNG).
    pub crc32: u32,
    /// When it was changed last.
    pub modified: DosTime,
}

impl ArchiveEntry {
    /// Bytes of the contents after unpacking.
    pub fn uncompressed_bytes(&self) -> u64 {
        match self.method {
            CompressionMethod::Stored => self.size_bytes,
            CompressionMethod::Deflated { unpacked_bytes } => unpacked_bytes,
        }
    }
}

/// How an entry's contents stand in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionMethod {
    /// As they are: pictures, videos, PDFs are compressed already.
    Stored,
    /// As a raw DEFLATE stream (RFC 1951): texts.
    Deflated {
        /// Bytes after unpacking.
        unpacked_bytes: u64,
    },
}

#[cfg(test)]
mod tests;
