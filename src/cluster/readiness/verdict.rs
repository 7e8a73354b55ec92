//! Decides from the faults of all nodes whether this one is ready.

use uuid::Uuid;

use crate::cluster::membership::{NodeFault, faults_of};
use crate::storage::blobs::StoreMismatch;
use crate::storage::database::NodeRow;

/// The readiness of a node, with its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessVerdict {
    /// True if the node should get requests.
    pub is_ready: bool,
    /// The faults, each with its cause.
    pub faults: Vec<(NodeFault, String)>,
    /// The reason that a reachable store of originals is not the archive's store.
    pub mismatch: Option<StoreMismatch>,
}

impl ReadinessVerdict {
    pub(super) fn starting() -> Self {
        Self { is_ready: false, faults: Vec::new(), mismatch: None }
    }

    /// Judges the node with this incarnation by its own faults and by the rows of all `nodes`, which are
    /// `None` if they cannot be read. `shared` is a fault that all nodes have at the same time, though they
    /// may notice it one after the other.
    pub(super) fn judge(
        faults: Vec<(NodeFault, String)>,
        shared: Option<NodeFault>,
        incarnation: Uuid,
        nodes: Option<&[NodeRow]>,
    ) -> Self {
        let mut ours: Vec<NodeFault> = faults.iter().map(|(fault, _)| *fault).collect();
        ours.retain(|fault| Some(*fault) != shared);
        let is_ready = match nodes {
            // It is unknown whether other nodes can do more.
            None => faults.is_empty(),
            Some(nodes) => {
                let mut others = nodes.iter().filter(|row| row.incarnation != incarnation);
                !ours.contains(&NodeFault::Database)
                    && !others.any(|row| can_do_more(row, &ours, shared))
            }
        };
        Self { is_ready, faults, mismatch: None }
    }

    /// Returns whether nothing changed: the state and the kinds of faults are the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        // The texts of causes vary between probes and would repeat the log line each second.
        self.is_ready == other.is_ready
            && self.kinds().eq(other.kinds())
            && self.mismatch == other.mismatch
    }

    fn kinds(&self) -> impl Iterator<Item = NodeFault> {
        self.faults.iter().map(|(fault, _)| *fault)
    }

    /// Returns the faults as one line that is safe for any client; empty if there are no faults.
    pub fn reason(&self) -> String {
        if self.faults.is_empty() && !self.is_ready {
            return "the service is starting".to_owned();
        }
        self.faults.iter().map(|(fault, _)| self.text(*fault)).collect::<Vec<_>>().join("; ")
    }

    /// Returns the faults with their causes, which name hosts and folders: for the log only.
    pub(super) fn causes(&self) -> String {
        let texts = self.faults.iter().map(|(fault, why)| format!("{}: {why}", self.text(*fault)));
        texts.collect::<Vec<_>>().join("; ")
    }

    fn text(&self, fault: NodeFault) -> &'static str {
        match (fault, self.mismatch) {
            (NodeFault::Database, _) => "the database cannot be used",
            (NodeFault::Search, _) => "the search index is being built",
            (NodeFault::Disk, _) => "the data directory is full or cannot be written",
            (NodeFault::Store, None) => "the originals cannot be reached",
            (NodeFault::Store, Some(StoreMismatch::Replaced)) => {
                "the archive has its originals in a different store than this node"
            }
            (NodeFault::Store, Some(StoreMismatch::Foreign)) => {
                "the store of originals is not marked as that of the archive"
            }
        }
    }
}

/// Returns whether the node of `row` accepts requests and has only some of the faults `ours`, not counting
/// `shared`.
fn can_do_more(row: &NodeRow, ours: &[NodeFault], shared: Option<NodeFault>) -> bool {
    // Only these roles accept requests, so only they can take over.
    if !matches!(row.role.as_str(), "all" | "web") {
        return false;
    }
    let Some(mut theirs) = faults_of(row) else { return false };
    theirs.retain(|fault| Some(*fault) != shared);
    // A proper subset: of nodes that all have faults, at least one stays ready.
    theirs.len() < ours.len() && theirs.iter().all(|fault| ours.contains(fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;

    fn node(number: u128, role: &str, faults: &str) -> NodeRow {
        NodeRow {
            incarnation: Uuid::from_u128(number),
            node: format!("node-{number}"),
            role: role.to_owned(),
            heartbeat: 0,
            followed: 0,
            seen: clock::now(),
            about: "{}".to_owned(),
            faults: faults.to_owned(),
            figures: "{}".to_owned(),
            figures_at: None,
        }
    }

    fn is_ready(
        faults: &[NodeFault],
        shared: Option<NodeFault>,
        others: Option<&[NodeRow]>,
    ) -> bool {
        let with_causes = faults.iter().map(|fault| (*fault, "it fails".to_owned())).collect();
        let nodes = others.map(|others| [&[node(1, "all", "")], others].concat());
        let incarnation = Uuid::from_u128(1);
        ReadinessVerdict::judge(with_causes, shared, incarnation, nodes.as_deref()).is_ready
    }

    /// Checks whether node 1 with these faults is ready beside the others.
    fn check(faults: &[NodeFault], others: Option<&[NodeRow]>, expected: bool) {
        assert_eq!(is_ready(faults, None, others), expected, "{faults:?} beside {others:?}");
    }

    #[test]
    fn a_fault_of_the_shared_disk_takes_no_node_out_before_the_others_notice_it() {
        let disk = Some(NodeFault::Disk);
        assert!(is_ready(&[NodeFault::Disk], disk, Some(&[node(2, "web", "")])));
        assert!(is_ready(&[NodeFault::Search], disk, Some(&[node(2, "web", "disk search")])));
        let both = [NodeFault::Disk, NodeFault::Search];
        assert!(!is_ready(&both, disk, Some(&[node(2, "web", "")])));
        assert!(!is_ready(&[NodeFault::Search], disk, Some(&[node(2, "web", "disk")])));
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
        // Two nodes with different faults do not both leave.
        check(&[NodeFault::Store], Some(&[node(2, "web", "search")]), true);
        check(&[NodeFault::Search], Some(&[node(2, "web", "store")]), true);
        check(&[NodeFault::Store, NodeFault::Search], Some(&[node(2, "web", "store")]), false);
        // A node that starts or stops takes no requests.
        check(&[NodeFault::Store], Some(&[node(2, "web", "starting")]), true);
        check(&[NodeFault::Store], Some(&[node(2, "web", "draining")]), true);
        // A worker takes no requests.
        check(&[NodeFault::Disk], Some(&[node(2, "worker", "")]), true);
        // The other nodes are unknown.
        check(&[NodeFault::Store], None, false);
        check(&[NodeFault::Database], Some(&[node(2, "web", "database")]), false);
    }
}
