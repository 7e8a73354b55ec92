//! Counts logins that were refused without a password check, so that a flood of guesses leaves few events.

use std::{collections::HashMap, net::IpAddr};

use jiff::{SignedDuration, Timestamp};

use super::event::{Actor, AuditAction, AuditEvent, AuditOutcome};
use model::network;

/// Networks whose throttled logins are counted separately; all others are counted together.
const AUDIT_THROTTLED_KEYS_MAX: usize = 1024;
/// Seconds over which the throttled logins of a network are recorded as one event.
const AUDIT_THROTTLED_WINDOW_S: i64 = 300;

/// The network whose attempts are counted together; `None` for all networks beyond the limit of keys.
type Key = Option<IpAddr>;

struct ThrottleWindow {
    since: Timestamp,
    /// Attempts after the first one.
    further: u32,
}

/// Throttled logins by network, in windows of [`AUDIT_THROTTLED_WINDOW_S`] seconds.
#[derive(Default)]
pub(super) struct ThrottledLogins {
    windows: HashMap<Key, ThrottleWindow>,
}

impl ThrottledLogins {
    /// Counts an attempt. Returns whether it is the first of its window, for which the caller records an
    /// event.
    pub(super) fn count(&mut self, address: Option<IpAddr>, now: Timestamp) -> bool {
        let mut key = address.map(network);
        // The map is bounded: a flood from many networks shares one window.
        if !self.windows.contains_key(&key) && self.windows.len() >= AUDIT_THROTTLED_KEYS_MAX {
            key = None;
        }
        if let Some(window) = self.windows.get_mut(&key) {
            window.further = window.further.saturating_add(1);
            return false;
        }
        self.windows.insert(key, ThrottleWindow { since: now, further: 0 });
        true
    }

    /// Ends the windows that are over at `now`, or all if `is_last`. Returns an event for each window with
    /// more than one attempt.
    pub(super) fn end(&mut self, now: Timestamp, is_last: bool) -> Vec<AuditEvent> {
        let mut events = Vec::new();
        let length = SignedDuration::from_secs(AUDIT_THROTTLED_WINDOW_S);
        self.windows.retain(|key, window| {
            // The clock may have been set back since the window began.
            let elapsed = now.duration_since(window.since).abs();
            if !is_last && elapsed < length {
                return true;
            }
            // The first attempt has an event already.
            if window.further > 0 {
                let actor = Actor { address: *key, ..Actor::UNKNOWN };
                let event = AuditEvent::new(AuditAction::LoginThrottled, actor);
                let detail = format!("further attempts since {}", window.since);
                let event = event.with_outcome(AuditOutcome::Refused).with_detail(detail);
                events.push(AuditEvent { at: now, count: window.further, ..event });
            }
            false
        });
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn a_flood_is_one_event_and_its_number() {
        let mut throttled = ThrottledLogins::default();
        let home = "2001:db8::1".parse().ok();
        let other = "2001:db8::2".parse().ok();
        assert!(throttled.count(home, at(0)));
        for second in 1..5_000 {
            assert!(
                !throttled.count(if second % 2 == 0 { home } else { other }, at(second / 100))
            );
        }
        assert_eq!(throttled.end(at(AUDIT_THROTTLED_WINDOW_S - 1), false), []);
        let ended = throttled.end(at(AUDIT_THROTTLED_WINDOW_S), false);
        assert_eq!((ended.len(), ended[0].count), (1, 4_999));
        assert!(throttled.count(home, at(AUDIT_THROTTLED_WINDOW_S)), "another window");
        assert_eq!(throttled.end(at(AUDIT_THROTTLED_WINDOW_S), true), [], "the first is recorded");
    }

    #[test]
    fn attempts_from_everywhere_are_bounded() {
        let mut throttled = ThrottledLogins::default();
        let count = u32::try_from(AUDIT_THROTTLED_KEYS_MAX).unwrap() + 1_000;
        let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        let first = (0..count).filter(|one| throttled.count(Some(address(*one)), at(0))).count();
        assert_eq!(first, AUDIT_THROTTLED_KEYS_MAX + 1);
        let ended = throttled.end(at(1), true);
        assert_eq!((ended.len(), ended[0].actor.address, ended[0].count), (1, None, 999));
    }
}
