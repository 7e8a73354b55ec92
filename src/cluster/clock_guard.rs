//! Judges whether the time of day can be trusted. A wrong clock makes data appear expired, and removed data
//! cannot be recovered.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use crate::runtime::limits::{CLOCK_JUMP, CLOCK_SAVE_INTERVAL, CLOCK_SUSPECT_DRIFT};
use crate::runtime::{clock, telemetry};
use crate::storage::database::Db;

/// Time after a clock jump during which nothing is removed as expired: enough for a wrong clock to be
/// noticed and corrected.
const CLOCK_TRUST: std::time::Duration = std::time::Duration::from_secs(3600);
/// Key of the database state that holds the [`SavedClockState`] of the last incarnation. The name of the node
/// is appended.
const CLOCK_STATE: &str = "clock";
/// Prefix of a state that was saved while the clock was not trusted.
const DOUBTED: &str = "doubted ";

/// Detects jumps of the time of day by comparing it with the monotonic clock.
#[derive(Debug)]
pub struct ClockGuard {
    state: Mutex<ClockState>,
    /// Key under which the state of this node's clock is stored.
    name: String,
}

#[derive(Debug)]
struct ClockState {
    /// The time of day at the last check, and the monotonic time since then.
    last: (Timestamp, Stopwatch),
    /// Time since the last jump or doubtful start; `None` if the clock was always trusted.
    since: Option<Stopwatch>,
    /// The state that was saved last, and the time since then.
    last_saved: Option<(SavedClockState, Stopwatch)>,
}

/// The state of the clock that an incarnation leaves to the next one: the time of day, and whether it was
/// doubted. Without it, a restart would end the doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SavedClockState {
    at: Timestamp,
    is_doubted: bool,
}

impl SavedClockState {
    fn parse(text: &str) -> Option<Self> {
        let at = text.strip_prefix(DOUBTED);
        Some(Self { at: at.unwrap_or(text).parse().ok()?, is_doubted: at.is_some() })
    }

    /// Returns the reason not to trust a clock that reads `now` at a start.
    ///
    /// The guard cannot tell a machine that was off for months from a machine whose clock runs months ahead.
    /// It trusts the clock after [`CLOCK_TRUST`], as after any other doubt.
    fn doubt_reason(&self, now: Timestamp) -> Option<&'static str> {
        let drift = now.duration_since(self.at).unsigned_abs();
        if drift >= CLOCK_SUSPECT_DRIFT {
            return Some("it is far from the last time that the service stored");
        }
        self.is_doubted.then_some("it had just jumped when the service ended")
    }
}

impl std::fmt::Display for SavedClockState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.is_doubted { DOUBTED } else { "" }, self.at)
    }
}

impl ClockGuard {
    /// Starts to check the clock.
    ///
    /// The present time is trusted unless it contradicts the state that the node `node` saved in the
    /// database. A node without a saved state uses the latest state of any node, because its data directory
    /// may be an old copy.
    pub fn start(db: &Db, node: Option<&str>) -> Self {
        let now = clock::now();
        let name =
            node.map_or_else(|| CLOCK_STATE.to_owned(), |node| format!("{CLOCK_STATE} {node}"));
        let since = match db.read_blocking(|tx| tx.list_states(CLOCK_STATE)) {
            Ok(states) => {
                latest_state(&states, &name).and_then(|saved| saved.doubt_reason(now)).map(|why| {
                    // A restart must not make a wrong clock right: the doubt of the last run continues here.
                    metrics::counter!(telemetry::CLOCK_JUMPS).increment(1);
                    tracing::error!(
                        "the clock is not trusted yet: {why}; expired data is kept for a while"
                    );
                    Stopwatch::start()
                })
            }
            Err(cause) => {
                // Without the saved state, a wrong clock before the start cannot be ruled out.
                tracing::error!(
                    "clock guard: the saved state of the clock cannot be read, the clock is not \
                     trusted yet: {cause}"
                );
                Some(Stopwatch::start())
            }
        };
        let last = (now, Stopwatch::start());
        Self { state: Mutex::new(ClockState { last, since, last_saved: None }), name }
    }

    /// Returns whether the time of day has advanced without a jump for [`CLOCK_TRUST`], so that expired data
    /// may be removed. Logs and counts a jump of [`CLOCK_JUMP`] or more.
    pub fn is_trusted(&self) -> bool {
        !self.compare().is_doubted
    }

    fn compare(&self) -> SavedClockState {
        let mut state = self.state.lock();
        let now = clock::now();
        let (before, since) = state.last;
        let elapsed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
        // Compared from check to check, so that an adjustment in small steps is not a jump.
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
        SavedClockState { at: now, is_doubted }
    }

    /// Checks the clock and saves its state for the next incarnation: at once when trust begins or ends,
    /// otherwise every [`CLOCK_SAVE_INTERVAL`]. Returns whether the state was saved.
    pub async fn check_and_save(&self, db: &Db) -> Result<bool> {
        let state = self.compare();
        let is_saved = self.state.lock().last_saved.is_some_and(|(saved, since)| {
            saved.is_doubted == state.is_doubted && since.elapsed() < CLOCK_SAVE_INTERVAL
        });
        if is_saved {
            return Ok(false);
        }
        let name = self.name.clone();
        db.write(move |tx| tx.write_state(&name, &state.to_string())).await?;
        // Only after the write, so that a state that could not be saved stays due.
        self.state.lock().last_saved = Some((state, Stopwatch::start()));
        Ok(true)
    }
}

/// Returns the state named `own`, or else the latest of `states`.
fn latest_state(states: &[(String, String)], own: &str) -> Option<SavedClockState> {
    let ours = states.iter().find(|(name, _)| name == own);
    let ours = ours.and_then(|(_, text)| SavedClockState::parse(text));
    ours.or_else(|| {
        states
            .iter()
            .filter_map(|(_, text)| SavedClockState::parse(text))
            .max_by_key(|saved| saved.at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_far_from_its_saved_state_or_doubted_there_is_not_trusted() {
        let at = |hours: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000 + hours);
        let check = |doubted: bool, hours: i64, expected: bool| {
            let saved = SavedClockState::parse(
                &SavedClockState { at: at(0), is_doubted: doubted }.to_string(),
            )
            .unwrap();
            assert_eq!(saved, SavedClockState { at: at(0), is_doubted: doubted });
            assert_eq!(
                saved.doubt_reason(at(hours)).is_some(),
                expected,
                "{saved} after {hours} h"
            );
        };
        check(false, 0, false);
        check(false, 23, false);
        check(false, -23, false);
        check(false, 24, true);
        check(false, -24, true);
        check(false, 24 * 365, true);
        check(true, 0, true);
        check(true, 2, true);
        assert_eq!(SavedClockState::parse("yesterday"), None);
    }
}
