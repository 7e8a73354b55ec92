//! The pages in a real browser, driven over WebDriver.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP, PHONE},
    checkout,
    pictures::Picture,
};

const LINKS: &str = "[...document.querySelectorAll('ul.wall a')].map(a => a.href)";

#[test]
fn the_archive_is_browsed_on_desktop_and_phone() {
    let server = Server::demo();
    let page = "/item/image/demo-solnedgang-over-bergen";
    for (window, name) in [(DESKTOP, "desktop"), (PHONE, "phone")] {
        let browser = Browser::open(window);
        browser.visit(&format!("{}/", server.url));
        browser.check_layout(name);
        let links = browser.eval(LINKS);
        let links = links.as_array().expect("links");
        // The demo archive: a folder for each photograph but one, which is a bare file.
        let folders = fs::read_dir(checkout("media-store/demo/image")).expect("folder").count();
        assert_eq!(links.len(), folders + 1, "{name}");
        let pictures = browser.eval("document.querySelectorAll('ul.wall img').length");
        assert_eq!(pictures, folders + 1, "{name}");
        assert!(links.contains(&json!(format!("{}{page}", server.url))), "{name}: {links:?}");
        browser.screenshot(&format!("index-{name}.png"));
        browser.visit(&format!("{}{page}", server.url));
        browser.check_layout(&format!("{name}, item"));
        browser.screenshot(&format!("item-{name}.png"));
    }
}

#[test]
fn every_photograph_has_a_page_with_caption_and_links_that_work() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/", server.url));
    let links = browser.eval(LINKS);
    for link in links.as_array().expect("links").iter().map(|link| link.as_str().expect("a link"))
    {
        let key = link.split_once("/item/").expect("an item's page").1;
        browser.visit(link);
        browser.check_layout(key);
        let text = server.bytes(&format!("/media/{key}.json"));
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        let shown = browser.text("document.querySelector('main').innerText");
        for property in ["headline", "byline", "copyrightnotice"] {
            let expected = document[property].as_str().unwrap_or_default();
            assert!(shown.contains(expected), "{key} {property}: {shown}");
        }
        for line in document["description_text"].as_str().unwrap_or_default().lines() {
            assert!(shown.contains(line.trim()), "{key}: {line:?} is not in {shown}");
        }
        for rendition in document["renditions"].as_object().expect("renditions").values() {
            let href = rendition["href"].as_str().expect("a link");
            // Renditions that need a login are metadata for programs, and not a link.
            let is_open = rendition["usage"] != "Hires";
            let anchors = format!("document.querySelectorAll('a[href=\"{href}\"]').length");
            assert_eq!(browser.eval(&anchors) != 0, is_open, "{key}: {href}");
            let reported = format!(
                "[...document.querySelectorAll('.programs code')].some(code => code.textContent === '{href}')"
            );
            assert_eq!(browser.eval(&reported), true, "{key}: {href}");
        }
    }
    // The last page's links.
    let links = browser
        .eval("[...document.querySelectorAll('article a[href*=\"/media/\"]')].map(a => a.href)");
    let links: Vec<&str> =
        links.as_array().expect("links").iter().filter_map(Value::as_str).collect();
    assert!(links.len() >= 5, "{links:?}");
    for link in links {
        let response = server.get(link.strip_prefix(&server.url).expect("our own"));
        assert_eq!(response.status(), 200, "{link}");
        if link.ends_with(".jpg") {
            Picture::decode(&response.bytes().expect("body"));
        }
    }
}

#[test]
fn an_empty_archive_says_how_to_fill_it_and_an_unknown_item_is_not_found() {
    let server = Server::empty();
    let browser = Browser::open(PHONE);
    browser.visit(&format!("{}/", server.url));
    browser.check_layout("empty archive");
    let shown = browser.text("document.querySelector('main').innerText");
    assert!(shown.contains("wirephoto ingest"), "{shown}");
    browser.screenshot("empty-phone.png");
    for path in ["/item/image/no-such-item", "/item/nonsense/x", "/item/image/%3Cb%3E"] {
        let response = server.get(path);
        assert_eq!(response.status(), 404, "{path}");
        let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        browser.visit(&format!("{}{path}", server.url));
        let shown = browser.text("document.querySelector('h1').innerText");
        assert_eq!(shown, "Not found", "{path}");
        assert_eq!(browser.eval("document.querySelectorAll('main b').length"), 0, "{path}");
        // The browser notes the 404 itself, and nothing else.
        let others = |line: &String| !line.contains("status of 404");
        assert_eq!(browser.console_messages().into_iter().find(others), None, "{path}");
    }
    browser.screenshot("not-found-phone.png");
}

#[test]
fn hostile_text_is_shown_as_text() {
    let headline = "<script>document.title='gone'</script> \"quoted\" & 'single' <b>bold</b>";
    let description = "</p><img src=x onerror=\"document.title='gone'\"> {{ 7 * 7 }} &amp;";
    let byline = "\" onmouseover=\"document.title='gone'\" x=\"";
    let server = Server::empty();
    let folder = server.dir.path().join("image/hostile");
    fs::create_dir_all(&folder).expect("folder");
    let document = json!({
        "headline": headline,
        "description_text": description,
        "byline": byline,
        "copyrightnotice": "<i>\u{a9}</i>",
        "language": "sv\" onload=\"x",
    });
    fs::write(folder.join("item.json"), document.to_string()).expect("written");
    fs::write(folder.join("NormalHires.jpg"), Picture::waves(300, 200).jpeg()).expect("written");
    let output = server.command(&["ingest", &folder.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let browser = Browser::open(DESKTOP);
    for path in ["/", "/item/image/hostile"] {
        server
            .until("the item", || server.get(path).text().ok()?.contains("hostile").then_some(()));
        browser.visit(&format!("{}{path}", server.url));
        browser.check_layout(path);
        let shown = browser.text("document.querySelector('main').innerText");
        assert!(shown.contains(headline), "{path}: {shown}");
        assert!(shown.contains(byline), "{path}: {shown}");
        assert!(path == "/" || shown.contains(description), "{path}: {shown}");
        assert!(!browser.text("document.title").starts_with("gone"), "{path}");
        let foreign = "document.querySelectorAll('main script, main b, main i, [onload], [onerror], [onmouseover]').length";
        assert_eq!(browser.eval(foreign), 0, "{path}");
    }
}
