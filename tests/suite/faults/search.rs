//! Faults of the search index: its disk, its files, the clock, the database. Afterwards the index equals the
//! database, which `check` verifies.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::Value;

use super::kit::{Faults, PROVIDER, call, call_with, document, photograph, scene, text, upload};
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server};
use crate::search::ids;

const HOUR: i64 = 3600;

/// The ids of all photographs, oldest first, or the status of an error response.
fn found(server: &Server) -> Result<String, u16> {
    let path = "/content/v1/image/search?s=50&sort=versioncreated:asc";
    let response = call(server, Method::GET, path, DEMO_KEY).send().unwrap();
    let status = response.status().as_u16();
    if status != 200 {
        assert_eq!(response.headers().contains_key("retry-after"), status == 503, "{status}");
        return Err(status);
    }
    let hits: Value = response.json().unwrap();
    let (ids, total) = (ids(&hits), hits["total"].as_u64().unwrap());
    assert_eq!(ids.split_whitespace().count() as u64, total, "{ids}");
    Ok(ids)
}

fn wait_for_result(server: &Server, expected: &str) {
    server.until(&format!("a search to find {expected:?}"), || {
        (sorted(&found(server).ok()?) == sorted(expected)).then_some(())
    });
}

fn sorted(ids: &str) -> Vec<&str> {
    let mut ids: Vec<_> = ids.split_whitespace().collect();
    ids.sort_unstable();
    ids
}

/// Ingests a photograph, which is acknowledged whatever the state of the index.
fn ingest_photo(server: &Server, id: &str, number: usize) {
    let sent = upload(server, &format!("image/{id}"), "Ny", &photograph(number)).send().unwrap();
    assert_eq!(sent.status(), 201, "{}", server.log());
}

fn withdraw(server: &Server, id: &str) {
    let path = format!("/ingest/v1/image/{id}");
    assert_eq!(call(server, Method::DELETE, &path, PROVIDER).send().unwrap().status(), 200);
}

fn repairs(server: &Server) -> f64 {
    server.metric("wirephoto_search_index_repairs_total", "")
}

/// Checks that the server's index equals its items.
fn check(server: &Server) {
    let said = server.command(&["check"]);
    let text = [said.stdout, said.stderr].concat();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&text));
}

fn two_photographs() -> tempfile::TempDir {
    scene(&[("image/one", document("Ett")), ("image/two", document("Två"))])
}

/// The folder of the index that is in use.
fn index(data: &Path) -> PathBuf {
    let slot = data.join("search/1");
    let entries = fs::read_dir(&slot).unwrap().flatten();
    let newest = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok()).max();
    slot.join(newest.expect("an index").to_string())
}

#[test]
fn a_full_disk_under_the_index_blocks_no_ingest_and_the_index_catches_up() {
    let faults = Faults::new();
    let server = faults.start(two_photographs(), &[]);
    wait_for_result(&server, "one two");
    for fault in ["enospc", "eio-fsync"] {
        faults.set(&[&format!("{fault} /search/")]);
        ingest_photo(&server, fault, 3);
        server.until("the fault to be told", || {
            server.log().contains("search index update failed, retrying").then_some(())
        });
        // Existing items are found, and withdrawn ones are not.
        let ids = found(&server).expect("an answer from what there is");
        assert!(ids.contains("two"), "{fault}: {ids}");
        if fault == "enospc" {
            withdraw(&server, "one");
        }
        assert!(!found(&server).unwrap().contains("one"), "{fault}");
        assert_eq!(server.get("/media/image/two_NormalPreview.jpg").status(), 200);
        faults.clear();
        server.until("it to be found", || found(&server).ok()?.contains(fault).then_some(()));
    }
    wait_for_result(&server, "two enospc eio-fsync");
    server.until("the end to be told", || {
        server.log().contains("search index updates work again").then_some(())
    });
    check(&server);
    wait_for_result(&server.restart(&[]), "two enospc eio-fsync");
}

#[test]
fn without_space_for_an_index_only_search_is_unavailable() {
    let faults = Faults::new();
    faults.set(&["enospc /search/1/"]);
    let server = faults.start(two_photographs(), &[]);
    assert_eq!(found(&server), Err(503));
    assert_eq!(server.get("/health/search").status(), 503);
    ingest_photo(&server, "three", 3);
    assert_eq!(server.get("/media/image/three_NormalPreview.jpg").status(), 200);
    assert_eq!(found(&server), Err(503));
    faults.clear();
    wait_for_result(&server, "one two three");
    assert_eq!(server.get("/health/search").status(), 200);
    check(&server);
}

/// A modification of the index's metadata file.
type Change = Box<dyn Fn(String) -> String>;

/// Another version of the program, a truncated file, an empty file.
#[test]
fn an_index_that_this_version_cannot_read_is_rebuilt() {
    let mut server = Server::start(two_photographs(), &[]);
    wait_for_result(&server, "one two");
    let replace = |from: &'static str, to: &'static str| {
        move |meta: String| {
            assert!(meta.contains(from), "{meta}");
            meta.replacen(from, to, 1)
        }
    };
    let changes: [(&str, Change); 5] = [
        ("other terms", Box::new(replace(r#"\"analysis\":"#, r#"\"analysis\":9"#))),
        ("another archive", Box::new(replace(r#"\"archive\":\""#, r#"\"archive\":\"0"#))),
        ("other fields", Box::new(replace(r#""headline""#, r#""heading""#))),
        ("half a file", Box::new(|meta: String| meta[..meta.len() / 2].to_owned())),
        ("an empty file", Box::new(|_| String::new())),
    ];
    for (what, change) in changes {
        let dir = server.kill();
        let path = index(&dir.path().join("data")).join("meta.json");
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
        server = Server::start(dir, &[]);
        wait_for_result(&server, "one two");
        assert_eq!(repairs(&server), 1.0, "{what}");
        assert!(server.log().contains("building the search index: "), "{what}: {}", server.log());
        check(&server);
    }
    let server = server.restart(&[]);
    wait_for_result(&server, "one two");
    assert_eq!(repairs(&server), 0.0, "the last one is whole");
}

#[test]
fn a_clock_jump_hides_no_item_from_search() {
    let faults = Faults::new();
    let server = faults.start(two_photographs(), &[]);
    wait_for_result(&server, "one two");
    let mut all = "one two".to_owned();
    for (number, hours) in [30, -30, 24 * 400, 0].into_iter().enumerate() {
        faults.set(&[&format!("clock {}", hours * HOUR)]);
        let id = format!("jump{number}");
        ingest_photo(&server, &id, number + 3);
        all = format!("{all} {id}");
        wait_for_result(&server, &all);
    }
    withdraw(&server, "jump1");
    let all = all.replace(" jump1", "");
    wait_for_result(&server, &all);
    check(&server);
    assert_eq!(repairs(&server), 1.0, "that of the start");
    wait_for_result(&server.restart(&[]), &all);
}

/// The index is newer than the database, as after a rollback of the database's disk.
#[test]
fn an_index_newer_than_the_database_is_repaired() {
    let server = Server::start(two_photographs(), &[]);
    wait_for_result(&server, "one two");
    let backup = server.dir.path().join("backup");
    let said = server.command(&["backup", &backup.to_string_lossy()]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    ingest_photo(&server, "three", 3);
    withdraw(&server, "two");
    wait_for_result(&server, "one three");
    let dir = server.kill();
    let (data, later) = (dir.path().join("data"), dir.path().join("later"));
    fs::rename(&data, &later).unwrap();
    let mut command = wirephoto(dir.path());
    command.arg("restore").arg(&backup).arg("--rebuild").arg("--data").arg(&data);
    let said = output(&mut command);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    drop(fs::remove_dir_all(data.join("search")));
    fs::rename(later.join("search"), data.join("search")).unwrap();
    let server = Server::start(dir, &[]);
    wait_for_result(&server, "one two");
    assert_eq!(repairs(&server), 1.0, "{}", server.log());
    // Log numbers are reused: their current meaning counts.
    ingest_photo(&server, "four", 4);
    wait_for_result(&server, "one two four");
    check(&server);
}

#[test]
fn a_process_without_search_serves_everything_else_and_has_no_index() {
    let server = Server::start(two_photographs(), &["search.enabled=false"]);
    assert_eq!(found(&server), Err(503));
    ingest_photo(&server, "three", 3);
    assert_eq!(server.get("/media/image/three_NormalPreview.jpg").status(), 200);
    let item = call(&server, Method::GET, "/media/image/three.json", DEMO_KEY).send().unwrap();
    assert_eq!(text(&item.json().unwrap(), "headline"), "Ny");
    let made = call_with(
        &server,
        (Method::POST, "/collection/v1/collection"),
        DEMO_KEY,
        &serde_json::json!({ "name": "kept" }),
    );
    assert_eq!(made.send().unwrap().status(), 200);
    assert!(!server.data().join("search").exists());
    wait_for_result(&server.restart(&[]), "one two three");
}
