//! Contents made ready for an archive: packed texts.

use miniz_oxide::deflate::compress_to_vec;

use crate::zip::{ArchiveEntry, CompressionMethod, DosTime, EntryName};

/// The usual trade of zip programs between time and size.
const LEVEL: u8 = 6;

/// Packs `bytes` into a raw DEFLATE stream (RFC 1951).
///
/// The same bytes give the same stream on every processor: the packer neither asks what the
/// processor can do nor depends on features that another crate asks for. A new version of it may
/// pack differently; a test knows the stream, and when it fails, entity tags of archives have to
/// change. About 50 MB/s.
pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, LEVEL)
}

/// Makes an entry of contents in memory, with the bytes that stand for them in the archive: packed
/// if that is shorter, else as they are.
pub fn pack(name: EntryName, modified: DosTime, bytes: Vec<u8>) -> (ArchiveEntry, Vec<u8>) {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).expect("lengths fit 64 bits");
    let (crc32, unpacked_bytes) = (crc32fast::hash(&bytes), length(&bytes));
    let packed = deflate(&bytes);
    let (method, contents) = if packed.len() < bytes.len() {
        (CompressionMethod::Deflated { unpacked_bytes }, packed)
    } else {
        (CompressionMethod::Stored, bytes)
    };
    (ArchiveEntry { name, method, size_bytes: length(&contents), crc32, modified }, contents)
}
