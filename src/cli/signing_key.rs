//! `wirephoto signing-key`: the keys that sign id tokens.

use clap::Subcommand;
use serde_json::{Value, json};

use super::table::print_list;
use super::{CommandFailure, CommonArgs, open_archive, print_error, print_json};
use crate::access::oauth::{list_signing_keys, published_until, rotate_signing_keys};
use crate::runtime::clock;
use crate::storage::database::ListedSigningKey;

/// The subcommands of `wirephoto signing-key`.
#[derive(Debug, Subcommand)]
pub(super) enum SigningKeyCommand {
    /// Creates a new key, which signs from now on, also in a running service.
    ///
    /// Earlier keys stay in the key set until every token that they signed has expired.
    Rotate {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Lists the keys in the key set.
    List {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON array.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: SigningKeyCommand) -> Result<(), CommandFailure> {
    match command {
        SigningKeyCommand::Rotate { common, json } => {
            let archive = open_archive(&common.config()?)?;
            let kid = rotate_signing_keys(&archive.db, clock::now())?;
            if json {
                print_json(&json!({ "kid": kid }));
            } else {
                print_error(&format!("id tokens are signed with the new key {kid}"));
            }
        }
        SigningKeyCommand::List { common, json } => {
            let config = common.config()?;
            let keys = list_signing_keys(&open_archive(&config)?.db)?;
            let seconds = config.auth.access_token_s;
            let head = ["KID", "CREATED", "STATE"];
            print_list(json, &keys, |key| facts(key, seconds), head, |key| row(key, seconds));
        }
    }
    Ok(())
}

fn facts(key: &ListedSigningKey, access_token_s: u32) -> Value {
    let published_until = key.retired.map(|retired| published_until(retired, access_token_s));
    json!({
        "kid": key.kid,
        "created": key.created,
        "retired": key.retired,
        "publishedUntil": published_until,
    })
}

fn row(key: &ListedSigningKey, access_token_s: u32) -> [String; 3] {
    let state = match key.retired {
        Some(retired) => {
            let until = published_until(retired, access_token_s);
            format!("retired {retired}, published until {until}")
        }
        None => "signs".to_owned(),
    };
    [key.kid.clone(), key.created.to_string(), state]
}
