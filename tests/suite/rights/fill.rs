//! Archives of the version before: their originals are read again, by the service and by `wirephoto check --rights`.

use std::{fs, os::unix::net::UnixListener, path::Path};

use rusqlite::Connection;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::exiftool;
use super::{PLAIN, Renditions, SOURCE_TYPE_TAG, SOURCE_TYPES, ask, fixtures, json_of};
use crate::common::Server;
use crate::common::server::{output, wirephoto};
use crate::upgrades::{ORIGINAL, archive_of, dump};

/// The schema of the version before.
const BEFORE: u32 = 12;

/// The name of the reference image in a store.
fn hash_of_reference() -> String {
    let hash = Sha256::digest(fixtures::reference());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A data directory of the version before in `dir`, whose photograph is the reference image.
fn archive(dir: &Path) -> std::path::PathBuf {
    let (jpeg, hash) = (fixtures::reference(), hash_of_reference());
    let (width, height) = fixtures::REFERENCE_SIZE;
    let mut statements = fs::read_to_string(dump(BEFORE)).expect("a dump");
    for (old, new) in [
        (ORIGINAL.to_owned(), hash.clone()),
        ("\"length\":1190".to_owned(), format!("\"length\":{}", jpeg.len())),
        (
            "{\"width\":96,\"height\":64}".to_owned(),
            format!("{{\"width\":{width},\"height\":{height}}}"),
        ),
    ] {
        assert!(statements.contains(&old), "{old}");
        statements = statements.replace(&old, &new);
    }
    let data = archive_of(dir, &statements);
    let folder = data.join("originals").join(&hash[..2]);
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join(&hash[2..]), jpeg).expect("written");
    data
}

/// Runs `wirephoto check --rights --json`; returns what it reports.
fn check_rights(data: &Path) -> Value {
    let mut command = wirephoto(data.parent().expect("a folder"));
    let said = output(command.args(["check", "--rights", "--json", "--data"]).arg(data));
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{errors}");
    let text = String::from_utf8(said.stdout).expect("text");
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

/// Whether the record of the photograph has rights.
fn is_filled(data: &Path) -> bool {
    let database = Connection::open(data.join("wirephoto.db")).expect("the database");
    let query = "SELECT assets FROM items WHERE id = 'old' ORDER BY item_id DESC LIMIT 1";
    let assets: String = database.query_row(query, [], |row| row.get(0)).expect("the item");
    assets.contains("softwareImage")
}

/// Checks that renditions and documents of the photograph state what its original says.
fn states_rights(server: &Server) {
    let renditions = Renditions::new();
    renditions.fetch(server, "old", &[".jpg", "_NormalPreview.jpg", "_NormalThumbnail.webp"]);
    let made = format!("{SOURCE_TYPES}softwareImage");
    for (name, tags) in renditions.tags() {
        exiftool::is_sound(&name, &tags);
        assert_eq!(tags.get(SOURCE_TYPE_TAG), Some(&Value::from(made.as_str())), "{name}");
    }
    let metadata = json_of(server, "/media/image/old.metadata.json");
    assert_eq!(metadata["digitalSourceType"], made.as_str());
    assert_eq!(metadata["headline"], "Isbrytaren Oden", "the document stays");
}

#[test]
fn check_counts_what_an_archive_of_before_lost_and_fills_it_once() {
    let dir = tempfile::tempdir().expect("folder");
    let data = archive(dir.path());
    assert!(!is_filled(&data));
    let said = check_rights(&data);
    for count in ["read", "lacked", "filled"] {
        assert_eq!(said[count], 1, "{said}");
    }
    assert!(is_filled(&data));
    let again = check_rights(&data);
    assert_eq!(again["earlier"]["filled"], 1, "{again}");
    assert_eq!(again["read"], 1, "{again}");
    let server = Server::start(dir, &PLAIN);
    states_rights(&server);
    let audit = server.command(&["audit", "list", "--json", "--action", "command"]);
    let audit = String::from_utf8(audit.stdout).expect("text");
    assert!(audit.contains("check --rights"), "{audit}");
}

#[test]
fn the_service_fills_an_archive_of_before_in_the_background() {
    let dir = tempfile::tempdir().expect("folder");
    let data = archive(dir.path());
    let server = Server::start(dir, &PLAIN);
    server.until("the rights to be read", || is_filled(&data).then_some(()));
    server.until("nothing to be left", || {
        let behind = server.metric("wirephoto_rights_behind", "");
        (behind == 0.0 && server.metric("wirephoto_rights_filled_total", "") == 1.0).then_some(())
    });
    server.until("the photograph to be found by them", || {
        let path = "/content/v1/image/search?q=digitalsourcetype:softwareImage";
        // The index of an archive of before is built first.
        let found = ask(&server, path).json::<Value>().unwrap_or_default();
        (found["total"] == 1).then_some(())
    });
    states_rights(&server);
    let said = check_rights(&data);
    assert_eq!(said["earlier"]["filled"], 1, "{said}");
}

/// Runs `wirephoto check --rights --json`, which has to fail and to complete; returns what it reports.
fn check_rights_in_part(data: &Path) -> Value {
    let mut command = wirephoto(data.parent().expect("a folder"));
    let said = output(command.args(["check", "--rights", "--json", "--data"]).arg(data));
    assert_eq!(said.status.code(), Some(1), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8(said.stdout).expect("text");
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn an_original_at_which_the_disk_fails_does_not_end_the_reading() {
    let dir = tempfile::tempdir().expect("folder");
    let data = archive(dir.path());
    let hash = hash_of_reference();
    let original = data.join("originals").join(&hash[..2]).join(&hash[2..]);
    fs::remove_file(&original).expect("removed");
    // A socket exists and cannot be opened, whatever the user may do. Its path must be short.
    let socket = dir.path().join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    fs::rename(&socket, &original).expect("moved");
    assert_eq!(check_rights_in_part(&data)["unreadable"], 1);
    drop(listener);
    fs::remove_file(&original).expect("removed");
    fs::write(&original, fixtures::reference()).expect("written");
    assert_eq!(check_rights(&data)["filled"], 1);
}

#[test]
fn an_original_that_cannot_be_read_is_reported_and_read_again_when_it_is_back() {
    let dir = tempfile::tempdir().expect("folder");
    let data = archive(dir.path());
    // Binds the store to the archive: one without its originals and without an id is refused as a whole.
    let nothing = dir.path().join("nothing");
    fs::create_dir(&nothing).expect("created");
    let mut command = wirephoto(dir.path());
    output(command.arg("ingest").arg(&nothing).arg("--data").arg(&data));
    assert!(data.join("originals/archive-id").exists());
    let hash = hash_of_reference();
    let original = data.join("originals").join(&hash[..2]).join(&hash[2..]);
    let hidden = dir.path().join("hidden");
    fs::rename(&original, &hidden).expect("moved");
    assert_eq!(check_rights_in_part(&data)["unreadable"], 1);
    assert!(!is_filled(&data));
    fs::rename(&hidden, &original).expect("moved");
    assert_eq!(check_rights(&data)["filled"], 1);
    assert!(is_filled(&data));
}
