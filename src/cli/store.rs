//! `wirephoto store`: assigns a store of originals to an archive.

use clap::Subcommand;
use serde_json::json;

use super::{CommandFailure, CommonArgs, print_error, print_json, print_line};
use crate::app::ownership::{self, AdoptionReport};

/// The subcommands of `wirephoto store`.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Assigns the store of the settings to the database of the settings.
    ///
    /// A store and a database both carry the id of their archive, and a process that finds different ids does
    /// not start. Use this for a store that replaces another one: it writes the database's id into the store,
    /// and prints how many originals are missing there. Stop the service first.
    Adopt {
        #[command(flatten)]
        common: CommonArgs,
        /// Accepts a store that lacks most of the originals, because they are lost.
        #[arg(long)]
        force: bool,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Adopts the store, and prints its previous archive and the number of missing originals.
pub(super) fn run(command: StoreCommand) -> Result<(), CommandFailure> {
    let StoreCommand::Adopt { common, force, json } = command;
    let adopted = ownership::adopt(&common.config()?, force)?;
    let AdoptionReport { archive, previous, store, named, missing } = adopted;
    if json {
        print_json(&json!({
            "store": store, "archive": archive, "before": previous,
            "originals": named, "missing": missing,
        }));
        return Ok(());
    }
    // An id that stays the same needs no mention.
    let changed = previous.filter(|previous| *previous != archive);
    let before = changed.map(|id| format!(" (before: {id})")).unwrap_or_default();
    print_line(&format!("{store} belongs to the archive {archive} now{before}"));
    if missing > 0 {
        print_error(&format!(
            "{missing} of {named} originals are not in it; `wirephoto check` names their items"
        ));
    }
    Ok(())
}
