//! `wirephoto nodes`: the processes that serve one database.

use serde_json::{Value, json};

use super::table::table;
use super::{CommandFailure, open_archive, say};
use crate::cluster::membership::{self, ObservedNode, limits::STILL};
use crate::runtime::config::Config;

/// Lists them, once it was seen which of them live.
pub(super) fn list(config: &Config, json: bool) -> Result<(), CommandFailure> {
    let nodes = membership::observe(&open_archive(config)?.db, STILL)?;
    if json {
        let facts = |one: &ObservedNode| {
            json!({
                "node": one.row.node,
                "role": one.row.role,
                "beats": one.beats,
                "beat": one.row.beat,
                "lastSign": one.row.seen.to_string(),
                "leases": one.leases,
                "life": one.row.life.to_string(),
            })
        };
        say(&nodes.iter().map(facts).collect::<Value>().to_string());
        return Ok(());
    }
    let row = |one: &ObservedNode| {
        let beats = match one.beats {
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
            one.row.life.to_string(),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(row).collect();
    say(&table(["NODE", "ROLE", "BEATS", "LAST SIGN", "LEASES", "LIFE"], &rows));
    Ok(())
}
