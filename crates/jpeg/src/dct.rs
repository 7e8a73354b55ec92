//! Implements the cosine transforms between blocks of 8x8 samples and blocks of 8x8 coefficients.
//!
//! # Coefficients
//! JPEG divides a picture into blocks of 8x8 samples. Each block is a weighted sum of 64 fixed patterns: pattern
//! (v, u) is a cosine with u half waves from left to right times a cosine with v half waves from top to bottom.
//! The 64 weights are the *coefficients*. The weight of the flat pattern (0, 0) is called DC, the other weights
//! AC. Photographs are smooth, so most of the weights of fine patterns are near zero, and *quantisation* (division
//! by a table, rounded) makes them zero.
//!
//! ITU-T T.81, A.3.3, for samples `s` reduced by 128, so that they are centred on zero:
//!
//! ```text
//! S(v,u) = 1/4 C(u) C(v) Σx Σy s(y,x) cos((2x+1)uπ/16) cos((2y+1)vπ/16)      forward
//! s(y,x) = 1/4 Σu Σv C(u) C(v) S(v,u) cos((2x+1)uπ/16) cos((2y+1)vπ/16)      inverse
//! C(0) = 1/√2, C(k) = 1 otherwise
//! ```
//!
//! # Computation
//! The sum is separable into two directions of 8 transforms of 8 numbers each: the inverse does the columns first
//! and then the rows, the forward transform the rows first. For 8 numbers we use the factorisation of Loeffler,
//! Ligtenberg and Moschytz (ICASSP 1989), which is scaled: each direction gives √8 times the true value, both
//! together 8 times. The inverse removes the factor 8 by its last shift, the forward transform by dividing by 8
//! times the table.
//!
//! T.81 does not specify the rounding, so two correct decoders may differ by one. We reproduce libjpeg's rounding,
//! "slow integer" (`JDCT_ISLOW`), bit for bit as in libjpeg-turbo's x86-64 code, because a picture must not depend
//! on the code path that decoded it. Cosines are integers times 2⁻¹³: with `ck = cos(kπ/16)`, the constant
//! 1.175875602 is `√2 c3` and is stored as 9633. The first direction keeps two extra bits, so it shifts right by
//! 13 − 2; the second shifts by 13 + 2, and the inverse by 3 more for the factor 8. Each shift adds a half first,
//! so it rounds to nearest, halves up.
//!
//! With the products merged, the odd half of both directions is one function. From `a` and `b`, two pairs of 16
//! bits, and `z = a + b`, each result is a pair times two constants plus `z` times two constants. This matches
//! `pmaddwd`, which multiplies two pairs and adds in 32 bits.
//!
//! # Wrapping of 16 bits
//! Numbers between the directions have 16 bits. In the inverse, the coefficients of a real encoder never exceed
//! them; the coefficients of a damaged or hostile file can. These rules then define the result:
//! - `in0 ± in4` and the two sums `z` wrap to 16 bits;
//! - the sums in 32 bits cannot overflow: at most 16 bits times 64570 in all (2¹³ + 4433 + 10704 +
//!   41241), plus the half, is 2 115 960 832;
//! - the results of the first direction are clamped to 16 bits;
//! - but a block whose rows 1 to 7 are zero skips the first direction: its row 0, times 4,
//!   *wraps*;
//! - samples are clamped to −128..=127 before 128 is added.
//!
//! The forward transform never wraps: 64 samples of at most 128 times 4 is 32768, reached on the
//! negative side only, and its results are at most 8192 away from zero.

pub use crate::divisors::Divisors;

use crate::dct_weights::{
    EVEN_WITH_DIFFERENCE, EVEN_WITH_SUM, FIRST_SHIFT, FRACTION_BITS, LAST_SHIFT_FORWARD,
    LAST_SHIFT_INVERSE, ODD_A_0, ODD_A_3, ODD_B_1, ODD_B_2, ODD_Z_0_2, ODD_Z_1_3, Weights,
};
#[cfg(target_arch = "x86_64")]
use crate::simd::Avx2;

/// The transforms, with the instruction set that they use. The results do not depend on the instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Dct {
    instructions: InstructionSet,
}

#[derive(Clone, Copy, Debug)]
enum InstructionSet {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Dct {
    /// Selects the fastest instruction set that this processor supports.
    pub fn detect() -> Dct {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            return Dct { instructions: InstructionSet::Avx2(avx2) };
        }
        Dct::scalar()
    }

    /// Selects the portable code, which is several times slower and the reference in tests.
    pub fn scalar() -> Dct {
        Dct { instructions: InstructionSet::Scalar }
    }

    /// Returns whether the portable code is used.
    pub fn is_scalar(&self) -> bool {
        matches!(self.instructions, InstructionSet::Scalar)
    }

    /// Converts coefficients to samples (inverse DCT).
    ///
    /// `blocks`: dequantised coefficients, row by row, any values. Block i becomes columns `8i..8i+8` of 8 rows of
    /// `out`; row r starts at `out[r * stride]`. Nothing else in `out` is written. ITU-T T.81, A.3.3 and A.3.1
    /// (level shift); the rounding is described in the docs of the module.
    ///
    /// Panics if the rows overlap (`stride` less than 8 samples per block) or extend beyond `out`.
    pub fn inverse(&self, blocks: &[[i16; 64]], out: &mut [u8], stride: usize) {
        // Without blocks the stride may be 0, which `chunks_mut` refuses.
        if blocks.is_empty() {
            return;
        }
        check_bounds(blocks.len(), out.len(), stride);
        let mut chunks = out.chunks_mut(stride);
        let mut rows: [&mut [u8]; 8] = std::array::from_fn(|_| {
            // The last row may end before its stride, so each row is cut to its blocks.
            let row = chunks.next().expect("the bounds were checked");
            &mut row[..8 * blocks.len()]
        });
        match self.instructions {
            InstructionSet::Scalar => inverse_scalar(blocks, &mut rows),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(avx2) => avx2.inverse(blocks, &mut rows),
        }
    }

    /// Converts samples to quantised coefficients (forward DCT).
    ///
    /// Columns `8i..8i+8` of 8 rows of `samples`, where row r starts at `samples[r * stride]`, become block i:
    /// coefficients row by row, divided by the table of `divisors` and rounded to nearest, halves away from zero.
    /// They are in −1024..=1024. Every coefficient of a block is written. ITU-T T.81, A.3.3 and A.3.4; the
    /// rounding before the division is described in the docs of the module.
    ///
    /// Panics if `stride` is less than 8 samples per block or the rows extend beyond `samples`.
    pub fn forward(
        &self,
        samples: &[u8],
        stride: usize,
        divisors: &Divisors,
        blocks: &mut [[i16; 64]],
    ) {
        if blocks.is_empty() {
            return;
        }
        check_bounds(blocks.len(), samples.len(), stride);
        let rows: [&[u8]; 8] =
            std::array::from_fn(|row| &samples[row * stride..][..8 * blocks.len()]);
        match self.instructions {
            InstructionSet::Scalar => forward_scalar(&rows, divisors, blocks),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(avx2) => avx2.forward(&rows, divisors, blocks),
        }
    }
}

/// Panics unless 8 rows of `blocks` blocks, `stride` apart, fit into `samples` samples.
fn check_bounds(blocks: usize, samples: usize, stride: usize) {
    let fits = blocks.checked_mul(8).is_some_and(|width| {
        let needed = stride.checked_mul(7).and_then(|start| start.checked_add(width));
        width <= stride && needed.is_some_and(|needed| needed <= samples)
    });
    assert!(
        fits,
        "8 rows of {blocks} blocks, {stride} apart, leave a buffer of {samples} samples"
    );
}

/// The portable [`Dct::inverse`]; each row has 8 samples per block.
pub(super) fn inverse_scalar(blocks: &[[i16; 64]], rows: &mut [&mut [u8]; 8]) {
    for (index, block) in blocks.iter().enumerate() {
        let samples = inverse_block(block);
        for (row, samples) in rows.iter_mut().zip(samples) {
            row[8 * index..8 * index + 8].copy_from_slice(&samples);
        }
    }
}

fn inverse_block(block: &[i16; 64]) -> [[u8; 8]; 8] {
    let (rows, _) = block.as_chunks::<8>();
    let mut work = [[0; 8]; 8];
    // libjpeg-turbo's shortcut, which wraps where the full transform clamps; see the docs of the module.
    if rows[1..].iter().flatten().all(|&coefficient| coefficient == 0) {
        work = [rows[0].map(|coefficient| coefficient.wrapping_mul(4)); 8];
    } else {
        for column in 0..8 {
            let line = std::array::from_fn(|row| rows[row][column]);
            for (row, value) in work.iter_mut().zip(inverse_line(line, FIRST_SHIFT)) {
                row[column] = value;
            }
        }
    }
    work.map(|line| inverse_line(line, LAST_SHIFT_INVERSE).map(sample))
}

/// Computes the inverse transform of one line: coefficients by rising frequency become values from left to right.
fn inverse_line(line: [i16; 8], shift: u32) -> [i16; 8] {
    let sum = i32::from(line[0].wrapping_add(line[4])) << FRACTION_BITS;
    let difference = i32::from(line[0].wrapping_sub(line[4])) << FRACTION_BITS;
    let with_sum = weigh([line[2], line[6]], EVEN_WITH_SUM);
    let with_difference = weigh([line[2], line[6]], EVEN_WITH_DIFFERENCE);
    let even = [
        sum + with_sum,
        difference + with_difference,
        difference - with_difference,
        sum - with_sum,
    ];
    let [odd_0, odd_1, odd_2, odd_3] = odd_half([line[7], line[1]], [line[3], line[5]]);
    // The last result belongs to the outermost pair of values.
    let odd = [odd_3, odd_2, odd_1, odd_0];
    std::array::from_fn(|index| match index {
        0..4 => narrow(round_shift(even[index] + odd[index], shift)),
        _ => narrow(round_shift(even[7 - index] - odd[7 - index], shift)),
    })
}

/// The portable [`Dct::forward`]; each row has 8 samples per block.
pub(super) fn forward_scalar(rows: &[&[u8]; 8], divisors: &Divisors, blocks: &mut [[i16; 64]]) {
    for (index, block) in blocks.iter_mut().enumerate() {
        let work = rows.map(|row| {
            let line: [i16; 8] =
                std::array::from_fn(|column| i16::from(row[8 * index + column]) - 128);
            forward_line(line, FIRST_SHIFT)
        });
        let (lines, _) = block.as_chunks_mut::<8>();
        for column in 0..8 {
            let line = forward_line(work.map(|row| row[column]), LAST_SHIFT_FORWARD);
            for (row, value) in line.into_iter().enumerate() {
                lines[row][column] = quantise(value, divisors, row, column);
            }
        }
    }
}

/// Computes the forward transform of one line: values from left to right become coefficients by rising frequency.
fn forward_line(line: [i16; 8], shift: u32) -> [i16; 8] {
    // The module explains why these sums cannot wrap.
    let sums: [i16; 4] = std::array::from_fn(|index| line[index] + line[7 - index]);
    let differences: [i16; 4] = std::array::from_fn(|index| line[index] - line[7 - index]);
    let outer = sums[0] + sums[3];
    let inner = sums[1] + sums[2];
    let pair = [sums[0] - sums[3], sums[1] - sums[2]];
    let odd = odd_half([differences[3], differences[0]], [differences[1], differences[2]]);
    let values = [
        (i32::from(outer) + i32::from(inner)) << FRACTION_BITS,
        odd[3],
        weigh(pair, EVEN_WITH_SUM),
        odd[2],
        (i32::from(outer) - i32::from(inner)) << FRACTION_BITS,
        odd[1],
        weigh(pair, EVEN_WITH_DIFFERENCE),
        odd[0],
    ];
    values.map(|value| narrow(round_shift(value, shift)))
}

/// Computes the odd half of a line in both directions.
///
/// The inverse passes coefficients (7, 1) and (3, 5) and adds results 3, 2, 1, 0 to the left half. The forward
/// transform passes the differences of samples (3, 0) and (1, 2), counted from the edges; the results are
/// coefficients 7, 5, 3, 1.
fn odd_half(a: [i16; 2], b: [i16; 2]) -> [i32; 4] {
    let z = [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])];
    [
        weigh(a, ODD_A_0) + weigh(z, ODD_Z_0_2),
        weigh(b, ODD_B_1) + weigh(z, ODD_Z_1_3),
        weigh(b, ODD_B_2) + weigh(z, ODD_Z_0_2),
        weigh(a, ODD_A_3) + weigh(z, ODD_Z_1_3),
    ]
}

fn weigh(pair: [i16; 2], weights: Weights) -> i32 {
    i32::from(pair[0]) * i32::from(weights[0]) + i32::from(pair[1]) * i32::from(weights[1])
}

/// Divides by `2^shift`, rounded to nearest, halves up.
fn round_shift(value: i32, shift: u32) -> i32 {
    (value + (1 << (shift - 1))) >> shift
}

/// Clamps a value to 16 bits.
fn narrow(value: i32) -> i16 {
    let [low, high, ..] = value.clamp(i16::MIN.into(), i16::MAX.into()).to_le_bytes();
    i16::from_le_bytes([low, high])
}

/// Adds the level shift of 128 and clamps the result to a sample.
fn sample(value: i16) -> u8 {
    value.saturating_add(128).clamp(0, 255).to_le_bytes()[0]
}

pub(super) fn quantise(value: i16, divisors: &Divisors, row: usize, column: usize) -> i16 {
    let corrected = value.unsigned_abs() + divisors.corrections[row][column];
    let product = u32::from(corrected) * u32::from(divisors.reciprocals[row][column]);
    let quotient = (product >> 16) * u32::from(divisors.scales[row][column]);
    let [_, _, low, high] = quotient.to_le_bytes();
    let magnitude = i16::from_le_bytes([low, high]);
    // The sign comes last, so that halves round away from zero on both sides.
    if value < 0 { -magnitude } else { magnitude }
}
