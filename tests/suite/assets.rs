//! Style sheets, scripts and fonts of the site: their cache lifetimes and content-addressed URLs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
};

const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The URLs of the site's files that a page links to.
fn linked(page: &str) -> BTreeSet<String> {
    let page = page.replace("&#x2f;", "/");
    let quoted = page.split('"').filter(|text| text.starts_with("/assets/"));
    quoted.map(str::to_owned).collect()
}

#[test]
fn page_assets_have_content_addressed_urls_cached_for_a_year() {
    let server = Server::demo();
    let mut names = BTreeSet::new();
    for page in ["/", "/docs", "/item/image/demo-urtavla", "/item/image/demo-urtavla/crop"] {
        let files = linked(&server.get(page).text().expect("text"));
        assert!(files.len() >= 4, "{page}: {files:?}");
        for file in files {
            let lasting = server.get(&file);
            assert_eq!(lasting.status(), 200, "{page}: {file}");
            assert_eq!(lasting.headers()["cache-control"], IMMUTABLE, "{page}: {file}");
            // The same file under its plain name, whose content changes with the release.
            let name = file.splitn(4, '/').nth(3).expect("a name").to_owned();
            let plain = server.get(&format!("/assets/{name}"));
            assert_eq!(plain.headers()["cache-control"], "public, max-age=300", "{name}");
            assert_eq!(plain.headers()["etag"], lasting.headers()["etag"], "{name}");
            assert!(plain.bytes().expect("body") == lasting.bytes().expect("body"), "{name}");
            names.insert(name);
        }
    }
    for name in ["css/site.css", "js/studio.js", "fonts/Inter-Regular.woff2", "favicon.svg"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
}

#[test]
fn assets_answer_conditional_requests_at_both_urls() {
    let server = Server::demo();
    let page = server.get("/").text().expect("text");
    let lasting = linked(&page).into_iter().find(|file| file.ends_with("site.css")).expect("one");
    for (path, keeping) in
        [(lasting.as_str(), IMMUTABLE), ("/assets/css/site.css", "public, max-age=300")]
    {
        let tag = server.get(path).headers()["etag"].to_str().expect("ASCII").to_owned();
        let known = server.get_with(path, &[("if-none-match", &tag)]);
        assert_eq!(known.status(), 304, "{path}");
        assert_eq!(known.headers()["cache-control"], keeping, "{path}");
        let other = server.get_with(path, &[("if-match", "\"other\"")]);
        assert_eq!(other.status(), 412, "{path}");
        assert_eq!(other.headers()["cache-control"], "no-store", "{path}");
    }
    // A URL of another release: the file is served but must not be cached under that URL.
    let (_, name) = lasting.rsplit_once("/css/").expect("a style sheet");
    let other = server.get(&format!("/assets/AAAAAAAAAAAAAAAAAAAAAA/css/{name}"));
    assert_eq!(
        (other.status().as_u16(), &other.headers()["cache-control"]),
        (200, &"no-cache".parse().expect("a value"))
    );
    let missing = server.get(&lasting.replace("site.css", "none.css"));
    assert_eq!(missing.status(), 404);
    assert_eq!(missing.headers()["cache-control"], "max-age=60");
}

#[test]
fn modules_and_fonts_load_once_from_content_addressed_urls() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    for (page, imported) in [
        ("/item/image/demo-urtavla/crop", &["js/studio.js", "js/crop.js", "js/markup.js"][..]),
        ("/docs/try/getRendition", &["js/try.js", "js/panels.js", "js/snippets.js"][..]),
    ] {
        browser.visit(&format!("{}{page}", server.url));
        browser.wait_until_loaded();
        browser.check_layout(page);
        let loaded = browser.eval(
            "performance.getEntriesByType('resource').map(one => new URL(one.name).pathname)
                .filter(path => path.startsWith('/assets/'))",
        );
        let loaded: Vec<String> =
            serde_json::from_value::<Vec<String>>(loaded).expect("addresses");
        let folders: BTreeSet<&str> =
            loaded.iter().filter_map(|path| path.split('/').nth(2)).collect();
        assert_eq!(folders.len(), 1, "{page}: {loaded:?}");
        for name in imported.iter().chain(&["fonts/Inter-Regular.woff2"]) {
            assert!(loaded.iter().any(|path| path.ends_with(name)), "{page} {name}: {loaded:?}");
        }
        // The icon is requested by the page and by the browser itself.
        let files = loaded.iter().filter(|path| !path.ends_with(".svg"));
        let once: BTreeSet<&String> = files.clone().collect();
        assert_eq!(once.len(), files.count(), "{page}: {loaded:?}");
    }
    assert_eq!(browser.eval("document.fonts.check('1rem Inter')"), Value::Bool(true));
}
