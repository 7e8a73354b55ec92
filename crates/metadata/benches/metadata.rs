//! Benchmarks of reading and writing the embedded metadata of a photograph.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use geometry::{Rect, Size};
use jpeg::header::JpegHeader;
use jpeg::samples::{LIMITS, file};
use metadata::RightsView;
use metadata::{
    Caption, EmbeddedMetadata, FileMetadata, RightsMetadata, WriteOptions, read, write,
};

/// The IPTC's reference packet, which has a value in every property.
const REFERENCE: &str = include_str!("../tests/data/iptc-reference.xml");

fn captions(criterion: &mut Criterion) {
    let caption = Caption {
        headline: "An icebreaker in the harbour".to_owned(),
        description: "The icebreaker came in on Monday. ".repeat(20),
        byline: "Photographer".to_owned(),
        credit: "Agency".to_owned(),
        keywords: (0..20).map(|number| format!("keyword {number}")).collect(),
        created: Some("2026-03-02T09:15:00+01:00".to_owned()),
        ..Caption::default()
    };
    let rights = RightsMetadata::default();
    let keep = WriteOptions { orientation: 1, gps: false, picture: None };
    let written = file(&write(&caption, &rights, &[], keep));
    let header = JpegHeader::parse(&written, &LIMITS).expect("the file was written above");

    let mut group = criterion.benchmark_group("metadata");
    group.bench_function("write", |bench| {
        bench.iter(|| write(black_box(&caption), &rights, &[], keep));
    });
    group.bench_function("read", |bench| bench.iter(|| read(&header, black_box(&written))));
    group.finish();
}

fn rights(criterion: &mut Criterion) {
    let xmp = REFERENCE.as_bytes().to_vec();
    let embedded = EmbeddedMetadata { xmp, ..EmbeddedMetadata::default() };
    let reference = file(&embedded.jpeg_segments());
    let header = JpegHeader::parse(&reference, &LIMITS).expect("a sample");
    let FileMetadata { caption, rights, .. } = read(&header, &reference);
    let keep = WriteOptions { orientation: 1, gps: false, picture: None };
    let size = Size::new(6_000, 4_000);
    let region = Rect::new(1_000, 500, Size::new(2_000, 2_000));
    let (gps, person_details) = (false, false);
    let view =
        RightsView { orientation: 6, upright: size, region, hires: size, gps, person_details };

    let mut group = criterion.benchmark_group("metadata of the reference image");
    group.bench_function("write", |bench| {
        bench.iter(|| write(black_box(&caption), &rights, &[], keep));
    });
    group.bench_function("read", |bench| bench.iter(|| read(&header, black_box(&reference))));
    group.bench_function("show", |bench| bench.iter(|| black_box(&rights).shown(&view)));
    group.finish();
}

criterion_group!(benches, captions, rights);
criterion_main!(benches);
