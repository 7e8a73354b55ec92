//! Purchases over a real database: random interleavings against a model, and concurrent purchases.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::test_fixture::{
    ITEMS, OrdersFixture, PREPAID, SIX_ENDS_AFTER_DAYS, USERS, run, start, with_item,
};
use super::{Buyer, CoverageDecision, Orders};
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind};
use api::orders::{ChosenLicense, OrderUpdate};
use model::account::{AgreementId, AgreementType, OrderId};

const DAY_MS: i64 = 86_400_000;

/// The outcome of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Delivered,
    AgreementRequired,
    OrderRequired,
}

fn end(outcome: Result<(), Error>) -> End {
    let Err(error) = outcome else { return End::Delivered };
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    match error.details()[0].error_code.as_str() {
        "agreement_required" => End::AgreementRequired,
        "order_required" => End::OrderRequired,
        other => panic!("{other}"),
    }
}

async fn purchase(
    orders: &Orders,
    principal: &Principal,
    item: usize,
    agr: Option<i64>,
    now: Timestamp,
) -> End {
    let buyer = Buyer { principal, agr: agr.map(AgreementId), now };
    with_item(item, async |facts| end(orders.purchase(buyer, facts).await)).await
}

/// Asserts that `check` predicts the outcome of a purchase.
async fn check(
    orders: &Orders,
    principal: &Principal,
    item: usize,
    agr: Option<i64>,
    now: Timestamp,
) -> End {
    let buyer = Buyer { principal, agr: agr.map(AgreementId), now };
    let decision = with_item(item, async |facts| orders.check(buyer, facts).await);
    end(decision.await.and_then(CoverageDecision::require_delivery))
}

#[derive(Clone, Debug)]
enum Step {
    Purchase {
        user: usize,
        item: usize,
        agr: Option<i64>,
        process: usize,
    },
    /// Time passes.
    Days(i64),
    /// A user reports the row with this index.
    Report {
        row: usize,
        approve: bool,
    },
    /// A process ends and another one replaces it.
    Restart(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let agr = prop::option::weighted(0.4, prop::sample::select(vec![1_i64, 2, 3, 4, 6, 7, 99]));
    let purchase = (0..USERS.len(), 0..ITEMS.len(), agr, 0..2_usize)
        .prop_map(|(user, item, agr, process)| Step::Purchase { user, item, agr, process });
    let step = prop_oneof![
        12 => purchase,
        2 => (1_i64..20).prop_map(Step::Days),
        2 => (0..8_usize, any::<bool>()).prop_map(|(row, approve)| Step::Report { row, approve }),
        1 => (0..2_usize).prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

#[derive(Clone, Debug)]
struct Row {
    user: usize,
    agreement: i64,
    item: usize,
    until_ms: i64,
    approved: Option<bool>,
    reported: bool,
}

/// Returns type and product codes of an agreement of the scene; `*` is every item.
fn facts(agreement: i64) -> (&'static str, &'static [&'static str]) {
    match agreement {
        1 => ("prepaid", &["A"]),
        2 => ("prepaid", &["A", "B"]),
        3 => ("order", &["A", "B"]),
        4 => ("order", &["*"]),
        6 => ("subscription", &["C"]),
        7 => ("prepaid", &["*"]),
        other => panic!("{other}"),
    }
}

/// The rules of the contract, implemented over lists.
struct Model {
    now_ms: i64,
    rows: Vec<Row>,
    remaining: BTreeMap<i64, u32>,
}

impl Model {
    fn live(&mut self, agreement: i64, item: usize) -> Option<&mut Row> {
        let now_ms = self.now_ms;
        let fits = |row: &&mut Row| {
            row.agreement == agreement && row.item == item && row.until_ms > now_ms
        };
        self.rows.iter_mut().find(fits)
    }

    fn write(&mut self, user: usize, agreement: i64, item: usize) {
        let until_ms = self.now_ms + 30 * DAY_MS;
        self.rows.push(Row { user, agreement, item, until_ms, approved: None, reported: false });
    }

    /// Returns whether an order in the list of `user` still delivers: user 3 administers organization 1,
    /// which has every agreement but 7.
    fn owns(&self, user: usize, item: usize, agr: Option<i64>) -> bool {
        self.rows.iter().any(|row| {
            let seen = row.user == user || (user == 2 && row.agreement != 7);
            let delivers = facts(row.agreement).0 != "order" || row.approved == Some(true);
            let asked = row.item == item && agr.is_none_or(|agr| agr == row.agreement);
            seen && delivers && asked && row.until_ms > self.now_ms
        })
    }

    fn purchase(&mut self, user: usize, item: usize, agr: Option<i64>) -> End {
        let six_ended = self.now_ms >= start().as_millisecond() + SIX_ENDS_AFTER_DAYS * DAY_MS;
        let covers = |id: &i64| {
            let (_, codes) = facts(*id);
            let in_common = codes.iter().any(|code| *code == "*" || ITEMS[item].contains(code));
            in_common && !(*id == 6 && six_ended) && agr.is_none_or(|agr| agr == *id)
        };
        let own: Vec<i64> = USERS[user].iter().copied().filter(covers).collect();
        let of = |kind| own.iter().copied().filter(move |id| facts(*id).0 == kind);
        if let Some(id) = of("subscription").next() {
            if self.live(id, item).is_none() {
                self.write(user, id, item);
            }
            return End::Delivered;
        }
        let approved = |model: &mut Self, id| {
            model.live(id, item).is_some_and(|row| row.approved == Some(true))
        };
        if of("prepaid").any(|id| self.live(id, item).is_some())
            || of("order").any(|id| approved(self, id))
        {
            return End::Delivered;
        }
        // An own order that still delivers saves the download or order under another agreement.
        if self.owns(user, item, agr) {
            return End::Delivered;
        }
        if let Some(id) = of("prepaid").find(|id| self.remaining[id] > 0) {
            *self.remaining.get_mut(&id).unwrap() -= 1;
            self.write(user, id, item);
            return End::Delivered;
        }
        let Some(id) = of("order").next() else { return End::AgreementRequired };
        if self.live(id, item).is_none() {
            self.write(user, id, item);
        }
        End::OrderRequired
    }
}

/// Reports a row as a user who may report every row of organization 1, or as the one of organization 2.
async fn report(
    scene: &OrdersFixture,
    orders: &Orders,
    row: &Row,
    id: OrderId,
    approve: bool,
    now: Timestamp,
) {
    let user = scene.user(if row.agreement == 7 { 4 } else { 3 }).await;
    let license = ITEMS[row.item].first().map(|code| {
        let digit = code.to_lowercase();
        format!("00000000-0000-0000-0000-00000000000{digit}").parse().unwrap()
    });
    let license = license.map(|uuid| ChosenLicense { uuid });
    let report = OrderUpdate { approve, license, invoice_text: None };
    let outcome = orders.report(&user, id, report, now).await;
    if row.reported {
        let error = outcome.unwrap_err();
        assert_eq!(error.details()[0].error_code, "order_already_reported");
    } else {
        assert_eq!(outcome.unwrap().approved, Some(approve));
    }
}

async fn follow(steps: Vec<Step>) {
    let scene = OrdersFixture::new();
    let mut processes = [scene.orders(), scene.elsewhere()];
    let mut now = start();
    let remaining = PREPAID.into_iter().collect();
    let mut model = Model { now_ms: now.as_millisecond(), rows: Vec::new(), remaining };
    for step in steps {
        match step {
            Step::Purchase { user, item, agr, process } => {
                let orders = &processes[process];
                let principal = scene.user(i64::try_from(user).unwrap() + 1).await;
                let looked = check(orders, &principal, item, agr, now).await;
                let found = purchase(orders, &principal, item, agr, now).await;
                let expected = model.purchase(user, item, agr);
                assert_eq!((looked, found), (expected, expected), "{user} {item} {agr:?}");
            }
            Step::Days(days) => {
                now += SignedDuration::from_hours(24 * days);
                model.now_ms = now.as_millisecond();
            }
            Step::Report { row, approve } => {
                let newest = |rows: &[Row]| {
                    let same = |other: &Row| {
                        (other.agreement, other.item) == (rows[row].agreement, rows[row].item)
                    };
                    !rows[row + 1..].iter().any(same)
                };
                let newest = row < model.rows.len() && newest(&model.rows);
                let now_ms = model.now_ms;
                let Some(known) = model.rows.get_mut(row) else { continue };
                if approve && ITEMS[known.item].is_empty() {
                    continue;
                }
                let id = OrderId(i64::try_from(row).unwrap() + 1);
                report(&scene, &processes[0], known, id, approve, now).await;
                if !known.reported {
                    (known.reported, known.approved) = (true, Some(approve));
                    if approve && newest && facts(known.agreement).0 == "order" {
                        known.until_ms = known.until_ms.max(now_ms + 30 * DAY_MS);
                    }
                }
            }
            Step::Restart(process) => {
                processes[process] = if process == 0 { scene.orders() } else { scene.elsewhere() };
            }
        }
        compare(&scene, &model).await;
    }
}

/// Asserts that the database equals the model, that no row occurs twice in its window, and that each used
/// prepaid download has its row.
async fn compare(scene: &OrdersFixture, model: &Model) {
    let mut rows = scene.rows().await;
    rows.sort_by_key(|row| row.id);
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.agreement.id.0, row.item.id.to_string(), row.approved))
        .collect();
    let expected: Vec<_> = model
        .rows
        .iter()
        .map(|row| (row.agreement, format!("i{}", row.item), row.approved))
        .collect();
    assert_eq!(found, expected);
    for (index, row) in rows.iter().enumerate() {
        let again = rows[..index].iter().find(|other| {
            let same = (other.organization, other.agreement.id, &other.item)
                == (row.organization, row.agreement.id, &row.item);
            same && other.downloadable_until > row.created
        });
        assert_eq!(again, None, "{row:?}");
    }
    for (agreement, total) in PREPAID {
        let bought = rows.iter().filter(|row| row.agreement.id.0 == agreement).count();
        let remaining = scene.remaining(agreement).await;
        assert_eq!(bought + usize::try_from(remaining).unwrap(), usize::try_from(total).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_purchases_writes_the_rows_of_the_contract(steps in steps()) {
        run(follow(steps));
    }
}

/// Runs concurrent purchases of `items` by a user, half of them in another process; returns their outcomes.
fn at_once(scene: &OrdersFixture, user: i64, items: Vec<usize>) -> Vec<End> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let processes = [scene.orders(), scene.elsewhere()];
    runtime.block_on(async {
        let principal = scene.user(user).await;
        let mut tasks = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let (orders, principal) = (processes[index % 2].clone(), principal.clone());
            tasks.push(tokio::spawn(async move {
                purchase(&orders, &principal, item, None, start()).await
            }));
        }
        let mut ends = Vec::new();
        for task in tasks {
            ends.push(task.await.unwrap());
        }
        ends
    })
}

#[test]
fn fifty_purchases_of_one_item_at_once_in_two_processes_make_one_row_and_take_one_download() {
    let scene = OrdersFixture::new();
    assert_eq!(at_once(&scene, 1, vec![0; 50]), vec![End::Delivered; 50]);
    assert_eq!(run(scene.rows()).len(), 1);
    assert_eq!(run(scene.remaining(1)), 2);
}

#[test]
fn concurrent_requests_for_one_order_record_it_once_and_deliver_nothing() {
    let scene = OrdersFixture::new();
    assert_eq!(at_once(&scene, 3, vec![3; 50]), vec![End::OrderRequired; 50]);
    let rows = run(scene.rows());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].approved, rows[0].manual), (None, true));
}

#[test]
fn prepaid_downloads_of_different_items_at_once_never_go_below_zero() {
    let scene = OrdersFixture::new();
    let ends = at_once(&scene, 4, vec![0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    // One item was bought: all requests for that item get it, and no other request gets anything.
    assert_eq!(ends.iter().filter(|end| **end == End::Delivered).count(), 2);
    assert_eq!(ends.iter().filter(|end| **end == End::AgreementRequired).count(), 8);
    assert_eq!((run(scene.rows()).len(), run(scene.remaining(7))), (1, 0));
}

#[test]
fn a_repeated_purchase_touches_no_database_until_its_window_ends() {
    let scene = OrdersFixture::new();
    run(async {
        let (orders, user) = (scene.orders(), scene.user(1).await);
        assert_eq!(purchase(&orders, &user, 0, None, start()).await, End::Delivered);
        // Without the row only the cache knows that the item was bought.
        scene.db.write(|tx| tx.run_sql("DELETE FROM orders")).await.unwrap();
        let last = start() + SignedDuration::from_hours(24 * 30) - SignedDuration::from_millis(1);
        assert_eq!(purchase(&orders, &user, 0, None, last).await, End::Delivered);
        assert!(scene.rows().await.is_empty());
        let later = start() + SignedDuration::from_hours(24 * 30);
        assert_eq!(purchase(&orders, &user, 0, None, later).await, End::Delivered);
        assert_eq!(scene.rows().await.len(), 1);
    });
}

#[test]
fn the_user_sees_at_once_what_is_left_of_a_prepaid_agreement() {
    let scene = OrdersFixture::new();
    run(async {
        let (orders, user) = (scene.orders(), scene.user(2).await);
        assert_eq!(purchase(&orders, &user, 1, Some(2), start()).await, End::Delivered);
        let user = scene.user(2).await;
        let agreement = user.agreements().iter().find(|one| one.id == AgreementId(2)).unwrap();
        assert_eq!(agreement.prepaids.unwrap().remaining, 1);
    });
}

#[test]
fn a_row_says_what_was_bought_by_whom_and_as_which_product() {
    let scene = OrdersFixture::new();
    run(async {
        let orders = scene.orders();
        for (user, item) in [(1, 4), (3, 0), (3, 3), (4, 2)] {
            purchase(&orders, &*scene.user(user).await, item, None, start()).await;
        }
        let rows = scene.rows().await;
        let row = |agreement: i64, item: &str| {
            let fits = |row: &&model::account::Order| {
                row.agreement.id.0 == agreement && row.item.id.to_string() == item
            };
            rows.iter().find(fits).unwrap()
        };
        let bought = row(1, "i4");
        assert_eq!((bought.headline.as_str(), bought.byline.as_str()), ("Headline 4", "By"));
        assert_eq!((bought.source.as_str(), bought.user.0, bought.manual), ("", 1, false));
        assert_eq!(bought.agreement.kind, AgreementType::Prepaid);
        assert_eq!(bought.agreement.name.as_deref(), Some("one"));
        assert_eq!(bought.product.code, "A");
        assert_eq!(bought.reporting_deadline, Some(start() + SignedDuration::from_hours(24 * 60)));
        // A super agreement without products: the item's own product, otherwise none.
        assert_eq!(row(4, "i0").product.name.as_deref(), Some("Name of A"));
        assert_eq!(row(4, "i3").product.code, "");
        assert_eq!(row(7, "i2").product.code, "C");
        assert_eq!(row(7, "i2").organization.0, 2);
    });
}

#[test]
fn a_refusal_says_which_agreement_fails_and_why() {
    let scene = OrdersFixture::new();
    run(async {
        let orders = scene.orders();
        let after = start() + SignedDuration::from_hours(24 * SIX_ENDS_AFTER_DAYS);
        purchase(&orders, &*scene.user(4).await, 0, None, start()).await;
        for (user, item, agr, now, expected) in [
            (5, 0, None, start(), "The user has no agreement"),
            (1, 0, Some(7), start(), "The user has no agreement 7"),
            (1, 1, Some(1), start(), "Agreement 1 does not cover the item"),
            (2, 2, Some(6), after, "Agreement 6 has expired"),
            (1, 2, None, start(), "No valid agreement of the user covers the item"),
            (4, 1, None, start(), "The prepaid agreement 7 is used up"),
        ] {
            let principal = scene.user(user).await;
            let buyer = Buyer { principal: &principal, agr: agr.map(AgreementId), now };
            let refused =
                with_item(item, async |facts| orders.purchase(buyer, facts).await.unwrap_err());
            assert_eq!(refused.await.message(), expected);
        }
    });
}

#[test]
fn a_purchase_that_cannot_be_recorded_delivers_nothing_now() {
    let scene = OrdersFixture::new();
    run(async {
        let (orders, user) = (scene.orders(), scene.user(2).await);
        scene.db.write(|tx| tx.refuse_rows("orders")).await.unwrap();
        let buyer = Buyer { principal: &user, agr: None, now: start() };
        for item in [0, 2] {
            let outcome = with_item(item, async |facts| {
                orders.purchase(buyer, facts).await.unwrap_err().kind()
            });
            assert_eq!(outcome.await, ErrorKind::Unavailable);
        }
        assert_eq!(scene.remaining(1).await, 3, "the download that was taken is given back");
        scene.db.write(|tx| tx.accept_rows("orders")).await.unwrap();
        assert_eq!(purchase(&orders, &user, 0, None, start()).await, End::Delivered);
    });
}
