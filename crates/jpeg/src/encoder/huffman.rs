//! Builds optimal Huffman tables (ITU-T T.81, annex K.2) and writes entropy-coded data.

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
        17 + self.spec.symbols.len()
    }

    /// Returns the number of bits of all codes of the symbols of a histogram.
    pub(super) fn code_bits(&self, histogram: &Histogram) -> u64 {
        let pairs = (0u8..=255).zip(histogram);
        pairs
            .map(|(symbol, &count)| u64::from(count) * u64::from(self.codes.code_of(symbol).1))
            .sum()
    }
}

/// Computes the number of codes of 1 to 16 bits, for symbols in descending order of frequency.
///
/// The package-merge algorithm (Larmore and Hirschberg 1990) finds the best lengths of at most 16 bits: 15 times,
/// neighbouring packages are joined in pairs and merged with the single symbols. The length of a symbol is the
/// number of its occurrences in the first `2n − 2` packages of the last list.
fn length_counts(symbols: &[u8], histogram: &Histogram) -> [u8; LENGTH_MAX] {
    // The code of all ones must not be used (T.81, C.2). The additional symbol that gets it comes first here
    // because it is the rarest.
    let weights: Vec<u64> = std::iter::once(0)
        .chain(symbols.iter().rev().map(|&symbol| u64::from(histogram[usize::from(symbol)])))
        .collect();
    let mut counts = [0; LENGTH_MAX];
    if weights.len() == 2 {
        counts[0] = 1;
    }
    if weights.len() <= 2 {
        return counts;
    }
    // Only the number of single symbols among the first packages matters, because these are always the rarest
    // symbols.
    let mut lists: Vec<Vec<bool>> = Vec::with_capacity(LENGTH_MAX);
    let mut packages: Vec<u64> = Vec::new();
    for _ in 0..LENGTH_MAX {
        let joined: Vec<u64> = packages.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        let mut singles = weights.iter().peekable();
        let mut pairs = joined.iter().peekable();
        let mut merged = Vec::new();
        let mut is_single = Vec::new();
        loop {
            let single_next = match (singles.peek(), pairs.peek()) {
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
    for list in lists.iter().rev() {
        let singles = list[..taken].iter().filter(|&&single| single).count();
        lengths[..singles].iter_mut().for_each(|length| *length += 1);
        taken = 2 * (taken - singles);
    }
    // The first length belongs to the code of all ones, which is not in the table.
    for length in &lengths[1..] {
        counts[length - 1] += 1;
    }
    counts
}

/// A piece of entropy-coded data: the code of a symbol, raw bits, or both.
///
/// From the lowest bit: 16 raw bits, 5 with their number, 1 that is set if there is a symbol, 2
/// with the number of the table, 8 with the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token(u32);

/// Number of tables that the tokens of a scan can name.
pub(super) const TABLES: usize = 4;

/// The table of a token: two for DC and two for AC.
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
        let slot = slot as u32;
        Token(u32::from(symbol) << 24 | slot << 22 | 1 << 21 | Self::raw(bits, count).0)
    }

    /// Creates `count` raw bits, at most 16, the low bits of `bits`.
    pub(super) fn raw(bits: u32, count: u32) -> Token {
        Token(count << 16 | bits & ((1 << count) - 1))
    }

    /// Returns the index of the table and the symbol, if the token has a symbol.
    fn table_and_symbol(self) -> Option<(usize, u8)> {
        let [symbol, rest, ..] = self.0.to_be_bytes();
        (rest >> 5 & 1 == 1).then_some((usize::from(rest >> 6), symbol))
    }

    fn raw_count(self) -> u32 {
        self.0 >> 16 & 31
    }

    fn raw_bits(self) -> u32 {
        self.0 & 0xFFFF
    }
}

/// Counts the symbols of each table.
pub(super) fn histograms(tokens: &[Token]) -> [Histogram; TABLES] {
    let mut histograms = [[0; 256]; TABLES];
    for (table, symbol) in tokens.iter().filter_map(|token| token.table_and_symbol()) {
        histograms[table][usize::from(symbol)] += 1;
    }
    histograms
}

/// Returns the number of raw bits of the tokens.
pub(super) fn raw_bits(tokens: &[Token]) -> u64 {
    tokens.iter().map(|token| u64::from(token.raw_count())).sum()
}

/// Writes the tokens with their tables, with stuffed bytes and padded with ones (T.81, F.1.2.3).
pub(super) fn write(tokens: &[Token], tables: &[HuffmanTable; TABLES], out: &mut Vec<u8>) {
    let mut writer = EntropyWriter::default();
    for &token in tokens {
        let code =
            token.table_and_symbol().map(|(table, symbol)| tables[table].codes.code_of(symbol));
        let (code, length) = code.unwrap_or_default();
        let count = token.raw_count();
        // A token has a code, raw bits or both, so there is at least one bit, and there are at most 32.
        writer.put(u64::from(code) << count | u64::from(token.raw_bits()), length + count);
    }
    writer.finish_into(out);
}
