//! Maintains the search index of this process on a dedicated thread.
//!
//! The thread opens the index or builds one, and then applies the rows of the item log, the table of all changes to
//! items. It rebuilds the index beside the old one on request, and compares it with the items if the log has a gap.
//!
//! A commit records the archive's id, the version and the settings of the analysis (how texts become words), and the row
//! of the log up to which it contains everything, with a digest of that row. An index of a different archive or version
//! is not used. The log has a gap if it lacks the row, for example because the database was restored from a backup.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::build::{add, build, commit_position, read_each, read_versions};
use super::consistency::compare;
use super::folder::IndexFolder;
use super::shared::{SearchShared, log_position};
use super::{DocumentAnalysis, IndexSettings, IndexStatus};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::compute::lower_priority;
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use crate::storage::database::{CommitWatcher, IndexChange, IndexedVersion, LogPosition};
use search_index::{ANALYSIS, CommitPosition, IndexWriter, SearchIndex};

/// Maximum number of rows of the item log in one commit of the index. A commit takes about as long as a hundred rows,
/// so larger ones would hardly be faster.
const INDEX_CHANGES_MAX: usize = 2000;
/// Interval at which the thread polls for changes by other processes. It learns of changes by this process at once.
const INDEX_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// Delay between two attempts to write an index after a failure.
const INDEX_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(5);
/// Seconds between two log lines about the progress of a build.
const LOG_EVERY_S: u64 = 10;

/// The handle of the thread. Dropping it stops the thread and waits for its end.
pub(super) struct Indexer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Starts the thread. If the folder of the index cannot be used now, the thread retries, and only searches fail
    /// until then.
    pub(super) fn start(shared: Arc<SearchShared>, settings: IndexSettings) -> Result<Self> {
        // Existing rows count as written here, so the first searches wait for them.
        let end = shared.db.read_blocking(|tx| tx.log_end())?;
        shared.db.written_items().note(end.row);
        let watcher = shared.db.commit_watcher()?;
        let stop = Arc::new(AtomicBool::new(false));
        let worker = IndexerWorker {
            shared,
            settings,
            folder: None,
            watcher,
            open: None,
            tried_existing: false,
            building: None,
            wants_build: false,
            checking: None,
            failure: None,
            embargoes_checked_ms: clock::now().as_millisecond(),
            stop: Arc::clone(&stop),
        };
        let thread = thread::Builder::new().name("search-index".to_owned());
        let thread = thread.spawn(move || worker.run()).map_err(Error::internal)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread holds the lock of the folder, which the next start claims.
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// An open index, with its writer and position.
struct OpenIndex {
    path: PathBuf,
    index: SearchIndex,
    /// `None` after a failure, until the next attempt.
    writer: Option<IndexWriter>,
    position: LogPosition,
    /// The id of the archive that the index belongs to.
    archive: String,
    /// The settings with which the documents were analysed, as text.
    settings: String,
}

/// The latest failure of a round, with the time since then.
struct IndexerFailure {
    text: String,
    since: Stopwatch,
}

/// A task on a separate thread, and its result.
type SideTask<T> = JoinHandle<Result<T>>;

struct IndexerWorker {
    shared: Arc<SearchShared>,
    settings: IndexSettings,
    /// The folder of the index; `None` until this process has claimed it.
    folder: Option<IndexFolder>,
    watcher: CommitWatcher,
    open: Option<OpenIndex>,
    /// True once the existing index was opened, or a build was started in its place.
    tried_existing: bool,
    /// A build in progress; its result is true if it was completed.
    building: Option<SideTask<bool>>,
    /// True if the item log or a changed setting requires a rebuild.
    wants_build: bool,
    /// A check of all files in progress. Its result is the names of damaged files.
    checking: Option<SideTask<Vec<String>>>,
    failure: Option<IndexerFailure>,
    /// The time up to which ended embargoes were announced to long polls.
    embargoes_checked_ms: i64,
    stop: Arc<AtomicBool>,
}

impl IndexerWorker {
    fn run(mut self) {
        // The gauge starts at 0, even if the index cannot be opened.
        metrics::gauge!(telemetry::SEARCH_INDEX_WHOLE).set(0);
        while !self.stops() {
            // Read before the round, so that a row written during it ends the wait below at once.
            let written = self.shared.db.written_items().row();
            let outcome = catch_unwind(AssertUnwindSafe(|| self.step()));
            match outcome.unwrap_or_else(|_| Err(Error::internal("a panic"))) {
                Ok(()) => self.note_success(),
                Err(cause) => self.note_failure(&cause),
            }
            self.report();
            self.shared.db.written_items().wait_beyond(written, INDEX_POLL_INTERVAL);
        }
        // A build stops soon after the signal, and its thread must not outlive this one.
        if let Some(building) = self.building.take() {
            drop(building.join());
        }
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs one round: handles finished tasks, new rows and other changes.
    fn step(&mut self) -> Result<()> {
        // The backoff after a failure, such as a full disk.
        if self.failure.as_ref().is_some_and(|failure| failure.since.elapsed() < INDEX_RETRY_DELAY)
        {
            return Ok(());
        }
        if !self.tried_existing {
            self.open_newest()?;
            // Set only after success, so that a failure to open it is retried.
            self.tried_existing = true;
        }
        if let Some(building) = self.building.take_if(|building| building.is_finished()) {
            let joined = building.join();
            let built = joined.unwrap_or_else(|_| Err(Error::internal("the build panicked")));
            // A requested rebuild that failed is retried beside the index in use.
            self.wants_build |= built.is_err() && self.open.is_some();
            if built? {
                self.activate_build()?;
            }
        }
        self.finish_checks()?;
        match self.open.take() {
            Some(open) => self.follow(open)?,
            None if self.building.is_none() => self.start_build("the last attempt failed")?,
            None => {}
        }
        self.note_ended_embargoes();
        Ok(())
    }

    /// Returns the folder of this process, claimed at the first call.
    fn folder(&mut self) -> Result<&IndexFolder> {
        Ok(match &mut self.folder {
            Some(folder) => folder,
            none => {
                let dir = &self.settings.dir;
                let claimed = IndexFolder::claim(dir).map_err(|cause| {
                    Error::internal(format!("folder {} cannot be used: {cause}", dir.display()))
                })?;
                none.insert(claimed)
            }
        })
    }

    /// Opens the newest index if it belongs to this archive and this version of the analysis. Otherwise starts a build.
    fn open_newest(&mut self) -> Result<()> {
        let Some(path) = self.folder()?.newest() else {
            return self.start_build("there is none yet");
        };
        self.folder()?.remove_others(Some(&path)).map_err(Error::internal)?;
        let index = match SearchIndex::open(&path, self.settings.memory_bytes) {
            Ok(index) => index,
            Err(cause) => return self.start_build(&format!("it cannot be opened: {cause}")),
        };
        let Some(position) = index.snapshot().position().cloned() else {
            return self.start_build("its build was not completed");
        };
        let archive = self.watcher.read(|tx| tx.archive_id())?;
        if let Some(why) = unusable(&position, &archive) {
            return self.start_build(why);
        }
        self.start_check(&index);
        // The index serves searches until an index with the new settings is complete.
        self.wants_build |= position.settings != self.settings.analysis.settings();
        self.activate(path, index, &position)
    }

    /// Brings a complete index up to date and makes searches use it instead of the previous one.
    fn activate(
        &mut self,
        path: PathBuf,
        index: SearchIndex,
        position: &CommitPosition,
    ) -> Result<()> {
        let writer = Some(index.writer().map_err(Error::internal)?);
        let CommitPosition { archive, settings, .. } = position.clone();
        let row = log_position(Some(position));
        let mut open = OpenIndex { path, index, writer, position: row, archive, settings };
        // Before searches use the index, because they wait only briefly for the newest items.
        while self.index_new_rows(&mut open)? {}
        self.shared.publish(Some(open.index.clone()), IndexStatus::Ready);
        self.publish_position(&open);
        self.open = Some(open);
        Ok(())
    }

    /// Publishes the row up to which the index contains everything.
    fn publish_position(&self, open: &OpenIndex) {
        self.shared.indexed.send_replace(open.position.row);
        self.shared.note_change();
    }

    /// Withdraws the index from searches.
    fn close(&mut self) {
        self.open = None;
        self.shared.publish(None, IndexStatus::Building { done: 0, count: 0 });
    }

    /// Indexes the next rows of the item log. Returns whether there were any.
    fn index_new_rows(&mut self, open: &mut OpenIndex) -> Result<bool> {
        // First, because reopening the writer resets the position to the last commit.
        open.writer()?;
        let after = open.position.clone();
        let changes = self.watcher.read(move |tx| tx.index_changes(&after, INDEX_CHANGES_MAX))?;
        let Some(changes) = changes else {
            self.repair(open)?;
            return Ok(true);
        };
        let Some(last) = changes.last().map(|change| change.position.clone()) else {
            return Ok(false);
        };
        let versions =
            read_versions(&mut self.watcher, number(open.position.row), number(last.row))?;
        open.apply(&changes, &versions, &self.settings.analysis)?;
        open.commit(&last)?;
        self.wants_build |= changes.iter().any(|change| change.rebuild);
        Ok(true)
    }

    /// Compares an index with the items and corrects it, because the log has a gap. No search uses it in the meantime:
    /// after lost rows, the numbers of its versions may have been assigned to versions of other items.
    fn repair(&mut self, open: &mut OpenIndex) -> Result<()> {
        tracing::warn!(
            row = open.position.row,
            "the item log lacks the last row that was indexed; the database may have been \
             restored, or another server may have taken over; the search index is compared with \
             the items"
        );
        metrics::counter!(telemetry::SEARCH_INDEX_REPAIRS, "kind" => "compared").increment(1);
        self.shared.publish(None, IndexStatus::Building { done: 0, count: 0 });
        let found = compare(&mut self.watcher, &open.index.snapshot())?;
        let writer = open.writer()?;
        found.stale.iter().for_each(|number| writer.remove(*number));
        for numbers in found.missing.chunks(INDEX_CHANGES_MAX) {
            let versions = read_each(&mut self.watcher, numbers.iter().copied())?;
            add(writer, &versions, &self.settings.analysis)?;
        }
        open.commit(&found.end)?;
        // From now on, searches wait for rows of the log in its present state.
        self.shared.db.written_items().restart(found.end.row);
        let missing = found.missing.len();
        let stale = found.stale.len();
        tracing::info!(missing, stale, "search index: repaired, equals the items again");
        Ok(())
    }

    /// Starts building an index beside the existing one, if there is one, on a thread of its own.
    fn start_build(&mut self, why: &str) -> Result<()> {
        tracing::info!("building the search index: {why}");
        metrics::counter!(telemetry::SEARCH_INDEX_REPAIRS, "kind" => "built").increment(1);
        let path = self.folder()?.begin().map_err(Error::internal)?;
        let shared = Arc::clone(&self.shared);
        let analysis = self.settings.analysis.clone();
        let stop = Arc::clone(&self.stop);
        let is_rebuild = self.open.is_some();
        let thread = thread::Builder::new().name("search-build".to_owned());
        let started = thread.spawn(move || {
            // Renders and searches have priority over a build in the background.
            lower_priority();
            build_and_report(&shared, &path, &analysis, &stop, is_rebuild)
        });
        self.building = Some(started.map_err(Error::internal)?);
        Ok(())
    }

    /// Starts verifying the checksum of every file of the index.
    fn start_check(&mut self, index: &SearchIndex) {
        let index = index.clone();
        let thread = thread::Builder::new().name("search-check".to_owned());
        self.checking = thread.spawn(move || index.damaged_files().map_err(Error::internal)).ok();
    }

    /// Replaces the old index with the one that was built.
    fn activate_build(&mut self) -> Result<()> {
        let path = self.folder()?.publish().map_err(Error::internal)?;
        let index =
            SearchIndex::open(&path, self.settings.memory_bytes).map_err(Error::internal)?;
        let Some(position) = index.snapshot().position().cloned() else {
            return self.start_build("its build was not completed");
        };
        self.activate(path.clone(), index, &position)?;
        self.folder()?.remove_others(Some(&path)).map_err(Error::internal)
    }

    /// Starts a check of the files if a search met a fault of the index, and rebuilds the index if a finished check
    /// found damage.
    fn finish_checks(&mut self) -> Result<()> {
        if self.shared.take_fault()
            && self.checking.is_none()
            && let Some(index) = self.open.as_ref().map(|open| open.index.clone())
        {
            self.start_check(&index);
        }
        let Some(checking) = self.checking.take_if(|checking| checking.is_finished()) else {
            return Ok(());
        };
        let damaged = match checking.join() {
            Ok(Ok(damaged)) => damaged,
            // Files of merged segments disappear during a check, which is not damage. A missing folder is.
            Ok(Err(_)) | Err(_) if self.open.as_ref().is_some_and(OpenIndex::exists) => Vec::new(),
            Ok(Err(_)) | Err(_) => vec!["its folder".to_owned()],
        };
        if damaged.is_empty() || self.open.is_none() {
            return Ok(());
        }
        // The answers of a damaged index may be wrong.
        self.close();
        match self.building {
            Some(_) => Ok(()),
            None => {
                self.start_build(&format!("files are damaged or missing: {}", damaged.join(", ")))
            }
        }
    }

    /// Indexes new rows of the item log, and starts a requested rebuild. The index stays open even if this fails, unless
    /// its folder is missing.
    fn follow(&mut self, mut open: OpenIndex) -> Result<()> {
        // A poll costs microseconds, and most rounds find nothing new.
        let has_commits = self.watcher.has_commits();
        // After a failure or an interrupted comparison, there may be rows to index without a new commit.
        let is_behind = open.position.row < self.shared.db.written_items().row()
            || self.failure.is_some()
            || *self.shared.status.borrow() != IndexStatus::Ready;
        // Derived files may be deleted at any time, and open handles would hide that.
        if !open.exists() {
            self.close();
            return self.start_build("its folder is missing");
        }
        let mut outcome = has_commits.map(|is_new| is_new || is_behind).map_err(Error::from);
        while matches!(outcome, Ok(true)) && !self.stops() {
            outcome = self.index_new_rows(&mut open);
            if matches!(outcome, Ok(true)) {
                self.publish_position(&open);
            }
        }
        if *self.shared.status.borrow() != IndexStatus::Ready && outcome.is_ok() {
            self.shared.publish(Some(open.index.clone()), IndexStatus::Ready);
        }
        // Kept after an error as well: searches continue on the last commit.
        self.open = Some(open);
        outcome?;
        if self.wants_build && self.building.is_none() {
            self.wants_build = false;
            self.start_build("a command requested it, or a setting has changed")?;
        }
        Ok(())
    }

    /// Wakes long polls when an embargo has ended, because results change without a write.
    fn note_ended_embargoes(&mut self) {
        let now_ms = clock::now().as_millisecond();
        let Some(open) = &self.open else { return };
        let next = open.index.snapshot().next_embargo(self.embargoes_checked_ms);
        if next.is_some_and(|until| until <= now_ms) {
            self.shared.note_change();
        }
        self.embargoes_checked_ms = now_ms;
    }

    /// Sets the gauges of the index.
    fn report(&self) {
        let (items, row) = match &self.open {
            Some(open) => (open.index.snapshot().len(), open.position.row),
            None => (0, 0),
        };
        metrics::gauge!(telemetry::SEARCH_INDEX_ITEMS).set(gauge_value(items));
        let behind = self.shared.db.written_items().row().saturating_sub(row).max(0);
        metrics::gauge!(telemetry::SEARCH_INDEX_BEHIND)
            .set(gauge_value(u64::try_from(behind).unwrap_or_default()));
    }

    /// Records a failure, which delays the next round, and logs it unless it has the same cause as the last one.
    fn note_failure(&mut self, cause: &Error) {
        let text = cause.cause().unwrap_or_else(|| cause.message().to_owned());
        // A full disk fails in every round, and one line about it is enough.
        if self.failure.as_ref().is_none_or(|failure| failure.text != text) {
            tracing::error!("search index update failed, retrying: {text}");
        }
        if let Some(open) = &mut self.open {
            // Uncommitted changes are lost with the writer and are indexed again.
            open.writer = None;
        }
        self.failure = Some(IndexerFailure { text, since: Stopwatch::start() });
    }

    fn note_success(&mut self) {
        // A round during the backoff does nothing, so its success proves nothing.
        let ended = self.failure.take_if(|failure| failure.since.elapsed() >= INDEX_RETRY_DELAY);
        if ended.is_some() {
            tracing::info!("search index updates work again");
        }
    }
}

impl OpenIndex {
    /// Returns whether the files still exist at the path from which they were opened.
    fn exists(&self) -> bool {
        self.path.join("meta.json").exists()
    }

    /// Returns the writer, reopened after a failure. The position is then the position of the last commit,
    /// which may have succeeded although it was reported as failed.
    fn writer(&mut self) -> Result<&mut IndexWriter> {
        if self.writer.is_none() {
            self.index.refresh().map_err(Error::internal)?;
            self.position = log_position(self.index.snapshot().position());
        }
        Ok(match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.index.writer().map_err(Error::internal)?),
        })
    }

    /// Removes the versions that `changes` replaced, and adds `versions`, the written versions that are still
    /// current.
    fn apply(
        &mut self,
        changes: &[IndexChange],
        versions: &[IndexedVersion],
        analysis: &DocumentAnalysis,
    ) -> Result<()> {
        let writer = self.writer()?;
        for replaced in changes.iter().filter_map(|change| change.replaced) {
            writer.remove(replaced);
        }
        add(writer, versions, analysis)
    }

    /// Commits everything up to the row `end` and makes it visible.
    fn commit(&mut self, end: &LogPosition) -> Result<()> {
        let position = commit_position(&self.archive, &self.settings, end);
        self.writer()?.commit(&position).map_err(Error::internal)?;
        self.index.refresh().map_err(Error::internal)?;
        self.position = end.clone();
        Ok(())
    }
}

/// Returns the reason that an index at `position` cannot be used for the archive; `None` if it can.
fn unusable(position: &CommitPosition, archive: &str) -> Option<&'static str> {
    if position.analysis != ANALYSIS {
        return Some("another version of the text analysis built it");
    }
    (position.archive != archive).then_some("it belongs to another archive")
}

/// Builds an index in the folder `path`, and reports the progress in the status, the metrics and the log.
/// Returns whether it was completed.
fn build_and_report(
    shared: &SearchShared,
    path: &Path,
    analysis: &DocumentAnalysis,
    stop: &AtomicBool,
    is_rebuild: bool,
) -> Result<bool> {
    let watch = Stopwatch::start();
    let logged_s = Cell::new(0);
    let proceeds = |done: u64, count: u64| {
        // Searches use the old index in the meantime, and this status would refuse them.
        if !is_rebuild {
            shared.status.send_replace(IndexStatus::Building { done, count });
        }
        metrics::gauge!(telemetry::SEARCH_INDEX_BUILT_ITEMS).set(gauge_value(done));
        let seconds = watch.elapsed().as_secs();
        if seconds >= logged_s.get() + LOG_EVERY_S {
            logged_s.set(seconds);
            tracing::info!(done, count, "the search index is being built");
        }
        !stop.load(Ordering::Relaxed)
    };
    let built = build(&shared.db, path, analysis, &proceeds)?;
    if built.is_some() {
        tracing::info!(seconds = watch.elapsed().as_secs(), "the search index was built");
    }
    Ok(built.is_some())
}

/// Returns the number of the version that a row of the item log wrote.
fn number(row: i64) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge needs no more digits")]
fn gauge_value(count: u64) -> f64 {
    count as f64
}
