//! `wirephoto secrets`: rotates the key that encrypts secrets in the database.

use clap::Subcommand;
use serde_json::json;

use super::{CommandFailure, CommonArgs, open_archive, print_json, print_line};
use crate::app::secrets::rotate;
use crate::storage::secrets::KeySource;

#[derive(Debug, Subcommand)]
pub(super) enum SecretsCommand {
    /// Encrypts every secret with a new key, while the service runs.
    ///
    /// Generates a new key in the key file, in place of the old one. Where the setting secrets.key holds
    /// several keys, the first one becomes the current key. Other nodes need the new key immediately
    /// afterwards.
    Rotate {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: SecretsCommand) -> Result<(), CommandFailure> {
    let SecretsCommand::Rotate { common, json } = command;
    let config = common.config()?;
    let rotated = rotate(&config, &open_archive(&config)?.db)?;
    let count = rotated.count;
    if json {
        print_json(&json!({
            "before": rotated.before.to_string(),
            "key": rotated.after.to_string(),
            "channels": count.channels,
            "signingKeys": count.signing_keys,
            "others": count.states,
        }));
        return Ok(());
    }
    let next_step = match &rotated.source {
        KeySource::File(path) => {
            format!("copy {} to every other node, and store a copy separately", path.display())
        }
        KeySource::Setting => "remove the old key from secrets.key on every node".to_owned(),
    };
    print_line(&format!(
        "{} secrets are encrypted with key {} in place of {}; {next_step}",
        count.total(),
        rotated.after,
        rotated.before
    ));
    Ok(())
}
