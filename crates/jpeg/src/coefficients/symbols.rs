//! Looks up the symbols of Huffman codes, for scans of every kind.
//!
//! The tables of `scan::tables` interpret symbols as sequential scans do and are prepared for skipping. A symbol of
//! a progressive scan has other meanings, such as a run of blocks, so this table returns the symbol itself.

use crate::scan::tables::HuffmanSpec;

/// Number of bits of one lookup; longer codes are searched length by length.
const LOOK: u32 = 10;
/// The longest code, in bits (T.81, annex C).
const LENGTH_MAX: u32 = 16;

/// A Huffman table prepared for decoding.
pub(super) struct SymbolTable {
    /// For the next [`LOOK`] bits: the length of the code and its symbol; the length 0 if the code is longer or does
    /// not exist.
    lookup: Box<[(u8, u8); 1 << LOOK]>,
    /// For each length from 1 bit: the first code, the number of codes, the index of its first symbol.
    lengths: [(u32, u32, usize); LENGTH_MAX as usize],
    symbols: Vec<u8>,
}

impl SymbolTable {
    /// Builds the table; `None` for counts that are not a prefix code, use the code of all ones or lack symbols.
    pub(super) fn new(spec: &HuffmanSpec) -> Option<SymbolTable> {
        let mut lookup = Box::new([(0, 0); 1 << LOOK]);
        let mut lengths = [(0, 0, 0); LENGTH_MAX as usize];
        let mut code = 0u32;
        let mut symbols = spec.symbols.iter();
        let mut index = 0;
        for ((length, count), entry) in (1u8..).zip(spec.counts).zip(&mut lengths) {
            *entry = (code, u32::from(count), index);
            for &symbol in symbols.by_ref().take(usize::from(count)) {
                if u32::from(length) <= LOOK {
                    let shift = LOOK - u32::from(length);
                    let first = (code << shift) as usize;
                    lookup.get_mut(first..first + (1 << shift))?.fill((length, symbol));
                }
                code += 1;
                index += 1;
            }
            // The code of all ones must stay unused, so the last code of this length is not all ones.
            if index < entry.2 + usize::from(count) || count > 0 && code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        Some(SymbolTable { lookup, lengths, symbols: spec.symbols.clone() })
    }

    /// Returns the length of the code at the start of `buffer` and its symbol; `None` if there is no such code.
    #[inline(always)]
    pub(super) fn find(&self, buffer: u64) -> Option<(u32, u8)> {
        let (length, symbol) = self.lookup[(buffer >> (64 - LOOK)) as usize];
        if length == 0 { self.find_long(buffer) } else { Some((u32::from(length), symbol)) }
    }

    #[cold]
    fn find_long(&self, buffer: u64) -> Option<(u32, u8)> {
        let lengths = (1u32..).zip(&self.lengths).skip(LOOK as usize);
        for (length, &(first, count, index)) in lengths {
            let code = u32::try_from(buffer >> (64 - length)).ok()?;
            if code >= first && code - first < count {
                let symbol = self.symbols.get(index + (code - first) as usize)?;
                return Some((length, *symbol));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One code of each length from 1 to 16 bits, with the length as its symbol.
    fn every_length() -> HuffmanSpec {
        HuffmanSpec { counts: [1; 16], symbols: (1..=16).collect() }
    }

    #[test]
    fn codes_of_every_length_are_found() {
        let table = SymbolTable::new(&every_length()).expect("a prefix code");
        for length in 1..=16u8 {
            let ones = (1u64 << (length - 1)) - 1;
            let found = table.find(ones << 1 << (64 - u32::from(length)));
            assert_eq!(found, Some((u32::from(length), length)));
        }
        assert_eq!(table.find(u64::MAX), None);
    }

    #[test]
    fn err_tables_that_are_not_prefix_codes() {
        let check = |counts: &[(usize, u8)], symbols: &[u8]| {
            let mut spec = HuffmanSpec { counts: [0; 16], symbols: symbols.to_vec() };
            for (length, count) in counts {
                spec.counts[length - 1] = *count;
            }
            assert!(SymbolTable::new(&spec).is_none(), "{counts:?}");
        };
        check(&[(1, 2)], &[0, 1]);
        check(&[(1, 3)], &[0, 1, 2]);
        check(&[(2, 2)], &[0]);
        check(&[(1, 1), (2, 2)], &[0, 1, 2]);
    }
}
