//! The progress of a check of all originals, stored in the database so that an interrupted check can be
//! resumed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::runtime::clock::{self, Stopwatch, has_elapsed};
use crate::runtime::error::Result;
use crate::storage::database::{Db, NamedOriginal};
use model::ContentHash;

/// Interval at which a check saves its progress; what was read since then is read again after an
/// interruption.
const CHECK_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);
/// Key of the progress in the table `state`.
const PROGRESS_KEY: &str = "check";

/// The results of an interrupted check.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InterruptedCheck {
    /// Number of originals that the check had read.
    pub originals: usize,
    /// Number of remaining problems of these originals.
    pub problems: usize,
    /// Start of the check.
    pub began: Timestamp,
}

/// The stored progress: every original up to `through`, in the order of hashes, was read.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Checkpoint {
    began: Timestamp,
    through: ContentHash,
    problems: usize,
}

/// The progress of a check of the originals in `named`, which finish in any order.
pub(super) struct CheckProgress<'a> {
    db: &'a Db,
    named: &'a [NamedOriginal],
    began: Timestamp,
    earlier: Option<InterruptedCheck>,
    state: Mutex<ProgressState>,
}

struct ProgressState {
    /// All originals before this index were read.
    next: usize,
    /// Remaining problems of these originals, including the problems that the interrupted check found.
    problems: usize,
    /// Later originals that were read already, with their problems. Their number is at most the number of
    /// workers, unless one of them hangs.
    ahead: BTreeMap<usize, usize>,
    /// Time since the progress was last stored.
    last_saved: Option<Stopwatch>,
    failing: bool,
}

impl<'a> CheckProgress<'a> {
    /// Starts at the first original, or with `resume` at the first original that an interrupted check has not
    /// read.
    pub(super) fn begin(db: &'a Db, named: &'a [NamedOriginal], resume: bool) -> Result<Self> {
        let checkpoint =
            if resume { db.read_blocking(|tx| tx.find_state(PROGRESS_KEY))? } else { None };
        // Progress that a later version stored in a different format is ignored.
        let checkpoint: Option<Checkpoint> =
            checkpoint.and_then(|text| serde_json::from_str(&text).ok());
        let earlier = checkpoint.map(|checkpoint| InterruptedCheck {
            // An original that was ingested since with a smaller hash counts as read.
            originals: named.partition_point(|original| original.hash <= checkpoint.through),
            problems: checkpoint.problems,
            began: checkpoint.began,
        });
        let state = ProgressState {
            next: earlier.map_or(0, |earlier| earlier.originals),
            problems: earlier.map_or(0, |earlier| earlier.problems),
            ahead: BTreeMap::new(),
            last_saved: None,
            failing: false,
        };
        let began = earlier.map_or_else(clock::now, |earlier| earlier.began);
        Ok(Self { db, named, began, earlier, state: Mutex::new(state) })
    }

    /// Returns the index of the first original to read.
    pub(super) fn first(&self) -> usize {
        self.earlier.map_or(0, |earlier| earlier.originals)
    }

    /// Records that the original with this index was read and has this number of problems.
    pub(super) fn record_checked(&self, index: usize, problems: usize) {
        let mut state = self.state.lock();
        state.ahead.insert(index, problems);
        let before = state.next;
        let mut next = before;
        // Originals finish in any order, but a check can be resumed only after a gapless prefix.
        while let Some(problems) = state.ahead.remove(&next) {
            state.problems += problems;
            next += 1;
        }
        state.next = next;
        // A write per original would occupy the cluster write lock, which the service needs.
        let is_due = has_elapsed(state.last_saved, CHECK_SAVE_INTERVAL);
        if next == before || !is_due {
            return;
        }
        // `next` has grown, so it is at least 1.
        let Some(last) = self.named.get(next - 1) else { return };
        let checkpoint =
            Checkpoint { began: self.began, through: last.hash, problems: state.problems };
        let written = serde_json::to_string(&checkpoint)
            .map(|text| self.db.write_blocking(move |tx| tx.write_state(PROGRESS_KEY, &text)));
        let has_failed = !matches!(written, Ok(Ok(())));
        if has_failed && !state.failing {
            // For example, the database may no longer accept writes; the check itself only reads.
            tracing::warn!("check progress cannot be stored, so the check cannot be resumed");
        }
        state.failing = has_failed;
        state.last_saved = Some(Stopwatch::start());
    }

    /// Removes the stored progress after all originals were read. Returns the results of the interrupted
    /// check.
    pub(super) fn finish(self) -> Option<InterruptedCheck> {
        let state = self.state.into_inner();
        // If the progress could not be stored, its removal would fail too.
        if !state.failing {
            let removed = self.db.write_blocking(|tx| tx.remove_state(PROGRESS_KEY));
            if let Err(cause) = removed {
                tracing::warn!("check progress cannot be removed: {cause}");
            }
        }
        self.earlier
    }
}
