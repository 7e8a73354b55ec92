//! Builds optimal Huffman tables and writes entropy-coded data (ITU-T T.81).
//!
//! The tables are built by the package-merge algorithm in place of the method of annex K.2, which shortens codes of
//! more than 16 bits afterwards and so is not always optimal.

use crate::scan::bits::EntropyWriter;
use crate::scan::tables::{HuffmanCodes, HuffmanSpec};

/// Longest code that a table can hold, in bits.
const LENGTH_MAX: usize = 16;

/// The number of occurrences of each symbol of a table.
pub(super) type Histogram = [u32; 256];

/// The codes of one table, with the form in which the file defines them.
#[derive(Clone, Debug)]
pub(super) struct HuffmanTable {
    /// The definition for a DHT segment.
    pub(super) spec: HuffmanSpec,
    codes: HuffmanCodes,
}

impl HuffmanTable {
    /// Builds the table with the shortest codes for the symbols of a histogram.
    pub(super) fn optimal(histogram: &Histogram) -> HuffmanTable {
        let mut symbols: Vec<u8> = (0..=255).filter(|&s| histogram[usize::from(s)] > 0).collect();
        // Stable, so symbols that are equally frequent stay in ascending order.
        symbols.sort_by_key(|&symbol| std::cmp::Reverse(histogram[usize::from(symbol)]));
        let spec = HuffmanSpec { counts: length_counts(&symbols, histogram), symbols };
        HuffmanTable { codes: HuffmanCodes::new(&spec), spec }
    }

    /// Returns the number of bytes of the definition in a DHT segment.
    pub(super) fn definition_bytes(&self) -> usize {
        // A byte with class and number of the table, a byte with the number of codes for each length, the symbols.
        1 + LENGTH_MAX + self.spec.symbols.len()
    }

    /// Returns the number of bits of the codes for all symbols in `histogram`, from which the table was built.
    pub(super) fn code_bits(&self, histogram: &Histogram) -> u64 {
        let mut bits = 0;
        for (symbol, &count) in (0u8..=255).zip(histogram) {
            // A symbol that does not occur has no code; `code_of` returns the length 0 for it.
            let (_, length) = self.codes.code_of(symbol);
            bits += u64::from(count) * u64::from(length);
        }
        bits
    }
}

/// Computes how many codes have 1, 2, … 16 bits, for symbols in descending order of frequency.
///
/// The package-merge algorithm (Larmore and Hirschberg 1990) finds the best lengths of at most 16 bits. It makes 16
/// lists of packages in ascending order of weight. The first list has the single symbols, each with its frequency as
/// weight. Each further list has the single symbols again, and the packages of the list before, joined in pairs of
/// neighbours. With `n` symbols, the length of a symbol is the number of its occurrences in the first `2n − 2` packages
/// of the last list, counting also the occurrences inside joined pairs.
///
/// For example, the last list of three symbols `a`, `b` and `c` with the weights 0, 1 and 2 begins with `a`, `b`, `ab`
/// and `c`. `a` and `b` occur twice, `c` once, so their codes have 2, 2 and 1 bits.
fn length_counts(symbols: &[u8], histogram: &Histogram) -> [u8; LENGTH_MAX] {
    // The code of all ones must not be used (T.81, C.2). It is the last of the longest codes. So we add a symbol of
    // weight 0, rarer than all others: it gets that code, and is left out of the table. Here it comes first, since
    // `weights` is in ascending order.
    let weights: Vec<u64> = std::iter::once(0)
        .chain(symbols.iter().rev().map(|&symbol| u64::from(histogram[usize::from(symbol)])))
        .collect();
    // For each list, whether each of its packages is a single symbol rather than a pair. The lengths need only this.
    let mut lists: Vec<Vec<bool>> = Vec::with_capacity(LENGTH_MAX);
    let mut packages: Vec<u64> = Vec::new();
    for _ in 0..LENGTH_MAX {
        // Empty for the first list. A last package without a neighbour is left out.
        let joined: Vec<u64> = packages.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        let mut singles = weights.iter().peekable();
        let mut pairs = joined.iter().peekable();
        let mut merged = Vec::new();
        let mut is_single = Vec::new();
        loop {
            let single_next = match (singles.peek(), pairs.peek()) {
                // At equal weight, either order gives the same total size. It is fixed, so that the same histogram
                // always gives the same codes.
                (Some(single), Some(pair)) => single <= pair,
                (single, None) => single.is_some(),
                (None, Some(_)) => false,
            };
            let next = if single_next { singles.next() } else { pairs.next() };
            let Some(&weight) = next else { break };
            merged.push(weight);
            is_single.push(single_next);
        }
        packages = merged;
        lists.push(is_single);
    }
    let mut lengths = vec![0usize; weights.len()];
    let mut taken = 2 * weights.len() - 2;
    // Going back from the last list: the single symbols among the taken packages get one bit more; each taken pair
    // takes two packages of the list before. The taken packages are always the first of their list. Like the lists,
    // `weights` and `lengths` are in ascending order of weight, so `k` single symbols among the taken packages are the
    // first `k` of `lengths`.
    for list in lists.iter().rev() {
        let singles = list[..taken].iter().filter(|&&single| single).count();
        lengths[..singles].iter_mut().for_each(|length| *length += 1);
        taken = 2 * (taken - singles);
    }
    // 256 codes of one length cannot occur, so a `u8` suffices for each count. With 8 bits, 256 codes would leave no
    // room for the additional symbol. With 9 or more, almost half of the code space would stay empty, so a shorter code
    // would be possible.
    let mut counts = [0; LENGTH_MAX];
    // The first length belongs to the code of all ones, which is not in the table.
    for length in &lengths[1..] {
        counts[length - 1] += 1;
    }
    counts
}

/// A piece of entropy-coded data: the code of a symbol, raw bits, or both.
///
/// From the lowest bit: 16 raw bits, 5 with their number, 1 that is set if there is a symbol, 2
/// with the index of the table, 8 with the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token(u32);

/// The positions of the parts of a [`Token`] above its raw bits.
const RAW_COUNT_SHIFT: u32 = 16;
const HAS_SYMBOL: u32 = 1 << 21;
const TABLE_SHIFT: u32 = 22;
const SYMBOL_SHIFT: u32 = 24;

/// Number of tables that the tokens of a scan can name.
pub(super) const TABLES: usize = 4;

/// The table of a token: two for DC and two for AC.
///
/// The order of the variants counts: as a number, a variant is the index of its table. The index is twice the class (0
/// for DC, 1 for AC) plus the number of the table in the file (0 for luma, 1 for chroma).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableSlot {
    /// DC differences of luma or grey.
    LumaDc,
    /// DC differences of chroma.
    ChromaDc,
    /// AC coefficients of luma or grey.
    LumaAc,
    /// AC coefficients of chroma.
    ChromaAc,
}

impl Token {
    /// Creates a symbol followed by `count` raw bits, the low bits of `bits`.
    pub(super) fn symbol(slot: TableSlot, symbol: u8, bits: u32, count: u32) -> Token {
        let table = (slot as u32) << TABLE_SHIFT;
        let symbol = u32::from(symbol) << SYMBOL_SHIFT;
        Token(symbol | table | HAS_SYMBOL | Self::raw(bits, count).0)
    }

    /// Creates `count` raw bits, at most 16, the low bits of `bits`.
    pub(super) fn raw(bits: u32, count: u32) -> Token {
        Token(count << RAW_COUNT_SHIFT | bits & ((1 << count) - 1))
    }

    /// Returns the index of the table and the symbol, if the token has a symbol.
    fn table_and_symbol(self) -> Option<(usize, u8)> {
        // The symbol is the highest byte.
        let [symbol, ..] = self.0.to_be_bytes();
        let table = (self.0 >> TABLE_SHIFT & 3) as usize;
        (self.0 & HAS_SYMBOL != 0).then_some((table, symbol))
    }

    fn raw_count(self) -> u32 {
        self.0 >> RAW_COUNT_SHIFT & 31
    }

    fn raw_bits(self) -> u32 {
        self.0 & 0xFFFF
    }
}

/// Counts the symbols of each table, in the order of [`TableSlot`].
pub(super) fn histograms(tokens: &[Token]) -> [Histogram; TABLES] {
    let mut histograms = [[0; 256]; TABLES];
    for (table, symbol) in tokens.iter().filter_map(|token| token.table_and_symbol()) {
        histograms[table][usize::from(symbol)] += 1;
    }
    histograms
}

/// Returns the number of raw bits of the tokens.
pub(super) fn count_raw_bits(tokens: &[Token]) -> u64 {
    tokens.iter().map(|token| u64::from(token.raw_count())).sum()
}

/// Writes the tokens with the codes of their tables, with stuffed bytes and padded with ones (T.81, F.1.2.3).
pub(super) fn write(tokens: &[Token], tables: &[HuffmanTable; TABLES], out: &mut Vec<u8>) {
    let mut writer = EntropyWriter::default();
    for &token in tokens {
        let code =
            token.table_and_symbol().map(|(table, symbol)| tables[table].codes.code_of(symbol));
        let (code, length) = code.unwrap_or_default();
        let count = token.raw_count();
        // `put` accepts 1 to 56 bits; with none, a shift in it could overflow. A token has a code, raw bits or both,
        // each of at most 16 bits, so there are 1 to 32.
        writer.put(u64::from(code) << count | u64::from(token.raw_bits()), length + count);
    }
    writer.finish_into(out);
}
