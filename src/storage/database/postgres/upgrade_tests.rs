//! Tests schema upgrades while nodes are running. These tests cover PostgreSQL only: with SQLite a lock on
//! the data directory keeps nodes and upgrades apart. `database::migration_tests` covers both engines.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use jiff::Timestamp;
use uuid::Uuid;

use super::incarnations::HeartbeatTimes;
use super::migrations::SchemaUpgrade;
use super::session::run;
use crate::runtime::error::{Error, ErrorKind};
use crate::storage::database::engine::ConnectionPurpose;
use crate::storage::database::migrations::{LATEST, Migration, POSTGRES};
use crate::storage::database::scratch::scratch_server;
use crate::storage::database::{ClaimedBy, Db, DbError, IncarnationStart, NewMessage, NewNode};
use model::account::{MessageContent, MessageTransport, OutboxMessage, UserId};

const INCARNATION: Uuid = Uuid::from_u128(1);

/// A step of a later version, which changes a table that has rows.
const LATER: &str = "CREATE TABLE later (one BIGINT PRIMARY KEY);
    ALTER TABLE state ADD COLUMN more BIGINT NOT NULL DEFAULT 1";

const USER: &str = "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
         service_account, created_ms) VALUES (1, 'a', '[]', FALSE, FALSE, TRUE, FALSE, 0)";

fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

/// Returns the existing migrations and one more.
fn later() -> Vec<Migration> {
    let mut migrations = POSTGRES.to_vec();
    migrations.push(Migration { number: LATEST + 1, sql: LATER });
    migrations
}

fn sql(db: &Db, sql: &str) -> Result<(), DbError> {
    let sql = sql.to_owned();
    db.write_blocking(move |tx| tx.run_sql(&sql))
}

fn begin_incarnation(db: &Db) {
    let begin = |tx: &crate::storage::database::WriteTx<'_>| {
        tx.begin_incarnation(&NewNode::bare(INCARNATION, "node-1"), &[], now())
    };
    assert_eq!(db.write_blocking(begin).unwrap(), IncarnationStart::Started);
}

fn claim(db: &Db) -> Vec<OutboxMessage> {
    let by = ClaimedBy { incarnation: INCARNATION, now: now() };
    db.claim_blocking(move |tx| tx.claim_messages(MessageTransport::Mail, 10, by)).unwrap()
}

fn nodes(db: &Db) -> usize {
    db.read_blocking(|tx| tx.list_nodes()).unwrap().len()
}

/// Checks that writes are refused because of the schema, with a message that names both numbers.
#[track_caller]
fn is_refused(outcome: Result<(), DbError>, found: i64) {
    let cause = outcome.unwrap_err();
    assert!(matches!(cause, DbError::Schema(_)), "{cause:?}");
    let words = cause.to_string();
    assert!(words.contains(&format!("has schema {found}")), "{words}");
    assert!(words.contains(&LATEST.to_string()), "{words}");
    assert_eq!(Error::from(cause).kind(), ErrorKind::Unavailable);
}

#[test]
fn a_process_built_for_a_different_schema_writes_nothing_and_names_both() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let db = Db::scratch(dir.path()).unwrap();
    let note = "INSERT INTO state (name, value) VALUES ('noted', 'b')";
    for other in [LATEST + 1, LATEST - 1] {
        let to = |schema: i64| {
            let sql = format!("UPDATE writer SET schema = {schema}");
            run(&server, ConnectionPurpose::Write, &sql).unwrap();
        };
        to(other);
        is_refused(sql(&db, note), other);
        assert!(db.read_blocking(|tx| tx.list_states("noted")).unwrap().is_empty());
        to(LATEST);
    }
    sql(&db, note).unwrap();
}

#[test]
fn an_upgrade_is_refused_beside_a_running_node() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let db = Db::scratch(dir.path()).unwrap();
    begin_incarnation(&db);
    let (migrations, stop) = (later(), AtomicBool::new(false));
    // Like a node that is alone: it writes a heartbeat when it sees another one.
    let write_heartbeats = || {
        while !stop.load(Ordering::SeqCst) {
            if nodes(&db) > 1 {
                // It may have to wait for the write lock for too long.
                drop(db.write_blocking(|tx| tx.write_heartbeat(INCARNATION, 0, "", now())));
            }
            thread::yield_now();
        }
    };
    let outcome = thread::scope(|scope| {
        scope.spawn(write_heartbeats);
        let span = HeartbeatTimes {
            expiry: Duration::from_secs(60),
            interval: Duration::from_millis(20),
        };
        let outcome = SchemaUpgrade { server: &server, migrations: &migrations, span }.run();
        stop.store(true, Ordering::SeqCst);
        outcome
    });
    let cause = outcome.unwrap_err();
    assert!(matches!(cause, DbError::InUse(_)), "{cause:?}");
    let words = cause.to_string();
    let has = format!("has schema {LATEST}");
    assert!(words.contains("node-1 (all)") && words.contains(&has), "{words}");
    assert!(words.contains("stop"), "{words}");
    // The node is unchanged and continues.
    assert_eq!(nodes(&db), 1);
    assert!(db.write_blocking(|tx| tx.write_heartbeat(INCARNATION, 0, "", now())).unwrap());
}

#[test]
fn an_upgrade_keeps_the_rows_of_a_node_without_heartbeat_and_ends_its_incarnation() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let db = Db::scratch(dir.path()).unwrap();
    sql(&db, USER).unwrap();
    sql(&db, "INSERT INTO state (name, value) VALUES ('kept', 'so')").unwrap();
    begin_incarnation(&db);
    let message = NewMessage {
        id: Uuid::from_u128(9),
        transport: MessageTransport::Mail,
        number: 1,
        user: UserId(1),
        content: MessageContent::Item { item: "image/ice".to_owned() },
    };
    assert!(db.write_blocking(move |tx| tx.insert_message(&message, 10, now())).unwrap());
    let span = HeartbeatTimes { expiry: Duration::ZERO, interval: Duration::ZERO };
    let upgraded = SchemaUpgrade { server: &server, migrations: &later(), span }.run().unwrap();
    assert_eq!(upgraded, Some((LATEST, LATEST + 1)));
    let kept = db.read_blocking(|tx| tx.list_states("kept")).unwrap();
    assert_eq!(kept, [("kept".to_owned(), "so".to_owned())]);
    // The expired node continues and changes nothing: neither its writes nor its claims have an effect.
    assert_eq!(nodes(&db), 0);
    is_refused(sql(&db, "DELETE FROM state"), LATEST + 1);
    assert_eq!(claim(&db).len(), 0);
    assert_eq!(db.read_blocking(|tx| tx.list_messages(None, 10)).unwrap().len(), 1);
    // The next upgrade finds it done and waits for no node.
    let span = HeartbeatTimes { expiry: Duration::MAX, interval: Duration::ZERO };
    assert_eq!(SchemaUpgrade { server: &server, migrations: &later(), span }.run().unwrap(), None);
}
