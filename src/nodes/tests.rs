//! Lives and leases over a real database.

use uuid::Uuid;

use super::*;
use crate::account::Lane;
use crate::db::ClaimedBy;

fn node(db: &Db, dir: &Path) -> Node {
    Node::start(db, dir, Role::All, clock::now()).expect("started")
}

fn leases(db: &Db) -> Vec<(String, Uuid)> {
    db.read_blocking(|tx| tx.list_leases()).expect("read")
}

fn end(node: &Node) {
    let life = node.life();
    node.inner.db.write_blocking(move |tx| tx.end_life(life, clock::now())).expect("written");
}

#[test]
fn one_node_holds_a_lease_and_the_next_one_gets_it_when_that_life_is_over() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::open(dir.path()).expect("opened");
    let (first, second) = (node(&db, dir.path()), node(&db, dir.path()));
    assert!(first.holds(Lease::Matching) && !second.holds(Lease::Matching));
    assert_eq!(leases(&db).len(), 3);
    let mut others = Others::new();
    others.look(&second);
    assert!(!second.holds(Lease::Matching));
    end(&first);
    others.look(&second);
    assert!(second.holds(Lease::Matching));
    assert!(leases(&db).iter().all(|(_, life)| *life == second.life()));
    // The first one lives all the same: it finds out, and begins anew without a lease.
    let was = first.life();
    Others::new().look(&first);
    assert!(first.is_sure() && first.life() != was && !first.holds(Lease::Matching));
}

#[test]
fn a_node_that_starts_again_takes_what_it_had_and_a_lost_life_cannot_end_a_message() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::open(dir.path()).expect("opened");
    db.write_blocking(|tx| {
        tx.run_sql(
            "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
                 service_account, created_ms) VALUES (1, 'a', '[]', 0, 0, 1, 0, 0);
             INSERT INTO outbox (message_id, lane, number, user_id, content, state, attempts,
                 next_ms, created_ms, queued_ms, updated_ms)
             VALUES ('01a203dd-5c0a-711a-97bd-9530a4d06199', 'mail', 1, 1,
                 '{\"kind\":\"item\",\"item\":\"image/a\"}', 'waiting', 0, 0, 0, 0, 0);",
        )
    })
    .expect("written");
    let claim = |node: &Node| {
        let by = ClaimedBy { life: node.life(), now: clock::now() };
        let claimed = db.write_blocking(move |tx| tx.claim_messages(Lane::Mail, 9, by));
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
    assert!(again.holds(Lease::Sweeping));
    let id = claimed[0].id;
    let done = crate::db::Sent::Done;
    assert!(!db.write_blocking(move |tx| tx.end_message(id, &done, by)).expect("written"));
    assert_eq!(claim(&other).1.len(), 1, "the life that had it is over");
}

#[test]
fn a_beat_that_stands_still_is_ended_once_and_one_that_rises_is_not() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::open(dir.path()).expect("opened");
    let (first, second) = (node(&db, dir.path()), node(&db, dir.path()));
    let (life, other) = (first.life(), second.life());
    db.write_blocking(move |tx| {
        assert!(tx.beat(life, 7, clock::now())?);
        assert!(!tx.end_still_life(life, 0, clock::now())?, "it rose meanwhile");
        assert!(tx.end_still_life(life, 1, clock::now())?);
        assert!(!tx.end_still_life(life, 1, clock::now())?);
        assert!(!tx.beat(life, 7, clock::now())?);
        assert!(!tx.take_lease("matching", life)?, "who is dead takes nothing");
        assert!(tx.take_lease("matching", other)?);
        Ok(())
    })
    .expect("written");
}

#[test]
fn who_goes_by_the_name_of_another_node_takes_another_one() {
    let dir = tempfile::tempdir().expect("folder");
    let db = Db::open(dir.path()).expect("opened");
    let first = node(&db, dir.path());
    let copy = tempfile::tempdir().expect("folder");
    std::fs::create_dir(copy.path().join("nodes")).expect("made");
    let name = first.name().expect("a name");
    std::fs::write(copy.path().join("nodes/node-1"), &name).expect("written");
    let second = node(&db, copy.path());
    assert_eq!(second.name().as_ref(), Some(&name), "it cannot know");
    let mut others = Others::new();
    // Its life is over, its name is taken, and it lives under another one.
    for _ in 0..2 {
        others.look(&first);
    }
    assert!(first.is_sure() && second.name() == Some(name.clone()) && first.name() != Some(name));
}
