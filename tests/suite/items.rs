//! Items of every media type through every ingest path (`docs/contract/items.md`, `docs/contract/ingest.md`):
//! revisions, withdrawal, the provider's API, the watched folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::common::pictures::Picture;
use crate::common::server::wirephoto;
use crate::common::{DEMO_KEY, Server, checkout, postgres};

/// Every media type with the `type` of its documents.
const TYPES: [(&str, &str); 9] = [
    ("image", "picture"),
    ("stockfoto", "picture"),
    ("video", "video"),
    ("graphic", "graphic"),
    ("text", "text"),
    ("feature", "text"),
    ("page", "composite"),
    ("planning", "planning"),
    ("calendar", "event"),
];

/// A server without items, with the accounts of the demo archive.
fn empty_server() -> Server {
    Server::with_pictures::<&str>(&[], &[])
}

/// The `Authorization` header of a provider's program, with a key that is already valid.
pub fn provider(server: &Server) -> String {
    let output = server.command(&["key", "add", "demo-admin", "--name", "ingest"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let auth = format!("ApiKey {}", String::from_utf8_lossy(&output.stdout).trim());
    let known = || server.get_with("/user/v1/user", &[("authorization", auth.as_str())]);
    server.until("the key to count", || (known().status() == 200).then_some(()));
    auth
}

fn input(server: &Server) -> PathBuf {
    let dir = server.dir.path().join("input");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// An item folder with the document alone.
fn folder(dir: &Path, key: &str, item: &Value) -> PathBuf {
    let folder = dir.join(key);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("item.json"), item.to_string()).unwrap();
    folder
}

fn lines(dir: &Path, name: &str, documents: &[Value]) -> PathBuf {
    let path = dir.join(name);
    let text: Vec<String> = documents.iter().map(Value::to_string).collect();
    fs::write(&path, text.join("\n")).unwrap();
    path
}

fn text(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}

fn ingest(server: &Server, path: &Path) -> (String, String, i32) {
    text(&server.command(&["ingest", &path.to_string_lossy()]))
}

fn ingest_ok(server: &Server, path: &Path) {
    let (_, errors, status) = ingest(server, path);
    assert_eq!(status, 0, "{errors}");
}

/// Uploads an item over HTTP.
pub fn put(server: &Server, key: &str, auth: &str, (kind, body): (&str, Vec<u8>)) -> Response {
    let request = server.client.put(format!("{}/ingest/v1/{key}", server.url));
    let request = request.header(CONTENT_TYPE, kind).header(AUTHORIZATION, auth);
    request.body(body).send().expect("answer")
}

fn put_document(server: &Server, key: &str, auth: &str, item: &Value) -> Response {
    put(server, key, auth, ("application/json", item.to_string().into_bytes()))
}

/// A multipart form; each part has a name and its bytes.
pub fn form(parts: &[(&str, &[u8])]) -> (&'static str, Vec<u8>) {
    let mut body = Vec::new();
    for (name, bytes) in parts {
        let head = format!("--xyzzy\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    body.extend(b"--xyzzy--\r\n");
    ("multipart/form-data; boundary=xyzzy", body)
}

fn find(server: &Server, key: &str) -> Option<Value> {
    let response = server.get(&format!("/media/{key}.json?ak={DEMO_KEY}"));
    (response.status() == 200).then(|| response.json().unwrap())
}

/// The item's document, once it satisfies `expected`.
fn document(server: &Server, key: &str, expected: impl Fn(&Value) -> bool) -> Value {
    server.until(&format!("{key} to be as expected"), || find(server, key).filter(&expected))
}

fn gone(server: &Server, key: &str) {
    server.until(&format!("{key} to be gone"), || find(server, key).is_none().then_some(()));
}

/// The ids in a document's history.
fn history(document: &Value) -> Vec<&str> {
    let entries = document["revisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().map(|one| one["uri"].as_str().unwrap().rsplit('/').next().unwrap()).collect()
}

/// The errors of a 400 response: location, path and code of each.
fn errors(response: Response) -> Vec<[String; 3]> {
    assert_eq!(response.status(), 400);
    let body: Value = response.json().unwrap();
    assert_eq!(body["message"], "Request validation failed", "{body}");
    let entries = body["errors"].as_array().unwrap().iter();
    let field = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    entries.map(|one| ["location", "path", "errorCode"].map(|name| field(one, name))).collect()
}

fn rich(kind: &str) -> Value {
    json!({
        "type": kind,
        "headline": "Rubrik åäö",
        "versioncreated": "2026-03-02T09:15:00+01:00",
        "date": "2026-03-03",
        "body_html5": "<p>Text &amp; mer</p>",
        "urgency": 4,
        "person": [{ "name": "A", "rel": "mentions" }],
        "product": [{ "code": "TEXT", "name": "Text" }],
        "signals": { "pagecode": "x" },
    })
}

#[test]
fn items_of_every_media_type_are_ingested_by_every_method() {
    let server = empty_server();
    let (dir, auth) = (input(&server), provider(&server));
    let jpeg = Picture::corners(64, 48).jpeg();
    let mut archive = Vec::new();
    for (media_type, kind) in TYPES {
        let path = folder(&dir.join("folders"), &format!("{media_type}/by_folder-1"), &rich(kind));
        if kind == "picture" {
            fs::write(path.join("NormalHires.jpg"), &jpeg).unwrap();
        }
        let mut line = rich(kind);
        line["uri"] = json!(format!("https://other.example:8443/media/{media_type}/byLine"));
        archive.push(line);
        let sent = put_document(&server, &format!("{media_type}/by-http"), &auth, &rich(kind));
        assert_eq!(sent.status(), 201, "{media_type}");
    }
    lines(&dir, "archive.jsonl", &archive);
    let (said, errors, status) = ingest(&server, &dir);
    assert!(status == 0 && said.contains("18 created, 0 replaced, 0 failed"), "{said} {errors}");
    for (media_type, kind) in TYPES {
        for id in ["by_folder-1", "byLine", "by-http"] {
            let key = format!("{media_type}/{id}");
            let served = document(&server, &key, |_| true);
            for (name, value) in rich(kind).as_object().unwrap() {
                assert_eq!(&served[name], value, "{key} {name}");
            }
            assert_eq!(served["uri"], format!("{}/media/{key}", server.url));
            assert!(served["versionstored"].is_string() && served["pubstatus"] == "usable");
            assert!(served.get("_tstamp").is_none());
            let coming = ["planning", "calendar"].contains(&media_type);
            let at =
                if coming { "2026-03-03T00:00:00+01:00" } else { "2026-03-02T09:15:00+01:00" };
            assert_eq!(served["datetime"], at, "{key}");
        }
    }
}

#[test]
fn schema_violations_are_refused_by_every_method_with_their_path() {
    let server = empty_server();
    let (dir, auth) = (input(&server), provider(&server));
    let item = json!({ "headline": 1, "unknown": true, "person": [{ "nam": "A" }],
        "associations": { "a000": { "type": "text" } } });
    let paths = ["/headline", "/unknown", "/person/0/nam", "/associations/a000/uri"];
    let (_, by_folder, status) = ingest(&server, &folder(&dir, "text/x", &item));
    assert_eq!(status, 1);
    let mut line = item.clone();
    line["uri"] = json!("http://a/media/text/x");
    let (_, by_line, status) = ingest(&server, &lines(&dir, "archive.jsonl", &[line]));
    assert!(status == 1 && by_line.contains("archive.jsonl:1: "), "{by_line}");
    for path in paths {
        assert!(by_folder.contains(&format!("{path}: ")), "{path} in {by_folder}");
        assert!(by_line.contains(&format!("{path}: ")), "{path} in {by_line}");
    }
    let found = errors(put_document(&server, "text/x", &auth, &item));
    for path in paths {
        let path = path[1..].replace('/', ".");
        let one = found.iter().find(|[location, at, _]| location == "body" && *at == path);
        let [.., code] = one.unwrap_or_else(|| panic!("{path} in {found:?}"));
        assert!(code.ends_with(".openapi.requestValidation"), "{code}");
    }
    assert_eq!(find(&server, "text/x"), None);
}

#[test]
fn misnamed_files_are_reported_and_never_dropped() {
    let server = Server::empty();
    let dir = input(&server);
    for (key, name) in [("graphic/g", "NormalHires.pdf"), ("video/v", "NormalPreview.mp4")] {
        fs::write(folder(&dir, key, &json!({})).join(name), "x").unwrap();
    }
    for name in ["bare.pdf", "bare.eps", "bare.mp4"] {
        fs::write(dir.join(name), "x").unwrap();
    }
    let (said, errors, status) = ingest(&server, &dir);
    assert!(status == 1 && said.contains("0 created, 0 replaced, 5 failed"), "{said}");
    for part in ["graphic/g: NormalHires.pdf", "video/v: NormalPreview.mp4"] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
    for (name, why) in
        [("bare.pdf", "not a PDF"), ("bare.eps", "not an EPS"), ("bare.mp4", "not an MP4")]
    {
        let line = errors.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(line.contains(why), "{name}: {errors}");
    }
}

#[test]
fn a_file_of_documents_is_ingested_except_its_bad_lines() {
    let server = empty_server();
    let path = input(&server).join("archive.jsonl");
    let line = |id: &str, headline: &str| {
        let uri = format!("http://a/media/text/{id}");
        json!({ "uri": uri, "headline": headline }).to_string().into_bytes()
    };
    let long = "x".repeat(5_000_000);
    let rows: Vec<Vec<u8>> = vec![
        [b"\xEF\xBB\xBF".as_slice(), &line("first", "Först")].concat(),
        b"".to_vec(),
        b"{\"uri\": ".to_vec(),
        b"{\"headline\": \"x\"}".to_vec(),
        b"{\"uri\": \"http://a/text/x\"}".to_vec(),
        br#"{"uri": "http://a/media/text/t", "type": "picture"}"#.to_vec(),
        br#"{"uri": "http://a/media/text/u", "nonsense": 1}"#.to_vec(),
        b"{\"uri\": \"http://a/media/text/v\", \"headline\": \"\xFF\"}".to_vec(),
        b"{\"uri\": \"http://a/media/text/w\0\"}".to_vec(),
        line("long", &long),
        b"[1]".to_vec(),
        b"  \r".to_vec(),
        line("x-watermark", "an id that no URL can name"),
        line("x-preset_card-2", "another one"),
        line("twice", "earlier"),
        [line("twice", "later").as_slice(), b"\r"].concat(),
        line("last", "no line end"),
    ];
    fs::write(&path, rows.join(b"\n".as_slice())).unwrap();
    let (said, errors, status) = ingest(&server, &path);
    assert_eq!(status, 1);
    assert!(said.contains("3 created, 1 replaced, 11 failed"), "{said} {errors}");
    let reasons = [
        (3, "not a JSON object"),
        (4, "has no uri"),
        (5, "/media/<mediaType>/<id>"),
        (6, "type is \"picture\""),
        (7, "/nonsense"),
        (8, "not UTF-8"),
        (9, "NUL"),
        (10, "more than the limit of 4194304"),
        (11, "not a JSON object"),
        (13, "-watermark"),
        (14, "-preset"),
    ];
    for (number, reason) in reasons {
        let start = format!("archive.jsonl:{number}: ");
        let line = errors.lines().find(|line| line.contains(&start));
        let line = line.unwrap_or_else(|| panic!("{start} in {errors}"));
        assert!(line.contains(reason), "{line}: expected {reason}");
    }
    document(&server, "text/first", |found| found["headline"] == "Först");
    document(&server, "text/twice", |found| found["headline"] == "later");
    document(&server, "text/last", |_| true);
    let output = server.command(&["ingest", "--json", &path.to_string_lossy()]);
    let (said, ..) = text(&output);
    let rows: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 13, "failures, the file, all of it: {said}");
    assert_eq!((&rows[0]["line"], &rows[0]["status"]), (&json!(3), &json!("failed")));
    assert_eq!((&rows[11]["replaced"], &rows[11]["failed"]), (&json!(4), &json!(11)));
    assert_eq!(rows[12]["replaced"], 4);
}

#[test]
fn revisions_carry_the_history_of_the_items_they_replace() {
    let server = empty_server();
    let dir = input(&server);
    let revision = |id: &str, replacing: &[&str]| {
        let mut item = json!({ "uri": format!("http://a/media/text/{id}"), "slug": id,
            "versioncreated": "2026-03-02T09:15:00+01:00" });
        if !replacing.is_empty() {
            item["replacing"] = json!(replacing);
        }
        item
    };
    let chain = [
        revision("a", &[]),
        revision("b", &["https://b.example/media/text/a"]),
        revision("x", &[]),
        revision(
            "c",
            &["http://c/media/text/x", "http://c/media/text/b", "http://c/media/text/no"],
        ),
    ];
    let archive = lines(&dir, "chain.jsonl", &chain);
    for round in ["first", "again"] {
        ingest_ok(&server, &archive);
        let c = document(&server, "text/c", |_| true);
        assert_eq!(history(&c), ["x", "a", "b", "c"], "{round}");
        assert_eq!(c["pubstatus"], "usable");
        assert_eq!(c["revisions"][1]["slug"], "a");
        assert_eq!(c["revisions"][2]["versioncreated"], "2026-03-02T09:15:00+01:00");
        assert_eq!(c["revisions"][2]["replacing"].as_array().unwrap().len(), 1);
        for (id, by) in [("a", "b"), ("b", "c"), ("x", "c")] {
            let replaced = |found: &Value| found["pubstatus"] == "replaced";
            let found = document(&server, &format!("text/{id}"), replaced);
            assert!(found["replacedby"].as_str().unwrap().ends_with(&format!("/text/{by}")));
        }
    }
    // Sending an old revision does not republish it, nor does a cycle of revisions.
    ingest_ok(&server, &lines(&dir, "old.jsonl", &[revision("a", &[])]));
    ingest_ok(&server, &lines(&dir, "self.jsonl", &[revision("s", &["http://a/media/text/s"])]));
    let circle = [
        revision("p", &["http://a/media/text/q"]),
        revision("q", &["http://a/media/text/p"]),
        revision("p", &["http://a/media/text/q"]),
    ];
    ingest_ok(&server, &lines(&dir, "circle.jsonl", &circle));
    assert_eq!(history(&document(&server, "text/p", |p| p["pubstatus"] == "usable")), ["q", "p"]);
    assert_eq!(document(&server, "text/q", |_| true)["pubstatus"], "replaced");
    assert_eq!(document(&server, "text/s", |_| true)["pubstatus"], "usable");
    assert_eq!(document(&server, "text/a", |_| true)["pubstatus"], "replaced");
}

#[test]
fn an_association_says_how_complete_it_is() {
    let server = empty_server();
    let link = json!({ "uri": "http://a/media/image/y-crop_w2264_h1273_x522_y789" });
    let embedded = json!({ "uri": "http://a/media/video/z",
        "renditions": { "r00": { "usage": "Preview", "variant": "Normal", "href": "http://a/z.mp4" } } });
    let item = json!({ "associations": { "a000": link, "a001": embedded } });
    let sent = put_document(&server, "text/x", &provider(&server), &item);
    assert_eq!(sent.status(), 201);
    let served: Value = sent.json().unwrap();
    let told = |name: &str| {
        let one = &served["associations"][name];
        [one["type"].clone(), one["representationtype"].clone()]
    };
    assert_eq!(told("a000"), [json!("picture"), json!("associated")]);
    // Its only rendition is on another host and is left out, which makes it a link too.
    assert_eq!(told("a001"), [json!("video"), json!("associated")]);
    assert_eq!(served["representationtype"], "complete");
}

#[test]
fn a_text_under_embargo_is_seen_by_the_provider_alone() {
    let server = empty_server();
    let auth = provider(&server);
    let item = json!({ "embargoed": "2999-01-01T00:00:00Z" });
    assert_eq!(put_document(&server, "text/later", &auth, &item).status(), 201);
    assert_eq!(find(&server, "text/later"), None);
    let seen = server.get_with("/media/text/later.json", &[("authorization", auth.as_str())]);
    assert_eq!(seen.status(), 200);
    let item = json!({ "embargoed": "2020-01-01T00:00:00Z" });
    assert_eq!(put_document(&server, "text/later", &auth, &item).status(), 200);
    assert!(find(&server, "text/later").is_some());
}

#[test]
fn a_withdrawn_item_is_gone_until_it_is_sent_again() {
    let server = empty_server();
    let dir = input(&server);
    for key in ["text/a", "calendar/b"] {
        ingest_ok(&server, &folder(&dir, key, &json!({ "headline": "x" })));
    }
    let before = document(&server, "text/a", |_| true);
    document(&server, "calendar/b", |_| true);
    let names = ["http://elsewhere/media/text/a", "calendar/b", "text/none", "http://a/b"];
    let command: Vec<&str> = ["withdraw"].into_iter().chain(names).collect();
    let (said, errors, status) = text(&server.command(&command));
    assert!(status == 1 && said.contains("2 withdrawn, 2 failed"), "{said}");
    assert!(errors.contains("text/none: no such item"), "{errors}");
    assert!(errors.contains("http://a/b: names no item"), "{errors}");
    gone(&server, "text/a");
    gone(&server, "calendar/b");
    let (said, _, status) = text(&server.command(&["withdraw", "--json", "text/a"]));
    assert_eq!(status, 0);
    assert!(said.lines().next().unwrap().contains(r#""item":"text/a","status":"withdrawn""#));
    ingest_ok(&server, &dir.join("text/a"));
    let back = document(&server, "text/a", |_| true);
    assert_eq!((&back["pubstatus"], &back["headline"]), (&json!("usable"), &json!("x")));
    assert_eq!(back["versioncreated"], before["versioncreated"], "no newer version");
}

#[test]
fn a_killed_ingest_of_a_file_leaves_whole_batches_and_a_second_run_completes_it() {
    const LINES: u64 = 40_000;
    const BATCH: u64 = 4096;
    let server = empty_server();
    let path = input(&server).join("archive.jsonl");
    // A process that is killed too late has ingested the whole file: another file is tried.
    let killed = |name: &str| {
        let line = |number: u64| {
            json!({ "uri": format!("http://a/media/text/{name}{number}"), "headline": "x" })
                .to_string()
        };
        let text: Vec<String> = (0..LINES).map(line).collect();
        fs::write(&path, text.join("\n")).unwrap();
        let mut command = wirephoto(server.dir.path());
        command.arg("ingest").arg(&path).arg("--data").arg(server.data());
        let mut running = command.stdout(Stdio::null()).spawn().unwrap();
        document(&server, &format!("text/{name}0"), |_| true);
        running.kill().unwrap();
        running.wait().unwrap();
        let output = server.command(&["ingest", "--json", &path.to_string_lossy()]);
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let summary: Value = serde_json::from_str(said.lines().next_back().unwrap()).unwrap();
        let [before, added] = ["replaced", "created"].map(|name| summary[name].as_u64().unwrap());
        assert_eq!(before + added, LINES);
        assert!(before > 0, "what was seen is there");
        (before < LINES).then_some(before)
    };
    let before = ["n", "o", "p", "q", "r"].into_iter().find_map(killed);
    let before = before.expect("one is killed in the middle");
    assert!(before.is_multiple_of(BATCH), "{before} is no sum of batches");
}

#[test]
fn a_file_without_a_document_is_refused_with_what_is_expected() {
    let server = empty_server();
    let auth = provider(&server);
    for kind in ["image/jpeg", "Video/MP4", "application/pdf; version=1.7"] {
        let refused = put(&server, "image/x", &auth, (kind, b"\xff\xd8\xff".to_vec()));
        assert_eq!(refused.status(), 415, "{kind}");
        let said = refused.text().unwrap();
        assert!(said.contains("multipart/form-data with the document as the part item"), "{said}");
    }
    let editor = format!("ApiKey {DEMO_KEY}");
    let refused = put(&server, "image/x", &editor, ("image/jpeg", vec![0xff]));
    assert_eq!(refused.status(), 403, "the right is checked first");
}

#[test]
fn only_the_provider_sends_and_withdraws_over_http() {
    let server = empty_server();
    let item = json!({ "headline": "x" });
    let address = format!("{}/ingest/v1/text/x", server.url);
    let nobody = server.client.put(&address).header(CONTENT_TYPE, "application/json");
    let nobody = nobody.body(item.to_string()).send().unwrap();
    assert_eq!(nobody.status(), 401);
    let editor = format!("ApiKey {DEMO_KEY}");
    let refused = put_document(&server, "text/x", &editor, &item);
    assert_eq!(refused.status(), 403);
    let body: Value = refused.json().unwrap();
    assert_eq!(body["errors"][0]["errorCode"], "provider_required");
    let delete = |key: &str, auth: &str| {
        let request = server.client.delete(format!("{}/ingest/v1/{key}", server.url));
        request.header(AUTHORIZATION, auth).send().unwrap()
    };
    assert_eq!(delete("text/x", &editor).status(), 403);
    let auth = provider(&server);
    let sent = put_document(&server, "text/x", &auth, &item);
    assert_eq!(sent.status(), 201);
    assert!(sent.headers()["location"].to_str().unwrap().ends_with("/media/text/x"));
    assert_eq!(sent.headers()["cache-control"], "no-store");
    assert_eq!(sent.json::<Value>().unwrap(), find(&server, "text/x").unwrap());
    let item = json!({ "headline": "y" });
    assert_eq!(put_document(&server, "text/x", &auth, &item).status(), 200);
    assert_eq!(find(&server, "text/x").unwrap()["headline"], "y", "seen at once");
    assert_eq!(delete("text/x", &auth).status(), 200);
    assert_eq!(find(&server, "text/x"), None, "gone at once");
    assert_eq!(delete("text/none", &auth).status(), 404);
    assert_eq!(server.get("/ingest/v1/text/x").status(), 401);
    assert_eq!(server.post_form("/ingest/v1/text/x", &[]).status(), 405);
}

#[test]
fn an_upload_whose_item_was_removed_before_the_answer_is_not_found() {
    let server = empty_server();
    // The test writes to SQLite's file.
    if postgres::url_of(server.dir.path()).is_some() {
        return;
    }
    let auth = provider(&server);
    let database = rusqlite::Connection::open(server.data().join("wirephoto.db")).unwrap();
    let removed = "CREATE TRIGGER removed AFTER INSERT ON items WHEN new.id = 'removed'
         BEGIN DELETE FROM items WHERE item_id = new.item_id; END";
    database.execute_batch(removed).unwrap();
    let item = json!({ "headline": "x" });
    assert_eq!(put_document(&server, "text/removed", &auth, &item).status(), 404);
    assert_eq!(put_document(&server, "text/x", &auth, &item).status(), 201);
    // A withdrawn item has its document still.
    let withdrawn = json!({ "headline": "x", "pubstatus": "canceled" });
    let answer = put_document(&server, "text/x", &auth, &withdrawn);
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json::<Value>().unwrap()["pubstatus"], "canceled");
}

#[test]
fn a_bad_upload_is_answered_with_every_error() {
    let server = empty_server();
    let auth = provider(&server);
    let item = json!({}).to_string().into_bytes();
    let jpeg = Picture::corners(64, 48).jpeg();
    let places = |key: &str, body: (&str, Vec<u8>)| {
        let found = errors(put(&server, key, &auth, body));
        found
            .into_iter()
            .map(|[location, path, _]| format!("{location} {path}"))
            .collect::<Vec<_>>()
    };
    let json = |text: &str| ("application/json", text.as_bytes().to_vec());
    assert_eq!(places("photo/x-watermark", json("{}")), ["path mediaType", "path id"]);
    assert_eq!(places("text/x-fill_w1_h1", json("{}")), ["path id"]);
    assert_eq!(places("text/x", json("{")), ["body "]);
    assert_eq!(places("text/x", json("{\"type\": \"picture\"}")), ["body type"]);
    let foreign = json("{\"uri\": \"http://a/media/text/y\"}");
    assert_eq!(places("text/x", foreign), ["body uri"]);
    assert_eq!(places("text/x", ("text/plain", b"x".to_vec())), ["body "]);
    assert_eq!(places("text/x", ("multipart/form-data", item.clone())), ["headers Content-Type"]);
    let cut = form(&[("item", &item)]).1[..60].to_vec();
    assert_eq!(places("text/x", ("multipart/form-data; boundary=xyzzy", cut)), ["body "]);
    let odd: &[(&str, &[u8])] =
        &[("Odd.jpg", b"x"), ("../../etc", b"x"), ("NormalHires.tif", b"x")];
    let expected = ["body item", "body Odd.jpg", "body ../../etc", "body NormalHires.tif"];
    assert_eq!(places("image/x", form(odd)), expected);
    let twice = form(&[("item", &item), ("NormalHires.jpg", &jpeg), ("NormalHires.jpg", &jpeg)]);
    assert_eq!(places("image/x", twice), ["body NormalHires.jpg"]);
    let broken = form(&[("item", &item), ("NormalHires.jpg", b"no picture")]);
    assert_eq!(places("image/x", broken), ["body NormalHires.jpg"]);
    let small = form(&[("item", &item), ("NormalPreview.jpg", &jpeg)]);
    assert_eq!(places("image/x", small), ["body NormalHires.jpg"]);
    let of_text = form(&[("item", &item), ("NormalHires.jpg", &jpeg)]);
    assert_eq!(places("text/x", of_text), ["body NormalHires.jpg"]);
    assert_eq!((find(&server, "image/x"), find(&server, "text/x")), (None, None));
    let left = fs::read_dir(server.data().join("uploads")).unwrap().count();
    assert_eq!(left, 0, "nothing of it stays");
}

#[test]
fn a_photograph_uploaded_over_http_has_its_renditions_at_once() {
    let server = empty_server();
    let auth = provider(&server);
    let jpeg = Picture::corners(320, 240).jpeg();
    let item = json!({ "headline": "First" }).to_string().into_bytes();
    let sent =
        put(&server, "image/h", &auth, form(&[("NormalHires.jpg", &jpeg), ("item", &item)]));
    assert_eq!(sent.status(), 201);
    let served: Value = sent.json().unwrap();
    assert_eq!(served["renditions"]["r00"]["width"], 320);
    let preview = server.bytes("/media/image/h_NormalPreview.jpg");
    assert_eq!(Picture::decode(&preview).size(), (320, 240));
    // The document alone: the item keeps its picture.
    let again = put_document(&server, "image/h", &auth, &json!({ "headline": "Second" }));
    assert_eq!(again.status(), 200);
    let served: Value = again.json().unwrap();
    assert_eq!(
        (&served["headline"], &served["renditions"]["r00"]["width"]),
        (&json!("Second"), &json!(320))
    );
    server.bytes("/media/image/h_NormalPreview.jpg");
}

#[test]
fn an_upload_beyond_a_limit_is_refused_with_an_error_response() {
    let settings = ["media.file_bytes_max=100000", "media.megapixels_max=1"];
    let server = Server::with_pictures::<&str>(&settings, &[]);
    let auth = provider(&server);
    let status = |key: &str, body: (&str, Vec<u8>)| put(&server, key, &auth, body).status();
    let long = json!({ "headline": "x".repeat(4_500_000) }).to_string().into_bytes();
    assert_eq!(status("text/x", ("application/json", long.clone())), 413);
    assert_eq!(status("text/x", form(&[("item", &long)])), 413);
    let item = b"{}".as_slice();
    assert_eq!(
        status("image/x", form(&[("item", item), ("NormalHires.jpg", &[0; 100_001])])),
        413
    );
    let wide = Picture::flat(1200, 1000, [9, 9, 9]).jpeg();
    assert!(wide.len() < 100_000);
    assert_eq!(status("image/x", form(&[("item", item), ("NormalHires.jpg", &wide)])), 413);
    let many: Vec<(&str, &[u8])> = (0..201).map(|_| ("item", item)).collect();
    assert_eq!(status("text/x", form(&many)), 413);
    assert_eq!(status("text/x", form(&[("item", item)])), 201, "the server goes on");
}

#[test]
fn a_watched_folder_ingests_finished_files_and_moves_them_away() {
    let dir = tempfile::tempdir().unwrap();
    let watched = dir.path().join("in");
    fs::create_dir(&watched).unwrap();
    let jpeg = Picture::corners(64, 48).jpeg();
    fs::write(watched.join("photo.jpg"), &jpeg).unwrap();
    fs::write(watched.join("later.jpg.part"), &jpeg).unwrap();
    fs::write(watched.join("bad.jpg"), "no picture").unwrap();
    fs::write(watched.join("notes.txt"), "x").unwrap();
    folder(&watched, "image/folder", &json!({ "headline": "f" }));
    fs::write(watched.join("image/folder/NormalHires.jpg"), &jpeg).unwrap();
    folder(&watched, "calendar/odd", &json!({ "odd": 1, "headline": 2 }));
    fs::create_dir_all(watched.join("image/unfinished")).unwrap();
    fs::write(watched.join("image/unfinished/NormalHires.jpg"), &jpeg).unwrap();
    let good = json!({ "uri": "http://a/media/image/line" });
    lines(&watched, "good.jsonl", std::slice::from_ref(&good));
    lines(&watched, "half.jsonl", &[json!({ "uri": "http://a/media/image/half" }), json!({})]);
    let settings =
        [format!("ingest.watch={}", watched.display()), "ingest.watch_interval_ms=20".to_owned()];
    let server = Server::start(dir, &settings.each_ref().map(String::as_str));
    let there = |name: &str| {
        let path = watched.join(name);
        server.until(&format!("{name} to be there"), || path.exists().then_some(()));
    };
    for name in ["photo.jpg", "image/folder/NormalHires.jpg", "good.jsonl"] {
        there(&format!("done/{name}"));
        assert!(!watched.join(name).exists(), "{name}");
    }
    for key in ["photo", "folder", "line", "half"] {
        let path = format!("/media/image/{key}.json");
        server.until(key, || (server.get(&path).status() == 200).then_some(()));
    }
    let failed = |name: &str, problems: &[&str]| {
        there(&format!("failed/{name}"));
        let note = fs::read_to_string(watched.join(format!("failed/{name}.error.json"))).unwrap();
        let note: Value = serde_json::from_str(&note).unwrap();
        assert_eq!(note["file"], name);
        assert!(note["error"].is_string() && note["problems"].is_array());
        for part in problems {
            assert!(note["problems"].to_string().contains(part), "{part} in {note}");
        }
    };
    failed("bad.jpg", &["not a JPEG"]);
    failed("notes.txt", &["is not a photograph"]);
    failed("calendar/odd", &["/odd", "/headline"]);
    failed("half.jsonl", &["\"line\":2", "no uri"]);
    assert!(watched.join("later.jpg.part").exists() && watched.join("image/unfinished").exists());
    assert_eq!(server.get("/media/image/unfinished.json").status(), 404);
    fs::rename(watched.join("later.jpg.part"), watched.join("photo.jpg")).unwrap();
    there("done/photo-2.jpg");
    assert!(server.stop().0.success(), "it stops with the service");
}

#[test]
fn a_stop_interrupts_a_file_of_invalid_lines_which_stays_in_the_watched_folder() {
    // Enough lines that the stop comes long before their end.
    const INVALID_LINES: usize = 5_000_000;
    // Outside the server's folder, which is removed with the server.
    let watched = tempfile::tempdir().unwrap();
    let path = watched.path().join("bad.jsonl");
    let first = json!({ "uri": "http://a/media/image/first" });
    fs::write(&path, format!("{first}\n{}", "x\n".repeat(INVALID_LINES))).unwrap();
    let settings = [
        format!("ingest.watch={}", watched.path().display()),
        "ingest.watch_interval_ms=20".to_owned(),
    ];
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir, &settings.each_ref().map(String::as_str));
    let is_stored = || (server.get("/media/image/first.json").status() == 200).then_some(());
    server.until("the valid line to be stored", is_stored);
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    assert!(path.exists(), "it is ingested again after the next start: {log}");
}

#[test]
fn the_demo_archive_has_texts_plans_and_events() {
    let server = Server::demo();
    let sources = fs::read_to_string(checkout("media-store/demo/SOURCES.md")).unwrap();
    let mut count = 0;
    for media_type in ["text", "feature", "planning", "calendar"] {
        for entry in fs::read_dir(checkout("media-store/demo").join(media_type)).unwrap() {
            let id = entry.unwrap().file_name().into_string().unwrap();
            let key = format!("{media_type}/{id}");
            assert!(sources.contains(&key), "{key} has a source");
            assert!(find(&server, &key).unwrap()["headline"].is_string(), "{key}");
            count += 1;
        }
    }
    assert!(count >= 6);
}
