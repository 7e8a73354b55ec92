//! Defines the quantisation tables, and computes the visibility of errors in each block.
//!
//! A JPEG file has one table per component for the whole picture, so the steps cannot differ between parts of the
//! picture. Instead, the price of a bit in the trellis varies: bits are expensive where texture hides errors, so
//! small levels become zero there.

use super::colour::Plane;
use super::effort::EncodeEffort;
use super::huffman::Histogram;
use super::transform::{self, BlockGrid, ONE};
use super::trellis::{self, Quantiser, Rates};
use crate::coefficient_grid::CoefficientGrid;
use crate::scan::ZIGZAG;

/// The steps of a component, in zigzag order.
pub(super) type Steps = [u8; 64];

/// The number of steps subtracted before rounding in the quantisation that gives the first costs.
const FIRST_BIAS: f32 = 0.15;

/// The variance at which errors in a cell of 4x4 samples are half as visible as in a flat cell.
const HALF_VISIBLE_VARIANCE: f32 = 50.0;
/// Exponent of a block's visibility in the price of a bit, in eighths.
const VISIBILITY_EIGHTHS: usize = 2;

/// Scale of the tables below which the price of a bit falls to zero, so that quality 100 only rounds.
const FULL_PRICE_SCALE: f32 = 0.1;

/// The quantisation of the components of one kind.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// Steps at scale 1, row by row.
    table: [u16; 64],
    /// The error, in squared steps of the lowest frequency, that is worth one bit.
    bit_price: f32,
    /// Exponent with which the weight of an error of one step grows with the step, in eighths. At 0 errors of one
    /// step are equally visible for all steps; at 16 equal errors are.
    weight_eighths: usize,
}

/// The profile of luma and of grey pictures.
///
/// The tables began as the table of Klein, Silverstein and Carney, "Relevance of human vision to JPEG-DCT
/// compression" (SPIE 1666, 1992), made symmetric. They were then fitted by rings of frequencies to SSIMULACRA2 on
/// photographs of 256 to 1024 pixels, together with the other numbers of this module.
pub(super) const LUMA: Profile = Profile {
    table: [
        11, 12, 32, 33, 35, 44, 51, 53, 12, 28, 45, 46, 47, 47, 47, 47, 32, 45, 46, 46, 56, 67,
        74, 82, 33, 46, 46, 54, 63, 71, 75, 93, 35, 47, 56, 63, 69, 74, 80, 108, 44, 47, 67, 71,
        74, 77, 99, 130, 51, 47, 74, 75, 80, 99, 124, 160, 53, 47, 82, 93, 108, 130, 160, 201,
    ],
    bit_price: 0.1,
    weight_eighths: 7,
};

/// The profile of both chroma components.
pub(super) const CHROMA: Profile = Profile {
    table: [
        11, 11, 32, 33, 37, 55, 70, 86, 11, 27, 45, 46, 50, 58, 65, 76, 32, 45, 45, 46, 63, 85,
        106, 136, 33, 46, 46, 59, 78, 94, 114, 157, 37, 50, 63, 78, 91, 107, 132, 190, 55, 58, 85,
        94, 107, 125, 170, 239, 70, 65, 106, 114, 132, 170, 227, 312, 86, 76, 136, 157, 190, 239,
        312, 419,
    ],
    bit_price: 0.057,
    weight_eighths: 4,
};

/// Returns the scale of the tables for a quality, as in libjpeg: 1 at 50, 0 at 100.
pub(super) fn scale(quality: u8) -> f32 {
    let quality = f32::from(quality.clamp(1, 100));
    if quality < 50.0 { 50.0 / quality } else { 2.0 - quality / 50.0 }
}

/// Returns the number of rounds of choosing levels together. Each round estimates the costs of symbols from the result of
/// the previous round.
pub(super) fn rounds(effort: EncodeEffort) -> usize {
    match effort {
        EncodeEffort::Small => 2,
        EncodeEffort::Fast => 1,
    }
}

/// Raises a positive number to a multiple of 1/8, with the same result on every machine; the result of `f32::powf`
/// depends on the platform.
fn power(value: f32, eighths: usize) -> f32 {
    let root = value.sqrt().sqrt().sqrt();
    (0..eighths).fold(1.0, |product, _| product * root)
}

/// Returns the visibility of errors in each block of a luma plane: 1 in a flat block, less in texture.
///
/// The visibility is a mean over four cells, so a block that is half flat counts as flat: the error of the whole
/// block is visible there, for instance as ringing beside an edge.
pub(super) fn sensitivities(plane: &Plane) -> Vec<f32> {
    let cols = plane.width.div_ceil(8);
    let rows = plane.height.div_ceil(8);
    let blocks = (0..rows).flat_map(|row| (0..cols).map(move |col| (col, row)));
    blocks
        .map(|(col, row)| {
            let samples = transform::block_samples(plane, col, row);
            let cells = [(0, 0), (0, 4), (4, 0), (4, 4)];
            let visible = cells.map(|(y, x)| {
                HALF_VISIBLE_VARIANCE / (HALF_VISIBLE_VARIANCE + cell_variance(&samples, y, x))
            });
            let mean = (visible[0] + visible[1] + visible[2] + visible[3]) / 4.0;
            power(mean, VISIBILITY_EIGHTHS)
        })
        .collect()
}

/// Computes the variance of 4x4 samples of a block.
fn cell_variance(samples: &[[f32; 8]; 8], y: usize, x: usize) -> f32 {
    let mut sum = 0.0;
    let mut squares = 0.0;
    for value in samples[y..y + 4].iter().flat_map(|line| &line[x..x + 4]) {
        sum += value;
        squares += value * value;
    }
    // Rounding must not make the variance negative.
    ((squares - sum * sum / 16.0) / 16.0).max(0.0)
}

/// Averages the sensitivities of the luma blocks that each chroma block covers.
pub(super) fn covered(
    sensitivities: &[f32],
    luma: &BlockGrid,
    chroma: &BlockGrid,
    factor: usize,
) -> Vec<f32> {
    let blocks = (0..chroma.rows).flat_map(|row| (0..chroma.cols).map(move |col| (col, row)));
    blocks
        .map(|(col, row)| {
            let mut sum = 0.0;
            let mut count = 0.0;
            for at in 0..factor * factor {
                let x = col * factor + at % factor;
                let y = row * factor + at / factor;
                if x < luma.cols && y < luma.rows {
                    sum += sensitivities[y * luma.cols + x];
                    count += 1.0;
                }
            }
            sum / count
        })
        .collect()
}

/// A component before quantisation.
pub(super) struct Component {
    /// Identifier of the component in the frame.
    pub(super) id: u8,
    /// Number of the quantisation table in the file.
    pub(super) quant_number: u8,
    /// The coefficients before quantisation.
    pub(super) grid: BlockGrid,
    /// Number of blocks of an MCU in each direction.
    pub(super) factor: u8,
    /// The visibility of errors in each block.
    pub(super) sensitivities: Vec<f32>,
}

impl Profile {
    /// Returns the steps at a scale.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a byte"
    )]
    pub(super) fn steps(&self, scale: f32) -> Steps {
        ZIGZAG.map(|at| {
            let step = f32::from(self.table[usize::from(at)]) * scale;
            (step + 0.5).clamp(1.0, 255.0) as u8
        })
    }

    /// Quantises components that share their tables: each coefficient alone, then `rounds` times all levels of a block
    /// together.
    pub(super) fn quantise(
        &self,
        components: &[Component],
        steps: &Steps,
        scale: f32,
        rounds: usize,
    ) -> Vec<CoefficientGrid> {
        let reciprocals = steps.map(|step| 1.0 / (ONE * f32::from(step)));
        let lowest = f32::from(steps[1]);
        let weights = steps.map(|step| power(f32::from(step) / lowest, self.weight_eighths));
        let bit_price = self.bit_price * (scale / FULL_PRICE_SCALE).min(1.0);
        let mut grids: Vec<_> =
            components.iter().map(|component| component.rounded(steps, &reciprocals)).collect();
        for _ in 0..rounds {
            let mut histogram: Histogram = [0; 256];
            grids.iter().for_each(|grid| trellis::count_symbols(grid, &mut histogram));
            let rates = Rates::new(&histogram);
            let quantiser = Quantiser { reciprocals, weights, rates: &rates };
            for (grid, component) in grids.iter_mut().zip(components) {
                component.requantise(grid, &quantiser, bit_price);
            }
        }
        grids
    }
}

impl Component {
    /// Quantises each coefficient separately.
    fn rounded(&self, steps: &Steps, reciprocals: &[f32; 64]) -> CoefficientGrid {
        let blocks = self.grid.blocks.iter().map(|block| rounded_block(block, reciprocals));
        let mut grid = CoefficientGrid {
            id: self.id,
            across: self.factor,
            down: self.factor,
            quant_number: self.quant_number,
            quant: steps.map(u16::from),
            cols: self.grid.cols,
            rows: self.grid.rows,
            blocks: blocks.collect(),
            masks: Vec::new(),
        };
        grid.update_masks();
        grid
    }

    /// Chooses the AC levels of all blocks again.
    fn requantise(&self, grid: &mut CoefficientGrid, quantiser: &Quantiser<'_>, bit_price: f32) {
        let sources = self.grid.blocks.iter().zip(&self.sensitivities);
        for (levels, (source, sensitivity)) in grid.blocks.iter_mut().zip(sources) {
            levels[1..].fill(0);
            quantiser.quantise(source, bit_price / sensitivity, levels);
        }
        grid.update_masks();
    }
}

/// Quantises each coefficient of a block separately.
fn rounded_block(block: &[i16; 64], reciprocals: &[f32; 64]) -> [i16; 64] {
    let mut levels: [i16; 64] =
        std::array::from_fn(|at| rounded_level(block[at], reciprocals[at], FIRST_BIAS));
    levels[0] = rounded_level(block[0], reciprocals[0], 0.0);
    levels
}

#[inline]
fn rounded_level(value: i16, reciprocal: f32, bias: f32) -> i16 {
    let level = trellis::rounded((f32::from(value).abs() * reciprocal - bias).max(0.0));
    if value < 0 { -level } else { level }
}
