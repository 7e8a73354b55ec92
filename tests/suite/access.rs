//! Access rights (`docs/contract/access.md`): what is open without credentials, and what needs a key.

use std::fs;

use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use serde_json::json;

use crate::common::api::UNAUTHORIZED;
use crate::common::{DEMO_KEY, LARGE, Server, postgres};

fn status(server: &Server, path: &str) -> u16 {
    server.get(path).status().as_u16()
}

#[test]
fn previews_thumbnails_and_metadata_of_images_are_open() {
    let server = Server::demo();
    for suffix in [
        ".json",
        ".metadata.json",
        ".ninjs.json",
        "-crop_w100_h100.json",
        "_NormalPreview.jpg",
        "_NormalThumbnail.jpg",
        "_CroppedThumbnail.jpg",
        "_WatermarkPreview.jpg",
        "_WatermarkedPreview.jpg",
        "_WebPreview.jpg",
        "-watermark_NormalThumbnail.jpg",
        "-watermark_WebPreview.jpg",
        "-crop_w50_h50_NormalPreview.jpg",
        "-crop_w50_h50_WebPreview.jpg",
    ] {
        assert_eq!(status(&server, &format!("/media/{LARGE}{suffix}")), 200, "{suffix}");
    }
}

/// Every spelling and operation of the Hires.
const HIRES: [&str; 9] = [
    ".jpg",
    ".JPG",
    "_NormalHires.jpg",
    "_normalhires.jpg",
    "-watermark.jpg",
    "_WatermarkHires.jpg",
    "-crop_w10_h10.jpg",
    "-crop_w4272_h2848_x0_y0.jpg",
    "-crop_w10_h10-watermark_NormalHires.jpg",
];

#[test]
fn the_hires_needs_a_key_in_every_spelling_even_when_cached() {
    let server = Server::demo();
    for round in ["first", "cached"] {
        for suffix in HIRES {
            let path = format!("/media/{LARGE}{suffix}");
            let response = server.get(&path);
            assert_eq!(response.status(), 401, "{suffix} {round}");
            let challenge = response.headers()[WWW_AUTHENTICATE].to_str().unwrap();
            assert!(challenge.contains("ApiKey"), "{challenge}");
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
            assert_eq!(response.text().unwrap(), UNAUTHORIZED);
            let key = format!("{path}?ak={DEMO_KEY}");
            assert_eq!(status(&server, &key), 200, "{suffix} {round}");
        }
    }
}

#[test]
fn a_missing_rendition_is_401_without_credentials_and_404_with_them() {
    let server = Server::demo();
    for suffix in ["-cutpaste.txt", ".pdf", ".eps", "/a000_NormalPreview.jpg"] {
        let path = format!("/media/{LARGE}{suffix}");
        assert_eq!(status(&server, &path), 401, "{suffix}");
        assert_eq!(status(&server, &format!("{path}?ak={DEMO_KEY}")), 404, "{suffix}");
    }
}

#[test]
fn an_anonymous_client_cannot_trigger_a_delivery() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}?agr=1&channel=user:x:y");
    assert_eq!(status(&server, &path), 401);
    assert_eq!(status(&server, &format!("{path}&ak={DEMO_KEY}")), 404);
}

#[test]
fn a_key_is_read_from_header_or_query_and_the_header_wins() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}.jpg");
    let check = |path: &str, header: Option<&str>, expected: u16| {
        let mut request = server.client.get(format!("{}{path}", server.url));
        if let Some(header) = header {
            request = request.header(AUTHORIZATION, header);
        }
        assert_eq!(request.send().unwrap().status(), expected, "{path} {header:?}");
    };
    let header = format!("ApiKey {DEMO_KEY}");
    let query = format!("{path}?ak={DEMO_KEY}");
    check(&path, Some(&header), 200);
    check(&path, Some(&header.to_lowercase()), 200);
    check(&query, None, 200);
    check(&format!("{path}?x=1&ak={}", DEMO_KEY.replace('-', "%2D")), None, 200);
    check(&path, Some("ApiKey wrong"), 401);
    check(&path, Some(&format!("Bearer {DEMO_KEY}")), 401);
    check(&path, Some(DEMO_KEY), 401);
    check(&query, Some("ApiKey wrong"), 401);
    check(&format!("{path}?ak="), None, 401);
    check(&format!("{path}?ak={DEMO_KEY}x"), None, 401);
    check(&format!("{path}?ak={}", &DEMO_KEY[1..]), None, 401);
    check(&format!("{path}?ak={}", "x".repeat(5000)), None, 401);
}

#[test]
fn an_invalid_key_is_ignored_where_none_is_needed() {
    let server = Server::demo();
    assert_eq!(status(&server, &format!("/media/{LARGE}_NormalThumbnail.jpg?ak=wrong")), 200);
}

#[test]
fn a_key_is_in_no_log_line_and_no_link() {
    let server = Server::demo();
    let body = server.get(&format!("/media/{LARGE}.json?ak={DEMO_KEY}")).text().unwrap();
    server.get(&format!("/media/{LARGE}.jpg?ak={DEMO_KEY}"));
    server.get_with(
        &format!("/media/{LARGE}.jpg"),
        &[("authorization", &format!("ApiKey {DEMO_KEY}"))],
    );
    server.get(&format!("/media/nonsense?ak={DEMO_KEY}"));
    assert!(!body.contains(DEMO_KEY));
    let log = server.until("log", || Some(server.log()).filter(|log| log.contains("nonsense")));
    assert!(!log.contains(DEMO_KEY), "{log}");
}

#[test]
fn imported_keys_work_within_a_second_and_end_with_an_inactive_owner() {
    let server = Server::demo();
    let key = "another-key-that-is-long-enough";
    // The price list needs no agreement.
    let path = format!("/media/{LARGE}/pricelist?ak={key}");
    let import = |active: bool| {
        let file = server.dir.path().join("accounts.json");
        // The agreement is that of the demo organization, which covers everything.
        let accounts = json!({
            "users": [{
                "id": 1, "userName": "someone", "organization": 1, "agreements": [1001],
                "active": active,
            }],
            "apiKeys": [{ "user": "someone", "key": key, "name": "test" }],
        });
        fs::write(&file, accounts.to_string()).unwrap();
        let output = server.command(&["import", &file.to_string_lossy()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    assert_eq!(status(&server, &path), 401);
    import(true);
    server.until("the key to count", || (status(&server, &path) == 200).then_some(()));
    import(false);
    server.until("the key to end", || (status(&server, &path) == 401).then_some(()));
}

#[test]
fn keys_are_stored_as_hashes() {
    let server = Server::demo();
    let bytes = postgres::stored(&server.data());
    assert!(!bytes.windows(DEMO_KEY.len()).any(|part| part == DEMO_KEY.as_bytes()));
}

#[test]
fn no_part_of_a_url_becomes_a_file_path() {
    let server = Server::demo();
    for path in [
        "/media/image/..%2f..%2fwirephoto.db.json",
        "/media/image/%2e%2e/x.json",
        "/media/image/a%5cb.json",
        "/media/image/a%00.json",
        "/media/image/%c0%ae%c0%ae.json",
        "/media//image/x.json",
        "/media/image//x.json",
        "/media/image/x;y.json",
    ] {
        assert_eq!(status(&server, path), 400, "{path}");
    }
    for path in [
        "/assets/..%2fCargo.toml",
        "/assets/%2e%2e%2fpages%2fbase.html",
        "/assets/pages/base.html",
    ] {
        assert_eq!(status(&server, path), 404, "{path}");
    }
}
