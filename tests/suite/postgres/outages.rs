//! A database that fails, hangs, fails over and recovers, and what is served meanwhile.

use std::{
    fs,
    net::TcpListener,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use reqwest::{Method, blocking::Response};
use serde_json::json;

use super::{Archive, ROOT, WriteLock, call, found, older, photograph, text};
use crate::balancer::haproxy;
use crate::buckets::Bucket;
use crate::common::postgres::Cluster;
use crate::common::server::{output, wirephoto};
use crate::common::{Server, pictures::Picture};
use crate::deliveries::{WebhookRequest, hook, id, trigger};
use crate::search::ids;

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
        let address = format!("{ROOT}/{id}");
        // A read may meet a connection of the pool that the restart has closed.
        let status = server.until("an answer of the database", || {
            Some(call(&server, Method::GET, &address, None).0).filter(|status| *status != 503)
        });
        assert_eq!(status, 200, "{id}");
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
