//! Joint purchases: their preview, their records, and that they record nothing else.

use std::sync::Arc;

use jiff::SignedDuration;

use super::test_fixture::{OrdersFixture, SIX_ENDS_AFTER_DAYS, document, key, run, start};
use super::{Buyer, ConfirmedPayers, CoverageDecision, ItemFacts, Orders};
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::ItemKey;
use model::account::AgreementId;
use model::item::Document;

fn items(indexes: &[usize]) -> Vec<(ItemKey, Document)> {
    indexes.iter().map(|index| (key(*index), document(*index))).collect()
}

fn facts(items: &[(ItemKey, Document)]) -> Vec<ItemFacts<'_>> {
    items.iter().map(|(key, document)| ItemFacts { key, document }).collect()
}

fn word(outcome: Result<(), Error>) -> String {
    outcome.map_or_else(|error| error.details()[0].error_code.clone(), |()| "ok".to_owned())
}

fn buyer(principal: &Principal, agr: Option<i64>) -> Buyer<'_> {
    Buyer { principal, agr: agr.map(AgreementId), now: start() }
}

async fn checked(
    orders: &Orders,
    user: &Principal,
    indexes: &[usize],
    agr: Option<i64>,
) -> Vec<String> {
    let (items, buyer) = (items(indexes), buyer(user, agr));
    let found = orders.check_all(buyer, &facts(&items)).await.unwrap();
    found.into_iter().map(|one| word(one.and_then(CoverageDecision::require_delivery))).collect()
}

async fn purchased(
    orders: &Orders,
    user: &Principal,
    indexes: &[usize],
    agr: Option<i64>,
) -> String {
    let (items, buyer) = (items(indexes), buyer(user, agr));
    word(orders.purchase_all(buyer, &facts(&items), None).await)
}

#[test]
fn prepaid_downloads_reach_as_far_as_they_do_and_no_further() {
    run(async {
        let (scene, none) = (OrdersFixture::new(), "agreement_required");
        let (orders, user) = (scene.orders(), scene.user(4).await);
        assert_eq!(checked(&orders, &user, &[1, 0, 2], None).await, ["ok", none, none]);
        assert_eq!(purchased(&orders, &user, &[1, 0], None).await, none);
        assert_eq!((scene.remaining(7).await, scene.rows().await.len()), (1, 0));
        assert_eq!(purchased(&orders, &user, &[1], None).await, "ok");
        assert_eq!((scene.remaining(7).await, scene.rows().await.len()), (0, 1));
        // A bought item is not bought again, in any order, and also in another process.
        for orders in [orders, scene.elsewhere()] {
            assert_eq!(checked(&orders, &user, &[0, 1, 2], None).await, [none, "ok", none]);
            assert_eq!(purchased(&orders, &user, &[1, 1], None).await, "ok");
            assert_eq!(scene.rows().await.len(), 1);
        }
    });
}

#[test]
fn an_item_that_is_named_twice_takes_one_download() {
    run(async {
        let scene = OrdersFixture::new();
        let (orders, user) = (scene.orders(), scene.user(4).await);
        assert_eq!(checked(&orders, &user, &[1, 1], None).await, ["ok", "ok"]);
        assert_eq!(purchased(&orders, &user, &[1, 1], None).await, "ok");
        assert_eq!((scene.remaining(7).await, scene.rows().await.len()), (0, 1));
    });
}

#[test]
fn many_items_may_be_read_as_each_of_them_may() {
    run(async {
        let scene = OrdersFixture::new();
        let orders = scene.orders();
        let day = |days: i64| start() + SignedDuration::from_hours(24 * days);
        let all = items(&[0, 1, 2, 3, 4]);
        // The item is bought while an agreement covers it that ends then.
        let owner = scene.user(2).await;
        let now = day(SIX_ENDS_AFTER_DAYS - 1);
        let buyer = Buyer { now, ..buyer(&owner, None) };
        orders.purchase(buyer, facts(&all)[2]).await.unwrap();
        for user in 1..=5 {
            let user = scene.user(user).await;
            for days in [0, SIX_ENDS_AFTER_DAYS, SIX_ENDS_AFTER_DAYS + 30] {
                let mut expected = Vec::new();
                for item in facts(&all) {
                    expected.push(orders.check_reading(&user, item, day(days)).await.is_ok());
                }
                let found = orders.may_read(&user, &facts(&all), day(days)).await.unwrap();
                assert_eq!(found, expected, "{} at day {days}", user.user().id);
            }
        }
        let owned = orders.may_read(&owner, &facts(&all), day(SIX_ENDS_AFTER_DAYS)).await.unwrap();
        assert_eq!(owned, [true, true, true, false, true]);
    });
}

#[test]
fn each_agreement_pays_for_what_it_covers() {
    run(async {
        let scene = OrdersFixture::new();
        let (orders, user) = (scene.orders(), scene.user(2).await);
        let all = [0, 1, 4, 2, 3];
        let expected = ["ok", "ok", "ok", "ok", "agreement_required"];
        assert_eq!(checked(&orders, &user, &all, None).await, expected);
        let two = ["ok", "ok", "agreement_required"];
        assert_eq!(checked(&orders, &user, &[0, 1, 4], Some(2)).await, two);
        assert_eq!(purchased(&orders, &user, &[0, 1, 4, 2], None).await, "ok");
        let mut paid: Vec<_> =
            scene.rows().await.iter().map(|row| (row.item.clone(), row.agreement.id.0)).collect();
        paid.sort_by_key(|(item, _)| item.to_string());
        let expected = [(key(0), 1), (key(1), 2), (key(2), 6), (key(4), 1)];
        assert_eq!(paid, expected);
        assert_eq!((scene.remaining(1).await, scene.remaining(2).await), (1, 1));
    });
}

#[test]
fn what_needs_an_order_places_none_and_keeps_the_others_from_being_bought() {
    run(async {
        let scene = OrdersFixture::new();
        let left = "UPDATE agreements SET prepaid_remaining = 2 - agreement_id
                    WHERE agreement_id IN (1, 2)";
        scene.db.write(move |tx| tx.run_sql(left)).await.unwrap();
        let (orders, user) = (scene.orders(), scene.user(2).await);
        let expected = ["ok", "order_required", "order_required"];
        assert_eq!(checked(&orders, &user, &[0, 1, 4], None).await, expected);
        assert_eq!(purchased(&orders, &user, &[0, 1], None).await, "order_required");
        assert_eq!((scene.remaining(1).await, scene.rows().await.len()), (1, 0));
        // The failed purchase is not cached either.
        assert_eq!(checked(&orders, &user, &[4, 0], None).await, ["ok", "order_required"]);
    });
}

#[test]
fn archives_at_once_share_what_is_left_and_none_is_half_bought() {
    run(async {
        let scene = OrdersFixture::new();
        let (orders, user) = (scene.orders(), scene.user(1).await);
        // Agreement 2 has two downloads: only the first of the three pairs is bought.
        let pairs: [&[usize]; 3] = [&[0, 1], &[1, 4], &[0, 4]];
        let buy = |pair| purchased(&orders, &user, pair, Some(2));
        let (one, two, three) = tokio::join!(buy(pairs[0]), buy(pairs[1]), buy(pairs[2]));
        let bought = [one, two, three].iter().filter(|word| *word == "ok").count();
        assert_eq!(bought, 1);
        assert_eq!((scene.remaining(2).await, scene.rows().await.len()), (0, 2));
    });
}

#[test]
fn a_confirmed_purchase_is_paid_as_confirmed_or_not_made() {
    run(async {
        let scene = OrdersFixture::new();
        let (orders, user) = (scene.orders(), scene.user(1).await);
        let all = items(&[0, 1]);
        let buy = async |payers: &[(usize, i64)]| {
            let payers = payers.iter().map(|(index, id)| (key(*index), AgreementId(*id)));
            let confirmed: ConfirmedPayers = payers.collect();
            let confirmed = Some(Arc::new(confirmed));
            let bought = orders.purchase_all(buyer(&user, None), &facts(&all), confirmed).await;
            bought.map_err(|error| error.kind())
        };
        // Another agreement would pay, or an item that takes something was shown as taking nothing.
        assert_eq!(buy(&[(0, 2), (1, 2)]).await, Err(ErrorKind::Stale));
        assert_eq!(buy(&[(0, 1)]).await, Err(ErrorKind::Stale));
        let left = (scene.remaining(1).await, scene.remaining(2).await);
        assert_eq!((left, scene.rows().await.len()), ((3, 2), 0));
        assert_eq!(buy(&[(0, 1), (1, 2)]).await, Ok(()));
        let left = (scene.remaining(1).await, scene.remaining(2).await);
        assert_eq!((left, scene.rows().await.len()), ((2, 1), 2));
        // What is bought takes nothing, whatever was confirmed.
        assert_eq!(buy(&[(0, 2)]).await, Ok(()));
        assert_eq!(scene.rows().await.len(), 2);
    });
}

#[test]
fn a_confirmed_purchase_fails_when_the_downloads_are_used_up_meanwhile() {
    run(async {
        let scene = OrdersFixture::new();
        let (orders, user) = (scene.orders(), scene.user(2).await);
        let all = items(&[1]);
        let confirmed: ConfirmedPayers = [(key(1), AgreementId(2))].into_iter().collect();
        let left = "UPDATE agreements SET prepaid_remaining = 0 WHERE agreement_id = 2";
        scene.db.write(move |tx| tx.run_sql(left)).await.unwrap();
        let confirmed = Some(Arc::new(confirmed));
        let bought = orders.purchase_all(buyer(&user, None), &facts(&all), confirmed).await;
        assert_eq!(bought.map_err(|error| error.kind()), Err(ErrorKind::Stale));
        assert_eq!(scene.rows().await.len(), 0);
    });
}
