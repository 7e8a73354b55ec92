//! The benchmark: measures renditions per second on this machine, by operation.
//!
//! The photographs are ingested by the real ingest, into a temporary data directory that is removed at the
//! end. Renditions are rendered by the real media section, without cache and without HTTP: each one is
//! planned, rendered, and read to its last byte. [`BenchReport`] formats the results as a table and as JSON.

mod folder;
mod measure;
mod operation;
mod peak;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strum::IntoEnumIterator;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

pub use measure::{LatencyPercentiles, OperationResult};
pub use operation::BenchOperation;
pub use report::{BenchReport, DerivedFiles};

use crate::app::OpenArchive;
use crate::archive::ingest::{self, FoundFiles, IngestError, IngestFailure};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::config::{Config, OriginalsLocation};
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::BENCH_SECONDS;
use crate::storage::blobs;
use folder::ScratchFolder;
use measure::RenditionBench;
use model::item::{AssetGroup, PictureFile};
use model::{ItemKey, RenditionUsage};

/// Minimum renditions of a benchmark, even if they take longer; fewer say nothing.
const BENCH_RENDITIONS_MIN: usize = 5;

/// The inputs of a benchmark.
pub struct BenchSetup<'a> {
    /// The settings; data directory and cache are overridden.
    pub config: &'a Config,
    /// Photographs, item folders, and folders that contain them.
    pub files: &'a [PathBuf],
    /// The folder for the temporary data directory.
    pub within: &'a Path,
    pub effort: BenchEffort,
}

/// The length of the measurement of each operation.
#[derive(Clone, Copy, Debug)]
pub struct BenchEffort {
    /// Time after which no further rendition is started.
    pub time: Duration,
    /// Minimum number of renditions, even after `time` has elapsed.
    pub renditions_min: usize,
    /// Renditions before the measurement, which are not counted.
    pub warmup: usize,
}

impl BenchEffort {
    /// Renders each operation once, as a smoke test.
    pub const ONCE: Self = Self { time: Duration::ZERO, renditions_min: 1, warmup: 0 };

    /// Measures each operation for `seconds` seconds.
    pub fn seconds(seconds: u64) -> Self {
        let time = Duration::from_secs(seconds);
        Self { time, renditions_min: BENCH_RENDITIONS_MIN, warmup: 1 }
    }
}

impl Default for BenchEffort {
    fn default() -> Self {
        Self::seconds(BENCH_SECONDS)
    }
}

/// The reason why a benchmark has no result.
#[derive(Debug)]
pub enum BenchError {
    /// Files that cannot be ingested, each with its reason.
    Files(Vec<IngestFailure>),
    /// The process received SIGINT or SIGTERM.
    Interrupted,
    Failed(Error),
}

impl From<Error> for BenchError {
    fn from(cause: Error) -> Self {
        Self::Failed(cause)
    }
}

/// A photograph that was ingested for the run.
struct BenchPhotograph {
    key: ItemKey,
    asset: PictureFile,
}

/// The photographs that were ingested.
struct IngestedPhotographs {
    photographs: Vec<BenchPhotograph>,
    /// Ingest time of each photograph in milliseconds.
    ms: Vec<f64>,
}

/// Ingests the photographs and measures every operation, on one render worker and on all of them.
///
/// Calls `progress` with each step. Photographs are copied, and their derived files may need as much space
/// again. Fails with [`BenchError::Files`] before any measurement if one of the files cannot be ingested.
pub fn run(setup: &BenchSetup<'_>, progress: &dyn Fn(&str)) -> Result<BenchReport, BenchError> {
    // One thread is enough for timers and signals; renders have their own threads.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(Error::internal)?;
    // Signals are caught before the folder exists, so that a signal does not leave it behind.
    let stop = StopFlag::catch(&runtime)?;
    let folder = ScratchFolder::make(setup.within)?;
    let report = measure_in(&folder, setup, &runtime, &stop, progress);
    folder.remove()?;
    report
}

fn measure_in(
    folder: &ScratchFolder,
    setup: &BenchSetup<'_>,
    runtime: &Runtime,
    stop: &StopFlag,
    progress: &dyn Fn(&str),
) -> Result<BenchReport, BenchError> {
    let mut config = setup.config.clone();
    config.data.dir = folder.path().to_owned();
    // The copies must not end up in a bucket or folder that the settings share with the real
    // archive.
    config.store.originals = OriginalsLocation::Data;
    // A cache hit would measure the cache instead of the renderer.
    config.cache.memory_bytes = 0;
    config.cache.disk_bytes = 0;
    let archive = OpenArchive::open_to_write(&config)?;
    let ingested = ingest_photographs(&archive, &config, setup.files, stop, progress)?;
    let bench =
        RenditionBench::new(&archive, &config, &ingested.photographs, setup.effort, runtime)?;
    let all = config.render_workers();
    let mut operations = Vec::new();
    // With a single worker, the second pass would repeat the first.
    for workers in [Some(1), Some(all).filter(|all| *all > 1)].into_iter().flatten() {
        let media = bench.clients(workers)?;
        for operation in BenchOperation::iter() {
            progress(&format!("{}, workers: {workers}", operation.title(&config)));
            operations.push(bench.measure(operation, &media, stop)?);
        }
    }
    // Standard sets exist only now: the first small rendition of a photograph makes its set.
    let derived = derived_files(&archive, &ingested.photographs)?;
    let photographs = &ingested.photographs;
    Ok(BenchReport {
        photographs: photographs.len(),
        pixels: photographs.iter().map(|photograph| photograph.asset.stored.pixels()).sum(),
        bytes: photographs.iter().map(|photograph| photograph.asset.length).sum(),
        ingest_ms: LatencyPercentiles::from_ms(ingested.ms),
        derived,
        operations,
    })
}

/// Ingests the files one after the other.
fn ingest_photographs(
    archive: &OpenArchive,
    config: &Config,
    files: &[PathBuf],
    stop: &StopFlag,
    progress: &dyn Fn(&str),
) -> Result<IngestedPhotographs, BenchError> {
    let FoundFiles { incoming, lines, mut failures, .. } = ingest::find(files);
    // A file of documents has no pictures to render, so it is refused like a file of an unknown kind.
    failures.extend(lines.iter().map(|path| IngestFailure::new(path, IngestError::Kind)));
    let ingest = archive.ingest(config)?;
    let mut ingested = IngestedPhotographs { photographs: Vec::new(), ms: Vec::new() };
    for source in &incoming {
        stop.check()?;
        progress(&format!("ingesting {}", source.path().display()));
        let stopwatch = Stopwatch::start();
        match ingest.ingest(source, clock::now()) {
            Ok(item) => {
                ingested.ms.push(stopwatch.elapsed_ms());
                ingested.photographs.push(photograph(archive, item.key)?);
            }
            Err(failure) => failures.push(failure),
        }
    }
    // A result without some of the named files would look comparable to a complete result, but would not be.
    if !failures.is_empty() {
        return Err(BenchError::Files(failures));
    }
    if ingested.photographs.is_empty() {
        let message = "the given files and folders have no photographs";
        return Err(Error::new(ErrorKind::InvalidArgument, message).into());
    }
    Ok(ingested)
}

fn photograph(archive: &OpenArchive, key: ItemKey) -> Result<BenchPhotograph, Error> {
    let lookup = key.clone();
    let item = archive.db.read_blocking(move |tx| tx.find_item(&lookup))?;
    let asset = item
        .as_ref()
        .and_then(|item| AssetGroup::of_item(&item.assets).picture(RenditionUsage::Hires));
    let Some(asset) = asset else {
        return Err(Error::new(ErrorKind::NotFound, format!("{key} has no Hires")));
    };
    Ok(BenchPhotograph { asset: asset.clone(), key })
}

fn derived_files(
    archive: &OpenArchive,
    photographs: &[BenchPhotograph],
) -> Result<Vec<DerivedFiles>, Error> {
    let derived = &archive.originals.derived;
    let mut sums = Vec::new();
    for kind in blobs::DerivedKind::iter() {
        let mut sum = DerivedFiles { kind: kind.as_str(), files: 0, bytes: 0 };
        for photograph in photographs {
            let length = derived.length(kind, photograph.asset.blob).map_err(Error::internal)?;
            sum.files += usize::from(length.is_some());
            sum.bytes += length.unwrap_or(0);
        }
        sums.push(sum);
    }
    Ok(sums)
}

/// A flag that ends the run early.
#[derive(Clone)]
struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Sets the flag on SIGINT and SIGTERM from now on.
    fn catch(runtime: &Runtime) -> Result<Self, Error> {
        // A signal handler registers with the runtime of the current thread.
        let _inside = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
        let stop = Self(Arc::default());
        let requested = Arc::clone(&stop.0);
        runtime.spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // The flag guards no other data, so the order of memory accesses does not matter.
            requested.store(true, Ordering::Relaxed);
        });
        Ok(stop)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), BenchError> {
        if self.is_set() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}
