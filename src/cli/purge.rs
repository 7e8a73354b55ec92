//! `wirephoto purge`: queues purges of a CDN's cache.

use serde_json::json;

use super::{CommandFailure, ingest::item_of, open_archive, print_line};
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
    let item = |name: &String| item_of(name).map_err(CommandFailure::Usage);
    let request = match all {
        true => PurgeRequest::Everything,
        false => PurgeRequest::Items(names.iter().map(item).collect::<Result<_, _>>()?),
    };
    let archive = open_archive(config)?;
    let queued = cdn::purge(&config.cdn, &archive.db, &request, clock::now());
    let count = queued.map_err(|error| match error.kind() == ErrorKind::InvalidArgument {
        true => CommandFailure::Usage(error.to_string()),
        false => CommandFailure::Failed(error),
    })?;
    match json {
        true => print_line(&json!({ "keys": count }).to_string()),
        false => {
            print_line(&format!("{count} keys queued; the running service sends them to the CDN"));
        }
    }
    Ok(())
}
