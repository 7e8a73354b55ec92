//! How long what goes out is tried: deliveries and messages.

use std::time::Duration;

use jiff::Timestamp;

use crate::Hash;
use crate::limits::{DELIVERY_ERROR_CHARS_MAX, DELIVERY_WAIT_MAX};

/// How long something is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time from the first try to the second; it doubles with each.
    pub first: Duration,
    /// Time after which what never succeeded is given up.
    pub all: Duration,
}

/// Doublings of the first wait after which it grows no more, whatever the settings are.
const DOUBLINGS_MAX: u32 = 16;

impl Patience {
    /// When what failed at `now`, in the last of so many tries, is tried again; nothing when that
    /// would be too long after `queued`, unless `now` is not to be trusted: a clock that jumped gives
    /// nothing up.
    ///
    /// `name` is that of the thing tried: see [`Patience::wait`].
    #[must_use]
    pub fn again(
        &self,
        name: &str,
        attempts: u32,
        (queued, now): (Timestamp, Timestamp),
        is_trusted: bool,
    ) -> Option<Timestamp> {
        let at = now.saturating_add(self.wait(name, attempts)).unwrap_or(Timestamp::MAX);
        let end = queued.saturating_add(self.all).unwrap_or(Timestamp::MAX);
        (at <= end || !is_trusted).then_some(at)
    }

    /// Time until the next try: twice as long after each, and up to a quarter more, so that what
    /// failed together does not come back together. The quarter comes from the name: the same in
    /// every process, another one for each thing and try.
    #[must_use]
    pub fn wait(&self, name: &str, attempts: u32) -> Duration {
        let base = self.base(attempts.saturating_sub(1));
        let Hash(hash) = Hash::of(format!("{name}/{attempts}").as_bytes());
        base + base / 4 * u32::from(hash[0]) / 255
    }

    /// The wait after `doublings` doublings.
    fn base(&self, doublings: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << doublings.min(DOUBLINGS_MAX));
        doubled.min(DELIVERY_WAIT_MAX.max(self.first))
    }

    /// Whether something was taken up more often than all tries together can be.
    ///
    /// A try that kills the process is never judged, and its claim just ends; without this it would
    /// be taken up for ever. The time alone does not tell: a service that was off over a weekend
    /// tries what waited at least once more.
    #[must_use]
    pub fn exhausted(&self, attempts: u32) -> bool {
        let (mut left, mut tries) = (self.all, 1_u32);
        for doublings in 0..DOUBLINGS_MAX {
            let Some(rest) = left.checked_sub(self.base(doublings)) else {
                return attempts > tries;
            };
            (left, tries) = (rest, tries + 1);
        }
        let longest = self.base(DOUBLINGS_MAX).as_nanos().max(1);
        let more = u32::try_from(left.as_nanos() / longest).unwrap_or(u32::MAX);
        attempts > tries.saturating_add(more)
    }
}

/// Why something failed, cut to what is kept of it.
#[must_use]
pub fn shorten_reason(text: &str) -> String {
    match text.char_indices().nth(DELIVERY_ERROR_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
