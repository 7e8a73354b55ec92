//! Callers that cannot be looked up, because the database is away or hangs: what they still get, and what the log
//! says of it.

use reqwest::blocking::Response;
use serde_json::{Value, json};

use super::{Archive, WriteLock, photograph};
use crate::common::{DEMO_KEY, Server};
use crate::site::Session;

/// A key that no request used before the database hangs.
const FRESH_KEY: &str = "demo-key-0000-0000-000000000003";
const OPEN: [&str; 5] = [
    "/media/image/ice_NormalPreview.jpg",
    "/media/image/ice-crop_w40_h30_NormalThumbnail.jpg",
    "/media/image/ice.json",
    "/media/image/ice.renditions.json",
    "/media/image/ice",
];
const CLOSED: [&str; 6] = [
    "/media/image/ice.jpg",
    "/media/image/ice.zip",
    "/media/image/ice/pricelist",
    "/media/text/story.json",
    "/media/image/ice?channel=user:demo-editor:files",
    "/media/image/held_NormalPreview.jpg",
];

/// The status, the headers that caches and browsers act on, and the body.
fn facts(response: Response) -> (u16, Vec<Option<String>>, Vec<u8>) {
    let headers = ["cache-control", "vary", "etag", "location", "surrogate-key"]
        .map(|name| Some(response.headers().get(name)?.to_str().unwrap().to_owned()));
    (response.status().as_u16(), headers.to_vec(), response.bytes().unwrap().to_vec())
}

fn keyed(server: &Server, path: &str, key: &str) -> Response {
    server.get_with(path, &[("authorization", &format!("ApiKey {key}"))])
}

/// Checks that a response is a refusal that a client repeats, and that a script can read.
fn check_refused(response: &Response, what: &str) {
    assert_eq!(response.status(), 503, "{what}");
    for name in ["retry-after", "access-control-allow-origin"] {
        assert!(response.headers().contains_key(name), "{what}: {name}");
    }
}

#[test]
fn open_media_need_no_database_with_a_key_either_and_an_outage_is_two_lines_of_the_log() {
    let mut held = photograph("Hemlig");
    held["embargoed"] = json!("2100-01-01T00:00:00Z");
    let archive = Archive::with(&[
        ("image/ice", photograph("Isbrytare")),
        ("image/held", held),
        ("text/story", photograph("Artikel")),
    ]);
    let server = archive.node();
    let session = Session::open(&server, "demo-admin");
    let known = OPEN.map(|path| facts(keyed(&server, path, DEMO_KEY)));
    for path in CLOSED {
        assert!(session.get(&server, path).status() != 503, "{path}");
    }
    // A look-up that does not end does not hold what is open.
    let url = archive.cluster.url("archive");
    let lock = WriteLock::take(&url, "LOCK TABLE api_keys;\nSELECT 'taken';");
    assert!(facts(keyed(&server, OPEN[0], FRESH_KEY)) == known[0], "{}", server.log());
    lock.end();

    archive.cluster.down();
    let mut refused = 0;
    server.until("the key to be forgotten", || {
        let is_refused = keyed(&server, CLOSED[0], DEMO_KEY).status() == 503;
        refused += u64::from(is_refused);
        is_refused.then_some(())
    });
    for key in [DEMO_KEY, "nonsense"] {
        for (path, known) in OPEN.iter().zip(&known) {
            assert!(facts(keyed(&server, path, key)) == *known, "{path}: {}", server.log());
            let parameter = server.get(&format!("{path}?ak={key}"));
            assert!(facts(parameter) == *known, "{path}: {}", server.log());
            assert!(facts(server.get(path)) == *known, "{path}");
        }
        // Not rendered before the outage.
        let fresh = "/media/image/ice-crop_w41_h31_NormalPreview.jpg";
        assert_eq!(keyed(&server, fresh, key).status(), 200, "{}", server.log());
        for path in CLOSED {
            check_refused(&keyed(&server, path, key), path);
            refused += 1;
        }
    }
    let by_cookie = ["/media/text/story.json", "/media/image/held_NormalPreview.jpg"];
    for path in by_cookie {
        check_refused(&session.get(&server, path), path);
        refused += 1;
    }
    assert_eq!(server.get("/media/text/story.json").status(), 401, "it has no credentials");

    archive.cluster.up();
    let ended = server.until("the end of the outage in the log", || {
        let lines = server.log();
        let ended = lines.lines().find(|line| line.contains("the database can be used again"))?;
        Some(serde_json::from_str::<Value>(ended).unwrap())
    });
    assert_eq!(ended["refused"], refused, "{}", server.log());
    let log = server.log();
    let began = "\"message\":\"The database cannot be used now";
    assert_eq!(log.matches(began).count(), 1, "{log}");
    server.until("the key to work", || {
        (keyed(&server, "/media/text/story.json", DEMO_KEY).status() == 200).then_some(())
    });
}
