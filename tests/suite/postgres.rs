//! An archive in PostgreSQL, on a real server from Debian's packages: two nodes over one database, and a database
//! that fails and recovers. A separate command runs the rest of the suite on PostgreSQL too
//! (`docs/operations/postgresql.md`).

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::balancer::haproxy;
use crate::buckets::Bucket;
use crate::common::postgres::{self, Cluster};
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, news, pictures::Picture, tokens};
use crate::deliveries::{WebhookRequest, hook, id, trigger};
use crate::documented::{pages::block, run::substitute};
use crate::receivers::python;
use crate::search::ids;

const ROOT: &str = "/collection/v1/collection";

/// An archive in a database on a separate PostgreSQL server.
struct Archive {
    cluster: Cluster,
    setting: String,
    dir: TempDir,
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

impl Archive {
    /// Creates an archive with `items` and the accounts of the demo archive.
    fn with(items: &[(&str, Value)]) -> Self {
        let cluster = Cluster::start();
        let setting = format!("database.url={}", cluster.database("archive"));
        let archive = Self { cluster, setting, dir: tempfile::tempdir().unwrap() };
        archive.ingest(items);
        let accounts = checkout("media-store/accounts.json");
        archive.run(&["import", accounts.to_str().unwrap()], 0);
        archive
    }

    fn ingest(&self, items: &[(&str, Value)]) {
        let incoming = tempfile::tempdir().unwrap();
        news::write(incoming.path(), items);
        self.run(&["ingest", incoming.path().to_str().unwrap()], 0);
    }

    /// Runs a command on the archive; returns its output.
    #[track_caller]
    fn run(&self, arguments: &[&str], status: i32) -> String {
        let mut command = wirephoto(self.dir.path());
        command.args(arguments).args(["--set", &self.setting]).arg("--data");
        let output = output(command.arg(self.dir.path().join("data")));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    /// Starts a node: another server over the same database and data directory.
    fn node(&self) -> Server {
        self.node_with(&[])
    }

    /// Starts a node with settings, each `name=value`.
    fn node_with(&self, settings: &[&str]) -> Server {
        let dir = tempfile::tempdir().unwrap();
        symlink(self.dir.path().join("data"), dir.path().join("data")).unwrap();
        Server::start(dir, &[&[self.setting.as_str()][..], settings].concat())
    }
}

fn photograph(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00")
}

fn older(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-02T09:15:00+01:00")
}

fn call(server: &Server, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = server.client.request(method, format!("{}{path}", server.url));
    let request = request.header("authorization", format!("ApiKey {DEMO_KEY}"));
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    };
    let response = request.send().unwrap();
    (response.status().as_u16(), response.json().unwrap_or_default())
}

fn found(server: &Server, query: &str) -> String {
    let (status, hits) =
        call(server, Method::GET, &format!("/content/v1/image/search?{query}"), None);
    assert_eq!(status, 200, "{query}: {hits}");
    ids(&hits)
}

#[test]
fn an_archive_in_postgresql_is_served_searched_and_checked() {
    let archive = Archive::with(&[
        ("image/ice", older("Isbrytare i Kvarken")),
        ("image/sea", photograph("Segelbåt i Kvarken, utan is")),
    ]);
    let server = archive.node();
    assert!(!server.data().join("wirephoto.db").exists());
    assert!(server.bytes("/media/image/ice_NormalPreview.jpg").starts_with(&[0xff, 0xd8]));
    for (query, expected) in [
        ("q=isbrytare", "ice"),
        ("q=%22i+kvarken%22&sort=default:asc", "ice sea"),
        ("q=%22kvarken+i%22", ""),
        ("q=seg*", "sea"),
        ("q=segelb%C3%A5t", "sea"),
        ("q=segelb%C3%B6t", ""),
        ("q=headline:is", "sea"),
        ("q=kvarken+-is", "ice"),
        ("p=FOTO&q=utan", "sea"),
        ("p=SPORT", ""),
    ] {
        assert_eq!(found(&server, query), expected, "{query}");
    }
    let token = tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    let auth = format!("Bearer {token}");
    let user: Value =
        server.get_with("/user/v1/user", &[("authorization", &auth)]).json().unwrap();
    assert_eq!(user["userName"], "demo-editor");
    archive.run(&["reindex"], 0);
    archive.run(&["check"], 0);
    assert_eq!(found(&server, "q=isbrytare"), "ice");
    for kind in ["read", "search", "write"] {
        let label = format!("kind=\"{kind}\"");
        server.until("a call that waited", || {
            (server.metric("wirephoto_database_wait_seconds_count", &label) > 0.0).then_some(())
        });
    }
    let target = archive.dir.path().join("backup");
    let said = archive.run(&["backup", target.to_str().unwrap()], 1);
    assert!(said.contains("pg_dump"), "{said}");
    drop(server);
    // A database written by a later version of the product.
    let url = archive.cluster.url("archive");
    postgres::run(&url, "UPDATE writer SET schema = 9999");
    let said = archive.run(&["check"], 1);
    assert!(said.contains("schema 9999"), "{said}");
}

/// Runs the block of `docs/operations/postgresql.md` that begins with `start` in the folder `dir`, with the data
/// directory `data`, on the database at `url`.
fn as_documented(start: &str, dir: &Path, data: &Path, url: &str) -> Output {
    let (backup, place) = (dir.join("backup"), data.to_str().unwrap());
    fs::create_dir_all(&backup).unwrap();
    let mut block = block("docs/operations/postgresql.md", start).text;
    if let Some((_, address)) = block.split_once("URL='") {
        block = block.replace(address.split('\'').next().unwrap(), url);
    }
    let settings = dir.join("wirephoto.toml");
    fs::write(&settings, "").unwrap();
    let backup = backup.to_str().unwrap();
    let block = substitute(&block, &[("FILE", settings.to_str().unwrap()), ("/backup", backup)]);
    let mut shell = postgres::shell(&format!("set -e\n{block}"), url);
    shell.env("WIREPHOTO_DATABASE__URL", url).env("WIREPHOTO_DATA__DIR", place);
    output(shell.current_dir(dir))
}

#[test]
fn a_dump_taken_while_the_service_runs_restores_the_archive_of_that_moment() {
    let archive = Archive::with(&[
        ("image/ice", older("Isbrytare i Kvarken")),
        ("image/sea", photograph("Segelbåt i Kvarken, utan is")),
    ]);
    let (dir, server) = (archive.dir.path(), archive.node());
    let body = json!({"name": "desk"});
    let (status, made) = call(&server, Method::POST, ROOT, Some(&body));
    assert_eq!(status, 200, "{made}");
    let token = tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    let token = format!("Bearer {token}");
    let stop = AtomicBool::new(false);
    let dumped = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                call(&server, Method::POST, ROOT, Some(&body));
            }
        });
        let url = archive.cluster.url("archive");
        let dumped = as_documented("export PGPASSWORD", dir, &dir.join("data"), &url);
        stop.store(true, Ordering::Relaxed);
        dumped
    });
    assert!(dumped.status.success(), "{}", text(&dumped));
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    // Items ingested later are not in the dump.
    archive.ingest(&[("image/new", photograph("Slussen"))]);
    archive.run(&["withdraw", "image/ice"], 0);
    let url = archive.cluster.database("restored");
    let restored = as_documented("pg_restore ", dir, &data, &url);
    assert!(restored.status.success(), "{}", text(&restored));
    drop(server);
    let Archive { cluster, .. } = archive;
    let again = Archive { cluster, setting: format!("database.url={url}"), dir: home };
    again.run(&["check"], 0);
    let server = again.node();
    for (query, expected) in [
        ("q=isbrytare", "ice"),
        ("q=%22i+kvarken%22&sort=default:asc", "ice sea"),
        ("q=seg*", "sea"),
        ("q=kvarken+-is", "ice"),
        ("p=FOTO", "sea ice"),
        ("q=slussen", ""),
    ] {
        assert_eq!(found(&server, query), expected, "{query}");
    }
    for item in ["ice", "sea"] {
        let preview = server.bytes(&format!("/media/image/{item}_NormalPreview.jpg"));
        assert!(preview.starts_with(&[0xff, 0xd8]), "{item}");
    }
    // Keys, tokens and logins work, and everything created before the dump is there.
    let path = format!("{ROOT}/{}", made["id"].as_str().unwrap());
    assert_eq!(call(&server, Method::GET, &path, None).0, 200);
    assert_eq!(server.get_with("/user/v1/user", &[("authorization", &token)]).status(), 200);
    tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    // New rows get new numbers: no number is assigned twice.
    again.ingest(&[("image/later", photograph("Slussen"))]);
    server
        .until("the item to be found", || (found(&server, "q=slussen") == "later").then_some(()));
}

#[test]
fn writes_of_one_node_are_visible_to_the_other() {
    let archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let (one, other) = (archive.node(), archive.node());
    let preview = "/media/image/ice_NormalPreview.jpg";
    assert!([&one, &other].iter().all(|node| node.get(preview).status() == 200));
    // A poll that waits at one node is woken by an ingest through the other one.
    let poll = format!(
        "/content/v1/image/stream?ak={DEMO_KEY}&last=https://x.example/media/image/ice&wait=300"
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&other, Method::GET, &poll, None));
        other.until("the poll to wait", || {
            (other.metric("wirephoto_polls_waiting", "") > 0.0).then_some(())
        });
        archive.ingest(&[("image/new", photograph("Slussen"))]);
        let (status, hits) = waiting.join().unwrap();
        assert_eq!((status, ids(&hits).as_str()), (200, "new"));
    });
    one.until("the item to be found", || (found(&one, "q=slussen") == "new").then_some(()));
    // A collection created at one node is visible at the other immediately.
    let (status, made) = call(&one, Method::POST, ROOT, Some(&json!({"name": "desk"})));
    assert_eq!(status, 200, "{made}");
    let path = format!("{ROOT}/{}", made["id"].as_str().unwrap());
    assert_eq!(call(&other, Method::GET, &path, None).0, 200);
    // A withdrawn item is gone from both.
    archive.run(&["withdraw", "image/ice"], 0);
    for node in [&one, &other] {
        node.until("the item to be gone", || (node.get(preview).status() != 200).then_some(()));
        node.until("search to miss it", || found(node, "q=isbrytare").is_empty().then_some(()));
    }
}

/// A database session that holds the cluster write lock, as an ingest does.
struct WriteLock(Child);

impl WriteLock {
    fn begin(url: &str) -> Self {
        Self::take(url, "SELECT 'taken' FROM writer FOR UPDATE;")
    }

    /// Starts a session with other statements, which print `taken`.
    fn take(url: &str, sql: &str) -> Self {
        let mut psql = postgres::session(url);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let take = format!("BEGIN;\n{sql}\n");
        child.stdin.as_mut().unwrap().write_all(take.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "taken");
        Self(child)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn nodes_claim_mails_concurrently_while_the_write_lock_is_held() {
    const MAILS: usize = 12;
    let archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let (one, other) = (archive.node(), archive.node());
    let path = "/content/v1/image/notification/email?title=Is&email=desk%40example.com";
    assert_eq!(call(&one, Method::POST, path, None).0, 200);
    let url = archive.cluster.url("archive");
    let writing = WriteLock::begin(&url);
    postgres::run(
        &url,
        &format!(
            "INSERT INTO outbox (message_id, lane, number, user_id, content, state, attempts,
                 next_ms, created_ms, queued_ms, updated_ms)
             SELECT gen_random_uuid()::text, 'mail', number, user_id,
                 '{{\"kind\":\"item\",\"item\":\"image/ice\"}}', 'waiting', 0, 0, created_ms,
                 created_ms, created_ms
             FROM notifications, generate_series(1, {MAILS})"
        ),
    );
    let mails = || fs::read_dir(one.data().join("outbox")).into_iter().flatten().count();
    let count = |what: &str| {
        let sql = format!("SELECT count({what}) FROM outbox");
        postgres::run(&url, &sql).parse::<usize>().unwrap()
    };
    // Each node has four workers. The outcome of their mails is written once the write lock is free.
    one.until("both nodes to take up", || (count("life") == 8).then_some(()));
    assert_eq!((count("DISTINCT life"), count("*")), (2, MAILS));
    writing.end();
    one.until("all mails", || (count("*") == 0).then_some(()));
    assert_eq!(mails(), MAILS);
    let sent =
        [&one, &other].map(|node| node.metric("wirephoto_messages_total", "outcome=\"sent\""));
    assert_eq!(sent.iter().sum::<f64>(), 12.0, "none twice");
}

#[test]
fn a_database_restart_under_load_loses_no_acknowledged_write() {
    let archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let server = archive.node();
    let (stop, made) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let statuses = Mutex::new(Vec::new());
    let count =
        |status: u16| statuses.lock().unwrap().iter().filter(|one| **one == status).count();
    let load = || {
        while !stop.load(Ordering::Relaxed) {
            let body = json!({"name": "desk"});
            let (status, answer) = call(&server, Method::POST, ROOT, Some(&body));
            if let Some(id) = answer["id"].as_str().filter(|_| status == 200) {
                made.lock().unwrap().push(id.to_owned());
            }
            statuses.lock().unwrap().push(status);
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(load);
        }
        server.until("collections to be made", || (count(200) > 9).then_some(()));
        archive.cluster.down();
        server.until("a refusal", || (count(503) > 9).then_some(()));
        archive.cluster.up();
        let before = count(200);
        server.until("collections to be made again", || (count(200) > before + 9).then_some(()));
        stop.store(true, Ordering::Relaxed);
    });
    let odd: Vec<u16> = statuses
        .into_inner()
        .unwrap()
        .into_iter()
        .filter(|one| ![200, 503].contains(one))
        .collect();
    assert_eq!(odd, [0; 0], "{}", server.log());
    for id in made.into_inner().unwrap() {
        assert_eq!(call(&server, Method::GET, &format!("{ROOT}/{id}"), None).0, 200, "{id}");
    }
    assert!(server.metric("wirephoto_database_errors_total", "kind=\"away\"") > 0.0);
    // Pollers that follow the changes recover too.
    archive.ingest(&[("image/new", photograph("Slussen"))]);
    server.until("the item to be found", || (found(&server, "q=slussen") == "new").then_some(()));
}

#[test]
fn a_delivery_sent_during_a_database_outage_is_not_repeated() {
    const LEASE: Duration = Duration::from_secs(1);
    let archive = Archive::with(&[
        ("image/ice", photograph("Isbrytare")),
        ("image/sea", photograph("Segelbåt")),
    ]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = hook(listener.local_addr().unwrap().port());
    let mut channel = vec!["channel", "add", "demo-editor", "hook", "--method", "webhook"];
    channel.extend(["--format", ".json"]);
    channel.extend(settings.iter().flat_map(|setting| ["--setting", setting.as_str()]));
    archive.run(&channel, 0);
    let server = archive.node_with(&[&format!("delivery.lease_s={}", LEASE.as_secs())]);
    let first = id(trigger(&server, "/media/image/ice", "hook"));
    let posted = WebhookRequest::accept(&listener);
    archive.cluster.down();
    posted.answer("200 OK");
    server.until("the end to find no database", || {
        server.log().contains("delivery outcome not written").then_some(())
    });
    // The claim was renewed for the last time before that.
    let away = Instant::now();
    server.until("the claim to end", || (away.elapsed() > 2 * LEASE).then_some(()));
    archive.cluster.up();
    let delivered = |id: &str| {
        let path = format!("/user/v1/delivery/{id}");
        server.until("it to be told as delivered", || {
            let found = call(&server, Method::GET, &path, None).1;
            (found["state"] == "delivered").then_some(found)
        })
    };
    assert_eq!(delivered(&first)["attempts"], 1, "{}", server.log());
    // The next request is the next delivery, through the same channel.
    let second = server.until("the next one to be asked for", || {
        let response = trigger(&server, "/media/image/sea", "hook");
        (response.status() == 202).then(|| id(response))
    });
    let (headers, _) = WebhookRequest::accept(&listener).answer("200 OK");
    assert_eq!(headers["webhook-id"], second);
    assert_eq!(delivered(&second)["attempts"], 1);
    let log = server.log();
    assert_eq!(log.matches("delivery outcome not written").count(), 1, "{log}");
}

#[test]
fn a_node_reports_how_long_it_has_not_seen_changes_of_others() {
    let archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let node = archive.node();
    let behind = || node.metric("wirephoto_follow_behind_seconds", "");
    node.until("it to follow", || (behind() < 1.0).then_some(()));
    // Its poll for changes of other nodes hangs, without an end and without a failure yet.
    let url = archive.cluster.url("archive");
    let held = WriteLock::take(&url, "LOCK TABLE writer;\nSELECT 'taken';");
    node.until("it to say so", || (behind() > 2.0).then_some(()));
    held.end();
    node.until("it to follow again", || (behind() < 1.0).then_some(()));
}

#[test]
fn nodes_that_start_concurrently_create_the_tables_once() {
    let cluster = Cluster::start();
    let setting = format!("database.url={}", cluster.database("archive"));
    let shared = tempfile::tempdir().unwrap();
    let originals = format!("store.originals={}", shared.path().join("originals").display());
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        let mut command = wirephoto(dir.path());
        command.args(["check", "--set", &setting, "--set", &originals, "--data"]);
        let output = output(command.arg(dir.path().join("data")));
        (output.status.code(), text(&output))
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        started.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert!(ended.iter().all(|(status, _)| *status == Some(0)), "{ended:?}");
    let url = cluster.url("archive");
    assert_eq!(postgres::run(&url, "SELECT count(*) FROM versions"), "1");
    // A database with another locale is refused with the statement that creates the right one.
    let other = "CREATE DATABASE other ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0";
    postgres::run(&cluster.url("postgres"), other);
    let mut command = wirephoto(cluster.dir());
    let url = cluster.url("other");
    command.args(["check", "--set", &format!("database.url={url}"), "--data"]);
    let refused = output(command.arg(cluster.dir().join("node")));
    let said = text(&refused);
    assert!(refused.status.code() == Some(1) && said.contains("LOCALE 'C'"), "{said}");
}

#[test]
fn tls_connections_are_made_only_to_trusted_servers() {
    let folder = tempfile::tempdir().unwrap();
    assert!(python("tls_files.py").arg(folder.path()).status().unwrap().success());
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    cluster.enable_tls(&folder.path().join("one/server.pem"));
    let dir = tempfile::tempdir().unwrap();
    let check = |more: &str| {
        let mut command = wirephoto(dir.path());
        command.args(["check", "--set", &format!("database.url={url}?{more}"), "--data"]);
        let output = output(command.arg(dir.path().join("data")));
        (output.status.code(), text(&output))
    };
    let ca = |name: &str| format!("sslrootcert={}", folder.path().join(name).display());
    let (status, said) = check(&format!("sslmode=verify-full&{}", ca("one/ca.pem")));
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = check(&format!("sslmode=require&{}", ca("two/ca.pem")));
    assert!(status == Some(1) && said.contains("certificate"), "{said}");
    let (status, said) = check("sslmode=require");
    assert!(status == Some(1) && said.contains("certificate"), "{said}");
    // The first connection was encrypted: the server rejects one without TLS.
    cluster.set_hba_rules("hostssl all all 127.0.0.1/32 trust");
    let (status, said) = check("sslmode=disable");
    assert!(status == Some(1) && said.contains("no encryption"), "{said}");
    let (status, said) = check(&format!("sslmode=verify-full&{}", ca("one/ca.pem")));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn an_edge_node_serves_with_a_read_only_role_and_from_a_replica() {
    let archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let server = archive.node();
    let url = archive.cluster.url("archive");
    postgres::run(
        &url,
        "CREATE ROLE edge LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO edge;
         ALTER ROLE edge SET default_transaction_read_only = on",
    );
    let copy = archive.cluster.start_standby();
    let edge = |url: &str| {
        let dir = tempfile::tempdir().unwrap();
        symlink(archive.dir.path().join("data"), dir.path().join("data")).unwrap();
        let url = format!("database.url={}", url.replace("wirephoto@", "edge@"));
        // The embedded metadata of a rendition contains the URL.
        let public_url = format!("server.public_url={}", server.url);
        Server::start(dir, &[&url, &public_url, "server.role=edge"])
    };
    let edges = [edge(&url), edge(&copy.url("archive"))];
    let preview = "/media/image/ice_NormalPreview.jpg";
    let shown = server.bytes(preview);
    for edge in &edges {
        assert_eq!(edge.bytes(preview), shown);
    }
    archive.run(&["withdraw", "image/ice"], 0);
    for edge in &edges {
        edge.until("it to be gone", || (edge.get(preview).status() == 404).then_some(()));
    }
    // A writing node does not start where writes are refused.
    let mut command = wirephoto(archive.dir.path());
    let setting = format!("database.url={}", copy.url("archive"));
    command.args(["check", "--set", &setting, "--data"]);
    let refused = output(command.arg(archive.dir.path().join("data")));
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
}

/// The server that takes over has not received the newest rows yet.
#[test]
fn nodes_discard_rows_lost_in_a_failover_and_follow_later_changes() {
    let mut archive = Archive::with(&[("image/ice", photograph("Isbrytare"))]);
    let copy = archive.cluster.start_standby();
    copy.down();
    let other = copy.url("archive");
    let (_, other) = other.split_once('@').unwrap();
    let url = archive.cluster.url("archive").replace("/archive", &format!(",{other}"));
    archive.setting = format!("database.url={url}");
    let node = archive.node();
    let finds = |query: &str, expected: &str| {
        node.until(&format!("{query} to find {expected:?}"), || {
            let path = format!("/content/v1/image/search?q={query}");
            let (status, hits) = call(&node, Method::GET, &path, None);
            (status == 200 && ids(&hits) == expected).then_some(())
        });
    };
    let preview = "/media/image/lost_NormalPreview.jpg";
    archive.ingest(&[("image/lost", photograph("Vinter"))]);
    finds("vinter", "lost");
    assert_eq!(node.get(preview).status(), 200);
    archive.cluster.down();
    copy.up();
    copy.promote();
    node.until("it to be gone", || (node.get(preview).status() == 404).then_some(()));
    finds("vinter", "");
    finds("isbrytare", "ice");
    archive.ingest(&[("image/new", photograph("Slussen"))]);
    finds("slussen", "new");
    archive.run(&["withdraw", "image/ice"], 0);
    finds("isbrytare", "");
    let log = node.log();
    assert!(log.contains("the database lost rows that had been read"), "{log}");
}

/// A host that accepts connections and does not respond uses its own timeout and not that of the next one.
#[test]
fn a_host_that_does_not_respond_is_skipped() {
    let cluster = Cluster::start();
    let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [one, two] = silent.each_ref().map(|host| host.local_addr().unwrap().to_string());
    let url = cluster.database("archive").replace('@', &format!("@{one},{two},"));
    let dir = tempfile::tempdir().unwrap();
    let mut command = wirephoto(dir.path());
    command.args(["check", "--set", &format!("database.url={url}"), "--data"]);
    let checked = output(command.arg(dir.path().join("data")));
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
}

#[test]
fn the_database_password_is_shown_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = wirephoto(dir.path());
        let shown = output(command.args(arguments).arg("--data").arg(dir.path().join("data")));
        assert!(!text(&shown).contains("hunter2"), "{}", text(&shown));
        text(&shown)
    };
    let nowhere = "database.url=postgres://wp:hunter2@127.0.0.1:1/archive";
    let shown = run(&["config", "--set", nowhere, "--set", "database.password=hunter2"]);
    assert!(shown.contains("postgres://wp:***@127.0.0.1:1/archive"), "{shown}");
    let said = run(&["check", "--set", nowhere]);
    assert!(said.contains("database.url"), "{said}");
    run(&["check", "--set", "database.url=postgres://wp:hunter2@127.0.0.1:x/archive"]);
    run(&["check", "--set", "database.url=mysql://wp:hunter2@127.0.0.1/archive"]);
    run(&["check", "--set", "database.url=postgres://wp:hunter2@127.0.0.1/x?sslmode=prefer"]);
}

/// All log lines, including those of the driver, show statements without their values.
#[test]
fn stored_passwords_are_in_no_log_line() {
    let archive = Archive::with(&[]);
    let server = archive.node_with(&["telemetry.log_level=trace"]);
    let settings = json!({
        "host": "files.example", "port": 22, "username": "u", "password": "hunter2hunter2",
        "hostKey": format!("SHA256:{}", "A".repeat(43)),
    });
    let channel = json!({ "method": "sftp", "formats": [".json"], "settings": settings });
    let (status, reported) =
        call(&server, Method::PUT, "/user/v1/channel/archive", Some(&channel));
    assert_eq!(status, 200, "{reported}");
    let (_, log) = server.stop();
    assert!(log.contains("executing statement"), "the driver's lines are there");
    assert!(!log.contains("hunter2hunter2"), "{log}");
}

/// Cached renditions and responses to conditional requests are served while the database is down, and no original
/// is read.
#[test]
fn cache_hits_and_304s_need_neither_the_database_nor_the_originals() {
    let (cluster, bucket) = (Cluster::start(), Bucket::start());
    let database = format!("database.url={}", cluster.database("archive"));
    let settings = bucket.settings("hits", &["media.warm=false", &database]);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one.jpg");
    fs::write(&file, Picture::waves(900, 600).jpeg()).unwrap();
    let mut command = wirephoto(dir.path());
    command.arg("ingest").arg(&file).arg("--data").arg(dir.path().join("data"));
    for setting in &settings {
        command.args(["--set", setting]);
    }
    let taken = output(&mut command);
    assert!(taken.status.success(), "{}", text(&taken));
    let server = Server::start(dir, &settings);
    let paths = ["_NormalPreview.jpg", "_NormalThumbnail.jpg", "-crop_w90_h60_NormalPreview.jpg"];
    let paths = paths.map(|rest| format!("/media/image/one{rest}"));
    let header = |response: &Response, name: &str| {
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let known: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|path| {
            server.until("an answer from memory", || {
                let response = server.get(path);
                assert_eq!(response.status(), 200, "{path}: {}", server.log());
                let is_hit = header(&response, "wirephoto-path").as_deref() == Some("cache");
                let tag = header(&response, "etag").unwrap();
                is_hit.then(|| (tag, response.bytes().unwrap().to_vec()))
            })
        })
        .collect();
    cluster.down();
    server.until("it to find out", || (server.get("/health/ready").status() == 503).then_some(()));
    assert_eq!(server.get("/health/serving").status(), 200, "what is known needs no database");
    let before = bucket.requests();
    for _ in 0..20 {
        for (path, (tag, bytes)) in paths.iter().zip(&known) {
            let response = server.get(path);
            assert_eq!(response.status(), 200, "{path}: {}", server.log());
            assert!(response.bytes().unwrap() == bytes[..], "{path}");
            let response = server.get_with(path, &[("if-none-match", tag)]);
            assert_eq!(response.status(), 304, "{path}: {}", server.log());
        }
    }
    assert_eq!(bucket.requests(), before, "nothing was fetched");
    server.until("it to say for how long it has not seen changes", || {
        (server.metric("wirephoto_follow_behind_seconds", "") > 1.0).then_some(())
    });
    // Unknown items are not invented.
    assert_eq!(server.get("/media/image/two_NormalPreview.jpg").status(), 503);
}

/// The same behind a load balancer with readiness checks: no node is ready.
#[test]
fn cache_hits_are_served_behind_haproxy_while_no_node_reaches_the_database() {
    let archive = Archive::with(&[("image/ice", older("Isbrytare")), ("image/sea", older("Hav"))]);
    // Renditions contain the URL of their item: with different URLs the nodes have different entity tags.
    let node = || archive.node_with(&["server.public_url=http://photos.example"]);
    let nodes = [node(), node()];
    let front = haproxy(&nodes, &[]);
    let paths = ["ice", "sea"].map(|id| format!("/media/image/{id}_NormalPreview.jpg"));
    let tags = paths.each_ref().map(|path| {
        front.until("an answer from memory", || {
            let response = front.get(path);
            let header = |name: &str| response.headers().get(name)?.to_str().ok();
            let tag = (header("wirephoto-path") == Some("cache")).then(|| header("etag"));
            Some(tag??.to_owned())
        })
    });
    // Each node has both cached, because either may be marked down first.
    for (node, path) in nodes.iter().flat_map(|node| paths.iter().map(move |path| (node, path))) {
        node.until("an answer from memory", || {
            let path = node.get(path).headers()["wirephoto-path"].to_str().unwrap().to_owned();
            (path == "cache").then_some(())
        });
    }
    archive.cluster.down();
    let check = || {
        for (path, tag) in paths.iter().zip(&tags) {
            assert_eq!(front.get(path).status(), 200, "{path}");
            let response = front.ask(Method::GET, path, &[("if-none-match", tag)]);
            assert_eq!(response.status(), 304, "{path}");
        }
    };
    front.until("no node to be ready", || {
        check();
        (front.get("/health/ready").status() == 503).then_some(())
    });
    for _ in 0..20 {
        check();
    }
    archive.cluster.up();
    front.until("a node to be ready", || {
        check();
        (front.get("/health/ready").status() == 200).then_some(())
    });
    check();
}
