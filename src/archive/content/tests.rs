//! Tests of coverage and of long polls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};

use super::polls::PollQueue;
use super::selection::covered;
use super::*;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::slots::SlotLimits;
use crate::storage::search::Coverage;
use model::account::{Agreement, AgreementId, AgreementType, OrganizationId, Product, ProductId};
use query::Query;

fn agreement(id: i64, codes: &[&str]) -> Agreement {
    let product = |code: &&str| Product {
        id: ProductId(1),
        code: (*code).to_owned(),
        name: None,
        description: None,
    };
    Agreement {
        id: AgreementId(id),
        organization: OrganizationId(1),
        kind: AgreementType::Direct,
        super_agreement: false,
        products: codes.iter().map(product).collect(),
        name: None,
        description: None,
        expires: None,
        prepaids: None,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

#[test]
fn agreements_in_force_cover_their_products_and_a_super_agreement_everything() {
    let mut own = [agreement(1, &["B", "A"]), agreement(2, &["C", "A"]), agreement(3, &["D"])];
    let products =
        |codes: &[&str]| Coverage::Products(codes.iter().map(|code| (*code).to_owned()).collect());
    let of = |own: &[Agreement], wanted: &[i64]| {
        let wanted: Vec<_> = wanted.iter().copied().map(AgreementId).collect();
        covered(own, &wanted, now())
    };
    assert_eq!(of(&own, &[]), products(&["A", "B", "C", "D"]));
    assert_eq!(of(&own, &[2, 3]), products(&["A", "C", "D"]));
    own[1].expires = Some(now());
    assert_eq!(of(&own, &[]), products(&["A", "B", "D"]));
    assert_eq!(of(&own, &[2]), products(&[]));
    own[2].super_agreement = true;
    assert_eq!(of(&own, &[]), Coverage::Everything);
    assert_eq!(of(&own, &[1]), products(&["A", "B"]));
    own[2].expires = Some(now());
    assert_eq!(of(&own, &[3]), products(&[]));
    assert_eq!(of(&[], &[]), products(&[]));
}

#[test]
fn codes_behind_a_minus_are_excluded() {
    let of = |codes: &[&str]| {
        let selection = ItemSelection::new(Query::All, codes, Vec::new())?;
        Some((selection.products.join(" "), selection.products_excluded.join(" ")))
    };
    let check = |codes: &[&str], expected: (&str, &str)| {
        let expected = (expected.0.to_owned(), expected.1.to_owned());
        assert_eq!(of(codes), Some(expected), "{codes:?}");
    };
    check(&[], ("", ""));
    check(&["B", "A", "B"], ("A B", ""));
    check(&["-B", "A", "--C"], ("A", "-C B"));
    check(&["-A"], ("", "A"));
    assert_eq!(of(&["A", "-"]), None);
}

/// Long polls over a counter of changes, with the number of their searches.
struct Scene {
    polls: Arc<PollQueue>,
    changes: watch::Sender<u64>,
    looks: Arc<AtomicUsize>,
    looked: Arc<Notify>,
}

impl Scene {
    fn new(waiting_max: usize) -> Self {
        Self {
            polls: Arc::new(PollQueue::new(SlotLimits {
                all: waiting_max,
                client: waiting_max,
                known_share: 0.0,
            })),
            changes: watch::Sender::new(0),
            looks: Arc::default(),
            looked: Arc::default(),
        }
    }

    /// Starts a poll that finds a match once the counter reaches `finds_at`.
    fn poll(
        &self,
        finds_at: u64,
        wait: Duration,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::JoinHandle<Result<Option<u64>>> {
        let (polls, changes) = (Arc::clone(&self.polls), self.changes.subscribe());
        let (seen, looks) = (changes.clone(), Arc::clone(&self.looks));
        let looked = Arc::clone(&self.looked);
        let look = move || {
            looks.fetch_add(1, Ordering::SeqCst);
            looked.notify_one();
            let count = *seen.borrow();
            async move { Ok((count >= finds_at).then_some(count)) }
        };
        tokio::spawn(async move { polls.wait(None, changes, look, wait, stop).await })
    }
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_poll_looks_at_once_and_whenever_something_changes() {
    let scene = Scene::new(1);
    let found = scene.poll(0, LONG, std::future::pending()).await.unwrap();
    assert_eq!(found.unwrap(), Some(0));
    let poll = scene.poll(2, LONG, std::future::pending());
    scene.looked.notified().await;
    for _ in 0..2 {
        scene.looked.notified().await;
        scene.changes.send_modify(|count| *count += 1);
    }
    assert_eq!(poll.await.unwrap().unwrap(), Some(2));
}

#[tokio::test]
async fn a_poll_ends_with_nothing_when_its_time_is_over_or_the_service_stops() {
    let scene = Scene::new(9);
    let found = scene.poll(1, Duration::ZERO, std::future::pending()).await.unwrap();
    assert_eq!(found.unwrap(), None);
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let poll = scene.poll(1, LONG, async move { stopped.notified().await });
    stop.notify_one();
    assert_eq!(poll.await.unwrap().unwrap(), None);
    // Even then it searches once, so that existing matches are returned.
    let found = scene.poll(0, LONG, std::future::ready(())).await.unwrap();
    assert_eq!(found.unwrap(), Some(0));
}

#[tokio::test]
async fn one_poll_more_than_may_wait_is_refused_and_an_ended_one_makes_room() {
    let scene = Scene::new(1);
    let waiting = scene.poll(1, LONG, std::future::pending());
    scene.looked.notified().await;
    let refused = scene.poll(0, LONG, std::future::pending()).await.unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Overloaded);
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert!(scene.poll(0, LONG, std::future::pending()).await.unwrap().is_ok());
}

#[tokio::test]
async fn what_changes_while_a_poll_stands_in_the_queue_costs_one_look() {
    let scene = Scene::new(9);
    let poll = scene.poll(1000, LONG, std::future::pending());
    scene.looked.notified().await;
    let before = scene.looks.load(Ordering::SeqCst);
    // No other task runs in between.
    for _ in 0..1000 {
        scene.changes.send_modify(|count| *count += 1);
    }
    assert_eq!(poll.await.unwrap().unwrap(), Some(1000));
    assert_eq!(scene.looks.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn a_look_that_fails_ends_the_poll() {
    let polls = PollQueue::new(SlotLimits { all: 1, client: 1, known_share: 0.0 });
    let look = || async { Err::<Option<()>, _>(Error::new(ErrorKind::Unavailable, "busy")) };
    let changes = watch::Sender::new(0);
    let ended = polls.wait(None, changes.subscribe(), look, LONG, std::future::pending()).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn what_is_covered_is_what_a_search_finds() {
    let mut own = [agreement(1, &["A"]), agreement(2, &["B"]), agreement(3, &[])];
    own[1].expires = Some(now());
    for is_super in [false, true] {
        own[2].super_agreement = is_super;
        for codes in [&[][..], &["A"], &["B"], &["C", "A"], &["C"]] {
            let product = |code: &&str| serde_json::json!({ "code": code });
            let products: Vec<_> = codes.iter().map(product).collect();
            let document = serde_json::json!({ "product": products }).to_string();
            let document = model::item::Document::from_stored(&document).unwrap();
            let found = covers(&covered(&own, &[], now()), &document);
            let codes: Vec<String> = codes.iter().map(|code| (*code).to_owned()).collect();
            let read = crate::access::orders::coverage::any_covers(&own, &codes, now());
            assert_eq!(read, found, "{codes:?} {is_super}");
        }
    }
}
