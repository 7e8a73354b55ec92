//! Renders one kind of rendition for some time, and measures it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Runtime;

use super::{BenchEffort, BenchError, BenchOperation, BenchPhotograph, StopFlag, peak};
use crate::access::auth::Principal;
use crate::access::orders::Orders;
use crate::app::OpenArchive;
use crate::media::{
    BlobExtent, BodyPart, Media, MediaAnswer, MediaCaller, MediaSettings, RenditionBody,
    RenditionSource,
};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::compute::ComputePool;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::QueuePlaces;
use crate::runtime::limits::STREAM_CHUNK_BYTES;
use imaging::RenderPath;
use model::media_url::MediaPath;

/// Renditions after which a benchmark stops; their times take 8 bytes each.
const BENCH_RENDITIONS_MAX: usize = 1_000_000;

/// Percentiles of latencies, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyPercentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

impl LatencyPercentiles {
    /// Returns the percentiles of `ms` by nearest rank, so that each is one of the values; 0 if `ms` is
    /// empty.
    pub fn from_ms(mut ms: Vec<f64>) -> Self {
        ms.sort_by(f64::total_cmp);
        Self { p50: percentile(&ms, 50), p95: percentile(&ms, 95), p99: percentile(&ms, 99) }
    }
}

/// Returns a percentile of sorted values by nearest rank; 0 if there are no values.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(0.0)
}

/// The result of one operation.
#[derive(Clone, Debug)]
pub struct OperationResult {
    pub operation: BenchOperation,
    /// Display name of the operation.
    pub title: String,
    /// Number of render workers, and of callers that request renditions one after the other.
    pub workers: usize,
    pub renditions: usize,
    /// Seconds from the first request to the last byte.
    pub seconds: f64,
    /// Milliseconds from the request to the last byte of one rendition.
    pub ms: LatencyPercentiles,
    /// Number of renditions by render path.
    pub render_paths: BTreeMap<&'static str, usize>,
    /// Total length of all renditions in bytes.
    pub bytes: u64,
    /// Peak resident memory of the process in bytes; `None` if the system does not report it.
    pub peak_bytes: Option<u64>,
    /// True if `peak_bytes` is the peak of this operation, false if it is the peak of the run so far.
    pub peak_is_own: bool,
}

/// The totals of the renditions of one caller.
#[derive(Default)]
struct WorkerTotals {
    ms: Vec<f64>,
    render_paths: BTreeMap<&'static str, usize>,
    bytes: u64,
}

impl WorkerTotals {
    fn add(&mut self, other: Self) {
        self.ms.extend(other.ms);
        for (path, count) in other.render_paths {
            *self.render_paths.entry(path).or_default() += count;
        }
        self.bytes += other.bytes;
    }
}

/// The state that the callers of one measurement share.
struct MeasurementRun {
    stopwatch: Stopwatch,
    next: AtomicUsize,
    failed: AtomicBool,
}

impl MeasurementRun {
    /// Returns the index of the next rendition, or `None` if the measurement is complete.
    fn next(&self, effort: BenchEffort) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let is_incomplete =
            index < effort.renditions_min || self.stopwatch.elapsed() < effort.time;
        let continues = is_incomplete && index < BENCH_RENDITIONS_MAX;
        // After a failure there is no result, so the other callers stop.
        Some(index).filter(|_| continues && !self.failed.load(Ordering::Relaxed))
    }
}

/// The photographs of a run, and the parts of the server that render them.
pub(super) struct RenditionBench<'a> {
    archive: &'a OpenArchive,
    config: &'a Config,
    photographs: &'a [BenchPhotograph],
    effort: BenchEffort,
    runtime: &'a Runtime,
    settings: MediaSettings,
    operator: Principal,
}

impl<'a> RenditionBench<'a> {
    /// Prepares the measurement. Fails if the watermark cannot be created from the settings.
    pub(super) fn new(
        archive: &'a OpenArchive,
        config: &'a Config,
        photographs: &'a [BenchPhotograph],
        effort: BenchEffort,
        runtime: &'a Runtime,
    ) -> Result<Self> {
        let settings = MediaSettings::from_config(config)?;
        let operator = Principal::operator();
        Ok(Self { archive, config, photographs, effort, runtime, settings, operator })
    }

    /// Creates `workers` media sections, one per caller, which share one compute pool.
    ///
    /// In a shared section, equal requests of two callers would be coalesced into one render, and the
    /// measured rate would be too high.
    pub(super) fn clients(&self, workers: usize) -> Result<Vec<Media>> {
        // A caller may request its next rendition before its worker is idle again.
        let places = QueuePlaces::new(workers, 1.0);
        let compute = ComputePool::start(workers, places, self.config.media.memory_bytes)?;
        let OpenArchive { db, originals, .. } = self.archive;
        let cache = self.config.cache_dir();
        let mut clients = Vec::with_capacity(workers);
        for _ in 0..workers {
            let settings = self.settings.clone();
            let orders = Orders::new(db.clone(), None);
            let client =
                Media::start(settings, orders, originals.clone(), compute.clone(), &cache)?;
            clients.push(client);
        }
        Ok(clients)
    }

    /// Renders with one caller per section in `media` until the measurement is complete.
    pub(super) fn measure(
        &self,
        operation: BenchOperation,
        media: &[Media],
        stop: &StopFlag,
    ) -> Result<OperationResult, BenchError> {
        let first = media.first();
        // The sections share the pool and the originals, so one section warms them up for all.
        for media in first.iter().cycle().take(self.effort.warmup) {
            self.render_one(operation, media, 0)?;
        }
        let peak_is_own = peak::reset();
        let run = MeasurementRun {
            stopwatch: Stopwatch::start(),
            next: AtomicUsize::new(0),
            failed: false.into(),
        };
        let results = thread::scope(|scope| {
            let run = &run;
            let callers: Vec<_> = media
                .iter()
                .map(|media| scope.spawn(move || self.call(operation, media, run, stop)))
                .collect();
            let ended = callers.into_iter().map(|caller| match caller.join() {
                Ok(totals) => totals,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect::<Result<Vec<WorkerTotals>>>()
        });
        let seconds = run.stopwatch.elapsed().as_secs_f64();
        let mut all = WorkerTotals::default();
        results?.into_iter().for_each(|totals| all.add(totals));
        // Checked only now, because the caller threads have to end first.
        stop.check()?;
        Ok(OperationResult {
            operation,
            title: operation.title(self.config),
            workers: media.len(),
            renditions: all.ms.len(),
            seconds,
            ms: LatencyPercentiles::from_ms(all.ms),
            render_paths: all.render_paths,
            bytes: all.bytes,
            peak_bytes: peak::bytes(),
            peak_is_own,
        })
    }

    /// Runs one caller, which requests one rendition after the other.
    fn call(
        &self,
        operation: BenchOperation,
        media: &Media,
        run: &MeasurementRun,
        stop: &StopFlag,
    ) -> Result<WorkerTotals> {
        let mut totals = WorkerTotals::default();
        while let Some(index) = run.next(self.effort)
            && !stop.is_set()
        {
            let watch = Stopwatch::start();
            let rendered = self.render_one(operation, media, index);
            let ms = watch.elapsed_ms();
            let (path, bytes) =
                rendered.inspect_err(|_| run.failed.store(true, Ordering::Relaxed))?;
            totals.ms.push(ms);
            *totals.render_paths.entry(path.as_str()).or_default() += 1;
            totals.bytes += bytes;
        }
        Ok(totals)
    }

    /// Renders the `index`th rendition and reads all of it; returns its render path and its length in bytes.
    fn render_one(
        &self,
        operation: BenchOperation,
        media: &Media,
        index: usize,
    ) -> Result<(RenderPath, u64)> {
        let BenchPhotograph { key, asset } = &self.photographs[index % self.photographs.len()];
        let text = operation.path(key, asset.upright(), index as u64);
        let path = MediaPath::parse(&text).map_err(Error::internal)?;
        let timeout = Duration::from_secs(u64::from(self.config.server.request_timeout_s));
        let obtained = self.runtime.block_on(async {
            let principal = Some(&self.operator);
            let caller = MediaCaller { principal, agr: None, now: clock::now() };
            match media.resolve(&path, caller).await? {
                MediaAnswer::Rendition(answer) => media.obtain(&answer, timeout).await,
                MediaAnswer::Page(..) | MediaAnswer::Text(_) | MediaAnswer::File(_) => {
                    Err(Error::internal("no rendition"))
                }
            }
        });
        let obtained = obtained.map_err(|cause| with_url(&text, &cause))?;
        // A rendition from the cache would measure the cache.
        let RenditionSource::Rendered { render_path, .. } = obtained.source else {
            return Err(with_url(&text, &Error::internal("it was not rendered")));
        };
        let bytes = deliver(media, &obtained.body).map_err(|cause| with_url(&text, &cause))?;
        Ok((render_path, bytes))
    }
}

fn with_url(url: &str, cause: &Error) -> Error {
    Error::new(cause.kind(), format!("{url}: {cause}"))
}

/// Reads the parts of a body in the store, as a server does to send them; returns the length in bytes.
fn deliver(media: &Media, body: &RenditionBody) -> Result<u64> {
    media.check_extents(body)?;
    let mut sent = 0;
    for part in body.parts() {
        match part {
            BodyPart::Memory(bytes) => sent += bytes.len() as u64,
            BodyPart::Store(extent) => {
                for start in extent.range.clone().step_by(STREAM_CHUNK_BYTES) {
                    let end = extent.range.end.min(start + STREAM_CHUNK_BYTES as u64);
                    let chunk = BlobExtent { range: start..end, ..extent.clone() };
                    sent += media.read_extent(&chunk)?.len() as u64;
                }
            }
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let check = |ms: Vec<f64>, expected: [f64; 3]| {
            let [p50, p95, p99] = expected;
            assert_eq!(LatencyPercentiles::from_ms(ms), LatencyPercentiles { p50, p95, p99 });
        };
        check((1..=100).rev().map(f64::from).collect(), [50.0, 95.0, 99.0]);
        check((1..=5).map(f64::from).collect(), [3.0, 5.0, 5.0]);
        check(vec![7.5], [7.5; 3]);
        check(vec![2.0, 1.0], [1.0, 2.0, 2.0]);
        check(Vec::new(), [0.0; 3]);
    }

    #[test]
    fn a_measurement_ends_by_time_but_not_before_the_least_count() {
        let run = || MeasurementRun {
            stopwatch: Stopwatch::start(),
            next: AtomicUsize::new(0),
            failed: false.into(),
        };
        let least = BenchEffort { time: Duration::ZERO, renditions_min: 3, warmup: 0 };
        let short = run();
        let started: Vec<_> = std::iter::from_fn(|| short.next(least)).collect();
        assert_eq!(started, [0, 1, 2]);
        let long = BenchEffort { time: Duration::from_secs(600), ..least };
        let run = run();
        assert_eq!((0..9).filter_map(|_| run.next(long)).count(), 9);
        run.failed.store(true, Ordering::Relaxed);
        assert_eq!(run.next(long), None, "one that failed ends them all");
    }
}
