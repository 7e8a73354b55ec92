//! One table: each caller, media type and URL. The expected responses derive from three sources: the URLs that are
//! open to the public, a live search by the caller, and its list of orders.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::scene::{self, Caller, State};
use crate::common::Server;
use crate::site::Session;

/// The right that a URL requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// None: the URL is public.
    Open,
    /// The caller finds the item, or has an order that delivers it.
    Read,
    /// An agreement of the caller delivers it.
    Buy,
    /// The right to read, or an order that is not reported yet.
    Licences,
}

use Right::{Buy, Licences, Open, Read};

/// The URLs of an item of each media type: the part after its key, with the right that each requires.
fn addresses(media_type: &str) -> Vec<(&'static str, Right)> {
    let documents = |right| vec![(".json", right), (".xml", right)];
    let mut addresses = match media_type {
        "image" | "stockfoto" => [
            documents(Open),
            vec![
                ("-crop_w9_h9.json", Open),
                ("_NormalPreview.jpg", Open),
                ("_WebPreview.jpg", Open),
                ("_NormalThumbnail.jpg", Open),
                ("-crop_w9_h9_NormalPreview.jpg", Open),
                ("_WatermarkPreview.jpg", Open),
                (".jpg", Buy),
                ("-crop_w9_h9.jpg", Buy),
                (".zip", Buy),
            ],
        ]
        .concat(),
        "video" => [
            documents(Read),
            vec![
                ("_NormalPreview.mp4", Read),
                ("_WebPreview.jpg", Read),
                ("_NormalThumbnail.jpg", Read),
                (".zip", Buy),
            ],
        ]
        .concat(),
        "graphic" => [
            documents(Read),
            vec![
                ("_NormalPreview.jpg", Read),
                ("_WebPreview.jpg", Read),
                ("_NormalThumbnail.jpg", Read),
                ("_CroppedThumbnail.jpg", Read),
                ("-crop_w9_h9_NormalPreview.jpg", Read),
                ("-watermark_NormalPreview.jpg", Read),
                (".pdf", Buy),
                ("_BlackAndWhiteHires.pdf", Buy),
                (".zip", Buy),
            ],
        ]
        .concat(),
        "text" | "feature" => [
            documents(Read),
            vec![("-cutpaste.txt", Read), ("-indesign.txt", Read), (".zip", Buy)],
        ]
        .concat(),
        _ => documents(Read),
    };
    addresses.push(("", Open));
    addresses.push(("/pricelist", Licences));
    addresses
}

/// URLs below a text, with the other item that each shows: they require the right to both.
const ASSOCIATED: [(&str, &str, Right); 7] = [
    ("text/c/a000_NormalPreview.jpg", "image/c", Open),
    ("text/c/a001_NormalPreview.jpg", "image/s", Open),
    ("text/c/a001_NormalThumbnail.jpg", "image/s", Open),
    ("text/c/a002_NormalPreview.jpg", "graphic/s", Read),
    ("text/c/a002_NormalThumbnail.jpg", "graphic/s", Read),
    ("text/c/a003_NormalPreview.jpg", "image/commissioned", Open),
    ("text/c/a004_NormalPreview.jpg", "text/c", Read),
];

/// The service's reports to a caller.
struct Sources {
    /// The items in its search results.
    found: HashSet<String>,
    /// Items of orders that are still deliverable.
    delivering: HashSet<String>,
    /// Items of orders that are not reported yet.
    unreported: HashSet<String>,
}

fn key_of(uri: &Value) -> String {
    uri.as_str().unwrap().split_once("/media/").unwrap().1.to_owned()
}

impl Sources {
    fn of(server: &Server, caller: &Caller) -> Self {
        let mut found = HashSet::new();
        let types = if caller.is_known { vec!["_all", "stockfoto"] } else { vec!["image"] };
        for media_type in types {
            for status in ["usable", "replaced", "commissioned"] {
                let path = format!("/content/v1/{media_type}/search?s=1000&pubstatus={status}");
                let answer = caller.get(server, &path);
                if answer.status() != 200 {
                    continue;
                }
                let answer: Value = answer.json().unwrap();
                found.extend(
                    answer["hits"].as_array().unwrap().iter().map(|hit| key_of(&hit["uri"])),
                );
            }
        }
        let (mut delivering, mut unreported) = (HashSet::new(), HashSet::new());
        let answer = caller.get(server, "/user/v1/order?size=1000");
        if answer.status() == 200 {
            let answer: Value = answer.json().unwrap();
            for order in answer["orders"].as_array().unwrap() {
                let key = key_of(&order["item"]["uri"]);
                let until: Timestamp =
                    order["downloadableUntil"].as_str().unwrap().parse().unwrap();
                assert!(until > Timestamp::from_second(1_700_000_000).unwrap(), "{order}");
                if order["manual"] != true || order["approved"] == true {
                    delivering.insert(key.clone());
                }
                if order.get("reported").is_none() {
                    unreported.insert(key);
                }
            }
        }
        Self { found, delivering, unreported }
    }

    fn reads(&self, key: &str) -> bool {
        self.found.contains(key) || self.delivering.contains(key)
    }

    /// The expected status of a URL of the item that requires `right`.
    fn expected(&self, caller: &Caller, (key, state): (&str, State), right: Right) -> u16 {
        if right == Open {
            return if caller.sees(state) { 200 } else { 404 };
        }
        if !caller.is_known {
            return 401;
        }
        if right == Licences && self.unreported.contains(key) {
            return 200;
        }
        if !caller.sees(state) {
            return 404;
        }
        let is_granted = match right {
            Open => true,
            Read | Licences => self.reads(key),
            // A caller who finds it under a Direct agreement has to order it; the provider never buys.
            Buy => {
                let has_to_order = ["direct", "provider", "switched"].contains(&caller.name);
                (self.found.contains(key) && !has_to_order) || self.delivering.contains(key)
            }
        };
        if is_granted { 200 } else { 403 }
    }
}

fn callers(server: &Server) -> Vec<Caller> {
    let known = ["none", "buyer", "prepaid", "direct", "chief", "provider", "service", "former"];
    let mut callers = vec![Caller::anonymous(), Caller::with_bad_key()];
    callers.extend(known.map(Caller::key));
    callers.extend(["hopeful", "switched"].map(Caller::key));
    callers.push(Caller::admin(server, "chief"));
    callers
}

fn state_of(key: &str) -> State {
    let items = scene::items();
    items.into_iter().find(|(known, _)| known == key).unwrap().1
}

/// Every caller at every URL, on one server.
#[test]
fn no_url_serves_an_item_that_its_caller_neither_finds_nor_ordered() {
    let server = scene::server(&[]);
    // Bought and ordered under an agreement that has since lapsed.
    let bought = Caller::key("former").get(&server, "/media/text/s.zip");
    assert_eq!(bought.status(), 200);
    let bought = Caller::key("switched").get(&server, "/media/text/s.zip");
    assert_eq!(bought.status(), 200);
    let ordered = Caller::key("hopeful").get(&server, "/media/text/s.zip");
    assert_eq!(ordered.status(), 403);
    scene::lapse(&server);
    let mut wrong = Vec::new();
    for caller in callers(&server) {
        let sources = Sources::of(&server, &caller);
        let mut check = |path: String, expected: u16| {
            let answer = caller.get(&server, &path);
            let found = answer.status().as_u16();
            // A delivery that the same user requested with other credentials.
            let is_there = (expected, found) == (202, 200);
            if found != expected && !is_there {
                wrong.push(format!("{} GET {path}: {found}, expected {expected}", caller.name));
            }
            let text = String::from_utf8_lossy(&answer.bytes().unwrap()).into_owned();
            assert!(expected == 200 || !text.contains("The body of"), "{} {path}", caller.name);
        };
        for (key, state) in scene::items() {
            let media_type = key.split('/').next().unwrap();
            for (address, right) in addresses(media_type) {
                let expected = sources.expected(&caller, (&key, state), right);
                // The item's own URL redirects to its page.
                let expected = if address.is_empty() && expected == 200 { 302 } else { expected };
                check(format!("/media/{key}{address}"), expected);
            }
            if caller.is_known {
                let channel = format!("channel=user:{}:desk", caller.name);
                let expected = sources.expected(&caller, (&key, state), Buy);
                check(format!("/media/{key}.zip?{channel}"), expected);
                let expected = if expected == 200 { 202 } else { expected };
                check(format!("/media/{key}?{channel}"), expected);
            }
        }
        for (address, shown, right) in ASSOCIATED {
            let text = sources.expected(&caller, ("text/c", State::Shown), Read);
            let other = sources.expected(&caller, (shown, state_of(shown)), right);
            check(format!("/media/{address}"), if text == 200 { other } else { text });
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    sources_say_what_they_should(&server);
}

/// Checks that the sources are not empty, so that the table is not vacuously true.
fn sources_say_what_they_should(server: &Server) {
    let former = Sources::of(server, &Caller::key("former"));
    assert!(former.delivering.contains("text/s") && !former.found.contains("text/s"));
    // Its order delivers an item that its other agreement would require it to order again.
    let switched = Caller::key("switched");
    assert!(Sources::of(server, &switched).found.contains("text/s"));
    let orders: Value = switched.get(server, "/user/v1/order?size=1000").json().unwrap();
    let mut orders = orders["orders"].as_array().unwrap().iter();
    let of_text: Vec<_> =
        orders.by_ref().filter(|one| key_of(&one["item"]["uri"]) == "text/s").collect();
    assert!(of_text.len() == 1 && of_text[0]["manual"] != true, "{of_text:?}");
    let hopeful = Sources::of(server, &Caller::key("hopeful"));
    assert!(hopeful.unreported.contains("text/s") && !hopeful.delivering.contains("text/s"));
    let buyer = Sources::of(server, &Caller::key("buyer"));
    assert!(buyer.reads("video/c") && buyer.reads("text/replaced") && !buyer.reads("video/s"));
    assert!(!buyer.reads("image/commissioned"));
    assert!(Sources::of(server, &Caller::admin(server, "chief")).reads("text/commissioned"));
    assert!(Sources::of(server, &Caller::key("provider")).reads("text/embargoed"));
    assert!(Sources::of(server, &Caller::key("none")).found.is_empty());
}

#[test]
fn no_page_shows_an_item_that_its_visitor_neither_finds_nor_ordered() {
    let server = scene::server(&[]);
    for name in ["none", "buyer", "direct", "provider", "chief"] {
        let session = Session::open(&server, name);
        let caller = match name {
            // A login in the browser carries the scope `admin`.
            "chief" => Caller::admin(&server, "chief"),
            name => Caller::key(name),
        };
        let sources = Sources::of(&server, &caller);
        for (key, state) in scene::items() {
            let is_open = ["image/", "stockfoto/"].iter().any(|start| key.starts_with(start));
            let right = if is_open { Open } else { Read };
            let expected = sources.expected(&caller, (&key, state), right);
            let page = session.get(&server, &format!("/item/{key}"));
            assert_eq!(page.status(), expected, "{name} {key}");
            assert!(expected == 200 || !page.text().unwrap().contains("The body of"), "{key}");
        }
    }
    for (key, state) in scene::items() {
        let is_open = ["image/", "stockfoto/"].iter().any(|start| key.starts_with(start));
        let expected = match is_open {
            true if state == State::Shown => 200,
            true => 404,
            // Redirects to the login.
            false => 303,
        };
        assert_eq!(server.get(&format!("/item/{key}")).status(), expected, "{key}");
    }
}

#[test]
fn a_setting_opens_documents_to_every_authenticated_caller_and_sells_nothing() {
    let server = scene::server(&["media.uncovered_documents=true"]);
    let none = Caller::key("none");
    for (path, expected) in [
        ("text/s.json", 200),
        ("text/s.xml", 200),
        ("text/s-cutpaste.txt", 200),
        ("video/s_NormalPreview.mp4", 200),
        ("graphic/s_NormalPreview.jpg", 200),
        ("text/c/a002_NormalPreview.jpg", 200),
        ("text/s/pricelist", 200),
        ("text/s.zip", 403),
        ("graphic/s.pdf", 403),
        ("text/commissioned.json", 404),
        ("text/embargoed.json", 404),
    ] {
        assert_eq!(none.get(&server, &format!("/media/{path}")).status(), expected, "{path}");
        let stranger = Caller::anonymous().get(&server, &format!("/media/{path}"));
        assert_eq!(stranger.status(), 401, "{path}");
    }
    let orders: Value = none.get(&server, "/user/v1/order").json().unwrap();
    assert_eq!(orders["orders"], serde_json::json!([]));
}

#[test]
fn reading_without_a_right_places_no_order() {
    let server = scene::server(&[]);
    for name in ["none", "direct", "hopeful"] {
        let caller = Caller::key(name);
        for path in ["text/c.json", "video/s_NormalPreview.mp4", "graphic/c_NormalPreview.jpg"] {
            caller.get(&server, &format!("/media/{path}"));
        }
        let orders: Value = caller.get(&server, "/user/v1/order").json().unwrap();
        assert_eq!(orders["orders"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn a_public_url_never_lets_a_shared_cache_store_restricted_content() {
    let server = scene::server(&[]);
    let admin = Caller::admin(&server, "chief");
    let policy = |caller: &Caller, path: &str| {
        let answer = caller.get(&server, path);
        assert_eq!(answer.status(), 200, "{path}");
        answer.headers()["cache-control"].to_str().unwrap().to_owned()
    };
    for suffix in [".json", ".xml", "_NormalPreview.jpg", "-crop_w9_h9_NormalPreview.jpg"] {
        let path = format!("/media/image/commissioned{suffix}");
        assert!(policy(&admin, &path).starts_with("private"), "{path}");
        let path = format!("/media/image/embargoed{suffix}");
        assert!(policy(&Caller::key("provider"), &path).starts_with("private"), "{path}");
        let path = format!("/media/image/c{suffix}");
        assert!(policy(&admin, &path).starts_with("public"), "{path}");
    }
}
