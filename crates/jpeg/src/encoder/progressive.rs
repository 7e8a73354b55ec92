//! Chooses the scans of a file so that it is smallest.
//!
//! The best split of the coefficients into scans depends on the picture. Coding a scan into tokens costs about a
//! millisecond per megapixel, so the candidates are coded and measured.

use super::huffman::{self, Histogram, HuffmanTable, TABLES, Token};
use super::scan::{self, Band, QuantisedGrid};
use crate::rewrite::segment;

/// Last coefficients of the lower of two bands; 63 means that there is only one band.
const SPLITS: [u8; 7] = [63, 2, 4, 8, 12, 18, 27];
/// The split for which the number of refinement scans is chosen.
const SPLIT_FIRST: u8 = 8;
/// Largest number of low bits that are left to refinement scans.
const LOW_BITS_MAX: u8 = 3;

/// Scans that share their tables, with the tokens of each.
#[derive(Clone, Debug)]
pub(super) struct ScanGroup {
    scans: Vec<ScanData>,
    tables: [HuffmanTable; TABLES],
    /// The size in bytes, exact except for stuffed bytes.
    bytes: u64,
}

/// The contents of a start-of-scan segment.
#[derive(Clone, Debug)]
struct ScanHeader {
    components: Vec<usize>,
    band: Band,
}

impl ScanHeader {
    /// Returns the size of the segment with its marker in bytes.
    fn bytes(&self) -> usize {
        8 + 2 * self.components.len()
    }
}

/// A start-of-scan segment and the data after it.
type ScanData = (ScanHeader, Vec<Token>);

/// Builds the tables that scans share, and returns the tables and the size of the scans including them.
fn measured(scans: &[ScanData]) -> ([HuffmanTable; TABLES], u64) {
    let mut histograms = [[0; 256]; TABLES];
    let mut bytes = 0;
    for (header, tokens) in scans {
        add(&mut histograms, &huffman::histograms(tokens));
        bytes += header.bytes();
    }
    let tables = histograms.each_ref().map(HuffmanTable::optimal);
    let defined = tables.iter().filter(|table| !table.spec.symbols.is_empty());
    // The marker and the length of the segment that defines the tables.
    bytes += 4 + defined.map(HuffmanTable::definition_bytes).sum::<usize>();
    let codes: u64 = tables.iter().zip(&histograms).map(|(t, h)| t.code_bits(h)).sum();
    let raw: u64 = scans.iter().map(|(_, tokens)| huffman::raw_bits(tokens)).sum();
    let bytes = u64::try_from(bytes).expect("a few segments") + (codes + raw).div_ceil(8);
    (tables, bytes)
}

impl ScanGroup {
    fn new(scans: Vec<ScanData>) -> ScanGroup {
        let (tables, bytes) = measured(&scans);
        ScanGroup { scans, tables, bytes }
    }

    /// Writes the tables and the scans.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        for (index, table) in self.tables.iter().enumerate() {
            if !table.spec.symbols.is_empty() {
                payload.extend(table.spec.payload(index / 2, index % 2));
            }
        }
        out.extend(segment(0xC4, &[&payload]));
        for (header, tokens) in &self.scans {
            out.extend(self.header_segment(header));
            huffman::write(tokens, &self.tables, out);
        }
    }

    fn header_segment(&self, header: &ScanHeader) -> Vec<u8> {
        let mut payload = vec![byte(header.components.len())];
        for &component in &header.components {
            // Luma uses table number 0, chroma number 1; both nibbles name it.
            let tables = if component == 0 { 0x00 } else { 0x11 };
            payload.extend([byte(component + 1), tables]);
        }
        let Band { first, last, high, low } = header.band;
        payload.extend([first, last, high << 4 | low]);
        segment(0xDA, &[&payload])
    }
}

/// Converts a count or index of components to a byte.
pub(super) fn byte(value: usize) -> u8 {
    u8::try_from(value).expect("at most four components")
}

fn add(sums: &mut [Histogram; TABLES], histograms: &[Histogram; TABLES]) {
    for (sums, histogram) in sums.iter_mut().zip(histograms) {
        for (sum, count) in sums.iter_mut().zip(histogram) {
            *sum += count;
        }
    }
}

fn total(groups: &[ScanGroup]) -> u64 {
    groups.iter().map(|group| group.bytes).sum()
}

/// The scans of a file and the process that they need.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// True if the frame is progressive (SOF2); otherwise it is baseline (SOF0).
    pub(super) progressive: bool,
    /// The scans in the order of the file.
    pub(super) groups: Vec<ScanGroup>,
}

/// Chooses the scans that make the file smallest.
pub(super) fn choose(grids: &[QuantisedGrid]) -> Script {
    let components: Vec<usize> = (0..grids.len()).collect();
    let band = Band { first: 0, last: 63, high: 0, low: 0 };
    let header = ScanHeader { components: components.clone(), band };
    let baseline = vec![ScanGroup::new(vec![(header, scan::sequential(grids))])];
    let header = ScanHeader { components, band: Band { last: 0, ..band } };
    let mut groups = vec![ScanGroup::new(vec![(header, scan::dc(grids))])];
    groups.extend(best_ac(grids, &[0]));
    if grids.len() > 1 {
        groups.extend(best_ac(grids, &[1, 2]));
    }
    if total(&baseline) <= total(&groups) {
        return Script { progressive: false, groups: baseline };
    }
    Script { progressive: true, groups }
}

/// Chooses the AC scans of components that have the same bands.
fn best_ac(grids: &[QuantisedGrid], components: &[usize]) -> Vec<ScanGroup> {
    let mut refinements: Vec<ScanGroup> = Vec::new();
    let mut best: Option<(u64, u8)> = None;
    let mut refinement_bytes = 0;
    for low in 0..=LOW_BITS_MAX {
        if low > 0 {
            let band = Band { first: 1, last: 63, high: low, low: low - 1 };
            let groups = with_tables(grids, components, band);
            refinement_bytes += total(&groups);
            refinements.splice(0..0, groups);
        }
        let bytes = total(&bands(grids, components, SPLIT_FIRST, low)) + refinement_bytes;
        if best.is_none_or(|(best, _)| bytes < best) {
            best = Some((bytes, low));
        } else {
            // The sizes fall and then rise with the number of refinements.
            break;
        }
    }
    let low = best.map_or(0, |(_, low)| low);
    let first = SPLITS
        .iter()
        .map(|&split| bands(grids, components, split, low))
        .min_by_key(|groups| total(groups))
        .unwrap_or_default();
    // Refinements that were measured for more low bits than the chosen number are not used.
    let unused = refinements.len() - refinements_of(&refinements, low);
    first.into_iter().chain(refinements.drain(unused..)).collect()
}

/// Counts the groups at the end of a list that refine at most `low` bits.
fn refinements_of(refinements: &[ScanGroup], low: u8) -> usize {
    let mut count = 0;
    for group in refinements.iter().rev() {
        if group.scans.iter().any(|(scan, _)| scan.band.high > low) {
            break;
        }
        count += 1;
    }
    count
}

/// Codes the first scans of one or two bands.
fn bands(grids: &[QuantisedGrid], components: &[usize], split: u8, low: u8) -> Vec<ScanGroup> {
    let mut groups = with_tables(grids, components, Band { first: 1, last: split, high: 0, low });
    if split < 63 {
        let band = Band { first: split + 1, last: 63, high: 0, low };
        groups.extend(with_tables(grids, components, band));
    }
    groups
}

/// Codes one band of each component, with shared tables or with separate tables.
fn with_tables(grids: &[QuantisedGrid], components: &[usize], band: Band) -> Vec<ScanGroup> {
    let mut scans: Vec<ScanData> = Vec::with_capacity(components.len());
    for &component in components {
        let header = ScanHeader { components: vec![component], band };
        scans.push((header, scan::ac(&grids[component], component, band)));
    }
    let shared = measured(&scans).1;
    let own: u64 = scans.chunks(1).map(|scan| measured(scan).1).sum();
    if own < shared {
        return scans.into_iter().map(|scan| ScanGroup::new(vec![scan])).collect();
    }
    vec![ScanGroup::new(scans)]
}
