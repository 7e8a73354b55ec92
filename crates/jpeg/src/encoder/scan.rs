//! Converts quantised coefficients to the tokens of sequential and progressive scans (T.81, F.1.2, G.1.2).

use super::huffman::{TableSlot, Token};
use crate::coefficient_grid::CoefficientGrid;
use crate::scan::COMPONENTS_MAX;

/// Longest run of blocks that one end-of-band symbol can represent (T.81, G.1.2.2).
const BAND_RUN_MAX: u32 = 0x7FFF;
/// Maximum number of correction bits that wait for an end-of-band symbol; libjpeg's encoder has the same limit.
const CORRECTIONS_MAX: usize = 937;
/// The symbol for sixteen zeros.
const SIXTEEN_ZEROS: u8 = 0xF0;

/// The coefficients of a scan: a band of the zigzag order and the bits of successive approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Band {
    /// The first coefficient of the band (Ss).
    pub(super) first: u8,
    /// The last coefficient of the band (Se).
    pub(super) last: u8,
    /// Number of low bits left out by the previous scan; 0 if this scan is the first (Ah).
    pub(super) high: u8,
    /// Number of low bits left out by this scan (Al).
    pub(super) low: u8,
}

/// Returns the number of bits of a magnitude.
fn bit_size(magnitude: u16) -> u32 {
    16 - magnitude.leading_zeros()
}

/// Returns the raw bits of a value; a negative value is coded as the bits of the value less one (T.81, F.1.2.1.1).
fn value_bits(negative: bool, magnitude: u16) -> u32 {
    u32::from(if negative { !magnitude } else { magnitude })
}

fn symbol(high: u32, low: u32) -> u8 {
    u8::try_from(high << 4 | low).expect("runs and sizes have four bits")
}

/// Returns the tokens of a scan of all coefficients of all components, block by block (F.1.2).
pub(super) fn sequential(grids: &[CoefficientGrid]) -> Vec<Token> {
    interleaved(grids, true)
}

/// Returns the tokens of a scan of the DC of all components, with all its bits (G.1.2.1).
pub(super) fn dc(grids: &[CoefficientGrid]) -> Vec<Token> {
    interleaved(grids, false)
}

/// Visits the blocks of all components MCU by MCU, or block by block if there is only one component.
fn interleaved(grids: &[CoefficientGrid], with_ac: bool) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut predictions = [0i16; COMPONENTS_MAX];
    // A scan of one component is never padded to whole MCUs (T.81, A.2.2).
    let is_padded = grids.len() > 1;
    let (across, down) = if is_padded { factors(&grids[0]) } else { (1, 1) };
    let cols = grids[0].cols.div_ceil(across);
    let rows = grids[0].rows.div_ceil(down);
    for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
        for (index, grid) in grids.iter().enumerate() {
            let (across, down) = if is_padded { factors(grid) } else { (1, 1) };
            let (dc_slot, ac_slot) = slots(index);
            for at in 0..across * down {
                let y = row * down + at / across;
                let x = col * across + at % across;
                let (block, mask) = if y < grid.rows && x < grid.cols {
                    let at = y * grid.cols + x;
                    (grid.blocks[at], grid.masks[at])
                } else {
                    // Padding is not shown, so it gets the cheapest code: no difference and no AC.
                    let mut padding = [0; 64];
                    padding[0] = predictions[index];
                    (padding, 0)
                };
                let difference = block[0] - predictions[index];
                predictions[index] = block[0];
                let size = bit_size(difference.unsigned_abs());
                let bits = value_bits(difference < 0, difference.unsigned_abs());
                tokens.push(Token::symbol(dc_slot, symbol(0, size), bits, size));
                if with_ac {
                    sequential_ac(&block, mask, ac_slot, &mut tokens);
                }
            }
        }
    }
    tokens
}

/// Returns the number of blocks of a component in a row and in a column of an MCU.
fn factors(grid: &CoefficientGrid) -> (usize, usize) {
    (usize::from(grid.across), usize::from(grid.down))
}

/// Returns the slots of the DC and AC tables of a component.
fn slots(component: usize) -> (TableSlot, TableSlot) {
    match component {
        0 => (TableSlot::LumaDc, TableSlot::LumaAc),
        _ => (TableSlot::ChromaDc, TableSlot::ChromaAc),
    }
}

/// Iterates over the positions of the bits of a mask.
fn positions(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            at
        })
    })
}

fn sequential_ac(block: &[i16; 64], mask: u64, slot: TableSlot, tokens: &mut Vec<Token>) {
    let mut next = 1;
    for at in positions(mask & !1) {
        let mut run = at - next;
        while run > 15 {
            tokens.push(Token::symbol(slot, SIXTEEN_ZEROS, 0, 0));
            run -= 16;
        }
        let value = block[at as usize];
        let size = bit_size(value.unsigned_abs());
        let bits = value_bits(value < 0, value.unsigned_abs());
        tokens.push(Token::symbol(slot, symbol(run, size), bits, size));
        next = at + 1;
    }
    if next < 64 {
        tokens.push(Token::symbol(slot, 0, 0, 0));
    }
}

/// Returns the tokens of one AC scan of one component (G.1.2.2, G.1.2.3).
///
/// `component` is the index in the frame.
pub(super) fn ac(grid: &CoefficientGrid, component: usize, band: Band) -> Vec<Token> {
    let (_, slot) = slots(component);
    let mut scan = AcScan { slot, band_run: 0, corrections: Vec::new(), tokens: Vec::new() };
    let range = (u64::MAX >> (63 - band.last)) & (u64::MAX << band.first);
    for (block, &mask) in grid.blocks.iter().zip(&grid.masks) {
        if band.high == 0 {
            scan.first(block, mask & range, band);
        } else {
            scan.refinement(block, mask & range, band);
        }
    }
    scan.end_band();
    scan.tokens
}

/// The state of an AC scan between blocks.
struct AcScan {
    slot: TableSlot,
    /// The number of ended blocks that have no symbol yet.
    band_run: u32,
    /// Correction bits that follow the symbol of the run.
    corrections: Vec<bool>,
    tokens: Vec<Token>,
}

impl AcScan {
    /// Writes the symbol of the waiting run of blocks, and the correction bits of these blocks.
    fn end_band(&mut self) {
        if self.band_run > 0 {
            let size = self.band_run.ilog2();
            self.tokens.push(Token::symbol(self.slot, symbol(size, 0), self.band_run, size));
            self.band_run = 0;
            write_corrections(&self.corrections, &mut self.tokens);
            self.corrections.clear();
        }
    }

    /// Codes the high bits of a block's band.
    fn first(&mut self, block: &[i16; 64], mask: u64, band: Band) {
        let mut next = u32::from(band.first);
        for at in positions(mask) {
            let value = block[at as usize];
            let magnitude = value.unsigned_abs() >> band.low;
            if magnitude == 0 {
                continue;
            }
            self.end_band();
            let mut run = at - next;
            while run > 15 {
                self.tokens.push(Token::symbol(self.slot, SIXTEEN_ZEROS, 0, 0));
                run -= 16;
            }
            let size = bit_size(magnitude);
            let bits = value_bits(value < 0, magnitude);
            self.tokens.push(Token::symbol(self.slot, symbol(run, size), bits, size));
            next = at + 1;
        }
        if next <= u32::from(band.last) {
            self.band_run += 1;
            if self.band_run == BAND_RUN_MAX {
                self.end_band();
            }
        }
    }

    /// Codes the next bit of a block's band.
    fn refinement(&mut self, block: &[i16; 64], mask: u64, band: Band) {
        // The last coefficient that becomes non-zero; only corrections follow it.
        let new = positions(mask).filter(|&at| magnitude(block, at, band) == 1);
        let last_new = new.last().unwrap_or(0);
        let mut run = 0;
        let mut next = u32::from(band.first);
        let mut corrections = Vec::new();
        for at in positions(mask) {
            let magnitude = magnitude(block, at, band);
            if magnitude == 0 {
                continue;
            }
            run += at - next;
            next = at + 1;
            while run > 15 && at <= last_new {
                self.end_band();
                self.tokens.push(Token::symbol(self.slot, SIXTEEN_ZEROS, 0, 0));
                write_corrections(&corrections, &mut self.tokens);
                corrections.clear();
                run -= 16;
            }
            if magnitude > 1 {
                corrections.push(magnitude & 1 == 1);
                continue;
            }
            self.end_band();
            let sign = u32::from(block[at as usize] > 0);
            self.tokens.push(Token::symbol(self.slot, symbol(run, 1), sign, 1));
            write_corrections(&corrections, &mut self.tokens);
            corrections.clear();
            run = 0;
        }
        run += u32::from(band.last) + 1 - next;
        if run > 0 || !corrections.is_empty() {
            self.band_run += 1;
            self.corrections.extend(corrections);
            if self.band_run == BAND_RUN_MAX || self.corrections.len() > CORRECTIONS_MAX {
                self.end_band();
            }
        }
    }
}

/// Returns the magnitude of a coefficient without the bits that a scan leaves out.
fn magnitude(block: &[i16; 64], at: u32, band: Band) -> u16 {
    block[at as usize].unsigned_abs() >> band.low
}

fn write_corrections(corrections: &[bool], tokens: &mut Vec<Token>) {
    for bits in corrections.chunks(16) {
        let value = bits.iter().fold(0, |value, &bit| value << 1 | u32::from(bit));
        tokens.push(Token::raw(value, u32::try_from(bits.len()).expect("at most 16")));
    }
}
