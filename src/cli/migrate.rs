//! `wirephoto migrate`: migrates the archive to another database and store.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{CommandFailure, open_archive, print_error, print_line, report_upgrade};
use crate::app::backup::{CopyEvent, CopyTally};
use crate::app::migrate::{self, MigrationReport, MigrationRequest};
use crate::runtime::config::{Config, DatabaseUrl, OriginalsLocation, SettingValue};
use crate::storage::database::MigratedRows;

/// The arguments of `wirephoto migrate`.
pub(super) struct MigrateArgs {
    pub to: Option<String>,
    pub store: Option<String>,
    pub switch: bool,
    pub verify: bool,
    /// Undoes an earlier switch instead of migrating.
    pub undo: bool,
    /// With `undo`: does not check whether the new database is in use.
    pub force: bool,
}

pub(super) fn migrate(
    config: &Config,
    args: &MigrateArgs,
    json: bool,
) -> Result<(), CommandFailure> {
    if args.undo {
        return undo_migration(config, args, json);
    }
    // Only the database records which location is the current one.
    let usage = |message: String| Err(CommandFailure::Usage(message));
    if args.to.is_none() && args.store.is_none() {
        return usage("nothing to migrate: give --to, --store or both".to_owned());
    }
    if args.switch && args.to.is_none() {
        return usage("--switch needs --to: the database records where the archive is".to_owned());
    }
    let store = match args.store.as_deref().map(OriginalsLocation::parse).transpose() {
        Ok(Some(OriginalsLocation::Data)) => return usage("--store needs a location".to_owned()),
        Ok(store) => store,
        Err(why) => return usage(format!("--store: {why}")),
    };
    let to = match args.to.as_deref().map(DatabaseUrl::parse).transpose() {
        Ok(to) => to,
        Err(why) => return usage(format!("--to: {why}")),
    };
    let request = MigrationRequest {
        to: to.as_ref(),
        store: store.as_ref(),
        switch: args.switch,
        verify: args.verify,
    };
    let bar = bar(json);
    let (rows, originals) = (bar.clone(), bar.clone());
    let on_rows = Arc::new(move |table: &'static str, count: usize| {
        rows.set_message(table);
        rows.inc(u64::try_from(count).unwrap_or_default());
    });
    let on_event = |event: CopyEvent<'_>| match event {
        // Only a backup copies pages of a database file.
        CopyEvent::Pages(..) => {}
        CopyEvent::Originals(_) => originals.set_message("originals"),
        CopyEvent::Original => originals.inc(1),
        CopyEvent::Failed(why) => originals.suspend(|| print_error(why)),
    };
    let report = migrate::migrate(config, request, &on_event, on_rows);
    // Cleared before an error is printed, which would otherwise end up in the line of the bar.
    bar.finish_and_clear();
    let report = report?;
    report_upgrade(report.upgraded);
    print_line(&print_report(&report, request, json));
    if report.lost > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

fn bar(json: bool) -> ProgressBar {
    if json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg:18} {human_pos}, {elapsed}");
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}

fn print_report(report: &MigrationReport, request: MigrationRequest<'_>, json: bool) -> String {
    let MigrationReport { rows, originals, derived, lost, upgraded: _, key } = report;
    if json {
        let tables = |rows: &MigratedRows| {
            let table = |(name, count): &(&str, usize)| ((*name).to_owned(), json!(count));
            rows.tables.iter().map(table).collect::<serde_json::Map<_, _>>()
        };
        let copied = |tally: &CopyTally| {
            json!({ "copied": tally.copied, "copiedBytes": tally.copied_bytes,
                "there": tally.present })
        };
        let line = json!({
            "rows": rows.as_ref().map(tables),
            "heldMs": rows.as_ref().map(|rows| rows.held_ms),
            "originals": originals.as_ref().map(copied),
            "derived": derived,
            "lost": lost,
            "switched": request.switch,
        });
        return line.to_string();
    }
    let mut text = Vec::new();
    if let Some(CopyTally { copied, present, .. }) = originals {
        text.push(format!(
            "{copied} originals and {derived} derived files copied, {present} originals were \
             already there"
        ));
    }
    if let Some(rows) = rows {
        let all: usize = rows.tables.iter().map(|(_, rows)| rows).sum();
        text.push(format!(
            "{} items and {} other rows copied and compared table by table; writes {} {} ms",
            rows.of("items"),
            all - rows.of("items"),
            if request.switch { "were blocked for" } else { "would have been blocked for" },
            rows.held_ms
        ));
    }
    if let (Some(_), Some((id, source))) = (rows, key) {
        text.push(format!(
            "secrets stay encrypted with key {id} of {source}: every node of the new archive \
             needs it"
        ));
    }
    if *lost > 0 {
        text.push(format!("{lost} originals are missing here too, see `wirephoto check`"));
    }
    text.push(
        match (request.switch, rows) {
            (true, _) => {
                "the archive has been switched over: start the service with its new settings; \
                 this data directory no longer accepts writes"
            }
            (false, Some(_)) => {
                "dry run: the archive is still in use here, and later writes are not copied; run \
                 the command again with --switch to switch over"
            }
            (false, None) => {
                "later originals are not copied: repeat the command when the service is stopped, \
                 then start it with its new settings"
            }
        }
        .to_owned(),
    );
    text.join("\n")
}

/// Undoes a switch, so that the archive is used from this data directory again.
fn undo_migration(config: &Config, args: &MigrateArgs, json: bool) -> Result<(), CommandFailure> {
    if args.to.is_none() && !args.force {
        let message = "--undo needs --to, to verify that the new database is not in use; --force \
                     skips that for a database that is lost for good";
        return Err(CommandFailure::Usage(message.to_owned()));
    }
    let to = args.to.as_deref().map(DatabaseUrl::parse).transpose();
    let to = to.map_err(|why| CommandFailure::Usage(format!("--to: {why}")))?;
    let home = migrate::undo_migration(&open_archive(config)?, config, to.as_ref())?;
    print_line(&match json {
        true => json!({ "movedTo": home, "switched": false }).to_string(),
        false => format!("the archive is in use here again, and no longer in {home}"),
    });
    Ok(())
}
