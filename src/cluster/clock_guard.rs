//! Judges whether the time of day can be trusted: data that is removed because it seems to have expired
//! cannot be recovered.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::runtime::clock;
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::limits::{CLOCK_JUMP, CLOCK_SAVE_INTERVAL, CLOCK_SUSPECT_DRIFT, CLOCK_TRUST};
use crate::runtime::telemetry;
use crate::storage::database::Db;

/// Key of the database state that holds the [`ClockNote`] of the last incarnation; the name of the node is
/// appended.
const CLOCK_NOTE: &str = "clock";
/// Prefix of a note that was written while the clock was not trusted.
const DOUBTED: &str = "doubted ";

/// Detects jumps of the time of day by comparing it with the monotonic clock.
#[derive(Debug)]
pub struct ClockGuard {
    state: Mutex<ClockState>,
    /// Key under which the note of this node is stored.
    name: String,
}

#[derive(Debug)]
struct ClockState {
    /// The time of day at the last check, and the monotonic time since then.
    last: (Timestamp, Stopwatch),
    /// Time since the last jump or doubtful start; `None` if the clock was always trusted.
    since: Option<Stopwatch>,
    /// The note that was written last, and the time since then.
    last_note: Option<(ClockNote, Stopwatch)>,
}

/// The state of the clock that an incarnation leaves to the next one: the time of day, and whether it was
/// doubted. Without the note a restart would end the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockNote {
    at: Timestamp,
    is_doubted: bool,
}

impl ClockNote {
    fn parse(text: &str) -> Option<Self> {
        let at = text.strip_prefix(DOUBTED);
        Some(Self { at: at.unwrap_or(text).parse().ok()?, is_doubted: at.is_some() })
    }

    /// Returns why the clock, which says `now`, cannot be trusted at a start.
    ///
    /// A machine that was off for months cannot be distinguished from one whose clock runs months ahead. Its
    /// clock is trusted after [`CLOCK_TRUST`], as after any other doubt.
    fn doubt_reason(&self, now: Timestamp) -> Option<&'static str> {
        let drift = now.duration_since(self.at).unsigned_abs();
        if drift >= CLOCK_SUSPECT_DRIFT {
            return Some("it is far from the last time that the service stored");
        }
        self.is_doubted.then_some("it had just jumped when the service ended")
    }
}

impl std::fmt::Display for ClockNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_doubted { DOUBTED } else { "" }, self.at)
    }
}

impl ClockGuard {
    /// Starts to check the clock. The present time is trusted unless the note that the node `node` left in
    /// the database contradicts it. A node without a note uses the latest one of any node, because its data
    /// directory may be an old copy.
    pub fn start(db: &Db, node: Option<&str>) -> Self {
        let now = clock::now();
        let name =
            node.map_or_else(|| CLOCK_NOTE.to_owned(), |node| format!("{CLOCK_NOTE} {node}"));
        let since = match db.read_blocking(|tx| tx.list_states(CLOCK_NOTE)) {
            Ok(notes) => {
                last_note(&notes, &name).and_then(|note| note.doubt_reason(now)).map(|why| {
                    // A restart must not make a wrong clock right: the doubt of the last run continues here.
                    metrics::counter!(telemetry::CLOCK_JUMPS).increment(1);
                    tracing::error!(
                        "the clock is not trusted yet: {why}; expired data is kept for a while"
                    );
                    Stopwatch::start()
                })
            }
            Err(cause) => {
                // Without the note, a wrong clock before the start cannot be ruled out.
                tracing::error!(
                    "clock guard: the last clock note cannot be read, the clock is not trusted \
                     yet: {cause}"
                );
                Some(Stopwatch::start())
            }
        };
        let last = (now, Stopwatch::start());
        Self { state: Mutex::new(ClockState { last, since, last_note: None }), name }
    }

    /// Returns whether the time of day has advanced without a jump for [`CLOCK_TRUST`], so that expired data
    /// may be removed. A jump of [`CLOCK_JUMP`] or more is logged and counted.
    pub fn is_trusted(&self) -> bool {
        !self.compare().is_doubted
    }

    fn compare(&self) -> ClockNote {
        let mut state = self.state();
        let now = clock::now();
        let (before, elapsed) = (state.last.0, state.last.1.elapsed());
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        // Compared from check to check: an adjustment in small steps is no jump.
        let jump = now.duration_since(before).saturating_sub(elapsed);
        if jump.unsigned_abs() >= CLOCK_JUMP {
            metrics::counter!(telemetry::CLOCK_JUMPS).increment(1);
            tracing::error!(
                seconds = jump.as_secs(),
                "the clock jumped: expired data is kept for a while"
            );
            state.since = Some(Stopwatch::start());
        }
        state.last = (now, Stopwatch::start());
        let is_doubted = state.since.is_some_and(|since| since.elapsed() < CLOCK_TRUST);
        ClockNote { at: now, is_doubted }
    }

    /// Checks the clock and stores a note on it for the next incarnation: at once when trust begins or
    /// ends, otherwise every [`CLOCK_SAVE_INTERVAL`]. Returns whether a note was due.
    pub async fn write_note(&self, db: &Db) -> Result<bool> {
        let note = self.compare();
        let is_current = |(stored, since): (ClockNote, Stopwatch)| {
            stored.is_doubted == note.is_doubted && since.elapsed() < CLOCK_SAVE_INTERVAL
        };
        if self.state().last_note.is_some_and(is_current) {
            return Ok(false);
        }
        let name = self.name.clone();
        db.write(move |tx| tx.write_state(&name, &note.to_string())).await?;
        // Only after the write, so that a note that could not be written stays due.
        self.state().last_note = Some((note, Stopwatch::start()));
        Ok(true)
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the note named `own`, or else the latest of `notes`.
fn last_note(notes: &[(String, String)], own: &str) -> Option<ClockNote> {
    let ours = notes.iter().find(|(name, _)| name == own);
    let ours = ours.and_then(|(_, text)| ClockNote::parse(text));
    ours.or_else(|| {
        notes.iter().filter_map(|(_, text)| ClockNote::parse(text)).max_by_key(|note| note.at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_speaks_against_a_clock_that_is_far_away_or_was_doubted() {
        let at = |hours: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000 + hours);
        let check = |doubted: bool, hours: i64, expected: bool| {
            let note = ClockNote::parse(&ClockNote { at: at(0), is_doubted: doubted }.to_string())
                .unwrap();
            assert_eq!(note, ClockNote { at: at(0), is_doubted: doubted });
            assert_eq!(note.doubt_reason(at(hours)).is_some(), expected, "{note} after {hours} h");
        };
        check(false, 0, false);
        check(false, 23, false);
        check(false, -23, false);
        check(false, 24, true);
        check(false, -24, true);
        check(false, 24 * 365, true);
        check(true, 0, true);
        check(true, 2, true);
        assert_eq!(ClockNote::parse("yesterday"), None);
    }
}
