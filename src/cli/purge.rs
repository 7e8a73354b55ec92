//! `wirephoto purge`: queues purges of a CDN's cache.

use serde_json::json;

use super::{CommandFailure, ingest::item_of, open_archive, print_result};
use crate::distribution::cdn::{self, PurgeRequest};
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::runtime::error::ErrorKind;

/// Queues cache purges for the items `names`, or for everything; the running server sends them to the CDN.
pub(super) fn purge(
    config: &Config,
    names: &[String],
    all: bool,
    json: bool,
) -> Result<(), CommandFailure> {
    let request = if all {
        PurgeRequest::Everything
    } else {
        let items: Result<Vec<_>, _> = names.iter().map(|name| item_of(name)).collect();
        PurgeRequest::Items(items.map_err(CommandFailure::Usage)?)
    };
    let archive = open_archive(config)?;
    let queued = cdn::purge(&config.cdn, &archive.db, &request, clock::now());
    let count = queued.map_err(|error| {
        if error.kind() == ErrorKind::InvalidArgument {
            CommandFailure::Usage(error.to_string())
        } else {
            CommandFailure::Failed(error)
        }
    })?;
    let text = format!("{count} keys queued; the running service sends them to the CDN");
    print_result(json, &json!({ "keys": count }), &text);
    Ok(())
}
