//! Patches a scan locally: changes a few blocks and leaves all others identical, bit for bit.
//!
//! A scan is one long sequence of bits. It holds the MCUs of the picture row by row, each MCU holds a few blocks,
//! and each block consists of Huffman codes of different lengths. So a block cannot be replaced in place: its new
//! codes are longer or shorter than the old ones, and everything after them moves.
//!
//! But only the blocks under the changed rectangle need to be decoded, painted on and encoded again, with the
//! file's own tables. The rest is copied:
//!
//! - The data before the first changed MCU does not move. It is the *prefix*, which the caller takes from the file.
//! - The data between and after the changed MCUs keeps its bits but is shifted. Only the next DC coefficient of
//!   each component is recoded, because the file stores a DC as the difference to the previous block, which
//!   changed. The copied differences after it add up to the same values as before.
//! - A file may have *restart markers*, one after each `interval` MCUs. They start on a whole byte, and the DC
//!   differences start again from zero. So nothing moves after the next marker: it starts the *suffix*, which
//!   the caller takes from the file too. Without markers, the suffix is what follows the scan.
//!
//! ```text
//! file     ──────────────┬──────┬───────────┬──────┬───────────┬─────
//!            same bytes  │ new  │ same bits │ new  │ same bits │ same bytes
//! result   ──── prefix ──┴──────────────── middle ─────────────┴ suffix
//! ```

use std::ops::Range;

use crate::dct::{Dct, Divisors};
use crate::scan::bits::UnstuffedData;
use crate::scan::crop::{ScanRecoder, huffman_segments};
use crate::scan::cursor::{BlockSpan, ScanCursor};
use crate::scan::index::ScanIndex;
use crate::scan::region::{RegionSamples, grids};
use crate::scan::strip::CoefficientStrip;
use crate::scan::{
    ByteRanges, COMPONENTS_MAX, McuRect, Scan, ScanComponent, ScanError, ZIGZAG, to_usize,
};
use geometry::Rect;

/// A patched scan in three pieces: a prefix of the file, new bytes, a suffix of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedScan {
    /// Complete DHT segments, which replace the DHT segments of the file.
    pub tables: Vec<u8>,
    /// The unchanged byte range of the file, from the start of the scan's data.
    pub prefix: Range<u64>,
    /// New entropy-coded bytes, which follow the prefix.
    pub middle: Vec<u8>,
    /// Offset in the file from which it is unchanged again: the end of the scan, or the data after a restart
    /// marker.
    pub suffix: u64,
}

/// Returns the byte range of the file that [`patch`] reads for `rect`.
pub fn byte_range(scan: &Scan, index: &ScanIndex, rect: Rect) -> Result<Range<u64>, ScanError> {
    let mcus = scan.mcus_under(rect)?;
    let first = mcus.rows.start * scan.across + mcus.columns.start;
    let end_mcu = (mcus.rows.end - 1) * scan.across + mcus.columns.end;
    // All data up to the next restart marker is shifted by bits, so it has to be copied.
    let end = match scan.interval {
        0 => scan.mcus(),
        interval => end_mcu.div_ceil(interval).saturating_mul(interval).min(scan.mcus()),
    };
    index.byte_range(first..end)
}

/// Changes the pixels of `rect`, in pixels as stored, and re-encodes only the blocks that `rect` touches.
///
/// `paint` is called with the samples of one row of MCUs at a time and should change them only inside `rect`;
/// changes to blocks outside `rect` have no effect. `bytes` must hold the range that [`byte_range`] returns.
///
/// The coefficients of untouched blocks do not change. If the tables of the file have neither a code for a
/// coefficient in a touched block nor room for a new code, the coefficient becomes the nearest value that has a
/// code.
///
/// # Errors
///
/// [`ScanError::Outside`] if `rect` is empty or extends beyond the picture; the other errors mean that the file is
/// damaged or that `bytes` lacks part of the range.
pub fn patch(
    scan: &Scan,
    index: &ScanIndex,
    bytes: &ByteRanges<'_>,
    rect: Rect,
    dct: Dct,
    paint: &mut dyn FnMut(&mut RegionSamples),
) -> Result<PatchedScan, ScanError> {
    let mcus = scan.mcus_under(rect)?;
    let range = byte_range(scan, index, rect)?;
    let mut data = UnstuffedData::default();
    data.fill(bytes.find(range.clone())?, range.start)?;
    let first = mcus.rows.start * scan.across + mcus.columns.start;
    let mut cursor = index.seek(scan, &data, first)?;
    cursor.begin()?;
    let start = cursor.position();
    let mut recoder = ScanRecoder::new(scan)?;
    // The first new DC difference refers to an MCU that does not change.
    recoder.last_dc = cursor.predictors()?.map(i32::from);
    let mut rewrite = ScanRewrite {
        scan,
        index,
        data: &data,
        recoder,
        divisors: scan.components.iter().map(divisors).collect(),
        rect,
        strip: CoefficientStrip::new(scan, to_usize(mcus.columns.end - mcus.columns.start)),
        copied: start,
        next_mcu: first,
        aligned: false,
    };
    // The prefix ends on a byte boundary; the bits of the byte that contains `start` are copied.
    rewrite.recoder.writer.copy(&data, start - start % 8, start);
    let mut is_adjacent = true;
    for row in mcus.rows.clone() {
        bytes.check_continue()?;
        // The untouched MCUs between the previous row and this row are copied.
        if !is_adjacent {
            cursor = rewrite.bridge(row * scan.across + mcus.columns.start)?;
        }
        rewrite.patch_row(&mut cursor, dct, paint, row, &mcus.columns)?;
        let next = (row + 1) * scan.across + mcus.columns.start;
        is_adjacent =
            rewrite.rejoin(&mut cursor, Some(next).filter(|_| row + 1 < mcus.rows.end))?;
    }
    let suffix = rewrite.finish()?;
    let mut middle = Vec::new();
    rewrite.recoder.writer.finish_into(&mut middle);
    let tables = huffman_segments(scan)?;
    Ok(PatchedScan {
        tables,
        prefix: scan.start..data.to_file_position(start) / 8,
        middle,
        suffix,
    })
}

/// A patch in progress: the output so far, and the position in the data up to which it was copied.
///
/// [`patch`] calls, for each row of touched MCUs, [`bridge`](Self::bridge) to get there,
/// [`patch_row`](Self::patch_row) and [`rejoin`](Self::rejoin); in the end it calls [`finish`](Self::finish).
/// Positions count the bits of `data`, which is the scan without stuffed bytes and restart markers.
struct ScanRewrite<'a> {
    scan: &'a Scan,
    index: &'a ScanIndex,
    data: &'a UnstuffedData,
    recoder: ScanRecoder,
    divisors: Vec<Divisors>,
    rect: Rect,
    strip: CoefficientStrip,
    /// Position of the next bit of the data to copy.
    copied: u64,
    /// Number of the next MCU to write.
    next_mcu: u32,
    /// True if a restart marker followed the last change, so that the data is byte-aligned as in the file.
    aligned: bool,
}

impl<'a> ScanRewrite<'a> {
    /// Copies the untouched data before MCU `target`; returns a cursor at `target`, with `begin` called.
    fn bridge(&mut self, target: u32) -> Result<ScanCursor<'a>, ScanError> {
        self.copy_to_restart(target)?;
        let mut cursor = self.index.seek(self.scan, self.data, target)?;
        cursor.begin()?;
        self.copy_to(cursor.position());
        self.recoder.last_dc = cursor.predictors()?.map(i32::from);
        self.next_mcu = target;
        Ok(cursor)
    }

    /// Decodes, paints and encodes the touched MCUs of a row.
    ///
    /// `cursor` must be at the first touched MCU, with `begin` called.
    fn patch_row(
        &mut self,
        cursor: &mut ScanCursor<'a>,
        dct: Dct,
        paint: &mut dyn FnMut(&mut RegionSamples),
        row: u32,
        columns: &Range<u32>,
    ) -> Result<(), ScanError> {
        self.strip.clear();
        let mut spans = Vec::new();
        let mut restarts = Vec::new();
        for column in 0..columns.len() {
            restarts.push(if column > 0 { cursor.begin()? } else { None });
            cursor.decode_and_report(&mut self.strip, column, &mut |span| spans.push(span))?;
        }
        cursor.check()?;
        let mcus = McuRect { columns: columns.clone(), rows: row..row + 1 };
        let mut samples = grids(self.scan, &mcus);
        self.strip.inverse(dct, &mut samples.grids, 0);
        paint(&mut samples);
        self.strip.forward(dct, &samples.grids, 0, &self.divisors);
        // New codes have different lengths, so the data that follows is shifted by some bits.
        self.aligned = false;
        let mcus = spans.chunks_exact(self.scan.blocks.len());
        for (column, (spans, restart)) in mcus.zip(restarts).enumerate() {
            if let Some(number) = restart {
                self.restart(number);
            }
            self.code_mcu(spans, row, columns.start, column)?;
        }
        self.copied = cursor.position();
        self.next_mcu = cursor.mcu();
        Ok(())
    }

    /// Writes the MCU in `column` of the strip: re-encodes the touched blocks and copies the bits of the other
    /// blocks.
    fn code_mcu(
        &mut self,
        spans: &[BlockSpan],
        row: u32,
        first: u32,
        column: usize,
    ) -> Result<(), ScanError> {
        let Self { scan, data, recoder, rect, strip, .. } = self;
        let ScanRecoder { coders, writer, last_dc } = recoder;
        for (number, span) in spans.iter().enumerate() {
            let position = strip.position(number, column);
            let coder = &coders[span.component];
            let origin = strip.origin(position, scan, row, first);
            if is_touched(&scan.components[span.component], origin, *rect) {
                let block = strip.block(position);
                let dc = i32::from(block[0]);
                coder.write_dc(writer, dc - last_dc[span.component])?;
                coder.write_ac(writer, block)?;
                last_dc[span.component] = dc;
            } else {
                // The previous block may have changed, so the DC difference has to be recoded.
                coder.write_dc(writer, span.dc - last_dc[span.component])?;
                writer.copy(data, span.ac, span.end);
                last_dc[span.component] = span.dc;
            }
        }
        Ok(())
    }

    /// Connects the written data to the data that follows.
    ///
    /// `next` is the next touched MCU. If it follows immediately, the result is true and `cursor` is left there,
    /// with `begin` called.
    fn rejoin(
        &mut self,
        cursor: &mut ScanCursor<'a>,
        next: Option<u32>,
    ) -> Result<bool, ScanError> {
        if self.next_mcu >= self.scan.mcus() {
            return Ok(false);
        }
        let is_next = next == Some(self.next_mcu);
        if let Some(number) = cursor.begin()? {
            // A restart resets the predictors, so the next MCU need not be recoded.
            self.restart(number);
            self.aligned = true;
        } else if !is_next {
            self.recoder.recode_mcu(self.data, cursor)?;
        }
        self.copied = cursor.position();
        self.next_mcu = cursor.mcu();
        Ok(is_next)
    }

    /// Copies the data after the last change; returns the offset in the file at which the suffix starts.
    fn finish(&mut self) -> Result<u64, ScanError> {
        self.copy_to_restart(u32::MAX)?;
        if self.aligned {
            return Ok(self.data.to_file_position(self.copied) / 8);
        }
        // Without a restart marker, the data is shifted up to the end of the scan.
        if self.next_mcu < self.scan.mcus() {
            self.copy_to(self.data.from_file_position(self.index.end)?);
        }
        Ok(self.index.marker)
    }

    /// Writes a restart marker, after which the DC differences refer to zero.
    fn restart(&mut self, number: u8) {
        self.recoder.writer.restart(number);
        self.recoder.last_dc = [0; COMPONENTS_MAX];
    }

    /// Copies up to the next restart marker, if any, at or before MCU `limit`.
    ///
    /// The end of the data before the marker must be known to the bit, because the ones that pad its last byte are
    /// not data.
    fn copy_to_restart(&mut self, limit: u32) -> Result<(), ScanError> {
        if self.aligned || self.scan.interval == 0 {
            return Ok(());
        }
        let interval = self.scan.interval;
        let restart = self.next_mcu.div_ceil(interval).saturating_mul(interval);
        if restart > limit || restart >= self.scan.mcus() {
            return Ok(());
        }
        let mut cursor = self.index.seek(self.scan, self.data, restart - 1)?;
        cursor.begin()?;
        cursor.skip_mcu()?;
        cursor.check()?;
        self.recoder.writer.copy(self.data, self.copied, cursor.position());
        let number = cursor.begin()?.ok_or(ScanError::Damaged { mcu: restart })?;
        self.recoder.writer.restart(number);
        self.copied = cursor.position();
        self.next_mcu = restart;
        self.aligned = true;
        Ok(())
    }

    /// Copies up to the bit `position`, including the restart markers before it.
    fn copy_to(&mut self, position: u64) {
        let mut next = self.data.first_restart_after(self.copied);
        while let Some((start, number)) = self.data.restart(next).filter(|at| at.0 <= position) {
            self.recoder.writer.copy(self.data, self.copied, start);
            self.recoder.writer.restart(number);
            self.copied = start;
            next += 1;
        }
        self.recoder.writer.copy(self.data, self.copied, position);
        self.copied = position;
    }
}

/// Prepares the quantisation table of a component for the transform.
fn divisors(component: &ScanComponent) -> Divisors {
    let mut natural = [1; 64];
    // Files store tables in zigzag order, but the transform needs them row by row.
    for (value, position) in component.quant.iter().zip(ZIGZAG) {
        natural[usize::from(position) & 63] = *value;
    }
    Divisors::new(&natural)
}

/// Returns whether the block whose first sample is `origin` has a sample for a pixel of `rect`.
fn is_touched(component: &ScanComponent, origin: (u32, u32), rect: Rect) -> bool {
    meets(origin.0, component.cell.0, rect.x, rect.width)
        && meets(origin.1, component.cell.1, rect.y, rect.height)
}

/// Returns whether eight samples from `origin`, each of `cell` pixels, overlap a span of pixels.
fn meets(origin: u32, cell: u32, start: u32, length: u32) -> bool {
    origin * cell < start + length && (origin + 8) * cell > start
}
