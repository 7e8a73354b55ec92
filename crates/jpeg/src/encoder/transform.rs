//! Computes the forward cosine transform in floating point, and blocks of its coefficients.
//!
//! The transform of the `dct` module reproduces libjpeg's integers and starts from 8-bit samples. Here samples
//! have fractions, and the trellis compares fractions of a quantisation step, so the transform is computed in
//! `f32` and its results are stored in units of 1/16.

use super::colour::Plane;
use crate::scan::ZIGZAG;

/// The value of 1 in stored coefficients: four fraction bits. Coefficients are at most 1024 away from zero.
pub(super) const ONE: f32 = 16.0;

/// The blocks of one component, row by row; each has 64 numbers in zigzag order.
#[derive(Clone, Debug)]
pub(super) struct BlockGrid {
    /// Number of blocks in a row.
    pub(super) cols: usize,
    /// Number of rows of blocks.
    pub(super) rows: usize,
    /// The blocks, row after row.
    pub(super) blocks: Vec<[i16; 64]>,
}

/// Transforms a plane; incomplete blocks are filled by repeating the last column and row.
///
/// The results are coefficients times [`ONE`].
pub(super) fn coefficients(plane: &Plane) -> BlockGrid {
    let cols = plane.width.div_ceil(8);
    let rows = plane.height.div_ceil(8);
    let mut blocks = Vec::with_capacity(cols * rows);
    for row in 0..rows {
        for col in 0..cols {
            let mut samples = block_samples(plane, col, row);
            forward(&mut samples);
            blocks.push(ZIGZAG.map(|at| {
                let at = usize::from(at);
                stored(samples[at / 8][at % 8])
            }));
        }
    }
    BlockGrid { cols, rows, blocks }
}

/// Returns the 8x8 samples of a block.
pub(super) fn block_samples(plane: &Plane, col: usize, row: usize) -> [[f32; 8]; 8] {
    std::array::from_fn(|y| {
        let y = (8 * row + y).min(plane.height - 1);
        let line = &plane.samples[y * plane.width..][..plane.width];
        match line[8 * col..].first_chunk::<8>() {
            Some(samples) => *samples,
            None => std::array::from_fn(|x| line[(8 * col + x).min(plane.width - 1)]),
        }
    })
}

#[expect(clippy::cast_possible_truncation, reason = "at most 1024 times 16, rounded before")]
fn stored(coefficient: f32) -> i16 {
    // Adding a half and truncating is several times faster than `round` without SSE4.1.
    (coefficient * ONE + 0.5f32.copysign(coefficient)) as i16
}

/// Transforms 8x8 samples in place, both directions.
fn forward(block: &mut [[f32; 8]; 8]) {
    *block = transposed(&columns(block));
    *block = transposed(&columns(block));
}

fn transposed(block: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    std::array::from_fn(|row| std::array::from_fn(|column| block[column][row]))
}

/// Adds or subtracts line by line; eight columns are computed at once, which compiles to SIMD code.
fn sum(a: &[f32; 8], b: &[f32; 8], sign: f32) -> [f32; 8] {
    std::array::from_fn(|lane| a[lane] + sign * b[lane])
}

/// Transforms every column: `1/2 C(k) Σ s(n) cos((2n+1)kπ/16)` (ITU-T T.81, A.3.3).
fn columns(block: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    // Half the cosines of k π/16.
    const C1: f32 = 0.490_392_64;
    const C2: f32 = 0.461_939_77;
    const C3: f32 = 0.415_734_8;
    const C4: f32 = 0.353_553_39;
    const C5: f32 = 0.277_785_12;
    const C6: f32 = 0.191_341_72;
    const C7: f32 = 0.097_545_16;
    let s: [[f32; 8]; 4] = std::array::from_fn(|n| sum(&block[n], &block[7 - n], 1.0));
    let d: [[f32; 8]; 4] = std::array::from_fn(|n| sum(&block[n], &block[7 - n], -1.0));
    let outer = sum(&s[0], &s[3], 1.0);
    let inner = sum(&s[1], &s[2], 1.0);
    let outer_d = sum(&s[0], &s[3], -1.0);
    let inner_d = sum(&s[1], &s[2], -1.0);
    [
        even(&outer, &inner, [C4, C4]),
        odd(&d, [C1, C3, C5, C7]),
        even(&outer_d, &inner_d, [C2, C6]),
        odd(&d, [C3, -C7, -C1, -C5]),
        even(&outer, &inner, [C4, -C4]),
        odd(&d, [C5, -C1, C7, C3]),
        even(&outer_d, &inner_d, [C6, -C2]),
        odd(&d, [C7, -C5, C3, -C1]),
    ]
}

/// Computes an even frequency of eight columns.
#[inline]
fn even(a: &[f32; 8], b: &[f32; 8], weights: [f32; 2]) -> [f32; 8] {
    std::array::from_fn(|lane| weights[0] * a[lane] + weights[1] * b[lane])
}

/// Computes an odd frequency of eight columns, from the differences of their lines.
#[inline]
fn odd(differences: &[[f32; 8]; 4], weights: [f32; 4]) -> [f32; 8] {
    let [d0, d1, d2, d3] = differences;
    std::array::from_fn(|lane| {
        (weights[0] * d0[lane] + weights[1] * d1[lane])
            + (weights[2] * d2[lane] + weights[3] * d3[lane])
    })
}
