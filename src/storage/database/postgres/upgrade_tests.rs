//! Tests schema upgrades while nodes are running. These tests cover PostgreSQL only: with SQLite a lock on
//! the data directory keeps nodes and upgrades apart.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use jiff::Timestamp;
use uuid::Uuid;

use super::incarnations::HeartbeatTimes;
use super::migrations::{SchemaUpgrade, migrate};
use super::session::run;
use crate::runtime::error::{Error, ErrorKind};
use crate::storage::database::engine::ConnectionPurpose;
use crate::storage::database::migrations::{LATEST, Migration, POSTGRES};
use crate::storage::database::scratch::scratch_server;
use crate::storage::database::{ClaimedBy, Db, DbError, IncarnationStart, NewMessage, NewNode};
use model::account::{MessageContent, MessageTransport, OutboxMessage, UserId};

const LIFE: Uuid = Uuid::from_u128(1);

/// A step of a later version, which changes a table that has rows.
const LATER: &str = "CREATE TABLE later (one BIGINT PRIMARY KEY);
    ALTER TABLE state ADD COLUMN more BIGINT NOT NULL DEFAULT 1";

const USER: &str = "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
         service_account, created_ms) VALUES (1, 'a', '[]', FALSE, FALSE, TRUE, FALSE, 0)";

/// Rows of schema 8 in the tables that the next step changes, and in the tables that those refer to.
const ROWS_OF_8: &str = "
INSERT INTO organizations (organization_id, address) VALUES (1, '{}');
INSERT INTO notifications (notification_id, user_id, type, media_type, title, p, agr, created_ms, after_seq)
    VALUES ('n', 1, 'stream', 'image', 'Is', '', '', 0, 0);
INSERT INTO queued_items (number, media_type, id, seq) SELECT number, 'image', 'ice', 1 FROM notifications;
INSERT INTO outbox (message_id, lane, number, user_id, content, state, attempts, next_ms, created_ms,
        queued_ms, updated_ms)
    VALUES ('00000000-0000-0000-0000-000000000009', 'mail', 1, 1,
        '{\"kind\":\"item\",\"item\":\"image/ice\"}', 'sending', 1, 0, 0, 0, 0);
INSERT INTO deliveries (delivery_id, user_id, organization_id, channel, media_type, item_id, version, state,
        attempts, created_ms, queued_ms, updated_ms)
    VALUES ('d', 1, 1, 'desk', 'image', 'ice', '1', 'waiting', 0, 0, 0, 0);
INSERT INTO sessions (session_hash, user_id, auth_ms, expires_ms) VALUES ('s', 1, 0, 1)";

/// Checks what remains of them in schema 9.
const KEPT: &str = "SELECT 1 / CASE WHEN
    (SELECT count(*) FROM queued_items WHERE life IS NULL AND freed = 0) = 1
    AND (SELECT count(*) FROM deliveries WHERE life IS NULL) = 1
    AND (SELECT count(*) FROM sessions) = 1 AND (SELECT count(*) FROM notifications) = 1
    THEN 1 ELSE 0 END";

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

fn live(db: &Db) {
    let begin = |tx: &crate::storage::database::WriteTx<'_>| {
        tx.begin_incarnation(&NewNode::bare(LIFE, "node-1"), &[], now())
    };
    assert_eq!(db.write_blocking(begin).unwrap(), IncarnationStart::Started);
}

fn claim(db: &Db) -> Vec<OutboxMessage> {
    let by = ClaimedBy { incarnation: LIFE, now: now() };
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
fn who_was_made_for_another_schema_writes_nothing_and_names_both() {
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
fn an_upgrade_is_refused_beside_a_node_that_lives() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let db = Db::scratch(dir.path()).unwrap();
    live(&db);
    let (migrations, stop) = (later(), AtomicBool::new(false));
    // Like a node that is alone: it writes a heartbeat when it sees another one.
    let beats = || {
        while !stop.load(Ordering::SeqCst) {
            if nodes(&db) > 1 {
                // It may have to wait for the write lock for too long.
                drop(db.write_blocking(|tx| tx.write_heartbeat(LIFE, 0, "", now())));
            }
            thread::yield_now();
        }
    };
    let outcome = thread::scope(|scope| {
        scope.spawn(beats);
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
    assert!(db.write_blocking(|tx| tx.write_heartbeat(LIFE, 0, "", now())).unwrap());
}

#[test]
fn an_upgrade_keeps_the_rows_of_a_node_without_heartbeat_and_ends_its_incarnation() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let db = Db::scratch(dir.path()).unwrap();
    sql(&db, USER).unwrap();
    sql(&db, "INSERT INTO state (name, value) VALUES ('kept', 'so')").unwrap();
    live(&db);
    let message = NewMessage {
        id: Uuid::from_u128(9),
        lane: MessageTransport::Mail,
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

#[test]
fn filled_tables_of_schema_8_are_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = scratch_server(dir.path()).unwrap() else { return };
    let upgrade = SchemaUpgrade {
        server: &server,
        migrations: &POSTGRES[..1],
        span: HeartbeatTimes::default(),
    };
    assert_eq!(upgrade.run().unwrap(), None);
    run(&server, ConnectionPurpose::Write, USER).unwrap();
    run(&server, ConnectionPurpose::Write, ROWS_OF_8).unwrap();
    assert_eq!(migrate(&server).unwrap(), Some((8, LATEST)));
    run(&server, ConnectionPurpose::Write, KEPT).unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    assert_eq!(db.upgraded(), None);
    // A message that was in flight before there were incarnations is claimed by one.
    live(&db);
    let taken = claim(&db);
    assert_eq!(taken.iter().map(|one| one.id).collect::<Vec<_>>(), [Uuid::from_u128(9)]);
}
