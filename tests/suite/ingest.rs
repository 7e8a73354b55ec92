//! Ingest (`docs/contract/ingest.md`): accepted and refused files, error reports, and the state after a crash.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::common::pictures::{Picture, with_segment};
use crate::common::server::{isolate_environment, output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, oracle};
use crate::site_account::Person;

/// An input folder next to a server's data directory.
fn input(server: &Server) -> PathBuf {
    let dir = server.dir.path().join("input");
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn picture() -> Vec<u8> {
    Picture::corners(320, 240).jpeg()
}

fn text(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}

/// Ingests `path`; returns both outputs and the exit status.
fn ingest(server: &Server, path: &Path) -> (String, String, i32) {
    text(&server.command(&["ingest", &path.to_string_lossy()]))
}

fn ingest_ok(server: &Server, path: &Path) {
    let (_, errors, status) = ingest(server, path);
    assert_eq!(status, 0, "{errors}");
}

/// The item's document, once the server has it.
fn document(server: &Server, key: &str) -> Value {
    let path = format!("/media/{key}.json");
    let found = || {
        let response = server.get(&path);
        (response.status() == 200).then(|| response.json().unwrap())
    };
    server.until(&format!("{key} to be there"), found)
}

fn exiftool(path: &Path, arguments: &[&str]) {
    let mut command = Command::new("exiftool");
    command.args(["-q", "-overwrite_original", "-charset", "iptc=UTF8"]).args(arguments).arg(path);
    assert!(command.status().expect("./test installs exiftool").success());
}

#[test]
fn a_running_server_sees_items_ingested_by_another_process() {
    let server = Server::empty();
    let path = input(&server).join("harbour_7-x.jpg");
    fs::write(&path, picture()).unwrap();
    assert_eq!(server.get("/media/image/harbour_7-x.json").status(), 404);
    ingest_ok(&server, &path);
    assert_eq!(document(&server, "image/harbour_7-x")["renditions"]["r00"]["width"], 320);
    let preview = server.bytes("/media/image/harbour_7-x_NormalPreview.jpg");
    assert_eq!(Picture::decode(&preview).size(), (320, 240));
}

#[test]
fn a_bare_photograph_brings_its_iptc_caption_in_utf_8() {
    let server = Server::empty();
    let path = input(&server).join("swedish.jpg");
    fs::write(&path, picture()).unwrap();
    exiftool(
        &path,
        &[
            "-IPTC:CodedCharacterSet=UTF8",
            "-IPTC:Headline=Isbrytare i Strömmen",
            "-IPTC:Caption-Abstract=En isbrytare på måndagen.",
            "-IPTC:By-line=Åsa Öberg",
            "-IPTC:By-lineTitle=Staff",
            "-IPTC:Credit=Byrån",
            "-IPTC:Source=Källa",
            "-IPTC:CopyrightNotice=© Byrån",
            "-IPTC:City=Malmö",
            "-IPTC:Country-PrimaryLocationName=Sverige",
            "-IPTC:Keywords=is",
            "-IPTC:Keywords=hav",
            "-IPTC:DateCreated=2026:03:02",
            "-IPTC:TimeCreated=09:15:00+01:00",
        ],
    );
    ingest_ok(&server, &path);
    let document = document(&server, "image/swedish");
    let check = |name: &str, expected: &str| assert_eq!(document[name], expected, "{name}");
    check("headline", "Isbrytare i Strömmen");
    check("description_text", "En isbrytare på måndagen.");
    check("byline", "Åsa Öberg");
    check("source", "Källa");
    check("copyrightnotice", "© Byrån");
    check("versioncreated", "2026-03-02T09:15:00+01:00");
    assert_eq!(document["bylines"][0]["role"], "Staff");
    assert_eq!(document["infosource"][0]["name"], "Byrån");
    assert_eq!(document["place"][0]["name"], "Malmö");
    assert_eq!(document["place"][1]["name"], "Sverige");
    let names: Vec<_> =
        document["subject"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["is", "hav"]);
}

#[test]
fn a_bare_photograph_brings_its_iptc_caption_in_latin_1() {
    let server = Server::empty();
    let path = input(&server).join("latin.jpg");
    let dataset = |number: u8, text: &[u8]| {
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        [&[0x1C, 2, number], length.as_slice(), text].concat()
    };
    let iim = [dataset(105, b"Sm\xF6rg\xE5s"), dataset(120, b"R\xE4ksm\xF6rg\xE5s \x96 \x80 5")]
        .concat();
    let length = u32::try_from(iim.len()).unwrap().to_be_bytes();
    let pad = vec![0; iim.len() % 2];
    let block = [b"Photoshop 3.0\x008BIM\x04\x04\0\0".as_slice(), &length, &iim, &pad].concat();
    fs::write(&path, with_segment(&picture(), 0xED, &block)).unwrap();
    ingest_ok(&server, &path);
    let document = document(&server, "image/latin");
    assert_eq!(document["headline"], "Smörgås");
    assert_eq!(document["description_text"], "Räksmörgås – € 5");
}

#[test]
fn a_bare_photograph_brings_its_xmp_and_exif_captions() {
    let server = Server::empty();
    let dir = input(&server);
    let (xmp, exif) = (dir.join("xmp.jpg"), dir.join("exif.jpg"));
    let long = "Långt. ".repeat(15_000);
    fs::write(&xmp, picture()).unwrap();
    let description = format!("-XMP-dc:Description={long}");
    // Larger than one segment: the rest goes into extended XMP.
    exiftool(
        &xmp,
        &["-XMP-photoshop:Headline=Från XMP", &description, "-XMP-iptcExt:PersonInImage=Någon"],
    );
    fs::write(&exif, picture()).unwrap();
    exiftool(
        &exif,
        &[
            "-EXIF:ImageDescription=From EXIF",
            "-EXIF:Artist=Someone",
            "-EXIF:DateTimeOriginal=2026:07:02 09:15:00",
            "-EXIF:OffsetTimeOriginal=+02:00",
        ],
    );
    ingest_ok(&server, &dir);
    let from_xmp = document(&server, "image/xmp");
    assert_eq!(from_xmp["headline"], "Från XMP");
    assert!(from_xmp["description_text"].as_str().unwrap().starts_with("Långt. Långt."));
    assert_eq!(from_xmp["person"][0]["name"], "Någon");
    let from_exif = document(&server, "image/exif");
    assert_eq!(from_exif["description_text"], "From EXIF");
    assert_eq!(from_exif["byline"], "Someone");
    assert_eq!(from_exif["versioncreated"], "2026-07-02T09:15:00+02:00");
}

#[test]
fn extended_xmp_is_read() {
    let server = Server::empty();
    let path = input(&server).join("extended.jpg");
    let guid = "0123456789ABCDEF0123456789ABCDEF";
    let rdf = |about: &str| {
        format!(
            "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF \
             xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description \
             xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/' \
             xmlns:xmpNote='http://ns.adobe.com/xmp/note/' {about}/></rdf:RDF></x:xmpmeta>"
        )
    };
    let main = rdf(&format!("photoshop:Headline='Main' xmpNote:HasExtendedXMP='{guid}'"));
    let extension = rdf("photoshop:Source='Extended'");
    let total = u32::try_from(extension.len()).unwrap().to_be_bytes();
    let signature = b"http://ns.adobe.com/xmp/extension/\0".as_slice();
    let chunk = [signature, guid.as_bytes(), &total, &[0; 4], extension.as_bytes()].concat();
    let main = [b"http://ns.adobe.com/xap/1.0/\0".as_slice(), main.as_bytes()].concat();
    let jpeg = with_segment(&with_segment(&picture(), 0xE1, &chunk), 0xE1, &main);
    fs::write(&path, jpeg).unwrap();
    ingest_ok(&server, &path);
    let document = document(&server, "image/extended");
    assert_eq!(document["headline"], "Main");
    assert_eq!(document["source"], "Extended");
}

#[test]
fn a_file_name_that_is_no_id_gets_an_id_from_the_content() {
    let server = Server::empty();
    let dir = input(&server);
    let names = ["två ord.jpg", "x-watermark.jpg", "y_NormalHires.jpg", "_z.jpeg", "x-fit_w2.jpg"];
    for (shade, name) in [20, 70, 120, 170, 230].into_iter().zip(names) {
        fs::write(dir.join(name), Picture::flat(64, 48, [shade, 0, 0]).jpeg()).unwrap();
    }
    let output = server.command(&["ingest", "--json", &dir.to_string_lossy()]);
    let (lines, _, status) = text(&output);
    assert_eq!(status, 0);
    let items: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<_> = items.iter().filter_map(|item| item["item"].as_str()).collect();
    assert_eq!(keys.len(), 5);
    for key in keys {
        let id = key.strip_prefix("image/p").unwrap_or_default();
        assert!(id.len() == 20 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
        assert_eq!(document(&server, key)["type"], "picture");
    }
    assert_eq!(items.last().unwrap()["created"], 5);
}

#[test]
fn two_photographs_with_one_name_do_not_silently_replace_each_other() {
    let server = Server::empty();
    let dir = input(&server);
    for (folder, shade) in [("a", 10), ("b", 200)] {
        fs::create_dir(dir.join(folder)).unwrap();
        let jpeg = Picture::flat(64, 48, [shade, 0, 0]).jpeg();
        fs::write(dir.join(folder).join("same.jpg"), jpeg).unwrap();
    }
    let (said, errors, status) = ingest(&server, &dir);
    assert_eq!(status, 1);
    assert!(said.contains("1 created, 0 replaced, 1 failed"), "{said}");
    assert!(
        errors.contains("same.jpg") && errors.contains("another file of this kind"),
        "{errors}"
    );
}

/// An item folder with a picture and the document `item`.
fn folder(dir: &Path, key: &str, item: &Value) -> PathBuf {
    let folder = dir.join(key);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("item.json"), item.to_string()).unwrap();
    fs::write(folder.join("NormalHires.jpg"), picture()).unwrap();
    folder
}

#[test]
fn an_item_folder_brings_its_document_and_can_be_sent_again() {
    let server = Server::empty();
    let dir = input(&server);
    let path = folder(&dir, "image/aB_c-1", &json!({ "headline": "First" }));
    ingest_ok(&server, &path);
    assert_eq!(document(&server, "image/aB_c-1")["headline"], "First");
    let preview = "/media/image/aB_c-1_NormalPreview.jpg";
    let before = server.get(preview).headers()["etag"].clone();
    // The document alone: the item keeps its picture, with the new caption.
    fs::remove_file(path.join("NormalHires.jpg")).unwrap();
    fs::write(path.join("item.json"), json!({ "headline": "Second" }).to_string()).unwrap();
    let (said, ..) = ingest(&server, &dir);
    assert!(said.contains("0 created, 1 replaced, 0 failed"), "{said}");
    let seen = || {
        let response = server.get("/media/image/aB_c-1.json");
        let document: Value = response.json().unwrap();
        (document["headline"] == "Second").then_some(())
    };
    server.until("the new document", seen);
    let response = server.get(preview);
    assert_ne!(response.headers()["etag"], before);
    let metadata = oracle::exiftool(&response.bytes().unwrap());
    assert_eq!(metadata["XMP-photoshop:Headline"], "Second");
}

#[test]
fn a_bad_item_folder_is_refused_with_the_position_of_the_error() {
    let server = Server::empty();
    let dir = input(&server);
    let check = |key: &str, item: Value, parts: &[&str]| {
        let path = folder(&dir, key, &item);
        let (_, errors, status) = ingest(&server, &path);
        assert_eq!(status, 1, "{errors}");
        for part in parts {
            assert!(errors.contains(part), "{key}: {errors} misses {part}");
        }
        assert!(server.get(&format!("/media/{key}.json")).status().is_client_error());
        fs::remove_dir_all(dir.join("image")).ok();
        fs::remove_dir_all(dir.join("video")).ok();
        fs::remove_dir_all(dir.join("photo")).ok();
    };
    check("image/x", json!({ "unknown": 1 }), &["image/x", "item.json", "'unknown'"]);
    check("image/x", json!({ "person": [{ "nam": "A" }] }), &["/person/0", "'nam'"]);
    check("image/x", json!({ "urgency": "high" }), &["/urgency"]);
    check("image/x", json!({ "versioncreated": "yesterday" }), &["/versioncreated"]);
    check("image/x", json!([1]), &["not a JSON object"]);
    check(
        "image/x",
        json!({ "uri": "http://a.example/media/image/y" }),
        &["uri", "media/image/x"],
    );
    check("image/x", json!({ "type": "text" }), &["type", "picture"]);
    check("image/x-watermark", json!({}), &["-watermark"]);
    check("image/x-fit_w2", json!({}), &["image/x-fit_w2", "\"-fit\""]);
    check("photo/x", json!({}), &["photo"]);
    check("video/x", json!({}), &["video"]);
}

#[test]
fn an_item_folder_needs_its_picture_and_knows_its_files() {
    let server = Server::empty();
    let dir = input(&server);
    let path = folder(&dir, "image/x", &json!({}));
    fs::rename(path.join("NormalHires.jpg"), path.join("Hires.jpg")).unwrap();
    assert!(ingest(&server, &path).1.contains("Hires.jpg"));
    fs::remove_file(path.join("Hires.jpg")).unwrap();
    assert!(ingest(&server, &path).1.contains("has no NormalHires.jpg"));
    fs::write(path.join("WatermarkPreview.jpg"), picture()).unwrap();
    assert!(ingest(&server, &path).1.contains("WatermarkPreview.jpg"));
    fs::remove_file(path.join("WatermarkPreview.jpg")).unwrap();
    fs::write(path.join("NormalHires.jpg"), b"no picture").unwrap();
    let (_, errors, status) = ingest(&server, &path);
    assert!(errors.contains("image/x: NormalHires.jpg"), "{errors}");
    assert_eq!(status, 1);
}

/// The baseline JPEG with another size in its frame header.
fn claiming(jpeg: &[u8], width: u16, height: u16) -> Vec<u8> {
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    let mut jpeg = jpeg.to_vec();
    jpeg[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    jpeg
}

/// A progressive picture whose last scan is repeated.
fn with_scans(count: usize) -> Vec<u8> {
    let script = "
import io, sys
from PIL import Image
out = io.BytesIO()
Image.open(io.BytesIO(sys.stdin.buffer.read())).save(out, 'JPEG', progressive=True)
sys.stdout.buffer.write(out.getvalue())
";
    let jpeg = oracle::python(script, &[], &picture());
    let last = jpeg.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).unwrap();
    let (scan, end) = (jpeg[last..jpeg.len() - 2].to_vec(), [0xFF, 0xD9]);
    [&jpeg[..jpeg.len() - 2], &scan.repeat(count), &end].concat()
}

#[test]
fn bad_files_are_named_with_the_reason_and_the_others_are_ingested() {
    let server = Server::empty();
    let dir = input(&server);
    let good = picture();
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("text.jpg", b"this is not a picture".to_vec(), "not a JPEG"),
        ("png.jpg", b"\x89PNG\r\n\x1a\n".to_vec(), "not a JPEG"),
        ("empty.jpg", Vec::new(), "is empty"),
        ("cut.jpg", good[..good.len() / 2].to_vec(), "ends"),
        ("head.jpg", good[..40].to_vec(), "ends"),
        ("huge.jpg", claiming(&good, 65_500, 65_500), "media.megapixels_max"),
        ("zero.jpg", claiming(&good, 0, 10), "0x10"),
        ("scans.jpg", with_scans(3000), "scans"),
    ];
    for (name, bytes, _) in &cases {
        fs::write(dir.join(name), bytes).unwrap();
    }
    fs::write(dir.join("good.jpg"), &good).unwrap();
    fs::write(dir.join("notes.txt"), "passed over").unwrap();
    let (said, errors, status) = ingest(&server, &dir);
    assert_eq!(status, 1);
    assert!(said.contains("1 created, 0 replaced, 8 failed; 1 other files skipped"), "{said}");
    for (name, _, reason) in &cases {
        let line = errors.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not named in {errors}"));
        assert!(line.contains(reason), "{line}: expected {reason}");
    }
    assert_eq!(document(&server, "image/good")["type"], "picture");
    assert_eq!(blobs(&server.data()), 1, "nothing of the bad ones was stored");
}

fn blobs(data: &Path) -> usize {
    let entries = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    // A killed process may leave a partial file in tmp/ until the next sweep.
    let folders = entries(data.join("originals"));
    let folders = folders.filter(|path| path.is_dir() && !path.ends_with("tmp"));
    folders.flat_map(entries).count()
}

#[test]
fn unreadable_metadata_is_a_warning() {
    let server = Server::empty();
    let path = input(&server).join("odd.jpg");
    let broken = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><unclosed".as_slice();
    fs::write(&path, with_segment(&picture(), 0xE1, broken)).unwrap();
    let (_, errors, status) = ingest(&server, &path);
    assert_eq!(status, 0, "{errors}");
    assert!(errors.contains("image/odd: warning"), "{errors}");
    assert_eq!(document(&server, "image/odd")["type"], "picture");
}

#[test]
fn unreadable_and_unsupported_files_are_named() {
    let server = Server::empty();
    let dir = input(&server);
    let missing = dir.join("missing.jpg");
    let (_, errors, status) = ingest(&server, &missing);
    assert!(status == 1 && errors.contains("missing.jpg: cannot be read"), "{errors}");
    let other = dir.join("film.mov");
    fs::write(&other, b"x").unwrap();
    let (_, errors, status) = ingest(&server, &other);
    assert!(status == 1 && errors.contains("film.mov: is not a photograph"), "{errors}");
}

#[test]
fn an_unreadable_folder_is_named_and_the_others_are_ingested() {
    let server = Server::empty();
    let dir = input(&server);
    fs::write(dir.join("good.jpg"), picture()).unwrap();
    fs::create_dir(dir.join("locked")).unwrap();
    let chmod = |mode: &str| {
        let status = Command::new("chmod").arg(mode).arg(dir.join("locked")).status();
        assert!(status.unwrap().success());
    };
    chmod("000");
    // Root can read every file unless it drops that capability.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
    command.arg(env!("CARGO_BIN_EXE_wirephoto")).arg("ingest").arg(&dir);
    let is_root = fs::metadata("/proc/self").map(|facts| {
        use std::os::unix::fs::MetadataExt;
        facts.uid() == 0
    });
    isolate_environment(&mut command, server.dir.path());
    let output = if is_root.unwrap() {
        output(command.arg("--data").arg(server.data()).current_dir(&dir))
    } else {
        server.command(&["ingest", &dir.to_string_lossy()])
    };
    chmod("700");
    let (said, errors, status) = text(&output);
    assert_eq!(status, 1, "{errors}");
    assert!(errors.contains("locked: cannot be read: Permission denied"), "{errors}");
    assert!(said.contains("1 created, 0 replaced, 1 failed"), "{said}");
}

#[test]
fn a_killed_ingest_leaves_no_partial_item() {
    let server = Server::empty();
    let dir = input(&server);
    for number in 0..60u8 {
        let jpeg = Picture::flat(200, 150, [number * 4, 90, 200]).jpeg();
        fs::write(dir.join(format!("kill-{number}.jpg")), jpeg).unwrap();
    }
    for after in [1, 7, 20] {
        let mut command = wirephoto(server.dir.path());
        command.args(["ingest", "--json", "--data"]).arg(server.data()).arg(&dir);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.take(after).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(said, after, "it was killed at work");
        let (_, _, status) = text(&server.command(&["config"]));
        assert_eq!(status, 0);
        for number in 0..60 {
            let path = format!("/media/image/kill-{number}_NormalThumbnail.jpg");
            let found = server.get(&path).status().as_u16();
            assert!(found == 200 || found == 404, "{path}: {found}");
        }
    }
    let (said, errors, status) = ingest(&server, &dir);
    assert_eq!(status, 0, "{errors}");
    assert!(said.contains("0 failed"), "{said}");
    for number in 0..60 {
        let path = format!("/media/image/kill-{number}.jpg?ak={DEMO_KEY}");
        assert_eq!(document(&server, &format!("image/kill-{number}"))["type"], "picture");
        assert_eq!(server.get(&path).status(), 401, "no key was imported");
    }
    assert_eq!(blobs(&server.data()), 60, "each original once");
}

#[test]
fn withheld_and_canceled_items_are_removed_from_the_caches_too() {
    let server = Server::empty();
    let dir = input(&server);
    for status in ["withheld", "canceled"] {
        let key = format!("image/{status}");
        let preview = format!("/media/{key}_NormalPreview.jpg");
        let path = folder(&dir, &key, &json!({}));
        ingest_ok(&server, &path);
        server.until("the item", || (server.get(&preview).status() == 200).then_some(()));
        let item = json!({ "pubstatus": status });
        fs::write(path.join("item.json"), item.to_string()).unwrap();
        ingest_ok(&server, &path);
        server.until("its end", || (server.get(&preview).status() == 404).then_some(()));
        assert_eq!(server.get(&format!("/media/{key}.json")).status(), 404);
        assert_eq!(server.get(&format!("/item/{key}")).status(), 404);
    }
}

#[test]
fn an_item_under_embargo_is_seen_by_the_provider_alone() {
    let server = Server::empty();
    let dir = input(&server);
    let item = json!({ "headline": "Later", "embargoed": "2999-01-01T00:00:00Z" });
    ingest_ok(&server, &folder(&dir, "image/later", &item));
    let item = json!({ "embargoed": "9999-12-31T23:59:59Z" });
    ingest_ok(&server, &folder(&dir, "image/never", &item));
    ingest_ok(
        &server,
        &folder(&dir, "image/past", &json!({ "embargoed": "2020-01-01T00:00:00Z" })),
    );
    let accounts = dir.join("accounts.json");
    let agreement =
        json!({ "id": 1, "organization": 1, "type": "Subscription", "superAgreement": true });
    let users = json!([
        { "id": 1, "userName": "staff", "roles": ["ROLE_PROVIDER"], "organization": 1,
          "agreements": [1], "password": "staff-password" },
        { "id": 2, "userName": "other", "organization": 1, "agreements": [1],
          "password": "other-password" },
    ]);
    let keys = json!([
        { "user": "staff", "key": "staff-key-0000-0000", "name": "a" },
        { "user": "other", "key": "other-key-0000-0000", "name": "b" },
    ]);
    let file = json!({ "organizations": [{ "id": 1 }], "agreements": [agreement], "users": users,
        "apiKeys": keys });
    fs::write(&accounts, file.to_string()).unwrap();
    let imported = server.command(&["import", &accounts.to_string_lossy()]);
    assert!(imported.status.success());
    let status = |path: &str| server.get(path).status().as_u16();
    server.until("the key", || {
        (status("/media/image/later.json?ak=staff-key-0000-0000") == 200).then_some(())
    });
    for file in ["later.jpg", "later.json"] {
        assert_eq!(status(&format!("/media/image/{file}?ak=other-key-0000-0000")), 404, "{file}");
    }
    assert_eq!(status("/media/image/later.json"), 404);
    assert_eq!(status("/media/image/later_NormalPreview.jpg"), 404);
    assert_eq!(status("/media/image/never.json"), 404, "a time beyond all times hides too");
    assert_eq!(status("/media/image/past.json"), 200);
    let early = server.get("/media/image/later_NormalPreview.jpg?ak=staff-key-0000-0000");
    assert_eq!(early.status(), 200);
    let policy = early.headers()["cache-control"].to_str().unwrap();
    assert!(policy.starts_with("private"), "{policy}");
    assert!(!server.get("/").text().unwrap().contains("Later"));
    // The pictures of pages are served with the cookie alone.
    let staff = Person::log_in(&server, "staff");
    let early = staff.get("/media/image/later_NormalPreview.jpg");
    assert_eq!(early.status(), 200);
    let policy = early.headers()["cache-control"].to_str().unwrap();
    assert!(policy.starts_with("private"), "{policy}");
    assert_ne!(staff.get("/media/image/later.jpg").status(), 200, "a cookie buys nothing");
    assert_eq!(staff.get("/media/image/none_NormalPreview.jpg").status(), 404);
    let other = Person::log_in(&server, "other");
    assert_eq!(other.get("/media/image/later_NormalPreview.jpg").status(), 404);
}

#[test]
fn a_progress_bar_is_shown_on_a_terminal_only() {
    let server = Server::empty();
    let dir = input(&server);
    for number in 0..20u8 {
        let jpeg = Picture::flat(64, 48, [number, 0, 0]).jpeg();
        fs::write(dir.join(format!("bar-{number}.jpg")), jpeg).unwrap();
    }
    let command = format!(
        "{} ingest --data {} {}",
        env!("CARGO_BIN_EXE_wirephoto"),
        server.data().display(),
        dir.display()
    );
    let mut script = Command::new("script");
    isolate_environment(&mut script, server.dir.path());
    let terminal = output(script.args(["-qec", &command, "/dev/null"]));
    let shown = String::from_utf8_lossy(&terminal.stdout).into_owned();
    assert!(shown.contains("/20 items"), "{shown}");
    let (said, errors, _) = ingest(&server, &dir);
    assert!(!said.contains("/20 items") && !errors.contains("/20 items"));
}

#[test]
fn the_demo_archive_is_ingested_completely_and_is_small() {
    let server = Server::demo();
    let size: u64 =
        walk(&checkout("media-store/demo")).iter().map(|p| p.metadata().unwrap().len()).sum();
    assert!(size < 15_000_000, "{size} bytes");
    let sources = fs::read_to_string(checkout("media-store/demo/SOURCES.md")).unwrap();
    let pictures: Vec<_> = walk(&checkout("media-store/demo"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .filter(|path| !path.to_string_lossy().contains("/video/"))
        .collect();
    assert!(pictures.len() >= 6);
    for picture in pictures {
        let stem = picture.file_stem().unwrap().to_string_lossy().into_owned();
        let parent = picture.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let id = if stem == "NormalHires" { parent } else { stem };
        assert!(sources.contains(&id), "{id} has a source");
        let document = document(&server, &format!("image/{id}"));
        assert!(document["headline"].is_string() && document["byline"].is_string(), "{id}");
        server.bytes(&format!("/media/image/{id}_NormalPreview.jpg"));
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
