//! Describes a file in an archive: its name, its length and the way its contents are stored.

use crate::zip::name::EntryName;
use crate::zip::time::DosTime;

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
