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

/// Text that is markup, a script and a template where it is not kept apart from them.
const HOSTILE: &str = "\"><script>document.title='gone'</script><b>{{ 7 * 7 }}</b>&amp;";
const ENTER: &str = "\u{E007}";

/// What the API answers to the demo editor.
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

/// Takes in a photograph that is dated now.
fn take_in(server: &Server, id: &str, headline: &str) {
    let document = json!({
        "headline": headline, "copyrightholder": "TT",
        "product": [{ "code": "FOTO", "name": "FOTO" }],
    });
    news::take_in(server, &format!("image/{id}"), &document);
}

fn shown(browser: &Browser) -> String {
    browser.text("document.querySelector('main').innerText")
}

fn value(browser: &Browser, selector: &str) -> String {
    browser.text(&format!("document.querySelector('{selector}').value"))
}

#[test]
fn a_search_becomes_a_notification_that_was_tried_first() {
    let server = Server::demo();
    take_in(&server, "icebreaker-now", "Isbrytare i hamnen");
    // Dated long ago: search finds it, a dry run does not.
    let old = news::document("Isbrytare i fjol", &["FOTO"], "2025-03-02T09:15:00+01:00");
    news::take_in(&server, "image/icebreaker-old", &old);
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
    assert_eq!(said, "In the last 7 days 1 item would have matched.");
    let links = browser.eval("[...document.querySelectorAll('.tried .strip a')].map(a => a.href)");
    assert_eq!(links, json!([format!("{}/item/image/icebreaker-now", server.url)]));
    let same = browser.text("document.querySelector('.tried .hint a').getAttribute('href')");
    assert_eq!(same, "/?q=isbrytare&p=FOTO&mediaType=image&tr=w");
    let found =
        api(&server, Method::GET, "/content/v1/image/search?q=isbrytare&p=FOTO&tr=w", None);
    assert_eq!(found["total"], 1);
    assert_eq!(notifications(&server), Vec::<Value>::new(), "a dry run saves nothing");
    browser.look("notification-tried");

    browser.follow("button[value=save]");
    assert!(browser.address().ends_with("/notifications?done=created"), "{}", browser.address());
    let [saved] = notifications(&server).try_into().expect("one");
    let expected = json!({
        "id": saved["id"], "title": "Isbrytare", "type": "email", "mediaType": "image",
        "q": "isbrytare", "p": ["FOTO"], "email": "demo-editor@demo-desk.example",
    });
    assert_eq!(saved, expected);
    let text = shown(&browser);
    assert!(text.contains("with the product FOTO"), "{text}");
    assert!(text.contains("E-mail to demo-editor@demo-desk.example for each item"), "{text}");
    assert!(text.contains("In the last 7 days 1 item would have matched."), "{text}");
    browser.look("notifications");

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
    assert!(browser.address().ends_with("done=removed"), "{}", browser.address());
    assert_eq!(notifications(&server), Vec::<Value>::new());
    browser.look("notifications-none");
}

#[test]
fn a_bad_schedule_or_search_keeps_what_was_typed_and_says_what_is_wrong() {
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
    assert!(alert.contains("at character") && alert.contains("schedule:"), "{alert}");
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
    // The browser notes the 400 itself, and nothing else.
    let others = |line: &String| !line.contains("status of 400");
    assert_eq!(browser.complaints().into_iter().find(others), None);
    browser.look("notification-wrong");
    // The same mistake stands against a dry run.
    browser.follow("button[value=try]");
    let alert = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(alert.contains("at character"), "{alert}");
    browser.complaints();

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

/// A program that ends with this.
struct Program(Child);

impl Program {
    fn start(command: &str, arguments: &[&str], code: &str) -> Self {
        let mut command = Command::new(command);
        command.args(arguments).arg(code).env("WIREPHOTO_KEY", DEMO_KEY).env("NO_PROXY", "*");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
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
    let page = format!("{}/notifications/{id}?done=created", server.url);
    assert_eq!(browser.address(), page);
    let code =
        |id: &str| browser.text(&format!("document.querySelector('#stream-{id}').textContent"));
    let address = format!("{}/content/v1/_all/notification/{id}/stream", server.url);
    assert_eq!((code("id").as_str(), code("url")), (id, address));
    assert!(shown(&browser).contains("ends after 5 minutes without a call"));
    browser.look("notification-stream");

    take_in(&server, "by-curl", "Isbrytare ett");
    let mut curl = Program::start("sh", &["-c"], &code("curl"));
    let answer: Value = serde_json::from_str(&curl.line()).expect("JSON");
    assert_eq!(answer["hits"][0]["headline"], "Isbrytare ett");
    take_in(&server, "by-python", "Isbrytare tre");
    let mut python = Program::start("/usr/bin/python3", &["-u", "-c"], &code("python"));
    assert!(python.line().ends_with("Isbrytare tre\n"));
    drop(python);
    take_in(&server, "by-node", "Isbrytare två");
    let mut node = Program::start("node", &["--input-type=module", "-e"], &code("js"));
    assert!(node.line().ends_with("Isbrytare två\n"));
}

/// A demo user without scripts: the cookie and the token of forms.
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
fn notifications_need_no_script_show_hostile_text_as_text_and_their_token() {
    let server = Server::demo();
    let plain = Plain::log_in(&server, "demo-editor");
    let fields =
        [("type", "mobile"), ("mediaType", "image"), ("title", HOSTILE), ("q", "\"<b>\"")];
    // Without its token, or with another, a form changes nothing.
    for csrf in [None, Some("wrong")] {
        let sent: Vec<_> = fields.into_iter().chain(csrf.map(|csrf| ("csrf", csrf))).collect();
        let page = plain.post_with("/notifications", &sent).text().expect("text");
        assert!(page.contains("What you typed is still here"), "{page}");
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
    // Nobody who is not logged in sees any of it.
    let response = server.get("/notifications/new?q=a");
    assert_eq!(location(&response), "/o/login?return_to=%2Fnotifications%2Fnew%3Fq%3Da");
}

#[test]
fn a_session_that_ended_while_somebody_typed_keeps_the_notification() {
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
