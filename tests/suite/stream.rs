//! The deprecated stream, a long poll (contract search-19), through the server.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread::{self, JoinHandle},
};

use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::common::api::Refusal;
use crate::common::{DEMO_KEY, Server, news};
use crate::search::{BUYER_KEY, ids};

fn server(settings: &[&str]) -> Server {
    let old = news::document("Isbrytare", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let new = news::document("Match", &["SPORT"], "2026-03-05T09:15:00+01:00");
    news::server(settings, &[("image/old", old), ("image/new", new)])
}

fn path(query: &str) -> String {
    format!("/content/v1/image/stream?ak={DEMO_KEY}&{query}")
}

/// The hits of a poll that must answer immediately.
fn now(server: &Server, query: &str) -> String {
    let response = server.get(&path(query));
    assert_eq!(response.status(), 200, "{query}");
    let body: Value = response.json().unwrap();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["hits"], "{query}");
    ids(&body)
}

/// Starts a poll in another thread and waits until the server reports that it is waiting.
fn waiting(server: &Server, query: &str) -> JoinHandle<(u16, Value)> {
    let before = server.metric("wirephoto_polls_waiting", "");
    let url = format!("{}{}", server.url, path(query));
    let client = Client::builder().no_proxy().timeout(None).build().unwrap();
    let poll = thread::spawn(move || {
        let response = client.get(url).send().expect("answer");
        (response.status().as_u16(), response.json().expect("JSON"))
    });
    server.until("the poll to wait", || {
        (server.metric("wirephoto_polls_waiting", "") > before).then_some(())
    });
    poll
}

#[test]
fn a_poll_gives_the_most_recent_match_and_then_later_ones() {
    let server = server(&[]);
    let last = |id: &str| format!("last=https://other.example/media/image/{id}");
    assert_eq!(now(&server, ""), "new");
    assert_eq!(now(&server, "q=isbrytare"), "old");
    assert_eq!(now(&server, "p=-SPORT"), "old");
    assert_eq!(now(&server, "sort=default:asc"), "old");
    assert_eq!(now(&server, &last("old")), "new");
    assert_eq!(now(&server, &format!("{}&wait=0", last("new"))), "");
    assert_eq!(now(&server, &format!("{}&p=FOTO&wait=0", last("old"))), "");
    assert_eq!(now(&server, &last("unknown")), "new");
    let body: Value = server.get(&path("layout=bare")).json().unwrap();
    assert_eq!(body["hits"][0].get("type"), None);
    assert_eq!(body["hits"][0]["renditions"].as_object().unwrap().len(), 1);
}

#[test]
fn a_waiting_poll_is_woken_by_an_ingest_in_another_process() {
    let server = server(&["server.request_timeout_s=1"]);
    let last = "last=http://x/media/image/new&wait=300";
    let any = waiting(&server, last);
    let icebreaker = waiting(&server, &format!("{last}&q=isbrytare&p=FOTO"));
    news::ingest(
        &server,
        "image/later",
        &news::document("Regn", &["SPORT"], "2026-03-06T00:00:00Z"),
    );
    let (status, body) = any.join().unwrap();
    assert_eq!((status, ids(&body).as_str()), (200, "later"));
    let document = news::document("Isbrytare igen", &["FOTO"], "2026-03-07T00:00:00Z");
    news::ingest(&server, "image/latest", &document);
    let (status, body) = icebreaker.join().unwrap();
    assert_eq!((status, ids(&body).as_str()), (200, "latest"));
}

#[test]
fn a_poll_returns_empty_when_it_times_out() {
    let server = server(&[]);
    let watch = std::time::Instant::now();
    assert_eq!(now(&server, "last=http://x/media/image/new&wait=1"), "");
    assert!(watch.elapsed().as_secs_f64() >= 1.0);
}

#[test]
fn waiting_polls_are_answered_when_the_service_stops() {
    let server = server(&["server.unready_s=0", "server.drain_s=300"]);
    let polls: Vec<_> =
        (0..3).map(|_| waiting(&server, "last=http://x/media/image/new&wait=300")).collect();
    let watch = std::time::Instant::now();
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    assert!(watch.elapsed().as_secs() < 200, "they have 300 s, and so has the stop");
    for poll in polls {
        assert_eq!(poll.join().unwrap(), (200, json!({ "hits": [] })));
    }
}

#[test]
fn a_poll_over_the_limit_is_shed_and_a_closed_poll_frees_its_slot() {
    let server = server(&["search.polls=1"]);
    let address = server.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let path_waiting = path("last=http://x/media/image/new&wait=300");
    let request = format!("GET {path_waiting} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let count = || server.metric("wirephoto_polls_waiting", "");
    server.until("the poll to wait", || (count() > 0.0).then_some(()));
    let refused = server.get(&path("wait=0"));
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest));
    server.until("the poll to end", || (count() < 1.0).then_some(()));
    assert_eq!(now(&server, "wait=0"), "new");
}

#[test]
fn a_bad_parameter_of_a_poll_is_a_400_that_names_it() {
    let server = server(&[]);
    let check = |path: &str, expected: &str| {
        let response = server.get(path);
        assert!(response.headers().contains_key("deprecation"));
        assert_eq!(Refusal::read(response).summary(), format!("400 {expected}"), "{path}");
    };
    check(&path("wait=301"), "maximum query wait");
    check(&path("wait=-1&last=image/new"), "format query last, minimum query wait");
    check(&path("wait=x&sort=x"), "enum query sort, type query wait");
    check(&path("layout=x&agr=1002"), "enum query agr, enum query layout");
    let stock = format!("/content/v1/stockfoto/stream?ak={DEMO_KEY}");
    check(&stock, "enum path mediaType");
}

#[test]
fn a_stream_announces_its_deprecation_and_restricts_access() {
    let server = server(&[]);
    let open = server.get("/content/v1/image/stream?wait=0");
    assert_eq!(open.status(), 200);
    assert_eq!(open.headers()["cache-control"], "no-store");
    assert!(open.headers()["deprecation"].to_str().unwrap().starts_with('@'));
    let link = "</content/v1/image/notification/stream>; rel=\"successor-version\"";
    assert_eq!(open.headers()["link"], link);
    assert_eq!(ids(&open.json().unwrap()), "new");
    for path in ["/content/v1/text/stream?wait=0", "/content/v1/image/stream?agr=1001&wait=0"] {
        assert_eq!(server.get(path).status(), 401, "{path}");
    }
    let buyer = server.get(&format!("/content/v1/_all/stream?ak={BUYER_KEY}&wait=0"));
    assert_eq!(ids(&buyer.json().unwrap()), "old");
}
