//! `wirephoto import`.

use std::path::Path;

use serde_json::json;

use super::{Trouble, complain, say};
use crate::app::Archive;
use crate::config::Config;
use crate::ingest::accounts::Imported;

pub(super) fn import(config: &Config, file: &Path, json: bool) -> Result<(), Trouble> {
    let imported = Archive::open(config)?.import(file)?;
    let Imported { users, api_keys, left_alone } = imported;
    if json {
        let left: serde_json::Map<_, _> =
            left_alone.iter().map(|(list, count)| ((*list).to_owned(), json!(count))).collect();
        say(&json!({ "users": users, "apiKeys": api_keys, "leftAlone": left }).to_string());
        return Ok(());
    }
    say(&format!("{users} users, {api_keys} API keys"));
    for (list, count) in left_alone {
        complain(&format!("{count} {list} left alone: this version does not use them yet"));
    }
    Ok(())
}
