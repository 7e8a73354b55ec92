//! Reads a scan block by block from an entry point, and writes blocks.

use crate::scan::bits::{EntropyReader, EntropyWriter, UnstuffedData};
use crate::scan::strip::{Block, CoefficientStrip};
use crate::scan::tables::{CodeLookup, END, HuffmanCodes, HuffmanDecoder};
use crate::scan::{COMPONENTS_MAX, Scan, ScanError, ZIGZAG};

/// Largest size of an AC coefficient that is written.
const AC_SIZE_MAX: u32 = 10;

/// An entry point: the start of an MCU from which the scan can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// Position of the first code of the MCU in bits: the offset in the file times eight, plus the bit in that
    /// byte. In a stuffed pair it counts from the `FF`. If a restart marker precedes the MCU, the position is
    /// after the marker.
    pub bit_position: u64,
    /// The DC predictor of each component, not dequantised.
    pub dc: [i16; COMPONENTS_MAX],
}

/// The component and tables for reading one block of an MCU.
#[derive(Clone)]
struct ComponentPlan<'a> {
    component: usize,
    dc: &'a HuffmanDecoder,
    ac: &'a HuffmanDecoder,
    steps: &'a [u32; 128],
}

/// The position of a block in the data, in bits, and its DC.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSpan {
    pub(super) component: usize,
    /// The DC, not dequantised.
    pub(super) dc: i32,
    /// Position of the DC's code.
    pub(super) start: u64,
    /// Position of the first AC code.
    pub(super) ac: u64,
    /// Position after the last code.
    pub(super) end: u64,
}

/// A position between two MCUs of a scan.
#[derive(Clone)]
pub(super) struct ScanCursor<'a> {
    data: &'a UnstuffedData,
    reader: EntropyReader<'a>,
    plans: Vec<ComponentPlan<'a>>,
    /// The DC predictor of each component.
    dc: [i32; COMPONENTS_MAX],
    /// The number of the next MCU.
    mcu: u32,
    interval: u32,
    until_restart: u32,
    next_restart: usize,
}

impl<'a> ScanCursor<'a> {
    /// Creates a cursor before MCU `mcu`, to which `entry` points; `data` must hold that position.
    pub(super) fn at(
        scan: &'a Scan,
        data: &'a UnstuffedData,
        entry: &IndexEntry,
        mcu: u32,
    ) -> Result<Self, ScanError> {
        let position = data.from_file_position(entry.bit_position)?;
        let mut plans = Vec::with_capacity(scan.blocks.len());
        for &component in &scan.blocks {
            let (dc, ac) = scan.tables_of(component)?;
            let steps = &scan.components[component].steps;
            plans.push(ComponentPlan { component, dc, ac, steps });
        }
        let interval = scan.interval;
        Ok(Self {
            data,
            reader: EntropyReader::new(data, position),
            plans,
            dc: entry.dc.map(i32::from),
            mcu,
            interval,
            // An entry may be in the middle of an interval.
            until_restart: if interval == 0 { 0 } else { interval - mcu % interval },
            next_restart: data.first_restart_after(position),
        })
    }

    fn damaged(&self) -> ScanError {
        ScanError::Damaged { mcu: self.mcu }
    }

    /// Returns the number of the next MCU.
    pub(super) fn mcu(&self) -> u32 {
        self.mcu
    }

    /// Returns the position of the next bit.
    pub(super) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Returns the DC predictors of the next MCU.
    pub(super) fn predictors(&self) -> Result<[i16; COMPONENTS_MAX], ScanError> {
        let mut out = [0; COMPONENTS_MAX];
        for (to, from) in out.iter_mut().zip(self.dc) {
            // The index stores predictors in 16 bits, which suffice for any valid picture.
            *to = i16::try_from(from).map_err(|_| self.damaged())?;
        }
        Ok(out)
    }

    /// Moves past the restart marker if one is due before the next MCU, and returns its number.
    ///
    /// Must be called once before each MCU.
    pub(super) fn begin(&mut self) -> Result<Option<u8>, ScanError> {
        if self.interval == 0 {
            return Ok(None);
        }
        let mut restarted = None;
        if self.until_restart == 0 {
            // Restart markers are numbered 0 to 7 in rotation; a different number means lost data.
            let expected = (self.mcu / self.interval).wrapping_sub(1) & 7;
            let (start, number) =
                self.data.restart(self.next_restart).ok_or_else(|| self.damaged())?;
            // Only the padding of the last byte may remain; more bits would be lost data.
            let unread_bits =
                start.checked_sub(self.position()).filter(|unread_bits| *unread_bits < 8);
            if unread_bits.is_none() || u32::from(number) != expected {
                return Err(self.damaged());
            }
            self.reader = EntropyReader::new(self.data, start);
            self.dc = [0; COMPONENTS_MAX];
            self.next_restart += 1;
            self.until_restart = self.interval;
            restarted = Some(number);
        }
        self.until_restart -= 1;
        Ok(restarted)
    }

    /// Fails if bits were read beyond the next restart marker or the end of the data.
    pub(super) fn check(&self) -> Result<(), ScanError> {
        let end = self.data.restart(self.next_restart).map_or(self.data.bit_count(), |(at, _)| at);
        if self.position() <= end { Ok(()) } else { Err(self.damaged()) }
    }

    /// Skips the next MCU, updating the DC predictors.
    #[inline]
    pub(super) fn skip_mcu(&mut self) -> Result<(), ScanError> {
        let mut out_of_range = 0;
        for plan in &self.plans {
            let dc = &mut self.dc[plan.component];
            let skipped = read_dc(&mut self.reader, plan.dc, dc)
                .and_then(|()| skip_ac(&mut self.reader, plan.ac));
            skipped.ok_or(ScanError::Damaged { mcu: self.mcu })?;
            out_of_range |= beyond_16_bits(*dc);
        }
        if out_of_range != 0 {
            return Err(self.damaged());
        }
        self.mcu += 1;
        Ok(())
    }

    /// Skips MCUs up to `mcu`, which must not be before the cursor.
    pub(super) fn skip_to(&mut self, mcu: u32) -> Result<(), ScanError> {
        while self.mcu < mcu {
            self.begin()?;
            self.skip_mcu()?;
        }
        self.check()
    }

    /// Decodes the next MCU into `column` of a cleared strip, with dequantised coefficients.
    #[inline]
    pub(super) fn decode_mcu(
        &mut self,
        strip: &mut CoefficientStrip,
        column: usize,
    ) -> Result<(), ScanError> {
        self.decode_and_report(strip, column, &mut |_| ())
    }

    /// Decodes as [`ScanCursor::decode_mcu`] does, and reports the position of each block.
    #[inline(always)]
    pub(super) fn decode_and_report(
        &mut self,
        strip: &mut CoefficientStrip,
        column: usize,
        report: &mut impl FnMut(BlockSpan),
    ) -> Result<(), ScanError> {
        let mut out_of_range = 0;
        for (number, plan) in self.plans.iter().enumerate() {
            let component = plan.component;
            let block = strip.block_mut(number, column);
            let start = self.reader.position();
            let dc = &mut self.dc[component];
            let decoded = read_dc(&mut self.reader, plan.dc, dc).and_then(|()| {
                let ac = self.reader.position();
                // The predictors can be out of range if the index belongs to a different file.
                let first = dc.wrapping_mul(divisor(plan.steps[0]));
                block[0] = low_16(first);
                out_of_range |= beyond_16_bits(first) | beyond_16_bits(*dc);
                out_of_range |= decode_ac(&mut self.reader, plan, block)?;
                Some(BlockSpan { component, dc: *dc, start, ac, end: self.reader.position() })
            });
            report(decoded.ok_or(ScanError::Damaged { mcu: self.mcu })?);
        }
        if out_of_range != 0 {
            return Err(ScanError::Range);
        }
        self.mcu += 1;
        Ok(())
    }

    /// Skips the next MCU and reports the position of each of its blocks.
    pub(super) fn report_blocks(
        &mut self,
        report: &mut impl FnMut(BlockSpan),
    ) -> Result<(), ScanError> {
        let damaged = self.damaged();
        for plan in &self.plans {
            let start = self.reader.position();
            read_dc(&mut self.reader, plan.dc, &mut self.dc[plan.component]).ok_or(damaged)?;
            let ac = self.reader.position();
            self.reader.refill();
            skip_ac(&mut self.reader, plan.ac).ok_or(damaged)?;
            let component = plan.component;
            let end = self.reader.position();
            report(BlockSpan { component, dc: self.dc[component], start, ac, end });
        }
        self.mcu += 1;
        self.check()
    }
}

/// Returns a non-zero number if `value` does not fit into 16 bits with a sign.
#[inline(always)]
fn beyond_16_bits(value: i32) -> u32 {
    value.wrapping_add(1 << 15).cast_unsigned() >> 16
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the caller detects values that do not fit")]
fn low_16(value: i32) -> i16 {
    value as i16
}

/// Extracts the divisor from an entry of the `steps` of [`crate::scan::ScanComponent`].
#[inline(always)]
fn divisor(step: u32) -> i32 {
    (step & 0xFFFF).cast_signed()
}

/// Decodes the value in the first `size` bits of `bits` (T.81 F.2.2.1, EXTEND).
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most eleven bits are left")]
pub(crate) fn value(bits: u64, size: u32) -> i32 {
    let raw = (bits >> 1 >> (63 - size)) as i32;
    // Values whose first bit is 0 are negative.
    let negative = i32::from(bits >> 63 == 0);
    raw - negative * ((1 << size) - 1)
}

#[inline(always)]
fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(0)
}

/// Adds the next DC difference to `dc`; leaves at least 26 bits held.
#[inline(always)]
fn read_dc(reader: &mut EntropyReader<'_>, table: &HuffmanDecoder, dc: &mut i32) -> Option<()> {
    reader.refill();
    let step = table.find(reader.buffer)?;
    *dc = dc.wrapping_add(value(reader.buffer << step.code_bits(), step.value_bits()));
    reader.skip(step.total_bits());
    Some(())
}

/// Skips the AC codes of a block; at least 26 bits are held.
#[inline(always)]
fn skip_ac(reader: &mut EntropyReader<'_>, table: &HuffmanDecoder) -> Option<()> {
    const END_OF_BLOCK: u32 = END as u32;
    let mut at = 1u32;
    loop {
        let pair = table.pair(reader.buffer);
        let next = at + pair.advance();
        if next < 64 && pair.total_bits() > 0 {
            reader.skip(pair.total_bits());
            at = next;
        } else if (END_OF_BLOCK..END_OF_BLOCK + 64).contains(&next) {
            reader.skip(pair.total_bits());
            return Some(());
        } else {
            // A long code, or the last code of the block: a different table applies after it.
            let step = table.find(reader.buffer)?;
            reader.skip(step.total_bits());
            at += step.advance();
            if at >= 64 {
                // A run that ends beyond the block, without an end-of-block code, is damage.
                return (at == 64 || at > END_OF_BLOCK).then_some(());
            }
        }
        reader.refill();
    }
}

/// Decodes the AC codes of a block; at least 26 bits are held.
///
/// Returns a non-zero number if a coefficient is out of range, and `None` for invalid codes.
#[inline(always)]
fn decode_ac(
    reader: &mut EntropyReader<'_>,
    plan: &ComponentPlan<'_>,
    block: &mut Block,
) -> Option<u32> {
    let mut at = 1usize;
    let mut out_of_range = 0;
    loop {
        // A code with its value has at most 26 bits, so one refill suffices for two codes.
        let step = plan.ac.find(reader.buffer)?;
        if !read_ac_code(reader, step, plan.steps, block, &mut at, &mut out_of_range) {
            break;
        }
        reader.refill();
        let step = plan.ac.find(reader.buffer)?;
        if !read_ac_code(reader, step, plan.steps, block, &mut at, &mut out_of_range) {
            break;
        }
    }
    (at <= 64).then_some(out_of_range >> 16)
}

/// Decodes one AC code; returns false after the last code of the block.
#[inline(always)]
fn read_ac_code(
    reader: &mut EntropyReader<'_>,
    step: CodeLookup,
    steps: &[u32; 128],
    block: &mut Block,
    at: &mut usize,
    out_of_range: &mut u32,
) -> bool {
    if step.value_bits() == 0 {
        reader.skip(step.code_bits());
        if step.advance() == u32::from(END) {
            return false;
        }
        *at += 16;
        return *at < 64;
    }
    *at += index(step.advance()) - 1;
    // The mask replaces a bounds check; damaged data can lead past the block.
    let entry = steps[*at & 127];
    let product = value(reader.buffer << step.code_bits(), step.value_bits()) * divisor(entry);
    reader.skip(step.total_bits());
    // Collects range errors of the whole block, to avoid a branch per coefficient.
    *out_of_range |= product.wrapping_add(1 << 15).cast_unsigned();
    block[index(entry >> 16) & 63] = low_16(product);
    *at += 1;
    *at < 64
}

/// For each row of a block and each set of columns in it, the bit set of their zigzag positions.
static POSITIONS: [[u64; 256]; 8] = positions();

const fn positions() -> [[u64; 256]; 8] {
    let mut out = [[0; 256]; 8];
    let mut position = 0;
    while position < 64 {
        let row = (ZIGZAG[position] >> 3) as usize;
        let column = ZIGZAG[position] & 7;
        let mut columns = 0;
        while columns < 256 {
            if columns >> column & 1 == 1 {
                out[row][columns] |= 1 << position;
            }
            columns += 1;
        }
        position += 1;
    }
    out
}

/// Returns the bit set of the zigzag positions of all non-zero coefficients.
#[inline(always)]
fn non_zero(block: &Block) -> u64 {
    let mut out = 0;
    for (row, positions) in block.as_chunks::<8>().0.iter().zip(&POSITIONS) {
        let mut columns = 0u8;
        for (column, value) in row.iter().enumerate() {
            columns |= u8::from(*value != 0) << column;
        }
        out |= positions[usize::from(columns)];
    }
    out
}

/// The Huffman codes for writing the blocks of one component.
#[derive(Clone, Debug)]
pub(super) struct BlockCoder {
    pub(super) dc: HuffmanCodes,
    pub(super) ac: HuffmanCodes,
}

/// Returns the number of bits of the magnitude of `value`.
#[inline(always)]
fn size_of(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// Encodes `value` in `size` value bits (T.81 F.1.2.1).
#[inline(always)]
fn bits_of(value: i32, size: u32) -> u64 {
    let bits = if value < 0 { value - 1 } else { value };
    u64::from(bits.cast_unsigned() & ((1 << size) - 1))
}

impl BlockCoder {
    /// Writes a DC difference; fails with [`ScanError::Tables`] if the table has no code for it.
    pub(super) fn write_dc(
        &self,
        writer: &mut EntropyWriter,
        difference: i32,
    ) -> Result<(), ScanError> {
        let size = size_of(difference);
        let symbol = u8::try_from(size).map_err(|_| ScanError::Range)?;
        let (code, length) = self.dc.code_of(symbol);
        if length == 0 {
            return Err(ScanError::Tables);
        }
        writer.put(u64::from(code) << size | bits_of(difference, size), length + size);
        Ok(())
    }

    /// Writes the AC coefficients of a quantised block.
    ///
    /// A table that was optimised for one picture may have no code for a coefficient. Then a 1 is inserted into
    /// the zeros before it so that both runs have codes, or the coefficient is reduced or dropped, depending on
    /// which changes the block least.
    pub(super) fn write_ac(
        &self,
        writer: &mut EntropyWriter,
        block: &Block,
    ) -> Result<(), ScanError> {
        let mut rest = non_zero(block) & !1;
        // Zigzag position after the last written coefficient.
        let mut next = 1;
        while rest != 0 {
            let at = rest.trailing_zeros();
            rest &= rest - 1;
            let coefficient = i32::from(block[usize::from(ZIGZAG[index(at) & 63]) & 63]);
            // Ten bits, the maximum size of an AC coefficient of an 8-bit picture (T.81 table F.2).
            if self.write_value(writer, at - next, coefficient.clamp(-1023, 1023)) {
                next = at + 1;
            }
        }
        // A block whose last coefficient is not zero has no end-of-block code (T.81 F.1.2.2).
        if next < 64 {
            let (code, length) = self.ac.code_of(0);
            if length == 0 {
                return Err(ScanError::Tables);
            }
            writer.put(u64::from(code), length);
        }
        Ok(())
    }

    /// Writes a coefficient after `run` zeros; returns false if it had to be dropped.
    #[inline(always)]
    fn write_value(&self, writer: &mut EntropyWriter, run: u32, value: i32) -> bool {
        let size = size_of(value);
        if run < 16 {
            let (code, length) = self.code(run, size);
            if length > 0 {
                writer.put(u64::from(code) << size | bits_of(value, size), length + size);
                return true;
            }
        }
        self.write_uncoded(writer, run, value)
    }

    /// Returns the code and length for a run below 16 and a size; the length is 0 without a code.
    #[inline(always)]
    fn code(&self, run: u32, size: u32) -> (u32, u32) {
        self.ac.code_of(u8::try_from(run << 4 | size).unwrap_or(0))
    }

    /// Writes a coefficient without a single code: a long run, or a pair that is not in the table.
    #[cold]
    fn write_uncoded(&self, writer: &mut EntropyWriter, mut run: u32, value: i32) -> bool {
        let (zeros, zeros_length) = self.ac.code_of(0xF0);
        let mut pending = Vec::new();
        while run > 15 && zeros_length > 0 {
            pending.push((zeros, zeros_length));
            run -= 16;
        }
        for size in (1..=size_of(value).min(AC_SIZE_MAX)).rev() {
            let limit = (1 << size) - 1;
            let value = value.clamp(-limit, limit);
            if let Some(codes) = self.split(run, size) {
                pending.extend(codes);
                let last = pending.len() - 1;
                for (index, (code, length)) in pending.into_iter().enumerate() {
                    if index == last {
                        writer.put(u64::from(code) << size | bits_of(value, size), length + size);
                    } else {
                        writer.put(u64::from(code), length);
                    }
                }
                return true;
            }
        }
        false
    }

    /// Finds codes that skip `run` zeros and end with a value of `size` bits.
    ///
    /// All codes except the last include their value bits.
    fn split(&self, run: u32, size: u32) -> Option<Vec<(u32, u32)>> {
        if let Some(code) = self.single_code(run, size) {
            return Some(vec![code]);
        }
        // The 1 is inserted as late as possible: the later it is, the finer the detail that it adds.
        (0..run.min(16)).rev().find_map(|first| {
            let (code, length) = self.code(first, 1);
            let rest = self.single_code(run - first - 1, size).filter(|_| length > 0)?;
            Some(vec![(code << 1 | 1, length + 1), rest])
        })
    }

    /// Returns the code that skips `run` zeros and ends with a value of `size` bits; `None` if the table lacks it.
    fn single_code(&self, run: u32, size: u32) -> Option<(u32, u32)> {
        if run >= 16 {
            return None;
        }
        let (code, length) = self.code(run, size);
        (length > 0).then_some((code, length))
    }
}
