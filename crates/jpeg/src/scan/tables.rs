//! Builds Huffman tables for decoding and encoding (T.81 annex C, F.1.2, F.2.2).
//!
//! A file specifies a table by the number of codes of each length, 1 to 16 bits, and the symbols in the order of
//! their codes. Codes of one length count up, and the next longer codes continue after the last shorter code. The
//! code of all ones is never used.

use crate::scan::error::ScanError;

/// Class number of the tables for DC differences.
pub const DC: usize = 0;
/// Class number of the tables for AC coefficients.
pub const AC: usize = 1;

/// Number of bits of one table lookup; longer codes are rare and are searched length by length.
pub(super) const LOOK: u32 = 11;

/// Number of bits of one table lookup if codes are only skipped.
pub(super) const PAIR: u32 = 12;

/// The value of [`CodeLookup::advance`] for the end-of-block code: beyond any position in a block.
pub(super) const END: u8 = 128;

/// Largest size of a DC difference in 8-bit pictures (T.81 table F.1).
const DC_SIZE_MAX: u8 = 11;
/// Largest size of an AC coefficient in 8-bit pictures (T.81 table F.2).
const AC_SIZE_MAX: u8 = 10;
/// The symbol for a run of sixteen zeros (ZRL).
const SIXTEEN_ZEROS: u8 = 0xF0;

/// A Huffman table as specified in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HuffmanSpec {
    /// Number of codes of each length, from 1 to 16 bits.
    pub counts: [u8; 16],
    /// The symbols in the order of their codes.
    pub symbols: Vec<u8>,
}

impl HuffmanSpec {
    /// Returns the table extended with a code for every symbol that an 8-bit picture can need.
    ///
    /// New symbols get codes of 16 bits after all existing codes, so that data written with the original table
    /// decodes the same with the extended table. `None` if there is no room for them.
    pub fn completed(&self, class: usize) -> Option<Self> {
        let missing: Vec<u8> =
            symbols(class).filter(|symbol| !self.symbols.contains(symbol)).collect();
        let used: u32 = (0u32..).zip(self.counts).map(|(at, n)| u32::from(n) << (15 - at)).sum();
        // Not 0x10000: the code of all ones must stay unused.
        let room = 0xFFFFu32.checked_sub(used)?;
        let count = u8::try_from(missing.len()).ok().filter(|count| u32::from(*count) <= room)?;
        let mut completed = self.clone();
        completed.counts[15] = completed.counts[15].checked_add(count)?;
        completed.symbols.extend(missing);
        Some(completed)
    }

    /// Returns the payload of a DHT segment that defines only this table.
    pub fn payload(&self, class: usize, number: usize) -> Vec<u8> {
        let head = u8::try_from(class << 4 | number).expect("classes and numbers are below 16");
        [&[head], self.counts.as_slice(), self.symbols.as_slice()].concat()
    }
}

/// Lists every symbol that an 8-bit baseline picture can need.
fn symbols(class: usize) -> Box<dyn Iterator<Item = u8>> {
    if class == DC {
        return Box::new(0..=DC_SIZE_MAX);
    }
    let runs = (0u8..16).flat_map(|run| (1..=AC_SIZE_MAX).map(move |size| run << 4 | size));
    Box::new([0, SIXTEEN_ZEROS].into_iter().chain(runs))
}

/// The code at the start of the buffer, packed into one word.
///
/// The dependency chain from one code to the next limits the speed of reading a scan, so a lookup must be a single
/// load. From the lowest bit: 8 bits with the total length of the code and its value bits, 8 with the length of
/// the code, 8 with the number of value bits, 8 with the number of coefficients by which an AC symbol advances,
/// [`END`] for the end of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodeLookup(u32);

impl CodeLookup {
    fn new(length: u8, symbol: u8, class: usize) -> Self {
        let (size, advance) = match (class, symbol >> 4, symbol & 15) {
            (DC, _, _) => (symbol, 1),
            // ZRL is the only symbol without a value that continues the block (T.81 F.1.2.2.1).
            (_, run, 0) if run != 15 => (0, END),
            (_, run, size) => (size, run + 1),
        };
        Self(u32::from_le_bytes([length + size, length, size, advance]))
    }

    /// Returns the number of bits of the code and its value.
    #[inline(always)]
    pub(super) fn total_bits(self) -> u32 {
        self.0 & 63
    }

    /// Returns the number of bits of the code.
    #[inline(always)]
    pub(super) fn code_bits(self) -> u32 {
        self.0 >> 8 & 63
    }

    /// Returns the number of bits of the value.
    #[inline(always)]
    pub(super) fn value_bits(self) -> u32 {
        self.0 >> 16 & 15
    }

    /// Returns the number of coefficients to advance by.
    #[inline(always)]
    pub(super) fn advance(self) -> u32 {
        self.0 >> 24
    }
}

/// One or two AC codes at the start of the buffer, combined for skipping blocks.
///
/// From the lowest bit: 6 bits with the total length of codes and values, 8 with the number of coefficients to
/// advance by, plus [`END`] if the last code ends the block. Zero if no code fits into [`PAIR`] bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodePair(u16);

impl CodePair {
    /// Returns the number of bits of the codes and values.
    #[inline(always)]
    pub(super) fn total_bits(self) -> u32 {
        u32::from(self.0 & 63)
    }

    /// Returns the number of coefficients to advance by.
    #[inline(always)]
    pub(super) fn advance(self) -> u32 {
        u32::from(self.0 >> 6)
    }
}

/// A Huffman table prepared for decoding.
#[derive(Clone, Debug)]
pub struct HuffmanDecoder {
    /// The code for the next [`LOOK`] bits; zero if the code is longer or does not exist.
    lookup: Box<[CodeLookup; 1 << LOOK]>,
    /// Up to two AC codes for the next [`PAIR`] bits.
    pairs: Box<[CodePair; 1 << PAIR]>,
    /// For each length from 1 bit: the first code, the number of codes, the index of its first symbol.
    lengths: [(u32, u32, usize); 16],
    /// All codes in ascending order, for codes longer than [`LOOK`] bits.
    steps: Vec<CodeLookup>,
}

impl HuffmanDecoder {
    /// Builds the decoding tables.
    ///
    /// Fails with [`ScanError::Tables`] for counts that are not a prefix code or use the code of all ones, and for
    /// symbols that do not occur in baseline pictures.
    pub fn new(spec: &HuffmanSpec, class: usize) -> Result<Self, ScanError> {
        let look = Box::new([CodeLookup::default(); 1 << LOOK]);
        let pairs = Box::new([CodePair::default(); 1 << PAIR]);
        let mut table = Self { lookup: look, pairs, lengths: [(0, 0, 0); 16], steps: Vec::new() };
        let mut code = 0u32;
        let mut index = 0usize;
        for (length, count) in (1u8..).zip(spec.counts) {
            table.lengths[usize::from(length) - 1] = (code, u32::from(count), index);
            for _ in 0..count {
                let symbol = *spec.symbols.get(index).ok_or(ScanError::Tables)?;
                // The code of all ones must stay unused, so this code must not be the last of its length.
                if code + 1 >= 1 << length || !is_valid_symbol(symbol, class) {
                    return Err(ScanError::Tables);
                }
                let step = CodeLookup::new(length, symbol, class);
                table.steps.push(step);
                if u32::from(length) <= LOOK {
                    let shift = LOOK - u32::from(length);
                    let first = usize::try_from(code << shift).map_err(|_| ScanError::Tables)?;
                    table.lookup[first..first + (1 << shift)].fill(step);
                }
                code += 1;
                index += 1;
            }
            code <<= 1;
        }
        // A DC code is followed by a code of a different table, so only AC codes form pairs.
        if class == AC {
            for (index, bits) in (0u64..1 << PAIR).enumerate() {
                table.pairs[index] = table.make_pair(bits << (64 - PAIR));
            }
        }
        Ok(table)
    }

    /// Combines the codes at the start of `buffer`. Only its first [`PAIR`] bits are known.
    fn make_pair(&self, buffer: u64) -> CodePair {
        let Some(first) = self.find_within(buffer, PAIR) else { return CodePair(0) };
        let mut total = first.total_bits();
        let mut advance = first.advance();
        // A DC code follows the end of a block, and it is in a different table.
        if advance < u32::from(END)
            && let Some(second) = self.find_within(buffer << total, PAIR - total)
        {
            total += second.total_bits();
            advance += second.advance();
        }
        CodePair(u16::try_from(total | advance << 6).unwrap_or(0))
    }

    /// Looks up the code at the start of `buffer`; `None` unless the code and its value have at most `left` bits.
    fn find_within(&self, buffer: u64, left: u32) -> Option<CodeLookup> {
        self.find(buffer).filter(|step| step.total_bits() <= left)
    }

    /// Looks up one or two codes at the start of `buffer`.
    #[inline(always)]
    pub(super) fn pair(&self, buffer: u64) -> CodePair {
        self.pairs[(buffer >> (64 - PAIR)) as usize]
    }

    /// Looks up the code at the start of `buffer`; `None` if the table has no such code.
    #[inline(always)]
    pub(super) fn find(&self, buffer: u64) -> Option<CodeLookup> {
        let step = self.lookup[top(buffer)];
        if step == CodeLookup(0) { self.find_long(buffer) } else { Some(step) }
    }

    #[cold]
    fn find_long(&self, buffer: u64) -> Option<CodeLookup> {
        let bits = u32::try_from(buffer >> 48).unwrap_or(0);
        for length in LOOK + 1..=16 {
            let (first, count, index) = self.lengths[usize::try_from(length).ok()? - 1];
            let code = bits >> (16 - length);
            if code >= first && code - first < count {
                return self.steps.get(index + usize::try_from(code - first).ok()?).copied();
            }
        }
        None
    }
}

#[inline(always)]
fn top(buffer: u64) -> usize {
    (buffer >> (64 - LOOK)) as usize
}

fn is_valid_symbol(symbol: u8, class: usize) -> bool {
    match (class, symbol & 15) {
        (DC, _) => symbol <= DC_SIZE_MAX,
        (_, 0) => symbol == 0 || symbol == SIXTEEN_ZEROS,
        (_, size) => size <= AC_SIZE_MAX,
    }
}

/// The codes of a Huffman table by symbol, for encoding.
#[derive(Clone, Debug)]
pub struct HuffmanCodes([(u32, u32); 256]);

impl HuffmanCodes {
    /// Builds the codes of a table, which must be valid for [`HuffmanDecoder::new`].
    pub fn new(spec: &HuffmanSpec) -> Self {
        let mut codes = [(0, 0); 256];
        let mut code = 0u32;
        let mut symbols = spec.symbols.iter();
        for (length, count) in (1u32..).zip(spec.counts) {
            for symbol in symbols.by_ref().take(usize::from(count)) {
                codes[usize::from(*symbol)] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        Self(codes)
    }

    /// Returns the code and length of `symbol`; the length is 0 if it has no code.
    #[inline(always)]
    pub(crate) fn code_of(&self, symbol: u8) -> (u32, u32) {
        self.0[usize::from(symbol)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two symbols of one and two bits.
    fn small() -> HuffmanSpec {
        let mut counts = [0; 16];
        (counts[0], counts[1]) = (1, 1);
        HuffmanSpec { counts, symbols: vec![0, 1] }
    }

    #[test]
    fn completing_keeps_the_existing_codes() {
        for class in [DC, AC] {
            let completed = small().completed(class).expect("room");
            let (old, new) = (HuffmanCodes::new(&small()), HuffmanCodes::new(&completed));
            for symbol in symbols(class) {
                let (_, length) = new.code_of(symbol);
                assert!(length > 0, "{symbol:02x} has a code");
                if old.code_of(symbol).1 > 0 {
                    assert_eq!(old.code_of(symbol), new.code_of(symbol));
                }
            }
            assert!(HuffmanDecoder::new(&completed, class).is_ok());
        }
    }

    #[test]
    fn a_full_table_cannot_be_completed() {
        // One code of each length from 1 to 16 bits: only the code of all ones is left.
        let full =
            HuffmanSpec { counts: [1; 16], symbols: (0..16).map(|at| at << 4 | 1).collect() };
        assert!(HuffmanDecoder::new(&full, AC).is_ok());
        assert_eq!(full.completed(AC), None);
    }

    #[test]
    fn err_tables_that_are_not_prefix_codes() {
        let check = |counts: &[(usize, u8)], symbols: &[u8]| {
            let mut spec = HuffmanSpec { counts: [0; 16], symbols: symbols.to_vec() };
            for (length, count) in counts {
                spec.counts[length - 1] = *count;
            }
            assert_eq!(
                HuffmanDecoder::new(&spec, AC).err(),
                Some(ScanError::Tables),
                "{counts:?}"
            );
        };
        check(&[(1, 2)], &[0, 1]);
        check(&[(1, 3)], &[0, 1, 2]);
        check(&[(2, 2)], &[0]);
        check(&[(1, 1)], &[0x0B]);
        check(&[(1, 1)], &[0x10]);
    }

    #[test]
    fn long_codes_are_found() {
        let spec =
            HuffmanSpec { counts: [1; 16], symbols: (0..16).map(|at| at << 4 | 1).collect() };
        let table = HuffmanDecoder::new(&spec, AC).expect("table");
        for length in 1..=16u32 {
            let ones = (1u64 << (length - 1)) - 1;
            let step = table.find(ones << 1 << (64 - length)).expect("code");
            assert_eq!((step.code_bits(), step.advance()), (length, length));
        }
        assert!(table.find(u64::MAX).is_none());
    }
}
