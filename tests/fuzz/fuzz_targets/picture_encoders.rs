//! Encodes arbitrary pixels of arbitrary sizes with libwebp and libaom.
//!
//! Nothing may panic or touch memory out of bounds; every picture of a right layout is encoded, twice to the same bytes.

#![no_main]

use av1_encoder::ChromaSampling;
use geometry::Size;
use libfuzzer_sys::fuzz_target;

/// More pixels than this take too long.
const SIDE_MASK: u8 = 0x7F;

fuzz_target!(|bytes: &[u8]| {
    let [width, height, kind, quality, effort, rest @ ..] = bytes else { return };
    let size = Size::new(u32::from(width & SIDE_MASK), u32::from(height & SIDE_MASK));
    let channels = if kind & 1 == 0 { 1 } else { 3 };
    let count = usize::from(width & SIDE_MASK) * usize::from(height & SIDE_MASK) * channels;
    let data: Vec<u8> = rest.iter().copied().chain([0]).cycle().take(count).collect();
    // One case in eight has a byte too many.
    let is_right = kind >> 5 != 0 && count > 0;
    let data = if kind >> 5 == 0 { [&data[..], &[0]].concat() } else { data };

    let options = webp_encoder::WebpOptions { quality: f32::from(*quality), method: *effort };
    let picture = webp_encoder::PixelView { size, channels, data: &data };
    let file = webp_encoder::encode(picture, options);
    assert_eq!(file.is_ok(), is_right);
    assert_eq!(webp_encoder::encode(picture, options), file);

    let chroma = if kind & 2 == 0 { ChromaSampling::Quarter } else { ChromaSampling::Full };
    // The slowest speeds take seconds for a picture.
    let options = av1_encoder::Av1Options { quantizer: *quality, speed: effort % 4 + 6, chroma };
    let picture = av1_encoder::PixelView { size, channels, data: &data };
    let obus = av1_encoder::encode(picture, options);
    assert_eq!(obus.is_ok(), is_right);
    assert_eq!(av1_encoder::encode(picture, options), obus);
});
