//! `.auto`: the format that a client gets by its `Accept`, and what caches learn of it.

use std::io::{Read, Write};
use std::net::TcpStream;

use reqwest::{Method, blocking::Response};
use serde_json::Value;

use super::{header, with_key};
use crate::common::{DEMO_KEY, Server, WAIT_TIMEOUT, oracle, pictures::Picture};

/// The `Accept` headers that browsers send for an `<img>`.
const CHROME: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";
const SAFARI: &str = "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,\
                      image/svg+xml,image/*;q=0.8,*/*;q=0.5";
/// Safari 14 and 15, which show WebP and no AVIF.
const SAFARI_14: &str = "image/webp,image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5";
const FIREFOX: &str = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
const CURL: &str = "*/*";

const AVIF: &str = "image/avif";
const WEBP: &str = "image/webp";
const JPEG: &str = "image/jpeg";

fn server() -> Server {
    let pictures = [("one", Picture::waves(300, 200).jpeg())];
    Server::with_pictures(&["media.warm=false"], &pictures)
}

fn ask(server: &Server, file: &str, accept: &str) -> Response {
    let response = server.get_with(&format!("/media/image/{file}"), &[("accept", accept)]);
    assert!(names_accept(&response), "{file}: {:?}", response.headers());
    response
}

/// Returns whether `Vary` says that the response depends on `Accept`.
fn names_accept(response: &Response) -> bool {
    header(response, "vary").split(',').any(|name| name.trim().eq_ignore_ascii_case("accept"))
}

/// The media type that the headers state, which the body has.
#[track_caller]
fn kind(response: Response) -> String {
    assert_eq!(response.status(), 200);
    let kind = header(&response, "content-type");
    let body = response.bytes().expect("body");
    // The first box begins with its length.
    let (at, magic): (usize, &[u8]) = match kind.as_str() {
        AVIF => (4, b"ftypavif"),
        WEBP => (0, b"RIFF"),
        _ => (0, b"\xFF\xD8\xFF"),
    };
    assert!(body[at..].starts_with(magic), "{kind}: {:?}", &body[..16]);
    kind
}

/// Waits until the AVIF is made that a first request asked for.
fn make_avif(server: &Server, file: &str) -> String {
    server.until("the AVIF", || {
        let response = ask(server, file, CHROME);
        (header(&response, "content-type") == AVIF).then(|| header(&response, "etag"))
    })
}

#[test]
fn an_avif_that_is_not_made_yet_is_answered_with_the_jpeg_for_a_short_time() {
    let server = server();
    let file = "one_NormalPreview.auto";
    let first = ask(&server, file, CHROME);
    assert_eq!(header(&first, "content-type"), JPEG);
    assert_eq!(header(&first, "cache-control"), "public, max-age=10");
    let interim = header(&first, "etag");
    let jpeg = server.get("/media/image/one_NormalPreview.jpg");
    assert_eq!(header(&jpeg, "etag"), interim, "it is the rendition of that format");
    assert!(first.bytes().expect("body") == jpeg.bytes().expect("body"));
    // What answers the preconditions of one client is kept by no cache. No AVIF of these sizes is made yet.
    for (size, name, value, status) in
        [("fit_w160", "if-match", "\"other\"", 412), ("fit_w240", "range", "bytes=9999999-", 416)]
    {
        let path = format!("/media/image/one-{size}_NormalPreview.auto");
        let refused = server.get_with(&path, &[("accept", CHROME), (name, value)]);
        assert_eq!(refused.status(), status, "{name}");
        assert_eq!(header(&refused, "cache-control"), "no-store", "{name}");
    }
    // The tag changes when the AVIF is there, which is then kept as long as any other.
    let made = make_avif(&server, file);
    assert_ne!(made, interim);
    let known = server.get_with(
        &format!("/media/image/{file}"),
        &[("accept", CHROME), ("if-none-match", &interim)],
    );
    assert_eq!((known.status().as_u16(), header(&known, "etag")), (200, made.clone()));
    let policy = header(&known, "cache-control");
    assert!(policy.starts_with("public, max-age=300"), "{policy}");
    assert_eq!(kind(known), AVIF);
    let avif = server.get("/media/image/one_NormalPreview.avif");
    assert_eq!(header(&avif, "etag"), made);
    assert!(!names_accept(&avif), "an address with a format does not depend on Accept");
}

#[test]
fn without_a_cache_nothing_is_made_ahead_and_the_jpeg_is_kept_as_long_as_any() {
    let pictures = [("one", Picture::waves(300, 200).jpeg())];
    let settings = ["media.warm=false", "cache.memory_bytes=0", "cache.disk_bytes=0"];
    let server = Server::with_pictures(&settings, &pictures);
    for _ in 0..2 {
        let response = ask(&server, "one_NormalPreview.auto", CHROME);
        let policy = header(&response, "cache-control");
        assert!(policy.starts_with("public, max-age=300"), "{policy}");
        assert_eq!(kind(response), JPEG);
    }
    let renders = server.metric("wirephoto_render_paths_total", "");
    assert!((renders - 2.0).abs() < 0.5, "{renders}");
    // A client that accepts AVIF alone waits for it.
    assert_eq!(kind(ask(&server, "one_NormalPreview.auto", AVIF)), AVIF);
}

#[test]
fn an_explicit_format_is_never_replaced() {
    let server = server();
    for (extension, expected) in [("avif", AVIF), ("webp", WEBP), ("jpg", JPEG)] {
        for accept in [CHROME, CURL, "text/html", "image/png;q=0"] {
            let path = format!("/media/image/one-fit_w200_NormalPreview.{extension}");
            let response = server.get_with(&path, &[("accept", accept)]);
            assert!(!names_accept(&response), "{extension}");
            assert_eq!(kind(response), expected, "{extension} {accept}");
        }
    }
}

#[test]
fn the_format_is_the_preferred_one_of_those_that_the_client_names() {
    let server = server();
    let file = "one_NormalPreview.auto";
    make_avif(&server, file);
    for (accept, expected) in [
        (CHROME, AVIF),
        (SAFARI, AVIF),
        (SAFARI_14, JPEG),
        (FIREFOX, AVIF),
        ("IMAGE/AVIF", AVIF),
        (" image/avif ; q=0.001 ", AVIF),
        ("image/webp,*/*;q=0.8", JPEG),
        ("image/webp,image/jpeg;q=0.1", JPEG),
        ("image/avif;q=0,image/webp,*/*", JPEG),
        ("image/avif;q=0.5,image/jpeg;q=0.9", JPEG),
        // WebP takes the place of a JPEG that is not acceptable.
        (WEBP, WEBP),
        ("image/avif,image/webp", AVIF),
        ("image/avif;q=0,image/webp,*/*;q=0", WEBP),
        ("image/avif;q=0.5,image/webp;q=0.9", WEBP),
        ("image/webp;q=0", JPEG),
        ("image/avif;q=0.5,image/webp;q=0.5,*/*;q=0.9", JPEG),
        (CURL, JPEG),
        ("image/*", JPEG),
        ("image/png,text/html", JPEG),
        ("image/jpeg;q=0, image/*", JPEG),
        // Members that do not parse are ignored, the others count.
        ("image/webp;q=2, image/avif", AVIF),
        ("image/avif;q=0.1234,image/webp", WEBP),
        ("image/avif;level=5,image/webp;q", JPEG),
        ("image,/,;;,,image/we bp,*/*", JPEG),
        ("image/avif image/webp", JPEG),
    ] {
        assert_eq!(kind(ask(&server, file, accept)), expected, "{accept}");
    }
    // Several lines of the field are one list.
    let url = format!("{}/media/image/{file}", server.url);
    let lines = server.client.get(url).header("accept", "text/html").header("accept", WEBP);
    assert_eq!(kind(lines.send().expect("answer")), WEBP);
    let upper = ask(&server, "one_NormalPreview.AUTO", CHROME);
    assert_eq!(kind(upper), AVIF);
}

#[test]
fn every_response_of_auto_names_accept() {
    let server = server();
    let file = "one-fit_w100_NormalPreview.auto";
    let tag = make_avif(&server, file);
    let url = |file: &str| format!("{}/media/image/{file}", server.url);
    let known = [("accept", CHROME), ("if-none-match", tag.as_str())];
    let same = server.get_with(&format!("/media/image/{file}"), &known);
    assert_eq!((same.status().as_u16(), names_accept(&same)), (304, true));
    let head = server.client.request(Method::HEAD, url(file)).header("accept", CHROME);
    let head = head.send().expect("answer");
    assert_eq!((head.status().as_u16(), names_accept(&head)), (200, true));
    assert_eq!((header(&head, "content-type"), header(&head, "etag")), (AVIF.to_owned(), tag));
    let part = server.client.get(url(file)).header("range", "bytes=0-9").send().expect("answer");
    assert_eq!((part.status().as_u16(), names_accept(&part)), (206, true));
    let post = server.client.post(url(file)).send().expect("answer");
    assert_eq!((post.status().as_u16(), names_accept(&post)), (405, true));
    for (file, status) in [
        ("none_NormalPreview.auto", 404),
        ("one_BlackAndWhitePreview.auto", 404),
        ("one-fit_w0_NormalPreview.auto", 400),
        ("one-preset_none_NormalPreview.auto", 400),
        ("one-fit_w100.auto", 401),
        ("one.auto", 401),
    ] {
        // Asserts the header itself.
        assert_eq!(ask(&server, file, CHROME).status(), status, "{file}");
    }
    for file in ["one_NormalPreview.jpg", "one-fit_w100_NormalPreview.webp", "one.json", "auto"] {
        assert!(!names_accept(&server.get(&format!("/media/image/{file}"))), "{file}");
    }
}

#[test]
fn a_bought_picture_starts_no_work_in_another_format() {
    let server = server();
    let (file, key) = ("one-fit_w120.auto", format!("ApiKey {DEMO_KEY}"));
    let bought = |accept: &str| {
        let headers = [("accept", accept), ("authorization", key.as_str())];
        let response = server.get_with(&format!("/media/image/{file}"), &headers);
        assert!(names_accept(&response));
        assert!(header(&response, "cache-control").starts_with("private"), "{accept}");
        kind(response)
    };
    assert_eq!(bought(CHROME), JPEG);
    assert_eq!(bought(CURL), JPEG);
    // What is there is given.
    let avif = with_key(&server, "one-fit_w120.avif", DEMO_KEY).bytes().expect("body");
    assert_eq!(oracle::srgb(&oracle::readable(&avif), 0).size(), (120, 80));
    server.until("the AVIF in the cache", || (bought(CHROME) == AVIF).then_some(()));
    for accept in [CHROME, CURL] {
        let headers = [("accept", accept), ("authorization", key.as_str())];
        let whole = server.get_with("/media/image/one.auto", &headers);
        assert_eq!(whole.status(), 404, "{accept}: the Hires is its original");
    }
}

#[test]
fn a_format_that_cannot_hold_the_size_is_skipped() {
    // WebP ends at 16,383 pixels on a side, and the levels of AV1 at 16,384.
    let pictures = [("long", Picture::waves(16_500, 24).jpeg())];
    let server = Server::with_pictures(&["media.warm=false"], &pictures);
    let key = format!("ApiKey {DEMO_KEY}");
    let get = |accept: &str| {
        let headers = [("accept", accept), ("authorization", key.as_str())];
        server.get_with("/media/image/long-crop_w16450_h16.auto", &headers)
    };
    assert_eq!(kind(get(CHROME)), JPEG);
    assert_eq!(kind(get("image/webp,image/jpeg;q=0.1")), JPEG);
    // Where none is left, the refusal names the format.
    for accept in ["image/webp", "image/avif,image/webp;q=0.5"] {
        let refused = get(accept);
        assert_eq!(refused.status(), 400, "{accept}");
        assert!(names_accept(&refused), "{accept}");
        let body: Value = refused.json().expect("JSON");
        assert_eq!(body["errors"][0]["path"], "extension", "{accept}: {body}");
    }
}

#[test]
fn an_accept_beyond_the_limits_of_a_request_head_is_431() {
    let server = server();
    let raw = |fields: &str| {
        let mut stream =
            TcpStream::connect(server.url.trim_start_matches("http://")).expect("connected");
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("set");
        let head = format!(
            "GET /media/image/one_NormalPreview.auto HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n"
        );
        // The server may answer and close before it has read everything.
        drop(stream.write_all(head.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned()
    };
    assert_eq!(raw("Accept: image/webp\r\n"), "HTTP/1.1 200");
    assert_eq!(raw(&"Accept: image/webp\r\n".repeat(300)), "HTTP/1.1 431");
    let long = raw(&format!("Accept: {}\r\n", "image/webp,".repeat(40_000)));
    assert!(long.is_empty() || long == "HTTP/1.1 431", "{long}");
    // A long list within the limits is a list.
    let list = format!("{}image/webp", "image/png;q=0.1,".repeat(300));
    assert_eq!(kind(ask(&server, "one_NormalPreview.auto", &list)), WEBP);
}
