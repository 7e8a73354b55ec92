//! `wirephoto check`, `backup` and `restore`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use serde_json::json;

use super::progress::progress_bar;
use super::{
    CommandFailure, CommonArgs, audit_record, print_error, print_json, print_line, print_result,
    report_opened, usage,
};
use crate::app::backup::{
    self, BackupRequest, CopyEvent, CopyListener, CopyLocation, CopyTally, RestoreReport,
};
use crate::app::check::{
    self, ArchiveProblem, CheckDepth, CheckReport, CheckRequest, InterruptedCheck, OriginalsTally,
    StandardReport,
};
use crate::app::verify::{VerifyReport, VerifyRequest, verify};
use crate::app::{OpenArchive, forget_standard_progress};
use crate::runtime::clock;
use crate::runtime::config::{Config, OriginalsLocation, SettingValue};
use crate::runtime::error::Error;

/// Ends a summary if some item rows are damaged.
const NOT_ALL_READ: &str =
    "; not all items could be read, so originals that only they refer to were not checked";

/// Prints a problem, with `json` as JSON to standard output, otherwise as text: to standard error if it remains, to
/// standard output if it was repaired. Orphans, originals that no item refers to, are printed only as JSON.
fn print(problem: &ArchiveProblem, json: bool) {
    if let ArchiveProblem::Orphaned { hash, bytes, is_pruned } = problem {
        // Replaced photographs leave many orphans, so the text has only their number, in the summary.
        if json {
            let hash = hash.to_string();
            print_json(&json!({ "orphan": hash, "bytes": bytes, "removed": is_pruned }));
        }
    } else if json && problem.is_warning() {
        print_json(&json!({ "warning": problem.to_string() }));
    } else if json {
        print_json(&json!({ "problem": problem.word(), "text": problem.to_string() }));
    } else if problem.remains() {
        print_error(&problem.to_string());
    } else {
        print_line(&problem.to_string());
    }
}

/// The depth of `wirephoto check`, and whether it repairs.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct CheckArgs {
    /// Rebuilds derived files and the search index where they are wrong, and removes derived files whose
    /// originals are gone. Originals are never touched.
    #[arg(long)]
    pub(super) repair: bool,
    /// Checks only that each original exists with the right length, and reads none.
    #[arg(long, conflicts_with_all = ["repair", "resume"])]
    quick: bool,
    /// Does the same as --quick, and reads N originals, picked at random, with their derived files.
    #[arg(long, value_name = "N", conflicts_with_all = ["repair", "resume"])]
    sample: Option<usize>,
    /// Resumes an interrupted check: skips the originals that it has read already.
    #[arg(long)]
    resume: bool,
    /// Removes originals that no item refers to and that were stored a while ago (--older-than). The service
    /// may be running.
    #[arg(long)]
    pub(super) prune_orphans: bool,
    /// Minimum age of an orphan to be removed, in hours, days or weeks: 36h, 7d, 2w.
    #[arg(long, value_name = "AGE", default_value = "7d", requires = "prune_orphans",
        value_parser = prune_age)]
    older_than: Duration,
}

/// The minimum of `--older-than`. A command stores an original before the item that refers to it, and such originals
/// are younger.
const PRUNE_AGE_MIN: Duration = Duration::from_secs(3600);

/// Parses an age in hours, days or weeks.
fn prune_age(text: &str) -> Result<Duration, String> {
    let units = [("h", 1), ("d", 24), ("w", 7 * 24)];
    let found = units.iter().find_map(|(unit, hours)| Some((text.strip_suffix(unit)?, *hours)));
    let (count, hours_per_unit) = found.ok_or_else(|| expected_age(text))?;
    // The parser of numbers would accept a plus sign.
    if count.starts_with('+') {
        return Err(expected_age(text));
    }
    let count: u64 = count.parse().map_err(|_| expected_age(text))?;
    let hours = count.checked_mul(hours_per_unit).ok_or_else(|| expected_age(text))?;
    let seconds = hours.checked_mul(3600).ok_or_else(|| expected_age(text))?;
    let age = Duration::from_secs(seconds);
    if age < PRUNE_AGE_MIN {
        return Err("expected at least 1h".to_owned());
    }
    Ok(age)
}

fn expected_age(text: &str) -> String {
    format!("expected hours, days or weeks such as 36h, 7d or 2w, not {text:?}")
}

impl CheckArgs {
    fn request(self) -> CheckRequest {
        let Self { repair, quick, sample, resume, prune_orphans, older_than } = self;
        let depth = match (quick, sample) {
            (false, None) => CheckDepth::Full,
            (true, None) => CheckDepth::Quick { sample: 0 },
            (_, Some(sample)) => CheckDepth::Quick { sample },
        };
        let prune_age = prune_orphans.then_some(older_than);
        CheckRequest { depth, repair, resume, prune_age }
    }
}

pub(super) fn check(config: &Config, args: CheckArgs, json: bool) -> Result<(), CommandFailure> {
    let request = args.request();
    // Opened for what the check writes, so that a bucket that refuses writes is detected first.
    let archive = report_opened(match (args.prune_orphans, request.repair) {
        (true, _) => OpenArchive::open_to_write(config)?,
        (false, true) => OpenArchive::open_to_derive(config)?,
        (false, false) => OpenArchive::open(config)?,
    });
    if let Some(warning) = config.proxy_warning() {
        print_error(&format!("warning: {warning}"));
    }
    let report = check::check(&archive, config, request, &|problem| print(problem, json))?;
    if args.prune_orphans {
        audit_record::add_detail(format!("{} orphans removed", report.pruned.count));
    }
    print_result(json, &json!(report), &check_text(&report, request.depth));
    if report.remaining > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

/// Returns the summary of a check as text.
fn check_text(report: &CheckReport, depth: CheckDepth) -> String {
    let CheckReport { originals, read, remaining, removed, orphans, pruned, .. } = report;
    let mut text = format!("{originals} originals checked, {remaining} problems");
    if let CheckDepth::Quick { .. } = depth {
        text.push_str(&format!("; presence and length, {read} of them read"));
    }
    if let Some(InterruptedCheck { originals, problems, began }) = report.earlier {
        text.push_str(&format!(
            "; {originals} originals with {problems} problems were read by the check that began \
             {began} and was interrupted"
        ));
    }
    if *removed > 0 {
        text.push_str(&format!("; {removed} derived files of missing originals removed"));
    }
    if pruned.count > 0 {
        text.push_str(&format!("; {} that no item refers to removed", tally_text(pruned)));
    }
    if !report.is_complete {
        text.push_str(NOT_ALL_READ);
    }
    if orphans.count > 0 {
        text.push_str(&format!(
            "\nwarning: no item refers to {}; --prune-orphans removes old ones",
            tally_text(orphans)
        ));
    }
    if let Some(standard) = report.standard {
        text.push_str(&format!("\n{}", standard_line(standard)));
    }
    text
}

fn tally_text(tally: &OriginalsTally) -> String {
    format!("{} originals of {} bytes", tally.count, tally.bytes)
}

/// Returns the progress of the background job that makes standard renditions, as a line of text.
fn standard_line(report: StandardReport) -> String {
    let StandardReport { made, failed, to_go } = report;
    let mut line = format!("standard renditions: {made} items made, {to_go} to go");
    if failed > 0 {
        line.push_str(&format!("; those of {failed} cannot be made"));
    }
    line
}

/// Parses the location of a backup's originals, which must be a bucket.
fn bucket(text: &str) -> Result<OriginalsLocation, String> {
    match OriginalsLocation::parse(text)? {
        location @ OriginalsLocation::Bucket { .. } => Ok(location),
        OriginalsLocation::Data | OriginalsLocation::Folder(_) => {
            Err("expected s3://BUCKET/PREFIX".to_owned())
        }
    }
}

/// The target of `wirephoto backup`, and what it copies.
#[derive(Args, Debug)]
pub(super) struct BackupArgs {
    /// Removes originals from the backup that the archive no longer refers to.
    #[arg(long, conflicts_with = "originals_only")]
    prune: bool,
    /// Reads the originals that the backup has already, and copies damaged ones again.
    #[arg(long)]
    verify: bool,
    /// Leaves out the key that encrypts the secrets in the database; store it elsewhere.
    #[arg(long, conflicts_with = "originals_only")]
    without_key: bool,
    /// Bucket for the originals, s3://BUCKET/PREFIX, reached with the settings backup.*; everything else is
    /// copied to TARGET.
    #[arg(long, value_name = "PLACE", value_parser = bucket)]
    bucket: Option<OriginalsLocation>,
    /// Copies all originals of the store and nothing else, for a database that is dumped with its own tools.
    /// With --bucket it needs no TARGET.
    #[arg(long)]
    originals_only: bool,
    /// Folder of the backup, new or with an earlier backup.
    #[arg(value_name = "TARGET", required_unless_present = "originals_only")]
    target: Option<PathBuf>,
}

impl BackupArgs {
    /// Returns the folder or bucket as text, for the audit log.
    pub(super) fn location(&self) -> String {
        location_of(self.target.as_deref(), self.bucket.as_ref())
    }
}

/// The source of `wirephoto restore`, and what it restores.
#[derive(Args, Debug)]
pub(super) struct RestoreArgs {
    /// Builds the derived files now instead of on first use.
    #[arg(long, conflicts_with = "originals_only")]
    rebuild: bool,
    /// Bucket with the originals, s3://BUCKET/PREFIX, if it is not the one named in the backup.
    #[arg(long, value_name = "PLACE", value_parser = bucket)]
    bucket: Option<OriginalsLocation>,
    /// Copies the originals that are missing or damaged in the archive's store, and nothing else. With
    /// --bucket it needs no SOURCE; the service may be running.
    #[arg(long)]
    originals_only: bool,
    /// Folder of the backup.
    #[arg(value_name = "SOURCE", required_unless_present = "originals_only")]
    source: Option<PathBuf>,
}

impl RestoreArgs {
    /// Returns the folder or bucket as text, for the audit log.
    pub(super) fn location(&self) -> String {
        location_of(self.source.as_deref(), self.bucket.as_ref())
    }
}

fn location_of(folder: Option<&Path>, bucket: Option<&OriginalsLocation>) -> String {
    match (folder, bucket) {
        (Some(folder), _) => folder.display().to_string(),
        (None, Some(bucket)) => bucket.print(),
        (None, None) => String::new(),
    }
}

/// The subcommands of `wirephoto backup`.
#[derive(Debug, Subcommand)]
pub(super) enum BackupCommand {
    /// Verifies that a copy of the originals is complete for a database: each original that the database
    /// refers to exists with the right length; exit status 1 if not.
    ///
    /// The database is that of the backup, or without TARGET the one of the settings. Use it to validate a
    /// dump by PostgreSQL's own tools before you rely on it as a backup.
    Verify {
        #[command(flatten)]
        common: CommonArgs,
        /// Reads the originals and verifies their checksums.
        #[arg(long)]
        read: bool,
        /// Bucket with the originals, s3://BUCKET/PREFIX, if it is not the one named in the backup; reached
        /// with the settings backup.*.
        #[arg(long, value_name = "PLACE", value_parser = bucket)]
        bucket: Option<OriginalsLocation>,
        /// Folder with the originals, instead of a bucket.
        #[arg(long, value_name = "DIR", conflicts_with = "bucket")]
        originals: Option<PathBuf>,
        /// Prints one JSON object per line.
        #[arg(long)]
        json: bool,
        /// Folder of the backup.
        #[arg(value_name = "TARGET")]
        target: Option<PathBuf>,
    },
}

pub(super) fn backup_command(command: BackupCommand) -> Result<(), CommandFailure> {
    let BackupCommand::Verify { common, read, bucket, originals, json, target } = command;
    let config = common.config()?;
    let location = bucket.or(originals.map(OriginalsLocation::Folder));
    if location.is_none() && target.is_none() {
        return usage(
            "expected the TARGET of a backup, or the originals with --bucket or --originals",
        );
    }
    let request = VerifyRequest { backup: target.as_deref(), place: location.as_ref(), read };
    let verified = verify(&config, request, &|problem| print(problem, json))?;
    let VerifyReport { place, originals, read, problems, unnamed } = &verified;
    let verdict = if *problems == 0 { "matches" } else { "does not match" };
    let mut text = format!(
        "{place} {verdict}: {originals} originals expected, {problems} problems, {read} originals \
         read"
    );
    if *unnamed > 0 {
        text.push_str(&format!("; {unnamed} more originals are there, which is harmless"));
    }
    print_result(json, &json!(verified), &text);
    if *problems > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

/// Returns the location of a copy that holds only originals. Fails unless exactly one of `folder` and `bucket` is given.
fn copy_location<'a>(
    folder: Option<&'a Path>,
    bucket: Option<&'a OriginalsLocation>,
) -> Result<CopyLocation<'a>, CommandFailure> {
    match (bucket, folder) {
        (Some(_), Some(_)) => usage("--originals-only: name a folder or --bucket, not both"),
        (Some(bucket), None) => Ok(CopyLocation::Bucket(bucket)),
        (None, Some(folder)) => Ok(CopyLocation::Folder(folder)),
        (None, None) => usage("--originals-only: name a folder or --bucket"),
    }
}

/// Prints the result of copying only the originals; fails if some are `lost`, which could not be copied.
fn report_copied(
    location: CopyLocation<'_>,
    tally: CopyTally,
    lost: usize,
    json: bool,
) -> Result<(), CommandFailure> {
    let CopyTally { copied, copied_bytes, present, pruned: _ } = tally;
    let mut text =
        format!("{}: {copied} originals copied, {present} already there", location.print());
    if lost > 0 {
        text.push_str(&format!("; {lost} could not be copied"));
    }
    let facts = json!({ "place": location.print(), "copied": copied,
        "copiedBytes": copied_bytes, "there": present, "lost": lost });
    print_result(json, &facts, &text);
    if lost > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

pub(super) fn backup(
    config: &Config,
    args: &BackupArgs,
    json: bool,
) -> Result<(), CommandFailure> {
    let BackupArgs { prune, verify, without_key, bucket, originals_only, target } = args;
    let bucket = bucket.as_ref();
    let target = target.as_deref();
    let Some(target) = target.filter(|_| !originals_only) else {
        let location = copy_location(target, bucket)?;
        let (tally, lost) = with_progress(json, |on_event| {
            backup::copy_originals(config, location, *verify, on_event)
        })?;
        return report_copied(location, tally, lost, json);
    };
    let request = BackupRequest {
        target,
        bucket,
        prune: *prune,
        verify: *verify,
        without_key: *without_key,
    };
    let (manifest, tally) =
        with_progress(json, |on_event| backup::backup(config, request, clock::now(), on_event))?;
    if manifest.secrets_key_file.is_some() {
        audit_record::add_detail("with the key of its secrets");
    }
    // The database is opened for the audit log, and only now: a failure to open it must not lose a finished backup.
    backup::open_to_record(config).iter().for_each(audit_record::set_database);
    let CopyTally { copied, copied_bytes, present, pruned } = tally;
    let mut facts = json!(manifest);
    facts["copied"] = copied.into();
    facts["copiedBytes"] = copied_bytes.into();
    facts["there"] = present.into();
    facts["pruned"] = pruned.into();
    let mut text = format!(
        "{}: {} items, {} originals ({copied} copied, {present} already there), schema {}",
        target.display(),
        manifest.items,
        manifest.originals,
        manifest.schema,
    );
    if let Some(bucket) = &manifest.bucket {
        text.push_str(&format!("; the originals are in {bucket}"));
    }
    if pruned > 0 {
        text.push_str(&format!("; {pruned} originals that no item names removed"));
    }
    if let (Some(id), None) = (&manifest.secrets_key, &manifest.secrets_key_file) {
        text.push_str(&format!("; the key {id} of its secrets is not in it: store it separately"));
    }
    if manifest.lost > 0 {
        text.push_str(&format!("; {} are lost, see `wirephoto check`", manifest.lost));
    }
    print_result(json, &facts, &text);
    if manifest.lost > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

pub(super) fn restore(
    config: &Config,
    args: &RestoreArgs,
    json: bool,
) -> Result<(), CommandFailure> {
    let RestoreArgs { rebuild, bucket, originals_only, source } = args;
    let bucket = bucket.as_ref();
    let source = source.as_deref();
    let Some(source) = source.filter(|_| !originals_only) else {
        let location = copy_location(source, bucket)?;
        let (tally, lost) =
            with_progress(json, |on_event| backup::restore_originals(config, location, on_event))?;
        return report_copied(location, tally, lost, json);
    };
    let RestoreReport { tally, lost, missing_key } =
        with_progress(json, |on_event| backup::restore(config, source, bucket, on_event))?;
    if let Some(message) = &missing_key {
        print_error(message);
    }
    let archive = report_opened(OpenArchive::open_restored(config)?);
    forget_standard_progress(&archive.db)?;
    let (report, underived) =
        check_restored(&archive, config, CheckRequest::full(*rebuild), json)?;
    let problems = report.remaining.saturating_sub(underived);
    let originals = report.originals;
    let mut text = format!(
        "{}: {originals} originals restored and checked, {problems} problems",
        config.data.dir.display()
    );
    if underived > 0 {
        text.push_str(&format!(
            "; the derived files of {underived} are rebuilt when they are needed, which takes \
             time at first, or by `wirephoto check --repair`"
        ));
    }
    if !report.is_complete {
        text.push_str(NOT_ALL_READ);
    }
    let facts = json!({ "originals": originals, "copied": tally.copied,
        "there": tally.present, "lost": lost, "problems": problems, "underived": underived,
        "allItemsRead": report.is_complete });
    print_result(json, &facts, &text);
    if problems + lost > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

/// Checks a restored archive and prints its problems. Returns the report and the number of problems with derived
/// files, which are counted instead of printed, because the files are built on demand.
fn check_restored(
    archive: &OpenArchive,
    config: &Config,
    request: CheckRequest,
    json: bool,
) -> Result<(CheckReport, usize), CommandFailure> {
    let underived = AtomicUsize::new(0);
    let report = check::check(archive, config, request, &|problem| {
        let ArchiveProblem::Derived { repaired, .. } = problem else {
            return print(problem, json);
        };
        match repaired {
            None => {
                underived.fetch_add(1, Ordering::Relaxed);
            }
            // `--rebuild` has created the file.
            Some(Ok(())) => {}
            Some(Err(_)) => print(problem, json),
        }
    })?;
    Ok((report, underived.into_inner()))
}

/// Runs a backup or a restore with a progress bar on a terminal; failures are printed above it.
fn with_progress<T>(
    json: bool,
    work: impl FnOnce(CopyListener<'_>) -> Result<T, Error>,
) -> Result<T, CommandFailure> {
    let bar = progress_bar(Some(0), "{msg:9} {bar:40} {pos}/{len}, {eta} left", json);
    let outcome = work(&|event: CopyEvent<'_>| show_event(&bar, event));
    // Cleared before an error is printed, which would otherwise end up in the line of the bar.
    bar.finish_and_clear();
    Ok(outcome?)
}

fn show_event(bar: &ProgressBar, event: CopyEvent<'_>) {
    match event {
        CopyEvent::Pages(done, all) => {
            bar.set_message("pages");
            bar.set_length(all);
            bar.set_position(done);
        }
        CopyEvent::Originals(all) => {
            bar.set_message("originals");
            bar.set_length(all);
            bar.set_position(0);
        }
        CopyEvent::Original => bar.inc(1),
        CopyEvent::Failed(why) => bar.suspend(|| print_error(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(text: &str) -> Result<u64, String> {
        prune_age(text).map(|age| age.as_secs() / 3600)
    }

    #[test]
    fn ages_of_orphans_are_hours_days_and_weeks() {
        assert_eq!(hours("36h"), Ok(36));
        assert_eq!(hours("7d"), Ok(168));
        assert_eq!(hours("2w"), Ok(336));
        for text in ["", "d", "7", "7x", "-7d", "7 d", "1.5d", "7dd", "99999999999999999999d"] {
            assert!(hours(text).unwrap_err().contains("36h"), "{text:?}");
        }
        assert!(hours("9999999999999999999w").is_err());
        assert!(hours("0d").unwrap_err().contains("at least 1h"));
    }
}
