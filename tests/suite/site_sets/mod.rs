//! Notifications and collections on the customer web site, in a browser and without scripts.

mod collection_pages;
mod notification_pages;

use reqwest::blocking::Response;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};

use crate::common::{DEMO_KEY, Server, api::ApiCaller, browser::Browser};

/// Text that becomes markup, a script or a template expression where it is not escaped.
const HOSTILE: &str = "\"><script>document.title='gone'</script><b>{{ 7 * 7 }}</b>&amp;";

/// The demo editor as a caller of the APIs.
fn editor(server: &Server) -> ApiCaller<'_> {
    ApiCaller::key(server, DEMO_KEY)
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
