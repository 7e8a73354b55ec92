//! Reads the segments of a file and the order of its scans (T.81, annexes B and G.1).

use std::ops::Range;

use super::error::CoefficientError;
use super::scan_data::{AcBand, ScanContent, ScanDataError, ScanDecoder, ScanTables};
use super::symbols::SymbolTable;
use super::{CoefficientLimits, Coefficients};
use crate::coefficient_grid::CoefficientGrid;
use crate::header::{CodingProcess, DAC, DHT, DRI, EOI, FrameComponent, JpegHeader, SOI, SOS};
use crate::header::{RST0, RST7, TEM};
use crate::rewrite::colour_segments;
use crate::scan::bits::UnstuffedData;
use crate::scan::tables::{AC, DC, HuffmanSpec};
use crate::scan::{DQT, MCU_BLOCKS_MAX, Quants, ScanError, Specs};
use crate::scan::{read_huffman, read_quantisation};
use geometry::Size;

/// Marks a coefficient that no scan has held yet.
const UNSEEN: u8 = u8::MAX;
/// The largest number of bits that a scan may leave out (T.81, table B.3).
const LOW_BITS_MAX: u8 = 13;

/// Reads the coefficients of `jpeg`.
pub(super) fn read(
    jpeg: &[u8],
    limits: &CoefficientLimits<'_>,
) -> Result<Coefficients, CoefficientError> {
    let header = JpegHeader::parse(jpeg, &limits.header)?;
    check(&header, limits.pixels_max)?;
    let mut reader = FileReader::new(jpeg, &header, limits);
    for segment in &header.segments {
        let payload = jpeg.get(segment.payload.clone()).ok_or(CoefficientError::Tables)?;
        reader.read_tables(segment.marker, payload)?;
    }
    reader.read_scans(header.first_scan)?;
    let grids = reader.finish()?;
    let colour = colour_segments(&header, jpeg);
    let space = header.colour();
    Ok(Coefficients { size: header.size, colour, space, grids })
}

/// Fails unless the picture can be read.
fn check(header: &JpegHeader, pixels_max: u64) -> Result<(), CoefficientError> {
    match header.process {
        CodingProcess::Baseline | CodingProcess::Extended | CodingProcess::Progressive => {}
        CodingProcess::Lossless
        | CodingProcess::ArithmeticSequential
        | CodingProcess::ArithmeticProgressive
        | CodingProcess::ArithmeticLossless
        | CodingProcess::Hierarchical => return Err(CoefficientError::Process),
    }
    if header.precision != 8 {
        return Err(CoefficientError::Precision);
    }
    if header.size.pixels() > pixels_max {
        return Err(CoefficientError::TooLarge { size: header.size, pixels_max });
    }
    let blocks = header.components.iter().map(|component| component.h * component.v);
    // The coefficients are written in one interleaved scan.
    if header.components.len() > 1 && blocks.map(usize::from).sum::<usize>() > MCU_BLOCKS_MAX {
        return Err(CoefficientError::Sampling);
    }
    Ok(())
}

/// The state of reading a file: its tables, and the coefficients up to the current scan.
struct FileReader<'a> {
    jpeg: &'a [u8],
    limits: &'a CoefficientLimits<'a>,
    is_progressive: bool,
    components: &'a [FrameComponent],
    specs: Specs,
    quants: Quants,
    interval: u32,
    /// Number of the next scan.
    scan: u32,
    grids: Vec<CoefficientGrid>,
    /// For each component and coefficient, the number of low bits that its scans have left out so far, or
    /// [`UNSEEN`].
    lows: Vec<[u8; 64]>,
    /// The data of the current scan; its memory is reused.
    data: UnstuffedData,
}

impl<'a> FileReader<'a> {
    fn new(jpeg: &'a [u8], header: &'a JpegHeader, limits: &'a CoefficientLimits<'a>) -> Self {
        let finest = finest_factors(&header.components);
        let grids =
            header.components.iter().map(|component| empty_grid(component, header.size, finest));
        Self {
            jpeg,
            limits,
            is_progressive: header.process == CodingProcess::Progressive,
            components: &header.components,
            specs: Specs::default(),
            quants: Quants::default(),
            interval: 0,
            scan: 0,
            grids: grids.collect(),
            lows: vec![[UNSEEN; 64]; header.components.len()],
            data: UnstuffedData::default(),
        }
    }

    /// Reads a segment that is not a scan. Segments without tables are ignored.
    fn read_tables(&mut self, marker: u8, payload: &[u8]) -> Result<(), CoefficientError> {
        let read = match (marker, payload) {
            (DHT, _) => read_huffman(payload, &mut self.specs),
            (DQT, _) => read_quantisation(payload, &mut self.quants),
            (DRI, &[high, low]) => {
                self.interval = u32::from(u16::from_be_bytes([high, low]));
                Ok(())
            }
            // Arithmetic coding is not used here, but decoders refuse the file.
            (DRI | DAC, _) => Err(ScanError::Tables),
            _ => Ok(()),
        };
        read.map_err(|_| CoefficientError::Tables)
    }

    /// Reads the scans and the tables between them, from offset `at` to the end of the image.
    fn read_scans(&mut self, mut at: usize) -> Result<(), CoefficientError> {
        while let Some((marker, payload)) = next_segment(self.jpeg, at) {
            let bytes = self.jpeg.get(payload.clone()).ok_or(CoefficientError::Tables)?;
            at = payload.end;
            if marker == SOS {
                self.read_scan(bytes, at)?;
                self.scan += 1;
            } else {
                self.read_tables(marker, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads the scan whose header is `payload` and whose data starts at offset `start`.
    fn read_scan(&mut self, payload: &[u8], start: usize) -> Result<(), CoefficientError> {
        let script = CoefficientError::Script { scan: self.scan };
        let (count, rest) = payload.split_first().ok_or(script)?;
        let (selectors, tail) = rest.split_at_checked(2 * usize::from(*count)).ok_or(script)?;
        let &[first, last, bits] = tail else { return Err(script) };
        let mut components = Vec::new();
        for [id, _] in selectors.as_chunks::<2>().0 {
            let component = self.components.iter().position(|component| component.id == *id);
            // T.81 B.2.3 requires the order of the frame.
            let component = component.filter(|at| components.last().is_none_or(|last| last < at));
            components.push(component.ok_or(script)?);
        }
        let band = ScanBand { first, last, high: bits >> 4, low: bits & 15 };
        let content = self.content(&components, band).ok_or(script)?;
        self.latch_quantisation(&components)?;
        let mut tables = Vec::new();
        for (&component, [_, numbers]) in components.iter().zip(selectors.as_chunks::<2>().0) {
            tables.push(self.scan_tables(component, *numbers, content)?);
        }
        let data = self.jpeg.get(start..).unwrap_or_default();
        self.data.fill(data, 0).map_err(|_| CoefficientError::Length)?;
        let decoder = ScanDecoder::new(&self.data, content, self.interval);
        let decoded = decoder.decode(&tables, &mut self.grids, self.limits.should_continue);
        decoded.map_err(|error| match error {
            ScanDataError::Damaged => CoefficientError::Damaged { scan: self.scan },
            ScanDataError::Range => CoefficientError::Range,
            ScanDataError::Stopped => CoefficientError::Stopped,
        })
    }

    /// Returns what a scan holds, and records it; `None` unless it continues the scans before it (T.81, G.1.1.1).
    fn content(&mut self, components: &[usize], band: ScanBand) -> Option<ScanContent> {
        let ScanBand { first, last, high, low } = band;
        let is_whole = band == ScanBand { first: 0, last: 63, high: 0, low: 0 };
        let is_dc = (first, last) == (0, 0);
        // A scan of AC coefficients has one component.
        let is_ac = first > 0 && first <= last && last < 64 && components.len() == 1;
        let is_refinement = high > 0;
        let is_valid = if self.is_progressive {
            (is_dc || is_ac) && low <= LOW_BITS_MAX && (!is_refinement || high == low + 1)
        } else {
            is_whole
        };
        if !is_valid || components.is_empty() {
            return None;
        }
        for &component in components {
            let lows = &mut self.lows[component];
            // The DC coefficients come first.
            if is_ac && lows[0] == UNSEEN {
                return None;
            }
            let before = if is_refinement { high } else { UNSEEN };
            for state in &mut lows[usize::from(first)..=usize::from(last)] {
                if std::mem::replace(state, low) != before {
                    return None;
                }
            }
        }
        let low = u32::from(low);
        let first = u32::from(first);
        let last = u32::from(last);
        Some(match (self.is_progressive, is_dc, is_refinement) {
            (false, ..) => ScanContent::Whole,
            (true, true, false) => ScanContent::DcFirst { low },
            (true, true, true) => ScanContent::DcRefinement { low },
            (true, false, false) => ScanContent::AcFirst(AcBand { first, last, low }),
            (true, false, true) => ScanContent::AcRefinement(AcBand { first, last, low }),
        })
    }

    /// Takes over the quantisation tables of components in their first scan; later tables do not apply to them.
    fn latch_quantisation(&mut self, components: &[usize]) -> Result<(), CoefficientError> {
        for &component in components {
            let grid = &mut self.grids[component];
            // Steps are not 0, so the table has been taken over already.
            if grid.quant[0] > 0 {
                continue;
            }
            let number = usize::from(self.components[component].tq);
            let quant = self.quants.get(number).copied().flatten();
            grid.quant = quant.ok_or(CoefficientError::Tables)?;
        }
        Ok(())
    }

    /// Prepares the tables of a component that the scan needs. `numbers` has the number of the table for DC in the
    /// upper half and for AC in the lower half.
    fn scan_tables(
        &self,
        component: usize,
        numbers: u8,
        content: ScanContent,
    ) -> Result<ScanTables, CoefficientError> {
        let dc = &self.specs[DC];
        let ac = &self.specs[AC];
        let mut tables = ScanTables { component, dc: None, ac: None };
        match content {
            ScanContent::Whole => {
                tables.dc = Some(symbol_table(dc, numbers >> 4)?);
                tables.ac = Some(symbol_table(ac, numbers & 15)?);
            }
            ScanContent::DcFirst { .. } => tables.dc = Some(symbol_table(dc, numbers >> 4)?),
            ScanContent::DcRefinement { .. } => {}
            ScanContent::AcFirst(_) | ScanContent::AcRefinement(_) => {
                tables.ac = Some(symbol_table(ac, numbers & 15)?);
            }
        }
        Ok(tables)
    }

    /// Returns the grids if the scans held all coefficients with all their bits.
    fn finish(mut self) -> Result<Vec<CoefficientGrid>, CoefficientError> {
        if self.lows.iter().flatten().any(|low| *low > 0) {
            return Err(CoefficientError::Incomplete);
        }
        // A file may define a number again between two scans, so equal tables get equal numbers here.
        let mut distinct: Vec<[u16; 64]> = Vec::new();
        for grid in &mut self.grids {
            let known = distinct.iter().position(|quant| *quant == grid.quant);
            let number = known.unwrap_or(distinct.len());
            if known.is_none() {
                distinct.push(grid.quant);
            }
            grid.quant_number = u8::try_from(number).expect("at most four components");
        }
        Ok(self.grids)
    }
}

/// The coefficients and bits of a scan, as its header states them (T.81, B.2.3).
#[derive(Clone, Copy, PartialEq, Eq)]
struct ScanBand {
    first: u8,
    last: u8,
    high: u8,
    low: u8,
}

fn symbol_table(
    specs: &[Option<HuffmanSpec>; 4],
    number: u8,
) -> Result<SymbolTable, CoefficientError> {
    let spec = specs.get(usize::from(number)).and_then(Option::as_ref);
    spec.and_then(SymbolTable::new).ok_or(CoefficientError::Tables)
}

/// Returns the largest horizontal and vertical sampling factors.
pub(super) fn finest_factors(components: &[FrameComponent]) -> (u32, u32) {
    let across = components.iter().map(|component| u32::from(component.h)).max();
    let down = components.iter().map(|component| u32::from(component.v)).max();
    (across.unwrap_or(1), down.unwrap_or(1))
}

/// Returns the grid of a component without coefficients (T.81, A.1.1).
fn empty_grid(component: &FrameComponent, size: Size, finest: (u32, u32)) -> CoefficientGrid {
    let width = (size.width * u32::from(component.h)).div_ceil(finest.0);
    let height = (size.height * u32::from(component.v)).div_ceil(finest.1);
    let cols = width.div_ceil(8) as usize;
    let rows = height.div_ceil(8) as usize;
    CoefficientGrid {
        id: component.id,
        across: component.h,
        down: component.v,
        quant_number: 0,
        quant: [0; 64],
        cols,
        rows,
        blocks: vec![[0; 64]; cols * rows],
        masks: vec![0; cols * rows],
    }
}

/// Finds the next segment at or after offset `at`; returns its marker and the range of its payload. `None` at the
/// end of the image. Entropy-coded data and bytes between segments are skipped.
fn next_segment(jpeg: &[u8], mut at: usize) -> Option<(u8, Range<usize>)> {
    loop {
        at += memchr::memchr(0xFF, jpeg.get(at..)?)?;
        let marker = *jpeg.get(at + 1)?;
        match marker {
            // A fill byte: the next FF may start the marker.
            0xFF => at += 1,
            0x00 | TEM | RST0..=RST7 | SOI => at += 2,
            EOI => return None,
            _ => {
                let length = jpeg.get(at + 2..at + 4)?;
                let length = usize::from(length[0]) << 8 | usize::from(length[1]);
                return Some((marker, at + 4..at + 2 + length.max(2)));
            }
        }
    }
}
