//! Readiness of this node compared with the others, for `/health/ready`, metrics and the log.
//!
//! A probe each second tests the abilities of the node: to read the database through every kind of
//! connection, to search, to reach the originals and to write to its disk. The node publishes its faults in
//! its row of the table `nodes` and reads the faults of the other nodes.
//!
//! The node is not ready if a different node has fewer faults, all of them among its own, so that a load
//! balancer sends requests there. If all nodes have the same fault, all stay ready: partial service is better
//! than none. If the database cannot be read, the faults of the other nodes are unknown: the node is not
//! ready, and the load balancer's second check (`/health/serving`) decides.

mod probes;
mod verdict;

use std::{convert::Infallible, sync::Arc};

use parking_lot::Mutex;
use strum::IntoEnumIterator;
use tokio::sync::oneshot;

use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{ClusterNode, NodeFault, Volume};
use crate::runtime::clock::Stopwatch;
use crate::runtime::telemetry;
use crate::storage::blobs::BlobStore;
use crate::storage::database::Db;
use crate::storage::search::SearchEngine;
use probes::ReadinessProbes;
pub use probes::write_probe;
pub use verdict::ReadinessVerdict;

/// The components that a probe checks.
#[derive(Clone)]
pub struct ProbedParts {
    pub db: Db,
    pub store: BlobStore,
    pub search: SearchEngine,
    pub node: ClusterNode,
    pub data: Volume,
    /// The folder of originals, if it may be on a disk of its own.
    pub originals: Option<Volume>,
    /// Size of the largest file that may be ingested, in bytes. The disk should have room for one.
    pub file_bytes_max: u64,
}

/// Holds the readiness of this node. Cheap to clone.
#[derive(Clone)]
pub struct Readiness {
    inner: Arc<ReadinessInner>,
}

struct ReadinessInner {
    parts: ProbedParts,
    current: Mutex<TimedVerdict>,
}

struct TimedVerdict {
    verdict: ReadinessVerdict,
    since: Stopwatch,
}

impl Readiness {
    /// Starts as not ready, until the first probe has ended.
    pub fn new(parts: ProbedParts) -> Self {
        let current =
            TimedVerdict { verdict: ReadinessVerdict::starting(), since: Stopwatch::start() };
        Self { inner: Arc::new(ReadinessInner { parts, current: Mutex::new(current) }) }
    }

    /// Returns the result of the last probe.
    pub fn verdict(&self) -> ReadinessVerdict {
        let current = self.inner.current.lock();
        current.verdict.clone()
    }

    /// Creates the job that probes the node; `first_probe` is notified after the first probe.
    pub fn job(&self, first_probe: oneshot::Sender<()>) -> impl BackgroundJob + use<> {
        let probes = ReadinessProbes::new(self.inner.parts.clone());
        ReadinessJob { readiness: self.clone(), probes, first_probe: Some(first_probe) }
    }

    /// Stores and publishes the result of a probe, and logs it if it differs from the previous one.
    fn set_verdict(&self, verdict: &ReadinessVerdict) {
        let faults: Vec<NodeFault> = verdict.faults.iter().map(|(fault, _)| *fault).collect();
        self.inner.parts.node.report(&faults);
        metrics::gauge!(telemetry::READY).set(u8::from(verdict.is_ready));
        for fault in NodeFault::iter() {
            let is_present = u8::from(faults.contains(&fault));
            metrics::gauge!(telemetry::FAULT, "fault" => fault.as_str()).set(is_present);
        }
        let mut current = self.inner.current.lock();
        let previous = std::mem::replace(&mut current.verdict, verdict.clone());
        if previous.is_same(verdict) {
            return;
        }
        let seconds = current.since.elapsed().as_secs();
        current.since = Stopwatch::start();
        // Requests read the verdict under this lock, and writing the log may block.
        drop(current);
        let why = verdict.causes();
        if !verdict.is_ready {
            tracing::error!("not ready: {why}");
        } else if !verdict.faults.is_empty() {
            tracing::warn!("{why}; no other node can do more, so this one stays ready");
        } else if !previous.faults.is_empty() {
            // Before the first probe there were no faults either.
            tracing::info!(seconds, "ready: all faults are gone");
        }
    }
}

/// Probes the node each second.
struct ReadinessJob {
    readiness: Readiness,
    probes: ReadinessProbes,
    first_probe: Option<oneshot::Sender<()>>,
}

impl BackgroundJob for ReadinessJob {
    type Error = Infallible;

    fn spec(&self) -> JobSpec {
        JobSpec::every("readiness", probes::PROBE_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome, Infallible> {
        let verdict = self.probes.probe().await;
        self.readiness.set_verdict(&verdict);
        if let Some(sender) = self.first_probe.take() {
            // The start may have stopped waiting for the first probe.
            sender.send(()).ok();
        }
        Ok(RunOutcome::Done)
    }
}
