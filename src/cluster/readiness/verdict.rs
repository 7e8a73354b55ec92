//! What a look at a node means.

use uuid::Uuid;

use crate::cluster::membership::{NodeFault, faults_of};
use crate::storage::database::NodeRow;

/// Whether a node is ready, and what it cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessVerdict {
    /// Whether it should get requests.
    pub is_ready: bool,
    /// What it cannot do, and why.
    pub faults: Vec<(NodeFault, String)>,
}

impl ReadinessVerdict {
    pub(super) fn starting() -> Self {
        Self { is_ready: false, faults: Vec::new() }
    }

    /// Of the node with this life among `nodes`, as far as the database tells of them.
    pub(super) fn of(
        faults: Vec<(NodeFault, String)>,
        life: Uuid,
        nodes: Option<&[NodeRow]>,
    ) -> Self {
        let is_ours = |fault: &NodeFault| faults.iter().any(|(ours, _)| ours == fault);
        // With some of the same faults and no other: of nodes that all have faults one at least stays.
        let can_more = |row: &NodeRow| {
            let is_other = row.incarnation != life && matches!(row.role.as_str(), "all" | "web");
            let theirs = faults_of(row).filter(|_| is_other);
            theirs.is_some_and(|theirs| theirs.len() < faults.len() && theirs.iter().all(is_ours))
        };
        let is_ready = match nodes {
            // Nobody knows whether others can.
            None => faults.is_empty(),
            Some(nodes) => !is_ours(&NodeFault::Database) && !nodes.iter().any(can_more),
        };
        Self { is_ready, faults }
    }

    /// Whether there is nothing new to tell: the same state with the same faults.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let kinds = |verdict: &Self| -> Vec<NodeFault> {
            verdict.faults.iter().map(|(fault, _)| *fault).collect()
        };
        self.is_ready == other.is_ready && kinds(self) == kinds(other)
    }

    /// What it cannot do, as one line for everybody who asks; empty where there is nothing.
    #[must_use]
    pub fn reason(&self) -> String {
        if self.faults.is_empty() && !self.is_ready {
            return "the service starts".to_owned();
        }
        self.faults.iter().map(|(fault, _)| fault_text(*fault)).collect::<Vec<_>>().join("; ")
    }

    /// The same with the causes, which name hosts and folders: for the log.
    pub(super) fn causes(&self) -> String {
        let told = self.faults.iter().map(|(fault, why)| format!("{}: {why}", fault_text(*fault)));
        told.collect::<Vec<_>>().join("; ")
    }
}

fn fault_text(fault: NodeFault) -> &'static str {
    match fault {
        NodeFault::Database => "the database cannot be used",
        NodeFault::Search => "the search index is being built",
        NodeFault::Store => "the originals cannot be reached",
        NodeFault::Disk => "the data directory is full or cannot be written",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;

    fn node(life: u128, role: &str, faults: &str) -> NodeRow {
        NodeRow {
            incarnation: Uuid::from_u128(life),
            node: format!("node-{life}"),
            role: role.to_owned(),
            heartbeat: 0,
            followed: 0,
            seen: clock::now(),
            about: "{}".to_owned(),
            faults: faults.to_owned(),
        }
    }

    /// Whether node 1 with these faults is ready beside the others.
    fn check(faults: &[NodeFault], others: Option<&[NodeRow]>, expected: bool) {
        let told = faults.iter().map(|fault| (*fault, "it fails".to_owned())).collect();
        let nodes = others.map(|others| [&[node(1, "all", "")], others].concat());
        let verdict = ReadinessVerdict::of(told, Uuid::from_u128(1), nodes.as_deref());
        assert_eq!(verdict.is_ready, expected, "{faults:?} beside {others:?}");
    }

    #[test]
    fn a_node_steps_aside_for_one_that_can() {
        check(&[], Some(&[]), true);
        check(&[], None, true);
        check(&[NodeFault::Store], Some(&[]), true);
        check(&[NodeFault::Store], Some(&[node(2, "web", "")]), false);
        check(&[NodeFault::Store], Some(&[node(2, "web", "disk store")]), true);
        check(
            &[NodeFault::Store],
            Some(&[node(2, "web", "store"), node(3, "all", "search")]),
            true,
        );
        check(&[NodeFault::Store, NodeFault::Disk], Some(&[node(2, "web", "store")]), false);
        // Two with different faults do not both leave.
        check(&[NodeFault::Store], Some(&[node(2, "web", "search")]), true);
        check(&[NodeFault::Search], Some(&[node(2, "web", "store")]), true);
        check(&[NodeFault::Store, NodeFault::Search], Some(&[node(2, "web", "store")]), false);
        // One that starts or stops takes no requests.
        check(&[NodeFault::Store], Some(&[node(2, "web", "starting")]), true);
        check(&[NodeFault::Store], Some(&[node(2, "web", "draining")]), true);
        // A worker answers no requests.
        check(&[NodeFault::Disk], Some(&[node(2, "worker", "")]), true);
        // The others cannot be asked.
        check(&[NodeFault::Store], None, false);
        check(&[NodeFault::Database], Some(&[node(2, "web", "database")]), false);
    }
}
