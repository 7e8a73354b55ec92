//! When a delivery that failed is tried again, and when it is given up.

use jiff::Timestamp;

use super::Trouble;
use crate::storage::database::Outcome;
use model::account::{Delivery, Patience, shorten_reason};

/// What becomes of `delivery` after a try that ended at `now`, which is trusted or not.
pub(super) fn judge(
    delivery: &Delivery,
    tried: Result<(), Trouble>,
    patience: Patience,
    (now, is_trusted): (Timestamp, bool),
) -> Outcome {
    let Err(trouble) = tried else { return Outcome::Delivered };
    let error = shorten_reason(&trouble.text);
    if !trouble.temporary {
        return Outcome::Failed { error };
    }
    let name = delivery.id.to_string();
    let times = (delivery.queued, now);
    let Some(at) = patience.again(&name, delivery.attempts, times, is_trusted) else {
        let tries = delivery.attempts;
        return Outcome::Failed {
            error: shorten_reason(&format!("given up after {tries} tries: {error}")),
        };
    };
    Outcome::Retry { at, error }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::limits::DELIVERY_ERROR_CHARS_MAX;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use model::account::{ChannelId, DeliveryState, OrganizationId, UserId};

    const PATIENCE: Patience =
        Patience { first: Duration::from_secs(60), all: Duration::from_secs(24 * 3600) };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn delivery(attempts: u32) -> Delivery {
        Delivery {
            id: Uuid::from_u128(7),
            user: UserId(1),
            organization: OrganizationId(1),
            channel: ChannelId::new("a", "b").unwrap(),
            item: "image/a".parse().unwrap(),
            crop: None,
            version: String::new(),
            agreement: None,
            state: DeliveryState::Sending,
            attempts,
            next: None,
            error: None,
            created: at(0),
            queued: at(0),
            updated: at(0),
            delivered: None,
        }
    }

    fn for_now() -> Result<(), Trouble> {
        Err(Trouble { text: "refused".to_owned(), temporary: true })
    }

    #[test]
    fn what_arrived_is_delivered_and_what_can_never_arrive_fails_at_once() {
        assert_eq!(judge(&delivery(1), Ok(()), PATIENCE, (at(1), true)), Outcome::Delivered);
        let never = Err(Trouble { text: "no".to_owned(), temporary: false });
        let failed = Outcome::Failed { error: "no".to_owned() };
        assert_eq!(judge(&delivery(1), never, PATIENCE, (at(1), true)), failed);
    }

    #[test]
    fn a_day_of_tries_ends_with_the_reason_of_the_last() {
        let mut now = at(0);
        for attempts in 1..100 {
            match judge(&delivery(attempts), for_now(), PATIENCE, (now, true)) {
                Outcome::Retry { at: next, error } => {
                    assert_eq!(error, "refused");
                    now = next;
                }
                Outcome::Failed { error } => {
                    assert!(error.ends_with("tries: refused"), "{error}");
                    let day = at(24 * 3600);
                    assert!(now > at(22 * 3600) && now <= day, "{now}");
                    assert!((25..40).contains(&attempts), "{attempts}");
                    return;
                }
                Outcome::Delivered | Outcome::Released => panic!("it failed"),
            }
        }
        panic!("never given up");
    }

    #[test]
    fn a_clock_that_jumped_gives_nothing_up() {
        let later = (at(7 * 24 * 3600), false);
        let Outcome::Retry { at: next, .. } = judge(&delivery(1), for_now(), PATIENCE, later)
        else {
            panic!("given up by a clock that nobody trusts")
        };
        assert!(next > later.0 && next < at(7 * 24 * 3600 + 3600), "{next}");
        let trusted = judge(&delivery(1), for_now(), PATIENCE, (later.0, true));
        assert!(matches!(trusted, Outcome::Failed { .. }), "{trusted:?}");
    }

    /// A delivery is never given up unheard: its tries end by the time, and only those that end
    /// by nothing reach the number.
    fn check_exhausted(patience: Patience) {
        let mut now = at(0);
        for attempts in 1.. {
            assert!(!patience.exhausted(attempts), "{attempts} {patience:?}");
            match judge(&delivery(attempts), for_now(), patience, (now, true)) {
                Outcome::Retry { at: next, .. } => now = next,
                Outcome::Failed { .. } => {
                    let never_judged = attempts + attempts / 4 + 20;
                    assert!(patience.exhausted(never_judged), "{patience:?}");
                    return;
                }
                Outcome::Delivered | Outcome::Released => panic!("it failed"),
            }
        }
    }

    #[test]
    fn a_delivery_that_kills_its_sender_is_given_up_and_one_that_is_judged_is_not() {
        for (first_ms, hours) in [(60_000, 24), (1, 1), (50, 24), (3_600_000, 1), (3_600_000, 720)]
        {
            let first = Duration::from_millis(first_ms);
            check_exhausted(Patience { first, all: Duration::from_secs(hours * 3600) });
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let text = "å".repeat(DELIVERY_ERROR_CHARS_MAX + 1);
        let trouble = Err(Trouble { text, temporary: false });
        let Outcome::Failed { error } = judge(&delivery(1), trouble, PATIENCE, (at(0), true))
        else {
            panic!("it failed")
        };
        assert_eq!(error.chars().count(), DELIVERY_ERROR_CHARS_MAX + 1);
    }

    proptest! {
        #[test]
        fn a_wait_is_within_a_minute_and_an_hour_and_never_shorter_than_the_one_before_it(
            attempts in 1_u32..1_000_000,
            number in any::<u128>(),
        ) {
            let name = Uuid::from_u128(number).to_string();
            let base = 60 * 2_u64.pow((attempts - 1).min(6));
            let base = Duration::from_secs(base.min(48 * 60));
            let found = PATIENCE.wait(&name, attempts);
            prop_assert!(found >= base && found <= base + base / 4, "{:?}", found);
            prop_assert!(found <= Duration::from_secs(3600));
        }
    }
}
