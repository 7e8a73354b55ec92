//! Scans the top-level boxes of a file for the index, the media data and the fragments.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::mp4::box_kind::BoxKind;
use crate::mp4::boxes::BoxHeader;
use crate::mp4::error::VideoError;
use crate::mp4::limits::VideoLimits;

/// The boxes with which a file may start. QuickTime files before 2001 have no `ftyp`.
const FIRST: [&[u8; 4]; 10] =
    [b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid", b"sidx"];

/// The result of [`scan`].
pub(super) struct FileLayout {
    /// The contents of the first `moov` box.
    pub(super) index: Vec<u8>,
    /// The byte ranges of the contents of the `moof` boxes in the file.
    pub(super) fragments: Vec<Range<u64>>,
    /// True if the index precedes all media data.
    pub(super) fast_start: bool,
}

/// Scans the boxes of a file of `size_bytes` bytes and reads its index.
pub(super) fn scan<R: Read + Seek>(
    reader: &mut R,
    size_bytes: u64,
    limits: &VideoLimits,
) -> Result<FileLayout, VideoError> {
    if size_bytes < BoxHeader::BYTES_MIN {
        return Err(VideoError::TooShort { size_bytes });
    }
    let mut offset = 0;
    let mut count = 0;
    let mut index = None;
    let mut data_seen = false;
    let mut fast_start = false;
    let mut fragments = Vec::new();
    let mut fragments_bytes = 0_u64;
    // A remainder that is shorter than a header cannot be a box.
    while size_bytes.saturating_sub(offset) >= BoxHeader::BYTES_MIN {
        count += 1;
        if count > limits.boxes {
            return Err(VideoError::TooManyBoxes { max: limits.boxes });
        }
        let header = read_header(reader, offset, size_bytes)?;
        let contents = match span(&header, offset, size_bytes) {
            Ok(contents) => contents,
            // Other programs append data to finished files, so a bad box after the index is ignored.
            Err(_) if index.is_some() && !is_media(header.kind) => break,
            Err(error) => return Err(error),
        };
        offset = contents.end;
        match &header.kind.0 {
            b"moov" if index.is_none() => {
                index = Some(read_index(reader, contents, limits)?);
                fast_start = !data_seen;
            }
            b"moof" => {
                fragments_bytes = fragments_bytes.saturating_add(contents.end - contents.start);
                if fragments_bytes > limits.fragments_bytes {
                    let max_bytes = limits.fragments_bytes;
                    return Err(VideoError::FragmentsTooLarge { max_bytes });
                }
                fragments.push(contents);
            }
            b"mdat" => data_seen = true,
            _ => {}
        }
    }
    let index = index.ok_or(VideoError::NoIndex)?;
    if !data_seen {
        return Err(VideoError::NoMedia);
    }
    Ok(FileLayout { index, fragments, fast_start })
}

fn is_media(kind: BoxKind) -> bool {
    matches!(&kind.0, b"moov" | b"moof" | b"mdat" | b"styp" | b"sidx" | b"mfra")
}

fn read_header<R: Read + Seek>(
    reader: &mut R,
    offset: u64,
    size_bytes: u64,
) -> Result<BoxHeader, VideoError> {
    let available = size_bytes - offset;
    // One read that is long enough for a 64-bit size as well.
    let end = offset + available.min(BoxHeader::BYTES_MAX);
    let bytes = read_exactly(reader, offset..end, BoxKind([0; 4]))?;
    let header = BoxHeader::parse(&bytes, available);
    let kind = bytes.get(4..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    // Checked before the size, so that a file of a different kind is not reported as damaged.
    if offset == 0 && !FIRST.contains(&&kind) {
        return Err(VideoError::NotMp4 { found: BoxKind(kind) });
    }
    header.ok_or(VideoError::Damaged { kind: BoxKind(kind) })
}

/// Returns the byte range of the contents of a box that starts at `offset`.
fn span(header: &BoxHeader, offset: u64, size_bytes: u64) -> Result<Range<u64>, VideoError> {
    let kind = header.kind;
    // The scan would not advance past a box that is shorter than its header.
    if header.size_bytes < header.header_bytes {
        return Err(VideoError::Damaged { kind });
    }
    let end = offset.saturating_add(header.size_bytes);
    if end > size_bytes {
        return Err(VideoError::Truncated { kind, end, size_bytes });
    }
    Ok(offset + header.header_bytes..end)
}

fn read_index<R: Read + Seek>(
    reader: &mut R,
    contents: Range<u64>,
    limits: &VideoLimits,
) -> Result<Vec<u8>, VideoError> {
    let size_bytes = contents.end - contents.start;
    let max_bytes = limits.index_bytes;
    if size_bytes > max_bytes {
        return Err(VideoError::IndexTooLarge { size_bytes, max_bytes });
    }
    read_exactly(reader, contents, BoxKind::MOOV)
}

/// Reads `range` of the file, which belongs to a box of `kind`. The buffer grows with the bytes that are read, so
/// a forged length costs no memory.
pub(super) fn read_exactly<R: Read + Seek>(
    reader: &mut R,
    range: Range<u64>,
    kind: BoxKind,
) -> Result<Vec<u8>, VideoError> {
    let length = range.end - range.start;
    reader.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    let read = reader.by_ref().take(length).read_to_end(&mut bytes)?;
    let read = u64::try_from(read).unwrap_or(u64::MAX);
    // The file is shorter than its stated size; it may have been cut since it was measured.
    if read < length {
        let size_bytes = range.start + read;
        return Err(VideoError::Truncated { kind, end: range.end, size_bytes });
    }
    Ok(bytes)
}
