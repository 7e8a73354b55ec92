//! Provides random access to one baseline scan: decodes, cuts or changes a part of it.
//!
//! # The relevant parts of the format (ITU-T T.81)
//!
//! A component's samples are divided into *blocks* of 8x8. Each block is transformed (A.3.3) into 64
//! *coefficients*. The first coefficient, DC, is the block's mean; the others, AC, are its detail from coarse to
//! fine in *zigzag* order (A.3.6). Every coefficient is divided by an entry of a quantisation table and rounded:
//! this is the lossy step.
//!
//! The blocks of all components that cover the same part of the picture form an *MCU* (minimum coded unit, A.2):
//! with 4:2:0 sampling four luma blocks and one block of each chroma component, 16x16 pixels. MCUs follow each
//! other row by row:
//!
//! ```text
//! MCU 0                          MCU 1
//! ├ Y0 ─┼ Y1 ─┼ Y2 ─┼ Y3 ─┼ Cb ─┼ Cr ─┤ Y0 ─┼ …
//! │     └ DC: size, then that many bits: the difference from the DC of the component's last block
//! │       AC: (run of zeros, size), value bits; …; end of block
//! ```
//!
//! Sizes and runs are Huffman codes (F.1.2) of 1 to 16 bits; nothing is byte-aligned. An `FF` byte in the data is
//! followed by a stuffed `00`. So a scan can only be read from its start: the position of an MCU and its DC depend
//! on all data before it.
//!
//! # Random access
//!
//! [`index`] reads the scan once and records entry points: every few MCUs, the bit position of an MCU and the DC
//! predictors there. With that index, [`region`] decodes a rectangle without its surroundings, [`crop`] copies the
//! coefficients of a rectangle, [`patch`] changes some blocks and leaves all others identical bit for bit, and
//! [`bands`] gives libjpeg-turbo parts of the picture to scale down on all cores. [`index_codec`] saves and loads
//! an index.
//!
//! [`Scan`] holds the information from the headers. [`tables`] has the Huffman tables, [`bits`] reads and writes
//! bits, [`cursor`] reads block after block. Each operation has a function `byte_range` or `byte_ranges` that
//! returns the byte ranges of the file that it reads.
//!
//! A scan that violates a rule of the format is refused with a [`ScanError`]; [`crate::codec`] can then decode the
//! whole picture. An accepted scan gives exactly the samples of libjpeg-turbo.

pub mod bands;
pub mod bits;
pub mod crop;
pub mod cursor;
mod error;
pub mod index;
pub mod index_codec;
pub mod patch;
pub mod region;
mod strip;
pub mod tables;

#[cfg(test)]
pub(crate) mod test_scans;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::codec::{ChromaSubsampling, ColourSpace};
use crate::header::{CodingProcess, DAC, DHT, JpegHeader};
pub use error::ScanError;
use geometry::{Rect, Size};
use tables::{AC, DC, HuffmanDecoder, HuffmanSpec};

/// Marker of a quantisation table segment.
pub(crate) const DQT: u8 = 0xDB;

/// Maximum number of blocks in an MCU (T.81 B.2.3).
pub(crate) const MCU_BLOCKS_MAX: usize = 10;

/// Maximum number of components in a scan: the four of CMYK.
pub const COMPONENTS_MAX: usize = 4;

/// Index, row by row, in a block of the coefficient at each zigzag position (T.81 figure A.6).
#[rustfmt::skip]
pub const ZIGZAG: [u8; 64] = [
     0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// One component of the scan.
#[derive(Clone, Debug)]
pub struct ScanComponent {
    /// Identifier of the component in the frame.
    pub id: u8,
    /// Number of this component's blocks in a row of an MCU.
    pub across: u32,
    /// Number of this component's blocks in a column of an MCU.
    pub down: u32,
    /// Number of the component's quantisation table in the file, 0 to 3.
    pub quant_number: u8,
    /// The component's quantisation table in zigzag order.
    pub quant: [u16; 64],
    /// The quantisation table with the destination of each coefficient: 16 bits of divisor, then the index in a
    /// block. Longer than a block, because damaged data can run past the end of a block before the decoder detects
    /// it.
    steps: Box<[u32; 128]>,
    /// Numbers of the component's DC and AC tables, 0 to 3.
    pub table_numbers: (usize, usize),
    /// Size of the whole component in samples, without the padding that completes blocks.
    pub size: Size,
    /// Number of pixels that one sample covers, across and down.
    pub cell: (u32, u32),
}

/// The layout and tables of a scan, read from the headers.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Size of the picture in pixels as stored, before any EXIF orientation.
    pub size: Size,
    /// Size of an MCU in pixels.
    pub mcu: Size,
    /// Number of MCUs in a row.
    pub across: u32,
    /// Number of rows of MCUs.
    pub down: u32,
    /// The components, one to four.
    pub components: Vec<ScanComponent>,
    /// The component of each block of an MCU, as an index into `components`.
    pub blocks: Vec<usize>,
    /// MCUs between restart markers, 0 for none.
    pub interval: u32,
    /// Colour space and subsampling of a grey or YCbCr picture, whose components can be processed as separate
    /// planes; `None` for other colour spaces and unusual samplings.
    pub planes: Option<(ColourSpace, ChromaSubsampling)>,
    /// Offset in the file of the first byte of entropy-coded data.
    pub start: u64,
    specs: [[Option<HuffmanSpec>; 4]; 2],
    tables: [[Option<HuffmanDecoder>; 4]; 2],
}

impl Scan {
    /// Reads the layout and tables of the scan from the headers.
    ///
    /// `header` must have been parsed from `head`, which holds the file at least up to the data of the
    /// first scan.
    ///
    /// # Errors
    ///
    /// [`ScanError`] with the reason why random access is not possible.
    pub fn read(header: &JpegHeader, head: &[u8]) -> Result<Self, ScanError> {
        // With 8 bits, extended differs from baseline only in the number of tables (T.81 table B.1).
        if !matches!(header.process, CodingProcess::Baseline | CodingProcess::Extended) {
            return Err(ScanError::Process);
        }
        if header.precision != 8 {
            return Err(ScanError::Precision);
        }
        if header.scans != 1 {
            return Err(ScanError::Scans);
        }
        // libjpeg-turbo has no colour model for two components.
        if header.colour().is_none() {
            return Err(ScanError::Sampling);
        }
        let (specs, quants) = read_tables(header, head)?;
        let (selectors, start) = read_scan_header(header, head)?;
        let components = read_components(header, &selectors, &quants)?;
        let across = components.iter().map(|component| component.across).max().unwrap_or(1);
        let down = components.iter().map(|component| component.down).max().unwrap_or(1);
        let mcu = Size::new(8 * across, 8 * down);
        let mut blocks: Vec<usize> = Vec::new();
        for (index, component) in components.iter().enumerate() {
            let count = to_usize(component.across * component.down);
            blocks.extend(std::iter::repeat_n(index, count));
        }
        if blocks.len() > MCU_BLOCKS_MAX {
            return Err(ScanError::Sampling);
        }
        let mut tables: [[Option<HuffmanDecoder>; 4]; 2] = Default::default();
        for (class, number) in components.iter().flat_map(|component| {
            [(DC, component.table_numbers.0), (AC, component.table_numbers.1)]
        }) {
            let spec = specs[class][number].as_ref().ok_or(ScanError::Tables)?;
            if tables[class][number].is_none() {
                tables[class][number] = Some(HuffmanDecoder::new(spec, class)?);
            }
        }
        Ok(Self {
            size: header.size,
            mcu,
            across: header.size.width.div_ceil(mcu.width),
            down: header.size.height.div_ceil(mcu.height),
            planes: planes(header, &components),
            components,
            blocks,
            interval: u32::from(header.restart_interval),
            start,
            specs,
            tables,
        })
    }

    /// Returns the number of MCUs in the whole scan.
    pub fn mcus(&self) -> u32 {
        self.across.saturating_mul(self.down)
    }

    /// Returns the DC and AC tables of a component.
    fn tables_of(
        &self,
        component: usize,
    ) -> Result<(&HuffmanDecoder, &HuffmanDecoder), ScanError> {
        let (dc, ac) = self.components[component].table_numbers;
        let dc = self.tables[DC][dc].as_ref().ok_or(ScanError::Tables)?;
        let ac = self.tables[AC][ac].as_ref().ok_or(ScanError::Tables)?;
        Ok((dc, ac))
    }

    /// Returns whether a row of MCUs can be decoded without the data before it: its first MCU follows a restart
    /// marker, or the scan has no restart markers.
    pub fn starts_with_restart(&self, row: u32) -> bool {
        let first = u64::from(row) * u64::from(self.across);
        self.interval == 0 || first.is_multiple_of(u64::from(self.interval))
    }

    /// Returns the MCUs that `rect`, in pixels as stored, touches.
    fn mcus_under(&self, rect: Rect) -> Result<McuRect, ScanError> {
        let rect = rect.checked_in(self.size).map_err(|_| ScanError::Outside)?;
        Ok(McuRect {
            columns: steps_under(rect.x, rect.width, self.mcu.width),
            rows: steps_under(rect.y, rect.height, self.mcu.height),
        })
    }

    /// Returns the MCUs that are needed to decode `rect`, in pixels.
    ///
    /// Includes a margin around `rect` if chroma has to be interpolated.
    fn mcus_of(&self, rect: Rect) -> Result<McuRect, ScanError> {
        let rect = rect.checked_in(self.size).map_err(|_| ScanError::Outside)?;
        let cell_width = self.components.iter().map(|component| component.cell.0).max();
        let cell_height = self.components.iter().map(|component| component.cell.1).max();
        let columns = span(rect.x, rect.width, cell_width.unwrap_or(1), self.size.width);
        let rows = span(rect.y, rect.height, cell_height.unwrap_or(1), self.size.height);
        Ok(McuRect {
            columns: columns.start / self.mcu.width..columns.end.div_ceil(self.mcu.width),
            rows: rows.start / self.mcu.height..rows.end.div_ceil(self.mcu.height),
        })
    }
}

/// Returns the numbers of the steps of `step` pixels that a span of pixels touches.
fn steps_under(start: u32, length: u32, step: u32) -> Range<u32> {
    start / step..(start + length).div_ceil(step)
}

/// Extends a span of pixels by the margin that interpolation between cells of `cell` pixels needs.
fn span(start: u32, length: u32, cell: u32, edge: u32) -> Range<u32> {
    let margin = if cell > 1 { cell } else { 0 };
    let end = start.saturating_add(length).saturating_add(2 * margin).min(edge);
    start.saturating_sub(margin)..end
}

/// A rectangle of MCUs, as half-open ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McuRect {
    /// Columns of MCUs, counted from the left edge of the picture.
    pub columns: Range<u32>,
    /// Rows of MCUs, counted from the top edge of the picture.
    pub rows: Range<u32>,
}

pub(crate) type Specs = [[Option<HuffmanSpec>; 4]; 2];
pub(crate) type Quants = [Option<[u16; 64]>; 4];

fn read_tables(header: &JpegHeader, head: &[u8]) -> Result<(Specs, Quants), ScanError> {
    let (mut specs, mut quants): (Specs, Quants) = Default::default();
    for segment in &header.segments {
        let payload = head.get(segment.payload.clone()).ok_or(ScanError::Bytes)?;
        match segment.marker {
            DHT => read_huffman(payload, &mut specs)?,
            DQT => read_quantisation(payload, &mut quants)?,
            // This segment is not used by Huffman coding, but libjpeg-turbo refuses the file if it is broken.
            DAC => return Err(ScanError::Tables),
            _ => {}
        }
    }
    Ok((specs, quants))
}

/// Parses a DHT payload (T.81 B.2.4.2), which holds any number of tables.
pub(crate) fn read_huffman(mut payload: &[u8], specs: &mut Specs) -> Result<(), ScanError> {
    while let Some((head, rest)) = payload.split_first() {
        let (counts, rest) = rest.split_first_chunk::<16>().ok_or(ScanError::Tables)?;
        let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
        // More symbols than byte values: libjpeg-turbo refuses the file, even if no scan uses the table.
        if total > 256 {
            return Err(ScanError::Tables);
        }
        let (symbols, rest) = rest.split_at_checked(total).ok_or(ScanError::Tables)?;
        let class = specs.get_mut(usize::from(head >> 4)).ok_or(ScanError::Tables)?;
        let slot = class.get_mut(usize::from(head & 15)).ok_or(ScanError::Tables)?;
        *slot = Some(HuffmanSpec { counts: *counts, symbols: symbols.to_vec() });
        payload = rest;
    }
    Ok(())
}

/// Parses a DQT payload (T.81 B.2.4.1), which holds any number of tables of 8 or 16 bits.
pub(crate) fn read_quantisation(mut payload: &[u8], quants: &mut Quants) -> Result<(), ScanError> {
    while let Some((head, rest)) = payload.split_first() {
        let bytes = if head >> 4 == 0 { 64 } else { 128 };
        let (values, rest) = rest.split_at_checked(bytes).ok_or(ScanError::Tables)?;
        let mut table = [0; 64];
        for (index, value) in table.iter_mut().enumerate() {
            *value = if bytes == 64 {
                u16::from(values[index])
            } else {
                u16::from_be_bytes([values[2 * index], values[2 * index + 1]])
            };
        }
        // T.81 B.2.4.1 forbids a step of 0.
        if head >> 4 > 1 || table.contains(&0) {
            return Err(ScanError::Tables);
        }
        *quants.get_mut(usize::from(head & 15)).ok_or(ScanError::Tables)? = Some(table);
        payload = rest;
    }
    Ok(())
}

/// Reads the component and table selectors of the first scan, and the offset of its data.
fn read_scan_header(header: &JpegHeader, head: &[u8]) -> Result<(Vec<[u8; 2]>, u64), ScanError> {
    let at = header.first_scan;
    let length = head.get(at + 2..at + 4).ok_or(ScanError::Bytes)?;
    let end = at + 2 + usize::from(length[0]) * 256 + usize::from(length[1]);
    let payload = head.get(at + 4..end).ok_or(ScanError::Bytes)?;
    let (count, rest) = payload.split_first().ok_or(ScanError::Scans)?;
    let (selectors, tail) =
        rest.split_at_checked(2 * usize::from(*count)).ok_or(ScanError::Scans)?;
    let count = usize::from(*count);
    // Sequential scans always have spectral selection 0 to 63 and no successive approximation.
    if count != header.components.len() || count > COMPONENTS_MAX || tail != [0, 63, 0] {
        return Err(ScanError::Scans);
    }
    Ok((selectors.as_chunks::<2>().0.to_vec(), to_u64(end)))
}

/// Builds the components in frame order, each with the tables that the scan header selects for it.
fn read_components(
    header: &JpegHeader,
    selectors: &[[u8; 2]],
    quants: &Quants,
) -> Result<Vec<ScanComponent>, ScanError> {
    let h_max = header.components.iter().map(|component| component.h).max().unwrap_or(1);
    let v_max = header.components.iter().map(|component| component.v).max().unwrap_or(1);
    let mut components = Vec::with_capacity(selectors.len());
    for (component, [id, numbers]) in header.components.iter().zip(selectors) {
        let h = component.h;
        let v = component.v;
        // T.81 B.2.3 requires the order of the frame.
        if component.id != *id {
            return Err(ScanError::Scans);
        }
        if numbers >> 4 > 3 || numbers & 15 > 3 {
            return Err(ScanError::Tables);
        }
        if h_max % h != 0 || v_max % v != 0 {
            return Err(ScanError::Sampling);
        }
        let quant = quants.get(usize::from(component.tq)).copied().flatten();
        let quant = quant.ok_or(ScanError::Tables)?;
        let cell = (u32::from(h_max / h), u32::from(v_max / v));
        // In a scan with a single component, an MCU is one block, regardless of the sampling factors (T.81 A.2.2).
        let (across, down) = if header.components.len() == 1 { (1, 1) } else { (h, v) };
        components.push(ScanComponent {
            id: component.id,
            across: u32::from(across),
            down: u32::from(down),
            quant_number: component.tq,
            quant,
            steps: steps(&quant),
            table_numbers: (usize::from(numbers >> 4), usize::from(numbers & 15)),
            size: Size::new(
                header.size.width.div_ceil(cell.0),
                header.size.height.div_ceil(cell.1),
            ),
            cell,
        });
    }
    Ok(components)
}

/// Computes [`ScanComponent::steps`] from a quantisation table in zigzag order.
fn steps(quant: &[u16; 64]) -> Box<[u32; 128]> {
    // The entries beyond a block write a zero (divisor 0) to the last coefficient.
    let mut steps = Box::new([63 << 16; 128]);
    for ((step, divisor), position) in steps.iter_mut().zip(quant).zip(ZIGZAG) {
        *step = u32::from(*divisor) | u32::from(position) << 16;
    }
    steps
}

/// Returns colour space and sampling if the components can be processed as separate planes.
fn planes(
    header: &JpegHeader,
    components: &[ScanComponent],
) -> Option<(ColourSpace, ChromaSubsampling)> {
    match (header.colour(), components) {
        (Some(ColourSpace::Grey), _) => Some((ColourSpace::Grey, ChromaSubsampling::Full)),
        (Some(ColourSpace::YCbCr), [luma, blue, red]) => {
            // Planes need full luma and one grid for both chroma components.
            let full = luma.cell == (1, 1)
                && (blue.across, blue.down) == (red.across, red.down)
                && blue.across * blue.cell.0 == luma.across
                && blue.down * blue.cell.1 == luma.down;
            let chroma = ChromaSubsampling::from_cell(blue.cell).filter(|_| full)?;
            Some((ColourSpace::YCbCr, chroma))
        }
        _ => None,
    }
}

/// The cancellation check: returns `false` if the work should stop. Called from several threads.
pub type ShouldContinue<'a> = &'a (dyn Fn() -> bool + Sync);

/// The bytes of some ranges of a file, as requested by the `byte_range` functions of the operations.
#[derive(Clone, Default)]
pub struct ByteRanges<'a> {
    pieces: Vec<(u64, std::borrow::Cow<'a, [u8]>)>,
    should_continue: Option<ShouldContinue<'a>>,
}

impl<'a> ByteRanges<'a> {
    /// Wraps a whole file, so that every range can be read.
    pub fn whole(file: &'a [u8]) -> Self {
        Self { pieces: vec![(0, file.into())], should_continue: None }
    }

    /// Makes work with these bytes cancellable.
    ///
    /// `should_continue` is called before each row of MCUs and each band. Once it returns `false`, the work ends
    /// with [`ScanError::Stopped`].
    #[must_use]
    pub fn with_cancellation(self, should_continue: ShouldContinue<'a>) -> Self {
        Self { should_continue: Some(should_continue), ..self }
    }

    /// Fails with [`ScanError::Stopped`] if the work was cancelled.
    fn check_continue(&self) -> Result<(), ScanError> {
        if self.should_continue.is_none_or(|should_continue| should_continue()) {
            Ok(())
        } else {
            Err(ScanError::Stopped)
        }
    }

    /// Adds the bytes at offset `start`; pieces must be added in ascending order and not overlap.
    pub fn push(&mut self, start: u64, bytes: Vec<u8>) {
        self.pieces.push((start, bytes.into()));
    }

    /// Returns the bytes of `range`, cut off at the end of the piece that contains its start.
    fn find(&self, range: Range<u64>) -> Result<&[u8], ScanError> {
        self.check_continue()?;
        let next = self.pieces.partition_point(|(start, _)| *start <= range.start);
        let (start, piece) =
            next.checked_sub(1).map(|at| &self.pieces[at]).ok_or(ScanError::Bytes)?;
        let end = range.end.max(range.start);
        let first = usize::try_from(range.start - start).map_err(|_| ScanError::Bytes)?;
        let last = usize::try_from(end - start).map_err(|_| ScanError::Bytes)?;
        piece
            .get(first..last.min(piece.len()))
            .filter(|bytes| !bytes.is_empty())
            .ok_or(ScanError::Bytes)
    }
}

fn to_usize(value: u32) -> usize {
    usize::try_from(value).expect("indices have at least 32 bits")
}

fn to_u64(value: usize) -> u64 {
    u64::try_from(value).expect("indices have at most 64 bits")
}
