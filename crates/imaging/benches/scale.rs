//! Benchmarks of scaling in linear light, and of the standard pictures of an original.
//!
//! The picture is the file named by `BENCH_JPEG`, or else a generated one of 24 megapixels.
//! `cargo bench -- --test` runs each case once on a small picture. Everything runs on one thread.

use std::{fs, hint::black_box};

use criterion::{Criterion, criterion_group, criterion_main};
use geometry::{Rect, Size};
use imaging::{
    BandDecoder, ImageFormat, Orientation, OutputColour, RenderSource, RenderStep, SampleLight,
    in_sequence, scale_region, standard_pictures,
};
use jpeg::IndexedJpeg;
use jpeg::codec::{ChromaSubsampling, DecodeScale, decode, read_header};
use jpeg::samples::{LIMITS, pictures::photograph};

/// The allocator of the server; with large pictures it affects the results.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum number of pixels of the picture.
const PIXELS_MAX: u64 = 200_000_000;

/// The sizes of an agency's renditions.
fn standard_steps() -> [RenderStep; 4] {
    [
        RenderStep::Fit { long_px: 1024 },
        RenderStep::Fit { long_px: 512 },
        RenderStep::Fit { long_px: 256 },
        RenderStep::Cover { width: 256, height: 256 },
    ]
}

#[expect(clippy::disallowed_methods, reason = "a bench has no settings but this variable")]
fn picture() -> Vec<u8> {
    let testing =
        std::env::args().any(|arg| arg == "--test") || !std::env::args().any(|a| a == "--bench");
    let size = if testing { Size::new(1200, 800) } else { Size::new(6000, 4000) };
    match std::env::var("BENCH_JPEG") {
        Ok(file) => fs::read(file).expect("BENCH_JPEG names a file"),
        Err(_) => photograph(size, ChromaSubsampling::Quarter),
    }
}

fn scaling(criterion: &mut Criterion) {
    let file = picture();
    let header = read_header(&file).expect("a JPEG");
    let decoded = decode(&file, DecodeScale::FULL).expect("a picture").value;
    let mut group = criterion.benchmark_group("scale");
    group.sample_size(10);
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decode(black_box(&file), DecodeScale::FULL).expect("a picture"));
    });
    for long_px in [1024, 512, 256] {
        let size = header.size.fit_within(long_px);
        let region = Rect::new(0, 0, header.size).into();
        group.bench_function(format!("pixels_to_{long_px}"), |bencher| {
            bencher.iter(|| {
                let light = SampleLight::Srgb;
                scale_region(black_box(&decoded), region, size, light, &in_sequence)
            });
        });
    }
    let indexed = IndexedJpeg::open(file.clone(), &LIMITS).ok();
    let source = RenderSource {
        format: ImageFormat::Jpeg,
        file: &file,
        orientation: Orientation::Upright,
        icc: None,
        adobe: false,
        stored: header.size,
        shows: header.size,
        bands: None,
    };
    let bands = indexed.as_ref().map(|indexed| BandDecoder {
        scan: &indexed.scan,
        index: &indexed.index,
        colour: &indexed.colour,
        parallel_map: &in_sequence,
        should_continue: &|| true,
    });
    let pictures = |source: &RenderSource<'_>| {
        standard_pictures(source, &standard_steps(), OutputColour::Srgb, PIXELS_MAX)
            .expect("pictures")
    };
    group.bench_function("standard_pictures", |bencher| {
        bencher.iter(|| pictures(black_box(&source)));
    });
    if bands.is_some() {
        let source = RenderSource { bands, ..source };
        group.bench_function("standard_pictures_in_strips", |bencher| {
            bencher.iter(|| pictures(black_box(&source)));
        });
    }
    group.finish();
}

criterion_group!(benches, scaling);
criterion_main!(benches);
