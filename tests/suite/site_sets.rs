//! Notifications and collections on the customer web site, in a browser and without scripts.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::Method;
use reqwest::blocking::Response;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

use crate::common::{
    DEMO_KEY, Server,
    browser::{Browser, DESKTOP},
    news, oracle,
};

/// Text that becomes markup, a script or a template expression where it is not escaped.
const HOSTILE: &str = "\"><script>document.title='gone'</script><b>{{ 7 * 7 }}</b>&amp;";
const ENTER: &str = "\u{E007}";

/// The response of the API to the demo editor.
fn api(server: &Server, method: Method, path: &str, body: Option<Value>) -> Value {
    let mut request = server.client.request(method, format!("{}{path}", server.url));
    request = request.header("authorization", format!("ApiKey {DEMO_KEY}"));
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().expect("answer");
    assert_eq!(response.status(), 200, "{path}");
    let text = response.text().expect("text");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn notifications(server: &Server) -> Vec<Value> {
    let all = api(server, Method::GET, "/content/v1/_all/notification", None);
    all.as_array().expect("a list").clone()
}

/// Ingests a photograph that is dated now.
fn ingest(server: &Server, id: &str, headline: &str) {
    let document = json!({
        "headline": headline, "copyrightholder": "TT",
        "product": [{ "code": "FOTO", "name": "FOTO" }],
    });
    news::ingest(server, &format!("image/{id}"), &document);
}

fn shown(browser: &Browser) -> String {
    browser.text("document.querySelector('main').innerText")
}

/// Checks the look of the page once its pictures are loaded.
fn look(browser: &Browser, name: &str) {
    let loaded = "[...document.images].every(i => { i.loading = 'eager'; return i.complete; })";
    browser.wait("the pictures", loaded);
    browser.check_appearance(name);
}

fn value(browser: &Browser, selector: &str) -> String {
    browser.text(&format!("document.querySelector('{selector}').value"))
}

#[test]
fn a_search_becomes_a_notification_after_a_dry_run() {
    // Dated long ago: search finds it, a dry run does not.
    let old = news::document("Isbrytare i fjol", &["FOTO"], "2025-03-02T09:15:00+01:00");
    let server = news::server(&[], &[("image/icebreaker-old", old)]);
    ingest(&server, "icebreaker-now", "Isbrytare i hamnen");
    let browser = Browser::open(DESKTOP);
    let address = "/notifications/new?q=isbrytare&p=FOTO&mediaType=image&type=email";
    browser.log_in(&server.url, "demo-editor", address);
    assert_eq!(
        (value(&browser, "#q"), value(&browser, "#p")),
        ("isbrytare".into(), "FOTO".into())
    );
    assert_eq!(value(&browser, "#mediaType"), "image");
    assert_eq!(value(&browser, "#email"), "demo-editor@demo-desk.example");
    browser.fill("#title", "Isbrytare");
    browser.follow("button[value=try]");
    let said = browser.text("document.querySelector('.tried h2').innerText");
    assert_eq!(said, "1 match in the last 7 days.");
    let links = browser.eval("[...document.querySelectorAll('.tried .strip a')].map(a => a.href)");
    assert_eq!(links, json!([format!("{}/item/image/icebreaker-now", server.url)]));
    // A notification matches words as written, so the equivalent search does, too.
    let same = browser.text("document.querySelector('.tried .hint a').getAttribute('href')");
    assert_eq!(same, "/?type=image&q=isbrytare&p=FOTO&tr=w&written=1");
    let found =
        api(&server, Method::GET, "/content/v1/image/search?q=isbrytare&p=FOTO&tr=w", None);
    assert_eq!(found["total"], 1);
    assert_eq!(notifications(&server), Vec::<Value>::new(), "a dry run saves nothing");
    look(&browser, "notification-tried");

    browser.follow("button[value=save]");
    assert!(browser.address().ends_with("/notifications"), "{}", browser.address());
    let [saved] = notifications(&server).try_into().expect("one");
    let expected = json!({
        "id": saved["id"], "title": "Isbrytare", "type": "email", "mediaType": "image",
        "q": "isbrytare", "p": ["FOTO"], "email": "demo-editor@demo-desk.example",
    });
    assert_eq!(saved, expected);
    let text = shown(&browser);
    assert!(text.contains("with the product FOTO"), "{text}");
    assert!(text.contains("E-mail to demo-editor@demo-desk.example for each item"), "{text}");
    assert!(text.contains("1 match in the last 7 days."), "{text}");
    look(&browser, "notifications");

    browser.follow(".set-head h2 a");
    assert_eq!(value(&browser, "#title"), "Isbrytare");
    browser.fill("#title", "Isbrytare och bogserare");
    browser.fill("#q", "isbrytare OR bogserare");
    browser.fill("#p", "FOTO, -TT");
    browser.click("input[name=agr]");
    browser.follow("button[value=save]");
    let [changed] = notifications(&server).try_into().expect("one");
    assert_eq!((&changed["id"], &changed["q"]), (&saved["id"], &json!("isbrytare OR bogserare")));
    assert_eq!((&changed["p"], &changed["agr"]), (&json!(["FOTO", "-TT"]), &json!([1001])));
    assert_eq!(changed["title"], "Isbrytare och bogserare");
    let text = shown(&browser);
    assert!(text.contains("without the product TT, covered by Demo subscription"), "{text}");

    browser.click(".sure summary");
    browser.follow(".sure button");
    assert!(browser.address().ends_with("/notifications"), "{}", browser.address());
    assert_eq!(notifications(&server), Vec::<Value>::new());
    look(&browser, "notifications-none");
}

#[test]
fn an_invalid_schedule_or_search_keeps_the_input_and_explains_the_error() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new");
    browser.fill("#title", "Morning");
    browser.fill("#q", "(harbour");
    browser.click("#way-scheduled-email");
    browser.click("#when-own");
    browser.fill("#cron", "61 * * * *");
    browser.fill("#timezone", "Europe/Helsinki");
    browser.follow("button[value=save]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(
        alert.contains("(character 9)") && alert.contains("\"61\" is not a minute (0-59)"),
        "{alert}"
    );
    for (selector, expected) in [
        ("#title", "Morning"),
        ("#q", "(harbour"),
        ("#cron", "61 * * * *"),
        ("#timezone", "Europe/Helsinki"),
        ("[name=type]:checked", "scheduled-email"),
        ("[name=when]:checked", "own"),
    ] {
        assert_eq!(value(&browser, selector), expected, "{selector}");
    }
    for id in ["q", "cron"] {
        let wrong = format!("document.querySelector('#{id}[aria-invalid=true]') !== null");
        assert_eq!(browser.eval(&wrong), true, "{id}");
    }
    assert_eq!(notifications(&server), Vec::<Value>::new());
    // The browser itself logs the 400, and nothing else.
    let others = |line: &String| !line.contains("status of 400");
    assert_eq!(browser.console_messages().into_iter().find(others), None);
    look(&browser, "notification-wrong");
    // A dry run reports the same error.
    browser.follow("button[value=try]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(alert.contains("(character 9)"), "{alert}");
    browser.console_messages();

    browser.fill("#q", "harbour");
    browser.fill("#cron", "30 6 * * 1-5");
    browser.eval("document.querySelector('#tr').value = 'd'");
    browser.follow("button[value=save]");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!(
        (&saved["type"], &saved["schedule"]),
        (&json!("scheduled-email"), &json!("30 6 * * 1-5"))
    );
    assert_eq!(saved["timezone"], "Europe/Helsinki");
    assert!(shown(&browser).contains("30 6 * * 1-5, Europe/Helsinki"));
    browser.follow(".set-head h2 a");
    assert_eq!(value(&browser, "#cron"), "30 6 * * 1-5");
    browser.click("input[value='0 8 * * 1']");
    browser.follow("button[value=save]");
    assert!(shown(&browser).contains("Mondays at 8:00, Europe/Helsinki"));
    assert_eq!(notifications(&server)[0]["schedule"], "0 8 * * 1");
}

/// A program that is stopped on drop.
struct Program(Child);

impl Program {
    fn start(command: &str, arguments: &[&str], code: &str) -> Self {
        let mut command = Command::new(command);
        command.args(arguments).arg(code).env("WIREPHOTO_KEY", DEMO_KEY).env("NO_PROXY", "*");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("./test installs it"))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("output");
        line
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_stream_is_read_with_the_code_on_its_page() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new?q=isbrytare&type=stream");
    browser.fill("#title", "For our system");
    browser.follow("button[value=save]");
    let [saved] = notifications(&server).try_into().expect("one");
    let id = saved["id"].as_str().expect("an id");
    let page = format!("{}/notifications/{id}", server.url);
    assert_eq!(browser.address(), page);
    let code =
        |id: &str| browser.text(&format!("document.querySelector('#stream-{id}').textContent"));
    let address = format!("{}/content/v1/_all/notification/{id}/stream", server.url);
    assert_eq!((code("id").as_str(), code("url")), (id, address));
    assert!(shown(&browser).contains("After 5 minutes without a call"));
    look(&browser, "notification-stream");

    ingest(&server, "by-curl", "Isbrytare ett");
    let mut curl = Program::start("sh", &["-c"], &code("curl"));
    let answer: Value = serde_json::from_str(&curl.line()).expect("JSON");
    assert_eq!(answer["hits"][0]["headline"], "Isbrytare ett");
    ingest(&server, "by-python", "Isbrytare tre");
    let mut python = Program::start("/usr/bin/python3", &["-u", "-c"], &code("python"));
    assert!(python.line().ends_with("Isbrytare tre\n"));
    drop(python);
    ingest(&server, "by-node", "Isbrytare två");
    let mut node = Program::start("node", &["--input-type=module", "-e"], &code("js"));
    assert!(node.line().ends_with("Isbrytare två\n"));
}

/// A demo user without scripts: the session cookie and the CSRF token.
struct Plain<'a> {
    server: &'a Server,
    cookie: String,
    csrf: String,
}

fn token(page: &str) -> String {
    let token = page.split_once("name=\"csrf\" value=\"").expect("a token").1;
    token.split('"').next().expect("a token").to_owned()
}

impl<'a> Plain<'a> {
    fn log_in(server: &'a Server, user: &str) -> Self {
        let response = server.get("/o/login");
        let cookie = response.headers()[SET_COOKIE].to_str().expect("ASCII").to_owned();
        let csrf = token(&response.text().expect("text"));
        let password = format!("{user}-password");
        let fields =
            [("username", user), ("password", password.as_str()), ("csrf", csrf.as_str())];
        let request = server.client.post(format!("{}/o/login", server.url));
        let response = request.header(COOKIE, &cookie).form(&fields).send().expect("answer");
        let mut lines = response.headers().get_all(SET_COOKIE).iter();
        let line = lines.find(|line| line.as_bytes().starts_with(b"wirephoto_session="));
        let cookie = line.expect("a session").to_str().expect("ASCII");
        let cookie = cookie.split(';').next().expect("a cookie").to_owned();
        let mut plain = Self { server, cookie, csrf };
        plain.csrf = token(&plain.get("/notifications").text().expect("text"));
        plain
    }

    fn get(&self, path: &str) -> Response {
        self.server.get_with(path, &[("cookie", &self.cookie)])
    }

    fn post_with(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let request = self.server.client.post(format!("{}{path}", self.server.url));
        let request = request.header(COOKIE, &self.cookie).header("origin", &self.server.url);
        request.form(fields).send().expect("answer")
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let all: Vec<_> = fields.iter().copied().chain([("csrf", self.csrf.as_str())]).collect();
        self.post_with(path, &all)
    }
}

fn location(response: &Response) -> String {
    assert_eq!(response.status(), 303);
    response.headers()[LOCATION].to_str().expect("ASCII").to_owned()
}

#[test]
fn notifications_work_without_scripts_escape_hostile_text_and_need_their_token() {
    let server = Server::demo();
    let plain = Plain::log_in(&server, "demo-editor");
    let fields =
        [("type", "mobile"), ("mediaType", "image"), ("title", HOSTILE), ("q", "\"<b>\"")];
    // Without its token, or with a wrong one, a form changes nothing.
    for csrf in [None, Some("wrong")] {
        let sent: Vec<_> = fields.into_iter().chain(csrf.map(|csrf| ("csrf", csrf))).collect();
        let page = plain.post_with("/notifications", &sent).text().expect("text");
        assert!(page.contains("Your form has not been sent"), "{page}");
        assert!(!page.contains("<script>document"), "{page}");
    }
    assert_eq!(notifications(&server), Vec::<Value>::new());
    let made = plain.post("/notifications", &fields);
    assert_eq!(location(&made), "/notifications?done=created");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((&saved["title"], &saved["type"]), (&json!(HOSTILE), &json!("mobile")));
    let own = format!("/notifications/{}", saved["id"].as_str().expect("an id"));
    let encoded: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let prefilled = ["title", "q", "p", "agr", "tr", "type", "mediaType", "email"]
        .map(|name| format!("{name}={encoded}"))
        .join("&");
    for path in ["/notifications", &own, &format!("/notifications/new?{prefilled}")] {
        let page = plain.get(path).text().expect("text");
        assert!(page.contains("&lt;script&gt;document"), "{path}: {page}");
        assert!(!page.contains("<script>document") && !page.contains("<b>"), "{path}: {page}");
        assert!(!page.contains("49&lt;/b&gt;"), "{path}");
    }
    let refused = plain.post_with(&format!("{own}/delete"), &[("csrf", "wrong")]);
    assert_ne!(refused.status(), 303);
    assert_eq!(notifications(&server).len(), 1);
    // Another user has no such notification.
    let other = Plain::log_in(&server, "demo-buyer");
    assert_eq!(other.get(&own).status(), 404);
    assert_eq!(other.post(&format!("{own}/delete"), &[]).status(), 404);
    assert_eq!(other.post(&own, &fields).status(), 404);
    assert_eq!(notifications(&server)[0], saved);
    let removed = plain.post(&format!("{own}/delete"), &[]);
    assert_eq!(location(&removed), "/notifications?done=removed");
    let unknown = plain.post("/notifications", &[("type", "pigeon"), ("title", "x")]);
    assert_eq!(unknown.status(), 400);
    // Anonymous visitors see none of it.
    let response = server.get("/notifications/new?q=a");
    assert_eq!(location(&response), "/o/login?return_to=%2Fnotifications%2Fnew%3Fq%3Da");
}

/// The selected value of a select element on a page.
fn chosen<'p>(page: &'p str, name: &str) -> Option<&'p str> {
    let select = page.split_once(&format!("name=\"{name}\">"))?.1.split_once("</select>")?.0;
    let option = select.split_once("\" selected>")?.0;
    option.rsplit('"').next()
}

#[test]
fn a_new_title_of_a_notification_leaves_its_period_as_it_is() {
    let server = Server::demo();
    let path = "/content/v1/image/notification/scheduled-email?title=Ice&q=is&tr=d&\
                email=a@example.org&schedule=0%207%20*%20*%20*";
    let made = api(&server, Method::POST, path, None);
    assert_eq!(made["tr"], "d");
    let plain = Plain::log_in(&server, "demo-editor");
    let own = format!("/notifications/{}", made["id"].as_str().expect("an id"));
    let page = plain.get(&own).text().expect("text");
    let period = chosen(&page, "tr").expect("a period");
    // Everything that a browser sends of the form, with a new title.
    let fields = [
        ("type", "scheduled-email"),
        ("mediaType", "image"),
        ("title", "Snow"),
        ("q", "is"),
        ("p", ""),
        ("tr", period),
        ("email", "a@example.org"),
        ("when", "0 7 * * *"),
        ("cron", ""),
        ("timezone", "Europe/Stockholm"),
    ];
    assert_eq!(location(&plain.post(&own, &fields)), "/notifications?done=saved");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((&saved["title"], &saved["tr"]), (&json!("Snow"), &json!("d")));
    let page = plain.get("/notifications/new").text().expect("text");
    assert_eq!(chosen(&page, "tr"), Some(""), "a new one has no period");
}

#[test]
fn a_session_that_ends_during_input_keeps_the_notification() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/notifications/new?q=hamn&type=mobile");
    browser.fill("#title", "Hamnen <b>nu</b>");
    let page = "fetch('/o/logout', { method: 'POST', body: new URLSearchParams({ \
                csrf: document.querySelector('[name=csrf]').value }) }).then(() => window.out = 1)";
    browser.eval(page);
    browser.wait("the logout", "window.out === 1");
    browser.follow("button[value=save]");
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert_eq!(notifications(&server), Vec::<Value>::new(), "it is asked first");
    assert!(shown(&browser).contains("Hamnen <b>nu</b>"));
    browser.follow("main button[type=submit]");
    let [saved] = notifications(&server).try_into().expect("one");
    assert_eq!((&saved["title"], &saved["q"]), (&json!("Hamnen <b>nu</b>"), &json!("hamn")));
}

/// Three photographs of the demo archive.
const KEYS: [&str; 3] = [
    "image/demo-solnedgang-over-bergen",
    "image/demo-bridge-cables",
    "image/demo_hundar_i_fonster",
];

fn uri(server: &Server, key: &str) -> String {
    format!("{}/media/{key}", server.url)
}

fn collections(server: &Server) -> Vec<Value> {
    let all = api(server, Method::GET, "/collection/v1/collection", None);
    all.as_array().expect("a list").clone()
}

/// The ids of the items of the only collection, in their order.
fn content(server: &Server) -> String {
    let [one] = collections(server).try_into().expect("one");
    let uris = one["content"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let ids = uris.map(|uri| uri.rsplit('/').next().expect("an id"));
    ids.collect::<Vec<_>>().join(" ")
}

/// Creates a collection with the three photographs; returns its id.
fn collect(server: &Server, name: &str) -> String {
    let body = json!({ "name": name });
    let made = api(server, Method::POST, "/collection/v1/collection", Some(body));
    let id = made["id"].as_str().expect("an id").to_owned();
    let items: Vec<Value> = KEYS.iter().map(|key| json!({ "uri": uri(server, key) })).collect();
    let path = format!("/collection/v1/collection/{id}/items");
    api(server, Method::POST, &path, Some(Value::Array(items)));
    id
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
    assert_eq!(collections(&server), Vec::<Value>::new());
    browser.fill("#name", "Förstasidan");
    browser.follow("main button[type=submit]");
    assert!(
        shown(&browser).contains("Added to the collection. Förstasidan"),
        "{}",
        shown(&browser)
    );
    assert_eq!(browser.address(), format!("{}{item}", server.url), "the message is shown once");
    let [made] = collections(&server).try_into().expect("one");
    assert_eq!((&made["name"], &made["public"]), (&json!("Förstasidan"), &json!(false)));
    assert_eq!(made["content"], json!([uri(&server, KEYS[0])]));

    // A second photograph is added to the same collection, and the redirect leads back to a page of a search.
    let plain = Plain::log_in(&server, "demo-editor");
    let id = made["id"].as_str().expect("an id");
    let second = uri(&server, KEYS[1]);
    let fields = [("uri", second.as_str()), ("collection", id), ("return_to", "/?q=bro&page=2")];
    let led = location(&plain.post("/collections/add", &fields));
    assert_eq!(led, format!("/?q=bro&page=2&done=added&in={id}"));
    assert_eq!(content(&server), "demo-solnedgang-over-bergen demo-bridge-cables");
    // An unknown item is not reported as added, and the redirect stays on the site.
    let gone = uri(&server, "image/no-such-item");
    let fields = [("uri", gone.as_str()), ("collection", id)];
    let refused = plain.post("/collections/add", &fields);
    assert_eq!(refused.status(), 409);
    assert!(refused.text().expect("text").contains("could not be added"));
    let fields = [("uri", second.as_str()), ("collection", id), ("return_to", "//evil.example/")];
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
    let open = json!({ "name": "Ordning", "public": true });
    api(&server, Method::PUT, &format!("/collection/v1/collection/{id}"), Some(open));
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
    let [one] = collections(&server).try_into().expect("one");
    assert_eq!((&one["name"], &one["public"]), (&json!("Vecka 48"), &json!(true)));
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
    let orders = api(&server, Method::GET, "/user/v1/order", None);
    assert_eq!(orders["orders"].as_array().map(Vec::len), Some(3), "{orders}");

    // A withdrawn item is marked as such, and is not among the items.
    let output = server.command(&["withdraw", KEYS[1]]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    browser.visit(&page);
    let text = shown(&browser);
    assert!(text.contains("No longer available"), "{text}");
    let gone = browser.text("document.querySelector('.list .what').innerText");
    assert!(gone.contains("Bridge cables against the sky"), "{gone}");
    assert_eq!(browser.eval("document.querySelectorAll('.cells li').length"), 2);
    look(&browser, "collection-removed");

    browser.click(".sure summary");
    browser.follow(".sure button");
    assert!(browser.address().ends_with("/collections"), "{}", browser.address());
    assert_eq!(collections(&server), Vec::<Value>::new());
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
    assert_eq!(collections(&server), Vec::<Value>::new());
    let led = location(&plain.post("/collections", &[("name", HOSTILE)]));
    let [made] = collections(&server).try_into().expect("one");
    assert_eq!(made["name"], HOSTILE);
    let own = format!("/collections/{}", made["id"].as_str().expect("an id"));
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
        location(&plain.post(
            "/collections/add",
            &[("uri", item.as_str()), ("collection", made["id"].as_str().expect("an id")),]
        )),
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
    let orders = api(&server, Method::GET, "/user/v1/order", None);
    assert_eq!(orders["orders"], json!([]), "nothing was bought");
    let long = "x".repeat(500);
    let refused = plain.post(&own, &[("name", long.as_str())]);
    assert_eq!(refused.status(), 400);
    assert!(refused.text().expect("text").contains(&format!("value=\"{long}\"")));
    assert_eq!(content(&server), "demo-solnedgang-over-bergen");
    assert_eq!(collections(&server)[0]["name"], HOSTILE);
    // Without scripts: renamed, emptied, deleted.
    let saved = plain.post(&own, &[("name", "Ny"), ("public", "on")]);
    assert_eq!(location(&saved), format!("{own}?done=saved"));
    assert_eq!(collections(&server)[0]["public"], true);
    let taken = plain.post(&format!("{own}/take"), &[("uri", item.as_str())]);
    assert_eq!(location(&taken), format!("{own}?done=taken"));
    assert_eq!(content(&server), "");
    let other = Plain::log_in(&server, "demo-buyer");
    // Items outside a reader's agreements are counted and not shown.
    let article = uri(&server, "text/demo-aceh-rescue");
    let id = made["id"].as_str().expect("an id");
    for uri in [&item, &article] {
        plain.post("/collections/add", &[("uri", uri.as_str()), ("collection", id)]);
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
    assert_eq!(collections(&server), Vec::<Value>::new());
    assert_eq!(location(&server.get("/collections")), "/o/login?return_to=%2Fcollections");
}
