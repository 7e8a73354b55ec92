//! `wirephoto demo remove`, and the hints that a server with the demo archive prints.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandFailure, CommonArgs, open_archive, print_json, print_line};
use crate::app::remove_demo_accounts;

/// The API key in the accounts file of the demo archive, `media-store/accounts.json`.
const DEMO_KEY: &str = "demo-key-0000-0000-000000000001";

#[derive(Debug, Subcommand)]
pub(super) enum DemoCommand {
    /// Removes the demo accounts, whose passwords and keys are publicly known; the photographs remain.
    ///
    /// Users and clients whose password or secret was changed are retained, with everything that they use. A
    /// user that orders refer to is disabled instead of removed.
    Remove {
        #[command(flatten)]
        common: CommonArgs,
        /// Prints a JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: DemoCommand) -> Result<(), CommandFailure> {
    let DemoCommand::Remove { common, json } = command;
    let config = common.config()?;
    let outcome = remove_demo_accounts(&open_archive(&config)?, &config)?;
    if json {
        let removed = outcome.removed.iter();
        let removed = removed.map(|(kind, name)| json!({ "kind": kind, "name": name }));
        let retained = outcome.retained.iter();
        let retained =
            retained.map(|(kind, name, why)| json!({ "kind": kind, "name": name, "why": why }));
        print_json(&json!({
            "removed": removed.collect::<Value>(),
            "kept": retained.collect::<Value>(),
        }));
        return Ok(());
    }
    for (kind, name) in &outcome.removed {
        print_line(&format!("removed: {kind} {name}"));
    }
    for (kind, name, why) in &outcome.retained {
        print_line(&format!("kept: {kind} {name}: {why}"));
    }
    if outcome.removed.is_empty() && outcome.retained.is_empty() {
        print_line("there are no demo accounts");
    }
    Ok(())
}

/// Returns the hints that are printed when a server starts with the demo archive, with links below `url`.
pub(super) fn start_hints(url: &str) -> String {
    let id = "image/demo-solnedgang-over-bergen";
    format!(
        "
  Pages                 {url}/
  Health and metrics    {url}/health/ready  {url}/metrics

  Three URLs to try:
    a crop              {url}/media/{id}-crop_w600_h400_x200_y100_NormalPreview.jpg
    a watermark         {url}/media/{id}_WatermarkPreview.jpg
    the Hires           {url}/media/{id}.jpg?ak={DEMO_KEY}

  Demo logins           demo-editor   demo-editor-password
                        demo-admin    demo-admin-password    administers its organization
                        demo-buyer    demo-buyer-password    ten prepaid downloads
                        demo-operator demo-operator-password sees how the service runs: {url}/operator
  Demo OAuth2 clients   demo-client   demo-client-secret
                        demo-app      public, with PKCE

  Demo API key: {DEMO_KEY} (user demo-editor)

  Demo accounts are publicly known: do not use them where others can reach the service.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_demo_accounts_are_in_their_file() {
        let file = include_str!("../../media-store/accounts.json");
        let hints = start_hints("http://x");
        for word in hints.split([' ', ')', '\n']).filter(|word| word.starts_with("demo-")) {
            assert!(file.contains(&format!("\"{word}\"")), "{word}");
        }
        assert_eq!(hints.matches("-password").count(), 4);
        assert!(file.contains(DEMO_KEY));
    }
}
