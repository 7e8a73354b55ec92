//! Originals in a cluster of three Garage nodes with replication factor 3: killed nodes, lost quorum, replaced
//! keys, paginated listings, two Wirephoto nodes. `tests/garage.sh` runs these tests, and those of
//! `store_s3` over the same kind of cluster.

use std::{
    fs,
    io::Write,
    sync::Mutex,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::buckets::{
    self, BASE, Bucket, SHORT_TIMEOUTS, body, get, ingest_demo, of_bucket, run, run_ok, serve,
    text,
};
use crate::common::{Server, WAIT_TIMEOUT, checkout};
use crate::faults::kit;
use crate::nodes::{items_come_and_go_at_both, start_node_beside};

/// The demo photograph that these tests ask for.
const PICTURE: &str = "image/demo-trumma-och-vin";

/// Starts a cluster if this run has Garage; reports otherwise that the test is not run.
fn cluster() -> Option<Bucket> {
    if buckets::is_garage() {
        return Some(Bucket::start());
    }
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    // The test runner captures `eprintln!` and shows it for failed tests only.
    let mut errors = std::io::stderr().lock();
    writeln!(errors, "{test}: NOT RUN, it needs Garage: see tests/garage.sh").unwrap();
    None
}

impl Bucket {
    fn stop(&mut self, node: u8) {
        self.send_command(&json!({ "do": "stop", "node": node }));
    }

    fn start_again(&mut self, node: u8) {
        self.send_command(&json!({ "do": "start", "node": node }));
    }

    /// Settings of the archive below `prefix` whose endpoints are these storage nodes, without the gate.
    fn settings_at(&self, nodes: &[usize], prefix: &str, more: &[&str]) -> Vec<String> {
        let address = |node: &usize| format!("127.0.0.1:{}", self.s3.ready["ports"][node - 1]);
        let endpoints: Vec<String> = nodes.iter().map(address).collect();
        let own = of_bucket(&self.s3, &endpoints.join(",http://"), prefix);
        let more = BASE.iter().chain(more).map(|setting| (*setting).to_owned());
        own.into_iter().chain(more).collect()
    }
}

/// Requests a crop of [`PICTURE`] that is unique to the number; the status of the response.
fn crop(server: &Server, number: usize) -> u16 {
    let (width, height) = (100 + number % 300, 90 + number / 300);
    let path = format!("/media/{PICTURE}-crop_w{width}_h{height}_x400_y600.jpg");
    get(server, &path).status().as_u16()
}

/// Uploads the photograph of a number as `image/new<number>`; the status of the response.
fn upload(server: &Server, number: usize) -> u16 {
    let request =
        kit::upload(server, &format!("image/new{number}"), "Ny", &kit::photograph(number));
    request.send().unwrap().status().as_u16()
}

/// Requests that succeeded so far.
#[derive(Default)]
struct Completed {
    uploads: usize,
    crops: usize,
}

impl Completed {
    fn least(&self) -> usize {
        self.uploads.min(self.crops)
    }
}

/// Stops the other clients when one panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Uploads photographs and requests crops until `stop`; none fails.
fn load(server: &Server, stop: &AtomicBool, done: &Mutex<Completed>) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let _together = StopOnDrop(stop);
            for number in (0..).take_while(|_| !stop.load(SeqCst)) {
                assert_eq!(upload(server, number), 201, "upload {number}: {}", server.log());
                done.lock().unwrap().uploads += 1;
            }
        });
        scope.spawn(|| {
            let _together = StopOnDrop(stop);
            for number in (0..).take_while(|_| !stop.load(SeqCst)) {
                assert_eq!(crop(server, number), 200, "crop {number}: {}", server.log());
                done.lock().unwrap().crops += 1;
            }
        });
    });
}

#[test]
fn a_storage_node_killed_and_restarted_under_load_fails_no_request() {
    let Some(mut bucket) = cluster() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings_at(&[1, 2, 3], "wire", &[]);
    ingest_demo(dir.path(), &settings);
    let server = serve(dir, &settings);
    let (stop, done) = (AtomicBool::new(false), Mutex::new(Completed::default()));
    thread::scope(|scope| {
        let clients = scope.spawn(|| load(&server, &stop, &done));
        let goes_on = |what: &str| {
            let before = done.lock().unwrap().least();
            server.until(what, || {
                let more = done.lock().unwrap().least() - before;
                // A client that panicked is reported by `join`.
                (more >= 5 || stop.load(SeqCst)).then_some(())
            });
        };
        // Requests go to the first endpoint while it is up.
        for node in [1, 2, 3] {
            goes_on("work over three nodes");
            bucket.stop(node);
            goes_on("work over two nodes");
            bucket.start_again(node);
        }
        goes_on("work over three nodes again");
        stop.store(true, SeqCst);
        clients.join().unwrap();
    });
    for number in 0..done.lock().unwrap().uploads {
        body(&server, &format!("/media/image/new{number}.jpg"));
    }
    // The restarted nodes have everything too.
    for node in [1, 2, 3] {
        let said =
            run_ok(server.dir.path(), &bucket.settings_at(&[node], "wire", &[]), &["check"]);
        assert!(said.contains("0 problems"), "{said}");
    }
}

#[test]
fn a_cluster_without_quorum_is_503_in_time_and_recovers() {
    let Some(mut bucket) = cluster() else { return };
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    let settings = bucket.settings_at(&[1], "wire", &SHORT_TIMEOUTS);
    let server = serve(dir, &settings);
    let known = format!("/media/{PICTURE}_NormalPreview.jpg");
    let etag = get(&server, &known).headers()["etag"].to_str().unwrap().to_owned();
    let before = body(&server, &known);
    let mut number = 0;
    // Two of three, and then the one behind the endpoint.
    for (n, stopped) in [&[2, 3][..], &[1]].into_iter().enumerate() {
        assert_eq!(upload(&server, 2 * n), 201, "{}", server.log());
        stopped.iter().for_each(|node| bucket.stop(*node));
        server.until("the circuit to open", || {
            let start = Instant::now();
            number += 1;
            assert_eq!(crop(&server, number), 503, "{stopped:?}: {}", server.log());
            assert!(start.elapsed() < WAIT_TIMEOUT, "{stopped:?}");
            (server.metric("wirephoto_bucket_circuit_open", "") == 1.0).then_some(())
        });
        let refused = get(&server, "/media/graphic/demo-sweden-map.pdf");
        assert_eq!(refused.status(), 503, "{stopped:?}");
        assert_eq!(refused.headers()["cache-control"], "no-store");
        assert!(refused.headers().contains_key("retry-after"));
        assert_eq!(upload(&server, 2 * n + 1), 503, "{stopped:?}");
        assert_eq!(body(&server, &known), before, "cache hits are served");
        assert_eq!(server.get_with(&known, &[("if-none-match", &etag)]).status(), 304);
        for path in ["/content/v1/image/search?q=vin", &format!("/media/{PICTURE}.json")] {
            assert_eq!(server.get(path).status(), 200, "{path}");
        }
        stopped.iter().for_each(|node| bucket.start_again(*node));
        server.until("its return", || {
            number += 1;
            (crop(&server, number) == 200).then_some(())
        });
        server.until("an upload", || (upload(&server, 2 * n + 1) == 201).then_some(()));
    }
    for number in 0..4 {
        body(&server, &format!("/media/image/new{number}.jpg"));
    }
    assert!(run_ok(server.dir.path(), &settings, &["check"]).contains("0 problems"));
}

#[test]
fn a_revoked_key_is_named_and_its_replacement_finds_everything() {
    let Some(mut bucket) = cluster() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings_at(&[1], "wire", &SHORT_TIMEOUTS);
    ingest_demo(dir.path(), &settings);
    let photograph = text(&checkout(&format!("media-store/demo/{PICTURE}")));
    let fails = |server: &Server, settings: &[String], arguments: &[&str], words: &[&str]| {
        let (said, status) = run(server.dir.path(), settings, arguments);
        assert_eq!(status, 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
    };
    let server = serve(dir, &settings);
    assert_eq!(upload(&server, 0), 201);
    let id = bucket.s3.ready["id"].clone();
    // Write permission is revoked.
    bucket.send_command(&json!({ "do": "deny", "id": id, "right": "--write" }));
    let numbers = std::cell::Cell::new(0);
    server.until("uploads to be refused", || {
        numbers.set(numbers.get() + 1);
        let status = upload(&server, numbers.get());
        assert!([201, 503].contains(&status), "{status}: {}", server.log());
        (status == 503).then_some(())
    });
    assert_eq!(crop(&server, 1), 200, "reads still work");
    run_ok(server.dir.path(), &settings, &["check"]);
    let unwritten = ["store.access_key_id", "a small object cannot be written: AccessDenied"];
    fails(&server, &settings, &["ingest", &photograph], &unwritten);
    // The key is deleted.
    bucket.send_command(&json!({ "do": "revoke", "id": id }));
    server.until("crops to be refused", || {
        numbers.set(numbers.get() + 1);
        let status = crop(&server, numbers.get());
        assert!([200, 503].contains(&status), "{status}: {}", server.log());
        (status == 503).then_some(())
    });
    server.until("the circuit to open", || {
        numbers.set(numbers.get() + 1);
        assert_eq!(crop(&server, numbers.get()), 503, "{}", server.log());
        (server.metric("wirephoto_bucket_circuit_open", "") == 1.0).then_some(())
    });
    let log = server.log();
    let opened =
        log.lines().find(|line| line.contains("circuit open until")).expect("it is logged");
    assert!(opened.contains("AccessDenied: Forbidden: No such key"), "{opened}");
    assert!(opened.contains("see store.access_key_id"), "{opened}");
    fails(&server, &settings, &["check"], &["store.access_key_id", "No such key"]);
    let key: Value = bucket.send_command(&json!({ "do": "key" }));
    let with = |id: &Value, secret: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let new = [
            format!("store.access_key_id={}", text(id)),
            format!("store.secret_access_key={}", text(secret)),
        ];
        settings.iter().cloned().chain(new).collect::<Vec<_>>()
    };
    let half = with(&key["id"], &bucket.s3.ready["key"]);
    fails(&server, &half, &["check"], &["store.secret_access_key", "Invalid signature"]);
    let elsewhere: Vec<String> =
        settings.iter().map(|one| one.replace("eu-north-1", "garage")).collect();
    fails(&server, &elsewhere, &["check"], &["store.region", "AuthorizationHeaderMalformed"]);
    let new = with(&key["id"], &key["key"]);
    let server = server.restart(&new.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(upload(&server, 1000), 201, "{}", server.log());
    for number in [0, 1000] {
        body(&server, &format!("/media/image/new{number}.jpg"));
    }
    assert!(run_ok(server.dir.path(), &new, &["check"]).contains("0 problems"));
}

#[test]
fn a_paginated_listing_is_read_to_its_end() {
    const OBJECTS: usize = 1010;
    let Some(mut bucket) = cluster() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings_at(&[1], "wire", &[]);
    ingest_demo(dir.path(), &settings);
    let originals = bucket.keys("wire/originals/").len();
    bucket.send_command(&json!({ "do": "fill", "prefix": "wire/originals", "count": OBJECTS }));
    assert_eq!(bucket.keys("wire/originals/").len(), originals + OBJECTS);
    let (said, status) = run(dir.path(), &settings, &["check"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains(&format!("no item refers to {OBJECTS} originals")), "{said}");
}

/// Garage ignores `If-None-Match` on writes. Keys are hashes of the content, so concurrent writers of one key write
/// the same bytes.
#[test]
fn two_nodes_over_two_storage_nodes_agree_and_store_each_original_once() {
    const TIMES: usize = 5;
    let Some(mut bucket) = cluster() else { return };
    let settings = [1, 2].map(|node| bucket.settings_at(&[node], "wire", &[]));
    let [one, other] =
        settings.each_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
    let first = Server::start(kit::scene_with(&[], &one), &one);
    let second = start_node_beside(&first, &other);
    items_come_and_go_at_both(&first, &second);
    let before = bucket.keys("wire/originals/").len();
    for number in 0..TIMES {
        let jpeg = kit::photograph(number);
        let send = |server: &Server, name: &str| {
            let request = kit::upload(server, &format!("image/{name}{number}"), "Ny", &jpeg);
            request.send().unwrap().status()
        };
        let statuses = thread::scope(|scope| {
            let both = [scope.spawn(|| send(&first, "a")), scope.spawn(|| send(&second, "b"))];
            both.map(|one| one.join().unwrap())
        });
        assert_eq!(statuses, [201, 201], "{}{}", first.log(), second.log());
    }
    assert_eq!(bucket.keys("wire/originals/").len(), before + TIMES);
    for path in ["a0", "b0"].map(|name| format!("/media/image/{name}.jpg")) {
        second.until("it to be known", || (get(&second, &path).status() == 200).then_some(()));
        assert_eq!(body(&first, &path), body(&second, &path));
    }
    let backup = text(&first.dir.path().join("backup"));
    let said = run_ok(first.dir.path(), &settings[1], &["backup", &backup, "--verify"]);
    assert!(fs::exists(first.dir.path().join("backup/backup.json")).unwrap(), "{said}");
}
