//! Tests of the purge queue and of its position in the item log.

use std::net::TcpListener;

use tempfile::TempDir;

use super::*;
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::membership::ClusterNode;
use crate::runtime::config::SettingSources;

fn purge(number: i64, key: &str) -> PendingPurge {
    PendingPurge { number, key: key.to_owned(), since: Timestamp::UNIX_EPOCH }
}

#[test]
fn a_call_names_each_key_once_and_is_no_longer_than_servers_read() {
    let due = vec![purge(1, "a"), purge(2, "b"), purge(3, "a")];
    let (rows, keys) = batch(due);
    assert_eq!((rows.len(), keys), (3, vec!["a".to_owned(), "b".to_owned()]));
    let long = |number| purge(number, &format!("{number:0>1000}"));
    let (rows, keys) = batch((1..=9).map(long).collect());
    assert_eq!((rows.len(), keys.len()), (4, 4));
    let (rows, _) = batch(vec![purge(1, &"x".repeat(5000))]);
    assert_eq!(rows.len(), 1, "a key is told however long it is");
}

#[test]
fn a_cdn_that_fails_is_left_alone_for_longer_each_time_but_never_for_good() {
    let waits =
        [1, 2, 3, 7, 8, 100, u32::MAX].map(|tries| PURGE_RETRIES.backoff(tries).as_millis());
    assert_eq!(waits, [500, 1000, 2000, 32_000, 60_000, 60_000, 60_000]);
}

#[test]
fn keys_are_counted_by_outcome_and_contradictory_numbers_count_nothing() {
    let check = |purged: &[&str], absent: usize, keys: usize, expected: [usize; 4]| {
        let purged = purged.iter().map(|key| (*key).to_owned()).collect();
        let result = PurgeResult { purged, absent, ..PurgeResult::default() };
        let counts = outcome_counts(&result, keys);
        assert_eq!(counts.map(|(outcome, _)| outcome), ["done", "absent", "refused", "retry"]);
        assert_eq!(counts.map(|(_, count)| count), expected);
    };
    check(&["a", "b"], 1, 3, [1, 1, 0, 1]);
    check(&[], 0, 2, [0, 0, 0, 2]);
    check(&["a"], 2, 1, [0, 2, 0, 0]);
    check(&["a", "b"], 0, 1, [2, 0, 0, 0]);
}

/// Two endpoints on closed ports, over a scratch database.
struct Scene {
    endpoints: Vec<CdnEndpoint>,
    db: Db,
    dir: TempDir,
}

fn now() -> Timestamp {
    clock::now()
}

fn hours(hours: i64) -> Timestamp {
    now() + jiff::SignedDuration::from_hours(hours)
}

fn settings(dir: &TempDir, urls: &str) -> config::Cdn {
    let flag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let flags = vec![
        flag("data.dir", dir.path().to_str().unwrap()),
        flag("cdn.purge_url", urls),
        flag("cdn.purge_header", "Surrogate-Key"),
    ];
    config::load(&SettingSources { file: None, flags }).unwrap().0.cdn
}

impl Scene {
    fn new() -> Self {
        let (dir, port) = (tempfile::tempdir().unwrap(), closed_port());
        let db = Db::scratch(dir.path()).unwrap();
        let urls = format!("http://127.0.0.1:{port}/a http://127.0.0.1:{port}/b");
        let node = ClusterNode::start(
            &db,
            dir.path(),
            config::NodeRole::All,
            crate::cluster::membership::NodeDescription::default(),
            now(),
        )
        .unwrap();
        node.work(now());
        let guard = ClusterGuard::new(node, ClockGuard::start(&db, None));
        let cdn = CdnPurgers::open(&settings(&dir, &urls), &db, &guard).unwrap();
        let endpoints = cdn.unwrap().endpoints;
        Self { endpoints, db, dir }
    }

    /// Adds rows to the item log, each an id and a kind of change.
    fn log(&self, rows: &[(String, &'static str)]) {
        let at = now().as_millisecond();
        let one = |(id, change): &(String, &str)| format!("('image', '{id}', '{change}', {at})");
        let rows: Vec<String> = rows.iter().map(one).collect();
        let rows = rows.join(",");
        self.db
            .write_blocking(move |tx| {
                tx.run_sql(&format!(
                    "INSERT INTO item_log (media_type, id, change, at_ms) VALUES {rows}"
                ))
            })
            .unwrap();
    }

    fn waiting(&self, endpoint: usize, at: Timestamp) -> PurgeBacklog {
        let name = self.endpoints[endpoint].name.clone();
        self.db.read_blocking(move |tx| tx.purges_waiting(&name, at)).unwrap()
    }

    fn due(&self, endpoint: usize, at: Timestamp) -> Vec<PendingPurge> {
        let name = self.endpoints[endpoint].name.clone();
        self.db.read_blocking(move |tx| tx.due_purges(&name, at, 100_000)).unwrap()
    }

    /// Counts the purges that are due now at the endpoint of this name.
    fn due_count(&self, endpoint: &str) -> usize {
        let endpoint = endpoint.to_owned();
        self.db.read_blocking(move |tx| tx.due_purges(&endpoint, now(), 10)).unwrap().len()
    }

    fn write(&self, write: impl FnOnce(&WriteTx<'_>) + Send + 'static) {
        self.db
            .write_blocking(move |tx| {
                write(tx);
                Ok(())
            })
            .unwrap();
    }
}

fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn replaced(id: &str) -> (String, &'static str) {
    (id.to_owned(), "replaced")
}

#[tokio::test]
async fn the_log_is_read_on_at_once_while_there_is_more_of_it_and_while_a_cdn_fails() {
    let scene = Scene::new();
    let new = |at: usize| (format!("new{at}"), "created");
    let mut rows: Vec<_> = (0..3 * PURGE_LOG_ROWS).map(new).collect();
    rows.push(replaced("a"));
    scene.log(&rows);
    assert!(scene.waiting(0, now()).unread.is_some(), "the lag shows that it was not read");
    let endpoint = &scene.endpoints[0];
    let mut turns = 0;
    while endpoint.purge_batch(i64::MAX, true).await.unwrap().more {
        turns += 1;
    }
    assert_eq!(turns, 3);
    let (waiting, keys) = (scene.waiting(0, clock::now()), scene.due(0, clock::now()));
    assert_eq!((waiting.due, waiting.unread), (1, None));
    assert_eq!(keys[0].key, "image.a");
    // The other endpoint has its own position in the log.
    assert!(scene.waiting(1, now()).unread.is_some());
    let turn = endpoint.purge_batch(i64::MAX, false).await.unwrap();
    assert!(matches!(turn.outcome, Some(Err(_))) && !turn.more, "nobody listens");
}

#[tokio::test]
async fn what_is_due_later_takes_no_room_and_what_waits_is_noted_once() {
    let scene = Scene::new();
    let many = i64::try_from(PURGES_QUEUED_MAX).unwrap();
    let endpoint = scene.endpoints[0].name.clone();
    let later = hours(24 * 365 * 50).as_millisecond();
    scene.write(move |tx| {
        let sql = format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n <= {many})
             INSERT INTO purges (endpoint, key, due_ms, since_ms, repeated, refusals)
             SELECT '{endpoint}', 'image.' || n, {later}, {later}, FALSE, 0 FROM n"
        );
        tx.run_sql(&sql).unwrap();
    });
    scene.log(&[replaced("a"), replaced("b"), replaced("a"), replaced("a")]);
    assert!(!scene.endpoints[0].purge_batch(i64::MAX, true).await.unwrap().more);
    let keys = |at| scene.due(0, at).into_iter().map(|purge| purge.key).collect::<Vec<_>>();
    assert_eq!(keys(now()), ["image.a", "image.b"]);
    // A completed purge is repeated once and then removed.
    let numbers: Vec<i64> = scene.due(0, now()).iter().map(|purge| purge.number).collect();
    scene.write(move |tx| tx.complete_purges(&numbers, Some(hours(1))).unwrap());
    assert_eq!((keys(now()).len(), keys(hours(1)).len()), (0, 2));
    let numbers: Vec<i64> = scene.due(0, hours(1)).iter().map(|purge| purge.number).collect();
    scene.write(move |tx| tx.complete_purges(&numbers, Some(hours(2))).unwrap());
    assert_eq!(keys(hours(3)).len(), 0);
}

#[test]
fn an_address_that_takes_the_place_of_another_takes_over_what_waits_for_it() {
    let scene = Scene::new();
    let first = scene.endpoints[0].name.clone();
    let second = scene.endpoints[1].name.clone();
    let told = second.clone();
    scene.write(move |tx| {
        tx.note_purge("image.a", &[], now()).unwrap();
        let number = tx.due_purges(&told, now(), 1).unwrap()[0].number;
        tx.complete_purges(&[number], None).unwrap();
    });
    assert_eq!((scene.due(0, now()).len(), scene.due(1, now()).len()), (1, 0));
    let endpoints = ["new".to_owned(), second.clone()];
    scene.write(move |tx| tx.start_purging(&endpoints, key_of).unwrap());
    let due = [scene.due_count("new"), scene.due_count(&second), scene.due_count(&first)];
    assert_eq!(due, [1, 0, 0]);
    scene.write(|tx| tx.start_purging(&[], key_of).unwrap());
    assert!(scene.db.read_blocking(|tx| tx.purging_endpoints()).unwrap().is_empty());
    assert_eq!(scene.due_count("new"), 0);
    drop(scene.dir);
}
