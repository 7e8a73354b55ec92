//! Login, consent and logout in a real browser, and what their forms refuse (contract login-17).

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

use crate::common::{
    Server, WAIT_TIMEOUT,
    api::ApiCaller,
    browser::{Browser, DESKTOP, PHONE},
    pictures::Picture,
};

const NAME: &str = "demo-editor";
const PASSWORD: &str = "demo-editor-password";
const ITEM: &str = "/item/image/demo-solnedgang-over-bergen";

/// A client's web server, which answers the redirected browser.
struct Callback {
    queries: mpsc::Receiver<String>,
    url: String,
}

impl Callback {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/cb", listener.local_addr().expect("an address"));
        let (sender, queries) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Browsers open connections ahead, which stay idle for a while.
                let sender = sender.clone();
                std::thread::spawn(move || Self::answer(stream, &sender));
            }
        });
        Self { queries, url }
    }

    fn answer(mut stream: TcpStream, sender: &mpsc::Sender<String>) {
        let mut line = String::new();
        drop(BufReader::new(&stream).read_line(&mut line));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
        let answer = format!("{head}\r\nContent-Length: 9\r\n\r\n<p>ok</p>");
        drop(stream.write_all(answer.as_bytes()));
        let path = line.split(' ').nth(1).unwrap_or_default();
        if let Some(query) = path.strip_prefix("/cb?") {
            // The test may have ended.
            drop(sender.send(query.to_owned()));
        }
    }

    /// The query of the browser's next redirect.
    fn query(&self) -> String {
        self.queries.recv_timeout(WAIT_TIMEOUT).expect("the browser comes")
    }

    /// Registers a client of that name with this redirect URI.
    fn register(&self, server: &Server, client_id: &str) {
        let client = json!({
            "client_id": client_id, "client_secret": "test-client-secret", "public": false,
            "name": "Test desk", "redirect_uris": [self.url],
            "grants": ["authorization_code", "refresh_token"],
        });
        let file = server.dir.path().join("client.json");
        std::fs::write(&file, json!({ "clients": [client] }).to_string()).expect("written");
        let output = server.command(&["import", &file.to_string_lossy()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn authorization(&self, server: &Server, client_id: &str, more: &str) -> String {
        let redirect: String = self.url.replace(':', "%3A").replace('/', "%2F");
        format!(
            "{}/o/oauth2/auth?response_type=code&client_id={client_id}&redirect_uri={redirect}\
             &scope=openid+roles&state=s%261{more}",
            server.url
        )
    }
}

fn value(query: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(&format!("http://x/?{query}")).expect("a query");
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[test]
fn a_visitor_logs_in_allows_a_client_and_is_not_asked_again() {
    let server = Server::demo();
    let (callback, browser) = (Callback::open(), Browser::open(DESKTOP));
    callback.register(&server, "test-desk");
    let start = callback.authorization(&server, "test-desk", "");
    browser.visit(&start);
    browser.check_layout("login");
    browser.screenshot("login-desktop.png");
    assert!(browser.text("document.querySelector('main').innerText").contains("Test desk"));
    browser.fill("#username", NAME);
    browser.fill("#password", "wrong");
    browser.follow("main button[type=submit]");
    let shown = browser.text("document.querySelector('[role=alert]').innerText");
    assert!(shown.contains("Wrong user name or password"), "{shown}");
    assert_eq!(browser.eval("document.querySelector('#username').value"), NAME);
    browser.screenshot("login-wrong-desktop.png");
    browser.fill("#password", PASSWORD);
    browser.follow("main button[type=submit]");
    let shown = browser.text("document.querySelector('main').innerText");
    assert!(
        shown.contains("Test desk requests access") && shown.contains("Demo Editor"),
        "{shown}"
    );
    browser.screenshot("consent-desktop.png");
    browser.follow("button[name=decision][value=allow]");
    let query = callback.query();
    assert!(value(&query, "code").is_some_and(|code| code.len() >= 32), "{query}");
    assert_eq!(value(&query, "state").as_deref(), Some("s&1"));
    assert_eq!(value(&query, "iss").as_deref(), Some(server.url.as_str()));
    // Logged in and authorized: redirected at once.
    browser.visit(&callback.authorization(&server, "test-desk", "&prompt=none"));
    assert!(value(&callback.query(), "code").is_some());
    browser.visit(&callback.authorization(&server, "test-desk", "&prompt=consent"));
    browser.follow("button[name=decision][value=deny]");
    let query = callback.query();
    assert_eq!(value(&query, "error").as_deref(), Some("access_denied"), "{query}");
    assert_eq!(value(&query, "state").as_deref(), Some("s&1"));
    // `prompt=login` requires a new login although there is one.
    browser.visit(&callback.authorization(&server, "test-desk", "&prompt=login"));
    browser.fill("#username", NAME);
    browser.fill("#password", PASSWORD);
    browser.follow("main button[type=submit]");
    assert!(value(&callback.query(), "code").is_some());
}

#[test]
fn the_item_page_offers_login_and_downloads_the_hires() {
    let server = Server::demo();
    for (window, name) in [(DESKTOP, "desktop"), (PHONE, "phone")] {
        let browser = Browser::open(window);
        let downloads = browser.save_downloads();
        browser.visit(&format!("{}{ITEM}", server.url));
        browser.follow(".download a");
        assert!(browser.address().contains("/o/login?return_to="), "{}", browser.address());
        browser.check_layout("login");
        browser.screenshot(&format!("login-{name}.png"));
        browser.fill("#username", NAME);
        browser.fill("#password", PASSWORD);
        browser.follow("main button[type=submit]");
        assert_eq!(browser.address(), format!("{}{ITEM}", server.url));
        browser.check_layout("item, logged in");
        let shown = browser.text("document.querySelector('.download').innerText");
        assert!(shown.contains("Demo subscription") && shown.contains("Subscription"), "{shown}");
        let head = browser.text("document.querySelector('header').innerText");
        assert!(head.contains("Demo Editor") && head.contains("Log out"), "{head}");
        browser.screenshot(&format!("item-logged-in-{name}.png"));
        browser.click(".download button");
        let saved = downloads.join("demo-solnedgang-over-bergen.jpg");
        // The browser reserves the name with an empty file and renames the completed download over it.
        let jpeg = server.until("the download", || {
            std::fs::read(&saved).ok().filter(|bytes| !bytes.is_empty())
        });
        assert_eq!(Picture::decode(&jpeg).size(), (4272, 2848));
        browser.visit(&format!("{}{ITEM}", server.url));
        let shown = browser.text("document.querySelector('.download').innerText");
        assert!(shown.contains("Download again free until"), "{shown}");
        browser.screenshot(&format!("item-bought-{name}.png"));
        browser.follow("header button");
        assert!(browser.text("document.querySelector('header').innerText").contains("Log in"));
    }
    let token = server.post_form(
        "/o/oauth2/token",
        &[
            ("grant_type", "password"),
            ("username", NAME),
            ("password", PASSWORD),
            ("scope", "roles"),
            ("client_id", "demo-client"),
            ("client_secret", "demo-client-secret"),
        ],
    );
    let token: Value = token.json().expect("JSON");
    let token = token["access_token"].as_str().expect("a token");
    let orders = ApiCaller::bearer(&server, token).orders();
    assert_eq!(orders.len(), 1, "{orders:#?}");
}

/// Cookie and form token of a new login page.
fn login_page(server: &Server, path: &str) -> (String, String) {
    let response = server.get(path);
    assert_eq!(response.status(), 200, "{path}");
    let cookie = response.headers()[SET_COOKIE].to_str().expect("ASCII").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let page = response.text().expect("text");
    let token = page.split_once("name=\"csrf\" value=\"").expect("a token").1;
    let token = token.split('"').next().expect("a token").to_owned();
    (cookie.split(';').next().expect("a cookie").to_owned(), token)
}

fn submit(server: &Server, cookie: &str, fields: &[(&str, &str)]) -> reqwest::blocking::Response {
    let request = server.client.post(format!("{}/o/login", server.url));
    request.header(COOKIE, cookie).form(fields).send().expect("answer")
}

#[test]
fn a_login_form_needs_its_token_and_redirects_to_no_other_site() {
    let server = Server::demo();
    let (cookie, token) = login_page(&server, "/o/login?return_to=%2F%2Fevil.example%2F");
    let name = [("username", NAME), ("password", PASSWORD)];
    let with = |more: &[(&'static str, &str)]| {
        let fields: Vec<(&str, &str)> = name.iter().copied().chain(more.iter().copied()).collect();
        submit(&server, &cookie, &fields)
    };
    assert_eq!(with(&[]).status(), 400, "no token");
    assert_eq!(with(&[("csrf", "wrong")]).status(), 400);
    let fields = [name[0], name[1], ("csrf", token.as_str())];
    assert_eq!(submit(&server, "", &fields).status(), 400, "no cookie");
    for target in ["https://evil.example/", "//evil.example/", "/\\evil.example", "/o/logout"] {
        let response = with(&[("csrf", &token), ("return_to", target)]);
        assert_eq!(response.status(), 303);
        assert_eq!(response.headers()[LOCATION], "/", "{target}");
    }
    let cookies: Vec<_> = with(&[("csrf", &token)])
        .headers()
        .get_all(SET_COOKIE)
        .iter()
        .map(|line| line.to_str().expect("ASCII").to_owned())
        .collect();
    let session = cookies.iter().find(|line| line.starts_with("wirephoto_session="));
    let session = session.expect("a session");
    assert!(session.contains("HttpOnly") && session.contains("SameSite=Lax"), "{session}");
    assert!(!session.contains("Secure"), "there is no TLS here: {session}");
}

#[test]
fn cookies_are_secure_behind_tls() {
    let server = Server::demo_with(&["server.public_url=https://photos.example"]);
    let response = server.get("/o/login");
    let cookie = response.headers()[SET_COOKIE].to_str().expect("ASCII");
    assert!(cookie.starts_with("__Host-") && cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn a_session_ends_on_logout_and_when_its_user_is_disabled() {
    let server = Server::demo();
    let log_in = || {
        let (cookie, token) = login_page(&server, "/o/login");
        let fields = [("username", NAME), ("password", PASSWORD), ("csrf", token.as_str())];
        let response = submit(&server, &cookie, &fields);
        assert_eq!(response.status(), 303);
        let cookies = response.headers().get_all(SET_COOKIE).iter();
        let cookies = cookies.map(|line| line.to_str().expect("ASCII").to_owned());
        let session = cookies.into_iter().find(|line| line.starts_with("wirephoto_session="));
        session.expect("a session").split(';').next().expect("a cookie").to_owned()
    };
    let page = |session: &str| {
        server.get_with(ITEM, &[("cookie", session)]).text().expect("text").contains("Log out")
    };
    let session = log_in();
    assert!(page(&session));
    assert!(!page(&session[..session.len() - 1]), "a cut session is none");
    let logout = |csrf: &str| {
        let request = server.client.post(format!("{}/o/logout", server.url));
        request.header(COOKIE, &session).form(&[("csrf", csrf)]).send().expect("answer").status()
    };
    assert_eq!(logout("wrong"), 400, "another site cannot log a visitor out");
    assert!(page(&session));
    let text = server.get_with(ITEM, &[("cookie", &session)]).text().expect("text");
    let token = text.split_once("name=\"csrf\" value=\"").expect("a token").1;
    assert_eq!(logout(token.split('"').next().expect("a token")), 303);
    assert!(!page(&session));
    let session = log_in();
    assert!(page(&session));
    let output = server.command(&["user", "disable", NAME]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.until("the session to end", || (!page(&session)).then_some(()));
}

#[test]
fn failed_logins_are_throttled_by_name_and_the_right_password_has_to_wait_too() {
    let server = Server::demo_with(&["auth.failures_per_user=3"]);
    let (cookie, token) = login_page(&server, "/o/login");
    let with = |name: &str, password: &str| {
        let fields = [("username", name), ("password", password), ("csrf", token.as_str())];
        submit(&server, &cookie, &fields)
    };
    for _ in 0..3 {
        assert_eq!(with(NAME, "wrong").status(), 403);
        assert_eq!(with("nobody-at-all", "wrong").status(), 403);
    }
    for name in [NAME, "nobody-at-all"] {
        let response = with(name, PASSWORD);
        assert_eq!(response.status(), 503, "{name}");
        let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=900).contains(&wait), "{wait}");
    }
    assert_eq!(with("demo-admin", "demo-admin-password").status(), 303, "others go on");
    let log = server.log();
    assert!(!log.contains(PASSWORD) && !log.contains("wrong"), "{log}");
}

#[test]
fn an_unknown_name_costs_as_much_as_a_wrong_password() {
    let server = Server::demo();
    let (cookie, token) = login_page(&server, "/o/login");
    let hashes = |name: &str, password: &str| {
        let before = server.metric("wirephoto_password_hashes_total", "");
        let fields = [("username", name), ("password", password), ("csrf", token.as_str())];
        let response = submit(&server, &cookie, &fields);
        assert_eq!(response.status(), 403, "{name}");
        let shown = response.text().expect("text");
        assert!(shown.contains("Wrong user name or password."), "{name}");
        server.metric("wirephoto_password_hashes_total", "") - before
    };
    assert_eq!(hashes(NAME, "wrong"), 1.0);
    assert_eq!(hashes("nobody-at-all", "wrong"), 1.0);
    assert!(server.command(&["user", "disable", "demo-admin"]).status.success());
    assert_eq!(hashes("demo-admin", "wrong"), 1.0, "a disabled user");
}
