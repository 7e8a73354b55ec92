//! Requests that two components could parse differently, and headers that restrict browsers.

use std::io::Write;

use reqwest::header::{HeaderMap, HeaderName};

use super::{connect, read_to_close};
use crate::common::{DEMO_KEY, Server};
use crate::site::Session;

/// The statuses of all responses on a connection that sends `bytes`, until the server closes it.
fn statuses(server: &Server, bytes: &[u8]) -> Vec<u16> {
    let mut stream = connect(server);
    stream.write_all(bytes).unwrap();
    let text = read_to_close(&mut stream);
    let lines = text.split("HTTP/1.").skip(1);
    lines.filter_map(|line| line.get(2..5)?.parse().ok()).collect()
}

#[test]
fn a_request_without_a_host_or_with_two_is_refused() {
    let server = Server::demo();
    let get = |address: &str, version: &str, hosts: &str| {
        format!("GET {address} HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n")
    };
    let cases = [
        ("/health/live", "1.1", "Host: a\r\n", 200),
        ("/health/live", "1.1", "Host: a.example:8080\r\n", 200),
        ("/health/live", "1.1", "Host: \r\n", 200),
        ("/health/live", "1.1", "", 400),
        ("/health/live", "1.1", "Host: a\r\nHost: b\r\n", 400),
        ("/health/live", "1.1", "Host: a\r\nHost: a\r\n", 400),
        ("/health/live", "1.1", "Host: a, b\r\n", 400),
        ("/health/live", "1.1", "Host: user@a\r\n", 400),
        ("/health/live", "1.1", "Host: a/b\r\n", 400),
        ("http://a/health/live", "1.1", "Host: b\r\n", 200),
        ("http://a/health/live", "1.1", "", 400),
        ("/health/live", "1.0", "", 200),
        ("/health/live", "1.0", "Host: a\r\nHost: b\r\n", 400),
    ];
    for (address, version, hosts, expected) in cases {
        let request = get(address, version, hosts);
        assert_eq!(statuses(&server, request.as_bytes()), [expected], "{request:?}");
    }
}

#[test]
fn a_smuggled_request_is_never_answered() {
    let server = Server::demo();
    // If it is answered, the connection is closed after the response.
    let hidden = "GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let post = |fields: &str, body: &str| {
        format!("POST /o/oauth2/token HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}{hidden}")
    };
    let cases = [
        post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Content-Length: 0\r\nContent-Length: 44\r\n", ""),
        post("Content-Length: +4\r\n", "abcd"),
        post("Content-Length: 4, 5\r\n", "abcd"),
        post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
        post("X: a\0b\r\n", ""),
        // Line ends in chunked framing are strict: a bare CR or LF cannot hide a request.
        post("Transfer-Encoding: chunked\r\n", "0\n\n"),
        post("Transfer-Encoding: chunked\r\n", "0;a\n\r\n\r\n"),
        post("Transfer-Encoding: chunked\r\n", "1\nZ\r\n0\r\n\r\n"),
        format!("POST /o/oauth2/token HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n{hidden}"),
    ];
    for request in cases {
        let found = statuses(&server, request.as_bytes());
        assert!(!found.contains(&200), "{request:?}: {found:?}");
        assert!(found.len() <= 1, "{request:?}: {found:?}");
    }
}

#[test]
fn request_headers_change_no_link() {
    let server = Server::demo();
    let path = "/media/image/demo-urtavla.json";
    let plain = server.bytes(path);
    let lies = [
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Original-URL", "/metrics"),
        ("X-Rewrite-URL", "/metrics"),
        ("Forwarded", "host=evil.example"),
        ("Host", "evil.example"),
    ];
    for lie in lies {
        let answer = server.get_with(path, &[lie]);
        assert_eq!(answer.status(), 200, "{lie:?}");
        assert!(answer.bytes().unwrap() == plain, "{lie:?}");
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let name: HeaderName = name.parse().unwrap();
    headers.get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn response_headers_restrict_embedding_and_scripts() {
    let server = Server::demo_with(&["server.public_url=https://pictures.example.org"]);
    let sandbox = Some("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    let key = format!("?ak={DEMO_KEY}");
    // Path, who may embed it, its sandbox, whether it is a page, whether it isolates its window.
    let cases = [
        ("/media/image/demo-urtavla_NormalPreview.jpg", "cross-origin", None, false, false),
        ("/media/image/demo-urtavla.json", "cross-origin", sandbox, false, false),
        ("/media/image/demo-urtavla.xml", "cross-origin", sandbox, false, false),
        (
            &*format!("/media/text/demo-new-zealand-flag-cutpaste.txt{key}"),
            "cross-origin",
            sandbox,
            false,
            false,
        ),
        (
            &*format!("/media/graphic/demo-sweden-map.pdf{key}"),
            "cross-origin",
            sandbox,
            false,
            false,
        ),
        ("/media/image/none.json", "cross-origin", sandbox, false, false),
        ("/health/live", "same-origin", None, false, false),
        ("/content/v1/image/search", "same-origin", None, false, false),
        ("/assets/css/site.css", "same-origin", None, false, false),
        ("/", "same-origin", None, true, true),
        ("/item/image/none", "same-origin", None, true, true),
        ("/o/login", "same-origin", None, true, false),
    ];
    for (path, embeds, sandbox, is_page, keeps_window) in cases {
        let answer = server.get(path);
        let headers = answer.headers();
        assert_eq!(text(headers, "cross-origin-resource-policy"), Some(embeds), "{path}");
        let transport = text(headers, "strict-transport-security");
        assert_eq!(transport, Some("max-age=31536000"), "{path}");
        if !is_page {
            assert_eq!(text(headers, "content-security-policy"), sandbox, "{path}");
        }
        assert_eq!(headers.contains_key("permissions-policy"), is_page, "{path}");
        let opener = text(headers, "cross-origin-opener-policy");
        assert_eq!(opener, keeps_window.then_some("same-origin"), "{path}");
        if is_page && answer.status() == 200 {
            let policy = text(headers, "content-security-policy").unwrap();
            assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        }
    }
}

#[test]
fn a_service_without_tls_does_not_pin_browsers_to_https() {
    let server = Server::demo();
    for path in ["/", "/media/image/demo-urtavla_NormalPreview.jpg"] {
        assert!(!server.get(path).headers().contains_key("strict-transport-security"), "{path}");
    }
}

#[test]
fn a_cache_is_not_tricked_into_storing_a_page() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-admin");
    let account = session.get(&server, "/account");
    assert_eq!(account.status(), 200);
    assert_eq!(text(account.headers(), "cache-control"), Some("no-store"));
    // Paths that a cache could classify by its own rules.
    for path in [
        "/account/x.css",
        "/account;x.css",
        "/account%2fx.css",
        "/account%3bx.css",
        "/account%3fx.css",
        "/account%23x.css",
        "/account%00x.css",
        "/account%0ax.css",
        "/account.css",
        "/account/.css",
        "/account/keys.jpg",
        "/account/keys;x.jpg",
        "/account/keys/x.js",
        "/account/orders/x.png",
        "/assets/..%2faccount",
        "/assets/css/..%2f..%2faccount/keys",
        "/o/login.css",
    ] {
        let answer = session.get(&server, path);
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.text().unwrap();
        assert!([400, 404].contains(&status.as_u16()), "{path}: {status}");
        let policy = text(&headers, "cache-control").unwrap_or_default();
        if !policy.contains("no-store") && !policy.contains("private") {
            // Cacheable responses do not depend on the visitor.
            let stranger = server.get(path);
            assert_eq!(stranger.status(), status, "{path}");
            assert!(!headers.contains_key("set-cookie"), "{path}: {policy}");
            assert_eq!(stranger.text().unwrap(), body, "{path}: {policy}");
            assert!(!body.contains("demo-admin"), "{path}: {policy}");
        }
    }
}

#[test]
fn a_request_head_beyond_its_limits_is_refused() {
    let server = Server::demo();
    let head = |fields: &str| {
        format!("GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n")
    };
    assert_eq!(statuses(&server, head("X-A: b\r\n").as_bytes()), [200]);
    let many = head(&"X-A: b\r\n".repeat(300));
    assert_eq!(statuses(&server, many.as_bytes()), [431]);
    let long = head(&format!("X-A: {}\r\n", "a".repeat(200_000)));
    let mut stream = connect(&server);
    // The server may close the connection before it has read the whole request.
    drop(stream.write_all(long.as_bytes()));
    let answer = read_to_close(&mut stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(server.get("/health/live").status(), 200);
}

#[test]
fn a_page_cached_in_one_language_is_not_served_in_another() {
    let server = Server::demo();
    for path in ["/", "/item/image/demo-urtavla"] {
        let answer = server.get_with(path, &[("accept-language", "sv")]);
        let vary = text(answer.headers(), "vary").unwrap_or_default().to_owned();
        for name in ["Cookie", "Accept-Language"] {
            assert!(vary.contains(name), "{path}: {vary}");
        }
    }
}
