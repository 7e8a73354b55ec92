//! Renders that scale, compared with the scaler on a full decode.

use strum::IntoEnumIterator;

use super::tests::{job, marker, pixels, psnr, run, scaled, smooth};
use super::*;
use crate::{BandDecoder, Orientation, RenderSource, output_size};
use jpeg::IndexedJpeg;
use jpeg::codec::{EncodeOptions, encode};
use jpeg::samples::{self, pictures};

#[test]
fn fine_lines_keep_their_light() {
    let size = Size { width: 512, height: 384 };
    let lines =
        (0..384u32).flat_map(|y| (0..512 * 3).map(move |_| if y % 2 == 0 { 0 } else { 255 }));
    let lines = Pixels { size, channels: 3, data: lines.collect() };
    let chroma = ChromaSubsampling::Full;
    let encoding = EncodeOptions { quality: 100, space: ColourSpace::YCbCr, chroma };
    let jpeg = encode(&lines, encoding).unwrap();
    let region = Rect { x: 64, y: 32, width: 384, height: 320 };
    let to = Size { width: 96, height: 80 };
    for steps in [
        vec![RenderStep::Fit { long_px: 256 }],
        vec![RenderStep::Cover { width: 96, height: 96 }],
        vec![RenderStep::Scale { region, size: to }],
        vec![RenderStep::Watermark, RenderStep::Fit { long_px: 128 }],
    ] {
        let found = pixels(&run(&job(&jpeg, &steps)).file);
        // The middle of the upper half, which the mark at the lower edge does not reach.
        let (width, row) = (index(found.size.width), index(found.size.height) / 4);
        let level = found.data[(row * width + width / 2) * 3];
        assert!(level.abs_diff(188) <= 3, "{steps:?}: {level}");
    }
}

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap()
}

#[test]
fn a_region_is_cut_and_scaled_in_one_step() {
    let (original, jpeg) = smooth();
    let indexed = IndexedJpeg::open(jpeg.clone(), &samples::LIMITS).unwrap();
    for (x, y, width, height) in [(0, 0, 600, 400), (31, 47, 333, 219), (500, 300, 90, 80)] {
        let region = Rect { x, y, width, height };
        for size in [region.size(), region.size().fit_within(77), region.size().fit_within(20)] {
            let steps = [RenderStep::Scale { region, size }];
            let mut job = job(&jpeg, &steps);
            let found = run(&job);
            let expected = scaled(&original, region.into(), size);
            let close = psnr(&pixels(&found.file), &expected);
            assert!(close > 37.0, "{region} {size}: {close:.1} dB");
            // With an index only the region is decoded, and its pixels are the same.
            job.source.bands = Some(decoder_of(&indexed));
            assert!(run(&job).file == found.file, "{region} {size}");
        }
    }
}

fn decoder_of(indexed: &IndexedJpeg) -> BandDecoder<'_> {
    BandDecoder {
        scan: &indexed.scan,
        index: &indexed.index,
        colour: &indexed.colour,
        parallel_map: &in_sequence,
        should_continue: &|| true,
    }
}

#[test]
fn only_the_region_is_decoded_of_an_original_with_an_index() {
    let size = Size { width: 900, height: 700 };
    let jpeg = pictures::photograph(size, ChromaSubsampling::Quarter);
    let indexed = IndexedJpeg::open(jpeg.clone(), &samples::LIMITS).unwrap();
    let region = Rect { x: 400, y: 300, width: 120, height: 90 };
    let steps = [RenderStep::Scale { region, size: Size { width: 60, height: 45 } }];
    for orientation in Orientation::iter() {
        let mut job = job(&jpeg, &steps);
        job.source.orientation = orientation;
        let whole = run(&job);
        job.source.bands = Some(decoder_of(&indexed));
        let part = run(&job);
        assert!(part.file == whole.file, "{orientation:?}");
        assert_eq!((whole.decoded_pixels, whole.render_path), (630_000, RenderPath::Whole));
        assert_eq!(part.render_path, RenderPath::Region);
        assert!(part.decoded_pixels < 50_000, "{orientation:?}: {}", part.decoded_pixels);
    }
}

#[test]
fn a_level_shows_the_same_region_as_the_original() {
    let (original, jpeg) = smooth();
    let shows = Size { width: 400, height: 267 };
    let level = scaled(&original, Rect::new(0, 0, original.size).into(), shows);
    let encoding =
        EncodeOptions { quality: 95, space: ColourSpace::YCbCr, chroma: ChromaSubsampling::Full };
    let level = encode(&level, encoding).unwrap();
    let region = Rect { x: 101, y: 57, width: 390, height: 270 };
    for orientation in Orientation::iter() {
        let steps = [RenderStep::Scale { region, size: Size { width: 130, height: 90 } }];
        let mut job = job(&jpeg, &steps);
        job.source.orientation = orientation;
        let upright = orientation.oriented_size(job.source.stored);
        if output_size(upright, &steps).is_err() {
            continue;
        }
        let direct = run(&job);
        job.source = RenderSource { file: &level, shows, ..job.source };
        let found = run(&job);
        assert_eq!(found.render_path, RenderPath::Level);
        let close = psnr(&pixels(&found.file), &pixels(&direct.file));
        assert!(close > 38.0, "{orientation:?}: {close:.1} dB");
    }
}

#[test]
fn a_level_that_is_too_small_is_refused() {
    let (original, jpeg) = smooth();
    let shows = Size { width: 100, height: 67 };
    let encoding =
        EncodeOptions { quality: 95, space: ColourSpace::YCbCr, chroma: ChromaSubsampling::Full };
    let level = encode(&scaled(&original, Rect::new(0, 0, original.size).into(), shows), encoding)
        .unwrap();
    let region = Rect { x: 0, y: 0, width: 300, height: 200 };
    for (long, fits) in [(50, true), (60, false)] {
        let steps = [RenderStep::Scale { region, size: region.size().fit_within(long) }];
        let mut job = job(&jpeg, &steps);
        job.source = RenderSource { file: &level, shows, ..job.source };
        assert_eq!(render(&job, &marker(), &|_| true).is_ok(), fits, "{long}");
    }
}

#[test]
fn a_mark_after_a_scaled_region_is_drawn_on_the_result() {
    let (_, jpeg) = smooth();
    let region = Rect { x: 100, y: 60, width: 400, height: 300 };
    let size = Size { width: 200, height: 150 };
    let scale = RenderStep::Scale { region, size };
    let plain = pixels(&run(&job(&jpeg, std::slice::from_ref(&scale))).file);
    let marked = pixels(&run(&job(&jpeg, &[scale, RenderStep::Watermark])).file);
    let mut expected = plain;
    let (stamp, place) = marker().prepare(size);
    blend_pixels(&mut expected, &stamp, place, SampleModel::Rgb);
    assert!(psnr(&marked, &expected) > 33.0, "{:.1}", psnr(&marked, &expected));
}
