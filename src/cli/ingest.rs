//! `wirephoto ingest`.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{Trouble, complain, say};
use crate::app::Archive;
use crate::clock;
use crate::config::Config;
use crate::db::Written;
use crate::ingest::{self, Failure, Found, Incoming, Taken};

pub(super) fn take_in(config: &Config, paths: &[PathBuf], json: bool) -> Result<(), Trouble> {
    let archive = Archive::open(config)?;
    let Found { incoming, passed_over, failures } = ingest::find(paths);
    let bar = progress_bar(incoming.len(), json);
    let tally = Mutex::new(Tally::default());
    let report = |_: &Incoming, outcome: &Result<Taken, Failure>| {
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        bar.suspend(|| tally.report(outcome, json));
        bar.inc(1);
    };
    for failure in failures {
        let outcome = Err(failure);
        tally.lock().unwrap_or_else(PoisonError::into_inner).report(&outcome, json);
    }
    let ingest = archive.ingest(config)?;
    ingest::take_in_all(&ingest, incoming, config.ingest_workers(), &clock::now, &report);
    bar.finish_and_clear();
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.summary(passed_over, json);
    if tally.failed > 0 { Err(Trouble::Reported) } else { Ok(()) }
}

fn progress_bar(length: usize, json: bool) -> ProgressBar {
    if json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:40} {pos}/{len} photographs, {per_sec}, {eta} left";
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[derive(Default)]
struct Tally {
    created: usize,
    replaced: usize,
    failed: usize,
}

impl Tally {
    fn report(&mut self, outcome: &Result<Taken, Failure>, json: bool) {
        match outcome {
            Ok(taken) => {
                let word = match taken.written {
                    Written::Created => "created",
                    Written::Replaced => "replaced",
                };
                match taken.written {
                    Written::Created => self.created += 1,
                    Written::Replaced => self.replaced += 1,
                }
                if json {
                    let key = taken.key.to_string();
                    say(&json!({ "item": key, "status": word, "warnings": taken.warnings })
                        .to_string());
                } else {
                    for warning in &taken.warnings {
                        complain(&format!("{}: warning: {warning}", taken.key));
                    }
                }
            }
            Err(failure) => {
                self.failed += 1;
                if json {
                    let path = failure.path.display().to_string();
                    let error = failure.error.to_string();
                    say(&json!({ "path": path, "status": "failed", "error": error }).to_string());
                }
                complain(&failure.to_string());
            }
        }
    }

    fn summary(&self, passed_over: usize, json: bool) {
        let Self { created, replaced, failed } = self;
        if json {
            say(&json!({
                "created": created,
                "replaced": replaced,
                "failed": failed,
                "passedOver": passed_over,
            })
            .to_string());
            return;
        }
        let mut text = format!("{created} created, {replaced} replaced, {failed} failed");
        if passed_over > 0 {
            text.push_str(&format!("; {passed_over} other files passed over"));
        }
        say(&text);
    }
}
