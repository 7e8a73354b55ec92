//! Benchmarks renditions per second from ingest to the last byte: the report of `wirephoto bench`, here for
//! generated pictures.
//!
//! The pictures have 24 megapixels, in 4:2:0 and 4:4:4, with `BENCH_LARGE=1` also 100 megapixels;
//! `BENCH_JPEG` names other files instead, separated by colons. `cargo bench -- --test` renders each
//! rendition of a small picture once.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use jpeg::codec::ChromaSubsampling;
use jpeg::samples::pictures::photograph;
use model::Size;
use wirephoto::app::bench::{BenchEffort, BenchSetup, run};
use wirephoto::runtime::config::{self, SettingSources};

/// The server's allocator, which affects memory and multi-threaded speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZE: Size = Size { width: 6000, height: 4000 };
const SIZE_LARGE: Size = Size { width: 12_000, height: 8336 };
const SIZE_OF_TEST: Size = Size { width: 1200, height: 800 };

#[expect(clippy::disallowed_methods, reason = "a bench has no settings but these variables")]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Generates pictures of `sizes` in the folder `dir`.
fn made_files(dir: &Path, sizes: &[Size]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for size in sizes {
        for (name, chroma) in
            [("420", ChromaSubsampling::Quarter), ("444", ChromaSubsampling::Full)]
        {
            let file = dir.join(format!("made-{}x{}-{name}.jpg", size.width, size.height));
            fs::write(&file, photograph(*size, chroma))?;
            files.push(file);
        }
    }
    Ok(files)
}

fn main() -> io::Result<()> {
    // Without `--bench`, this is a run of `cargo test`.
    let has = |wanted: &str| std::env::args().any(|arg| arg == wanted);
    let test = has("--test") || !has("--bench");
    let large = variable("BENCH_LARGE").is_some_and(|value| value == "1");
    let sizes: &[Size] = match (test, large) {
        (true, _) => &[SIZE_OF_TEST],
        (false, false) => &[SIZE],
        (false, true) => &[SIZE, SIZE_LARGE],
    };
    let dir = tempfile::tempdir()?;
    let files = match variable("BENCH_JPEG").filter(|_| !test) {
        Some(named) => std::env::split_paths(&named).collect(),
        None => made_files(dir.path(), sizes)?,
    };
    let effort = if test { BenchEffort::ONCE } else { BenchEffort::default() };
    // An empty file, so that a configuration file in the working directory is ignored.
    let settings = dir.path().join("wirephoto.toml");
    fs::write(&settings, "")?;
    let sources = SettingSources { file: Some(settings), flags: Vec::new() };
    let (config, _) = config::load(&sources).map_err(io::Error::other)?;
    let mut out = io::stdout().lock();
    for file in &files {
        let files = std::slice::from_ref(file);
        let setup = BenchSetup { config: &config, files, within: dir.path(), effort };
        let report = run(&setup, &|_| ()).unwrap_or_else(|cause| panic!("{cause:?}"));
        writeln!(out, "\n{}\n{}", file.display(), report.table())?;
    }
    Ok(())
}
