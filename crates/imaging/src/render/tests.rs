//! Renders compared with the same steps on a full decode.

use strum::IntoEnumIterator;

use super::*;
use crate::mark::tests::text;
use crate::{BandDecoder, EncodeEffort};
use crate::{Orientation, OutputOptions, RenderSource, output_size};
use geometry::CropError;
use jpeg::IndexedJpeg;
use jpeg::codec::{EncodeOptions, decode, encode, read_header};
use jpeg::samples::{self, pictures};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

const PIXELS_MAX: u64 = 1_000_000;
const BEST: OutputOptions = OutputOptions {
    format: ImageFormat::Jpeg,
    quality: 100,
    sampling: OutputSampling::Keep,
    colour: OutputColour::Keep,
    effort: EncodeEffort::Small,
    bytes_max: None,
};

pub(crate) fn marker() -> Watermark {
    Watermark::new(text(0.4, 0.05)).unwrap()
}

pub(crate) fn source(jpeg: &[u8]) -> RenderSource<'_> {
    let stored = read_header(jpeg).unwrap().size;
    let adobe = jpeg.windows(5).any(|part| part == b"Adobe");
    RenderSource {
        format: ImageFormat::Jpeg,
        file: jpeg,
        orientation: Orientation::Upright,
        icc: None,
        adobe,
        stored,
        shows: stored,
        bands: None,
    }
}

pub(crate) fn job<'a>(jpeg: &'a [u8], steps: &'a [RenderStep]) -> RenderJob<'a> {
    RenderJob { source: source(jpeg), steps, output: BEST, pixels_max: PIXELS_MAX }
}

pub(super) fn run(job: &RenderJob<'_>) -> RenderOutput {
    let rendered = render(job, &marker(), &|_| true).unwrap();
    assert_eq!(read_header(&rendered.file).unwrap().size, rendered.size);
    let upright = job.source.orientation.oriented_size(job.source.stored);
    assert_eq!(output_size(upright, job.steps), Ok(rendered.size));
    rendered
}

pub(crate) fn pixels(jpeg: &[u8]) -> Pixels {
    decode(jpeg, DecodeScale::FULL).unwrap().value
}

pub(crate) fn psnr(a: &Pixels, b: &Pixels) -> f64 {
    assert_eq!((a.size, a.channels), (b.size, b.channels));
    let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
    let sum: f64 = a.data.iter().zip(&b.data).map(square).sum();
    let mean = sum / f64::from(u32::try_from(a.data.len()).unwrap());
    10.0 * (255.0f64.powi(2) / mean.max(1e-9)).log10()
}

/// The steps without a change of scale, applied directly to a full decode.
pub(crate) fn plainly(job: &RenderJob<'_>) -> Pixels {
    let mut picture = job.source.orientation.orient(pixels(job.source.file));
    let ground = match picture.channels {
        1 => SampleModel::Grey,
        3 => SampleModel::Rgb,
        _ => SampleModel::Inks { inverted: job.source.adobe },
    };
    for step in job.steps {
        match step {
            RenderStep::Crop(crop) => picture = crop_pixels(picture, *crop),
            RenderStep::Watermark => {
                let (stamp, place) = marker().prepare(picture.size);
                blend_pixels(&mut picture, &stamp, place, ground);
            }
            RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Scale { .. } => {
                panic!("not plain")
            }
        }
    }
    picture
}

const CROP: Rect = Rect { x: 13, y: 31, width: 90, height: 77 };

pub(crate) fn chains() -> Vec<Vec<RenderStep>> {
    let crop = RenderStep::Crop(CROP);
    let aligned = RenderStep::Crop(Rect { x: 8, y: 40, width: 64, height: 48 });
    let again = RenderStep::Crop(Rect { x: 5, y: 6, width: 40, height: 33 });
    vec![
        vec![],
        vec![RenderStep::Watermark],
        vec![crop.clone()],
        vec![aligned.clone()],
        vec![crop.clone(), RenderStep::Watermark],
        vec![RenderStep::Watermark, crop.clone()],
        vec![aligned, RenderStep::Watermark],
        vec![crop.clone(), RenderStep::Watermark, again.clone()],
        vec![RenderStep::Watermark, crop, again, RenderStep::Watermark],
    ]
}

#[test]
fn crops_and_marks_in_any_order_equal_the_plain_path() {
    let size = Size { width: 160, height: 120 };
    for (space, chroma) in pictures::KINDS {
        // Chroma that is shared by several pixels loses precision, resampled or not.
        let close = if chroma == ChromaSubsampling::Full { 40.0 } else { 27.0 };
        let jpeg = pictures::jpeg(size, space, chroma, 11);
        for steps in chains() {
            let job = job(&jpeg, &steps);
            let found = psnr(&pixels(&run(&job).file), &plainly(&job));
            assert!(found > close, "{space:?} {chroma:?} {steps:?}: {found:.1} dB");
        }
    }
}

#[test]
fn before_encoding_a_crop_is_exactly_that_of_the_full_decode() {
    let size = Size { width: 160, height: 120 };
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 12);
        let marker = marker();
        for steps in chains() {
            for orientation in Orientation::iter() {
                let mut job = job(&jpeg, &steps);
                job.source.orientation = orientation;
                if output_size(orientation.oriented_size(size), &steps).is_err() {
                    continue;
                }
                let mut work = RenderState::new(
                    &job,
                    &marker,
                    &|_| true,
                    open(&job.source, PIXELS_MAX).unwrap(),
                );
                for step in &steps {
                    work.apply(step, &[]).unwrap();
                }
                let found = work.marked_pixels().unwrap();
                assert!(found == plainly(&job), "{space:?} {chroma:?} {orientation:?} {steps:?}");
            }
        }
    }
}

#[test]
fn every_orientation_is_rendered_upright() {
    let size = Size { width: 96, height: 64 };
    let upright = pictures::pixels(size, 3, 5);
    for orientation in Orientation::iter() {
        let back = match orientation {
            Orientation::Quarter => Orientation::ThreeQuarters,
            Orientation::ThreeQuarters => Orientation::Quarter,
            Orientation::Upright
            | Orientation::Mirrored
            | Orientation::Half
            | Orientation::Flipped
            | Orientation::Transposed
            | Orientation::Transverse => orientation,
        };
        let stored = back.orient(upright.clone());
        let encoding = EncodeOptions {
            quality: 100,
            space: ColourSpace::YCbCr,
            chroma: ChromaSubsampling::Full,
        };
        let jpeg = encode(&stored, encoding).unwrap();
        let crop = Rect { x: 50, y: 7, width: 31, height: 40 };
        for steps in [vec![], vec![RenderStep::Crop(crop)]] {
            let mut job = job(&jpeg, &steps);
            job.source.orientation = orientation;
            for colour in [OutputColour::Keep, OutputColour::Srgb] {
                job.output.colour = colour;
                let expected = if steps.is_empty() {
                    upright.clone()
                } else {
                    crop_pixels(upright.clone(), crop)
                };
                let found = psnr(&pixels(&run(&job).file), &expected);
                assert!(found > 38.0, "{orientation:?} {steps:?} {colour:?}: {found:.1} dB");
            }
        }
    }
}

#[test]
fn a_quarter_turn_turns_the_sampling() {
    let jpeg = pictures::jpeg(
        Size { width: 64, height: 48 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Half,
        1,
    );
    for colour in [OutputColour::Keep, OutputColour::Srgb] {
        let mut job = job(&jpeg, &[]);
        job.source.orientation = Orientation::Quarter;
        job.output.colour = colour;
        assert_eq!(read_header(&run(&job).file).unwrap().chroma, ChromaSubsampling::HalfDown);
        job.output.sampling = OutputSampling::S420;
        assert_eq!(read_header(&run(&job).file).unwrap().chroma, ChromaSubsampling::Quarter);
    }
}

#[test]
fn a_mark_leaves_the_rest_of_the_picture_unchanged() {
    let size = Size { width: 320, height: 240 };
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 3);
        let without = pixels(&run(&job(&jpeg, &[])).file);
        let with = pixels(&run(&job(&jpeg, &[RenderStep::Watermark])).file);
        let place = marker().placement(size);
        // MCUs that the mark touches change as a whole, and chroma is interpolated over one more.
        let near = |at: u32, start: u32, length: u32| at + 33 > start && at < start + length + 33;
        let (mut changed, channels) = (0, without.channels);
        for (index, (a, b)) in (0u32..).zip(without.data.iter().zip(&with.data)) {
            let pixel = index / u32::try_from(channels).unwrap();
            let (x, y) = (pixel % size.width, pixel / size.width);
            if near(x, place.x, place.width) && near(y, place.y, place.height) {
                changed += u32::from(a != b);
            } else {
                assert_eq!(a, b, "{space:?} {chroma:?} at {x},{y}");
            }
        }
        assert!(changed > 500, "{space:?} {chroma:?}: {changed} samples changed");
    }
}

#[test]
fn a_limited_number_of_bytes_is_kept_to_where_the_components_could_stay() {
    let size = Size { width: 160, height: 120 };
    let jpeg = pictures::jpeg(size, ColourSpace::YCbCr, ChromaSubsampling::Quarter, 3);
    let aligned = RenderStep::Crop(Rect { x: 16, y: 16, width: 96, height: 64 });
    for steps in [vec![], vec![aligned], vec![RenderStep::Watermark]] {
        let mut job = job(&jpeg, &steps);
        let whole = run(&job).file.len();
        let bytes_max = whole / 2;
        job.output.bytes_max = Some(u64::try_from(bytes_max).unwrap());
        let limited = run(&job).file.len();
        assert!(limited <= bytes_max, "{steps:?}: {limited} of {whole} bytes");
    }
}

#[test]
fn a_picture_is_encoded_no_more_often_than_stated() {
    let size = Size { width: 48, height: 32 };
    let jpeg = pictures::jpeg(size, ColourSpace::YCbCr, ChromaSubsampling::Full, 5);
    for quality in [1, 2, 3, 64, 65, 100] {
        for bytes_max in (400..3000).step_by(200) {
            let mut job = job(&jpeg, &[]);
            job.output = OutputOptions { quality, bytes_max: Some(bytes_max), ..BEST };
            // The first part of the stage encodes twice: at this quality and at quality 1.
            let encodes = Cell::new(1);
            let count = |stage: RenderStage| {
                encodes.set(encodes.get() + u32::from(stage == RenderStage::Encode));
                true
            };
            render(&job, &marker(), &count).expect("rendered");
            let (found, most) = (encodes.get(), job.output.encodes_max());
            assert!(found <= most, "quality {quality}, {bytes_max} bytes: {found}, not {most}");
        }
    }
    assert_eq!((BEST.encodes_max(), BEST.keeps_original()), (1, true));
}

#[test]
fn grey_and_cmyk_keep_their_colour_space() {
    let size = Size { width: 64, height: 48 };
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 3);
        let expected = if space == ColourSpace::Rgb { ColourSpace::YCbCr } else { space };
        for steps in [
            vec![RenderStep::Watermark],
            vec![RenderStep::Fit { long_px: 30 }, RenderStep::Watermark],
        ] {
            let mut job = job(&jpeg, &steps);
            let rendered = run(&job);
            assert_eq!(read_header(&rendered.file).unwrap().space, expected);
            let adobe = rendered.file.windows(5).any(|part| part == b"Adobe");
            assert_eq!(adobe, space.channels() == 4);
            job.output.colour = OutputColour::Srgb;
            let expected =
                if space == ColourSpace::Grey { ColourSpace::Grey } else { ColourSpace::YCbCr };
            assert_eq!(read_header(&run(&job).file).unwrap().space, expected);
        }
    }
}

#[test]
fn cmyk_without_the_adobe_marker_is_written_in_its_convention() {
    let size = Size { width: 64, height: 48 };
    let jpeg = pictures::jpeg(size, ColourSpace::Cmyk, ChromaSubsampling::Full, 3);
    let header = jpeg::header::JpegHeader::parse(&jpeg, &samples::LIMITS).unwrap();
    let plain =
        header.segments.iter().find(|segment| segment.marker == 0xEE).unwrap().byte_range();
    let bare = [&jpeg[..plain.start], &jpeg[plain.end..]].concat();
    assert!(!source(&bare).adobe);
    let found = pixels(&run(&job(&bare, &[])).file);
    assert!(psnr(&found, &colour::invert(pixels(&bare))) > 40.0);
}

#[test]
fn a_profile_stays_only_with_its_pixels() {
    let adobe = moxcms::ColorProfile::new_adobe_rgb().encode().unwrap();
    let jpeg = pictures::jpeg(
        Size { width: 64, height: 48 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Full,
        3,
    );
    let mut job = job(&jpeg, &[]);
    assert!(!run(&job).keeps_profile);
    job.source.icc = Some(&adobe);
    let kept = run(&job);
    assert!(kept.keeps_profile);
    job.output.colour = OutputColour::Srgb;
    let converted = run(&job);
    assert!(!converted.keeps_profile);
    assert!(psnr(&pixels(&kept.file), &pixels(&converted.file)) < 40.0);
    let grey = pictures::jpeg(
        Size { width: 64, height: 48 },
        ColourSpace::Grey,
        ChromaSubsampling::Full,
        3,
    );
    let mut job = RenderJob { source: source(&grey), ..job };
    job.source.icc = Some(&adobe);
    job.output.colour = OutputColour::Keep;
    assert!(!run(&job).keeps_profile);
}

/// A smooth picture of 600 x 400 pixels and its file.
pub(super) fn smooth() -> (Pixels, Vec<u8>) {
    let size = Size { width: 600, height: 400 };
    let smooth: Vec<u8> = (0..400u32)
        .flat_map(|y| (0..600u32).flat_map(move |x| [x / 3, y / 2, (x + y) / 5]))
        .map(|level| u8::try_from(level).unwrap())
        .collect();
    let original = Pixels { size, channels: 3, data: smooth };
    let encoding = EncodeOptions {
        quality: 95,
        space: ColourSpace::YCbCr,
        chroma: ChromaSubsampling::Quarter,
    };
    let jpeg = encode(&original, encoding).unwrap();
    (original, jpeg)
}

pub(super) fn scaled(pixels: &Pixels, region: PixelRegion, size: Size) -> Pixels {
    scale_region(pixels, region, size, SampleLight::Srgb, &in_sequence)
}

#[test]
fn a_small_rendition_looks_like_the_original() {
    let (original, jpeg) = smooth();
    for long_px in [599, 300, 150, 74, 40] {
        let steps = [RenderStep::Fit { long_px }];
        let found = pixels(&run(&job(&jpeg, &steps)).file);
        let expected = scaled(&original, Rect::new(0, 0, original.size).into(), found.size);
        assert!(psnr(&found, &expected) > 40.0, "{long_px}: {:.1}", psnr(&found, &expected));
    }
}

#[test]
fn tiny_pictures_survive_every_chain() {
    for (width, height) in [(1, 1), (1, 9), (9, 1), (2, 3), (17, 1), (1, 300)] {
        let size = Size { width, height };
        for (space, chroma) in pictures::KINDS {
            let jpeg = pictures::jpeg(size, space, chroma, 3);
            let corner = Rect { x: width - 1, y: height - 1, width: 1, height: 1 };
            for steps in [
                vec![RenderStep::Fit { long_px: 4 }, RenderStep::Watermark],
                vec![RenderStep::Cover { width: 2, height: 2 }, RenderStep::Watermark],
                vec![RenderStep::Crop(corner), RenderStep::Watermark],
                vec![RenderStep::Watermark, RenderStep::Crop(corner)],
            ] {
                for colour in [OutputColour::Keep, OutputColour::Srgb] {
                    let mut job = job(&jpeg, &steps);
                    job.source.orientation = Orientation::Transverse;
                    job.output.colour = colour;
                    let upright = Orientation::Transverse.oriented_size(size);
                    if output_size(upright, &steps).is_ok() {
                        run(&job);
                    }
                }
            }
        }
    }
}

#[test]
fn damage_is_reported_and_renders_the_same_bytes() {
    let jpeg = pictures::jpeg(
        Size { width: 160, height: 120 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let half = &jpeg[..jpeg.len() / 2];
    for steps in chains().into_iter().chain([vec![RenderStep::Fit { long_px: 20 }]]) {
        let job = job(half, &steps);
        assert_eq!(run(&job), run(&job));
    }
    assert!(run(&job(half, &[])).warning.is_some());
    let lower = [RenderStep::Crop(Rect { x: 0, y: 100, width: 20, height: 20 })];
    assert!(run(&job(half, &lower)).warning.is_some());
}

#[test]
fn stray_bytes_in_the_headers_are_tolerated() {
    let jpeg = pictures::jpeg(
        Size { width: 40, height: 30 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let mut dirty = jpeg[..2].to_vec();
    dirty.extend_from_slice(&[7, 7, 7]);
    dirty.extend_from_slice(&jpeg[2..]);
    let mut job = job(&jpeg, &[]);
    let clean = run(&job);
    job.source.file = &dirty;
    assert_eq!(run(&job), clean);
}

#[test]
fn unrenderable_jobs_are_errors() {
    let jpeg = pictures::jpeg(
        Size { width: 40, height: 30 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let fails = |job: &RenderJob<'_>| render(job, &marker(), &|_| true).unwrap_err();
    let crop = Rect { x: 30, y: 0, width: 11, height: 1 };
    let outside = CropError::Outside { crop, image: Size { width: 40, height: 30 } };
    assert_eq!(fails(&job(&jpeg, &[RenderStep::Crop(crop)])), RasterError::Step(outside.into()));
    let mut other = job(&jpeg, &[]);
    other.pixels_max = 1199;
    assert!(matches!(fails(&other), RasterError::TooLarge { pixels_max: 1199, .. }));
    let mut other = job(&jpeg, &[]);
    other.source.shows.width = 41;
    assert!(matches!(fails(&other), RasterError::Decode(_)));
    for bytes in [&b"GIF89a"[..], &jpeg[..100], &[]] {
        other.source.file = bytes;
        assert!(matches!(fails(&other), RasterError::Decode(_)));
    }
}

#[test]
fn a_fractional_sampling_is_unsupported() {
    let jpeg = pictures::jpeg(
        Size { width: 48, height: 48 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Full,
        3,
    );
    let mut odd = jpeg;
    let frame = odd.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    odd[frame + 11] = 0x31;
    odd[frame + 14] = 0x21;
    let failed = render(&job(&odd, &[]), &marker(), &|_| true).unwrap_err();
    assert!(matches!(failed, RasterError::Unsupported(_)), "{failed:?}");
}

#[test]
fn a_render_stops_when_it_is_cancelled() {
    let jpeg = pictures::jpeg(
        Size { width: 160, height: 120 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let steps = [RenderStep::Fit { long_px: 40 }, RenderStep::Watermark];
    for colour in [OutputColour::Keep, OutputColour::Srgb] {
        let mut job = job(&jpeg, &steps);
        job.output.colour = colour;
        let asked = Cell::new(0);
        let count = |_| {
            asked.set(asked.get() + 1);
            true
        };
        render(&job, &marker(), &count).unwrap();
        assert!(asked.get() >= 3);
        for stop in 0..asked.get() {
            let left = Cell::new(stop);
            let stage = |_| left.replace(left.get() - 1) > 0;
            assert_eq!(render(&job, &marker(), &stage), Err(RasterError::Abandoned));
        }
    }
}

/// The stages of a job without consecutive duplicates, and its render path.
fn course(job: &RenderJob<'_>) -> (Vec<RenderStage>, RenderPath) {
    let stages = RefCell::new(Vec::new());
    let note = |stage| {
        stages.borrow_mut().push(stage);
        true
    };
    let way = render(job, &marker(), &note).unwrap().render_path;
    let mut stages = stages.into_inner();
    stages.dedup();
    (stages, way)
}

#[test]
fn a_render_reports_its_stages_and_path() {
    use RenderStage::{Blend, Decode, Encode};
    let jpeg = pictures::jpeg(
        Size { width: 160, height: 120 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let crop = |x, y, width, height| RenderStep::Crop(Rect { x, y, width, height });
    let (even, odd) = (|| crop(16, 32, 48, 48), || crop(13, 31, 48, 48));
    let small = || RenderStep::Fit { long_px: 40 };
    let (plain, marked) = (vec![Decode, Encode], vec![Decode, Blend, Encode]);
    for colour in [OutputColour::Keep, OutputColour::Srgb] {
        let check = |steps: &[RenderStep], stages: &[RenderStage], way: RenderPath| {
            let mut job = job(&jpeg, steps);
            job.output.colour = colour;
            assert_eq!(course(&job), (stages.to_vec(), way), "{steps:?} {colour:?}");
        };
        check(&[], &plain, RenderPath::Whole);
        check(&[RenderStep::Watermark], &marked, RenderPath::Whole);
        check(&[small()], &plain, RenderPath::Whole);
        check(&[small(), RenderStep::Watermark], &marked, RenderPath::Whole);
        check(&[even()], &plain, RenderPath::Whole);
        check(&[odd()], &plain, RenderPath::Whole);
        check(&[odd(), RenderStep::Watermark], &marked, RenderPath::Whole);
        check(&[odd(), small()], &plain, RenderPath::Whole);
        check(
            &[RenderStep::Watermark, small()],
            &[Decode, Blend, Decode, Encode],
            RenderPath::Whole,
        );
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let jpeg = pictures::jpeg(
        Size { width: 1900, height: 1700 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let indexed = IndexedJpeg::open(jpeg.clone(), &samples::LIMITS).unwrap();
    let steps = [RenderStep::Fit { long_px: 400 }, RenderStep::Watermark];
    let on = |threads: usize| {
        // Each thread claims the next remaining piece of work.
        let spread = move |count: usize, work: &(dyn Fn(usize) + Sync)| {
            let next = std::sync::atomic::AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        loop {
                            let number = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            if number >= count {
                                return;
                            }
                            work(number);
                        }
                    });
                }
            });
        };
        let mut job = job(&jpeg, &steps);
        job.pixels_max = 10_000_000;
        let (scan, index, colour) = (&indexed.scan, &indexed.index, indexed.colour.as_slice());
        job.source.bands = Some(BandDecoder {
            scan,
            index,
            colour,
            parallel_map: &spread,
            should_continue: &|| true,
        });
        run(&job)
    };
    let one = on(1);
    assert_eq!(one.render_path, RenderPath::Bands);
    assert_eq!(one, on(3));
    let mut whole = job(&jpeg, &steps);
    whole.pixels_max = 10_000_000;
    assert!(run(&whole).file == one.file, "bands are the whole picture");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn any_chain_gives_the_promised_size(
        (width, height, kind) in (1u32..150, 1u32..150, 0usize..11),
        (tag, colour, sampling) in (1u32..9, any::<bool>(), any::<bool>()),
        steps in proptest::collection::vec(
            prop_oneof![
                (1u32..200).prop_map(|long_px| RenderStep::Fit { long_px }),
                (1u32..90, 1u32..90).prop_map(|(width, height)| RenderStep::Cover { width, height }),
                (0u32..60, 0u32..60, 1u32..60, 1u32..60, 1u32..60, 1u32..60).prop_map(
                    |(x, y, width, height, to_width, to_height)| RenderStep::Scale {
                        region: Rect { x, y, width, height },
                        size: Size { width: to_width.min(width), height: to_height },
                    },
                ),
                (0u32..60, 0u32..60, 1u32..60, 1u32..60).prop_map(|(x, y, width, height)| {
                    RenderStep::Crop(Rect { x, y, width, height })
                }),
                Just(RenderStep::Watermark),
            ],
            0..5,
        ),
    ) {
        let (space, chroma) = pictures::KINDS[kind];
        let jpeg = pictures::jpeg(Size { width, height }, space, chroma, tag);
        let mut job = job(&jpeg, &steps);
        job.source.orientation = Orientation::from_tag(tag);
        job.output.colour = if colour { OutputColour::Srgb } else { OutputColour::Keep };
        job.output.sampling = if sampling { OutputSampling::S420 } else { OutputSampling::Keep };
        let upright = job.source.orientation.oriented_size(job.source.stored);
        match output_size(upright, &steps) {
            Ok(_) => prop_assert_eq!(run(&job).warning, None),
            Err(error) => {
                let failed = render(&job, &marker(), &|_| true);
                prop_assert_eq!(failed, Err(RasterError::Step(error)));
            }
        }
    }
}
