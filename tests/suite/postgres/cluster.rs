//! Several nodes over one database: writers, edges and a replica.

use std::{fs, os::unix::fs::symlink, thread};

use reqwest::Method;
use serde_json::json;

use super::{Archive, ROOT, WriteLock, call, found, photograph, text};
use crate::common::postgres::{self, Cluster};
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server};
use crate::search::ids;

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
            "INSERT INTO outbox (message_id, transport, number, user_id, content, state, attempts,
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
    one.until("both nodes to take up", || (count("incarnation") == 8).then_some(()));
    assert_eq!((count("DISTINCT incarnation"), count("*")), (2, MAILS));
    writing.end();
    one.until("all mails", || (count("*") == 0).then_some(()));
    assert_eq!(mails(), MAILS);
    let sent =
        [&one, &other].map(|node| node.metric("wirephoto_messages_total", "outcome=\"sent\""));
    assert_eq!(sent.iter().sum::<f64>(), 12.0, "none twice");
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
    assert_eq!(postgres::run(&url, "SELECT count(*) FROM writer"), "1");
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
