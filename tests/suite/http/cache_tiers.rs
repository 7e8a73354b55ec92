//! The rendition cache in memory and on disk.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use super::{THUMBNAIL, from_disk, header, renders};
use crate::common::{DEMO_KEY, LARGE, Server, pictures::Picture};

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

/// Status, headers without those of one response alone, and body.
type Answer = (u16, BTreeMap<String, String>, Vec<u8>);

/// Requests `path`, and returns the answer with the line of the log about it, without what differs each time.
fn answer(server: &Server, path: &str, id: &str, headers: &[(&str, &str)]) -> (Answer, Value) {
    let mut sent = headers.to_vec();
    sent.push(("x-request-id", id));
    let response = server.get_with(path, &sent);
    let status = response.status().as_u16();
    assert_eq!(header(&response, "x-request-id"), id);
    let all = response.headers().iter();
    let all = all.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let headers = all.filter(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()));
    let answer = (status, headers.collect(), response.bytes().unwrap().to_vec());
    let mark = format!("\"request_id\":\"{id}\"");
    let log = || server.log().lines().find(|line| line.contains(&mark)).map(str::to_owned);
    let mut line: Value = serde_json::from_str(&server.until("the log line", log)).unwrap();
    for name in ["timestamp", "request_id", "ms"] {
        assert!(line.as_object_mut().unwrap().remove(name).is_some(), "{name} in {line}");
    }
    (answer, line)
}

#[test]
fn a_repeated_request_is_answered_and_logged_like_the_first_hit() {
    let server = Server::demo();
    for (number, path) in [
        "_NormalPreview.jpg",
        "-fit_w300_NormalPreview.webp",
        "-crop_w200_h100_NormalPreview.jpg",
        "-watermark_NormalThumbnail.jpg",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/media/{LARGE}{path}");
        let get = |round: usize, headers: &[(&str, &str)]| {
            answer(&server, &path, &format!("r{number}-{round}"), headers)
        };
        server.bytes(&path);
        let first = get(0, &[]);
        let tag = first.0.1["etag"].clone();
        assert_eq!((first.0.0, &first.1["cache"]), (200, &json!("memory")), "{path}");
        let not_modified = get(1, &[("if-none-match", &tag)]);
        assert_eq!(not_modified.0.0, 304, "{path}");
        let requests = || {
            server
                .metric("wirephoto_http_requests_total", "route=\"/media/{*path}\",status=\"2xx\"")
        };
        let before = requests();
        for round in [2, 4] {
            assert_eq!(get(round, &[]), first, "{path}");
            assert_eq!(get(round + 1, &[("if-none-match", &tag)]), not_modified, "{path}");
        }
        assert_eq!(requests(), before + 2.0, "{path}");
        // What a remembered response does not answer.
        assert_eq!(get(6, &[("if-match", "\"other\"")]).0.0, 412, "{path}");
        let part = get(7, &[("range", "bytes=0-9")]).0;
        assert_eq!((part.0, &part.2[..]), (206, &first.0.2[..10]), "{path}");
        let known = get(8, &[("authorization", &format!("ApiKey {DEMO_KEY}"))]);
        assert!(known.1["user"].is_number(), "{}", known.1);
        assert_eq!(known.0.2, first.0.2, "{path}");
    }
}

#[test]
fn a_copy_of_an_earlier_version_is_not_confirmed_whoever_asked_before() {
    let server = Server::with_pictures(&[], &[("one", Picture::waves(600, 400).jpeg())]);
    let path = "/media/image/one_NormalPreview.jpg";
    for _ in 0..3 {
        server.bytes(path);
    }
    let old = header(&server.get(path), "etag");
    let incoming = server.dir.path().join("incoming");
    fs::write(incoming.join("one.jpg"), Picture::waves(600, 416).jpeg()).unwrap();
    assert!(server.command(&["ingest", incoming.to_str().unwrap()]).status.success());
    let changed = || Some(header(&server.get_with(path, &[("if-none-match", "*")]), "etag"));
    let new = server.until("the new version", || changed().filter(|tag| *tag != old));
    for tag in ["*", &new, &new] {
        assert_eq!(server.get_with(path, &[("if-none-match", tag)]).status(), 304, "{tag}");
    }
    let stale = server.get_with(path, &[("if-none-match", &old)]);
    assert_eq!((stale.status().as_u16(), header(&stale, "etag")), (200, new));
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
