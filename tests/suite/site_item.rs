//! The page of an item as a picture desk reads it: picture and caption, rights, downloads of colleagues,
//! similar items, and the files last.

use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    news,
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
    let Some((_, rest)) = page.split_once("id=\"similar\"") else { return Vec::new() };
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
    let server = news::server(
        &[],
        &[
            ("image/kick", kick),
            ("image/final", second_final),
            ("image/goal", document("Goal", "2025-10-01T12:40:00Z", &bergen)),
            ("image/arrival", document("Arrival", "2025-10-01T02:30:00Z", &bergen)),
            ("image/next-day", document("Training", "2025-10-02T13:00:00Z", &bergen)),
            ("image/elsewhere", document("Harbour", "2025-10-01T12:10:00Z", &oslo)),
            ("text/report", document("Report", "2025-10-01T12:20:00Z", &bergen)),
        ],
    );
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
