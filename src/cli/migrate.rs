//! `wirephoto migrate`: migrates the archive to a different database and store.

use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use super::progress::progress_bar;
use super::{
    CommandFailure, open_archive, print_error, print_line, print_result, report_upgrade, usage,
};
use crate::app::backup::{CopyEvent, CopyTally};
use crate::app::migrate::{self, MigrationReport, MigrationRequest};
use crate::runtime::config::{Config, DatabaseUrl, OriginalsLocation, SettingValue};
use crate::storage::database::MigratedRows;

/// The arguments of `wirephoto migrate`.
#[derive(Args, Debug)]
pub(super) struct MigrateArgs {
    /// The new database, which must be empty: postgres://USER:PASSWORD@HOST/NAME.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// The new location of the originals: s3://BUCKET/PREFIX, reached with the settings store.*, or a
    /// folder.
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Switches to the new location at the end; this archive then refuses writes.
    #[arg(long)]
    switch: bool,
    /// Reads the originals that were copied earlier, and copies damaged ones again.
    #[arg(long)]
    verify: bool,
    /// Undoes a switch, so that the archive is used here again; refused if the database --to may be in
    /// use.
    #[arg(long, conflicts_with_all = ["store", "switch", "verify"])]
    pub(super) undo: bool,
    /// With --undo, does not ask the new database, for one that is lost for good.
    #[arg(long, requires = "undo", conflicts_with = "to")]
    force: bool,
}

impl MigrateArgs {
    fn database(&self) -> Result<Option<DatabaseUrl>, CommandFailure> {
        let parsed = self.to.as_deref().map(DatabaseUrl::parse).transpose();
        parsed.or_else(|why| usage(format!("--to: {why}")))
    }
}

pub(super) fn migrate(
    config: &Config,
    args: &MigrateArgs,
    json: bool,
) -> Result<(), CommandFailure> {
    if args.undo {
        return undo_migration(config, args, json);
    }
    if args.to.is_none() && args.store.is_none() {
        return usage("nothing to migrate: give --to, --store or both");
    }
    // Only the database records the current location.
    if args.switch && args.to.is_none() {
        return usage("--switch needs --to: the database records where the archive is");
    }
    let store = match args.store.as_deref().map(OriginalsLocation::parse).transpose() {
        Ok(Some(OriginalsLocation::Data)) => return usage("--store needs a location"),
        Ok(store) => store,
        Err(why) => return usage(format!("--store: {why}")),
    };
    let to = args.database()?;
    let request = MigrationRequest {
        to: to.as_ref(),
        store: store.as_ref(),
        switch: args.switch,
        verify: args.verify,
    };
    let bar = progress_bar(None, "{spinner} {msg:18} {human_pos}, {elapsed}", json);
    let row_bar = bar.clone();
    let on_rows = Arc::new(move |table: &'static str, count: usize| {
        row_bar.set_message(table);
        row_bar.inc(u64::try_from(count).unwrap_or_default());
    });
    let report = migrate::migrate(config, request, &|event| show_event(&bar, event), on_rows);
    // Cleared before an error is printed, which would otherwise end up in the line of the bar.
    bar.finish_and_clear();
    let report = report?;
    report_upgrade(report.upgraded);
    print_line(&print_report(&report, request, json));
    if report.lost > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

fn show_event(bar: &ProgressBar, event: CopyEvent<'_>) {
    match event {
        // Only a backup copies pages of a database file.
        CopyEvent::Pages(..) => {}
        CopyEvent::Originals(_) => bar.set_message("originals"),
        CopyEvent::Original => bar.inc(1),
        CopyEvent::Failed(why) => bar.suspend(|| print_error(why)),
    }
}

fn print_report(report: &MigrationReport, request: MigrationRequest<'_>, json: bool) -> String {
    let MigrationReport { rows, originals, derived, lost, upgraded: _, key } = report;
    if json {
        let line = json!({
            "rows": rows.as_ref().map(table_facts),
            "heldMs": rows.as_ref().map(|rows| rows.held_ms),
            "originals": originals.as_ref().map(copy_facts),
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
            rows.count("items"),
            all - rows.count("items"),
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
    let next_step = if request.switch {
        "the archive has been switched over: start the service with its new settings; this data \
         directory no longer accepts writes"
    } else if rows.is_some() {
        "dry run: the archive is still in use here, and later writes are not copied; run the \
         command again with --switch to switch over"
    } else {
        "later originals are not copied: repeat the command when the service is stopped, then \
         start it with its new settings"
    };
    text.push(next_step.to_owned());
    text.join("\n")
}

/// Returns the number of rows by table.
fn table_facts(rows: &MigratedRows) -> Map<String, Value> {
    rows.tables.iter().map(|(table, count)| ((*table).to_owned(), json!(count))).collect()
}

fn copy_facts(tally: &CopyTally) -> Value {
    json!({ "copied": tally.copied, "copiedBytes": tally.copied_bytes, "there": tally.present })
}

/// Undoes a switch, so that the archive is used from this data directory again.
fn undo_migration(config: &Config, args: &MigrateArgs, json: bool) -> Result<(), CommandFailure> {
    if args.to.is_none() && !args.force {
        return usage(
            "--undo needs --to, to verify that the new database is not in use; --force skips that \
             for a database that is lost for good",
        );
    }
    let to = args.database()?;
    let home = migrate::undo_migration(&open_archive(config)?, config, to.as_ref())?;
    let text = format!("the archive is in use here again, and no longer in {home}");
    print_result(json, &json!({ "movedTo": home, "switched": false }), &text);
    Ok(())
}
