//! `wirephoto migrate`: an archive moves to PostgreSQL and a bucket while it is in use.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use reqwest::{StatusCode, blocking::Client};
use serde_json::{Value, json};

use crate::backup::{Acknowledged, load};
use crate::buckets::Bucket;
use crate::common::postgres::Cluster;
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, WAIT_TIMEOUT, news, pause, pictures::Picture};
use crate::search::ids;

/// A fixed base URL, so that every server returns the same bytes.
const SETTINGS: [&str; 3] =
    ["server.public_url=http://photos.example", "media.warm=false", "auth.hash_memory_kib=64"];

/// The new database's password, which no output may contain.
const PASSWORD: &str = "hemligt-nog";

/// The address of a new database, with a password in it.
fn database(cluster: &Cluster) -> String {
    cluster.database("moved").replace("wirephoto@", &format!("wirephoto:{PASSWORD}@"))
}

/// Runs a command on the data directory in `dir`; returns standard output, standard error and exit status.
fn run(dir: &Path, settings: &[String], arguments: &[&str]) -> (String, String, i32) {
    let mut command = wirephoto(dir);
    command.args(arguments).arg("--data").arg(dir.join("data"));
    for setting in settings {
        command.args(["--set", setting]);
    }
    let said = output(&mut command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&said.stdout), text(&said.stderr), said.status.code().unwrap_or(-1))
}

/// Runs a command that must succeed with `--json`; returns its JSON.
#[track_caller]
fn json(dir: &Path, settings: &[String], arguments: &[&str]) -> Value {
    let (stdout, stderr, status) = run(dir, settings, &[arguments, &["--json"]].concat());
    assert_eq!(status, 0, "{arguments:?}: {stdout}{stderr}");
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

/// Runs a command that must fail with these words in its error message.
#[track_caller]
fn fails(dir: &Path, settings: &[String], arguments: &[&str], words: &[&str]) {
    let (stdout, stderr, status) = run(dir, settings, arguments);
    assert_ne!(status, 0, "{arguments:?}: {stdout}{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
}

fn start(settings: &[String]) -> Server {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    Server::start(tempfile::tempdir().unwrap(), &settings)
}

fn ask(server: &Server, path: &str) -> Value {
    let response = server.get_with(path, &[("authorization", &format!("ApiKey {DEMO_KEY}"))]);
    assert_eq!(response.status(), 200, "{path}: {}", server.log());
    response.json().unwrap()
}

/// Creates a collection; returns its id, or the service's error.
fn collect(client: &Client, url: &str) -> Result<String, (StatusCode, String)> {
    let request = client
        .post(format!("{url}/collection/v1/collection"))
        .header("content-type", "application/json")
        .header("authorization", format!("ApiKey {DEMO_KEY}"))
        .body(json!({"name": "Moved", "content": []}).to_string());
    let response = request.send().unwrap();
    let status = response.status();
    let text = response.text().unwrap();
    if !status.is_success() {
        return Err((status, text));
    }
    let made: Value = serde_json::from_str(&text).unwrap();
    Ok(made["id"].as_str().unwrap().to_owned())
}

/// Sets the flag when it is dropped, also by a test that fails: a scope waits for its threads.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs clients until each kind of work was done `times` times, and then `work` while they continue.
fn with_load(server: &Server, times: usize, work: impl FnOnce()) -> Acknowledged {
    let (stop, done) = (AtomicBool::new(false), Mutex::new(Acknowledged::default()));
    std::thread::scope(|scope| {
        scope.spawn(|| load(server, &stop, &done));
        let _stop = StopOnDrop(&stop);
        let start = Instant::now();
        let least = || {
            let done = done.lock().unwrap();
            [done.items.len(), done.bought.len(), done.tokens.len()].into_iter().min()
        };
        while least() < Some(times) {
            assert!(start.elapsed().as_secs() < 300, "the clients get nowhere");
            pause();
        }
        work();
    });
    done.into_inner().unwrap()
}

/// Migrates while a client writes until it learns that the archive has moved; returns the collections that were
/// acknowledged before.
fn migrate_in_use(server: &Server, settings: &[String], way: &[&str]) -> Vec<String> {
    let client = Client::builder().no_proxy().timeout(5 * WAIT_TIMEOUT).build().unwrap();
    let mut collections = Vec::new();
    let refusal = std::thread::scope(|scope| {
        let moved =
            scope.spawn(|| json(server.dir.path(), settings, &[way, &["--switch"]].concat()));
        let refusal = loop {
            match collect(&client, &server.url) {
                Ok(id) => collections.push(id),
                Err((StatusCode::SERVICE_UNAVAILABLE, text)) if text.contains("moved") => {
                    break text;
                }
                // A user has at most 200 collections, and the switch may take a while.
                Err((StatusCode::SERVICE_UNAVAILABLE, _)) => {}
                Err((status, _)) if status.is_client_error() => pause(),
                Err(other) => panic!("{other:?}"),
            }
        };
        let moved = moved.join().unwrap();
        assert_eq!(moved["switched"], true, "{moved}");
        refusal
    });
    assert!(!refusal.contains(PASSWORD), "{refusal}");
    collections
}

/// Checks that everything acknowledged is there.
fn check_acknowledged(server: &Server, done: &Acknowledged, collections: &[String], stream: &str) {
    // The stream comes first: a stream without a reader expires.
    let path = format!("/content/v1/_all/notification/{stream}/stream?wait=60");
    let queued = ids(&ask(server, &path));
    assert!(queued.contains("first"), "what waited before the move: {queued}");
    let orders = ask(server, "/user/v1/order?size=500").to_string();
    for item in &done.bought {
        assert!(orders.contains(&format!("/media/{item}\"")), "{item} was bought: {orders}");
        assert!(!server.bytes(&format!("/media/{item}.jpg?ak={DEMO_KEY}")).is_empty());
    }
    let listed = ask(server, "/collection/v1/collection?layout=bare").to_string();
    for id in done.collections.iter().chain(collections) {
        assert!(listed.contains(id.as_str()), "{id}");
    }
    for token in &done.tokens {
        let bearer = format!("Bearer {token}");
        let response = server.get_with("/user/v1/user", &[("authorization", &bearer)]);
        assert_eq!(response.status(), 200, "a token that was given out");
    }
    let found = ids(&ask(server, "/content/v1/image/search?q=gammal"));
    assert_eq!(found, "earlier");
}

#[test]
fn an_archive_moves_while_in_use_and_nothing_acknowledged_is_lost() {
    let (cluster, bucket) = (Cluster::start(), Bucket::start());
    let url = database(&cluster);
    let there = bucket.settings("moved", &SETTINGS);
    let reach: Vec<String> =
        there.iter().filter(|one| !one.starts_with("store.originals")).cloned().collect();
    let earlier = news::document("Gammal", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let server = news::server(&SETTINGS, &[("image/earlier", earlier)]);
    let stream = {
        let request = server
            .client
            .post(format!("{}/content/v1/_all/notification/stream?q=isbrytare", server.url))
            .header("authorization", format!("ApiKey {DEMO_KEY}"))
            .header("content-type", "application/json");
        let made: Value = request.send().unwrap().json().unwrap();
        made["id"].as_str().unwrap().to_owned()
    };
    let first = news::document("Isbrytare", &["FOTO"], "2026-03-05T09:15:00+01:00");
    news::ingest(&server, "image/first", &first);
    let dir = server.dir.path();
    let place = "s3://bilder/moved";
    let way = ["migrate", "--to", url.as_str(), "--store", place];
    // A dry run during writes, and a second one.
    let mut said = Vec::new();
    let done = with_load(&server, 2, || {
        said.push(json(dir, &reach, &way));
        said.push(json(dir, &reach, &way));
    });
    assert_eq!(said[1]["switched"], false);
    assert!(said[0]["rows"]["items"].as_u64() >= Some(3), "{said:?}");
    assert!(said[1]["originals"]["there"].as_u64() >= said[0]["originals"]["copied"].as_u64());
    // A dry run cannot be mistaken for the migration.
    let new: Vec<String> = there.iter().cloned().chain([format!("database.url={url}")]).collect();
    let elsewhere = tempfile::tempdir().unwrap();
    fails(elsewhere.path(), &new, &["serve", "--listen", "127.0.0.1:0"], &["migrate", "--switch"]);
    let collections = migrate_in_use(&server, &reach, &way);
    // Secrets stay encrypted in transit: a node on the new database needs the key from the old data directory.
    let serve = ["serve", "--demo-public", "--listen", "127.0.0.1:0"];
    fails(elsewhere.path(), &new, &serve, &["encrypted with key", "secrets.key_file"]);
    let key = format!("secrets.key_file={}", server.data().join("secrets.key").display());
    let new: Vec<String> = new.into_iter().chain([key]).collect();
    // The old server still serves its cached renditions.
    let moved = start(&new);
    let preview =
        |server: &Server, item: &str| server.bytes(&format!("/media/{item}_NormalPreview.jpg"));
    for item in &done.items {
        assert!(preview(&server, item) == preview(&moved, item), "{item}");
    }
    check_acknowledged(&moved, &done, &collections, &stream);
    let (stdout, stderr, status) = run(moved.dir.path(), &new, &["check"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    // The new archive accepts new items.
    let later = news::document("Isbrytare igen", &["FOTO"], "2026-03-06T09:15:00+01:00");
    let folder = tempfile::tempdir().unwrap();
    news::write(folder.path(), &[("image/later", later)]);
    let picture = Picture::waves(90, 60).jpeg();
    fs::write(folder.path().join("image/later/NormalHires.jpg"), picture).unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    json(moved.dir.path(), &new, &["ingest", &path]);
    moved.until("the new item", || {
        (moved.get("/media/image/later.json").status() == 200).then_some(())
    });
    // Another archive cannot be migrated to a database that holds one.
    let other = Server::with_pictures(&[], &[("one", Picture::waves(64, 48).jpeg())]);
    fails(other.dir.path(), &[], &["migrate", "--to", &url], &["holds an archive already"]);
}

#[test]
fn a_switch_is_undone() {
    let cluster = Cluster::start();
    let url = database(&cluster);
    let server = Server::with_pictures(&[], &[("one", Picture::waves(64, 48).jpeg())]);
    let dir = server.dir.path();
    let undo = ["migrate", "--undo", "--to", url.as_str()];
    fails(dir, &[], &undo, &["has not been migrated"]);
    fails(dir, &[], &["migrate", "--undo"], &["--to", "--force"]);
    fails(dir, &[], &["migrate"], &["--to"]);
    fails(dir, &[], &["migrate", "--store", "s3://bilder", "--switch"], &["--to"]);
    json(dir, &[], &["migrate", "--to", &url, "--switch"]);
    let client = Client::builder().no_proxy().timeout(5 * WAIT_TIMEOUT).build().unwrap();
    let (status, text) = collect(&client, &server.url).unwrap_err();
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("moved"), "{text}");
    // Commands that write are refused for the same reason.
    fails(dir, &[], &["user", "disable", "demo-editor"], &["moved"]);
    let other = cluster.database("other");
    fails(dir, &[], &["migrate", "--undo", "--to", &other], &["another database"]);
    let back = json(dir, &[], &undo);
    let home = back["movedTo"].as_str().unwrap();
    assert!(home.starts_with("postgres://") && !home.contains(PASSWORD), "{home}");
    collect(&client, &server.url).unwrap();
    // No node can start on the old target any more, and a later migration resumes from the data there.
    let elsewhere = tempfile::tempdir().unwrap();
    let new = [format!("database.url={url}")];
    fails(elsewhere.path(), &new, &["serve", "--listen", "127.0.0.1:0"], &["migrate", "--switch"]);
    json(dir, &[], &["migrate", "--to", &url, "--switch"]);
    collect(&client, &server.url).unwrap_err();
}

/// Two services over one archive would both take orders, and send the same messages.
#[test]
fn a_switch_is_not_undone_once_the_target_is_in_use() {
    let cluster = Cluster::start();
    let url = database(&cluster);
    let server = Server::with_pictures(&[], &[("one", Picture::waves(64, 48).jpeg())]);
    let dir = server.dir.path();
    let undo = ["migrate", "--undo", "--to", url.as_str()];
    json(dir, &[], &["migrate", "--to", &url, "--switch"]);
    let key = format!("secrets.key_file={}", server.data().join("secrets.key").display());
    let originals = format!("store.originals={}", server.data().join("originals").display());
    let moved = start(&[format!("database.url={url}"), key, originals]);
    fails(dir, &[], &undo, &["the node", "uses it"]);
    let client = Client::builder().no_proxy().build().unwrap();
    collect(&client, &moved.url).unwrap();
    // The node has stopped, but its writes remain.
    let (status, log) = moved.stop();
    assert!(status.success(), "{log}");
    fails(dir, &[], &undo, &["has changed since the migration"]);
    collect(&client, &server.url).unwrap_err();
    // The PostgreSQL server of that database is down.
    cluster.down();
    fails(dir, &[], &undo, &["--force"]);
    collect(&client, &server.url).unwrap_err();
    let back = json(dir, &[], &["migrate", "--undo", "--force"]);
    assert_eq!(back["switched"], false);
    collect(&client, &server.url).unwrap();
}
