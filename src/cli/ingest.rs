//! `wirephoto ingest` and `wirephoto withdraw`.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::json;

use super::progress::progress_bar;
use super::{
    CommandFailure, audit_record, open_archive, print_error, print_json, print_result,
    report_opened,
};
use crate::app::OpenArchive;
use crate::archive::ingest::{
    self, FoundFiles, Ingest, IngestFailure, IngestedItem, LinesEvent, LinesTally,
};
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::storage::database::ItemWriteOutcome;
use crate::storage::diagnostics::{DiagnosticLog, DiagnosticRecord};
use model::ItemKey;

/// The node in diagnostic records: a command is no node of the cluster.
const NODE_NAME: &str = "command";

/// Ingests files and folders for `wirephoto ingest`.
pub(super) fn ingest_paths(
    config: &Config,
    paths: &[PathBuf],
    json: bool,
) -> Result<(), CommandFailure> {
    // A bucket that refuses writes is detected before the first file is read.
    let archive = report_opened(OpenArchive::open_to_write(config)?);
    let FoundFiles { incoming, lines, skipped, failures } = ingest::find(paths);
    let template = "{bar:40} {pos}/{len} items, {per_sec}, {eta} left";
    let length = u64::try_from(incoming.len()).ok();
    let bar = progress_bar(length, template, json || incoming.is_empty());
    let tally = Mutex::new(IngestTally::default());
    failures.into_iter().for_each(|failure| tally.lock().report(&Err(failure), json));
    let ingest = archive.ingest(config)?.with_sources(paths);
    ingest::ingest_all(&ingest, incoming, config.ingest_workers(), &clock::now, &|_, outcome| {
        let mut tally = tally.lock();
        // Messages and the bar share the terminal.
        bar.suspend(|| tally.report(outcome, json));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let mut tally = tally.into_inner();
    for path in &lines {
        tally.ingest_lines(&ingest, path, config.ingest_workers(), json);
    }
    tally.print_summary(skipped, json);
    store_diagnostics(&archive, &tally.diagnostics);
    let IngestTally { created, replaced, failed, .. } = &tally;
    audit_record::add_detail(format!("{created} created, {replaced} replaced, {failed} failed"));
    if tally.failed > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

/// Stores the errors of the run as diagnostics, which the API for operators lists.
fn store_diagnostics(archive: &OpenArchive, diagnostics: &DiagnosticLog) {
    let records = diagnostics.take().records;
    if records.is_empty() {
        return;
    }
    let written = archive.db.write_blocking(move |tx| tx.insert_diagnostics(&records, NODE_NAME));
    // The run itself has succeeded or failed by now, and its errors were printed.
    if let Err(cause) = written {
        print_error(&format!("the errors are not stored as diagnostics: {cause}"));
    }
}

/// Withdraws items for `wirephoto withdraw`. A name is a URI of any host, or `<mediaType>/<id>`.
pub(super) fn withdraw(
    config: &Config,
    names: &[String],
    json: bool,
) -> Result<(), CommandFailure> {
    let ingest = open_archive(config)?.ingest(config)?;
    let mut withdrawn = 0_u64;
    let mut failed = 0_u64;
    for name in names {
        // A bad name must not keep the other items from being withdrawn.
        let outcome = item_of(name).and_then(|key| match ingest.withdraw(&key, clock::now()) {
            Ok(true) => Ok(key),
            Ok(false) => Err(format!("{name}: no such item")),
            Err(cause) => Err(format!("{name}: {cause}")),
        });
        match outcome {
            Ok(key) => {
                withdrawn += 1;
                if json {
                    print_json(&json!({ "item": key.to_string(), "status": "withdrawn" }));
                }
            }
            Err(error) => {
                failed += 1;
                if json {
                    print_json(&json!({ "name": name, "status": "failed", "error": error }));
                }
                print_error(&error);
            }
        }
    }
    let facts = json!({ "withdrawn": withdrawn, "failed": failed });
    print_result(json, &facts, &format!("{withdrawn} withdrawn, {failed} failed"));
    if failed > 0 { Err(CommandFailure::Reported) } else { Ok(()) }
}

/// Parses a URI or `<mediaType>/<id>` as the key of an item.
pub(super) fn item_of(name: &str) -> Result<ItemKey, String> {
    let parsed = if name.contains("://") {
        ItemKey::from_uri(name).map_err(|cause| cause.to_string())
    } else {
        ItemKey::parse(name).map_err(|cause| cause.to_string())
    };
    parsed.map_err(|cause| format!("{name}: names no item: {cause}"))
}

/// The counts and errors of a run of `wirephoto ingest`.
#[derive(Default)]
struct IngestTally {
    created: u64,
    replaced: u64,
    failed: u64,
    diagnostics: DiagnosticLog,
}

impl IngestTally {
    /// Ingests a file with a document in each line. It may hold millions, so only failures are printed one by one.
    fn ingest_lines(&mut self, ingest: &Ingest, path: &Path, workers: usize, json: bool) {
        let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let template = "{bar:40} {bytes}/{total_bytes} {msg}, {bytes_per_sec}, {eta} left";
        let bar = progress_bar(Some(length), template, json);
        bar.set_message(path.display().to_string());
        let diagnostics = self.diagnostics.clone();
        let file_tally = ingest::ingest_lines(ingest, path, workers, &clock::now, &mut |event| {
            match event {
                LinesEvent::Failed(failure) => {
                    bar.suspend(|| print_failure(failure, json));
                    record_failure(&diagnostics, failure);
                }
                LinesEvent::Bytes(bytes) => bar.set_position(bytes),
            }
            ControlFlow::Continue(())
        });
        bar.finish_and_clear();
        let LinesTally { created, replaced, failed, .. } = file_tally;
        self.created += created;
        self.replaced += replaced;
        self.failed += failed;
        if json {
            let path = path.display().to_string();
            print_json(&json!({
                "path": path,
                "status": "ended",
                "created": created,
                "replaced": replaced,
                "failed": failed,
            }));
        }
    }

    /// Counts the outcome of a file or item folder, and prints its error or warnings; as JSON, also an item without any.
    fn report(&mut self, outcome: &Result<IngestedItem, IngestFailure>, json: bool) {
        match outcome {
            Ok(item) => {
                let (count, word) = match item.written {
                    ItemWriteOutcome::Created => (&mut self.created, "created"),
                    ItemWriteOutcome::Replaced => (&mut self.replaced, "replaced"),
                };
                *count += 1;
                if json {
                    let key = item.key.to_string();
                    print_json(&json!({ "item": key, "status": word, "warnings": item.warnings }));
                } else {
                    for warning in &item.warnings {
                        print_error(&format!("{}: warning: {warning}", item.key));
                    }
                }
            }
            Err(failure) => {
                self.failed += 1;
                print_failure(failure, json);
                record_failure(&self.diagnostics, failure);
            }
        }
    }

    fn print_summary(&self, skipped: usize, json: bool) {
        let Self { created, replaced, failed, .. } = self;
        let mut text = format!("{created} created, {replaced} replaced, {failed} failed");
        if skipped > 0 {
            text.push_str(&format!("; {skipped} other files skipped"));
        }
        let facts = json!({
            "created": created,
            "replaced": replaced,
            "failed": failed,
            "passedOver": skipped,
        });
        print_result(json, &facts, &text);
    }
}

/// Records a file or document that was not ingested, for the diagnostics.
fn record_failure(diagnostics: &DiagnosticLog, failure: &IngestFailure) {
    let subject = match failure.line {
        Some(line) => format!("{}:{line}", failure.path.display()),
        None => failure.path.display().to_string(),
    };
    diagnostics.record(DiagnosticRecord::ingest_error(subject, &failure.error, clock::now()));
}

/// Prints the failure of a file or document that was not ingested.
fn print_failure(failure: &IngestFailure, json: bool) {
    if json {
        let path = failure.path.display().to_string();
        let mut line =
            json!({ "path": path, "status": "failed", "error": failure.error.to_string() });
        if let Some(number) = failure.line {
            line["line"] = json!(number);
        }
        print_json(&line);
    }
    print_error(&failure.to_string());
}
