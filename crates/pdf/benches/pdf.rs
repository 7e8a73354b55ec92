//! Measures the greyscale conversion of a graphic, whose target is 100 ms, and the rendering of its page.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pdf::PdfLimits;

fn grey(criterion: &mut Criterion) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../media-store/demo/graphic/demo-sweden-map/NormalHires.pdf"
    );
    let bytes = std::fs::read(path).expect("the demo graphic is in the repository");
    let limits = PdfLimits {
        bytes: 1 << 28,
        objects: 1_000_000,
        depth: 64,
        decoded_bytes: 1 << 29,
        operators: 50_000_000,
        pixels: 32_000_000,
        image_pixels: 150_000_000,
    };
    let mut group = criterion.benchmark_group("pdf");
    group.sample_size(10);
    group.bench_function("grey-map", |bench| {
        bench.iter(|| pdf::grey(black_box(&bytes), &limits).expect("the demo graphic is intact"));
    });
    group.bench_function("page-map-2048", |bench| {
        bench.iter(|| {
            pdf::raster(black_box(&bytes), 2048, &limits).expect("the demo graphic is intact")
        });
    });
    group.finish();
}

criterion_group!(benches, grey);
criterion_main!(benches);
