//! Implements the transforms of [`super::dct`] with AVX2; the only `unsafe` code of the crate.
//!
//! A register of 256 bits has two lanes of 128 bits, and most instructions work on the two lanes independently. So
//! two neighbouring blocks are processed together: the low lane of register r holds row r of the first block, the
//! high lane row r of the second, 8 numbers of 16 bits each. One line transform on 8 registers then transforms all
//! 8 columns of both blocks.
//!
//! `pmaddwd` (`madd` below) needs the two numbers of a pair side by side. `unpack` interleaves them in two halves,
//! columns 0 to 3 and columns 4 to 7. Each half is 32 bits wide until `packs` clamps both and joins them again.
//!
//! *Transposing* uses `unpack` too, because it permutes the bits of an element's address: unpacking registers `i`
//! and `i + 2^k` moves the top bit of the position into bit k of the register's number, and the old bit k to the
//! bottom of the position. Three rounds swap rows and columns.
//!
//! Two operations are unsafe here: calling code that needs AVX2, and access through raw pointers. The first is
//! safe with a value of [`Avx2`], which exists only on a processor that supports it. The second is confined to
//! five helpers, each of which accesses an array of exactly the size that it reads or writes.
#![expect(unsafe_code, reason = "vector loads and stores, and calls that need AVX2")]

use std::arch::x86_64::*;

use super::dct_weights::{self, Weights};
use super::divisors::Divisors;

/// Proof that this processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

const FIRST: i32 = dct_weights::FIRST_SHIFT.cast_signed();
const LAST_INVERSE: i32 = dct_weights::LAST_SHIFT_INVERSE.cast_signed();
const LAST_FORWARD: i32 = dct_weights::LAST_SHIFT_FORWARD.cast_signed();
/// The weight 1 in fixed point.
const ONE: i16 = 1 << dct_weights::FRACTION_BITS;
/// The level shift of the samples, 128: XOR with this byte adds it.
const LEVEL: i8 = i8::MIN;
/// Shuffle control for the 32-bit quarters of a lane: swaps its halves.
const SWAP_HALVES: i32 = 0b01_00_11_10;
/// Permute control for the 64-bit quarters of a register: swaps the middle two.
const SWAP_MIDDLE: i32 = 0b11_01_10_00;

/// Rows 0 to 7 of two blocks, 16 bits each.
type Lines = [__m256i; 8];

impl Avx2 {
    /// Detects AVX2; the result is cached, so later calls only read a flag.
    pub(super) fn detect() -> Option<Avx2> {
        if is_x86_feature_detected!("avx2") { Some(Avx2(())) } else { None }
    }

    /// Implements [`super::dct::Dct::inverse`]; each row has 8 samples per block.
    pub(super) fn inverse(self, blocks: &[[i16; 64]], rows: &mut [&mut [u8]; 8]) {
        // SAFETY: `inverse` needs AVX2 and nothing else, and `self` proves it.
        unsafe { inverse(blocks, rows) }
    }

    /// Implements [`super::dct::Dct::forward`]; each row has 8 samples per block.
    pub(super) fn forward(self, rows: &[&[u8]; 8], divisors: &Divisors, blocks: &mut [[i16; 64]]) {
        // SAFETY: `forward` needs AVX2 and nothing else, and `self` proves it.
        unsafe { forward(rows, divisors, blocks) }
    }
}

// Each loop has only one call, which an unpaired last block uses too: the two transforms are long, and the
// compiler inlines them into the loop only if there is a single call.

#[target_feature(enable = "avx2")]
fn inverse(blocks: &[[i16; 64]], rows: &mut [&mut [u8]; 8]) {
    let mut rows = rows.each_mut().map(|row| row.as_chunks_mut::<16>());
    for (index, pair) in blocks.chunks(2).enumerate() {
        let samples = inverse_two(&pair[0], pair.get(1).unwrap_or(&pair[0]));
        for ((chunks, rest), samples) in rows.iter_mut().zip(samples) {
            if let Some(chunk) = chunks.get_mut(index) {
                store_samples(chunk, samples);
            } else {
                let mut both = [0; 16];
                store_samples(&mut both, samples);
                rest.copy_from_slice(&both[..8]);
            }
        }
    }
}

/// Computes the inverse transform of two blocks: returns 8 rows of 8 samples of the first and 8 of the second.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_two(first: &[i16; 64], second: &[i16; 64]) -> [__m128i; 8] {
    let zero = _mm256_setzero_si256();
    let (first, _) = first.as_chunks::<8>();
    let (second, _) = second.as_chunks::<8>();
    let mut lines = [zero; 8];
    for ((line, first), second) in lines.iter_mut().zip(first).zip(second) {
        *line = _mm256_set_m128i(load_coefficients(second), load_coefficients(first));
    }
    let mut below = zero;
    for line in &lines[1..] {
        below = _mm256_or_si256(below, *line);
    }

    // A block whose rows 1 to 7 are zero wraps where other blocks clamp (see `dct`). Clearing the top two bits of
    // row 0, by sign extension, makes the first direction give the wrapped number.
    let flat_halves = _mm256_cmpeq_epi64(below, zero);
    let flat = _mm256_and_si256(flat_halves, _mm256_shuffle_epi32::<SWAP_HALVES>(flat_halves));
    let wrapped = _mm256_srai_epi16::<2>(_mm256_slli_epi16::<2>(lines[0]));
    lines[0] = _mm256_blendv_epi8(lines[0], wrapped, flat);

    let not_dc = _mm256_set_epi64x(-1, !0xFFFF, -1, !0xFFFF);
    let fine = _mm256_or_si256(_mm256_and_si256(lines[0], not_dc), below);
    if _mm256_testz_si256(fine, fine) == 1 {
        return samples_of_dc(lines[0]);
    }
    let lines = transpose_words(inverse_lines::<FIRST>(lines));
    samples_of_columns(inverse_lines::<LAST_INVERSE>(lines))
}

/// Computes the samples of two blocks that have only a DC, in `-8192..=8191`, at the bottom of each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn samples_of_dc(dc: __m256i) -> [__m128i; 8] {
    // (dc * 4 * 2^13 + 2^17) / 2^18, without the common bits.
    let value = _mm256_srai_epi16::<3>(_mm256_add_epi16(dc, _mm256_set1_epi16(4)));
    let bytes = _mm256_xor_si256(_mm256_packs_epi16(value, value), _mm256_set1_epi8(LEVEL));
    let filled = _mm256_shuffle_epi8(bytes, _mm256_setzero_si256());
    let row =
        _mm_unpacklo_epi64(_mm256_castsi256_si128(filled), _mm256_extracti128_si256::<1>(filled));
    [row; 8]
}

/// Converts the columns of two blocks to rows of 8 samples of the first and 8 of the second.
#[inline]
#[target_feature(enable = "avx2")]
fn samples_of_columns(columns: Lines) -> [__m128i; 8] {
    let level = _mm256_set1_epi8(LEVEL);
    let mut pairs = [_mm256_setzero_si256(); 4];
    for (index, pair) in pairs.iter_mut().enumerate() {
        // Two clamps to 8 bits; flipping the top bit of the byte adds 128.
        let packed = _mm256_packs_epi16(columns[2 * index], columns[2 * index + 1]);
        *pair = _mm256_xor_si256(packed, level);
    }
    let mut rows = [_mm_setzero_si128(); 8];
    for (index, pair) in transpose_bytes(pairs).into_iter().enumerate() {
        let rows_of_both = _mm256_permute4x64_epi64::<SWAP_MIDDLE>(pair);
        rows[2 * index] = _mm256_castsi256_si128(rows_of_both);
        rows[2 * index + 1] = _mm256_extracti128_si256::<1>(rows_of_both);
    }
    rows
}

#[target_feature(enable = "avx2")]
fn forward(rows: &[&[u8]; 8], divisors: &Divisors, blocks: &mut [[i16; 64]]) {
    let rows = rows.each_ref().map(|row| row.as_chunks::<16>());
    let mut spare = [0; 64];
    for (index, pair) in blocks.chunks_mut(2).enumerate() {
        let mut samples = [_mm_setzero_si128(); 8];
        for (samples, (chunks, rest)) in samples.iter_mut().zip(&rows) {
            *samples = if let Some(chunk) = chunks.get(index) {
                load_samples(chunk)
            } else {
                let mut both = [0; 16];
                both[..8].copy_from_slice(rest);
                load_samples(&both)
            };
        }
        let (first, second) = pair.split_at_mut(1);
        forward_two(samples, divisors, &mut first[0], second.first_mut().unwrap_or(&mut spare));
    }
}

/// Transforms and quantises two blocks from 8 rows of 8 samples of the first and the second.
#[inline]
#[target_feature(enable = "avx2")]
fn forward_two(
    samples: [__m128i; 8],
    divisors: &Divisors,
    first: &mut [i16; 64],
    second: &mut [i16; 64],
) {
    let zero = _mm256_setzero_si256();
    let mut pairs = [zero; 4];
    for (index, pair) in pairs.iter_mut().enumerate() {
        let rows_of_both = _mm256_set_m128i(samples[2 * index + 1], samples[2 * index]);
        *pair = _mm256_permute4x64_epi64::<SWAP_MIDDLE>(rows_of_both);
    }
    let mut columns = [zero; 8];
    for (index, pair) in transpose_bytes(pairs).into_iter().enumerate() {
        columns[2 * index] = _mm256_unpacklo_epi8(pair, zero);
        columns[2 * index + 1] = _mm256_unpackhi_epi8(pair, zero);
    }
    // The samples are still centred on 128. That affects only frequency 0, the sum of 8 samples: by 1024.
    let mut lines = forward_lines::<FIRST>(columns);
    lines[0] = _mm256_sub_epi16(lines[0], _mm256_set1_epi16(1024 << 2));
    let lines = forward_lines::<LAST_FORWARD>(transpose_words(lines));

    quantise_two(&lines, divisors, first, second);
}

/// Quantises rows 0 to 7 of two blocks.
///
/// Not inlined: inside a loop, the compiler hoists half of each product, the widening of the divisors, and then no
/// longer recognises the single instruction for the whole product.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn quantise_two(
    lines: &Lines,
    divisors: &Divisors,
    first: &mut [i16; 64],
    second: &mut [i16; 64],
) {
    let (first, _) = first.as_chunks_mut::<8>();
    let (second, _) = second.as_chunks_mut::<8>();
    for (row, line) in lines.iter().copied().enumerate() {
        let correction = _mm256_broadcastsi128_si256(load_words(&divisors.corrections[row]));
        let reciprocal = _mm256_broadcastsi128_si256(load_words(&divisors.reciprocals[row]));
        let scale = _mm256_broadcastsi128_si256(load_words(&divisors.scales[row]));
        let corrected = _mm256_add_epi16(_mm256_abs_epi16(line), correction);
        // Both factors of the second product have 15 bits, so the signed multiplication is safe. The compiler
        // would merge two unsigned multiplications into slow 32-bit code.
        let magnitude = _mm256_mulhi_epi16(_mm256_mulhi_epu16(corrected, reciprocal), scale);
        let quantised = _mm256_sign_epi16(magnitude, line);
        store_coefficients(&mut first[row], _mm256_castsi256_si128(quantised));
        store_coefficients(&mut second[row], _mm256_extracti128_si256::<1>(quantised));
    }
}

/// Computes the inverse transform of 16 lines: register k holds frequency k on entry and value k on return.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_lines<const SHIFT: i32>(lines: Lines) -> Lines {
    let sum = _mm256_add_epi16(lines[0], lines[4]);
    let difference = _mm256_sub_epi16(lines[0], lines[4]);
    let left = inverse_half::<SHIFT>([
        _mm256_unpacklo_epi16(sum, difference),
        _mm256_unpacklo_epi16(lines[2], lines[6]),
        _mm256_unpacklo_epi16(lines[7], lines[1]),
        _mm256_unpacklo_epi16(lines[3], lines[5]),
    ]);
    let right = inverse_half::<SHIFT>([
        _mm256_unpackhi_epi16(sum, difference),
        _mm256_unpackhi_epi16(lines[2], lines[6]),
        _mm256_unpackhi_epi16(lines[7], lines[1]),
        _mm256_unpackhi_epi16(lines[3], lines[5]),
    ]);
    pack(left, right)
}

/// Computes the inverse transform of half of the lines, from interleaved pairs, in 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_half<const SHIFT: i32>([sums, pair_2_6, pair_7_1, pair_3_5]: [__m256i; 4]) -> Lines {
    let half = _mm256_set1_epi32(1 << (SHIFT - 1));
    let sum = _mm256_add_epi32(weigh(sums, [ONE, 0]), half);
    let difference = _mm256_add_epi32(weigh(sums, [0, ONE]), half);
    let with_sum = weigh(pair_2_6, dct_weights::EVEN_WITH_SUM);
    let with_difference = weigh(pair_2_6, dct_weights::EVEN_WITH_DIFFERENCE);
    let even = [
        _mm256_add_epi32(sum, with_sum),
        _mm256_add_epi32(difference, with_difference),
        _mm256_sub_epi32(difference, with_difference),
        _mm256_sub_epi32(sum, with_sum),
    ];
    let odd = odd_half(pair_7_1, pair_3_5, _mm256_setzero_si256());
    let mut values = [half; 8];
    for index in 0..4 {
        let sum = _mm256_add_epi32(even[index], odd[3 - index]);
        let difference = _mm256_sub_epi32(even[index], odd[3 - index]);
        values[index] = _mm256_srai_epi32::<SHIFT>(sum);
        values[7 - index] = _mm256_srai_epi32::<SHIFT>(difference);
    }
    values
}

/// Computes the forward transform of 16 lines: register k holds value k on entry and frequency k on return.
#[inline]
#[target_feature(enable = "avx2")]
fn forward_lines<const SHIFT: i32>(lines: Lines) -> Lines {
    let mut sums = [lines[0]; 4];
    let mut differences = [lines[0]; 4];
    for index in 0..4 {
        sums[index] = _mm256_add_epi16(lines[index], lines[7 - index]);
        differences[index] = _mm256_sub_epi16(lines[index], lines[7 - index]);
    }
    let outer = _mm256_add_epi16(sums[0], sums[3]);
    let inner = _mm256_add_epi16(sums[1], sums[2]);
    let evens_0 = _mm256_sub_epi16(sums[0], sums[3]);
    let evens_1 = _mm256_sub_epi16(sums[1], sums[2]);
    let [d0, d1, d2, d3] = differences;
    let left = forward_half::<SHIFT>([
        _mm256_unpacklo_epi16(evens_0, evens_1),
        _mm256_unpacklo_epi16(d3, d0),
        _mm256_unpacklo_epi16(d1, d2),
    ]);
    let right = forward_half::<SHIFT>([
        _mm256_unpackhi_epi16(evens_0, evens_1),
        _mm256_unpackhi_epi16(d3, d0),
        _mm256_unpackhi_epi16(d1, d2),
    ]);
    let mut values = [outer; 8];
    values[0] = scale_sum::<SHIFT>(_mm256_add_epi16(outer, inner));
    values[4] = scale_sum::<SHIFT>(_mm256_sub_epi16(outer, inner));
    for (index, frequency) in [1, 2, 3, 5, 6, 7].into_iter().enumerate() {
        values[frequency] = _mm256_packs_epi32(left[index], right[index]);
    }
    values
}

/// Computes frequencies 1, 2, 3, 5, 6, 7 of half of the lines, from interleaved pairs, in 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn forward_half<const SHIFT: i32>([evens, a, b]: [__m256i; 3]) -> [__m256i; 6] {
    let half = _mm256_set1_epi32(1 << (SHIFT - 1));
    let [value_7, value_5, value_3, value_1] = odd_half(a, b, half);
    let value_2 = _mm256_add_epi32(weigh(evens, dct_weights::EVEN_WITH_SUM), half);
    let value_6 = _mm256_add_epi32(weigh(evens, dct_weights::EVEN_WITH_DIFFERENCE), half);
    let mut values = [value_1, value_2, value_3, value_5, value_6, value_7];
    for value in &mut values {
        *value = _mm256_srai_epi32::<SHIFT>(*value);
    }
    values
}

/// Scales frequencies 0 and 4, which need no products: multiplies by `2^13`, then shifts with rounding.
#[inline]
#[target_feature(enable = "avx2")]
fn scale_sum<const SHIFT: i32>(sum: __m256i) -> __m256i {
    if SHIFT == FIRST {
        _mm256_slli_epi16::<2>(sum)
    } else {
        _mm256_srai_epi16::<2>(_mm256_add_epi16(sum, _mm256_set1_epi16(2)))
    }
}

/// Computes the odd half of a line in both directions, each result plus `half`; the pairs are the same as in the
/// portable code.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_half(a: __m256i, b: __m256i, half: __m256i) -> [__m256i; 4] {
    let z = _mm256_add_epi16(a, b);
    let z_0_2 = _mm256_add_epi32(weigh(z, dct_weights::ODD_Z_0_2), half);
    let z_1_3 = _mm256_add_epi32(weigh(z, dct_weights::ODD_Z_1_3), half);
    [
        _mm256_add_epi32(weigh(a, dct_weights::ODD_A_0), z_0_2),
        _mm256_add_epi32(weigh(b, dct_weights::ODD_B_1), z_1_3),
        _mm256_add_epi32(weigh(b, dct_weights::ODD_B_2), z_0_2),
        _mm256_add_epi32(weigh(a, dct_weights::ODD_A_3), z_1_3),
    ]
}

/// Multiplies pairs of 16 bits by their weights and adds each pair in 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn weigh(pairs: __m256i, [even, odd]: Weights) -> __m256i {
    let low = even.to_le_bytes();
    let high = odd.to_le_bytes();
    let both = i32::from_le_bytes([low[0], low[1], high[0], high[1]]);
    _mm256_madd_epi16(pairs, _mm256_set1_epi32(both))
}

/// Clamps both halves to 16 bits and joins them.
#[inline]
#[target_feature(enable = "avx2")]
fn pack(left: Lines, right: Lines) -> Lines {
    let mut lines = left;
    for (line, right) in lines.iter_mut().zip(right) {
        *line = _mm256_packs_epi32(*line, right);
    }
    lines
}

/// Transposes the 8x8 words in each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_words(mut lines: Lines) -> Lines {
    for distance in [4, 2, 1] {
        for index in 0..8 {
            if index & distance == 0 {
                let low = lines[index];
                let high = lines[index + distance];
                lines[index] = _mm256_unpacklo_epi16(low, high);
                lines[index + distance] = _mm256_unpackhi_epi16(low, high);
            }
        }
    }
    lines
}

/// Transposes the 8x8 bytes in each lane; register k holds lines 2k and 2k + 1.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_bytes(mut pairs: [__m256i; 4]) -> [__m256i; 4] {
    for distance in [2, 1, 2] {
        for index in 0..4 {
            if index & distance == 0 {
                let low = pairs[index];
                let high = pairs[index + distance];
                pairs[index] = _mm256_unpacklo_epi8(low, high);
                pairs[index + distance] = _mm256_unpackhi_epi8(low, high);
            }
        }
    }
    // The rounds leave the two bits of the register's number in the wrong order.
    [pairs[0], pairs[2], pairs[1], pairs[3]]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_coefficients(from: &[i16; 8]) -> __m128i {
    // SAFETY: `from` refers to 16 readable bytes, and the load requires no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_words(from: &[u16; 8]) -> __m128i {
    // SAFETY: `from` refers to 16 readable bytes, and the load requires no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_samples(from: &[u8; 16]) -> __m128i {
    // SAFETY: `from` refers to 16 readable bytes, and the load requires no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_coefficients(to: &mut [i16; 8], value: __m128i) {
    // SAFETY: `to` refers to 16 bytes that only we may write, and the store requires no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_samples(to: &mut [u8; 16], value: __m128i) {
    // SAFETY: `to` refers to 16 bytes that only we may write, and the store requires no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
}
