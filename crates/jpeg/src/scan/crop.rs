//! Cuts out a rectangle losslessly, without decoding samples. The [parent module](super) explains the terms of the
//! format.
//!
//! The coefficients of the MCUs do not change: their codes are copied bit for bit, and only the first MCU of each row
//! and each MCU after a restart marker get new DC differences, because a different MCU precedes them in the crop. The
//! corner of the crop must be on the MCU grid, since MCUs cannot be divided.

use std::ops::Range;

use crate::header::{DHT, DRI, EOI, SOF0, SOI, SOS};
use crate::rewrite::segment;
use crate::scan::bits::{EntropyWriter, UnstuffedData};
use crate::scan::cursor::{BlockCoder, BlockSpan, ScanCursor};
use crate::scan::index::ScanIndex;
use crate::scan::region::{row_ranges, rows};
use crate::scan::tables::{AC, DC, HuffmanCodes, HuffmanSpec};
use crate::scan::{ByteRanges, COMPONENTS_MAX, DQT, McuRect, Scan, ScanError};
use geometry::{Rect, Size};

/// Returns whether the upper left corner of `rect` is on the MCU grid.
pub fn is_on_grid(scan: &Scan, rect: Rect) -> bool {
    rect.x.is_multiple_of(scan.mcu.width) && rect.y.is_multiple_of(scan.mcu.height)
}

/// Extends `rect` to whole MCUs with a margin of at least one MCU, within the picture.
///
/// Decoding the result gives the same pixels inside `rect` as decoding the whole picture.
pub fn surrounding_rect(scan: &Scan, rect: Rect) -> Rect {
    let (x, width) = surrounding_span(rect.x, rect.width, scan.mcu.width, scan.size.width);
    let (y, height) = surrounding_span(rect.y, rect.height, scan.mcu.height, scan.size.height);
    Rect { x, y, width, height }
}

/// Extends a span to whole steps with a margin of one step, within the picture, which ends at `end_max`. Returns its
/// start and its length.
fn surrounding_span(start: u32, length: u32, step: u32, end_max: u32) -> (u32, u32) {
    let first = (start / step).saturating_sub(1) * step;
    let end = start.saturating_add(length).div_ceil(step).saturating_add(1);
    (first, end.saturating_mul(step).min(end_max).saturating_sub(first))
}

/// Returns the MCUs under `rect`. Fails if its corner is off the MCU grid, or as [`crop`] does.
fn mcus(scan: &Scan, rect: Rect) -> Result<McuRect, ScanError> {
    if is_on_grid(scan, rect) { scan.mcus_under(rect) } else { Err(ScanError::Outside) }
}

/// Returns the byte ranges of the file that [`crop`] reads for `rect`, in ascending order.
pub fn byte_ranges(
    scan: &Scan,
    index: &ScanIndex,
    rect: Rect,
) -> Result<Vec<Range<u64>>, ScanError> {
    row_ranges(scan, index, &mcus(scan, rect)?)
}

/// Cuts out `rect`, whose corner must be on the MCU grid, as a new file.
///
/// `rect` is in pixels as stored. `bytes` must hold the ranges that [`byte_ranges`] returns. `colour_segments` are
/// complete JFIF and Adobe segments for the new file, from [`colour_segments`](crate::rewrite::colour_segments).
///
/// # Errors
///
/// [`ScanError::Outside`] if `rect` is empty, extends beyond the picture or is off the grid; [`ScanError::Tables`]
/// if the tables of the file have no room for a necessary code.
pub fn crop(
    scan: &Scan,
    index: &ScanIndex,
    bytes: &ByteRanges<'_>,
    rect: Rect,
    colour_segments: &[u8],
) -> Result<Vec<u8>, ScanError> {
    let mcus = mcus(scan, rect)?;
    let mut recoder = ScanRecoder::new(scan)?;
    let mut data = UnstuffedData::default();
    for span in rows(scan, &mcus) {
        index.fill(&mut data, bytes, span.clone())?;
        let mut cursor = index.seek(scan, &data, span.start)?;
        // The new file has no restart markers, so the data between two markers is copied separately.
        if scan.interval == 0 {
            recoder.copy_without_restarts(scan, index, &data, &mut cursor, span.end)?;
        } else {
            recoder.copy_with_restarts(&data, &mut cursor, span.end)?;
        }
    }
    let mut out = vec![0xFF, SOI];
    out.extend_from_slice(colour_segments);
    out.extend(headers(scan, rect.size(), 0)?);
    recoder.writer.finish_into(&mut out);
    out.extend_from_slice(&[0xFF, EOI]);
    Ok(out)
}

/// Copies MCUs of one scan to a new scan, where different MCUs precede them.
///
/// Codes are copied unchanged, except for DC differences that refer to an MCU that is not in the new scan.
pub(super) struct ScanRecoder {
    /// The Huffman codes of each component.
    pub(super) coders: Vec<BlockCoder>,
    /// The entropy-coded output so far.
    pub(super) writer: EntropyWriter,
    /// The last written DC of each component, to which the next difference refers.
    pub(super) last_dc: [i32; COMPONENTS_MAX],
}

impl ScanRecoder {
    /// Creates a recoder with the tables of `scan` and an empty output.
    pub(super) fn new(scan: &Scan) -> Result<Self, ScanError> {
        Ok(Self {
            coders: coders(scan)?,
            writer: EntropyWriter::default(),
            last_dc: [0; COMPONENTS_MAX],
        })
    }

    /// Copies the MCUs before the MCU `end` of a scan without restarts.
    ///
    /// Recodes the first MCU with new DC differences, and copies the other MCUs as one run of bits, whose end the index
    /// finds.
    fn copy_without_restarts(
        &mut self,
        scan: &Scan,
        index: &ScanIndex,
        data: &UnstuffedData,
        cursor: &mut ScanCursor<'_>,
        end: u32,
    ) -> Result<(), ScanError> {
        self.recode_mcu(data, cursor)?;
        let start = cursor.position();
        // The last MCU is read to determine the predictors after it.
        if cursor.mcu() < end {
            let mut tail = index.seek(scan, data, end - 1)?;
            tail.skip_mcu()?;
            tail.check()?;
            self.last_dc = tail.predictors()?.map(i32::from);
            self.writer.copy(data, start, tail.position());
        }
        Ok(())
    }

    /// Copies the MCUs before the MCU `end` of a scan with restarts.
    ///
    /// Recodes the first MCU, and each MCU after a restart, with new DC differences.
    fn copy_with_restarts(
        &mut self,
        data: &UnstuffedData,
        cursor: &mut ScanCursor<'_>,
        end: u32,
    ) -> Result<(), ScanError> {
        let mut from = None;
        while cursor.mcu() < end {
            let before = cursor.position();
            let restarted = cursor.begin()?.is_some();
            if let Some(start) = from.take_if(|_| restarted) {
                self.writer.copy(data, start, before);
            }
            if from.is_none() {
                // The DC differences referred to a different MCU, or to 0 after a restart.
                self.recode_mcu(data, cursor)?;
                from = Some(cursor.position());
            } else {
                cursor.skip_mcu()?;
            }
            self.last_dc = cursor.predictors()?.map(i32::from);
        }
        cursor.check()?;
        if let Some(start) = from {
            self.writer.copy(data, start, cursor.position());
        }
        Ok(())
    }

    /// Writes the next MCU of `cursor`; the first DC difference of each component refers to the
    /// last written DC.
    pub(super) fn recode_mcu(
        &mut self,
        data: &UnstuffedData,
        cursor: &mut ScanCursor<'_>,
    ) -> Result<(), ScanError> {
        let Self { coders, writer, last_dc } = self;
        let mut written = Ok(());
        let mut seen = [false; COMPONENTS_MAX];
        cursor.report_blocks(&mut |span: BlockSpan| {
            let is_first = !std::mem::replace(&mut seen[span.component], true);
            // Later blocks of a component follow the same block as before, so their codes stay valid.
            let start = if is_first {
                let difference = span.dc - last_dc[span.component];
                // The callback cannot return an error, so the first error is stored.
                written = written.and(coders[span.component].write_dc(writer, difference));
                span.ac
            } else {
                span.start
            };
            writer.copy(data, start, span.end);
            last_dc[span.component] = span.dc;
        })?;
        written
    }
}

/// Builds the codes of each component from its tables, extended if symbols are missing.
fn coders(scan: &Scan) -> Result<Vec<BlockCoder>, ScanError> {
    let mut coders = Vec::with_capacity(scan.components.len());
    for component in &scan.components {
        let (dc, ac) = component.table_numbers;
        let dc = HuffmanCodes::new(&spec(scan, DC, dc)?);
        let ac = HuffmanCodes::new(&spec(scan, AC, ac)?);
        coders.push(BlockCoder { dc, ac });
    }
    Ok(coders)
}

/// Returns a table of the file, extended with a code for every symbol if there is room.
fn spec(scan: &Scan, class: usize, number: usize) -> Result<HuffmanSpec, ScanError> {
    let spec = scan.specs[class][number].as_ref().ok_or(ScanError::Tables)?;
    // A new DC difference can need a symbol that the encoder of the file never used.
    Ok(spec.completed(class).unwrap_or_else(|| spec.clone()))
}

/// Builds the DHT segments of the Huffman tables that [`coders`] uses.
pub(super) fn huffman_segments(scan: &Scan) -> Result<Vec<u8>, ScanError> {
    let mut used: Vec<(usize, usize)> = scan
        .components
        .iter()
        .flat_map(|component| [(DC, component.table_numbers.0), (AC, component.table_numbers.1)])
        .collect();
    used.sort_unstable();
    used.dedup();
    let mut segments = Vec::new();
    for (class, number) in used {
        let payload = spec(scan, class, number)?.payload(class, number);
        segments.extend(segment(DHT, &[&payload]));
    }
    Ok(segments)
}

/// Builds the DQT segments of the quantisation tables of `scan`, each with 8-bit values if they suffice.
fn quantisation_segments(scan: &Scan) -> Vec<u8> {
    let mut segments = Vec::new();
    let mut numbers = Vec::new();
    for component in &scan.components {
        if numbers.contains(&component.quant_number) {
            continue;
        }
        numbers.push(component.quant_number);
        let values: Result<Vec<u8>, _> =
            component.quant.iter().map(|v| u8::try_from(*v)).collect();
        if let Ok(values) = values {
            segments.extend(segment(DQT, &[&[component.quant_number], &values]));
        } else {
            let values: Vec<u8> = component.quant.iter().flat_map(|v| v.to_be_bytes()).collect();
            segments.extend(segment(DQT, &[&[0x10 | component.quant_number], &values]));
        }
    }
    segments
}

/// Builds the tables, frame and scan header of a picture of `size` with the components of `scan`.
///
/// `interval` is the number of MCUs between restart markers, 0 for none.
pub(super) fn headers(scan: &Scan, size: Size, interval: u16) -> Result<Vec<u8>, ScanError> {
    let count = u8::try_from(scan.components.len()).map_err(|_| ScanError::Scans)?;
    let mut frame = Vec::new();
    let mut selectors = Vec::new();
    for component in &scan.components {
        let across = u8::try_from(component.across).map_err(|_| ScanError::Sampling)?;
        let down = u8::try_from(component.down).map_err(|_| ScanError::Sampling)?;
        frame.extend([component.id, across << 4 | down, component.quant_number]);
        let (dc, ac) = component.table_numbers;
        let dc = u8::try_from(dc).map_err(|_| ScanError::Tables)?;
        let ac = u8::try_from(ac).map_err(|_| ScanError::Tables)?;
        selectors.extend([component.id, dc << 4 | ac]);
    }
    // Baseline allows 8-bit quantisation tables and two Huffman tables of each class; anything more is extended
    // sequential, whose frame has the next code (T.81 table B.1).
    let is_extended = scan.components.iter().any(|component| {
        let (dc, ac) = component.table_numbers;
        dc.max(ac) > 1 || component.quant.iter().any(|value| *value > 255)
    });
    let height = u16::try_from(size.height).map_err(|_| ScanError::Outside)?.to_be_bytes();
    let width = u16::try_from(size.width).map_err(|_| ScanError::Outside)?.to_be_bytes();
    let mut out = quantisation_segments(scan);
    // 8 is the precision of the samples in bits.
    out.extend(segment(SOF0 | u8::from(is_extended), &[&[8], &height, &width, &[count], &frame]));
    out.extend(huffman_segments(scan)?);
    if interval > 0 {
        out.extend(segment(DRI, &[&interval.to_be_bytes()]));
    }
    // The last bytes are those of a sequential scan: all 64 coefficients, in full precision.
    out.extend(segment(SOS, &[&[count], &selectors, &[0, 63, 0]]));
    Ok(out)
}
