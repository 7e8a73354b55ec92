//! `wirephoto nodes`: the processes that serve one database.

use serde_json::{Value, json};

use super::table::print_list;
use super::{CommandFailure, open_archive};
use crate::cluster::membership::{self, NodeDescription, ObservedNode, limits::HEARTBEAT_TIMEOUT};
use crate::runtime::config::Config;

/// Lists the nodes, after observing their heartbeats.
pub(super) fn list(config: &Config, json: bool) -> Result<(), CommandFailure> {
    let nodes = membership::observe(&open_archive(config)?.db, HEARTBEAT_TIMEOUT)?;
    let head =
        ["NODE", "HOST", "LISTEN", "ROLE", "HEARTBEATS", "LAST SEEN", "LEASES", "INCARNATION"];
    print_list(json, &nodes, facts, head, row);
    Ok(())
}

fn facts(node: &ObservedNode) -> Value {
    let about = NodeDescription::from_row(&node.row);
    json!({
        "node": node.row.node,
        "host": about.host,
        "listen": about.listen,
        "role": node.row.role,
        "alive": node.is_alive,
        "heartbeat": node.row.heartbeat,
        "seen": node.row.seen.to_string(),
        "leases": node.leases,
        "incarnation": node.row.incarnation.to_string(),
    })
}

fn row(node: &ObservedNode) -> [String; 8] {
    let about = NodeDescription::from_row(&node.row);
    let alive = match node.is_alive {
        Some(true) => "yes",
        Some(false) => "no",
        None => "alone",
    };
    [
        node.row.node.clone(),
        about.host,
        about.listen,
        node.row.role.clone(),
        alive.to_owned(),
        node.row.seen.to_string(),
        node.leases.join(", "),
        node.row.incarnation.to_string(),
    ]
}
