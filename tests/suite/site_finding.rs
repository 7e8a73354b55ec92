//! Finding pictures on the site: the wall in its densities, filters, keyboard, quick look, hits without an end, and the
//! notice of what has arrived.

use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP, PHONE},
    news,
    pictures::Picture,
};
use crate::site::Session;

/// WebDriver's code points of keys.
const LEFT: char = '\u{E012}';
const RIGHT: char = '\u{E014}';
const DOWN: char = '\u{E015}';
const ESCAPE: char = '\u{E00C}';
const ENTER: char = '\u{E007}';

/// The text of a page with unescaped slashes and ampersands.
fn plain(page: reqwest::blocking::Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/").replace("&amp;", "&")
}

/// The ids of the hits on a page, in order.
fn ids(page: &str) -> Vec<String> {
    let hits = page.split(" id=\"image-").skip(1);
    hits.filter_map(|rest| rest.split('"').next().map(str::to_owned)).collect()
}

/// Photographs of several shapes, by several people, one in grey and one with terms of use.
fn shapes() -> Server {
    let grey = Picture::new(900, 600, |x, _| [u8::try_from(x / 4).expect("a shade"); 3]);
    let pictures = [
        ("wide", Picture::waves(1200, 800).jpeg()),
        ("high", Picture::waves(800, 1200).jpeg()),
        ("square", Picture::waves(2000, 2000).jpeg()),
        ("panorama", Picture::waves(3000, 1000).jpeg()),
        ("grey", grey.jpeg_with(turbojpeg::Subsamp::Gray, 95)),
    ];
    let server = Server::with_pictures(&[], &pictures);
    for (id, byline, place) in [("wide", "Eva Ek", "Bergen"), ("high", "Erik Berg", "Oslo")] {
        let mut document = news::document(id, &["FOTO"], "2026-10-01T10:00:00Z");
        document["byline"] = json!(byline);
        document["place"] = json!([{ "name": place }]);
        document["person"] = json!([{ "name": "Anna Ås" }]);
        document["usageterms"] = json!("No commercial use");
        let folder = server.dir.path().join("again").join("image").join(id);
        std::fs::create_dir_all(&folder).expect("folder");
        std::fs::write(folder.join("item.json"), document.to_string()).expect("written");
        let output = server.command(&["ingest", &folder.to_string_lossy()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    server.until("the items", || ids(&plain(server.get("/?q=byline:berg"))).first().cloned());
    server
}

#[test]
fn filters_narrow_any_search_and_exclude() {
    let server = shapes();
    let found = |query: &str| {
        let answer = server.get(&format!("/content/v1/image/search?{query}"));
        assert_eq!(answer.status(), 200, "{query}");
        let answer: Value = answer.json().expect("JSON");
        let id = |hit: &Value| {
            hit["uri"].as_str().expect("a URI").rsplit('/').next().map(str::to_owned)
        };
        let mut ids: Vec<_> =
            answer["hits"].as_array().expect("hits").iter().filter_map(id).collect();
        ids.sort();
        ids.join(" ")
    };
    for (query, expected) in [
        ("orientation=landscape", "grey panorama wide"),
        ("orientation=portrait&orientation=square", "high square"),
        ("orientation=-landscape", "high square"),
        ("orientation=panorama", "panorama"),
        ("colour=monochrome", "grey"),
        ("colour=-monochrome&orientation=landscape", "panorama wide"),
        ("minpx=2000", "panorama square"),
        ("minpx=1200", "high panorama square wide"),
        ("terms=special", "high wide"),
        ("terms=none", "grey panorama square"),
        ("byline=Eva+Ek", "wide"),
        ("byline=-Eva+Ek", "grey high panorama square"),
        ("place.name=Bergen&place.name=Oslo", "high wide"),
        ("person.name=Anna+%C3%85s&place.name=-Oslo", "wide"),
        ("q=orientation:square+OR+byline:ek", "square wide"),
        ("q=orientation:square+OR+byline:ek&minpx=2000", "square"),
        ("q=width:>=3000", "panorama"),
        ("mediatype=text", ""),
    ] {
        assert_eq!(found(query), expected, "{query}");
    }
    let path = "/content/v1/image/search?orientation=round";
    assert_eq!(server.get(path).status(), 400);
    // The page offers the same, and a notification gets them as a part of its query.
    let session = Session::open(&server, "demo-admin");
    let page = |path: &str| plain(session.get(&server, path));
    let first = page("/?q=byline:*");
    let link = "<a href=\"/?q=byline%3A*&facet=place.name%3ABergen\">Bergen</a>";
    assert!(first.contains(link), "{first}");
    let narrow = page("/?q=byline:*&facet=place.name:Bergen");
    assert_eq!(ids(&narrow), ["wide"]);
    // Other values of the field can be added to it, or excluded.
    for other in ["facet=place.name%3ABergen&facet=place.name%3AOslo", "facet=-place.name%3AOslo"]
    {
        assert!(narrow.contains(other), "{other}: {narrow}");
    }
    assert!(narrow.contains("q=%28byline%3A*%29+place.name%3A%22Bergen%22"), "{narrow}");
    assert_eq!(ids(&page("/?facet=-place.name:Bergen&q=byline:*")), ["high"]);
    assert_eq!(ids(&page("/?facet=place.name:Bergen&facet=place.name:Oslo")).len(), 2);
    let none = page("/?facet=place.name:Bergen&facet=minpx:6000");
    assert!(none.contains("Search without filters"), "{none}");
}

#[test]
fn black_and_white_pictures_are_found_also_with_three_components() {
    let grain =
        |x: usize, y: usize| u8::try_from((x * 73 + y * 151 + x * y) % 200).expect("a shade");
    let grey = Picture::new(900, 600, |x, y| [grain(x, y); 3]);
    let tinted = Picture::new(900, 600, |x, y| [grain(x, y), grain(x, y) / 2, 20]);
    let pictures = [
        ("grey", grey.jpeg()),
        ("component", grey.jpeg_with(turbojpeg::Subsamp::Gray, 95)),
        ("tinted", tinted.jpeg()),
    ];
    let server = Server::with_pictures(&[], &pictures);
    server.wait_for_index();
    let found = |query: &str| {
        let mut found = ids(&plain(server.get(&format!("/?{query}"))));
        found.sort();
        found
    };
    assert_eq!(found("facet=colour:monochrome"), ["component", "grey"]);
    assert_eq!(found("facet=colour:colour"), ["tinted"]);
}

/// The number of pictures that are wholly within the window.
const WHOLE: &str = "[...document.querySelectorAll('.wall img')].filter(image => {
    const box = image.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight;
}).length";

#[test]
fn the_wall_has_three_densities_and_even_rows() {
    let server = Server::demo();
    let browser = Browser::open((1440, 900));
    browser.visit(&format!("{}/", server.url));
    assert!(browser.eval(WHOLE).as_u64().expect("a number") >= 12);
    let heights =
        "new Set([...document.querySelectorAll('.wall img')].map(one => one.clientHeight)).size";
    let width = "document.querySelector('.wall img').clientWidth";
    let mut widths = Vec::new();
    for density in ["large", "medium", "small"] {
        browser.follow(&format!(".density [value={density}]"));
        assert_eq!(browser.eval(heights), 1, "{density}");
        let pressed = "document.querySelector('.density [aria-pressed=true]').value";
        assert_eq!(browser.text(pressed), density);
        widths.push(browser.eval(width).as_u64().expect("pixels"));
        browser.check_appearance(&format!("wall-{density}"));
    }
    assert!(widths.is_sorted_by(|one, other| one > other), "{widths:?}");
    // The choice stays for other searches.
    browser.visit(&format!("{}/?q=sunset", server.url));
    assert_eq!(browser.eval("!!document.querySelector('.wall.small')"), true);
}

/// The id of the hit whose link has the focus.
const FOCUSED: &str = "document.activeElement.closest('[data-hits] > li')?.id ?? ''";

fn press(browser: &Browser, key: char) {
    browser.press(&key.to_string());
}

#[test]
fn hits_are_reached_selected_and_looked_at_by_keyboard() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/");
    let order = browser.eval("[...document.querySelectorAll('.wall > li')].map(one => one.id)");
    let order: Vec<String> = serde_json::from_value(order).expect("ids");
    press(&browser, 'j');
    browser.wait("the first hit", &format!("({FOCUSED}) === '{}'", order[0]));
    for (key, at) in [('j', 1), (RIGHT, 2), ('k', 1), (LEFT, 0), (LEFT, 0)] {
        press(&browser, key);
        browser.wait("the next hit", &format!("({FOCUSED}) === '{}'", order[at]));
    }
    press(&browser, DOWN);
    browser.wait("the row below", &format!("({FOCUSED}) !== '{}'", order[0]));
    press(&browser, 'k');
    press(&browser, 'x');
    browser.wait("a selected hit", "document.querySelectorAll('.picker :checked').length === 1");
    // A quick look at the hit, and at those beside it.
    browser.eval("document.querySelector('.wall a').focus()");
    press(&browser, ' ');
    browser.wait("the quick look", "document.querySelector('dialog.quick')?.open === true");
    let shown = "new URL(document.querySelector('dialog [data-open]').href).pathname";
    let path = |id: &str| format!("/item/{}", id.replacen('-', "/", 1));
    browser.wait("the first hit in it", &format!("{shown} === '{}'", path(&order[0])));
    press(&browser, RIGHT);
    browser.wait("the next one", &format!("{shown} === '{}'", path(&order[1])));
    browser.wait(
        "its picture",
        "document.querySelector('dialog img').complete && document.querySelector('dialog img').naturalWidth > 0",
    );
    browser.check_accessible("quick look");
    browser.screenshot("quick-look.png");
    browser.click("dialog [data-step=\"1\"]");
    browser.wait("the button's", &format!("{shown} === '{}'", path(&order[2])));
    press(&browser, ESCAPE);
    browser.wait("the wall", "!document.querySelector('dialog').open");
    browser.wait("its hit", &format!("({FOCUSED}) === '{}'", order[2]));
    // In the search box the keys are letters.
    browser.fill("input[name=q]", "jxk");
    assert_eq!(browser.text("document.querySelector('input[name=q]').value"), "jxk");
    browser.eval("document.querySelectorAll('.wall a')[2].focus()");
    press(&browser, ENTER);
    browser.wait("its page", &format!("location.pathname === '{}'", path(&order[2])));
    // The pages of items lead on to the next hit.
    browser.wait("the way on", "document.querySelector('.beside')?.hidden === false");
    press(&browser, RIGHT);
    browser.wait("the next page", &format!("location.pathname === '{}'", path(&order[3])));
    // By finger too.
    let phone = Browser::open(PHONE);
    phone.visit(&format!("{}/", server.url));
    phone.eval("document.querySelector('.look').click()");
    phone.wait("the quick look", "document.querySelector('dialog.quick').open");
    phone.wait_until_loaded();
    phone.check_layout("quick look on a phone");
}

/// A server with `count` photographs without files.
fn many(count: usize) -> Server {
    let first = ("image/first", news::document("First", &["FOTO"], "2025-10-01T10:00:00Z"));
    let server = news::server(&[], &[first]);
    let lines: Vec<String> = (0..count)
        .map(|number| {
            let created = format!("2026-10-{:02}T10:{:02}:00Z", number % 28 + 1, number % 60);
            let mut document = news::document(&format!("Harbour {number}"), &["FOTO"], &created);
            document["uri"] = json!(format!("https://x.example/media/image/h{number}"));
            document.to_string()
        })
        .collect();
    let file = server.dir.path().join("many.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("written");
    let output = server.command(&["ingest", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.until("the items", || {
        let total = format!("{} items", count + 1);
        plain(server.get("/")).replace(',', "").contains(&total).then_some(())
    });
    server
}

#[test]
fn hits_have_no_end_and_far_ones_are_emptied() {
    let server = many(1500);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/", server.url));
    let count = "document.querySelectorAll('[data-hits] > li').length";
    let mut last = 0;
    while last < 900 {
        browser.eval("scrollTo(0, document.documentElement.scrollHeight)");
        browser.wait("more hits", &format!("{count} > {last}"));
        last = browser.eval(count).as_u64().expect("a number");
    }
    // Each hit is there once.
    let distinct =
        "new Set([...document.querySelectorAll('[data-hits] > li')].map(one => one.id)).size";
    assert_eq!(browser.eval(distinct), browser.eval(count));
    browser
        .wait("emptied hits", "document.querySelectorAll('[data-hits] > .emptied').length > 300");
    let filled = "document.querySelectorAll('[data-hits] > li:not(.emptied)').length";
    assert!(browser.eval(filled).as_u64().expect("a number") < 600);
    // The address is that of the page in the window, and leads to it.
    browser.wait("the address", "Number(new URL(location.href).searchParams.get('page')) > 5");
    browser.eval("scrollTo(0, 0)");
    browser.wait("the first page", "!location.search.includes('page=')");
    browser.wait("hits again", "!document.querySelector('[data-hits] > li').matches('.emptied')");
    assert!(browser.text("document.querySelector('.headline').textContent").contains("Harbour"));
    // A page in the middle leads up, too.
    browser.visit(&format!("{}/?page=4", server.url));
    browser.click(".earlier a");
    browser.wait("earlier hits", &format!("{count} >= 120"));
    let first = browser.text("document.querySelector('[data-hits] > li').id");
    assert!(plain(server.get("/?page=3")).contains(&format!("id=\"{first}\"")), "{first}");
    browser.check_layout("a long wall");
    // A part of a page has no head.
    let part = plain(server.get("/?page=2&part=hits"));
    assert!(part.contains("data-page=\"2\"") && !part.contains("<html"), "{part}");
    assert_eq!(ids(&part), ids(&plain(server.get("/?page=2"))));
}

#[test]
fn what_has_arrived_is_counted_and_the_way_back_leads_to_the_place() {
    let server = many(200);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/");
    let notice = "document.querySelector('.arrivals a')";
    assert_eq!(browser.eval(&format!("{notice}.hidden")), true);
    for (id, text) in [("new-1", "1 new item"), ("new-2", "2 new items")] {
        let document = json!({ "headline": id, "product": [{ "code": "FOTO" }] });
        news::ingest(&server, &format!("image/{id}"), &document);
        server.until("the item", || {
            // A page asks again when it is seen again.
            browser.eval("document.dispatchEvent(new Event('visibilitychange'))");
            (browser.text(&format!("{notice}.textContent")) == text).then_some(())
        });
    }
    browser.check_layout("new items");
    browser.follow(".arrivals a");
    assert!(browser.text("document.querySelector('.headline').textContent").starts_with("new-"));
    // From the page of an item the browser returns to the place in the longer list.
    let count = "document.querySelectorAll('[data-hits] > li').length";
    while browser.eval(count).as_u64().expect("a number") < 180 {
        browser.eval("scrollTo(0, document.documentElement.scrollHeight)");
        std::thread::yield_now();
    }
    let tile = "[...document.querySelectorAll('[data-hits] > li')][150]";
    browser.eval(&format!("{tile}.scrollIntoView()"));
    browser.wait("the address", "location.search.includes('page=3')");
    let id = browser.text(&format!("{tile}.id"));
    browser.eval(&format!("{tile}.querySelector('a').click()"));
    browser.wait("its page", "location.pathname.startsWith('/item/')");
    browser.eval("history.back()");
    browser.wait("the hit", &format!(
        "(box => box && Math.abs(box.top) < innerHeight)(document.getElementById('{id}')?.getBoundingClientRect())"
    ));
}

#[test]
fn saved_searches_are_on_the_first_page() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let fields = [
        ("step", "save"),
        ("type", "stream"),
        ("mediaType", "image"),
        ("title", "Skyar & sol"),
        ("q", "sunset"),
    ];
    assert_eq!(session.post(&server, "/notifications", &fields).status(), 303);
    let page = plain(session.get(&server, "/"));
    let link = "<a href=\"/?type=image&q=sunset&written=1\">Skyar & sol</a>";
    assert!(page.contains("Saved searches") && page.contains(link), "{page}");
    assert!(!plain(session.get(&server, "/?q=sunset")).contains("Saved searches"));
    assert!(!plain(server.get("/")).contains("Saved searches"));
}

/// Items of which the demo buyer's agreements cover those with `FOTO`.
fn names() -> Server {
    let item = |headline: &str, person: &str, code: &str| {
        let mut document = news::document(headline, &[code], "2026-10-01T10:00:00Z");
        document["person"] = json!([{ "name": person }]);
        document["place"] = json!([{ "name": "Bergslagen" }]);
        document["subject"] = json!([{ "name": "Bergsbruk", "code": "1" }]);
        document["language"] = json!("sv");
        document
    };
    let items = [
        ("image/a", item("Bergen i regn", "Erik Berg", "FOTO")),
        ("image/b", item("Bergen och fjorden", "Eva Bergström", "FOTO")),
        ("image/c", item("Bergtroll i det hemliga", "Erik Bergtagen", "SPORT")),
        ("image/d", item("Möten i fjorden", "Anna Ek", "FOTO")),
    ];
    news::server(&[], &items)
}

/// The key of the demo buyer.
const BUYER_KEY: &str = crate::search::BUYER_KEY;

#[test]
fn a_text_is_completed_from_what_its_caller_would_find() {
    let server = names();
    let suggest = |query: &str, key: Option<&str>| -> Value {
        let header = key.map(|key| format!("ApiKey {key}"));
        let headers: Vec<_> = header.iter().map(|key| ("authorization", key.as_str())).collect();
        let answer = server.get_with(&format!("/content/v1/image/suggest?{query}"), &headers);
        assert_eq!(answer.status(), 200, "{query}");
        answer.json().expect("JSON")
    };
    let buyer = suggest("q=berg", Some(BUYER_KEY));
    let count = |key: &str, count: u64| json!({ "key": key, "count": count });
    let words =
        [count("bergen", 2), count("bergsbruk", 3), count("bergslagen", 3), count("bergström", 1)];
    let mut found = buyer["words"].as_array().expect("words").clone();
    found.sort_by_key(|one| one["key"].to_string());
    assert_eq!(found, words);
    let persons = [count("Erik Berg", 1), count("Eva Bergström", 1)];
    assert_eq!(buyer["facets"]["person.name"], json!(persons));
    assert_eq!(buyer["facets"]["place.name"], json!([count("Bergslagen", 3)]));
    assert_eq!(buyer["facets"]["subject.name"], json!([count("Bergsbruk", 3)]));
    // Without credentials all photographs are found, and each suggestion finds what it says.
    let all = suggest("q=berg&s=20", None);
    let all = all["words"].as_array().expect("words");
    assert!(all.iter().any(|one| one["key"] == "bergtroll"), "{all:?}");
    for one in all {
        let path =
            format!("/content/v1/image/search?q={}&s=0", one["key"].as_str().expect("a word"));
        let searched: Value = server.get(&path).json().expect("JSON");
        assert_eq!(searched["total"], one["count"], "{one}");
    }
    // The words before, filters and times narrow the counts.
    assert_eq!(suggest("q=regn+berge", Some(BUYER_KEY))["words"], json!([count("bergen", 1)]));
    let filtered = suggest("q=berge&person.name=Erik+Berg", Some(BUYER_KEY));
    assert_eq!(filtered["words"], json!([count("bergen", 1)]));
    assert_eq!(suggest("q=berge&tr=h", Some(BUYER_KEY))["words"], json!([]));
    for query in ["", "q=b", "q=berg+", "q=byline:berg", "q=%22berg"] {
        let nothing = suggest(query, None);
        assert_eq!(nothing["words"], json!([]), "{query}");
    }
    // A spelling that finds something.
    let spelling = |text: &str| {
        suggest(&format!("spelling=true&q={text}"), Some(BUYER_KEY))["spelling"].clone()
    };
    assert_eq!(spelling("begren+regn"), json!("bergen regn"));
    assert_eq!(spelling("fjroden"), json!("fjorden"));
    for none in ["bergen", "xyzzy", "hemlgia", "byline:begren"] {
        assert_eq!(spelling(none), Value::Null, "{none}");
    }
    for (query, expected) in [("q=a&s=21", 400), ("spelling=x", 400)] {
        assert_eq!(server.get(&format!("/content/v1/image/suggest?{query}")).status(), expected);
    }
    assert_eq!(server.get("/content/v1/text/suggest?q=berg").status(), 401);
}

#[test]
fn the_search_box_suggests_and_matches_are_marked() {
    let server = names();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-buyer", "/");
    let shown = "[...document.querySelectorAll('[role=option] span:first-child')].map(one => one.textContent)";
    browser.fill("input[name=q]", "fjorden berg");
    browser.wait("suggestions", &format!("({shown}).length > 0"));
    let options = browser.eval(shown).to_string();
    assert!(options.contains("fjorden bergen") && !options.contains("troll"), "{options}");
    browser.check_accessible("suggestions");
    browser.screenshot("suggestions.png");
    press(&browser, ESCAPE);
    assert_eq!(browser.eval(&format!("({shown}).length")), 0);
    // A name becomes a filter.
    browser.fill("input[name=q]", "erik be");
    browser.wait("suggestions", &format!("({shown}).includes('Erik Berg')"));
    browser.eval(
        "[...document.querySelectorAll('[role=option]')]
        .find(one => one.dataset.facet === 'person.name:Erik Berg').click()",
    );
    browser.wait("the search", "location.search === '?facet=person.name%3AErik+Berg'");
    assert_eq!(browser.eval("document.querySelectorAll('.wall > li').length"), 1);
    // A word is completed.
    browser.visit(&format!("{}/", server.url));
    browser.fill("input[name=q]", "fjor");
    browser.wait("suggestions", &format!("({shown}).includes('fjorden')"));
    browser.press(&format!("{DOWN}{ENTER}"));
    browser.wait("the search", "location.search === '?q=fjorden'");
    let marked = "[...document.querySelectorAll('.headline mark')].map(one => one.textContent)";
    assert_eq!(browser.eval(marked), json!(["fjorden", "fjorden"]));
    // Other forms of a word are marked, too, and another spelling is offered without scripts.
    let page = plain(server.get("/?q=m%C3%B6te"));
    assert!(page.contains("<mark>Möten</mark> i fjorden"), "{page}");
    let page = plain(server.get("/?q=begren"));
    assert!(
        page.contains("Did you mean <a href=\"/?q=bergen\" dir=\"auto\">bergen</a>?"),
        "{page}"
    );
}
