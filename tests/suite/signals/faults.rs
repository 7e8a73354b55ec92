//! Each alert rule fires while its fault lasts and resolves afterwards: faults of a real service, recorded as
//! Prometheus scrapes it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use reqwest::Method;

use super::recording::Recording;
use crate::buckets::{Bucket, Fault, SHORT_TIMEOUTS, get, ingest_demo, serve};
use crate::common::postgres::Cluster;
use crate::common::{DEMO_KEY, Server};
use crate::faults::kit::{
    Faults, call, call_with, document, form, photograph, post, scene, scene_with, upload,
};

/// A service with one photograph, and with faults that are not injected yet.
fn service(faults: &Faults, settings: &[&str]) -> Server {
    let dir = scene(&[("image/old", document("Gammal"))]);
    let server = faults.start(dir, &[&["server.unready_s=0"], settings].concat());
    until_healthy(&server);
    server
}

/// Waits until the service reports no fault.
pub(super) fn until_healthy(server: &Server) {
    server.wait_for_index();
    server.until("a service that is well", || {
        let is_ready = server.metric("wirephoto_ready", "") == 1.0;
        (is_ready && server.metric("wirephoto_fault", "") == 0.0).then_some(())
    });
}

/// Waits until the service reports this fault.
pub(super) fn until_fault(server: &Server, fault: &str) {
    let has = || server.metric("wirephoto_fault", &format!("fault=\"{fault}\"")) == 1.0;
    server.until(fault, || has().then_some(()));
}

/// The number of failed database calls so far.
fn failed(server: &Server) -> f64 {
    server.metric("wirephoto_database_errors_total", "")
}

/// Repeats `ask` until as many database calls failed as in a minute of an outage.
fn fail_for_a_minute(server: &Server, ask: &dyn Fn() -> u16) {
    let before = failed(server);
    server.until("failures", || {
        assert_eq!(ask(), 503);
        (failed(server) >= before + 10.0).then_some(())
    });
}

#[test]
fn an_unreachable_bucket_alerts_until_it_is_back() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    let server = serve(dir, &bucket.settings("wire", &SHORT_TIMEOUTS));
    until_healthy(&server);
    let widths = std::cell::Cell::new(100);
    let crop = || {
        widths.set(widths.get() + 1);
        let width = widths.get();
        let path = format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x400_y600.jpg");
        get(&server, &path).status().as_u16()
    };
    let away = || server.metric("wirephoto_bucket_circuit_open", "") == 1.0;
    let mut recording = Recording::default();
    assert_eq!(crop(), 200);
    recording.record(&server, 5);
    recording.expect(&[]);
    bucket.gate.inject("", Fault::Hang);
    server.until("it to be left alone", || {
        assert_eq!(crop(), 503);
        away().then_some(())
    });
    until_fault(&server, "store");
    for _ in 0..4 {
        assert_eq!(crop(), 503);
        recording.record(&server, 1);
    }
    // The only node stays ready: it can serve cached renditions.
    recording.expect(&["WirephotoBucketAway", "WirephotoFault"]);
    bucket.gate.clear_fault();
    server.until("its return", || (crop() == 200 && !away()).then_some(()));
    until_healthy(&server);
    recording.record(&server, 10);
    recording.expect(&[]);
    recording.check();
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The file with these bytes.
fn original(server: &Server, bytes: &[u8]) -> PathBuf {
    let all = files(&server.data().join("originals"));
    all.into_iter().find(|path| fs::read(path).unwrap() == bytes).unwrap()
}

#[test]
fn a_damaged_original_alerts_for_a_quarter_of_an_hour() {
    let server = Server::start(scene(&[]), &["media.warm=false"]);
    let jpeg = photograph(3);
    let send = || upload(&server, "image/one", "Ett", &jpeg).send().unwrap().status().as_u16();
    assert_eq!(send(), 201);
    until_healthy(&server);
    let hires = || {
        let request = call(&server, Method::GET, "/media/image/one.jpg", DEMO_KEY);
        request.send().unwrap().status().as_u16()
    };
    let mut recording = Recording::default();
    assert_eq!(hires(), 200);
    // Half an hour, so that the alert is not the one for a service that has just started.
    recording.record(&server, 30);
    recording.expect(&[]);
    let original = original(&server, &jpeg);
    let mut bytes = fs::read(&original).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&original, bytes).unwrap();
    assert_eq!(hires(), 500);
    recording.record(&server, 1);
    recording.expect(&["WirephotoOriginalDamaged"]);
    assert_eq!(send(), 200);
    assert_eq!(hires(), 200);
    recording.record(&server, 20);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn a_damaged_original_found_before_the_first_scrape_alerts() {
    let server = Server::start(scene(&[]), &["media.warm=false"]);
    let jpeg = photograph(3);
    let sent = upload(&server, "image/one", "Ett", &jpeg).send().unwrap();
    assert_eq!(sent.status(), 201);
    until_healthy(&server);
    fs::remove_file(original(&server, &jpeg)).unwrap();
    let server = server.restart(&["media.warm=false"]);
    let request = call(&server, Method::GET, "/media/image/one.jpg", DEMO_KEY);
    assert_eq!(request.send().unwrap().status(), 500);
    until_healthy(&server);
    let mut recording = Recording::default();
    recording.record(&server, 2);
    recording.expect(&["WirephotoOriginalDamaged"]);
    recording.record(&server, 20);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn a_failing_database_alerts_until_it_answers() {
    let faults = Faults::new();
    let server = service(&faults, &[]);
    let mut recording = Recording::default();
    recording.record(&server, 5);
    recording.expect(&[]);
    faults.set(&["eio-read /wirephoto.db"]);
    let profile = || {
        call(&server, Method::GET, "/user/v1/profile", DEMO_KEY).send().unwrap().status().as_u16()
    };
    until_fault(&server, "database");
    for _ in 0..5 {
        fail_for_a_minute(&server, &profile);
        recording.record(&server, 1);
    }
    recording.expect(&["WirephotoDatabaseErrors", "WirephotoFault", "WirephotoNotReady"]);
    faults.clear();
    server.until("its return", || (profile() == 200).then_some(()));
    until_healthy(&server);
    recording.record(&server, 10);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn a_full_disk_alerts_until_there_is_room() {
    let faults = Faults::new();
    let server = service(&faults, &[]);
    let mut recording = Recording::default();
    recording.record(&server, 5);
    recording.expect(&[]);
    faults.set(&[&format!("enospc {}", server.data().display())]);
    until_fault(&server, "disk");
    let write = || {
        let profile = serde_json::json!({ "a": 1 });
        let request = call_with(&server, (Method::PUT, "/user/v1/profile"), DEMO_KEY, &profile);
        request.send().unwrap().status().as_u16()
    };
    for _ in 0..5 {
        fail_for_a_minute(&server, &write);
        recording.record(&server, 1);
    }
    recording.expect(&["WirephotoDatabaseErrors", "WirephotoFault"]);
    faults.clear();
    server.until("room", || (200..300).contains(&write()).then_some(()));
    until_healthy(&server);
    recording.record(&server, 10);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn a_full_disk_with_a_remote_database_alerts_until_there_is_room() {
    let (cluster, faults) = (Cluster::start(), Faults::new());
    let url = format!("database.url={}", cluster.database("archive"));
    let dir = scene_with(&[("image/old", document("Gammal"))], &[&url]);
    let server = faults.start(dir, &[&url]);
    until_healthy(&server);
    let mut recording = Recording::default();
    recording.record(&server, 5);
    recording.expect(&[]);
    faults.set(&[&format!("enospc {}", server.data().display())]);
    until_fault(&server, "disk");
    let send = || upload(&server, "image/one", "Ett", &photograph(3)).send().unwrap().status();
    for _ in 0..4 {
        assert_eq!(send(), 503);
        recording.record(&server, 1);
    }
    recording.expect(&["WirephotoFault"]);
    faults.clear();
    assert_eq!(send(), 201);
    until_healthy(&server);
    recording.record(&server, 10);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn nodes_with_different_settings_alert_until_they_agree() {
    let first = Server::start(scene(&[]), &["server.public_url=http://photos.example"]);
    until_healthy(&first);
    let mut recording = Recording::default();
    recording.record(&first, 5);
    recording.expect(&[]);
    let start_second = |url: &str| {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(first.data(), dir.path().join("data")).unwrap();
        Server::start(dir, &[&format!("server.public_url={url}")])
    };
    let differs = || first.metric("wirephoto_nodes_differ", "server.public_url") == 1.0;
    let second = start_second("http://other.example");
    first.until("the difference to be told", || differs().then_some(()));
    recording.record(&first, 16);
    recording.expect(&["WirephotoNodesDiffer"]);
    assert!(second.stop().0.success());
    let second = start_second("http://photos.example");
    second.until("two nodes", || (second.metric("wirephoto_nodes", "") == 2.0).then_some(()));
    first.until("nothing to be told", || (!differs()).then_some(()));
    until_healthy(&first);
    recording.record(&first, 2);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn a_missing_or_crash_looping_service_alerts() {
    let mut server = Server::start(scene(&[]), &[]);
    let mut recording = Recording::default();
    until_healthy(&server);
    recording.record(&server, 40);
    recording.expect(&[]);
    server.signal("KILL");
    server.child.wait().unwrap();
    recording.record(&server, 4);
    recording.expect(&["WirephotoDown"]);
    // It is up at every scrape, and never for long.
    let mut server = server.restart_killed(&[]);
    for _ in 0..3 {
        until_healthy(&server);
        recording.record(&server, 2);
        recording.expect(&[]);
        server = server.restart(&[]);
    }
    until_healthy(&server);
    recording.record(&server, 2);
    recording.expect(&["WirephotoRestarts"]);
    recording.record(&server, 40);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn unreadable_settings_and_lost_log_lines_alert() {
    // /dev/full refuses every byte, like a full disk; lines are lost before the first scrape.
    let server = Server::start(scene(&[]), &["telemetry.log_file=/dev/full"]);
    server.until("lost lines", || {
        (server.metric("wirephoto_log_lines_lost_total", "") > 0.0).then_some(())
    });
    until_healthy(&server);
    let mut recording = Recording::default();
    recording.record(&server, 1);
    recording.expect(&["WirephotoLogLinesLost"]);
    recording.record(&server, 20);
    recording.expect(&[]);
    let reload = |text: &str, outcome: &str| {
        let count = || server.metric("wirephoto_reloads_total", outcome);
        let before = count();
        fs::write(server.dir.path().join("wirephoto.toml"), text).unwrap();
        server.signal("HUP");
        server.until("the reload", || (count() > before).then_some(()));
    };
    reload("[media]\nno_such_setting = 1\n", "failed");
    recording.record(&server, 1);
    // The log lines of these requests are lost too.
    recording.expect(&["WirephotoLogLinesLost", "WirephotoReloadFails"]);
    reload("[media]\n", "done");
    recording.record(&server, 20);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn password_guessing_alerts_while_it_continues() {
    let server = Server::start(scene(&[]), &["auth.hash_memory_kib=64", "auth.hash_iterations=1"]);
    until_healthy(&server);
    let guess = || {
        let fields = form(&[
            ("grant_type", "password"),
            ("username", "demo-editor"),
            ("password", "wrong"),
            ("scope", "roles user"),
        ]);
        assert!(!post(&server, "token", &fields).send().unwrap().status().is_success());
    };
    let throttled = || server.metric("wirephoto_logins_total", "throttled");
    let mut recording = Recording::default();
    recording.record(&server, 5);
    recording.expect(&[]);
    // A user who forgot the password.
    (0..12).for_each(|_| guess());
    recording.record(&server, 20);
    recording.expect(&[]);
    for _ in 0..4 {
        let before = throttled();
        server.until("refusals", || {
            guess();
            (throttled() >= before + 40.0).then_some(())
        });
        recording.record(&server, 1);
    }
    recording.expect(&["WirephotoLoginsThrottled"]);
    recording.record(&server, 20);
    recording.expect(&[]);
    recording.check();
}

#[test]
fn an_unbuildable_search_index_alerts_until_it_is_whole() {
    let faults = Faults::new();
    let server = service(&faults, &[]);
    let dir = server.kill();
    fs::remove_dir_all(dir.path().join("data/search")).unwrap();
    faults.set(&["enospc /search/"]);
    let server = faults.start(dir, &[]);
    until_fault(&server, "search");
    let mut recording = Recording::default();
    recording.record(&server, 32);
    recording.expect(&["WirephotoSearchIndexNotWhole"]);
    faults.clear();
    until_healthy(&server);
    server.until("a whole index", || {
        (server.metric("wirephoto_search_index_whole", "") == 1.0).then_some(())
    });
    recording.record(&server, 10);
    recording.expect(&[]);
    recording.check();
}
