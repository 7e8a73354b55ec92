//! The picture that benches use when they are given none.

use wirephoto::media::jpeg::codec::{Chroma, Encoding, Pixels, Space, encode};
use wirephoto::types::Size;

/// A wave of `x` over `period`, 0 to 127.
fn wave(x: u32, period: u32) -> u32 {
    let at = x % period * 256 / period;
    if at < 128 { at } else { 255 - at }
}

/// A baseline JPEG of busy and calm parts, made from numbers: slopes, edges and grain, about as
/// heavy as a photograph, the same every time.
pub fn made_picture(size: Size, chroma: Chroma) -> Vec<u8> {
    let mut data = Vec::new();
    let mut state = 1u32;
    for y in 0..size.height {
        for x in 0..size.width {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let grain = if wave(x + y / 2, 2900) > 60 { state >> 27 } else { state >> 30 };
            let edge = if wave(x + 2 * y, 731) + wave(3 * x + y, 977) > 190 { 50 } else { 0 };
            let base = wave(x, 5000) / 2 + wave(y, 3000) / 2 + edge + grain;
            for colour in [base, base + wave(x + y, 4100) / 5, base * 7 / 10] {
                data.push(u8::try_from(colour.min(255)).expect("at most 255"));
            }
        }
    }
    let encoding = Encoding { quality: 88, space: Space::YCbCr, chroma };
    encode(&Pixels { size, channels: 3, data }, encoding).expect("the picture is encoded")
}
