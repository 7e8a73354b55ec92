//! Derives the files of an original that random access needs: index and working copy.

use super::checksums::BlockChecksums;
use super::facts::{OriginalFacts, RandomAccess, StoredIndex, WorkingCopy};
use super::{NewOriginal, picture_hash};
use imaging::{ParallelMap, ShouldContinue, decode_bands};
use jpeg::codec::{self, DecodeOutput, DecodeScale, Pixels};
use jpeg::header::{CodingProcess, HeaderLimits, JpegHeader};
use jpeg::rewrite::colour_segments;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError};
use model::{PictureHash, Size};

/// The scale, in eighths, of the decode that checks whether a picture can be decoded.
const CHECK_EIGHTHS: u8 = 1;
/// The number of pixels from which the index is used for this check: in parallel, but without the decoder's
/// warnings about data that the index has skipped.
const CHECK_PIXELS_MIN: u64 = 2_000_000;

/// The derived files of an original.
pub(super) struct PreparedOriginal {
    pub(super) facts: OriginalFacts,
    pub(super) working: Option<Vec<u8>>,
    /// True if the picture was decoded, at a reduced size.
    pub(super) decoded: bool,
    /// The decoder's warning, if the picture was decoded.
    pub(super) warning: Option<String>,
    /// True if the picture has no colours; `None` if its index does not say.
    pub(super) is_grey: Option<bool>,
    /// The perceptual hash, if it was requested and the picture has contrast.
    pub(super) picture_hash: Option<PictureHash>,
}

/// The inputs of [`prepare`].
pub(super) struct PrepareRequest<'a> {
    pub(super) new: &'a NewOriginal<'a>,
    pub(super) limits: &'a HeaderLimits,
    pub(super) parallel_map: ParallelMap<'a>,
    /// Called between the steps. Once it returns false, the result is `None`.
    pub(super) should_continue: ShouldContinue<'a>,
}

/// Returns the peak memory of [`prepare`] in bytes, in addition to a file of `length` bytes. It also suffices for
/// a check whether a picture without random access can be decoded.
pub(super) fn memory_bytes(header: &JpegHeader, length: u64) -> u64 {
    let components = u64::try_from(header.components.len()).unwrap_or(u64::MAX);
    // The coefficients of all scans, two bytes each, and the copy with its spare capacity.
    let rewritten = if header.needs_coefficient_buffer() {
        let samples = header.size.pixels().saturating_mul(components);
        samples.saturating_mul(2).saturating_add(length.saturating_mul(4))
    } else {
        0
    };
    // The pixels in bands, joined.
    let scale = DecodeScale::from_eighths(CHECK_EIGHTHS);
    let checked = scale.scaled_size(header.size).pixels();
    let checked = checked.saturating_mul(components).saturating_mul(2);
    // The scan without byte stuffing, then its bands.
    length.saturating_mul(2).saturating_add(rewritten).saturating_add(checked)
}

/// Derives all files of an original; `None` once `should_continue` returns false.
///
/// Needs the memory that [`memory_bytes`] returns.
pub(super) fn prepare(request: &PrepareRequest<'_>) -> Option<PreparedOriginal> {
    let NewOriginal { bytes, header, .. } = *request.new;
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
    let (checked, picture_hash) = match &access {
        Ok((scan, index)) => {
            let (bytes, header) =
                working.as_ref().map_or((bytes, header), |(copy, header)| (copy, header));
            let decoded = check_decode(request, scan, index, bytes, header);
            let hash = hash_picture(request, decoded.as_ref(), bytes, header.size);
            (decoded.map(|decoded| decoded.warning), hash)
        }
        Err(_) => (None, None),
    };
    let is_grey = access.as_ref().ok().and_then(|(scan, index)| index.is_grey(scan));
    let access = match access {
        Err(reason) => RandomAccess::None(reason),
        Ok((scan, index)) => {
            let stored_index = StoredIndex { components: scan.components.len(), index };
            match &working {
                None => RandomAccess::Original(stored_index),
                Some((copy, _)) => RandomAccess::Working(WorkingCopy {
                    length: copy.len() as u64,
                    checksums: BlockChecksums::for_bytes(copy),
                    stored_index,
                }),
            }
        }
    };
    let picture = scan_data(header, bytes)..header.end as u64;
    let checksums = BlockChecksums::for_bytes(bytes);
    let facts = OriginalFacts::new(picture, bytes.len() as u64, checksums, access);
    let working = working.map(|(copy, _)| copy);
    let decoded = checked.is_some();
    let warning = checked.flatten();
    let prepared = PreparedOriginal { facts, working, decoded, warning, is_grey, picture_hash };
    (request.should_continue)().then_some(prepared)
}

fn build_index(header: &JpegHeader, bytes: &[u8]) -> Result<(Scan, ScanIndex), ScanError> {
    let scan = Scan::read(header, bytes)?;
    let index = ScanIndex::build(&scan, bytes)?;
    Ok((scan, index))
}

/// Returns whether libjpeg-turbo can hold the coefficients and write them in one scan.
fn can_be_rewritten(header: &JpegHeader) -> bool {
    let is_other = matches!(
        header.process,
        CodingProcess::Lossless | CodingProcess::ArithmeticLossless | CodingProcess::Hierarchical
    );
    !is_other && header.precision == 8
}

/// Returns the offset of the first scan's data.
fn scan_data(header: &JpegHeader, bytes: &[u8]) -> u64 {
    let offset = header.first_scan;
    // The length field of the marker counts itself, so the shortest segment has two bytes.
    let length = bytes.get(offset + 2..offset + 4).unwrap_or(&[0, 2]);
    (offset + 2 + usize::from(length[0]) * 256 + usize::from(length[1])) as u64
}

/// Decodes the picture at an eighth of its size, as a check. Returns `None` if the picture is small or cannot be
/// decoded by its index.
fn check_decode(
    request: &PrepareRequest<'_>,
    scan: &Scan,
    index: &ScanIndex,
    bytes: &[u8],
    header: &JpegHeader,
) -> Option<DecodeOutput<Pixels>> {
    if header.size.pixels() < CHECK_PIXELS_MIN {
        return None;
    }
    let colour = colour_segments(header, bytes);
    let bytes = ByteRanges::whole(bytes).with_cancellation(request.should_continue);
    let scale = DecodeScale::from_eighths(CHECK_EIGHTHS);
    decode_bands(scan, index, &colour, &bytes, scale, request.parallel_map).ok()
}

/// Computes the perceptual hash, if it is requested. Uses the pixels in `decoded`, or else decodes the file
/// `bytes`. The file has one scan, so its coefficients are not held in memory.
fn hash_picture(
    request: &PrepareRequest<'_>,
    decoded: Option<&DecodeOutput<Pixels>>,
    bytes: &[u8],
    stored: Size,
) -> Option<PictureHash> {
    let orientation = request.new.hash_orientation?;
    match decoded {
        Some(decoded) => picture_hash::of_pixels(&decoded.value, orientation),
        None => picture_hash::of_jpeg(bytes, stored, orientation),
    }
}
