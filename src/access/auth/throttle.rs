//! Counts failed logins and decides which attempts are evaluated (contract login-21, login-22, login-23).
//!
//! Failures of a user name from one network lock out that name for that network, and failures of a network
//! with any name lock out the network. Failures of a user name from all networks never lock it out, or anyone
//! could keep its owner out: beyond a higher limit its attempts are paced ([`super::pacing`]). A browser with
//! a device cookie is counted by that cookie, so that other clients cannot lock its owner out.
//!
//! Counters are held in memory and also in the database, so that nodes share them and they survive a restart:
//! each failure is written there, and an attempt merges the counters that its transaction reads.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::{HashLimits, device::DeviceId, pacing::PacedName};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{CLOCK_JUMP, FAILED_LOGINS_BOUND_EVERY};
use crate::storage::database::{FailedLogins, WindowStart};
use model::{ContentHash, network};

/// Counters of failed logins that a process keeps in memory; one takes about 60 bytes.
const THROTTLE_KEYS_MAX: usize = 100_000;

/// The consequence of the failures of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleRule {
    /// At the limit for a user, attempts are refused.
    LockByUser,
    /// At the limit for an address, attempts are refused.
    LockByAddress,
    /// At the total limit for a user, attempts are paced.
    Pace,
    /// The counted attempt is not affected, only other attempts with the same counter.
    Count,
}

/// The counters that decide an attempt and that its failure increments. Keys are hashes, because the caller
/// chooses the length of a user name.
#[derive(Clone, Debug)]
pub(super) struct ThrottleSubject {
    counters: Vec<(ContentHash, ThrottleRule)>,
}

impl ThrottleSubject {
    /// Counts an attempt by its user name and network.
    pub(super) fn of_user(user_name: &str, address: IpAddr) -> Self {
        let address = network(address);
        let counters = vec![
            (key(&["user at", &address.to_string(), user_name]), ThrottleRule::LockByUser),
            (address_key(address), ThrottleRule::LockByAddress),
            (key(&["user", user_name]), ThrottleRule::Pace),
        ];
        Self { counters }
    }

    /// Counts an attempt from a browser in which the user has logged in before.
    ///
    /// The limit of the device suffices: it belongs to one user, and only that user's logins create devices.
    /// Therefore failures of other clients lock it out neither by name nor by address.
    pub(super) fn of_device(device: DeviceId, address: IpAddr) -> Self {
        let address = address_key(network(address));
        Self {
            counters: vec![
                (device_key(device), ThrottleRule::LockByUser),
                // Its failures count for the network too, because the cookie may be stolen.
                (address, ThrottleRule::Count),
            ],
        }
    }

    /// Counts an attempt with a program's secret (RFC 6749 §2.3.1). It is never counted by the program's
    /// name, or anyone could lock a program out.
    pub(super) fn of_program(address: IpAddr) -> Self {
        Self { counters: vec![(address_key(network(address)), ThrottleRule::LockByAddress)] }
    }

    /// Returns the keys of all counters.
    pub(super) fn keys(&self) -> Vec<ContentHash> {
        self.counters.iter().map(|(key, _)| *key).collect()
    }
}

/// Returns the key of a device's counter.
pub(super) fn device_key(device: DeviceId) -> ContentHash {
    key(&["device", &device.to_string()])
}

fn address_key(network: IpAddr) -> ContentHash {
    key(&["address", &network.to_string()])
}

fn key(parts: &[&str]) -> ContentHash {
    ContentHash::new(parts.join("\0").as_bytes())
}

/// The decision about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThrottleDecision {
    /// The attempt is evaluated, or its result counts.
    Evaluate,
    /// The attempt is evaluated in its slot.
    Pace(PacedName),
    /// The attempt is refused, even with the right secret.
    Locked {
        /// Seconds until attempts are evaluated again.
        wait_s: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct FailureCount {
    failures: u32,
    since: Timestamp,
}

type Counts = HashMap<ContentHash, FailureCount>;

/// Counters of failed logins, each in a window that begins with the first failure.
pub(super) struct LoginThrottle {
    counts: Mutex<Counts>,
    limits: HotSwap<HashLimits>,
    /// Number of failures that were written to the database.
    written: AtomicU32,
}

impl LoginThrottle {
    pub(super) fn new(limits: HashLimits) -> Self {
        Self { counts: Mutex::default(), limits: HotSwap::new(limits), written: AtomicU32::new(0) }
    }

    /// Applies new limits from now on; existing counters are retained.
    pub(super) fn set_limits(&self, limits: HashLimits) {
        self.limits.set(limits);
    }

    /// Decides about an attempt of `subject` at `now`.
    pub(super) fn decide(&self, subject: &ThrottleSubject, now: Timestamp) -> ThrottleDecision {
        let counts = self.counts.lock();
        self.decide_by(&counts, subject, now)
    }

    /// Counts the result of an evaluated attempt, unless the throttle refuses the attempt now. Failures of
    /// other attempts that were evaluated in the meantime count, so that concurrent attempts get no further
    /// than sequential attempts.
    pub(super) fn record_result(
        &self,
        subject: &ThrottleSubject,
        evaluated: EvaluatedAttempt,
        now: Timestamp,
    ) -> ThrottleDecision {
        let mut counts = self.counts.lock();
        let decision = self.decide_by(&counts, subject, now);
        match decision {
            // The secret may even be right, which the response must not reveal (contract login-21).
            ThrottleDecision::Locked { .. } => return decision,
            ThrottleDecision::Pace(_) if !evaluated.is_paced => return decision,
            ThrottleDecision::Pace(_) | ThrottleDecision::Evaluate => {}
        }
        if !evaluated.is_accepted {
            self.count(&mut counts, subject, now);
        }
        ThrottleDecision::Evaluate
    }

    /// Counts an attempt whose result is known before it is evaluated, unless it is locked out, and returns
    /// the decision from before the count. A wrong attempt counts at once, even if it would have to wait for
    /// its slot: no later event can undo that.
    pub(super) fn record_known_result(
        &self,
        subject: &ThrottleSubject,
        is_accepted: bool,
        now: Timestamp,
    ) -> ThrottleDecision {
        let mut counts = self.counts.lock();
        let decision = self.decide_by(&counts, subject, now);
        let is_locked = matches!(decision, ThrottleDecision::Locked { .. });
        if !is_locked && !is_accepted {
            self.count(&mut counts, subject, now);
        }
        decision
    }

    /// Merges the counters of other processes.
    pub(super) fn merge(&self, rows: &[FailedLogins], now: Timestamp) {
        let mut counts = self.counts.lock();
        for row in rows {
            let remote = FailureCount { failures: row.failures, since: row.since };
            if self.remaining(remote, now).is_none() {
                continue;
            }
            let local =
                counts.get(&row.key).filter(|local| self.remaining(**local, now).is_some());
            // The larger count wins: a sum would count the failures of this process twice.
            if local.is_none_or(|local| local.failures < remote.failures) {
                self.evict_for(&mut counts, now);
                counts.insert(row.key, remote);
            }
        }
    }

    /// Returns the window in which counters in the database are in force.
    pub(super) fn window_start(&self, now: Timestamp) -> WindowStart {
        let window = self.limits.get().window;
        WindowStart {
            after: now.checked_sub(window).unwrap_or(Timestamp::MIN),
            until: now.checked_add(CLOCK_JUMP).unwrap_or(Timestamp::MAX),
        }
    }

    /// Records that a failure is written to the database. Returns whether it is time to bound the number of
    /// counters there.
    pub(super) fn record_write(&self) -> bool {
        self.written.fetch_add(1, Ordering::Relaxed).is_multiple_of(FAILED_LOGINS_BOUND_EVERY)
    }

    fn decide_by(
        &self,
        counts: &Counts,
        subject: &ThrottleSubject,
        now: Timestamp,
    ) -> ThrottleDecision {
        let limits = self.limits.get();
        let mut locked = None;
        let mut paced = None;
        let mut has_failed = false;
        for (key, rule) in &subject.counters {
            let Some(count) = counts.get(key) else { continue };
            let Some(remaining) = self.remaining(*count, now) else { continue };
            // Rounded up: a retry within the last second would still be refused.
            let wait_s = remaining.as_secs() + 1;
            let failures = count.failures;
            has_failed |= *rule == ThrottleRule::LockByUser;
            match rule {
                // The longest lock counts, since a retry before its end would be refused again.
                ThrottleRule::LockByUser if failures >= limits.failures_per_user => {
                    locked = locked.max(Some(wait_s));
                }
                ThrottleRule::LockByAddress if failures >= limits.failures_per_address => {
                    locked = locked.max(Some(wait_s));
                }
                ThrottleRule::Pace if failures >= limits.failures_per_user_total => {
                    paced = Some((*key, failures - limits.failures_per_user_total));
                }
                ThrottleRule::LockByUser
                | ThrottleRule::LockByAddress
                | ThrottleRule::Pace
                | ThrottleRule::Count => {}
            }
        }
        let locked = locked.map(|wait_s| ThrottleDecision::Locked { wait_s });
        let paced = paced.map(|(key, overrun)| PacedName { key, overrun, has_failed });
        locked.or(paced.map(ThrottleDecision::Pace)).unwrap_or(ThrottleDecision::Evaluate)
    }

    /// Counts a failure. A later success does not clear it, because it does not prove who failed.
    fn count(&self, counts: &mut Counts, subject: &ThrottleSubject, now: Timestamp) {
        self.evict_for(counts, now);
        for (key, _) in &subject.counters {
            let count = counts.entry(*key).or_insert(FailureCount { failures: 0, since: now });
            if self.remaining(*count, now).is_none() {
                *count = FailureCount { failures: 0, since: now };
            }
            count.failures = count.failures.saturating_add(1);
        }
    }

    /// Makes room for the counters of one attempt. Evicted counters are still in the database.
    fn evict_for(&self, counts: &mut Counts, now: Timestamp) {
        if is_full(counts) {
            counts.retain(|_, count| self.remaining(*count, now).is_some());
        }
        // A counter with one failure is the least loss, since a lockout needs several.
        if is_full(counts) {
            counts.retain(|_, count| count.failures > 1);
        }
        // Each counter has several failures now, as in an attack from many networks; memory stays
        // bounded.
        if is_full(counts) {
            counts.clear();
        }
    }

    /// Returns the rest of a counter's window, or `None` if the window is over. A counter that began more
    /// than [`CLOCK_JUMP`] in the future counts as over: the clock was wrong then, and the counter would last
    /// for as long as the clock was ahead. Clocks of nodes differ by less.
    fn remaining(&self, count: FailureCount, now: Timestamp) -> Option<Duration> {
        let window = self.limits.get().window;
        match Duration::try_from(now.duration_since(count.since)) {
            Ok(elapsed) => window.checked_sub(elapsed).filter(|rest| !rest.is_zero()),
            Err(_) => {
                let ahead = Duration::try_from(count.since.duration_since(now)).ok()?;
                (ahead <= CLOCK_JUMP).then_some(window)
            }
        }
    }
}

/// Returns whether the counters of one more attempt would exceed the limit.
fn is_full(counts: &Counts) -> bool {
    counts.len() + COUNTERS_MAX > THROTTLE_KEYS_MAX
}

/// Largest number of counters of one attempt.
const COUNTERS_MAX: usize = 3;

/// The result of an evaluated attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvaluatedAttempt {
    /// True if the secret is right and the user may log in.
    pub(super) is_accepted: bool,
    /// True if the attempt waited for its slot before the evaluation.
    pub(super) is_paced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED_LAST: u64 = 60;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn user(name: &str, address: &str) -> ThrottleSubject {
        ThrottleSubject::of_user(name, address.parse().unwrap())
    }

    fn program(address: &str) -> ThrottleSubject {
        ThrottleSubject::of_program(address.parse().unwrap())
    }

    fn limits(per_user: u32, per_user_total: u32, per_address: u32) -> LoginThrottle {
        let window = Duration::from_secs(60);
        LoginThrottle::new(HashLimits {
            memory_kib: 8,
            iterations: 1,
            workers: 1,
            queue: 8,
            queue_per_address: 8,
            failures_per_user: per_user,
            failures_per_user_total: per_user_total,
            failures_per_address: per_address,
            window,
        })
    }

    fn fail(throttle: &LoginThrottle, subject: &ThrottleSubject, second: i64) -> ThrottleDecision {
        let wrong = EvaluatedAttempt { is_accepted: false, is_paced: false };
        throttle.record_result(subject, wrong, at(second))
    }

    fn locked(throttle: &LoginThrottle, subject: &ThrottleSubject, second: i64) -> Option<u64> {
        match throttle.decide(subject, at(second)) {
            ThrottleDecision::Locked { wait_s } => Some(wait_s),
            ThrottleDecision::Pace(_) | ThrottleDecision::Evaluate => None,
        }
    }

    #[test]
    fn a_name_is_locked_out_for_the_network_of_its_failures_until_the_window_ends() {
        let throttle = limits(3, 100, 100);
        let (here, there) = (user("a", "192.0.2.1"), user("a", "192.0.2.2"));
        for second in 0..3 {
            assert_eq!(locked(&throttle, &here, second), None);
            assert_eq!(fail(&throttle, &here, second), ThrottleDecision::Evaluate);
        }
        assert_eq!(locked(&throttle, &here, 10), Some(51));
        assert_eq!(locked(&throttle, &there, 10), None, "another network");
        assert_eq!(locked(&throttle, &user("b", "192.0.2.1"), 10), None, "another name");
        assert_eq!(locked(&throttle, &here, 60), None);
    }

    #[test]
    fn results_beyond_the_limit_are_refused_also_right_ones() {
        let throttle = limits(2, 100, 100);
        let here = user("a", "192.0.2.1");
        // All of them were admitted.
        assert_eq!(fail(&throttle, &here, 0), ThrottleDecision::Evaluate);
        assert_eq!(fail(&throttle, &here, 0), ThrottleDecision::Evaluate);
        assert_eq!(
            fail(&throttle, &here, 0),
            ThrottleDecision::Locked { wait_s: LOCKED_LAST + 1 }
        );
        let right = EvaluatedAttempt { is_accepted: true, is_paced: true };
        let decision = throttle.record_result(&here, right, at(1));
        assert_eq!(decision, ThrottleDecision::Locked { wait_s: LOCKED_LAST });
    }

    #[test]
    fn a_name_that_fails_everywhere_is_paced_and_never_locked() {
        let throttle = limits(10, 3, 100);
        for host in 1..=3 {
            fail(&throttle, &user("a", &format!("192.0.2.{host}")), 0);
        }
        let there = user("a", "198.51.100.1");
        let key = there.keys()[2];
        let paced =
            |overrun, has_failed| ThrottleDecision::Pace(PacedName { key, overrun, has_failed });
        assert_eq!(throttle.decide(&there, at(1)), paced(0, false));
        // Its result counts only after it has waited for its slot.
        assert_eq!(fail(&throttle, &there, 1), paced(0, false));
        let in_slot = EvaluatedAttempt { is_accepted: false, is_paced: true };
        assert_eq!(throttle.record_result(&there, in_slot, at(1)), ThrottleDecision::Evaluate);
        assert_eq!(throttle.decide(&there, at(1)), paced(1, true));
        assert_eq!(throttle.decide(&user("b", "198.51.100.1"), at(1)), ThrottleDecision::Evaluate);
        assert_eq!(throttle.decide(&there, at(60)), ThrottleDecision::Evaluate);
    }

    #[test]
    fn what_is_known_to_be_wrong_counts_without_its_turn() {
        let throttle = limits(2, 1, 100);
        fail(&throttle, &user("a", "198.51.100.1"), 0);
        let here = user("a", "192.0.2.1");
        let paced = |decision| matches!(decision, ThrottleDecision::Pace(_));
        assert!(
            paced(throttle.record_known_result(&here, true, at(1))),
            "a right one counts nothing"
        );
        assert!(paced(throttle.record_known_result(&here, false, at(1))));
        assert!(paced(throttle.record_known_result(&here, false, at(1))));
        let locked = ThrottleDecision::Locked { wait_s: LOCKED_LAST + 1 };
        assert_eq!(throttle.record_known_result(&here, true, at(1)), locked);
        assert_eq!(throttle.record_known_result(&here, false, at(1)), locked);
    }

    #[test]
    fn a_device_is_locked_out_by_its_own_failures_alone() {
        let throttle = limits(2, 3, 3);
        for _ in 0..4 {
            fail(&throttle, &user("a", "192.0.2.1"), 0);
            fail(&throttle, &user("b", "192.0.2.1"), 0);
        }
        let home = "192.0.2.1".parse().unwrap();
        let device = ThrottleSubject::of_device(DeviceId([1; 16]), home);
        assert_eq!(throttle.decide(&device, at(1)), ThrottleDecision::Evaluate);
        fail(&throttle, &device, 1);
        fail(&throttle, &device, 1);
        assert!(locked(&throttle, &device, 2).is_some());
        let another = ThrottleSubject::of_device(DeviceId([2; 16]), home);
        assert_eq!(throttle.decide(&another, at(2)), ThrottleDecision::Evaluate);
    }

    #[test]
    fn a_clock_that_ran_ahead_locks_no_user_out() {
        let throttle = limits(2, 100, 2);
        let (here, year) = (user("a", "192.0.2.1"), 365 * 86_400);
        fail(&throttle, &here, year);
        fail(&throttle, &here, year);
        assert!(locked(&throttle, &here, year).is_some());
        assert!(locked(&throttle, &program("192.0.2.1"), year).is_some());
        // The clock was corrected.
        assert_eq!(locked(&throttle, &here, 0), None);
        assert_eq!(locked(&throttle, &program("192.0.2.1"), 0), None);
        // Failures count again.
        fail(&throttle, &here, 1);
        assert_eq!(locked(&throttle, &here, 2), None);
        fail(&throttle, &here, 2);
        assert_eq!(locked(&throttle, &here, 2), Some(LOCKED_LAST));
    }

    #[test]
    fn an_address_is_locked_out_after_its_failures_with_any_name() {
        let throttle = limits(100, 100, 2);
        fail(&throttle, &user("a", "2001:db8::1"), 0);
        fail(&throttle, &user("b", "2001:db8::2"), 0);
        assert!(locked(&throttle, &user("c", "2001:db8::3"), 1).is_some());
        assert!(locked(&throttle, &program("2001:db8::3"), 1).is_some());
        assert_eq!(locked(&throttle, &user("c", "2001:db8:0:1::1"), 1), None);
    }

    #[test]
    fn failures_of_programs_count_for_their_address_alone() {
        let throttle = limits(100, 100, 2);
        let home = program("192.0.2.1");
        fail(&throttle, &home, 0);
        assert_eq!(locked(&throttle, &home, 1), None);
        fail(&throttle, &home, 1);
        assert!(locked(&throttle, &home, 2).is_some());
        assert_eq!(locked(&throttle, &home, 60), None);
        assert_eq!(locked(&throttle, &program("192.0.2.2"), 2), None);
    }

    #[test]
    fn counters_of_other_processes_are_taken_over_while_they_are_in_force() {
        let here = user("a", "192.0.2.1");
        let key = here.keys()[0];
        let check = |failures, since, expected: Option<u64>| {
            let throttle = limits(3, 100, 100);
            fail(&throttle, &here, 50);
            throttle.merge(&[FailedLogins { key, failures, since: at(since) }], at(50));
            assert_eq!(locked(&throttle, &here, 50), expected, "{failures} since {since}");
        };
        check(3, 0, Some(11));
        check(2, 0, None);
        check(3, -10, None);
        check(3, 55, Some(LOCKED_LAST + 1));
        check(3, 150, None);
    }

    #[test]
    fn counters_are_bounded() {
        let throttle = limits(2, 1_000_000, 1_000_000);
        for name in 0..THROTTLE_KEYS_MAX {
            fail(&throttle, &user(&name.to_string(), "192.0.2.1"), 0);
        }
        assert!(throttle.counts.lock().len() <= THROTTLE_KEYS_MAX);
    }
}
