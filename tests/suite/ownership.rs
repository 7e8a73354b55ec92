//! Database and store of originals are bound to each other: a node or command whose settings name another store
//! does not start and names the two locations that do not belong together; a store that is replaced under a running
//! service accepts no writes.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::buckets::{Bucket, ingest_demo, run, run_ok, serve, text};
use crate::common::Server;
use crate::common::postgres::Cluster;
use crate::faults::kit::{self, photograph, upload};
use crate::store_marks::SecondNode;

/// The settings for a database of the cluster, followed by `more`.
fn in_database(cluster: &Cluster, name: &str, more: &[String]) -> Vec<String> {
    [format!("database.url={}", cluster.database(name))].into_iter().chain(more.to_vec()).collect()
}

/// The id of the archive in the mark of the originals, which also has the id of the store.
fn id_of(dir: &Path) -> String {
    let mark = fs::read_to_string(dir.join("data/originals/archive-id")).unwrap();
    mark.split_whitespace().next().unwrap().to_owned()
}

/// Runs a node with these settings until it serves, and stops it.
fn serve_once(dir: &Path, settings: &[String]) {
    let node = SecondNode::start(dir, settings);
    assert!(node.serves(), "{}", node.said());
    node.stop();
}

fn put(server: &Server, number: usize) -> u16 {
    let key = format!("image/new{number}");
    upload(server, &key, "Ny", &photograph(number)).send().unwrap().status().as_u16()
}

/// A directory with an archive of one photograph.
fn archive() -> TempDir {
    kit::scene(&[("image/old", kit::document("Gammal"))])
}

#[test]
fn a_node_whose_store_belongs_to_another_archive_does_not_start() {
    let (cluster, bucket) = (Cluster::start(), Bucket::start());
    let first = tempfile::tempdir().unwrap();
    let settings = in_database(&cluster, "archive", &bucket.settings("archive", &[]));
    ingest_demo(first.path(), &settings);
    let server = serve(first, &settings);
    // The setting that is forgotten most easily, and one that is mistyped.
    let url = settings[0].clone();
    let forgotten: Vec<String> = vec![url.clone()];
    let mistyped: Vec<String> = settings
        .iter()
        .map(|one| one.replace("s3://bilder/archive", "s3://bilder/archiv"))
        .collect();
    for (wrong, place) in [(&forgotten, "originals"), (&mistyped, "s3://bilder/archiv")] {
        let second = tempfile::tempdir().unwrap();
        for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["ingest", "."], &["check"]]
        {
            let (said, status) = run(second.path(), wrong, arguments);
            assert_eq!(status, 1, "{arguments:?}: {said}");
            for named in [place, "/archive", "store.originals", "wirephoto store adopt"] {
                assert!(said.contains(named), "{arguments:?} names {named}: {said}");
            }
        }
    }
    // An empty archive adopts a store that belongs to no archive, and owns it from then on.
    let other = in_database(&cluster, "other", &bucket.settings("other", &[]));
    let third = tempfile::tempdir().unwrap();
    run_ok(third.path(), &other, &["check"]);
    serve_once(third.path(), &other);
    let crossed: Vec<String> = [url].into_iter().chain(bucket.settings("other", &[])).collect();
    let (said, status) = run(third.path(), &crossed, &["check"]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    assert_eq!(put(&server, 1), 201, "{}", server.log());
}

#[test]
fn an_older_archive_gets_its_id_where_its_originals_are() {
    let dir = archive();
    let mark = dir.path().join("data/originals/archive-id");
    let id = id_of(dir.path());
    fs::remove_file(&mark).unwrap();
    run_ok(dir.path(), &[], &["check"]);
    assert!(!mark.exists(), "a check writes no id");
    run_ok(dir.path(), &[], &["ingest", &text(&dir.path().join("incoming"))]);
    assert_eq!(id_of(dir.path()), id, "it is that of the database");
    // Without its originals the folder counts as another one: the disk may not be mounted.
    let away = dir.path().join("away");
    fs::rename(dir.path().join("data/originals"), &away).unwrap();
    fs::create_dir(dir.path().join("data/originals")).unwrap();
    let (said, status) = run(dir.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("has 0 of 1 originals"), "{said}");
    // The operator can adopt it.
    let (said, status) = run(dir.path(), &[], &["store", "adopt"]);
    assert!(status == 1 && said.contains("lacks 1 of 1 originals"), "{said}");
    let said = run_ok(dir.path(), &[], &["store", "adopt", "--force"]);
    assert!(said.contains(&id) && said.contains("1 of 1 originals are not in it"), "{said}");
    let (said, status) = run(dir.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("image/old"), "{said}");
    let facts = run_ok(dir.path(), &[], &["store", "adopt", "--force", "--json"]);
    let facts: Value = serde_json::from_str(facts.trim()).unwrap();
    assert_eq!((&facts["archive"], &facts["missing"]), (&Value::from(id), &Value::from(1)));
}

#[test]
fn an_adopted_store_refuses_its_previous_archive() {
    let (ours, theirs) = (archive(), archive());
    let other = theirs.path().join("data/originals");
    let setting = vec![format!("store.originals={}", text(&other))];
    let (said, status) = run(ours.path(), &setting, &["check"]);
    assert!(status == 1, "{said}");
    for named in [text(&other), text(&ours.path().join("data/wirephoto.db")), id_of(ours.path())] {
        assert!(said.contains(&named), "{said}");
    }
    run_ok(ours.path(), &setting, &["store", "adopt"]);
    run_ok(ours.path(), &setting, &["check"]);
    let (said, status) = run(theirs.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
}

#[test]
fn a_store_that_disappears_under_a_running_service_accepts_no_writes() {
    let dir = archive();
    let server = Server::start(dir, &["media.warm=false"]);
    let originals = server.data().join("originals");
    let away = server.data().join("away");
    fs::rename(&originals, &away).unwrap();
    // An unmounted disk leaves an empty folder on a disk with free space.
    fs::create_dir_all(originals.join("tmp")).unwrap();
    assert_eq!(put(&server, 1), 503, "{}", server.log());
    assert!(server.log().contains("archive-id is missing in it"), "{}", server.log());
    server.until("the fault to be told", || {
        (server.metric("wirephoto_fault", "store") == 1.0).then_some(())
    });
    let ready: Value = server.get("/health/ready").json().unwrap();
    // The only node stays ready: it can still serve what is cached.
    assert_eq!((&ready["status"], &ready["faults"][0]), (&"ready".into(), &"store".into()));
    let reason = "the store of originals is not marked as that of the archive";
    assert_eq!(ready["detail"], reason, "{ready}");
    fs::remove_dir_all(&originals).unwrap();
    fs::rename(&away, &originals).unwrap();
    assert_eq!(put(&server, 1), 201, "{}", server.log());
    server.until("the fault to be over", || {
        (server.metric("wirephoto_fault", "store") == 0.0).then_some(())
    });
}

#[test]
fn a_bucket_that_answers_later_is_checked_before_its_first_write() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings("late", &["store.answer_s=1", "store.give_up_s=1"]);
    ingest_demo(dir.path(), &settings);
    let foreign = bucket.settings("foreign", &["store.answer_s=1", "store.give_up_s=1"]);
    let other = tempfile::tempdir().unwrap();
    ingest_demo(other.path(), &foreign);
    // A server of the first archive is configured with the bucket of the second while that does not respond.
    bucket.gate.inject("/bilder", crate::buckets::Fault::Hang);
    let crossed: Vec<String> =
        settings.iter().map(|one| one.replace("/late", "/foreign")).collect();
    let server = serve(dir, &crossed);
    bucket.gate.clear_fault();
    server.until("it to find out", || {
        server.log().contains("belongs to another archive").then_some(())
    });
    assert_eq!(put(&server, 1), 503, "{}", server.log());
    // An item that is not in the demo archive, which both have.
    assert_eq!(server.get("/media/image/new1.json").status(), 404);
}

#[test]
fn a_restore_and_a_migration_do_not_touch_the_store_of_another_archive() {
    let (ours, theirs) = (archive(), archive());
    let other = theirs.path().join("data/originals");
    let before = fs::read_dir(&other).unwrap().count();
    let backup = ours.path().join("backup");
    run_ok(ours.path(), &[], &["backup", &text(&backup)]);
    let empty = tempfile::tempdir().unwrap();
    let setting = vec![format!("store.originals={}", text(&other))];
    let (said, status) = run(empty.path(), &setting, &["restore", &text(&backup)]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    let (said, status) = run(ours.path(), &[], &["migrate", "--store", &text(&other)]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), before);
    // Both accept an empty location, which then belongs to the archive.
    run_ok(empty.path(), &[], &["restore", &text(&backup)]);
    run_ok(empty.path(), &[], &["check", "--repair"]);
    assert_eq!(id_of(empty.path()), id_of(ours.path()));
    let moved = ours.path().join("moved");
    run_ok(ours.path(), &[], &["migrate", "--store", &text(&moved)]);
    let id = fs::read_to_string(moved.join("archive-id")).unwrap();
    assert_eq!(id.split(' ').next().unwrap(), id_of(ours.path()));
}

#[test]
fn a_migrated_store_is_refused_once_the_new_one_is_in_use() {
    let bucket = Bucket::start();
    let dir = archive();
    let moved: Vec<String> = bucket.settings("moved", &[]);
    let without_place: Vec<String> =
        moved.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    let migrate = ["migrate", "--store", "s3://bilder/moved"];
    run_ok(dir.path(), &without_place, &migrate);
    // Until a service uses the new store, the migration is a dry run.
    run_ok(dir.path(), &[], &["check"]);
    run_ok(dir.path(), &without_place, &migrate);
    run_ok(dir.path(), &moved, &["check", "--repair"]);
    run_ok(dir.path(), &[], &["check"]);
    serve_once(dir.path(), &moved);
    // The setting that is forgotten most easily: the old folder has the id too, and most of the originals.
    let (said, status) = run(dir.path(), &[], &["check"]);
    let named = ["s3://bilder/moved", "data/originals", "wirephoto store adopt"];
    assert!(status == 1 && named.iter().all(|name| said.contains(name)), "{said}");
    run_ok(dir.path(), &moved, &["check"]);
    // Going back deliberately.
    run_ok(dir.path(), &[], &["store", "adopt"]);
    run_ok(dir.path(), &[], &["check"]);
    let (said, status) = run(dir.path(), &moved, &["check"]);
    assert!(status == 1 && said.contains("are in"), "{said}");
}

#[test]
fn a_mistyped_store_after_a_migration_is_not_called_the_one_before_it() {
    let bucket = Bucket::start();
    let dir = archive();
    let moved: Vec<String> = bucket.settings("moved", &[]);
    let without_place: Vec<String> =
        moved.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    run_ok(dir.path(), &without_place, &["migrate", "--store", "s3://bilder/moved"]);
    let mistyped = bucket.settings("move", &[]);
    for command in ["check", "doctor"] {
        let (said, status) = run(dir.path(), &mistyped, &[command]);
        assert_eq!(status, 1, "{said}");
        let expected = "after a migration is the location that --store named";
        assert!(said.contains(expected) && !said.contains(" now, but store.originals"), "{said}");
    }
}

#[test]
fn a_service_accepts_no_writes_after_its_store_was_replaced() {
    let bucket = Bucket::start();
    let server = Server::start(archive(), &["media.warm=false"]);
    let dir = server.dir.path();
    let moved: Vec<String> = bucket.settings("moved", &[]);
    let without_place: Vec<String> =
        moved.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    run_ok(dir, &without_place, &["migrate", "--store", "s3://bilder/moved"]);
    assert_eq!(put(&server, 1), 201, "{}", server.log());
    // Another node uses the new location, so writes of this service would be missing from every other node's store.
    run_ok(dir, &without_place, &["migrate", "--store", "s3://bilder/moved"]);
    serve_once(dir, &moved);
    let until_fault = |value: f64| {
        let fault = || (server.metric("wirephoto_fault", "store") == value).then_some(());
        server.until("the fault of the store to be told", fault);
    };
    until_fault(1.0);
    let ready: Value = server.get("/health/ready").json().unwrap();
    let reason = "the archive has its originals in a different store than this node";
    // The other node counts for some seconds after it has stopped, and this one is not ready meanwhile.
    let said = if ready["status"] == "ready" { &ready["detail"] } else { &ready["reason"] };
    assert_eq!(said, reason, "{ready}");
    assert_eq!(put(&server, 2), 503, "{}", server.log());
    assert!(server.log().contains("originals are in s3://bilder/moved now"), "{}", server.log());
    run_ok(dir, &[], &["store", "adopt"]);
    until_fault(0.0);
    assert_eq!(put(&server, 2), 201, "{}", server.log());
}

#[test]
fn an_empty_archive_does_not_adopt_a_store_with_originals() {
    let (full, empty) = (archive(), tempfile::tempdir().unwrap());
    let originals = full.path().join("data/originals");
    fs::remove_file(originals.join("archive-id")).unwrap();
    let setting = vec![format!("store.originals={}", text(&originals))];
    let (said, status) = run(empty.path(), &setting, &["check"]);
    assert!(status == 1 && said.contains("has originals but no id of an archive"), "{said}");
    run_ok(full.path(), &[], &["check"]);
}

#[test]
fn doctor_names_a_store_with_which_no_node_starts() {
    let (full, empty, other) = (archive(), tempfile::tempdir().unwrap(), archive());
    let originals = full.path().join("data/originals");
    fs::remove_file(originals.join("archive-id")).unwrap();
    // The next node writes the id.
    let said = run_ok(full.path(), &[], &["doctor"]);
    assert!(said.contains("it has no id of an archive yet"), "{said}");
    // An archive without items that has another store.
    serve_once(empty.path(), &[]);
    let nothing = empty.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let of_another = other.path().join("data/originals");
    for (folder, reason) in [
        (&originals, "has originals but no id of an archive"),
        (&nothing, "has another store of originals"),
        (&of_another, "belongs to another archive"),
    ] {
        let setting = vec![format!("store.originals={}", text(folder))];
        for command in ["doctor", "check"] {
            let (said, status) = run(empty.path(), &setting, &[command]);
            assert!(status == 1 && said.contains(reason), "{command} says {reason}: {said}");
        }
    }
    // A disk that is not mounted.
    fs::rename(&originals, full.path().join("away")).unwrap();
    fs::create_dir(&originals).unwrap();
    let (said, status) = run(full.path(), &[], &["doctor"]);
    assert!(status == 1 && said.contains("has 0 of 1 originals"), "{said}");
    assert!(!originals.join("archive-id").exists(), "it writes no id");
}
