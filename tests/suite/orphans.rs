//! Originals that no item refers to: a warning of `wirephoto check`, which removes old ones on request; a refused upload
//! leaves none.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::buckets::{Bucket, run, run_ok, serve};
use crate::common::Server;
use crate::common::pictures::Picture;
use crate::common::postgres::Cluster;
use crate::faults::kit::{self, document, photograph, upload};

/// The originals below a data directory.
fn originals(server: &Server) -> Vec<PathBuf> {
    let folders = fs::read_dir(server.data().join("originals")).unwrap().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten();
    files.map(|file| file.path()).collect()
}

fn make_old(file: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    File::options().write(true).open(file).unwrap().set_modified(then).unwrap();
}

/// The summary of a check.
fn summary(dir: &Path, settings: &[String], arguments: &[&str]) -> Value {
    let said = run_ok(dir, settings, &[&["check", "--json"], arguments].concat());
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

fn put(server: &Server, key: &str, jpeg: &[u8]) -> u16 {
    upload(server, key, "Ny", jpeg).send().unwrap().status().as_u16()
}

/// An upload of which one part is no picture.
fn put_with_a_bad_part(server: &Server, good: &[u8]) -> u16 {
    let mut body = Vec::new();
    let document = document("Ny").to_string().into_bytes();
    let parts = [
        ("item", document.as_slice()),
        ("NormalHires.jpg", good),
        ("NormalPreview.jpg", b"no picture"),
    ];
    for (name, bytes) in parts {
        let head = format!("--xyzzy\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    body.extend(b"--xyzzy--\r\n");
    let request = kit::call(server, reqwest::Method::PUT, "/ingest/v1/image/bad", kit::PROVIDER);
    let request = request.header("content-type", "multipart/form-data; boundary=xyzzy");
    request.body(body).send().unwrap().status().as_u16()
}

#[test]
fn orphans_are_a_warning_and_only_old_ones_are_pruned() {
    let dir = kit::scene(&[("image/old", document("Gammal"))]);
    let server = Server::start(dir, &["media.warm=false"]);
    let dir = server.dir.path();
    let before = originals(&server);
    assert_eq!(put(&server, "image/old", &Picture::corners(96, 64).jpeg()), 200);
    let orphan = &before[0];
    let bytes = fs::metadata(orphan).unwrap().len();
    // A check looks at a new one for some seconds: it may belong to an ingest.
    make_old(orphan, 1);
    for arguments in [&[][..], &["--quick"], &["--repair"]] {
        let said = summary(dir, &[], arguments);
        assert_eq!(said["orphans"], json!({ "count": 1, "bytes": bytes }), "{said}");
        assert_eq!(said["problems"], 0, "{said}");
        let said = run_ok(dir, &[], &[&["check"], arguments].concat());
        let warning = format!("warning: no item refers to 1 originals of {bytes} bytes");
        assert!(said.contains("0 problems") && said.contains(&warning), "{said}");
    }
    let named = run_ok(dir, &[], &["check", "--quick", "--json"]);
    let name = orphan.file_name().unwrap().to_str().unwrap();
    assert!(
        named.lines().any(|line| line.contains("\"orphan\"") && line.contains(name)),
        "{named}"
    );

    // Age counts from when the original was stored.
    let nothing = json!({ "count": 0, "bytes": 0 });
    assert_eq!(summary(dir, &[], &["--quick", "--prune-orphans"])["prunedOrphans"], nothing);
    originals(&server).iter().for_each(|file| make_old(file, 10));
    let arguments = ["--prune-orphans", "--older-than", "2w"];
    assert_eq!(summary(dir, &[], &arguments)["prunedOrphans"], nothing);
    let said = run_ok(dir, &[], &["check", "--prune-orphans"]);
    assert!(said.contains("1 originals of") && said.contains("removed"), "{said}");
    assert!(!orphan.exists() && originals(&server).len() == before.len(), "{said}");
    let said = summary(dir, &[], &[]);
    assert_eq!((&said["orphans"], &said["problems"]), (&nothing, &0.into()), "{said}");
    assert!(server.bytes("/media/image/old_NormalPreview.jpg").starts_with(&[0xff, 0xd8]));
    // A removed original can be stored again.
    assert_eq!(put(&server, "image/again", &photograph(0)), 201, "{}", server.log());
    let audited = run_ok(dir, &[], &["audit", "list"]);
    assert!(audited.contains("--prune-orphans: 1 orphans removed"), "{audited}");

    for (arguments, reason) in [
        (&["--older-than", "3d"][..], "--prune-orphans"),
        (&["--prune-orphans", "--older-than", "soon"], "36h, 7d or 2w"),
        (&["--prune-orphans", "--older-than", "0h"], "at least 1h"),
    ] {
        let (said, status) = run(dir, &[], &[&["check"], arguments].concat());
        assert!(status == 2 && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn a_refused_upload_leaves_no_original() {
    let server = Server::start(kit::scene(&[]), &["media.warm=false"]);
    let dir = server.dir.path();
    assert_eq!(put(&server, "image/kept", &photograph(1)), 201);
    let kept = originals(&server);
    // One part of the upload is refused after the other was stored. Content that an item has stays.
    assert_eq!(put_with_a_bad_part(&server, &photograph(2)), 400, "{}", server.log());
    assert_eq!(put_with_a_bad_part(&server, &photograph(1)), 400, "{}", server.log());
    assert_eq!(originals(&server), kept);

    // The database takes no writes: the upload is stored, refused, and removed when that is over.
    let lock = Connection::open(server.data().join("wirephoto.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(put(&server, "image/new", &photograph(3)), 503, "{}", server.log());
    assert_eq!(originals(&server).len(), 2);
    lock.execute_batch("ROLLBACK").unwrap();
    server.until("the original to be removed", || (originals(&server) == kept).then_some(()));
    let said = summary(dir, &[], &[]);
    assert_eq!((&said["orphans"]["count"], &said["problems"]), (&0.into(), &0.into()), "{said}");
    assert_eq!(put(&server, "image/new", &photograph(3)), 201, "{}", server.log());
}

#[test]
fn an_outage_of_the_database_or_the_bucket_leaves_no_orphans() {
    let (cluster, bucket) = (Cluster::start(), Bucket::start());
    let url = format!("database.url={}", cluster.database("archive"));
    let more = [url.as_str(), "store.answer_s=1", "store.give_up_s=2"];
    let settings = bucket.settings("outage", &more);
    let given: Vec<&str> = settings.iter().map(String::as_str).collect();
    let dir = kit::scene_with(&[("image/old", document("Gammal"))], &given);
    let server = serve(dir, &settings);
    assert_eq!(put(&server, "image/first", &photograph(1)), 201, "{}", server.log());
    cluster.down();
    for number in 2..5 {
        assert_eq!(put(&server, &format!("image/away{number}"), &photograph(number)), 503);
    }
    cluster.up();
    let back = || (put(&server, "image/back", &photograph(5)) == 201).then_some(());
    server.until("the database to be used again", back);

    bucket.gate.inject("PUT /bilder/outage/index", crate::buckets::Fault::Fail);
    put(&server, "image/half", &photograph(6));
    bucket.gate.inject("/bilder", crate::buckets::Fault::Fail);
    assert_eq!(put(&server, "image/gone", &photograph(7)), 503, "{}", server.log());
    bucket.gate.clear_fault();
    let again = || (put(&server, "image/gone", &photograph(8)) == 201).then_some(());
    server.until("the bucket to be used again", again);
    let clean = || {
        (summary(server.dir.path(), &settings, &["--quick"])["orphans"]["count"] == 0)
            .then_some(())
    };
    server.until("no orphans to be left", clean);
}
