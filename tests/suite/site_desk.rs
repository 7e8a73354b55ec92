//! The customer web site in the daily work of a desk: crops judged by their pixels, purchases reported immediately,
//! searches that explain their results, pages that print and have no layout shifts.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde_json::{Value, json};

use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
    news,
    pictures::Picture,
};
use crate::site::Session;

/// The text of a page with unescaped slashes and ampersands.
fn plain(page: reqwest::blocking::Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/").replace("&amp;", "&")
}

/// A text for an item page with a word that is wider than any window, in Arabic where allowed.
fn long(name: &str) -> String {
    format!("{name} {}", "x".repeat(300))
}

/// The sum of the layout shifts since the browser opened the page.
fn layout_shift(browser: &Browser) -> f64 {
    let script = "
        const done = arguments[arguments.length - 1];
        let sum = 0;
        const add = (list) => list.getEntries().forEach((one) => { sum += one.value; });
        new PerformanceObserver(add).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => done(sum), 500);
    ";
    let body = json!({ "script": script, "args": [] });
    browser.post("/execute/async", &body).as_f64().expect("a number")
}

fn orders(server: &Server, session: &Session) -> usize {
    let token = format!("Session {}", session.csrf);
    let headers = [("cookie", session.cookie.as_str()), ("authorization", token.as_str())];
    let found: Value = server.get_with("/user/v1/order", &headers).json().expect("JSON");
    found["orders"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_crop_shows_the_pixels_of_the_hires_once_it_is_bought() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let query = "x=1000&y=700&width=800&height=600";
    let shown = format!("/item/{LARGE}/crop/hires?{query}");
    // Viewing the page buys nothing for any user.
    for user in ["demo-editor", "demo-buyer"] {
        let answer = Session::open(&server, user).get(&server, &shown);
        assert_eq!(answer.status(), 403, "{user}");
    }
    assert_eq!(server.get(&shown).status(), 403);
    assert_eq!(orders(&server, &session), 0);

    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", &format!("/item/{LARGE}/crop?{query}"));
    let source = "document.getElementById('source').textContent";
    let width = "document.getElementById('live').naturalWidth";
    assert!(browser.text(source).contains("191 × 144 pixels). Sharpness cannot be judged"));
    assert_eq!(browser.eval(width), 191);
    assert_eq!(browser.eval("document.getElementById('full').hidden"), true);
    // The markup states the size of its picture, and offers the one at full resolution.
    let smaller = browser.text("document.getElementById('smaller').textContent");
    assert!(smaller.contains("191 × 144") && smaller.contains("800 × 600"), "{smaller}");
    let own = "document.getElementById('code-own').textContent";
    let file = "demo-solnedgang-over-bergen-crop_w800_h600_x1000_y700.jpg";
    let copy = browser.text(own);
    assert!(copy.contains(&format!("src=\"{file}\"")) && copy.contains("width=\"800\""), "{copy}");
    browser.check_appearance("studio-preview");

    browser.follow("#show");
    assert!(browser.address().contains(query), "{}", browser.address());
    browser.wait("the Hires", &format!("{width} === 800"));
    assert!(browser.text(source).contains("Shown from the original"), "{}", browser.text(source));
    assert_eq!(browser.eval("document.getElementById('show').hidden"), true);
    assert_eq!(orders(&server, &session), 1);
    let answer = session.get(&server, &shown);
    assert_eq!(answer.headers()[CONTENT_TYPE], "image/jpeg");
    assert!(answer.headers().get("content-disposition").is_none());
    let pixels = Picture::decode(&answer.bytes().expect("bytes"));
    let key = crate::common::DEMO_KEY;
    let path = format!("/media/{LARGE}-crop_w800_h600_x1000_y700_NormalHires.jpg?ak={key}");
    assert!(pixels == Picture::decode(&server.bytes(&path)), "as its own address delivers it");
    browser.check_appearance("studio-hires");
    // While the frame moves the Preview is shown immediately; the Hires follows when it stops.
    browser.eval("document.getElementById('mover').focus()");
    browser.press("\u{E014}");
    browser.wait(
        "the next one",
        &format!("{width} === 800 && document.getElementById('live').src.includes('x=1001')"),
    );
    assert!(browser.text(own).contains("_x1001_y700.jpg"), "{}", browser.text(own));
    // A crop that is too large for that shows the note again.
    browser.click("#whole");
    browser.wait("the Preview", &format!("{width} === 1024"));
    assert!(
        browser.text(source).contains("Shown from the preview (1024"),
        "{}",
        browser.text(source)
    );
    assert_eq!(orders(&server, &session), 1);
    browser.check_layout("after looking");
}

#[test]
fn a_download_reports_its_cost_immediately() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    drop(browser.save_downloads());
    browser.log_in(&server.url, "demo-buyer", &format!("/item/{LARGE}"));
    let said = "document.querySelector('.download').innerText";
    assert!(browser.text(said).contains("10 of 10"), "{}", browser.text(said));
    browser.click("#buy button[type=submit]");
    browser.wait("the purchase", &format!("{said}.includes('Already bought')"));
    assert!(browser.text(said).contains("9 of 10"), "{}", browser.text(said));
    browser.check_layout("bought");
    // In the studio too, which shows the Hires from then on.
    let other = "image/demo-trumma-och-vin";
    browser.visit(&format!("{}/item/{other}/crop?x=10&y=10&width=600&height=400", server.url));
    let said = "document.querySelector('.take').innerText";
    assert!(browser.text(said).contains("9 of 10"), "{}", browser.text(said));
    browser.click("#download");
    browser.wait("the purchase", &format!("{said}.includes('8 of 10')"));
    browser.wait("the Hires", "document.getElementById('live').src.includes('/crop/hires?')");
    browser.check_layout("bought a crop");
}

#[test]
fn selected_items_stay_selected_and_the_collection_is_named() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/?p=FOTO");
    let picked = "[...document.querySelectorAll('.picker input')].map(one => one.checked)";
    browser.eval(
        "[...document.querySelectorAll('.picker input')].slice(1, 3).forEach(one => one.click())",
    );
    let before = browser.eval(picked);
    browser.click(".selection-menu summary");
    browser.fill("#name", "Vår vecka");
    browser.follow(".selection-panel button");
    let said = "document.querySelector('.said')";
    assert_eq!(browser.text(&format!("{said}.innerText")), "Added to the collection. Vår vecka");
    assert_eq!(browser.eval(picked), before);
    // The message is removed from the address.
    assert!(browser.address().ends_with("/?p=FOTO"), "{}", browser.address());
    browser.screenshot("picked.png");
    let link = browser.text(&format!("{said}.querySelector('a').getAttribute('href')"));
    // A reload keeps the selection, until it is cleared.
    browser.visit(&browser.address());
    assert_eq!(browser.eval(picked), before);
    browser.click("[data-do=clear]");
    assert_eq!(browser.eval(&format!("{picked}.includes(true)")), false);
    browser.visit(&format!("{}{link}", server.url));
    assert_eq!(browser.eval("document.querySelectorAll('.cells li').length"), 2);
    // From an item page too.
    browser.visit(&format!("{}/item/{LARGE}", server.url));
    browser.eval("document.querySelector('#collection').selectedIndex = 1");
    browser.follow("section[aria-labelledby=keep] button");
    assert!(browser.text(&format!("{said}.innerText")).contains("Vår vecka"));
}

#[test]
fn a_search_explains_conflicting_times_and_required_logins() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let page = |path: &str| plain(session.get(&server, path));
    let leads = |path: &str| {
        let answer = server.get(path);
        assert_eq!(answer.status(), 303, "{path}");
        answer.headers()[LOCATION].to_str().expect("ASCII").to_owned()
    };
    // Empty fields of a form are dropped from the address.
    assert_eq!(leads("/?q=berg&type=&tr=h&trs=&tre=&sort="), "/?q=berg&tr=h");
    assert_eq!(leads("/?q=&type="), "/");
    // Times that exclude each other.
    for times in ["tr=h&tre=2020-01-01", "trs=2020-02-01&tre=2020-01-01"] {
        let found = page(&format!("/?{times}"));
        assert!(found.contains("The selected times exclude each other"), "{times}: {found}");
    }
    assert!(!page("/?tr=h").contains("exclude each other"));
    // The login page names the media type that needs the login.
    let target = leads("/?type=graphic");
    let login = plain(server.get(&target));
    assert!(login.contains("For logged-in customers only: Graphics."), "{login}");
    let login = plain(
        server.get_with(&leads("/item/text/demo-aceh-rescue"), &[("accept-language", "sv")]),
    );
    assert!(login.contains("Bara för inloggade kunder: Texter."), "{login}");
    assert!(!plain(server.get("/o/login")).contains("For logged-in customers only"));
    // The default title of a notification is the search.
    let found = page("/?q=berg&facet=place.name:Florida");
    assert!(found.contains("&title=berg%2C+Florida&"), "{found}");
    let form = page("/notifications/new?type=email&mediaType=image&title=berg");
    assert!(form.contains("name=\"title\" value=\"berg\""), "{form}");
    let form = page("/notifications/new?type=email&mediaType=image");
    assert!(form.contains("name=\"title\" value=\"Photos\""), "{form}");
    // The page names the time zone, and an agreement that ends at midnight is shown with the day before.
    assert!(found.contains("Time zone: Europe/Stockholm."), "{found}");
    assert!(page("/").contains("sorted by arrival"));
    assert!(page("/account").contains("31 Dec 2035"), "{}", page("/account"));
}

#[test]
fn future_events_neither_come_first_nor_count_as_recent() {
    let mut event = news::document("Loppet om många år", &["PLAN"], "2026-10-21T12:00:00+02:00");
    event["datetime"] = json!("2099-06-01T12:00:00+02:00");
    let text = news::document("Loppet i dag", &["PLAN"], "2026-10-21T12:00:00+02:00");
    let server = news::server(&[], &[("calendar/run", event), ("text/run", text)]);
    let session = Session::open(&server, "demo-admin");
    let page = |path: &str| plain(session.get(&server, path));
    let newest = page("/?type=_all");
    assert!(newest.contains("Loppet i dag") && !newest.contains("många år"), "{newest}");
    assert!(newest.contains("Upcoming events are not shown."), "{newest}");
    let all = page("/?type=_all&upcoming=1");
    let place = |word: &str| all.find(word).unwrap_or_else(|| panic!("{word}: {all}"));
    assert!(place("många år") < place("Loppet i dag"));
    assert!(page("/?type=calendar").contains("många år"), "its own kind shows it");
    // The API keeps the sort order of its contract.
    let token = format!("Session {}", session.csrf);
    let headers = [("cookie", session.cookie.as_str()), ("authorization", token.as_str())];
    let found: Value =
        server.get_with("/content/v1/_all/search?tr=w", &headers).json().expect("JSON");
    assert_eq!(found["hits"][0]["headline"], "Loppet om många år");
    let form = [
        ("step", "try"),
        ("title", "a"),
        ("type", "stream"),
        ("mediaType", "_all"),
        ("q", "loppet"),
    ];
    let tried = plain(session.post(&server, "/notifications", &form));
    assert!(tried.contains("No matches in the last 7 days"), "{tried}");
    assert!(tried.contains("without upcoming events."), "{tried}");
}

#[test]
fn a_text_shows_its_lead_once_and_its_picture() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-admin");
    let page = plain(session.get(&server, "/item/text/demo-aceh-rescue"));
    assert_eq!(page.matches("fishermen rescued over 700 asylum seekers").count(), 1, "{page}");
    let (_, related) = page.split_once("Related items").expect("associations");
    let related = related.split("</section>").next().expect("its end");
    assert!(related.contains("demo-bridge-cables_NormalThumbnail.jpg\" width="), "{related}");
}

#[test]
fn the_zip_of_a_collection_keeps_its_order() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let uri = |id: &str| format!("{}/media/image/{id}", server.url);
    let ids = ["demo-urtavla", "demo-bridge-cables", "demo-solnedgang-over-bergen"];
    let uris = ids.map(uri);
    let mut fields = vec![("name", "Ordnad")];
    fields.extend(uris.iter().map(|uri| ("uri", uri.as_str())));
    let answer = session.post(&server, "/collections/add", &fields);
    let page = answer.headers()[LOCATION].to_str().expect("ASCII").to_owned();
    let page = page.split('?').next().expect("a path").to_owned();
    let names = |answer: reqwest::blocking::Response| {
        assert_eq!(answer.status(), 200);
        let script = "import sys,io,json,zipfile\n\
            print(json.dumps(zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())).namelist()))";
        let zip = answer.bytes().expect("bytes");
        let names = crate::common::oracle::python(script, &[], &zip);
        let names: Vec<String> = serde_json::from_slice(&names).expect("JSON");
        names.into_iter().filter(|name| name.ends_with(".jpg")).collect::<Vec<_>>()
    };
    let numbered = names(session.post(&server, &format!("{page}/zip"), &[]));
    let expected = [0, 1, 2].map(|place| format!("0{}_{}_NormalHires.jpg", place + 1, ids[place]));
    assert_eq!(numbered, expected);
    // Programs get the file names of the items, unless they request numbered ones.
    let id = page.rsplit('/').next().expect("an id");
    let key = format!("ApiKey {}", crate::common::DEMO_KEY);
    let zip = format!("/collection/v1/collection/{id}/zip");
    let get = |query: &str| server.get_with(&format!("{zip}{query}"), &[("authorization", &key)]);
    assert_eq!(names(get("")), ids.map(|id| format!("{id}_NormalHires.jpg")));
    assert_eq!(names(get("?numbered=true")), expected);
    assert_eq!(get("?numbered=perhaps").status(), 400);
}

/// A lock on the database that is released on drop.
struct Locked(Child);

impl Locked {
    fn begin(server: &Server) -> Self {
        let script = "import sqlite3, sys\n\
            db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
            db.execute('BEGIN IMMEDIATE')\n\
            print('locked', flush=True)\n\
            sys.stdin.read()";
        let file = server.data().join("wirephoto.db");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", script]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("./test installs it");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "locked\n");
        Self(child)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            drop(stdin.flush());
        }
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_login_that_cannot_be_verified_keeps_the_typed_name() {
    let server = Server::demo();
    let page = server.get("/o/login");
    let cookie = page.headers()["set-cookie"].to_str().expect("ASCII");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let page = plain(page);
    let (_, csrf) = page.split_once("name=\"csrf\" value=\"").expect("a token");
    let csrf = csrf.split('"').next().expect("a token");
    let form = [("csrf", csrf), ("username", "demo-editor"), ("password", "demo-editor-password")];
    let locked = Locked::begin(&server);
    let request = server.client.post(format!("{}/o/login", server.url));
    let answer = request.header("cookie", cookie).form(&form).send().expect("answer");
    drop(locked);
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().contains_key("retry-after"));
    let page = plain(answer);
    assert!(page.contains("value=\"demo-editor\""), "{page}");
    assert!(page.contains("You cannot log in right now."), "{page}");
    assert!(!page.contains("demo-editor-password"));
}

#[test]
fn pages_print_without_their_controls() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let media = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "media": "print" } });
    let hidden = |selector: &str| {
        let all = format!("[...document.querySelectorAll('{selector}')]");
        let seen = browser.eval(&format!("{all}.filter(one => one.offsetParent !== null).length"));
        assert_eq!(seen, 0, "{selector}");
        assert_ne!(browser.eval(&format!("{all}.length")), 0, "{selector}");
    };
    let sheets = || {
        let answer = browser.post("/print", &json!({ "shrinkToFit": true }));
        let script =
            "import base64, sys; sys.stdout.buffer.write(base64.b64decode(sys.stdin.read()))";
        let pdf = answer.as_str().expect("a PDF");
        let pdf = crate::common::oracle::python(script, &[], pdf.as_bytes());
        let is_page =
            |at: &[u8]| at.starts_with(b"/Type /Page\n") || at.starts_with(b"/Type /Page ");
        pdf.windows(12).filter(|at| is_page(at)).count()
    };
    browser.log_in(&server.url, "demo-editor", "/");
    browser.post("/goog/cdp/execute", &media);
    for selector in
        [".finder", ".facets", ".picker", ".selection-bar", ".site-foot", ".site-head nav"]
    {
        hidden(selector);
    }
    browser.screenshot("print-search.png");
    let count = browser.eval("document.querySelectorAll('.wall li').length");
    assert!(sheets() <= 2, "{} sheets for {count} pictures", sheets());
    browser.visit(&format!("{}/item/{LARGE}", server.url));
    browser.post("/goog/cdp/execute", &media);
    for selector in [".hero .act", ".download", ".programs", "form.line"] {
        hidden(selector);
    }
    browser.screenshot("print-item.png");
    assert!(sheets() <= 2, "{} sheets", sheets());
}

#[test]
fn the_studio_accepts_every_shape_without_layout_shifts() {
    let pictures = [
        ("wide", Picture::flat(6000, 4000, [90, 120, 60]).jpeg()),
        ("narrow", Picture::waves(300, 2400).jpeg()),
    ];
    let server = Server::with_pictures(&[], &pictures);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/wide/crop", server.url));
    let top = "document.getElementById('canvas').getBoundingClientRect().top";
    let before = browser.eval(top);
    browser.click("input[value=custom]");
    assert_eq!(browser.eval(top), before, "the photograph stays where it is");
    let wrong = "document.getElementById('ratio-wrong').offsetHeight > 0";
    browser.fill("#ratio", "wide");
    assert_eq!(browser.eval(wrong), true);
    browser.screenshot("studio-ratio.png");
    browser.fill("#ratio", "1.91:1");
    assert_eq!(browser.eval(wrong), false);
    let value = |name: &str| -> f64 {
        browser.text(&format!("document.getElementById('{name}').value")).parse().expect("pixels")
    };
    let ratio = value("width") / value("height");
    assert!((ratio - 1.91).abs() < 0.001, "{ratio}");
    // Without scripts too.
    let page = plain(server.get("/item/image/wide/crop?aspect=custom&ratio=1,91:1"));
    assert!(page.contains("name=\"height\" value=\"3141\""), "{page}");
    // A square of the Hires is one of the Preview.
    browser.click("#whole");
    browser.click("input[value=\"1:1\"]");
    let side = |name: &str| {
        browser
            .text(&format!("document.querySelector('[data-show=\"preview-{name}\"]').textContent"))
    };
    assert_eq!((side("width"), side("height")), ("683".to_owned(), "683".to_owned()));
    let page = plain(server.get("/item/image/wide/crop?aspect=1:1"));
    assert!(
        page.contains("\"preview-width\">683</span> × <span data-show=\"preview-height\">683<"),
        "{page}"
    );
    // A photograph that is much taller than wide fits the window.
    browser.visit(&format!("{}/item/image/narrow/crop", server.url));
    let height = browser.eval("document.getElementById('canvas').offsetHeight / innerHeight");
    let height = height.as_f64().expect("a number");
    assert!(height > 0.5 && height < 0.9, "{height}");
    browser.screenshot("studio-narrow.png");
    browser.check_layout("narrow");
}

const ARABIC: &str = "صورة من ستوكهولم";

/// A server whose texts and names have the maximum length, or are Arabic, with everything that a visitor can create;
/// the session of its user, and the page of the collection.
fn unwieldy() -> (Server, Session, String) {
    let mut document = news::document(&long("Rubrik"), &["FOTO"], "2026-10-01T10:00:00Z");
    for name in ["description_text", "byline", "source", "copyrightnotice", "usageterms", "ednote"]
    {
        document[name] = json!(long(name));
    }
    document["place"] = json!([{ "name": long("Ort"), "rel": "ort" }]);
    document["person"] = json!([{ "name": long("Namn") }]);
    let other = news::document(ARABIC, &["FOTO"], "2026-10-02T10:00:00Z");
    let server = news::server(&[], &[("image/long", document), ("image/arabic", other)]);
    let session = Session::open(&server, "demo-admin");
    let word = long("Namn");
    let name = &word[..190];
    let [one, two] = ["long", "arabic"].map(|id| format!("{}/media/image/{id}", server.url));
    let fields = [("name", name), ("uri", &one), ("uri", &two)];
    let made = session.post(&server, "/collections/add", &fields);
    let collection = made.headers()[LOCATION].to_str().expect("ASCII").to_owned();
    let mut fields = vec![("step", "save"), ("type", "stream"), ("mediaType", "image")];
    fields.extend([("title", name), ("q", name)]);
    session.post(&server, "/notifications", &fields);
    session.post(&server, "/account/keys", &[("name", &word[..80])]);
    let mut fields = vec![("method", "webhook"), ("name", &word[..60]), ("active", "on")];
    fields.extend([("setting.url", "https://example.org/"), ("secret.secret", &word[..60])]);
    session.post(&server, "/account/channels/edit", &fields);
    for id in ["long", "arabic"] {
        session.post(&server, &format!("/item/image/{id}/download"), &[]);
    }
    (server, session, collection)
}

#[test]
fn pages_have_no_layout_shifts_and_fit_the_longest_word() {
    let (server, _, collection) = unwieldy();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/");
    let query = format!("/?q={}", "x".repeat(300));
    let pages = "/ /?type=_all /item/image/long /item/image/arabic /collections /notifications \
        /item/image/long/crop?x=1&y=1&width=30&height=20 /notifications/new?title=a /account \
        /account/orders /account/keys /account/channels /account/users /nope";
    for path in pages.split_whitespace().chain([query.as_str(), collection.as_str()]) {
        browser.visit(&format!("{}{path}", server.url));
        let shift = layout_shift(&browser);
        assert!(shift < 0.05, "{path} shifts by {shift}");
        for width in [360, 1280] {
            browser.set_viewport(width, "light");
            let wide = browser.eval("[document.documentElement.scrollWidth, innerWidth]");
            assert!(wide[0].as_u64() <= wide[1].as_u64(), "{path} at {width}: {wide}");
        }
    }
    // Right-to-left text keeps its direction wherever it is shown.
    for (path, selector) in [
        ("/", ".headline"),
        ("/item/image/arabic", ".hero h1"),
        (collection.as_str(), ".cells .headline"),
        ("/account/orders", ".what a"),
        ("/item/image/arabic/crop", "h1 .of"),
    ] {
        browser.visit(&format!("{}{path}", server.url));
        let all = format!("[...document.querySelectorAll('{selector}')]");
        let found = format!("{all}.find(one => one.textContent.includes('{ARABIC}'))");
        let direction = browser.text(&format!("getComputedStyle({found}).direction"));
        assert_eq!(direction, "rtl", "{path} {selector}");
    }
    // Pictures that load late cause no layout shift.
    for (path, picture) in
        [("/item/image/long", ".mat img"), ("/item/image/long/crop", ".canvas img")]
    {
        browser.visit(&format!("{}{path}", server.url));
        let height = format!("document.querySelector('{picture}').getBoundingClientRect().height");
        let with = browser.eval(&height);
        assert_eq!(browser.break_picture(picture), with, "{path}");
        drop(browser.console_messages());
    }
}
