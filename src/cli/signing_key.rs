//! `wirephoto signing-key`: the keys that sign id tokens.

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CommandFailure, CommonArgs, open_archive, print_error, print_line, table::table};
use crate::access::oauth::SigningKeys;
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
            let keys = SigningKeys::new(open_archive(&config)?.db);
            let kid = keys.rotate(clock::now())?;
            match json {
                true => print_line(&json!({ "kid": kid }).to_string()),
                false => print_error(&format!("id tokens are signed with the new key {kid}")),
            }
            Ok(())
        }
        SigningKeyCommand::List { common, json } => {
            let (config, _) = config::load(&common.sources(&[]))?;
            let listed = SigningKeys::new(open_archive(&config)?.db).list()?;
            list(&listed, config.auth.access_token_s, json);
            Ok(())
        }
    }
}

fn list(keys: &[ListedSigningKey], access_token_s: u32, json: bool) {
    let until = |retired: Timestamp| SigningKeys::published_until(retired, access_token_s);
    if json {
        let facts = |key: &ListedSigningKey| {
            json!({
                "kid": key.kid,
                "created": key.created,
                "retired": key.retired,
                "publishedUntil": key.retired.map(until),
            })
        };
        print_line(&keys.iter().map(facts).collect::<Value>().to_string());
        return;
    }
    let row = |key: &ListedSigningKey| {
        let state = match key.retired {
            Some(retired) => format!("retired {retired}, published until {}", until(retired)),
            None => "signs".to_owned(),
        };
        [key.kid.clone(), key.created.to_string(), state]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    print_line(&table(["KID", "CREATED", "STATE"], &rows));
}
