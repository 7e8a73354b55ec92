//! The crop studio of the customer web site: it shows exactly the pixels that the media interface delivers, with and
//! without scripts.

mod calculation;
mod download;
mod forms;
mod frame;

use serde_json::{Value, json};

use crate::common::{Server, browser::Browser, pictures::Picture};

/// Key codes of WebDriver.
const SHIFT: &str = "\u{E008}";
const ALT: &str = "\u{E00A}";
const TAB: &str = "\u{E004}";
const LEFT: &str = "\u{E012}";
const UP: &str = "\u{E013}";
const RIGHT: &str = "\u{E014}";
const DOWN: &str = "\u{E015}";

/// Width, height, x and y on the Hires.
type Rect = [i64; 4];

/// A picture with edges everywhere, wide enough to have a smaller Preview.
fn map(width: usize, height: usize) -> Picture {
    Picture::new(width, height, |x, y| {
        let shade = |at: usize, of: usize| u8::try_from(at * 255 / of).unwrap();
        let tile = if (x / 40 + y / 40) % 2 == 0 { 40 } else { 200 };
        [shade(x, width), shade(y, height), tile]
    })
}

fn document(server: &Server, key: &str, [width, height, x, y]: Rect) -> Value {
    let path = format!("/media/{key}-crop_w{width}_h{height}_x{x}_y{y}.json");
    serde_json::from_slice(&server.bytes(&path)).expect("JSON")
}

fn rendition<'a>(document: &'a Value, usage: &str) -> &'a Value {
    let all = document["renditions"].as_object().expect("renditions").values();
    let is_wanted = |one: &&Value| one["usage"] == usage && one["variant"] == "Normal";
    all.into_iter().find(is_wanted).expect("the rendition")
}

/// The rectangle in the input fields.
fn fields(browser: &Browser) -> Rect {
    let value = |name: &str| {
        let text = browser.text(&format!("document.getElementById('{name}').value"));
        text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}"))
    };
    ["width", "height", "x", "y"].map(value)
}

fn shown(browser: &Browser, name: &str) -> String {
    browser.text(&format!("document.querySelector('[data-show=\"{name}\"]').textContent"))
}

/// Waits until the page, its address and its pictures show `rect`, and compares them with the metadata of that crop.
#[track_caller]
fn agrees(browser: &Browser, server: &Server, key: &str, rect: Rect) {
    assert_eq!(fields(browser), rect);
    let document = document(server, key, rect);
    let preview = rendition(&document, "Preview");
    let (width, height) = (&preview["width"], &preview["height"]);
    browser.wait(
        &format!("the picture of {rect:?}"),
        &format!(
            "(image => image.src === {} && image.complete && image.naturalWidth === {width} \
             && image.naturalHeight === {height} && image.getAttribute('width') === '{width}' \
             && image.getAttribute('height') === '{height}')(document.getElementById('live'))",
            preview["href"]
        ),
    );
    for (name, usage) in [("hires", "Hires"), ("preview", "Preview"), ("thumbnail", "Thumbnail")] {
        let reported = rendition(&document, usage);
        assert_eq!(shown(browser, &format!("{name}-url")), reported["href"], "{rect:?}");
        assert_eq!(shown(browser, &format!("{name}-width")), reported["width"].to_string());
        assert_eq!(shown(browser, &format!("{name}-height")), reported["height"].to_string());
    }
    let [width, height, x, y] = rect;
    let query = format!("x={x}&y={y}&width={width}&height={height}");
    browser.wait(
        &format!("the address of {query}"),
        &format!("new URLSearchParams(location.search).toString().startsWith('{query}')"),
    );
}

/// The window pixel of a point on the photograph, given in thousandths of its sides.
fn place(browser: &Browser, across: u32, down: u32) -> (i64, i64) {
    browser.eval("document.getElementById('canvas').scrollIntoView({ block: 'center' })");
    let found = browser.eval(&format!(
        "(box => [Math.round(box.left + box.width * {across} / 1000), \
         Math.round(box.top + box.height * {down} / 1000)])\
         (document.getElementById('canvas').getBoundingClientRect())"
    ));
    (found[0].as_i64().expect("pixels"), found[1].as_i64().expect("pixels"))
}

/// The middle of what `selector` finds, pixels of the window.
fn middle(browser: &Browser, selector: &str) -> (i64, i64) {
    let found = browser.eval(&format!(
        "(box => [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)])\
         (document.querySelector('{selector}').getBoundingClientRect())"
    ));
    (found[0].as_i64().expect("pixels"), found[1].as_i64().expect("pixels"))
}

/// Presses `key` while `held` is down.
fn press_with(browser: &Browser, held: &str, key: &str) {
    let step = |kind: &str, value: &str| json!({ "type": kind, "value": value });
    let actions =
        [step("keyDown", held), step("keyDown", key), step("keyUp", key), step("keyUp", held)];
    let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
    browser.post("/actions", &json!({ "actions": [source] }));
}

/// Drags a finger or a pen along `points`.
fn drag_by(browser: &Browser, pointer: &str, points: &[(i64, i64)]) {
    let to = |(x, y): &(i64, i64)| json!({ "type": "pointerMove", "duration": 40, "x": x, "y": y, "origin": "viewport" });
    let mut actions = vec![to(&points[0]), json!({ "type": "pointerDown", "button": 0 })];
    actions.extend(points[1..].iter().map(to));
    actions.push(json!({ "type": "pointerUp", "button": 0 }));
    let source = json!({
        "type": "pointer", "id": pointer, "actions": actions,
        "parameters": { "pointerType": pointer },
    });
    browser.post("/actions", &json!({ "actions": [source] }));
}

fn focus(browser: &Browser, selector: &str) {
    browser.eval(&format!("document.querySelector('{selector}').focus()"));
}

/// Replaces the content of a field by typing.
fn type_over(browser: &Browser, selector: &str, text: &str) {
    browser.eval(&format!(
        "(field => {{ field.focus(); field.select() }})(document.querySelector('{selector}'))"
    ));
    browser.press(text);
}

/// The result of an asynchronous function body.
fn run(browser: &Browser, body: &str, argument: &Value) -> Value {
    let script = format!(
        "const done = arguments[arguments.length - 1]; const given = arguments[0];
         (async () => {{ {body} }})().then(done, error => done('failed: ' + error));"
    );
    browser.post("/execute/async", &json!({ "script": script, "args": [argument] }))
}
