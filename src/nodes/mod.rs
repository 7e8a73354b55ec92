//! Nodes: processes that serve one database and one store, and what only one of them does at a time.
//!
//! A process begins a *life* of its node in the database and shows by a beat that it lasts. What a node
//! has under way (messages that it sends, items on their way to readers) names its life, and so does a
//! *lease*: work that one node does at a time. A life that ends frees all of it in one transaction: at
//! once when the process stops or its node starts again, and after [`limits::STILL`] when its beat stands still.
//!
//! No clock of another machine counts. Whether a beat stands still is measured by the clock of the node
//! that looks, which only goes forward, and only while that node itself can write. A process that was held
//! up for longer than that, and lives, finds its life ended and begins another one. Who does what must
//! happen once looks for its lease or life in the transaction that does it; [`Node::holds`] alone is a
//! hint for whether to begin.

pub mod limits;
mod slot;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch as channel;
use uuid::Uuid;

use crate::clock::{self, Stopwatch};
use crate::config::Role;
use crate::db::{Begun, Db, DbError, WriteTx};
use crate::error::{Error, Kind, Result};
use limits::{ALONE_AGAIN, STILL};
use slot::Slot;
use watch::Others;

/// Work that one node does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Matches items with notifications, ends embargoes, prepares scheduled mails.
    Matching,
    /// Tells CDNs of changes.
    Purging,
    /// Removes what expired.
    Sweeping,
    /// Takes in what lies in a watched folder.
    Watching,
    /// Makes what a start needs: the search index, the demo archive.
    Starting,
}

impl Lease {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Matching, Self::Purging, Self::Sweeping, Self::Watching, Self::Starting];

    /// Its name; that of a watched folder has the folder's behind it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matching => "matching",
            Self::Purging => "purging",
            Self::Sweeping => "sweeping",
            Self::Watching => "watching",
            Self::Starting => "starting",
        }
    }
}

/// This process among those that serve the database; cheap to clone.
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    role: Role,
    state: Mutex<State>,
    /// The leases that it holds as far as it knows.
    held: channel::Sender<Vec<Lease>>,
    followed: AtomicI64,
}

struct State {
    /// None where the process only reads.
    slot: Option<Slot>,
    life: Uuid,
    /// Whether the life was begun and is not known to be over.
    lives: bool,
    /// Since the last sign of life that was written was begun.
    confirmed: Option<Stopwatch>,
    /// The leases that it wants, by their names.
    wanted: Vec<(Lease, String)>,
    /// The least row of the item log up to which each of the other nodes followed it.
    followed_by_others: Option<i64>,
    /// Since when no node matches.
    unmatched: Option<Stopwatch>,
}

impl Node {
    /// Begins a life of this process's node over the data directory `dir`, and takes the leases that its
    /// role wants and nobody holds. An earlier life of the same node is over, and so are those of other nodes
    /// over that directory that have no process. Blocks.
    ///
    /// Where the database cannot be written that is done later. A node that only reads has no life.
    pub fn start(db: &Db, dir: &Path, role: Role, now: Timestamp) -> Result<Self> {
        let unusable = |cause| {
            let message = format!("folder {} cannot be used", dir.join("nodes").display());
            Error::new(Kind::Unavailable, message).because(cause)
        };
        let (slot, idle) = match role.only_reads() {
            true => (None, Vec::new()),
            false => {
                let (slot, idle) = Slot::take(&dir.join("nodes")).map_err(unusable)?;
                (Some(slot), idle)
            }
        };
        // Nobody else has these places, as long as they are held here.
        let over: Vec<String> = slot.iter().chain(&idle).map(|slot| slot.name.clone()).collect();
        let wanted = [Lease::Matching, Lease::Purging, Lease::Sweeping];
        let wanted = wanted.into_iter().filter(|_| role.works());
        let state = State {
            slot,
            life: Uuid::new_v4(),
            lives: false,
            confirmed: None,
            wanted: wanted.map(|lease| (lease, lease.as_str().to_owned())).collect(),
            followed_by_others: None,
            unmatched: None,
        };
        let node = Self {
            inner: Arc::new(Inner {
                db: db.clone(),
                role,
                state: Mutex::new(state),
                held: channel::Sender::new(Vec::new()),
                followed: AtomicI64::new(0),
            }),
        };
        if !role.only_reads() {
            match node.begin(over, now).map_err(Error::from) {
                Err(cause) if cause.kind() == Kind::Unavailable => {
                    tracing::error!("the database cannot be written, this node waits: {cause}");
                }
                begun => begun?,
            }
        }
        drop(idle);
        Ok(node)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the process does.
    #[must_use]
    pub fn role(&self) -> Role {
        self.inner.role
    }

    /// What its life is called now.
    #[must_use]
    pub fn life(&self) -> Uuid {
        self.state().life
    }

    /// What the node is called over its restarts; nothing where it only reads.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.state().slot.as_ref().map(|slot| slot.name.clone())
    }

    /// Whether it holds a lease, as far as it knows.
    #[must_use]
    pub fn holds(&self, lease: Lease) -> bool {
        self.inner.held.borrow().contains(&lease)
    }

    /// Ends when it holds a lease.
    pub async fn held(&self, lease: Lease) {
        // The sender is ours, so it cannot be gone.
        drop(self.inner.held.subscribe().wait_for(|held| held.contains(&lease)).await);
    }

    /// Whether its life certainly lasts: nobody else can have taken it for dead yet.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        let state = self.state();
        state.lives && state.confirmed.is_some_and(|since| since.elapsed() < STILL)
    }

    /// Says that a lease turned out to be lost.
    pub fn lost(&self, lease: Lease) {
        self.inner.held.send_if_modified(|held| {
            let before = held.len();
            held.retain(|one| *one != lease);
            held.len() != before
        });
    }

    /// Wants the lease of work of which there is more than one kind; `which` tells them apart.
    pub fn want(&self, lease: Lease, which: &str) {
        self.state().wanted.push((lease, format!("{} {which}", lease.as_str())));
    }

    /// Wants no lease of that kind any more, and gives one back that it holds. Blocks.
    pub fn decline(&self, lease: Lease) {
        let mut state = self.state();
        state.wanted.retain(|(one, _)| *one != lease);
        let life = state.life;
        drop(state);
        if !self.holds(lease) {
            return;
        }
        self.lost(lease);
        let given = self.inner.db.write_blocking(move |tx| tx.drop_lease(lease.as_str(), life));
        if let Err(cause) = given {
            tracing::error!(
                "other nodes wait for {} until this one ends: {cause}",
                lease.as_str()
            );
        }
    }

    /// Says up to which row of the item log this node gives nobody old versions any more.
    pub fn follow(&self, seq: i64) {
        self.inner.followed.store(seq, Ordering::SeqCst);
    }

    /// The least row of the item log up to which all other nodes give nobody old versions any more;
    /// `None` where there are none.
    #[must_use]
    pub fn followed_by_others(&self) -> Option<i64> {
        self.state().followed_by_others
    }

    /// How long no node has matched items with notifications; nothing where one does.
    #[must_use]
    pub fn unmatched(&self) -> Option<Duration> {
        self.state().unmatched.as_ref().map(Stopwatch::elapsed)
    }

    /// Does `work` while no other node of the database does such work. Blocks.
    pub fn alone<T>(&self, lease: Lease, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let name = lease.as_str();
        let (_open, never) = mpsc::channel::<()>();
        loop {
            let life = self.life();
            if self.inner.db.write_blocking(move |tx| tx.take_lease(name, life))? {
                break;
            }
            match never.recv_timeout(ALONE_AGAIN) {
                Ok(()) | Err(_) => {}
            }
        }
        let outcome = work();
        let life = self.life();
        self.inner.db.write_blocking(move |tx| tx.drop_lease(name, life))?;
        outcome
    }

    /// Begins a life and takes what is free.
    fn begin(&self, over: Vec<String>, now: Timestamp) -> Result<(), DbError> {
        let mut state = self.state();
        let Some(slot) = &state.slot else { return Ok(()) };
        let (life, name, role) = (Uuid::new_v4(), slot.name.clone(), self.inner.role.as_str());
        let wanted = state.wanted.clone();
        let watch = Stopwatch::start();
        drop(state);
        let begun = self.inner.db.write_blocking(move |tx| {
            let begun = tx.begin_life((life, &name), role, &over, now)?;
            Ok((begun, take_free(tx, &wanted, life)?))
        })?;
        state = self.state();
        match begun {
            (Begun::Lives, held) => {
                (state.life, state.lives, state.confirmed) = (life, true, Some(watch));
                drop(state);
                self.inner.held.send_replace(held);
            }
            (Begun::Taken, _) => {
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

    /// Shows from now on that the life lasts, and looks at the others.
    ///
    /// Fails when no thread can be started.
    pub fn keep(&self) -> Result<Keeper> {
        let (stop, stopped) = mpsc::channel();
        let node = self.clone();
        let thread = std::thread::Builder::new()
            .name("node".to_owned())
            .spawn(move || {
                let mut others = Others::new();
                loop {
                    if !node.inner.role.only_reads() {
                        others.look(&node);
                    }
                    if stopped.recv_timeout(limits::LOOK) != Err(mpsc::RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            })
            .map_err(Error::internal)?;
        Ok(Keeper { node: self.clone(), stop: Some((stop, thread)) })
    }
}

/// Takes those of the leases that nobody holds; the ones that it holds then.
fn take_free(
    tx: &WriteTx<'_>,
    wanted: &[(Lease, String)],
    life: Uuid,
) -> Result<Vec<Lease>, DbError> {
    let mut held = Vec::new();
    for (lease, name) in wanted {
        if tx.take_lease(name, life)? {
            held.push(*lease);
        }
    }
    Ok(held)
}

/// Keeps a node alive until this is dropped.
pub struct Keeper {
    node: Node,
    stop: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Keeper {
    /// Ends the life: what it held is free at once. Blocks.
    pub fn end(mut self) {
        self.stop();
        let node = &self.node;
        let mut state = node.state();
        let life = state.lives.then_some(state.life);
        state.lives = false;
        drop(state);
        node.inner.held.send_replace(Vec::new());
        let Some(life) = life else { return };
        let ended = node.inner.db.write_blocking(move |tx| tx.end_life(life, clock::now()));
        if let Err(cause) = ended {
            tracing::error!("other nodes have to wait for what this one held: {cause}");
        }
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.stop.take() {
            drop(stop);
            drop(thread.join());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}
