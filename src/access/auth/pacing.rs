//! Paces login attempts for a user name that failed too often from all networks: one evaluation at a time, at
//! growing intervals. Networks that have failed with the name and networks that have not use separate slots:
//! otherwise networks that guess and retry at once would use every slot, and the delay would lock the owner
//! out.
//!
//! Each attempt reserves a slot in the future and waits for it. An attempt that would wait too long, or the
//! second attempt of the same network, is refused at once, so that few attempts wait and a network occupies
//! one slot. A slot stays reserved when its client disconnects, and the attempt is still evaluated: otherwise
//! clients that disconnect would use slots and their network would never fail.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::runtime::limits::PACE_WAIT_MAX;
use model::{ContentHash, network};

/// Initial delay between two attempts for a user name with too many failures from all addresses.
const PACE_FIRST: Duration = Duration::from_secs(1);
/// Further failures after which the delay doubles.
const PACE_STEP: u32 = 10;
/// Maximum delay: 225 guesses an hour from any number of networks that failed before, and at most as many
/// from others.
const PACE_MAX: Duration = Duration::from_secs(16);
/// Delayed attempts that may wait for one user name: of networks that failed with it, and separately of
/// others.
const PACED_WAITING_MAX: usize = 8;
/// User names with waiting attempts, counted separately in the same way.
const PACED_NAMES_MAX: usize = 1000;

/// The slots of all paced user names.
#[derive(Default)]
pub(super) struct LoginPacer {
    /// Slots for networks that have not failed with the name.
    clean: Mutex<SlotsByName>,
    /// Slots for networks that have failed with the name.
    failed: Mutex<SlotsByName>,
}

/// Slots by the counter key of the user name.
type SlotsByName = HashMap<ContentHash, Vec<PacingSlot>>;

struct PacingSlot {
    network: IpAddr,
    at: Timestamp,
}

/// A user name whose attempts are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacedName {
    /// The key of the user name's counter.
    pub(super) key: ContentHash,
    /// Failures beyond the limit.
    pub(super) overrun: u32,
    /// True if the network of the client has failed with the name.
    pub(super) has_failed: bool,
}

impl LoginPacer {
    /// Reserves the next slot of a name for the client at `address`, and returns the time until it. Fails with the
    /// number of seconds after which a slot may be free.
    pub(super) fn reserve(
        &self,
        name: PacedName,
        address: IpAddr,
        now: Timestamp,
    ) -> Result<Duration, u64> {
        let wait_s_max = PACE_WAIT_MAX.as_secs();
        let names = if name.has_failed { &self.failed } else { &self.clean };
        let mut names = names.lock();
        if names.len() >= PACED_NAMES_MAX && !names.contains_key(&name.key) {
            names.retain(|_, slots| {
                drop_expired(slots, now);
                !slots.is_empty()
            });
            // A flood of names must not grow the map, so further names wait until a name has no slots left.
            if names.len() >= PACED_NAMES_MAX {
                return Err(wait_s_max);
            }
        }
        let slots = names.entry(name.key).or_default();
        drop_expired(slots, now);
        let last = slots.iter().map(|slot| slot.at).max().unwrap_or(now).max(now);
        let at = last.checked_add(interval(name.overrun)).map_err(|_| wait_s_max)?;
        let wait = until(at, now);
        let network = network(address);
        let mut waiting = slots.iter().filter(|slot| slot.at > now);
        let is_admitted = waiting.clone().count() < PACED_WAITING_MAX
            && waiting.all(|slot| slot.network != network);
        if !is_admitted || wait > PACE_WAIT_MAX {
            // Rounded up: a retry after that time finds the slot free.
            return Err(wait.as_secs() + 1);
        }
        slots.push(PacingSlot { network, at });
        Ok(wait)
    }
}

/// Removes slots that no longer have an effect, including slots from before the clock was set back.
fn drop_expired(slots: &mut Vec<PacingSlot>, now: Timestamp) {
    slots.retain(|slot| slot.at > now && until(slot.at, now) <= PACE_WAIT_MAX);
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// Returns the time between two evaluations, which doubles with each [`PACE_STEP`] failures.
fn interval(overrun: u32) -> Duration {
    // Shifts that leave the range are far beyond the maximum.
    let factor = 1u32.checked_shl(overrun / PACE_STEP).unwrap_or(u32::MAX);
    PACE_FIRST.saturating_mul(factor).min(PACE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn address(host: u8) -> IpAddr {
        [192, 0, 2, host].into()
    }

    fn of(name: &[u8]) -> PacedName {
        PacedName { key: ContentHash::new(name), overrun: 0, has_failed: false }
    }

    fn reserve(pacer: &LoginPacer, host: u8, overrun: u32, second: i64) -> Result<u64, u64> {
        pacer
            .reserve(PacedName { overrun, ..of(b"name") }, address(host), at(second))
            .map(|wait| wait.as_secs())
    }

    #[test]
    fn attempts_are_evaluated_one_after_the_other() {
        let pacer = LoginPacer::default();
        for host in 1..=4 {
            assert_eq!(reserve(&pacer, host, 0, 0), Ok(u64::from(host)));
        }
        assert_eq!(reserve(&pacer, 2, 0, 0), Err(6), "one at a time from a network");
        assert_eq!(reserve(&pacer, 2, 0, 2), Ok(3));
        assert_eq!(
            pacer.reserve(of(b"b"), address(2), at(0)),
            Ok(PACE_FIRST),
            "another name has its own slots"
        );
    }

    #[test]
    fn few_wait_and_none_for_long() {
        let pacer = LoginPacer::default();
        let waiting = (0..200).filter(|host| reserve(&pacer, *host, 0, 0).is_ok()).count();
        assert_eq!(waiting, PACED_WAITING_MAX);
        assert_eq!(reserve(&LoginPacer::default(), 1, u32::MAX, 0), Ok(PACE_MAX.as_secs()));
        let slow = LoginPacer::default();
        let waits = (0..200).map(|host| reserve(&slow, host, 40, 0));
        let longest = waits.filter_map(Result::ok).max().unwrap();
        assert!(longest <= PACE_WAIT_MAX.as_secs());
    }

    #[test]
    fn networks_that_failed_take_no_slot_of_those_that_did_not() {
        let pacer = LoginPacer::default();
        let failed = PacedName { has_failed: true, ..of(b"name") };
        let taken =
            (0..200).filter(|host| pacer.reserve(failed, address(*host), at(0)).is_ok()).count();
        assert_eq!(taken, PACED_WAITING_MAX);
        assert!(pacer.reserve(failed, address(200), at(0)).is_err());
        assert_eq!(reserve(&pacer, 201, 0, 0), Ok(1));
    }

    #[test]
    fn the_interval_doubles_up_to_its_bound() {
        let check = |overrun, factor| assert_eq!(interval(overrun), PACE_FIRST * factor);
        check(0, 1);
        check(PACE_STEP - 1, 1);
        check(PACE_STEP, 2);
        check(3 * PACE_STEP, 8);
        assert_eq!((interval(1000), interval(u32::MAX)), (PACE_MAX, PACE_MAX));
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_no_caller() {
        let pacer = LoginPacer::default();
        assert!(reserve(&pacer, 1, 0, 86_400).is_ok());
        assert_eq!(reserve(&pacer, 1, 0, 0), Ok(1));
    }

    #[test]
    fn names_are_bounded_and_those_without_slots_make_room() {
        let pacer = LoginPacer::default();
        let named =
            |name: usize, second| pacer.reserve(of(&name.to_be_bytes()), address(1), at(second));
        assert!((0..PACED_NAMES_MAX).all(|name| named(name, 0).is_ok()));
        assert!(named(PACED_NAMES_MAX, 0).is_err());
        assert!(named(PACED_NAMES_MAX, 2).is_ok());
    }
}
