//! Only a node that serves and `store adopt` change what an archive and its stores of originals say about each other:
//! every other command leaves the marks as they are, between folders, between buckets and from one to the other.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::buckets::{Bucket, run, run_ok, text};
use crate::common::Server;
use crate::common::pictures::Picture;
use crate::common::server::wirephoto;
use crate::faults::kit::{self, photograph, upload};

/// One more node over the data directory of an archive.
pub struct SecondNode {
    child: Child,
    log: PathBuf,
    is_serving: bool,
}

impl SecondNode {
    /// Starts a node; returns when it serves or has ended.
    pub fn start(dir: &Path, settings: &[String]) -> Self {
        let log = dir.join("second-log");
        let mut command = wirephoto(dir);
        command
            .args(["serve", "--demo-public", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir.join("data"));
        for setting in settings.iter().map(String::as_str).chain(["media.warm=false"]) {
            command.args(["--set", setting]);
        }
        let errors = File::create(&log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_serving = lines.map_while(Result::ok).any(|line| line.starts_with("listening on "));
        Self { child, log, is_serving }
    }

    pub fn serves(&self) -> bool {
        self.is_serving
    }

    /// The log of the node.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Stops the node, which must end well if it served.
    pub fn stop(mut self) {
        if self.is_serving {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        }
        let status = self.child.wait().unwrap();
        assert_eq!(status.success(), self.is_serving, "{}", self.said());
    }
}

impl Drop for SecondNode {
    fn drop(&mut self) {
        // It has ended unless the test failed.
        drop(self.child.kill());
    }
}

/// A store of originals.
#[derive(Clone)]
struct Place {
    settings: Vec<String>,
    /// The folder, or the prefix in the bucket.
    name: String,
}

impl Place {
    fn folder(path: &Path) -> Self {
        Self { settings: vec![format!("store.originals={}", text(path))], name: text(path) }
    }

    fn bucket(bucket: &Bucket, prefix: &str) -> Self {
        Self { settings: bucket.settings(prefix, &[]), name: format!("s3://bilder/{prefix}") }
    }

    /// The settings for a command that names the place itself, such as a migration.
    fn access(&self) -> impl Iterator<Item = String> {
        self.settings.iter().filter(|one| !one.starts_with("store.originals")).cloned()
    }

    /// The mark, as it can be compared.
    fn mark(&self, bucket: &mut Bucket) -> Value {
        match self.name.strip_prefix("s3://bilder/") {
            Some(prefix) => bucket.s3.ask(&format!("{prefix}/archive-id"))["sha256"].clone(),
            None => fs::read_to_string(format!("{}/archive-id", self.name)).unwrap().into(),
        }
    }
}

/// The rows about stores of the database in `dir`.
fn claims(dir: &Path) -> Vec<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(dir.join("data/wirephoto.db"), flags).unwrap();
    let sql = "SELECT name || '=' || value FROM state WHERE name LIKE 'store%' ORDER BY name";
    let mut rows = database.prepare(sql).unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn put(server: &Server, number: usize) -> u16 {
    let key = format!("image/new{number}");
    upload(server, &key, "Ny", &photograph(number)).send().unwrap().status().as_u16()
}

/// Commands that read, or write something else than originals, with their expected exit status.
fn commands(scratch: &Path) -> Vec<Vec<String>> {
    let backup = text(&scratch.join("backup"));
    let lines = [
        "check",
        "check --quick --json",
        "check --repair",
        "doctor",
        "nodes",
        "delivery list",
        "outbox list",
        "audit list",
        "user list",
        "signing-key list",
        "config",
        "reindex",
        &format!("backup {backup}"),
        &format!("backup verify {backup}"),
        &format!("migrate --store {}", text(&scratch.join("third"))),
    ];
    lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// Copies an archive from one place to the other beside its service, looks at the copy with every command, and
/// switches.
fn check(bucket: &mut Bucket, here: &Place, there: &Place, dir: tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let settings: Vec<&str> =
        here.settings.iter().map(String::as_str).chain(["media.warm=false"]).collect();
    let server = Server::start(dir, &settings);
    let dir = server.dir.path();
    let migrate = ["migrate", "--store", &there.name];
    let mut both: Vec<String> = here.settings.clone();
    both.extend(there.access());
    run_ok(dir, &both, &migrate);

    let marks =
        |bucket: &mut Bucket| (here.mark(bucket), there.mark(bucket), claims(server.dir.path()));
    let before = marks(bucket);
    for command in commands(scratch.path()) {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        // A diagnosis may find problems; it changes nothing all the same.
        let (said, status) = run(dir, &there.settings, &arguments);
        assert!(status == 0 || command[0] == "doctor", "{command:?}: {said}");
        assert_eq!(marks(bucket), before, "{command:?}");
    }
    run_ok(dir, &both, &["check", "--quick"]);
    run_ok(dir, &both, &migrate);
    assert_eq!(marks(bucket), before, "the same again");
    // Nothing is stored in a copy that is not in use, or removed from it.
    let incoming = text(&dir.join("incoming"));
    for arguments in [&["ingest", &incoming][..], &["check", "--quick", "--prune-orphans"]] {
        let (said, status) = run(dir, &there.settings, arguments);
        let reason = "start the service with these settings, or run `wirephoto store adopt`";
        assert!(status == 1 && said.contains(reason), "{arguments:?}: {said}");
        assert_eq!(marks(bucket), before, "{arguments:?}");
    }
    assert_eq!(put(&server, 1), 201, "{}", server.log());

    // The switch: a node with the new settings, and then none with the old ones.
    run_ok(dir, &both, &migrate);
    let node = SecondNode::start(dir, &there.settings);
    assert!(node.serves(), "{}", node.said());
    server.until("the fault of the store to be told", || {
        (server.metric("wirephoto_fault", "store") == 1.0).then_some(())
    });
    assert_eq!(put(&server, 2), 503, "{}", server.log());
    node.stop();
    let old = SecondNode::start(dir, &here.settings);
    assert!(!old.serves(), "a node with the old store starts");
    assert!(old.said().contains(&format!("are in {} now", there.name)), "{}", old.said());
    old.stop();
    let (said, status) = run(dir, &here.settings, &["check"]);
    assert!(status == 1 && said.contains("store adopt"), "{said}");
    // Back on purpose.
    run_ok(dir, &here.settings, &["store", "adopt"]);
    server.until("the fault to be over", || {
        (server.metric("wirephoto_fault", "store") == 0.0).then_some(())
    });
    assert_eq!(put(&server, 2), 201, "{}", server.log());
    let back = SecondNode::start(dir, &there.settings);
    assert!(!back.serves(), "a node with the store that was left starts");
    back.stop();
}

fn archive(place: &Place) -> tempfile::TempDir {
    let settings: Vec<&str> = place.settings.iter().map(String::as_str).collect();
    kit::scene_with(&[("image/old", kit::document("Gammal"))], &settings)
}

#[test]
fn commands_leave_every_mark_as_it_is_and_a_replaced_store_is_refused() {
    let mut bucket = Bucket::start();
    let folders = tempfile::tempdir().unwrap();
    let folder = |name: &str| Place::folder(&folders.path().join(name));
    let (first, second) = (Place::bucket(&bucket, "first"), Place::bucket(&bucket, "second"));
    let third = Place::bucket(&bucket, "third");
    let pairs = [(folder("a"), folder("b")), (folder("c"), first), (second, third)];
    for (here, there) in pairs {
        check(&mut bucket, &here, &there, archive(&here));
    }
}

#[test]
fn a_folder_that_was_moved_or_is_mounted_elsewhere_is_the_store_of_its_archive() {
    let folders = tempfile::tempdir().unwrap();
    let (old, new) = (folders.path().join("old"), folders.path().join("new"));
    let place = Place::folder(&old);
    let dir = archive(&place);
    let node = SecondNode::start(dir.path(), &place.settings);
    assert!(node.serves(), "{}", node.said());
    node.stop();
    fs::rename(&old, &new).unwrap();
    let moved = Place::folder(&new).settings;
    let node = SecondNode::start(dir.path(), &moved);
    assert!(node.serves(), "{}", node.said());
    node.stop();
    run_ok(dir.path(), &moved, &["check"]);
    run_ok(dir.path(), &moved, &["ingest", &text(&dir.path().join("incoming"))]);
}

#[test]
fn derived_files_follow_their_originals_out_of_a_bucket() {
    let bucket = Bucket::start();
    let folders = tempfile::tempdir().unwrap();
    let (here, there) = (Place::bucket(&bucket, "a"), Place::folder(&folders.path().join("b")));
    let settings: Vec<&str> = here.settings.iter().map(String::as_str).collect();
    let server = Server::start(archive(&here), &settings);
    // A progressive original has a working copy, and a large one a standard set.
    let mut transform = turbojpeg::Transform::op(turbojpeg::TransformOp::None);
    transform.progressive = true;
    let jpeg = Picture::waves(2600, 1800).jpeg();
    let jpeg = turbojpeg::transform(&transform, &jpeg).unwrap().to_vec();
    assert_eq!(upload(&server, "image/large", "Stor", &jpeg).send().unwrap().status(), 201);
    server.bytes("/media/image/large_NormalPreview.jpg");
    let dir = server.kill();
    let mut both = here.settings.clone();
    both.extend(there.access());
    run_ok(dir.path(), &both, &["migrate", "--store", &there.name]);
    run_ok(dir.path(), &there.settings, &["check"]);
    let settings = there.settings.iter().map(String::as_str);
    let settings: Vec<&str> = settings.chain(["cache.disk_bytes=0"]).collect();
    let server = Server::start(dir, &settings);
    let response = server.get("/media/image/large_NormalPreview.jpg");
    assert_eq!(response.headers()["wirephoto-path"], "stored");
}
