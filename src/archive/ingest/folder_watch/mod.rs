//! The watched folder: ingests complete files, then moves them to `done/` or `failed/`.
//!
//! A file or item folder is complete if it did not change between two polls. No state is stored on disk. An input
//! whose ingest was interrupted by a crash is still in place and is ingested again, which is idempotent.

mod arrivals;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

use self::arrivals::{Arrival, ArrivalKind};
use super::pinned_path::{self, MissingFolder, open_folder};
use super::{
    IncomingPath, Ingest, IngestError, IngestFailure, LinesEvent, ingest_all, ingest_lines,
};
use crate::runtime::modes;
use crate::storage::audit::{self, AuditAction, ObjectKind};

/// Items of the watched folder that are ingested between two checks for a shutdown.
const WATCH_SLICE: usize = 32;
/// Invalid lines of a document file that are listed in the report next to it.
const WATCH_PROBLEMS_MAX: usize = 1000;
/// Refused lines of a file of documents that its diagnostic record names.
const DIAGNOSTIC_LINES_MAX: usize = 3;
/// The subfolder for inputs that were ingested.
const DONE: &str = "done";
/// The subfolder for inputs that were refused.
const FAILED: &str = "failed";
/// The file with the folder's name, which identifies it to nodes on several machines. It is hidden, so that it is
/// not ingested.
const NAME: &str = ".wirephoto-watch";

/// A folder that is polled for new files.
pub struct FolderWatch {
    dir: PathBuf,
    /// The target for ingested inputs: a folder that the operator controls, and the path below it, on which no
    /// link is followed. A link that exists at the start is the operator's choice.
    done: (PathBuf, PathBuf),
    /// The target for refused inputs, in the same form.
    failed: (PathBuf, PathBuf),
    ingest: Ingest,
    workers: usize,
    /// The inputs that the last poll found.
    seen: HashMap<PathBuf, Arrival>,
    /// Inputs that were processed but could not be moved away, with their outcome. Every poll retries the move.
    stuck: HashMap<PathBuf, (Arrival, ArrivalOutcome)>,
    /// Inputs that are retried, with the reason, which is logged once.
    postponed: HashMap<PathBuf, String>,
}

/// The context of a poll: the clock, and a signal to stop early.
pub struct ScanContext<'a> {
    /// Returns the time of day.
    pub now: &'a (dyn Fn() -> Timestamp + Sync),
    /// Returns whether the service is stopping.
    pub stops: &'a dyn Fn() -> bool,
}

/// The outcome of processing an input.
enum ArrivalOutcome {
    Done,
    /// Refused, with the problems and their places.
    Failed(String, Vec<Value>),
    /// The machine failed. The input stays in place and is retried.
    Postponed(String),
}

impl FolderWatch {
    /// Watches `dir` with its `done/` and `failed/`. Creates missing folders.
    pub fn open(dir: &Path, ingest: Ingest, workers: usize) -> io::Result<Self> {
        for name in [DONE, FAILED] {
            modes::create_shared_folder(&dir.join(name))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            done: target(dir, DONE)?,
            failed: target(dir, FAILED)?,
            ingest: Ingest { confined_root: Some(dir.to_owned()), ..ingest },
            workers,
            seen: HashMap::new(),
            stuck: HashMap::new(),
            postponed: HashMap::new(),
        })
    }

    /// Returns the name of the folder: a random id that was written into it when it was first watched. Nodes on
    /// several machines compare it to find out whether they watch the same folder, regardless of the mount point.
    pub fn name(&self) -> io::Result<Uuid> {
        let path = self.dir.join(NAME);
        match read_name(&path) {
            // Only a missing name is replaced. Two nodes with different names would both ingest the folder.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let fresh = Uuid::new_v4();
        let draft = self.dir.join(format!("{NAME}-{fresh}"));
        modes::write_shared(&draft, fresh.to_string().as_bytes())?;
        // The link appears atomically, and the first node that creates it wins.
        let linked = fs::hard_link(&draft, &path);
        fs::remove_file(&draft)?;
        match linked {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
            _ => read_name(&path),
        }
    }

    /// Polls the folder and ingests the complete inputs.
    ///
    /// Fails if the folder cannot be read.
    pub fn scan(&mut self, watcher: &ScanContext<'_>) -> io::Result<()> {
        let arrivals = arrivals::list(&self.dir, &[DONE, FAILED])?;
        let mut finished = Vec::new();
        for arrival in &arrivals {
            let is_finished = self.seen.get(&arrival.path) == Some(arrival);
            // A stuck input has already been ingested, and only its move is retried.
            let is_stuck =
                self.stuck.get(&arrival.path).is_some_and(|(stuck, _)| stuck == arrival);
            if is_finished && !is_stuck {
                finished.push(arrival.clone());
            }
        }
        self.postponed.retain(|path, _| arrivals.iter().any(|arrival| arrival.path == *path));
        self.seen = arrivals.into_iter().map(|arrival| (arrival.path.clone(), arrival)).collect();
        for (path, (arrival, outcome)) in std::mem::take(&mut self.stuck) {
            // An input that has changed since is treated as a new arrival, also during this poll. A missing input
            // needs no move.
            let is_same = self.seen.get(&path) == Some(&arrival) && arrival.is_unchanged();
            // The failure was logged when the move first failed.
            if is_same && self.move_away(&path, &outcome).is_err() {
                self.stuck.insert(path, (arrival, outcome));
            }
        }
        // In slices, so that a shutdown does not wait for all of them.
        for slice in finished.chunks(WATCH_SLICE) {
            if (watcher.stops)() {
                return Ok(());
            }
            self.ingest_slice(slice, watcher);
        }
        Ok(())
    }

    /// Ingests the inputs of `slice` that have not changed since the poll. An input that changes during its ingest
    /// stays in place and is ingested again.
    fn ingest_slice(&mut self, slice: &[Arrival], watcher: &ScanContext<'_>) {
        let slice: Vec<&Arrival> = slice.iter().filter(|arrival| arrival.is_unchanged()).collect();
        let mut incoming = Vec::new();
        let mut outcomes: Vec<(PathBuf, ArrivalOutcome)> = Vec::new();
        for Arrival { path, kind, .. } in slice.iter().copied() {
            match kind {
                ArrivalKind::Media => incoming.push(IncomingPath::File(path.clone())),
                ArrivalKind::ItemFolder => incoming.push(IncomingPath::ItemFolder(path.clone())),
                ArrivalKind::Unknown => {
                    outcomes.push((path.clone(), classify(Err(&IngestError::Kind))));
                }
                ArrivalKind::Link => {
                    let error = IngestError::Name("has a symbolic link".to_owned());
                    outcomes.push((path.clone(), classify(Err(&error))));
                }
                ArrivalKind::Lines => {}
            }
        }
        let processed = Mutex::new(outcomes);
        ingest_all(&self.ingest, incoming, self.workers, watcher.now, &|incoming, outcome| {
            let outcome = outcome.as_ref().map(drop).map_err(|failure| &failure.error);
            let classified = (incoming.path().to_owned(), classify(outcome));
            processed.lock().push(classified);
        });
        for (path, outcome) in processed.into_inner() {
            if is_unchanged(&slice, &path) {
                self.finish(&path, outcome, (watcher.now)());
            }
        }
        for Arrival { path, .. } in
            slice.iter().filter(|arrival| arrival.kind == ArrivalKind::Lines)
        {
            if let Some(outcome) = self.ingest_lines(path, watcher)
                && is_unchanged(&slice, path)
            {
                self.finish(path, outcome, (watcher.now)());
            }
        }
    }

    /// Ingests a file of documents; `None` if the service stops in the middle.
    fn ingest_lines(&self, path: &Path, watcher: &ScanContext<'_>) -> Option<ArrivalOutcome> {
        let mut problems = Vec::new();
        let mut internal_cause = None;
        let mut report = |event: LinesEvent<'_>| {
            if let LinesEvent::Failed(IngestFailure { line, error, .. }) = event {
                // A failure of this machine does not concern the line, so the whole file is ingested again later.
                if error.is_internal() {
                    internal_cause.get_or_insert(error.to_string());
                } else if problems.len() < WATCH_PROBLEMS_MAX {
                    problems.push(json!({ "line": line, "message": error.to_string() }));
                }
            }
            if (watcher.stops)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let tally = ingest_lines(&self.ingest, path, self.workers, watcher.now, &mut report);
        let created = tally.created;
        let replaced = tally.replaced;
        if created + replaced > 0 {
            let event = audit::event(AuditAction::ItemStored)
                .with_object(ObjectKind::Path, path.display());
            self.ingest
                .record(event.with_detail(format!("{created} created, {replaced} replaced")));
        }
        match (internal_cause, tally.failed) {
            _ if tally.interrupted => None,
            (Some(cause), _) => Some(ArrivalOutcome::Postponed(cause)),
            (None, 0) => Some(ArrivalOutcome::Done),
            (None, failed) => {
                let ingested = tally.created + tally.replaced;
                let error = format!("{failed} lines failed, {ingested} were ingested");
                Some(ArrivalOutcome::Failed(error, problems))
            }
        }
    }

    /// Moves a processed input away, and logs and records a refusal.
    fn finish(&mut self, path: &Path, outcome: ArrivalOutcome, now: Timestamp) {
        match &outcome {
            ArrivalOutcome::Done => {}
            ArrivalOutcome::Failed(error, problems) => {
                tracing::warn!(file = %path.display(), "not ingested: {error}");
                let error = with_first_lines(error, problems);
                self.ingest.record_error(path.display(), error, now);
            }
            ArrivalOutcome::Postponed(cause) => {
                // Every poll retries it, so each cause is logged only once.
                if self.postponed.get(path) != Some(cause) {
                    tracing::error!(file = %path.display(), "ingest postponed, retrying: {cause}");
                    self.ingest.record_error(path.display(), cause, now);
                    self.postponed.insert(path.to_owned(), cause.clone());
                }
                return;
            }
        }
        self.postponed.remove(path);
        if let Err(cause) = self.move_away(path, &outcome) {
            tracing::error!(file = %path.display(), "cannot be moved away: {cause}");
            if let Some(arrival) = self.seen.get(path) {
                self.stuck.insert(path.to_owned(), (arrival.clone(), outcome));
            }
        }
    }

    fn move_away(&self, path: &Path, outcome: &ArrivalOutcome) -> io::Result<()> {
        match outcome {
            ArrivalOutcome::Done => self.move_to(&self.done, path, None),
            ArrivalOutcome::Failed(error, problems) => {
                let name = path.strip_prefix(&self.dir).unwrap_or(path).display().to_string();
                let note = json!({ "file": name, "error": error, "problems": problems });
                self.move_to(&self.failed, path, Some(&note))
            }
            ArrivalOutcome::Postponed(_) => Ok(()),
        }
    }

    /// Moves `path` into the folder `to`, with `note` next to it. The note is written first, so that a refused
    /// file never appears without its reason. No link on either path is followed.
    fn move_to(
        &self,
        to: &(PathBuf, PathBuf),
        path: &Path,
        note: Option<&Value>,
    ) -> io::Result<()> {
        let within = path.strip_prefix(&self.dir).map_err(io::Error::other)?;
        let name = within.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = within.parent().unwrap_or(Path::new(""));
        let source = open_folder(&self.dir, parent, MissingFolder::Fails)?;
        let target = open_folder(&to.0, &to.1.join(parent), MissingFolder::Created)?;
        // A rename would replace an earlier file of the same name without notice.
        let target_name = free_name(name, &|name| pinned_path::exists(&target, name));
        if let Some(note) = note {
            let mut note_name = target_name.clone();
            note_name.push(".error.json");
            pinned_path::write(&target, &note_name, format!("{note:#}\n").as_bytes())?;
        }
        pinned_path::rename(&source, name, &target, &target_name)
    }
}

/// Returns the target for inputs in the subfolder `name`: a folder, and the path below it.
fn target(dir: &Path, name: &str) -> io::Result<(PathBuf, PathBuf)> {
    let path = dir.join(name);
    if path.is_symlink() {
        Ok((fs::canonicalize(path)?, PathBuf::new()))
    } else {
        Ok((dir.to_owned(), PathBuf::from(name)))
    }
}

/// Reads the name of a watched folder from the file at `path`.
fn read_name(path: &Path) -> io::Result<Uuid> {
    let text = fs::read_to_string(path)?;
    text.trim().parse::<Uuid>().map_err(|_| {
        let message = format!("{} holds no name; remove it", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Returns whether the input at `path`, one of `slice`, has not changed since the poll.
fn is_unchanged(slice: &[&Arrival], path: &Path) -> bool {
    let arrival = slice.iter().find(|arrival| arrival.path == path);
    arrival.is_some_and(|arrival| arrival.is_unchanged())
}

/// Returns `name`, or the name with a number if `name` is taken: `photo-2.jpg`.
fn free_name(name: &OsStr, is_taken: &dyn Fn(&OsStr) -> bool) -> OsString {
    if !is_taken(name) {
        return name.to_owned();
    }
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    for number in 2_u64.. {
        let numbered = OsString::from(match &extension {
            Some(extension) => format!("{stem}-{number}.{extension}"),
            None => format!("{stem}-{number}"),
        });
        if !is_taken(&numbered) {
            return numbered;
        }
    }
    name.to_owned()
}

/// Adds the first refused lines of a file of documents to its error, which has only their number. Errors of other
/// inputs name their problems themselves.
fn with_first_lines(error: &str, problems: &[Value]) -> String {
    let lines = problems.iter().filter_map(refused_line).take(DIAGNOSTIC_LINES_MAX);
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { error.to_owned() } else { format!("{error}; {}", lines.join("; ")) }
}

/// Describes a refused line; `None` for a problem without a line.
fn refused_line(problem: &Value) -> Option<String> {
    let message = problem["message"].as_str().unwrap_or_default();
    Some(format!("line {}: {message}", problem["line"].as_u64()?))
}

fn classify(outcome: Result<(), &IngestError>) -> ArrivalOutcome {
    match outcome {
        Ok(()) => ArrivalOutcome::Done,
        Err(error) if error.is_internal() => ArrivalOutcome::Postponed(error.to_string()),
        Err(error) => {
            let problems = error.problems().into_iter();
            let problems =
                problems.map(|(path, message)| json!({ "path": path, "message": message }));
            ArrivalOutcome::Failed(error.to_string(), problems.collect())
        }
    }
}
