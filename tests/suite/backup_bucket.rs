//! Backups whose originals are in a bucket, copies of originals alone, and the comparison of a database with a
//! copy.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::buckets::{BASE, Bucket, ingest_demo, of_bucket, run, run_ok, text};

/// The settings that reach the bucket of a backup: those of the archive's bucket under other names.
fn of_backup(bucket: &Bucket) -> Vec<String> {
    let endpoint = format!("127.0.0.1:{}", bucket.s3.ready["port"]);
    let own = of_bucket(&bucket.s3, &endpoint, "").into_iter().skip(1);
    own.map(|setting| setting.replacen("store.", "backup.", 1)).collect()
}

/// The last line that a command prints with `--json`; checks its exit status.
#[track_caller]
fn summary(dir: &Path, settings: &[String], arguments: &[&str], expected: i32) -> Value {
    let (said, status) = run(dir, settings, &[arguments, &["--json"]].concat());
    assert_eq!(status, expected, "{arguments:?}: {said}");
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

#[test]
fn a_backup_with_its_originals_in_a_bucket_is_verified_and_restored() {
    let mut bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let settings = [bucket.settings("wire/a", &[]), of_backup(&bucket)].concat();
    ingest_demo(dir, &settings);
    let originals = bucket.keys("wire/a/originals/").len();
    assert!(originals > 3);
    let target = text(&dir.join("target"));
    let backup = ["backup", "--bucket", "s3://bilder/copy/b", &target];
    let made = summary(dir, &settings, &backup, 0);
    assert_eq!(made["bucket"], "s3://bilder/copy/b");
    assert_eq!((&made["copied"], &made["there"]), (&originals.into(), &0.into()), "{made}");
    assert_eq!(bucket.keys("copy/").len(), originals, "the originals and nothing else");
    assert!(!dir.join("target/originals").exists());
    assert_eq!(summary(dir, &settings, &backup, 0)["copied"], 0, "they are there already");
    // The originals are at the location that the backup records.
    let verify = ["backup", "verify", &target];
    let said = summary(dir, &settings, &verify, 0);
    assert_eq!(
        said,
        json!({ "place": "s3://bilder/copy/b", "originals": originals, "read": 0,
        "problems": 0, "unnamed": 0 })
    );
    assert_eq!(
        summary(dir, &settings, &[&verify[..], &["--read"]].concat(), 0)["read"],
        originals
    );
    // One is lost and one damaged.
    let keys = bucket.keys("copy/b/originals/");
    bucket.send_command(&json!({ "do": "delete", "key": keys[0] }));
    bucket.send_command(&json!({ "do": "damage", "key": keys[1], "at": 100 }));
    let (said, status) = run(dir, &settings, &verify);
    assert!(status == 1 && said.contains("does not match"), "{said}");
    let hash = keys[0].rsplit_once("originals/").unwrap().1.replace('/', "");
    let named = said.lines().find(|line| line.contains(&hash)).unwrap_or_default();
    assert!(named.contains("is missing") && named.contains("demo-"), "its item is named: {said}");
    let read = [&verify[..], &["--read"]].concat();
    assert_eq!(summary(dir, &settings, &read, 1)["problems"], 2);
    let made = summary(dir, &settings, &[&backup[..], &["--verify"]].concat(), 0);
    assert_eq!(made["copied"], 2, "{made}");
    run_ok(dir, &settings, &read);
    // Objects that belong to no item are left in place by a copy and removed on request.
    bucket.send_command(&json!({ "do": "fill", "prefix": "copy/b/originals", "count": 3 }));
    assert_eq!(summary(dir, &settings, &verify, 0)["unnamed"], 3);
    let pruned = summary(dir, &settings, &[&backup[..], &["--prune"]].concat(), 0);
    assert_eq!(pruned["pruned"], 3, "{pruned}");
    // Restored into a folder, on a machine that has only the settings of the backup's bucket.
    let home = tempfile::tempdir().unwrap();
    let plain = BASE.map(str::to_owned).into_iter().chain(of_backup(&bucket)).collect::<Vec<_>>();
    let restored = summary(home.path(), &plain, &["restore", &target], 0);
    assert_eq!((&restored["originals"], &restored["problems"]), (&originals.into(), &0.into()));
    run_ok(home.path(), &plain, &["check", "--repair"]);
    // If the bucket has moved, the location is given on the command line.
    let moved = tempfile::tempdir().unwrap();
    let (said, status) =
        run(moved.path(), &plain, &["restore", "--bucket", "s3://bilder/nowhere", &target]);
    assert!(status == 1 && said.contains("is not copied"), "{said}");
}

#[test]
fn a_backup_bucket_that_refuses_is_named_by_its_setting() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let settings = [bucket.settings("wire/a", &[]), of_backup(&bucket)].concat();
    ingest_demo(dir, &settings);
    let target = text(&dir.join("target"));
    let backup = |place: &str, more: &[&str], word: &str| {
        let more = more.iter().map(|setting| (*setting).to_owned());
        let settings: Vec<String> = settings.iter().cloned().chain(more).collect();
        let (said, status) = run(dir, &settings, &["backup", "--bucket", place, &target]);
        assert!(status != 0 && said.contains(word), "{word}: {said}");
    };
    backup("s3://bilder/b", &["backup.secret_access_key=wrong"], "backup.secret_access_key: ");
    backup("s3://bilder/b", &["backup.plain_http=false"], "backup.plain_http permits");
    backup("s3://nobodys/b", &[], "--bucket: ");
    backup("/srv/folder", &[], "s3://BUCKET/PREFIX");
    // The archive's own bucket at the same address.
    let own = settings.iter().find_map(|one| one.strip_prefix("store.endpoint=")).unwrap();
    let own = format!("backup.endpoint={own}");
    backup("s3://bilder/wire/a", &[&own], "holds the originals of the archive itself");
    assert!(!dir.join("target/backup.json").exists());
}

#[test]
fn a_backup_reaches_its_bucket_like_the_store_unless_its_settings_differ() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let settings = bucket.settings("wire/a", &[]);
    ingest_demo(dir, &settings);
    let target = text(&dir.join("target"));
    run_ok(dir, &settings, &["backup", "--bucket", "s3://bilder/copy/b", &target]);
    run_ok(dir, &settings, &["backup", "verify", &target]);
    // The bucket and the prefix are never those of the store, and the parts of two keys are not mixed.
    let own = ["backup", "--bucket", "s3://bilder/wire/a", &target];
    let (said, status) = run(dir, &settings, &own);
    assert!(status != 0 && said.contains("holds the originals of the archive itself"), "{said}");
    let half = [settings, vec!["backup.access_key_id=other".to_owned()]].concat();
    let (said, status) = run(dir, &half, &["backup", "--bucket", "s3://bilder/c", &target]);
    assert!(status != 0 && said.contains("backup.secret_access_key: "), "{said}");
}

#[test]
fn originals_alone_are_copied_compared_with_the_database_and_restored() {
    let mut bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let settings = [bucket.settings("wire/a", &[]), of_backup(&bucket)].concat();
    ingest_demo(dir, &settings);
    let originals = bucket.keys("wire/a/originals/").len();
    let place = ["--bucket", "s3://bilder/only"];
    let folder = dir.join("folder");
    let copy = [&["backup", "--originals-only"][..], &place].concat();
    assert_eq!(summary(dir, &settings, &copy, 0)["copied"], originals);
    let into_folder = ["backup", "--originals-only", &text(&folder)].map(str::to_owned);
    let into_folder: Vec<&str> = into_folder.iter().map(String::as_str).collect();
    assert_eq!(summary(dir, &settings, &into_folder, 0)["copied"], originals);
    assert!(!folder.join("backup.json").exists(), "no backup by itself");
    // Every original that the settings' database names is present.
    let within = text(&folder.join("originals"));
    for place in [&place[..], &["--originals", &within]] {
        let said = summary(dir, &settings, &[&["backup", "verify"], place].concat(), 0);
        assert_eq!(
            (&said["originals"], &said["unnamed"]),
            (&originals.into(), &0.into()),
            "{said}"
        );
    }
    let keys = bucket.keys("wire/a/originals/");
    bucket.send_command(&json!({ "do": "delete", "key": keys[0] }));
    bucket.send_command(&json!({ "do": "damage", "key": keys[1], "at": 100 }));
    let heads = bucket.gate.request_count("HEAD ");
    assert_eq!(run(dir, &settings, &["check", "--quick"]).1, 1);
    assert_eq!(
        bucket.gate.request_count("HEAD "),
        heads,
        "a quick check lists and asks for no object"
    );
    let restore = [&["restore", "--originals-only"][..], &place].concat();
    assert_eq!(summary(dir, &settings, &restore, 0)["copied"], 2, "what was lost and damaged");
    run_ok(dir, &settings, &["check"]);
    fs::remove_dir_all(&folder).unwrap();
    let (said, status) = run(dir, &settings, &["backup", "verify", "--originals", &within]);
    assert!(status == 1 && said.contains("is missing in the backup"), "{said}");
    for unclear in [&["backup", "verify"][..], &["backup", "--originals-only"], &["backup"]] {
        assert_eq!(run(dir, &settings, unclear).1, 2, "{unclear:?}");
    }
}
