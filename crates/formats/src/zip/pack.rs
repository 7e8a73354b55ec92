//! Compresses texts for an archive.

use miniz_oxide::deflate::compress_to_vec;

use crate::zip::entry::{ArchiveEntry, CompressionMethod};
use crate::zip::layout::length;
use crate::zip::name::EntryName;
use crate::zip::time::DosTime;

/// The default compression level of zip programs.
const LEVEL: u8 = 6;

/// Compresses `bytes` into a raw DEFLATE stream (RFC 1951).
///
/// The output is the same on every processor: the compressor does no CPU feature detection, and other crates do
/// not affect its Cargo features. A new version of it may change the output. A test pins the stream; when it
/// fails, the entity tags of archives must change. Compresses about 50 MB per second.
pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, LEVEL)
}

/// Builds an entry from contents in memory, and returns the bytes to store for it: the compressed bytes if they
/// are shorter, else the unchanged contents.
pub fn pack(name: EntryName, modified: DosTime, bytes: Vec<u8>) -> (ArchiveEntry, Vec<u8>) {
    let crc32 = crc32fast::hash(&bytes);
    let unpacked_bytes = length(&bytes);
    let packed = deflate(&bytes);
    let (method, contents) = if packed.len() < bytes.len() {
        (CompressionMethod::Deflated { unpacked_bytes }, packed)
    } else {
        (CompressionMethod::Stored, bytes)
    };
    (ArchiveEntry { name, method, size_bytes: length(&contents), crc32, modified }, contents)
}
