//! `wirephoto backup` and `restore`: a copy of the archive taken while it is served, and its restore.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use reqwest::blocking::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, WAIT_TIMEOUT, news, pause, pictures::Picture, tokens};
use crate::faults::kit::Faults;
use crate::search::ids;

/// A fixed base URL, so that every server returns the same bytes.
const BASE: &str = "server.public_url=http://photos.example";
const SETTINGS: [&str; 2] = [BASE, "media.warm=false"];

/// Runs a command on the data directory: its standard output, standard error and status.
fn run(data: &Path, arguments: &[&str]) -> (String, String, i32) {
    let mut command = wirephoto(data.parent().unwrap());
    outcome(&output(command.args(arguments).arg("--data").arg(data)))
}

fn outcome(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}

/// Runs a command that must succeed with `--json`; returns the last line of its output.
fn json(data: &Path, arguments: &[&str]) -> Value {
    let (stdout, stderr, status) = run(data, &[arguments, &["--json"]].concat());
    assert_eq!(status, 0, "{arguments:?}: {stdout}{stderr}");
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

/// Runs a command that must fail with these words in its error message.
#[track_caller]
fn fails(data: &Path, arguments: &[&str], words: &[&str]) {
    let (_, stderr, status) = run(data, arguments);
    assert_eq!(status, 1, "{arguments:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A server with two photographs, and a folder next to its data directory for a backup.
fn two_photographs() -> (Server, PathBuf) {
    let pictures =
        [("one", Picture::waves(64, 48).jpeg()), ("two", Picture::grain(60, 40).jpeg())];
    let server = Server::with_pictures(&SETTINGS, &pictures);
    let target = server.dir.path().join("target");
    (server, target)
}

/// A server over a backup that is restored into a separate folder.
fn restored(target: &Path) -> Server {
    let dir = tempfile::tempdir().unwrap();
    let said = json(&dir.path().join("data"), &["restore", &text(target), "--rebuild"]);
    assert_eq!((&said["problems"], &said["lost"]), (&0.into(), &0.into()), "{said}");
    Server::start(dir, &SETTINGS)
}

fn manifest(target: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(target.join("backup.json")).unwrap()).unwrap()
}

fn database(target: &Path) -> PathBuf {
    target.join(manifest(target)["database"].as_str().unwrap())
}

/// The names of the files in a folder that begin with `start`.
fn names(dir: &Path, start: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(start)).collect()
}

/// The originals below a folder, by name.
fn originals(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir.join("originals"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.len() == 2))
        .flat_map(|path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()))
        .collect();
    found.sort();
    found
}

/// The changes that the server has acknowledged to clients.
#[derive(Clone, Default)]
pub struct Acknowledged {
    pub items: Vec<String>,
    pub bought: Vec<String>,
    pub collections: Vec<String>,
    pub tokens: Vec<String>,
}

/// Runs clients that write until `stop` is set, and records what was acknowledged.
pub fn load(server: &Server, stop: &AtomicBool, done: &Mutex<Acknowledged>) {
    let client = Client::builder().no_proxy().timeout(5 * WAIT_TIMEOUT).build().unwrap();
    let url = &server.url;
    let key = format!("ApiKey {DEMO_KEY}");
    let going = || !stop.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while going() {
                number += 1;
                let folder = tempfile::tempdir().unwrap();
                let created = "2026-03-05T09:15:00+01:00";
                let document = news::document(&format!("Isbrytare {number}"), &["FOTO"], created);
                let id = format!("image/item{number}");
                news::write(folder.path(), &[(id.as_str(), document)]);
                let picture = Picture::waves(64 + number, 48).jpeg();
                fs::write(folder.path().join(&id).join("NormalHires.jpg"), picture).unwrap();
                let taken = server.command(&["ingest", &text(folder.path())]);
                assert!(taken.status.success(), "{}", outcome(&taken).1);
                done.lock().unwrap().items.push(id);
            }
        });
        scope.spawn(|| {
            while going() {
                let bought = done.lock().unwrap().bought.len();
                let Some(item) = done.lock().unwrap().items.get(bought).cloned() else {
                    pause();
                    continue;
                };
                let request = client.get(format!("{url}/media/{item}.jpg"));
                let response = request.header("authorization", &key).send().unwrap();
                // The server sees a new item within a second.
                if response.status() == 200 && !response.bytes().unwrap().is_empty() {
                    done.lock().unwrap().bought.push(item);
                }
            }
        });
        scope.spawn(|| {
            // A user has at most 200 collections.
            for _ in (0..150).take_while(|_| going()) {
                let request = client.post(format!("{url}/collection/v1/collection"));
                let body = json!({"name": "Winter", "content": [{"uri": format!("{url}/media/image/first")}]});
                let request = request.header("content-type", "application/json");
                let request = request.header("authorization", &key).body(body.to_string());
                let made: Value = request.send().unwrap().json().unwrap();
                let id = made["id"].as_str().unwrap().to_owned();
                done.lock().unwrap().collections.push(id);
            }
        });
        scope.spawn(|| {
            while going() {
                let token = tokens::password(
                    server,
                    "demo-editor",
                    "demo-editor-password",
                    tokens::API_KEY_SCOPES,
                );
                done.lock().unwrap().tokens.push(token);
            }
        });
    });
}

/// Checks that everything acknowledged before a backup is in a server over it.
fn check_restored(server: &Server, done: &Acknowledged, stream: &str, source: &Server) {
    let key = format!("ApiKey {DEMO_KEY}");
    let ask = |path: &str| -> Value {
        let response = server.get_with(path, &[("authorization", &key)]);
        assert_eq!(response.status(), 200, "{path}: {}", server.log());
        response.json().unwrap()
    };
    // The stream comes first: a stream without a reader expires.
    let path = format!("/content/v1/_all/notification/{stream}/stream?wait=60");
    let queued = ids(&ask(&path));
    assert!(queued.contains("first"), "what waited before the backup: {queued}");
    for item in &done.items {
        let hires = format!("/media/{item}.jpg?ak={DEMO_KEY}");
        assert!(server.bytes(&hires) == source.bytes(&hires), "{item}");
        assert_eq!(server.get(&format!("/media/{item}_NormalPreview.jpg")).status(), 200);
    }
    let orders = ask("/user/v1/order?size=500").to_string();
    for item in &done.bought {
        assert!(orders.contains(&format!("/media/{item}\"")), "{item} was bought: {orders}");
    }
    let collections = ask("/collection/v1/collection?layout=bare").to_string();
    for id in &done.collections {
        assert!(collections.contains(id.as_str()), "{id}");
    }
    for token in &done.tokens {
        let bearer = format!("Bearer {token}");
        let response = server.get_with("/user/v1/user", &[("authorization", &bearer)]);
        assert_eq!(response.status(), 200, "a token that was given out");
    }
}

#[test]
fn everything_acknowledged_before_a_backup_is_served_after_its_restore() {
    let first = news::document("Isbrytare", &["FOTO"], "2026-03-05T09:15:00+01:00");
    let settings = [SETTINGS.as_slice(), &["auth.hash_memory_kib=64"]].concat();
    let earlier = news::document("Gammal", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let server = news::server(&settings, &[("image/earlier", earlier)]);
    let request = server
        .client
        .post(format!("{}/content/v1/_all/notification/stream?q=isbrytare", server.url));
    let made: Value = request
        .header("authorization", format!("ApiKey {DEMO_KEY}"))
        .header("content-type", "application/json")
        .send()
        .unwrap()
        .json()
        .unwrap();
    let stream = made["id"].as_str().unwrap().to_owned();
    news::ingest(&server, "image/first", &first);
    server.until("the first item", || {
        (server.get("/media/image/first.json").status() == 200).then_some(())
    });
    let target = server.dir.path().join("target");
    let (stop, done) = (AtomicBool::new(false), Mutex::new(Acknowledged::default()));
    let (mut acknowledged, mut said) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| load(&server, &stop, &done));
        for round in 1..=2 {
            let start = Instant::now();
            loop {
                let least = {
                    let done = done.lock().unwrap();
                    [done.items.len(), done.bought.len(), done.tokens.len()]
                };
                if least.into_iter().min() >= Some(2 * round) {
                    break;
                }
                assert!(start.elapsed().as_secs() < 300, "the clients get nowhere: {least:?}");
                pause();
            }
            acknowledged.push(done.lock().unwrap().clone());
            said.push(json(&server.data(), &["backup", &text(&target)]));
            // The check reports no operation in flight as damage.
            let (stdout, stderr, status) = run(&server.data(), &["check"]);
            assert_eq!(status, 0, "{stdout}{stderr}");
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(said[1]["there"].as_u64() >= said[0]["copied"].as_u64(), "{said:?}");
    assert!(said[1]["copied"].as_u64() >= Some(1), "only what is new is copied: {said:?}");
    assert_eq!(names(&target, "wirephoto-").len(), 1, "one state of the database");
    let copy = restored(&target);
    check_restored(&copy, &acknowledged[1], &stream, &server);
    let (stdout, stderr, status) = run(&copy.data(), &["check"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    // Byte for byte, under the same names.
    for path in originals(&copy.data()) {
        let name = path.strip_prefix(copy.data()).unwrap();
        assert!(fs::read(&path).unwrap() == fs::read(server.data().join(name)).unwrap());
    }
}

#[test]
fn a_backup_is_private_to_its_owner_and_is_updated_in_place() {
    let (server, target) = two_photographs();
    let data = server.data();
    let said = json(&data, &["backup", &text(&target)]);
    assert_eq!(
        (&said["items"], &said["copied"], &said["there"]),
        (&2.into(), &2.into(), &0.into())
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), 0o700);
    assert_eq!(mode(&target.join("originals")), 0o700);
    for name in ["backup.json", "backup.lock"] {
        assert_eq!(mode(&target.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&database(&target)), 0o600);
    assert_eq!(names(&target, "secrets-").len(), 1, "the key of what is encrypted");
    assert_eq!(names(&target, "").len(), 5, "no file is left over: {:?}", names(&target, ""));
    // What an interrupted backup left is removed by the next one.
    fs::write(target.join("wirephoto-20200101T000000000Z.db.part"), "half").unwrap();
    let hires = Picture::waves(80, 60).jpeg();
    let file = server.dir.path().join("one.jpg");
    fs::write(&file, hires).unwrap();
    assert!(server.command(&["ingest", &text(&file)]).status.success());
    let said = json(&data, &["backup", &text(&target)]);
    assert_eq!((&said["copied"], &said["there"]), (&1.into(), &1.into()));
    assert_eq!(names(&target, "wirephoto-").len(), 1);
    assert_eq!(originals(&target).len(), 3, "the replaced one stays");
    let said = json(&data, &["backup", &text(&target), "--prune"]);
    assert_eq!((&said["pruned"], originals(&target).len()), (&1.into(), 2));
    // Bit rot on the backup's disk is found and repaired by `--verify`.
    let rotten = &originals(&target)[0];
    let mut bytes = fs::read(rotten).unwrap();
    bytes[100] ^= 1;
    fs::write(rotten, bytes).unwrap();
    let said = json(&data, &["backup", &text(&target), "--verify"]);
    assert_eq!((&said["copied"], &said["there"]), (&1.into(), &1.into()));
    restored(&target);
}

#[test]
fn a_backup_that_fails_leaves_the_earlier_one() {
    let (server, target) = two_photographs();
    let data = server.data();
    let not_ours = server.dir.path().join("photos");
    fs::create_dir(&not_ours).unwrap();
    fs::write(not_ours.join("mine.jpg"), "mine").unwrap();
    fails(&data, &["backup", &text(&not_ours)], &["photos", "something other than a backup"]);
    assert_eq!(names(&not_ours, ""), ["mine.jpg"]);
    fails(&data, &["backup", "/proc/nope"], &["/proc/nope"]);
    let nothing = server.dir.path().join("nothing");
    fails(&nothing, &["backup", &text(&target)], &["nothing", "no archive"]);
    assert!(!target.exists() && !nothing.exists());
    json(&data, &["backup", &text(&target)]);
    let before = manifest(&target);
    // The file size limit of the process is 50 kB (dash) or 100 kB: a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" backup \"$1\" --data \"$2\""]);
    let output = command
        .arg(env!("CARGO_BIN_EXE_wirephoto"))
        .args([&target, &data])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (_, stderr, status) = outcome(&output);
    assert!(status == 1 && stderr.contains(&text(&target)), "{status}: {stderr}");
    assert_eq!(manifest(&target), before);
    assert!(names(&target, "backup.json").len() == 1 && database(&target).is_file());
    // Concurrent backups would interfere with each other.
    let lock = File::open(target.join("backup.lock")).unwrap();
    lock.lock().unwrap();
    fails(&data, &["backup", &text(&target)], &["another process"]);
    fails(&server.dir.path().join("new"), &["restore", &text(&target)], &["another process"]);
    lock.unlock().unwrap();
    drop(restored(&target));
    assert_eq!(run(&data, &["backup"]).2, 2, "bad usage");
}

#[test]
fn a_lost_original_is_reported_and_the_rest_is_copied() {
    let (server, target) = two_photographs();
    let data = server.data();
    let lost = &originals(&data)[0];
    fs::remove_file(lost).unwrap();
    let name = lost.file_name().unwrap().to_string_lossy().into_owned();
    fails(&data, &["backup", &text(&target)], &[&name]);
    assert_eq!((&manifest(&target)["lost"], originals(&target).len()), (&1.into(), 1));
    let dir = tempfile::tempdir().unwrap();
    let (_, stderr, status) = run(&dir.path().join("data"), &["restore", &text(&target)]);
    assert!(status == 1 && stderr.contains("is missing") && stderr.contains("image/"), "{stderr}");
    // The other item is still served.
    let server = Server::start(dir, &SETTINGS);
    let found = ["one", "two"]
        .map(|id| server.get(&format!("/media/image/{id}_NormalPreview.jpg")).status().as_u16());
    assert!(found.contains(&200) && found.iter().any(|status| *status != 200), "{found:?}");
}

/// An original that only the backup has must not be pruned because a row cannot be read.
#[test]
fn nothing_is_pruned_while_item_rows_are_unreadable() {
    let (server, target) = two_photographs();
    let data = server.data();
    json(&data, &["backup", &text(&target)]);
    let database = Connection::open(data.join("wirephoto.db")).unwrap();
    let sql = "UPDATE items SET assets = CAST(assets || X'FF' AS TEXT) WHERE id = 'one'";
    database.execute(sql, []).unwrap();
    let words = ["item image/one", "--prune was skipped"];
    fails(&data, &["backup", &text(&target), "--prune"], &words);
    assert_eq!((&manifest(&target)["lost"], originals(&target).len()), (&1.into(), 2));
    // Invalid UTF-8 in a row prevents neither a backup nor a restore.
    let dir = tempfile::tempdir().unwrap();
    fails(&dir.path().join("data"), &["restore", &text(&target)], &["item image/one"]);
    let copy = Server::start(dir, &SETTINGS);
    assert_eq!(copy.get("/media/image/two_NormalPreview.jpg").status(), 200);
    database.execute("UPDATE items SET assets = '[]' WHERE id = 'one'", []).unwrap();
    let said = json(&data, &["backup", &text(&target), "--prune"]);
    assert_eq!((&said["pruned"], &said["lost"]), (&1.into(), &0.into()), "rows are whole again");
}

/// A damaged blob in the backup may be the last copy when the archive has lost it.
#[test]
fn a_damaged_original_in_a_backup_is_kept_until_an_intact_copy_replaces_it() {
    let faults = Faults::new();
    let (server, target) = two_photographs();
    let data = server.data();
    json(&data, &["backup", &text(&target)]);
    let [one, two] = &originals(&target)[..] else { panic!("two originals") };
    let whole = fs::read(one).unwrap();
    let mut rotten = whole.clone();
    rotten[100] ^= 1;
    fs::write(one, &rotten).unwrap();
    let lost = data.join(one.strip_prefix(&target).unwrap());
    let kept = server.dir.path().join("kept.jpg");
    fs::rename(&lost, &kept).unwrap();
    let verify = ["backup", &text(&target), "--verify"];
    let name = one.file_name().unwrap().to_string_lossy().into_owned();
    fails(&data, &verify, &[&name, "is not copied"]);
    assert!(fs::read(one).unwrap() == rotten, "most of it is better than nothing");
    fs::rename(&kept, &lost).unwrap();
    // A blob that the backup's disk cannot read is copied again, and the others are verified.
    let name = two.file_name().unwrap().to_string_lossy().into_owned();
    faults.set(&[&format!("eio-read /target/originals/{}/{name}", &parent(two))]);
    let mut command = wirephoto(server.dir.path());
    command.envs(faults.environment()).args(verify).arg("--json").arg("--data").arg(&data);
    let (stdout, stderr, status) = outcome(&output(&mut command));
    assert_eq!(status, 0, "{stderr}");
    let said: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&said["copied"], &said["there"]), (&2.into(), &0.into()), "{said}");
    assert!(fs::read(one).unwrap() == whole);
    restored(&target);
}

/// The name of the folder that a file lies in.
fn parent(path: &Path) -> String {
    path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned()
}

/// Copying originals takes hours, and a new version of the program must not wait for it.
#[test]
fn an_upgrade_does_not_wait_for_the_originals_of_a_backup() {
    let (mut server, target) = two_photographs();
    let data = server.data();
    server.signal("KILL");
    server.child.wait().unwrap();
    // An original that cannot be read for as long as the test needs.
    let slow = originals(&data).pop().unwrap();
    fs::remove_file(&slow).unwrap();
    assert!(Command::new("mkfifo").arg(&slow).status().unwrap().success());
    let mut command = wirephoto(server.dir.path());
    command.arg("backup").arg(&target).arg("--data").arg(&data);
    let backup = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.until("an original to be copied", || {
        (target.join("originals").is_dir() && !originals(&target).is_empty()).then_some(())
    });
    let lock = File::open(data.join("wirephoto.lock")).unwrap();
    server.until("the directory to be free", || lock.try_lock().ok());
    lock.unlock().unwrap();
    drop(File::options().write(true).open(&slow).unwrap());
    let (_, stderr, status) = outcome(&backup.wait_with_output().unwrap());
    assert!(status == 1 && stderr.contains("is not copied"), "{stderr}");
    assert_eq!(manifest(&target)["lost"], 1);
}

#[test]
fn a_restore_refuses_incomplete_backups_and_never_overwrites_an_archive() {
    let (server, target) = two_photographs();
    json(&server.data(), &["backup", &text(&target)]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let restore = ["restore", &text(&target)];
    let before = fs::read(server.data().join("wirephoto.db")).unwrap();
    fails(&server.data(), &restore, &["already holds an archive"]);
    assert!(fs::read(server.data().join("wirephoto.db")).unwrap() == before);
    // A server uses the directory.
    fs::create_dir(&data).unwrap();
    let lock = File::create(data.join("wirephoto.lock")).unwrap();
    lock.lock_shared().unwrap();
    fails(&data, &restore, &["another process is using"]);
    lock.unlock().unwrap();
    let note = fs::read_to_string(target.join("backup.json")).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed: Value = serde_json::from_str(&note).unwrap();
        change(&mut changed);
        fs::write(target.join("backup.json"), changed.to_string()).unwrap();
    };
    fs::remove_file(target.join("backup.json")).unwrap();
    fails(&data, &restore, &["no complete backup"]);
    with(&|note| note["form"] = 99.into());
    fails(&data, &restore, &["format 99"]);
    with(&|note| note["database"] = "../wirephoto.db".into());
    fails(&data, &restore, &["not the name of a database"]);
    with(&|note| note["databaseSum"] = "00".repeat(32).into());
    fails(&data, &restore, &["is damaged"]);
    // The backup was made by a later version.
    fs::write(target.join("backup.json"), &note).unwrap();
    let copied = database(&target);
    Connection::open(&copied).unwrap().pragma_update(None, "user_version", 9_999).unwrap();
    fails(&data, &restore, &["is damaged"]);
    let sum: String = Sha256::digest(fs::read(&copied).unwrap())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    with(&|note| note["databaseSum"] = sum.clone().into());
    fails(&data, &restore, &["schema 9999"]);
    assert!(!data.join("wirephoto.db").exists(), "no half archive");
    fails(&data, &["restore", "missing"], &["missing"]);
}

#[test]
fn a_restore_reports_what_a_check_reports_and_derived_files_are_rebuilt_on_demand() {
    let (server, target) = two_photographs();
    // The standard renditions are made, and a restored archive has none.
    let open = |data: &Path| Connection::open(data.join("wirephoto.db")).unwrap();
    let sql = "INSERT OR REPLACE INTO state (name, value) VALUES ('standard-sets', '{}')";
    assert_eq!(open(&server.data()).execute(sql, []).unwrap(), 1);
    json(&server.data(), &["backup", &text(&target)]);
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("data");
    // An earlier restore was interrupted: some originals are there, but no database.
    let taken = originals(&target).remove(0);
    let place = data.join(taken.strip_prefix(&target).unwrap());
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::copy(&taken, &place).unwrap();
    let said = json(&data, &["restore", &text(&target)]);
    assert_eq!((&said["copied"], &said["there"]), (&1.into(), &1.into()));
    assert_eq!((&said["problems"], &said["underived"]), (&0.into(), &2.into()));
    let sql = "SELECT count(*) FROM state WHERE name = 'standard-sets'";
    let progress: i64 = open(&data).query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(progress, 0, "the job begins again");
    let server = Server::start(dir, &SETTINGS);
    for id in ["one", "two"] {
        assert!(server.bytes(&format!("/media/image/{id}_NormalPreview.jpg")).len() > 300);
    }
    assert_eq!(run(&data, &["check", "--repair"]).2, 0);
    assert_eq!(run(&data, &["check"]).2, 0);
}
