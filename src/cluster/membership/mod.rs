//! Nodes: processes that serve one database and one store, and what only one of them does at a time.
//!
//! A process begins a *life* of its node in the database and shows by a beat that it lasts. What a node
//! has under way (messages that it sends, items on their way to readers) names its life, and so does a
//! *lease*: work that one node does at a time. A life that ends frees all of it in one transaction: at
//! once when the process stops or its node starts again, and after [`limits::HEARTBEAT_TIMEOUT`] when its beat stands still.
//!
//! No clock of another machine counts. Whether a beat stands still is measured by the clock of the node
//! that looks, which only goes forward, and only while that node itself can write. A process that was held
//! up for longer than that, and lives, finds its life ended and begins another one. Who does what must
//! happen once looks for its lease or life in the transaction that does it; [`ClusterNode::holds`] alone is a
//! hint for whether to begin.

mod description;
mod heartbeat;
mod in_flight;
pub mod limits;
mod observe;
mod slot;
#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch as channel;
use uuid::Uuid;

use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::config::NodeRole;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{Db, DbError, IncarnationStart, NewNode, WriteTx};
pub use description::{NodeDescription, NodeFault, faults_of};
use heartbeat::PeerObservations;
pub use in_flight::InFlightTasks;
use limits::{EXCLUSIVE_RETRY_INTERVAL, HEARTBEAT_TIMEOUT};
pub use observe::{ObservedNode, observe};
use slot::NodeSlot;

/// Work that one node does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterLease {
    /// Matches items with notifications, ends embargoes, prepares scheduled mails.
    Matching,
    /// Tells CDNs of changes.
    Purging,
    /// Removes what expired.
    Sweeping,
    /// Takes in what lies in a watched folder.
    Watching,
    /// Makes what a start needs: the demo archive.
    Starting,
    /// Reads originals in the background and compares them with their checksums.
    Scrubbing,
}

impl ClusterLease {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Matching,
        Self::Purging,
        Self::Sweeping,
        Self::Watching,
        Self::Starting,
        Self::Scrubbing,
    ];

    /// Its name; that of a watched folder has the folder's behind it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matching => "matching",
            Self::Purging => "purging",
            Self::Sweeping => "sweeping",
            Self::Watching => "watching",
            Self::Starting => "starting",
            Self::Scrubbing => "scrubbing",
        }
    }
}

/// The leases that a node takes. Whoever takes some looks here in its transaction, so that none comes back
/// that was declined.
struct RequestedLeases {
    /// Whether the node works; until then it takes none.
    is_working: bool,
    /// The leases, by their names.
    leases: Vec<(ClusterLease, String)>,
}

impl RequestedLeases {
    fn list(&self) -> Vec<(ClusterLease, String)> {
        if self.is_working { self.leases.clone() } else { Vec::new() }
    }
}

/// This process among those that serve the database; cheap to clone.
#[derive(Clone)]
pub struct ClusterNode {
    inner: Arc<NodeInner>,
}

struct NodeInner {
    db: Db,
    role: NodeRole,
    about: NodeDescription,
    /// What it cannot do now, as its row says it.
    faults: Mutex<String>,
    /// Whether it stops.
    drains: AtomicBool,
    state: Mutex<NodeState>,
    requested: Arc<Mutex<RequestedLeases>>,
    /// The leases that it holds as far as it knows.
    held: channel::Sender<Vec<ClusterLease>>,
    /// Up to which row of the item log it gives nobody old versions: any, as long as it gives nothing.
    followed: AtomicI64,
    /// Since it last began to look whether it has followed the item log to its end, and had.
    last_end_of_log: Mutex<Stopwatch>,
}

struct NodeState {
    /// None where the process only reads.
    slot: Option<NodeSlot>,
    /// The places without a process that were found, until a first life has begun: the lives of those nodes
    /// and earlier ones of this one are over.
    idle: Option<Vec<NodeSlot>>,
    /// The life that lasts, or the one that is to begin.
    incarnation: Uuid,
    /// Whether the life was begun and is not known to be over.
    is_alive: bool,
    /// Since the last sign of life that was written was begun.
    confirmed: Option<Stopwatch>,
    /// The least row of the item log up to which each of the other nodes followed it.
    followed_by_others: Option<i64>,
    /// Since when no node matches.
    unmatched_since: Option<Stopwatch>,
}

impl ClusterNode {
    /// Begins a life of this process's node over the data directory `dir`. An earlier life of the same node is
    /// over, and so are those of other nodes over that directory that have no process. It takes no leases and
    /// nobody waits for it before it works ([`ClusterNode::work`]). Blocks.
    ///
    /// Where the database cannot be written that is done later. A node that only reads has no life.
    pub fn start(
        db: &Db,
        dir: &Path,
        role: NodeRole,
        about: NodeDescription,
        now: Timestamp,
    ) -> Result<Self> {
        let unusable = |cause| {
            let message = format!("folder {} cannot be used", dir.join("nodes").display());
            Error::new(ErrorKind::Unavailable, message).with_source(cause)
        };
        let (slot, idle) = match role.is_read_only() {
            true => (None, None),
            false => {
                let (slot, idle) = NodeSlot::acquire(&dir.join("nodes")).map_err(unusable)?;
                (Some(slot), Some(idle))
            }
        };
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
                drains: AtomicBool::new(false),
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
                    tracing::error!("the database cannot be written, this node waits: {cause}");
                }
                begun => begun?,
            }
        }
        Ok(node)
    }

    /// Says that the node works from now on: it takes the leases that its role wants and nobody holds, and
    /// others wait until it has followed the item log ([`ClusterNode::set_followed`]). Blocks.
    ///
    /// Where the database cannot be written that is done later.
    pub fn work(&self, now: Timestamp) {
        self.requested_leases().is_working = true;
        let state = self.state();
        let (life, lives) = (state.incarnation, state.is_alive);
        drop(state);
        if !lives {
            return;
        }
        let ((followed, faults), wanted) =
            (self.heartbeat_position(), Arc::clone(&self.inner.requested));
        let taken = self.inner.db.write_urgent(move |tx| {
            // Before anybody is given anything: who joins must find it.
            tx.write_heartbeat(life, followed, &faults, now)?;
            Ok((acquire_free(tx, &wanted, life)?, tx.as_read().list_nodes()?.len() > 1))
        });
        let is_one_of_many = match taken {
            Ok((held, others)) => {
                self.set_held(held);
                others
            }
            Err(cause) => {
                tracing::error!("leases cannot be taken yet: {cause}");
                true
            }
        };
        if is_one_of_many {
            // Others that looked just before tell a CDN of changes without waiting for this one.
            let (_open, never) = mpsc::channel::<()>();
            match never.recv_timeout(2 * limits::POLL_INTERVAL) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        lock(&self.inner.state)
    }

    fn requested_leases(&self) -> MutexGuard<'_, RequestedLeases> {
        lock(&self.inner.requested)
    }

    /// What a sign of life tells: the row of the item log up to which it gives nobody old versions, and
    /// what it cannot do now.
    fn heartbeat_position(&self) -> (i64, String) {
        let faults = match self.inner.drains.load(Ordering::SeqCst) {
            true => description::DRAINING.to_owned(),
            false => lock(&self.inner.faults).clone(),
        };
        (self.followed(), faults)
    }

    /// Says what this node cannot do from now on; the others learn it with the next sign of life, which
    /// does not wait for its time when that changed.
    pub fn report(&self, faults: &[NodeFault]) {
        *lock(&self.inner.faults) = description::print(faults);
    }

    /// Says that this node stops and takes no new requests: no other one steps aside for it.
    pub fn drain(&self) {
        self.inner.drains.store(true, Ordering::SeqCst);
    }

    fn followed(&self) -> i64 {
        self.inner.followed.load(Ordering::SeqCst)
    }

    /// Takes note of the leases that it was found to hold, but for those that it does not want any more.
    fn set_held(&self, found: Vec<ClusterLease>) {
        let wanted = self.requested_leases();
        let is_wanted = |lease: &ClusterLease| wanted.leases.iter().any(|(one, _)| one == lease);
        let found: Vec<ClusterLease> = found.into_iter().filter(is_wanted).collect();
        self.inner.held.send_if_modified(|held| {
            let changed = *held != found;
            *held = found;
            changed
        });
    }

    /// What the process does.
    #[must_use]
    pub fn role(&self) -> NodeRole {
        self.inner.role
    }

    /// What its life is called now.
    #[must_use]
    pub fn incarnation(&self) -> Uuid {
        self.state().incarnation
    }

    /// What the node is called over its restarts; nothing where it only reads.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.state().slot.as_ref().map(|slot| slot.name.clone())
    }

    /// Whether it holds a lease, as far as it knows.
    #[must_use]
    pub fn holds(&self, lease: ClusterLease) -> bool {
        self.inner.held.borrow().contains(&lease)
    }

    /// Ends when it holds a lease.
    pub async fn wait_for_lease(&self, lease: ClusterLease) {
        // The sender is ours, so it cannot be gone.
        drop(self.inner.held.subscribe().wait_for(|held| held.contains(&lease)).await);
    }

    /// Whether its life certainly lasts: nobody else can have taken it for dead yet.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        let state = self.state();
        state.is_alive && state.confirmed.is_some_and(|since| since.elapsed() < HEARTBEAT_TIMEOUT)
    }

    /// Says that a lease turned out to be lost.
    pub fn lose_lease(&self, lease: ClusterLease) {
        self.inner.held.send_if_modified(|held| {
            let before = held.len();
            held.retain(|one| *one != lease);
            held.len() != before
        });
    }

    /// Wants a lease that not every node of its role takes; `which` tells pieces of work apart of which there
    /// is more than one.
    pub fn request_lease(&self, lease: ClusterLease, which: Option<&str>) {
        let name = match which {
            Some(which) => format!("{} {which}", lease.as_str()),
            None => lease.as_str().to_owned(),
        };
        self.requested_leases().leases.push((lease, name));
    }

    /// Wants no lease of that kind any more, and gives one back that it holds. Blocks.
    pub fn decline_lease(&self, lease: ClusterLease) {
        let mut wanted = self.requested_leases();
        let given = wanted.leases.extract_if(.., |(one, _)| *one == lease).collect::<Vec<_>>();
        let works = wanted.is_working;
        self.lose_lease(lease);
        drop(wanted);
        if !works || given.is_empty() {
            return;
        }
        // Whether it holds one or not: it may be taken just now, and not from here on.
        let life = self.incarnation();
        let dropped = self.inner.db.write_blocking(move |tx| {
            given.iter().try_for_each(|(_, name)| tx.release_lease(name, life))
        });
        if let Err(cause) = dropped {
            tracing::error!(
                "other nodes wait for {} until this one ends: {cause}",
                lease.as_str()
            );
        }
    }

    /// Says up to which row of the item log this node gives nobody old versions any more.
    pub fn set_followed(&self, seq: i64) {
        self.inner.followed.store(seq, Ordering::SeqCst);
    }

    /// Says that it has followed the item log to what was its end when `since` began.
    pub fn record_end_of_log(&self, since: Stopwatch) {
        *lock(&self.inner.last_end_of_log) = since;
    }

    /// How long it has not known of all that was written: what it has in memory may be as old as that.
    #[must_use]
    pub fn log_lag(&self) -> Duration {
        lock(&self.inner.last_end_of_log).elapsed()
    }

    /// The least row of the item log up to which all other nodes give nobody old versions any more;
    /// `None` where there are none.
    #[must_use]
    pub fn followed_by_others(&self) -> Option<i64> {
        self.state().followed_by_others
    }

    /// How long no node has matched items with notifications; nothing where one does.
    #[must_use]
    pub fn matching_lag(&self) -> Option<Duration> {
        self.state().unmatched_since.as_ref().map(Stopwatch::elapsed)
    }

    /// Does `work` while no other node of the database does such work. Blocks.
    pub fn run_exclusively<T>(
        &self,
        lease: ClusterLease,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let name = lease.as_str();
        let (_open, never) = mpsc::channel::<()>();
        loop {
            let life = self.incarnation();
            if self.inner.db.write_blocking(move |tx| tx.take_lease(name, life))? {
                break;
            }
            match never.recv_timeout(EXCLUSIVE_RETRY_INTERVAL) {
                Ok(()) | Err(_) => {}
            }
        }
        let outcome = work();
        let life = self.incarnation();
        self.inner.db.write_blocking(move |tx| tx.release_lease(name, life))?;
        outcome
    }

    /// Begins a life and takes what is free.
    ///
    /// It is the same life until one has begun: where an answer was lost it may have begun already.
    fn begin(&self, now: Timestamp) -> Result<(), DbError> {
        let state = self.state();
        let Some(slot) = &state.slot else { return Ok(()) };
        let (life, name, role) = (state.incarnation, slot.name.clone(), self.inner.role.as_str());
        // Nobody else has these places, as long as they are held here.
        let places = state.idle.iter().flat_map(|idle| idle.iter().chain([slot]));
        let over: Vec<String> = places.map(|place| place.name.clone()).collect();
        let watch = Stopwatch::start();
        drop(state);
        let ((followed, faults), wanted) =
            (self.heartbeat_position(), Arc::clone(&self.inner.requested));
        let about = self.inner.about.print();
        let begun = self.inner.db.write_urgent(move |tx| {
            let (node, about, faults) = (&*name, &*about, &*faults);
            let begun = tx.begin_incarnation(
                &NewNode { incarnation: life, node, role, followed, about, faults },
                &over,
                now,
            )?;
            Ok((begun, acquire_free(tx, &wanted, life)?))
        })?;
        let mut state = self.state();
        match begun {
            (IncarnationStart::Started, held) => {
                (state.is_alive, state.confirmed, state.idle) = (true, Some(watch), None);
                drop(state);
                self.set_held(held);
            }
            (IncarnationStart::NameTaken, _) => {
                tracing::error!(
                    "another process goes by the name of this node: was the data directory \
                     copied? This one takes another name"
                );
                if let Some(slot) = &mut state.slot {
                    slot.rename();
                }
            }
        }
        Ok(())
    }

    /// Takes note that its life is over, and begins another one.
    fn restart_incarnation(&self, now: Timestamp) -> Result<(), DbError> {
        let mut state = self.state();
        (state.incarnation, state.is_alive) = (Uuid::new_v4(), false);
        drop(state);
        self.inner.held.send_replace(Vec::new());
        self.begin(now)
    }

    /// Shows from now on that the life lasts, and looks at the others. The life ends with what is given.
    ///
    /// Fails when no thread can be started.
    pub fn start_heartbeat(&self) -> Result<MembershipKeeper> {
        let mut keeper = MembershipKeeper { node: self.clone(), stop: None };
        let (stop, stopped) = mpsc::channel();
        let node = self.clone();
        let thread = std::thread::Builder::new()
            .name("node".to_owned())
            .spawn(move || {
                let mut others = PeerObservations::new(node.state().is_alive);
                loop {
                    if !node.inner.role.is_read_only() {
                        others.poll(&node);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes those of the leases that nobody holds; the ones that it holds then.
fn acquire_free(
    tx: &WriteTx<'_>,
    wanted: &Mutex<RequestedLeases>,
    life: Uuid,
) -> Result<Vec<ClusterLease>, DbError> {
    let leases = lock(wanted).list();
    let mut held = Vec::new();
    for (lease, name) in leases {
        if tx.take_lease(&name, life)? {
            held.push(lease);
        }
    }
    Ok(held)
}

/// Keeps a node alive. Its life ends with this: what it held is free at once. Dropping it blocks.
pub struct MembershipKeeper {
    node: ClusterNode,
    stop: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl MembershipKeeper {
    /// The node.
    #[must_use]
    pub fn node(&self) -> &ClusterNode {
        &self.node
    }
}

impl Drop for MembershipKeeper {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.stop.take() {
            drop(stop);
            drop(thread.join());
        }
        let node = &self.node;
        let mut state = node.state();
        // One whose beginning was not answered may have begun.
        let life = state.slot.is_some().then_some(state.incarnation);
        let lives = std::mem::replace(&mut state.is_alive, false);
        drop(state);
        node.inner.held.send_replace(Vec::new());
        let Some(life) = life else { return };
        let ended = node.inner.db.write_blocking(move |tx| tx.end_incarnation(life, clock::now()));
        if let Err(cause) = ended
            && lives
        {
            tracing::error!("other nodes have to wait for what this one held: {cause}");
        }
    }
}
