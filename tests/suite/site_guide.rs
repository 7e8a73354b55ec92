//! The documents of `docs/` as served by the server: pages, links, search, and the links from errors.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

use reqwest::blocking::Response;

use crate::common::{
    DEMO_KEY, Server,
    browser::{Browser, DESKTOP},
    checkout,
};

const ROOT: &str = "/docs/guide";
const HOSTILE: &str = "\"><script>alert(1)</script>";

fn text(response: Response) -> String {
    response.text().expect("text")
}

/// An attribute value, unescaped as by a browser.
fn unescaped(value: &str) -> String {
    let named = [("&#x2f;", "/"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    named.into_iter().fold(value.to_owned(), |value, (name, c)| value.replace(name, c))
}

/// All values of an attribute on a page.
fn values(page: &str, attribute: &str) -> BTreeSet<String> {
    let start = format!(" {attribute}=\"");
    let found = page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next());
    found.map(unescaped).collect()
}

/// The Markdown files below a folder, as paths from `docs`.
fn documents(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            let file = path.strip_prefix(checkout("docs")).expect("below docs");
            found.insert(file.to_string_lossy().into_owned());
        }
    }
}

/// The address of a document on the site.
fn address(file: &str) -> String {
    let path = file.trim_end_matches(".md");
    let path = path.strip_suffix("README").unwrap_or(path).trim_end_matches('/');
    if path.is_empty() { ROOT.to_owned() } else { format!("{ROOT}/{path}") }
}

/// The pages of the guide that can be reached from its index, by address.
fn crawl(server: &Server) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut open = VecDeque::from([ROOT.to_owned()]);
    while let Some(path) = open.pop_front() {
        if pages.contains_key(&path) {
            continue;
        }
        let response = server.get(&path);
        assert_eq!(response.status(), 200, "{path}");
        let page = text(response);
        for link in values(&page, "href") {
            let target = link.split('#').next().unwrap_or_default();
            if target.starts_with(ROOT) && !target.contains("/images/") {
                open.push_back(target.to_owned());
            }
        }
        pages.insert(path, page);
    }
    pages
}

#[test]
fn no_link_of_the_guide_is_broken_and_every_document_is_in_it() {
    let server = Server::demo();
    let pages = crawl(&server);
    let mut files = BTreeSet::new();
    documents(&checkout("docs"), &mut files);
    for file in &files {
        assert!(pages.contains_key(&address(file)), "{file} cannot be reached");
    }
    let (mut dead, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, page) in &pages {
        for link in values(page, "href").into_iter().chain(values(page, "src")) {
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if target.is_empty() { path } else { target };
            match pages.get(target) {
                Some(found) => {
                    let is_there = anchor.is_empty() || values(found, "id").contains(anchor);
                    if !is_there {
                        dead.push(format!("{path}: {link}"));
                    }
                }
                None if target.starts_with('/') && seen.insert(target.to_owned()) => {
                    let status = server.get(target).status().as_u16();
                    if ![200, 302, 303].contains(&status) {
                        dead.push(format!("{path}: {link} is answered {status}"));
                    }
                }
                None => {}
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn a_page_has_headings_contents_and_no_inline_scripts_or_styles() {
    let server = Server::demo();
    let response = server.get("/docs/guide/reference/settings");
    let policy = response.headers()["content-security-policy"].to_str().expect("ASCII").to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(response.headers()["vary"], "Cookie, Accept-Language, Accept-Encoding");
    let page = text(response);
    assert!(page.contains("<h1 id=\"settings\">Settings</h1>"), "{page}");
    assert!(page.contains("<h2 id=\"media\">media</h2>"), "{page}");
    assert!(page.contains("<a href=\"#media\">media</a>"), "{page}");
    assert!(page.contains("aria-current=\"page\">Settings</a>"), "{page}");
    assert!(!page.contains(" style=") && !page.contains("<script>"), "{page}");
    let swedish = text(server.get_with(ROOT, &[("accept-language", "sv")]));
    for expected in
        ["<html lang=\"sv\">", "Sök i dokumentationen", "Dokumentationen är på engelska."]
    {
        assert!(swedish.contains(expected), "{expected}: {swedish}");
    }
    for nothing in
        ["nothing", "../Cargo.toml", "reference", "reference/settings.md", "images/none.png"]
    {
        assert_eq!(server.get(&format!("{ROOT}/{nothing}")).status(), 404, "{nothing}");
    }
}

#[test]
fn the_navigation_links_to_every_page_once_and_a_folder_to_its_own_page() {
    let server = Server::demo();
    let page = text(server.get("/docs/guide/operations"));
    let (_, navigation) = page.split_once(" id=\"pages\"").expect("a navigation");
    let navigation = navigation.split("</nav>").next().expect("its end");
    let links = navigation.matches(" href=\"").count();
    assert_eq!(links, values(navigation, "href").len(), "{navigation}");
    // The page of a folder is the title of its group, and not among its pages.
    for folder in ["Documentation", "Operations", "Contract"] {
        assert_eq!(navigation.matches(&format!(">{folder}<")).count(), 1, "{folder}");
        assert!(navigation.contains(&format!(">{folder}</a>")), "{folder}: {navigation}");
    }
    assert!(navigation.contains("aria-current=\"page\">Operations</a>"), "{navigation}");
    assert!(navigation.contains(">Reference</span>"), "{navigation}");
}

/// The paths that a search finds, best first.
fn found(page: &str) -> Vec<String> {
    let hits = page.split("<h2><a href=\"").skip(1);
    hits.filter_map(|rest| rest.split('"').next()).map(unescaped).collect()
}

fn search(server: &Server, query: &str) -> Response {
    let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
    server.get(&format!("{ROOT}?q={query}"))
}

#[test]
fn the_guide_is_searched_by_words() {
    let server = Server::demo();
    let first = |query: &str| {
        let page = text(search(&server, query));
        found(&page).into_iter().next().unwrap_or_else(|| panic!("{query} finds nothing: {page}"))
    };
    assert_eq!(first("agreement_required"), "/docs/guide/reference/errors#agreement_required");
    assert_eq!(first("AGREEMENT required"), "/docs/guide/reference/errors#agreement_required");
    assert_eq!(
        first("wirephoto signing-key rotate"),
        "/docs/guide/reference/commands#wirephoto-signing-key-rotate"
    );
    assert!(first("preview_px").starts_with("/docs/guide/reference/settings"));
    assert!(first("wirephoto_render_queue_depth").starts_with("/docs/guide/reference/metrics"));
    let page = text(search(&server, "preview_px"));
    assert!(page.contains("<mark>preview</mark>"), "{page}");
    assert!(found(&page).len() <= 30, "{page}");
    // Every page of the guide has the search box.
    assert!(text(server.get("/docs/guide/reference/errors")).contains("role=\"search\""));
}

#[test]
fn headings_are_found_first_and_guides_before_reference_and_contract() {
    let server = Server::demo();
    let check = |query: &str, expected: &[&str]| {
        let page = text(search(&server, query));
        let hits = found(&page);
        let place = |start: &&str| {
            let start = format!("{ROOT}/{start}");
            let place = hits.iter().position(|hit| hit.starts_with(&start));
            place.unwrap_or_else(|| panic!("{query}: no {start} in {hits:?}"))
        };
        let places: Vec<usize> = expected.iter().map(place).collect();
        assert_eq!(places[0], 0, "{query}: {hits:?}");
        assert!(places.is_sorted(), "{query}: {hits:?}");
    };
    check(
        "notifications",
        &["guide/", "operations#", "reference/", "contract/", "operations/overload"],
    );
    check("collections", &["guide/collections", "reference/", "contract/", "operations/"]);
    check("backup", &["operations/backup#backup", "reference/settings#backup", "operations/up"]);
    check("search", &["guide/search", "operations/", "reference/", "contract/", "guide/search#"]);
    // A name leads to the table that describes it.
    check("media.preview_px", &["reference/settings#media", "operations/", "contract/media#"]);
}

/// The excerpts of the results, as a browser shows them.
fn excerpts(page: &str) -> Vec<String> {
    let (_, results) = page.split_once("<ol class=\"hits\"").expect("results");
    // The footer has a paragraph too.
    let (results, _) = results.split_once("</ol>").expect("the end of the list");
    let texts = results.split("<p>").skip(1).filter_map(|rest| rest.split("</p>").next());
    texts.map(|text| unescaped(&text.replace("<mark>", "").replace("</mark>", ""))).collect()
}

#[test]
fn excerpts_are_plain_text() {
    let server = Server::demo();
    let check = |query: &str, expected: &str| {
        let shown = excerpts(&text(search(&server, query)));
        assert!(shown[0].contains(expected), "{query}: {shown:?}");
        for mark in ["`", "///", " # ", "| ", "\n"] {
            assert!(!shown.iter().any(|one| one.contains(mark)), "{query} {mark:?}: {shown:?}");
        }
    };
    // A doc comment in a block of code, a comment of a shell, a row of a table.
    check("edge rounded nearest", "target, each edge rounded to the nearest pixel, never outside");
    check("build PACKAGES ffmpeg", "with videos: --build-arg PACKAGES=ffmpeg");
    check("media.preview_px", "media.preview_px · 1024 · px · Long side of a Preview · restart");
}

#[test]
fn queries_without_results_get_a_message() {
    let server = Server::demo();
    let check = |query: &str, status: u16, expected: &str| {
        let response = search(&server, query);
        assert_eq!(response.status(), status, "{query}");
        let page = text(response);
        assert!(page.contains(expected), "{query}: {page}");
        assert!(found(&page).is_empty() && !page.contains("<script>"), "{query}: {page}");
    };
    check("", 200, "Type a word to search for");
    check("?!", 200, "Type a word to search for");
    check("xyzzyplugh", 200, "No page has all of these words");
    check(&format!("{HOSTILE} xyzzyplugh"), 200, "&lt;script&gt;alert(1)&lt;");
    check(&"x".repeat(201), 400, "at most 200 characters");
    check("a b c d e f g h i j k l m", 400, "too long");
    let swedish = server.get_with(&format!("{ROOT}?q="), &[("accept-language", "sv")]);
    assert!(text(swedish).contains("Skriv ett ord att söka efter"));
}

#[test]
fn error_responses_link_to_an_entry_of_the_reference() {
    let server = Server::demo();
    let entries = values(&text(server.get("/docs/guide/reference/errors")), "id");
    let check = |response: Response, status: u16, anchor: &str| {
        assert_eq!(response.status(), status, "{anchor}");
        let links: Vec<_> = response.headers().get_all("link").iter().collect();
        let link = links.last().expect("a link").to_str().expect("ASCII");
        let expected =
            format!("<{}/docs/guide/reference/errors#{anchor}>; rel=\"help\"", server.url);
        assert_eq!(link, expected);
        assert!(entries.contains(anchor), "no entry {anchor}");
    };
    let key = format!("ApiKey {DEMO_KEY}");
    let get = |path: &str| server.get_with(path, &[("authorization", &key)]);
    check(get("/content/v1/nothing/search"), 400, "enumopenapirequestvalidation");
    check(get("/content/v1/image/search?s=x"), 400, "typeopenapirequestvalidation");
    let key_request = server.client.post(format!("{}/user/v1/key", server.url));
    let key_request = key_request.header("authorization", &key).body("{\"name\": \"a\"}");
    check(key_request.send().expect("answer"), 403, "api_key_unsupported");
    check(get("/media/image/nothing.jpg"), 404, "404");
    check(get("/nothing"), 404, "404");
    check(server.get("/user/v1/user"), 401, "credentials_required");
    check(server.get("/user/v1/agreement"), 401, "credentials_required");
    let form = [("grant_type", "nothing")];
    let request = server.client.post(format!("{}/o/oauth2/token", server.url)).form(&form);
    let request = request.basic_auth("demo-client", Some("demo-client-secret"));
    check(request.send().expect("answer"), 400, "unsupported_grant_type");
    // An error page has its own link to the entry.
    let page = server.get_with("/item/image/nothing", &[("accept", "text/html")]);
    check(page, 404, "404");
    let page = text(server.get_with("/item/image/nothing", &[("accept", "text/html")]));
    assert!(values(&page, "href").contains("/docs/guide/reference/errors#404"), "{page}");
    // Successful responses have none.
    assert!(!get("/user/v1/user").headers().contains_key("link"));
}

#[test]
fn the_guide_is_valid_in_every_window_size_and_copies_code() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    for (path, name) in [
        (ROOT, "guide-index"),
        ("/docs/guide/reference/settings", "guide-settings"),
        ("/docs/guide/reference/errors", "guide-errors"),
        ("/docs/guide?q=signing+key", "guide-search"),
        ("/docs/guide?q=xyzzyplugh", "guide-search-none"),
    ] {
        browser.visit(&format!("{}{path}", server.url));
        browser.check_appearance(name);
    }
    let with_code = crawl(&server).into_iter().find(|(_, page)| page.contains("data-copy="));
    let (path, _) = with_code.expect("a page with code");
    browser.visit(&format!("{}{path}", server.url));
    browser.check_appearance("guide-code");
    let buttons =
        browser.eval("[...document.querySelectorAll('.copy')].every(one => !one.hidden)");
    assert_eq!(buttons, true);
}
