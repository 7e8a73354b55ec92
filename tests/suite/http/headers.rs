//! Methods, and the headers of responses: caching, render paths, file names, request ids.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use reqwest::{Method, blocking::Response};

use super::{PREVIEW, THUMBNAIL, connect, from_disk, header, hires, send};
use crate::common::{DEMO_KEY, LARGE, Server};

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
        (format!("/media/{LARGE}_WatermarkPreview.jpg"), "local-mark", marked),
        (PREVIEW.to_owned(), "stored", &["queue", "read"]),
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
    let ways = ["region", "local-mark", "stored", "original"];
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
