//! Cluster membership: nodes, their heartbeats and their leases. A node is a process that serves one database
//! and one store.
//!
//! A process registers an *incarnation* of its node in the database and raises its heartbeat to show that it
//! is alive. All work that a node has in flight (messages that it sends, items that it delivers to readers)
//! refers to its incarnation. So does a *lease*: the right to do a job that one node does at a time. The end
//! of an incarnation releases all of it in one transaction: at once when the process stops or its node
//! restarts, and after [`limits::HEARTBEAT_TIMEOUT`] when its heartbeat has expired.
//!
//! Clocks of other machines do not matter. Each node measures the age of a heartbeat with its own monotonic
//! clock, and only while it can write to the database itself. A process that was paused for longer than the
//! timeout finds that its incarnation has ended, and begins a new one. Work that must happen exactly once
//! checks its lease or incarnation in the transaction that does the work; [`ClusterNode::holds`] alone is a
//! hint whether to begin.

mod description;
mod figures;
mod heartbeat;
mod in_flight;
pub mod limits;
mod observe;
mod slot;
#[cfg(test)]
mod tests;
mod volume;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use strum::{EnumIter, IntoStaticStr};
use tokio::sync::watch as channel;
use uuid::Uuid;

use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::config::NodeRole;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{Db, DbError, IncarnationStart, NewNode, WriteTx};
pub use description::{NodeDescription, NodeFault, faults_of, node_label, transition_of};
pub use figures::{FigureSources, figures_of, print_figures};
use heartbeat::PeerObservations;
pub use in_flight::InFlightTasks;
use limits::{EXCLUSIVE_RETRY_INTERVAL, HEARTBEAT_TIMEOUT};
pub use observe::{ObservedNode, observe};
use slot::NodeSlot;
pub use volume::Volume;

/// A job that one node does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ClusterLease {
    /// Matches items with notifications, ends embargoes and prepares scheduled mails.
    Matching,
    /// Sends cache purges to the configured CDNs.
    Purging,
    /// Removes data that has expired.
    Sweeping,
    /// Imports files from a watched folder, whose name follows the word in the database.
    Watching,
    /// Creates the demo archive at the first start.
    Starting,
    /// Reads originals in the background and verifies their checksums.
    Scrubbing,
}

model::impl_as_str!(ClusterLease);

/// The leases that a node wants. A transaction that acquires leases reads this list while it holds the write
/// lock, so that a declined lease is not acquired again.
struct RequestedLeases {
    /// True once the node works. It acquires no leases before.
    is_working: bool,
    /// Each lease with its name in the database.
    leases: Vec<(ClusterLease, String)>,
}

impl RequestedLeases {
    fn list(&self) -> Vec<(ClusterLease, String)> {
        if self.is_working { self.leases.clone() } else { Vec::new() }
    }

    fn contains(&self, lease: ClusterLease) -> bool {
        self.leases.iter().any(|(requested, _)| *requested == lease)
    }
}

/// Represents this process in the cluster. Cheap to clone.
#[derive(Clone)]
pub struct ClusterNode {
    inner: Arc<NodeInner>,
}

struct NodeInner {
    db: Db,
    role: NodeRole,
    about: NodeDescription,
    /// The current faults, in the format of the row of this node.
    faults: Mutex<String>,
    /// True while the node stops and accepts no new requests.
    is_draining: AtomicBool,
    state: Mutex<NodeState>,
    requested: Arc<Mutex<RequestedLeases>>,
    /// The leases that this node last knew to be its own. The database may have released them since.
    held: channel::Sender<Vec<ClusterLease>>,
    /// The row of the item log up to which this node no longer serves old versions; `i64::MAX` while it
    /// serves nothing.
    followed: AtomicI64,
    /// Time since the start of the last check that found the item log followed to its end.
    last_end_of_log: Mutex<Stopwatch>,
}

struct NodeState {
    /// `None` if the process only reads.
    slot: Option<NodeSlot>,
    /// Unused slots of the data directory. `None` after the first incarnation has begun, which ends earlier
    /// incarnations of those nodes and of this node.
    idle: Option<Vec<NodeSlot>>,
    /// The current incarnation, or the one that is about to begin.
    incarnation: Uuid,
    /// True if the incarnation has begun and is not known to have ended.
    is_alive: bool,
    /// Time since the last successful heartbeat, measured from the start of its write.
    confirmed: Option<Stopwatch>,
    /// The smallest row of the item log up to which all other nodes have followed it.
    followed_by_others: Option<i64>,
    /// Time since no node has held the lease for matching.
    unmatched_since: Option<Stopwatch>,
}

impl ClusterNode {
    /// Begins an incarnation of this process's node over the data directory `dir`.
    ///
    /// Ends earlier incarnations of the same node, and incarnations of other nodes over that directory that
    /// have no process. The node acquires no leases until it works ([`ClusterNode::work`]), and other nodes
    /// do not wait for it before. Blocks.
    ///
    /// If the database cannot be written, the heartbeat thread begins the incarnation later. A read-only node
    /// has no incarnation.
    pub fn start(
        db: &Db,
        dir: &Path,
        role: NodeRole,
        about: NodeDescription,
        now: Timestamp,
    ) -> Result<Self> {
        let (slot, idle) = if role.is_read_only() {
            (None, None)
        } else {
            let (slot, idle) = acquire_slot(&dir.join("nodes"))?;
            (Some(slot), Some(idle))
        };
        // The other leases are requested by their jobs, because some nodes lack the settings for them.
        let leases = [ClusterLease::Matching, ClusterLease::Purging, ClusterLease::Sweeping];
        let leases = leases.into_iter().filter(|_| role.runs_background_work());
        let leases = leases.map(|lease| (lease, lease.as_str().to_owned())).collect();
        let state = NodeState {
            slot,
            idle,
            incarnation: Uuid::new_v4(),
            is_alive: false,
            confirmed: None,
            followed_by_others: None,
            unmatched_since: None,
        };
        let node = Self {
            inner: Arc::new(NodeInner {
                db: db.clone(),
                role,
                about,
                faults: Mutex::new(description::STARTING.to_owned()),
                is_draining: AtomicBool::new(false),
                state: Mutex::new(state),
                requested: Arc::new(Mutex::new(RequestedLeases { is_working: false, leases })),
                held: channel::Sender::new(Vec::new()),
                followed: AtomicI64::new(i64::MAX),
                last_end_of_log: Mutex::new(Stopwatch::start()),
            }),
        };
        if !role.is_read_only() {
            match node.begin(now).map_err(Error::from) {
                Err(cause) if cause.kind() == ErrorKind::Unavailable => {
                    tracing::error!(
                        "membership: the database cannot be written, this node joins later: \
                         {cause}"
                    );
                }
                outcome => outcome?,
            }
        }
        Ok(node)
    }

    /// Starts to work: acquires the free leases that its role wants. From now on, other nodes wait until this
    /// node has followed the item log ([`ClusterNode::set_followed`]). Blocks.
    ///
    /// If the database cannot be written, the heartbeat thread does this later.
    pub fn work(&self, now: Timestamp) {
        self.requested_leases().is_working = true;
        let state = self.state();
        let incarnation = state.incarnation;
        let is_alive = state.is_alive;
        drop(state);
        if !is_alive {
            return;
        }
        let (followed, faults) = self.heartbeat_position();
        let requested = Arc::clone(&self.inner.requested);
        let acquired = self.inner.db.write_urgent(move |tx| {
            // The heartbeat comes before any request is served, so that other nodes wait for this one.
            tx.write_heartbeat(incarnation, followed, &faults, now)?;
            Ok((acquire_free(tx, &requested, incarnation)?, tx.list_nodes()?.len() > 1))
        });
        let is_one_of_many = match acquired {
            Ok((held, others)) => {
                self.set_held(held);
                others
            }
            Err(cause) => {
                tracing::error!("membership: leases cannot be acquired yet: {cause}");
                true
            }
        };
        if is_one_of_many {
            // Nodes that polled just before this write may purge a CDN without waiting for this node. The
            // wait is longer than their poll interval.
            clock::pause(2 * limits::POLL_INTERVAL);
        }
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        self.inner.state.lock()
    }

    fn requested_leases(&self) -> MutexGuard<'_, RequestedLeases> {
        self.inner.requested.lock()
    }

    /// Returns the content of a heartbeat: the row of the item log up to which this node no longer serves old
    /// versions, and its faults.
    fn heartbeat_position(&self) -> (i64, String) {
        let faults = if self.inner.is_draining.load(Ordering::SeqCst) {
            description::DRAINING.to_owned()
        } else {
            self.inner.faults.lock().clone()
        };
        (self.followed(), faults)
    }

    /// Reports the current faults of this node. Other nodes see them with the next heartbeat, which is sent
    /// early if the faults have changed.
    pub fn report(&self, faults: &[NodeFault]) {
        *self.inner.faults.lock() = description::print(faults);
    }

    /// Reports that this node stops and accepts no new requests, so that other nodes no longer yield requests
    /// to it.
    pub fn drain(&self) {
        self.inner.is_draining.store(true, Ordering::SeqCst);
    }

    fn followed(&self) -> i64 {
        self.inner.followed.load(Ordering::SeqCst)
    }

    /// Sets the leases that the database shows as held by this node, without the leases that it no longer
    /// wants.
    fn set_held(&self, mut found: Vec<ClusterLease>) {
        // The lock is held to the end, so that a lease that is being declined does not reappear.
        let requested = self.requested_leases();
        found.retain(|lease| requested.contains(*lease));
        self.inner.held.send_if_modified(|held| {
            // Every poll sets the list, and only a change should wake the waiting jobs.
            let changed = *held != found;
            *held = found;
            changed
        });
    }

    /// Returns the role of this process.
    pub fn role(&self) -> NodeRole {
        self.inner.role
    }

    /// Returns the identifier of the current incarnation.
    pub fn incarnation(&self) -> Uuid {
        self.state().incarnation
    }

    /// Returns the name of the node, which it keeps over restarts; `None` for a read-only node.
    pub fn name(&self) -> Option<String> {
        self.state().slot.as_ref().map(|slot| slot.name.clone())
    }

    /// Returns whether this node last knew to hold a lease. The database may have released it since.
    pub fn holds(&self, lease: ClusterLease) -> bool {
        self.inner.held.borrow().contains(&lease)
    }

    /// Waits until this node holds a lease.
    pub async fn wait_for_lease(&self, lease: ClusterLease) {
        // The sender lives as long as `self`, so `wait_for` cannot fail.
        drop(self.inner.held.subscribe().wait_for(|held| held.contains(&lease)).await);
    }

    /// Returns whether the incarnation certainly lasts: no other node can have declared it dead yet.
    pub fn is_confirmed(&self) -> bool {
        let state = self.state();
        state.is_alive && state.confirmed.is_some_and(|since| since.elapsed() < HEARTBEAT_TIMEOUT)
    }

    /// Notes that a lease turned out to be lost.
    pub fn lose_lease(&self, lease: ClusterLease) {
        self.inner.held.send_if_modified(|held| {
            let before = held.len();
            held.retain(|held_lease| *held_lease != lease);
            held.len() != before
        });
    }

    /// Requests a lease that not every node of its role acquires. `which` distinguishes jobs of the same
    /// kind, such as watched folders.
    pub fn request_lease(&self, lease: ClusterLease, which: Option<&str>) {
        let name = match which {
            Some(which) => format!("{} {which}", lease.as_str()),
            None => lease.as_str().to_owned(),
        };
        self.requested_leases().leases.push((lease, name));
    }

    /// Declines all leases of a kind: no longer requests them, and releases those held by this node. Blocks.
    pub fn decline_lease(&self, lease: ClusterLease) {
        let mut requested = self.requested_leases();
        let declined = requested
            .leases
            .extract_if(.., |(requested, _)| *requested == lease)
            .collect::<Vec<_>>();
        let is_working = requested.is_working;
        self.lose_lease(lease);
        drop(requested);
        if !is_working || declined.is_empty() {
            return;
        }
        // The release is written even if no lease is known to be held: the heartbeat thread may acquire the
        // lease at this moment, but not afterwards.
        let incarnation = self.incarnation();
        let released = self.inner.db.write_blocking(move |tx| {
            declined.iter().try_for_each(|(_, name)| tx.release_lease(name, incarnation))
        });
        if let Err(cause) = released {
            tracing::error!(
                "membership: lease {} cannot be released before this node stops: {cause}",
                lease.as_str()
            );
        }
    }

    /// Sets the row of the item log up to which this node no longer serves old versions.
    pub fn set_followed(&self, seq: i64) {
        self.inner.followed.store(seq, Ordering::SeqCst);
    }

    /// Records that this node had read the item log to its end when `since` started.
    pub fn record_end_of_log(&self, since: Stopwatch) {
        *self.inner.last_end_of_log.lock() = since;
    }

    /// Returns the longest time for which this node may have missed changes. Its caches may be outdated by as
    /// much.
    pub fn log_lag(&self) -> Duration {
        self.inner.last_end_of_log.lock().elapsed()
    }

    /// Returns the smallest row of the item log up to which all other nodes no longer serve old versions;
    /// `None` if there are no other nodes.
    pub fn followed_by_others(&self) -> Option<i64> {
        self.state().followed_by_others
    }

    /// Returns the time for which no node has matched items with notifications; `None` if a node does.
    pub fn matching_lag(&self) -> Option<Duration> {
        self.state().unmatched_since.as_ref().map(Stopwatch::elapsed)
    }

    /// Runs `work` while no other node of the database does such work. Waits for the lease. Blocks.
    pub fn run_exclusively<T>(
        &self,
        lease: ClusterLease,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let name = lease.as_str();
        loop {
            let incarnation = self.incarnation();
            if self.inner.db.write_blocking(move |tx| tx.take_lease(name, incarnation))? {
                break;
            }
            clock::pause(EXCLUSIVE_RETRY_INTERVAL);
        }
        let outcome = work();
        let incarnation = self.incarnation();
        // Released after a failure too, so that a different node can do the work.
        self.inner.db.write_blocking(move |tx| tx.release_lease(name, incarnation))?;
        outcome
    }

    /// Begins an incarnation and acquires free leases.
    ///
    /// A retry uses the same incarnation, because the first attempt may have succeeded although its answer
    /// was lost.
    fn begin(&self, now: Timestamp) -> Result<(), DbError> {
        let state = self.state();
        let Some(slot) = &state.slot else { return Ok(()) };
        let incarnation = state.incarnation;
        let name = slot.name.clone();
        let role = self.inner.role.as_str();
        // No other process can use these slots while their files are locked here.
        let slots = state.idle.iter().flat_map(|idle| idle.iter().chain([slot]));
        let ended_nodes: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
        let stopwatch = Stopwatch::start();
        drop(state);
        let (followed, faults) = self.heartbeat_position();
        let requested = Arc::clone(&self.inner.requested);
        let about = self.inner.about.print();
        let started = self.inner.db.write_urgent(move |tx| {
            let node = NewNode {
                incarnation,
                node: &name,
                role,
                followed,
                about: &about,
                faults: &faults,
            };
            let started = tx.begin_incarnation(&node, &ended_nodes, now)?;
            Ok((started, acquire_free(tx, &requested, incarnation)?))
        })?;
        let mut state = self.state();
        match started {
            (IncarnationStart::Started, held) => {
                state.is_alive = true;
                state.confirmed = Some(stopwatch);
                state.idle = None;
                drop(state);
                self.set_held(held);
            }
            (IncarnationStart::NameTaken, _) => {
                tracing::error!(
                    "membership: another process uses the name of this node, perhaps because the \
                     data directory was copied; this node takes another name"
                );
                // The next poll of the heartbeat thread begins the incarnation under the new name.
                if let Some(slot) = &mut state.slot {
                    slot.rename();
                }
            }
        }
        Ok(())
    }

    /// Notes that the incarnation has ended, and begins a new one.
    fn restart_incarnation(&self, now: Timestamp) -> Result<(), DbError> {
        let mut state = self.state();
        state.incarnation = Uuid::new_v4();
        state.is_alive = false;
        drop(state);
        self.inner.held.send_replace(Vec::new());
        self.begin(now)
    }

    /// Starts the heartbeat thread, which also polls the other nodes. The incarnation ends when the returned
    /// [`MembershipKeeper`] is dropped.
    ///
    /// Fails when the thread cannot be started.
    pub fn start_heartbeat(&self) -> Result<MembershipKeeper> {
        // If the thread cannot be started, dropping the keeper ends the incarnation.
        let mut keeper = MembershipKeeper { node: self.clone(), stop: None };
        let (stop, stopped) = mpsc::channel();
        let node = self.clone();
        let thread = std::thread::Builder::new()
            .name("node".to_owned())
            .spawn(move || {
                let mut peers = PeerObservations::new(node.state().is_alive);
                loop {
                    if !node.inner.role.is_read_only() {
                        peers.poll(&node);
                    }
                    if stopped.recv_timeout(limits::POLL_INTERVAL)
                        != Err(mpsc::RecvTimeoutError::Timeout)
                    {
                        return;
                    }
                }
            })
            .map_err(Error::internal)?;
        keeper.stop = Some((stop, thread));
        Ok(keeper)
    }
}

/// Acquires a slot in `folder`. Also returns the slots there without a process.
fn acquire_slot(folder: &Path) -> Result<(NodeSlot, Vec<NodeSlot>)> {
    NodeSlot::acquire(folder).map_err(|cause| {
        let message = format!("folder {} cannot be used", folder.display());
        Error::new(ErrorKind::Unavailable, message).with_source(cause)
    })
}

/// Acquires the free leases among the requested ones. Returns the leases that the node holds afterwards.
fn acquire_free(
    tx: &WriteTx<'_>,
    requested: &Mutex<RequestedLeases>,
    incarnation: Uuid,
) -> Result<Vec<ClusterLease>, DbError> {
    let leases = requested.lock().list();
    let mut held = Vec::new();
    for (lease, name) in leases {
        if tx.take_lease(&name, incarnation)? {
            held.push(lease);
        }
    }
    Ok(held)
}

/// Keeps a node alive. Dropping it ends the incarnation and releases all its work at once. Blocks.
pub struct MembershipKeeper {
    node: ClusterNode,
    stop: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl MembershipKeeper {
    /// Returns the node whose heartbeat is sent.
    pub fn node(&self) -> &ClusterNode {
        &self.node
    }
}

impl Drop for MembershipKeeper {
    fn drop(&mut self) {
        // The thread stops first: it would begin a new incarnation when it finds this one ended.
        if let Some((stop, thread)) = self.stop.take() {
            drop(stop);
            drop(thread.join());
        }
        let node = &self.node;
        let mut state = node.state();
        // An incarnation whose start was not confirmed may have begun.
        let incarnation = state.slot.is_some().then_some(state.incarnation);
        let was_alive = std::mem::replace(&mut state.is_alive, false);
        drop(state);
        node.inner.held.send_replace(Vec::new());
        let Some(incarnation) = incarnation else { return };
        let ended =
            node.inner.db.write_blocking(move |tx| tx.end_incarnation(incarnation, clock::now()));
        if let Err(cause) = ended
            && was_alive
        {
            tracing::error!(
                "membership: the incarnation cannot be ended, its leases stay held until its \
                 heartbeat expires: {cause}"
            );
        }
    }
}
