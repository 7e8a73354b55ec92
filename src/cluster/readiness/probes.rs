//! Probes a node: database, search, originals and disk.

use std::{collections::HashMap, fs, future::Future, io, path::Path, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use uuid::Uuid;

use super::{ProbedParts, verdict::ReadinessVerdict};
use crate::cluster::membership::NodeFault;
use crate::runtime::clock::{Stopwatch, has_elapsed};
use crate::storage::database::{DbError, NodeRow, outage};
use crate::storage::search::IndexStatus;

/// Interval between probes of the node.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a database read. A load balancer that probed the database itself would wait as long.
const READ_MAX: Duration = Duration::from_secs(2);
/// Timeout of a probe of originals or disk: slightly longer than the timeout of the store itself.
const EXTERNAL_PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The part of that timeout for which a probe waits. Normally the answer arrives at once.
const EXTERNAL_PROBE_WAIT: Duration = Duration::from_millis(300);
/// Interval between probes of originals and disk while they succeed: a small request or file each.
const EXTERNAL_PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Consecutive failed probes before a fault of originals or disk counts: a single failure may be chance.
const FAILURES_MIN: u32 = 2;
/// Age at which the heartbeat of a peer no longer counts as alive: more than two intervals.
const PEER_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size in bytes of the file that tests for free space: as many as opening a database writes.
const PROBE_BYTES: usize = 64 * 1024;

/// Writes a small file to `dir` and removes it.
///
/// Fails when the directory cannot be written or is full.
pub fn write_probe(dir: &Path) -> io::Result<()> {
    // Several processes may share the directory, so each has its own file.
    let path = dir.join(format!(".probe-{}", std::process::id()));
    let written = fs::write(&path, [0; PROBE_BYTES]);
    drop(fs::remove_file(&path));
    written
}

/// The probes of a node and their findings so far.
pub(super) struct ReadinessProbes {
    parts: ProbedParts,
    store: ExternalProbe,
    disk: ExternalProbe,
    /// The heartbeats of the nodes, and the time since each last rose.
    heartbeats: HashMap<Uuid, (i64, Stopwatch)>,
    /// Pending answers of connections that search and write, which may wait behind work in flight.
    probes_in_flight: Vec<oneshot::Receiver<Result<(), DbError>>>,
    /// The latest known reason that one of these connections cannot be used.
    connection_error: Option<String>,
    /// True if the database could not be used at the last probe.
    was_unavailable: bool,
}

/// A dependency outside the process that is probed on a blocking thread.
#[derive(Default)]
struct ExternalProbe {
    in_flight: Option<JoinHandle<Result<(), String>>>,
    /// Time since the start of the last probe.
    last: Option<Stopwatch>,
    failures: u32,
    last_error: String,
}

impl ExternalProbe {
    /// Starts a probe if it is due.
    fn start_probe(&mut self, probe: impl FnOnce() -> Result<(), String> + Send + 'static) {
        // After a failure, every run probes, so that a recovery is noticed soon.
        let is_due = self.failures > 0 || has_elapsed(self.last, EXTERNAL_PROBE_INTERVAL);
        if self.in_flight.is_none() && is_due {
            self.last = Some(Stopwatch::start());
            self.in_flight = Some(tokio::task::spawn_blocking(probe));
        }
    }

    /// Returns the latest known fault, if any. Waits briefly for a probe in flight.
    async fn end(&mut self) -> Option<String> {
        if let Some(task) = &mut self.in_flight {
            let outcome = match timeout(EXTERNAL_PROBE_WAIT, task).await {
                Ok(result) => {
                    self.in_flight = None;
                    Some(result.unwrap_or_else(|cause| Err(cause.to_string())))
                }
                // The probe still runs within its timeout: there is no result yet.
                Err(_) if !has_elapsed(self.last, EXTERNAL_PROBE_TIMEOUT) => None,
                Err(_) => Some(Err(format!("no answer within {EXTERNAL_PROBE_TIMEOUT:?}"))),
            };
            match outcome {
                Some(Ok(())) => self.failures = 0,
                Some(Err(why)) => {
                    self.failures = self.failures.saturating_add(1);
                    self.last_error = why;
                }
                None => {}
            }
        }
        (self.failures >= FAILURES_MIN).then(|| self.last_error.clone())
    }
}

/// Returns the reason that the data directory in `dir` cannot be written or is almost full.
fn check_disk(
    dir: &Path,
    free_bytes: &io::Result<u64>,
    required_bytes: u64,
) -> Result<(), String> {
    let shown = dir.display();
    write_probe(dir).map_err(|cause| format!("{shown}: {cause}"))?;
    match free_bytes {
        Ok(free) if *free < required_bytes => {
            Err(format!("{shown}: {free} bytes are free, fewer than media.file_bytes_max"))
        }
        // Unknown free space is not a fault.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the result of `read`, or the reason that there is none. Returns `None` if the read was shed, which
/// says nothing about the database.
async fn with_timeout<T>(
    read: impl Future<Output = Result<T, DbError>>,
) -> Result<Option<T>, String> {
    match timeout(READ_MAX, read).await {
        Ok(Ok(found)) => Ok(Some(found)),
        Ok(Err(DbError::Overloaded)) => Ok(None),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => Err(format!("no answer within {READ_MAX:?}")),
    }
}

impl ReadinessProbes {
    pub(super) fn new(parts: ProbedParts) -> Self {
        Self {
            parts,
            store: ExternalProbe::default(),
            disk: ExternalProbe::default(),
            heartbeats: HashMap::new(),
            probes_in_flight: Vec::new(),
            connection_error: None,
            was_unavailable: false,
        }
    }

    pub(super) async fn probe(&mut self) -> ReadinessVerdict {
        self.start_probes();
        let (database, nodes) = self.database().await;
        if self.was_unavailable && database.is_none() {
            // Reopens broken connections now, so that the next request need not do so.
            let db = self.parts.db.clone();
            drop(tokio::task::spawn_blocking(move || db.open_connections()));
        }
        if database.is_none() {
            outage::log_recovery();
        }
        self.was_unavailable = database.is_some();
        let found = [
            (NodeFault::Database, database),
            (NodeFault::Search, self.search()),
            (NodeFault::Store, self.store.end().await),
            (NodeFault::Disk, self.disk.end().await),
        ];
        let faults = found.into_iter().filter_map(|(fault, why)| Some((fault, why?))).collect();
        // Nodes over a local database share its directory and thus one disk, so all have the same faults of
        // the disk.
        let shared = (!self.parts.db.is_remote()).then_some(NodeFault::Disk);
        let incarnation = self.parts.node.incarnation();
        let verdict = ReadinessVerdict::judge(faults, shared, incarnation, nodes.as_deref());
        ReadinessVerdict { mismatch: self.parts.store.mismatch(), ..verdict }
    }

    fn start_probes(&mut self) {
        let store = self.parts.store.clone();
        let originals = self.parts.originals.clone();
        self.store.start_probe(move || {
            // A folder that cannot be examined cannot be reached either.
            drop(originals.map(|volume| volume.record_free_bytes()));
            store.check_reachable().map_err(|cause| cause.to_string())
        });
        let data = self.parts.data.clone();
        let required_bytes = self.parts.file_bytes_max;
        // A read-only node ingests no files.
        let ingests = !self.parts.db.is_read_only();
        self.disk.start_probe(move || {
            let free_bytes = data.record_free_bytes();
            if ingests { check_disk(&data.folder, &free_bytes, required_bytes) } else { Ok(()) }
        });
    }

    /// Returns the reason that the database cannot be used, and the rows of the nodes if it can be read.
    async fn database(&mut self) -> (Option<String>, Option<Vec<NodeRow>>) {
        let read = self.parts.db.read(|tx| Ok((tx.list_nodes()?, tx.claimed_store()?)));
        let found = with_timeout(read).await;
        if let Ok(Some((_, claim))) = &found {
            self.parts.store.note_claim(claim.clone());
        }
        let nodes = match found.map(|found| found.map(|(nodes, _)| nodes)) {
            Ok(nodes) if !self.parts.db.is_remote() => {
                self.probe_new_connection().await.map(|()| nodes)
            }
            other => other,
        };
        match nodes {
            Ok(nodes) => (self.check_connections(), nodes.map(|nodes| self.live_nodes(nodes))),
            Err(why) => (Some(why), None),
        }
    }

    /// Reads the SQLite file through a new connection: open connections have its pages in memory.
    async fn probe_new_connection(&self) -> Result<(), String> {
        let db = self.parts.db.clone();
        let read = tokio::task::spawn_blocking(move || {
            db.commit_watcher()?.read(|tx| tx.list_nodes()).map(drop)
        });
        with_timeout(async { read.await.map_err(|_| DbError::Closed)? }).await.map(drop)
    }

    /// Returns the nodes whose heartbeats rise. This finds a killed node before other nodes end its
    /// incarnation.
    fn live_nodes(&mut self, nodes: Vec<NodeRow>) -> Vec<NodeRow> {
        self.heartbeats
            .retain(|incarnation, _| nodes.iter().any(|row| row.incarnation == *incarnation));
        nodes.into_iter().filter(|row| self.is_alive(row)).collect()
    }

    /// Notes the heartbeat of a node. Returns whether it rose within [`PEER_HEARTBEAT_TIMEOUT`].
    fn is_alive(&mut self, row: &NodeRow) -> bool {
        let seen = self
            .heartbeats
            .entry(row.incarnation)
            .or_insert_with(|| (row.heartbeat, Stopwatch::start()));
        if seen.0 != row.heartbeat {
            *seen = (row.heartbeat, Stopwatch::start());
        }
        seen.1.elapsed() < PEER_HEARTBEAT_TIMEOUT
    }

    /// Returns the reason that a connection that searches or writes cannot be used. The connection may be
    /// busy for long, so its answer counts when it arrives.
    fn check_connections(&mut self) -> Option<String> {
        let mut answers = 0;
        let mut failed = None;
        self.probes_in_flight.retain_mut(|probe| match probe.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => true,
            Ok(Err(cause)) => {
                answers += 1;
                failed = Some(cause.to_string());
                false
            }
            Ok(Ok(())) | Err(oneshot::error::TryRecvError::Closed) => {
                answers += 1;
                false
            }
        });
        // One failure counts at once. Success is only known when all connections have answered.
        if failed.is_some() || (answers > 0 && self.probes_in_flight.is_empty()) {
            self.connection_error = failed;
        }
        if self.probes_in_flight.is_empty() {
            self.probes_in_flight = self.parts.db.check_connections();
        }
        self.connection_error.clone()
    }

    fn search(&self) -> Option<String> {
        match self.parts.search.status() {
            IndexStatus::Ready | IndexStatus::Disabled => None,
            IndexStatus::Building { done, count } => {
                Some(format!("{done} of {count} items are in it"))
            }
        }
    }
}
