//! The engine compared with libjpeg-turbo on every kind of file.

use proptest::prelude::*;

use super::bands::{are_exact, band, split};
use super::crop::{crop, is_on_grid, surrounding_rect};
use super::patch::patch;
use super::region::{CountedFrom, RegionSamples, byte_ranges, decode as decode_region};
use super::*;
use crate::IndexedJpeg;
use crate::codec::tests::{as_optimised, as_progressive};
use crate::codec::{
    DecodeScale, EncodeOptions, Pixels, Planes, decode, decode_planes, encode, to_baseline,
};
use crate::dct::Dct;
use crate::samples::LIMITS;
use crate::samples::pictures::{self, KINDS};

/// How the coefficients of a test picture are coded.
#[derive(Clone, Copy, Debug)]
enum Coding {
    Plain,
    Optimised,
    Restarts(u16),
    OptimisedRestarts(u16),
}

const CODINGS: [Coding; 9] = [
    Coding::Plain,
    Coding::Optimised,
    Coding::Restarts(1),
    Coding::Restarts(2),
    Coding::Restarts(7),
    Coding::Restarts(16),
    Coding::Restarts(94),
    Coding::OptimisedRestarts(5),
    Coding::OptimisedRestarts(1000),
];

fn picture(size: Size, kind: usize, coding: Coding, seed: u32) -> IndexedJpeg {
    let (space, chroma) = KINDS[kind];
    let jpeg = pictures::jpeg(size, space, chroma, seed);
    let open = |jpeg| IndexedJpeg::open(jpeg, &LIMITS).expect("an undamaged baseline file");
    match coding {
        Coding::Plain => open(jpeg),
        Coding::Optimised => open(as_optimised(&jpeg)),
        Coding::Restarts(interval) => open(jpeg).with_restarts(interval),
        Coding::OptimisedRestarts(interval) => open(as_optimised(&jpeg)).with_restarts(interval),
    }
}

fn crop_of(pixels: &Pixels, region: Rect) -> Vec<u8> {
    let row = |y: u32| {
        let start = to_usize(y * pixels.size.width + region.x) * pixels.channels;
        &pixels.data[start..][..to_usize(region.width) * pixels.channels]
    };
    (region.y..region.y + region.height).flat_map(row).copied().collect()
}

/// Copies only the given byte ranges of the file.
fn only(
    indexed: &IndexedJpeg,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> ByteRanges<'static> {
    let mut bytes = ByteRanges::default();
    for range in ranges {
        let at = |offset: u64| usize::try_from(offset).unwrap();
        bytes.push(range.start, indexed.jpeg[at(range.start)..at(range.end)].to_vec());
    }
    bytes
}

/// The sample of a full decode's plane that covers a pixel, or the mean between two.
fn expected(full: &Planes, number: usize, cell: (u32, u32), pixel: (i64, i64)) -> u8 {
    let layout = Planes::layout(full.size, full.space, full.chroma);
    let plane = layout[number];
    let (cx, cy) = (i64::from(cell.0), i64::from(cell.1));
    // Luma planes are padded to whole cells; samples beyond the picture are not read.
    let limit = |edge: u32, cell: u32| i64::from(edge.div_ceil(cell)) - 1;
    let (right, bottom) = (limit(full.size.width, cell.0), limit(full.size.height, cell.1));
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, right), y.clamp(0, bottom));
        let index = plane.start + usize::try_from(y).unwrap() * plane.width;
        i64::from(full.data[index + usize::try_from(x).unwrap()])
    };
    let (x, y) = (pixel.0.div_euclid(cx), pixel.1.div_euclid(cy));
    let (dx, dy) = (pixel.0.rem_euclid(cx), pixel.1.rem_euclid(cy));
    let upper = at(x, y) * (cx - dx) + at(x + 1, y) * dx;
    let lower = at(x, y + 1) * (cx - dx) + at(x + 1, y + 1) * dx;
    u8::try_from((upper * (cy - dy) + lower * dy + cx * cy / 2) / (cx * cy)).unwrap()
}

fn check_region(indexed: &IndexedJpeg, rect: Rect, from: (CountedFrom, CountedFrom)) {
    let IndexedJpeg { scan, index, jpeg, .. } = indexed;
    let bytes = only(indexed, byte_ranges(scan, index, rect).expect("inside"));
    let full = decode_planes(jpeg).expect("planes").value;
    for dct in [Dct::detect(), Dct::scalar()] {
        let samples = decode_region(scan, index, &bytes, rect, dct).expect("decoded");
        let planes = samples.planes(scan, rect, from).expect("planes");
        let layout = Planes::layout(planes.size, planes.space, planes.chroma);
        for (number, (plane, component)) in layout.iter().zip(&scan.components).enumerate() {
            let start = |from, start: u32, length: u32, cell: u32, samples: usize| match from {
                CountedFrom::End => {
                    i64::from(start + length) - i64::try_from(samples).unwrap() * i64::from(cell)
                }
                CountedFrom::Start => i64::from(start),
            };
            let (cx, cy) = component.cell;
            let left = start(from.0, rect.x, rect.width, cx, plane.width);
            let top = start(from.1, rect.y, rect.height, cy, plane.height);
            for y in 0..plane.height {
                for x in 0..plane.width {
                    let pixel = |first: i64, at: usize, cell: u32| {
                        first + i64::try_from(at).unwrap() * i64::from(cell)
                    };
                    let wanted = expected(
                        &full,
                        number,
                        component.cell,
                        (pixel(left, x, cx), pixel(top, y, cy)),
                    );
                    let found = planes.data[plane.start + y * plane.width + x];
                    assert_eq!(found, wanted, "component {number} at {x},{y} of {rect:?}");
                }
            }
        }
    }
}

/// Checks that a cut with its surroundings decodes to the pixels of the full decode.
fn check_cut_pixels(indexed: &IndexedJpeg, rect: Rect) -> Vec<u8> {
    let IndexedJpeg { scan, index, jpeg, colour, .. } = indexed;
    let shows = surrounding_rect(scan, rect);
    assert!(is_on_grid(scan, shows));
    let bytes = only(indexed, crop::byte_ranges(scan, index, shows).expect("inside"));
    let small = crop(scan, index, &bytes, shows, colour).expect("cut");
    let decoded = decode(&small, DecodeScale::FULL).expect("decoded");
    assert_eq!((decoded.warning, decoded.value.size), (None, shows.size()));
    let inner = Rect { x: rect.x - shows.x, y: rect.y - shows.y, ..rect };
    let full = decode(jpeg, DecodeScale::FULL).expect("decoded").value;
    assert!(crop_of(&decoded.value, inner) == crop_of(&full, rect), "{rect:?} differs");
    small
}

/// Checks that a cut has the coefficients of the original.
fn check_cut(indexed: &IndexedJpeg, rect: Rect) {
    let small = check_cut_pixels(indexed, rect);
    let shows = surrounding_rect(&indexed.scan, rect);
    check_coefficients(
        indexed,
        shows,
        &IndexedJpeg::open(small, &LIMITS).expect("a file of our own"),
    );
}

/// Compares the coefficients of a cut with those of the original, block by block.
fn check_coefficients(indexed: &IndexedJpeg, rect: Rect, small: &IndexedJpeg) {
    let (all, cut) = (indexed.coefficients(), small.coefficients());
    let components = indexed.scan.components.iter().zip(&small.scan.components);
    for ((component, cut_component), (all, cut)) in components.zip(all.iter().zip(&cut)) {
        assert_eq!(component.quant, cut_component.quant);
        let row = |scan: &Scan| to_usize(scan.across * component.across);
        let (left, top) = (
            to_usize(rect.x / indexed.scan.mcu.width * component.across),
            to_usize(rect.y / indexed.scan.mcu.height * component.down),
        );
        for (y, blocks) in cut.chunks_exact(row(&small.scan)).enumerate() {
            let start = (top + y) * row(&indexed.scan) + left;
            assert!(blocks == &all[start..start + blocks.len()], "row {y} of {rect:?}");
        }
    }
}

/// Makes the luma samples inside `rect` dark and the chroma samples grey.
fn darken(scan: &Scan, rect: Rect) -> impl FnMut(&mut RegionSamples) {
    let components = scan.components.clone();
    move |samples| {
        for (number, (grid, component)) in samples.grids.iter_mut().zip(&components).enumerate() {
            let span =
                |start: u32, length: u32, cell: u32| start / cell..(start + length).div_ceil(cell);
            let columns = span(rect.x, rect.width, component.cell.0);
            let rows = span(rect.y, rect.height, component.cell.1);
            for (y, row) in grid.data.chunks_exact_mut(grid.stride).enumerate() {
                for (x, sample) in row.iter_mut().enumerate() {
                    let x = grid.origin.0 + u32::try_from(x).unwrap();
                    let y = grid.origin.1 + u32::try_from(y).unwrap();
                    if columns.contains(&x) && rows.contains(&y) {
                        *sample = if number == 0 { *sample / 3 } else { 128 };
                    }
                }
            }
        }
    }
}

fn check_patch(indexed: &IndexedJpeg, rect: Rect) {
    let IndexedJpeg { scan, index, jpeg, .. } = indexed;
    let bytes = only(indexed, [patch::byte_range(scan, index, rect).expect("inside")]);
    let make = |dct| patch(scan, index, &bytes, rect, dct, &mut darken(scan, rect));
    let patched = make(Dct::detect()).expect("patched");
    assert_eq!(Ok(&patched), make(Dct::scalar()).as_ref());
    let at = |offset: u64| usize::try_from(offset).unwrap();
    let mut file = vec![0xFF, 0xD8];
    file.extend_from_slice(&indexed.colour);
    let interval = u16::try_from(scan.interval).unwrap();
    file.extend(crop::headers(scan, scan.size, interval).unwrap());
    file.extend_from_slice(&jpeg[at(patched.prefix.start)..at(patched.prefix.end)]);
    file.extend_from_slice(&patched.middle);
    file.extend_from_slice(&jpeg[at(patched.suffix)..]);
    let decoded = decode(&file, DecodeScale::FULL).expect("decoded");
    assert_eq!(decoded.warning, None, "{rect:?}");
    let patched = IndexedJpeg::open(file, &LIMITS).expect("a file of our own");
    let (before, after) = (indexed.coefficients(), patched.coefficients());
    let mut changed = 0;
    for ((component, before), after) in scan.components.iter().zip(&before).zip(&after) {
        let across = to_usize(scan.across * component.across);
        for (number, (before, after)) in before.iter().zip(after).enumerate() {
            let small = |value: usize| u32::try_from(value).unwrap() * 8;
            let (x, y) = (small(number % across), small(number / across));
            let inside = |at: u32, cell: u32, start: u32, length: u32| {
                at * cell < start + length && (at + 8) * cell > start
            };
            let touched = inside(x, component.cell.0, rect.x, rect.width)
                && inside(y, component.cell.1, rect.y, rect.height);
            assert!(touched || before == after, "block at {x},{y} changed, {rect:?}");
            changed += u32::from(before != after);
        }
    }
    // A patch of a few samples can be too small a change for the steps of its block.
    let is_small = rect.width.min(rect.height) < 4;
    assert!(changed > 0 || is_small, "{rect:?}");
    // Huffman tables optimised for few blocks lack codes.
    let complete =
        |spec: &Option<HuffmanSpec>| spec.as_ref().is_none_or(|s| s.completed(AC).is_some());
    if indexed.scan.specs[AC].iter().all(complete) {
        check_painted(indexed, &patched, rect);
    }
}

/// Checks that luma under the paint has the painted values, within the precision of the tables.
fn check_painted(indexed: &IndexedJpeg, patched: &IndexedJpeg, rect: Rect) {
    if !indexed.has_planes() {
        return;
    }
    let luma = |indexed: &IndexedJpeg| decode_planes(&indexed.jpeg).expect("planes").value;
    let (before, after) = (luma(indexed), luma(patched));
    let width = Planes::layout(before.size, before.space, before.chroma)[0].width;
    let mut sum = 0u64;
    for y in rect.y..rect.y + rect.height {
        for x in rect.x..rect.x + rect.width {
            let at = to_usize(y) * width + to_usize(x);
            sum += u64::from((before.data[at] / 3).abs_diff(after.data[at]));
        }
    }
    let pixels = rect.size().pixels();
    // The paint has a hard edge: a few samples may differ a lot.
    assert!(sum <= pixels * 9 + 600, "mean error {sum} over {pixels} pixels");
}

fn check_bands(indexed: &IndexedJpeg, scale: DecodeScale) {
    let IndexedJpeg { scan, index, jpeg, colour } = indexed;
    let mut rows = Vec::new();
    for band_rows in split(scan) {
        let bytes = only(indexed, [bands::byte_range(scan, index, &band_rows).expect("inside")]);
        let band = band(scan, index, &bytes, &band_rows, colour).expect("band");
        let decoded = decode(&band, scale).expect("decoded");
        assert_eq!(decoded.warning, None);
        rows.extend(decoded.value.data);
    }
    let whole = decode(jpeg, scale).expect("decoded").value;
    assert!(rows == whole.data, "bands differ at {scale:?}");
}

fn rects(size: Size) -> Vec<Rect> {
    let Size { width, height } = size;
    vec![
        Rect::new(0, 0, Size::new(1, 1)),
        Rect::new(width - 1, height - 1, Size::new(1, 1)),
        Rect::new(width / 2, 0, Size::new(width - width / 2, height)),
        Rect::new(width / 3, height / 3, Size::new(width.div_ceil(4), height.div_ceil(5))),
        Rect::new(0, 0, size),
    ]
}

#[test]
fn corners_and_the_whole_are_exact_in_every_kind_of_file() {
    for kind in 0..KINDS.len() {
        for coding in CODINGS {
            let indexed = picture(Size::new(101, 83), kind, coding, 7);
            for rect in rects(indexed.scan.size) {
                check_cut(&indexed, rect);
                check_patch(&indexed, rect);
                if indexed.has_planes() {
                    check_region(&indexed, rect, (CountedFrom::Start, CountedFrom::Start));
                    check_region(&indexed, rect, (CountedFrom::End, CountedFrom::End));
                }
            }
        }
    }
}

#[test]
fn pictures_of_one_pixel_are_exact() {
    for kind in 0..KINDS.len() {
        for size in [Size::new(1, 1), Size::new(1, 40), Size::new(33, 1)] {
            let indexed = picture(size, kind, Coding::Optimised, 3);
            for rect in rects(size) {
                check_cut(&indexed, rect);
                if indexed.has_planes() {
                    check_region(&indexed, rect, (CountedFrom::Start, CountedFrom::End));
                }
            }
        }
    }
}

#[test]
fn bands_equal_the_whole_picture() {
    for kind in 0..KINDS.len() {
        for coding in [Coding::Plain, Coding::Optimised, Coding::Restarts(7), Coding::Restarts(94)]
        {
            let indexed = picture(Size::new(1501, 1507), kind, coding, 2);
            if !are_exact(&indexed.scan) {
                continue;
            }
            for eighths in 1..8 {
                check_bands(&indexed, DecodeScale::from_eighths(eighths));
            }
        }
    }
}

#[test]
fn a_large_picture_has_many_bands() {
    let indexed = picture(Size::new(1501, 1507), 3, Coding::Plain, 2);
    let bands = split(&indexed.scan);
    assert!(bands.len() > 1, "{bands:?}");
    let restarts = picture(Size::new(1501, 1507), 3, Coding::Restarts(94), 2);
    assert_eq!(split(&restarts.scan).len(), bands.len());
    let odd = picture(Size::new(1501, 1507), 3, Coding::Restarts(65), 2);
    assert!(split(&odd.scan).len() < bands.len(), "bands start at restarts only");
}

#[test]
fn a_working_copy_has_the_pixels_of_its_progressive_original() {
    for (space, chroma) in KINDS {
        let jpeg = pictures::jpeg(Size::new(90, 77), space, chroma, 5);
        let progressive = as_progressive(&jpeg);
        let copy = to_baseline(&progressive).expect("transformed");
        let copy = IndexedJpeg::open(copy, &LIMITS).expect("a single baseline scan");
        let pixels = |jpeg: &[u8]| decode(jpeg, DecodeScale::FULL).expect("decoded");
        assert_eq!(pixels(&copy.jpeg), pixels(&progressive));
        let original = IndexedJpeg::open(jpeg, &LIMITS).expect("baseline");
        assert!(copy.coefficients() == original.coefficients(), "{space:?} {chroma:?}");
    }
}

#[test]
fn files_without_exactly_one_baseline_scan_are_unfit() {
    let jpeg = pictures::jpeg(Size::new(40, 40), ColourSpace::YCbCr, ChromaSubsampling::Full, 5);
    assert_eq!(IndexedJpeg::open(as_progressive(&jpeg), &LIMITS).err(), Some(ScanError::Process));
}

#[test]
fn a_scan_that_ends_early_is_damaged() {
    let indexed = picture(Size::new(64, 64), 3, Coding::Plain, 9);
    let start = usize::try_from(indexed.scan.start).unwrap();
    for end in start..indexed.jpeg.len() - 3 {
        let mut cut = indexed.jpeg[..end].to_vec();
        cut.extend_from_slice(&[0xFF, 0xD9]);
        let found = IndexedJpeg::open(cut, &LIMITS).err();
        assert!(matches!(found, Some(ScanError::Damaged { .. })), "cut at {end}: {found:?}");
    }
}

#[test]
fn a_wrong_restart_marker_is_damage() {
    let indexed = picture(Size::new(83, 70), 3, Coding::Restarts(6), 1);
    let at = indexed.jpeg.windows(2).position(|pair| pair == [0xFF, 0xD1]).expect("a restart");
    let mut jpeg = indexed.jpeg.clone();
    jpeg[at + 1] = 0xD5;
    assert_eq!(IndexedJpeg::open(jpeg, &LIMITS).err(), Some(ScanError::Damaged { mcu: 12 }));
}

#[test]
fn a_restart_before_the_first_mcu_is_damage() {
    for coding in [Coding::Plain, Coding::Restarts(6)] {
        let indexed = picture(Size::new(83, 70), 3, coding, 1);
        let mut jpeg = indexed.jpeg.clone();
        let start = usize::try_from(indexed.scan.start).unwrap();
        jpeg.splice(start..start, [0xFF, 0xD0]);
        assert_eq!(IndexedJpeg::open(jpeg, &LIMITS).err(), Some(ScanError::Damaged { mcu: 0 }));
    }
}

#[test]
fn cancelled_work_stops_at_its_next_row() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let indexed = picture(Size::new(64, 400), 3, Coding::Plain, 1);
    let whole = Rect::new(0, 0, indexed.scan.size);
    let asked = AtomicUsize::new(0);
    let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 3;
    let bytes = indexed.bytes().with_cancellation(&go_on);
    let found = decode_region(&indexed.scan, &indexed.index, &bytes, whole, Dct::detect());
    assert_eq!(found.err(), Some(ScanError::Stopped));
    assert_eq!(asked.load(Ordering::Relaxed), 4, "nothing was done behind the answer no");
    let found = crop(&indexed.scan, &indexed.index, &bytes, whole, &indexed.colour);
    assert_eq!(found.err(), Some(ScanError::Stopped));
}

#[test]
fn regions_outside_the_picture_are_refused() {
    let indexed = picture(Size::new(40, 30), 0, Coding::Plain, 1);
    let IndexedJpeg { scan, index, .. } = &indexed;
    for rect in [
        Rect { x: 0, y: 0, width: 41, height: 1 },
        Rect { x: 0, y: 30, width: 1, height: 1 },
        Rect { x: u32::MAX, y: 0, width: 2, height: 1 },
        Rect { x: 5, y: 5, width: 0, height: 1 },
    ] {
        assert_eq!(byte_ranges(scan, index, rect), Err(ScanError::Outside));
        assert_eq!(crop::byte_ranges(scan, index, rect), Err(ScanError::Outside));
        assert_eq!(patch::byte_range(scan, index, rect), Err(ScanError::Outside));
    }
}

#[test]
fn an_index_of_another_file_is_detected_or_harmless() {
    let one = picture(Size::new(200, 160), 3, Coding::Plain, 1);
    let other = picture(Size::new(200, 160), 3, Coding::Plain, 8);
    let mut foreign = IndexedJpeg { index: other.index, ..one };
    let rect = Rect::new(90, 80, Size::new(40, 40));
    let IndexedJpeg { scan, index, .. } = &foreign;
    // Any result is allowed, but no panic.
    drop(decode_region(scan, index, &foreign.bytes(), rect, Dct::detect()));
    drop(crop(scan, index, &foreign.bytes(), surrounding_rect(scan, rect), &[]));
    foreign.index.entries.truncate(1);
    assert!(!foreign.index.matches_scan(&foreign.scan, 1 << 20));
}

fn any_rect() -> impl Strategy<Value = (Size, Rect)> {
    (1u32..140, 1u32..140).prop_flat_map(|(width, height)| {
        (0..width, 0..height).prop_flat_map(move |(x, y)| {
            (1..=width - x, 1..=height - y).prop_map(move |(w, h)| {
                (Size::new(width, height), Rect::new(x, y, Size::new(w, h)))
            })
        })
    })
}

fn any_coding() -> impl Strategy<Value = Coding> {
    prop_oneof![
        Just(Coding::Plain),
        Just(Coding::Optimised),
        (1u16..80).prop_map(Coding::Restarts),
        (1u16..80).prop_map(Coding::OptimisedRestarts),
    ]
}

fn any_from() -> impl Strategy<Value = (CountedFrom, CountedFrom)> {
    let side = || prop_oneof![Just(CountedFrom::Start), Just(CountedFrom::End)];
    (side(), side())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_region_of_any_picture_is_exact(
        (size, rect) in any_rect(), kind in 0usize..KINDS.len(), coding in any_coding(),
        from in any_from(), seed in 0u32..99,
    ) {
        let indexed = picture(size, kind, coding, seed);
        check_cut(&indexed, rect);
        if indexed.has_planes() {
            check_region(&indexed, rect, from);
        }
    }

    #[test]
    fn any_patch_leaves_the_rest_unchanged(
        (size, rect) in any_rect(), kind in 0usize..KINDS.len(), coding in any_coding(),
        seed in 0u32..99,
    ) {
        check_patch(&picture(size, kind, coding, seed), rect);
    }

    #[test]
    fn damage_gives_an_error_or_the_pixels_of_libjpeg_turbo(
        changes in prop::collection::vec((0usize..9000, any::<u8>()), 1..5),
        kind in 0usize..KINDS.len(), coding in any_coding(),
    ) {
        let mut jpeg = picture(Size::new(70, 50), kind, coding, 3).jpeg;
        for (at, value) in changes {
            let at = at % jpeg.len();
            jpeg[at] = value;
        }
        let Ok(indexed) = IndexedJpeg::open(jpeg, &LIMITS) else { return Ok(()) };
        let rect = Rect::new(0, 0, indexed.scan.size);
        prop_assume!(rect.size().pixels() < 1 << 20);
        let IndexedJpeg { scan, index, .. } = &indexed;
        let decoded = decode_region(scan, index, &indexed.bytes(), rect, Dct::detect());
        prop_assert_eq!(
            &decoded, &decode_region(scan, index, &indexed.bytes(), rect, Dct::scalar())
        );
        drop(patch(scan, index, &indexed.bytes(), rect, Dct::detect(), &mut |_| ()));
        if let (Ok(samples), true) = (decoded, indexed.has_planes())
            && let Ok(full) = decode_planes(&indexed.jpeg)
        {
            let planes = samples.planes(scan, rect, (CountedFrom::Start, CountedFrom::Start)).expect("planes");
            for (number, (plane, component)) in
                Planes::layout(planes.size, planes.space, planes.chroma).iter().zip(&scan.components).enumerate()
            {
                for y in 0..component.size.height {
                    for x in 0..component.size.width {
                        let pixel = (i64::from(x * component.cell.0), i64::from(y * component.cell.1));
                        let wanted = expected(&full.value, number, component.cell, pixel);
                        let at = plane.start + to_usize(y) * plane.width + to_usize(x);
                        prop_assert_eq!(planes.data[at], wanted);
                    }
                }
            }
        }
    }
}

/// A picture that has colours in each row of blocks whose number is a multiple of `coloured`; in
/// none for 0.
fn half_grey(space: ColourSpace, chroma: ChromaSubsampling, coloured: usize) -> IndexedJpeg {
    let mut pixels = pictures::pixels(Size::new(640, 480), space.channels(), 1);
    let row = to_usize(pixels.size.width) * pixels.channels;
    for (number, line) in pixels.data.chunks_exact_mut(row).enumerate() {
        if coloured > 0 && (number / 16).is_multiple_of(coloured) {
            continue;
        }
        for pixel in line.chunks_exact_mut(space.channels()) {
            let luma = pixel[0];
            pixel.fill(luma);
        }
    }
    let jpeg = encode(&pixels, EncodeOptions { quality: 88, space, chroma }).expect("encoded");
    IndexedJpeg::open(jpeg, &LIMITS).expect("an undamaged baseline file")
}

#[test]
fn the_index_says_whether_a_picture_has_colours() {
    let check = |indexed: &IndexedJpeg, expected: Option<bool>| {
        assert_eq!(indexed.index.is_grey(&indexed.scan), expected, "{:?}", indexed.scan.planes);
    };
    for chroma in [ChromaSubsampling::Full, ChromaSubsampling::Half, ChromaSubsampling::Quarter] {
        let of = |coloured| half_grey(ColourSpace::YCbCr, chroma, coloured);
        check(&of(0), Some(true));
        check(&of(1), Some(false));
        check(&of(6), Some(false));
        // A restart sets the predictors to 0, which says nothing about the picture.
        check(&of(1).with_restarts(1), None);
        check(&of(1).with_restarts(7), Some(false));
        check(&of(0).with_restarts(7), Some(true));
    }
    check(&picture(Size::new(64, 48), 0, Coding::Plain, 1), Some(true));
    check(&picture(Size::new(64, 48), 3, Coding::Plain, 1), None);
    check(&half_grey(ColourSpace::Rgb, ChromaSubsampling::Full, 0), None);
}

/// Photographs from cameras and editors: the demo archive, and the folder in `TEST_PHOTOS`.
#[test]
fn the_engine_is_exact_on_real_photographs() {
    let mut folders =
        vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media-store/demo")];
    #[expect(clippy::disallowed_methods, reason = "a test has no settings but this variable")]
    folders.extend(std::env::var_os("TEST_PHOTOS").map(std::path::PathBuf::from));
    let (mut seen, mut indexed_count) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "jpg") {
                continue;
            }
            let jpeg = std::fs::read(&path).unwrap();
            seen += 1;
            let jpeg = match IndexedJpeg::open(jpeg.clone(), &LIMITS) {
                Err(ScanError::Process | ScanError::Scans) => {
                    to_baseline(&jpeg).expect("transformed")
                }
                Err(other) => panic!("{}: {other}", path.display()),
                Ok(_) => jpeg,
            };
            let indexed = IndexedJpeg::open(jpeg, &LIMITS).expect("indexed");
            indexed_count += 1;
            let Size { width, height } = indexed.scan.size;
            for (x, y) in
                [(0, 0), (width / 3 + 1, height / 2 + 3), (width * 3 / 4, height * 3 / 4)]
            {
                let size = Size::new((width - x).min(203), (height - y).min(151));
                let rect = Rect::new(x, y, size);
                check_cut_pixels(&indexed, rect);
                if indexed.has_planes() {
                    check_region(&indexed, rect, (CountedFrom::Start, CountedFrom::Start));
                }
            }
        }
    }
    assert!(seen >= 14 && seen == indexed_count, "{seen} photographs, {indexed_count} indexed");
}
