//! Decodes the entropy-coded data of one scan (T.81, F.2, G.2).

use std::ops::RangeInclusive;

use super::symbols::SymbolTable;
use crate::coefficient_grid::CoefficientGrid;
use crate::scan::bits::{EntropyReader, UnstuffedData};
use crate::scan::cursor::value;
use crate::scan::{COMPONENTS_MAX, ShouldContinue};

/// Largest size of a DC difference in 8-bit pictures (T.81, table F.1).
const DC_SIZE_MAX: u32 = 11;
/// The DC coefficients of 8-bit pictures: eight times a mean of samples from -128 to 127, and a margin above. Their
/// differences have at most [`DC_SIZE_MAX`] bits.
pub(super) const DC_RANGE: RangeInclusive<i32> = -1024..=1023;
/// Largest size of an AC coefficient in 8-bit pictures (T.81, table F.2).
const AC_SIZE_MAX: u32 = 10;
/// Largest magnitude of an AC coefficient in 8-bit pictures.
pub(super) const AC_MAX: i32 = (1 << AC_SIZE_MAX) - 1;
/// The run of a symbol for sixteen zeros.
const SIXTEEN_ZEROS: u32 = 15;
/// The number of correction bits that are read at a time; any number up to the bits of a refill would do.
const CORRECTIONS_AT_A_TIME: u32 = 32;

/// The reason why the data of a scan was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanDataError {
    /// A code does not exist, a run leaves the block, or the data ends early.
    Damaged,
    /// A coefficient is outside the range of 8-bit pictures.
    Range,
    /// The caller cancelled the work.
    Stopped,
}

/// One component of a scan, with its tables. A table that the scan does not use is `None`.
pub(super) struct ScanTables {
    /// Index of the component in the frame.
    pub(super) component: usize,
    pub(super) dc: Option<SymbolTable>,
    pub(super) ac: Option<SymbolTable>,
}

/// The coefficients that a scan holds of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanContent {
    /// All coefficients with all their bits: a scan of a sequential file.
    Whole,
    /// The DC coefficients without their `low` lowest bits.
    DcFirst { low: u32 },
    /// Bit `low` of the DC coefficients.
    DcRefinement { low: u32 },
    /// The AC coefficients of a band without their lowest bits.
    AcFirst(AcBand),
    /// The next bit of the AC coefficients of a band.
    AcRefinement(AcBand),
}

/// The AC coefficients and bits of a scan of one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcBand {
    /// The first coefficient, 1 to 63.
    pub(super) first: u32,
    /// The last coefficient, `first` to 63.
    pub(super) last: u32,
    /// Number of low bits that the scan leaves out.
    pub(super) low: u32,
}

impl AcBand {
    /// All AC coefficients with all their bits.
    const WHOLE: AcBand = AcBand { first: 1, last: 63, low: 0 };

    /// Returns the mask of the coefficients of the band.
    fn mask(self) -> u64 {
        (u64::MAX >> (63 - self.last)) & (u64::MAX << self.first)
    }
}

/// The state of decoding a scan.
pub(super) struct ScanDecoder<'a> {
    data: &'a UnstuffedData,
    reader: EntropyReader<'a>,
    content: ScanContent,
    /// MCUs between restart markers, 0 for none.
    interval: u32,
    until_restart: u32,
    /// Number of restart markers so far.
    restarts: usize,
    /// The DC predictor of each component of the scan.
    predictors: [i32; COMPONENTS_MAX],
    /// Number of blocks to come whose band has no new coefficients (T.81, G.1.2.2, EOBRUN).
    band_run: u32,
    /// True if a coefficient was out of range.
    is_out_of_range: bool,
}

impl<'a> ScanDecoder<'a> {
    /// Starts at the first bit of `data`.
    pub(super) fn new(data: &'a UnstuffedData, content: ScanContent, interval: u32) -> Self {
        Self {
            data,
            reader: EntropyReader::new(data, 0),
            content,
            interval,
            until_restart: interval,
            restarts: 0,
            predictors: [0; COMPONENTS_MAX],
            band_run: 0,
            is_out_of_range: false,
        }
    }

    /// Decodes the scan of the components of `tables` into `grids`.
    pub(super) fn decode(
        mut self,
        tables: &[ScanTables],
        grids: &mut [CoefficientGrid],
        should_continue: ShouldContinue<'_>,
    ) -> Result<(), ScanDataError> {
        match tables {
            // A scan of one component is not divided into MCUs (T.81, A.2.2).
            [only] => self.decode_component(only, &mut grids[only.component], should_continue),
            _ => self.decode_interleaved(tables, grids, should_continue),
        }?;
        // A run of blocks must not continue after the last block.
        if self.band_run > 0 { Err(ScanDataError::Damaged) } else { Ok(()) }
    }

    fn decode_component(
        &mut self,
        tables: &ScanTables,
        grid: &mut CoefficientGrid,
        should_continue: ShouldContinue<'_>,
    ) -> Result<(), ScanDataError> {
        let blocks = grid.blocks.chunks_mut(grid.cols).zip(grid.masks.chunks_mut(grid.cols));
        for (blocks, masks) in blocks {
            for (block, mask) in blocks.iter_mut().zip(masks) {
                self.begin()?;
                self.decode_block(tables, 0, block, mask).ok_or(ScanDataError::Damaged)?;
            }
            self.check(should_continue)?;
        }
        Ok(())
    }

    fn decode_interleaved(
        &mut self,
        tables: &[ScanTables],
        grids: &mut [CoefficientGrid],
        should_continue: ShouldContinue<'_>,
    ) -> Result<(), ScanDataError> {
        let first = &grids[tables[0].component];
        let mcu_cols = first.cols.div_ceil(usize::from(first.across));
        let mcu_rows = first.rows.div_ceil(usize::from(first.down));
        for mcu_row in 0..mcu_rows {
            for mcu_col in 0..mcu_cols {
                self.begin()?;
                for (index, tables) in tables.iter().enumerate() {
                    let grid = &mut grids[tables.component];
                    let across = usize::from(grid.across);
                    let down = usize::from(grid.down);
                    for at in 0..across * down {
                        let row = mcu_row * down + at / across;
                        let col = mcu_col * across + at % across;
                        let decoded = if row < grid.rows && col < grid.cols {
                            let at = row * grid.cols + col;
                            let block = &mut grid.blocks[at];
                            self.decode_block(tables, index, block, &mut grid.masks[at])
                        } else {
                            // Blocks that only complete an MCU are not kept.
                            self.decode_block(tables, index, &mut [0; 64], &mut 0)
                        };
                        decoded.ok_or(ScanDataError::Damaged)?;
                    }
                }
            }
            self.check(should_continue)?;
        }
        Ok(())
    }

    /// Moves past the restart marker if one is due before the next MCU.
    #[inline]
    fn begin(&mut self) -> Result<(), ScanDataError> {
        if self.interval == 0 {
            return Ok(());
        }
        if self.until_restart == 0 {
            let (start, number) =
                self.data.restart(self.restarts).ok_or(ScanDataError::Damaged)?;
            // Only the padding of the last byte may remain; more bits would be lost data.
            let unread = start.checked_sub(self.reader.position()).filter(|unread| *unread < 8);
            if unread.is_none() || usize::from(number) != self.restarts % 8 || self.band_run > 0 {
                return Err(ScanDataError::Damaged);
            }
            self.reader = EntropyReader::new(self.data, start);
            self.predictors = [0; COMPONENTS_MAX];
            self.restarts += 1;
            self.until_restart = self.interval;
        }
        self.until_restart -= 1;
        Ok(())
    }

    /// Fails if bits were read beyond the next restart marker or the end of the data, if a coefficient was out of
    /// range, or if the work was cancelled.
    fn check(&self, should_continue: ShouldContinue<'_>) -> Result<(), ScanDataError> {
        let end = self.data.restart(self.restarts).map_or(self.data.bit_count(), |(at, _)| at);
        if self.reader.position() > end {
            return Err(ScanDataError::Damaged);
        }
        if self.is_out_of_range {
            return Err(ScanDataError::Range);
        }
        if should_continue() { Ok(()) } else { Err(ScanDataError::Stopped) }
    }

    /// Decodes what the scan holds of a block; `None` if the data is damaged.
    #[inline]
    fn decode_block(
        &mut self,
        tables: &ScanTables,
        index: usize,
        block: &mut [i16; 64],
        mask: &mut u64,
    ) -> Option<()> {
        match self.content {
            ScanContent::Whole => {
                self.dc_first(tables.dc.as_ref()?, index, 0, block)?;
                self.whole_ac(tables.ac.as_ref()?, block, mask)?;
            }
            ScanContent::DcFirst { low } => {
                self.dc_first(tables.dc.as_ref()?, index, low, block)?;
            }
            ScanContent::DcRefinement { low } => {
                self.reader.refill();
                block[0] |= narrowed(self.take(1) << low);
                self.is_out_of_range |= !DC_RANGE.contains(&i32::from(block[0]));
            }
            ScanContent::AcFirst(band) => {
                return self.ac_first(tables.ac.as_ref()?, band, block, mask);
            }
            ScanContent::AcRefinement(band) => {
                return self.ac_refinement(tables.ac.as_ref()?, band, block, mask);
            }
        }
        *mask = *mask & !1 | u64::from(block[0] != 0);
        Some(())
    }

    /// Reads the next `count` bits, at most 32, of which that many are held.
    #[inline(always)]
    fn take(&mut self, count: u32) -> u32 {
        // Two shifts, because a shift by 64 is not allowed.
        let [.., b3, b2, b1, b0] = (self.reader.buffer >> 1 >> (63 - count)).to_be_bytes();
        self.reader.skip(count);
        u32::from_be_bytes([b3, b2, b1, b0])
    }

    /// Reads a symbol and drops its code; leaves at least 40 bits held.
    #[inline(always)]
    fn symbol(&mut self, table: &SymbolTable) -> Option<u32> {
        self.reader.refill();
        let (length, symbol) = table.find(self.reader.buffer)?;
        self.reader.skip(length);
        Some(u32::from(symbol))
    }

    /// Reads a value of `size` bits, which are held.
    #[inline(always)]
    fn value(&mut self, size: u32) -> i32 {
        let value = value(self.reader.buffer, size);
        self.reader.skip(size);
        value
    }

    /// Decodes the difference of a DC coefficient (T.81, F.2.2.1, G.1.2.1).
    #[inline]
    fn dc_first(
        &mut self,
        table: &SymbolTable,
        index: usize,
        low: u32,
        block: &mut [i16; 64],
    ) -> Option<()> {
        let size = self.symbol(table).filter(|size| *size <= DC_SIZE_MAX)?;
        let dc = self.predictors[index] + self.value(size);
        self.is_out_of_range |= !DC_RANGE.contains(&(dc << low));
        // Bounds the predictor, so that the next sum cannot overflow.
        self.predictors[index] = dc.clamp(-4096, 4096);
        block[0] = narrowed_signed(dc << low);
        Some(())
    }

    /// Decodes the AC coefficients of a block of a sequential scan (T.81, F.2.2.2).
    #[inline]
    fn whole_ac(
        &mut self,
        table: &SymbolTable,
        block: &mut [i16; 64],
        mask: &mut u64,
    ) -> Option<()> {
        let mut at = 1;
        while at < 64 {
            let symbol = self.symbol(table)?;
            if symbol == 0 {
                return Some(());
            }
            at = self.coefficient(symbol, at, AcBand::WHOLE, block, mask)?;
        }
        Some(())
    }

    /// Decodes the band of a block in a first scan (T.81, G.1.2.2).
    #[inline]
    fn ac_first(
        &mut self,
        table: &SymbolTable,
        band: AcBand,
        block: &mut [i16; 64],
        mask: &mut u64,
    ) -> Option<()> {
        if self.band_run > 0 {
            self.band_run -= 1;
            return Some(());
        }
        let mut at = band.first;
        while at <= band.last {
            let symbol = self.symbol(table)?;
            let run = symbol >> 4;
            if symbol & 15 == 0 && run < SIXTEEN_ZEROS {
                // This block is the first of the run.
                self.band_run = (1 << run) + self.take(run) - 1;
                return Some(());
            }
            at = self.coefficient(symbol, at, band, block, mask)?;
        }
        Some(())
    }

    /// Decodes a symbol with a run of zeros before position `at` and the coefficient after it, or with sixteen
    /// zeros; returns the position after them.
    #[inline(always)]
    fn coefficient(
        &mut self,
        symbol: u32,
        at: u32,
        band: AcBand,
        block: &mut [i16; 64],
        mask: &mut u64,
    ) -> Option<u32> {
        let run = symbol >> 4;
        let size = symbol & 15;
        if size == 0 {
            return (run == SIXTEEN_ZEROS && at + 16 <= band.last + 1).then_some(at + 16);
        }
        let at = at + run;
        if at > band.last || size > AC_SIZE_MAX {
            return None;
        }
        let value = self.value(size) << band.low;
        self.is_out_of_range |= value.abs() > AC_MAX;
        block[at as usize] = narrowed_signed(value);
        *mask |= 1 << at;
        Some(at + 1)
    }

    /// Decodes the next bit of the band of a block (T.81, G.1.2.3).
    ///
    /// A symbol has a run of coefficients that were zero and stay zero, and the sign of the coefficient after them,
    /// whose first bit this is. A correction bit follows for each coefficient between them that was not zero.
    #[inline]
    fn ac_refinement(
        &mut self,
        table: &SymbolTable,
        band: AcBand,
        block: &mut [i16; 64],
        mask: &mut u64,
    ) -> Option<()> {
        let low = band.low;
        // The positions of the band that have not been passed.
        let mut left = band.mask();
        while self.band_run == 0 && left != 0 {
            let symbol = self.symbol(table)?;
            let run = symbol >> 4;
            let new = match symbol & 15 {
                0 if run < SIXTEEN_ZEROS => {
                    self.band_run = (1 << run) + self.take(run);
                    break;
                }
                0 => 0,
                1 if self.take(1) == 1 => 1 << low,
                1 => -(1 << low),
                _ => return None,
            };
            let mut zeros = left & !*mask;
            for _ in 0..run {
                // Removes the lowest bit, if there is one.
                zeros &= zeros.wrapping_sub(1);
            }
            if zeros == 0 {
                return None;
            }
            let at = zeros.trailing_zeros();
            self.correct(left & *mask & ((1 << at) - 1), low, block);
            if new != 0 {
                self.is_out_of_range |= 1 << low > AC_MAX;
                block[at as usize] = new;
                *mask |= 1 << at;
            }
            left &= u64::MAX << at << 1;
        }
        if self.band_run > 0 {
            self.band_run -= 1;
            self.correct(left & *mask, low, block);
        }
        Some(())
    }

    /// Reads a correction bit for each of the coefficients at `positions`.
    #[inline]
    fn correct(&mut self, mut positions: u64, low: u32, block: &mut [i16; 64]) {
        while positions != 0 {
            self.reader.refill();
            let count = positions.count_ones().min(CORRECTIONS_AT_A_TIME);
            let bits = self.take(count);
            for number in (0..count).rev() {
                let coefficient = &mut block[(positions.trailing_zeros() & 63) as usize];
                positions &= positions - 1;
                let correction = narrowed((bits >> number & 1) << low);
                // The coefficient has no bit there yet, so its range does not grow.
                *coefficient += if *coefficient < 0 { -correction } else { correction };
            }
        }
    }
}

/// Converts a bit that a scan adds to a coefficient. A scan leaves out at most 13 bits.
#[inline(always)]
fn narrowed(bit: u32) -> i16 {
    let [low, high, ..] = bit.to_le_bytes();
    i16::from_le_bytes([low, high])
}

/// Converts a coefficient; a value that does not fit has been noticed as out of range.
#[inline(always)]
fn narrowed_signed(value: i32) -> i16 {
    let [low, high, ..] = value.to_le_bytes();
    i16::from_le_bytes([low, high])
}
