//! Decides by the leases and the clock of this node whether it may do a piece of work now.

use std::sync::Arc;

use super::clock_guard::ClockGuard;
use super::membership::ClusterNode;

/// Combines this node with its clock guard. Work that is done once per cluster asks the node for a lease.
/// Work that depends on the time of day asks the clock guard. Cheap to clone.
#[derive(Clone)]
pub struct ClusterGuard {
    node: ClusterNode,
    clock: Arc<ClockGuard>,
}

impl ClusterGuard {
    /// Combines a node with the guard of its clock.
    pub fn new(node: ClusterNode, clock: ClockGuard) -> Self {
        Self { node, clock: Arc::new(clock) }
    }

    /// Returns the node, which holds leases.
    pub fn node(&self) -> &ClusterNode {
        &self.node
    }

    /// Returns the guard of this node's clock.
    #[must_use]
    pub fn clock(&self) -> &ClockGuard {
        &self.clock
    }

    /// Returns whether the clock is trusted, so that data that has expired by the time of day may be removed.
    pub fn trusts_clock(&self) -> bool {
        self.clock.is_trusted()
    }
}
