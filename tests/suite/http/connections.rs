//! Connections: keep-alive, HTTP/2, slow clients, and the end of the service.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use reqwest::{
    StatusCode,
    blocking::{Client, Response},
};

use super::{PREVIEW, THUMBNAIL, connect, hires};
use crate::common::{DEMO_KEY, Server, pictures::Picture};

/// Reads one response: its head, and as many bytes as it announces.
fn read_answer(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    (head, body)
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::demo();
    let thumbnail = server.bytes(THUMBNAIL);
    let mut stream = connect(&server);
    for path in [THUMBNAIL, "/media/image/none.json", PREVIEW, &hires(), THUMBNAIL] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let (head, body) = read_answer(&mut stream);
        let expected = if path.contains("none") { "http/1.1 404" } else { "http/1.1 200" };
        assert!(head.starts_with(expected), "{path}: {head}");
        assert!(path != THUMBNAIL || body == thumbnail);
    }
}

#[test]
fn http_2_is_spoken_without_tls() {
    let server = Server::demo();
    let client = Client::builder().http2_prior_knowledge().no_proxy().build().expect("client");
    for path in [PREVIEW, &hires(), "/media/image/demo-urtavla.json", "/"] {
        let response = client.get(format!("{}{path}", server.url)).send().expect("answer");
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        assert_eq!(response.status(), 200, "{path}");
        assert!(response.bytes().expect("body") == server.bytes(path), "{path}");
    }
    let range = client.get(format!("{}{}", server.url, hires())).header("Range", "bytes=-9");
    assert_eq!(range.send().expect("answer").status(), 206);
}

#[test]
fn a_client_that_sends_its_header_slowly_is_disconnected() {
    let server = Server::demo_with(&["server.header_timeout_s=1"]);
    let mut slow = connect(&server);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow:").expect("sent");
    let mut rest = Vec::new();
    // Closed or reset; a read timeout is neither.
    if let Err(error) = slow.read_to_end(&mut rest) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(!rest.starts_with(b"HTTP/1.1 2"));
    assert_eq!(server.get(THUMBNAIL).status(), 200);
}

#[test]
fn a_stop_lets_a_slow_download_finish_and_accepts_no_new_requests() {
    // Larger than the kernel's socket buffers.
    let large = Picture::grain(2600, 2000).jpeg_with(turbojpeg::Subsamp::None, 98);
    assert!(large.len() > 8_000_000, "{}", large.len());
    let mut server = Server::with_pictures(&[], &[("large", large)]);
    let path = format!("/media/image/large.jpg?ak={DEMO_KEY}");
    let whole = server.bytes(&path);
    let mut slow = connect(&server);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.write_all(request.as_bytes()).expect("sent");
    let mut first = vec![0; 10_000];
    slow.read_exact(&mut first).expect("the beginning");
    server.signal("TERM");
    server.until("the stop", || {
        let url = format!("{}/health/ready", server.url);
        let refused = |answer: Response| answer.status() == StatusCode::SERVICE_UNAVAILABLE;
        server.client.get(url).send().map_or(true, refused).then_some(())
    });
    assert!(server.child.try_wait().expect("status").is_none(), "it ended under a download");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("the rest");
    let answer = [first, rest].concat();
    let (found, expected) = (answer.len(), whole.len());
    assert!(answer.ends_with(&whole), "{found} of {expected} bytes\n{}", server.log());
    assert!(server.child.wait().expect("ended").success());
}

#[test]
fn a_stop_without_work_ends_with_status_zero() {
    let (status, log) = Server::empty().stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("\"ERROR\""), "{log}");
}
