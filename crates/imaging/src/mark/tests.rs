//! Marks: their position, their appearance, and the cache of prepared marks.

use super::*;
use crate::blend::{SampleModel, blend_pixels};
use proptest::prelude::*;

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap()
}

pub(crate) fn text(width_fraction: f32, margin_fraction: f32) -> MarkSetup {
    let font = include_bytes!("../../../../assets/fonts/Inter-SemiBold.otf").to_vec();
    let kind = MarkKind::Text { line: "© Wirephoto".to_owned(), font };
    MarkSetup { kind, width_fraction, margin_fraction, opacity: 0.85 }
}

/// A PNG of `size`, half transparent red.
fn png(size: Size) -> Vec<u8> {
    let image =
        image::RgbaImage::from_pixel(size.width, size.height, image::Rgba([200, 0, 0, 128]));
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

fn setup(kind: MarkKind) -> MarkSetup {
    MarkSetup { kind, ..text(0.3, 0.02) }
}

/// The darkest and brightest level of the mark on a flat RGB picture.
fn on_flat(level: u8, image: Size) -> (u8, u8) {
    let marker = Watermark::new(text(0.3, 0.02)).unwrap();
    let data = vec![level; index(image.width) * index(image.height) * 3];
    let mut pixels = Pixels { size: image, channels: 3, data };
    let (stamp, place) = marker.prepare(image);
    blend_pixels(&mut pixels, &stamp, place, SampleModel::Rgb);
    (*pixels.data.iter().min().unwrap(), *pixels.data.iter().max().unwrap())
}

#[test]
fn a_text_is_legible_on_white_and_on_black() {
    for image in [Size { width: 1024, height: 683 }, Size { width: 256, height: 171 }] {
        let (shadow, _) = on_flat(255, image);
        assert!(shadow < 110, "on white the darkest shadow is {shadow}");
        let (_, letters) = on_flat(0, image);
        assert!(letters > 200, "on black the brightest letter is {letters}");
    }
}

#[test]
fn the_mark_lies_in_the_lower_left_corner_in_fractions_of_the_width() {
    let marker = Watermark::new(text(0.3, 0.02)).unwrap();
    for width in [500, 1000, 6000] {
        let image = Size { width, height: width * 2 / 3 };
        let rect = marker.placement(image);
        assert_eq!(rect.x, width / 50);
        assert_eq!(rect.width, width * 3 / 10);
        assert_eq!(rect.y + rect.height + width / 50, image.height);
    }
}

#[test]
fn a_tall_mark_shrinks_to_fit_a_low_picture() {
    let file = png(Size { width: 10, height: 100 });
    let marker = Watermark::new(setup(MarkKind::Png(file))).unwrap();
    let rect = marker.placement(Size { width: 1000, height: 100 });
    assert_eq!(rect, Rect { x: 20, y: 20, width: 6, height: 60 });
}

#[test]
fn a_png_keeps_colour_and_transparency() {
    let file = png(Size { width: 40, height: 20 });
    let marker = Watermark::new(MarkSetup { opacity: 0.5, ..setup(MarkKind::Png(file)) }).unwrap();
    let (stamp, _) = marker.prepare(Size { width: 600, height: 400 });
    assert_eq!(stamp.size, Size { width: 180, height: 90 });
    assert!(stamp.pixels.iter().all(|pixel| *pixel == [50, 0, 0, 64]), "{:?}", stamp.pixels[0]);
}

#[test]
fn prepared_marks_are_cached_within_bounds() {
    let marker = Watermark::new(text(0.3, 0.02)).unwrap();
    let image = Size { width: 300, height: 200 };
    let first = marker.prepare(image).0;
    assert!(Arc::ptr_eq(&first, &marker.prepare(image).0));
    for width in 400..400 + u32::try_from(CACHED_BITMAPS_MAX).unwrap() * 8 {
        marker.prepare(Size { width, height: 300 });
    }
    let kept = marker.bitmaps.0.lock().unwrap();
    assert_eq!(kept.len(), CACHED_BITMAPS_MAX);
    assert!(!kept.iter().any(|stamp| Arc::ptr_eq(stamp, &first)));
}

#[test]
fn the_id_changes_with_everything_that_changes_pixels() {
    let base = text(0.3, 0.02);
    let MarkKind::Text { font, .. } = base.kind.clone() else { panic!("a text") };
    let other = MarkKind::Text { line: "Other".to_owned(), font };
    let setups = [
        MarkSetup { width_fraction: 0.31, ..base.clone() },
        MarkSetup { margin_fraction: 0.03, ..base.clone() },
        MarkSetup { opacity: 0.8, ..base.clone() },
        MarkSetup { kind: other, ..base.clone() },
        MarkSetup { kind: MarkKind::Png(png(Size { width: 3, height: 3 })), ..base.clone() },
    ];
    let id = |setup: MarkSetup| Watermark::new(setup).unwrap().id().to_owned();
    let first = id(base.clone());
    assert_eq!(first, id(base));
    assert_eq!(first.len(), 32);
    for setup in setups {
        assert_ne!(first, id(setup));
    }
}

#[test]
fn invalid_settings_are_refused() {
    let base = text(0.3, 0.02);
    let check = |setup: MarkSetup, expected: MarkError| {
        assert_eq!(Watermark::new(setup).err(), Some(expected));
    };
    for width_fraction in [0.0, 1.1, -1.0, f32::NAN, f32::INFINITY] {
        check(MarkSetup { width_fraction, ..base.clone() }, MarkError::Fraction("width"));
    }
    check(MarkSetup { margin_fraction: 0.5, ..base.clone() }, MarkError::Fraction("margin"));
    check(MarkSetup { opacity: 0.0, ..base.clone() }, MarkError::Fraction("opacity"));
    let MarkKind::Text { font, .. } = base.kind.clone() else { panic!("a text") };
    let line = |line: &str, font: &[u8]| {
        setup(MarkKind::Text { line: line.to_owned(), font: font.to_vec() })
    };
    check(line("x", b"no font"), MarkError::Font);
    check(line("  ", &font), MarkError::Text);
    check(line(&"x".repeat(201), &font), MarkError::Text);
    let wide = png(Size { width: 5000, height: 1 });
    for file in [wide, b"no png".to_vec()] {
        assert!(matches!(Watermark::new(setup(MarkKind::Png(file))), Err(MarkError::Png(_))));
    }
}

proptest! {
    #[test]
    fn a_mark_is_always_inside_the_picture(
        width in 1u32..70_000, height in 1u32..70_000, fraction in 0.001f32..1.0,
        margin in 0.0f32..0.499,
    ) {
        let marker = Watermark::new(text(fraction, margin)).unwrap();
        let rect = marker.placement(Size { width, height });
        prop_assert!(rect.width >= 1 && rect.height >= 1);
        prop_assert!(rect.x + rect.width <= width && rect.y + rect.height <= height);
        let pixels = u64::from(rect.width) * u64::from(rect.height);
        prop_assert!(pixels <= BITMAP_PIXELS_MAX + u64::from(rect.width));
    }

    #[test]
    fn a_mark_is_drawn_in_every_size(width in 1u32..80, height in 1u32..80) {
        let marker = Watermark::new(text(0.9, 0.02)).unwrap();
        let (stamp, _) = marker.prepare(Size { width, height });
        prop_assert_eq!(stamp.pixels.len(), index(stamp.size.width) * index(stamp.size.height));
        prop_assert!(stamp.pixels.iter().all(|[red, .., alpha]| red <= alpha));
    }
}
