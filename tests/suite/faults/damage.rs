//! Corrupted files: an original that cannot be regenerated is an error that names it, a derived file is rebuilt,
//! and no client gets wrong bytes.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use rusqlite::Connection;
use serde_json::json;

use super::kit::{call, call_with, document, ok_json, scene, upload};
use crate::common::pictures::Picture;
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server};

const SETTINGS: [&str; 2] = ["media.warm=false", "server.unready_s=0"];
/// No memory cache, so that every request reads from disk.
const FORGETFUL: [&str; 3] = ["media.warm=false", "server.unready_s=0", "cache.memory_bytes=0"];

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

/// Flips one bit in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// A kind of file damage, with its name.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn a_damaged_original_is_an_error_that_names_it_and_uploading_it_again_repairs_it() {
    let pictures: Vec<Vec<u8>> =
        (0..4).map(|n| Picture::grain(640 + n * 16, 480).jpeg()).collect();
    let server = Server::start(scene(&[]), &SETTINGS);
    for (number, jpeg) in pictures.iter().enumerate() {
        let sent = upload(&server, &format!("image/p{number}"), "Bild", jpeg).send().unwrap();
        assert_eq!(sent.status(), 201);
    }
    let originals = files(&server.data().join("originals"));
    let original = |number: usize| {
        let same = |path: &&PathBuf| fs::read(path).unwrap() == pictures[number];
        originals.iter().find(same).unwrap()
    };
    let (bent, cut, gone) = (original(0).clone(), original(1).clone(), original(2).clone());
    flip(&bent);
    fs::write(&cut, &pictures[1][..pictures[1].len() / 2]).unwrap();
    fs::remove_file(&gone).unwrap();
    let server = server.restart(&FORGETFUL);
    let ask = |path: &str, range: Option<&str>| {
        let mut request = call(&server, Method::GET, path, DEMO_KEY);
        if let Some(range) = range {
            request = request.header("range", range);
        }
        request.send().unwrap()
    };
    let found = || server.metric("wirephoto_originals_damaged_total", "");
    assert_eq!(found(), 0.0, "nobody looked yet");
    for (number, path) in [(0, &bent), (1, &cut), (2, &gone)] {
        for (rest, range) in [
            (".jpg", None),
            (".jpg", Some("bytes=0-99")),
            (".jpg", Some("bytes=-20000")),
            ("-watermark.jpg", None),
            ("-crop_w600_h470_x0_y0.jpg", None),
        ] {
            let before = found();
            let response = ask(&format!("/media/image/p{number}{rest}"), range);
            assert_eq!(found(), before + 1.0, "{path:?} {rest} {range:?}");
            let kept = response.headers()["cache-control"].to_str().unwrap().to_owned();
            let what = (response.status().as_u16(), kept);
            assert_eq!(what, (500, "no-store".to_owned()), "{path:?} {rest} {range:?}");
        }
        assert_eq!(ask(&format!("/media/image/p{number}.json"), None).status(), 200);
        let name = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let name = name + &path.file_name().unwrap().to_string_lossy();
        assert!(server.log().contains(&name), "{name} is in no line of the log");
    }
    let before = found();
    let whole = ask("/media/image/p3.jpg", None);
    assert_eq!(whole.status(), 200);
    assert_eq!(Picture::decode(&whole.bytes().unwrap()).size(), (688, 480));
    let said = server.command(&["check"]);
    assert_eq!(said.status.code(), Some(1));
    // The agency still has the files.
    for (number, jpeg) in pictures.iter().enumerate() {
        let sent = upload(&server, &format!("image/p{number}"), "Bild", jpeg).send().unwrap();
        assert_eq!(sent.status(), 200);
        let hires = ask(&format!("/media/image/p{number}.jpg"), None);
        assert_eq!(hires.status(), 200, "p{number}");
        let (hires, sent) = (Picture::decode(&hires.bytes().unwrap()), Picture::decode(jpeg));
        assert!(hires.distance(&sent) == 0.0, "p{number}");
    }
    assert_eq!(found(), before, "what is whole is not counted");
    let said = server.command(&["check"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn damaged_cache_files_are_never_served_and_are_rendered_again() {
    let server = Server::start(scene(&[]), &FORGETFUL);
    let jpeg = Picture::grain(900, 700).jpeg();
    assert_eq!(upload(&server, "image/one", "Bild", &jpeg).send().unwrap().status(), 201);
    let paths = [
        "/media/image/one_NormalPreview.jpg".to_owned(),
        "/media/image/one_NormalThumbnail.jpg".to_owned(),
        "/media/image/one-crop_w200_h100_x5_y5_NormalPreview.jpg".to_owned(),
    ];
    let cache = server.data().join("derived/cache");
    // A crop is cached on its second request.
    let before: Vec<Vec<u8>> = paths.iter().map(|path| server.bytes(path)).collect();
    paths.iter().for_each(|path| drop(server.bytes(path)));
    // A file that is being written has another name.
    let kept = || {
        let is_whole = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 64);
        files(&cache).into_iter().filter(is_whole).collect::<Vec<_>>()
    };
    server.until("the files to be written", || (kept().len() == 3).then_some(()));
    let damages: [Damage; 5] = [
        ("a bit", &flip),
        ("the head", &|path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[6] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("half", &|path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("nothing", &|path| fs::write(path, b"").unwrap()),
        ("gone", &|path| fs::remove_file(path).unwrap()),
    ];
    for (name, damage) in damages {
        kept().iter().for_each(|path| damage(path));
        for (path, bytes) in paths.iter().zip(&before) {
            let found = server.bytes(path);
            assert!(found == *bytes, "{name}: {path} has {} bytes", found.len());
        }
        paths.iter().for_each(|path| drop(server.bytes(path)));
        server.until("the files to be written again", || (kept().len() == 3).then_some(()));
    }
}

#[test]
fn damaged_derived_files_are_rebuilt_while_the_server_runs() {
    let settings = [&FORGETFUL[..], &["cache.disk_bytes=0"]].concat();
    let server = Server::start(scene(&[]), &settings);
    let mut transform = turbojpeg::Transform::op(turbojpeg::TransformOp::None);
    transform.progressive = true;
    let jpeg = Picture::grain(2600, 1800).jpeg();
    let jpeg = turbojpeg::transform(&transform, &jpeg).unwrap().to_vec();
    assert_eq!(upload(&server, "image/one", "Bild", &jpeg).send().unwrap().status(), 201);
    let paths = [
        "/media/image/one_NormalPreview.jpg",
        "/media/image/one-crop_w200_h100_x5_y5_NormalPreview.jpg",
        "/media/image/one-crop_w301_h203_x101_y77.jpg",
    ];
    let get = |path: &str| {
        let response = call(&server, Method::GET, path, DEMO_KEY).send().unwrap();
        assert_eq!(response.status(), 200, "{path}: {}", server.log());
        response.bytes().unwrap()
    };
    let before = paths.map(get);
    for kind in ["working", "standard", "index"] {
        let derived = files(&server.data().join("derived").join(kind));
        assert_eq!(derived.len(), 1, "{kind}");
        flip(&derived[0]);
        for (path, bytes) in paths.iter().zip(&before) {
            assert!(get(path) == *bytes, "{kind} {path}");
        }
        fs::remove_file(&derived[0]).unwrap();
        for (path, bytes) in paths.iter().zip(&before) {
            assert!(get(path) == *bytes, "{kind} {path}");
        }
    }
}

/// The number of the database page that contains `text`.
fn page_of(bytes: &[u8], text: &str) -> usize {
    let at = bytes.windows(text.len()).position(|part| part == text.as_bytes());
    at.unwrap_or_else(|| panic!("{text} is in no page")) / 4096
}

#[test]
fn a_damaged_database_page_fails_requests_for_its_rows_and_no_others() {
    let dir = scene(&[]);
    let line = |number: usize| {
        let mut line = document(&format!("Rad{number}"));
        line["uri"] = json!(format!("http://h/media/text/row{number}"));
        line["body_text"] = json!(format!("bodyofrow{number} ").repeat(40));
        line.to_string()
    };
    let rows = dir.path().join("rows.jsonl");
    fs::write(&rows, (0..200).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    // No notification has matched them yet.
    let mut command = wirephoto(dir.path());
    command.arg("ingest").arg(&rows).arg("--data").arg(dir.path().join("data"));
    assert!(output(&mut command).status.success());
    let database = dir.path().join("data/wirephoto.db");
    // A command that ends while one of its connections is open leaves pages in the write-ahead log.
    let connection = Connection::open(&database).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = fs::read(&database).unwrap();
    let page = page_of(&bytes, "bodyofrow77 bodyofrow77 bodyofrow77 ");
    bytes[page * 4096..page * 4096 + 600].fill(0xA5);
    fs::write(&database, bytes).unwrap();
    let server = Server::start(dir, &SETTINGS);
    let mut failed = 0;
    for number in 0..200 {
        let path = format!("/media/text/row{number}.json");
        let response = call(&server, Method::GET, &path, DEMO_KEY).send().unwrap();
        let status = response.status().as_u16();
        if status == 200 {
            assert_eq!(
                response.json::<serde_json::Value>().unwrap()["headline"],
                format!("Rad{number}")
            );
        } else {
            assert_eq!(
                (status, response.headers()["cache-control"].to_str().unwrap()),
                (503, "no-store")
            );
            failed += 1;
        }
    }
    assert!((1..20).contains(&failed), "{failed} of 200 failed");
    assert!(server.log().contains("malformed"), "{}", server.log());
    // Other items are found, ingested and delivered to streams.
    let found = call(&server, Method::GET, "/content/v1/text/search?q=rad150", DEMO_KEY);
    assert_eq!(ok_json(found.send().unwrap())["hits"].as_array().unwrap().len(), 1);
    let stream = super::kit::create_stream(&server, "");
    let at = (Method::PUT, "/ingest/v1/text/new");
    let sent = call_with(&server, at, super::kit::PROVIDER, &document("Ny")).send().unwrap();
    assert_eq!(sent.status(), 201);
    super::kit::wait_for_matches(&server, 1);
    let seen = crate::search::ids(&ok_json(super::kit::read_stream(&server, &stream)));
    assert_eq!(seen, "new", "{}", server.log());
    // The next start works like this one.
    let server = server.restart(&SETTINGS);
    assert_eq!(server.get("/health/live").status(), 200);
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
