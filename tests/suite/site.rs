//! The customer web site: common features of its pages, the search, the item pages.

use std::collections::BTreeSet;

use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    checkout, news,
};

/// A login through the forms, without a browser: the session cookie and the CSRF token of its forms.
pub struct Session {
    pub cookie: String,
    pub csrf: String,
}

impl Session {
    pub fn open(server: &Server, user: &str) -> Self {
        let page = server.get("/o/login");
        let form_cookie = cookie(&page).expect("a form cookie");
        let csrf = field(&page.text().expect("text"), "csrf");
        let password = format!("{user}-password");
        let form = [("csrf", csrf.as_str()), ("username", user), ("password", &password)];
        let request = server.client.post(format!("{}/o/login", server.url));
        let answer = request.header(COOKIE, form_cookie).form(&form).send().expect("answer");
        assert_eq!(answer.status(), 303);
        let cookie = cookie(&answer).expect("a session");
        let page = server.get_with("/", &[("cookie", &cookie)]).text().expect("text");
        Self { csrf: field(&page, "csrf"), cookie }
    }

    pub fn get(&self, server: &Server, path: &str) -> reqwest::blocking::Response {
        server.get_with(path, &[("cookie", &self.cookie)])
    }

    /// Submits a form with the token.
    pub fn post(
        &self,
        server: &Server,
        path: &str,
        fields: &[(&str, &str)],
    ) -> reqwest::blocking::Response {
        let mut form = vec![("csrf", self.csrf.as_str())];
        form.extend_from_slice(fields);
        let request = server.client.post(format!("{}{path}", server.url));
        request.header(COOKIE, &self.cookie).form(&form).send().expect("answer")
    }
}

fn cookie(response: &reqwest::blocking::Response) -> Option<String> {
    let lines = response.headers().get_all(SET_COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok()?.split(';').next());
    pairs.filter(|pair| !pair.ends_with('=')).map(str::to_owned).next()
}

/// The text of a page with unescaped slashes.
fn plain(page: reqwest::blocking::Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/")
}

/// The value of the first field with that name.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).expect("a field");
    rest.split('"').next().expect("a value").to_owned()
}

const MAIN: &str = "document.querySelector('main').innerText";

#[test]
fn the_archive_is_searched_and_narrowed_without_scripts() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let page = |path: &str| plain(session.get(&server, path));
    let count = |page: &str| page.matches("class=\"headline\"").count();
    assert_eq!(count(&page("/?q=sunset")), 1);
    assert_eq!(count(&page("/?q=nothing-like-it")), 0);
    // A facet narrows the hits and can be removed again.
    let all = page("/");
    assert!(all.contains("Copyright holder") && all.contains("Aitzol Berasategi"), "{all}");
    let narrow = page("/?facet=copyrightholder:Aitzol+Berasategi");
    assert!(count(&narrow) > 1 && count(&narrow) < count(&all));
    assert!(
        narrow.contains("<a href=\"/\" aria-current=\"true\">Aitzol Berasategi</a>"),
        "{narrow}"
    );
    let texts = page("/?type=text");
    assert!(texts.contains("Over 900 asylum seekers") && !texts.contains("class=\"headline\""));
    // The page of products shows their names.
    assert!(all.contains(">Photo</a>"));
    // An error is shown beside the input.
    for (path, word) in [("/?q=x&trs=yesterday", "yesterday"), ("/?type=x", "")] {
        let answer = session.get(&server, path);
        assert_eq!(answer.status(), 400, "{path}");
        let text = answer.text().expect("text");
        assert!(text.contains("role=\"alert\"") && text.contains(word), "{path}: {text}");
    }
    for path in ["/?page=0", "/?page=x", "/?q=a&q=b", "/?page=99999999999999999999"] {
        assert_eq!(session.get(&server, path).status(), 400, "{path}");
    }
}

#[test]
fn selected_hits_become_a_collection() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let page = plain(session.get(&server, "/"));
    let uris: Vec<&str> = page
        .split("name=\"uri\" value=\"")
        .skip(1)
        .take(3)
        .map(|rest| rest.split('"').next().expect("a value"))
        .collect();
    assert_eq!(uris.len(), 3);
    let mut fields = vec![("name", "Three of them"), ("return_to", "/?q=a&page=1")];
    fields.extend(uris.iter().map(|uri| ("uri", *uri)));
    let answer = session.post(&server, "/collections/add", &fields);
    assert_eq!(answer.status(), 303);
    let location = answer.headers()[LOCATION].to_str().expect("ASCII").to_owned();
    let token = format!("Session {}", session.csrf);
    let headers = [("cookie", session.cookie.as_str()), ("authorization", token.as_str())];
    let found = server.get_with("/collection/v1/collection", &headers);
    let found: Value = found.json().expect("JSON");
    assert_eq!((&found[0]["name"], &found[0]["content"]), (&json!("Three of them"), &json!(uris)));
    let id = found[0]["id"].as_str().expect("an id");
    assert_eq!(location, format!("/?q=a&page=1&done=added&in={id}"));
}

#[test]
fn anonymous_visitors_search_photographs_and_log_in_for_the_rest() {
    let server = Server::demo();
    assert_eq!(server.get("/?q=sunset").status(), 200);
    for path in ["/?type=text", "/?type=_all&q=a", "/item/text/demo-aceh-rescue"] {
        let answer = server.get(path);
        assert_eq!(answer.status(), 303, "{path}");
        let target = answer.headers()[LOCATION].to_str().expect("ASCII").to_owned();
        assert!(target.starts_with("/o/login?return_to="), "{target}");
    }
    let closed = server.restart(&["search.open_images=false"]);
    assert_eq!(closed.get("/").status(), 303);
}

#[test]
fn ten_thousand_hits_are_paged_through_to_the_last_allowed_page() {
    let documents: Vec<(String, Value)> = (0..10_050)
        .map(|number| {
            let created = format!("2026-10-{:02}T10:{:02}:00Z", number % 28 + 1, number % 60);
            let headline = format!("Harbour number {number}");
            (format!("text/t{number}"), news::document(&headline, &["TEXT"], &created))
        })
        .collect();
    let lines: Vec<String> = documents
        .iter()
        .map(|(key, document)| {
            let mut document = document.clone();
            document["uri"] = json!(format!("https://x.example/media/{key}"));
            document.to_string()
        })
        .collect();
    let first = ("text/other", news::document("Other", &["TEXT"], "2026-10-01T10:00:00Z"));
    let server = news::server(&[], &[first]);
    let file = server.dir.path().join("many.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("written");
    let output = server.command(&["ingest", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let session = Session::open(&server, "demo-admin");
    let page = |path: &str| session.get(&server, path).text().expect("text");
    let first = server.until("the items", || {
        let first = page("/?type=text&q=harbour");
        first.contains("10,050 items").then_some(first)
    });
    let headlines = |page: &str| -> BTreeSet<String> {
        let found = page.split("Harbour number ").skip(1);
        found.filter_map(|rest| rest.split('<').next().map(str::to_owned)).collect()
    };
    assert_eq!(headlines(&first).len(), 60);
    let last = page("/?type=text&q=harbour&page=160");
    assert_eq!(headlines(&last).len(), 60);
    assert!(headlines(&first).is_disjoint(&headlines(&last)));
    assert!(last.contains("rel=\"prev\"") && !last.contains("rel=\"next\""));
}

#[test]
fn pages_are_valid_and_accessible_in_every_size_light_and_dark() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/", server.url));
    browser.check_appearance("search-stranger");
    browser.log_in(&server.url, "demo-editor", "/?type=_all");
    browser.check_layout("search");
    browser.check_appearance("search-all");
    browser.visit(&format!("{}/?q=sunset", server.url));
    browser.check_appearance("search-words");
    for key in [
        "image/demo-bridge-cables",
        "text/demo-aceh-rescue",
        "video/demo-hubble-pan",
        "graphic/demo-sweden-map",
        "calendar/demo-press-meeting",
    ] {
        browser.visit(&format!("{}/item/{key}", server.url));
        browser.check_appearance(&format!("item-{}", key.split('/').next().expect("a type")));
    }
}

#[test]
fn an_item_of_every_type_shows_its_type_and_is_downloaded() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let downloads = browser.save_downloads();
    browser.log_in(&server.url, "demo-admin", "/item/graphic/demo-sweden-map");
    // Its picture needs a login; the browser loads it with the session.
    browser.check_layout("graphic");
    assert!(browser.text(MAIN).contains("Sweden by county"));
    browser.click(".download button");
    let zip = downloads.join("demo-sweden-map.zip");
    // The browser reserves the name with an empty file; an archive ends with its directory.
    let is_whole = |bytes: &Vec<u8>| bytes.windows(4).any(|four| four == b"PK\x05\x06");
    server.until("the download", || std::fs::read(&zip).ok().filter(is_whole));
    browser.visit(&format!("{}/item/video/demo-hubble-pan", server.url));
    let play = "(video => { video.muted = true; video.play(); return 1; })(document.querySelector('video'))";
    browser.eval(play);
    browser.wait("the video", "document.querySelector('video').readyState >= 2");
    browser.visit(&format!("{}/item/calendar/demo-press-meeting", server.url));
    let shown = browser.text(MAIN);
    assert!(shown.contains("12 Nov 2026 10:00") && shown.contains("Demohallen"), "{shown}");
    browser.visit(&format!("{}/item/text/demo-aceh-rescue", server.url));
    assert!(browser.text(MAIN).contains("Major general Fuad Basya"));
    browser.check_layout("text");
}

#[test]
fn versions_of_an_item_link_to_each_other() {
    let document = |headline: &str, created: &str| news::document(headline, &["TEXT"], created);
    let mut second = document("Second", "2026-10-02T10:00:00Z");
    second["replacing"] = json!(["http://x.example/media/text/first"]);
    let first = document("First", "2026-10-01T10:00:00Z");
    let server = news::server(&[], &[("text/first", first)]);
    news::ingest(&server, "text/second", &second);
    let session = Session::open(&server, "demo-admin");
    let page = |path: &str| plain(session.get(&server, path));
    let link = "<a href=\"/item/text/first\">";
    server.until("the newer one", || page("/item/text/second").contains(link).then_some(()));
    assert!(
        page("/item/text/first").contains("<a href=\"/item/text/second\">Show newer version</a>")
    );
}

#[test]
fn the_session_cookie_opens_what_is_free_and_buys_nothing() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let get = |path: &str| session.get(&server, path);
    for path in [
        "graphic/demo-sweden-map_NormalPreview.jpg",
        "video/demo-hubble-pan_NormalPreview.mp4",
        "text/demo-aceh-rescue.json",
    ] {
        assert_eq!(server.get(&format!("/media/{path}")).status(), 401, "{path}");
        let answer = get(&format!("/media/{path}"));
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["cache-control"], "private, no-cache", "{path}");
        assert!(answer.headers()["vary"].to_str().expect("ASCII").contains("Cookie"), "{path}");
    }
    // Another site could make a browser request these.
    for path in [
        "image/demo-bridge-cables.jpg",
        "image/demo-bridge-cables-crop_w10_h10.jpg",
        "graphic/demo-sweden-map.pdf",
        "text/demo-aceh-rescue.zip",
        "image/demo-bridge-cables?channel=user:demo-editor:x",
    ] {
        assert_eq!(get(&format!("/media/{path}")).status(), 401, "{path}");
    }
    // A cookie does not make up for invalid credentials.
    let mixed = [("cookie", session.cookie.as_str()), ("authorization", "ApiKey nonsense")];
    let path = "/media/graphic/demo-sweden-map_NormalPreview.jpg";
    assert_eq!(server.get_with(path, &mixed).status(), 401);
}

#[test]
fn the_apis_accept_a_session_only_with_its_form_token() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let user = |headers: &[(&str, &str)]| server.get_with("/user/v1/user", headers);
    let cookie = ("cookie", session.cookie.as_str());
    let token = format!("Session {}", session.csrf);
    assert_eq!(user(&[cookie, ("authorization", &token)]).status(), 200);
    assert_eq!(user(&[cookie]).status(), 401);
    assert_eq!(user(&[("authorization", &token)]).status(), 401);
    let other = Session::open(&server, "demo-buyer");
    assert_eq!(user(&[("cookie", &other.cookie), ("authorization", &token)]).status(), 401);
    assert_eq!(user(&[cookie, ("authorization", "Session ")]).status(), 401);
}

#[test]
fn forms_without_their_token_change_nothing() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let send = |path: &str, csrf: &str, origin: Option<&str>| {
        let request = server.client.post(format!("{}{path}", server.url));
        let mut request = request.header(COOKIE, &session.cookie).form(&[("csrf", csrf)]);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.send().expect("answer")
    };
    let path = "/item/image/demo-bridge-cables/download";
    for csrf in ["", "wrong"] {
        assert_eq!(send(path, csrf, None).status(), 400, "{csrf}");
        assert_eq!(send(path, csrf, Some("https://evil.example")).status(), 400, "{csrf}");
    }
    // A page of ours from an earlier session: the form is shown again, and nothing is submitted automatically.
    let again = send(path, "old", Some(&server.url));
    assert_eq!(again.status(), 200);
    assert!(again.text().expect("text").contains(">Send<"));
    let orders = server.get_with(
        "/user/v1/order",
        &[("cookie", &session.cookie), ("authorization", &format!("Session {}", session.csrf))],
    );
    assert_eq!(orders.json::<Value>().expect("JSON")["orders"], json!([]));
}

/// Collects every path of the site that accepts a form, from the sources.
fn forms(folder: &std::path::Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("sources").flatten() {
        if entry.path().is_dir() {
            forms(&entry.path(), found);
            continue;
        }
        let source = std::fs::read_to_string(entry.path()).expect("a source");
        let routes = source.split(".route(").skip(1);
        let posts =
            routes.filter(|route| route.lines().next().is_some_and(|l| l.contains("post(")));
        found.extend(posts.filter_map(|route| Some(route.split('"').nth(1)?.to_owned())));
    }
}

#[test]
fn every_form_of_the_site_needs_the_token_of_its_session() {
    let mut found = BTreeSet::new();
    forms(&checkout("src/http/site"), &mut found);
    // Preferences of a browser have no owner, and a link in a mail carries its own token.
    for path in ["/language", "/scheme", "/density", "/mail/{token}", "/unsubscribe/{token}"] {
        assert!(found.remove(path), "{path}: {found:?}");
    }
    assert!(found.len() > 20, "{found:?}");
    let server = Server::demo();
    let session = Session::open(&server, "demo-admin");
    for path in found {
        let path =
            path.replace("{media_type}/{id}", "image/demo-bridge-cables").replace("{id}", "1");
        for csrf in ["", "wrong"] {
            let request = server.client.post(format!("{}{path}", server.url));
            let request = request.header(COOKIE, &session.cookie).form(&[("csrf", csrf)]);
            let answer = request.header("origin", "https://evil.example").send().expect("answer");
            assert_eq!(answer.status(), 400, "{path}");
            assert!(answer.text().expect("text").contains("The form has expired"), "{path}");
        }
        // An anonymous visitor learns nothing more.
        let answer = server.post_form(&path, &[("csrf", "")]);
        assert_eq!(answer.status(), 400, "{path}");
    }
}

#[test]
fn a_form_of_another_site_is_not_resumed_after_the_login() {
    let server = Server::demo();
    let page = server.get("/o/login");
    let (form, csrf) =
        (cookie(&page).expect("a cookie"), field(&page.text().expect("text"), "csrf"));
    for action in ["/collections", "/docs/../o/consent", "/item/image/demo-bridge-cables/download"]
    {
        let smuggled =
            [("kept_action", action), ("kept_fields", "name=smuggled"), ("kept_token", "x")];
        let mut fields = vec![("csrf", csrf.as_str()), ("username", "demo-editor")];
        fields.extend_from_slice(&smuggled);
        for password in ["wrong", "demo-editor-password"] {
            let mut fields = fields.clone();
            fields.push(("password", password));
            // The order of fields matters to the parser: the forwarded field may be anywhere.
            fields.rotate_left(2);
            let request = server.client.post(format!("{}/o/login", server.url));
            let answer = request.header(COOKIE, &form).form(&fields).send().expect("answer");
            let text = answer.text().expect("text");
            assert!(!text.contains("smuggled") && !text.contains(">Send<"), "{action}: {text}");
        }
    }
}

#[test]
fn an_item_is_delivered_through_a_channel_of_the_visitor() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let page = plain(session.get(&server, "/item/image/demo-bridge-cables"));
    assert!(
        page.contains("<option value=\"user:demo-editor:demo-folder\" dir=\"auto\">demo-folder"),
        "{page}"
    );
    let path = "/item/image/demo-bridge-cables/deliver";
    let answer = session.post(&server, path, &[("channel", "user:demo-editor:demo-folder")]);
    assert_eq!(answer.headers()[LOCATION], "/item/image/demo-bridge-cables?done=sent");
    server.until("the delivery", || {
        let page = plain(session.get(&server, "/account/deliveries"));
        (page.contains("demo-folder") && page.contains("demo-bridge-cables")).then_some(())
    });
    let wrong = session.post(&server, path, &[("channel", "user:demo-editor:none")]);
    assert!(wrong.status().is_client_error(), "{}", wrong.status());
    assert!(wrong.text().expect("text").contains("role=\"alert\""));
}

#[test]
fn form_input_survives_the_end_of_a_session() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/item/image/demo-bridge-cables");
    browser.fill("#name", "Broar & \"kablar\" <b>");
    let output = server.command(&["user", "disable", "demo-editor"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = server.command(&["user", "enable", "demo-editor"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.until("the end of the session", || {
        let cookie = browser.text("document.cookie");
        assert_eq!(cookie, "", "scripts cannot read the session");
        // One request at a time: the response of another in flight would replace the cookie of the login page,
        // under which the input is stored.
        browser.eval(
            "window.led || window.asked || (window.asked = fetch('/account')\
             .then(r => { window.led = r.redirected }).finally(() => { window.asked = false })) && 1",
        );
        (browser.eval("window.led") == true).then_some(())
    });
    browser.follow("form[action='/collections/add'] button");
    assert!(browser.text(MAIN).contains("what you entered is kept"), "{}", browser.text(MAIN));
    browser.check_appearance("login-kept");
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "wrong");
    browser.follow("main button[type=submit]");
    let refused = browser.console_messages();
    assert!(refused.iter().all(|line| line.contains("status of 403")), "{refused:?}");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert!(browser.text(MAIN).contains("Broar & \"kablar\" <b>"), "{}", browser.text(MAIN));
    browser.check_appearance("kept");
    browser.follow("main button[type=submit]");
    assert!(browser.text(MAIN).contains("Added to the collection"), "{}", browser.text(MAIN));
    let shown =
        browser.eval("[...document.querySelectorAll('#collection option')].map(o => o.text)");
    assert!(
        shown.as_array().expect("names").contains(&json!("Broar & \"kablar\" <b>")),
        "{shown}"
    );
}

#[test]
fn a_login_does_not_adopt_a_planted_session_cookie() {
    let server = Server::demo();
    let page = server.get("/o/login");
    let (form, csrf) =
        (cookie(&page).expect("a cookie"), field(&page.text().expect("text"), "csrf"));
    // A cookie planted by an attacker does not become the session.
    let planted = format!("{form}; wirephoto_session=planted-by-somebody-else-0123456789");
    let fields = [
        ("csrf", csrf.as_str()),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
    ];
    let request = server.client.post(format!("{}/o/login", server.url)).header(COOKIE, planted);
    let answer = request.form(&fields).send().expect("answer");
    let first = cookie(&answer).expect("a session");
    assert!(!first.contains("planted"), "{first}");
    let second = Session::open(&server, "demo-editor");
    assert_ne!(first, second.cookie);
    assert_eq!(
        server
            .get_with(
                "/account",
                &[("cookie", "wirephoto_session=planted-by-somebody-else-0123456789")]
            )
            .status(),
        303
    );
}

#[test]
fn pages_use_the_language_of_the_browser_or_the_chosen_one() {
    let server = Server::demo();
    let swedish = server.get_with("/", &[("accept-language", "sv-SE,sv;q=0.9,en;q=0.5")]);
    let text = swedish.text().expect("text");
    assert!(text.contains("<html lang=\"sv\">") && text.contains("Senaste bilderna"), "{text}");
    let missing = server.get_with("/item/image/none", &[("accept-language", "sv")]);
    assert!(missing.text().expect("text").contains("Hittades inte"));
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/demo-bridge-cables", server.url));
    browser.follow("form.language button");
    assert_eq!(browser.eval("document.documentElement.lang"), "sv");
    assert!(
        browser.address().ends_with("/item/image/demo-bridge-cables"),
        "{}",
        browser.address()
    );
    browser.check_appearance("item-swedish");
    browser.follow("form.language button");
    assert_eq!(browser.eval("document.documentElement.lang"), "en");
    // A form redirects only to pages of ours.
    let answer =
        server.post_form("/language", &[("language", "sv"), ("return_to", "//evil.example/")]);
    assert_eq!(answer.headers()[LOCATION], "/");
    let request = server.client.get(format!("{}/", server.url)).header(ACCEPT_LANGUAGE, "xx");
    assert!(request.send().expect("answer").text().expect("text").contains("lang=\"en\""));
}

#[test]
fn hostile_parameters_are_shown_as_text() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/");
    let hostile = "%22%3E%3Cscript%3Edocument.title%3D%27gone%27%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3Dalert(1)%3E";
    for path in [
        "/?q=",
        "/?type=",
        "/?tr=",
        "/?trs=",
        "/?tre=",
        "/?sort=",
        "/?p=",
        "/?done=",
        "/?page=",
        "/item/image/",
        "/item/",
        "/item/image/demo-bridge-cables?done=",
    ] {
        browser.visit(&format!("{}{path}{hostile}", server.url));
        assert!(!browser.text("document.title").starts_with("gone"), "{path}");
        let foreign = "document.querySelectorAll('main script, [onerror], img[src=x]').length";
        assert_eq!(browser.eval(foreign), 0, "{path}");
        let policy = |line: &String| line.contains("Content Security Policy");
        assert_eq!(browser.console_messages().into_iter().find(policy), None, "{path}");
    }
}

#[test]
fn an_item_page_is_small_and_rendered_without_scripts() {
    let server = Server::demo();
    let answer = server.get("/item/image/demo-bridge-cables");
    let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().expect("ASCII").to_owned();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = answer.text().expect("text");
    // Data for search engines is no script, and no policy keeps it from being read.
    let data = page.matches("<script type=\"application/ld+json\">").count();
    assert_eq!((page.matches("<script").count(), data), (1, 1), "{page}");
    assert!(!page.contains(" style="), "{page}");
    // Everything that a browser loads except pictures.
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/demo-bridge-cables", server.url));
    let loaded = browser.eval(
        "performance.getEntriesByType('resource').filter(e => e.initiatorType !== 'img')
            .concat(performance.getEntriesByType('navigation'))
            .map(e => [e.name, e.transferSize])",
    );
    let bytes: u64 =
        loaded.as_array().expect("list").iter().map(|e| e[1].as_u64().expect("n")).sum();
    assert!(bytes > 20_000 && bytes < 100_000, "{bytes}: {loaded}");
}
