//! The nodes of a cluster, as seen by a process that is not a member.

use std::time::Duration;

use super::limits::POLL_INTERVAL;
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::error::Result;
use crate::storage::database::{Db, NodeRow};

/// A node that was observed for a while.
#[derive(Clone, Debug)]
pub struct ObservedNode {
    /// The row of the node in the database.
    pub row: NodeRow,
    /// True if its heartbeat rose in the meantime; `None` for a single node, whose heartbeats are rare.
    pub is_alive: Option<bool>,
    /// The names of the leases that the node holds.
    pub leases: Vec<String>,
}

/// Lists the nodes of a database by name. Observes them until each heartbeat has risen, for `timeout` at
/// most. Blocks.
///
/// Omits a node whose incarnation ends in the meantime. A node whose incarnation begins counts as alive.
pub fn observe(db: &Db, timeout: Duration) -> Result<Vec<ObservedNode>> {
    let first = db.read_blocking(|tx| tx.list_nodes())?;
    let since = Stopwatch::start();
    loop {
        let (nodes, leases) = db.read_blocking(|tx| Ok((tx.list_nodes()?, tx.list_leases()?)))?;
        let is_alone = nodes.len() < 2;
        let have_risen = nodes.iter().all(|row| has_risen(row, &first));
        if is_alone || have_risen || since.elapsed() >= timeout {
            let mut observed = Vec::with_capacity(nodes.len());
            for row in nodes {
                let ours = leases.iter().filter(|(_, holder)| *holder == row.incarnation);
                let leases = ours.map(|(name, _)| name.clone()).collect();
                let is_alive = (!is_alone).then(|| has_risen(&row, &first));
                observed.push(ObservedNode { row, is_alive, leases });
            }
            return Ok(observed);
        }
        clock::pause(POLL_INTERVAL);
    }
}

/// Returns whether the heartbeat of a node has risen since the nodes in `first` were listed.
fn has_risen(row: &NodeRow, first: &[NodeRow]) -> bool {
    // A node that was not in the first list has begun since, so it is alive.
    first
        .iter()
        .all(|before| before.incarnation != row.incarnation || before.heartbeat != row.heartbeat)
}
