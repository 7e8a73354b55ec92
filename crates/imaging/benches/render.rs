//! Benchmarks of interactive renders of a 24-megapixel picture.
//!
//! The picture is the file named by `BENCH_JPEG`, or else a generated one with gradients, edges and
//! grain, about as large as a photograph. `cargo bench -- --test` runs each operation once on a small
//! picture.
//!
//! If `BENCH_WORKER` is set, the program instead reads commands from standard input and answers each
//! with one line; `benches/compare` uses this to time it alternately with other programs:
//!
//! ```text
//! run <operation> [<x> <y>]           prints milliseconds and bytes of the result
//! save <file> <operation> [<x> <y>]   the same, and writes the result to the file
//! place <width> <height>              prints the position of the watermark: x, y, width, height
//! ```

use std::{
    fs,
    hint::black_box,
    io::{self, BufRead, Write},
};

use criterion::{Criterion, criterion_group};
use geometry::{Rect, Size};
use imaging::{
    EncodeEffort, ImageFormat, MarkKind, MarkSetup, Orientation, OutputColour, OutputOptions,
    OutputSampling, RenderJob, RenderOutput, RenderSource, RenderStep, Watermark, render,
};
use jpeg::codec::{ChromaSubsampling, read_header};
use jpeg::samples::pictures::photograph;

/// The allocator of the server; with large pictures it affects the results.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Size of the generated picture.
const SIZE: Size = Size { width: 6000, height: 4000 };
/// Size of the generated picture with `--test`.
const SIZE_OF_TEST: Size = Size { width: 1200, height: 800 };
/// Size of the benchmarked crops.
const CROP: Size = Size { width: 800, height: 600 };

#[expect(clippy::disallowed_methods, reason = "a bench has no settings but these variables")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn marker() -> Watermark {
    let kind = match variable("BENCH_MARK") {
        Some(file) => MarkKind::Png(fs::read(file).expect("BENCH_MARK names a PNG")),
        None => {
            let font = include_bytes!("../../../assets/fonts/Inter-SemiBold.otf").to_vec();
            MarkKind::Text { line: "WIREPHOTO".to_owned(), font }
        }
    };
    let setup = MarkSetup { kind, width_fraction: 0.25, margin_fraction: 0.02, opacity: 1.0 };
    Watermark::new(setup).expect("the settings are valid")
}

/// Returns the steps and output options of an operation; `at` is the corner of a crop.
fn recipe(operation: &str, at: (u32, u32)) -> Option<(Vec<RenderStep>, OutputOptions)> {
    let small = OutputOptions {
        format: ImageFormat::Jpeg,
        quality: 85,
        sampling: OutputSampling::S420,
        colour: OutputColour::Srgb,
        effort: EncodeEffort::Small,
        bytes_max: None,
    };
    let hires = |quality| OutputOptions {
        format: ImageFormat::Jpeg,
        quality,
        sampling: OutputSampling::Keep,
        colour: OutputColour::Keep,
        effort: EncodeEffort::Small,
        bytes_max: None,
    };
    let preview = RenderStep::Fit { long_px: 1024 };
    let crop = Rect::new(at.0, at.1, CROP);
    Some(match operation {
        "preview" => (vec![preview], small),
        "thumbnail" => (vec![RenderStep::Fit { long_px: 256 }], small),
        "cropped_thumbnail" => (vec![RenderStep::Cover { width: 256, height: 256 }], small),
        "crop" => (vec![RenderStep::Crop(crop)], hires(85)),
        "watermark_preview" => (vec![preview, RenderStep::Watermark], small),
        "watermark_hires" => (vec![RenderStep::Watermark], hires(90)),
        _ => return None,
    })
}

fn made(
    jpeg: &[u8],
    marker: &Watermark,
    steps: &[RenderStep],
    output: OutputOptions,
) -> RenderOutput {
    let stored = read_header(jpeg).expect("a JPEG").size;
    let source = RenderSource {
        format: ImageFormat::Jpeg,
        file: jpeg,
        orientation: Orientation::Upright,
        icc: None,
        adobe: false,
        stored,
        shows: stored,
        bands: None,
    };
    let pixels_max = 500_000_000;
    render(&RenderJob { source, steps, output, pixels_max }, marker, &|_| true).expect("renders")
}

fn renders(criterion: &mut Criterion) {
    // `cargo test` runs benches without `--bench`.
    let test = |args: Vec<String>| {
        args.iter().any(|arg| arg == "--test") || !args.iter().any(|arg| arg == "--bench")
    };
    let size = if test(std::env::args().collect()) { SIZE_OF_TEST } else { SIZE };
    let jpeg = match variable("BENCH_JPEG") {
        Some(file) => fs::read(file).expect("BENCH_JPEG names a file"),
        None => photograph(size, ChromaSubsampling::Quarter),
    };
    let marker = marker();
    let Size { width, height } = read_header(&jpeg).expect("a JPEG").size;
    let (right, bottom) = (width - CROP.width, height - CROP.height);
    let cases = [
        ("preview", "preview", (0, 0)),
        ("thumbnail", "thumbnail", (0, 0)),
        ("cropped_thumbnail", "cropped_thumbnail", (0, 0)),
        ("crop_top_left", "crop", (0, 0)),
        ("crop_middle", "crop", (right / 2, bottom / 2)),
        ("crop_middle_odd", "crop", ((right / 2) | 1, (bottom / 2) | 1)),
        ("crop_bottom_right", "crop", (right, bottom)),
        ("watermark_preview", "watermark_preview", (0, 0)),
        ("watermark_hires", "watermark_hires", (0, 0)),
    ];
    let mut group = criterion.benchmark_group("raster");
    group.sample_size(20);
    for (name, operation, at) in cases {
        let (steps, output) = recipe(operation, at).expect("a case names an operation");
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(made(&jpeg, &marker, &steps, output)));
        });
    }
    group.finish();
}

/// Executes one command of the worker and returns the answer; `None` for an invalid command.
fn obey(line: &str, file: &str, marker: &Watermark) -> Option<String> {
    let number = |word: &&str| word.parse::<u32>().ok();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (target, words) = match words.as_slice() {
        ["place", width, height] => {
            let image = Size { width: number(width)?, height: number(height)? };
            let Rect { x, y, width, height } = marker.placement(image);
            return Some(format!("{x} {y} {width} {height}"));
        }
        ["run", words @ ..] => (None, words),
        ["save", target, words @ ..] => (Some(target), words),
        _ => return None,
    };
    let (steps, output) = match words {
        [operation] => recipe(operation, (0, 0)),
        [operation, x, y] => recipe(operation, (number(x)?, number(y)?)),
        _ => None,
    }?;
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let begun = std::time::Instant::now();
    let jpeg = fs::read(file).expect("BENCH_JPEG names a file");
    let rendered = made(&jpeg, marker, &steps, output);
    let ms = begun.elapsed().as_secs_f64() * 1000.0;
    if let Some(target) = target {
        fs::write(target, &rendered.file).expect("the result is written");
    }
    Some(format!("{ms:.3} {}", rendered.file.len()))
}

fn worker() -> io::Result<()> {
    let file = variable("BENCH_JPEG").expect("a worker needs BENCH_JPEG");
    let marker = marker();
    for line in io::stdin().lock().lines() {
        let answer = obey(&line?, &file, &marker).unwrap_or_else(|| "unknown".to_owned());
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

criterion_group!(benches, renders);

fn main() {
    if variable("BENCH_WORKER").is_some() {
        return worker().expect("standard input and output are open");
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
