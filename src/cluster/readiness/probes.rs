//! One look at a node after the other.

use std::{collections::HashMap, fs, future::Future, io, path::Path, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use uuid::Uuid;

use super::{ProbedParts, verdict::ReadinessVerdict};
use crate::cluster::membership::NodeFault;
use crate::runtime::clock::Stopwatch;
use crate::runtime::modes;
use crate::storage::database::{DbError, NodeRow, ReadTx};
use crate::storage::search::IndexStatus;

/// Time between two looks.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Time that a read of the database may take. A balancer that asked for itself would wait as long.
const READ_MAX: Duration = Duration::from_secs(2);
/// Time that a look at originals or disk may take: a little more than the store gives itself.
const EXTERNAL_PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// The part of that for which a look waits: as a rule the answer is there at once.
const EXTERNAL_PROBE_WAIT: Duration = Duration::from_millis(300);
/// Time between two looks at originals and disk while nothing is wrong: a small request or file each.
const EXTERNAL_PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Looks in a row that fail before a fault of originals or disk counts: one may be chance.
const FAILURES_MIN: u32 = 2;
/// Time for which the beat of another node may stand still until it is not counted on: more than two beats.
const PEER_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a file that tells whether there is room; a database takes as much to be opened.
const PROBE_BYTES: usize = 64 * 1024;

/// Writes a small file into `dir` and removes it.
pub fn write_probe(dir: &Path) -> io::Result<()> {
    let path = dir.join(format!(".probe-{}", std::process::id()));
    let written = fs::write(&path, [0; PROBE_BYTES]);
    drop(fs::remove_file(&path));
    written
}

/// What was seen of a node so far.
pub(super) struct ReadinessProbes {
    parts: ProbedParts,
    store: ExternalProbe,
    disk: ExternalProbe,
    /// The beats of the nodes, and since when each stands still.
    heartbeats: HashMap<Uuid, (i64, Stopwatch)>,
    /// Answers of connections that search and write, which may wait behind what is under way there.
    probes_in_flight: Vec<oneshot::Receiver<Result<(), DbError>>>,
    /// Why one of them cannot be used, as far as that is known.
    connection_error: Option<String>,
    /// Whether the database could not be used at the last look.
    was_away: bool,
}

/// Something outside the process that is looked at on a thread that may block.
#[derive(Default)]
struct ExternalProbe {
    in_flight: Option<JoinHandle<Result<(), String>>>,
    /// Since the last look began.
    last: Option<Stopwatch>,
    failures: u32,
    last_error: String,
}

impl ExternalProbe {
    /// Begins to look where it is time.
    fn start_probe(&mut self, look: impl FnOnce() -> Result<(), String> + Send + 'static) {
        let is_due = self.failures > 0
            || self.last.as_ref().is_none_or(|last| last.elapsed() >= EXTERNAL_PROBE_INTERVAL);
        if self.in_flight.is_none() && is_due {
            self.last = Some(Stopwatch::start());
            self.in_flight = Some(tokio::task::spawn_blocking(look));
        }
    }

    /// What is wrong, as far as it is known by now.
    async fn end(&mut self) -> Option<String> {
        if let Some(task) = &mut self.in_flight {
            let outcome = match timeout(EXTERNAL_PROBE_WAIT, task).await {
                Ok(done) => {
                    self.in_flight = None;
                    Some(done.unwrap_or_else(|cause| Err(cause.to_string())))
                }
                Err(_)
                    if self
                        .last
                        .as_ref()
                        .is_some_and(|last| last.elapsed() < EXTERNAL_PROBE_TIMEOUT) =>
                {
                    None
                }
                Err(_) => {
                    Some(Err(format!("there is no answer within {EXTERNAL_PROBE_TIMEOUT:?}")))
                }
            };
            match outcome {
                Some(Ok(())) => self.failures = 0,
                Some(Err(why)) => {
                    (self.failures, self.last_error) = (self.failures.saturating_add(1), why);
                }
                None => {}
            }
        }
        (self.failures >= FAILURES_MIN).then(|| self.last_error.clone())
    }
}

/// The end of `read`, or why there is none; one that was shed says nothing.
async fn within<T>(read: impl Future<Output = Result<T, DbError>>) -> Result<Option<T>, String> {
    match timeout(READ_MAX, read).await {
        Ok(Ok(found)) => Ok(Some(found)),
        Ok(Err(DbError::Overloaded)) => Ok(None),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => Err(format!("there is no answer within {READ_MAX:?}")),
    }
}

impl ReadinessProbes {
    pub(super) fn new(parts: ProbedParts) -> Self {
        let (store, disk) = (ExternalProbe::default(), ExternalProbe::default());
        let beats = HashMap::new();
        Self {
            parts,
            store,
            disk,
            heartbeats: beats,
            probes_in_flight: Vec::new(),
            connection_error: None,
            was_away: false,
        }
    }

    pub(super) async fn probe(&mut self) -> ReadinessVerdict {
        self.start_probes();
        let (database, nodes) = self.database().await;
        if self.was_away && database.is_none() {
            // Those that broke are opened now, and not by whoever needs them first.
            let db = self.parts.db.clone();
            drop(tokio::task::spawn_blocking(move || db.open_connections()));
        }
        self.was_away = database.is_some();
        let found = [
            (NodeFault::Database, database),
            (NodeFault::Search, self.search()),
            (NodeFault::Store, self.store.end().await),
            (NodeFault::Disk, self.disk.end().await),
        ];
        let faults = found.into_iter().filter_map(|(fault, why)| Some((fault, why?))).collect();
        ReadinessVerdict::of(faults, self.parts.node.incarnation(), nodes.as_deref())
    }

    fn start_probes(&mut self) {
        let store = self.parts.store.clone();
        self.store.start_probe(move || store.check_reachable().map_err(|cause| cause.to_string()));
        // Nodes over one directory have one disk: where the database is in it there is nobody to step
        // aside for. A node that only reads takes no files in.
        if !self.parts.db.is_remote() || self.parts.db.is_read_only() {
            return;
        }
        let (dir, wanted) = (self.parts.dir.clone(), self.parts.file_bytes_max);
        self.disk.start_probe(move || {
            let failed = |cause: io::Error| format!("{}: {cause}", dir.display());
            write_probe(&dir).map_err(failed)?;
            match modes::free_bytes(&dir) {
                Ok(free) if free < wanted => Err(format!(
                    "{}: {free} bytes are free, fewer than media.file_bytes_max",
                    dir.display()
                )),
                // What cannot be told is not wrong.
                Ok(_) | Err(_) => Ok(()),
            }
        });
    }

    /// Why the database cannot be used, and the nodes that it tells of.
    async fn database(&mut self) -> (Option<String>, Option<Vec<NodeRow>>) {
        let read = |tx: &ReadTx<'_>| Ok((tx.list_nodes()?, tx.claimed_store()?));
        let found = within(self.parts.db.read(read)).await;
        if let Ok(Some((_, claim))) = &found {
            self.parts.store.note_claim(claim.as_deref());
        }
        let nodes = match found.map(|found| found.map(|(nodes, _)| nodes)) {
            Ok(nodes) if !self.parts.db.is_remote() => {
                self.probe_new_connection().await.map(|()| nodes)
            }
            other => other,
        };
        match nodes {
            Ok(nodes) => (self.others(), nodes.map(|nodes| self.live_nodes(nodes))),
            Err(why) => (Some(why), None),
        }
    }

    /// Reads SQLite's file through a new connection: those that are open have its pages in memory.
    async fn probe_new_connection(&self) -> Result<(), String> {
        let db = self.parts.db.clone();
        let read = move || db.snapshot_reader()?.read(|tx| tx.list_nodes()).map(drop);
        let read = async { tokio::task::spawn_blocking(read).await.map_err(|_| DbError::Closed)? };
        within(read).await.map(drop)
    }

    /// Those of the nodes whose beats rise. Others learn of a killed one later, when they end its life.
    fn live_nodes(&mut self, nodes: Vec<NodeRow>) -> Vec<NodeRow> {
        self.heartbeats.retain(|life, _| nodes.iter().any(|row| row.incarnation == *life));
        let rises = |row: &NodeRow| {
            let fresh = || (row.heartbeat, Stopwatch::start());
            let seen = self.heartbeats.entry(row.incarnation).or_insert_with(fresh);
            if seen.0 != row.heartbeat {
                *seen = fresh();
            }
            seen.1.elapsed() < PEER_HEARTBEAT_TIMEOUT
        };
        nodes.into_iter().filter(rises).collect()
    }

    /// Why a connection that searches or writes cannot be used. It may be busy for long, so its answer
    /// counts when it comes.
    fn others(&mut self) -> Option<String> {
        let (mut answers, mut failed) = (0, None);
        self.probes_in_flight.retain_mut(|one| match one.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => true,
            Ok(Err(cause)) => {
                (answers, failed) = (answers + 1, Some(cause.to_string()));
                false
            }
            Ok(Ok(())) | Err(oneshot::error::TryRecvError::Closed) => {
                answers += 1;
                false
            }
        });
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
