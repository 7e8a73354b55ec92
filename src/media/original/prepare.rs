//! Derives the files of an original: index, working copy, level.

use super::checksums::BlockChecksums;
use super::facts::{OriginalFacts, PreviewLevel, RandomAccess, StoredIndex, WorkingCopy};
use imaging::{ParallelMap, ShouldContinue, decode_bands};
use jpeg::codec::{self, ChromaSubsampling, ColourSpace, DecodeScale, EncodeOptions, Pixels};
use jpeg::header::{CodingProcess, HeaderLimits, JpegHeader};
use jpeg::rewrite::colour_segments;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError};
use model::{ContentHash, Size};

/// The minimum long side of a level, in percent of a Preview's: scaling down needs more pixels than it
/// yields.
const LEVEL_PERCENT_MIN: u64 = 125;
/// The JPEG qualities that are tried for a level, best first.
const LEVEL_QUALITIES: [u8; 4] = [92, 88, 82, 75];
/// The maximum size of a level, in percent of its original.
const LEVEL_SHARE_PERCENT: u64 = 14;

/// The derived files of an original.
pub(super) struct PreparedOriginal {
    pub(super) facts: OriginalFacts,
    pub(super) working: Option<Vec<u8>>,
    pub(super) level: Option<Vec<u8>>,
    /// The decoder's warning while it made the level; `None` also if no level was made.
    pub(super) warning: Option<String>,
}

/// The inputs of [`prepare`].
pub(super) struct PrepareRequest<'a> {
    pub(super) source: ContentHash,
    pub(super) stamp: u64,
    pub(super) bytes: &'a [u8],
    pub(super) header: &'a JpegHeader,
    pub(super) limits: &'a HeaderLimits,
    pub(super) preview_px: u32,
    pub(super) parallel_map: ParallelMap<'a>,
    /// Called between the steps; once it returns false, the result is `None`.
    pub(super) should_continue: ShouldContinue<'a>,
}

/// The memory in bytes that [`prepare`] takes at its peak, in addition to a file of `length` bytes. It also
/// suffices to check whether a picture without random access can be decoded.
pub(super) fn memory_bytes(header: &JpegHeader, length: u64, preview_px: u32) -> u64 {
    let components = u64::try_from(header.components.len()).unwrap_or(u64::MAX);
    let samples = |size: Size| size.pixels().saturating_mul(components);
    // The coefficients of all scans, two bytes each, and the copy with its spare capacity.
    let rewritten = if header.needs_coefficient_buffer() {
        samples(header.size).saturating_mul(2).saturating_add(length.saturating_mul(4))
    } else {
        0
    };
    // The pixels in bands, joined, and the level itself. The check decodes at an eighth of the size.
    let scale = level_scale(header.size, preview_px).unwrap_or(DecodeScale::from_eighths(1));
    let level = samples(scale.scaled_size(header.size)).saturating_mul(3);
    // The scan without byte stuffing, then its bands.
    length.saturating_mul(2).saturating_add(rewritten).saturating_add(level)
}

/// Derives all files of an original; `None` once `should_continue` returns false.
///
/// Takes the memory that [`memory_bytes`] returns.
pub(super) fn prepare(request: &PrepareRequest<'_>) -> Option<PreparedOriginal> {
    let PrepareRequest { source, stamp, bytes, header, preview_px, .. } = *request;
    let mut working = None;
    let access = match build_index(header, bytes) {
        Ok(indexed) => Ok(indexed),
        // Progressive and multi-scan pictures have no entry points; a baseline copy has.
        Err(ScanError::Process | ScanError::Scans) if can_be_rewritten(header) => {
            codec::to_baseline(bytes).map_err(|cause| cause.to_string()).and_then(|copy| {
                let header =
                    JpegHeader::parse(&copy, request.limits).map_err(|e| e.to_string())?;
                let indexed = build_index(&header, &copy).map_err(|e| e.to_string())?;
                working = Some((copy, header));
                Ok(indexed)
            })
        }
        Err(error) => Err(error.to_string()),
    };
    // An aborted ingest stops before the level, which takes a decode.
    if !(request.should_continue)() {
        return None;
    }
    let (level, warning) = match &access {
        Ok((scan, index)) => {
            let (bytes, header) =
                working.as_ref().map_or((bytes, header), |(copy, header)| (copy, header));
            make_level(request, scan, index, bytes, header)
        }
        Err(_) => (None, None),
    };
    let stored_index = |(scan, index): (Scan, ScanIndex)| StoredIndex {
        components: scan.components.len(),
        index,
    };
    let access = match (access, &working) {
        (Err(reason), _) => RandomAccess::None(reason),
        (Ok(indexed), None) => RandomAccess::Original(stored_index(indexed)),
        (Ok(indexed), Some((copy, _))) => RandomAccess::Working(WorkingCopy {
            length: copy.len() as u64,
            checksums: BlockChecksums::of(copy),
            stored_index: stored_index(indexed),
        }),
    };
    let level_facts = level.as_ref().map(|(file, size)| PreviewLevel {
        length: file.len() as u64,
        crc32: crc32fast::hash(file),
        size: *size,
    });
    let facts = OriginalFacts {
        source,
        length: bytes.len() as u64,
        stamp,
        preview_px,
        start: scan_data(header, bytes),
        end: header.end as u64,
        checksums: BlockChecksums::of(bytes),
        random_access: access,
        level: level_facts,
        is_incomplete: false,
    };
    let (working, level) = (working.map(|(copy, _)| copy), level.map(|(file, _)| file));
    (request.should_continue)().then_some(PreparedOriginal { facts, working, level, warning })
}

fn build_index(header: &JpegHeader, bytes: &[u8]) -> Result<(Scan, ScanIndex), ScanError> {
    let scan = Scan::read(header, bytes)?;
    let index = ScanIndex::build(&scan, bytes)?;
    Ok((scan, index))
}

/// Whether libjpeg-turbo can hold the coefficients and write them in one scan.
fn can_be_rewritten(header: &JpegHeader) -> bool {
    let huffman_or_arithmetic = match header.process {
        CodingProcess::Baseline
        | CodingProcess::Extended
        | CodingProcess::Progressive
        | CodingProcess::ArithmeticSequential
        | CodingProcess::ArithmeticProgressive => true,
        CodingProcess::Lossless
        | CodingProcess::ArithmeticLossless
        | CodingProcess::Hierarchical => false,
    };
    huffman_or_arithmetic && header.precision == 8
}

/// Offset of the first scan's data.
fn scan_data(header: &JpegHeader, bytes: &[u8]) -> u64 {
    let offset = header.first_scan;
    // The length field of the marker counts itself, so the shortest segment has two bytes.
    let length = bytes.get(offset + 2..offset + 4).unwrap_or(&[0, 2]);
    (offset + 2 + usize::from(length[0]) * 256 + usize::from(length[1])) as u64
}

/// Makes a smaller copy for Previews, if the picture is large enough for that to be worthwhile.
fn make_level(
    request: &PrepareRequest<'_>,
    scan: &Scan,
    index: &ScanIndex,
    bytes: &[u8],
    header: &JpegHeader,
) -> (Option<(Vec<u8>, Size)>, Option<String>) {
    let Some(scale) = level_scale(header.size, request.preview_px) else { return (None, None) };
    let colour = colour_segments(header, bytes);
    let bytes = ByteRanges::whole(bytes).with_cancellation(request.should_continue);
    let decoded = decode_bands(scan, index, &colour, &bytes, scale, request.parallel_map);
    // A level is optional: without it Previews are made from the picture.
    let Ok(decoded) = decoded else { return (None, None) };
    let bytes_max = request.bytes.len() as u64 * LEVEL_SHARE_PERCENT / 100;
    // A level that is not much smaller than its original saves no reading.
    let file = LEVEL_QUALITIES.into_iter().find_map(|quality| {
        encode_level(&decoded.value, quality).filter(|file| file.len() as u64 <= bytes_max)
    });
    (file.map(|file| (file, decoded.value.size)), decoded.warning)
}

fn encode_level(pixels: &Pixels, quality: u8) -> Option<Vec<u8>> {
    let (space, chroma) = match pixels.channels {
        1 => (ColourSpace::Grey, ChromaSubsampling::Full),
        3 => (ColourSpace::YCbCr, ChromaSubsampling::Quarter),
        _ => return None,
    };
    codec::encode(pixels, EncodeOptions { quality, space, chroma }).ok()
}

/// The smallest scale that suffices for a Preview; `None` if that is not much smaller than the picture.
fn level_scale(size: Size, preview_px: u32) -> Option<DecodeScale> {
    let long_side = |scale: DecodeScale| {
        let size = scale.scaled_size(size);
        u64::from(size.width.max(size.height))
    };
    let needed = u64::from(preview_px) * LEVEL_PERCENT_MIN / 100;
    [1, 2, 4].map(DecodeScale::from_eighths).into_iter().find(|scale| long_side(*scale) >= needed)
}
