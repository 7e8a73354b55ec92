//! The selection on the customer web site: made by mouse and keyboard, kept for a visit, reviewed with its cost before
//! anything is bought, downloaded, delivered, ordered and listed with its captions. The colour scheme of a visitor.

mod captions;
mod cost;
mod scheme;
mod selecting;

use reqwest::blocking::Response;
use reqwest::header::LOCATION;
use serde_json::{Value, json};

use crate::common::{Server, browser::Browser, checkout, oracle};
use crate::site::Session;

const SHIFT: &str = "\u{E008}";

/// The states of the boxes of the hits, in their order: true if ticked.
const TICKED: &str = "[...document.querySelectorAll('.picker input')].map(one => one.checked)";
/// The number of items in the bar, as it is shown.
const COUNT: &str = "document.querySelector('.selection-count').textContent";
/// The URIs that the browser keeps for the visit.
const KEPT: &str = "JSON.parse(sessionStorage.getItem('wirephoto.selection')).uris";

/// The text of a page with unescaped slashes.
fn plain(page: Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/").replace("&#x27;", "'")
}

fn uri(server: &Server, key: &str) -> String {
    format!("{}/media/{key}", server.url)
}

/// The keys of the photographs of the demo archive that agreements cover, in alphabetical order.
fn photographs() -> Vec<String> {
    let folders = std::fs::read_dir(checkout("media-store/demo/image")).expect("the demo");
    let names =
        folders.map(|one| one.expect("a folder").file_name().into_string().expect("UTF-8"));
    let mut keys: Vec<String> = names.map(|name| format!("image/{name}")).collect();
    keys.sort();
    keys
}

/// The fields of a form with these items.
fn fields<'a>(uris: &'a [String], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let uris = uris.iter().map(|uri| ("uri", uri.as_str()));
    uris.chain(more.iter().copied()).collect()
}

fn uris(server: &Server, keys: &[String]) -> Vec<String> {
    keys.iter().map(|key| uri(server, key)).collect()
}

/// The field that says what a page showed of the cost.
fn shown_cost(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"shown\" value=\"").expect("the field");
    rest.split('"').next().expect("a value").to_owned()
}

fn orders(server: &Server, session: &Session) -> Vec<Value> {
    let token = format!("Session {}", session.csrf);
    let headers = [("cookie", session.cookie.as_str()), ("authorization", token.as_str())];
    let path = "/user/v1/order?size=100";
    let found: Value = server.get_with(path, &headers).json().expect("JSON");
    found["orders"].as_array().expect("a list").clone()
}

fn location(answer: &Response) -> String {
    assert_eq!(answer.status(), 303);
    answer.headers()[LOCATION].to_str().expect("ASCII").to_owned()
}

/// The names of the files in an archive.
fn members(zip: &[u8]) -> Vec<String> {
    let script = "import sys,io,json,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        assert z.testzip() is None\n\
        print(json.dumps(z.namelist()))";
    serde_json::from_slice(&oracle::python(script, &[], zip)).expect("JSON")
}

/// Brings the element to the middle of the window, where the bar does not cover it.
fn center(browser: &Browser, selector: &str) {
    browser.eval(&format!(
        "document.querySelector('{selector}').scrollIntoView({{ block: 'center' }}) ?? null"
    ));
}

/// Clicks the element with Shift held down.
fn shift_click(browser: &Browser, selector: &str) {
    center(browser, selector);
    let at = browser.eval(&format!(
        "(r => [Math.round(r.x + r.width / 2), Math.round(r.y + r.height / 2)])\
         (document.querySelector('{selector}').getBoundingClientRect())"
    ));
    let wait = || json!({ "type": "pause" });
    let keys = json!({ "type": "key", "id": "keyboard", "actions": [
        { "type": "keyDown", "value": SHIFT }, wait(), wait(), wait(),
        { "type": "keyUp", "value": SHIFT },
    ] });
    let mouse = json!({
        "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" },
        "actions": [
            wait(),
            { "type": "pointerMove", "origin": "viewport", "x": at[0], "y": at[1] },
            { "type": "pointerDown", "button": 0 }, { "type": "pointerUp", "button": 0 }, wait(),
        ],
    });
    browser.post("/actions", &json!({ "actions": [keys, mouse] }));
}

/// Presses a key with Shift held down.
fn shift_press(browser: &Browser, key: &str) {
    let down = |key: &str| json!({ "type": "keyDown", "value": key });
    let up = |key: &str| json!({ "type": "keyUp", "value": key });
    let actions = json!([down(SHIFT), down(key), up(key), up(SHIFT)]);
    let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
    browser.post("/actions", &json!({ "actions": [source] }));
}

fn focus(browser: &Browser, selector: &str) {
    browser.eval(&format!("document.querySelector('{selector}').focus() ?? null"));
}

/// The positions of the ticked boxes, from 1.
fn ticked(browser: &Browser) -> Vec<usize> {
    let all = browser.eval(TICKED);
    let all = all.as_array().expect("a list").iter().enumerate();
    all.filter(|(_, one)| **one == true).map(|(index, _)| index + 1).collect()
}
