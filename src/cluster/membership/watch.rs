//! Shows that a node lives, sees which others do, and takes leases that are free.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use uuid::Uuid;

use super::limits::{BEAT, BEAT_ALONE, BEATS_MIN, SKEW_S, STILL};
use super::{NodeDescription, ClusterLease, ClusterNode, take_free};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::failure_log::FailureLog;
use crate::runtime::telemetry;
use crate::storage::database::{DbError, NodeRow};

/// What a node saw of the others.
pub(super) struct PeerObservations {
    seen: HashMap<Uuid, PeerHeartbeat>,
    /// Since the last sign of life of its own, and what it told of.
    beaten: Option<(Stopwatch, (i64, String))>,
    /// Own signs of life that were written.
    beats: u32,
    /// Since when nobody holds a lease that some node should hold.
    vacant: HashMap<ClusterLease, Stopwatch>,
    /// The settings in which others differ, each with the name of such a node.
    differences: BTreeMap<String, String>,
    log: FailureLog,
}

/// A beat as it was seen first.
struct PeerHeartbeat {
    beat: i64,
    since: Stopwatch,
    /// Own signs of life until then.
    beats: u32,
    /// Whether the difference of the clocks was told of.
    warned: bool,
}

impl PeerObservations {
    /// Nothing yet. Where the node does not live it was told of that the database cannot be written.
    pub(super) fn new(lives: bool) -> Self {
        Self {
            seen: HashMap::new(),
            beaten: None,
            beats: 0,
            vacant: HashMap::new(),
            differences: BTreeMap::new(),
            log: FailureLog::new("membership").failing(!lives),
        }
    }

    /// One look; what fails is tried again with the next one.
    pub(super) fn look(&mut self, node: &ClusterNode) {
        let outcome = self.live(node).and_then(|()| self.judge(node));
        self.log.note(&outcome);
        if outcome.is_err() {
            // Where this node could not look or write, nobody's silence counts.
            self.seen.clear();
        }
    }

    /// Shows that the node lives when it is time, or when it followed the item log on.
    fn live(&mut self, node: &ClusterNode) -> Result<(), DbError> {
        if !node.state().lives {
            return node.begin(clock::now());
        }
        let shown = node.shown();
        let is_shown = |(since, (told, faults)): &(Stopwatch, (i64, String))| {
            let (followed, faults_now) = &shown;
            if faults != faults_now {
                return false;
            }
            // Who comes is seen with the next look, long before it may judge. That this node follows at all
            // who comes must find.
            match node.followed_by_others() {
                None => since.elapsed() < BEAT_ALONE && (told == followed || *told != i64::MAX),
                Some(_) => since.elapsed() < BEAT && told == followed,
            }
        };
        if self.beaten.as_ref().is_some_and(is_shown) {
            return Ok(());
        }
        let (life, now, watch) = (node.life(), clock::now(), Stopwatch::start());
        let (followed, faults) = shown.clone();
        let lives = node.inner.db.write_first(move |tx| tx.beat(life, followed, &faults, now))?;
        let mut state = node.state();
        if lives {
            state.confirmed = Some(watch);
            self.beaten = Some((watch, shown));
            self.beats = self.beats.saturating_add(1);
            return Ok(());
        }
        drop(state);
        tracing::error!(
            "this node was held up for so long that another one took it for dead; it begins anew"
        );
        node.begin_anew(clock::now())
    }

    /// Ends lives that stand still, and takes leases that are free.
    fn judge(&mut self, node: &ClusterNode) -> Result<(), DbError> {
        let read =
            |tx: &crate::storage::database::ReadTx<'_>| Ok((tx.list_nodes()?, tx.list_leases()?));
        let watch = Stopwatch::start();
        let (nodes, leases) = node.inner.db.read_blocking(read)?;
        let mut state = node.state();
        let (life, lives) = (state.life, state.lives);
        if lives && !nodes.iter().any(|row| row.life == life) {
            // Somebody ended it: the next beat finds that out.
            self.beaten = None;
        } else if lives && nodes.len() == 1 {
            // Nobody is there who could take it for dead.
            state.confirmed = Some(watch);
        }
        drop(state);
        self.seen.retain(|seen, _| nodes.iter().any(|row| row.life == *seen));
        let mut still = Vec::new();
        for row in nodes.iter().filter(|row| row.life != life) {
            if self.is_still(row) {
                still.push((row.life, row.beat));
            }
        }
        for (dead, beat) in still {
            let now = clock::now();
            let ended = node.inner.db.write_first(move |tx| tx.end_still_life(dead, beat, now));
            if ended? {
                tracing::warn!(life = %dead, "a node is dead, others take over what it had");
            }
        }
        self.compare(node, &nodes, life);
        let others = nodes.iter().filter(|row| row.life != life);
        let followed = others.map(|row| row.followed).min();
        let holder = |name: &str| {
            let holder = leases.iter().find(|(held, _)| held == name).map(|(_, life)| *life);
            holder.filter(|holder| nodes.iter().any(|row| row.life == *holder))
        };
        let wanted = node.wanted().list();
        let ours =
            |(lease, name): &(ClusterLease, String)| (holder(name) == Some(life)).then_some(*lease);
        let mut held: Vec<ClusterLease> = wanted.iter().filter_map(ours).collect();
        if lives && wanted.iter().any(|(_, name)| holder(name).is_none()) {
            let wanted = Arc::clone(&node.inner.wanted);
            held = node.inner.db.write_first(move |tx| take_free(tx, &wanted, life))?;
        }
        self.report(node, &held, &|lease| holder(lease.as_str()).is_some());
        node.hold(held);
        node.state().followed_by_others = followed;
        metrics::gauge!(telemetry::NODES).set(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Whether the beat stands still for so long that nobody is there.
    fn is_still(&mut self, row: &NodeRow) -> bool {
        let beats = self.beats;
        let fresh = || PeerHeartbeat { beat: row.beat, since: Stopwatch::start(), beats, warned: false };
        let seen = self.seen.entry(row.life).or_insert_with(fresh);
        if seen.beat == row.beat {
            return seen.since.elapsed() >= STILL && beats.saturating_sub(seen.beats) >= BEATS_MIN;
        }
        let warned = seen.warned;
        *seen = fresh();
        let apart = clock::now().duration_since(row.seen).as_secs_f64();
        seen.warned = apart.abs() >= SKEW_S;
        if seen.warned && !warned {
            let node = &row.node;
            tracing::warn!(node, seconds = apart, "the clock of another node differs");
        }
        false
    }

    /// Tells of settings in which another node differs, when that begins.
    fn compare(&mut self, node: &ClusterNode, nodes: &[NodeRow], life: Uuid) {
        let mut found = BTreeMap::new();
        for row in nodes.iter().filter(|row| row.life != life) {
            for name in node.inner.about.differences(&NodeDescription::of(row)) {
                found.entry(name).or_insert_with(|| row.node.clone());
            }
        }
        if found == self.differences {
            return;
        }
        let differs = |name: &str, value: u8| {
            metrics::gauge!(telemetry::NODES_DIFFER, "setting" => name.to_owned()).set(value);
        };
        for name in self.differences.keys().filter(|name| !found.contains_key(*name)) {
            differs(name, 0);
        }
        for (name, other) in &found {
            differs(name, 1);
            if !self.differences.contains_key(name) {
                tracing::warn!(
                    setting = name,
                    node = other,
                    "another node has another value of {name}, so the two may answer differently; \
                     `wirephoto doctor` shows both"
                );
            }
        }
        self.differences = found;
    }

    fn report(&mut self, node: &ClusterNode, held: &[ClusterLease], is_held: &dyn Fn(ClusterLease) -> bool) {
        for lease in [ClusterLease::Matching, ClusterLease::Purging, ClusterLease::Sweeping, ClusterLease::Scrubbing] {
            let name = lease.as_str();
            let ours = u8::from(held.contains(&lease));
            metrics::gauge!(telemetry::LEASE_HELD, "lease" => name).set(ours);
            if ours == 1 || is_held(lease) {
                self.vacant.remove(&lease);
            } else {
                self.vacant.entry(lease).or_insert_with(Stopwatch::start);
            }
        }
        // What is told to CDNs is nobody's work where there is none.
        for lease in [ClusterLease::Matching, ClusterLease::Sweeping] {
            let vacant =
                self.vacant.get(&lease).map_or(0.0, |since| since.elapsed().as_secs_f64());
            let name = lease.as_str();
            metrics::gauge!(telemetry::LEASE_VACANT_SECONDS, "lease" => name).set(vacant);
        }
        node.state().unmatched = self.vacant.get(&ClusterLease::Matching).copied();
    }
}
