//! Derives the files of an original that random access needs: index and working copy.

use super::checksums::BlockChecksums;
use super::facts::{OriginalFacts, RandomAccess, StoredIndex, WorkingCopy};
use imaging::{ParallelMap, ShouldContinue, decode_bands};
use jpeg::codec::{self, DecodeScale};
use jpeg::header::{CodingProcess, HeaderLimits, JpegHeader};
use jpeg::rewrite::colour_segments;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError};
use model::{ContentHash, Size};

/// The scale, in eighths, at which a picture is decoded to see that it can be.
const CHECK_EIGHTHS: u8 = 1;
/// The number of pixels from which that is done by the index: in parallel, but without the decoder's warnings
/// about data that the index has passed over.
const CHECK_PIXELS_MIN: u64 = 2_000_000;

/// The derived files of an original.
pub(super) struct PreparedOriginal {
    pub(super) facts: OriginalFacts,
    pub(super) working: Option<Vec<u8>>,
    /// Whether the picture was decoded, at a reduced size.
    pub(super) decoded: bool,
    /// The decoder's warning, if the picture was decoded.
    pub(super) warning: Option<String>,
    /// Whether the picture has no colours; `None` if its index does not say.
    pub(super) is_grey: Option<bool>,
}

/// The inputs of [`prepare`].
pub(super) struct PrepareRequest<'a> {
    pub(super) source: ContentHash,
    pub(super) stamp: u64,
    pub(super) bytes: &'a [u8],
    pub(super) header: &'a JpegHeader,
    pub(super) limits: &'a HeaderLimits,
    pub(super) parallel_map: ParallelMap<'a>,
    /// Called between the steps; once it returns false, the result is `None`.
    pub(super) should_continue: ShouldContinue<'a>,
}

/// The memory in bytes that [`prepare`] takes at its peak, in addition to a file of `length` bytes. It also
/// suffices to check whether a picture without random access can be decoded.
pub(super) fn memory_bytes(header: &JpegHeader, length: u64) -> u64 {
    let components = u64::try_from(header.components.len()).unwrap_or(u64::MAX);
    let samples = |size: Size| size.pixels().saturating_mul(components);
    // The coefficients of all scans, two bytes each, and the copy with its spare capacity.
    let rewritten = if header.needs_coefficient_buffer() {
        samples(header.size).saturating_mul(2).saturating_add(length.saturating_mul(4))
    } else {
        0
    };
    // The pixels in bands, joined.
    let scale = DecodeScale::from_eighths(CHECK_EIGHTHS);
    let checked = samples(scale.scaled_size(header.size)).saturating_mul(2);
    // The scan without byte stuffing, then its bands.
    length.saturating_mul(2).saturating_add(rewritten).saturating_add(checked)
}

/// Derives all files of an original; `None` once `should_continue` returns false.
///
/// Takes the memory that [`memory_bytes`] returns.
pub(super) fn prepare(request: &PrepareRequest<'_>) -> Option<PreparedOriginal> {
    let PrepareRequest { source, stamp, bytes, header, .. } = *request;
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
    // An aborted ingest stops before the decode.
    if !(request.should_continue)() {
        return None;
    }
    let checked = match &access {
        Ok((scan, index)) => {
            let (bytes, header) =
                working.as_ref().map_or((bytes, header), |(copy, header)| (copy, header));
            check_decode(request, scan, index, bytes, header)
        }
        Err(_) => None,
    };
    let is_grey = access.as_ref().ok().and_then(|(scan, index)| index.is_grey(scan));
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
    let facts = OriginalFacts {
        source,
        length: bytes.len() as u64,
        stamp,
        start: scan_data(header, bytes),
        end: header.end as u64,
        checksums: BlockChecksums::of(bytes),
        random_access: access,
        is_incomplete: false,
    };
    let working = working.map(|(copy, _)| copy);
    let (decoded, warning) = (checked.is_some(), checked.flatten());
    let prepared = PreparedOriginal { facts, working, decoded, warning, is_grey };
    (request.should_continue)().then_some(prepared)
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

/// Decodes the picture at an eighth of its size to see that it can be. Returns the decoder's warning, if it has
/// one; `None` if the picture is small or cannot be decoded by its index.
fn check_decode(
    request: &PrepareRequest<'_>,
    scan: &Scan,
    index: &ScanIndex,
    bytes: &[u8],
    header: &JpegHeader,
) -> Option<Option<String>> {
    if header.size.pixels() < CHECK_PIXELS_MIN {
        return None;
    }
    let colour = colour_segments(header, bytes);
    let bytes = ByteRanges::whole(bytes).with_cancellation(request.should_continue);
    let scale = DecodeScale::from_eighths(CHECK_EIGHTHS);
    let decoded = decode_bands(scan, index, &colour, &bytes, scale, request.parallel_map);
    decoded.ok().map(|decoded| decoded.warning)
}
