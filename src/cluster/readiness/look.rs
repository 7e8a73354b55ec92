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
pub(super) const EACH: Duration = Duration::from_secs(1);
/// Time that a read of the database may take. A balancer that asked for itself would wait as long.
const READ_MAX: Duration = Duration::from_secs(2);
/// Time that a look at originals or disk may take: a little more than the store gives itself.
const OUTSIDE_MAX: Duration = Duration::from_secs(3);
/// The part of that for which a look waits: as a rule the answer is there at once.
const OUTSIDE_WAIT: Duration = Duration::from_millis(300);
/// Time between two looks at originals and disk while nothing is wrong: a small request or file each.
const OUTSIDE_EACH: Duration = Duration::from_secs(2);
/// Looks in a row that fail before a fault of originals or disk counts: one may be chance.
const FAILURES_MIN: u32 = 2;
/// Time for which the beat of another node may stand still until it is not counted on: more than two beats.
const STILL_MAX: Duration = Duration::from_secs(5);
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
    beats: HashMap<Uuid, (i64, Stopwatch)>,
    /// Answers of connections that search and write, which may wait behind what is under way there.
    reached: Vec<oneshot::Receiver<Result<(), DbError>>>,
    /// Why one of them cannot be used, as far as that is known.
    unreached: Option<String>,
    /// Whether the database could not be used at the last look.
    was_away: bool,
}

/// Something outside the process that is looked at on a thread that may block.
#[derive(Default)]
struct ExternalProbe {
    under_way: Option<JoinHandle<Result<(), String>>>,
    /// Since the last look began.
    last: Option<Stopwatch>,
    failures: u32,
    why: String,
}

impl ExternalProbe {
    /// Begins to look where it is time.
    fn begin(&mut self, look: impl FnOnce() -> Result<(), String> + Send + 'static) {
        let is_due = self.failures > 0
            || self.last.as_ref().is_none_or(|last| last.elapsed() >= OUTSIDE_EACH);
        if self.under_way.is_none() && is_due {
            self.last = Some(Stopwatch::start());
            self.under_way = Some(tokio::task::spawn_blocking(look));
        }
    }

    /// What is wrong, as far as it is known by now.
    async fn end(&mut self) -> Option<String> {
        if let Some(task) = &mut self.under_way {
            let outcome = match timeout(OUTSIDE_WAIT, task).await {
                Ok(done) => {
                    self.under_way = None;
                    Some(done.unwrap_or_else(|cause| Err(cause.to_string())))
                }
                Err(_) if self.last.as_ref().is_some_and(|last| last.elapsed() < OUTSIDE_MAX) => {
                    None
                }
                Err(_) => Some(Err(format!("there is no answer within {OUTSIDE_MAX:?}"))),
            };
            match outcome {
                Some(Ok(())) => self.failures = 0,
                Some(Err(why)) => {
                    (self.failures, self.why) = (self.failures.saturating_add(1), why);
                }
                None => {}
            }
        }
        (self.failures >= FAILURES_MIN).then(|| self.why.clone())
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
        Self { parts, store, disk, beats, reached: Vec::new(), unreached: None, was_away: false }
    }

    pub(super) async fn look(&mut self) -> ReadinessVerdict {
        self.begin();
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
        ReadinessVerdict::of(faults, self.parts.node.life(), nodes.as_deref())
    }

    fn begin(&mut self) {
        let store = self.parts.store.clone();
        self.store.begin(move || store.look().map_err(|cause| cause.to_string()));
        // Nodes over one directory have one disk: where the database is in it there is nobody to step
        // aside for. A node that only reads takes no files in.
        if !self.parts.db.is_far() || self.parts.db.only_reads() {
            return;
        }
        let (dir, wanted) = (self.parts.dir.clone(), self.parts.file_bytes_max);
        self.disk.begin(move || {
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
            Ok(nodes) if !self.parts.db.is_far() => self.reads_anew().await.map(|()| nodes),
            other => other,
        };
        match nodes {
            Ok(nodes) => (self.others(), nodes.map(|nodes| self.alive(nodes))),
            Err(why) => (Some(why), None),
        }
    }

    /// Reads SQLite's file through a new connection: those that are open have its pages in memory.
    async fn reads_anew(&self) -> Result<(), String> {
        let db = self.parts.db.clone();
        let read = move || db.feed()?.read(|tx| tx.list_nodes()).map(drop);
        let read = async { tokio::task::spawn_blocking(read).await.map_err(|_| DbError::Closed)? };
        within(read).await.map(drop)
    }

    /// Those of the nodes whose beats rise. Others learn of a killed one later, when they end its life.
    fn alive(&mut self, nodes: Vec<NodeRow>) -> Vec<NodeRow> {
        self.beats.retain(|life, _| nodes.iter().any(|row| row.life == *life));
        let rises = |row: &NodeRow| {
            let fresh = || (row.beat, Stopwatch::start());
            let seen = self.beats.entry(row.life).or_insert_with(fresh);
            if seen.0 != row.beat {
                *seen = fresh();
            }
            seen.1.elapsed() < STILL_MAX
        };
        nodes.into_iter().filter(rises).collect()
    }

    /// Why a connection that searches or writes cannot be used. It may be busy for long, so its answer
    /// counts when it comes.
    fn others(&mut self) -> Option<String> {
        let (mut answers, mut failed) = (0, None);
        self.reached.retain_mut(|one| match one.try_recv() {
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
        if failed.is_some() || (answers > 0 && self.reached.is_empty()) {
            self.unreached = failed;
        }
        if self.reached.is_empty() {
            self.reached = self.parts.db.reach();
        }
        self.unreached.clone()
    }

    fn search(&self) -> Option<String> {
        match self.parts.search.standing() {
            IndexStatus::Ready | IndexStatus::Disabled => None,
            IndexStatus::Building { done, count } => {
                Some(format!("{done} of {count} items are in it"))
            }
        }
    }
}
