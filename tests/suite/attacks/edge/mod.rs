//! Exhaustion and misuse at the edge: places of polls, connections, headers, mails to strangers.

mod channels;
mod mails;
mod protocol;

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use reqwest::{Method, blocking::Response};
use serde_json::Value;

use crate::common::{
    DEMO_KEY, PATIENCE, Server,
    h2::{self, H2, fields, frame},
    ports::free_port,
};

/// The key of another organization's user.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
/// The web proxy that the tests play, so that clients with other addresses come from one machine.
const PROXY: &str = "server.trusted_proxies=127.0.0.1";
/// A poll that nothing comes for.
const POLL: &str = "/content/v1/image/stream?q=neverheardof&wait=290";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A GET of `path` from `client` behind the proxy, left open.
fn left_open(server: &Server, client: &str, path: &str) -> TcpStream {
    let mut stream = connect(server);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads until the server has closed or reset the connection.
fn read_to_close(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    if let Err(error) = stream.read_to_end(&mut seen) {
        let kind = error.kind();
        assert!(!matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "left open");
    }
    String::from_utf8_lossy(&seen).into_owned()
}

fn ask(server: &Server, client: &str, path: &str) -> Response {
    server.get_with(path, &[("X-Forwarded-For", client)])
}

/// Why a request was shed: the error code of a 503 with the time to come back.
fn shed(response: Response) -> String {
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let body: Value = response.json().unwrap();
    body["errors"][0]["errorCode"].as_str().unwrap().to_owned()
}

/// Holds a poll of `client` once the server says that it waits.
fn waiting(server: &Server, client: &str, path: &str) -> TcpStream {
    let count = || server.metric("wirephoto_polls_waiting", "");
    let before = count();
    let stream = left_open(server, client, path);
    server.until("the poll to wait", || (count() > before).then_some(()));
    stream
}

#[test]
fn one_anonymous_client_does_not_take_the_places_of_polls_from_others() {
    let settings = ["search.polls=6", "search.client_polls=2", PROXY];
    let server = Server::demo_with(&settings);
    let now = POLL.replace("290", "0");
    let mut held: Vec<_> = (0..2).map(|_| waiting(&server, "192.0.2.1", POLL)).collect();
    assert_eq!(shed(ask(&server, "192.0.2.1", &now)), "client_polls");
    held.push(waiting(&server, "192.0.2.2", POLL));
    // Half of all is for known users, however many strangers come.
    for last in 3..9 {
        assert_eq!(shed(ask(&server, &format!("192.0.2.{last}"), &now)), "polls");
    }
    let own = |path: &str, key: &str| format!("{path}&ak={key}");
    // A user is one client at whichever address, and not the client that its address is.
    held.push(waiting(&server, "192.0.2.1", &own(POLL, DEMO_KEY)));
    held.push(waiting(&server, "192.0.2.9", &own(POLL, DEMO_KEY)));
    assert_eq!(shed(ask(&server, "192.0.2.7", &own(&now, DEMO_KEY))), "client_polls");
    assert_eq!(ask(&server, "192.0.2.1", &own(&now, BUYER_KEY)).status(), 200);
    // A stranger that leaves makes room for another one.
    drop(held.remove(0));
    server.until("a place of a stranger", || {
        (ask(&server, "192.0.2.3", &now).status() == 200).then_some(())
    });
}

#[test]
fn one_connection_of_http_2_does_not_take_the_places_of_polls_from_others() {
    let server = Server::demo_with(&["search.client_polls=3"]);
    let mut client = H2::connect(&server, &[]);
    let poll = fields("GET", POLL, &[]);
    let flags = h2::END_STREAM | h2::END_HEADERS;
    for stream in 0..10 {
        assert!(client.send(&frame(h2::HEADERS, flags, 2 * stream + 1, &poll)));
    }
    let mut answered = 0;
    while answered < 7 {
        let frame = client.next().expect("the connection lives");
        answered += usize::from(frame.kind == h2::HEADERS);
    }
    server.until("three to wait", || {
        (server.metric("wirephoto_polls_waiting", "") >= 3.0).then_some(())
    });
    assert!(server.metric("wirephoto_polls_waiting", "") <= 3.0);
    let shed = server.metric("wirephoto_requests_shed_total", "reason=\"client_polls\"");
    assert!(shed >= 7.0, "{shed}");
}

#[test]
fn one_user_does_not_take_the_places_of_stream_readers_from_others() {
    let server = Server::demo_with(&["notifications.polls=3", "notifications.client_polls=1"]);
    let make = |key: &str| {
        let url = format!("{}/content/v1/image/notification/stream?q=neverheardof", server.url);
        let request = server.client.request(Method::POST, url);
        let response = request.header("authorization", format!("ApiKey {key}")).send().unwrap();
        let body: Value = response.json().unwrap();
        let id = body["id"].as_str().unwrap();
        format!("/content/v1/image/notification/{id}/stream?ak={key}&wait=60")
    };
    let count = || server.metric("wirephoto_stream_polls_waiting", "");
    let (own, other) = (make(DEMO_KEY), make(BUYER_KEY));
    let _held = left_open(&server, "192.0.2.1", &own);
    server.until("the reader to wait", || (count() >= 1.0).then_some(()));
    // Another stream of the same user waits in the same places.
    assert_eq!(shed(server.get(&make(DEMO_KEY))), "client_stream_polls");
    let _other = left_open(&server, "192.0.2.1", &other);
    server.until("another user's reader to wait", || (count() >= 2.0).then_some(()));
}

#[test]
fn one_address_does_not_take_all_connections() {
    let settings = ["server.connections_per_address=5", "server.idle_timeout_s=600"];
    let server = Server::demo_with(&settings);
    let open = || left_open(&server, "192.0.2.1", "/health/live");
    let mut held = Vec::new();
    let refused = server.until("a connection too many", || {
        let mut one = open();
        let mut first = [0; 12];
        one.read_exact(&mut first).unwrap();
        match &first[9..] {
            b"503" => Some(read_to_close(&mut one)),
            _ => {
                held.push(one);
                None
            }
        }
    });
    assert_eq!(held.len(), 5, "as many as may be");
    let refused = refused.to_lowercase();
    assert!(refused.contains("retry-after: "), "{refused}");
    assert!(refused.contains("too many connections from this address"), "{refused}");
    held.clear();
    server.until("a connection to be free", || {
        let mut one = open();
        let mut first = [0; 12];
        one.read_exact(&mut first).unwrap();
        (&first[9..] == b"200").then_some(())
    });
    // The client of this test has its connection back too.
    let count = server.until("an answer", || {
        let answer = server.client.get(format!("{}/metrics", server.url)).send().ok()?;
        let text = answer.text().ok()?;
        let name = "wirephoto_connections_refused_per_address_total ";
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.parse::<f64>().ok()
    });
    assert!(count >= 1.0, "{count}");
}

#[test]
fn a_trusted_proxy_carries_the_connections_of_many() {
    let server = Server::demo_with(&["server.connections_per_address=2", PROXY]);
    let mut held: Vec<_> =
        (0..20).map(|_| left_open(&server, "192.0.2.1", "/health/live")).collect();
    for one in &mut held {
        let mut first = [0; 12];
        one.read_exact(&mut first).unwrap();
        assert_eq!(&first[9..], b"200");
    }
}

#[test]
fn metrics_are_not_public_where_they_have_a_listener_of_their_own() {
    let port = free_port();
    let admin = format!("http://127.0.0.1:{port}");
    let server = Server::demo_with(&[&format!("server.admin_listen=127.0.0.1:{port}")]);
    let status = |url: &str| server.client.get(url).send().unwrap().status().as_u16();
    for path in ["/metrics", "/metrics/", "/metrics?x=1", "//metrics", "/%6detrics"] {
        assert_eq!(server.get(path).status(), 404, "{path}");
    }
    for path in ["/health/live", "/health/ready", "/health/serving"] {
        assert_eq!(server.get(path).status(), 200, "{path}");
        assert_eq!(status(&format!("{admin}{path}")), 200, "{path}");
    }
    let metrics = server.client.get(format!("{admin}/metrics")).send().unwrap();
    assert_eq!(metrics.status(), 200);
    assert!(metrics.text().unwrap().contains("wirephoto_connections"));
    for path in ["/", "/media/image/demo-urtavla_NormalThumbnail.jpg", "/content/v1/image/search"]
    {
        assert_eq!(status(&format!("{admin}{path}")), 404, "{path}");
    }
    let (ended, log) = server.stop();
    assert!(ended.success(), "{log}");
}
