//! `wirephoto purge`: what a CDN is to forget.

use serde_json::json;

use super::{Trouble, ingest::item_of, open_archive, say};
use crate::distribution::cdn::{self, Wanted};
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::runtime::error::Kind;

/// Notes for the running server that a CDN is to forget what shows the items that `names` name, or
/// everything.
pub(super) fn purge(
    config: &Config,
    names: &[String],
    all: bool,
    json: bool,
) -> Result<(), Trouble> {
    let item = |name: &String| item_of(name).map_err(Trouble::Usage);
    let wanted = match all {
        true => Wanted::Everything,
        false => Wanted::Items(names.iter().map(item).collect::<Result<_, _>>()?),
    };
    let archive = open_archive(config)?;
    let noted = cdn::purge(&config.cdn, &archive.db, &wanted, clock::now());
    let count = noted.map_err(|error| match error.kind() == Kind::InvalidArgument {
        true => Trouble::Usage(error.to_string()),
        false => Trouble::Failed(error),
    })?;
    match json {
        true => say(&json!({ "keys": count }).to_string()),
        false => say(&format!("{count} keys are told to the CDN by the running service")),
    }
    Ok(())
}
