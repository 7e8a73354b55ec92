//! Benchmarks of header parsing, indexing and lossless cropping on a 24-megapixel picture, and of
//! encoding a rendition of 1024x683 pixels.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use geometry::{Rect, Size};
use jpeg::codec::{self, ChromaSubsampling, DecodeScale};
use jpeg::encoder::{self, EncodeEffort, EncodeOptions};
use jpeg::header::{HeaderLimits, JpegHeader};
use jpeg::rewrite::colour_segments;
use jpeg::samples::pictures::photograph;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, crop};

const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 20, segments_max: 1_000, metadata_bytes_max: 4 << 20 };

fn scans(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let size = if testing { Size::new(1200, 800) } else { Size::new(6000, 4000) };
    let file = photograph(size, ChromaSubsampling::Quarter);
    let header = JpegHeader::parse(&file, &LIMITS).expect("a made picture");
    let scan = Scan::read(&header, &file).expect("a baseline scan");
    let index = ScanIndex::build(&scan, &file).expect("a sound scan");
    let colour = colour_segments(&header, &file);
    let crop = Rect::new(160, 160, Size::new(800, 608));

    let mut group = criterion.benchmark_group("jpeg");
    group.sample_size(10);
    group.bench_function("header", |bench| {
        bench.iter(|| JpegHeader::parse(black_box(&file), &LIMITS).expect("a made picture"));
    });
    group.bench_function("index", |bench| {
        bench.iter(|| ScanIndex::build(&scan, black_box(&file)).expect("a sound scan"));
    });
    group.bench_function("crop", |bench| {
        let bytes = ByteRanges::whole(&file);
        bench
            .iter(|| crop::crop(&scan, &index, &bytes, black_box(crop), &colour).expect("a crop"));
    });
    group.finish();
}

fn renditions(criterion: &mut Criterion) {
    let file = photograph(Size::new(1024, 683), ChromaSubsampling::Full);
    let pixels = codec::decode(&file, DecodeScale::FULL).expect("a made picture").value;
    let mut group = criterion.benchmark_group("rendition");
    group.sample_size(10);
    for (name, sampling) in
        [("4:2:0", ChromaSubsampling::Quarter), ("4:4:4", ChromaSubsampling::Full)]
    {
        let options = EncodeOptions { quality: 85, sampling, effort: EncodeEffort::Small };
        group.bench_function(name, |bench| {
            bench.iter(|| encoder::encode(black_box(&pixels), &options).expect("a file"));
        });
    }
    group.finish();
}

criterion_group!(benches, scans, renditions);
criterion_main!(benches);
