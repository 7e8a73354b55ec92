//! `wirephoto check`, `backup` and `restore`.

use std::{
    io::{self, IsTerminal},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{Trouble, complain, open_archive, opened, record, say};
use crate::app::Archive;
use crate::app::backup::{self, Heard, Restored, Tally, Wanted};
use crate::app::check::{self, CheckRequest, Depth, Earlier, Problem, Report};
use crate::clock;
use crate::config::Config;

/// The end of a summary where rows of items are damaged.
const NOT_ALL_READ: &str = "; not all items could be read, so originals that only they name were \
                            not looked at";

/// Prints a problem: what remains to standard error.
fn print(problem: &Problem, json: bool) {
    if json && problem.is_warning() {
        say(&json!({ "warning": problem.to_string() }).to_string());
    } else if json {
        say(&json!({ "problem": problem.word(), "text": problem.to_string() }).to_string());
    } else if problem.remains() {
        complain(&problem.to_string());
    } else {
        say(&problem.to_string());
    }
}

/// How much `wirephoto check` does.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct CheckArgs {
    /// Makes derived files and the search index again where they are not right, and removes
    /// what nobody needs. Originals are never touched.
    #[arg(long)]
    pub(super) repair: bool,
    /// Looks whether each original is there with its length, and reads none.
    #[arg(long, conflicts_with_all = ["repair", "resume"])]
    quick: bool,
    /// Does what --quick does, and reads N originals, picked at random, with what is derived from them.
    #[arg(long, value_name = "N", conflicts_with_all = ["repair", "resume"])]
    sample: Option<usize>,
    /// Continues a check that was interrupted: skips the originals that it has read.
    #[arg(long)]
    resume: bool,
}

impl CheckArgs {
    pub(super) fn request(self) -> CheckRequest {
        let Self { repair, quick, sample, resume } = self;
        let depth = match (quick, sample) {
            (false, None) => Depth::Full,
            (true, None) => Depth::Quick { sample: 0 },
            (_, Some(sample)) => Depth::Quick { sample },
        };
        CheckRequest { depth, repair, resume }
    }
}

pub(super) fn check(config: &Config, request: CheckRequest, json: bool) -> Result<(), Trouble> {
    let archive = match request.repair {
        true => opened(Archive::open_to_write(config)?),
        false => open_archive(config)?,
    };
    if let Some(warning) = config.hidden_clients() {
        complain(&format!("warning: {warning}"));
    }
    let report = check::check(&archive, config, request, &|problem| print(problem, json))?;
    let Report { originals, read, earlier, remaining, removed, whole } = report;
    if json {
        let mut line = json!({ "originals": originals, "read": read, "problems": remaining,
            "removed": removed, "allItemsRead": whole });
        if let Some(Earlier { originals, problems, began }) = earlier {
            line["resumed"] =
                json!({ "originals": originals, "problems": problems, "began": began });
        }
        say(&line.to_string());
    } else {
        let mut text = format!("{originals} originals checked, {remaining} problems");
        if let Depth::Quick { .. } = request.depth {
            text.push_str(&format!("; presence and length, {read} of them read"));
        }
        if let Some(Earlier { originals, problems, began }) = earlier {
            text.push_str(&format!(
                "; {originals} originals with {problems} problems were read by the check that began \
                 {began} and was interrupted"
            ));
        }
        if removed > 0 {
            text.push_str(&format!(
                "; {removed} derived files of originals that are gone removed"
            ));
        }
        if !whole {
            text.push_str(NOT_ALL_READ);
        }
        say(&text);
    }
    if remaining > 0 { Err(Trouble::Reported) } else { Ok(()) }
}

/// What is asked of a backup.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub prune: bool,
    pub verify: bool,
    pub without_key: bool,
    pub json: bool,
}

pub(super) fn backup(config: &Config, target: &Path, asked: Asked) -> Result<(), Trouble> {
    let bar = Bar::new(asked.json);
    let Asked { prune, verify, without_key, json: _ } = asked;
    let wanted = Wanted { target, prune, verify, without_key };
    let made = backup::backup(config, wanted, clock::now(), &|heard| bar.hear(heard));
    bar.shown.finish_and_clear();
    let (manifest, tally) = made?;
    if manifest.secrets_key_file.is_some() {
        record::with("with the key of its secrets");
    }
    // What opens the archive opens it after the copy: nothing that fails here loses a backup.
    backup::open_to_record(config).iter().for_each(record::opened);
    let Tally { copied, copied_bytes, there, pruned } = tally;
    if asked.json {
        let mut line = serde_json::to_value(&manifest).unwrap_or_default();
        line["copied"] = copied.into();
        line["copiedBytes"] = copied_bytes.into();
        line["there"] = there.into();
        line["pruned"] = pruned.into();
        say(&line.to_string());
    } else {
        let mut text = format!(
            "{}: {} items, {} originals ({copied} copied, {there} there already), schema {}",
            target.display(),
            manifest.items,
            manifest.originals,
            manifest.schema,
        );
        if pruned > 0 {
            text.push_str(&format!("; {pruned} originals that no item names removed"));
        }
        if let (Some(id), None) = (&manifest.secrets_key, &manifest.secrets_key_file) {
            text.push_str(&format!("; the key {id} of its secrets is not in it: keep it apart"));
        }
        if manifest.lost > 0 {
            text.push_str(&format!("; {} are lost, see `wirephoto check`", manifest.lost));
        }
        say(&text);
    }
    if manifest.lost > 0 { Err(Trouble::Reported) } else { Ok(()) }
}

pub(super) fn restore(
    config: &Config,
    source: &Path,
    (rebuild, json): (bool, bool),
) -> Result<(), Trouble> {
    let bar = Bar::new(json);
    let restored = backup::restore(config, source, &|heard| bar.hear(heard));
    bar.shown.finish_and_clear();
    let Restored { tally, lost, lacks } = restored?;
    if let Some(lacks) = &lacks {
        complain(lacks);
    }
    // What a check says of it; that nothing is derived yet is no fault then.
    let archive = open_archive(config)?;
    let waiting = AtomicUsize::new(0);
    let report =
        check::check(&archive, config, CheckRequest::full(rebuild), &|problem| match problem {
            Problem::Derived { repaired: None, .. } => {
                waiting.fetch_add(1, Ordering::Relaxed);
            }
            Problem::Derived { repaired: Some(Ok(())), .. } => {}
            Problem::Missing { .. }
            | Problem::Damaged { .. }
            | Problem::Length { .. }
            | Problem::Unreadable { .. }
            | Problem::Derived { repaired: Some(Err(_)), .. }
            | Problem::Orphaned { .. }
            | Problem::Cached { .. }
            | Problem::Leftover { .. }
            | Problem::Warning(_)
            | Problem::Database { .. } => print(problem, json),
        })?;
    let waiting = waiting.into_inner();
    let problems = report.remaining.saturating_sub(waiting);
    let originals = report.originals;
    if json {
        let line = json!({ "originals": originals, "copied": tally.copied,
            "there": tally.there, "lost": lost, "problems": problems, "underived": waiting,
            "allItemsRead": report.whole });
        say(&line.to_string());
    } else {
        let mut text = format!(
            "{}: {originals} originals restored and checked, {problems} problems",
            config.data.dir.display()
        );
        if waiting > 0 {
            text.push_str(&format!(
                "; the derived files of {waiting} are made when they are needed, which takes time \
                 at first, or by `wirephoto check --repair`"
            ));
        }
        if !report.whole {
            text.push_str(NOT_ALL_READ);
        }
        say(&text);
    }
    if problems + lost > 0 { Err(Trouble::Reported) } else { Ok(()) }
}

/// A bar on a terminal; what could not be done is told beside it.
struct Bar {
    shown: ProgressBar,
}

impl Bar {
    fn new(json: bool) -> Self {
        if json || !io::stderr().is_terminal() {
            return Self { shown: ProgressBar::hidden() };
        }
        let style = ProgressStyle::with_template("{msg:9} {bar:40} {pos}/{len}, {eta} left");
        let bar = ProgressBar::new(0);
        Self { shown: style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)) }
    }

    fn hear(&self, heard: Heard<'_>) {
        match heard {
            Heard::Pages(done, all) => {
                self.shown.set_message("pages");
                self.shown.set_length(all);
                self.shown.set_position(done);
            }
            Heard::Originals(all) => {
                self.shown.set_message("originals");
                self.shown.set_length(all);
                self.shown.set_position(0);
            }
            Heard::Original => self.shown.inc(1),
            Heard::Failed(why) => self.shown.suspend(|| complain(why)),
        }
    }
}
