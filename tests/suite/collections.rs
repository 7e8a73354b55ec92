//! Collections (`docs/contract/collections.md`): who sees and changes them, their order, the items that they lose,
//! and their archive.

use std::{fs, process::Command};

use api::collections::{
    AddCollectionItems, Collection, CollectionBody, CollectionChange, CollectionItems,
    CollectionWithItems, CreateCollection, DeleteCollection, ListCollections, ListedCollection,
    LoadCollection, RemoveCollectionItems, UpdateCollection,
};
use reqwest::{
    blocking::Response,
    header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG},
};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal};
use crate::common::{DEMO_KEY, Server, news, oracle};

const ROOT: &str = "/collection/v1/collection";
/// The key of `demo-buyer` in `media-store/accounts.json`.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
const DAY: &str = "2026-01-05T10:00:00Z";

/// A caller of the operations on collections.
struct Caller<'a>(ApiCaller<'a>);

impl<'a> Caller<'a> {
    fn editor(server: &'a Server) -> Self {
        Self(ApiCaller::key(server, DEMO_KEY))
    }

    /// The demo user whose agreements cover `FOTO` alone.
    fn buyer(server: &'a Server) -> Self {
        Self(ApiCaller::key(server, BUYER_KEY))
    }

    /// Sends a request that no declaration describes.
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.0.request(method.parse().unwrap(), &format!("{ROOT}{path}"), body)
    }

    /// The summary of the refusal of such a request.
    fn refused(&self, method: &str, path: &str, body: Option<&Value>) -> String {
        self.0.refused(method.parse().unwrap(), &format!("{ROOT}{path}"), body).summary()
    }

    /// The JSON of a successful call.
    #[track_caller]
    fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let response = self.send(method, path, body);
        assert_eq!(response.status(), 200, "{method} {path}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        response.json().unwrap()
    }

    /// The plain string of a successful call.
    #[track_caller]
    fn done(&self, method: &str, path: &str, body: Option<&Value>) {
        assert_eq!(text(self.send(method, path, body)), (200, "OK".to_owned()), "{method} {path}");
    }

    fn list(&self) -> Vec<ListedCollection> {
        self.0.ask(&ListCollections::default()).unwrap()
    }

    fn create(&self, name: &str, public: bool) -> String {
        let body = CollectionBody { name: name.to_owned(), public };
        self.0.send(&CreateCollection {}, &body).unwrap().head.id.to_string()
    }

    fn load(&self, id: &str) -> Result<CollectionWithItems, Refusal> {
        self.0.ask(&LoadCollection { id: id.to_owned() })
    }

    fn update(&self, id: &str, change: &CollectionChange) -> Result<Collection, Refusal> {
        self.0.send(&UpdateCollection { id: id.to_owned() }, change)
    }

    fn delete(&self, id: &str) -> Result<(), Refusal> {
        self.0.ask(&DeleteCollection { id: id.to_owned() })
    }

    fn add(&self, id: &str, keys: &[&str]) -> Result<(), Refusal> {
        self.0.send(&AddCollectionItems { id: id.to_owned() }, &self.items(keys))
    }

    fn remove(&self, id: &str, keys: &[&str]) -> Result<(), Refusal> {
        self.0.send(&RemoveCollectionItems { id: id.to_owned() }, &self.items(keys))
    }

    fn items(&self, keys: &[&str]) -> CollectionItems {
        CollectionItems::from_uris(self.uris(keys).iter().map(String::as_str))
    }

    fn uris(&self, keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| self.uri(key)).collect()
    }

    fn uri(&self, key: &str) -> String {
        format!("{}/media/{key}", self.0.server.url)
    }

    fn key(&self, uri: &str) -> String {
        uri.strip_prefix(&self.uri("")).expect("our address").to_owned()
    }

    /// The `content` of a collection, and the items whose documents are included.
    fn content(&self, id: &str) -> (Vec<String>, Vec<String>) {
        let found = self.load(id).unwrap();
        let items = found.items.iter().map(|item| self.key(item["uri"].as_str().unwrap()));
        (found.collection.content.iter().map(|uri| self.key(uri)).collect(), items.collect())
    }

    /// The items that a collection lost, each with its headline and its description.
    fn removed(&self, id: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let removed = self.load(id).unwrap().collection.removed_content.unwrap().into_iter();
        removed.map(|lost| (self.key(&lost.uri), lost.headline, lost.description_text)).collect()
    }
}

/// Checks that a call found no collection.
#[track_caller]
fn check_missing<T: std::fmt::Debug>(outcome: Result<T, Refusal>) {
    let refusal = outcome.unwrap_err();
    assert_eq!((refusal.status, refusal.message.as_str()), (404, "No such collection"));
    assert!(!refusal.is_json, "the message alone");
}

fn renamed(name: &str) -> CollectionChange {
    CollectionChange { name: Some(name.to_owned()), ..CollectionChange::default() }
}

fn ordered_by(content: Vec<String>) -> CollectionChange {
    CollectionChange { content: Some(content), ..CollectionChange::default() }
}

/// Status and body of an answer in plain text.
fn text(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    assert!(kind.starts_with("text/plain"), "{status} {kind}");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    (status, response.text().unwrap())
}

fn foto(headline: &str) -> Value {
    news::document(headline, &["FOTO"], DAY)
}

/// Photographs `a` to `d` of the product `FOTO`, one of another product, and a text with the key `a`.
fn server() -> Server {
    let other = news::document("Other", &["OTHER"], DAY);
    let items = [
        ("image/a", foto("Harbour")),
        ("image/b", foto("Bridge")),
        ("image/c", foto("Crane")),
        ("image/d", foto("Dock")),
        ("image/other", other),
        ("text/a", foto("Article")),
        ("planning/p", foto("Plan")),
    ];
    let items: Vec<(&str, Value)> = items.into();
    news::server(&[], &items)
}

#[test]
fn a_collection_is_created_filled_reordered_and_deleted() {
    let server = server();
    let editor = Caller::editor(&server);
    assert_eq!(editor.json("GET", "", None), json!([]));
    let made = editor.json("POST", "", Some(&json!({ "name": "Sport på fredag" })));
    let id = made["id"].as_str().unwrap().to_owned();
    let expected = json!({
        "id": id, "name": "Sport på fredag", "owner": "demo-editor", "public": false,
        "created": made["created"], "accessed": made["created"], "content": [],
        "removedContent": [],
    });
    assert_eq!(made, expected);
    // Any host, a crop, a duplicate, a missing item: each existing item is added once.
    let mixed = json!([
        { "uri": editor.uri("image/b"), "extra": 1 },
        { "uri": "https://elsewhere.example/x/media/image/a-crop_w10_h10_x0_y0" },
        { "uri": editor.uri("image/b") },
        { "uri": editor.uri("image/nobody") },
        { "uri": "urn:example:nothing" },
        { "uri": editor.uri("text/a") },
    ]);
    editor.done("POST", &format!("/{id}/items"), Some(&mixed));
    editor.add(&id, &["image/c", "image/a"]).unwrap();
    let order = ["image/b", "image/a", "text/a", "image/c"].map(str::to_owned).to_vec();
    assert_eq!(editor.content(&id), (order.clone(), order));
    // Documents are the same as in search results.
    let found = editor.load(&id).unwrap();
    let auth = [("authorization", editor.0.authorization.as_str())];
    let searched = server.get_with("/content/v1/image/search?q=headline:bridge", &auth);
    let searched: Value = searched.json().unwrap();
    assert_eq!(found.items[0], searched["hits"][0]);
    assert_eq!(found.collection.head.owner, "demo-editor");
    let uris = editor.uris(&["image/c", "text/x", "text/a"]);
    let change = CollectionChange { public: Some(true), content: Some(uris), ..renamed("Sport") };
    let changed = editor.update(&id, &change).unwrap().head;
    assert_eq!((changed.name.as_str(), changed.public), ("Sport", true));
    assert!(changed.modified.is_some());
    let order = ["image/c", "text/a", "image/b", "image/a"].map(str::to_owned).to_vec();
    assert_eq!(editor.content(&id).0, order);
    // A PUT of the unchanged collection changes nothing; `public` keeps its value unless it is named.
    let place = format!("/{id}");
    let whole = editor.json("GET", &place, None);
    let unchanged = editor.json("PUT", &place, Some(&whole));
    assert_eq!((&unchanged["modified"], unchanged.get("items")), (&whole["modified"], None));
    let named = editor.update(&id, &renamed("Sport")).unwrap().head;
    assert_eq!((named.public, named.modified), (true, changed.modified));
    // A list alone changes the order; an empty list changes nothing.
    let nothing = editor.update(&id, &ordered_by(Vec::new())).unwrap().head;
    assert_eq!(nothing.modified, changed.modified);
    let order = ordered_by(editor.uris(&["image/b"]));
    let ordered = editor.update(&id, &order).unwrap().head;
    assert_eq!((ordered.name.as_str(), ordered.public), ("Sport", true));
    let order = ["image/b", "image/c", "text/a", "image/a"].map(str::to_owned).to_vec();
    assert_eq!(editor.content(&id).0, order);
    let gone = ["image/b", "image/nobody", "image/c"];
    editor.remove(&id, &gone).unwrap();
    assert_eq!(editor.content(&id).0, ["text/a", "image/a"]);
    assert_eq!(editor.list().len(), 1);
    editor.done("DELETE", &place, None);
    assert_eq!(editor.json("GET", "", None), json!([]));
    check_missing(editor.load(&id));
    check_missing(editor.delete(&id));
    check_missing(editor.remove(&id, &gone));
}

#[test]
fn a_copied_address_of_a_rendition_or_a_page_names_its_item() {
    let server = server();
    let editor = Caller::editor(&server);
    let id = editor.create("One", false);
    let copied = [
        editor.uri("image/b.jpg"),
        editor.uri("image/a_NormalPreview.jpg?x=1"),
        format!("{}/item/image/c", server.url),
        editor.uri("text/a/a000_NormalPreview.jpg"),
        format!("{}/item/image/c/edit", server.url),
        format!("{}/docs", server.url),
    ];
    let named = CollectionItems::from_uris(copied.iter().map(String::as_str));
    editor.0.send(&AddCollectionItems { id: id.clone() }, &named).unwrap();
    assert_eq!(editor.content(&id).0, ["image/b", "image/a", "image/c", "text/a"]);
    let copied = [editor.uri("image/a_NormalThumbnail.webp")];
    let named = CollectionItems::from_uris(copied.iter().map(String::as_str));
    editor.0.send(&RemoveCollectionItems { id: id.clone() }, &named).unwrap();
    assert_eq!(editor.content(&id).0, ["image/b", "image/c", "text/a"]);
}

#[test]
fn a_bare_list_omits_the_content_of_collections() {
    let server = server();
    let editor = Caller::editor(&server);
    let first = editor.create("One", true);
    editor.create("Two", false);
    editor.add(&first, &["image/a", "image/b"]).unwrap();
    let full = editor.json("GET", "", None);
    assert_eq!(full, editor.json("GET", "?layout=full", None));
    assert_eq!(full[0]["content"], json!([editor.uri("image/a"), editor.uri("image/b")]));
    let mut expected = full;
    for one in expected.as_array_mut().unwrap() {
        let one = one.as_object_mut().unwrap();
        assert!(one.remove("content").is_some() && one.remove("removedContent").is_some());
    }
    assert_eq!(editor.json("GET", "?layout=bare", None), expected);
    assert_eq!(editor.refused("GET", "?layout=short", None), "400 enum query layout");
}

#[test]
fn others_read_the_permitted_part_of_a_public_collection_and_cannot_change_it() {
    let server = server();
    let (editor, buyer) = (Caller::editor(&server), Caller::buyer(&server));
    let id = editor.create("One", false);
    editor.add(&id, &["image/a", "image/other", "image/b"]).unwrap();
    for public in [false, true] {
        let change = CollectionChange { public: Some(public), ..renamed("One") };
        editor.update(&id, &change).unwrap();
        check_missing(buyer.update(&id, &renamed("Mine")));
        check_missing(buyer.add(&id, &["image/a"]));
        check_missing(buyer.remove(&id, &["image/a"]));
        check_missing(buyer.delete(&id));
        if !public {
            check_missing(buyer.load(&id));
            let zip = buyer.send("GET", &format!("/{id}/zip"), None);
            assert_eq!(text(zip), (404, "No such collection".to_owned()));
        }
    }
    // The buyer's agreements cover FOTO alone: the other items remain in `content`.
    let all = ["image/a", "image/other", "image/b"].map(str::to_owned).to_vec();
    let seen = ["image/a", "image/b"].map(str::to_owned).to_vec();
    assert_eq!(buyer.content(&id), (all.clone(), seen));
    assert_eq!(editor.content(&id), (all.clone(), all));
    assert!(buyer.list().is_empty());
    // An item that the caller does not see is not added either.
    let own = buyer.create("Own", false);
    buyer.add(&own, &["image/other"]).unwrap();
    buyer.add(&own, &["image/other", "image/b"]).unwrap();
    assert_eq!(buyer.content(&own).0, ["image/b"]);
    let (place, items) = (format!("/{id}"), format!("/{id}/items"));
    for (method, path) in [("GET", ""), ("POST", ""), ("GET", &place), ("POST", &items)] {
        let request =
            server.client.request(method.parse().unwrap(), format!("{}{ROOT}{path}", server.url));
        assert_eq!(request.send().unwrap().status(), 401, "{method} {path}");
    }
    for id in ["x", "00000000-0000-4000-8000-000000000000", "a\0b"] {
        check_missing(editor.load(id));
        check_missing(editor.delete(id));
    }
}

#[test]
fn every_mistake_in_a_body_is_named() {
    let server = server();
    let editor = Caller::editor(&server);
    let id = editor.create("One", false);
    let (place, items) = (format!("/{id}"), format!("/{id}/items"));
    let long = "x".repeat(201);
    let many: Vec<Value> = (0..1001).map(|_| json!({ "uri": "urn:a:b" })).collect();
    let order: Vec<String> = (0..1001).map(|_| "urn:a:b".to_owned()).collect();
    let cases = [
        ("POST", "", json!({}), "required body name"),
        ("POST", "", json!([]), "type body"),
        ("POST", "", json!({ "name": "" }), "minimum body name"),
        ("POST", "", json!({ "name": long }), "maximum body name"),
        (
            "POST",
            "",
            json!({ "name": "a\nb", "public": 1 }),
            "pattern body name, type body public",
        ),
        ("PUT", &place, json!({ "name": null }), "type body name"),
        ("PUT", &place, json!({ "public": null }), "type body public, required body name"),
        ("PUT", &place, json!({ "name": "a", "content": "b" }), "type body content"),
        ("PUT", &place, json!({ "name": "", "content": [] }), "minimum body name"),
        ("PUT", &place, json!({ "name": null, "content": [] }), "type body name"),
        (
            "PUT",
            &place,
            json!({ "name": "a", "content": ["urn:a:b", 1, "x y"] }),
            "type body content.1, format body content.2",
        ),
        ("PUT", &place, json!({ "name": "a", "content": order }), "maximum body content"),
        ("POST", &items, json!([]), "minimum body"),
        ("POST", &items, json!({}), "type body"),
        (
            "POST",
            &items,
            json!([{ "uri": "/media/image/a" }, { "uri": 1 }, "x", {}]),
            "format body 0.uri, type body 1.uri, type body 2, required body 3.uri",
        ),
        ("DELETE", &items, Value::Array(many), "maximum body"),
    ];
    for (method, path, body, expected) in cases {
        let found = editor.refused(method, path, Some(&body));
        assert_eq!(found, format!("400 {expected}"), "{method} {path} {body}");
    }
    assert!(editor.refused("POST", &items, None).starts_with("400"));
    let found = editor.load(&id).unwrap().collection;
    assert_eq!((found.head.name.as_str(), found.content.len()), ("One", 0));
    assert_eq!(found.head.modified, None, "nothing was changed");
}

#[test]
fn withdrawn_and_canceled_items_are_recorded_and_expired_ones_stay() {
    let server = server();
    let editor = Caller::editor(&server);
    let id = editor.create("One", false);
    editor.add(&id, &["image/a", "image/b", "image/c", "image/d"]).unwrap();
    let output = server.command(&["withdraw", "image/b"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(editor.content(&id).0, ["image/a", "image/c", "image/d"]);
    let mut canceled = foto("Crane again");
    canceled["pubstatus"] = json!("canceled");
    canceled["description_text"] = json!("It is gone");
    canceled["versioncreated"] = json!("2026-01-06T10:00:00Z");
    news::ingest(&server, "image/c", &canceled);
    assert_eq!(editor.content(&id).0, ["image/a", "image/d"]);
    let text = |text: &str| Some(text.to_owned());
    let bridge = ("image/b".to_owned(), text("Bridge"), None);
    let crane = ("image/c".to_owned(), text("Crane again"), text("It is gone"));
    assert_eq!(editor.removed(&id), [bridge.clone(), crane.clone()]);
    let raw = editor.json("GET", &format!("/{id}"), None);
    for lost in raw["removedContent"].as_array().unwrap() {
        assert!(lost["timestamp"].as_str().unwrap().ends_with('Z'), "{raw}");
    }
    // Other users see the remaining items, and nothing of the removed ones.
    editor.update(&id, &CollectionChange { public: Some(true), ..renamed("One") }).unwrap();
    let buyer = Caller::buyer(&server);
    let read = buyer.json("GET", &format!("/{id}"), None);
    assert_eq!(read["content"].as_array().unwrap().len(), 2);
    assert!(read.get("removedContent").is_none(), "{read}");
    assert!(!read.to_string().contains("It is gone"), "{read}");
    // An item that is published again does not return to the collection.
    news::ingest(&server, "image/b", &foto("Bridge"));
    assert_eq!(editor.content(&id).0, ["image/a", "image/d"]);
    let mut expired = foto("Expired dock");
    expired["expires"] = json!("2026-01-07T10:00:00Z");
    expired["versioncreated"] = json!("2026-01-06T10:00:00Z");
    news::ingest(&server, "image/d", &expired);
    let both = vec!["image/a".to_owned(), "image/d".to_owned()];
    assert_eq!(editor.content(&id), (both.clone(), both));
    assert_eq!(editor.removed(&id), [bridge, crane]);
    server.until("a search to find the item that has expired", || {
        let auth = [("authorization", editor.0.authorization.as_str())];
        let found = server.get_with("/content/v1/image/search?q=headline:expired", &auth);
        let found: Value = found.json().unwrap();
        (found["total"] == 1).then_some(())
    });
}

const KEY: &str = "collector-key-0000-0000-00000001";

/// A user with three prepaid downloads of `FOTO` and an agreement under which orders are placed.
fn collector(server: &Server) -> Caller<'_> {
    let accounts = json!({
        "organizations": [{"id": 70, "name": "Collectors", "address": {}, "phoneNumber": {}}],
        "products": [{"id": 10, "code": "FOTO", "name": "Photo"}],
        "agreements": [
            {
                "id": 701, "organization": 70, "type": "Prepaid", "superAgreement": false,
                "products": ["FOTO"], "prepaids": {"total": 3, "remaining": 3},
            },
            {
                "id": 702, "organization": 70, "type": "Direct", "superAgreement": false,
                "products": ["FOTO"],
            },
        ],
        "licenses": [],
        "users": [{
            "id": 700, "organization": 70, "userName": "collector", "firstName": "C",
            "lastName": "C", "emailAddress": "c@collectors.example", "roles": ["ROLE_OFP"],
            "agreements": [701, 702],
        }],
        "apiKeys": [{"user": "collector", "key": KEY, "name": "test"}],
    });
    let file = server.dir.path().join("collectors.json");
    fs::write(&file, accounts.to_string()).unwrap();
    let output = server.command(&["import", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let caller = Caller(ApiCaller::key(server, KEY));
    server.until("the collector", || caller.0.ask(&ListCollections::default()).ok());
    caller
}

/// The items of the caller's orders.
fn ordered(caller: &Caller<'_>) -> Vec<String> {
    let orders = caller.0.orders().into_iter();
    let mut uris: Vec<String> = orders.map(|order| order.item.uri).collect();
    uris.sort();
    uris
}

/// The names in an archive, and the text `left-out.txt`, as read by Python.
fn unzipped(zip: &[u8]) -> (Vec<String>, String) {
    let script = "import sys,io,json,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        assert z.testzip() is None\n\
        n=z.namelist()\n\
        t=z.read('left-out.txt').decode() if 'left-out.txt' in n else ''\n\
        print(json.dumps([n,t]))";
    serde_json::from_slice(&oracle::python(script, &[], zip)).unwrap()
}

#[test]
fn the_archive_of_a_collection_has_the_items_that_prepaid_downloads_cover() {
    let server = server();
    let collector = collector(&server);
    let id = collector.create("Åre: \"vinter\" 2026", false);
    let keys = ["image/b", "planning/p", "text/a", "image/a", "image/c", "image/d"];
    collector.add(&id, &keys).unwrap();
    let path = format!("/{id}/zip");
    let looked = collector.send("HEAD", &path, None);
    assert_eq!(looked.status(), 200);
    let etag = looked.headers()[ETAG].to_str().unwrap().to_owned();
    let with = |name: &str, value: &str| {
        let headers = [("authorization", collector.0.authorization.as_str()), (name, value)];
        server.get_with(&format!("{ROOT}{path}"), &headers)
    };
    assert_eq!(with("if-none-match", &etag).status(), 304);
    assert_eq!(with("range", "bytes=99999999-").status(), 416);
    assert_eq!(ordered(&collector), Vec::<String>::new(), "what sends no bytes buys nothing");
    let response = collector.send("GET", &path, None);
    assert_eq!(response.status(), 200);
    let header = |name| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((header(ETAG), header(CONTENT_TYPE)), (etag.clone(), "application/zip".to_owned()));
    assert_eq!(header(ACCEPT_RANGES), "bytes");
    assert_eq!(
        header(CONTENT_DISPOSITION),
        "attachment; filename=\"_re_ _vinter_ 2026.zip\"; \
         filename*=UTF-8''%C3%85re_%20_vinter_%202026.zip"
    );
    let zip = response.bytes().unwrap().to_vec();
    let (names, left_out) = unzipped(&zip);
    let expected = [
        "b_NormalHires.jpg",
        "b.json",
        "b.xml",
        "a.json",
        "a.xml",
        "a-cutpaste.txt",
        "a-indesign.txt",
        "image_a_NormalHires.jpg",
        "image_a.json",
        "image_a.xml",
        "left-out.txt",
    ];
    assert_eq!(names, expected);
    let uri = |key: &str| collector.uri(key);
    let lines: Vec<&str> = left_out.lines().collect();
    let reasons = [
        format!("{}: Items of the type planning have no files", uri("planning/p")),
        format!("{}: Agreement 702 delivers only approved orders", uri("image/c")),
        format!("{}: Agreement 702 delivers only approved orders", uri("image/d")),
    ];
    assert_eq!(lines, reasons);
    let file = server.dir.path().join("all.zip");
    fs::write(&file, &zip).unwrap();
    let test = Command::new("unzip").arg("-tq").arg(&file).output().unwrap();
    assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
    // No order was placed for the items that were left out.
    assert_eq!(ordered(&collector), [uri("image/a"), uri("image/b"), uri("text/a")]);
    // A second download has the same bytes, costs nothing, and can be resumed.
    assert_eq!(collector.send("GET", &path, None).bytes().unwrap(), zip);
    let rest = with("range", "bytes=100-");
    assert_eq!(rest.status(), 206);
    assert_eq!(rest.bytes().unwrap(), zip[100..]);
    assert_eq!(ordered(&collector).len(), 3);
    // A new order of the items gives the same members in that order, and includes what was bought.
    let order = collector.uris(&["image/d", "image/a"]);
    let change = CollectionChange { content: Some(order), ..renamed("x") };
    collector.update(&id, &change).unwrap();
    let (names, left_out) = unzipped(&collector.send("GET", &path, None).bytes().unwrap());
    assert_eq!((names.len(), names[0].as_str()), (11, "a_NormalHires.jpg"));
    assert!(names.contains(&"text_a.json".to_owned()), "{names:?}");
    assert_eq!(left_out.lines().count(), 3);
}

#[test]
fn the_archive_of_a_collection_has_500_items_and_names_the_others() {
    let keys: Vec<String> = (0..=500).map(|number| format!("text/n{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let items: Vec<(&str, Value)> = keys.iter().map(|key| (*key, foto("Article"))).collect();
    let server = news::server(&[], &items);
    let editor = Caller::editor(&server);
    let id = editor.create("Articles", false);
    editor.add(&id, &keys).unwrap();
    let response = editor.send("GET", &format!("/{id}/zip"), None);
    assert_eq!(response.status(), 200);
    let (names, left_out) = unzipped(&response.bytes().unwrap());
    // JSON, XML and both text formats of each, and the list of what was left out.
    assert_eq!(names.len(), 500 * 4 + 1);
    let last = editor.uri("text/n500");
    assert_eq!(left_out, format!("{last}: An archive has 500 items at most\n"));
}

#[test]
fn a_subscriber_gets_a_whole_collection_and_an_empty_archive_is_refused() {
    let server = server();
    let (editor, buyer) = (Caller::editor(&server), Caller::buyer(&server));
    let id = editor.create("..", true);
    let path = format!("/{id}/zip");
    let refused = "403 agreement_required headers";
    assert_eq!(editor.refused("GET", &path, None), refused);
    editor.add(&id, &["image/other"]).unwrap();
    assert_eq!(buyer.refused("GET", &path, None), refused);
    assert!(buyer.refused("GET", &format!("{path}?agr=x"), None).starts_with("400"));
    editor.add(&id, &["image/a"]).unwrap();
    let response = editor.send("GET", &path, None);
    assert_eq!(response.headers()[CONTENT_DISPOSITION], "attachment; filename=\"_.zip\"");
    let (names, left_out) = unzipped(&response.bytes().unwrap());
    assert_eq!((names.len(), left_out.as_str()), (6, ""));
    let (names, left_out) = unzipped(&buyer.send("GET", &path, None).bytes().unwrap());
    assert_eq!(names, ["a_NormalHires.jpg", "a.json", "a.xml", "left-out.txt"]);
    let reason = "It is not available to you";
    assert_eq!(left_out, format!("{}: {reason}\n", editor.uri("image/other")));
    assert_eq!(ordered(&buyer), [buyer.uri("image/a")]);
}
