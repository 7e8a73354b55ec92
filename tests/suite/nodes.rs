//! Several nodes: processes that serve one database and one store. A change at one node is visible at the others, a
//! one-time effect happens once, and the others take over the work of a dead node.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use api::notifications::ReadNotificationStream;
use model::MediaType;
use serde_json::{Value, json};

use crate::common::api::ApiCaller;
use crate::common::pictures::Picture;
use crate::common::{DEMO_KEY, Server, news};
use crate::items::{form, provider, put};
use crate::notifications::{
    email, ingest_photo, make, poll, read, read_within, server, spawn_poll, stream,
};
use crate::oauth::{Editor, code_form, query_of, request, token, user_status};
use crate::search::ids;

/// All nodes write the same URLs.
pub const QUICK: [&str; 3] = [
    "server.unready_s=0",
    "server.public_url=http://nodes.example",
    "notifications.retry_first_ms=50",
];

/// Starts another node over the data directory of `server`.
pub fn start_node_beside(server: &Server, settings: &[&str]) -> Server {
    Server::start(share_data_dir(server), &[&QUICK, settings].concat())
}

fn share_data_dir(server: &Server) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    symlink(server.data(), dir.path().join("data")).unwrap();
    dir
}

/// Polls `condition` for up to a minute: a dead node's heartbeat expires after some seconds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..600 {
        if condition() {
            return;
        }
        thread::park_timeout(Duration::from_millis(100));
    }
    panic!("{what} did not happen");
}

pub fn matches(server: &Server) -> bool {
    server.metric("wirephoto_lease_held", "matching") > 0.0
}

/// Two nodes; the first one holds the matching lease.
pub fn two_nodes() -> (Server, Server) {
    let first = server(&QUICK);
    first.until("it to match", || matches(&first).then_some(()));
    let second = start_node_beside(&first, &[]);
    // If the first one was slow for too long, its lease has gone to the second.
    let is_first = first.until("one of them to match", || {
        let (one, other) = (matches(&first), matches(&second));
        (one != other).then_some(one)
    });
    if is_first { (first, second) } else { (second, first) }
}

/// The items in the mails that were written.
pub fn mails(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data.join("outbox")).into_iter().flatten().flatten();
    let mails = entries.map(|entry| entry.path());
    let mails = mails.filter(|path| path.extension().is_some_and(|end| end == "eml"));
    let item = |path: std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("/item/image/").expect("a link to the item");
        rest.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
    };
    let mut items: Vec<String> = mails.map(item).collect();
    items.sort();
    items
}

#[test]
fn items_ingested_and_withdrawn_at_one_node_appear_and_disappear_at_the_other() {
    let first = server(&QUICK);
    let second = start_node_beside(&first, &[]);
    items_come_and_go_at_both(&first, &second);
}

/// Items ingested and withdrawn at the first node appear and disappear at the second.
pub fn items_come_and_go_at_both(first: &Server, second: &Server) {
    let auth = provider(first);
    let jpeg = Picture::corners(320, 240).jpeg();
    let item = json!({ "headline": "Hamn" }).to_string().into_bytes();
    let parts = form(&[("NormalHires.jpg", &jpeg), ("item", &item)]);
    assert_eq!(put(first, "image/h", &auth, parts).status(), 201);
    let preview = "/media/image/h_NormalPreview.jpg";
    let crop = "/media/image/h-crop_w100_h80_x10_y10_NormalPreview.jpg";
    second.until("the photograph to come", || (second.get(preview).status() == 200).then_some(()));
    assert_eq!(second.bytes(preview), first.bytes(preview));
    for _ in 0..3 {
        // Cached in memory from the second request on.
        assert!(!second.bytes(crop).is_empty());
    }
    second.until("the search to know it", || {
        let found: Value = second.get("/content/v1/image/search?q=hamn").json().unwrap();
        (ids(&found) == "h").then_some(())
    });
    let gone = first.client.delete(format!("{}/ingest/v1/image/h", first.url));
    assert!(gone.header("authorization", &auth).send().unwrap().status().is_success());
    for path in [preview, crop, "/media/image/h.json"] {
        second.until("it to be gone", || (second.get(path).status() != 200).then_some(()));
    }
}

#[test]
fn a_poll_at_one_node_is_woken_by_an_item_ingested_at_the_other() {
    let first = server(&QUICK);
    let second = start_node_beside(&first, &["server.role=web"]);
    let id = make(&first, &stream(Some(MediaType::Image), "isbrytare"));
    let waiting = spawn_poll(&second, &id);
    ingest_photo(&first, "oden", "Isbrytare");
    let (status, body) = waiting.join().unwrap();
    assert_eq!((status, ids(&body).as_str()), (200, "oden"));
    assert_eq!(read_within(&first, &id, 1), "", "it was given");
}

#[test]
fn a_stream_that_is_read_at_two_nodes_gives_each_item_once() {
    const ITEMS: usize = 40;
    let first = server(&QUICK);
    let second = start_node_beside(&first, &[]);
    let id = make(&first, &stream(Some(MediaType::Text), ""));
    let lines: Vec<String> = (0..ITEMS)
        .map(|number| {
            let mut document = news::document("Is", &["FOTO"], "2026-03-05T09:15:00+01:00");
            document["uri"] = format!("http://h/media/text/t{number:02}").into();
            document.to_string()
        })
        .collect();
    let file = first.dir.path().join("lines.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    assert!(first.command(&["ingest", &file.to_string_lossy()]).status.success());
    let three = ReadNotificationStream { s: 3, ..poll(&id, 1) };
    let (so_far, tries) = (AtomicUsize::new(0), AtomicI64::new(400));
    let drain = |server: &Server| {
        let mut read: Vec<String> = Vec::new();
        let mut empty = 0;
        // A poll may return early while another one holds the last items, or before the first item is matched.
        while empty < 3 && tries.fetch_sub(1, SeqCst) > 0 {
            let found = ids(&ApiCaller::key(server, DEMO_KEY).ask(&three).unwrap());
            let count = found.split_whitespace().count();
            let all = count + so_far.fetch_add(count, SeqCst);
            // A poll that waits for the matcher has not reached the end.
            empty = if count == 0 && all >= ITEMS { empty + 1 } else { 0 };
            read.extend(found.split_whitespace().map(str::to_owned));
        }
        read
    };
    let mut all: Vec<String> = thread::scope(|scope| {
        let readers =
            [&first, &second, &first, &second].map(|server| scope.spawn(|| drain(server)));
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    all.sort();
    let expected: Vec<String> = (0..ITEMS).map(|number| format!("t{number:02}")).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_login_a_code_and_a_token_of_one_node_are_valid_at_the_other() {
    let first = server(&QUICK);
    let second = start_node_beside(&first, &["server.role=web"]);
    let editor = Editor::log_in(&first);
    let cookie = [("cookie", editor.cookie.as_str())];
    assert_eq!(second.get_with("/account", &cookie).status(), 200);
    let code = query_of(&editor.authorize(&request(&[])), "code").expect("a code");
    let tokens: Value = token(&second, &code_form(&code)).json().unwrap();
    let bearer = tokens["access_token"].as_str().expect("a token");
    assert_eq!(user_status(&first, bearer), 200);
    assert_eq!(token(&first, &code_form(&code)).status(), 400, "a code counts once");
    first.until("the replay to end the token", || {
        (user_status(&first, bearer) == 401).then_some(())
    });
    second.until("there too", || (user_status(&second, bearer) == 401).then_some(()));
}

#[test]
fn mails_arrive_once_even_if_the_matching_node_is_killed() {
    let (mut first, second) = two_nodes();
    make(&first, &email("Is", "desk@example.com"));
    let data = first.data();
    for id in ["a1", "a2", "a3"] {
        ingest_photo(&second, id, "Isbrytare");
    }
    second.until("three mails", || (mails(&data).len() >= 3).then_some(()));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    for id in ["b1", "b2", "b3"] {
        ingest_photo(&second, id, "Isbrytare");
    }
    wait_until("the other node to match", || matches(&second));
    second.until("six mails", || (mails(&data).len() >= 6).then_some(()));
    assert!(second.log().contains("a node is dead"));
    // Mails for earlier items were sent before the last item was ingested.
    ingest_photo(&second, "c1", "Isbrytare");
    second.until("the last mail", || mails(&data).contains(&"c1".to_owned()).then_some(()));
    assert_eq!(mails(&data), ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]);
}

#[test]
fn a_stopping_node_hands_over_its_leases_at_once_and_a_killed_one_regains_them() {
    let (first, mut second) = two_nodes();
    first.signal("TERM");
    second.until("the other node to match", || matches(&second).then_some(()));
    let id = make(&second, &stream(Some(MediaType::Image), ""));
    ingest_photo(&second, "oden", "Isbrytare");
    second.until("the item to be matched", || {
        (second.metric("wirephoto_matched_items_total", "") > 0.0).then_some(())
    });
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    let second = start_node_beside(&first, &[]);
    second.until("it to match again", || matches(&second).then_some(()));
    second.until("the item", || (read(&second, &id) == "oden").then_some(()));
    assert!(!second.log().contains("a node is dead"), "it has its own without waiting for that");
}

/// The nodes that the command lists.
fn listed(server: &Server) -> Vec<Value> {
    let said = server.command(&["nodes", "--json"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).unwrap()
}

#[test]
fn a_command_lists_live_nodes_with_their_leases() {
    let (mut first, mut second) = two_nodes();
    let are_alive = |nodes: &[Value], is: bool| nodes.iter().all(|node| node["alive"] == is);
    let nodes = first.until("both to show that they live", || {
        let nodes = listed(&first);
        (nodes.len() == 2 && are_alive(&nodes, true)).then_some(nodes)
    });
    // A node's name is in its lock file.
    let file = |number: u32| first.data().join(format!("nodes/node-{number}"));
    let mut leases = Vec::new();
    for number in [1, 2] {
        let name = fs::read_to_string(file(number)).unwrap();
        let node = nodes.iter().find(|node| node["node"] == *name).expect("it is listed");
        assert_eq!(node["role"], "all", "{node}");
        leases.extend(node["leases"].as_array().unwrap().clone());
    }
    leases.sort_by_key(Value::to_string);
    assert_eq!(leases, ["matching", "scrubbing", "sweeping"], "each is one node's");
    let table = String::from_utf8(first.command(&["nodes"]).stdout).unwrap();
    assert!(table.starts_with("NODE"), "{table}");
    assert!(table.contains("matching") && table.lines().count() == 3, "{table}");
    // No node is left to end the incarnations of the killed ones.
    for node in [&mut first, &mut second] {
        node.child.kill().unwrap();
        node.child.wait().unwrap();
    }
    let nodes = listed(&first);
    assert!(nodes.len() == 2 && are_alive(&nodes, false), "{nodes:?}");
}

#[test]
fn a_node_can_be_found_on_its_machine() {
    let server = server(&QUICK);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let nodes = listed(&server);
    let place = (&nodes[0]["host"], &nodes[0]["listen"]);
    assert_eq!(place, (&json!(host), &json!("127.0.0.1:0")), "{nodes:?}");
    let name = nodes[0]["node"].as_str().unwrap();
    let label = format!("{name} ({host}, 127.0.0.1:0, all)");
    let found = String::from_utf8(server.command(&["doctor"]).stdout).unwrap();
    assert!(found.contains(&label), "{label}: {found}");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("node started")).unwrap();
    assert!(line.contains(name) && line.contains(&host), "{line}");
    assert_eq!(server.metric("wirephoto_node_info", name), 1.0);
    assert_eq!(server.metric("wirephoto_node_info", &format!("host=\"{host}\"")), 1.0);
}

#[test]
fn a_single_node_is_listed_alone() {
    let server = server(&QUICK);
    server.until("it to match", || matches(&server).then_some(()));
    let nodes = listed(&server);
    assert_eq!(nodes.len(), 1);
    assert!(nodes[0]["alive"].is_null() && nodes[0]["seen"].is_string(), "{nodes:?}");
    assert_eq!(nodes[0]["leases"], json!(["matching", "scrubbing", "sweeping"]));
    assert!(server.stop().0.success());
}

#[test]
fn a_worker_processes_the_queues_and_a_web_node_serves_without_one() {
    let web = server(&[&QUICK[..], &["server.role=web"]].concat());
    make(&web, &email("Is", "desk@example.com"));
    let stream = make(&web, &stream(Some(MediaType::Image), "isbrytare"));
    ingest_photo(&web, "oden", "Isbrytare");
    web.until("the missing worker to show", || {
        (web.metric("wirephoto_lease_vacant_seconds", "matching") > 0.0).then_some(())
    });
    assert_eq!(read_within(&web, &stream, 1), "", "nobody matched it");
    let worker = start_node_beside(&web, &["server.role=worker"]);
    web.until("the mail", || (mails(&web.data()) == ["oden"]).then_some(()));
    web.until("the stream", || (read(&web, &stream) == "oden").then_some(()));
    web.until("the worker to show", || {
        (web.metric("wirephoto_lease_vacant_seconds", "matching") == 0.0).then_some(())
    });
    assert_eq!(worker.get("/health/ready").status(), 200);
    worker.until("it to see the other one", || {
        (worker.metric("wirephoto_nodes", "") == 2.0).then_some(())
    });
    for path in ["/media/image/old.json", "/content/v1/image/search", "/", "/o/login"] {
        let answer = worker.get(path);
        assert_eq!(answer.status(), 404, "{path}");
        let said: Value = answer.json().unwrap();
        assert!(said["message"].as_str().unwrap().contains("use another node"), "{said}");
    }
}

#[test]
fn an_edge_serves_media_and_purchases_and_writes_nothing() {
    let main = server(&QUICK);
    let edge = start_node_beside(&main, &["server.role=edge"]);
    let preview = "/media/image/old_NormalPreview.jpg";
    assert_eq!(edge.bytes(preview), main.bytes(preview));
    let hires = format!("/media/image/old.jpg?ak={DEMO_KEY}");
    let editor = ApiCaller::key(&main, DEMO_KEY);
    let orders = || editor.orders().len();
    let refused = edge.get(&hires);
    assert_eq!(refused.status(), 403);
    let said = refused.text().unwrap();
    assert!(said.contains("read_only_node") && said.contains("is read-only"), "{said}");
    assert_eq!(orders(), 0);
    let bought = main.bytes(&hires);
    assert_eq!(edge.bytes(&hires), bought);
    assert_eq!(orders(), 1);
    let channel = format!("/media/image/old?channel=user:demo-editor:demo-folder&ak={DEMO_KEY}");
    assert_eq!(edge.get(&channel).status(), 403);
    for path in ["/content/v1/image/search", "/user/v1/user", "/o/login", "/"] {
        let answer = edge.get(path);
        assert_eq!(answer.status(), 404, "{path}");
        assert!(answer.text().unwrap().contains("only serves media and never writes"), "{path}");
    }
    assert_eq!(edge.post_form("/o/oauth2/token", &[]).status(), 404);
    assert_eq!(edge.get("/health/ready").status(), 200);
    assert!(main.command(&["withdraw", "image/old"]).status.success());
    for path in [preview, &hires] {
        edge.until("it to be gone", || (edge.get(path).status() == 404).then_some(()));
    }
    assert_eq!(main.metric("wirephoto_nodes", ""), 1.0, "a read-only node writes no incarnation");
}

#[test]
fn an_edge_does_not_start_without_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = crate::common::server::wirephoto(dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--role", "edge", "--data"]);
    let ended = crate::common::server::output(command.arg(dir.path().join("data")));
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("there is no database"), "{said}");
    assert!(!dir.path().join("data/wirephoto.db").exists());
}

#[test]
fn two_nodes_that_start_at_once_over_nothing_both_serve() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        symlink(&data, dir.path().join("data")).unwrap();
        Server::start(dir, &QUICK)
    };
    let servers = thread::scope(|scope| {
        [scope.spawn(start), scope.spawn(start), scope.spawn(start)].map(|one| one.join().unwrap())
    });
    let names: BTreeSet<String> = fs::read_dir(data.join("nodes"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(names.len(), 3);
    servers[0].until("them to see each other", || {
        (servers[0].metric("wirephoto_nodes", "") == 3.0).then_some(())
    });
    let held = || servers.iter().filter(|server| matches(server)).count();
    servers[0].until("one of them to match", || (held() == 1).then_some(()));
}
