//! Tests claims that run concurrently with each other, with a write, and with the end of the claiming
//! incarnation.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use jiff::Timestamp;
use uuid::Uuid;

use super::{ClaimTx, ClaimedBy, Db, DbError, MessageOutcome, NewMessage, NewNode, WriteTx};
use model::account::{MessageContent, MessageState, MessageTransport, OutboxMessage, UserId};

const SCENE: &str = "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
         service_account, created_ms) VALUES (1, 'a', '[]', FALSE, FALSE, TRUE, FALSE, 0)";

fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

fn by(incarnation: u128) -> ClaimedBy {
    ClaimedBy { incarnation: Uuid::from_u128(incarnation), now: now() }
}

/// Creates a message about the item of that number.
fn message(item: usize) -> NewMessage {
    NewMessage {
        id: Uuid::now_v7(),
        transport: MessageTransport::Mail,
        number: 1,
        user: UserId(1),
        content: MessageContent::Item { item: format!("image/i{item}") },
    }
}

fn put(db: &Db, items: std::ops::Range<usize>) {
    let put = move |tx: &WriteTx<'_>| {
        for item in items {
            assert!(tx.insert_message(&message(item), 10_000, now())?);
        }
        Ok(())
    };
    db.write_blocking(put).unwrap();
}

fn live(db: &Db, incarnation: u128) {
    let name = format!("node-{incarnation}");
    let begin = move |tx: &WriteTx<'_>| {
        tx.begin_incarnation(&NewNode::bare(Uuid::from_u128(incarnation), &name), &[], now())
    };
    db.write_blocking(begin).unwrap();
}

/// Creates a database with this many waiting messages and two incarnations.
fn prepared(messages: usize) -> (Db, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    db.write_blocking(|tx| tx.run_sql(SCENE)).unwrap();
    put(&db, 0..messages);
    live(&db, 1);
    live(&db, 2);
    (db, dir)
}

fn claim(db: &Db, limit: usize, incarnation: u128) -> Vec<OutboxMessage> {
    db.claim_blocking(move |tx| tx.claim_messages(MessageTransport::Mail, limit, by(incarnation)))
        .unwrap()
}

fn in_state(db: &Db, state: MessageState) -> usize {
    db.read_blocking(move |tx| tx.list_messages(Some(state), 10_000)).unwrap().len()
}

/// Whether claims run concurrently with a write.
fn goes_on(db: &Db) -> bool {
    db.is_remote()
}

/// A transaction that has done its work and is not yet committed.
struct Open<T> {
    end: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T> Open<T> {
    fn end(self) -> T {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// A transaction calls this to report that its work is done and to wait until it may commit.
type Stay = Box<dyn FnOnce() + Send>;

fn open<T: Send + 'static>(run: impl FnOnce(Stay) -> T + Send + 'static) -> Open<T> {
    let (end, ends): (_, Receiver<()>) = mpsc::channel();
    let (done, is_done) = mpsc::channel();
    let stay = Box::new(move || {
        done.send(()).unwrap();
        ends.recv().unwrap();
    });
    let thread = thread::spawn(move || run(stay));
    is_done.recv().unwrap();
    Open { end, thread }
}

fn open_write(
    db: &Db,
    write: impl FnOnce(&WriteTx<'_>) -> Result<(), DbError> + Send + 'static,
) -> Open<()> {
    let db = db.clone();
    open(move |stay| {
        let written = db.write_blocking(move |tx| {
            write(tx)?;
            stay();
            Ok(())
        });
        written.unwrap();
    })
}

fn open_claim(db: &Db, limit: usize, incarnation: u128) -> Open<Vec<OutboxMessage>> {
    let db = db.clone();
    open(move |stay| {
        let claimed = db.claim_blocking(move |tx: &ClaimTx<'_>| {
            let claimed = tx.claim_messages(MessageTransport::Mail, limit, by(incarnation))?;
            stay();
            Ok(claimed)
        });
        claimed.unwrap()
    })
}

#[test]
fn a_claim_does_not_wait_for_one_that_writes_where_the_engine_can_do_that() {
    let (db, _dir) = prepared(3);
    let (turn, mut claimed) = (open_write(&db, |_| Ok(())), 0);
    if goes_on(&db) {
        claimed += claim(&db, 2, 1).len();
        assert_eq!(in_state(&db, MessageState::Sending), 2, "it is committed");
    }
    turn.end();
    claimed += claim(&db, 9, 2).len();
    assert_eq!((claimed, in_state(&db, MessageState::Waiting)), (3, 0));
}

#[test]
fn a_claim_passes_over_what_another_one_takes_and_waits_for_nothing() {
    let (db, dir) = prepared(5);
    let other = Db::scratch(dir.path()).unwrap();
    let first = open_claim(&db, 3, 1);
    if goes_on(&db) {
        assert_eq!(claim(&other, 9, 2).len(), 2, "the first three are being taken");
    }
    assert_eq!(first.end().len(), 3);
    let rest = claim(&other, 9, 2).len();
    assert_eq!((rest, in_state(&db, MessageState::Sending)), (2 * usize::from(!goes_on(&db)), 5));
}

#[test]
fn nodes_that_claim_at_once_take_all_messages_and_none_twice() {
    const MESSAGES: usize = 300;
    let (db, dir) = prepared(MESSAGES);
    let dir = dir.path();
    let taken: Vec<Uuid> = thread::scope(|scope| {
        let node = |incarnation| {
            let db = Db::scratch(dir).unwrap();
            let mut ids = Vec::new();
            // A message that another claim holds could come back as free only by an error, and there is none.
            loop {
                let claimed = claim(&db, 7, incarnation);
                if claimed.is_empty() {
                    return ids;
                }
                ids.extend(claimed.into_iter().map(|message| message.id));
            }
        };
        let nodes = [1, 2, 1, 2].map(|incarnation| scope.spawn(move || node(incarnation)));
        nodes.into_iter().flat_map(|node| node.join().unwrap()).collect()
    });
    let each: BTreeSet<&Uuid> = taken.iter().collect();
    assert_eq!((taken.len(), each.len()), (MESSAGES, MESSAGES));
    assert_eq!(in_state(&db, MessageState::Sending), MESSAGES);
}

#[test]
fn an_incarnation_that_ends_while_it_claims_leaves_nothing_under_way() {
    let (db, dir) = prepared(4);
    let other = Db::scratch(dir.path()).unwrap();
    let claiming = open_claim(&db, 4, 1);
    let ending = thread::spawn(move || {
        other
            .write_blocking(|tx| tx.end_expired_incarnation(Uuid::from_u128(1), 0, now()))
            .unwrap()
    });
    assert_eq!(claiming.end().len(), 4);
    assert!(ending.join().unwrap());
    assert_eq!(in_state(&db, MessageState::Waiting), 4, "they are free again");
    // The reverse: an incarnation that is being ended claims nothing.
    let other = Db::scratch(dir.path()).unwrap();
    let ending = open_write(&other, |tx| tx.end_incarnation(Uuid::from_u128(2), now()));
    if goes_on(&db) {
        assert_eq!(claim(&db, 9, 2), []);
    }
    ending.end();
    assert_eq!(claim(&db, 9, 2), []);
    assert_eq!(in_state(&db, MessageState::Waiting), 4);
}

#[test]
fn claims_that_race_the_end_of_their_incarnation_leave_nothing_under_way() {
    const ROUNDS: u128 = 20;
    let (db, dir) = prepared(40);
    let other = Db::scratch(dir.path()).unwrap();
    for incarnation in 10..10 + ROUNDS {
        live(&db, incarnation);
        thread::scope(|scope| {
            let claims = scope.spawn(|| {
                let sizes = (0..6).map(|_| claim(&db, 5, incarnation).len());
                sizes.sum::<usize>()
            });
            let end =
                move |tx: &WriteTx<'_>| tx.end_incarnation(Uuid::from_u128(incarnation), now());
            other.write_blocking(end).unwrap();
            assert!(claims.join().unwrap() <= 30);
        });
        assert_eq!(in_state(&db, MessageState::Waiting), 40, "incarnation {incarnation}");
    }
}

#[test]
fn a_message_that_is_being_taken_up_stands_for_no_new_one() {
    let (db, dir) = prepared(1);
    let other = Db::scratch(dir.path()).unwrap();
    put(&other, 0..1);
    assert_eq!(in_state(&db, MessageState::Waiting), 1, "the one that waits stands for it");
    let claiming = open_claim(&db, 1, 1);
    let putting = thread::spawn(move || put(&other, 0..1));
    let claimed = match goes_on(&db) {
        true => {
            putting.join().unwrap();
            claiming.end()
        }
        false => {
            let claimed = claiming.end();
            putting.join().unwrap();
            claimed
        }
    };
    assert_eq!(claimed.len(), 1);
    assert_eq!(in_state(&db, MessageState::Waiting), 1, "it was put in beside the one on its way");
    // A message that a writer has found waiting is not claimed before the writer has ended.
    if goes_on(&db) {
        let found = open_write(&db, |tx| {
            tx.insert_message(&message(0), 10, now())?;
            // Reporting the end of a transaction that wrote something ends it.
            tx.insert_message(&message(1), 10, now())?;
            Ok(())
        });
        assert_eq!(claim(&db, 9, 2), []);
        found.end();
    }
    assert_eq!(claim(&db, 9, 2).len(), 1 + usize::from(goes_on(&db)));
}

#[test]
fn what_a_dropped_message_was_is_what_it_is_after_the_claim() {
    let (db, dir) = prepared(2);
    let other = Db::scratch(dir.path()).unwrap();
    let claiming = open_claim(&db, 2, 1);
    let ids = db.read_blocking(|tx| tx.list_messages(None, 9)).unwrap();
    let (first, second) = (ids[0].id, ids[1].id);
    let dropping = thread::spawn(move || {
        let parked = other.write_blocking(|tx| tx.drop_messages(None)).unwrap();
        let one = other.write_blocking(move |tx| tx.drop_messages(Some(first))).unwrap();
        (parked, one)
    });
    assert_eq!(claiming.end().len(), 2);
    assert_eq!(dropping.join().unwrap(), (0, 1));
    let end = |id| {
        db.write_blocking(move |tx| tx.end_message(id, &MessageOutcome::Done, by(1))).unwrap()
    };
    assert_eq!((end(first), end(second)), (false, true));
}

#[test]
fn messages_of_a_claim_without_an_answer_are_freed_and_those_that_are_sent_are_not() {
    let (db, dir) = prepared(4);
    let sent = claim(&db, 1, 1)[0].id;
    assert_eq!(claim(&db, 1, 2).len(), 1, "another node's");
    // The answer of this claim, which is still running, reaches no caller.
    let other = Db::scratch(dir.path()).unwrap();
    let lost = open_claim(&db, 2, 1);
    let freeing = thread::spawn(move || {
        let free = move |tx: &ClaimTx<'_>| {
            tx.release_lost_messages(MessageTransport::Mail, &[sent], by(1))
        };
        let of_others =
            |tx: &ClaimTx<'_>| tx.release_lost_messages(MessageTransport::Apple, &[], by(1));
        (other.claim_blocking(of_others).unwrap(), other.claim_blocking(free).unwrap())
    });
    assert_eq!(lost.end().len(), 2);
    assert_eq!(freeing.join().unwrap(), (0, 2));
    let waiting = db.read_blocking(|tx| tx.list_messages(Some(MessageState::Waiting), 9)).unwrap();
    assert_eq!(waiting.iter().map(|message| message.attempts).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(in_state(&db, MessageState::Sending), 2);
    let free = |tx: &ClaimTx<'_>| tx.release_lost_messages(MessageTransport::Mail, &[], by(3));
    assert_eq!(db.claim_blocking(free).unwrap(), 0, "there is no such incarnation");
}
