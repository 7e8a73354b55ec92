//! `wirephoto nodes`: the processes that serve one database.

use serde_json::{Value, json};

use super::table::table;
use super::{CommandFailure, open_archive, print_line};
use crate::cluster::membership::{self, ObservedNode, limits::HEARTBEAT_TIMEOUT};
use crate::runtime::config::Config;

/// Lists the nodes, after observing which heartbeats rise.
pub(super) fn list(config: &Config, json: bool) -> Result<(), CommandFailure> {
    let nodes = membership::observe(&open_archive(config)?.db, HEARTBEAT_TIMEOUT)?;
    if json {
        let facts = |one: &ObservedNode| {
            json!({
                "node": one.row.node,
                "role": one.row.role,
                "beats": one.is_beating,
                "beat": one.row.heartbeat,
                "lastSign": one.row.seen.to_string(),
                "leases": one.leases,
                "life": one.row.incarnation.to_string(),
            })
        };
        print_line(&nodes.iter().map(facts).collect::<Value>().to_string());
        return Ok(());
    }
    let row = |one: &ObservedNode| {
        let beats = match one.is_beating {
            Some(true) => "yes",
            Some(false) => "no",
            None => "alone",
        };
        [
            one.row.node.clone(),
            one.row.role.clone(),
            beats.to_owned(),
            one.row.seen.to_string(),
            one.leases.join(", "),
            one.row.incarnation.to_string(),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(row).collect();
    print_line(&table(
        ["NODE", "ROLE", "HEARTBEATS", "LAST SEEN", "LEASES", "INCARNATION"],
        &rows,
    ));
    Ok(())
}
