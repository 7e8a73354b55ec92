//! Properties of the transforms that need no other decoder: comparisons with the sums of T.81, and of both paths with
//! each other.

use std::f64::consts::{PI, SQRT_2};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use super::dct::*;
use super::dct_weights::*;

/// The fill byte of buffers where nothing may be written.
const UNTOUCHED: u8 = 0xA5;

fn inverse(dct: Dct, blocks: &[[i16; 64]], padding: usize) -> Vec<u8> {
    let stride = 8 * blocks.len() + padding;
    // One row more than needed: the transform must touch neither it nor the padding.
    let mut out = vec![UNTOUCHED; 9 * stride];
    dct.inverse(blocks, &mut out, stride);
    out
}

fn forward(dct: Dct, samples: &[u8], stride: usize, divisors: &Divisors) -> Vec<[i16; 64]> {
    let mut blocks = vec![[i16::MIN; 64]; stride / 8];
    dct.forward(samples, stride, divisors, &mut blocks);
    blocks
}

/// T.81 A.3.3: the sum over the 64 patterns, at one place.
fn sum_of_patterns(block: &[f64; 64], y: usize, x: usize) -> f64 {
    let mut sum = 0.0;
    for (index, value) in block.iter().enumerate() {
        sum += value * pattern(index / 8, y) * pattern(index % 8, x);
    }
    sum
}

/// Half of C(k) times the cosine of k half waves at a place: a factor of a pattern.
fn pattern(frequency: usize, place: usize) -> f64 {
    let [frequency, place] = [frequency, place].map(|n| f64::from(u8::try_from(n).unwrap()));
    let c = if frequency == 0.0 { 1.0 / SQRT_2 } else { 1.0 };
    c / 2.0 * ((2.0 * place + 1.0) * frequency * PI / 16.0).cos()
}

fn coefficient() -> impl Strategy<Value = i16> {
    let extreme = prop_oneof![Just(i16::MIN), Just(i16::MAX)];
    prop_oneof![4 => Just(0), 4 => -64i16..64, 2 => any::<i16>(), 2 => extreme]
}

/// Blocks of any values; some with zeros below row 0, some with DC alone, so that every path through the inverse is
/// paired with every other.
fn block() -> impl Strategy<Value = [i16; 64]> {
    let values = prop_oneof![
        proptest::array::uniform32(any::<i16>()).boxed(),
        proptest::array::uniform32(coefficient()).boxed(),
    ];
    (values, proptest::array::uniform32(coefficient()), prop_oneof![Just(64), Just(8), Just(1)])
        .prop_map(|(upper, lower, kept)| {
            let mut block = [0; 64];
            block[..32].copy_from_slice(&upper);
            block[32..].copy_from_slice(&lower);
            block[kept..].fill(0);
            block
        })
}

#[test]
fn detection_takes_avx2_where_the_processor_has_it() {
    #[cfg(target_arch = "x86_64")]
    assert_eq!(Dct::detect().is_scalar(), !is_x86_feature_detected!("avx2"));
    assert!(Dct::scalar().is_scalar());
}

#[test]
fn the_constants_are_the_cosines_of_loeffler_ligtenberg_and_moschytz() {
    let c = |k: f64| SQRT_2 * (k * PI / 16.0).cos();
    let (c1, c2, c3, c5, c6, c7) = (c(1.0), c(2.0), c(3.0), c(5.0), c(6.0), c(7.0));
    for (constant, value) in [
        (F_0_298, -c1 + c3 + c5 - c7),
        (F_0_390, c3 - c5),
        (F_0_541, c6),
        (F_0_765, c2 - c6),
        (F_0_899, c3 - c7),
        (F_1_175, c3),
        (F_1_501, c1 + c3 - c5 - c7),
        (F_1_847, c2 + c6),
        (F_1_961, c3 + c5),
        (F_2_053, c1 + c3 - c5 + c7),
        (F_2_562, c1 + c3),
        (F_3_072, c1 + c3 + c5 - c7),
    ] {
        assert_eq!(f64::from(constant), (value * 8192.0).round(), "{value}");
    }
}

#[test]
fn quantising_rounds_to_nearest_and_halves_away_from_zero() {
    for step in (1..=4100).chain([8191, 8192, 32768, 65535]) {
        let divisors = Divisors::new(&[step; 64]);
        let divisor = 8 * i32::from(step);
        // Every magnitude for the steps of 8-bit tables, and those around each half for the rest.
        let near = (0..=8200 / divisor + 1).flat_map(|quotient| {
            (-2..=2).map(move |near| quotient * divisor + divisor / 2 + near)
        });
        let all = 0..=if step < 256 { 8200 } else { 1 };
        for magnitude in near.chain(all).filter(|magnitude| (0..=8200).contains(magnitude)) {
            let expected = (magnitude + divisor / 2) / divisor;
            for sign in [1, -1] {
                let value = i16::try_from(sign * magnitude).unwrap();
                let found = quantise(value, &divisors, 7, 7);
                assert_eq!(i32::from(found), sign * expected, "{value} / {divisor}");
            }
        }
    }
}

#[test]
fn a_step_of_zero_counts_as_one() {
    let samples: Vec<u8> = (0..64).map(|n| n * 3).collect();
    let [zero, one] = [0, 1].map(|step| Divisors::new(&[step; 64]));
    for dct in [Dct::scalar(), Dct::detect()] {
        assert_eq!(forward(dct, &samples, 8, &zero), forward(dct, &samples, 8, &one));
    }
}

#[test]
fn a_flat_block_is_its_level() {
    for dct in [Dct::scalar(), Dct::detect()] {
        for level in 0..=255u8 {
            let dc = 8 * (i16::from(level) - 128);
            let mut block = [0; 64];
            block[0] = dc;
            assert_eq!(inverse(dct, &[block], 0)[..64], [level; 64]);
            assert_eq!(forward(dct, &[level; 64], 8, &Divisors::new(&[1; 64])), [block]);
        }
    }
}

#[test]
fn a_block_without_rows_below_the_first_wraps_where_the_others_clamp() {
    let mut wraps = [0; 64];
    wraps[0] = 8192;
    let mut clamps = wraps;
    clamps[63] = 1;
    for dct in [Dct::scalar(), Dct::detect()] {
        for (blocks, expected) in
            [([wraps, clamps], [0, 255]), ([clamps, wraps], [255, 0]), ([wraps, wraps], [0, 0])]
        {
            let out = inverse(dct, &blocks, 0);
            for row in out.chunks_exact(16).take(8) {
                assert_eq!((&row[..8], &row[8..]), (&[expected[0]; 8][..], &[expected[1]; 8][..]));
            }
        }
    }
}

#[test]
fn the_extremes_of_samples_reach_the_extremes_of_dc() {
    let divisors = Divisors::new(&[1; 64]);
    for dct in [Dct::scalar(), Dct::detect()] {
        assert_eq!(forward(dct, &[0; 64], 8, &divisors)[0][0], -1024);
        assert_eq!(forward(dct, &[255; 64], 8, &divisors)[0][0], 1016);
    }
}

#[test]
fn no_blocks_need_no_buffer() {
    Dct::detect().inverse(&[], &mut [], 0);
    Dct::detect().forward(&[], 0, &Divisors::new(&[1; 64]), &mut []);
}

#[test]
#[should_panic(expected = "8 rows of 3 blocks, 24 apart, leave a buffer of 191 samples")]
fn inverse_refuses_a_short_buffer() {
    Dct::detect().inverse(&[[0; 64]; 3], &mut [0; 191], 24);
}

#[test]
#[should_panic(expected = "8 rows of 3 blocks, 23 apart, leave a buffer of 500 samples")]
fn inverse_refuses_rows_that_overlap() {
    Dct::detect().inverse(&[[0; 64]; 3], &mut [0; 500], 23);
}

#[test]
#[should_panic(expected = "leave a buffer of 64 samples")]
fn inverse_refuses_a_stride_beyond_memory() {
    Dct::detect().inverse(&[[0; 64]; 1], &mut [0; 64], usize::MAX / 2);
}

#[test]
#[should_panic(expected = "8 rows of 3 blocks, 24 apart, leave a buffer of 191 samples")]
fn forward_refuses_a_short_buffer() {
    Dct::detect().forward(&[0; 191], 24, &Divisors::new(&[1; 64]), &mut [[0; 64]; 3]);
}

#[test]
#[should_panic(expected = "8 rows of 3 blocks, 23 apart, leave a buffer of 500 samples")]
fn forward_refuses_rows_that_overlap() {
    Dct::detect().forward(&[0; 500], 23, &Divisors::new(&[1; 64]), &mut [[0; 64]; 3]);
}

#[test]
fn the_last_row_may_end_with_its_last_block() {
    let blocks = [[0; 64]; 3];
    for dct in [Dct::scalar(), Dct::detect()] {
        let mut out = [0; 7 * 30 + 24];
        dct.inverse(&blocks, &mut out, 30);
        assert_eq!(out[7 * 30..], [128; 24]);
        let mut found = [[1; 64]; 3];
        dct.forward(&[128; 7 * 30 + 24], 30, &Divisors::new(&[1; 64]), &mut found);
        assert_eq!(found, blocks);
    }
}

proptest! {
    #[test]
    fn inverse_is_the_same_with_avx2_as_without(
        blocks in vec(block(), 1..8),
        padding in 0usize..40,
    ) {
        let expected = inverse(Dct::scalar(), &blocks, padding);
        assert_eq!(inverse(Dct::detect(), &blocks, padding), expected);
    }

    #[test]
    fn inverse_writes_nothing_outside_its_blocks(
        blocks in vec(block(), 1..8),
        padding in 0usize..40,
    ) {
        let (width, stride) = (8 * blocks.len(), 8 * blocks.len() + padding);
        for dct in [Dct::scalar(), Dct::detect()] {
            let out = inverse(dct, &blocks, padding);
            for (row, samples) in out.chunks_exact(stride).enumerate() {
                let outside = if row < 8 { &samples[width..] } else { samples };
                assert!(outside.iter().all(|&sample| sample == UNTOUCHED), "row {row}");
            }
        }
    }

    #[test]
    fn a_block_does_not_depend_on_its_neighbours(blocks in vec(block(), 1..8)) {
        let together = inverse(Dct::detect(), &blocks, 0);
        for (index, block) in blocks.iter().enumerate() {
            let alone = inverse(Dct::detect(), &[*block], 0);
            for row in 0..8 {
                let start = row * 8 * blocks.len() + 8 * index;
                assert_eq!(together[start..start + 8], alone[8 * row..8 * row + 8]);
            }
        }
    }

    #[test]
    fn inverse_is_the_sum_of_patterns_within_one(
        block in vec(-300i16..300, 64),
        decay in 0u32..8,
    ) {
        let block: [i16; 64] = std::array::from_fn(|n| block[n] >> (decay * u32::from(n > 9)));
        let values = block.map(f64::from);
        let out = inverse(Dct::detect(), &[block], 0);
        for (index, &sample) in out[..64].iter().enumerate() {
            let value = sum_of_patterns(&values, index / 8, index % 8) + 128.0;
            let expected = value.clamp(0.0, 255.0);
            assert!((f64::from(sample) - expected).abs() < 1.0, "{index}: {sample} {expected}");
        }
    }

    #[test]
    fn forward_is_the_weight_of_each_pattern_within_one(samples in vec(any::<u8>(), 64)) {
        let found = forward(Dct::detect(), &samples, 8, &Divisors::new(&[1; 64]));
        for (index, &coefficient) in found[0].iter().enumerate() {
            let expected: f64 = samples.iter().enumerate().map(|(place, &sample)| {
                let factors = pattern(index / 8, place / 8) * pattern(index % 8, place % 8);
                (f64::from(sample) - 128.0) * factors
            }).sum();
            let distance = (f64::from(coefficient) - expected).abs();
            assert!(distance < 1.0, "{index}: {coefficient} {expected}");
        }
    }

    #[test]
    fn forward_is_the_same_with_avx2_as_without(
        samples in vec(prop_oneof![any::<u8>(), Just(0), Just(255)], 8 * 8 * 7),
        blocks in 1usize..8,
        table in vec(prop_oneof![8 => 0u16..256, 1 => any::<u16>()], 64),
    ) {
        let divisors = Divisors::new(&table.try_into().unwrap());
        let [mut scalar, mut detected] = [[[i16::MIN; 64]; 7]; 2];
        Dct::scalar().forward(&samples, 56, &divisors, &mut scalar[..blocks]);
        Dct::detect().forward(&samples, 56, &divisors, &mut detected[..blocks]);
        assert_eq!(scalar, detected);
        assert!(detected[blocks..].iter().flatten().all(|&value| value == i16::MIN));
    }
}
