//! Chooses how the coefficients of a picture are divided into scans, so that the file is smallest.
//!
//! A JPEG file holds 64 coefficients for each block of 8 × 8 samples: one DC coefficient, the average, and 63 AC
//! coefficients, numbered in zigzag order from coarse to fine detail. A *baseline* file stores them in one scan,
//! block after block. A *progressive* file stores them in several scans, each of which goes over the whole picture
//! and holds a part of every block. The parts are cut in two ways (T.81, G.1.1):
//!
//! - A scan holds a *band*, a range of the 63 AC coefficients, of one component.
//! - A scan leaves out the lowest bits of its coefficients. Each *refinement* scan after it adds one of them. This
//!   is called successive approximation.
//!
//! ```text
//!            coefficient   0    1 ─── split   split+1 ─── 63
//!            high bits    ┌──┐ ┌───────────┐ ┌──────────────┐
//!                         │DC│ │ first band│ │ second band  │
//!            bit 1        │  │ ├───────────┴─┴──────────────┤
//!                         │  │ │ refinement                 │
//!            bit 0        │  │ ├────────────────────────────┤
//!                         └──┘ │ refinement                 │
//!                              └────────────────────────────┘
//! ```
//!
//! A progressive file is usually smaller, because each scan has Huffman tables for its own kind of data and
//! because one symbol can end the band of many blocks. How many bits to leave out and where to split the band
//! depends on the picture. Coding a scan costs only about a millisecond per megapixel, so [`choose`] does not guess:
//! it codes the candidates and compares their sizes.

use super::huffman::{self, Histogram, HuffmanTable, TABLES, Token};
use super::scan::{self, Band};
use crate::coefficient_grid::CoefficientGrid;
use crate::rewrite::segment;

/// The candidates for the last coefficient of the first band; with 63, there is no second band.
const SPLITS: [u8; 7] = [63, 2, 4, 8, 12, 18, 27];
/// The split with which the candidates for the number of refinements are compared.
const SPLIT_FIRST: u8 = 8;
/// Maximum number of low bits that are left to refinement scans.
const LOW_BITS_MAX: u8 = 3;

/// The scans of a file and the process that they need.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// True if the frame is progressive (SOF2); otherwise it is baseline (SOF0).
    pub(super) progressive: bool,
    /// The scans in the order of the file.
    pub(super) groups: Vec<ScanGroup>,
}

/// Returns the only scan of a baseline file.
pub(super) fn baseline(grids: &[CoefficientGrid]) -> Script {
    let components = (0..grids.len()).collect();
    let band = Band { first: 0, last: 63, high: 0, low: 0 };
    let scan = CodedScan { components, band, tokens: scan::sequential(grids) };
    Script { progressive: false, groups: vec![ScanGroup::new(vec![scan])] }
}

/// Chooses the scans that make the file smallest.
///
/// A progressive file starts with one scan of the DC coefficients of all components. Its scans of AC coefficients
/// hold one component each, as the format demands. The two chroma components are so similar that they are divided
/// in the same way.
pub(super) fn choose(grids: &[CoefficientGrid]) -> Script {
    let components: Vec<usize> = (0..grids.len()).collect();
    let baseline = baseline(grids);
    let band = Band { first: 0, last: 0, high: 0, low: 0 };
    let scan = CodedScan { components: components.clone(), band, tokens: scan::dc(grids) };
    let mut groups = vec![ScanGroup::new(vec![scan])];
    groups.extend(best_ac(grids, &[0]));
    if grids.len() > 1 {
        groups.extend(best_ac(grids, &components[1..]));
    }
    if total(&baseline.groups) <= total(&groups) {
        return baseline;
    }
    Script { progressive: true, groups }
}

/// Chooses the AC scans of components that are divided in the same way.
///
/// First the number of low bits is chosen with a fixed split, and then the split for that number. Coding every
/// combination would take more than twice as long.
fn best_ac(grids: &[CoefficientGrid], components: &[usize]) -> Vec<ScanGroup> {
    let mut low = 0;
    let mut best = total(&bands(grids, components, SPLIT_FIRST, low));
    // The refinements of bit 0, bit 1 and so on.
    let mut refinements: Vec<Vec<ScanGroup>> = Vec::new();
    for tried in 1..=LOW_BITS_MAX {
        let band = Band { first: 1, last: 63, high: tried, low: tried - 1 };
        refinements.push(with_tables(grids, components, band));
        let bytes = total(&bands(grids, components, SPLIT_FIRST, tried))
            + refinements.iter().map(|groups| total(groups)).sum::<u64>();
        // The sizes fall and then rise with the number of refinements.
        if bytes >= best {
            break;
        }
        best = bytes;
        low = tried;
    }
    // The last refinement that was tried may not have paid off.
    refinements.truncate(usize::from(low));
    let splits = SPLITS.iter().map(|&split| bands(grids, components, split, low));
    let first = splits.min_by_key(|groups| total(groups)).unwrap_or_default();
    // The file refines the higher bits first.
    first.into_iter().chain(refinements.into_iter().rev().flatten()).collect()
}

/// Codes the first scans of the coefficients, without their `low` lowest bits, in one or two bands.
fn bands(grids: &[CoefficientGrid], components: &[usize], split: u8, low: u8) -> Vec<ScanGroup> {
    let mut groups = with_tables(grids, components, Band { first: 1, last: split, high: 0, low });
    if split < 63 {
        let band = Band { first: split + 1, last: 63, high: 0, low };
        groups.extend(with_tables(grids, components, band));
    }
    groups
}

/// Codes one band of each component. The scans share their tables if that is smaller than separate tables.
fn with_tables(grids: &[CoefficientGrid], components: &[usize], band: Band) -> Vec<ScanGroup> {
    let code = |&component: &usize| CodedScan {
        components: vec![component],
        band,
        tokens: scan::ac(&grids[component], component, band),
    };
    let scans: Vec<CodedScan> = components.iter().map(code).collect();
    let shared = measured(&scans).1;
    let own: u64 = scans.chunks(1).map(|scan| measured(scan).1).sum();
    if own < shared {
        return scans.into_iter().map(|scan| ScanGroup::new(vec![scan])).collect();
    }
    vec![ScanGroup::new(scans)]
}

fn total(groups: &[ScanGroup]) -> u64 {
    groups.iter().map(|group| group.bytes).sum()
}

/// A scan before it is written: Huffman codes are assigned when all symbols of its tables have been counted.
#[derive(Clone, Debug)]
struct CodedScan {
    /// The indices of the components in the frame.
    components: Vec<usize>,
    band: Band,
    tokens: Vec<Token>,
}

/// Scans that share their Huffman tables, which are defined before the first of them.
#[derive(Clone, Debug)]
pub(super) struct ScanGroup {
    scans: Vec<CodedScan>,
    tables: [HuffmanTable; TABLES],
    /// The size of the tables and the scans in bytes, exact except for stuffed bytes.
    bytes: u64,
}

impl ScanGroup {
    fn new(scans: Vec<CodedScan>) -> ScanGroup {
        let (tables, bytes) = measured(&scans);
        ScanGroup { scans, tables, bytes }
    }

    /// Writes the tables and the scans of `grids`.
    pub(super) fn write(&self, grids: &[CoefficientGrid], out: &mut Vec<u8>) {
        let mut definitions = Vec::new();
        for (index, table) in self.tables.iter().enumerate() {
            if !table.spec.symbols.is_empty() {
                definitions.extend(table.spec.payload(index / 2, index % 2));
            }
        }
        out.extend(segment(0xC4, &[&definitions]));
        for CodedScan { components, band, tokens } in &self.scans {
            let mut header = vec![byte(components.len())];
            for &component in components {
                // Luma uses table number 0, chroma number 1; both nibbles name it.
                let tables = if component == 0 { 0x00 } else { 0x11 };
                header.extend([grids[component].id, tables]);
            }
            header.extend([band.first, band.last, band.high << 4 | band.low]);
            out.extend(segment(0xDA, &[&header]));
            huffman::write(tokens, &self.tables, out);
        }
    }
}

/// Builds the tables that scans share, and returns the tables and the size of the scans including them.
fn measured(scans: &[CodedScan]) -> ([HuffmanTable; TABLES], u64) {
    let mut histograms = [[0; 256]; TABLES];
    let mut header_bytes = 0;
    let mut raw_bits = 0;
    for scan in scans {
        add(&mut histograms, &huffman::histograms(&scan.tokens));
        // Marker, length, number of components, two bytes for each component, three for the band.
        header_bytes += 8 + 2 * scan.components.len();
        raw_bits += huffman::count_raw_bits(&scan.tokens);
    }
    let tables = histograms.each_ref().map(HuffmanTable::optimal);
    let defined = tables.iter().filter(|table| !table.spec.symbols.is_empty());
    // The marker and the length of the segment that defines the tables.
    header_bytes += 4 + defined.map(HuffmanTable::definition_bytes).sum::<usize>();
    let code_bits: u64 = tables.iter().zip(&histograms).map(|(t, h)| t.code_bits(h)).sum();
    let header_bytes = u64::try_from(header_bytes).expect("a few segments");
    (tables, header_bytes + (code_bits + raw_bits).div_ceil(8))
}

fn add(sums: &mut [Histogram; TABLES], histograms: &[Histogram; TABLES]) {
    for (sum, count) in sums.iter_mut().flatten().zip(histograms.iter().flatten()) {
        *sum += count;
    }
}

/// Converts a count of components to a byte.
pub(super) fn byte(value: usize) -> u8 {
    u8::try_from(value).expect("at most four components")
}
