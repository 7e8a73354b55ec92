//! Upgrades: an archive whose schema this version cannot use is refused by every command and stays unchanged.
//! Migrations themselves are tested beside the database.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::common::server::{output, wirephoto};

/// Runs a command on the data directory; returns its standard error and exit status.
fn run(data: &Path, arguments: &[&str]) -> (String, i32) {
    let mut command = wirephoto(data.parent().unwrap());
    let output = output(command.args(arguments).arg("--data").arg(data));
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code().unwrap())
}

/// Creates an archive below `dir` and changes its database; returns the data directory.
fn changed_archive(dir: &Path, change: &str) -> PathBuf {
    let data = dir.join("data");
    let (said, status) = run(&data, &["check"]);
    assert_eq!(status, 0, "{said}");
    let database = Connection::open(data.join("wirephoto.db")).unwrap();
    database.execute_batch(change).unwrap();
    data
}

/// Checks that every command refuses the archive, with a message that contains `parts`, and changes nothing.
fn is_refused(data: &Path, parts: &[&str]) {
    let before = fs::read(data.join("wirephoto.db")).unwrap();
    let target = data.with_file_name("target").to_string_lossy().into_owned();
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["check"],
        &["reindex"],
        &["ingest", "x.jpg"],
        &["withdraw", "image/old"],
        &["import", "x.json"],
        &["user", "list"],
        &["key", "list"],
        &["delivery", "list"],
        &["outbox", "list"],
        &["backup", &target],
    ] {
        let (said, status) = run(data, arguments);
        assert_eq!(status, 1, "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
    assert!(fs::read(data.join("wirephoto.db")).unwrap() == before, "not a byte has changed");
}

#[test]
fn an_archive_of_a_later_schema_is_refused_by_every_command_and_stays_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let data = changed_archive(dir.path(), "PRAGMA user_version = 9999");
    is_refused(&data, &["wirephoto.db", "has schema 9999", "up to 1"]);
}

#[test]
fn an_archive_of_an_unreleased_schema_is_refused_by_every_command_and_stays_unchanged() {
    let parts = ["wirephoto.db", "a different schema", "create a new archive"];
    for change in [
        "UPDATE state SET value = 'other' WHERE name = 'schema hash'",
        // Earlier development versions stored no hash.
        "DELETE FROM state WHERE name = 'schema hash'; PRAGMA user_version = 14",
    ] {
        let dir = tempfile::tempdir().unwrap();
        is_refused(&changed_archive(dir.path(), change), &parts);
    }
}
