//! Whether this node can do what others can, for `/health/ready`, metrics and the log.
//!
//! A look each second finds out what the node cannot do now: read the database through every kind of
//! connection, search, reach the originals, write its disk. It tells the other nodes (in its row of the
//! table `nodes`) and reads what they tell. A node that has a fault which another one does not have is not
//! ready, so that a balancer sends requests there; where all have it, it stays: what it can do is
//! more than nothing. Of a database that cannot be read nobody can ask who else reads it: not ready, and
//! the balancer's second check (`/health/serving`) has the last word.

mod probes;
mod verdict;

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::oneshot;

use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{ClusterNode, NodeFault};
use crate::runtime::clock::Stopwatch;
use crate::runtime::telemetry;
use crate::storage::blobs::BlobStore;
use crate::storage::database::Db;
use crate::storage::search::SearchEngine;
use probes::ReadinessProbes;
pub use probes::write_probe;
pub use verdict::ReadinessVerdict;

/// What a node is looked at by.
#[derive(Clone)]
pub struct ProbedParts {
    /// The database.
    pub db: Db,
    /// The originals.
    pub store: BlobStore,
    /// Search of this node.
    pub search: SearchEngine,
    /// The node.
    pub node: ClusterNode,
    /// The data directory.
    pub dir: PathBuf,
    /// Bytes of the largest file that may come in: there should be room for one.
    pub file_bytes_max: u64,
}

/// Whether this node is ready; cheap to clone.
#[derive(Clone)]
pub struct Readiness {
    inner: Arc<ReadinessInner>,
}

struct ReadinessInner {
    parts: ProbedParts,
    standing: Mutex<TimedVerdict>,
}

struct TimedVerdict {
    verdict: ReadinessVerdict,
    since: Stopwatch,
}

impl Readiness {
    /// Of a node that was not looked at yet: not ready.
    #[must_use]
    pub fn new(parts: ProbedParts) -> Self {
        let standing =
            TimedVerdict { verdict: ReadinessVerdict::starting(), since: Stopwatch::start() };
        Self { inner: Arc::new(ReadinessInner { parts, standing: Mutex::new(standing) }) }
    }

    /// What the last look found.
    #[must_use]
    pub fn verdict(&self) -> ReadinessVerdict {
        let standing = self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner);
        standing.verdict.clone()
    }

    /// The job that looks at the node; `looked` is told after the first look.
    #[must_use]
    pub fn job(&self, looked: oneshot::Sender<()>) -> impl BackgroundJob + use<> {
        let looks = ReadinessProbes::new(self.inner.parts.clone());
        ReadinessJob { readiness: self.clone(), probes: looks, first_probe: Some(looked) }
    }

    /// Takes note of what a look found, and tells of it where it is something else than before.
    fn set_verdict(&self, verdict: &ReadinessVerdict) {
        let faults: Vec<NodeFault> = verdict.faults.iter().map(|(fault, _)| *fault).collect();
        self.inner.parts.node.report(&faults);
        metrics::gauge!(telemetry::READY).set(u8::from(verdict.is_ready));
        for fault in NodeFault::ALL {
            let has = u8::from(faults.contains(&fault));
            metrics::gauge!(telemetry::FAULT, "fault" => fault.as_str()).set(has);
        }
        let mut standing = self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut standing.verdict, verdict.clone());
        if before.is_same(verdict) {
            return;
        }
        let seconds = standing.since.elapsed().as_secs();
        standing.since = Stopwatch::start();
        drop(standing);
        let why = verdict.causes();
        match (verdict.is_ready, verdict.faults.is_empty()) {
            (false, _) => tracing::error!("not ready: {why}"),
            (true, false) => {
                tracing::warn!("{why}; no other node can do more, so this one stays ready");
            }
            // Nothing was wrong before the first look.
            (true, true) if before.faults.is_empty() => {}
            (true, true) => tracing::info!(seconds, "ready, nothing is wrong any more"),
        }
    }
}

/// Looks at the node each second.
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
        if let Some(looked) = self.first_probe.take() {
            // Whoever starts may not wait for it.
            looked.send(()).ok();
        }
        Ok(RunOutcome::Done)
    }
}
