//! Exhaustion and misuse at the edge: long-poll slots, connections, headers, mails to strangers.

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
    DEMO_KEY, LARGE, Server, WAIT_TIMEOUT,
    h2::{self, H2, fields, frame},
    ports::free_port,
};

/// The key of another organization's user.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
/// The reverse proxy that the tests act as, so that requests from one machine have different client addresses.
const PROXY: &str = "server.trusted_proxies=127.0.0.1";
/// A long poll that no item answers.
const POLL: &str = "/content/v1/image/stream?q=neverheardof&wait=290";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    stream
}

/// Sends a GET of `path` from `client` behind the proxy and leaves the connection open.
fn open_request(server: &Server, client: &str, path: &str) -> TcpStream {
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

/// The error code of a shed request: a 503 with `Retry-After`.
fn shed(response: Response) -> String {
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let body: Value = response.json().unwrap();
    body["errors"][0]["errorCode"].as_str().unwrap().to_owned()
}

/// Opens a poll of `client`; returns once the server reports that it is waiting.
fn open_poll(server: &Server, client: &str, path: &str) -> TcpStream {
    let count = || server.metric("wirephoto_polls_waiting", "");
    let before = count();
    let stream = open_request(server, client, path);
    server.until("the poll to wait", || (count() > before).then_some(()));
    stream
}

#[test]
fn one_anonymous_client_does_not_exhaust_the_poll_slots() {
    let settings = ["search.polls=6", "search.client_polls=2", PROXY];
    let server = Server::demo_with(&settings);
    let now = POLL.replace("290", "0");
    let mut held: Vec<_> = (0..2).map(|_| open_poll(&server, "192.0.2.1", POLL)).collect();
    assert_eq!(shed(ask(&server, "192.0.2.1", &now)), "client_polls");
    held.push(open_poll(&server, "192.0.2.2", POLL));
    // Half of the slots are reserved for authenticated users, however many anonymous clients poll.
    for last in 3..9 {
        assert_eq!(shed(ask(&server, &format!("192.0.2.{last}"), &now)), "polls");
    }
    let own = |path: &str, key: &str| format!("{path}&ak={key}");
    // A user is one client at any address, and distinct from the anonymous client at that address.
    held.push(open_poll(&server, "192.0.2.1", &own(POLL, DEMO_KEY)));
    held.push(open_poll(&server, "192.0.2.9", &own(POLL, DEMO_KEY)));
    assert_eq!(shed(ask(&server, "192.0.2.7", &own(&now, DEMO_KEY))), "client_polls");
    assert_eq!(ask(&server, "192.0.2.1", &own(&now, BUYER_KEY)).status(), 200);
    // When an anonymous client disconnects, its slot is free.
    drop(held.remove(0));
    server.until("a place of a stranger", || {
        (ask(&server, "192.0.2.3", &now).status() == 200).then_some(())
    });
}

#[test]
fn one_http_2_connection_does_not_exhaust_the_poll_slots() {
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
fn one_user_does_not_exhaust_the_stream_reader_slots() {
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
    let _held = open_request(&server, "192.0.2.1", &own);
    server.until("the reader to wait", || (count() >= 1.0).then_some(()));
    // Another stream of the same user uses the same slots.
    assert_eq!(shed(server.get(&make(DEMO_KEY))), "client_stream_polls");
    let _other = open_request(&server, "192.0.2.1", &other);
    server.until("another user's reader to wait", || (count() >= 2.0).then_some(()));
}

#[test]
fn one_address_does_not_exhaust_the_connections() {
    let settings = ["server.connections_per_address=5", "server.idle_timeout_s=600"];
    let server = Server::demo_with(&settings);
    let open = || open_request(&server, "192.0.2.1", "/health/live");
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
    // The connection of this test's own client is released too.
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
fn a_trusted_proxy_may_open_connections_for_many_clients() {
    let server = Server::demo_with(&["server.connections_per_address=2", PROXY]);
    let mut held: Vec<_> =
        (0..20).map(|_| open_request(&server, "192.0.2.1", "/health/live")).collect();
    for one in &mut held {
        let mut first = [0; 12];
        one.read_exact(&mut first).unwrap();
        assert_eq!(&first[9..], b"200");
    }
}

#[test]
fn metrics_with_a_separate_listener_are_not_public() {
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
    // Also not a picture that the public listener has at hand.
    let thumbnail = format!("/media/{LARGE}_NormalThumbnail.jpg");
    for _ in 0..3 {
        server.bytes(&thumbnail);
    }
    assert_eq!(status(&format!("{admin}{thumbnail}")), 404);
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
