//! Upgrades: a database of every earlier schema is opened and serves its content; one of a later schema is refused
//! and unchanged; a failed migration step changes nothing.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use serde_json::Value;

use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, postgres, tokens};

/// The hash of the only original of the dumps.
pub const ORIGINAL: &str = "0c4b45c632dfd054a1a7310d61bc09ee91f6780645e09ac59ac2c811f641b1f5";

/// The dump of the schema with that number.
pub fn dump(number: u32) -> PathBuf {
    checkout(&format!("tests/schemas/database/{number:02}.sql"))
}

/// The schemas that have a dump.
fn dumps() -> impl Iterator<Item = u32> {
    (1..).take_while(|number| dump(*number).exists())
}

/// A data directory below `dir` with the archive of a dump.
fn archive(dir: &Path, number: u32) -> PathBuf {
    archive_of(dir, &fs::read_to_string(dump(number)).unwrap())
}

/// A data directory below `dir` with the archive of the statements of a dump.
pub fn archive_of(dir: &Path, statements: &str) -> PathBuf {
    let data = dir.join("data");
    let folder = data.join("originals").join(&ORIGINAL[..2]);
    fs::create_dir_all(&folder).unwrap();
    let original = checkout("tests/schemas/database/original.jpg");
    fs::copy(original, folder.join(&ORIGINAL[2..])).unwrap();
    let database = Connection::open(data.join("wirephoto.db")).unwrap();
    database.execute_batch(statements).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    data
}

fn open(data: &Path) -> Connection {
    Connection::open(data.join("wirephoto.db")).unwrap()
}

fn number(data: &Path, sql: &str) -> u32 {
    open(data).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Runs a command on the data directory; returns its standard error and exit status.
fn run(data: &Path, arguments: &[&str]) -> (String, i32) {
    let mut command = wirephoto(data.parent().unwrap());
    let output = output(command.args(arguments).arg("--data").arg(data));
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code().unwrap())
}

/// The schema that the binary creates.
fn latest() -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert_eq!(run(&data, &["check"]).1, 0);
    number(&data, "PRAGMA user_version")
}

fn ask(server: &Server, path: &str) -> Value {
    let key = format!("ApiKey {DEMO_KEY}");
    let response = server.get_with(path, &[("authorization", &key)]);
    assert_eq!(response.status(), 200, "{path}: {}", server.log());
    response.json().unwrap()
}

#[test]
fn there_is_a_database_of_every_earlier_schema() {
    let (count, latest) = (u32::try_from(dumps().count()).unwrap(), latest());
    assert!(
        count + 1 >= latest,
        "schema {latest} came, and {} is missing: a dump of the schema before it",
        dump(count + 1).display()
    );
    assert!(count <= latest, "there is no schema {count}");
}

#[test]
fn a_database_of_every_earlier_schema_serves_what_it_held() {
    let latest = latest();
    for schema in dumps() {
        let dir = tempfile::tempdir().unwrap();
        let data = archive(dir.path(), schema);
        let server = Server::start(dir, &["media.warm=false"]);
        serves(&server, schema);
        hides_secrets(&server, schema);
        let said = server.command(&["check", "--repair"]);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "schema {schema}: {text}");
        assert_eq!(number(&data, "PRAGMA user_version"), latest, "schema {schema}");
        let log = server.log();
        assert_eq!(log.contains("is being upgraded"), schema < latest, "schema {schema}: {log}");
    }
}

/// Checks the responses of a server over the archive of a dump.
fn serves(server: &Server, schema: u32) {
    let document: Value = server.get("/media/image/old.json").json().unwrap();
    assert_eq!(document["headline"], "Isbrytaren Oden", "schema {schema}");
    assert!(server.bytes("/media/image/old_NormalPreview.jpg").len() > 500);
    let user = ask(server, "/user/v1/user");
    assert_eq!(user["userName"], "demo-editor", "schema {schema}");
    // Without credentials: users of the first schema had no agreements.
    let found: Value = server.get("/content/v1/image/search?q=isbrytar*").json().unwrap();
    assert!(found.to_string().contains("/media/image/old"), "schema {schema}: {found}");
    if schema >= 2 {
        let hires = server.bytes(&format!("/media/image/old.jpg?ak={DEMO_KEY}"));
        assert!(hires.len() > 1000);
        assert_eq!(user["agreements"][0]["id"], 1001);
        let orders = ask(server, "/user/v1/order");
        assert_eq!(orders["orders"][0]["item"]["headline"], "Isbrytaren Oden");
        assert_eq!(orders["orders"].as_array().unwrap().len(), 1, "the download was bought");
        assert_eq!(ask(server, "/user/v1/profile")["layout"], "wide");
        assert!(ask(server, "/user/v1/device").to_string().contains("token-1"));
        tokens::password(server, "demo-editor", "demo-editor-password", tokens::API_KEY_SCOPES);
    }
    if schema >= 4 {
        let channels = ask(server, "/user/v1/channel").to_string();
        assert!(channels.contains("demo-folder") && channels.contains("demo-mail"), "{channels}");
        let deliveries = ask(server, "/user/v1/delivery").to_string();
        assert!(deliveries.contains("01a203dd-5c0a-711a-97bd-9530a4d06165"), "{deliveries}");
    }
    if schema >= 5 {
        let notifications = ask(server, "/content/v1/_all/notification");
        assert_eq!(notifications.as_array().unwrap().len(), 3, "{notifications}");
        let stream = "be01ca24-0656-4bcd-9258-8d00caa20bda";
        let path = format!("/content/v1/_all/notification/{stream}/stream?wait=1");
        let hits = ask(server, &path).to_string();
        assert!(hits.contains("/media/text/ice"), "what was queued comes: {hits}");
        let parked = server.command(&["outbox", "list"]);
        let parked = String::from_utf8_lossy(&parked.stdout).into_owned();
        assert!(parked.contains("01a203dd-5c0a-711a-97bd-9530a4d06199"), "{parked}");
    }
    if schema >= 7 {
        let collections = ask(server, "/collection/v1/collection");
        assert_eq!(collections[0]["name"], "Winter");
        assert!(collections.to_string().contains("/media/image/old"));
        assert!(collections.to_string().contains("/media/text/gone"), "what it lost is told");
    }
}

/// Checks that the secrets of a dump, which were stored in plain text, still work and are no longer in the files.
fn hides_secrets(server: &Server, schema: u32) {
    let stored = postgres::stored(&server.data());
    let has = |part: &[u8]| stored.windows(part.len()).any(|window| window == part);
    let rsa = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    assert!(!has(&rsa), "schema {schema}: the signing key");
    if schema >= 2 {
        let keys: Value = server.get("/o/oauth2/keys").json().unwrap();
        let dump = fs::read_to_string(dump(schema)).unwrap();
        let kid = keys["keys"][0]["kid"].as_str().unwrap();
        assert!(dump.contains(&format!("'{kid}'")), "schema {schema}: id tokens verify as before");
        let listed = server.command(&["audit", "list", "--json", "--action", "secrets_encrypted"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.lines().count(), 1, "schema {schema}: {listed}");
    }
    if schema >= 5 {
        assert!(!has(b"Wpc-6jfF1_T8cd_AYxxmbfenGKWnL89rzHcWn55MtvY"), "schema {schema}");
    }
    if schema >= 9 {
        let channels = ask(server, "/user/v1/channel").to_string();
        assert!(channels.contains("ftp.agency.example"), "{channels}");
        assert!(channels.contains("***") && !channels.contains("schema-9"), "{channels}");
        assert!(!has(b"channel-password-of-schema-9"), "schema {schema}");
    }
}

#[test]
fn an_item_of_before_whose_id_contains_a_size_is_found_and_replaced_and_named_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let statements = fs::read_to_string(dump(dumps().last().unwrap())).unwrap();
    let renamed = statements.replace("'image', 'old'", "'image', 'x-fit_w2'");
    assert_ne!(renamed, statements);
    archive_of(dir.path(), &renamed);
    let server = Server::start(dir, &["media.warm=false"]);
    server.wait_for_index();
    let found: Value = server.get("/content/v1/image/search?q=isbrytar*").json().unwrap();
    assert!(found.to_string().contains("/media/image/x-fit_w2\""), "{found}");
    assert_eq!(server.get("/media/image/x-fit_w2").status(), 302);
    // With an extension the address is that of a size of another item, so the page cannot show it either.
    assert_eq!(server.get("/media/image/x-fit_w2.json").status(), 400);
    assert_eq!(server.get("/item/image/x-fit_w2").status(), 400);
    assert_eq!(server.get("/media/image/x-fit_w2_NormalPreview.jpg").status(), 404);
    let checked = server.command(&["check", "--repair", "--json"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{said}");
    let named = |line: &str| line.contains("\"warning\"") && line.contains("image/x-fit_w2");
    assert_eq!(said.lines().filter(|line| named(line)).count(), 1, "{said}");
    let folder = |id: &str| {
        let folder = server.dir.path().join("image").join(id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("item.json"), r#"{"headline": "Oden"}"#).unwrap();
        let original = checkout("tests/schemas/database/original.jpg");
        fs::copy(original, folder.join("NormalHires.jpg")).unwrap();
        server.command(&["ingest", &folder.to_string_lossy()])
    };
    let replaced = folder("x-fit_w2");
    let said = String::from_utf8_lossy(&replaced.stdout).into_owned();
    assert!(said.contains("0 created, 1 replaced, 0 failed"), "{said}");
    let refused = folder("y-fit_w2");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("\"-fit\""), "{said}");
}

#[test]
fn a_database_of_a_later_schema_is_refused_by_every_command_and_stays_unchanged() {
    let latest = latest();
    let dir = tempfile::tempdir().unwrap();
    let data = archive(dir.path(), dumps().last().unwrap());
    assert_eq!(run(&data, &["check", "--repair"]).1, 0);
    open(&data).pragma_update(None, "user_version", 9_999).unwrap();
    let before = fs::read(data.join("wirephoto.db")).unwrap();
    let target = dir.path().join("target").to_string_lossy().into_owned();
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
        let (said, status) = run(&data, arguments);
        assert_eq!(status, 1, "{arguments:?}: {said}");
        assert!(said.contains("9999"), "{arguments:?}: {said}");
        assert!(said.contains(&format!("up to {latest}")), "{arguments:?}: {said}");
    }
    assert!(fs::read(data.join("wirephoto.db")).unwrap() == before, "not a byte has changed");
}

#[test]
fn a_failed_migration_step_leaves_the_database_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let data = archive(dir.path(), 3);
    // Makes a later step fail; those before it succeed.
    open(&data).execute_batch("CREATE TABLE collections (mine TEXT)").unwrap();
    let (said, status) = run(&data, &["user", "list"]);
    assert!(status == 1 && said.contains("collections"), "{said}");
    assert_eq!(number(&data, "PRAGMA user_version"), 3);
    let made = "SELECT count(*) FROM sqlite_schema WHERE name IN ('deliveries', 'notifications')";
    assert_eq!(number(&data, made), 0, "the steps before it are undone");
    assert_eq!(number(&data, "SELECT count(*) FROM items"), 5);
    // Nothing was lost: without the obstacle the migration continues.
    open(&data).execute_batch("DROP TABLE collections").unwrap();
    assert_eq!(run(&data, &["user", "list"]).1, 0);
    assert_eq!(number(&data, "PRAGMA user_version"), latest());
}

#[test]
fn a_database_in_use_is_not_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let data = archive(dir.path(), 4);
    let lock = File::create(data.join("wirephoto.lock")).unwrap();
    lock.lock_shared().unwrap();
    let (said, status) = run(&data, &["user", "list"]);
    assert!(status == 1 && said.contains("stop the service"), "{said}");
    assert_eq!(number(&data, "PRAGMA user_version"), 4);
    lock.unlock().unwrap();
    let (said, status) = run(&data, &["user", "list"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains(&format!("from schema 4 to {}", latest())), "{said}");
    assert_eq!(run(&data, &["user", "list"]).0, "", "once");
}
