//! Counts failed logins per user name and per address (Spec §5 is silent; agreed: failed logins are
//! throttled per user and per address).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use crate::limits::THROTTLE_KEYS_MAX;
use crate::live::Live;
use crate::types::{Hash, network};

/// Whose failures are counted. User names are kept as hashes: their length is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    User(Hash),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug)]
struct Count {
    failures: u32,
    since: Timestamp,
}

/// The failures of a window that begins with the first one.
pub(super) struct Throttle {
    counts: Mutex<HashMap<Key, Count>>,
    limits: Live<Limits>,
}

/// How many failures are allowed in which time.
#[derive(Debug)]
struct Limits {
    per_user: u32,
    per_address: u32,
    window: Duration,
}

impl Throttle {
    pub(super) fn new(per_user: u32, per_address: u32, window: Duration) -> Self {
        let limits = Live::new(Limits { per_user, per_address, window });
        Self { counts: Mutex::default(), limits }
    }

    /// Counts by other limits from now on; what was counted stays.
    pub(super) fn set(&self, per_user: u32, per_address: u32, window: Duration) {
        self.limits.set(Limits { per_user, per_address, window });
    }

    /// Seconds until another try is allowed; `None` when it is allowed now.
    pub(super) fn wait_s(&self, user: &str, address: IpAddr, now: Timestamp) -> Option<u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |(key, max): (Key, u32)| {
            let count = counts.get(&key)?;
            let left = self.left(*count, now)?;
            (count.failures >= max).then_some(left.as_secs() + 1)
        };
        self.keys(user, address).into_iter().filter_map(wait).max()
    }

    /// Whether too many failures came from `address`, whatever they were for.
    pub(super) fn is_blocked(&self, address: IpAddr, now: Timestamp) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(&Key::Address(network(address)));
        count.is_some_and(|count| {
            count.failures >= self.limits.get().per_address && self.left(*count, now).is_some()
        })
    }

    /// Counts a failure of an address alone.
    pub(super) fn fail_address(&self, address: IpAddr, now: Timestamp) {
        self.count(&[Key::Address(network(address))], now);
    }

    /// Counts a failure. A later success says nothing about it, so it stays.
    pub(super) fn fail(&self, user: &str, address: IpAddr, now: Timestamp) {
        self.count(&self.keys(user, address).map(|(key, _)| key), now);
    }

    fn count(&self, keys: &[Key], now: Timestamp) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() + 2 > THROTTLE_KEYS_MAX {
            counts.retain(|_, count| self.left(*count, now).is_some());
        }
        if counts.len() + 2 > THROTTLE_KEYS_MAX {
            // Somebody tries a hundred thousand names: forget those with few failures.
            counts.retain(|_, count| count.failures > 1);
        }
        if counts.len() + 2 > THROTTLE_KEYS_MAX {
            counts.clear();
        }
        for key in keys {
            let count = counts.entry(*key).or_insert(Count { failures: 0, since: now });
            if self.left(*count, now).is_none() {
                *count = Count { failures: 0, since: now };
            }
            count.failures = count.failures.saturating_add(1);
        }
    }

    fn keys(&self, user: &str, address: IpAddr) -> [(Key, u32); 2] {
        let user = Key::User(Hash::of(user.as_bytes()));
        let limits = self.limits.get();
        [(user, limits.per_user), (Key::Address(network(address)), limits.per_address)]
    }

    /// What is left of a count's window. One that began while the clock ran ahead is over: it would
    /// last for as long as the clock was wrong.
    fn left(&self, count: Count, now: Timestamp) -> Option<Duration> {
        let passed = Duration::try_from(now.duration_since(count.since)).ok()?;
        self.limits.get().window.checked_sub(passed).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_is_refused_after_its_failures_from_anywhere_until_the_window_ends() {
        let throttle = Throttle::new(3, 100, Duration::from_secs(60));
        for try_number in 0..3 {
            assert_eq!(throttle.wait_s("a", address("192.0.2.1"), at(try_number)), None);
            throttle.fail("a", address("192.0.2.1"), at(try_number));
        }
        assert_eq!(throttle.wait_s("a", address("192.0.2.2"), at(10)), Some(51));
        assert_eq!(throttle.wait_s("b", address("192.0.2.1"), at(10)), None);
        assert_eq!(throttle.wait_s("a", address("192.0.2.2"), at(60)), None);
    }

    #[test]
    fn a_clock_that_ran_ahead_leaves_nobody_locked_out() {
        let throttle = Throttle::new(2, 2, Duration::from_secs(60));
        let (home, year) = (address("192.0.2.1"), 365 * 86_400);
        for _ in 0..2 {
            throttle.fail("a", home, at(year));
        }
        assert!(
            throttle.wait_s("a", home, at(year)).is_some() && throttle.is_blocked(home, at(year))
        );
        // It was set right.
        assert_eq!(throttle.wait_s("a", home, at(0)), None);
        assert!(!throttle.is_blocked(home, at(0)));
        // And failures count again.
        throttle.fail("a", home, at(1));
        assert_eq!(throttle.wait_s("a", home, at(2)), None);
        throttle.fail("a", home, at(2));
        assert_eq!(throttle.wait_s("a", home, at(2)), Some(60));
    }

    #[test]
    fn an_address_is_refused_after_its_failures_with_any_name() {
        let throttle = Throttle::new(100, 2, Duration::from_secs(60));
        throttle.fail("a", address("2001:db8::1"), at(0));
        throttle.fail("b", address("2001:db8::2"), at(0));
        assert!(throttle.wait_s("c", address("2001:db8::3"), at(1)).is_some());
        assert_eq!(throttle.wait_s("c", address("2001:db8:0:1::1"), at(1)), None);
    }

    #[test]
    fn failures_of_programs_count_for_their_address_alone() {
        let throttle = Throttle::new(100, 2, Duration::from_secs(60));
        let home = address("192.0.2.1");
        throttle.fail_address(home, at(0));
        assert!(!throttle.is_blocked(home, at(1)));
        throttle.fail_address(home, at(1));
        assert!(throttle.is_blocked(home, at(2)));
        assert!(!throttle.is_blocked(home, at(60)));
        assert!(!throttle.is_blocked(address("192.0.2.2"), at(2)));
    }

    #[test]
    fn counts_are_bounded() {
        let throttle = Throttle::new(2, 1_000_000, Duration::from_secs(60));
        for name in 0..THROTTLE_KEYS_MAX + 10 {
            throttle.fail(&name.to_string(), address("192.0.2.1"), at(0));
        }
        assert!(throttle.counts.lock().unwrap().len() <= THROTTLE_KEYS_MAX);
    }
}
