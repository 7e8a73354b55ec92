//! Measures the parsing and printing of media paths, in nanoseconds.
//!
//! Every request for media parses one path, so this time is part of each cached response.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use model::media_url::MediaPath;

/// Name of the case, and the path below `/media/`.
const PATHS: [(&str, &str); 7] = [
    ("item", "image/sdltd8f4d87"),
    ("hires", "image/sdltd8f4d87.jpg"),
    ("preview", "image/sdltd8f4d87_NormalPreview.jpg"),
    ("crop", "image/sdltd8f4d87-crop_w800_h600_x2601_y1701_NormalPreview.jpg"),
    ("crop_watermark", "image/sdltd8f4d87-crop_w800_h600_x10_y20-watermark_NormalPreview.jpg"),
    ("association", "text/250924-konjunkturlaget6uv-ae8053fa/a000_CroppedThumbnail.jpg"),
    ("refused", "image/sdltd8f4d87-crop_w800_h600_q9_NormalPreview.jpg"),
];

fn paths(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("media_path");
    for (name, text) in PATHS {
        group.bench_with_input(BenchmarkId::new("parse", name), text, |bencher, text| {
            bencher.iter(|| MediaPath::parse(black_box(text)));
        });
        // A path that is refused has nothing to print.
        let Ok(path) = MediaPath::parse(text) else { continue };
        group.bench_with_input(BenchmarkId::new("print", name), &path, |bencher, path| {
            bencher.iter(|| black_box(path).print());
        });
    }
    group.finish();
}

criterion_group!(benches, paths);
criterion_main!(benches);
