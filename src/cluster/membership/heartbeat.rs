//! Sends the heartbeat of a node, ends incarnations whose heartbeats have expired, and acquires free leases.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::limits::{
    HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL_ALONE, HEARTBEAT_TIMEOUT, HEARTBEATS_MIN, SKEW_S,
};
use super::{ClusterLease, ClusterNode, NodeDescription, acquire_free, node_label};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::failure_log::FailureLog;
use crate::runtime::telemetry;
use crate::storage::database::{DbError, NodeRow};

/// Observations of the other nodes by one node.
pub(super) struct PeerObservations {
    heartbeats: HashMap<Uuid, PeerHeartbeat>,
    /// Time since the last own heartbeat, and the content of that heartbeat.
    last_sent: Option<(Stopwatch, (i64, String))>,
    /// Number of own heartbeats that were written.
    sent_count: u32,
    /// Time for which a lease that should have a holder has had none.
    vacant: HashMap<ClusterLease, Stopwatch>,
    /// The settings that differ on other nodes, each with the name of such a node.
    differences: BTreeMap<String, String>,
    log: FailureLog,
}

/// The heartbeat of a peer node, and the time since its value was first seen.
struct PeerHeartbeat {
    heartbeat: i64,
    since: Stopwatch,
    /// Number of own heartbeats when the value was first seen.
    own_count: u32,
    /// True if the clock skew to this node has been logged.
    is_reported: bool,
}

impl PeerHeartbeat {
    /// Notes a heartbeat that is seen for the first time, after `own_count` own heartbeats.
    fn new(row: &NodeRow, own_count: u32) -> Self {
        Self { heartbeat: row.heartbeat, since: Stopwatch::start(), own_count, is_reported: false }
    }
}

impl PeerObservations {
    /// Creates empty observations. `is_alive` is false if the incarnation has not begun: the failure to write
    /// the database has been logged already.
    pub(super) fn new(is_alive: bool) -> Self {
        Self {
            heartbeats: HashMap::new(),
            last_sent: None,
            sent_count: 0,
            vacant: HashMap::new(),
            differences: BTreeMap::new(),
            log: FailureLog::new("membership").with_failing(!is_alive),
        }
    }

    /// Polls once: sends a heartbeat if it is due, then checks the other nodes. A failure is retried with the
    /// next poll.
    pub(super) fn poll(&mut self, node: &ClusterNode) {
        let outcome = self.send_heartbeat(node).and_then(|()| self.expire_nodes(node));
        self.log.record(&outcome);
        if outcome.is_err() {
            // A node that cannot read or write must not judge others by missing heartbeats.
            self.heartbeats.clear();
        }
    }

    /// Sends a heartbeat if it is due, or if the node has followed the item log further.
    fn send_heartbeat(&mut self, node: &ClusterNode) -> Result<(), DbError> {
        if !node.state().is_alive {
            return node.begin(clock::now());
        }
        let content = node.heartbeat_position();
        if self.is_current(node, &content) {
            return Ok(());
        }
        let incarnation = node.incarnation();
        let now = clock::now();
        // Measured from before the write, because other nodes may see the heartbeat from then on.
        let stopwatch = Stopwatch::start();
        let (followed, faults) = content.clone();
        let is_alive = node
            .inner
            .db
            .write_urgent(move |tx| tx.write_heartbeat(incarnation, followed, &faults, now))?;
        let mut state = node.state();
        if is_alive {
            state.confirmed = Some(stopwatch);
            self.last_sent = Some((stopwatch, content));
            self.sent_count = self.sent_count.saturating_add(1);
            return Ok(());
        }
        // The new incarnation is written below, and writes do not run under this lock.
        drop(state);
        tracing::error!(
            "this node missed its heartbeats, so another node declared it dead; it starts a new \
             incarnation"
        );
        node.restart_incarnation(clock::now())
    }

    /// Returns whether the last own heartbeat is recent and `content` need not be sent yet.
    fn is_current(&self, node: &ClusterNode, content: &(i64, String)) -> bool {
        let Some((since, (sent, faults))) = &self.last_sent else { return false };
        let (followed, faults_now) = content;
        if faults != faults_now {
            return false;
        }
        // A new node is seen with the next poll, long before it can declare this one expired. Only a node
        // that follows nothing yet must report its first position at once, so that a new node finds it.
        match node.followed_by_others() {
            None => {
                since.elapsed() < HEARTBEAT_INTERVAL_ALONE
                    && (sent == followed || *sent != i64::MAX)
            }
            Some(_) => since.elapsed() < HEARTBEAT_INTERVAL && sent == followed,
        }
    }

    /// Ends incarnations whose heartbeat has expired, and acquires free leases.
    fn expire_nodes(&mut self, node: &ClusterNode) -> Result<(), DbError> {
        let stopwatch = Stopwatch::start();
        let db = &node.inner.db;
        let (nodes, leases) = db.read_blocking(|tx| Ok((tx.list_nodes()?, tx.list_leases()?)))?;
        let mut state = node.state();
        let incarnation = state.incarnation;
        let is_alive = state.is_alive;
        if is_alive && !nodes.iter().any(|row| row.incarnation == incarnation) {
            // A peer ended this incarnation. The forced heartbeat detects that.
            self.last_sent = None;
        } else if is_alive && nodes.len() == 1 {
            // There is no other node that could declare this one dead.
            state.confirmed = Some(stopwatch);
        }
        drop(state);
        self.heartbeats.retain(|seen, _| nodes.iter().any(|row| row.incarnation == *seen));
        let mut expired = Vec::new();
        for row in nodes.iter().filter(|row| row.incarnation != incarnation) {
            if self.is_expired(row) {
                expired.push(row);
            }
        }
        for row in expired {
            let dead = row.incarnation;
            let heartbeat = row.heartbeat;
            let now = clock::now();
            // The transaction compares the heartbeat again: a node that woke up in the meantime stays alive.
            let ended =
                db.write_urgent(move |tx| tx.end_expired_incarnation(dead, heartbeat, now));
            if ended? {
                let node = node_label(row);
                tracing::warn!(incarnation = %dead, node, "a node is dead, others take over its work");
            }
        }
        self.compare_settings(node, &nodes, incarnation);
        let others = nodes.iter().filter(|row| row.incarnation != incarnation);
        let followed = others.map(|row| row.followed).min();
        let requested = node.requested_leases().list();
        let mut held = Vec::new();
        let mut has_free = false;
        for (lease, name) in &requested {
            match live_holder(&leases, &nodes, name) {
                Some(holder) if holder == incarnation => held.push(*lease),
                Some(_) => {}
                None => has_free = true,
            }
        }
        if is_alive && has_free {
            let requested = Arc::clone(&node.inner.requested);
            held = db.write_urgent(move |tx| acquire_free(tx, &requested, incarnation))?;
        }
        self.report(node, &held, &|lease| live_holder(&leases, &nodes, lease.as_str()).is_some());
        node.set_held(held);
        node.state().followed_by_others = followed;
        metrics::gauge!(telemetry::NODES).set(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Returns whether the heartbeat of a node has expired.
    fn is_expired(&mut self, row: &NodeRow) -> bool {
        let own_count = self.sent_count;
        let entry = self.heartbeats.entry(row.incarnation);
        let seen = entry.or_insert_with(|| PeerHeartbeat::new(row, own_count));
        if seen.heartbeat == row.heartbeat {
            // Own heartbeats prove that the database accepted writes in the meantime.
            return seen.since.elapsed() >= HEARTBEAT_TIMEOUT
                && own_count.saturating_sub(seen.own_count) >= HEARTBEATS_MIN;
        }
        let warned = seen.is_reported;
        *seen = PeerHeartbeat::new(row, own_count);
        let skew_s = clock::now().duration_since(row.seen).as_secs_f64();
        seen.is_reported = skew_s.abs() >= SKEW_S;
        if seen.is_reported && !warned {
            let node = node_label(row);
            tracing::warn!(node, seconds = skew_s, "the clock of another node differs");
        }
        false
    }

    /// Logs settings that differ on other nodes, once when the difference appears.
    fn compare_settings(&mut self, node: &ClusterNode, nodes: &[NodeRow], incarnation: Uuid) {
        let mut found = BTreeMap::new();
        for row in nodes.iter().filter(|row| row.incarnation != incarnation) {
            for name in node.inner.about.differences(&NodeDescription::from_row(row)) {
                found.entry(name).or_insert_with(|| node_label(row));
            }
        }
        if found == self.differences {
            return;
        }
        for name in self.differences.keys().filter(|name| !found.contains_key(*name)) {
            // Without the reset, the series would keep its alert firing.
            difference_gauge(name).set(0.0);
        }
        for (name, other) in &found {
            difference_gauge(name).set(1.0);
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

    /// Publishes the leases that this node holds (`held`), and the time for which a lease has had no holder.
    fn report(
        &mut self,
        node: &ClusterNode,
        held: &[ClusterLease],
        is_held: &dyn Fn(ClusterLease) -> bool,
    ) {
        for lease in [
            ClusterLease::Matching,
            ClusterLease::Purging,
            ClusterLease::Sweeping,
            ClusterLease::Scrubbing,
        ] {
            let name = lease.as_str();
            // `held` is newer than the list of leases, which was read before free leases were acquired.
            let ours = u8::from(held.contains(&lease));
            metrics::gauge!(telemetry::LEASE_HELD, "lease" => name).set(ours);
            if ours == 1 || is_held(lease) {
                self.vacant.remove(&lease);
            } else {
                self.vacant.entry(lease).or_insert_with(Stopwatch::start);
            }
        }
        // Without a CDN no node holds the lease for purging, so its vacancy means nothing.
        for lease in [ClusterLease::Matching, ClusterLease::Sweeping] {
            let vacant =
                self.vacant.get(&lease).map_or(0.0, |since| since.elapsed().as_secs_f64());
            let name = lease.as_str();
            metrics::gauge!(telemetry::LEASE_VACANT_SECONDS, "lease" => name).set(vacant);
        }
        node.state().unmatched_since = self.vacant.get(&ClusterLease::Matching).copied();
    }
}

/// Returns the incarnation that holds the lease `name`, unless it has ended.
fn live_holder(leases: &[(String, Uuid)], nodes: &[NodeRow], name: &str) -> Option<Uuid> {
    let (_, holder) = leases.iter().find(|(held, _)| held == name)?;
    nodes.iter().any(|row| row.incarnation == *holder).then_some(*holder)
}

/// Returns the metric that is 1 while nodes have different values of a setting.
fn difference_gauge(setting: &str) -> metrics::Gauge {
    metrics::gauge!(telemetry::NODES_DIFFER, "setting" => setting.to_owned())
}
