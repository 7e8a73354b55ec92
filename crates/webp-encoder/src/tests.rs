//! Properties of encoded files that hold without a decoder.

use crate::{PixelView, SIDE_PX_MAX, WebpOptions, encode};
use geometry::Size;

const OPTIONS: WebpOptions = WebpOptions { quality: 80.0, method: 4 };

fn pattern(size: Size, channels: usize) -> Vec<u8> {
    let count = usize::try_from(size.pixels()).unwrap() * channels;
    (0..count).map(|at| u8::try_from((at * 7 + at / 97) % 256).unwrap()).collect()
}

fn encoded(size: Size, channels: usize, options: WebpOptions) -> Vec<u8> {
    encode(PixelView { size, channels, data: &pattern(size, channels) }, options).unwrap()
}

/// Width and height in the header of a key frame (RFC 6386, section 9.1).
fn frame_size(file: &[u8]) -> (u16, u16) {
    assert_eq!(&file[..4], b"RIFF");
    assert_eq!(&file[8..16], b"WEBPVP8 ");
    assert_eq!(&file[23..26], [0x9D, 0x01, 0x2A], "start code of a key frame");
    let side = |at: usize| u16::from_le_bytes([file[at], file[at + 1]]);
    (side(26), side(28))
}

#[test]
fn every_size_is_in_the_header_of_the_frame() {
    for (width, height) in [(1, 1), (1, 300), (2, 1), (3, 5), (17, 15), (16, 16), (300, 299)] {
        for channels in [1, 3] {
            let file = encoded(Size::new(width.into(), height.into()), channels, OPTIONS);
            assert_eq!(frame_size(&file), (width, height));
            let length = u32::from_le_bytes(*file[4..].first_chunk().unwrap());
            assert_eq!(usize::try_from(length).unwrap() + 8, file.len());
        }
    }
}

#[test]
fn the_same_picture_has_the_same_bytes_on_every_thread() {
    let size = Size::new(257, 130);
    let first = encoded(size, 3, OPTIONS);
    let others: Vec<_> = std::thread::scope(|scope| {
        let run = || scope.spawn(|| encoded(size, 3, OPTIONS));
        [run(), run()].map(|thread| thread.join().unwrap()).into()
    });
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn a_higher_quality_gives_more_bytes_and_any_number_is_accepted() {
    let bytes = [f32::NAN, 30.0, 60.0, 90.0, f32::INFINITY].map(|quality| {
        encoded(Size::new(200, 100), 3, WebpOptions { quality, method: 255 }).len()
    });
    assert!(bytes.is_sorted_by(|coarser, finer| coarser < finer), "{bytes:?}");
}

#[test]
fn a_wrong_layout_or_size_is_refused() {
    let refused = |width, height, channels, data: &[u8]| {
        let picture = PixelView { size: Size::new(width, height), channels, data };
        encode(picture, OPTIONS).unwrap_err().to_string()
    };
    assert_eq!(refused(2, 2, 3, &[0; 11]), "11 bytes for 2x2 pixels of 3 channels");
    assert_eq!(refused(1, 1, 4, &[0; 4]), "4 bytes for 1x1 pixels of 4 channels");
    for (width, height) in [(0, 4), (4, 0), (16_384, 1), (1, u32::MAX)] {
        assert!(refused(width, height, 3, &[]).contains("expected 1 to 16383 on a side"));
    }
}

#[test]
fn the_longest_strips_are_encoded() {
    for (width, height) in [(16_383, 1), (1, 16_383)] {
        let size = Size::new(width.into(), height.into());
        assert_eq!(size.width.max(size.height), SIDE_PX_MAX);
        assert_eq!(frame_size(&encoded(size, 1, OPTIONS)), (width, height));
    }
}
