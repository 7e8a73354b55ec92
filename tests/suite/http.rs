//! HTTP semantics of media URLs: methods, validators, ranges, caching, connections, load.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::Barrier,
    thread,
};

use reqwest::{
    Method, StatusCode,
    blocking::{Client, Response},
};

use crate::common::{DEMO_KEY, LARGE, Server, WAIT_TIMEOUT, pictures::Picture};

const PREVIEW: &str = "/media/image/demo-urtavla_NormalPreview.jpg";
const THUMBNAIL: &str = "/media/image/demo-urtavla_NormalThumbnail.jpg";

/// The plain Hires of the large photograph, with the key.
fn hires() -> String {
    format!("/media/{LARGE}.jpg?ak={DEMO_KEY}")
}

fn renders(server: &Server) -> f64 {
    server.metric("wirephoto_renders_total", "done")
}

fn send(server: &Server, method: Method, path: &str) -> Response {
    server.client.request(method, format!("{}{path}", server.url)).send().expect("answer")
}

/// The text of a header; empty if it is absent.
fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
}

// ---- Methods and headers -----------------------------------------------------------------------

/// The headers that are equal in repeated responses.
fn stable_headers(response: &Response) -> BTreeMap<String, String> {
    let changing = ["date", "x-request-id", "server-timing", "wirephoto-path"];
    let lasting = |name: &&str| !changing.contains(name);
    let names = response.headers().keys().map(reqwest::header::HeaderName::as_str);
    names.filter(lasting).map(|name| (name.to_owned(), header(response, name))).collect()
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::demo();
    for path in [
        PREVIEW,
        &hires(),
        "/media/image/demo-urtavla.json",
        "/media/image/demo-urtavla-crop_w50_h50_NormalPreview.jpg",
        "/media/image/demo-urtavla",
        "/media/image/demo-urtavla.jpg",
        "/media/image/no-such-item.json",
        "/media/image/demo-urtavla-crop_w0_NormalPreview.jpg",
        "/",
        "/health/ready",
    ] {
        let head = send(&server, Method::HEAD, path);
        let get = server.get(path);
        assert_eq!(head.status(), get.status(), "{path}");
        let mut announced = stable_headers(&head);
        assert_eq!(announced, stable_headers(&get), "{path}");
        let length = announced.remove("content-length").and_then(|text| text.parse().ok());
        let body = get.bytes().expect("body");
        assert_eq!(length.unwrap_or(0), body.len(), "{path}");
        assert_eq!(head.bytes().expect("no body").len(), 0, "{path}");
    }
}

#[test]
fn head_sends_no_body_on_the_wire() {
    let server = Server::demo();
    let mut stream = connect(&server);
    let request = format!("HEAD {PREVIEW} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert!(answer.ends_with(b"\r\n\r\n"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn other_methods_are_refused_with_the_allowed_ones() {
    let server = Server::demo();
    for path in [PREVIEW, "/media/image/demo-urtavla.json", "/", "/health/live", "/metrics"] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let response = send(&server, method.clone(), path);
            assert_eq!(response.status(), 405, "{method} {path}");
            let allow = header(&response, "allow");
            let allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
            assert!(allowed.contains(&"GET") && allowed.contains(&"HEAD"), "{path}: {allow}");
            assert_eq!(header(&response, "cache-control"), "no-store", "{method} {path}");
        }
    }
}

#[test]
fn responses_say_how_long_and_by_which_caches_they_may_be_stored() {
    let server = Server::demo();
    let check = |path: &str, status: u16, expected: &str, vary: &str| {
        let response = server.get(path);
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(header(&response, "cache-control"), expected, "{path}");
        assert!(header(&response, "vary").contains(vary), "{path}");
    };
    let open = "public, max-age=300, stale-while-revalidate=60";
    for path in [
        PREVIEW,
        THUMBNAIL,
        "/media/image/demo-urtavla_CroppedThumbnail.jpg",
        "/media/image/demo-urtavla-crop_w50_h50-watermark_NormalPreview.jpg",
        "/media/image/demo-urtavla.json",
        "/media/image/demo-urtavla-crop_w500_h500.json",
    ] {
        check(path, 200, open, "");
        // Open renditions are the same with and without a key.
        check(&format!("{path}?ak={DEMO_KEY}"), 200, open, "");
    }
    let private = "private, no-cache";
    check(&hires(), 200, private, "Authorization");
    check(&format!("/media/{LARGE}-crop_w9_h9.jpg?ak={DEMO_KEY}"), 200, private, "Authorization");
    check("/media/image/demo-urtavla.jpg", 401, "no-store", "");
    check("/media/image/demo-urtavla-crop_w0_NormalPreview.jpg", 400, "no-store", "");
    check("/media/image/no-such-item_NormalPreview.jpg", 404, "max-age=60", "Authorization");
    let own = format!("/media/image/no-such-item_NormalPreview.jpg?ak={DEMO_KEY}");
    check(&own, 404, private, "Authorization");
    check("/nowhere", 404, "max-age=60", "");
}

#[test]
fn the_operator_sets_how_long_open_renditions_are_cached() {
    let settings = ["media.max_age_s=86400", "media.stale_while_revalidate_s=7"];
    let server = Server::demo_with(&settings);
    let expected = "public, max-age=86400, stale-while-revalidate=7";
    assert_eq!(header(&server.get(THUMBNAIL), "cache-control"), expected);
}

#[test]
fn browsers_may_read_open_renditions_from_any_site() {
    let server = Server::demo();
    let origin = [("Origin", "https://desk.example")];
    for path in [PREVIEW, "/media/image/demo-urtavla.json", "/media/image/none.json"] {
        let response = server.get_with(path, &origin);
        assert_eq!(header(&response, "access-control-allow-origin"), "*", "{path}");
        let exposed = header(&response, "access-control-expose-headers");
        assert!(exposed.contains("ETag") && exposed.contains("Content-Range"), "{path}");
    }
    let url = format!("{}{PREVIEW}", server.url);
    let preflight = server.client.request(Method::OPTIONS, url);
    let preflight = preflight
        .header("Origin", "https://desk.example")
        .header("Access-Control-Request-Method", "GET")
        .header("Access-Control-Request-Headers", "authorization, range");
    let response = preflight.send().expect("answer");
    assert!(response.status().is_success());
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    assert!(header(&response, "access-control-allow-methods").contains("GET"));
    let allowed = header(&response, "access-control-allow-headers").to_lowercase();
    assert!(allowed.contains("authorization") && allowed.contains("range"), "{allowed}");
    // Renditions that require credentials are not readable by scripts of other sites.
    let private = server.get_with(&hires(), &origin);
    assert_eq!(private.status(), 200);
    assert_eq!(header(&private, "access-control-allow-origin"), "");
}

/// The metric names of a `Server-Timing` header; each duration must be a number of milliseconds.
fn server_timings(response: &Response) -> Vec<String> {
    let text = header(response, "server-timing");
    let name = |stage: &str| {
        let (name, ms) = stage.split_once(";dur=").unwrap_or_else(|| panic!("{text}"));
        assert!((0.0..60_000.0).contains(&ms.parse::<f64>().expect("a number")), "{text}");
        assert!(ms.split_once('.').is_none_or(|(_, decimals)| decimals.len() <= 3), "{text}");
        name.to_owned()
    };
    text.split(", ").map(name).collect()
}

#[test]
fn a_rendition_says_how_it_was_made_and_then_that_it_was_cached() {
    let server = Server::demo();
    let hires = |operations: &str| format!("/media/{LARGE}{operations}.jpg?ak={DEMO_KEY}");
    let plain = ["queue", "read", "decode", "encode"].as_slice();
    let marked = ["queue", "read", "decode", "blend", "encode"].as_slice();
    for (path, way, stages) in [
        (hires("-crop_w400_h300_x901_y703"), "region", plain),
        (format!("/media/{LARGE}_WatermarkPreview.jpg"), "bands", marked),
        (PREVIEW.to_owned(), "level", plain),
        (hires(""), "original", &["queue", "read"]),
    ] {
        let made = server.get(&path);
        assert_eq!(header(&made, "wirephoto-path"), way, "{path}");
        assert_eq!(server_timings(&made), stages, "{path}");
        let again = server.get_with(&path, &[("Range", "bytes=5-99")]);
        assert_eq!(again.status(), 206);
        assert_eq!(header(&again, "wirephoto-path"), "cache", "{path}");
        assert_eq!(header(&again, "server-timing"), "cache;desc=\"memory\"", "{path}");
        for (condition, value) in [("If-None-Match", "*"), ("Range", "bytes=99999999-")] {
            let without = server.get_with(&path, &[(condition, value)]);
            assert!([304, 416].contains(&without.status().as_u16()), "{path}");
            assert_eq!(header(&without, "wirephoto-path"), "", "{path} {condition}");
            assert_eq!(header(&without, "server-timing"), "", "{path} {condition}");
        }
    }
    let count = |way: &str| server.metric("wirephoto_render_paths_total", way);
    let ways = ["region", "bands", "level", "original"];
    assert_eq!(ways.map(count), [1.0; 4]);
    // Scripts of other sites may read it for open renditions.
    let open = server.get(PREVIEW);
    assert_eq!(header(&open, "timing-allow-origin"), "*");
    let exposed = header(&open, "access-control-expose-headers");
    assert!(exposed.contains("Server-Timing") && exposed.contains("Wirephoto-Path"), "{exposed}");
    assert_eq!(header(&server.get(&hires("")), "timing-allow-origin"), "");
}

#[test]
fn a_rendition_from_disk_says_so() {
    let server = Server::demo_with(&["cache.memory_bytes=0"]);
    let response = from_disk(&server, THUMBNAIL);
    assert_eq!(header(&response, "wirephoto-path"), "cache");
}

#[test]
fn the_operator_can_hide_how_renditions_are_made() {
    let server = Server::demo_with(&["server.work_headers=false"]);
    for path in [THUMBNAIL, THUMBNAIL, &hires()] {
        let response = server.get(path);
        assert_eq!(response.status(), 200);
        for name in ["server-timing", "wirephoto-path", "timing-allow-origin"] {
            assert_eq!(header(&response, name), "", "{path} {name}");
        }
    }
    assert!(server.metric("wirephoto_render_paths_total", "original") > 0.0);
}

#[test]
fn a_hires_is_saved_under_its_id_and_no_type_is_guessed() {
    let server = Server::demo();
    let name = "attachment; filename=\"demo-solnedgang-over-bergen.jpg\"";
    for rest in [".jpg", "_NormalHires.jpg", "-crop_w9_h9.jpg", "-watermark-crop_w9_h9.jpg"] {
        let response = server.get(&format!("/media/{LARGE}{rest}?ak={DEMO_KEY}"));
        assert_eq!(header(&response, "content-disposition"), name, "{rest}");
        assert_eq!(header(&response, "content-type"), "image/jpeg", "{rest}");
    }
    let preview = server.get(PREVIEW);
    assert_eq!(header(&preview, "content-disposition"), "");
    let json = server.get("/media/image/demo-urtavla.json");
    assert_eq!(header(&json, "content-type"), "application/json");
    let pages = ["/", "/assets/css/site.css", "/nowhere", "/media/image/none.json"];
    for path in [PREVIEW, &hires()].into_iter().chain(pages) {
        assert_eq!(header(&server.get(path), "x-content-type-options"), "nosniff", "{path}");
    }
}

#[test]
fn a_request_keeps_its_id() {
    let server = Server::demo();
    let given = server.get_with(THUMBNAIL, &[("X-Request-Id", "desk-7.a_b")]);
    assert_eq!(header(&given, "x-request-id"), "desk-7.a_b");
    let lines = server.log();
    assert!(lines.lines().any(|line| line.contains("desk-7.a_b") && line.contains("Thumbnail")));
    let (one, two) = (server.get(THUMBNAIL), server.get(THUMBNAIL));
    let (one, two) = (header(&one, "x-request-id"), header(&two, "x-request-id"));
    assert!(!one.is_empty() && one != two, "{one} {two}");
    let odd = server.get_with(THUMBNAIL, &[("X-Request-Id", "a \"b\"")]);
    assert!(!header(&odd, "x-request-id").contains('"'));
}

// ---- Conditional requests ----------------------------------------------------------------------

#[test]
fn validators_are_evaluated_before_anything_else() {
    let server = Server::demo();
    for path in [PREVIEW, &hires(), "/media/image/demo-urtavla.json"] {
        let plain = server.get(path);
        let (tag, modified) = (header(&plain, "etag"), header(&plain, "last-modified"));
        assert!(tag.starts_with('"') && tag.len() > 10, "{path}: {tag} is not strong");
        let (weak, list) = (format!("W/{tag}"), format!("\"x\", {tag} , \"y\""));
        let (old, new) = ("Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT");
        let check = |headers: &[(&str, &str)], expected: u16| {
            for method in [Method::GET, Method::HEAD] {
                let mut request =
                    server.client.request(method.clone(), format!("{}{path}", server.url));
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                let response = request.send().expect("answer");
                assert_eq!(response.status(), expected, "{method} {path} {headers:?}");
                assert_eq!(header(&response, "etag"), tag, "{path} {headers:?}");
                if expected != 200 {
                    assert_eq!(response.bytes().expect("none").len(), 0, "{path} {headers:?}");
                }
            }
        };
        check(&[("If-None-Match", &tag)], 304);
        check(&[("If-None-Match", &weak)], 304);
        check(&[("If-None-Match", &list)], 304);
        check(&[("If-None-Match", "*")], 304);
        check(&[("If-None-Match", "\"x\", \"y\"")], 200);
        check(&[("If-Modified-Since", &modified)], 304);
        check(&[("If-Modified-Since", new)], 304);
        check(&[("If-Modified-Since", old)], 200);
        check(&[("If-Modified-Since", "yesterday")], 200);
        // The entity tag takes precedence over the date.
        check(&[("If-None-Match", "\"x\""), ("If-Modified-Since", new)], 200);
        check(&[("If-None-Match", &tag), ("If-Modified-Since", old)], 304);
        check(&[("If-Match", &tag)], 200);
        check(&[("If-Match", "*")], 200);
        check(&[("If-Match", "\"x\"")], 412);
        check(&[("If-Match", &weak)], 412);
        check(&[("If-Unmodified-Since", old)], 412);
        check(&[("If-Unmodified-Since", new)], 200);
    }
}

#[test]
fn a_304_renders_nothing() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}-crop_w700_h500_NormalPreview.jpg");
    for method in [Method::GET, Method::HEAD] {
        let url = format!("{}{path}", server.url);
        let request = server.client.request(method, url).header("If-None-Match", "*");
        let response = request.send().expect("answer");
        assert_eq!(response.status(), 304);
        assert!(header(&response, "cache-control").starts_with("public"));
        assert_ne!(header(&response, "etag"), "");
    }
    let tomorrow = [("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT")];
    assert_eq!(server.get_with(&path, &tomorrow).status(), 304);
    assert_eq!(server.get_with(&path, &[("If-Match", "\"x\"")]).status(), 412);
    assert_eq!(renders(&server), 0.0);
    server.bytes(&path);
    assert_eq!(renders(&server), 1.0);
}

// ---- Ranges ------------------------------------------------------------------------------------

#[test]
fn single_ranges_are_the_bytes_asked_for() {
    let server = Server::demo();
    for path in [PREVIEW, &hires()] {
        let whole = server.bytes(path);
        let length = whole.len();
        assert_eq!(header(&server.get(path), "accept-ranges"), "bytes");
        let check = |range: &str, expected: Option<(usize, usize)>| {
            let response = server.get_with(path, &[("Range", range)]);
            let Some((first, last)) = expected else {
                assert_eq!(response.status(), 200, "{path} {range}");
                assert!(response.bytes().expect("body") == whole, "{path} {range}");
                return;
            };
            assert_eq!(response.status(), 206, "{path} {range}");
            let content_range = format!("bytes {first}-{last}/{length}");
            assert_eq!(header(&response, "content-range"), content_range, "{path} {range}");
            let bytes = response.bytes().expect("body");
            assert!(bytes == whole[first..=last], "{path} {range}");
        };
        check("bytes=0-0", Some((0, 0)));
        check("bytes=100-1999", Some((100, 1999)));
        check("bytes=5000-", Some((5000, length - 1)));
        check("bytes=-777", Some((length - 777, length - 1)));
        check("bytes=-99999999", Some((0, length - 1)));
        check("bytes=10-99999999999999999999999", Some((10, length - 1)));
        check(&format!("bytes={}-", length - 1), Some((length - 1, length - 1)));
        check("bytes=0-9, 10-19", Some((0, 19)));
        check("bytes=9-3", None);
        check("pages=1-2", None);
        check("bytes=abc", None);
        for range in [format!("bytes={length}-"), "bytes=-0".to_owned()] {
            let response = server.get_with(path, &[("Range", &range)]);
            assert_eq!(response.status(), 416, "{path} {range}");
            assert_eq!(header(&response, "content-range"), format!("bytes */{length}"));
        }
    }
}

#[test]
fn ranges_cross_the_seam_between_new_metadata_and_stored_picture_data() {
    let server = Server::demo();
    let whole = server.bytes(&hires());
    for first in (0..whole.len()).step_by(whole.len() / 40) {
        let last = (first + 70_000).min(whole.len() - 1);
        let range = format!("bytes={first}-{last}");
        let response = server.get_with(&hires(), &[("Range", &range)]);
        assert!(response.bytes().expect("body") == whole[first..=last], "{range}");
    }
}

#[test]
fn several_ranges_are_returned_as_multipart() {
    let server = Server::demo();
    for path in [PREVIEW, &hires()] {
        let whole = server.bytes(path);
        let length = whole.len();
        let asked = [(0, 99), (5000, 5999), (length - 10, length - 1)];
        let response = server.get_with(path, &[("Range", "bytes=0-99, 5000-5999, -10")]);
        assert_eq!(response.status(), 206, "{path}");
        let kind = header(&response, "content-type");
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("parts");
        let boundary = boundary.trim_matches('"').to_owned();
        let announced: usize = header(&response, "content-length").parse().expect("a length");
        let body = response.bytes().expect("body");
        assert_eq!(body.len(), announced, "{path}");
        let parts = parts(&body, &boundary);
        assert_eq!(parts.len(), asked.len(), "{path}");
        for ((head, bytes), (first, last)) in parts.iter().zip(asked) {
            let head = head.to_lowercase();
            let content_range = format!("content-range: bytes {first}-{last}/{length}");
            assert!(head.contains(&content_range), "{path}: {head}");
            assert!(head.contains("content-type: image/jpeg"), "{path}: {head}");
            assert!(*bytes == &whole[first..=last], "{path}: {head}");
        }
    }
}

/// Head and bytes of each part of a multipart body, RFC 2046.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<(String, &'a [u8])> {
    let find = |from: usize, text: &str| {
        let text = text.as_bytes();
        let found = body[from..].windows(text.len()).position(|window| window == text);
        from + found.unwrap_or_else(|| panic!("no {:?}", String::from_utf8_lossy(text)))
    };
    let delimiter = format!("--{boundary}");
    let mut found = Vec::new();
    let mut at = find(0, &delimiter) + delimiter.len();
    while !body[at..].starts_with(b"--") {
        let blank = find(at, "\r\n\r\n");
        let end = find(blank, &format!("\r\n{delimiter}"));
        let head = String::from_utf8(body[at..blank].to_vec()).expect("text");
        found.push((head, &body[blank + 4..end]));
        at = end + 2 + delimiter.len();
    }
    found
}

#[test]
fn if_range_returns_a_range_only_of_the_same_version() {
    let server = Server::demo();
    for path in [PREVIEW, &hires()] {
        let plain = server.get(path);
        let (tag, modified) = (header(&plain, "etag"), header(&plain, "last-modified"));
        let check = |condition: &str, expected: u16| {
            let headers = [("Range", "bytes=10-19"), ("If-Range", condition)];
            assert_eq!(server.get_with(path, &headers).status(), expected, "{path} {condition}");
        };
        check(&tag, 206);
        check(&modified, 206);
        check(&format!("W/{tag}"), 200);
        check("\"x\"", 200);
        check("Sat, 01 Jan 2000 00:00:00 GMT", 200);
    }
}

// ---- Connections -------------------------------------------------------------------------------

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).expect("connected");
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("set");
    stream
}

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

// ---- Load --------------------------------------------------------------------------------------

/// Sends all of `paths` concurrently.
fn at_once(server: &Server, paths: &[String]) -> Vec<(u16, String, Vec<u8>)> {
    let start = Barrier::new(paths.len());
    thread::scope(|scope| {
        let ask = |path: &String| {
            let (start, path) = (&start, path.clone());
            scope.spawn(move || {
                start.wait();
                let response = server.get(&path);
                let (status, retry) = (response.status(), header(&response, "retry-after"));
                (status.as_u16(), retry, response.bytes().expect("body").to_vec())
            })
        };
        let threads: Vec<_> = paths.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("asked")).collect()
    })
}

#[test]
fn many_requests_for_one_new_rendition_render_it_once() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}_NormalPreview.jpg");
    let answers = at_once(&server, &vec![path; 16]);
    for (status, _, bytes) in &answers {
        assert_eq!(*status, 200);
        assert!(bytes == &answers[0].2);
    }
    assert_eq!(renders(&server), 1.0);
}

#[test]
fn parallel_requests_never_get_each_others_bytes() {
    let server = Server::demo_with(&["cache.memory_bytes=0", "cache.disk_bytes=0"]);
    let path = |n: usize| {
        format!("/media/image/demo-Falcon9-DSCOVR-crop_w{}_h40_NormalPreview.jpg", 20 + n)
    };
    let paths: Vec<_> = (0..24).map(|n| path(n % 8)).collect();
    for (n, (status, _, bytes)) in at_once(&server, &paths).into_iter().enumerate() {
        assert_eq!(status, 200);
        assert_eq!(Picture::decode(&bytes).size(), (20 + n % 8, 40));
    }
}

#[test]
fn a_full_queue_answers_503_at_once_while_cached_renditions_are_served() {
    let server = Server::demo_with(&["media.workers=1", "media.queue=1"]);
    let cached = server.bytes(THUMBNAIL);
    let crop = |n: usize| format!("/media/{LARGE}-crop_w4000_h2500_x{n}_y{n}.jpg?ak={DEMO_KEY}");
    let mut paths: Vec<_> = (0..20).map(crop).collect();
    paths.extend((0..6).map(|_| THUMBNAIL.to_owned()));
    let answers = at_once(&server, &paths);
    let refused = answers.iter().filter(|(status, ..)| *status == 503).count();
    assert!(refused > 0 && refused < 20, "{refused} of 20 were refused");
    for (path, (status, retry, bytes)) in paths.iter().zip(&answers) {
        match status {
            503 => {
                assert_ne!(path, THUMBNAIL);
                assert!(retry.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{retry}");
                let text = String::from_utf8_lossy(bytes);
                assert!(text.contains("\"message\""), "{text}");
            }
            200 => assert!(path != THUMBNAIL || bytes == &cached),
            other => panic!("{path}: {other}"),
        }
    }
    // The refusal is not cached: the same URL works later.
    let lost = answers.iter().position(|(status, ..)| *status == 503).expect("one");
    assert_eq!(server.get(&paths[lost]).status(), 200);
    assert!(server.metric("wirephoto_renders_total", "refused") >= 1.0);
}

// ---- Cache tiers -------------------------------------------------------------------------------

#[test]
fn each_cache_tier_can_be_disabled() {
    for (settings, rendered_again) in [
        (["cache.memory_bytes=0", "cache.disk_bytes=0"], 2.0),
        (["cache.memory_bytes=0", "cache.disk_bytes=100000000"], 0.0),
        (["cache.memory_bytes=100000000", "cache.disk_bytes=0"], 0.0),
    ] {
        let server = Server::demo_with(&settings);
        let first = server.bytes(THUMBNAIL);
        if settings == ["cache.memory_bytes=0", "cache.disk_bytes=100000000"] {
            from_disk(&server, THUMBNAIL);
        }
        let before = renders(&server);
        for _ in 0..2 {
            assert!(server.bytes(THUMBNAIL) == first, "{settings:?}");
        }
        assert_eq!(renders(&server) - before, rendered_again, "{settings:?}");
    }
}

/// The first response from the disk tier, which is filled after the response is sent.
fn from_disk(server: &Server, path: &str) -> Response {
    server.until("an answer from disk", || {
        let response = server.get(path);
        (header(&response, "server-timing") == "cache;desc=\"disk\"").then_some(response)
    })
}

/// The number of complete files in the disk tier.
fn files_on_disk(server: &Server) -> usize {
    fn count(dir: &std::path::Path) -> usize {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let whole = |path: &std::path::PathBuf| {
            path.is_dir() || path.file_name().is_some_and(|name| name.len() == 64)
        };
        let paths = entries.map(|entry| entry.path()).filter(whole);
        paths.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    count(&server.data().join("derived"))
}

#[test]
fn renditions_on_disk_survive_a_restart() {
    // The port changes with the restart, and a picture's caption contains URLs.
    let settings = ["server.public_url=http://wire.example"];
    let server = Server::with_pictures(&settings, &[("one", Picture::waves(600, 400).jpeg())]);
    let path = "/media/image/one_NormalPreview.jpg";
    let response = server.get(path);
    let tag = header(&response, "etag");
    let bytes = response.bytes().expect("body");
    server.until("the file", || files_on_disk(&server).gt(&0).then_some(()));
    let server = server.restart(&settings);
    let response = server.get(path);
    assert_eq!(header(&response, "etag"), tag);
    assert!(response.bytes().expect("body") == bytes);
    assert_eq!(renders(&server), 0.0);
}

#[test]
fn endless_crops_never_evict_a_preview() {
    let pictures = [("grain", Picture::grain(500, 350).jpeg_with(turbojpeg::Subsamp::None, 90))];
    for settings in [
        ["cache.memory_bytes=2000000", "cache.disk_bytes=0"],
        ["cache.memory_bytes=0", "cache.disk_bytes=2000000"],
    ] {
        let server = Server::with_pictures(&settings, &pictures);
        let preview = "/media/image/grain_NormalPreview.jpg";
        server.bytes(preview);
        let (mut bytes, before) = (0, renders(&server));
        for n in 0..150 {
            let crop = format!("/media/image/grain-crop_w300_h{}_NormalPreview.jpg", 150 + n);
            // The disk tier admits a crop on its second request.
            bytes += server.bytes(&crop).len() + server.bytes(&crop).len();
        }
        assert!(bytes > 4_000_000 && renders(&server) >= before + 150.0, "{bytes} bytes");
        let before = renders(&server);
        server.bytes(preview);
        assert_eq!(renders(&server), before, "{settings:?}");
        let tier = server.metric("wirephoto_cache_bytes", "");
        assert!(tier <= 2_100_000.0, "{settings:?}: {tier} bytes");
    }
}
