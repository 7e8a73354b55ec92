//! Quantises a block's AC coefficients by rate and distortion (trellis quantisation).
//!
//! Rounding each coefficient to the nearest multiple of its step minimises the error, but not the error for a
//! given size of the file. Here the levels of a block are chosen together, so that `error + λ · bits` is minimal.
//! The bits depend on the run of zeros before a level, so the choice is a shortest path from coefficient to
//! coefficient, which dynamic programming finds.

use super::huffman::Histogram;
use crate::coefficient_grid::CoefficientGrid;

/// Symbol of the end of a block.
const END_OF_BLOCK: usize = 0x00;
/// Symbol of sixteen zeros.
const SIXTEEN_ZEROS: usize = 0xF0;
/// Largest AC level of a baseline file (T.81, table F.2).
pub(super) const LEVEL_MAX: i16 = 1023;

/// The estimated cost of AC symbols in bits, with their raw bits.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// Costs by the number of zeros before a level and the level's size.
    levels: [[f32; 16]; 63],
    end_of_block: f32,
}

impl Rates {
    /// Estimates costs from the symbols of a sequential scan: the entropy of their frequencies.
    pub(super) fn new(histogram: &Histogram) -> Rates {
        let total: u32 = histogram.iter().sum::<u32>().max(1);
        // A symbol that has not occurred costs as much as a symbol that occurred half a time.
        let all = log2(total) + 1.0;
        let mut bits = [0.0; 256];
        for (symbol, (bits, &count)) in (0u8..=255).zip(bits.iter_mut().zip(histogram)) {
            let code = if count == 0 { all + 1.0 } else { all - 1.0 - log2(count) };
            *bits = code.min(16.0) + f32::from(symbol & 15);
        }
        let mut levels = [[0.0; 16]; 63];
        for (run, levels) in levels.iter_mut().enumerate() {
            let zeros: f32 = std::iter::repeat_n(bits[SIXTEEN_ZEROS], run / 16).sum();
            for (size, level) in levels.iter_mut().enumerate() {
                *level = zeros + bits[(run & 15) << 4 | size];
            }
        }
        Rates { levels, end_of_block: bits[END_OF_BLOCK] }
    }
}

/// Computes a binary logarithm, with the same result on every machine; the result of `f32::log2` depends on the
/// platform.
fn log2(value: u32) -> f32 {
    let exponent = value.max(1).ilog2();
    let mantissa = approximate(value.max(1)) / approximate(1 << exponent) - 1.0;
    // A cubic through the ends; its error is below 0.002.
    let fraction = mantissa * (1.425_0 + mantissa * (-0.590_0 + mantissa * 0.165_0));
    approximate(exponent) + fraction
}

#[expect(clippy::cast_precision_loss, reason = "an estimate; 24 bits are more than enough")]
fn approximate(value: u32) -> f32 {
    value as f32
}

/// Counts the AC symbols that a sequential scan of a component would need.
pub(super) fn count_symbols(grid: &CoefficientGrid, histogram: &mut Histogram) {
    for (block, &mask) in grid.blocks.iter().zip(&grid.masks) {
        let mut mask = mask & !1;
        let mut next = 1;
        while mask != 0 {
            let at = mask.trailing_zeros();
            let run = at - next;
            histogram[SIXTEEN_ZEROS] += run / 16;
            let size = 16 - block[at as usize].unsigned_abs().leading_zeros();
            histogram[((run & 15) << 4 | size) as usize] += 1;
            next = at + 1;
            mask &= mask - 1;
        }
        histogram[END_OF_BLOCK] += u32::from(next < 64);
    }
}

/// The parameters for quantising the blocks of a component.
#[derive(Clone, Debug)]
pub(super) struct Quantiser<'a> {
    /// Reciprocals of the steps of stored coefficients, in zigzag order.
    pub(super) reciprocals: [f32; 64],
    /// Weight of the squared error of each coefficient, counted in steps.
    pub(super) weights: [f32; 64],
    /// Costs of the symbols.
    pub(super) rates: &'a Rates,
}

/// One level that the path may pass through.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Position of the coefficient.
    at: usize,
    /// The minimum cost of a path that ends here, less the error of all zeros up to here.
    cost: f32,
    /// Index of the previous node.
    before: usize,
    level: i16,
}

impl Node {
    /// Returns the cost of a path that ends here, including the end of block if it is needed.
    #[inline]
    fn total(&self, end: f32) -> f32 {
        self.cost + if self.at < 63 { end } else { 0.0 }
    }
}

impl Quantiser<'_> {
    /// Chooses the AC levels of a block of stored coefficients; `lambda` is the price of a bit.
    pub(super) fn quantise(&self, block: &[i16; 64], lambda: f32, levels: &mut [i16; 64]) {
        let mut scaled = [0.0f32; 64];
        for ((scaled, &value), reciprocal) in scaled.iter_mut().zip(block).zip(&self.reciprocals) {
            *scaled = f32::from(value).abs() * reciprocal;
        }
        // The start of the path is a node before the first AC coefficient.
        let mut nodes = [Node::default(); 64];
        let mut count = 1;
        let mut zeros_error = 0.0;
        for (at, &value) in scaled.iter().enumerate().skip(1) {
            let zero_error = value * value * self.weights[at];
            if value >= 0.5 {
                let before = &nodes[..count];
                nodes[count] = self.cheapest(before, at, value, lambda, zeros_error);
                // Costs are relative to zeroing everything, so that paths with any end can be compared.
                nodes[count].cost -= zeros_error + zero_error;
                count += 1;
            }
            zeros_error += zero_error;
        }
        self.trace(&nodes[..count], lambda, block, levels);
    }

    /// Finds the cheapest path to a level of the coefficient `at`.
    fn cheapest(
        &self,
        before: &[Node],
        at: usize,
        value: f32,
        lambda: f32,
        zeros_error: f32,
    ) -> Node {
        let nearest = rounded(value);
        let size = size_of(nearest);
        // Only the largest level of the next smaller size can be better: it is the nearest level with fewer bits.
        let smaller = (1i16 << (size - 1)) - 1;
        let mut best = Node { at, cost: f32::MAX, before: 0, level: nearest };
        let nearest_error = self.weighted_error(at, value, nearest);
        let smaller_error = self.weighted_error(at, value, smaller);
        for (index, node) in before.iter().enumerate().rev() {
            let base = node.cost + zeros_error;
            let rates = &self.rates.levels[at - node.at - 1];
            let cost = base + nearest_error + lambda * rates[size];
            if cost < best.cost {
                best = Node { at, cost, before: index, level: nearest };
            }
            if smaller > 0 {
                let cost = base + smaller_error + lambda * rates[size - 1];
                if cost < best.cost {
                    best = Node { at, cost, before: index, level: smaller };
                }
            }
        }
        best
    }

    /// Computes the squared error of a level of the coefficient `at`, weighted by its visibility.
    #[inline]
    fn weighted_error(&self, at: usize, value: f32, level: i16) -> f32 {
        let error = value - f32::from(level);
        error * error * self.weights[at]
    }

    /// Writes the levels of the cheapest path.
    fn trace(&self, nodes: &[Node], lambda: f32, block: &[i16; 64], levels: &mut [i16; 64]) {
        let end = lambda * self.rates.end_of_block;
        let mut best = 0;
        for (index, node) in nodes.iter().enumerate() {
            if node.total(end) < nodes[best].total(end) {
                best = index;
            }
        }
        while best != 0 {
            let node = nodes[best];
            levels[node.at] = if block[node.at] < 0 { -node.level } else { node.level };
            best = node.before;
        }
    }
}

/// Rounds a positive number of steps to the nearest level.
#[expect(clippy::cast_possible_truncation, reason = "clamped to the largest level")]
pub(super) fn rounded(value: f32) -> i16 {
    (value + 0.5).min(f32::from(LEVEL_MAX)) as i16
}

fn size_of(level: i16) -> usize {
    (16 - level.leading_zeros()) as usize
}
