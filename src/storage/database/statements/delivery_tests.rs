//! Tests channels and the queue of deliveries.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    WriteTx,
    channels::NewChannel,
    deliveries::{
        ClaimTerms, DeliveriesOf, DeliveryBacklog, DeliveryOutcome, EnqueueOutcome, NewDelivery,
    },
    import::PutOutcome,
};
use crate::storage::database::{Db, DbError, NewNode};
use model::account::{
    ChannelId, ChannelMethod, ChannelSettings, Delivery, DeliveryState, OrganizationId, UserId,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn desk() -> ChannelId {
    ChannelId::new("editor", "desk").unwrap()
}

/// Creates a database with two users of two organizations.
fn prepared() -> (Db, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    let scene = "INSERT INTO organizations (organization_id, address) VALUES (1, '{}'), (2, '{}');
         INSERT INTO users (user_id, organization_id, user_name, roles, admin, mediebank, active,
             service_account, created_ms)
         VALUES (7, 1, 'editor', '[]', FALSE, FALSE, TRUE, FALSE, 0), (8, 2, 'other', '[]', FALSE, FALSE, TRUE, FALSE, 0);";
    db.write_blocking(|tx| tx.run_sql(scene)).unwrap();
    (db, dir)
}

fn write<T: Send + 'static>(
    db: &Db,
    write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
) -> T {
    db.write_blocking(write).unwrap()
}

fn settings(value: &Value) -> ChannelSettings {
    ChannelSettings::new(value.as_object().cloned().unwrap_or_else(Map::new))
}

fn new(number: u128, item: &str) -> NewDelivery {
    NewDelivery {
        id: Uuid::from_u128(number),
        user: UserId(7),
        organization: OrganizationId(1),
        channel: desk(),
        item: item.parse().unwrap(),
        crop: None,
        version: "v1".to_owned(),
        agreement: None,
    }
}

fn queue(db: &Db, new: &NewDelivery, second: i64) -> Delivery {
    let new = new.clone();
    match write(db, move |tx| tx.queue_delivery(&new, 10, at(second))) {
        EnqueueOutcome::Queued(delivery) | EnqueueOutcome::Known(delivery) => delivery,
        EnqueueOutcome::Full => panic!("the queue is full"),
    }
}

/// Claims with at most two deliveries of an organization in flight.
fn turn(second: i64) -> ClaimTerms {
    ClaimTerms { now: at(second), organization_max: 2, incarnation: Uuid::nil() }
}

fn claim(db: &Db, name: u128, now: i64, until: i64) -> Option<Delivery> {
    write(db, move |tx| tx.claim_delivery(Uuid::from_u128(name), turn(now), at(until)))
}

fn end(db: &Db, claim: u128, id: Uuid, outcome: DeliveryOutcome, second: i64) -> bool {
    let claim = Uuid::from_u128(claim);
    write(db, move |tx| tx.end_claim(claim, id, &outcome, at(second)))
}

fn find(db: &Db, id: Uuid) -> Delivery {
    db.read_blocking(move |tx| tx.find_delivery(id)).unwrap().unwrap()
}

fn waiting(db: &Db, second: i64) -> DeliveryBacklog {
    db.read_blocking(move |tx| tx.delivery_queue(turn(second))).unwrap()
}

#[test]
fn a_channel_is_what_was_stated_last_and_stays_as_active_as_it_is() {
    let (db, _dir) = prepared();
    let new = NewChannel {
        id: desk(),
        method: ChannelMethod::Ftp,
        formats: vec![".json".to_owned()],
        settings: settings(&json!({ "host": "h", "password": "p" })),
        active: None,
        by_user: true,
    };
    let put = |new: &NewChannel| {
        let new = new.clone();
        write(&db, move |tx| tx.put_channel(&new, at(1)))
    };
    assert_eq!((put(&new), put(&new)), (PutOutcome::Created, PutOutcome::Unchanged));
    assert!(write(&db, |tx| tx.set_channel_active(&desk(), false)));
    let changed = NewChannel { settings: settings(&json!({ "host": "g" })), ..new };
    assert_eq!(put(&changed), PutOutcome::Updated);
    let own = || db.read_blocking(|tx| tx.count_own_channels(UserId(7))).unwrap();
    assert_eq!(own(), 1);
    let changed = NewChannel { by_user: false, ..changed };
    assert_eq!((put(&changed), own()), (PutOutcome::Updated, 0));
    for active in [true, false] {
        let stated = NewChannel { active: Some(active), ..changed.clone() };
        assert_eq!(
            (put(&stated), put(&stated), put(&changed)),
            (PutOutcome::Updated, PutOutcome::Unchanged, PutOutcome::Unchanged)
        );
    }
    let list =
        |owner: Option<&'static str>| db.read_blocking(move |tx| tx.list_channels(owner)).unwrap();
    let [found] = &list(None)[..] else { panic!("one channel") };
    assert_eq!((found.id(), found.active), (desk(), false));
    assert_eq!((found.method, &found.formats), (changed.method, &changed.formats));
    assert_eq!(found.settings, changed.settings);
    assert_eq!(list(Some("other")), []);
    assert!(write(&db, |tx| tx.remove_channel(&desk())));
    assert!(!write(&db, |tx| tx.remove_channel(&desk())));
    assert!(!write(&db, |tx| tx.set_channel_active(&desk(), true)));
    assert_eq!(list(None), []);
}

#[test]
fn one_version_of_an_item_is_one_delivery_of_a_channel() {
    let (db, _dir) = prepared();
    let first = queue(&db, &new(1, "image/a"), 10);
    assert_eq!(
        (first.state, first.next_attempt, first.created),
        (DeliveryState::Queued, Some(at(10)), at(10))
    );
    assert_eq!(queue(&db, &new(2, "image/a"), 20), first);
    let later = NewDelivery { version: "v2".to_owned(), ..new(3, "image/a") };
    assert_eq!(queue(&db, &later, 20).id, Uuid::from_u128(3));
    assert_eq!(waiting(&db, 20), DeliveryBacklog { next: Some(at(10)), waiting: 2 });
}

#[test]
fn a_claim_has_one_sender_until_it_expires_and_a_lost_claim_cannot_report() {
    let (db, _dir) = prepared();
    let id = queue(&db, &new(1, "image/a"), 10).id;
    assert_eq!(claim(&db, 100, 9, 40), None, "not due yet");
    let claimed = claim(&db, 100, 10, 40).unwrap();
    assert_eq!((claimed.state, claimed.attempts), (DeliveryState::Sending, 1));
    assert_eq!(claim(&db, 101, 39, 70), None, "somebody sends it");
    assert!(write(&db, move |tx| tx.renew_claim(Uuid::from_u128(100), id, Uuid::nil(), at(50))));
    assert_eq!(claim(&db, 101, 49, 70), None, "and renewed the claim");
    let taken = claim(&db, 101, 50, 80).unwrap();
    assert_eq!((taken.id, taken.attempts), (id, 2));
    assert!(!write(&db, move |tx| tx.renew_claim(Uuid::from_u128(100), id, Uuid::nil(), at(99))));
    assert!(!end(&db, 100, id, DeliveryOutcome::Delivered, 60));
    assert!(end(&db, 101, id, DeliveryOutcome::Delivered, 61));
    let found = find(&db, id);
    let ended = (found.state, found.next_attempt, found.delivered);
    assert_eq!(ended, (DeliveryState::Delivered, None, Some(at(61))));
    assert_eq!(claim(&db, 102, 1000, 2000), None);
    assert_eq!(waiting(&db, 1000), DeliveryBacklog { next: None, waiting: 0 });
}

#[test]
fn what_a_process_knows_that_it_sends_it_does_not_take_up_again_however_long_ago_the_claim_ended()
{
    let (db, _dir) = prepared();
    let id = queue(&db, &new(1, "image/a"), 10).id;
    queue(&db, &new(2, "image/b"), 11);
    claim(&db, 100, 11, 40).unwrap();
    let held = [(Uuid::from_u128(100), id)];
    let claim_beside = |name: u128, now: i64| {
        write(&db, move |tx| {
            tx.renew_ended_claims(&held, turn(now), at(now + 30))?;
            tx.claim_delivery(Uuid::from_u128(name), turn(now), at(now + 30))
        })
    };
    assert_eq!(claim_beside(101, 500), None, "nor does its channel send another one");
    assert_eq!(find(&db, id).next_attempt, Some(at(530)));
    assert_eq!((claim_beside(102, 501), find(&db, id).next_attempt), (None, Some(at(530))));
    assert!(end(&db, 100, id, DeliveryOutcome::Delivered, 502));
    assert_eq!((find(&db, id).state, find(&db, id).attempts), (DeliveryState::Delivered, 1));
    let second = claim_beside(103, 503).unwrap();
    assert_eq!(
        (second.id, find(&db, id).next_attempt),
        (Uuid::from_u128(2), None),
        "it has come to an end"
    );
    // A delivery that another worker has claimed since is not renewed.
    assert_eq!(claim(&db, 104, 600, 630).unwrap().id, second.id);
    write(&db, move |tx| {
        tx.renew_ended_claims(&[(Uuid::from_u128(103), second.id)], turn(700), at(730))
    });
    assert_eq!(find(&db, second.id).next_attempt, Some(at(630)));
}

#[test]
fn what_failed_for_now_comes_back_and_what_failed_for_good_only_when_it_is_asked_for() {
    let (db, _dir) = prepared();
    let id = queue(&db, &new(1, "image/a"), 10).id;
    claim(&db, 100, 10, 40).unwrap();
    let error = "refused".to_owned();
    assert!(end(&db, 100, id, DeliveryOutcome::Retry { at: at(70), error: error.clone() }, 11));
    assert_eq!(find(&db, id).error.as_deref(), Some("refused"));
    assert_eq!(claim(&db, 101, 69, 99), None);
    assert_eq!(claim(&db, 101, 70, 99).unwrap().attempts, 2);
    assert!(end(&db, 101, id, DeliveryOutcome::Released, 71));
    assert_eq!((find(&db, id).attempts, find(&db, id).next_attempt), (1, Some(at(71))));
    claim(&db, 102, 71, 99).unwrap();
    assert!(end(&db, 102, id, DeliveryOutcome::Failed { error }, 72));
    assert_eq!((find(&db, id).state, find(&db, id).next_attempt), (DeliveryState::Failed, None));
    assert_eq!(claim(&db, 103, 1000, 2000), None);
    let again = queue(&db, &new(9, "image/a"), 100);
    assert_eq!((again.id, again.state, again.attempts), (id, DeliveryState::Queued, 0));
    assert_eq!((again.error, again.queued, again.created), (None, at(100), at(10)));
    assert!(
        !write(&db, move |tx| tx.requeue_delivery(id, DeliveryState::Failed, at(101))),
        "it waits already"
    );
}

#[test]
fn an_organization_has_so_many_in_the_queue_and_others_do_not_suffer() {
    let (db, _dir) = prepared();
    let put = |new: NewDelivery| write(&db, move |tx| tx.queue_delivery(&new, 2, at(1)));
    assert!(matches!(put(new(1, "image/a")), EnqueueOutcome::Queued(_)));
    assert!(matches!(put(new(2, "image/b")), EnqueueOutcome::Queued(_)));
    assert_eq!(put(new(3, "image/c")), EnqueueOutcome::Full);
    assert!(matches!(put(new(4, "image/a")), EnqueueOutcome::Known(_)), "it is there");
    let channel = ChannelId::new("other", "desk").unwrap();
    let other = NewDelivery {
        user: UserId(8),
        organization: OrganizationId(2),
        channel,
        ..new(5, "image/c")
    };
    assert!(matches!(put(other), EnqueueOutcome::Queued(_)));
    let id = claim(&db, 100, 1, 9).unwrap().id;
    assert_eq!(put(new(6, "image/c")), EnqueueOutcome::Full, "what is being sent counts");
    assert!(end(&db, 100, id, DeliveryOutcome::Delivered, 2));
    assert!(matches!(put(new(7, "image/c")), EnqueueOutcome::Queued(_)));
}

/// Creates a delivery of organization 1 through another channel.
fn through(number: u128, channel: &str) -> NewDelivery {
    let channel = ChannelId::new("editor", channel).unwrap();
    NewDelivery { channel, ..new(number, "image/a") }
}

#[test]
fn a_channel_sends_one_delivery_at_a_time_and_holds_no_other_channel_up() {
    let (db, _dir) = prepared();
    queue(&db, &new(1, "image/a"), 1);
    queue(&db, &new(2, "image/b"), 2);
    queue(&db, &through(3, "paper"), 3);
    let claimed = |name, now, until| claim(&db, name, now, until).map(|one| one.id.as_u128());
    assert_eq!(claimed(100, 10, 40), Some(1));
    assert_eq!(waiting(&db, 10), DeliveryBacklog { next: Some(at(3)), waiting: 3 });
    assert_eq!(claimed(101, 10, 50), Some(3), "the channel of the second one sends");
    assert_eq!((claimed(102, 10, 40), waiting(&db, 10).next), (None, None));
    assert!(end(&db, 100, Uuid::from_u128(1), DeliveryOutcome::Delivered, 11));
    assert_eq!((waiting(&db, 11).next, claimed(103, 11, 40)), (Some(at(2)), Some(2)));
    // The ended claim of a worker that has stopped blocks nothing.
    queue(&db, &new(4, "image/d"), 12);
    assert_eq!(claimed(104, 39, 90), None);
    assert_eq!((waiting(&db, 40).next, claimed(104, 40, 90)), (Some(at(12)), Some(4)));
}

#[test]
fn an_organization_sends_so_many_at_a_time_and_another_one_has_its_turn() {
    let (db, _dir) = prepared();
    for (number, channel) in [(1, "a"), (2, "b"), (3, "c")] {
        queue(&db, &through(number, channel), 1);
    }
    let channel = ChannelId::new("other", "desk").unwrap();
    let (user, organization) = (UserId(8), OrganizationId(2));
    queue(&db, &NewDelivery { user, organization, channel, ..new(4, "image/a") }, 2);
    let claimed = |name, now, until| claim(&db, name, now, until).map(|one| one.id.as_u128());
    assert_eq!((claimed(100, 9, 40), claimed(101, 9, 40)), (Some(1), Some(2)));
    assert_eq!(waiting(&db, 9), DeliveryBacklog { next: Some(at(2)), waiting: 4 });
    assert_eq!((claimed(102, 9, 40), claimed(103, 9, 40)), (Some(4), None));
    assert!(end(&db, 101, Uuid::from_u128(2), DeliveryOutcome::Delivered, 10));
    assert_eq!((waiting(&db, 10).next, claimed(104, 10, 40)), (Some(at(1)), Some(3)));
}

fn begin_incarnation(db: &Db, incarnation: u128) {
    let name = format!("node-{incarnation}");
    let incarnation = Uuid::from_u128(incarnation);
    write(db, move |tx| tx.begin_incarnation(&NewNode::bare(incarnation, &name), &[], at(1)));
}

fn end_incarnation(db: &Db, incarnation: u128) {
    write(db, move |tx| tx.end_incarnation(Uuid::from_u128(incarnation), at(1)));
}

#[test]
fn what_a_node_sends_that_lives_is_left_to_it_and_counts_however_far_clocks_are_apart() {
    let (db, _dir) = prepared();
    for (number, channel) in [(1, "a"), (2, "b"), (3, "c")] {
        queue(&db, &through(number, channel), 1);
    }
    queue(&db, &NewDelivery { item: "image/d".parse().unwrap(), ..through(4, "a") }, 2);
    begin_incarnation(&db, 1);
    begin_incarnation(&db, 2);
    let turn = |incarnation: u128, now| ClaimTerms {
        incarnation: Uuid::from_u128(incarnation),
        ..turn(now)
    };
    let claimed = |incarnation, name: u128, now: i64| {
        let claim = Uuid::from_u128(name);
        let found =
            write(&db, move |tx| tx.claim_delivery(claim, turn(incarnation, now), at(now + 30)));
        found.map(|one| one.id.as_u128())
    };
    let next =
        |incarnation, now| db.read_blocking(move |tx| tx.delivery_queue(turn(incarnation, now)));
    assert_eq!(claimed(1, 100, 10), Some(1));
    // The clock of the other node is an hour ahead. The channel of the first node is sending, and the
    // organization has its two in flight.
    assert_eq!((next(2, 3610).unwrap().next, claimed(2, 101, 3610)), (Some(at(1)), Some(2)));
    assert_eq!((next(2, 3610).unwrap().next, claimed(2, 102, 3610)), (None, None));
    // A node that was suspended begins another incarnation and continues to send.
    end_incarnation(&db, 1);
    begin_incarnation(&db, 3);
    let (claim, id) = (Uuid::from_u128(100), Uuid::from_u128(1));
    assert!(write(&db, move |tx| tx.renew_claim(claim, id, Uuid::from_u128(3), at(50))));
    assert_eq!(claimed(2, 103, 3610), None);
    // For the node itself, a claim that was not renewed has ended: it may not know of the claim.
    assert_eq!(claimed(2, 104, 3640), Some(3));
    end_incarnation(&db, 3);
    assert_eq!(claimed(2, 105, 3640), Some(4), "the channel of an ended incarnation is free");
}

#[test]
fn a_damaged_row_is_given_up_and_those_behind_it_get_their_turn() {
    let (db, _dir) = prepared();
    for (number, item) in [(1, "image/a"), (2, "image/b"), (3, "image/c"), (4, "image/d")] {
        queue(&db, &new(number, item), 1);
    }
    let damage = "UPDATE deliveries SET media_type = 'pigeon' WHERE item_id = 'a';
         UPDATE deliveries SET attempts = -7 WHERE item_id = 'b';
         UPDATE deliveries SET next_ms = -9223372036854775807 WHERE item_id = 'c';";
    db.write_blocking(|tx| tx.run_sql(damage)).unwrap();
    assert_eq!(waiting(&db, 5).next, Some(Timestamp::MIN), "it is due, whatever its time");
    // A claim replaces a damaged time.
    assert_eq!(claim(&db, 100, 5, 9).unwrap().id.as_u128(), 3);
    assert!(end(&db, 100, Uuid::from_u128(3), DeliveryOutcome::Delivered, 5));
    assert_eq!(claim(&db, 101, 5, 9).unwrap().id.as_u128(), 4);
    assert!(end(&db, 101, Uuid::from_u128(4), DeliveryOutcome::Delivered, 5));
    assert_eq!(waiting(&db, 5), DeliveryBacklog { next: None, waiting: 0 });
    let repair = "UPDATE deliveries SET media_type = 'image', attempts = 1";
    db.write_blocking(move |tx| tx.run_sql(repair)).unwrap();
    for number in [1, 2] {
        let found = find(&db, Uuid::from_u128(number));
        let error = "its row in the database is damaged";
        assert_eq!((found.state, found.error.as_deref()), (DeliveryState::Failed, Some(error)));
    }
}

#[test]
fn deliveries_are_listed_newest_first_for_whom_they_concern_and_go_in_the_end() {
    let (db, _dir) = prepared();
    for number in 1..=3 {
        queue(&db, &new(number, &format!("image/{number}")), 10);
    }
    let list = |of, state, start, size| {
        let read = move |tx: &super::ReadTx<'_>| tx.list_deliveries(of, state, start, size);
        let found = db.read_blocking(read).unwrap();
        found.into_iter().map(|one| one.id.as_u128()).collect::<Vec<_>>()
    };
    let own = DeliveriesOf::User(UserId(7));
    assert_eq!(list(own, None, 0, 10), [3, 2, 1]);
    assert_eq!(list(own, None, 1, 1), [2]);
    assert_eq!(list(DeliveriesOf::User(UserId(8)), None, 0, 10), []);
    assert_eq!(list(DeliveriesOf::Organization(OrganizationId(1)), None, 0, 10), [3, 2, 1]);
    let id = claim(&db, 100, 10, 40).unwrap().id;
    assert!(end(&db, 100, id, DeliveryOutcome::Failed { error: "no".to_owned() }, 20));
    let failed = Some(DeliveryState::Failed);
    assert_eq!(list(DeliveriesOf::Everybody, failed, 0, 10), [id.as_u128()]);
    assert_eq!(write(&db, |tx| tx.sweep_deliveries(at(20), 9)), 0);
    assert_eq!(write(&db, |tx| tx.sweep_deliveries(at(21), 9)), 1);
    assert_eq!(list(own, None, 0, 10), [3, 2], "what waits stays");
}
