//! Formats other than photographs (`docs/contract/files.md`): NewsML-G2, text formats, graphics, videos, associated
//! objects and archives, verified with common programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use reqwest::{
    blocking::Response,
    header::{
        ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{DEMO_KEY, Server, checkout, oracle, pictures::Picture};

const MAP: &str = "/media/graphic/demo-sweden-map";
const VIDEO: &str = "/media/video/demo-hubble-pan";
const TEXT: &str = "/media/text/demo-aceh-rescue";
const IMAGE: &str = "/media/image/demo-Hubble_XDF";

/// The address with the demo key, which has every right.
fn keyed(path: &str) -> String {
    format!("{path}?ak={DEMO_KEY}")
}

fn header(response: &Response, name: impl reqwest::header::AsHeaderName) -> String {
    let value = response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    value.unwrap_or_default()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("./test installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{said}");
    output
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// An item folder with its files.
fn item(root: &Path, key: &str, document: &Value, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = root.join(key);
    fs::create_dir_all(&folder).unwrap();
    put(&folder, "item.json", document.to_string().as_bytes());
    for (name, bytes) in files {
        put(&folder, name, bytes);
    }
    folder
}

/// A server that has ingested these folders.
fn server_with(folders: &[PathBuf]) -> Server {
    let server = Server::with_pictures::<&str>(&[], &[]);
    for folder in folders {
        let output = server.command(&["ingest", folder.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", folder.display());
    }
    server
}

fn demo_file(path: &str) -> Vec<u8> {
    fs::read(checkout("media-store/demo").join(path)).unwrap()
}

fn document(server: &Server, path: &str) -> Value {
    serde_json::from_slice(&server.bytes(&keyed(&format!("{path}.json")))).unwrap()
}

/// The rendition with this variant, usage and type in the document.
fn listed_rendition<'a>(document: &'a Value, variant: &str, usage: &str, mime: &str) -> &'a Value {
    let renditions = document["renditions"].as_object().expect("renditions");
    let is_it = |one: &&Value| {
        one["variant"] == variant && one["usage"] == usage && one["mimetype"] == mime
    };
    renditions.values().find(is_it).unwrap_or_else(|| panic!("no {variant}{usage} {mime}"))
}

#[test]
fn every_media_type_is_served_as_newsml_that_validates() {
    let root = folder();
    let page = item(
        root.path(),
        "page/sheet-1",
        &json!({"headline": "Page <1> & \"more\" ]]>", "description_text": "]]> & <b>"}),
        &[],
    );
    let plain = folder();
    let server = Server::demo();
    let output = server.command(&["ingest", page.to_str().unwrap()]);
    let added = output.status.success();
    let mut files = Vec::new();
    for key in [
        "image/demo-Hubble_XDF",
        "graphic/demo-sweden-map",
        "video/demo-hubble-pan",
        "text/demo-aceh-rescue",
        "feature/demo-greek-deities",
        "planning/demo-plan-bridge",
        "calendar/demo-press-meeting",
        "calendar/demo-city-run",
        "page/sheet-1",
    ] {
        if key.starts_with("page") && !added {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
        let path = format!("/media/{key}");
        let response = server.get(&keyed(&format!("{path}.xml")));
        assert_eq!(response.status(), 200, "{key}");
        assert!(header(&response, CONTENT_TYPE).starts_with("text/xml"), "{key}");
        let xml = response.bytes().unwrap();
        let text = std::str::from_utf8(&xml).unwrap();
        let json = document(&server, &path);
        let uri = json["uri"].as_str().unwrap();
        assert!(text.contains(&format!("guid=\"{uri}\"")), "{key}: {text}");
        assert!(text.contains(&format!("guid=\"{uri}-pack\"")), "{key}");
        for rendition in json["renditions"].as_object().into_iter().flatten() {
            let href = rendition.1["href"].as_str().unwrap();
            assert!(text.contains(&format!("href=\"{href}\"")), "{key} {href}");
        }
        files.push(put(plain.path(), &format!("{}.xml", key.replace('/', "-")), &xml));
    }
    let schema = checkout("tests/schemas/NewsML-G2_2.35-spec-All-Power.xsd");
    let mut lint = Command::new("xmllint");
    run(lint.args(["--nonet", "--noout", "--schema"]).arg(schema).args(files));
}

#[test]
fn xml_is_open_for_photographs_alone_and_has_the_validators_of_json() {
    let server = Server::demo();
    let response = server.get(&format!("{IMAGE}.xml"));
    assert_eq!(response.status(), 200);
    let etag = header(&response, ETAG);
    let again = server.get_with(&format!("{IMAGE}.xml"), &[("if-none-match", etag.as_str())]);
    assert_eq!(again.status(), 304);
    assert_ne!(etag, header(&server.get(&format!("{IMAGE}.json")), ETAG));
    for path in [MAP, VIDEO, TEXT] {
        assert_eq!(server.get(&format!("{path}.xml")).status(), 401, "{path}");
    }
    assert_eq!(server.get(&format!("{IMAGE}-watermark.xml")).status(), 400);
}

#[test]
fn texts_to_paste_have_the_headline_first_and_the_byline_last() {
    let server = Server::demo();
    let response = server.get(&keyed(&format!("{TEXT}-cutpaste.txt")));
    assert_eq!(header(&response, CONTENT_TYPE), "text/plain; charset=utf-8");
    let text = response.text().unwrap();
    let json = document(&server, TEXT);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], json["headline"]);
    assert!(lines[1].contains("Wikinews"), "{}", lines[1]);
    assert!(lines[2].starts_with("On Friday, fishermen rescued"), "{}", lines[2]);
    let last = lines.iter().rev().find(|line| !line.is_empty()).unwrap();
    assert_eq!(*last, json["byline"], "{text}");
    assert!(!text.replace("\r\n", "").contains(['\r', '\n', '<']));
    assert_eq!(server.get(&format!("{TEXT}-cutpaste.txt")).status(), 401);
    for other in [IMAGE, MAP, VIDEO] {
        let path = keyed(&format!("{other}-cutpaste.txt"));
        assert_eq!(server.get(&path).status(), 404, "{path}");
    }
}

#[test]
fn layout_text_begins_with_its_start_tag_and_is_ascii_only() {
    let server = Server::demo();
    let response = server.get(&keyed(&format!("{TEXT}-indesign.txt")));
    assert!(header(&response, CONTENT_TYPE).starts_with("text/plain"));
    let text = response.bytes().unwrap();
    assert!(text.starts_with(b"<ASCII-WIN>\r\n<Version:5><FeatureSet:InDesign-Roman>"));
    assert!(text.is_ascii());
    let text = std::str::from_utf8(&text).unwrap();
    assert!(text.contains("<ParaStyle:"), "{text}");
    assert_eq!(text.matches('\r').count(), text.matches('\n').count());
    assert_eq!(text.matches("\r\n").count(), text.matches('\n').count());
}

#[test]
fn associated_pictures_are_rendered_from_their_own_item() {
    let server = Server::demo();
    for (name, long) in [("NormalPreview", 1024), ("NormalThumbnail", 256)] {
        let bytes = server.bytes(&keyed(&format!("{TEXT}/a000_{name}.jpg")));
        assert_eq!(bytes, server.bytes(&format!("/media/image/demo-bridge-cables_{name}.jpg")));
        let (width, height) = Picture::decode(&bytes).size();
        assert_eq!(width.max(height), long);
    }
    let cropped = server.bytes(&keyed(&format!("{TEXT}/a000_CroppedThumbnail.jpg")));
    assert_eq!(Picture::decode(&cropped).size(), (256, 256));
    let marked = server.get(&keyed(&format!("{TEXT}/a000-watermark_NormalPreview.jpg")));
    assert_eq!(marked.status(), 200);
    // The rights are those of the text: no rendition is open.
    assert_eq!(server.get(&format!("{TEXT}/a000_NormalPreview.jpg")).status(), 401);
    assert_eq!(server.get(&keyed(&format!("{TEXT}/a001_NormalPreview.jpg"))).status(), 404);
}

#[test]
fn associated_pictures_that_come_with_a_text_are_served_below_it() {
    let root = folder();
    let picture = Picture::corners(900, 600).jpeg();
    let text = json!({
        "headline": "With a picture",
        "body_html5": "<p>One.</p>",
        "associations": {"a000": {
            "uri": "http://other.example/media/image/not-here", "type": "picture",
            "headline": "Corners", "byline": "C. Orner",
        }},
    });
    let folder =
        item(root.path(), "text/with-picture", &text, &[("a000_NormalHires.jpg", &picture)]);
    let server = server_with(&[folder]);
    let json = document(&server, "/media/text/with-picture");
    let associated = &json["associations"]["a000"];
    assert_eq!(associated["representationtype"], "incomplete");
    for (variant, usage, size) in [
        ("Normal", "Hires", (900, 600)),
        ("Normal", "Preview", (900, 600)),
        ("Normal", "Thumbnail", (256, 171)),
        ("Cropped", "Thumbnail", (256, 256)),
        ("Web", "Preview", (512, 341)),
    ] {
        let one = listed_rendition(associated, variant, usage, "image/jpeg");
        let href = one["href"].as_str().unwrap();
        let path = &href[href.find("/media/").unwrap()..];
        assert_eq!(path, format!("/media/text/with-picture/a000_{variant}{usage}.jpg"));
        let bytes = server.bytes(&keyed(path));
        assert_eq!(Picture::decode(&bytes).size(), size, "{path}");
        assert_eq!(
            (one["width"].as_u64(), one["height"].as_u64()),
            (Some(size.0 as u64), Some(size.1 as u64))
        );
    }
}

#[test]
fn a_file_of_an_association_that_is_not_in_the_document_is_refused_by_name() {
    let root = folder();
    let picture = Picture::flat(64, 64, [9, 9, 9]).jpeg();
    let text = json!({"headline": "Without"});
    let folder = item(root.path(), "text/without", &text, &[("a000_NormalHires.jpg", &picture)]);
    let server = Server::with_pictures::<&str>(&[], &[]);
    let output = server.command(&["ingest", folder.to_str().unwrap()]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("a000_NormalHires.jpg") && said.contains("associations"), "{said}");
}

#[test]
fn a_graphic_is_served_as_pdf_grey_pdf_eps_and_pictures_of_its_first_page() {
    let server = Server::demo();
    let json = document(&server, MAP);
    for (suffix, mime) in [
        (".pdf", "application/pdf"),
        ("_BlackAndWhiteHires.pdf", "application/pdf"),
        (".eps", "application/postscript"),
    ] {
        let path = format!("{MAP}{suffix}");
        assert_eq!(server.get(&path).status(), 401, "{path}");
        let response = server.get(&keyed(&path));
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(header(&response, CONTENT_TYPE), mime);
        let extension = suffix.rsplit('.').next().unwrap();
        let name = format!("attachment; filename=\"demo-sweden-map.{extension}\"");
        assert_eq!(header(&response, CONTENT_DISPOSITION), name);
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        assert_eq!(header(&response, ACCEPT_RANGES), "bytes");
    }
    let original = demo_file("graphic/demo-sweden-map/NormalHires.pdf");
    assert_eq!(server.bytes(&keyed(&format!("{MAP}.pdf"))), original);
    assert_eq!(server.get(&keyed(&format!("{MAP}_BlackAndWhite.eps"))).status(), 404);
    let hires = listed_rendition(&json, "Normal", "Hires", "application/pdf");
    assert_eq!(hires["unit"], "MM");
    assert_eq!(hires["sizeinbytes"], original.len());
    for (variant, usage) in [
        ("Normal", "Preview"),
        ("Watermark", "Preview"),
        ("Normal", "Thumbnail"),
        ("Cropped", "Thumbnail"),
        ("Web", "Preview"),
    ] {
        let one = listed_rendition(&json, variant, usage, "image/jpeg");
        let bytes = server.bytes(&keyed(&format!("{MAP}_{variant}{usage}.jpg")));
        let (width, height) = Picture::decode(&bytes).size();
        assert_eq!(
            (one["width"].as_u64(), one["height"].as_u64()),
            (Some(width as u64), Some(height as u64))
        );
    }
    let preview = server.bytes(&keyed(&format!("{MAP}_NormalPreview.jpg")));
    let (width, height) = Picture::decode(&preview).size();
    assert_eq!(width.max(height), 1024);
    assert_eq!(server.get(&keyed(&format!("{MAP}.jpg"))).status(), 404);
}

/// A page of the PDF rendered by poppler; `long` is its long side in pixels.
fn drawn(pdf: &[u8], long: usize, grey: bool) -> Picture {
    let dir = folder();
    let file = put(dir.path(), "page.pdf", pdf);
    let target = dir.path().join("page");
    let mut command = Command::new("pdftoppm");
    command.args(["-f", "1", "-l", "1", "-singlefile", "-jpeg", "-jpegopt", "quality=98"]);
    if grey {
        command.arg("-gray");
    }
    run(command.arg("-scale-to").arg(long.to_string()).arg(&file).arg(&target));
    Picture::decode(&fs::read(dir.path().join("page.jpg")).unwrap())
}

#[test]
fn the_preview_of_a_pdf_matches_another_renderer() {
    let server = Server::demo();
    let preview = server.bytes(&keyed(&format!("{MAP}_NormalPreview.jpg")));
    let expected = drawn(&demo_file("graphic/demo-sweden-map/NormalHires.pdf"), 1024, false);
    let found = Picture::decode(&oracle_srgb(&preview));
    assert_eq!(found.size(), expected.size());
    let distance = found.reduced(4).distance(&expected.reduced(4));
    assert!(distance < 4.0, "mean distance {distance}");
}

/// The picture decoded to sRGB, without its profile.
fn oracle_srgb(jpeg: &[u8]) -> Vec<u8> {
    let long = {
        let (w, h) = Picture::decode(jpeg).size();
        w.max(h)
    };
    oracle::srgb(jpeg, long).jpeg()
}

#[test]
fn the_grey_pdf_is_valid_and_has_the_text_and_grey_values_of_the_original() {
    let server = Server::demo();
    let dir = folder();
    let original = demo_file("graphic/demo-sweden-map/NormalHires.pdf");
    let grey = server.bytes(&keyed(&format!("{MAP}_BlackAndWhiteHires.pdf")));
    let (from, to) = (put(dir.path(), "a.pdf", &original), put(dir.path(), "b.pdf", &grey));
    run(Command::new("qpdf").arg("--check").arg(&to));
    let text = |path: &Path| run(Command::new("pdftotext").arg(path).arg("-")).stdout;
    assert_eq!(text(&from), text(&to));
    let (colour, found) = (drawn(&original, 800, true), drawn(&grey, 800, false));
    let distance = colour.distance(&found);
    assert!(distance < 2.0, "mean distance {distance}");
    let (width, height) = found.size();
    for y in (0..height).step_by(7) {
        for x in (0..width).step_by(7) {
            let [r, g, b] = found.at(x, y);
            assert!(r.abs_diff(g) < 3 && g.abs_diff(b) < 3, "colour at {x},{y}");
        }
    }
}

#[test]
fn fake_pdf_eps_and_mp4_files_are_refused_and_a_damaged_pdf_is_kept_as_an_original() {
    let root = folder();
    let server = Server::with_pictures::<&str>(&[], &[]);
    let ingest = |key: &str, name: &str, bytes: &[u8]| {
        let folder = item(root.path(), key, &json!({"headline": "x"}), &[(name, bytes)]);
        let output = server.command(&["ingest", folder.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        (output.status.success(), said)
    };
    for (key, name, bytes, why) in [
        ("graphic/text", "NormalHires.pdf", &b"hello"[..], "is not a PDF"),
        ("graphic/svg", "NormalHires.eps", b"<svg/>", "is not an EPS"),
        ("video/riff", "NormalPreview.mp4", b"RIFF....AVI LIST", "cannot be read"),
        (
            "video/short",
            "NormalPreview.mp4",
            &demo_file("video/demo-hubble-pan/NormalPreview.mp4")[..900],
            "cannot be read",
        ),
        ("graphic/empty", "NormalHires.pdf", b"", "is empty"),
    ] {
        let (taken, said) = ingest(key, name, bytes);
        assert!(!taken && said.contains(why) && said.contains(name), "{key}: {said}");
    }
    let (taken, said) =
        ingest("graphic/damaged", "NormalHires.pdf", b"%PDF-1.7\n1 0 obj << broken");
    assert!(taken, "{said}");
    for missing in ["pages cannot be read", "BlackAndWhiteHires.pdf cannot be created", "Preview"]
    {
        assert!(said.contains(missing), "{missing}: {said}");
    }
    let path = "/media/graphic/damaged";
    assert_eq!(server.bytes(&keyed(&format!("{path}.pdf"))), b"%PDF-1.7\n1 0 obj << broken");
    assert_eq!(server.get(&keyed(&format!("{path}_NormalPreview.jpg"))).status(), 404);
    let renditions = document(&server, path)["renditions"].as_object().unwrap().len();
    assert_eq!(renditions, 1);
}

#[test]
fn a_video_is_served_in_ranges_with_its_size_and_duration() {
    let server = Server::demo();
    let path = format!("{VIDEO}_NormalPreview.mp4");
    let file = demo_file("video/demo-hubble-pan/NormalPreview.mp4");
    assert_eq!(server.get(&path).status(), 401);
    let response = server.get_with(&keyed(&path), &[("range", "bytes=1000-1999")]);
    assert_eq!(response.status(), 206);
    assert_eq!(header(&response, CONTENT_TYPE), "video/mp4");
    assert_eq!(header(&response, CONTENT_RANGE), format!("bytes 1000-1999/{}", file.len()));
    assert_eq!(response.bytes().unwrap(), &file[1000..2000]);
    let json = document(&server, VIDEO);
    let told = listed_rendition(&json, "Normal", "Preview", "video/mp4");
    assert_eq!((&told["width"], &told["height"]), (&json!(640), &json!(360)));
    assert_eq!((&told["duration"], &told["sizeinbytes"]), (&json!(6), &json!(file.len())));
    let bitrate: usize = told["bitrate"].as_str().unwrap().parse().unwrap();
    assert!(bitrate.abs_diff(file.len() * 8 / 6) < 2000, "{bitrate}");
    let still = server.bytes(&keyed(&format!("{VIDEO}_NormalThumbnail.jpg")));
    assert_eq!(Picture::decode(&still).size(), (256, 144));
    let still = server.bytes(&keyed(&format!("{VIDEO}_WebPreview.jpg")));
    assert_eq!(Picture::decode(&still).size(), (512, 288));
}

#[test]
fn a_browser_plays_and_seeks_a_video() {
    let server = Server::demo();
    let browser = crate::common::browser::Browser::open((800, 600));
    browser.visit(&format!("{}{}", server.url, keyed(&format!("{VIDEO}_NormalPreview.mp4"))));
    let video = "document.querySelector('video')";
    let number = |expression: &str| browser.eval(expression).as_f64().unwrap_or_default();
    let ready = || (number(&format!("{video}.readyState")) >= 2.0).then_some(());
    server.until("the video to be ready", ready);
    assert_eq!(number(&format!("{video}.videoWidth")), 640.0);
    let duration = number(&format!("{video}.duration"));
    assert!((duration - 6.0).abs() < 0.1, "{duration}");
    browser.eval(&format!("{video}.pause(), {video}.currentTime = 5, 0"));
    let there = || {
        let seeking = browser.eval(&format!("{video}.seeking"));
        (seeking == json!(false) && number(&format!("{video}.currentTime")) == 5.0).then_some(())
    };
    server.until("the video to be at second 5", there);
}

/// The names and bytes in an archive, as read by Python, which also verifies every checksum.
fn unzipped(zip: &[u8]) -> Vec<(String, u64)> {
    let script = "import sys,io,json,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        assert z.testzip() is None\n\
        print(json.dumps([(i.filename,i.file_size) for i in z.infolist()]))";
    serde_json::from_slice(&oracle::python(script, &[], zip)).unwrap()
}

fn names(zip: &[u8]) -> Vec<String> {
    unzipped(zip).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn archives_contain_the_files_of_the_media_type() {
    let server = Server::demo();
    let dir = folder();
    for (path, expected) in [
        (
            IMAGE,
            &["demo-Hubble_XDF_NormalHires.jpg", "demo-Hubble_XDF.json", "demo-Hubble_XDF.xml"][..],
        ),
        (
            MAP,
            &[
                "demo-sweden-map.pdf",
                "demo-sweden-map.eps",
                "demo-sweden-map.json",
                "demo-sweden-map.xml",
            ],
        ),
        (
            VIDEO,
            &[
                "demo-hubble-pan.json",
                "demo-hubble-pan.xml",
                "demo-hubble-pan_NormalPreview.mp4",
                "demo-hubble-pan_NormalThumbnail.jpg",
            ],
        ),
        (
            TEXT,
            &[
                "demo-aceh-rescue.json",
                "demo-aceh-rescue.xml",
                "demo-aceh-rescue-cutpaste.txt",
                "demo-aceh-rescue-indesign.txt",
                "demo-aceh-rescue_a000_NormalHires.jpg",
            ],
        ),
    ] {
        let response = server.get(&keyed(&format!("{path}.zip")));
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(header(&response, CONTENT_TYPE), "application/zip");
        assert!(header(&response, CONTENT_DISPOSITION).ends_with(".zip\""));
        let zip = response.bytes().unwrap();
        assert_eq!(names(&zip), expected, "{path}");
        run(Command::new("unzip").arg("-tq").arg(put(dir.path(), "x.zip", &zip)));
    }
    for none in ["planning/demo-plan-bridge", "calendar/demo-press-meeting"] {
        assert_eq!(server.get(&keyed(&format!("/media/{none}.zip"))).status(), 404, "{none}");
    }
}

#[test]
fn an_archive_has_the_same_bytes_each_time_whole_and_in_ranges() {
    let server = Server::demo();
    let path = keyed(&format!("{IMAGE}.zip"));
    let response = server.get(&path);
    let (etag, length) = (header(&response, ETAG), header(&response, CONTENT_LENGTH));
    let zip = response.bytes().unwrap();
    assert_eq!(length, zip.len().to_string());
    let again = server.get(&path);
    assert_eq!(header(&again, ETAG), etag);
    assert_eq!(again.bytes().unwrap(), zip);
    for (first, last) in [(0, 10), (25, 40_000), (zip.len() - 100, zip.len() - 1)] {
        let range = format!("bytes={first}-{last}");
        let part = server.get_with(&path, &[("range", range.as_str())]);
        assert_eq!(part.status(), 206);
        assert_eq!(part.bytes().unwrap(), &zip[first..=last], "{range}");
    }
    let unchanged = server.get_with(&path, &[("if-none-match", etag.as_str())]);
    assert_eq!(unchanged.status(), 304);
    assert_eq!(server.get(&format!("{IMAGE}.zip")).status(), 401);
    // Members have the bytes of their own URLs.
    let hires = server.bytes(&keyed(&format!("{IMAGE}.jpg")));
    assert_eq!(unzipped(&zip)[0].1, hires.len() as u64);
}

#[test]
fn a_bare_graphic_or_video_becomes_an_item() {
    let root = folder();
    let pdf =
        put(root.path(), "county-map.pdf", &demo_file("graphic/demo-sweden-map/NormalHires.pdf"));
    let eps =
        put(root.path(), "county-eps.eps", &demo_file("graphic/demo-sweden-map/NormalHires.eps"));
    let mp4 = put(root.path(), "pan.mp4", &demo_file("video/demo-hubble-pan/NormalPreview.mp4"));
    let server = server_with(&[pdf, eps, mp4]);
    assert_eq!(document(&server, "/media/graphic/county-map")["headline"], "county-map");
    for path in [
        "/media/graphic/county-map.pdf",
        "/media/graphic/county-map_NormalThumbnail.jpg",
        "/media/graphic/county-eps.eps",
        "/media/video/pan_NormalPreview.mp4",
    ] {
        assert_eq!(server.get(&keyed(path)).status(), 200, "{path}");
    }
}

#[test]
fn ffmpeg_renders_a_missing_preview_and_still() {
    let root = folder();
    let video = demo_file("video/demo-hubble-pan/NormalPreview.mp4");
    let document_of = json!({"headline": "Pan"});
    let hires = item(root.path(), "video/made", &document_of, &[("NormalHires.mp4", &video)]);
    let server = server_with(&[hires]);
    let json = document(&server, "/media/video/made");
    let made = listed_rendition(&json, "Normal", "Preview", "video/mp4");
    assert_eq!((&made["width"], &made["duration"]), (&json!(640), &json!(6)));
    let still = server.bytes(&keyed("/media/video/made_NormalThumbnail.jpg"));
    assert_eq!(Picture::decode(&still).size(), (256, 144));
    // Without it, ingest reports what is missing.
    let other = item(root.path(), "video/unmade", &document_of, &[("NormalHires.mp4", &video)]);
    let output = server.command(&["ingest", "--set", "media.ffmpeg=", other.to_str().unwrap()]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    for missing in
        ["NormalPreview.mp4 cannot be created", "NormalThumbnail.jpg cannot be created", "ffmpeg"]
    {
        assert!(said.contains(missing), "{missing}: {said}");
    }
    assert_eq!(server.get(&keyed("/media/video/unmade_NormalPreview.mp4")).status(), 404);
}
