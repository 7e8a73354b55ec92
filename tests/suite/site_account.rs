//! The account pages of the customer web site: each user journey from the login to its goal, in a real browser and
//! with an HTTP client that runs no scripts.

use api::account::User;
use api::deliveries::ListDeliveries;
use api::organization::{ListOrganizationUsers, LoadOrganizationUser};
use api::user::{ListDevices, ListKeys, LoadCaller, LoadProfile, RegisterDevice};
use model::account::{ChannelMethod, DeliveryState, DeviceKind};
use reqwest::{
    Method, StatusCode,
    blocking::Response,
    header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE},
};
use serde_json::json;

use crate::common::{
    DEMO_KEY, Server,
    api::ApiCaller,
    browser::{Browser, DESKTOP},
};
use crate::keys_and_channels::{channel, make_key, put};

const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
const ITEM: &str = "/media/image/demo-urtavla";
const OTHER: &str = "/media/image/demo-trollslanda";
/// Texts that would become elements or attributes where they are not escaped.
pub const HOSTILE: &str = "<script>document.title='gone'</script>\"'><b \"onmouseover=\"x";

/// A logged-in user with a client that runs no scripts.
pub struct Person<'a> {
    server: &'a Server,
    cookie: String,
}

impl<'a> Person<'a> {
    pub fn log_in(server: &'a Server, user: &str) -> Self {
        let response = server.get("/o/login");
        let form = cookie(&response, "wirephoto_form=");
        let csrf = token(&response.text().unwrap());
        let password = format!("{user}-password");
        let fields = [("username", user), ("password", &password), ("csrf", &csrf)];
        let request = server.client.post(format!("{}/o/login", server.url));
        let response = request.header(COOKIE, form).form(&fields).send().unwrap();
        Self { server, cookie: cookie(&response, "wirephoto_session=") }
    }

    pub fn get(&self, path: &str) -> Response {
        self.get_with(path, &[])
    }

    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let cookie = [("cookie", self.cookie.as_str())];
        self.server.get_with(path, &[&cookie[..], headers].concat())
    }

    /// Sends what a page of another site can make the browser send: the cookie, and a body of a type that needs no CORS
    /// preflight.
    pub fn forge(&self, method: Method, path: &str, (kind, body): (&str, &str)) -> Response {
        let request = self.server.client.request(method, format!("{}{path}", self.server.url));
        let request = request.header(COOKIE, &self.cookie).header(ORIGIN, "https://evil.example");
        request.header(CONTENT_TYPE, kind).body(body.to_owned()).send().unwrap()
    }

    pub fn page(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        response.text().unwrap()
    }

    fn csrf(&self) -> String {
        token(&self.page("/account"))
    }

    /// Submits a form as a browser does, with the given token.
    fn post_with(&self, csrf: Option<&str>, path: &str, fields: &[(&str, &str)]) -> Response {
        let csrf = csrf.map(|csrf| ("csrf", csrf));
        let fields: Vec<_> = csrf.into_iter().chain(fields.iter().copied()).collect();
        let request = self.server.client.post(format!("{}{path}", self.server.url));
        let request = request.header(COOKIE, &self.cookie).header(ORIGIN, &self.server.url);
        request.form(&fields).send().unwrap()
    }

    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.post_with(Some(&self.csrf()), path, fields)
    }

    /// Submits a form that must redirect to another page.
    pub fn done(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let response = self.post(path, fields);
        let status = response.status();
        let location = response.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
        assert_eq!(status, 303, "{path}: {}", response.text().unwrap());
        location.unwrap()
    }
}

fn cookie(response: &Response, name: &str) -> String {
    let lines = response.headers().get_all(SET_COOKIE).iter();
    let mut lines = lines.map(|line| line.to_str().unwrap().to_owned());
    let line = lines.find(|line| line.starts_with(name)).expect("a cookie");
    line.split(';').next().unwrap().to_owned()
}

fn token(page: &str) -> String {
    let rest = page.split_once("name=\"csrf\" value=\"").expect("a token").1;
    rest.split('"').next().unwrap().to_owned()
}

/// The visible text of the page.
pub fn shown(browser: &Browser) -> String {
    browser.text("document.querySelector('main').innerText")
}

pub fn alert(browser: &Browser) -> String {
    browser.text("document.querySelector('[role=alert]').innerText")
}

/// Checks that the page shows hostile text as text.
pub fn check_harmless(browser: &Browser, what: &str) {
    let made = "document.querySelectorAll('main b, main script, [onmouseover]').length";
    assert_eq!(browser.eval(made), 0, "{what}");
    assert!(!browser.text("document.title").starts_with("gone"), "{what}");
}

#[test]
fn an_order_under_a_direct_agreement_is_confirmed_and_decided() {
    let server = Server::demo();
    let person = Person::log_in(&server, "demo-buyer");
    let place = person.done("/item/image/demo-urtavla/download", &[("agr", "1003")]);
    assert_eq!(place, "/item/image/demo-urtavla?done=placed");
    assert!(person.page(&place).contains("Item ordered."));
    let list = person.page("/account/orders");
    assert!(list.contains("To approve") && !list.contains("To report"), "{list}");
    let id = ApiCaller::login(&server, "demo-buyer").orders()[0].id;
    let page = person.page(&format!("/account/orders/{id}"));
    assert!(page.contains("Approve the order?") && !page.contains("Was the item used?"), "{page}");
    let place = person.done(&format!("/account/orders/{id}"), &[("approve", "no")]);
    assert_eq!(place, "/account/orders?done=rejected");
    let list = person.page(&place);
    assert!(list.contains("Order rejected.") && list.contains(">Rejected<"), "{list}");
}

#[test]
fn an_order_is_reported_under_a_licence() {
    let server = Server::demo();
    let key = ApiCaller::key(&server, BUYER_KEY);
    for item in [ITEM, OTHER] {
        let bought = key.request(Method::GET, &format!("{item}.jpg"), None);
        assert_eq!(bought.status(), 200, "{item}");
    }
    let buyer = ApiCaller::login(&server, "demo-buyer");
    let ids: Vec<i64> = buyer.orders().iter().map(|order| order.id).collect();
    assert_eq!(ids.len(), 2);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-buyer", "/account/orders");
    browser.check_appearance("account-orders");
    assert_eq!(browser.eval("document.querySelectorAll('.orders img').length"), 2);
    let page = format!("/account/orders/{}", ids[1]);
    browser.follow(&format!("a[href='{page}']"));
    browser.check_appearance("account-order");
    // Without a licence the page names what is missing and keeps the input.
    browser.fill("#invoice-text", &format!("Ref 17\n{HOSTILE}"));
    browser.follow("main button[type=submit]");
    assert!(alert(&browser).contains("Licence is missing"), "{}", alert(&browser));
    let typed = browser.text("document.querySelector('#invoice-text').value");
    assert_eq!(typed, format!("Ref 17\n{HOSTILE}"));
    check_harmless(&browser, "order");
    // The browser itself logs the 400.
    assert!(browser.console_messages().iter().all(|line| line.contains("status of 400")));
    browser.check_appearance("account-order-mistake");
    browser.click("#license-2");
    let uuid = browser.text("document.querySelector('#license-2').value");
    browser.follow("main button[type=submit]");
    assert!(browser.address().ends_with("/account/orders"));
    assert!(shown(&browser).contains("Order reported."), "{}", shown(&browser));
    let order = buyer.json(&format!("/user/v1/order/{}", ids[1]));
    assert!(order["reported"].is_string(), "{order}");
    assert_eq!(
        (&order["approved"], &order["price"]["license"]["uuid"]),
        (&json!(true), &json!(uuid))
    );
    assert_eq!(order["invoiceText"], format!("Ref 17\n{HOSTILE}"));
    browser.visit(&format!("{}{page}", server.url));
    assert!(shown(&browser).contains(HOSTILE), "{}", shown(&browser));
    check_harmless(&browser, "reported order");
    browser.check_appearance("account-order-reported");
    // Only the remaining order is listed, and it is reported as not used.
    browser.visit(&format!("{}/account/orders?status=unreported", server.url));
    assert_eq!(browser.eval("document.querySelectorAll('.orders li').length"), 1);
    let person = Person::log_in(&server, "demo-buyer");
    let again = person.post(&page, &[("approve", "no")]);
    assert_eq!(again.status(), 400);
    assert!(again.text().unwrap().contains("This order has already been reported."));
    assert_eq!(person.get("/account/orders/999999").status(), 404);
    assert_eq!(person.get("/account/orders/%3Cb%3E").status(), 404);
    assert_eq!(person.get("/account/orders?start=x").status(), 400);
    let place = person.done(&format!("/account/orders/{}", ids[0]), &[("approve", "no")]);
    assert_eq!(place, "/account/orders?done=reported");
    let left = buyer.orders().into_iter().find(|order| order.id == ids[0]).unwrap();
    assert_eq!(left.approved, Some(false));
    assert_eq!(
        person.page("/account/orders?status=unreported").matches("class=\"state\"").count(),
        0
    );
}

#[test]
fn a_key_is_shown_once_and_works_until_it_is_revoked() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/keys");
    browser.fill("#key-name", HOSTILE);
    browser.follow("main button[type=submit]");
    let key = browser.text("document.querySelector('#key').textContent");
    assert!(shown(&browser).contains(HOSTILE));
    check_harmless(&browser, "key");
    browser.wait("the copy button", "!document.querySelector('[data-copy=\"#key\"]').hidden");
    browser.click("[data-copy=\"#key\"]");
    browser.wait(
        "the copy",
        "document.querySelector('[data-copy=\"#key\"]').textContent === 'Copied' \
         || getSelection().toString() === document.querySelector('#key').textContent",
    );
    let example = browser.text("document.querySelector('#example').textContent");
    assert!(example.contains(&format!("ApiKey {key}")) && example.contains(&server.url));
    browser.check_appearance("account-key");
    let program = ApiCaller::key(&server, &key);
    let user_name = || program.ask(&LoadCaller {}).map(|user| user.base.user_name);
    assert_eq!(user_name().as_deref(), Ok("demo-editor"));
    browser.follow("a[href='/account/keys']:not(nav a)");
    assert!(!browser.text("document.documentElement.outerHTML").contains(&key));
    check_harmless(&browser, "keys");
    browser.check_appearance("account-keys");
    let listed = ApiCaller::login(&server, "demo-editor").ask(&ListKeys {}).unwrap();
    let id = listed.iter().find(|key| key.name == HOSTILE).unwrap().id;
    browser.follow(&format!("a[href='/account/keys/{id}/revoke']"));
    browser.check_appearance("account-key-revoke");
    assert_eq!(user_name().as_deref(), Ok("demo-editor"), "only asked");
    browser.follow("main button.bad");
    assert!(!shown(&browser).contains(HOSTILE));
    assert_eq!(user_name().unwrap_err().status, 401);
    let person = Person::log_in(&server, "demo-editor");
    assert_eq!(person.get(&format!("/account/keys/{id}/revoke")).status(), 404);
    let none = person.post("/account/keys", &[("name", " ")]);
    assert_eq!(none.status(), 400);
    assert!(none.text().unwrap().contains("Key name is missing."));
    assert!(!person.page("/account/keys").contains("Read only</small>"));
    let made = person.post("/account/keys", &[("name", "Wall"), ("readOnly", "on")]);
    assert_eq!(made.status(), 200);
    let listed = ApiCaller::login(&server, "demo-editor").ask(&ListKeys {}).unwrap();
    assert!(listed.iter().any(|key| key.name == "Wall" && key.read_only));
    assert!(person.page("/account/keys").contains("Read only</small>"));
}

#[test]
fn deliveries_are_listed_with_their_outcome() {
    let server = Server::demo_with(&["delivery.retry_first_ms=50"]);
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let file = server.dir.path().join("hook.json");
    let settings = json!({
        "url": "http://127.0.0.1:1/", "allowHttp": true, "secret": "a-secret-of-at-least-24-bytes",
    });
    std::fs::write(&file, settings.to_string()).unwrap();
    let file = file.to_string_lossy();
    let add =
        ["channel", "add", "demo-editor", "hook", "--method", "webhook", "--format", ".json"];
    let output = server.command(&[add.as_slice(), &["--settings-file", &file]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (item, channel) in [(ITEM, "demo-mail"), (OTHER, "hook")] {
        let path = format!("{item}?channel=user:demo-editor:{channel}");
        assert_eq!(editor.request(Method::GET, &path, None).status(), 202, "{channel}");
    }
    let states = || {
        let found = editor.ask(&ListDeliveries::default()).unwrap().deliveries;
        let arrived = found.iter().any(|one| one.state == DeliveryState::Delivered);
        (arrived && found.iter().any(|one| one.error.is_some())).then_some(())
    };
    server.until("both", states);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/deliveries");
    let text = shown(&browser);
    for part in [
        "Delivered",
        "user:demo-editor:demo-mail",
        "user:demo-editor:hook",
        "refused",
        "demo-urtavla",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    browser.check_appearance("account-deliveries");
    browser.follow("a[href='/account/deliveries?state=delivered']");
    assert_eq!(browser.eval("document.querySelectorAll('.orders li').length"), 1);
    let person = Person::log_in(&server, "demo-editor");
    assert_eq!(person.get("/account/deliveries?state=%3Cb%3E").status(), 400);
}

/// The user with that name.
fn find_user(admin: &ApiCaller<'_>, user_name: &str) -> User {
    let users = admin.ask(&ListOrganizationUsers {}).unwrap();
    let id = users.into_iter().find(|user| user.user_name == user_name).unwrap().id;
    admin.ask(&LoadOrganizationUser { id }).unwrap()
}

#[test]
fn only_an_administrator_adds_and_changes_users() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/account/users");
    browser.check_appearance("account-users");
    browser.follow("a[href='/account/users/new']");
    browser.check_appearance("account-user-new");
    browser.fill("#user-emailAddress", "New.Person@demo-desk.example");
    browser.fill("#user-firstName", HOSTILE);
    browser.fill("#user-lastName", "Person");
    browser.fill("#user-direct", "not a number");
    browser.follow("main button[type=submit]");
    assert_eq!(alert(&browser), "The phone number is not valid.");
    let typed = browser.text("document.querySelector('#user-firstName').value");
    assert_eq!(typed, HOSTILE);
    check_harmless(&browser, "new user");
    drop(browser.console_messages());
    browser.check_appearance("account-user-mistake");
    browser.fill("#user-direct", "+46 8 123 456");
    browser.follow("main button[type=submit]");
    // Without a mail server the administrator gets a link to pass on.
    assert!(shown(&browser).contains("Password link"), "{}", shown(&browser));
    browser.follow(".desk-nav a[href='/account/users']");
    assert!(shown(&browser).contains(HOSTILE));
    check_harmless(&browser, "users");
    let admin = ApiCaller::login(&server, "demo-admin");
    let find = || find_user(&admin, "new.person@demo-desk.example");
    let user = find();
    assert_eq!(user.phone_number.direct.as_deref(), Some("+46 8 123 456"));
    assert_eq!(user.phone_number.mobile, None);
    assert_eq!((user.access.admin, user.access.mediebank), (false, false));
    let page = format!("/account/users/{}", user.base.id);
    browser.follow(&format!("a[href='{page}']"));
    browser.fill("#user-firstName", "Ada");
    browser.fill("#user-direct", "");
    browser.click("#user-mediebank");
    browser.check_appearance("account-user");
    browser.follow("main button[type=submit]");
    assert!(shown(&browser).contains("Saved.") && shown(&browser).contains("Ada Person"));
    let user = find();
    assert_eq!(user.base.first_name.as_deref(), Some("Ada"));
    assert_eq!((user.phone_number.direct, user.phone_number.mobile), (None, None));
    assert!(user.access.mediebank);
    let person = Person::log_in(&server, "demo-admin");
    let twice =
        [("emailAddress", "new.person@demo-desk.example"), ("firstName", "A"), ("lastName", "B")];
    let response = person.post("/account/users/new", &twice);
    assert_eq!(response.status(), 400);
    assert!(response.text().unwrap().contains("This address is already in use"));
    let empty = person.post(&page, &[("emailAddress", "a@b.example"), ("lastName", "B")]);
    assert_eq!(empty.status(), 400);
    assert!(empty.text().unwrap().contains("First name is missing."));
    let address = find().base.email_address;
    assert_eq!(address.as_deref(), Some("New.Person@demo-desk.example"));
    assert_eq!(person.get("/account/users/999999").status(), 404);
    check_only_administrators(&server, &page, &twice);
    assert_eq!(find().base.first_name.as_deref(), Some("Ada"));
}

/// Checks that each page of users explains to a user without administrator rights who may see it.
fn check_only_administrators(server: &Server, page: &str, twice: &[(&str, &str)]) {
    let editor = Person::log_in(server, "demo-editor");
    assert!(!editor.page("/account").contains("/account/users"));
    for path in ["/account/users", "/account/users/new", page] {
        let response = editor.get(path);
        assert_eq!(response.status(), 403, "{path}");
        assert!(response.text().unwrap().contains("For administrators only"), "{path}");
    }
    for path in ["/account/users/new", page] {
        assert_eq!(editor.post(path, twice).status(), 403, "{path}");
    }
    let other = Browser::open(DESKTOP);
    other.log_in(&server.url, "demo-editor", "/account/users");
    assert!(shown(&other).contains("For administrators only"));
    drop(other.console_messages());
    other.check_appearance("account-forbidden");
}

#[test]
fn the_profile_is_edited_and_invalid_json_keeps_the_input() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-buyer", "/account");
    let text = shown(&browser);
    for part in
        ["Demo Buyer", "Demo agency", "Demo prepaid", "10 of 10", "31 Dec 2035", "FOTO", "Direct"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    browser.check_appearance("account");
    let typed = format!("{{\n  \"title\": {},\n  oops\n}}", json!(HOSTILE));
    browser.fill("#profile-text", &typed);
    browser.follow("main button[type=submit]");
    assert_eq!(alert(&browser), "Invalid JSON at line 3, column 3.");
    assert_eq!(browser.text("document.querySelector('#profile-text').value"), typed);
    check_harmless(&browser, "profile");
    drop(browser.console_messages());
    browser.check_appearance("account-profile-mistake");
    browser.fill("#profile-text", &typed.replace(",\n  oops", ""));
    browser.follow("main button[type=submit]");
    assert!(shown(&browser).contains("Saved."), "{}", shown(&browser));
    check_harmless(&browser, "profile");
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    let stored = || json!(buyer.ask(&LoadProfile {}).unwrap());
    assert_eq!(stored(), json!({ "title": HOSTILE }));
    let person = Person::log_in(&server, "demo-buyer");
    let check = |profile: &str, status: u16, said: &str| {
        let response = person.post("/account/profile", &[("profile", profile)]);
        assert_eq!(response.status(), status, "{said}");
        let text = response.text().unwrap();
        assert!(text.contains(said), "{said}: {text}");
    };
    check("[1]", 400, "The profile must be a JSON object.");
    check("", 400, "Invalid JSON at line 1, column 0.");
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(64 * 1024));
    check(&long, 413, "65536 bytes");
    assert_eq!(stored(), json!({ "title": HOSTILE }));
    // In Swedish.
    let cookie = format!("{}; wirephoto_language=sv", person.cookie);
    let page = server.get_with("/account", &[("cookie", &cookie)]).text().unwrap();
    for part in ["Översikt", "Förbetalt", "10 av 10", "31 dec. 2035"] {
        assert!(page.contains(part), "{part}");
    }
}

fn phone(token: &str, model: &str) -> RegisterDevice {
    let kind = DeviceKind::Ios;
    RegisterDevice { token: token.to_owned(), kind, name: None, model: model.to_owned() }
}

#[test]
fn devices_are_listed_and_removed() {
    let server = Server::demo();
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let hostile = RegisterDevice {
        token: "tok/en\"".to_owned(),
        kind: DeviceKind::Android,
        name: Some(HOSTILE.to_owned()),
        model: "Phone 1".to_owned(),
    };
    editor.ask(&hostile).unwrap();
    editor.ask(&phone("second", "Phone 2")).unwrap();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/account/devices");
    assert!(shown(&browser).contains(HOSTILE) && shown(&browser).contains("Phone 2"));
    check_harmless(&browser, "devices");
    browser.check_appearance("account-devices");
    browser.follow("form:has([value^='tok/']) button");
    check_harmless(&browser, "device");
    browser.check_appearance("account-device-remove");
    browser.follow("main button.bad");
    assert!(shown(&browser).contains("Removed."));
    let left = editor.ask(&ListDevices {}).unwrap();
    assert_eq!((left.len(), left[0].token.as_str()), (1, "second"));
}

#[test]
fn a_form_without_the_sessions_token_changes_nothing() {
    let server = Server::demo();
    let buyer = ApiCaller::key(&server, BUYER_KEY);
    let bought = buyer.request(Method::GET, &format!("{ITEM}.jpg"), None);
    assert_eq!(bought.status(), 200);
    let person = Person::log_in(&server, "demo-admin");
    let admin = ApiCaller::login(&server, "demo-admin");
    admin.ask(&phone("token", "Phone")).unwrap();
    put(&admin, "own", &channel(ChannelMethod::Download, json!({})));
    let key = make_key(&admin, "own");
    let state = || {
        let paths = ["profile", "device", "key", "channel", "organization/user", "order"];
        paths.map(|path| admin.json(&format!("/user/v1/{path}")))
    };
    let before = state();
    let revoke = format!("/account/keys/{}/revoke", key.id);
    let user = [("emailAddress", "x@y.example"), ("firstName", "X"), ("lastName", "Y")];
    let channel = [("method", "download"), ("name", "new"), ("format", ".json")];
    let forms: [(&str, &[(&str, &str)]); 10] = [
        ("/account/profile", &[("profile", "{\"a\":1}")]),
        ("/account/orders/1", &[("approve", "no")]),
        ("/account/devices/remove", &[("token", "token")]),
        ("/account/keys", &[("name", "another")]),
        (&revoke, &[]),
        ("/account/channels/edit", &channel),
        ("/account/channels/remove", &[("name", "own")]),
        ("/account/channels/test", &[("name", "own")]),
        ("/account/users/new", &user),
        ("/account/users/101", &user),
    ];
    for (path, fields) in forms {
        for csrf in [None, Some("wrong")] {
            let response = person.post_with(csrf, path, fields);
            // A form from a page of ours is stored and must be confirmed; it is not executed.
            assert_eq!(response.status(), 200, "{path}");
            assert!(response.text().unwrap().contains("Your form has not been sent"), "{path}");
            let request = server.client.post(format!("{}{path}", server.url));
            let request =
                request.header(COOKIE, &person.cookie).header(ORIGIN, "https://evil.example");
            assert_eq!(request.form(fields).send().unwrap().status(), 400, "{path}");
        }
    }
    assert_eq!(state(), before);
    // The same forms take effect with the token.
    let response = person.post("/account/profile", &[("profile", "{\"a\":1}")]);
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(admin.json("/user/v1/profile"), json!({ "a": 1 }));
}

#[test]
fn every_account_page_asks_for_a_login_and_needs_no_script() {
    let server = Server::demo();
    let person = Person::log_in(&server, "demo-admin");
    for path in [
        "/account",
        "/account/orders",
        "/account/deliveries",
        "/account/devices",
        "/account/keys",
        "/account/channels",
        "/account/channels/edit?method=sftp",
        "/account/users",
        "/account/users/new",
        "/account/users/102",
    ] {
        let response = server.get(path);
        assert_eq!(response.status(), 303, "{path}");
        let to = response.headers()[LOCATION].to_str().unwrap().to_owned();
        assert!(to.starts_with("/o/login?return_to=%2Faccount"), "{path}: {to}");
        let page = person.page(path);
        assert!(!page.contains("<script") && !page.contains("style="), "{path}");
        assert!(page.contains("aria-current=\"page\""), "{path}");
        // A message in the URL is one of ours, or ignored.
        let mark = if path.contains('?') { '&' } else { '?' };
        let hostile = person.page(&format!("{path}{mark}done=%3Cb%3Ehello"));
        assert!(!hostile.contains("class=\"said\"") && !hostile.contains("<b>hello"), "{path}");
    }
    // A GET of a form target redirects back.
    for path in ["/account/profile", "/account/channels/test", "/account/channels/edit"] {
        assert_eq!(person.get(path).status(), 303, "{path}");
    }
}
