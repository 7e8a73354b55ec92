//! Conditional requests and ranges.

use reqwest::Method;

use super::{PREVIEW, header, hires, renders};
use crate::common::{LARGE, Server};

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
