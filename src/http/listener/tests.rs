//! Tests of connections over real sockets. Limits are small; the tests assert which connections are closed
//! and in which order, not when.

use crate::http::listener::{ClientAddr, DrainReport, ListenerLimits, ListenerSettings, serve};
use crate::runtime::hot_swap::HotSwap;
use axum::{
    Extension, Router,
    body::{Body, Bytes},
    routing::{get, post},
};
use futures_util::{StreamExt, stream};
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinHandle,
    time::timeout,
};

/// Time after which a test fails because its event did not happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets a test observe and control the handlers.
#[derive(Debug, Default)]
struct Stage {
    entered: Notify,
    release: Notify,
    /// An endless response was dropped.
    dropped: Notify,
}

/// Reports to its stage that the response which owns it was dropped.
struct Leaving(Arc<Stage>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

async fn faulty() -> &'static str {
    panic!("a handler's fault")
}

struct Server {
    addr: SocketAddr,
    stage: Arc<Stage>,
    stop: watch::Sender<bool>,
    running: JoinHandle<DrainReport>,
}

fn limits() -> ListenerLimits {
    ListenerLimits {
        header_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(200),
        write_grace: Duration::from_millis(200),
        read_grace: Duration::from_millis(200),
        drain: Duration::from_secs(10),
        ..ListenerLimits::default()
    }
}

/// Limits that no test reaches.
fn patient() -> ListenerLimits {
    ListenerLimits {
        header_timeout: PATIENCE,
        idle_timeout: PATIENCE,
        write_grace: PATIENCE,
        read_grace: PATIENCE,
        ..ListenerLimits::default()
    }
}

fn router(stage: &Arc<Stage>) -> Router {
    let held = Arc::clone(stage);
    let hold = get(move || {
        let stage = Arc::clone(&held);
        async move {
            stage.entered.notify_one();
            stage.release.notified().await;
            "held"
        }
    });
    let left = Arc::clone(stage);
    let endless = get(move || async move {
        let (chunk, leaving) = (Bytes::from(vec![7; 64 * 1024]), Leaving(left));
        Body::from_stream(stream::repeat(chunk).map(move |chunk| {
            let _owned_by_the_body = &leaving;
            Ok::<_, Infallible>(chunk)
        }))
    });
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route(
            "/peer",
            get(|Extension(peer): Extension<ClientAddr>| async move { peer.0.to_string() }),
        )
        .route("/hold", hold)
        .route("/endless", endless)
        .route("/panic", get(faulty))
        .route("/upload", post(|body: Bytes| async move { body.len().to_string() }))
}

async fn start(limits: ListenerLimits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has ports");
    let addr = listener.local_addr().expect("bound");
    let (stop, stopped) = watch::channel(false);
    let stage = Arc::new(Stage::default());
    let settings = ListenerSettings { limits: HotSwap::new(limits), certificate: None };
    let running = tokio::spawn(serve(listener, router(&stage), settings, stopped));
    Server { addr, stage, stop, running }
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("the listener accepts")
    }

    fn client(&self, h2: bool) -> (reqwest::Client, String) {
        let builder = reqwest::Client::builder().timeout(PATIENCE);
        let builder = if h2 { builder.http2_prior_knowledge() } else { builder };
        (builder.build().expect("client"), format!("http://{}", self.addr))
    }

    async fn stopped(self) -> DrainReport {
        let _nobody_listens = self.stop.send(true);
        timeout(PATIENCE, self.running).await.expect("it stops").expect("it does not panic")
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("the connection is open");
}

/// Reads one response whose body is known.
async fn expect_body(stream: &mut TcpStream, body: &str) -> String {
    let mut seen = Vec::new();
    let read = async {
        while !seen.ends_with(body.as_bytes()) {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.expect("the connection is open");
            assert_ne!(count, 0, "closed after {:?}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..count]);
        }
    };
    timeout(PATIENCE, read).await.expect("the response comes");
    String::from_utf8(seen).expect("text")
}

/// Waits until the server has closed or reset the connection; returns the data sent before.
async fn expect_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    let closed = timeout(PATIENCE, stream.read_to_end(&mut seen)).await.expect("it is closed");
    if let Err(error) = closed {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    seen
}

#[tokio::test]
async fn a_request_is_answered_and_the_connection_lives_on() {
    let server = start(patient()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        send(&mut client, &request("/")).await;
        let response = expect_body(&mut client, "hello").await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    }
}

#[tokio::test]
async fn a_request_carries_the_address_of_its_peer() {
    let server = start(patient()).await;
    let mut client = server.connect().await;
    send(&mut client, &request("/peer")).await;
    let own = client.local_addr().expect("connected").to_string();
    expect_body(&mut client, &own).await;
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    let server = start(patient()).await;
    let (client, base) = server.client(true);
    let response = client.get(format!("{base}/")).send().await.expect("response");
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    assert_eq!(response.text().await.expect("body"), "hello");
    let upload = client.post(format!("{base}/upload")).body(vec![1_u8; 1_500_000]);
    assert_eq!(upload.send().await.expect("response").text().await.expect("body"), "1500000");
}

#[tokio::test]
async fn a_slow_head_is_closed_wherever_it_stops() {
    let server = start(ListenerLimits { idle_timeout: PATIENCE, ..limits() }).await;
    for head in
        ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"]
    {
        let mut client = server.connect().await;
        send(&mut client, head).await;
        assert_eq!(expect_closed(&mut client).await, b"", "{head:?}");
    }
}

#[tokio::test]
async fn a_head_that_trickles_is_closed() {
    let server = start(ListenerLimits { idle_timeout: PATIENCE, ..limits() }).await;
    let mut client = server.connect().await;
    send(&mut client, &request("/")).await;
    expect_body(&mut client, "hello").await;
    send(&mut client, "GET / HTTP/1.1\r\n").await;
    let (mut read, mut write) = client.split();
    let trickle = async {
        let mut beat = tokio::time::interval(Duration::from_millis(20));
        while write.write_all(b"X-A: b\r\n").await.is_ok() {
            beat.tick().await;
        }
    };
    let mut rest = Vec::new();
    let closed = async { read.read_to_end(&mut rest).await };
    timeout(PATIENCE, async { tokio::join!(trickle, closed) }).await.expect("it is closed").1.ok();
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_peace() {
    let server = start(ListenerLimits { header_timeout: PATIENCE, ..limits() }).await;
    let mut client = server.connect().await;
    send(&mut client, &request("/")).await;
    expect_body(&mut client, "hello").await;
    let end = timeout(PATIENCE, client.read_u8()).await.expect("it is closed");
    assert_eq!(end.expect_err("closed").kind(), io::ErrorKind::UnexpectedEof, "not reset");
}

#[tokio::test]
async fn a_long_request_outlives_the_idle_time() {
    let server = start(limits()).await;
    for h2 in [false, true] {
        let (client, base) = server.client(h2);
        let long = tokio::spawn(client.get(format!("{base}/hold")).send());
        server.stage.entered.notified().await;
        // The idle timeout of another connection passes while the request is held.
        for _ in 0..3 {
            let mut idle = server.connect().await;
            send(&mut idle, &request("/")).await;
            expect_body(&mut idle, "hello").await;
            expect_closed(&mut idle).await;
        }
        server.stage.release.notify_one();
        let response = long.await.expect("task").expect("response");
        assert_eq!(response.text().await.expect("body"), "held");
    }
}

#[tokio::test]
async fn a_slow_reader_is_dropped_while_a_fast_one_is_served() {
    let server = start(limits()).await;
    let mut fast = server.connect().await;
    send(&mut fast, &request("/endless")).await;
    let mut slow = server.connect().await;
    send(&mut slow, &request("/endless")).await;
    let (dropped, is_dropped) = watch::channel(false);
    let reader = tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        let mut reads_after = 0;
        while reads_after < 100 {
            assert_ne!(fast.read(&mut buffer).await.expect("still served"), 0);
            reads_after += u32::from(*is_dropped.borrow());
        }
    });
    timeout(PATIENCE, server.stage.dropped.notified()).await.expect("the slow one is dropped");
    dropped.send(true).expect("the fast one still reads");
    timeout(PATIENCE, reader).await.expect("it ends").expect("it was served");
    expect_closed(&mut slow).await;
}

#[tokio::test]
async fn a_reader_that_opens_no_http2_window_is_dropped() {
    let server = start(limits()).await;
    let (client, base) = server.client(true);
    let mut response = client.get(format!("{base}/endless")).send().await.expect("response");
    timeout(PATIENCE, server.stage.dropped.notified()).await.expect("it is dropped");
    while let Ok(chunk) = response.chunk().await {
        assert!(chunk.is_some(), "an endless body does not end");
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_is_closed() {
    let server = start(ListenerLimits { idle_timeout: PATIENCE, ..limits() }).await;
    let mut client = server.connect().await;
    let head = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n";
    send(&mut client, &format!("{head}few bytes")).await;
    assert_eq!(expect_closed(&mut client).await, b"");
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_only() {
    let server = start(patient()).await;
    let mut other = server.connect().await;
    send(&mut other, &request("/")).await;
    expect_body(&mut other, "hello").await;
    let mut bad = server.connect().await;
    send(&mut bad, &request("/panic")).await;
    assert_eq!(expect_closed(&mut bad).await, b"");
    send(&mut other, &request("/")).await;
    expect_body(&mut other, "hello").await;
    let (client, base) = server.client(true);
    assert!(client.get(format!("{base}/panic")).send().await.is_err());
    let after = client.get(format!("{base}/")).send().await.expect("the connection lives");
    assert_eq!(after.text().await.expect("body"), "hello");
}

#[tokio::test]
async fn one_connection_too_many_is_answered_503() {
    let server = start(ListenerLimits { connections_max: 1, ..patient() }).await;
    let mut first = server.connect().await;
    send(&mut first, &request("/")).await;
    expect_body(&mut first, "hello").await;
    let mut second = server.connect().await;
    send(&mut second, &request("/")).await;
    let answer = String::from_utf8(expect_closed(&mut second).await).expect("text");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("Retry-After: "), "{answer}");
    send(&mut first, &request("/")).await;
    expect_body(&mut first, "hello").await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = start(ListenerLimits { header_bytes_max: 8192, ..patient() }).await;
    let mut client = server.connect().await;
    send(&mut client, &format!("GET /{} HTTP/1.1\r\n", "a".repeat(10_000))).await;
    let answer = expect_closed(&mut client).await;
    assert!(answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_head_with_too_many_fields_is_refused() {
    for headers_max in [20, 100] {
        let server = start(ListenerLimits { headers_max, ..patient() }).await;
        for (fields, status) in [(headers_max, "200"), (headers_max + 1, "431")] {
            let mut client = server.connect().await;
            let head = "X-A: b\r\n".repeat(fields - 1);
            send(&mut client, &format!("GET / HTTP/1.1\r\nConnection: close\r\n{head}\r\n")).await;
            let answer = String::from_utf8(expect_closed(&mut client).await).expect("text");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_drain_finishes_what_runs_and_refuses_what_comes() {
    let server = start(patient()).await;
    let mut idle = server.connect().await;
    send(&mut idle, &request("/")).await;
    expect_body(&mut idle, "hello").await;
    let mut busy = server.connect().await;
    send(&mut busy, &request("/hold")).await;
    server.stage.entered.notified().await;
    let (client, base) = server.client(true);
    let h2 = tokio::spawn(client.get(format!("{base}/hold")).send());
    server.stage.entered.notified().await;

    let (addr, stage) = (server.addr, Arc::clone(&server.stage));
    let report = tokio::spawn(server.stopped());
    assert_eq!(expect_closed(&mut idle).await, b"");
    assert!(TcpStream::connect(addr).await.is_err(), "the listening socket is closed");
    stage.release.notify_one();
    stage.release.notify_one();
    let answer = expect_body(&mut busy, "held").await;
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    assert_eq!(expect_closed(&mut busy).await, b"");
    assert_eq!(h2.await.expect("task").expect("response").status(), 200);
    assert_eq!(report.await.expect("task"), DrainReport { finished: 3, cut: 0 });
}

#[tokio::test]
async fn a_drain_cuts_what_does_not_finish() {
    let server = start(ListenerLimits { drain: Duration::from_millis(50), ..patient() }).await;
    let mut busy = server.connect().await;
    send(&mut busy, &request("/hold")).await;
    server.stage.entered.notified().await;
    assert_eq!(server.stopped().await, DrainReport { finished: 0, cut: 1 });
    assert_eq!(expect_closed(&mut busy).await, b"");
}
