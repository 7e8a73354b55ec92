//! Shows that a node lives, sees which others do, and takes leases that are free.

use std::collections::HashMap;

use uuid::Uuid;

use super::limits::{BEAT, BEAT_ALONE, BEATS_MIN, SKEW_S, STILL};
use super::{Lease, Node, take_free};
use crate::clock::{self, Stopwatch};
use crate::db::{DbError, NodeRow};
use crate::telemetry;

/// What a node saw of the others.
pub(super) struct Others {
    seen: HashMap<Uuid, Seen>,
    /// Since the last sign of life of its own, and the row of the item log that it told of.
    beaten: Option<(Stopwatch, i64)>,
    /// Own signs of life that were written.
    beats: u32,
    /// Since when nobody holds a lease that some node should hold.
    vacant: HashMap<Lease, Stopwatch>,
    failing: bool,
}

/// A beat as it was seen first.
struct Seen {
    beat: i64,
    since: Stopwatch,
    /// Own signs of life until then.
    beats: u32,
    /// Whether the difference of the clocks was told of.
    warned: bool,
}

impl Others {
    pub(super) fn new() -> Self {
        Self {
            seen: HashMap::new(),
            beaten: None,
            beats: 0,
            vacant: HashMap::new(),
            failing: false,
        }
    }

    /// One look; what fails is tried again with the next one.
    pub(super) fn look(&mut self, node: &Node) {
        let outcome = self.live(node).and_then(|()| self.judge(node));
        match (&outcome, self.failing) {
            (Err(cause), false) => tracing::error!("other nodes do not see this one: {cause}"),
            (Ok(()), true) => tracing::info!("other nodes see this one again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        self.failing = outcome.is_err();
        if self.failing {
            // Where this node could not look or write, nobody's silence counts.
            self.seen.clear();
        }
    }

    /// Shows that the node lives when it is time, or when it followed the item log on.
    fn live(&mut self, node: &Node) -> Result<(), DbError> {
        if !node.state().lives {
            return node.begin(Vec::new(), clock::now());
        }
        let followed = node.inner.followed.load(std::sync::atomic::Ordering::SeqCst);
        let is_shown = |(since, told): &(Stopwatch, i64)| {
            // Who comes is seen with the next look, long before it may judge.
            match node.followed_by_others() {
                None => since.elapsed() < BEAT_ALONE,
                Some(_) => since.elapsed() < BEAT && *told == followed,
            }
        };
        if self.beaten.as_ref().is_some_and(is_shown) {
            return Ok(());
        }
        let (life, now, watch) = (node.life(), clock::now(), Stopwatch::start());
        let lives = node.inner.db.write_blocking(move |tx| tx.beat(life, followed, now))?;
        let mut state = node.state();
        if lives {
            state.confirmed = Some(watch);
            self.beaten = Some((watch, followed));
            self.beats = self.beats.saturating_add(1);
            return Ok(());
        }
        state.lives = false;
        drop(state);
        node.inner.held.send_replace(Vec::new());
        tracing::error!(
            "this node was held up for so long that another one took it for dead; it begins anew"
        );
        node.begin(Vec::new(), clock::now())
    }

    /// Ends lives that stand still, and takes leases that are free.
    fn judge(&mut self, node: &Node) -> Result<(), DbError> {
        let read = |tx: &crate::db::ReadTx<'_>| Ok((tx.list_nodes()?, tx.list_leases()?));
        let watch = Stopwatch::start();
        let (nodes, leases) = node.inner.db.read_blocking(read)?;
        let mut state = node.state();
        let (life, lives, wanted) = (state.life, state.lives, state.wanted.clone());
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
            let ended = node.inner.db.write_blocking(move |tx| tx.end_still_life(dead, beat, now));
            if ended? {
                tracing::warn!(life = %dead, "a node is dead, others take over what it had");
            }
        }
        let others = nodes.iter().filter(|row| row.life != life);
        let followed = others.map(|row| row.followed).min();
        let holder = |name: &str| {
            let holder = leases.iter().find(|(held, _)| held == name).map(|(_, life)| *life);
            holder.filter(|holder| nodes.iter().any(|row| row.life == *holder))
        };
        let ours =
            |(lease, name): &(Lease, String)| (holder(name) == Some(life)).then_some(*lease);
        let mut held: Vec<Lease> = wanted.iter().filter_map(ours).collect();
        if lives && wanted.iter().any(|(_, name)| holder(name).is_none()) {
            let wanted = wanted.clone();
            held = node.inner.db.write_blocking(move |tx| take_free(tx, &wanted, life))?;
        }
        node.inner.held.send_if_modified(|known| {
            let changed = *known != held;
            known.clone_from(&held);
            changed
        });
        self.report(node, &held, &|lease| holder(lease.as_str()).is_some());
        node.state().followed_by_others = followed;
        metrics::gauge!(telemetry::NODES).set(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Whether the beat stands still for so long that nobody is there.
    fn is_still(&mut self, row: &NodeRow) -> bool {
        let beats = self.beats;
        let fresh = || Seen { beat: row.beat, since: Stopwatch::start(), beats, warned: false };
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

    fn report(&mut self, node: &Node, held: &[Lease], is_held: &dyn Fn(Lease) -> bool) {
        for lease in [Lease::Matching, Lease::Purging, Lease::Sweeping] {
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
        for lease in [Lease::Matching, Lease::Sweeping] {
            let vacant =
                self.vacant.get(&lease).map_or(0.0, |since| since.elapsed().as_secs_f64());
            let name = lease.as_str();
            metrics::gauge!(telemetry::LEASE_VACANT_SECONDS, "lease" => name).set(vacant);
        }
        node.state().unmatched = self.vacant.get(&Lease::Matching).copied();
    }
}
