//! The nginx and HAProxy examples as load balancers, run as printed in front of several nodes (server processes
//! over one data directory): all requests for an item go to one node, a node that is stopped or killed costs no
//! idempotent request, and a POST is never repeated.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use reqwest::{Certificate, Method, Version, blocking::Client, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    cdn::{Front, example, port_of},
    common::{DEMO_KEY, Server, news, ports::free_port},
    documented::{pages::block, run::substitute},
    receivers::python,
};

/// Ids that contain, or nearly contain, the suffixes that other URLs strip.
const IDS: [&str; 12] = [
    "a",
    "b-1",
    "c_2",
    "d-watermark-x",
    "crop_w10",
    "e-cropped",
    "f_Web",
    "g-crop-h",
    "Preview",
    "0198c5e2-7f00-7000-8000-000000000001",
    "h_NormalHuge",
    "J",
];
const COLLECTIONS: &str = "/collection/v1/collection";

/// Server processes over one data directory, which the first one creates.
fn nodes(count: usize, settings: &[&str]) -> Vec<Server> {
    let common = ["server.trusted_proxies=127.0.0.1", "server.public_url=http://photos.example"];
    let settings = [settings, &common].concat();
    let items: Vec<(String, Value)> = IDS
        .iter()
        .map(|id| {
            let document = news::document(id, &["FOTO"], "2026-03-05T09:15:00+01:00");
            (format!("image/{id}"), document)
        })
        .collect();
    let items: Vec<(&str, Value)> =
        items.iter().map(|(key, document)| (key.as_str(), document.clone())).collect();
    let mut nodes = vec![news::server(&settings, &items)];
    while nodes.len() < count {
        let dir = tempfile::tempdir().unwrap();
        symlink(nodes[0].data(), dir.path().join("data")).unwrap();
        nodes.push(Server::start(dir, &settings));
    }
    nodes
}

/// The ports in the examples, each with the port of a node; for a missing node, a port without a listener.
fn ports(nodes: &[Server]) -> Vec<(String, String)> {
    let port = |at: usize| {
        nodes.get(at).map_or_else(|| free_port().to_string(), |node| port_of(node).to_owned())
    };
    (0..3)
        .map(|at| (format!("127.0.0.1:808{}", at + 1), format!("127.0.0.1:{}", port(at))))
        .collect()
}

/// The example with the nodes' ports substituted and `more` changes applied.
fn text(name: &str, nodes: &[Server], more: &[(&str, &str)]) -> String {
    let ports = ports(nodes);
    let ports = ports.iter().map(|(from, to)| (from.as_str(), to.as_str()));
    example(name, &ports.chain(more.iter().copied()).collect::<Vec<_>>())
}

fn nginx(nodes: &[Server]) -> Front {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let listen = format!("listen 127.0.0.1:{port};");
    Front::nginx_site(folder, port, &text("nodes-nginx.conf", nodes, &[("listen 8000;", &listen)]))
}

pub fn haproxy(nodes: &[Server], more: &[(&str, &str)]) -> Front {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let bind = format!("bind 127.0.0.1:{port}");
    // A node that is slow for a moment on a busy machine must not be marked as down.
    let patient = ("timeout connect 2s", "timeout connect 2s\n    timeout check 30s");
    let changes = [&[("bind :8000", bind.as_str()), patient], more].concat();
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, text("nodes-haproxy.cfg", nodes, &changes)).unwrap();
    let mut command = Command::new("/usr/sbin/haproxy");
    command.arg("-db").arg("-f").arg(file);
    Front::start(command, folder, port)
}

/// The number of requests below `path` that each node answered.
fn answered(nodes: &[Server], path: &str) -> Vec<f64> {
    nodes.iter().map(|node| node.metric("wirephoto_http_requests_total", path)).collect()
}

/// The only node whose count rose, by `count`.
#[track_caller]
fn only_node(before: &[f64], after: &[f64], count: usize) -> usize {
    let rose: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let found: Vec<usize> = (0..rose.len()).filter(|at| rose[*at] > 0.0).collect();
    assert!(
        found.len() == 1 && rose[found[0]] == count as f64,
        "{count} requests went to {rose:?}"
    );
    found[0]
}

/// All requests for one item go to one node and those for different items to different nodes; polls of a stream are
/// routed like the files of an item.
fn check_routing(nodes: &[Server], front: &Front) {
    let key = format!("ApiKey {DEMO_KEY}");
    let mut used = BTreeSet::new();
    for id in IDS {
        let before = answered(nodes, "/media/");
        let names = [
            ".json",
            ".xml",
            ".jpg",
            ".zip",
            "/pricelist",
            "_NormalHires.jpg",
            "_NormalPreview.jpg",
            "_normalthumbnail.jpg",
            "_CroppedThumbnail.jpg",
            "_WatermarkPreview.jpg",
            "-watermark_NormalPreview.jpg",
            "-crop_w9_h9_x1_y1_NormalPreview.jpg",
            "-crop_w20_h20_x1_y1-watermark.jpg",
            "-CROP_W9_H9.jpg",
            "-crop_w9_h9.json",
            ".renditions.json",
            "-fit_w9_h8_NormalPreview.jpg",
            "-FILL_W9_H8.webp",
            "-crop_w20_h20_x1_y1-fit_h9-watermark.jpg",
            "-preset_card_NormalPreview.webp",
            "_NormalPreview.auto",
        ];
        for name in names {
            let path = format!("/media/image/{id}{name}");
            let answer = front.ask(Method::GET, &path, &[("authorization", &key)]);
            assert_eq!(answer.status(), 200, "{path}");
            answer.bytes().unwrap();
        }
        // Without an extension it is the URL of the page.
        let answer = front.ask(Method::GET, &format!("/media/image/{id}?x=1"), &[]);
        assert!(answer.status().is_redirection(), "{id}: {}", answer.status());
        used.insert(only_node(&before, &answered(nodes, "/media/"), names.len() + 1));
    }
    assert!(used.len() > 1, "all items went to one node");
    let mut used = BTreeSet::new();
    for at in 0..12 {
        let before = answered(nodes, "/content/");
        let path = format!(
            "/content/v1/_all/notification/0198c5e2-7f00-7000-8000-0000000000{at:02x}/stream"
        );
        for _ in 0..3 {
            let answer = front.ask(Method::GET, &path, &[("authorization", &key)]);
            assert_eq!(answer.status(), 404, "{path}");
        }
        used.insert(only_node(&before, &answered(nodes, "/content/"), 3));
    }
    assert!(used.len() > 1, "all streams went to one node");
    check_other_requests(nodes, front);
}

/// Requests that belong to no item are balanced too; headers that identify a node are hidden; clients are known by
/// their addresses.
fn check_other_requests(nodes: &[Server], front: &Front) {
    for path in ["/metrics", "/metrics/", "/health/live", "/health/"] {
        assert_eq!(front.get(path).status(), 404, "{path}");
    }
    assert_eq!(front.get("/health/ready").status(), 200);
    let id = "the-client-of-this-test";
    let headers = [("x-forwarded-for", "203.0.113.5"), ("x-request-id", id)];
    assert_eq!(front.ask(Method::GET, "/content/v1/image/search", &headers).status(), 200);
    let line = nodes[0].until("the log line", || {
        nodes
            .iter()
            .find_map(|node| node.log().lines().rfind(|line| line.contains(id)).map(str::to_owned))
    });
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["client"], "127.0.0.1", "what a client says of itself counts for nothing");
}

#[test]
fn each_balancer_routes_all_requests_for_an_item_to_one_node() {
    let nodes = nodes(3, &[r#"media.presets={"card":{"fit":[9,9]}}"#]);
    check_routing(&nodes, &nginx(&nodes));
    check_routing(&nodes, &haproxy(&nodes, &[]));
}

/// A client that sends idempotent requests one after the other until it is stopped.
fn send_requests(
    front: &Front,
    (number, end): (usize, &AtomicBool),
    answers: &AtomicUsize,
) -> Result<(), String> {
    for count in 0.. {
        if end.load(SeqCst) {
            break;
        }
        let id = IDS[(count + number) % IDS.len()];
        let path = match count % 5 {
            0 => format!("/media/image/{id}_NormalPreview.jpg"),
            // Not requested before, so it has to be rendered.
            1 => format!(
                "/media/image/{id}-crop_w9_h9_x{}_y{number}_NormalPreview.jpg",
                count / 5 % 50
            ),
            2 => format!("/media/image/{id}.json"),
            3 => "/content/v1/image/search?q=a".to_owned(),
            _ => "/".to_owned(),
        };
        let answer = front.client.get(format!("{}{path}", front.url)).send();
        let answer = answer.map_err(|why| format!("{path}: {why:?}"))?;
        if answer.status() != 200 {
            return Err(format!("{path}: {}", answer.status()));
        }
        // A balancer cannot retry a response that broke off after its head was sent.
        drop(answer.bytes());
        answers.fetch_add(1, SeqCst);
    }
    Ok(())
}

/// Stops one of three nodes and kills another one while clients send requests.
fn check_lost_nodes(front: &Front, mut nodes: Vec<Server>) {
    let (end, answers, failed) =
        (AtomicBool::new(false), AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for number in 0..3 {
            let (front, end, answers, failed) = (&front, &end, &answers, &failed);
            scope.spawn(move || {
                if let Err(why) = send_requests(front, (number, end), answers) {
                    failed.lock().unwrap().push(why);
                }
            });
        }
        let more = |count: usize| {
            let until = answers.load(SeqCst) + count;
            front.until("further answers", || {
                let stuck = !failed.lock().unwrap().is_empty();
                (stuck || answers.load(SeqCst) >= until).then_some(())
            });
        };
        more(30);
        let stopped = nodes.pop().unwrap();
        let (status, log) = stopped.stop();
        assert!(status.success(), "{log}");
        more(60);
        let killed = nodes.pop().unwrap();
        killed.signal("KILL");
        more(60);
        end.store(true, SeqCst);
    });
    assert_eq!(*failed.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn nginx_loses_no_get_when_nodes_are_stopped_and_killed() {
    let nodes = nodes(3, &[]);
    check_lost_nodes(&nginx(&nodes), nodes);
}

#[test]
fn haproxy_loses_no_get_when_nodes_are_stopped_and_killed() {
    let nodes = nodes(3, &["server.unready_s=3"]);
    check_lost_nodes(&haproxy(&nodes, &[]), nodes);
}

/// Connections to `port` with bytes that the receiver has not read.
fn unread(port: &str) -> usize {
    let port = format!(":{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let waiting = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&port) && fields[3] == "01" && !fields[4].ends_with(":00000000")
    };
    table.lines().skip(1).filter(waiting).count()
}

/// Returns whether every thread of a process is stopped; until then one may still answer.
pub fn is_stopped(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the process name, which may contain any character.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// A node dies with a waiting poll: the balancer sends the poll to the other node, which answers it.
fn check_poll(nodes: &[Server], front: &Front) {
    let key = format!("ApiKey {DEMO_KEY}");
    let waiting = |node: &Server| node.metric("wirephoto_polls_waiting", "") > 0.0;
    thread::scope(|scope| {
        let poll = scope.spawn(|| {
            let path = "/content/v1/image/stream?wait=60&q=zebra";
            front.ask(Method::GET, path, &[("authorization", &key)]).json::<Value>().unwrap()
        });
        let at = nodes[0].until("the poll", || nodes.iter().position(waiting));
        nodes[at].signal("KILL");
        let other = &nodes[1 - at];
        other.until("the poll again", || waiting(other).then_some(()));
        let document = news::document("A zebra", &["FOTO"], "2026-03-06T09:15:00+01:00");
        news::ingest(other, "image/z", &document);
        let answer = poll.join().unwrap();
        assert!(answer.to_string().contains("A zebra"), "{answer}");
    });
}

/// A node dies with unread requests: no POST is sent to the other node. A GET is, if the balancer treats a reset
/// connection as closed.
fn check_retries(nodes: &[Server], front: &Front, resets: bool) {
    let key = format!("ApiKey {DEMO_KEY}");
    let (survivor, dying) = (&nodes[0], &nodes[1]);
    let goes_to_dying = |id: &&&str| {
        let before = answered(nodes, "/media/");
        front.get(&format!("/media/image/{id}.json")).bytes().unwrap();
        only_node(&before, &answered(nodes, "/media/"), 1) == 1
    };
    let id = IDS.iter().find(goes_to_dying).expect("items go to both");
    let made = Mutex::new(Vec::new());
    dying.signal("STOP");
    dying.until("its threads to stop", || is_stopped(dying.child.id()).then_some(()));
    thread::scope(|scope| {
        let url = format!("{}/media/image/{id}.json", front.url);
        let get =
            scope.spawn(|| front.client.get(url).send().map(|answer| answer.status().as_u16()));
        front.until("the GET", || (unread(port_of(dying)) == 1).then_some(()));
        for at in 0..4 {
            let (made, key) = (&made, key.as_str());
            scope.spawn(move || {
                let name = format!("collection {at}");
                let request = front.client.post(format!("{}{COLLECTIONS}", front.url));
                let request = request.header("authorization", key).json(&json!({ "name": name }));
                let status = request.send().map(|answer| answer.status().as_u16());
                made.lock().unwrap().push((name, status));
            });
        }
        // Each POST was answered by one node or is unread at the other.
        front.until("the POSTs", || {
            let (waiting, done) = (unread(port_of(dying)) - 1, made.lock().unwrap().len());
            (waiting > 0 && waiting + done == 4).then_some(())
        });
        dying.signal("KILL");
        let get = get.join().unwrap();
        assert!(!resets || matches!(get, Ok(200)), "what may be repeated is: {get:?}");
    });
    let list = survivor.get_with(COLLECTIONS, &[("authorization", &key)]).json::<Value>().unwrap();
    let list = list.as_array().or_else(|| list["collections"].as_array()).expect("a list");
    let mut lost = 0;
    for (name, status) in made.into_inner().unwrap() {
        let found = list.iter().filter(|one| one["name"] == name).count();
        if matches!(status, Ok(200)) {
            assert_eq!(found, 1, "{name}");
        } else {
            // 502, or no response at all.
            assert!(matches!(status, Ok(502) | Err(_)), "{name}: {status:?}");
            assert_eq!(found, 0, "{name}: it was sent again");
            lost += 1;
        }
    }
    assert!(lost > 0, "none lay unread");
}

#[test]
fn nginx_retries_a_get_and_never_a_post() {
    // One slot is free: a missing node is skipped.
    let (first, second) = (nodes(2, &[]), nodes(2, &[]));
    check_poll(&first, &nginx(&first));
    check_retries(&second, &nginx(&second), true);
}

#[test]
fn haproxy_retries_a_get_and_never_a_post() {
    let (first, second) = (nodes(2, &[]), nodes(2, &[]));
    check_poll(&first, &haproxy(&first, &[]));
    // A hanging node must not be detected before the requests arrive.
    check_retries(&second, &haproxy(&second, &[("inter 500ms", "inter 60s")]), false);
}

/// Checks a response of the balancer itself: in the service's error format, with `Retry-After`.
fn check_balancer_error(answer: reqwest::blocking::Response, statuses: &[u16]) {
    let status = answer.status().as_u16();
    assert!(statuses.contains(&status), "{status}");
    let headers = answer.headers().clone();
    assert_eq!(headers["content-type"], "application/json", "{status}");
    assert_eq!(headers["cache-control"], "no-store", "{status}");
    let wait: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{status}: {wait}");
    let body: Value = answer.json().unwrap();
    assert!(body["message"].is_string() && body["errors"].is_array(), "{status}: {body}");
}

#[test]
fn a_balancer_without_a_healthy_node_answers_json_with_retry_after() {
    let nodes = nodes(1, &[]);
    let haproxy = haproxy(&nodes, &[("timeout server 310s", "timeout server 1s")]);
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let listen = format!("listen 127.0.0.1:{port};");
    let changes =
        [("listen 8000;", listen.as_str()), ("proxy_read_timeout 310s", "proxy_read_timeout 1s")];
    let nginx = Front::nginx_site(folder, port, &text("nodes-nginx.conf", &nodes, &changes));
    for front in [&haproxy, &nginx] {
        let ask = || front.get("/media/image/a.json");
        front.until("an answer of the node", || (ask().status() == 200).then_some(()));
        // A node's response is passed on. Until the balancer has probed the nodes, some items map to a missing one.
        let other = front.until("the node's own word", || {
            Some(front.get("/media/image/nowhere.json")).filter(|one| one.status() == 404)
        });
        assert_eq!(other.headers().get("retry-after"), None);
        assert!(other.json::<Value>().unwrap()["message"].is_string());
        nodes[0].signal("STOP");
        nodes[0].until("its threads to stop", || is_stopped(nodes[0].child.id()).then_some(()));
        check_balancer_error(ask(), &[502, 504]);
        nodes[0].signal("CONT");
        front.until("an answer of the node", || (ask().status() == 200).then_some(()));
    }
    nodes[0].signal("KILL");
    for front in [&haproxy, &nginx] {
        for path in ["/media/image/a.json", "/"] {
            // A connection whose node died may end without a response.
            let ask = || front.client.get(format!("{}{path}", front.url)).send().ok();
            check_balancer_error(front.until("an answer", ask), &[502, 503]);
        }
    }
}

#[test]
fn haproxy_terminates_tls_with_the_documented_lines() {
    let nodes = nodes(1, &[]);
    let (files, port) = (tempfile::tempdir().unwrap(), free_port());
    assert!(python("tls_files.py").arg(files.path()).status().unwrap().success());
    let folder = files.path().join("one");
    let listen = format!("bind 127.0.0.1:{port}");
    let certificate = folder.join("server.pem").display().to_string();
    let lines = substitute(
        &block("docs/operations/load-balancing.md", "bind :443").text,
        &[("bind :443", &listen), ("/etc/haproxy/wirephoto.pem", &certificate)],
    );
    let with_tls = format!("frontend wirephoto\n{lines}\n");
    let front = haproxy(&nodes, &[("frontend wirephoto\n", &with_tls)]);
    let authority = Certificate::from_pem(&fs::read(folder.join("ca.pem")).unwrap()).unwrap();
    let client = Client::builder().tls_certs_only([authority]).no_proxy().redirect(Policy::none());
    let client = client.build().unwrap();
    let url = format!("https://127.0.0.1:{port}/media/image/a.json");
    let answer = front.until("an answer of the node", || {
        client.get(&url).send().ok().filter(|answer| answer.status() == 200)
    });
    assert_eq!(answer.version(), Version::HTTP_2);
    let plain = front.get("/media/image/a.json");
    let location = plain.headers()["location"].to_str().unwrap();
    assert!(plain.status().is_redirection() && location.starts_with("https://"), "{location}");
}
