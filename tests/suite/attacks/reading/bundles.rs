//! Other users' collections: their documents, their archive, and what the archive reveals about the items that it
//! leaves out.

use reqwest::blocking::Response;
use serde_json::{Value, json};

use super::scene::{self, Caller};
use crate::common::{Server, oracle};

const ROOT: &str = "/collection/v1/collection";

fn send(server: &Server, caller: &Caller, path: &str, body: &Value) -> Response {
    let request = server.client.post(format!("{}{ROOT}{path}", server.url));
    let request = request.header("content-type", "application/json");
    let line = caller.authorization.as_deref().unwrap();
    request.header("authorization", line).body(body.to_string()).send().unwrap()
}

/// A public collection of the provider with `keys`.
fn collection(server: &Server, keys: &[&str]) -> String {
    let provider = Caller::key("provider");
    let made = send(server, &provider, "", &json!({ "name": "all", "public": true }));
    let id = made.json::<Value>().unwrap()["id"].as_str().unwrap().to_owned();
    let uri = |key: &&str| json!({ "uri": format!("{}/media/{key}", server.url) });
    let items: Vec<Value> = keys.iter().map(uri).collect();
    let added = send(server, &provider, &format!("/{id}/items"), &json!(items));
    assert_eq!(added.status(), 200);
    id
}

/// The text `left-out.txt` of an archive.
fn left_out(zip: &[u8]) -> String {
    let script = "import io,json,sys,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        json.dump([z.namelist(),z.read('left-out.txt').decode()],sys.stdout)";
    let found: (Vec<String>, String) =
        serde_json::from_slice(&oracle::python(script, &[], zip)).unwrap();
    found.1
}

#[test]
fn the_archive_of_a_collection_does_not_distinguish_an_embargo_from_a_missing_agreement() {
    let server = scene::server(&[]);
    let hidden =
        ["image/embargoed", "image/s", "text/s", "text/commissioned", "planning/s", "stockfoto/s"];
    let mut all = vec!["image/c"];
    all.extend(hidden);
    let id = collection(&server, &all);
    let buyer = Caller::key("buyer");
    let answer = buyer.get(&server, &format!("{ROOT}/{id}/zip"));
    assert_eq!(answer.status(), 200);
    let said = left_out(&answer.bytes().unwrap());
    let reasons: Vec<String> =
        said.lines().map(|line| line.rsplit_once(": ").expect("a reason").1.to_owned()).collect();
    assert_eq!(reasons, vec!["It is not available to you".to_owned(); hidden.len()]);
    // It contains nothing that can be downloaded: the refusal reveals no more.
    let id = collection(&server, &hidden);
    let answer = buyer.get(&server, &format!("{ROOT}/{id}/zip"));
    assert_eq!(answer.status(), 403);
    let refusal: Value = answer.json().unwrap();
    let said = refusal["message"].as_str().unwrap();
    assert_eq!(said.matches("It is not available to you").count(), hidden.len(), "{said}");
}

#[test]
fn a_collection_shows_readers_only_the_documents_that_they_can_find() {
    let server = scene::server(&[]);
    let everything = scene::items();
    let keys: Vec<&str> = everything.iter().map(|(key, _)| key.as_str()).collect();
    let id = collection(&server, &keys);
    for caller in ["none", "buyer", "prepaid", "direct", "chief", "provider", "service"] {
        let caller = Caller::key(caller);
        let mut found = std::collections::BTreeSet::new();
        for media_type in ["_all", "stockfoto"] {
            for status in ["usable", "replaced", "commissioned"] {
                let path = format!("/content/v1/{media_type}/search?s=1000&pubstatus={status}");
                let answer: Value = caller.get(&server, &path).json().unwrap();
                let hits = answer["hits"].as_array().cloned().unwrap_or_default();
                found.extend(hits.iter().map(|hit| hit["uri"].as_str().unwrap().to_owned()));
            }
        }
        let answer: Value = caller.get(&server, &format!("{ROOT}/{id}")).json().unwrap();
        let items = answer["items"].as_array().unwrap().iter();
        let items = items.map(|item| item["uri"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found, items, "{}", caller.name);
        // The owner's list stays complete; it has the item URIs alone.
        let content = answer["content"].as_array().unwrap().len();
        assert_eq!(content, keys.len() - 2, "{}: all but what was withheld", caller.name);
    }
}

#[test]
fn the_archive_of_a_text_holds_no_preview_that_its_reader_may_not_see() {
    let server = scene::server(&[]);
    let names = |caller: &Caller| {
        let zip = caller.get(&server, "/media/text/c.zip");
        assert_eq!(zip.status(), 200, "{}", caller.name);
        let script = "import io,json,sys,zipfile\n\
            json.dump(zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())).namelist(),sys.stdout)";
        let names = oracle::python(script, &[], &zip.bytes().unwrap());
        let names: Vec<String> = serde_json::from_slice(&names).unwrap();
        names.into_iter().filter(|name| name.ends_with(".jpg")).collect::<Vec<_>>()
    };
    // `a002` is a graphic that no agreement covers, `a003` is commissioned.
    let expected =
        ["c_a000_NormalHires.jpg", "c_a001_NormalPreview.jpg", "c_a004_NormalPreview.jpg"];
    assert_eq!(names(&Caller::key("buyer")), expected);
    let of_prepaid =
        ["c_a000_NormalPreview.jpg", "c_a001_NormalPreview.jpg", "c_a004_NormalPreview.jpg"];
    assert_eq!(names(&Caller::key("prepaid")), of_prepaid);
}
