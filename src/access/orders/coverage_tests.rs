//! Coverage and choice against an independent formulation of the contract's rules.

use jiff::Timestamp;
use proptest::prelude::*;

use super::coverage::{AgreementCandidate, AgreementChoice, choose, covered_codes, covering};
use crate::storage::database::LiveOrder;
use model::account::{
    Agreement, AgreementId, AgreementType, OrganizationId, PrepaidDownloads, Product, ProductId,
};

const CODES: [&str; 3] = ["A", "B", "C"];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn kinds() -> impl Strategy<Value = AgreementType> {
    prop::sample::select(vec![
        AgreementType::Subscription,
        AgreementType::Direct,
        AgreementType::Normal,
        AgreementType::Prepaid,
    ])
}

fn codes() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(CODES.map(str::to_owned).to_vec()), 0..4)
}

prop_compose! {
    fn agreements()(
        drawn in prop::collection::vec((kinds(), any::<bool>(), codes(), -2_i64..3), 0..6),
    ) -> Vec<Agreement> {
        let product = |code: &String| Product {
            id: ProductId(1),
            code: code.clone(),
            name: None,
            description: None,
        };
        let agreement = |(index, (kind, super_agreement, codes, expires)): (i64, (_, _, Vec<String>, i64))| Agreement {
            // Numbers that do not follow the order of the list.
            id: AgreementId((index * 7) % 11),
            organization: OrganizationId(1),
            kind,
            super_agreement,
            products: codes.iter().map(product).collect(),
            name: None,
            description: None,
            expires: (expires < 2).then(|| at(expires)),
            prepaids: Some(PrepaidDownloads { total: 1, remaining: 1 }),
        };
        (0..).zip(drawn).map(agreement).collect()
    }
}

/// Applies the contract's rule to one agreement and an item.
fn is_covered(agreement: &Agreement, codes: &[String], now: Timestamp) -> bool {
    let expired = matches!(agreement.expires, Some(end) if end <= now);
    let mut in_common = false;
    for product in &agreement.products {
        for code in codes {
            in_common |= product.code == *code;
        }
    }
    !expired && (agreement.super_agreement || in_common)
}

proptest! {
    #[test]
    fn all_that_cover_the_item_are_chosen_from_and_nothing_else(
        agreements in agreements(), codes in codes(), agr in prop::option::of(0_i64..11),
    ) {
        let now = at(0);
        let found = covering(&agreements, &codes, agr.map(AgreementId), now);
        for agreement in &agreements {
            let wanted = agr.is_none_or(|id| agreement.id == AgreementId(id));
            let expected = wanted && is_covered(agreement, &codes, now);
            let times = found.iter().filter(|one| one.id == agreement.id).count();
            prop_assert_eq!(times, usize::from(expected), "{:?}", agreement);
        }
    }

    #[test]
    fn super_subscriptions_come_first_then_subscriptions_prepaid_and_the_rest_by_number(
        agreements in agreements(), codes in codes(),
    ) {
        let found = covering(&agreements, &codes, None, at(0));
        let class = |one: &Agreement| match (one.kind, one.super_agreement) {
            (AgreementType::Subscription, true) => "1 super",
            (AgreementType::Subscription, false) => "2 subscription",
            (AgreementType::Prepaid, _) => "3 prepaid",
            (AgreementType::Direct | AgreementType::Normal, _) => "4 order",
        };
        for pair in found.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            let in_order = class(one) < class(next) || (class(one) == class(next) && one.id < next.id);
            prop_assert!(in_order, "{:?} before {:?}", one, next);
        }
    }

    #[test]
    fn licences_are_those_of_covered_products(agreements in agreements(), codes in codes()) {
        let found = covered_codes(&agreements, &codes, at(0));
        for code in CODES {
            let code = code.to_owned();
            let alone = std::slice::from_ref(&code);
            let covered = agreements.iter().any(|one| is_covered(one, alone, at(0)));
            let expected = codes.contains(&code) && covered;
            let times = found.iter().filter(|one| **one == code).count();
            prop_assert_eq!(times, usize::from(expected));
        }
    }

    #[test]
    fn what_is_chosen_delivers_at_the_least_cost(
        drawn in prop::collection::vec(
            (kinds(), prop::option::of(prop::option::of(any::<bool>())), 0_u32..2), 1..5),
    ) {
        let agreement = |kind, index: i64| Agreement {
            id: AgreementId(index),
            organization: OrganizationId(1),
            kind,
            super_agreement: true,
            products: Vec::new(),
            name: None,
            description: None,
            expires: None,
            prepaids: None,
        };
        let agreements: Vec<Agreement> =
            (0..).zip(&drawn).map(|(index, (kind, _, _))| agreement(*kind, index)).collect();
        let candidates: Vec<AgreementCandidate<'_>> = agreements
            .iter()
            .zip(&drawn)
            .map(|(agreement, (_, live, remaining))| AgreementCandidate {
                agreement,
                live: live.map(|approved| LiveOrder { downloadable_until: at(9), approved }),
                remaining: *remaining,
            })
            .collect();
        let any = |fits: fn(&AgreementCandidate<'_>) -> bool| candidates.iter().any(fits);
        let is_order = |one: &AgreementCandidate<'_>| {
            matches!(one.agreement.kind, AgreementType::Direct | AgreementType::Normal)
        };
        let subscribed = any(|one| one.agreement.kind == AgreementType::Subscription);
        let paid = any(|one| one.agreement.kind == AgreementType::Prepaid && one.live.is_some());
        let approved = candidates
            .iter()
            .any(|one| is_order(one) && one.live.is_some_and(|live| live.approved == Some(true)));
        let left = any(|one| one.agreement.kind == AgreementType::Prepaid && one.remaining > 0);
        let on_order = candidates.iter().any(is_order);
        match choose(&candidates) {
            AgreementChoice::Free(chosen, _) => {
                let row = candidates.iter().find(|one| one.agreement.id == chosen.id).unwrap();
                prop_assert!(row.live.is_some());
                let is_subscription = chosen.kind == AgreementType::Subscription;
                prop_assert_eq!(is_subscription, subscribed);
                prop_assert!(is_subscription || paid || approved);
                prop_assert!(!is_order(row) || row.live.unwrap().approved == Some(true));
            }
            AgreementChoice::Buy(chosen) => match chosen.kind {
                AgreementType::Subscription => prop_assert!(subscribed),
                AgreementType::Prepaid => prop_assert!(!subscribed && !paid && !approved && left),
                AgreementType::Direct | AgreementType::Normal => prop_assert!(false, "not for sale"),
            },
            AgreementChoice::Order { agreement, recorded } => {
                prop_assert!(!subscribed && !paid && !approved && !left);
                let first = candidates.iter().find(|one| is_order(one)).unwrap();
                prop_assert_eq!(first.agreement.id, agreement.id);
                prop_assert_eq!(first.live.is_some(), recorded);
            }
            AgreementChoice::Exhausted => {
                prop_assert!(!subscribed && !paid && !approved && !left && !on_order);
            }
        }
    }
}
