//! `wirephoto signing-key`: the keys that sign id tokens.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandFailure, CommonArgs, open_archive, print_error, print_line, table::table};
use crate::access::oauth::{list_signing_keys, published_until, rotate_signing_keys};
use crate::runtime::clock;
use crate::runtime::config;
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
            let (config, _) = config::load(&common.sources(&[]))?;
            let kid = rotate_signing_keys(&open_archive(&config)?.db, clock::now())?;
            if json {
                print_line(&json!({ "kid": kid }).to_string());
            } else {
                print_error(&format!("id tokens are signed with the new key {kid}"));
            }
            Ok(())
        }
        SigningKeyCommand::List { common, json } => {
            let (config, _) = config::load(&common.sources(&[]))?;
            let listed = list_signing_keys(&open_archive(&config)?.db)?;
            list(&listed, config.auth.access_token_s, json);
            Ok(())
        }
    }
}

fn list(keys: &[ListedSigningKey], access_token_s: u32, json: bool) {
    if json {
        let facts: Value = keys.iter().map(|key| facts(key, access_token_s)).collect();
        print_line(&facts.to_string());
        return;
    }
    let rows: Vec<_> = keys.iter().map(|key| row(key, access_token_s)).collect();
    print_line(&table(["KID", "CREATED", "STATE"], &rows));
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
