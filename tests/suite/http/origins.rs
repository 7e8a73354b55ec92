//! Scripts of other origins: what they may read of media, and with which credentials (CORS).

use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use super::{PREVIEW, header, hires};
use crate::common::browser::{Browser, DESKTOP};
use crate::common::{DEMO_KEY, Server, tokens};
use crate::site::Session;

/// A key whose agreements cover no text.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";
const TEXT: &str = "/media/text/demo-aceh-rescue.json";

/// Returns whether scripts of any origin may read a response; if so, also the headers of a download and of a range.
fn is_readable(response: &Response) -> bool {
    let exposed = header(response, "access-control-expose-headers");
    let is_readable = !header(response, "access-control-allow-origin").is_empty();
    for name in ["Content-Disposition", "Content-Range", "ETag", "Retry-After"] {
        assert_eq!(exposed.contains(name), is_readable, "{name}: {exposed}");
    }
    is_readable
}

/// The statuses of a whole response, of one that is known, of a range, of a failed precondition and of a range
/// beyond the end.
const CONDITIONS: [(u16, Option<(&str, &str)>); 5] = [
    (200, None),
    (304, Some(("if-none-match", "*"))),
    (206, Some(("range", "bytes=5-99"))),
    (412, Some(("if-match", "\"other\""))),
    (416, Some(("range", "bytes=99999999-"))),
];

/// Requests `path` under each of the conditions.
fn check(server: &Server, path: &str, headers: &[(&str, &str)], readable: bool) {
    for (status, condition) in CONDITIONS {
        let headers = [headers, condition.as_slice()].concat();
        let response = server.get_with(path, &headers);
        assert_eq!(response.status(), status, "{path} {headers:?}");
        assert_eq!(is_readable(&response), readable, "{path} {headers:?}: {status}");
    }
}

#[test]
fn scripts_of_other_origins_may_read_what_is_open_and_what_their_own_credentials_open() {
    let server = Server::demo();
    for path in [PREVIEW, "/media/image/demo-urtavla.json"] {
        check(&server, path, &[], true);
    }
    let key = format!("ApiKey {DEMO_KEY}");
    for path in [
        "/media/image/demo-urtavla.jpg",
        "/media/image/demo-urtavla.zip",
        "/media/image/demo-urtavla/pricelist",
        TEXT,
        "/media/text/demo-aceh-rescue/a000_NormalPreview.jpg",
        PREVIEW,
    ] {
        check(&server, path, &[("authorization", &key)], true);
        check(&server, &format!("{path}?ak={DEMO_KEY}"), &[], true);
    }
    let readable = |path: &str, headers: &[(&str, &str)], status: u16| {
        let response = server.get_with(path, headers);
        assert_eq!(response.status(), status, "{path} {headers:?}");
        assert!(is_readable(&response), "{path} {headers:?}");
    };
    readable("/media/image/demo-urtavla.jpg", &[], 401);
    readable("/media/image/demo-urtavla.jpg?ak=nonsense", &[], 401);
    readable(TEXT, &[("authorization", &format!("ApiKey {BUYER_KEY}"))], 403);
    readable("/media/image/none.json", &[], 404);
    readable("/media/image/none.jpg", &[("authorization", &key)], 404);
    readable("/media/image/demo-urtavla", &[("authorization", &key)], 302);
}

#[test]
fn scripts_of_other_origins_may_not_read_what_a_session_cookie_opens() {
    let server = Server::demo();
    let session = Session::open(&server, "demo-editor");
    let cookie = ("cookie", session.cookie.as_str());
    check(&server, TEXT, &[cookie], false);
    // Scripts of the site confirm with their form token that the cookie may be used.
    let confirmed = format!("Session {}", session.csrf);
    for path in [TEXT, "/media/image/demo-urtavla.jpg"] {
        check(&server, path, &[cookie, ("authorization", &confirmed)], false);
    }
    // The key decides, and the cookie beside it opens nothing.
    check(&server, &format!("{TEXT}?ak={DEMO_KEY}"), &[cookie], true);
    let refused = server.get_with(&format!("{TEXT}?ak=nonsense"), &[cookie]);
    assert_eq!((refused.status().as_u16(), is_readable(&refused)), (401, true));
    check(&server, PREVIEW, &[cookie], true);
}

#[test]
fn a_preflight_allows_credentials_ranges_and_preconditions() {
    let server = Server::demo();
    let request = server.client.request(Method::OPTIONS, format!("{}{}", server.url, hires()));
    let request = request
        .header("origin", "https://desk.example")
        .header("access-control-request-method", "GET")
        .header("access-control-request-headers", "authorization, content-type, range");
    let response = request.send().expect("answer");
    assert!(response.status().is_success());
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    assert!(header(&response, "access-control-allow-methods").contains("GET"));
    let allowed = header(&response, "access-control-allow-headers").to_lowercase();
    for name in ["authorization", "content-type", "range", "if-range", "if-match", "if-none-match"]
    {
        assert!(allowed.split(", ").any(|one| one == name), "{name}: {allowed}");
    }
}

/// Reads each address with `Authorization` and again with `ak`, as a client library does.
const READ_ALL: &str = "
    const done = arguments[arguments.length - 1];
    const [server, key, paths] = arguments;
    const headers = { 'Authorization': `ApiKey ${key}`, 'Content-Type': 'application/json' };
    const read = async (url, options) => {
        const response = await fetch(url, options);
        return [response.status, (await response.arrayBuffer()).byteLength > 0];
    };
    (async () => {
        const found = [];
        for (const path of paths) {
            found.push(await read(server + path, { headers }));
            found.push(await read(`${server}${path}?ak=${key}`));
        }
        return found;
    })().then(done, error => done(String(error)));
";

#[test]
fn a_page_of_another_origin_reads_what_it_buys_and_pays_once() {
    let server = Server::demo();
    let paths = [
        "/media/image/demo-urtavla.jpg",
        "/media/image/demo-trollslanda-fit_w800.webp",
        "/media/image/demo-bridge-cables.zip",
        "/media/image/demo-dandelion-seeding/pricelist",
        TEXT,
        "/media/text/demo-aceh-rescue/a000_NormalPreview.jpg",
    ];
    let browser = Browser::open(DESKTOP);
    // Another name of the same host is another origin, and its health check a page without scripts.
    browser.visit(&format!("{}/health/live", server.url.replace("127.0.0.1", "localhost")));
    let arguments = json!([server.url, DEMO_KEY, paths]);
    let read = browser.post("/execute/async", &json!({ "script": READ_ALL, "args": arguments }));
    let expected = vec![(200, true); 2 * paths.len()];
    assert_eq!(read, json!(expected), "{:?}", browser.console_messages());
    let token = tokens::password(&server, "demo-editor", "demo-editor-password", "roles");
    let bearer = format!("Bearer {token}");
    let orders: Value = server
        .get_with("/user/v1/order", &[("authorization", &bearer)])
        .json()
        .expect("a list of orders");
    let orders = orders["orders"].as_array().expect("orders");
    let mut bought: Vec<&str> = orders
        .iter()
        .map(|order| order["item"]["uri"].as_str().expect("a uri"))
        .filter_map(|uri| uri.rsplit('/').next())
        .collect();
    bought.sort_unstable();
    assert_eq!(bought, ["demo-bridge-cables", "demo-trollslanda", "demo-urtavla"]);
}
