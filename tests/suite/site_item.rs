//! The page of an item as a picture desk reads it: picture and caption, rights, downloads of colleagues,
//! similar items, and the files last.

use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    news,
    pictures::Picture,
};
use crate::site::Session;

/// The text of a page with unescaped slashes and ampersands.
fn plain(page: reqwest::blocking::Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/").replace("&amp;", "&")
}

#[test]
fn an_item_page_begins_with_picture_caption_and_rights() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/item/image/demo-urtavla");
    let is_in_order = "['.hero img', 'h1', '#rights', '.download', '#renditions']
        .map(one => document.querySelector(one))
        .every((one, at, all) => at === 0
            || (all[at - 1].compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING) > 0)";
    assert_eq!(browser.eval(is_in_order), true);
    let rights = browser.text("document.querySelector('.rights').innerText");
    assert!(rights.contains("CC BY-SA 4.0"), "{rights}");
    // What the page has for developers is closed.
    let is_open = "document.querySelector('.formats').open";
    assert_eq!(browser.eval(is_open), false);
    browser.check_appearance("item-rights");
    browser.click(".formats > summary");
    assert_eq!(browser.eval(is_open), true);
    browser.check_accessible("an item page with its files");
    // A name leads to the items that have it.
    browser.follow(".facts a[href*='facet=byline']");
    assert!(browser.address().contains("/?facet=byline%3A"), "{}", browser.address());
    assert_ne!(browser.eval("document.querySelectorAll('.wall > li').length"), 0);
    // The files of a graphic are bought one by one.
    browser.visit(&format!("{}/item/graphic/demo-sweden-map", server.url));
    assert_eq!(browser.eval(is_open), true);
}

/// The keys of the similar items on a page, in order.
fn similar(page: &str) -> Vec<&str> {
    listed(page, "similar")
}

/// The keys of the items that a section of a page lists, in order.
fn listed<'a>(page: &'a str, id: &str) -> Vec<&'a str> {
    let heading = format!("id=\"{id}\"");
    let Some((_, rest)) = page.split_once(&heading) else { return Vec::new() };
    let (section, _) = rest.split_once("</section>").expect("an end");
    let links = section.split("href=\"/item/").skip(1);
    links.filter_map(|link| link.split(['"', '?']).next()).collect()
}

#[test]
fn similar_items_show_the_same_event_by_its_code_or_by_place_and_time() {
    let document = |headline: &str, created: &str, places: &[&str]| {
        let place = |name: &&str| json!({ "name": name });
        let mut document = news::document(headline, &["FOTO"], created);
        document["place"] = Value::from(places.iter().map(place).collect::<Vec<_>>());
        document
    };
    let (bergen, oslo) = (["Bergen", "Norge"], ["Oslo", "Norge"]);
    let mut kick = document("Kick", "2025-10-01T12:00:00Z", &bergen);
    kick["event"] = json!([{ "code": "cup-7", "name": "Cup" }]);
    let mut second_final = document("Final", "2025-10-09T12:00:00Z", &oslo);
    second_final["event"] = kick["event"].clone();
    let items = [
        ("image/kick", kick),
        ("image/final", second_final),
        ("image/goal", document("Goal", "2025-10-01T12:40:00Z", &bergen)),
        ("image/arrival", document("Arrival", "2025-10-01T02:30:00Z", &bergen)),
        ("image/next-day", document("Training", "2025-10-02T13:00:00Z", &bergen)),
        ("image/elsewhere", document("Harbour", "2025-10-01T12:10:00Z", &oslo)),
        ("text/report", document("Report", "2025-10-01T12:20:00Z", &bergen)),
    ];
    let dir = tempfile::tempdir().expect("folder");
    let incoming = dir.path().join("incoming");
    news::write(&incoming, &items);
    for (key, _) in items.iter().filter(|(key, _)| key.starts_with("image/")) {
        // A picture of one colour is taken for the same as no other.
        let picture = Picture::flat(64, 48, [90, 120, 150]).jpeg();
        std::fs::write(incoming.join(key).join("NormalHires.jpg"), picture).expect("written");
    }
    let server = news::server_over(&[], dir);
    server.wait_for_index();
    let page = plain(server.get("/item/image/kick?from=q%3Dcup"));
    assert_eq!(similar(&page), ["image/final", "image/goal", "image/arrival"], "{page}");
    // The way back to the search stays.
    assert!(page.contains("href=\"/item/image/goal?from=q%3Dcup\""), "{page}");
    assert!(page.contains("No special terms of use are stated."), "{page}");
    assert_eq!(similar(&plain(server.get("/item/image/elsewhere"))), [""; 0]);
    let editor = Session::open(&server, "demo-admin");
    assert_eq!(similar(&plain(editor.get(&server, "/item/text/report"))), [""; 0]);
}

#[test]
fn the_same_picture_is_found_saved_again_or_resized() {
    // Tiles of different shades, in other places for each seed.
    let tiles = |seed: usize| {
        Picture::new(960, 640, |x, y| {
            let (column, row) = (x / 70 + seed * 5, y / 55 + seed * 3);
            let shade = (column * column * 37 + row * row * 53 + column * row * 29) % 211;
            [u8::try_from(shade).expect("a shade"), 90, 120]
        })
    };
    let picture = tiles(1);
    let pictures = [
        ("sent", picture.jpeg()),
        ("saved", picture.jpeg_with(turbojpeg::Subsamp::Sub2x2, 60)),
        ("half", picture.reduced(2).jpeg()),
        ("other", tiles(5).jpeg()),
        ("flat", Picture::flat(960, 640, [90, 90, 120]).jpeg()),
    ];
    let server = Server::with_pictures(&[], &pictures);
    server.wait_for_index();
    let sorted = |mut keys: Vec<&str>| {
        keys.sort_unstable();
        keys.join(" ")
    };
    let page = plain(server.get("/item/image/sent?from=q%3Dsea"));
    assert_eq!(sorted(listed(&page, "same-picture")), "image/half image/saved", "{page}");
    assert!(page.contains("href=\"/item/image/half?from=q%3Dsea\""), "{page}");
    for alone in ["other", "flat"] {
        let page = plain(server.get(&format!("/item/image/{alone}")));
        assert_eq!(listed(&page, "same-picture"), [""; 0], "{page}");
    }
    let search = |parameters: &str| {
        server.get(&format!("/content/v1/image/search?layout=bare&{parameters}"))
    };
    let found = |parameters: &str| {
        let answer: Value = search(parameters).json().expect("JSON");
        let hits = answer["hits"].as_array().expect("hits").clone();
        let uri = |hit: &Value| hit["uri"].as_str().expect("a uri").to_owned();
        let uris: Vec<String> = hits.iter().map(uri).collect();
        sorted(uris.iter().filter_map(|uri| uri.rsplit('/').next()).collect())
    };
    assert_eq!(found("duplicates=image/saved"), "half saved sent");
    assert_eq!(found("duplicates=image/saved&minpx=700"), "saved sent");
    assert_eq!(found("duplicates=image/other"), "other");
    assert_eq!(search("duplicates=image/flat").status(), 400);
    assert_eq!(search("duplicates=flat").status(), 400);
    assert_eq!(search("duplicates=image/unknown").status(), 404);
    assert_eq!(search("duplicates=text/unknown").status(), 404);
}

#[test]
fn an_item_page_says_when_the_desk_downloaded_it() {
    let server = Server::demo();
    let [editor, admin, stranger] =
        ["demo-editor", "demo-admin", "demo-buyer"].map(|name| Session::open(&server, name));
    let path = "/item/image/demo-bridge-cables";
    let heading = "<h3>Downloads by ";
    assert!(!plain(editor.get(&server, path)).contains(heading));
    assert_eq!(editor.post(&server, &format!("{path}/download"), &[]).status(), 200);
    let own = plain(editor.get(&server, path));
    assert!(own.contains(heading) && own.contains("by you"), "{own}");
    assert!(own.contains("<a href=\"/account/orders/"), "{own}");
    // An administrator may open the order of a colleague.
    let colleague = plain(admin.get(&server, path));
    assert!(colleague.contains(heading) && !colleague.contains("by you"), "{colleague}");
    assert!(colleague.contains("<a href=\"/account/orders/"), "{colleague}");
    // Colleagues without that right learn when, and no more.
    let other = "/item/image/demo-urtavla";
    assert_eq!(admin.post(&server, &format!("{other}/download"), &[]).status(), 200);
    let known = plain(editor.get(&server, other));
    assert!(known.contains(heading) && !known.contains("/account/orders/"), "{known}");
    // Other organizations learn nothing.
    for path in [path, other] {
        assert!(!plain(stranger.get(&server, path)).contains(heading));
        assert!(!plain(server.get(path)).contains(heading));
    }
}
