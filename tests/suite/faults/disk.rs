//! Disks that are full, failing or read-only: writes are refused with 503 and can be retried, reads continue, and
//! nothing acknowledged is lost.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reqwest::Method;
use reqwest::blocking::RequestBuilder;
use serde_json::{Value, json};

use super::kit::{
    BUYER, Faults, call, call_with, colour, create_mail, create_stream, document, downloads_used,
    form, login, ok_json, orders, photograph, post, read_stream, scene, text, upload,
    wait_for_matches,
};
use crate::common::api::ApiCaller;
use crate::common::pictures::Picture;
use crate::common::{DEMO_KEY, Server};
use crate::search::ids;

/// The state before the fault.
struct Before {
    collection: String,
    stream: String,
    refresh: String,
    access: String,
}

/// A server with two photographs, one of them bought, a collection, a stream with an item, and a token set.
fn before(faults: &Faults, settings: &[&str]) -> (Server, Before) {
    let dir = scene(&[("image/old", document("Gammal")), ("image/two", document("Zwei"))]);
    let server = faults.start(dir, &[&["server.unready_s=0"], settings].concat());
    let collection = ApiCaller::key(&server, DEMO_KEY).collect("before", false, &[]);
    let stream = create_stream(&server, "");
    assert_eq!(
        upload(&server, "image/first", "Första", &photograph(1)).send().unwrap().status(),
        201
    );
    let set = ok_json(post(&server, "token", &login()).send().unwrap());
    let bought = call(&server, Method::GET, "/media/image/old.jpg", BUYER).send().unwrap();
    assert_eq!(bought.status(), 200);
    wait_for_matches(&server, 1);
    let refresh = text(&set, "refresh_token");
    let before = Before { collection, stream, refresh, access: text(&set, "access_token") };
    (server, before)
}

/// Requests that write, each with a name.
fn changes(server: &Server, before: &Before) -> Vec<(&'static str, RequestBuilder)> {
    let collection = format!("/collection/v1/collection/{}", before.collection);
    let items = json!([{ "uri": format!("{}/media/image/two", server.url) }]);
    let stream = format!("/content/v1/_all/notification/{}/stream?wait=1", before.stream);
    let document = document("Text");
    let refresh = form(&[("grant_type", "refresh_token"), ("refresh_token", &before.refresh)]);
    vec![
        ("a photograph", upload(server, "image/new", "Ny", &photograph(7))),
        (
            "a document",
            call_with(
                server,
                (Method::PUT, "/ingest/v1/text/new"),
                super::kit::PROVIDER,
                &document,
            ),
        ),
        (
            "a withdrawal",
            call(server, Method::DELETE, "/ingest/v1/image/first", super::kit::PROVIDER),
        ),
        ("a purchase", call(server, Method::GET, "/media/image/two.jpg", BUYER)),
        ("a login", post(server, "token", &login())),
        ("a refresh", post(server, "token", &refresh)),
        ("a stream", call(server, Method::GET, &stream, DEMO_KEY)),
        (
            "a new collection",
            call_with(
                server,
                (Method::POST, "/collection/v1/collection"),
                DEMO_KEY,
                &json!({ "name": "new" }),
            ),
        ),
        (
            "more in a collection",
            call_with(server, (Method::POST, &format!("{collection}/items")), DEMO_KEY, &items),
        ),
        (
            "a profile",
            call_with(server, (Method::PUT, "/user/v1/profile"), DEMO_KEY, &json!({ "a": 1 })),
        ),
        (
            "a notification",
            call(server, Method::POST, "/content/v1/image/notification/stream?q=hav", DEMO_KEY),
        ),
    ]
}

/// Every read succeeds as usual.
fn reads(server: &Server, before: &Before, round: usize) {
    let bearer = format!("Bearer {}", before.access);
    let check = |path: &str, authorization: &str| {
        let headers = [("authorization", authorization)];
        let response = server.get_with(path, &headers);
        assert_eq!(response.status(), 200, "{path}: {}", response.text().unwrap());
    };
    let editor = format!("ApiKey {DEMO_KEY}");
    for path in [
        "/health/live",
        "/health/ready",
        "/media/image/old.json",
        "/content/v1/image/search?q=zwei",
        "/user/v1/profile",
        &format!("/collection/v1/collection/{}", before.collection),
    ] {
        check(path, &editor);
    }
    check("/o/v2/user", &bearer);
    // A crop that was never requested, and a Hires that was bought before.
    let crop = format!("/media/image/old-crop_w{}_h20_NormalPreview.jpg", 20 + round);
    let jpeg = server.bytes(&crop);
    assert_eq!(Picture::decode(&jpeg).size(), (20 + round, 20));
    check("/media/image/old.jpg", &format!("ApiKey {BUYER}"));
}

/// Writes are refused while the fault lasts, and succeed afterwards without a restart.
fn check(fault: &str) {
    let faults = Faults::new();
    let (server, before) = before(&faults, &[]);
    faults.set(&[&format!("{fault} {}", server.data().display())]);
    for round in 0..2 {
        for (name, change) in changes(&server, &before) {
            let response = change.send().unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            let body = response.text().unwrap();
            assert_eq!(status, 503, "{fault}, {name}: {body}");
            assert!(headers.contains_key("retry-after"), "{fault}, {name}: {headers:?}");
            assert_eq!(headers["cache-control"], "no-store", "{fault}, {name}");
        }
        // A client that revokes a token is notified that it was not revoked.
        let revoked = form(&[("token", &before.refresh)]);
        assert_eq!(post(&server, "revoke", &revoked).send().unwrap().status(), 503, "{fault}");
        reads(&server, &before, round);
    }
    assert!(server.metric("wirephoto_database_errors_total", "kind=\"other\"") > 0.0, "{fault}");
    faults.clear();
    for (name, change) in changes(&server, &before) {
        let response = change.send().unwrap();
        let status = response.status();
        assert!(status.is_success(), "{fault}, {name}: {status} {}", response.text().unwrap());
        if name == "a stream" {
            // The item queued before the fault, and the one after it, each once.
            let seen = std::cell::RefCell::new(ids(&response.json().unwrap()));
            server.until("the new items", || {
                let more = ids(&ok_json(read_stream(&server, &before.stream)));
                let mut seen = seen.borrow_mut();
                *seen = format!("{seen} {more}").trim().to_owned();
                (seen.split(' ').count() >= 2).then_some(())
            });
            let seen = seen.into_inner();
            assert_eq!(seen, "new new", "{fault}: the first one was withdrawn");
        }
    }
    let hires = server
        .get_with("/media/image/new.jpg", &[("authorization", &format!("ApiKey {DEMO_KEY}"))]);
    assert_eq!(hires.status(), 200);
    let jpeg = hires.bytes().unwrap();
    let seen = Picture::decode(&jpeg).at(16, 16);
    assert!(seen.iter().zip(colour(7)).all(|(a, b)| a.abs_diff(b) < 8), "{seen:?}");
    let orders = orders(&server);
    assert_eq!(orders.len(), 2, "{fault}: {orders:?}");
    server.until("the downloads to be counted", || (downloads_used(&server) == 2).then_some(()));
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

#[test]
fn a_full_disk_refuses_writes_with_503_until_there_is_space_again() {
    check("enospc");
}

#[test]
fn a_disk_with_write_errors_refuses_writes_with_503_until_it_works_again() {
    check("eio-write");
}

#[test]
fn a_write_that_cannot_be_flushed_to_disk_is_not_acknowledged() {
    check("eio-fsync");
}

#[test]
fn a_read_only_folder_serves_reads_and_refuses_writes_with_503() {
    check("erofs");
}

/// A photograph with a working copy, and a standard set with a base: large, and progressive.
fn large() -> Vec<u8> {
    let mut transform = turbojpeg::Transform::op(turbojpeg::TransformOp::None);
    transform.progressive = true;
    turbojpeg::transform(&transform, &Picture::waves(2600, 1800).jpeg()).unwrap().to_vec()
}

#[test]
fn without_space_for_derived_files_everything_is_served() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["media.warm=false"]);
    faults.set(&["enospc /derived/"]);
    let jpeg = large();
    let taken = upload(&server, "image/large", "Stor", &jpeg).send().unwrap();
    assert_eq!(taken.status(), 201, "{}", server.log());
    let preview = "/media/image/large_NormalPreview.jpg";
    let crop = "/media/image/large-crop_w300_h200_x50_y60_NormalPreview.jpg";
    let full = [server.bytes(preview), server.bytes(crop), server.bytes(crop)];
    for rest in ["_NormalThumbnail", "_WebPreview"] {
        server.bytes(&format!("/media/image/large{rest}.jpg"));
    }
    let warnings = || server.log().matches("rendition cache: ").count();
    server.until("the cache to fail", || (warnings() > 0).then_some(()));
    assert_eq!(warnings(), 1, "one line for all of them: {}", server.log());
    faults.clear();
    // Missing derived files cause no failure, before or after a restart.
    let other = "/media/image/large-crop_w301_h200_x50_y60_NormalPreview.jpg";
    assert_eq!(Picture::decode(&server.bytes(other)).size(), (301, 200));
    let server = server.restart(&["media.warm=false"]);
    assert_eq!(Picture::decode(&server.bytes(preview)).size(), Picture::decode(&full[0]).size());
    let likeness = Picture::decode(&server.bytes(crop)).psnr(&Picture::decode(&full[1]));
    assert!(likeness > 30.0, "{likeness} dB");
    assert!(server.command(&["check"]).status.success());
}

#[test]
fn derived_files_without_space_are_created_later() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["media.warm=false"]);
    faults.set(&["enospc /derived/working", "enospc /derived/standard"]);
    let taken = upload(&server, "image/large", "Stor", &large()).send().unwrap();
    assert_eq!(taken.status(), 201, "{}", server.log());
    // As if the originals were copied to another disk: same bytes, another modification time.
    for path in files(&server.data().join("originals")) {
        let then = SystemTime::now() - Duration::from_secs(7200);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
    let path = format!("/media/image/large.jpg?ak={DEMO_KEY}");
    assert!(server.bytes(&path).len() > 100_000);
    faults.clear();
    let server = server.restart(&["media.warm=false"]);
    let crop = "/media/image/large-crop_w300_h200_x50_y60_NormalPreview.jpg";
    assert_eq!(Picture::decode(&server.bytes(crop)).size(), (300, 200));
    for kind in ["working", "standard"] {
        let found = files(&server.data().join("derived").join(kind));
        assert_eq!(found.len(), 1, "the {kind} file is made when there is room");
    }
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Runs a quick check and returns its result for the standard renditions.
fn standard_renditions(server: &Server) -> Value {
    let output = server.command(&["check", "--quick", "--json"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    summary["standardRenditions"].clone()
}

#[test]
fn an_unreadable_original_does_not_stop_the_standard_renditions_of_the_others() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["media.warm=false"]);
    let data = server.data();
    let is_last = |path: &PathBuf| fs::read(path).unwrap() == photograph(1);
    let (last, others): (Vec<_>, Vec<_>) =
        files(&data.join("originals")).into_iter().partition(is_last);
    let place = |path: &PathBuf| path.strip_prefix(data.join("originals")).unwrap().to_owned();
    let rule = |path: &PathBuf| format!("eio-read /originals/{}", place(path).display());
    let rules: Vec<String> =
        others.iter().filter(|path| !path.ends_with("archive-id")).map(rule).collect();
    assert!(!rules.is_empty());
    let dir = server.kill();
    faults.set(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    let server = faults.start(dir, &[]);
    // The set has the name of its original.
    let set = data.join("derived/standard").join(place(&last[0]));
    server.until("the set of the last item", || set.is_file().then_some(()));
    server.until("the progress", || {
        let expected = json!({ "made": 1, "failed": 2, "toGo": 0 });
        (standard_renditions(&server) == expected).then_some(())
    });
}

#[test]
fn without_space_no_item_loses_its_standard_renditions() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["media.warm=false"]);
    let dir = server.kill();
    faults.set(&["enospc /derived/standard/"]);
    let server = faults.start(dir, &[]);
    server.until("a run that failed", || {
        server.log().contains("standard-renditions: failed").then_some(())
    });
    assert_eq!(standard_renditions(&server), json!({ "made": 0, "failed": 0, "toGo": 3 }));
}

#[test]
fn an_original_that_cannot_be_read_is_503_and_never_a_picture() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["media.warm=false"]);
    faults.set(&["eio-read /originals/"]);
    let key = format!("ApiKey {DEMO_KEY}");
    let headers = [("authorization", key.as_str())];
    for path in [
        "/media/image/first.jpg",
        "/media/image/first-crop_w20_h20_NormalPreview.jpg",
        "/media/image/first-watermark.jpg",
    ] {
        let response = server.get_with(path, &headers);
        let facts = (response.status().as_u16(), response.headers()["cache-control"].clone());
        assert_eq!((facts.0, facts.1.to_str().unwrap()), (503, "no-store"), "{path}");
        assert!(response.headers().contains_key("retry-after"), "{path}");
    }
    assert_eq!(server.get("/health/live").status(), 200);
    assert_eq!(server.get("/media/image/first.json").status(), 200);
    faults.clear();
    assert_eq!(server.get_with("/media/image/first.jpg", &headers).status(), 200);
    // A derived file that cannot be read is rebuilt.
    faults.set(&["eio-read /derived/"]);
    let jpeg = server.bytes("/media/image/first-crop_w21_h20_NormalPreview.jpg");
    assert_eq!(Picture::decode(&jpeg).size(), (21, 20));
}

#[test]
fn an_unreadable_database_is_503_until_it_can_be_read_again() {
    let faults = Faults::new();
    let (server, before) = before(&faults, &[]);
    faults.set(&["eio-read /wirephoto.db"]);
    let key = format!("ApiKey {DEMO_KEY}");
    let ready = |expected: u16| {
        server.until("readiness", || {
            (server.get("/health/ready").status() == expected).then_some(())
        });
    };
    ready(503);
    for path in ["/content/v1/image/search?q=gammal", "/user/v1/profile", "/health/ready"] {
        let response = server.get_with(path, &[("authorization", key.as_str())]);
        let kept = response.headers()["cache-control"].to_str().unwrap().to_owned();
        assert_eq!((response.status().as_u16(), kept), (503, "no-store".to_owned()), "{path}");
    }
    assert_eq!(post(&server, "token", &login()).send().unwrap().status(), 503);
    assert_eq!(server.get("/health/live").status(), 200);
    faults.clear();
    ready(200);
    reads(&server, &before, 0);
}

fn mails(server: &Server) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.data().join("outbox")).into_iter().flatten().flatten();
    let is_mail = |path: &PathBuf| path.extension().is_some_and(|end| end == "eml");
    entries.map(|entry| entry.path()).filter(is_mail).collect()
}

#[test]
fn a_mail_without_space_in_the_outbox_is_written_later_once() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &["notifications.retry_first_ms=50"]);
    create_mail(&server);
    faults.set(&["enospc /outbox"]);
    for (key, number) in [("image/a", 2), ("image/b", 3)] {
        assert_eq!(
            upload(&server, key, "Mail", &photograph(number)).send().unwrap().status(),
            201
        );
    }
    let retries = || server.log().matches("\"outcome\":\"retry\"").count();
    server.until("the mails to be tried", || (retries() >= 2).then_some(()));
    assert_eq!(mails(&server), Vec::<PathBuf>::new());
    faults.clear();
    server.until("the mails to be written", || (mails(&server).len() >= 2).then_some(()));
    assert_eq!(server.get("/health/live").status(), 200);
    assert_eq!(mails(&server).len(), 2);
}

#[test]
fn a_watched_folder_waits_for_space_and_retries_failed_reads_and_moves() {
    let faults = Faults::new();
    let watched = tempfile::tempdir().unwrap();
    let folder = format!("ingest.watch={}", watched.path().display());
    let (server, _) = before(&faults, &[&folder, "ingest.watch_interval_ms=50"]);
    let there = |name: &str| watched.path().join(name).is_file();
    // It is renamed into place: on a busy machine a file that is still being written could look complete.
    let put = |name: &str, bytes: &[u8]| {
        let hidden = watched.path().join(".coming");
        fs::write(&hidden, bytes).unwrap();
        fs::rename(hidden, watched.path().join(name)).unwrap();
    };
    // No space for the original.
    faults.set(&["enospc /originals/"]);
    put("late.jpg", &photograph(20));
    server.until("the try to fail", || {
        server.log().contains("ingest postponed, retrying").then_some(())
    });
    assert!(there("late.jpg"));
    faults.clear();
    server.until("the photograph to come in", || there("done/late.jpg").then_some(()));
    assert_eq!(server.get("/media/image/late.json").status(), 200);
    // It is ingested but cannot be moved away: a link has replaced the folder.
    let (done, aside) = (watched.path().join("done"), watched.path().join(".done-aside"));
    fs::rename(&done, &aside).unwrap();
    std::os::unix::fs::symlink("nowhere", &done).unwrap();
    put("stuck.jpg", &photograph(21));
    server.until("the move to fail", || server.log().contains("cannot be moved").then_some(()));
    assert_eq!(server.get("/media/image/stuck.json").status(), 200);
    fs::remove_file(&done).unwrap();
    fs::rename(&aside, &done).unwrap();
    server.until("the photograph to be moved", || there("done/stuck.jpg").then_some(()));
    // A file that the disk cannot read now is not a bad file.
    faults.set(&["eio-read /unread.jpg"]);
    let tries = || server.log().matches("ingest postponed, retrying").count();
    let before = tries();
    put("unread.jpg", &photograph(22));
    server.until("the reading to fail", || (tries() > before).then_some(()));
    faults.clear();
    server.until("the photograph to be read", || there("done/unread.jpg").then_some(()));
    // Nor is a fake video, which is detected only once it is read.
    faults.set(&["eio-read /unread.mp4"]);
    let before = tries();
    put("unread.mp4", &[b' '; 500]);
    server.until("the reading to fail", || (tries() > before).then_some(()));
    assert!(there("unread.mp4"), "{}", server.log());
    faults.clear();
    server.until("the video to be read", || there("failed/unread.mp4").then_some(()));
}

#[test]
fn an_ingest_that_runs_out_of_space_says_so_and_can_be_repeated() {
    let faults = Faults::new();
    let (server, _) = before(&faults, &[]);
    let file = server.dir.path().join("many.jsonl");
    let line = |number: usize| {
        let mut line = document("Rad");
        line["uri"] = json!(format!("http://h/media/text/row{number}"));
        line.to_string()
    };
    fs::write(&file, (0..50).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let file = file.to_string_lossy().into_owned();
    faults.set(&["enospc /data/"]);
    let said = faults.command(&server, &["ingest", &file]);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{errors}");
    assert!(errors.contains("full"), "{errors}");
    faults.clear();
    let said = faults.command(&server, &["ingest", &file]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let found = || {
        let search = format!("/content/v1/text/search?q=rad&s=0&ak={DEMO_KEY}");
        let body: Value = server.get(&search).json().unwrap();
        (body["total"] == 50).then_some(())
    };
    server.until("all lines to be found", found);
}

/// Runs a start that must fail; returns its output.
fn start_fails(faults: &Faults, server: &Server) -> String {
    let mut command = crate::common::server::wirephoto(server.dir.path());
    command.envs(faults.environment()).args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    let said = crate::common::server::output(command.arg(server.data()));
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{text}");
    text
}

#[test]
fn a_start_on_a_full_disk_serves_reads_or_names_the_folder() {
    let faults = Faults::new();
    let (mut server, before) = before(&faults, &[]);
    let data = server.data();
    let full = format!("enospc {}", data.display());
    // The space of the WAL index is free again when the index is rebuilt.
    let nearly = ["wirephoto.db-wal", "originals", "uploads", "derived", "outbox"]
        .map(|name| format!("enospc {}/{name}", data.display()));
    let start = |mut server: Server| {
        let dir = std::mem::replace(&mut server.dir, tempfile::tempdir().unwrap());
        drop(server);
        faults.start(dir, &["server.unready_s=0"])
    };
    // The files left after a crash suffice for reading.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    faults.set(&nearly.each_ref().map(String::as_str));
    let mut server = start(server);
    reads(&server, &before, 0);
    for (name, change) in changes(&server, &before) {
        assert_eq!(change.send().unwrap().status(), 503, "{name}");
    }
    faults.clear();
    for (name, change) in changes(&server, &before) {
        // A node that could not write its heartbeat does so soon after it can.
        server.until(name, || {
            let status = change.try_clone().unwrap().send().unwrap().status();
            status.is_success().then_some(())
        });
    }
    // After a clean stop the database needs a new file.
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success());
    faults.set(&[&full]);
    let said = start_fails(&faults, &server);
    let named = said.contains(&data.display().to_string());
    assert!(named && said.contains("No space left on device"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    faults.clear();
    assert_eq!(start(server).get("/media/image/new.json").status(), 200);
}
