//! Database and store of originals know each other: a node or command whose settings name another store
//! does not start and says which two places do not belong together; a store that changes under a running
//! service takes nothing in.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::buckets::{Bucket, run, serve, take_in, text, well};
use crate::common::Server;
use crate::common::postgres::Cluster;
use crate::faults::kit::{self, photograph, upload};

/// The settings of a database of the cluster, with these.
fn in_database(cluster: &Cluster, name: &str, more: &[String]) -> Vec<String> {
    [format!("database.url={}", cluster.database(name))].into_iter().chain(more.to_vec()).collect()
}

fn id_of(dir: &Path) -> String {
    fs::read_to_string(dir.join("data/originals/archive-id")).unwrap().trim().to_owned()
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
fn a_node_with_another_store_than_the_archive_does_not_start() {
    let (cluster, bucket) = (Cluster::start(), Bucket::start());
    let first = tempfile::tempdir().unwrap();
    let settings = in_database(&cluster, "archive", &bucket.settings("archive", &[]));
    take_in(first.path(), &settings);
    let server = serve(first, &settings);
    // The line that is forgotten most easily, and one that is mistyped.
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
    // An empty archive takes a store that nobody has, and then it has it.
    let other = in_database(&cluster, "other", &bucket.settings("other", &[]));
    let third = tempfile::tempdir().unwrap();
    well(third.path(), &other, &["check"]);
    let crossed: Vec<String> = [url].into_iter().chain(bucket.settings("other", &[])).collect();
    let (said, status) = run(third.path(), &crossed, &["check"]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    assert_eq!(put(&server, 1), 201, "{}", server.log());
}

#[test]
fn an_archive_of_before_gets_its_id_where_its_originals_are() {
    let dir = archive();
    let mark = dir.path().join("data/originals/archive-id");
    let id = id_of(dir.path());
    fs::remove_file(&mark).unwrap();
    well(dir.path(), &[], &["check"]);
    assert_eq!(id_of(dir.path()), id, "it is that of the database");
    // Without its originals the folder is another one: a disk that is not mounted.
    let away = dir.path().join("away");
    fs::rename(dir.path().join("data/originals"), &away).unwrap();
    fs::create_dir(dir.path().join("data/originals")).unwrap();
    let (said, status) = run(dir.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("has 0 of 1 originals"), "{said}");
    // Unless its operator says that it is the archive's.
    let (said, status) = run(dir.path(), &[], &["store", "adopt"]);
    assert!(status == 1 && said.contains("lacks 1 of 1 originals"), "{said}");
    let said = well(dir.path(), &[], &["store", "adopt", "--force"]);
    assert!(said.contains(&id) && said.contains("1 of 1 originals are not in it"), "{said}");
    let (said, status) = run(dir.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("image/old"), "{said}");
    let facts = well(dir.path(), &[], &["store", "adopt", "--force", "--json"]);
    let facts: Value = serde_json::from_str(facts.trim()).unwrap();
    assert_eq!((&facts["archive"], &facts["missing"]), (&Value::from(id), &Value::from(1)));
}

#[test]
fn a_store_of_another_archive_is_adopted_and_then_refuses_its_first_one() {
    let (ours, theirs) = (archive(), archive());
    let other = theirs.path().join("data/originals");
    let setting = vec![format!("store.originals={}", text(&other))];
    let (said, status) = run(ours.path(), &setting, &["check"]);
    assert!(status == 1, "{said}");
    for named in [text(&other), text(&ours.path().join("data/wirephoto.db")), id_of(ours.path())] {
        assert!(said.contains(&named), "{said}");
    }
    well(ours.path(), &setting, &["store", "adopt"]);
    well(ours.path(), &setting, &["check"]);
    let (said, status) = run(theirs.path(), &[], &["check"]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
}

#[test]
fn a_store_that_goes_away_under_a_running_service_takes_nothing_in() {
    let dir = archive();
    let server = Server::start(dir, &["media.warm=false"]);
    let originals = server.data().join("originals");
    let away = server.data().join("away");
    fs::rename(&originals, &away).unwrap();
    // What an unmounted disk leaves: a folder, and a disk that has room.
    fs::create_dir_all(originals.join("tmp")).unwrap();
    assert_eq!(put(&server, 1), 503, "{}", server.log());
    assert!(server.log().contains("archive-id is missing in it"), "{}", server.log());
    server.until("the fault to be told", || {
        (server.metric("wirephoto_fault", "store") == 1.0).then_some(())
    });
    let ready: Value = server.get("/health/ready").json().unwrap();
    // It is alone: what it still can do is more than nothing.
    assert_eq!((&ready["status"], &ready["faults"][0]), (&"ready".into(), &"store".into()));
    fs::remove_dir_all(&originals).unwrap();
    fs::rename(&away, &originals).unwrap();
    assert_eq!(put(&server, 1), 201, "{}", server.log());
    server.until("the fault to be over", || {
        (server.metric("wirephoto_fault", "store") == 0.0).then_some(())
    });
}

#[test]
fn a_bucket_that_answers_later_is_looked_at_before_it_takes_anything_in() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings("late", &["store.answer_s=1", "store.give_up_s=1"]);
    take_in(dir.path(), &settings);
    let foreign = bucket.settings("foreign", &["store.answer_s=1", "store.give_up_s=1"]);
    let other = tempfile::tempdir().unwrap();
    take_in(other.path(), &foreign);
    // A server of the first archive that is told of the second one's bucket while that is silent.
    bucket.gate.breaks("/bilder", crate::buckets::Way::Hang);
    let crossed: Vec<String> =
        settings.iter().map(|one| one.replace("/late", "/foreign")).collect();
    let server = serve(dir, &crossed);
    bucket.gate.mends();
    server.until("it to find out", || {
        server.log().contains("belongs to another archive").then_some(())
    });
    assert_eq!(put(&server, 1), 503, "{}", server.log());
    // Not an item of the demo archive, which both have.
    assert_eq!(server.get("/media/image/new1.json").status(), 404);
}

#[test]
fn a_restore_and_a_migration_leave_the_store_of_another_archive_alone() {
    let (ours, theirs) = (archive(), archive());
    let other = theirs.path().join("data/originals");
    let before = fs::read_dir(&other).unwrap().count();
    let backup = ours.path().join("backup");
    well(ours.path(), &[], &["backup", &text(&backup)]);
    let empty = tempfile::tempdir().unwrap();
    let setting = vec![format!("store.originals={}", text(&other))];
    let (said, status) = run(empty.path(), &setting, &["restore", &text(&backup)]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    let (said, status) = run(ours.path(), &[], &["migrate", "--store", &text(&other)]);
    assert!(status == 1 && said.contains("belongs to another archive"), "{said}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), before);
    // Into an empty place both go, and what is there is the archive's.
    well(empty.path(), &[], &["restore", &text(&backup)]);
    well(empty.path(), &[], &["check", "--repair"]);
    assert_eq!(id_of(empty.path()), id_of(ours.path()));
    let moved = ours.path().join("moved");
    well(ours.path(), &[], &["migrate", "--store", &text(&moved)]);
    let id = fs::read_to_string(moved.join("archive-id")).unwrap();
    assert_eq!(id.split(' ').next().unwrap(), id_of(ours.path()));
}

#[test]
fn a_store_that_was_moved_from_is_refused_once_somebody_lives_in_the_new_one() {
    let bucket = Bucket::start();
    let dir = archive();
    let moved: Vec<String> = bucket.settings("moved", &[]);
    let without_place: Vec<String> =
        moved.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    let migrate = ["migrate", "--store", "s3://bilder/moved"];
    well(dir.path(), &without_place, &migrate);
    // Until somebody lives there it is a rehearsal.
    well(dir.path(), &[], &["check"]);
    well(dir.path(), &without_place, &migrate);
    well(dir.path(), &moved, &["check", "--repair"]);
    // The line that is forgotten most easily: the old folder has the id too, and most of the originals.
    let (said, status) = run(dir.path(), &[], &["check"]);
    let named = ["s3://bilder/moved", "data/originals", "wirephoto store adopt"];
    assert!(status == 1 && named.iter().all(|name| said.contains(name)), "{said}");
    well(dir.path(), &moved, &["check"]);
    // Back on purpose.
    well(dir.path(), &[], &["store", "adopt"]);
    well(dir.path(), &[], &["check"]);
    let (said, status) = run(dir.path(), &moved, &["check"]);
    assert!(status == 1 && said.contains("lie in"), "{said}");
}

#[test]
fn a_service_takes_nothing_in_once_another_store_has_replaced_its_own() {
    let bucket = Bucket::start();
    let server = Server::start(archive(), &["media.warm=false"]);
    let dir = server.dir.path();
    let moved: Vec<String> = bucket.settings("moved", &[]);
    let without_place: Vec<String> =
        moved.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    well(dir, &without_place, &["migrate", "--store", "s3://bilder/moved"]);
    assert_eq!(put(&server, 1), 201, "{}", server.log());
    // Somebody works with the new place: what this service took in would be in no other node's store.
    well(dir, &without_place, &["migrate", "--store", "s3://bilder/moved"]);
    well(dir, &moved, &["check", "--repair"]);
    let is_told = |told: f64| {
        let fault = || (server.metric("wirephoto_fault", "store") == told).then_some(());
        server.until("the fault of the store to be told", fault);
    };
    is_told(1.0);
    assert_eq!(put(&server, 2), 503, "{}", server.log());
    assert!(server.log().contains("originals lie in s3://bilder/moved now"), "{}", server.log());
    well(dir, &[], &["store", "adopt"]);
    is_told(0.0);
    assert_eq!(put(&server, 2), 201, "{}", server.log());
}

#[test]
fn an_empty_archive_does_not_take_a_store_that_has_originals() {
    let (full, empty) = (archive(), tempfile::tempdir().unwrap());
    let originals = full.path().join("data/originals");
    fs::remove_file(originals.join("archive-id")).unwrap();
    let setting = vec![format!("store.originals={}", text(&originals))];
    let (said, status) = run(empty.path(), &setting, &["check"]);
    assert!(status == 1 && said.contains("has originals but no id of an archive"), "{said}");
    well(full.path(), &[], &["check"]);
}
