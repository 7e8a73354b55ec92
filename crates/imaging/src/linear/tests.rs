//! Properties of the downscaler that a user would see.

use super::*;
use jpeg::samples::pictures;
use proptest::prelude::*;

fn one_thread(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(work);
}

fn whole(size: Size) -> PixelRegion {
    Rect::new(0, 0, size).into()
}

fn scaled(pixels: &Pixels, size: Size) -> Pixels {
    scale_region(pixels, whole(pixels.size), size, SampleLight::Srgb, &one_thread)
}

fn picture(size: Size, channels: usize, level: impl Fn(u32, u32) -> u8) -> Pixels {
    let level = &level;
    let data = (0..size.height).flat_map(|y| {
        (0..size.width).flat_map(move |x| std::iter::repeat_n(level(x, y), channels))
    });
    Pixels { size, channels, data: data.collect() }
}

/// The greatest difference of two samples in the same place, in levels.
fn difference(a: &Pixels, b: &Pixels) -> u8 {
    assert_eq!((a.size, a.channels), (b.size, b.channels));
    a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

#[test]
fn fine_black_and_white_lines_become_half_of_the_light() {
    let size = Size::new(96, 64);
    for (factor, channels) in [(2, 1), (2, 3), (4, 3), (8, 3)] {
        let small = Size::new(96 / factor, 64 / factor);
        for lines in [
            picture(size, channels, |x, _| if x % 2 == 0 { 0 } else { 255 }),
            picture(size, channels, |_, y| if y % 2 == 0 { 255 } else { 0 }),
            picture(size, channels, |x, y| if (x + y) % 2 == 0 { 255 } else { 0 }),
        ] {
            let found = scaled(&lines, small);
            // The repeated pixels at the edge outweigh the others a little.
            let (width, stride) = (index(small.width), index(small.width) * channels);
            for (at, level) in found.data.iter().enumerate() {
                let (x, y) = (at % stride / channels, at / stride);
                let inner = x > 3 && x + 4 < width && y > 3 && y + 4 < index(small.height);
                assert!(!inner || level.abs_diff(188) <= 1, "{level} at {x},{y}");
            }
        }
    }
}

#[test]
fn inks_are_averaged_as_areas() {
    let lines = picture(Size::new(80, 60), 4, |x, _| if x % 2 == 0 { 0 } else { 255 });
    let size = Size::new(20, 15);
    let found =
        scale_region(&lines, whole(lines.size), size, SampleLight::Proportional, &one_thread);
    assert!(found.data[(7 * 20 + 10) * 4].abs_diff(128) <= 1);
}

#[test]
fn a_flat_picture_of_every_level_stays_exactly_flat() {
    let sizes = [(1, 1), (2, 2), (7, 3), (13, 29), (39, 30)];
    for (channels, light) in
        [(1, SampleLight::Srgb), (3, SampleLight::Srgb), (4, SampleLight::Proportional)]
    {
        for level in 0..=255u8 {
            let flat = picture(Size::new(41, 31), channels, |_, _| level);
            let (width, height) = sizes[usize::from(level) % sizes.len()];
            let size = Size::new(width, height);
            let found = scale_region(&flat, whole(flat.size), size, light, &one_thread);
            assert!(found.data.iter().all(|found| *found == level), "{level} at {size}");
        }
    }
}

#[test]
fn a_ramp_stays_a_ramp() {
    let ramp = picture(Size::new(2048, 8), 3, |x, _| u8::try_from(x / 8).unwrap());
    for width in [1024, 683, 512, 256] {
        let found = scaled(&ramp, Size::new(width, 4));
        let row: Vec<u8> = found.data.chunks_exact(3).map(|p| p[1]).take(index(width)).collect();
        for (x, level) in row.iter().enumerate() {
            // The filter overshoots a little at each step of the ramp.
            let expected = u8::try_from(x * 256 / row.len()).unwrap();
            assert!(level.abs_diff(expected) <= 1, "{level}, expected {expected} at {x}/{width}");
        }
    }
}

#[test]
fn sides_of_one_pixel_and_odd_ratios_are_scaled() {
    for (from, to) in [
        ((1, 1), (1, 1)),
        ((1, 300), (1, 7)),
        ((300, 1), (13, 1)),
        ((5, 3), (2, 1)),
        ((1001, 37), (999, 36)),
        ((97, 89), (11, 7)),
        ((3, 2), (3, 2)),
    ] {
        let (from, to) = (Size::new(from.0, from.1), Size::new(to.0, to.1));
        for channels in [1, 3, 4] {
            let found = scaled(&pictures::pixels(from, channels, 3), to);
            assert_eq!((found.size, found.channels), (to, channels));
            assert_eq!(found.data.len(), index(to.width) * index(to.height) * channels);
        }
    }
}

#[test]
fn the_same_size_leaves_every_sample_unchanged() {
    let pixels = pictures::pixels(Size::new(67, 41), 3, 5);
    assert_eq!(scaled(&pixels, pixels.size), pixels);
    let region = Rect { x: 9, y: 12, width: 30, height: 20 };
    let cut = scale_region(&pixels, region.into(), region.size(), SampleLight::Srgb, &one_thread);
    assert_eq!(cut, crate::resize::crop_pixels(pixels, region));
}

#[test]
fn a_region_does_not_show_what_is_outside_it() {
    let size = Size::new(120, 90);
    let region = Rect { x: 40, y: 30, width: 48, height: 36 };
    let inside = |x, y| (40..88).contains(&x) && (30..66).contains(&y);
    let frame = picture(size, 3, |x, y| if inside(x, y) { 90 } else { 255 });
    for (width, height) in [(48, 36), (24, 18), (11, 9), (4, 3)] {
        let size = Size::new(width, height);
        let found = scale_region(&frame, region.into(), size, SampleLight::Srgb, &one_thread);
        assert!(found.data.iter().all(|level| *level == 90), "{size}");
    }
}

/// A smooth picture, whose copies of different sizes show the same.
fn smooth(size: Size) -> Pixels {
    let level = |x: u32, y: u32, channel: u32| {
        let (x, y) = (f64::from(x) + 0.5, f64::from(y) + 0.5);
        let (x, y) = (x / f64::from(size.width), y / f64::from(size.height));
        let wave = (x * 11.0 + f64::from(channel)).sin() * (y * 9.0).cos();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 28 and 228"
        )]
        let level = (128.0 + 100.0 * wave).round() as u8;
        level
    };
    let data = (0..size.height).flat_map(|y| {
        (0..size.width).flat_map(move |x| (0..3).map(move |channel| level(x, y, channel)))
    });
    Pixels { size, channels: 3, data: data.collect() }
}

#[test]
fn a_region_of_a_level_agrees_with_that_of_the_original() {
    let original = smooth(Size::new(1200, 801));
    let level = scaled(&original, Size::new(640, 427));
    for (x, y, width, height) in
        [(0, 0, 1200, 801), (17, 33, 500, 301), (701, 502, 499, 299), (3, 400, 333, 401)]
    {
        let region = PixelRegion::from(Rect { x, y, width, height });
        let size = Size::new(width, height).fit_within(120);
        let on_level = region.rescaled(original.size, level.size);
        let direct = scale_region(&original, region, size, SampleLight::Srgb, &one_thread);
        let found = scale_region(&level, on_level, size, SampleLight::Srgb, &one_thread);
        let most = difference(&direct, &found);
        assert!(most <= 2, "{region:?}: {most} levels");
    }
}

#[test]
fn a_reduction_of_a_reduction_looks_like_a_direct_one() {
    let original = smooth(Size::new(1200, 801));
    let plan = Downscale::new(original.size, 3, whole(original.size), Size::new(512, 342));
    let light = SampleLight::Srgb.light_of();
    let first = plan.reduce_whole(&original.data, light, &one_thread);
    let size = Size::new(128, 86);
    let data = first.reduced(size, &one_thread).encode(SampleLight::Srgb);
    let second = Pixels { size, channels: 3, data };
    let most = difference(&second, &scaled(&original, size));
    assert!(most <= 1, "{most} levels");
}

#[test]
fn slabs_do_not_change_a_sample() {
    let pixels = pictures::pixels(Size::new(2500, 2100), 3, 8);
    let size = Size::new(2400, 2017);
    let plan = Downscale::new(pixels.size, 3, whole(pixels.size), size);
    assert!(plan.slabs().len() > 1);
    let light = SampleLight::Srgb.light_of();
    let at_once = plan.reduce_whole(&pixels.data, light, &one_thread).encode(SampleLight::Srgb);
    assert!(at_once == scaled(&pixels, size).data);
    let slabs = plan.slabs().into_iter();
    let slabs = slabs.map(|slab| slab.reduce_whole(&pixels.data, light, &one_thread));
    let joined = LightPixels::joined(slabs.collect());
    assert_eq!(joined.size, size);
    assert!(at_once == joined.encode(SampleLight::Srgb));
}

#[test]
fn threads_do_not_change_a_sample() {
    let two_threads = |count: usize, work: &(dyn Fn(usize) + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..count).step_by(2).rev().for_each(work));
            scope.spawn(|| (1..count).step_by(2).for_each(work));
        });
    };
    let pixels = pictures::pixels(Size::new(2100, 1403), 3, 8);
    let region = PixelRegion { x: 3.4, y: 7.9, width: 2011.7, height: 1333.3 };
    for size in [Size::new(1000, 660), Size::new(123, 81)] {
        let one = scale_region(&pixels, region, size, SampleLight::Srgb, &one_thread);
        assert!(one == scale_region(&pixels, region, size, SampleLight::Srgb, &two_threads));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_region_of_any_picture_has_the_size_and_the_range_of_its_source(
        (width, height) in (1u32..160, 1u32..160),
        (to_width, to_height) in (1u32..90, 1u32..90),
        (x, y, w, h) in (0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64),
        kind in 0usize..3,
    ) {
        let channels = [1, 3, 4][kind];
        let from = Size::new(width, height);
        let (full_w, full_h) = (f64::from(width), f64::from(height));
        let region = PixelRegion {
            x: x * full_w,
            y: y * full_h,
            width: w * (1.0 - x) * full_w,
            height: h * (1.0 - y) * full_h,
        };
        let to = Size::new(to_width, to_height);
        let found = scale_region(
            &pictures::pixels(from, channels, 4), region, to, SampleLight::Srgb, &one_thread,
        );
        prop_assert_eq!(found.size, to);
        prop_assert_eq!(found.data.len(), index(to_width) * index(to_height) * channels);
        let flat = picture(from, channels, |_, _| 77);
        let found = scale_region(&flat, region, to, SampleLight::Srgb, &one_thread);
        prop_assert!(found.data.iter().all(|level| *level == 77));
    }
}
