//! Direct renders compared with plain ones.

use strum::IntoEnumIterator;

use super::render::tests::{chains, job, marker, pixels, plainly, psnr};
use super::*;
use geometry::Rect;
use jpeg::IndexedJpeg;
use jpeg::codec::{ChromaSubsampling, ColourSpace};
use jpeg::header::JpegHeader;
use jpeg::rewrite::rewrite_with_tables;
use jpeg::samples::LIMITS;
use jpeg::samples::pictures;
use jpeg::scan::ByteRanges;

const SIZE: Size = Size { width: 160, height: 120 };

/// The upright result, and the render path.
fn run(indexed: &IndexedJpeg, job: &RenderJob<'_>) -> Option<(Vec<u8>, RenderPath)> {
    let orientation = job.source.orientation;
    let IndexedJpeg { jpeg, scan, index, colour } = indexed;
    let indexed = IndexedSource { scan, index, colour, orientation };
    let direct = DirectPlan::plan(&indexed, job.steps, job.output)?;
    let mut bytes = ByteRanges::default();
    for range in direct.byte_ranges(&indexed, &marker()).expect("inside") {
        let at = |offset: u64| usize::try_from(offset).unwrap();
        bytes.push(range.start, jpeg[at(range.start)..at(range.end)].to_vec());
    }
    let (mark, quality) = (marker(), job.output.quality);
    let done = direct.run(&indexed, &bytes, &mark, quality, &LIMITS, &|_| true);
    match done.expect("rendered") {
        DirectOutput::File { jpeg, render_path, .. } => Some((jpeg, render_path)),
        DirectOutput::Part(small) => {
            let DirectPlan::Part { shows, crop, marked } = direct else { panic!("no part") };
            let mut steps = vec![RenderStep::Crop(crop)];
            steps.extend(marked.then_some(RenderStep::Watermark));
            let stored = shows.size();
            let source = RenderSource { file: &small, stored, shows: stored, ..job.source };
            let job = RenderJob { source, steps: &steps, ..*job };
            Some((render(&job, &marker(), &|_| true).expect("rendered").file, RenderPath::Region))
        }
        DirectOutput::Patched(patched) => {
            let header = JpegHeader::parse(jpeg, &LIMITS).expect("parsed");
            let (mut file, scans) = rewrite_with_tables(jpeg, &header, &[], None, &patched.tables);
            let at = |offset: u64| usize::try_from(offset).unwrap();
            file.extend_from_slice(&jpeg[scans.start..at(patched.prefix.end)]);
            file.extend_from_slice(&patched.middle);
            file.extend_from_slice(&jpeg[at(patched.suffix)..]);
            Some((file, RenderPath::LocalMark))
        }
    }
}

#[test]
fn every_direct_path_equals_the_plain_path() {
    let mut seen = Vec::new();
    for (space, chroma) in pictures::KINDS {
        let close = if chroma == ChromaSubsampling::Full { 39.0 } else { 26.5 };
        let indexed =
            IndexedJpeg::open(pictures::jpeg(SIZE, space, chroma, 11), &LIMITS).expect("baseline");
        for steps in chains() {
            for orientation in Orientation::iter() {
                let mut job = job(&indexed.jpeg, &steps);
                job.source.orientation = orientation;
                if output_size(orientation.oriented_size(SIZE), &steps).is_err() {
                    continue;
                }
                let Some((jpeg, way)) = run(&indexed, &job) else { continue };
                let found = pixels(&jpeg);
                let found = psnr(&found, &plainly(&job));
                let what = format!("{space:?} {chroma:?} {orientation:?} {steps:?} {way:?}");
                assert!(found > close, "{what}: {found:.1} dB");
                seen.push(way);
            }
        }
    }
    for way in [RenderPath::LosslessCrop, RenderPath::Region, RenderPath::LocalMark] {
        assert!(seen.contains(&way), "{way:?} was never taken");
    }
}

#[test]
fn the_shortest_suitable_path_is_used() {
    let indexed = IndexedJpeg::open(
        pictures::jpeg(SIZE, ColourSpace::YCbCr, ChromaSubsampling::Quarter, 3),
        &LIMITS,
    );
    let indexed = indexed.expect("baseline");
    let aligned = RenderStep::Crop(Rect { x: 32, y: 16, width: 50, height: 60 });
    let odd = RenderStep::Crop(Rect { x: 31, y: 16, width: 50, height: 60 });
    let check = |steps: &[RenderStep], orientation, expected: Option<RenderPath>| {
        let mut job = job(&indexed.jpeg, steps);
        job.source.orientation = orientation;
        let way = run(&indexed, &job).map(|(_, way)| way);
        assert_eq!(way, expected, "{steps:?} {orientation:?}");
    };
    let (upright, quarter) = (Orientation::Upright, Orientation::Quarter);
    check(std::slice::from_ref(&aligned), upright, Some(RenderPath::LosslessCrop));
    check(std::slice::from_ref(&aligned), quarter, Some(RenderPath::Region));
    check(std::slice::from_ref(&odd), upright, Some(RenderPath::Region));
    check(&[aligned.clone(), RenderStep::Watermark], upright, Some(RenderPath::LocalMark));
    check(&[odd.clone(), RenderStep::Watermark], upright, Some(RenderPath::Region));
    check(&[RenderStep::Watermark, aligned], upright, Some(RenderPath::Region));
    check(&[RenderStep::Watermark], upright, Some(RenderPath::LocalMark));
    check(&[RenderStep::Watermark], quarter, None);
    check(&[RenderStep::Fit { long_px: 50 }], upright, None);
    check(&[RenderStep::Fit { long_px: 50 }, odd], upright, None);
}

#[test]
fn a_limited_number_of_bytes_leaves_no_direct_path() {
    let jpeg = pictures::jpeg(SIZE, ColourSpace::YCbCr, ChromaSubsampling::Quarter, 3);
    let indexed = IndexedJpeg::open(jpeg, &LIMITS).expect("baseline");
    let crop = RenderStep::Crop(Rect { x: 32, y: 16, width: 50, height: 60 });
    for steps in
        [vec![crop.clone()], vec![RenderStep::Watermark], vec![crop, RenderStep::Watermark]]
    {
        let mut job = job(&indexed.jpeg, &steps);
        assert!(run(&indexed, &job).is_some(), "{steps:?}");
        job.output.bytes_max = Some(4000);
        assert!(run(&indexed, &job).is_none(), "{steps:?}");
    }
}

#[test]
fn a_local_mark_is_as_good_as_a_full_re_encode() {
    for (space, chroma) in [
        (ColourSpace::YCbCr, ChromaSubsampling::Quarter),
        (ColourSpace::YCbCr, ChromaSubsampling::Full),
    ] {
        let size = Size { width: 640, height: 480 };
        let jpeg = pictures::jpeg(size, space, chroma, 5);
        let indexed = IndexedJpeg::open(jpeg.clone(), &LIMITS).expect("baseline");
        let steps = [RenderStep::Watermark];
        let mut job = job(&jpeg, &steps);
        // The quality, and so the tables, of the original.
        job.output.quality = 88;
        let (local, _) = run(&indexed, &job).expect("local");
        let full = render(&job, &marker(), &|_| true).expect("rendered").file;
        let (wanted, place) = (plainly(&job), marker().placement(size));
        let under = |jpeg: &[u8]| {
            let cut = |picture| resize::crop_pixels(picture, place);
            psnr(&cut(pixels(jpeg)), &cut(wanted.clone()))
        };
        let (local_db, full_db) = (under(&local), under(&full));
        assert!(local_db > full_db - 0.3, "{chroma:?}: {local_db:.2} and {full_db:.2} dB");
        // Outside the mark, and the chroma next to it, nothing changed at all.
        let above = Rect { x: 0, y: 0, width: size.width, height: place.y - 32 };
        let upper = |picture| resize::crop_pixels(picture, above);
        assert!(upper(pixels(&local)) == upper(pixels(&jpeg)), "{chroma:?}: the rest changed");
    }
}

#[test]
fn a_rectangle_round_trips_through_upright_coordinates() {
    for orientation in Orientation::iter() {
        let stored = Rect { x: 7, y: 20, width: 31, height: 44 };
        let upright = orientation.to_upright(stored, SIZE);
        assert_eq!(orientation.to_stored(upright, SIZE), stored, "{orientation:?}");
    }
}
