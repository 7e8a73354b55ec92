//! Lists of orders, reports and licences.

use serde_json::json;
use uuid::Uuid;

use super::test_fixture::{OrdersFixture, key, run, start, with_item};
use super::{Buyer, ItemOrder, Orders, view};
use crate::runtime::error::{Error, ErrorKind};
use api::orders::{ChosenLicense, OrderUpdate};
use model::account::{AgreementId, Order, OrderId, OrderStatus};
use model::item::MediaLinks;

fn uuid(digit: char) -> Uuid {
    format!("00000000-0000-0000-0000-00000000000{digit}").parse().unwrap()
}

fn approval(digit: char) -> OrderUpdate {
    OrderUpdate {
        approve: true,
        license: Some(ChosenLicense { uuid: uuid(digit) }),
        invoice_text: None,
    }
}

fn code(outcome: Result<Order, Error>) -> (ErrorKind, String, String) {
    let error = outcome.unwrap_err();
    let detail = error.details().first();
    let (code, path) = detail.map_or_else(Default::default, |detail| {
        (detail.error_code.clone(), format!("{} {}", detail.location, detail.path))
    });
    (error.kind(), code, path)
}

/// Creates orders 1 to 4: of user 1 (items 0 and 1), of user 3 (item 0), of user 4 in another organization.
async fn scene() -> (OrdersFixture, Orders) {
    let scene = OrdersFixture::new();
    let orders = scene.orders();
    for (user, item, agr) in [(1, 0, None), (1, 1, None), (3, 0, Some(4)), (4, 2, None)] {
        let (user, agr) = (scene.user(user).await, agr.map(AgreementId));
        let buyer = Buyer { principal: &user, agr, now: start() };
        let outcome = with_item(item, async |facts| orders.purchase(buyer, facts).await);
        drop(outcome.await);
    }
    (scene, orders)
}

#[test]
fn a_user_lists_its_own_orders_and_an_administrator_those_of_the_organization() {
    run(async {
        let (scene, orders) = scene().await;
        let list = async |user: i64, start: usize, size: usize, status: OrderStatus| {
            let user = scene.user(user).await;
            let list = orders.list(&user, start, size, status).await.unwrap();
            list.iter().map(|order| order.id.0).collect::<Vec<_>>()
        };
        assert_eq!(list(1, 0, 20, OrderStatus::All).await, [2, 1]);
        assert_eq!(list(3, 0, 20, OrderStatus::All).await, [3, 2, 1]);
        assert_eq!(list(3, 1, 1, OrderStatus::All).await, [2]);
        assert_eq!(list(3, 3, 20, OrderStatus::All).await, [0_i64; 0]);
        assert_eq!(list(4, 0, usize::MAX, OrderStatus::All).await, [4]);
        assert_eq!(list(5, 0, 20, OrderStatus::All).await, [0_i64; 0]);
        let refusal = OrderUpdate { approve: false, license: None, invoice_text: None };
        orders.report(&*scene.user(1).await, OrderId(1), refusal, start()).await.unwrap();
        assert_eq!(list(3, 0, 20, OrderStatus::Reported).await, [1]);
        assert_eq!(list(3, 0, 20, OrderStatus::Unreported).await, [3, 2]);
    });
}

#[test]
fn colleagues_know_that_an_item_is_bought_and_no_more() {
    run(async {
        let (scene, orders) = scene().await;
        let known = async |user: i64, item: usize, size: usize| {
            let user = scene.user(user).await;
            let found = orders.of_item(&user, &key(item), size).await.unwrap();
            let facts =
                |one: &ItemOrder| (one.is_waiting, one.is_own, one.visible.map(|order| order.0));
            found.iter().map(facts).collect::<Vec<_>>()
        };
        // An administrator sees every order of the organization, and others only their own.
        assert_eq!(known(1, 0, 9).await, [(true, false, None), (false, true, Some(1))]);
        assert_eq!(known(3, 0, 9).await, [(true, true, Some(3)), (false, false, Some(1))]);
        assert_eq!(known(5, 0, 1).await, [(true, false, None)]);
        assert!(known(4, 0, 9).await.is_empty() && known(1, 2, 9).await.is_empty());
        let refusal = OrderUpdate { approve: false, license: None, invoice_text: None };
        for order in [1, 3] {
            orders
                .report(&*scene.user(3).await, OrderId(order), refusal.clone(), start())
                .await
                .unwrap();
        }
        // What was downloaded and not used stays; what was refused was never downloaded.
        assert_eq!(known(5, 0, 9).await, [(false, false, None)]);
    });
}

#[test]
fn an_order_is_shown_to_those_whose_list_has_it() {
    run(async {
        let (scene, orders) = scene().await;
        for user in [1, 3, 4, 5] {
            let user = scene.user(user).await;
            let list = orders.list(&user, 0, 20, OrderStatus::All).await.unwrap();
            for id in [1, 2, 3, 4, 99] {
                let listed = list.iter().find(|order| order.id.0 == id);
                match (orders.load(&user, OrderId(id)).await, listed) {
                    (Ok(order), Some(listed)) => assert_eq!(order, *listed),
                    (outcome, None) => {
                        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
                    }
                    (Err(error), Some(_)) => panic!("{id}: {error}"),
                }
            }
        }
    });
}

#[test]
fn an_order_is_reported_once_by_a_user_who_sees_it_under_a_licence_of_its_item() {
    run(async {
        let (scene, orders) = scene().await;
        let report = async |user: i64, id: i64, report: OrderUpdate| {
            let user = scene.user(user).await;
            orders.report(&user, OrderId(id), report, start()).await
        };
        let missing = (ErrorKind::NotFound, String::new(), String::new());
        for (user, id) in [(1, 3), (2, 1), (4, 1), (3, 4), (1, 99)] {
            assert_eq!(code(report(user, id, approval('a')).await), missing, "{user} {id}");
        }
        let none = OrderUpdate { license: None, ..approval('a') };
        let (kind, rule, path) = code(report(1, 1, none).await);
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert_eq!(rule, "required.openapi.requestValidation");
        assert_eq!(path, "body license");
        // B is not a product of item 0, and licence F does not exist.
        for license in ['b', 'f'] {
            let (kind, code, path) = code(report(1, 1, approval(license)).await);
            assert_eq!(
                (kind, code.as_str()),
                (ErrorKind::InvalidArgument, "license_not_applicable")
            );
            assert_eq!(path, "body license.uuid");
        }
        let text = OrderUpdate { invoice_text: Some("Page 3".to_owned()), ..approval('a') };
        let order = report(1, 1, text).await.unwrap();
        assert_eq!((order.approved, order.reported), (Some(true), Some(start())));
        assert_eq!(order.invoice_text.as_deref(), Some("Page 3"));
        assert_eq!(order.license.unwrap().uuid, uuid('a'));
        let (kind, code, path) = code(report(1, 1, approval('a')).await);
        assert_eq!((kind, code.as_str()), (ErrorKind::InvalidArgument, "order_already_reported"));
        assert_eq!(path, "path id");
        let refusal = OrderUpdate { approve: false, ..approval('a') };
        let order = report(3, 3, refusal).await.unwrap();
        assert_eq!((order.approved, order.license), (Some(false), None));
    });
}

#[test]
fn an_approved_order_delivers_and_a_refused_one_does_not() {
    run(async {
        let (scene, orders) = scene().await;
        let user = scene.user(3).await;
        let buyer = Buyer { principal: &user, agr: Some(AgreementId(4)), now: start() };
        let again = async |item: usize| {
            with_item(item, async |facts| orders.purchase(buyer, facts).await).await
        };
        assert!(again(0).await.is_err());
        orders.report(&user, OrderId(3), approval('a'), start()).await.unwrap();
        assert!(again(0).await.is_ok());
        assert!(again(1).await.is_err());
        let refusal = OrderUpdate { approve: false, license: None, invoice_text: None };
        orders.report(&user, OrderId(5), refusal, start()).await.unwrap();
        assert!(again(1).await.is_err());
        assert_eq!(scene.rows().await.len(), 5);
    });
}

#[test]
fn the_pricelist_has_the_licences_of_products_that_are_covered() {
    run(async {
        let (scene, orders) = scene().await;
        for (user, item, expected) in
            [(1, 4, "ba"), (3, 4, "ba"), (1, 2, ""), (2, 2, "c"), (3, 3, ""), (5, 0, "")]
        {
            let user = scene.user(user).await;
            let list = with_item(item, async |facts| {
                orders.pricelist(&user, &facts.codes(), Vec::new(), start()).await
            });
            let found: Vec<Uuid> = list.await.unwrap().iter().map(|one| one.uuid).collect();
            assert_eq!(found, expected.chars().map(uuid).collect::<Vec<_>>(), "{item}");
        }
    });
}

#[test]
fn an_order_that_is_not_reported_keeps_its_licences() {
    run(async {
        let (scene, orders) = scene().await;
        let user = scene.user(1).await;
        let codes = orders.codes_to_report(&user, &key(0)).await.unwrap();
        assert_eq!(codes, ["A"]);
        let list = orders.pricelist(&user, &[], codes, start()).await.unwrap();
        assert_eq!(list.iter().map(|one| one.uuid).collect::<Vec<_>>(), [uuid('a')]);
        let refusal = OrderUpdate { approve: false, license: None, invoice_text: None };
        orders.report(&user, OrderId(1), refusal, start()).await.unwrap();
        assert!(orders.codes_to_report(&user, &key(0)).await.unwrap().is_empty());
        let stranger = scene.user(4).await;
        assert!(orders.codes_to_report(&stranger, &key(1)).await.unwrap().is_empty());
    });
}

#[test]
fn orders_and_licences_are_written_as_the_contract_has_them() {
    run(async {
        let (scene, orders) = scene().await;
        let user = scene.user(1).await;
        let order = &orders.list(&user, 1, 1, OrderStatus::All).await.unwrap()[0];
        let links = MediaLinks::new("https://media.example".to_owned());
        let product = json!({"name": "Name of A", "description": "About A", "code": "A"});
        let mut expected = json!({
            "id": 1,
            "item": {
                "uri": "https://media.example/media/image/i0",
                "headline": "Headline 0",
                "byline": "By",
                "source": "",
            },
            "price": {
                "name": "Name of A",
                "description": "About A",
                "license": {"product": product},
                "agreement": {"id": 1, "name": "one", "type": "Prepaid"},
            },
            "created": "2023-11-14T22:13:20Z",
            "downloadableUntil": "2023-12-14T22:13:20Z",
            "reportingDeadline": "2024-01-13T22:13:20Z",
            "manual": false,
        });
        assert_eq!(json!(view::order(order, &links)), expected);
        let order = orders.report(&user, OrderId(1), approval('a'), start()).await.unwrap();
        expected["price"]["license"] = json!({
            "uuid": uuid('a').to_string(),
            "period": "Single",
            "volume": "1",
            "price": "250.00",
            "description": "one use",
            "product": product,
        });
        expected["reported"] = json!("2023-11-14T22:13:20Z");
        expected["approved"] = json!(true);
        assert_eq!(json!(view::order(&order, &links)), expected);
    });
}
