//! Whether this node may do a piece of work now.

use std::sync::Arc;

use super::clock_guard::ClockGuard;
use super::membership::ClusterNode;

/// This node and its clock: what is done once in a cluster asks the first, what goes by the time of day the
/// second. Cheap to clone.
#[derive(Clone)]
pub struct ClusterGuard {
    node: ClusterNode,
    clock: Arc<ClockGuard>,
}

impl ClusterGuard {
    /// The guard of a node.
    #[must_use]
    pub fn new(node: ClusterNode, clock: ClockGuard) -> Self {
        Self { node, clock: Arc::new(clock) }
    }

    /// The node, which holds leases.
    #[must_use]
    pub fn node(&self) -> &ClusterNode {
        &self.node
    }

    /// The clock guard.
    #[must_use]
    pub fn clock(&self) -> &ClockGuard {
        &self.clock
    }

    /// Whether what is over by the time of day may be removed or given up.
    #[must_use]
    pub fn trusts_clock(&self) -> bool {
        self.clock.is_trusted()
    }
}
