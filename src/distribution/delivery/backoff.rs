//! Decides whether and when a failed delivery is retried.

use super::AttemptFailure;
use crate::storage::database::DeliveryOutcome;
use model::account::{Delivery, shorten_reason};
use model::{AttemptEnd, RetryPolicy};

/// Returns the outcome of an attempt: delivered, permanently failed, or due for a retry.
pub(super) fn outcome_after(
    delivery: &Delivery,
    result: Result<(), AttemptFailure>,
    policy: RetryPolicy,
    end: AttemptEnd,
) -> DeliveryOutcome {
    let Err(failure) = result else { return DeliveryOutcome::Delivered };
    let error = shorten_reason(&failure.text);
    // A retry cannot fix problems of the owner, such as refused credentials, so the owner sees the reason at once
    // (contract deliveries-10).
    if !failure.temporary {
        return DeliveryOutcome::Failed { error };
    }
    // The id seeds the jitter, so deliveries that failed together do not retry together.
    let name = delivery.id.to_string();
    // Counted from `queued`, not from `created`, so a repeated delivery has the full time again.
    let next = policy.next_attempt(&name, delivery.attempts, delivery.queued, end);
    // No next attempt: the deadline has passed according to a trusted clock.
    let Some(at) = next else {
        let tries = delivery.attempts;
        return DeliveryOutcome::Failed {
            error: shorten_reason(&format!("given up after {tries} tries: {error}")),
        };
    };
    DeliveryOutcome::Retry { at, error }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use model::limits::{DELIVERY_ERROR_CHARS_MAX, DELIVERY_WAIT_MAX};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use model::account::{ChannelId, DeliveryState, OrganizationId, UserId};

    const POLICY: RetryPolicy = policy(Duration::from_secs(60), 24);

    const fn policy(first: Duration, hours: u64) -> RetryPolicy {
        let deadline = Duration::from_secs(hours * 3600);
        RetryPolicy { first, longest: DELIVERY_WAIT_MAX, deadline }
    }

    fn end(at: Timestamp) -> AttemptEnd {
        AttemptEnd { at, is_clock_trusted: true }
    }

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
            next_attempt: None,
            error: None,
            created: at(0),
            queued: at(0),
            updated: at(0),
            delivered: None,
        }
    }

    fn for_now() -> Result<(), AttemptFailure> {
        Err(AttemptFailure { text: "refused".to_owned(), temporary: true })
    }

    #[test]
    fn what_arrived_is_delivered_and_what_can_never_arrive_fails_at_once() {
        assert_eq!(
            outcome_after(&delivery(1), Ok(()), POLICY, end(at(1))),
            DeliveryOutcome::Delivered
        );
        let never = Err(AttemptFailure { text: "no".to_owned(), temporary: false });
        let failed = DeliveryOutcome::Failed { error: "no".to_owned() };
        assert_eq!(outcome_after(&delivery(1), never, POLICY, end(at(1))), failed);
    }

    #[test]
    fn a_day_of_tries_ends_with_the_reason_of_the_last() {
        let mut now = at(0);
        for attempts in 1..100 {
            match outcome_after(&delivery(attempts), for_now(), POLICY, end(now)) {
                DeliveryOutcome::Retry { at: next, error } => {
                    assert_eq!(error, "refused");
                    now = next;
                }
                DeliveryOutcome::Failed { error } => {
                    assert!(error.ends_with("tries: refused"), "{error}");
                    let day = at(24 * 3600);
                    assert!(now > at(22 * 3600) && now <= day, "{now}");
                    assert!((25..40).contains(&attempts), "{attempts}");
                    return;
                }
                DeliveryOutcome::Delivered | DeliveryOutcome::Released => panic!("it failed"),
            }
        }
        panic!("never given up");
    }

    #[test]
    fn a_clock_that_jumped_gives_nothing_up() {
        let later = AttemptEnd { at: at(7 * 24 * 3600), is_clock_trusted: false };
        let DeliveryOutcome::Retry { at: next, .. } =
            outcome_after(&delivery(1), for_now(), POLICY, later)
        else {
            panic!("given up by a clock that nobody trusts")
        };
        assert!(next > later.at && next < at(7 * 24 * 3600 + 3600), "{next}");
        let trusted = outcome_after(&delivery(1), for_now(), POLICY, end(later.at));
        assert!(matches!(trusted, DeliveryOutcome::Failed { .. }), "{trusted:?}");
    }

    /// A delivery is never given up unheard: its tries end by the time, and only those that end
    /// by nothing reach the number.
    fn check_exhausted(policy: RetryPolicy) {
        let mut now = at(0);
        for attempts in 1.. {
            assert!(!policy.is_exhausted(attempts), "{attempts} {policy:?}");
            match outcome_after(&delivery(attempts), for_now(), policy, end(now)) {
                DeliveryOutcome::Retry { at: next, .. } => now = next,
                DeliveryOutcome::Failed { .. } => {
                    let never_judged = attempts + attempts / 4 + 20;
                    assert!(policy.is_exhausted(never_judged), "{policy:?}");
                    return;
                }
                DeliveryOutcome::Delivered | DeliveryOutcome::Released => panic!("it failed"),
            }
        }
    }

    #[test]
    fn a_delivery_that_kills_its_sender_is_given_up_and_one_that_is_judged_is_not() {
        for (first_ms, hours) in [(60_000, 24), (1, 1), (50, 24), (3_600_000, 1), (3_600_000, 720)]
        {
            let first = Duration::from_millis(first_ms);
            check_exhausted(policy(first, hours));
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let text = "å".repeat(DELIVERY_ERROR_CHARS_MAX + 1);
        let failed = Err(AttemptFailure { text, temporary: false });
        let DeliveryOutcome::Failed { error } =
            outcome_after(&delivery(1), failed, POLICY, end(at(0)))
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
            let found = POLICY.jittered(&name, attempts);
            prop_assert!(found >= base && found <= base + base / 4, "{:?}", found);
            prop_assert!(found <= Duration::from_secs(3600));
        }
    }
}
