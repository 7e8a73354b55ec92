//! Generates pictures for tests and benchmarks.

use crate::codec::{ChromaSubsampling, ColourSpace, EncodeOptions, Pixels, encode};
use geometry::Size;

/// All colour spaces, with every subsampling of YCbCr and two of YCCK.
pub const KINDS: [(ColourSpace, ChromaSubsampling); 11] = [
    (ColourSpace::Grey, ChromaSubsampling::Full),
    (ColourSpace::YCbCr, ChromaSubsampling::Full),
    (ColourSpace::YCbCr, ChromaSubsampling::Half),
    (ColourSpace::YCbCr, ChromaSubsampling::Quarter),
    (ColourSpace::YCbCr, ChromaSubsampling::HalfDown),
    (ColourSpace::YCbCr, ChromaSubsampling::QuarterAcross),
    (ColourSpace::YCbCr, ChromaSubsampling::QuarterDown),
    (ColourSpace::Rgb, ChromaSubsampling::Full),
    (ColourSpace::Cmyk, ChromaSubsampling::Full),
    (ColourSpace::Ycck, ChromaSubsampling::Full),
    (ColourSpace::Ycck, ChromaSubsampling::Quarter),
];

/// Advances the state of a linear congruential generator, with the constants of "Numerical Recipes". Its upper bits
/// are the most random.
fn next_state(state: u32) -> u32 {
    state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

/// Generates pixels with gradients, edges and noise, different for every seed.
pub fn pixels(size: Size, channels: usize, seed: u32) -> Pixels {
    // Knuth's multiplier, a prime near 2^32 divided by the golden ratio, spreads consecutive seeds over all numbers.
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut data = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            for channel in 0..u32::try_from(channels).expect("a picture has few channels") {
                state = next_state(state);
                let slope = (x * (3 + channel) + y * 2 + seed * 40) % 400;
                let slope = if slope > 200 { 400 - slope } else { slope };
                let edge = if (x / 11 + y / 7 + channel) % 3 == 0 { 35 } else { 0 };
                // At most 200 + 35 + 15.
                let level = slope + edge + (state >> 28);
                data.push(u8::try_from(level).expect("a level is below 256"));
            }
        }
    }
    Pixels { size, channels, data }
}

/// Encodes the picture that [`pixels`] generates as a baseline JPEG.
pub fn jpeg(size: Size, space: ColourSpace, chroma: ChromaSubsampling, seed: u32) -> Vec<u8> {
    let pixels = pixels(size, space.channels(), seed);
    encode(&pixels, EncodeOptions { quality: 88, space, chroma }).expect("the picture is encoded")
}

/// Computes a triangle wave of `x` over `period`, 0 to 127.
fn wave(x: u32, period: u32) -> u32 {
    let at = x % period * 256 / period;
    if at < 128 { at } else { 255 - at }
}

/// Generates a baseline JPEG with detailed and smooth parts: gradients, edges and grain.
///
/// The file is about as large as the file of a photograph, and the same every time.
pub fn photograph(size: Size, chroma: ChromaSubsampling) -> Vec<u8> {
    let mut data = Vec::new();
    let mut state = 1u32;
    for y in 0..size.height {
        for x in 0..size.width {
            state = next_state(state);
            let grain = if wave(x + y / 2, 2900) > 60 { state >> 27 } else { state >> 30 };
            let edge = if wave(x + 2 * y, 731) + wave(3 * x + y, 977) > 190 { 50 } else { 0 };
            let base = wave(x, 5000) / 2 + wave(y, 3000) / 2 + edge + grain;
            for colour in [base, base + wave(x + y, 4100) / 5, base * 7 / 10] {
                data.push(u8::try_from(colour.min(255)).expect("at most 255"));
            }
        }
    }
    let encoding = EncodeOptions { quality: 88, space: ColourSpace::YCbCr, chroma };
    encode(&Pixels { size, channels: 3, data }, encoding).expect("the picture is encoded")
}
