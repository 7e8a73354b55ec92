//! Incarnations and leases over a real database.

use strum::IntoEnumIterator;
use uuid::Uuid;

use super::*;
use crate::storage::database::ClaimedBy;
use model::account::MessageTransport;

fn node(db: &Db, dir: &Path) -> ClusterNode {
    let node =
        ClusterNode::start(db, dir, NodeRole::All, NodeDescription::default(), clock::now())
            .expect("started");
    node.work(clock::now());
    node
}

fn leases(db: &Db) -> Vec<(String, Uuid)> {
    db.read_blocking(|tx| tx.list_leases()).expect("read")
}

fn end(node: &ClusterNode) {
    let incarnation = node.incarnation();
    node.inner
        .db
        .write_blocking(move |tx| tx.end_incarnation(incarnation, clock::now()))
        .expect("written");
}

#[test]
fn one_node_holds_a_lease_and_the_next_one_gets_it_when_that_incarnation_has_ended() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let (first, second) = (node(&db, dir.path()), node(&db, dir.path()));
    assert!(first.holds(ClusterLease::Matching) && !second.holds(ClusterLease::Matching));
    assert_eq!(leases(&db).len(), 3);
    let mut others = PeerObservations::new(true);
    others.poll(&second);
    assert!(!second.holds(ClusterLease::Matching));
    end(&first);
    others.poll(&second);
    assert!(second.holds(ClusterLease::Matching));
    assert!(leases(&db).iter().all(|(_, incarnation)| *incarnation == second.incarnation()));
    // The first node is alive all the same: it finds out, and begins a new incarnation without a lease.
    let was = first.incarnation();
    PeerObservations::new(true).poll(&first);
    assert!(
        first.is_confirmed() && first.incarnation() != was && !first.holds(ClusterLease::Matching)
    );
}

#[test]
fn a_node_that_starts_again_takes_what_it_had_and_an_ended_incarnation_cannot_end_a_message() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    db.write_blocking(|tx| {
        tx.run_sql(
            "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
                 service_account, created_ms) VALUES (1, 'a', '[]', FALSE, FALSE, TRUE, FALSE, 0);
             INSERT INTO outbox (message_id, transport, number, user_id, content, state, attempts,
                 next_ms, created_ms, queued_ms, updated_ms)
             VALUES ('01a203dd-5c0a-711a-97bd-9530a4d06199', 'mail', 1, 1,
                 '{\"kind\":\"item\",\"item\":\"image/a\"}', 'waiting', 0, 0, 0, 0, 0);",
        )
    })
    .expect("written");
    let claim = |node: &ClusterNode| {
        let by = ClaimedBy { incarnation: node.incarnation(), now: clock::now() };
        let claimed =
            db.claim_blocking(move |tx| tx.claim_messages(MessageTransport::Mail, 9, by));
        (by, claimed.expect("written"))
    };
    let first = node(&db, dir.path());
    let (by, claimed) = claim(&first);
    assert_eq!(claimed.len(), 1);
    let (name, other) = (first.name(), node(&db, dir.path()));
    assert!(claim(&other).1.is_empty(), "it is under way");
    drop(first);
    let again = node(&db, dir.path());
    assert_eq!(again.name(), name);
    assert!(again.holds(ClusterLease::Sweeping));
    let id = claimed[0].id;
    let done = crate::storage::database::MessageOutcome::Done;
    assert!(!db.write_blocking(move |tx| tx.end_message(id, &done, by)).expect("written"));
    assert_eq!(claim(&other).1.len(), 1, "its incarnation has ended");
}

#[test]
fn an_expired_heartbeat_ends_an_incarnation_once_and_a_rising_one_does_not() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let (first, second) = (node(&db, dir.path()), node(&db, dir.path()));
    let incarnation = first.incarnation();
    let other = second.incarnation();
    db.write_blocking(move |tx| {
        assert!(tx.write_heartbeat(incarnation, 7, "", clock::now())?);
        assert!(!tx.end_expired_incarnation(incarnation, 1, clock::now())?, "it rose meanwhile");
        assert!(tx.end_expired_incarnation(incarnation, 2, clock::now())?);
        assert!(!tx.end_expired_incarnation(incarnation, 2, clock::now())?);
        assert!(!tx.write_heartbeat(incarnation, 7, "", clock::now())?);
        assert!(!tx.take_lease("matching", incarnation)?, "who is dead takes nothing");
        assert!(tx.take_lease("matching", other)?);
        Ok(())
    })
    .expect("written");
}

#[test]
fn who_goes_by_the_name_of_another_node_takes_another_one() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let first = node(&db, dir.path());
    let copy = tempfile::tempdir().expect("folder");
    std::fs::create_dir(copy.path().join("nodes")).expect("made");
    let name = first.name().expect("a name");
    std::fs::write(copy.path().join("nodes/node-1"), &name).expect("written");
    let second = node(&db, copy.path());
    assert_eq!(second.name().as_ref(), Some(&name), "it cannot know");
    let mut others = PeerObservations::new(true);
    // Its incarnation is over and its name is in use, so it continues under another one.
    for _ in 0..2 {
        others.poll(&first);
    }
    assert!(
        first.is_confirmed() && second.name() == Some(name.clone()) && first.name() != Some(name)
    );
}

#[test]
fn a_starting_node_holds_no_lease_and_blocks_no_other_node() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let worker = node(&db, dir.path());
    worker.set_followed(3);
    let comes = ClusterNode::start(
        &db,
        dir.path(),
        NodeRole::All,
        NodeDescription::default(),
        clock::now(),
    )
    .expect("started");
    let (mut others, mut its) = (PeerObservations::new(true), PeerObservations::new(true));
    end(&worker);
    its.poll(&comes);
    others.poll(&worker);
    assert_eq!(worker.followed_by_others(), Some(i64::MAX));
    assert!(worker.holds(ClusterLease::Purging) && !comes.holds(ClusterLease::Purging));
    // The position that other nodes must find is written before it serves a request.
    comes.set_followed(2);
    comes.work(clock::now());
    others.poll(&worker);
    assert_eq!(worker.followed_by_others(), Some(2));
}

#[test]
fn an_incarnation_ends_with_a_start_that_fails() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let node = node(&db, dir.path());
    let keeper = node.start_heartbeat().expect("a thread");
    assert_eq!(leases(&db).len(), 3);
    drop(keeper);
    assert!(leases(&db).is_empty());
    assert!(db.read_blocking(|tx| tx.list_nodes()).expect("read").is_empty());
}

#[test]
fn an_incarnation_whose_beginning_was_not_answered_begins_once() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let node = node(&db, dir.path());
    let name = node.name();
    let incarnation = node.incarnation();
    // The start was written, but the answer was lost.
    node.state().is_alive = false;
    node.begin(clock::now()).expect("written");
    assert!(node.is_confirmed() && node.holds(ClusterLease::Matching));
    assert_eq!((node.name(), node.incarnation()), (name, incarnation));
    assert_eq!(db.read_blocking(|tx| tx.list_nodes()).expect("read").len(), 1);
}

#[test]
fn words_in_the_database_are_those_of_other_versions() {
    let leases: Vec<_> = ClusterLease::iter().map(ClusterLease::as_str).collect();
    assert_eq!(leases.join(" "), "matching purging sweeping watching starting scrubbing");
    let faults: Vec<_> = NodeFault::iter().map(NodeFault::as_str).collect();
    assert_eq!(faults.join(" "), "database search store disk");
}

#[test]
fn a_lease_that_was_declined_does_not_come_back() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::scratch(dir.path()).expect("opened");
    let node = node(&db, dir.path());
    let was_wanted = ClusterLease::iter().collect();
    node.decline_lease(ClusterLease::Purging);
    // A poll that was in flight in the meantime.
    node.set_held(was_wanted);
    PeerObservations::new(true).poll(&node);
    assert!(node.holds(ClusterLease::Matching) && !node.holds(ClusterLease::Purging));
    assert!(!leases(&db).iter().any(|(name, _)| name == "purging"));
}
