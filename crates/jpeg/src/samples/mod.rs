//! Generates JPEG files for tests, benches and examples of code that reads JPEG files.
//!
//! The functions of this module assemble files from markers; [`pictures`] generates files with real picture data.

pub mod pictures;

use crate::header::HeaderLimits;
use crate::rewrite::segment;

/// Header limits that no sample reaches.
pub const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 20, segments_max: 1_000, metadata_bytes_max: 4 << 20 };

/// Builds a JFIF segment with a thumbnail of one pixel.
pub fn jfif() -> Vec<u8> {
    segment(0xE0, &[b"JFIF\0\x01\x02\x01\0\x48\0\x48\x01\x01", b"rgb"])
}

/// Builds an Adobe segment with the given colour transform: 0 none, 1 YCbCr, 2 YCCK.
pub fn adobe(transform: u8) -> Vec<u8> {
    segment(0xEE, &[b"Adobe\0\x64\0\0\0\0", &[transform]])
}

/// Builds a frame of 640x480 with the given marker and component identifiers.
pub fn frame(marker: u8, ids: &[u8]) -> Vec<u8> {
    let count = u8::try_from(ids.len()).expect("few components");
    let components: Vec<u8> = ids.iter().flat_map(|&id| [id, 0x11, 0]).collect();
    segment(marker, &[&[8, 1, 0xE0, 2, 0x80, count], &components])
}

/// Builds a scan of the components whose entropy-coded data has a stuffed byte, a restart marker and
/// fill bytes.
pub fn scan(ids: &[u8]) -> Vec<u8> {
    let count = u8::try_from(ids.len()).expect("few components");
    let components: Vec<u8> = ids.iter().flat_map(|&id| [id, 0]).collect();
    let mut scan = segment(0xDA, &[&[count], &components, &[0, 63, 0]]);
    scan.extend(b"\x12\xFF\0\x34\xFF\xD0\x56\xFF\xFF\0\x78");
    scan
}

/// Builds a file: SOI, the metadata, tables, a baseline frame of three components, a scan, EOI.
pub fn file(metadata: &[u8]) -> Vec<u8> {
    let tables = [segment(0xDB, &[&[0; 65]]), frame(0xC0, &[1, 2, 3]), segment(0xC4, &[&[0; 17]])];
    join(&[metadata, &tables.concat(), &scan(&[1, 2, 3])])
}

/// Joins SOI, the parts and EOI.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    [b"\xFF\xD8", parts.concat().as_slice(), b"\xFF\xD9"].concat()
}
