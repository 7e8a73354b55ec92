//! A clock that jumps: the time of day decides what is valid now, but nothing is deleted because of it until the
//! clock has been steady for a while.

use std::io::{Read, Write};
use std::time::Instant;

use api::collections::LoadCollection;
use api::deliveries::LoadDelivery;
use model::account::DeliveryState;
use reqwest::Method;
use rusqlite::Connection;
use serde_json::json;

use super::kit::{
    BUYER, Faults, call, create_stream, document, form, login, ok_json, orders, photograph, post,
    read_stream, scene, text, upload, wait_for_matches,
};
use crate::common::api::ApiCaller;
use crate::common::{DEMO_KEY, Server, WAIT_TIMEOUT, pause, ports::ReservedPort};
use crate::deliveries::{id, run, trigger};
use crate::search::ids;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time this many days from now, in the format of documents.
fn in_days(days: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * days);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

struct Scene {
    faults: Faults,
    server: Server,
    access: String,
    refresh: String,
    collection: String,
    stream: String,
}

impl Scene {
    /// A photograph that expires in 30 days and is in a collection, one whose embargo ends then, a token set and a
    /// stream.
    fn new() -> Self {
        let mut passing = document("Snart borta");
        passing["expires"] = json!(in_days(30));
        let mut early = document("Ännu inte");
        early["embargoed"] = json!(in_days(30));
        let items =
            [("image/passing", passing), ("image/early", early), ("image/two", document("2"))];
        let faults = Faults::new();
        let server = faults.start(scene(&items), &["server.unready_s=0"]);
        let set = ok_json(post(&server, "token", &login()).send().unwrap());
        let editor = ApiCaller::key(&server, DEMO_KEY);
        let collection = editor.collect("kept", false, &["image/passing"]);
        let stream = create_stream(&server, "");
        let (access, refresh) = (text(&set, "access_token"), text(&set, "refresh_token"));
        Self { faults, server, access, refresh, collection, stream }
    }

    fn jump(&self, seconds: i64) {
        self.faults.set(&[&format!("clock {seconds}")]);
    }

    fn collected(&self) -> usize {
        let load = LoadCollection { id: self.collection.clone() };
        ApiCaller::key(&self.server, DEMO_KEY).ask(&load).unwrap().collection.content.len()
    }

    fn user_status(&self) -> u16 {
        let bearer = format!("Bearer {}", self.access);
        self.server.get_with("/o/v2/user", &[("authorization", &bearer)]).status().as_u16()
    }

    fn status(&self, path: &str) -> u16 {
        self.server.get(path).status().as_u16()
    }

    /// A photograph that is ingested now reaches its stream.
    fn ingest_photo(&self, id: &str, number: usize) {
        let sent = upload(&self.server, &format!("image/{id}"), "Ny", &photograph(number));
        assert_eq!(sent.send().unwrap().status(), 201);
        self.server.until("the stream to have it", || {
            let response = read_stream(&self.server, &self.stream);
            assert_eq!(response.status(), 200, "the stream is gone: {}", self.server.log());
            (ids(&response.json().unwrap()).contains(id)).then_some(())
        });
    }

    /// Waits until the server has noticed the jump.
    fn noticed(&self, jumps: u32) {
        self.server.until("the jump to be noticed", || {
            let seen = self.server.metric("wirephoto_clock_jumps_total", "");
            (seen >= f64::from(jumps)).then_some(())
        });
    }

    fn end(self) {
        let (status, log) = self.server.stop();
        assert!(status.success() && !log.contains("panicked"), "{log}");
    }
}

#[test]
fn a_clock_that_runs_ahead_and_is_corrected_loses_nothing() {
    let scene = Scene::new();
    scene.ingest_photo("before", 1);
    // An item is queued while the clock jumps.
    let waiting = upload(&scene.server, "image/waiting", "Ny", &photograph(2)).send().unwrap();
    assert_eq!(waiting.status(), 201);
    wait_for_matches(&scene.server, 2);
    scene.jump(DAY);
    let first = ids(&ok_json(read_stream(&scene.server, &scene.stream)));
    assert_eq!(first, "waiting", "a stream does not expire because the clock jumped");
    assert_eq!((scene.user_status(), scene.status("/media/image/early.json")), (200, 404));
    scene.noticed(1);
    scene.ingest_photo("day", 3);
    scene.jump(YEAR);
    scene.ingest_photo("year", 4);
    scene.noticed(2);
    // The time of day decides what is valid.
    assert_eq!(scene.user_status(), 401);
    scene.server.until("the embargo to end", || {
        (scene.status("/media/image/early.json") == 200).then_some(())
    });
    // A login at the future time is valid at that time.
    let set = ok_json(post(&scene.server, "token", &login()).send().unwrap());
    assert!(text(&set, "access_token").len() > 20);
    scene.faults.clear();
    scene.noticed(3);
    assert_eq!(scene.user_status(), 200, "tokens are not removed by a clock that is wrong");
    assert_eq!(scene.status("/media/image/early.json"), 404, "the embargo holds again");
    assert_eq!(scene.collected(), 1, "nor is what is in collections");
    scene.ingest_photo("after", 5);
    let fields = form(&[("grant_type", "refresh_token"), ("refresh_token", &scene.refresh)]);
    assert_eq!(post(&scene.server, "token", &fields).send().unwrap().status(), 200);
    scene.end();
}

#[test]
fn a_restart_does_not_make_a_wrong_clock_trusted() {
    for seconds in [2 * HOUR, YEAR] {
        let mut scene = Scene::new();
        scene.jump(seconds);
        scene.noticed(1);
        // From here on the next process knows of the jump.
        scene.server.until("the note", || {
            let database = Connection::open(scene.server.data().join("wirephoto.db")).unwrap();
            let sql = "SELECT value FROM state WHERE name LIKE 'clock%'";
            let note: String = database.query_row(sql, [], |row| row.get(0)).unwrap();
            note.starts_with("doubted").then_some(())
        });
        scene.server.signal("KILL");
        scene.server.child.wait().unwrap();
        let empty = tempfile::tempdir().unwrap();
        let dir = std::mem::replace(&mut scene.server.dir, empty);
        scene.server = scene.faults.start(dir, &["server.unready_s=0"]);
        scene.noticed(1);
        assert!(scene.server.log().contains("the clock is not trusted yet"));
        scene.ingest_photo("after", 7);
        scene.faults.clear();
        scene.noticed(2);
        assert_eq!(scene.user_status(), 200, "tokens are there");
        assert_eq!(scene.collected(), 1, "and so is what is in collections");
        scene.end();
    }
}

#[test]
fn a_service_that_was_down_for_long_trusts_its_clock_later() {
    let scene = Scene::new();
    let Scene { faults, server, .. } = scene;
    // The clock was right when the service stopped.
    server.signal("TERM");
    let mut server = server;
    assert!(server.child.wait().unwrap().success());
    let dir = std::mem::replace(&mut server.dir, tempfile::tempdir().unwrap());
    drop(server);
    faults.set(&[&format!("clock {}", 40 * DAY)]);
    let server = faults.start(dir, &["server.unready_s=0"]);
    assert!(server.log().contains("far from the last time that the service stored"));
    assert!((server.metric("wirephoto_clock_jumps_total", "") - 1.0).abs() < 0.1);
    assert_eq!(server.get("/health/ready").status(), 200);
}

#[test]
fn a_clock_that_is_set_back_duplicates_and_loses_nothing() {
    let scene = Scene::new();
    let buy = |path: &str| call(&scene.server, Method::GET, path, BUYER).send().unwrap().status();
    assert_eq!(buy("/media/image/two.jpg"), 200);
    for (number, seconds) in [(1, HOUR), (2, DAY)] {
        scene.jump(-seconds);
        scene.ingest_photo(&format!("back{number}"), number);
        assert_eq!(scene.user_status(), 200);
        assert_eq!(buy("/media/image/two.jpg"), 200);
        assert_eq!(orders(&scene.server).len(), 1, "what was bought is not bought again");
        let set = ok_json(post(&scene.server, "token", &login()).send().unwrap());
        let bearer = format!("Bearer {}", text(&set, "access_token"));
        let user = scene.server.get_with("/o/v2/user", &[("authorization", &bearer)]);
        assert_eq!(user.status(), 200);
        scene.noticed(number.try_into().unwrap());
    }
    assert_eq!(buy("/media/image/passing.jpg"), 200);
    let mut numbers: Vec<i64> = orders(&scene.server).iter().map(|order| order.id).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 2);
    assert_eq!(scene.collected(), 1);
    scene.faults.clear();
    scene.ingest_photo("now", 9);
    scene.end();
}

#[test]
fn pending_deliveries_and_purges_survive_a_clock_jump() {
    let away = ReservedPort::new();
    let port = away.port();
    let url = format!("cdn.purge_url=http://127.0.0.1:{port}/");
    let settings = [
        "server.unready_s=0",
        "delivery.retry_first_ms=50",
        "cdn.purge_header=Surrogate-Key",
        "cdn.purge_again_s=0",
        &url,
    ];
    let faults = Faults::new();
    let items = [("image/one", document("1")), ("image/two", document("2"))];
    let server = faults.start(scene(&items), &settings);
    let hook = format!("url=http://127.0.0.1:{port}/");
    let secret = "secret=a-secret-of-at-least-24-bytes";
    let channel = ["channel", "add", "demo-editor", "nowhere", "--method", "webhook"];
    let more = ["--format", ".json", "--setting", &hook, "--setting", secret];
    run(&server, &[&channel[..], &more, &["--setting", "allowHttp:=true"]].concat(), 0);
    let delivery = id(trigger(&server, "/media/image/two", "nowhere"));
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let load = LoadDelivery { id: delivery.parse().unwrap() };
    let find = || editor.ask(&load).unwrap();
    run(&server, &["withdraw", "image/one"], 0);
    let tries = || server.metric("wirephoto_purges_total", "retry");
    server.until("a purge to fail", || (tries() > 0.0).then_some(()));
    faults.set(&[&format!("clock {}", 8 * DAY)]);
    let (purges, attempts) = (tries(), find().attempts);
    server.until("more tries", || {
        let found = find();
        assert_ne!(found.state, DeliveryState::Failed, "{found:?}");
        let tried = found.attempts > attempts && found.state == DeliveryState::Queued;
        (tried && tries() > purges).then_some(())
    });
    assert_eq!(server.metric("wirephoto_purges_total", "given_up"), 0.0);
    faults.clear();
    // The CDN is up again.
    let listener = away.listen();
    listener.set_nonblocking(true).unwrap();
    // Retry intervals double: the next try may come as late as the outage was long.
    let (start, mut told) = (Instant::now(), false);
    while !told {
        assert!(start.elapsed() < 4 * WAIT_TIMEOUT, "nobody came: {}", server.log());
        let Ok((mut stream, _)) = listener.accept() else {
            pause();
            continue;
        };
        stream.set_nonblocking(false).unwrap();
        let mut call = [0; 2000];
        let length = stream.read(&mut call).unwrap();
        let answer = "HTTP/1.1 200 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
        told = String::from_utf8_lossy(&call[..length]).contains("image.one");
    }
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
