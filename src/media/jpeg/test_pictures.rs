//! Pictures for tests, made from numbers.

use crate::media::jpeg::codec::{Chroma, Encoding, Pixels, Space, encode};
use crate::types::Size;

/// Every colour space, and every sampling of YCbCr.
pub(crate) const KINDS: [(Space, Chroma); 11] = [
    (Space::Grey, Chroma::Full),
    (Space::YCbCr, Chroma::Full),
    (Space::YCbCr, Chroma::Half),
    (Space::YCbCr, Chroma::Quarter),
    (Space::YCbCr, Chroma::HalfDown),
    (Space::YCbCr, Chroma::QuarterAcross),
    (Space::YCbCr, Chroma::QuarterDown),
    (Space::Rgb, Chroma::Full),
    (Space::Cmyk, Chroma::Full),
    (Space::Ycck, Chroma::Full),
    (Space::Ycck, Chroma::Quarter),
];

/// Slopes, edges and noise, different for every seed.
pub(crate) fn pixels(size: Size, channels: usize, seed: u32) -> Pixels {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut data = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            for channel in 0..u32::try_from(channels).unwrap() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let slope = (x * (3 + channel) + y * 2 + seed * 40) % 400;
                let slope = if slope > 200 { 400 - slope } else { slope };
                let edge = if (x / 11 + y / 7 + channel) % 3 == 0 { 35 } else { 0 };
                data.push(u8::try_from(slope + edge + (state >> 28)).unwrap());
            }
        }
    }
    Pixels { size, channels, data }
}

/// A baseline file of such a picture.
pub(crate) fn jpeg(size: Size, space: Space, chroma: Chroma, seed: u32) -> Vec<u8> {
    let pixels = pixels(size, space.channels(), seed);
    encode(&pixels, Encoding { quality: 88, space, chroma }).unwrap()
}
