//! Benchmarks of reading and writing the embedded metadata of a photograph.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jpeg::header::JpegHeader;
use jpeg::samples::{LIMITS, file};
use metadata::{Caption, WriteOptions, read, write};

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
    let keep = WriteOptions { orientation: 1, gps: false };
    let written = file(&write(&caption, &[], keep));
    let header = JpegHeader::parse(&written, &LIMITS).expect("the file was written above");

    let mut group = criterion.benchmark_group("metadata");
    group.bench_function("write", |bench| bench.iter(|| write(black_box(&caption), &[], keep)));
    group.bench_function("read", |bench| bench.iter(|| read(&header, black_box(&written))));
    group.finish();
}

criterion_group!(benches, captions);
criterion_main!(benches);
