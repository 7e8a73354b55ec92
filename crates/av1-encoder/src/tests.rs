//! Properties of encoded pictures that hold without a decoder.

use super::*;

fn pattern(size: Size, channels: usize) -> Vec<u8> {
    let count = usize::try_from(size.pixels()).unwrap() * channels;
    (0..count).map(|at| u8::try_from((at * 7 + at / 97) % 256).unwrap()).collect()
}

fn encoded(size: Size, channels: usize, chroma: ChromaSampling) -> Av1Picture {
    let options = Av1Options { quantizer: 30, speed: 9, chroma };
    encode(PixelView { size, channels, data: &pattern(size, channels) }, options).unwrap()
}

#[test]
fn every_kind_and_size_has_a_level_and_a_profile() {
    for (width, height) in [(1, 1), (1, 300), (2, 1), (3, 5), (63, 65), (64, 64), (300, 299)] {
        let size = Size::new(width, height);
        for (channels, chroma, profile) in [
            (1, ChromaSampling::Full, 0),
            (3, ChromaSampling::Quarter, 0),
            (3, ChromaSampling::Full, 1),
        ] {
            let Av1Picture { obus, config } = encoded(size, channels, chroma);
            assert_eq!(obus[0], 1 << 3 | 0b10, "{size} begins with a sequence header");
            assert_eq!(config.profile, profile, "{size}");
            assert_eq!(config.is_monochrome, channels == 1);
            assert_eq!(config.has_full_chroma, profile == 1);
            assert!(config.level <= 1, "{size} fits level 2.0 or 2.1");
        }
    }
}

#[test]
fn the_same_picture_has_the_same_bytes_on_every_thread() {
    let size = Size::new(257, 130);
    let first = encoded(size, 3, ChromaSampling::Quarter);
    let others: Vec<_> = std::thread::scope(|scope| {
        let run = || scope.spawn(|| encoded(size, 3, ChromaSampling::Quarter));
        [run(), run()].map(|thread| thread.join().unwrap()).into()
    });
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn a_coarser_quantizer_gives_fewer_bytes() {
    let (size, channels) = (Size::new(200, 100), 3);
    let data = pattern(size, channels);
    let bytes = [10, 30, 50, 255].map(|quantizer| {
        let options = Av1Options { quantizer, speed: 255, chroma: ChromaSampling::Quarter };
        encode(PixelView { size, channels, data: &data }, options).unwrap().obus.len()
    });
    assert!(bytes.is_sorted_by(|finer, coarser| finer > coarser), "{bytes:?}");
}

#[test]
fn a_wrong_layout_or_size_is_refused() {
    let options = Av1Options { quantizer: 30, speed: 9, chroma: ChromaSampling::Quarter };
    let refused = |width, height, channels, data: &[u8]| {
        let size = Size::new(width, height);
        encode(PixelView { size, channels, data }, options).unwrap_err().to_string()
    };
    assert_eq!(refused(2, 2, 3, &[0; 11]), "11 bytes for 2x2 pixels of 3 channels");
    assert_eq!(refused(1, 1, 4, &[0; 4]), "4 bytes for 1x1 pixels of 4 channels");
    let sizes = [(0, 4), (4, 0), (16_385, 1), (1, 16_385), (16_384, 2_177), (u32::MAX, u32::MAX)];
    for (width, height) in sizes {
        assert!(refused(width, height, 3, &[]).contains("expected 1 to 16384 on a side"));
    }
}

#[test]
fn the_longest_strips_are_encoded() {
    // The highest levels are wider than high: 16,384 x 8,704.
    for (size, level) in [(Size::new(SIDE_PX_MAX, 1), 16), (Size::new(1, SIDE_PX_MAX), 31)] {
        assert_eq!(encoded(size, 1, ChromaSampling::Quarter).config.level, level);
    }
}
