//! Leniency in requests: content types of bodies, numbers, empty parameters, trailing slashes.

use reqwest::{
    Method,
    blocking::Response,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Value, json};

use crate::common::{DEMO_KEY, Server};
use crate::items::provider;
use crate::site_account::Person;

const PREVIEW: &str = "/media/image/demo-urtavla_NormalPreview.jpg";

/// The content types that `curl -d` and browsers send by default.
const KINDS: [&str; 3] = ["application/x-www-form-urlencoded", "text/plain;charset=UTF-8", "x/y"];

fn send(
    server: &Server,
    method: Method,
    path: &str,
    (kind, body): (Option<&str>, &str),
) -> Response {
    let request = server.client.request(method, format!("{}{path}", server.url));
    let request = request.header(AUTHORIZATION, format!("ApiKey {DEMO_KEY}"));
    let request = match kind {
        Some(kind) => request.header(CONTENT_TYPE, kind),
        None => request,
    };
    request.body(body.to_owned()).send().expect("answer")
}

/// The status, and rule and name of every error.
fn refused(response: Response) -> (u16, Vec<String>) {
    let status = response.status().as_u16();
    let body: Value = response.json().expect("JSON");
    let wrong = |one: &Value| {
        let rule = one["errorCode"].as_str().unwrap_or_default();
        let rule = rule.strip_suffix(".openapi.requestValidation").unwrap_or(rule);
        format!("{rule} {}", one["path"].as_str().unwrap_or_default())
    };
    let errors = body["errors"].as_array().map(|errors| errors.iter().map(wrong).collect());
    (status, errors.unwrap_or_default())
}

#[test]
fn a_json_body_is_read_with_any_content_type() {
    let server = Server::demo();
    let collections = "/collection/v1/collection";
    for kind in KINDS.map(Some).into_iter().chain([None]) {
        let made = send(&server, Method::POST, collections, (kind, "{\"name\": \"Bridges\"}"));
        assert_eq!(made.status(), 200, "{kind:?}");
        let made: Value = made.json().expect("JSON");
        let items = format!("{collections}/{}/items", made["id"].as_str().expect("an id"));
        let body = "[{\"uri\": \"http://a.example/media/image/demo-bridge-cables\"}]";
        assert_eq!(send(&server, Method::POST, &items, (kind, body)).status(), 200, "{kind:?}");
        assert_eq!(send(&server, Method::DELETE, &items, (kind, body)).status(), 200, "{kind:?}");
        let profile = send(&server, Method::PUT, "/user/v1/profile", (kind, "{\"a\": 1}"));
        assert_eq!(profile.status(), 200, "{kind:?}");
    }
    let form = (Some(KINDS[0]), "name=Bridges");
    let refusal = refused(send(&server, Method::POST, collections, form));
    assert_eq!(refusal, (400, vec!["format ".to_owned()]));
    // The document of an item as `curl -d @item.json` sends it.
    let auth = provider(&server);
    let put = server.client.put(format!("{}/ingest/v1/text/quay", server.url));
    let put = put.header(AUTHORIZATION, auth).header(CONTENT_TYPE, KINDS[0]);
    let sent = put.body(json!({ "headline": "The quay" }).to_string()).send().expect("answer");
    assert_eq!(sent.status(), 201, "{}", sent.text().unwrap_or_default());
    // The forms of OAuth2 are still forms.
    let login = json!({ "grant_type": "password" }).to_string();
    let token = send(&server, Method::POST, "/o/oauth2/token", (Some("application/json"), &login));
    assert_eq!(token.status(), 400);
}

#[test]
fn a_cross_site_request_changes_nothing() {
    let server = Server::demo_with(&["auth.hash_memory_kib=64"]);
    let person = Person::log_in(&server, "demo-editor");
    let own = || -> Value {
        let listed = send(&server, Method::GET, "/collection/v1/collection", (None, ""));
        listed.json().expect("JSON")
    };
    let before = own();
    for kind in KINDS {
        let body = (kind, "{\"name\": \"Forged\"}");
        for (method, path) in [
            (Method::POST, "/collection/v1/collection"),
            (Method::POST, "/collection/v1/collection/"),
            (Method::POST, "/user/v1/key"),
            (Method::PUT, "/user/v1/profile"),
            (Method::POST, "/content/v1/image/notification/stream?q=x"),
        ] {
            let forged = person.forge(method.clone(), path, body);
            assert_eq!(forged.status(), 401, "{method} {path} as {kind}");
        }
        assert_ne!(person.forge(Method::POST, "/collections", body).status(), 303, "{kind}");
    }
    assert_eq!(own(), before);
}

#[test]
fn numbers_may_have_a_zero_fraction_and_no_other() {
    let server = Server::demo();
    let with_key = |path: &str| send(&server, Method::GET, path, (None, ""));
    for path in [
        "/user/v1/order?size=20.0&start=0.0",
        "/user/v1/delivery?size=1.00&start=0.0",
        "/content/v1/image/search?s=2.0&fr=1.0",
        "/content/v1/image/search?agr=1001.0",
        "/content/v1/image/stream?wait=0.0",
        "/api/search?ak=demo-key-0000-0000-000000000001&s=1.0",
    ] {
        assert_eq!(with_key(path).status(), 200, "{path}");
    }
    let hits: Value = with_key("/content/v1/image/search?s=2.0").json().expect("JSON");
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(2));
    for (path, expected) in [
        ("/user/v1/order?size=2.5&start=1.", ["type size", "type start"]),
        ("/content/v1/image/search?s=1e1&fr=0.1", ["type s", "type fr"]),
    ] {
        assert_eq!(refused(with_key(path)), (400, expected.map(str::to_owned).to_vec()), "{path}");
    }
}

#[test]
fn an_empty_parameter_counts_as_absent() {
    let server = Server::demo();
    let with_key = |path: &str| send(&server, Method::GET, path, (None, ""));
    let json = |path: &str| -> Value {
        let answer = with_key(path);
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().expect("JSON")
    };
    // The query of a form with one field filled in.
    let form = "p=&agr=&tr=&trs=&tre=&pubstatus=&s=&fr=&sort=&facets=&layout=&forms=";
    for (path, same) in [
        ("/content/v1/image/search?q=klocka", format!("/content/v1/image/search?q=klocka&{form}")),
        ("/content/v1/_all/search", format!("/content/v1/_all/search?q=&{form}")),
        (
            "/content/v1/image/stream?wait=0",
            "/content/v1/image/stream?wait=0&last=&sort=&layout=".to_owned(),
        ),
        ("/user/v1/order", "/user/v1/order?size=&start=&status=".to_owned()),
        ("/user/v1/delivery", "/user/v1/delivery?size=&start=&state=".to_owned()),
        (
            "/media/image/demo-urtavla/pricelist",
            "/media/image/demo-urtavla/pricelist?agr=".to_owned(),
        ),
    ] {
        assert_eq!(json(path), json(&same), "{same}");
    }
    let old = format!("/api/search?ak={DEMO_KEY}&trs=&tre=&tr=&s=&fr=&sort=&p=&agr=");
    assert_eq!(json(&format!("/api/search?ak={DEMO_KEY}")), json(&old));
    // Without a channel, the address of the item redirects to its page. Without an agreement, the one that covers it is
    // charged.
    let page = server.get("/media/image/demo-urtavla?channel=&agr=&ak=");
    assert_eq!(page.status(), 302);
    assert_eq!(
        server.get(&format!("/media/image/demo-urtavla.jpg?agr=&ak={DEMO_KEY}")).status(),
        200
    );
    assert_eq!(server.get("/media/image/demo-urtavla.jpg?ak=").status(), 401);
    let made = |query: &str| {
        let path = format!("/content/v1/image/notification/scheduled-email?{query}");
        send(&server, Method::POST, &path, (None, ""))
    };
    let query = "title=Ice&email=a@b.example&schedule=0+7+*+*+*&timezone=&tr=&q=&p=&agr=";
    let notification: Value = made(query).json().expect("JSON");
    assert_eq!(notification["timezone"], "Europe/Stockholm", "{notification}");
    // An empty required parameter is missing.
    let expected = ["required title", "required email", "required schedule"];
    let missing = refused(made("title=&email=&schedule="));
    assert_eq!(missing, (400, expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_trailing_slash_changes_nothing_or_redirects() {
    let server = Server::demo();
    for path in [
        "/content/v1/image/search?q=klocka&s=1",
        "/content/v1/image/notification",
        "/user/v1/user",
        "/user/v1/profile/a",
        "/collection/v1/collection",
        "/api/search/agreements?ak=demo-key-0000-0000-000000000001",
        "/openapi.json",
        "/health/live",
        "/.well-known/openid-configuration",
    ] {
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        let slashed = format!("{place}/?{query}");
        let get = |path: &str| send(&server, Method::GET, path, (None, ""));
        let (plain, same) = (get(path), get(&slashed));
        assert_eq!(same.status(), plain.status(), "{slashed}");
        assert!(plain.status().as_u16() < 400, "{path}: {}", plain.status());
        let tag = |answer: &Response| answer.headers().get("etag").cloned();
        assert_eq!(tag(&same), tag(&plain), "{slashed}");
        assert_eq!(same.bytes().expect("body"), plain.bytes().expect("body"), "{slashed}");
    }
    let made =
        send(&server, Method::POST, "/collection/v1/collection/", (None, "{\"name\":\"a\"}"));
    assert_eq!(made.status(), 200);
    // The token of a device stays out of the log in every spelling.
    let path = "/user/v1/device/token-of-a-phone/?type=ios&model=x";
    assert_eq!(send(&server, Method::PUT, path, (None, "")).status(), 200);
    server.until("the line of the request", || {
        server.log().contains("/user/v1/device/{token}").then_some(())
    });
    assert!(!server.log().contains("token-of-a-phone"), "{}", server.log());
    // Pages redirect, and never to another site. So do media, for which caches store an answer per address.
    for (path, target) in [
        ("/media/image/demo-urtavla.json/?x=1", Some("/media/image/demo-urtavla.json?x=1")),
        ("/media/image/demo-urtavla/pricelist/", Some("/media/image/demo-urtavla/pricelist")),
        ("/media/image/demo%2Durtavla%5FNormalPreview.jpg", Some(PREVIEW)),
        ("/media/image/demo-urtavla_NormalPreview.jpg/", Some(PREVIEW)),
        ("/account/", Some("/account")),
        ("/docs/?x=1", Some("/docs?x=1")),
        ("/item/image/demo-urtavla/", Some("/item/image/demo-urtavla")),
        ("/o/login/?return_to=/docs", Some("/o/login?return_to=/docs")),
        ("//evil.example/", None),
        ("//evil.example/account/", None),
        ("/nothing/", None),
    ] {
        let answer = server.get(path);
        let location = answer.headers().get("location").map(|it| it.to_str().expect("ASCII"));
        let resolved = location.map(|it| answer.url().join(it).expect("an address").to_string());
        let target = target.map(|target| format!("{}{target}", server.url));
        let status = if target.is_some() { 308 } else { 404 };
        assert_eq!((answer.status().as_u16(), resolved), (status, target), "{path}");
        // A proxy may serve media below a path of its own.
        assert_eq!(
            location.is_some_and(|it| it.starts_with("../")),
            status == 308 && path.starts_with("/media/"),
            "{path}"
        );
    }
}

#[test]
fn schedules_have_the_nicknames_of_cron() {
    let server = Server::demo();
    let make = |schedule: &str| {
        let query = format!("title=Ice&email=a@b.example&schedule={schedule}");
        let path = format!("/content/v1/text/notification/scheduled-email?{query}");
        send(&server, Method::POST, &path, (None, ""))
    };
    for schedule in ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly"] {
        let made = make(schedule);
        assert_eq!(made.status(), 200, "{schedule}");
        let made: Value = made.json().expect("JSON");
        assert_eq!(made["schedule"], schedule, "{made}");
    }
    assert_eq!(refused(make("@reboot")), (400, vec!["format schedule".to_owned()]));
}

#[test]
fn every_deprecated_interface_says_so_and_names_its_successor() {
    let server = Server::demo();
    for (path, successor) in [
        ("/user/v1/agreement", "/user/v1/user"),
        ("/content/v1/image/stream?wait=0", "/content/v1/image/notification/stream"),
        ("/api/search?ak=demo-key-0000-0000-000000000001", "/content/v1/_all/search"),
    ] {
        let open = server.get(path);
        for answer in [send(&server, Method::GET, path, (None, "")), open] {
            let header = |name: &str| answer.headers()[name].to_str().expect("ASCII").to_owned();
            assert!(header("deprecation").starts_with('@'), "{path}");
            let link = format!("<{successor}>; rel=\"successor-version\"");
            assert_eq!(header("link"), link, "{path}");
        }
    }
    let current = send(&server, Method::GET, "/user/v1/user", (None, ""));
    assert!(!current.headers().contains_key("deprecation"));
}
