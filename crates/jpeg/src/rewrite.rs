//! Replaces the metadata of a file without changing its picture data.
//!
//! A rewritten file is `head` + `tail`. This module builds the head, which is small. The tail is a range of the
//! original, from the first scan to EOI, which the caller sends or copies unchanged. So rewriting a 40 MB file
//! needs only a few kilobytes of memory.

use std::ops::Range;

use crate::embedded::ICC;
use crate::header::{
    APP0, APP2, APP14, DHT, JFIF_BYTES, JpegHeader, MarkerSegment, adobe_transform, is_jfif,
};

/// Maximum bytes of a segment's payload: the length has 16 bits and includes its own two bytes.
pub const PAYLOAD_BYTES_MAX: usize = 65_533;
/// Maximum profile bytes in one ICC segment: signature, number and count need 14.
const ICC_CHUNK_BYTES: usize = PAYLOAD_BYTES_MAX - ICC.len() - 2;
/// Maximum number of ICC chunks: a chunk's number is one byte and starts at 1.
const ICC_CHUNKS_MAX: usize = 255;

/// The parts of a file that define its picture, without its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureParts {
    /// The payload of the JFIF segment without its thumbnail, if the file has one.
    pub jfif: Option<[u8; JFIF_BYTES]>,
    /// Byte range of the last Adobe segment, including its marker; decoders use the last segment.
    pub adobe: Option<Range<usize>>,
    /// Byte ranges of the other non-metadata segments before the first scan, in file order: tables, frame, restart
    /// interval.
    pub tables: Vec<Range<usize>>,
    /// Byte range from the marker of the first scan to the end of EOI.
    pub scans: Range<usize>,
}

/// Finds the bytes of `jpeg` that define the picture.
///
/// JFIF and Adobe segments are included because they define the colour model of the samples. A JFIF thumbnail and
/// a second picture after EOI are excluded: either can show a part that a crop removed. `header` must have been
/// parsed from `jpeg`.
pub fn picture_parts(header: &JpegHeader, jpeg: &[u8]) -> PictureParts {
    let jfif = header
        .segments
        .iter()
        .find(|segment| segment.marker == APP0 && is_jfif(payload(segment, jpeg)))
        .and_then(|segment| payload(segment, jpeg).first_chunk::<JFIF_BYTES>().copied())
        .map(|mut bytes| {
            // Set the width and height of the thumbnail to zero.
            bytes[12..].fill(0);
            bytes
        });
    let adobe = header
        .segments
        .iter()
        .rfind(|segment| {
            segment.marker == APP14 && adobe_transform(payload(segment, jpeg)).is_some()
        })
        .map(MarkerSegment::byte_range);
    let tables = header
        .segments
        .iter()
        .filter(|s| !s.is_metadata())
        .map(MarkerSegment::byte_range)
        .collect();
    PictureParts { jfif, adobe, tables, scans: header.first_scan..header.end }
}

fn payload<'a>(segment: &MarkerSegment, jpeg: &'a [u8]) -> &'a [u8] {
    jpeg.get(segment.payload.clone()).unwrap_or_default()
}

/// Copies the segments of `jpeg` that define the colours of its components: the JFIF segment, without its
/// thumbnail, and the Adobe segment.
///
/// A file that is cut out of `jpeg` starts with them. `header` must have been parsed from `jpeg`.
pub fn colour_segments(header: &JpegHeader, jpeg: &[u8]) -> Vec<u8> {
    let parts = picture_parts(header, jpeg);
    let mut out = parts.jfif.map_or_else(Vec::new, |jfif| segment(APP0, &[&jfif]));
    out.extend_from_slice(parts.adobe.and_then(|range| jpeg.get(range)).unwrap_or_default());
    out
}

/// Replaces the metadata of a file without changing its picture data.
///
/// Returns the new bytes before the first scan, and the range of `jpeg` that follows them, up to and
/// including EOI; the rewritten file is the concatenation of both. Memory use does not depend on the
/// size of the picture data.
///
/// `metadata` holds complete segments ([`segment`]), which are placed after the JFIF segment; `icc` is
/// the colour profile of the new file. All other application segments, comments, the old profile and
/// the bytes after EOI are dropped. Metadata between scans stays.
/// `header` must have been parsed from `jpeg`.
///
/// ```
/// use jpeg::header::JpegHeader;
/// use jpeg::rewrite::{rewrite_metadata, segment};
/// use jpeg::samples::{LIMITS, file};
///
/// let jpeg = file(&segment(0xE1, &[b"Exif\0\0", b"camera and position"]));
/// let header = JpegHeader::parse(&jpeg, &LIMITS)?;
/// let comment = segment(0xFE, &[b"no metadata but this"]);
/// let (mut rewritten, picture) = rewrite_metadata(&jpeg, &header, &comment, None);
/// rewritten.extend_from_slice(&jpeg[picture]);
/// assert_eq!(rewritten, file(&comment));
/// # Ok::<(), jpeg::header::HeaderError>(())
/// ```
pub fn rewrite_metadata(
    jpeg: &[u8],
    header: &JpegHeader,
    metadata: &[u8],
    icc: Option<&[u8]>,
) -> (Vec<u8>, Range<usize>) {
    rewrite(picture_parts(header, jpeg), jpeg, metadata, icc)
}

/// Replaces the metadata as [`rewrite_metadata`] does, and replaces the Huffman tables with `huffman`.
///
/// `huffman` holds complete DHT segments, such as
/// [`PatchedScan::tables`](crate::scan::patch::PatchedScan::tables).
pub fn rewrite_with_tables(
    jpeg: &[u8],
    header: &JpegHeader,
    metadata: &[u8],
    icc: Option<&[u8]>,
    huffman: &[u8],
) -> (Vec<u8>, Range<usize>) {
    let mut parts = picture_parts(header, jpeg);
    // The range of a segment starts at the `FF` of its marker.
    parts.tables.retain(|range| jpeg.get(range.start + 1) != Some(&DHT));
    let (mut head, scans) = rewrite(parts, jpeg, metadata, icc);
    head.extend_from_slice(huffman);
    (head, scans)
}

fn rewrite(
    parts: PictureParts,
    jpeg: &[u8],
    metadata: &[u8],
    icc: Option<&[u8]>,
) -> (Vec<u8>, Range<usize>) {
    let mut head = vec![0xFF, 0xD8];
    // JFIF requires its segment right after SOI.
    if let Some(jfif) = &parts.jfif {
        head.extend(segment(APP0, &[jfif]));
    }
    head.extend_from_slice(metadata);
    head.extend(icc_segments(icc.unwrap_or_default()));
    for range in parts.adobe.into_iter().chain(parts.tables) {
        head.extend_from_slice(jpeg.get(range).unwrap_or_default());
    }
    (head, parts.scans)
}

/// Splits an ICC profile into APP2 segments.
///
/// Returns no segments for an empty profile, nor for a profile of more than 255 x 65,519 bytes, which a JPEG file
/// cannot hold.
pub fn icc_segments(profile: &[u8]) -> Vec<u8> {
    let count = profile.len().div_ceil(ICC_CHUNK_BYTES);
    if count > ICC_CHUNKS_MAX {
        return Vec::new();
    }
    let count = u8::try_from(count).expect("compared with 255 above");
    (1..=count)
        .zip(profile.chunks(ICC_CHUNK_BYTES))
        .flat_map(|(number, chunk)| segment(APP2, &[ICC, &[number, count], chunk]))
        .collect()
}

/// Builds a segment from the parts of its payload.
///
/// `marker` is the second byte of the marker, such as `0xE1` for APP1. The payload has at most
/// [`PAYLOAD_BYTES_MAX`] bytes in total. A longer payload panics in debug builds and is omitted in release builds,
/// so that the file stays readable.
pub fn segment(marker: u8, payload: &[&[u8]]) -> Vec<u8> {
    let bytes: usize = payload.iter().map(|part| part.len()).sum();
    let Ok(length) = u16::try_from(bytes + 2) else {
        debug_assert!(false, "a payload of {bytes} bytes does not fit into a segment");
        return Vec::new();
    };
    let mut segment = vec![0xFF, marker];
    segment.extend(length.to_be_bytes());
    segment.extend(payload.concat());
    segment
}
