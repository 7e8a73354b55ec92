//! Collections: filled, ordered, shared, downloaded and deleted, with and without scripts.

use std::path::Path;

use api::collections::{CollectionChange, ListCollections, ListedCollection, UpdateCollection};
use serde_json::json;

use super::{HOSTILE, Plain, editor, location, look, shown};
use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    oracle,
};

const ENTER: &str = "\u{E007}";

/// Three photographs of the demo archive.
const KEYS: [&str; 3] = [
    "image/demo-solnedgang-over-bergen",
    "image/demo-bridge-cables",
    "image/demo_hundar_i_fonster",
];

fn uri(server: &Server, key: &str) -> String {
    format!("{}/media/{key}", server.url)
}

fn collections(server: &Server) -> Vec<ListedCollection> {
    editor(server).ask(&ListCollections::default()).unwrap()
}

/// The ids of the items of the only collection, in their order.
fn content(server: &Server) -> String {
    let [only] = collections(server).try_into().expect("one");
    let uris = only.content().expect("a list").iter();
    let ids = uris.map(|uri| uri.rsplit('/').next().expect("an id"));
    ids.collect::<Vec<_>>().join(" ")
}

/// Creates a collection with the three photographs; returns its id.
fn collect(server: &Server, name: &str) -> String {
    editor(server).collect(name, false, &KEYS)
}

#[test]
fn photographs_are_added_to_a_new_collection_from_another_page() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let first: String =
        form_urlencoded::byte_serialize(uri(&server, KEYS[0]).as_bytes()).collect();
    let item = format!("/item/{}", KEYS[0]);
    let back: String = form_urlencoded::byte_serialize(item.as_bytes()).collect();
    let path = format!("/collections/add?uri={first}&return_to={back}");
    browser.log_in(&server.url, "demo-editor", &path);
    look(&browser, "collection-add");
    // Without a name no collection is created.
    browser.follow("main button[type=submit]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(alert.contains("name"), "{alert}");
    // The browser itself logs the 400.
    browser.console_messages();
    assert!(collections(&server).is_empty());
    browser.fill("#name", "Förstasidan");
    browser.follow("main button[type=submit]");
    assert!(
        shown(&browser).contains("Added to the collection. Förstasidan"),
        "{}",
        shown(&browser)
    );
    assert_eq!(browser.address(), format!("{}{item}", server.url), "the message is shown once");
    let [made] = collections(&server).try_into().expect("one");
    assert_eq!((made.head().name.as_str(), made.head().public), ("Förstasidan", false));
    assert_eq!(made.content().expect("a list"), [uri(&server, KEYS[0])]);

    // A second photograph is added to the same collection, and the redirect leads back to a page of a search.
    let plain = Plain::log_in(&server, "demo-editor");
    let id = made.head().id.to_string();
    let second = uri(&server, KEYS[1]);
    let fields =
        [("uri", second.as_str()), ("collection", id.as_str()), ("return_to", "/?q=bro&page=2")];
    let led = location(&plain.post("/collections/add", &fields));
    assert_eq!(led, format!("/?q=bro&page=2&done=added&in={id}"));
    assert_eq!(content(&server), "demo-solnedgang-over-bergen demo-bridge-cables");
    // An unknown item is not reported as added, and the redirect stays on the site.
    let gone = uri(&server, "image/no-such-item");
    let fields = [("uri", gone.as_str()), ("collection", id.as_str())];
    let refused = plain.post("/collections/add", &fields);
    assert_eq!(refused.status(), 409);
    assert!(refused.text().expect("text").contains("could not be added"));
    let fields =
        [("uri", second.as_str()), ("collection", id.as_str()), ("return_to", "//evil.example/")];
    let led = location(&plain.post("/collections/add", &fields));
    assert_eq!(led, format!("/collections/{id}?done=added"));
    let stranger = Plain::log_in(&server, "demo-buyer");
    assert_eq!(stranger.post("/collections/add", &fields).status(), 404);
    assert_eq!(content(&server), "demo-solnedgang-over-bergen demo-bridge-cables");
    browser.visit(&format!("{}/collections", server.url));
    assert!(shown(&browser).contains("2 items"), "{}", shown(&browser));
    look(&browser, "collections");
}

/// The centre of the element that `selector` matches, in window pixels.
fn middle(browser: &Browser, selector: &str) -> (i64, i64) {
    let found = browser.eval(&format!(
        "(r => [Math.round(r.x + r.width / 2), Math.round(r.y + r.height / 2)])\
         (document.querySelector('{selector}').getBoundingClientRect())"
    ));
    let pixels = |at: usize| found[at].as_i64().expect("pixels");
    (pixels(0), pixels(1))
}

#[test]
fn the_order_of_a_collection_changes_by_mouse_by_keyboard_and_without_scripts() {
    let server = Server::demo();
    let id = collect(&server, "Ordning");
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", &format!("/collections/{id}"));
    look(&browser, "collection");
    let said = |text: &str| {
        let wanted = json!(text);
        let said = format!("document.querySelector('#order-status').textContent === {wanted}");
        browser.wait(text, &said);
    };
    // The first is moved behind the third.
    let from = middle(&browser, ".cells li:nth-child(1) .frame");
    let to = middle(&browser, ".cells li:nth-child(3) .frame");
    browser.drag(&[from, (from.0 + 20, from.1), (to.0 - 10, to.1), to, (to.0 + 20, to.1)]);
    said("Position 3 of 3. The order is saved.");
    assert_eq!(
        content(&server),
        "demo-bridge-cables demo_hundar_i_fonster demo-solnedgang-over-bergen"
    );
    browser.console_messages();
    // By keyboard: the focus stays on the button.
    browser.eval("document.querySelector('.cells li:nth-child(3) [name=earlier]').focus()");
    browser.press(ENTER);
    said("Position 2 of 3. The order is saved.");
    assert_eq!(
        content(&server),
        "demo-bridge-cables demo-solnedgang-over-bergen demo_hundar_i_fonster"
    );
    browser.press(ENTER);
    said("Position 1 of 3. The order is saved.");
    assert_eq!(
        content(&server),
        "demo-solnedgang-over-bergen demo-bridge-cables demo_hundar_i_fonster"
    );
    let focused = browser.text("document.activeElement.value");
    assert_eq!(focused, uri(&server, KEYS[0]));
    browser.check_layout("ordered");
    // After a reload the page shows the saved order.
    browser.visit(&format!("{}/collections/{id}", server.url));
    let places = browser.eval("[...document.querySelectorAll('.cells li')].map(li => li.id)");
    assert_eq!(places, json!(KEYS));

    let plain = Plain::log_in(&server, "demo-editor");
    let order = format!("/collections/{id}/order");
    let last = uri(&server, KEYS[2]);
    for csrf in ["", "wrong"] {
        let refused = plain.post_with(&order, &[("earlier", last.as_str()), ("csrf", csrf)]);
        assert_ne!(refused.status(), 303);
    }
    let moved = plain.post(&order, &[("earlier", last.as_str())]);
    let expected = format!("/collections/{id}?done=ordered#{}", KEYS[2]);
    assert_eq!(location(&moved), expected);
    assert_eq!(
        content(&server),
        "demo-solnedgang-over-bergen demo_hundar_i_fonster demo-bridge-cables"
    );
    let page = plain.get(&format!("/collections/{id}?done=ordered")).text().expect("text");
    assert!(page.contains("The new order is saved."), "{page}");
    // Another user may not change it, but can see it when it is public.
    let name = Some("Ordning".to_owned());
    let open = CollectionChange { name, public: Some(true), content: None };
    editor(&server).send(&UpdateCollection { id: id.clone() }, &open).unwrap();
    let other = Plain::log_in(&server, "demo-buyer");
    assert_eq!(other.post(&order, &[("earlier", last.as_str())]).status(), 404);
    assert_eq!(
        content(&server),
        "demo-solnedgang-over-bergen demo_hundar_i_fonster demo-bridge-cables"
    );
    // One item is removed: the stale page still shows the cables in second position.
    browser.follow(".cells li:nth-child(2) [name=uri]");
    assert!(browser.address().ends_with(&format!("/collections/{id}")), "{}", browser.address());
    assert_eq!(content(&server), "demo-solnedgang-over-bergen demo_hundar_i_fonster");
}

#[test]
fn a_collection_is_shared_downloaded_and_deleted() {
    let server = Server::demo();
    let id = collect(&server, "Vecka 47");
    let page = format!("{}/collections/{id}", server.url);
    let other = Browser::open(DESKTOP);
    other.log_in(&server.url, "demo-buyer", &format!("/collections/{id}"));
    assert_eq!(other.text("document.querySelector('h1').innerText"), "Not found");
    other.console_messages();

    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", &format!("/collections/{id}"));
    browser.fill("#name", "Vecka 48");
    browser.click("[name=public]");
    browser.follow(&format!("form[action$='{id}'] button"));
    let [only] = collections(&server).try_into().expect("one");
    assert_eq!((only.head().name.as_str(), only.head().public), ("Vecka 48", true));
    let link = browser.text("document.querySelector('#share').innerText");
    assert_eq!(link, page);

    other.visit(&link);
    let text = shown(&other);
    assert!(text.contains("Vecka 48") && text.contains("by demo-editor"), "{text}");
    assert!(!text.contains("Delete") && !text.contains("Remove"), "{text}");
    assert_eq!(other.eval("document.querySelectorAll('.wall li').length"), 3);
    look(&other, "collection-shared");

    // A user with a subscription gets everything.
    let downloads = browser.save_downloads();
    browser.click("form[action$='/zip'] button");
    let zip = downloads.join("Vecka 48.zip");
    // The browser reserves the name with an empty file; an archive ends with its directory.
    let is_whole = |bytes: &Vec<u8>| bytes.windows(4).any(|four| four == b"PK\x05\x06");
    server.until("the download", || std::fs::read(&zip).ok().filter(is_whole));
    let held = members(&zip);
    for key in KEYS {
        let id = key.rsplit('/').next().expect("an id");
        assert!(held.iter().any(|name| name.contains(id) && name.ends_with(".jpg")), "{held:?}");
    }
    assert_eq!(editor(&server).orders().len(), 3);

    // A withdrawn item is marked as such, and is not among the items.
    let output = server.command(&["withdraw", KEYS[1]]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    browser.visit(&page);
    let text = shown(&browser);
    assert!(text.contains("No longer available"), "{text}");
    assert!(text.contains("These items have been withdrawn."), "{text}");
    let gone = browser.text("document.querySelector('.list .what').innerText");
    assert!(gone.contains("Bridge cables against the sky"), "{gone}");
    assert_eq!(browser.eval("document.querySelectorAll('.cells li').length"), 2);
    look(&browser, "collection-removed");

    browser.click(".sure summary");
    browser.follow(".sure button");
    assert!(browser.address().ends_with("/collections"), "{}", browser.address());
    assert!(collections(&server).is_empty());
    look(&browser, "collections-none");
    other.visit(&page);
    assert_eq!(other.text("document.querySelector('h1').innerText"), "Not found");
}

/// The names of the files in an archive, which must be complete.
fn members(zip: &Path) -> Vec<String> {
    let script = "import sys,io,json,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        assert z.testzip() is None\n\
        print(json.dumps(z.namelist()))";
    let bytes = std::fs::read(zip).expect("downloaded");
    serde_json::from_slice(&oracle::python(script, &[], &bytes)).expect("JSON")
}

#[test]
fn collections_work_without_scripts_escape_hostile_text_and_need_their_token() {
    let server = Server::demo();
    let plain = Plain::log_in(&server, "demo-editor");
    let refused = plain.post_with("/collections", &[("name", HOSTILE), ("csrf", "wrong")]);
    assert_ne!(refused.status(), 303);
    assert!(collections(&server).is_empty());
    let led = location(&plain.post("/collections", &[("name", HOSTILE)]));
    let [made] = collections(&server).try_into().expect("one");
    assert_eq!(made.head().name, HOSTILE);
    let id = made.head().id.to_string();
    let own = format!("/collections/{id}");
    assert_eq!(led, format!("{own}?done=created"));
    let item = uri(&server, KEYS[0]);
    let encoded: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let add = format!("/collections/add?uri={encoded}&name={encoded}&return_to={encoded}");
    for path in ["/collections", own.as_str(), add.as_str()] {
        let page = plain.get(path).text().expect("text");
        assert!(page.contains("&lt;script&gt;document"), "{path}: {page}");
        assert!(!page.contains("<script>document") && !page.contains("<b>"), "{path}: {page}");
    }
    assert_eq!(
        location(
            &plain
                .post("/collections/add", &[("uri", item.as_str()), ("collection", id.as_str())])
        ),
        format!("{own}?done=added")
    );
    // Each change needs its token; an invalid name keeps the old one and the input.
    for (path, field) in [
        ("", ("name", "other")),
        ("/delete", ("x", "")),
        ("/take", ("uri", item.as_str())),
        ("/zip", ("x", "")),
    ] {
        let refused = plain.post_with(&format!("{own}{path}"), &[field, ("csrf", "wrong")]);
        let status = refused.status();
        let kind = refused.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(status != 303 && kind.starts_with("text/html"), "{path}: {status}, {kind}");
    }
    assert!(editor(&server).orders().is_empty(), "nothing was bought");
    let long = "x".repeat(500);
    let refused = plain.post(&own, &[("name", long.as_str())]);
    assert_eq!(refused.status(), 400);
    assert!(refused.text().expect("text").contains(&format!("value=\"{long}\"")));
    assert_eq!(content(&server), "demo-solnedgang-over-bergen");
    assert_eq!(collections(&server)[0].head().name, HOSTILE);
    // Without scripts: renamed, emptied, deleted.
    let saved = plain.post(&own, &[("name", "Ny"), ("public", "on")]);
    assert_eq!(location(&saved), format!("{own}?done=saved"));
    assert!(collections(&server)[0].head().public);
    let taken = plain.post(&format!("{own}/take"), &[("uri", item.as_str())]);
    assert_eq!(location(&taken), format!("{own}?done=taken"));
    assert_eq!(content(&server), "");
    let other = Plain::log_in(&server, "demo-buyer");
    // Items outside a reader's agreements are counted and not shown.
    let article = uri(&server, "text/demo-aceh-rescue");
    for uri in [&item, &article] {
        plain.post("/collections/add", &[("uri", uri.as_str()), ("collection", id.as_str())]);
    }
    let page = other.get(&own).text().expect("text");
    assert!(page.contains("1 item is hidden"), "{page}");
    assert!(page.contains("Sunset") && !page.contains("demo-aceh-rescue"), "{page}");
    assert!(page.contains("Download zip<"), "{page}");
    for path in ["", "/delete", "/take"] {
        let status =
            other.post(&format!("{own}{path}"), &[("name", "x"), ("uri", &item)]).status();
        assert_eq!(status, 404, "{path}");
    }
    assert_eq!(location(&plain.post(&format!("{own}/delete"), &[])), "/collections?done=removed");
    assert!(collections(&server).is_empty());
    assert_eq!(location(&server.get("/collections")), "/o/login?return_to=%2Fcollections");
}
