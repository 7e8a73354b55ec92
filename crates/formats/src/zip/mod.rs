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

mod entry;
mod error;
mod headers;
mod layout;
mod name;
mod pack;
mod time;

pub use crate::zip::entry::{ArchiveEntry, CompressionMethod};
pub use crate::zip::error::ArchiveError;
pub use crate::zip::layout::{ArchiveLayout, ArchivePiece};
pub use crate::zip::name::{EntryName, EntryNameError};
pub use crate::zip::pack::{deflate, pack};
pub use crate::zip::time::DosTime;

#[cfg(test)]
mod tests;
