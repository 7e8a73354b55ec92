//! The customer web site as a picture desk uses it: facets, links back to the search, purchases, error pages.

use reqwest::header::{CONTENT_DISPOSITION, LOCATION};
use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    news,
};
use crate::site::Session;

fn plain(page: reqwest::blocking::Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/").replace("&amp;", "&")
}

/// The number of hits on a page of pictures.
fn count(page: &str) -> usize {
    page.matches("class=\"headline\"").count()
}

/// The target of the link with the text `label`.
fn href(page: &str, label: &str) -> String {
    let (before, _) =
        page.split_once(&format!(">{label}</a>")).unwrap_or_else(|| panic!("{label}: {page}"));
    let (_, href) = before.rsplit_once("<a href=\"").expect("a link");
    href.split('"').next().expect("an address").to_owned()
}

#[test]
fn a_facet_narrows_an_or_query_and_stays_when_nothing_is_found() {
    let server = Server::demo();
    let page = |path: &str| plain(server.get(path));
    let both = page("/?q=urtavla+OR+Falcon");
    assert_eq!(count(&both), 2, "{both}");
    let narrow = href(&both, "Florida");
    assert_eq!(narrow, "/?q=urtavla+OR+Falcon&facet=place.name%3AFlorida");
    let found = page(&narrow);
    assert_eq!(count(&found), 1, "{found}");
    // The search box keeps the input, and the form carries the facet.
    assert!(found.contains("name=\"q\" value=\"urtavla OR Falcon\""), "{found}");
    assert!(found.contains("name=\"facet\" value=\"place.name:Florida\""), "{found}");
    let nothing = page("/?q=no-such-word&facet=place.name%3AFlorida");
    assert_eq!(count(&nothing), 0);
    assert_eq!(
        href(&nothing.replace(" aria-current=\"true\"", ""), "Florida"),
        "/?q=no-such-word"
    );
}

#[test]
fn a_facet_has_the_same_name_on_every_page() {
    let document = |headline: &str, name: Option<&str>, created: &str| {
        let mut document = news::document(headline, &["TEXT"], created);
        document["subject"] = json!([{ "code": "06000000" }]);
        if let Some(name) = name {
            document["subject"][0]["name"] = json!(name);
        }
        document
    };
    let items = [
        ("text/named", document("Named", Some("environment"), "2026-10-01T10:00:00Z")),
        ("text/bare", document("Bare", None, "2026-10-02T10:00:00Z")),
    ];
    let server = news::server(&[], &items);
    let session = Session::open(&server, "demo-admin");
    for path in [
        "/?type=text",
        "/?type=text&q=named",
        "/?type=text&page=99",
        "/?type=text&q=nothing&facet=subject.code:06000000",
    ] {
        let page = plain(session.get(&server, path));
        let is_shown = page.contains(">environment</a>");
        assert!(is_shown && !page.contains(">06000000</a>"), "{path}: {page}");
    }
}

#[test]
fn the_name_of_a_code_is_as_new_as_the_hits() {
    let document = |headline: &str, name: &str, created: &str| {
        let mut document = news::document(headline, &["TEXT"], created);
        document["subject"] = json!([{ "code": "06000000", "name": name }]);
        document
    };
    let first = document("Before", "environment", "2026-10-01T10:00:00Z");
    let server = news::server(&[], &[("text/item", first)]);
    let session = Session::open(&server, "demo-admin");
    let page = || plain(session.get(&server, "/?type=text"));
    for _ in 0..2 {
        assert!(page().contains(">environment</a>"));
    }
    news::ingest(&server, "text/item", &document("Renamed", "climate", "2026-10-02T10:00:00Z"));
    let changed = server.until("the change", || {
        let page = page();
        page.contains("Renamed").then_some(page)
    });
    let is_named = changed.contains(">climate</a>") && !changed.contains(">environment</a>");
    assert!(is_named, "{changed}");
}

#[test]
fn an_item_leads_back_to_its_search_without_scripts() {
    let server = Server::demo();
    let page = |path: &str| plain(server.get(path));
    let found = page("/?q=sunset&sort=relevance");
    let (_, rest) = found.split_once("href=\"/item/image/").expect("a hit");
    let item = format!("/item/image/{}", rest.split('"').next().expect("an address"));
    let id = item.split(['/', '?']).nth(3).expect("an id").to_owned();
    assert!(item.ends_with("?from=q%3Dsunset%26sort%3Drelevance"), "{item}");
    let back = format!("href=\"/?q=sunset&sort=relevance#image-{id}\"");
    let shown = page(&item);
    assert!(shown.contains(&back), "{shown}");
    assert!(found.contains(&format!("id=\"image-{id}\"")), "{found}");
    // Through the studio too.
    let studio = page(&href(&shown, "Crop"));
    assert!(studio.contains(&format!("href=\"{item}\"")), "{studio}");
}

#[test]
fn a_delivery_states_its_cost_and_offers_only_channels_that_can_send() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/item/image/demo-trollslanda");
    let options = browser
        .eval("[...document.querySelectorAll('#channel option')].map(one => one.textContent)");
    let options: Vec<String> = serde_json::from_value(options).expect("texts");
    assert!(!options.is_empty());
    for option in &options {
        assert!(!option.contains("(download)") && !option.contains("(directory)"), "{options:?}");
    }
    let said = browser.text("document.querySelector('form.deliver').innerText");
    assert!(
        said.contains("Recorded as a purchase by") || said.contains("Already bought"),
        "{said}"
    );
    let chosen = browser.eval("!!document.querySelector('form.deliver [name=agr]').value");
    assert_eq!(chosen, true);
    browser.check_layout("deliver");
    browser.check_appearance("item-deliver");
    browser.follow("form.deliver button");
    assert!(
        browser.text("document.querySelector('main').innerText").contains("Delivery started.")
    );
}

#[test]
fn a_pdf_is_bought_alone_and_displayed_links_open() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-admin");
    let page = plain(session.get(&server, "/item/graphic/demo-sweden-map"));
    let links: Vec<&str> = page
        .split("<a href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| link.starts_with("/media/"))
        .collect();
    assert!(links.len() >= 3, "{page}");
    for link in links {
        assert_eq!(session.get(&server, link).status(), 200, "{link}");
    }
    let file =
        page.split("name=\"file\" value=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let file = file.into_iter().find(|file| file.ends_with(".pdf")).expect("a PDF");
    let answer =
        session.post(&server, "/item/graphic/demo-sweden-map/download", &[("file", file)]);
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().expect("bytes").starts_with(b"%PDF"));
    let other = [("file", "image/demo-bridge-cables.jpg")];
    let answer = session.post(&server, "/item/graphic/demo-sweden-map/download", &other);
    assert_eq!(answer.status(), 400);
}

#[test]
fn the_studio_offers_nothing_that_is_refused_and_names_a_crop() {
    let server = Server::demo();
    let buyer = Session::open(&server, "demo-buyer");
    let page = plain(buyer.get(&server, "/item/image/demo-aitzgorri-host/crop?w=100&h=100"));
    assert!(page.contains("Not covered") && !page.contains("id=\"download\""), "{page}");
    let editor = Session::open(&server, "demo-editor");
    let fields = [("x", "10"), ("y", "20"), ("width", "300"), ("height", "200")];
    let answer = editor.post(&server, "/item/image/demo-bridge-cables/crop/download", &fields);
    assert_eq!(answer.status(), 200);
    let name = answer.headers()[CONTENT_DISPOSITION].to_str().expect("ASCII");
    let expected = "attachment; filename=\"demo-bridge-cables-crop_w300_h200_x10_y20.jpg\"";
    assert_eq!(name, expected);
}

#[test]
fn an_item_without_its_file_offers_no_download() {
    let other = ("text/other", news::document("Other", &["TEXT"], "2026-10-01T10:00:00Z"));
    let server = news::server(&[], &[other]);
    let mut document = news::document("No file", &["FOTO"], "2026-10-01T10:00:00Z");
    document["uri"] = json!("https://x.example/media/image/bare");
    // An ingest from JSON lines has no files.
    let file = server.dir.path().join("bare.jsonl");
    std::fs::write(&file, document.to_string()).expect("written");
    let output = server.command(&["ingest", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let session = Session::open(&server, "demo-admin");
    server
        .until("the item", || plain(session.get(&server, "/")).contains("No file").then_some(()));
    let page = plain(session.get(&server, "/item/image/bare"));
    assert!(page.contains("No file") && !page.contains("Download original"), "{page}");
    let wall = plain(session.get(&server, "/"));
    assert!(wall.contains("class=\"no-picture\""), "{wall}");
}

#[test]
fn the_search_box_finds_addresses_and_treats_invalid_queries_as_words() {
    let server = Server::demo();
    let get = |path: &str| server.get(path);
    for q in ["https://x.example/item/image/demo-urtavla", "demo-urtavla"] {
        let found = plain(get(&format!("/?q={q}")));
        assert!(found.contains("/item/image/demo-urtavla"), "{q}: {found}");
        assert_eq!(count(&found), 1, "{q}");
    }
    for (q, said) in
        [("%22sunset", "A quotation mark is missing"), ("sunset:", "could not be interpreted")]
    {
        let answer = get(&format!("/?q={q}"));
        assert_eq!(answer.status(), 200, "{q}");
        let page = plain(answer);
        assert!(count(&page) == 1 && page.contains(said), "{q}: {page}");
    }
    let swedish = [("accept-language", "sv")];
    let page = plain(server.get_with("/?q=sunset)", &swedish));
    assert!(page.contains(") hör inte hemma här (tecken 7)"), "{page}");
}

#[test]
fn browsers_get_error_pages_with_the_name_of_the_visitor() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let headers = [
        ("cookie", session.cookie.as_str()),
        ("accept", "text/html,*/*;q=0.8"),
        ("accept-language", "sv"),
    ];
    let paths = [
        ("/nope", 404),
        ("/account/nope", 404),
        ("/?page=0", 400),
        ("/item/image/nope", 404),
        ("/item/image/demo-urtavla/download", 405),
    ];
    for (path, status) in paths {
        let answer = server.get_with(path, &headers);
        assert_eq!(answer.status(), status, "{path}");
        let page = plain(answer);
        for part in
            ["<html lang=\"sv\">", "Demo Editor", "href=\"/collections\"", "role=\"search\""]
        {
            assert!(page.contains(part), "{path}, {part}: {page}");
        }
    }
    let page = plain(server.get_with("/?page=0", &headers));
    assert!(page.contains("Sidnumret är 0; minst 1 krävs."), "{page}");
    // The responses for programs are unchanged.
    let answer = server.get("/nope");
    let body: Value = answer.json().expect("JSON");
    assert_eq!(body, json!({ "message": "no address /nope", "errors": [] }));
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/nope", server.url));
    browser.check_accessible("an unknown address");
}

#[test]
fn an_item_page_reserves_space_for_its_picture_and_breaks_long_words() {
    let word = "x".repeat(400);
    let mut document = news::document(&word, &["TEXT"], "2026-10-01T10:00:00Z");
    document["description_text"] = json!("صورة من ستوكهولم / TT");
    let archive = news::server(&[], &[("text/long", document)]);
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/item/image/demo-solnedgang-over-bergen");
    // The box has the same height with and without its picture.
    let height = "document.querySelector('.mat img').getBoundingClientRect().height";
    let with = browser.eval(height);
    browser.break_picture(".mat img");
    assert!(with.as_f64().expect("a height") > 100.0);
    assert_eq!(browser.eval(height), with);
    let is_hidden = "[...document.querySelectorAll('[hidden]')].every(one => getComputedStyle(one).display === 'none')";
    browser.visit(&format!("{}/item/image/demo-solnedgang-over-bergen/crop", server.url));
    assert_eq!(browser.eval(is_hidden), true);
    browser.log_in(&archive.url, "demo-admin", "/item/text/long");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    let direction =
        browser.eval("getComputedStyle(document.querySelector('.hero figcaption p')).direction");
    assert_eq!(direction, "rtl");
}

#[test]
fn a_delivery_keeps_the_link_back_to_the_search() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let page = plain(session.get(&server, "/item/image/demo-urtavla?from=q%3Dsunset"));
    let (_, select) = page.split_once("id=\"channel\"").expect("channels");
    let (_, channel) = select.split_once("option value=\"").expect("a channel");
    let channel = channel.split('"').next().expect("an id");
    let fields = [("channel", channel)];
    let path = "/item/image/demo-urtavla/deliver?from=q%3Dsunset";
    let answer = session.post(&server, path, &fields);
    assert_eq!(answer.status(), 303);
    assert_eq!(answer.headers()[LOCATION], "/item/image/demo-urtavla?from=q%3Dsunset&done=sent");
}

#[test]
fn an_event_without_a_time_shows_only_its_date() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    for path in ["/item/calendar/demo-city-run", "/?type=calendar&upcoming=1"] {
        let page = plain(session.get(&server, path));
        assert!(
            page.contains("5 Dec 2026") && !page.contains("5 Dec 2026 00:00"),
            "{path}: {page}"
        );
    }
}
