//! The crop studio of the customer web site: it shows exactly the pixels that the media interface delivers, with and
//! without scripts.

use std::{collections::BTreeMap, fs};

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
    oracle,
    pictures::{Picture, with_orientation},
};

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

#[test]
fn a_frame_is_drawn_moved_and_resized_and_the_page_follows() {
    let server = Server::with_pictures(&[], &[("map", map(2601, 1735).jpeg())]);
    let browser = Browser::open(DESKTOP);
    let key = "image/map";
    browser.visit(&format!("{}/item/{key}/crop", server.url));
    assert_eq!(fields(&browser), [2601, 1735, 0, 0]);
    // A pointer drag on the untouched picture draws a frame.
    let points = [(200, 300), (400, 500), (600, 700)].map(|(x, y)| place(&browser, x, y));
    browser.drag(&points);
    let [width, height, x, y] = fields(&browser);
    let near = |found: i64, expected: i64| (found - expected).abs() <= 6;
    assert!(near(x, 520) && near(y, 520), "{x} {y}");
    assert!(near(width, 1040) && near(height, 694), "{width} {height}");
    agrees(&browser, &server, key, [width, height, x, y]);
    // A drag inside the frame moves it, up to the edges of the picture.
    let inside = middle(&browser, "#mover");
    browser.drag(&[inside, (inside.0 + 30, inside.1 + 20), (inside.0 + 60, inside.1 + 40)]);
    let after = fields(&browser);
    assert_eq!(after[..2], [width, height]);
    assert!(after[2] > x && after[3] > y, "{after:?}");
    agrees(&browser, &server, key, after);
    let inside = middle(&browser, "#mover");
    browser.drag(&[inside, (20, 20), (2, 2)]);
    agrees(&browser, &server, key, [width, height, 0, 0]);
    // A corner resizes; the opposite corner stays.
    let corner = middle(&browser, ".handle.se");
    browser.drag(&[corner, (corner.0 + 40, corner.1 + 10), (corner.0 + 80, corner.1 + 30)]);
    let after = fields(&browser);
    assert!(after[0] > width && after[1] > height && after[2..] == [0, 0], "{after:?}");
    agrees(&browser, &server, key, after);
    let edge = middle(&browser, ".handle.w");
    browser.drag(&[edge, (edge.0 + 20, edge.1 + 60)]);
    let narrower = fields(&browser);
    assert_eq!((narrower[0] + narrower[2], narrower[1]), (after[0], after[1]), "{narrower:?}");
    assert!(narrower[2] > 0, "{narrower:?}");
    agrees(&browser, &server, key, narrower);
    // A handle that is dragged across the frame stops at one pixel.
    let corner = middle(&browser, ".handle.ne");
    let far = (10, browser.eval("innerHeight - 10").as_i64().unwrap());
    drag_by(&browser, "pen", &[corner, (corner.0 - 100, corner.1 + 50), far]);
    assert_eq!(fields(&browser)[..2], [1, 1]);
    // Escape cancels a drag.
    browser.click("#whole");
    let corner = middle(&browser, ".handle.nw");
    let to = |x: i64, y: i64| json!({ "type": "pointerMove", "duration": 20, "x": x, "y": y, "origin": "viewport" });
    let key_step = |kind: &str| json!({ "type": kind, "value": "\u{E00C}" });
    let pause = json!({ "type": "pause" });
    let moves = [
        to(corner.0, corner.1),
        json!({ "type": "pointerDown", "button": 0 }),
        to(corner.0 + 90, corner.1 + 60),
        pause.clone(),
        pause.clone(),
        to(corner.0 + 120, corner.1 + 90),
        json!({ "type": "pointerUp", "button": 0 }),
    ];
    let keys = [pause.clone(), pause.clone(), pause, key_step("keyDown"), key_step("keyUp")];
    let pointer = json!({ "type": "pointer", "id": "mouse", "actions": moves });
    let keyboard = json!({ "type": "key", "id": "keyboard", "actions": keys });
    browser.post("/actions", &json!({ "actions": [pointer, keyboard] }));
    assert_eq!(fields(&browser), [2601, 1735, 0, 0]);
    browser.check_layout("after dragging");
    // The address restores the same crop.
    let [width, height, x, y] = [900, 500, 101, 203];
    let query = format!("x={x}&y={y}&width={width}&height={height}&watermark=1");
    browser.visit(&format!("{}/item/{key}/crop?{query}", server.url));
    assert_eq!(fields(&browser), [width, height, x, y]);
    assert_eq!(browser.eval("document.getElementById('watermark').checked"), true);
    let marked = browser.text("document.getElementById('live').src");
    assert!(marked.contains("_x40_y80-watermark_NormalPreview.jpg"), "{marked}");
    browser.click("#watermark");
    agrees(&browser, &server, key, [width, height, x, y]);
    browser.wait("the address without it", "!location.href.includes('watermark')");
}

#[test]
fn a_frame_is_nudged_by_keyboard_and_by_fields() {
    let server = Server::with_pictures(&[], &[("map", map(2601, 1735).jpeg())]);
    let browser = Browser::open(DESKTOP);
    let key = "image/map";
    let open = |more: &str| {
        let query = format!("x=500&y=400&width=800&height=600{more}");
        browser.visit(&format!("{}/item/{key}/crop?{query}", server.url));
        focus(&browser, "#mover");
    };
    open("");
    let is = |rect: Rect| assert_eq!(fields(&browser), rect);
    browser.press(RIGHT);
    is([800, 600, 501, 400]);
    browser.press(&format!("{DOWN}{DOWN}{LEFT}{UP}"));
    is([800, 600, 500, 401]);
    press_with(&browser, SHIFT, RIGHT);
    press_with(&browser, SHIFT, UP);
    is([800, 600, 510, 391]);
    press_with(&browser, ALT, LEFT);
    press_with(&browser, ALT, DOWN);
    is([799, 601, 510, 391]);
    agrees(&browser, &server, key, [799, 601, 510, 391]);
    // Tab moves from the frame to its first handle, which resizes with the arrow keys.
    browser.press(TAB);
    assert_eq!(browser.text("document.activeElement.dataset.handle"), "nw");
    browser.press(&format!("{LEFT}{UP}"));
    is([800, 602, 509, 390]);
    press_with(&browser, SHIFT, DOWN);
    is([800, 592, 509, 400]);
    let said = "document.getElementById('summary').textContent";
    browser.wait("the summary", &format!("{said}.startsWith('Crop of 800 × 592 pixels, 509')"));
    // A fixed aspect ratio is kept by every step, in both directions.
    open("&aspect=9:16");
    let first = fields(&browser);
    assert_eq!(first[1], 1422, "{first:?}");
    focus(&browser, ".handle.se");
    browser.press(UP);
    let smaller = fields(&browser);
    assert!(smaller[1] < first[1] && smaller[2..] == first[2..], "{smaller:?}");
    browser.press(&format!("{UP}{UP}{LEFT}{RIGHT}{DOWN}"));
    let last = fields(&browser);
    let exact = |part: i64, of: i64, to: i64| (part * to * 2 + of) / (of * 2);
    assert!(
        last[1] == exact(last[0], 9, 16) || last[0] == exact(last[1], 16, 9),
        "{last:?} is not 9:16"
    );
    agrees(&browser, &server, key, last);
    // Fields control the frame, and report invalid values.
    open("");
    type_over(&browser, "#width", "1000");
    is([1000, 600, 500, 400]);
    type_over(&browser, "#x", "7");
    is([1000, 600, 7, 400]);
    focus(&browser, "#height");
    browser.press(UP);
    press_with(&browser, SHIFT, UP);
    is([1000, 611, 7, 400]);
    agrees(&browser, &server, key, [1000, 611, 7, 400]);
    for wrong in ["99999", "0", "-1", "abc", "1.5", "<b>"] {
        // Set at once as by pasting: typing would pass through valid values.
        browser.eval(&format!(
            "(field => {{ field.value = '{wrong}'; field.dispatchEvent(new Event('input')) }})\
             (document.getElementById('height'))"
        ));
        let invalid = browser.text("document.getElementById('height').ariaInvalid");
        assert_eq!(invalid, "true", "{wrong}");
        let message = browser.text("document.getElementById('outside').textContent");
        assert_eq!(message, "Enter a whole number from 1 to 1735.");
        assert_eq!(shown(&browser, "height"), "611", "{wrong}");
    }
    type_over(&browser, "#height", "612");
    assert_eq!(browser.eval("document.getElementById('outside').hidden"), true);
    agrees(&browser, &server, key, [1000, 612, 7, 400]);
    browser.check_layout("after keys");
}

/// Drags the frame back and forth `times` times; returns when each result preview was requested, in milliseconds since
/// the page was opened.
fn follow_a_drag(browser: &Browser, server: &Server, key: &str, times: i64) -> Vec<f64> {
    let inside = middle(browser, "#mover");
    let points: Vec<_> = (0..30 * times)
        .map(|step| (inside.0 + 3 * (step % 30), inside.1 + step % 30 + step / 30))
        .collect();
    browser.drag(&points);
    agrees(browser, server, key, fields(browser));
    let begun = browser.eval(
        "Object.values(Object.fromEntries(performance.getEntriesByType('resource') \
         .filter(one => one.name.includes('-crop_') && one.name.includes('Preview')).reverse() \
         .map(one => [one.name, one.startTime]))).sort((a, b) => a - b).slice(1)",
    );
    begun.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
}

#[test]
fn the_result_preview_is_requested_seldom_and_never_shows_an_older_crop() {
    let server = Server::with_pictures(&[], &[("map", map(2601, 1735).jpeg())]);
    let browser = Browser::open(DESKTOP);
    let key = "image/map";
    let query = "x=500&y=400&width=800&height=600";
    browser.visit(&format!("{}/item/{key}/crop?{query}", server.url));
    let mut begun = follow_a_drag(&browser, &server, key, 1);
    // A busy machine may finish the drag before the third picture is due.
    for more in 2..6 {
        if begun.len() > 2 {
            break;
        }
        begun = follow_a_drag(&browser, &server, key, more);
    }
    let rect = fields(&browser);
    assert!(begun.len() > 2, "the picture follows the pointer: {begun:?}");
    let is_seldom = begun.windows(2).all(|pair| pair[1] - pair[0] > 130.0);
    assert!(is_seldom, "{begun:?}");
    // Two pictures in flight, the second one arrives first.
    browser.eval(
        "(() => {
            const Real = window.Image;
            window.late = [];
            window.Image = function () {
                const image = new Real();
                const listen = image.addEventListener.bind(image);
                image.addEventListener = (kind, act) =>
                    kind === 'load' ? window.late.push(act) : listen(kind, act);
                return image;
            };
        })()",
    );
    focus(&browser, "#mover");
    for count in [1, 2] {
        press_with(&browser, SHIFT, RIGHT);
        browser.wait("a picture under way", &format!("window.late.length === {count}"));
    }
    browser.eval("window.late[1]()");
    browser.eval("window.late[0]()");
    let [width, height, x, y] = rect;
    agrees(&browser, &server, key, [width, height, x + 20, y]);
}

#[test]
fn presets_are_as_close_as_whole_pixels_allow_and_survive_a_reload() {
    let server = Server::with_pictures(&[], &[("map", map(1733, 1301).jpeg())]);
    let browser = Browser::open(DESKTOP);
    let key = "image/map";
    let page = format!("{}/item/{key}/crop", server.url);
    browser.visit(&format!("{page}?x=300&y=200&width=701&height=503"));
    let mut last = [0; 4];
    for (preset, a, b) in [
        ("1:1", 1, 1),
        ("4:3", 4, 3),
        ("3:2", 3, 2),
        ("16:9", 16, 9),
        ("2:1", 2, 1),
        ("4:5", 4, 5),
        ("2:3", 2, 3),
        ("9:16", 9, 16),
        ("original", 1733, 1301),
        ("custom", 21, 9),
    ] {
        browser.click(&format!("input[value=\"{preset}\"]"));
        if preset == "custom" {
            type_over(&browser, "#ratio", "21:9");
        }
        let [width, height, x, y] = fields(&browser);
        let exact = |part: i64, of: i64, to: i64| (part * to * 2 + of) / (of * 2);
        assert!(
            height == exact(width, a, b) || width == exact(height, b, a),
            "{preset}: {width} x {height}"
        );
        assert!(x >= 0 && y >= 0 && x + width <= 1733 && y + height <= 1301, "{preset}");
        // Every preset starts from the frame that was drawn by hand, so the crop does not shrink from preset to preset.
        assert!((width * height - 701 * 503).abs() < 2000, "{preset}: {width} x {height}");
        last = [width, height, x, y];
        agrees(&browser, &server, key, last);
    }
    browser.visit(&browser.address());
    assert_eq!(fields(&browser), last);
    let checked = "document.querySelector('[name=aspect]:checked').value";
    assert_eq!(browser.text(checked), "custom");
    // Turning the frame turns the aspect ratio, which is kept during a drag.
    browser.click("#turn");
    assert_eq!(browser.text("document.getElementById('ratio').value"), "3:7");
    browser.click("input[value=\"16:9\"]");
    browser.click("#turn");
    assert_eq!(browser.text(checked), "9:16");
    let corner = middle(&browser, ".handle.nw");
    browser.drag(&[corner, (corner.0 + 20, corner.1 + 30), (corner.0 + 25, corner.1 + 60)]);
    let [width, height, ..] = fields(&browser);
    assert!((width * 16 - height * 9).abs() <= 8, "{width} x {height}");
    // Reset to the whole picture.
    browser.click("#whole");
    assert_eq!(fields(&browser), [1733, 1301, 0, 0]);
    browser.wait("the bare address", &format!("location.href === '{page}'"));
    // The intended output size.
    browser.eval(
        "(field => { field.value = 'print-30'; field.dispatchEvent(new Event('change')) })\
         (document.getElementById('output'))",
    );
    let verdict = "document.getElementById('verdict').textContent";
    assert_eq!(
        browser.text(verdict),
        "Too small: 1733 pixels wide, 3543 needed. It would be enlarged."
    );
    browser.wait("the address", "location.search === '?output=print-30'");
    browser.visit(&browser.address());
    assert_eq!(
        browser.text(&format!("{verdict}.trim()")),
        "Too small: 1733 pixels wide, 3543 needed. It would be enlarged."
    );
}

/// The next number of a deterministic pseudo-random sequence.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn random_rect(state: &mut u64, width: i64, height: i64) -> Rect {
    let mut below = |bound: i64| {
        let bound = u64::try_from(bound).expect("positive");
        i64::try_from(next(state) % bound).expect("small")
    };
    let (x, y) = (below(width), below(height));
    [1 + below(width - x), 1 + below(height - y), x, y]
}

#[test]
fn crops_computed_by_the_script_match_the_metadata_to_the_pixel() {
    let plain = |width, height| Picture::flat(width, height, [90, 120, 60]).jpeg();
    let pictures = [
        ("large", plain(4001, 2667)),
        ("portrait", plain(1201, 1999)),
        ("odd", plain(1023, 769)),
        ("small", plain(640, 431)),
        ("tiny", plain(7, 5)),
        ("dot", plain(1, 1)),
        ("panorama", plain(3001, 17)),
        ("turned", with_orientation(&plain(1601, 1203), 6)),
        ("inks", oracle::cmyk(&plain(1500, 1001), "plain")),
    ];
    let server = Server::with_pictures(&[], &pictures);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/large/crop", server.url));
    let mut state = 0x9E37_79B9_7F4A_7C15;
    let mut wanted = Vec::new();
    let mut expected: Vec<BTreeMap<String, Value>> = Vec::new();
    for (id, _) in &pictures {
        let key = format!("image/{id}");
        let plain: Value =
            serde_json::from_slice(&server.bytes(&format!("/media/{key}.json"))).unwrap();
        let all = plain["renditions"].as_object().expect("renditions");
        let hires = rendition(&plain, "Hires");
        let side = |name: &str| hires[name].as_i64().expect("pixels");
        let (width, height) = (side("width"), side("height"));
        if *id == "turned" {
            assert_eq!((width, height), (1203, 1601), "the Hires is upright");
        }
        let mut rects = vec![
            [width, height, 0, 0],
            [1, 1, width - 1, height - 1],
            [1, 1, 0, 0],
            [1, height, width / 2, 0],
            [width, 1, 0, height / 2],
        ];
        rects.extend((0..45).map(|_| random_rect(&mut state, width, height)));
        for rect in rects {
            let document = document(&server, &key, rect);
            let reported = document["renditions"].as_object().expect("renditions");
            expected.push(
                reported
                    .iter()
                    .map(|(place, one)| {
                        let reported = json!([one["href"], one["width"], one["height"]]);
                        (place.clone(), reported)
                    })
                    .collect(),
            );
            wanted.push(
                json!({ "uri": plain["uri"], "hires": hires, "renditions": all, "rect": rect }),
            );
        }
    }
    let found = run(
        &browser,
        "const crop = await import('/assets/js/crop.js');
         return given.map(({ uri, hires, renditions, rect: [width, height, x, y] }) =>
             Object.fromEntries(Object.entries(renditions).map(([place, one]) => {
                 const cut = crop.scaleCrop({ x, y, width, height }, hires, one);
                 const url = crop.renditionUrl(uri, one.variant + one.usage, cut, false);
                 return [place, [url, cut.width, cut.height]];
             })));",
        &json!(wanted),
    );
    let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
    assert_eq!(found.len(), 9 * 50);
    for ((found, expected), wanted) in found.iter().zip(&expected).zip(&wanted) {
        assert_eq!(expected.len(), 5, "{wanted}");
        assert_eq!(found, &json!(expected), "{} {}", wanted["uri"], wanted["rect"]);
    }
}

#[test]
fn every_operation_keeps_the_rectangle_inside_the_picture() {
    let server = Server::with_pictures(&[], &[("map", map(60, 40).jpeg())]);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/map/crop", server.url));
    let wrong = run(
        &browser,
        "const crop = await import('/assets/js/crop.js');
         let state = 1;
         const below = (bound) => (state = (state * 48271) % 2147483647) % bound;
         const ratios = [null, [1, 1], [16, 9], [9, 16], [10000, 1], [1, 10000], [3, 7]];
         const handles = ['n', 'ne', 'e', 'se', 's', 'sw', 'w', 'nw'];
         const wrong = [];
         for (let round = 0; round < 20000; round += 1) {
             const sides = [1, 7, 900, 6000];
             const image = { width: 1 + below(sides[below(4)]), height: 1 + below(sides[below(4)]) };
             const [x, y] = [below(image.width), below(image.height)];
             const rect = { x, y, width: 1 + below(image.width - x), height: 1 + below(image.height - y) };
             const ratio = ratios[below(7)];
             const [dx, dy] = [below(4000) - 2000, below(4000) - 2000];
             const handle = handles[below(8)];
             const all = {
                 moved: crop.moved(rect, dx, dy, image),
                 turned: crop.turned(rect, image),
                 shaped: crop.shaped(rect, ratio, image),
                 resized: crop.resized(rect, handle, dx, dy, image, ratio),
                 led: crop.resized(rect, handle, dx, dy, image, ratio, dx % 2 ? 'x' : 'y'),
                 wide: crop.sized(rect, { width: 1 + below(9000) }, ratio, image),
                 high: crop.sized(rect, { height: 1 + below(9000) }, ratio, image),
                 drawn: crop.drawn({ x, y }, { x: dx, y: dy }, image, ratio),
             };
             for (const [name, found] of Object.entries(all)) {
                 const keeps = !ratio || ['moved', 'turned'].includes(name) || crop.hasRatio(found, ratio);
                 if (!crop.isInside(found, image) || !keeps) {
                     wrong.push([name, image, rect, ratio, handle, dx, dy, found]);
                 }
             }
             const same = crop.shaped(all.shaped, ratio, image);
             if (!crop.isSame(same, all.shaped)) wrong.push(['again', image, rect, ratio, same]);
         }
         return wrong.slice(0, 5);",
        &json!(null),
    );
    assert_eq!(wrong, json!([]));
}

#[test]
fn the_urls_deliver_the_pixels_that_the_frame_shows() {
    let (width, height) = (2048, 1366);
    let original = Picture::waves(width, height);
    let server = Server::with_pictures(&[], &[("waves", original.jpeg())]);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/waves/crop", server.url));
    let points = [(310, 220), (500, 500), (640, 710)].map(|(x, y)| place(&browser, x, y));
    browser.drag(&points);
    let rect = fields(&browser);
    agrees(&browser, &server, "image/waves", rect);
    let preview = Picture::decode(&server.bytes("/media/image/waves_NormalPreview.jpg"));
    let reported = document(&server, "image/waves", rect);
    let href = shown(&browser, "preview-url");
    let cut = Picture::decode(&server.client.get(&href).send().unwrap().bytes().unwrap());
    let size =
        ["width", "height"].map(|side| rendition(&reported, "Preview")[side].as_u64().unwrap());
    assert_eq!([cut.width, cut.height].map(|side| side as u64), size);
    let number = |name: char| -> usize {
        let rest = href.split_once(&format!("_{name}")).unwrap().1;
        rest.split(['_', '-']).next().unwrap().parse().unwrap()
    };
    let psnr = cut.psnr(&preview.crop(number('x'), number('y'), cut.width, cut.height));
    assert!(psnr >= 36.0, "{psnr:.1} dB");
    // Compared with the original, which is twice as large: the same region and not a shifted one.
    let [wide, high, x, y] = rect.map(|side| usize::try_from(side).unwrap());
    let part = original.crop(x, y, wide / 2 * 2, high / 2 * 2).reduced(2);
    let (wide, high) = (part.width.min(cut.width), part.height.min(cut.height));
    let psnr = cut.crop(0, 0, wide, high).psnr(&part.crop(0, 0, wide, high));
    assert!(psnr >= 28.0, "{psnr:.1} dB");
    // The Hires by its URL and a key.
    let hires = shown(&browser, "hires-url");
    assert_eq!(server.client.get(&hires).send().unwrap().status(), 401);
    let key = crate::common::DEMO_KEY;
    let jpeg = server.client.get(format!("{hires}?ak={key}")).send().unwrap().bytes().unwrap();
    let cut = Picture::decode(&jpeg);
    let [wide, high, x, y] = rect.map(|side| usize::try_from(side).unwrap());
    assert_eq!(cut.size(), (wide, high));
    let psnr = cut.psnr(&original.crop(x, y, wide, high));
    assert!(psnr >= 32.0, "{psnr:.1} dB");
}

#[test]
fn without_scripts_the_form_crops_and_the_metadata_has_the_urls() {
    let server = Server::with_pictures(&[], &[("map", map(2601, 1735).jpeg())]);
    let page = "/item/image/map/crop";
    let text = |query: &str| {
        let response = server.get(&format!("{page}{query}"));
        assert_eq!(response.status(), 200, "{query}");
        response.text().expect("text").replace("&#x2f;", "/")
    };
    let check = |query: &str, rect: Rect| {
        let text = text(query);
        let document = document(&server, "image/map", rect);
        for usage in ["Hires", "Preview", "Thumbnail"] {
            let href = rendition(&document, usage)["href"].as_str().expect("an address");
            assert!(text.contains(&format!(">{href}<")), "{query}: no {href}");
        }
        let preview = rendition(&document, "Preview");
        let image = format!(
            "id=\"live\" src=\"{}\" width=\"{}\" height=\"{}\"",
            preview["href"].as_str().unwrap(),
            preview["width"],
            preview["height"]
        );
        assert!(text.contains(&image), "{query}: no {image}");
        for (name, value) in ["width", "height", "x", "y"].iter().zip(rect) {
            assert!(
                text.contains(&format!("name=\"{name}\" value=\"{value}\"")),
                "{query} {name}"
            );
        }
    };
    check("", [2601, 1735, 0, 0]);
    check("?x=10&y=20&width=300&height=200", [300, 200, 10, 20]);
    check("?x=+10&y=&width=0300&height=", [300, 1735, 10, 0]);
    check("?x=2600&y=1734", [1, 1, 2600, 1734]);
    check("?aspect=1:1", [1735, 1735, 434, 0]);
    check("?aspect=16:9&x=100&y=100&width=1600&height=10", [1600, 900, 100, 0]);
    check("?aspect=custom&ratio=5:7&width=50&height=10&y=1000", [50, 70, 0, 971]);
    let marked = text("?x=10&y=20&width=300&height=200&watermark=1");
    assert!(marked.contains("-watermark_NormalPreview.jpg\" width=\"118\""), "{marked}");
    // The thumbnail of a small picture is not offered in addition to an equal Preview.
    let markup = text("?width=1&height=1");
    assert!(markup.contains("data-when=\"srcset\" hidden"), "{markup}");
}

#[test]
fn an_invalid_crop_shows_the_form_again_with_the_error_of_the_api() {
    let server = Server::with_pictures(&[], &[("map", map(260, 174).jpeg())]);
    let page = "/item/image/map/crop";
    let check = |query: &str, sentence: &str, fields: &[&str]| {
        let response = server.get(&format!("{page}?{query}"));
        assert_eq!(response.status(), 400, "{query}");
        let text = response.text().expect("text");
        assert!(text.contains(sentence), "{query}: {text}");
        assert!(text.contains("role=\"alert\" id=\"mistakes\""), "{query}");
        for name in ["width", "height", "x", "y", "ratio"] {
            let field = text.split_once(&format!("<input id=\"{name}\"")).expect("the field").1;
            let field = field.split_once('>').expect("its end").0;
            let is_wrong = field.contains("aria-invalid=\"true\"");
            assert_eq!(is_wrong, fields.contains(&name), "{query} {name}: {field}");
        }
        assert!(!text.contains("<b>"), "{query}");
    };
    let all = &["width", "height", "x", "y"];
    check("x=1&width=260", "extends beyond the photo, which is 260x174", all);
    check("y=174", "is outside the photo, which is 260x174", all);
    check("width=0", "cannot be zero", &["width"]);
    check("height=0&width=2", "cannot be zero", &["height"]);
    check("x=abc", "must be a whole number of pixels", &["x"]);
    check("y=-1", "must be a whole number of pixels", &["y"]);
    check("width=4294967296", "it must be at most", &["width"]);
    check("height=1.5", "must be a whole number of pixels", &["height"]);
    check("x=%3Cb%3E%22", "Enter the crop in whole pixels", &["x"]);
    check("y=1_x2", "Enter the crop in whole pixels", &["y"]);
    check("x=%C3%A5", "Enter the crop in whole pixels", &["x"]);
    check("width=10.jpg", "must be a whole number of pixels", &["width"]);
    check("aspect=custom&ratio=%3Cb%3E", "Enter two numbers up to 10,000", &["ratio"]);
    check("aspect=custom", "Enter two numbers up to 10,000", &["ratio"]);
    check("aspect=%3Cb%3E", "This aspect ratio does not exist", &[]);
    let text = server.get(&format!("{page}?x=%22%3E%3Cb%3E")).text().expect("text");
    assert!(text.contains("name=\"x\" value=\"&quot;&gt;&lt;b&gt;\""), "{text}");
    // Values that no form of ours sends, and items that are not photographs.
    for query in ["x=1&x=2", "x=%FF", "watermark=1&watermark=1"] {
        assert_eq!(server.get(&format!("{page}?{query}")).status(), 400, "{query}");
    }
    assert_eq!(server.get(&format!("{page}?output=%3Cb%3E&watermark=%3Cb%3E")).status(), 200);
    for path in ["image/none", "nonsense/map", "text/map", "image/%3Cb%3E", "graphic/map"] {
        let response = server.get(&format!("/item/{path}/crop"));
        assert_eq!(response.status(), 404, "{path}");
        assert!(!response.text().expect("text").contains("<b>"), "{path}");
    }
    let sv = server.get_with(&format!("{page}?aspect=x"), &[("accept-language", "sv")]);
    assert!(sv.text().expect("text").contains("Bildformatet finns inte."));
    // With scripts the next change corrects the crop.
    let visible =
        "[...document.querySelectorAll('[data-result]')].map(one => one.offsetHeight > 0)";
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}{page}?x=1&width=260", server.url));
    assert_eq!(browser.text("document.getElementById('width').value"), "260");
    assert_eq!(browser.eval(visible), json!([false, false]));
    type_over(&browser, "#width", "259");
    agrees(&browser, &server, "image/map", [259, 174, 0, 0]);
    assert_eq!(browser.eval("document.getElementById('mistakes')"), Value::Null);
    assert_eq!(browser.eval(visible), json!([true, true]));
}

#[test]
fn hostile_captions_stay_text_in_the_studio_and_in_its_markup() {
    let headline = "\"><img src=x onerror=alert(1)> & <script>document.title='gone'</script>";
    let server = Server::empty();
    let folder = server.dir.path().join("image/hostile");
    fs::create_dir_all(&folder).expect("folder");
    let document = json!({ "headline": headline, "language": "sv\" onload=\"x" });
    fs::write(folder.join("item.json"), document.to_string()).expect("written");
    fs::write(folder.join("NormalHires.jpg"), Picture::waves(600, 400).jpeg()).expect("written");
    let output = server.command(&["ingest", &folder.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = "/item/image/hostile/crop";
    server.until("the item", || (server.get(page).status() == 200).then_some(()));
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}{page}", server.url));
    browser.check_layout("hostile");
    assert!(browser.text("document.querySelector('h1').textContent").contains(headline));
    assert!(!browser.text("document.title").starts_with("gone"));
    // The copied markup is one picture with the headline as alternative text.
    let alt = run(
        &browser,
        "const text = document.getElementById('code-html').textContent;
         const found = new DOMParser().parseFromString(text, 'text/html');
         return [found.images.length, found.scripts.length, found.images[0].alt];",
        &json!(null),
    );
    assert_eq!(alt, json!([1, 0, headline]));
}

#[test]
fn copied_text_equals_the_displayed_text() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let grant = json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    browser
        .post("/goog/cdp/execute", &json!({ "cmd": "Browser.grantPermissions", "params": grant }));
    browser
        .visit(&format!("{}/item/{LARGE}/crop?x=1000&y=700&width=2000&height=1200", server.url));
    focus(&browser, "#mover");
    browser.press(RIGHT);
    let rect = [2000, 1200, 1001, 700];
    agrees(&browser, &server, LARGE, rect);
    let reported = document(&server, LARGE, rect);
    browser.eval("document.querySelectorAll('details').forEach(one => { one.open = true })");
    let copied = |target: &str| {
        browser.click(&format!("[data-copy=\"{target}\"]"));
        let label = format!("document.querySelector('[data-copy=\"{target}\"]').innerText");
        browser.wait("the word", &format!("{label}.startsWith('Copied')"));
        let text = run(&browser, "return navigator.clipboard.readText();", &json!(null));
        text.as_str().expect("text").to_owned()
    };
    assert_eq!(copied("url-hires"), rendition(&reported, "Hires")["href"]);
    assert_eq!(copied("url-preview"), rendition(&reported, "Preview")["href"]);
    assert_eq!(copied("url-thumbnail"), rendition(&reported, "Thumbnail")["href"]);
    let json_url = copied("url-json");
    let same: Value = server.client.get(&json_url).send().unwrap().json().unwrap();
    assert_eq!(same, reported);
    // The markup works on any page: the candidates have the stated widths.
    let html = copied("code-html");
    let found = run(
        &browser,
        "const image = new DOMParser().parseFromString(given, 'text/html').images[0];
         const candidates = image.srcset.split(',').map((one) => one.trim().split(/\\s+/));
         const widths = await Promise.all(candidates.map(async ([url, width]) => {
             const bitmap = await createImageBitmap(await (await fetch(url)).blob());
             return `${bitmap.width}w` === width;
         }));
         return [image.src, image.width, image.height, image.sizes, widths];",
        &json!(html),
    );
    let preview = rendition(&reported, "Preview");
    let width = preview["width"].as_u64().unwrap();
    let sizes = format!("(max-width: {width}px) 100vw, {width}px");
    let expected = json!([preview["href"], width, preview["height"], sizes, [true, true]]);
    assert_eq!(found, expected, "{html}");
    assert!(html.contains(rendition(&reported, "Hires")["href"].as_str().unwrap()), "{html}");
    // The programs run.
    let script = copied("code-js").replace("console.log(preview.href", "return [preview.href");
    let script = script.replace("preview.height);", "preview.height];");
    let found = run(&browser, &script, &json!(null));
    assert_eq!(found, json!([preview["href"], preview["width"], preview["height"]]));
    let folder = tempfile::tempdir().unwrap();
    for (target, program) in [("code-curl", "sh"), ("code-python", "python3")] {
        let mut command = std::process::Command::new(program);
        command.arg("-c").arg(copied(target)).current_dir(folder.path());
        command.env("WIREPHOTO_KEY", crate::common::DEMO_KEY).env("NO_PROXY", "127.0.0.1");
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = folder.path().join("crop.jpg");
        assert_eq!(Picture::decode(&fs::read(&file).unwrap()).size(), (2000, 1200), "{target}");
        fs::remove_file(file).unwrap();
    }
    browser.check_layout("after copying");
    // Without the clipboard API the fallback is used.
    browser.eval("Object.defineProperty(navigator, 'clipboard', { value: undefined }) && null");
    browser.click("[data-copy=\"url-preview\"]");
    browser.wait("the word", "document.getElementById('summary').textContent === 'Copied'");
    focus(&browser, "#ratio");
    browser.click("input[value=custom]");
    browser.eval("document.getElementById('ratio').maxLength = 500");
    press_with(&browser, "\u{E009}", "v");
    assert_eq!(browser.text("document.getElementById('ratio').value"), preview["href"]);
}

#[test]
fn a_crop_is_downloaded_after_the_login() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let downloads = browser.save_downloads();
    browser.visit(&format!("{}/item/{LARGE}/crop", server.url));
    type_over(&browser, "#width", "1500");
    type_over(&browser, "#height", "900");
    type_over(&browser, "#x", "1201");
    type_over(&browser, "#y", "803");
    agrees(&browser, &server, LARGE, [1500, 900, 1201, 803]);
    browser.follow("#login");
    assert!(browser.address().contains("/o/login?return_to="), "{}", browser.address());
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert_eq!(fields(&browser), [1500, 900, 1201, 803]);
    agrees(&browser, &server, LARGE, [1500, 900, 1201, 803]);
    focus(&browser, "#mover");
    browser.press(LEFT);
    browser.click("#watermark");
    browser.click("#download");
    let jpeg = saved(&server, &downloads);
    let found = Picture::decode(&jpeg);
    assert_eq!(found.size(), (1500, 900));
    let key = crate::common::DEMO_KEY;
    let path = format!("/media/{LARGE}-crop_w1500_h900_x1200_y803-watermark.jpg?ak={key}");
    let expected = Picture::decode(&server.bytes(&path));
    assert!(found == expected, "the file is what the address delivers");
    browser.check_layout("after the download");
    // The session expires; the form is stored during the login and gives the same crop.
    let clear = json!({ "cmd": "Network.clearBrowserCookies", "params": {} });
    browser.post("/goog/cdp/execute", &clear);
    browser.follow("#download");
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    let shown = browser.text("document.querySelector('main').innerText");
    assert!(shown.contains("1500") && shown.contains("803"), "{shown}");
    browser.screenshot("studio-kept.png");
    browser.click("main form button[type=submit]");
    assert!(Picture::decode(&saved(&server, &downloads)) == expected);
}

/// Returns and removes the file that the browser saved.
fn saved(server: &Server, folder: &std::path::Path) -> Vec<u8> {
    server.until("the download", || {
        let files = fs::read_dir(folder).ok()?.flatten().map(|file| file.path());
        let mut done = files.filter(|path| path.extension().is_some_and(|end| end == "jpg"));
        let path = done.next()?;
        // The browser reserves the name with an empty file and renames the finished one over it.
        let bytes = fs::read(&path).ok().filter(|bytes| !bytes.is_empty())?;
        fs::remove_file(path).ok()?;
        Some(bytes)
    })
}

/// The session cookie of a demo user, with the form token of its pages.
fn session(server: &Server, user: &str, page: &str) -> (String, String) {
    let token = |text: &str| {
        let token = text.split_once("name=\"csrf\" value=\"").expect("a token").1;
        token.split('"').next().expect("a token").to_owned()
    };
    let response = server.get("/o/login");
    let form = response.headers()[SET_COOKIE].to_str().expect("ASCII").to_owned();
    let form = form.split(';').next().expect("a cookie").to_owned();
    let csrf = token(&response.text().expect("text"));
    let password = format!("{user}-password");
    let fields = [("username", user), ("password", password.as_str()), ("csrf", csrf.as_str())];
    let request = server.client.post(format!("{}/o/login", server.url)).header(COOKIE, form);
    let response = request.form(&fields).send().expect("answer");
    let cookies = response.headers().get_all(SET_COOKIE).iter();
    let cookies = cookies.map(|line| line.to_str().expect("ASCII").to_owned());
    let session = cookies.into_iter().find(|line| line.starts_with("wirephoto_session="));
    let session = session.expect("a session").split(';').next().expect("a cookie").to_owned();
    let text = server.get_with(page, &[("cookie", &session)]).text().expect("text");
    (session, token(&text))
}

#[test]
fn a_download_needs_a_session_its_token_and_an_agreement() {
    let server = Server::demo();
    let page = format!("/item/{LARGE}/crop");
    let (cookie, csrf) = session(&server, "demo-buyer", &page);
    let post = |cookie: Option<&str>, fields: &[(&str, &str)]| {
        let mut request = server.client.post(format!("{}{page}/download", server.url));
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie);
        }
        request.header("origin", &server.url).form(fields).send().expect("answer")
    };
    let crop = [("x", "100"), ("y", "200"), ("width", "300"), ("height", "150")];
    let with = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        crop.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let send = |cookie: Option<&str>, more: &[(&'static str, &str)]| {
        let fields = with(more);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        post(cookie, &fields)
    };
    // Anonymous visitors and users with an expired session log in first; the crop is kept.
    let response = send(None, &[("csrf", &csrf)]);
    assert!(response.status() == 200 || response.status() == 303, "{}", response.status());
    assert!(response.headers().get("content-disposition").is_none());
    let text = response.text().expect("text");
    assert!(text.contains("kept_fields") && text.contains("width=300"), "{text}");
    // Without the token of a page of ours nothing is bought; the page asks for confirmation first.
    for wrong in [&[][..], &[("csrf", "wrong")]] {
        let response = send(Some(&cookie), wrong);
        assert!(response.headers().get("content-disposition").is_none(), "{wrong:?}");
        let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(kind.starts_with("text/html"), "{wrong:?}: {kind}");
    }
    // Invalid numbers show the studio again.
    let typed = |name: &str, value: &str| {
        let fields: Vec<_> = crop
            .iter()
            .map(|(own, text)| (*own, if *own == name { value } else { *text }))
            .chain([("csrf", csrf.as_str())])
            .collect();
        post(Some(&cookie), &fields)
    };
    for (name, value) in [("x", "99999"), ("width", "0"), ("y", "<b>"), ("height", "1e3")] {
        let response = typed(name, value);
        assert_eq!(response.status(), 400, "{name}={value}");
        let text = response.text().expect("text");
        assert!(text.contains("role=\"alert\"") && !text.contains("<b>"), "{name}={value}");
        let text = text.replace("&#x2f;", "/");
        assert!(text.contains(&format!("name=\"return_to\" value=\"{page}\"")), "{text}");
    }
    assert_eq!(send(Some(&cookie), &[("csrf", &csrf), ("agr", "x")]).status(), 400);
    let refused = send(Some(&cookie), &[("csrf", &csrf), ("agr", "1")]);
    assert_eq!(refused.status(), 403);
    let text = refused.text().expect("text");
    assert!(text.contains("id=\"refused\"") && text.contains("value=\"300\""), "{text}");
    // Nothing has been bought so far: the prepaid agreement still has all of its downloads.
    assert!(is_untouched(&server, &cookie));
    let response = send(Some(&cookie), &[("csrf", &csrf), ("agr", "1002")]);
    assert_eq!(response.status(), 200);
    let name = response.headers()["content-disposition"].to_str().expect("ASCII").to_owned();
    assert!(name.contains("attachment") && name.contains("demo-solnedgang-over-bergen"), "{name}");
    assert_eq!(Picture::decode(&response.bytes().expect("body")).size(), (300, 150));
    assert!(!is_untouched(&server, &cookie));
    let get = server.get(&format!("{page}/download"));
    assert_eq!(get.status(), 405);
    assert!(get.headers().get(LOCATION).is_none());
}

/// Whether the buyer's prepaid agreement still has all of its downloads.
fn is_untouched(server: &Server, cookie: &str) -> bool {
    let item = server.get_with(&format!("/item/{LARGE}"), &[("cookie", cookie)]);
    item.text().expect("text").contains("10 of 10")
}

#[test]
fn a_finger_resizes_on_a_small_phone_and_the_page_still_scrolls() {
    let server = Server::demo();
    let browser = Browser::open((360, 740));
    browser.visit(&format!("{}/item/{LARGE}/crop", server.url));
    browser.eval("document.getElementById('canvas').scrollIntoView({ block: 'center' })");
    let corner = middle(&browser, ".handle.nw");
    drag_by(
        &browser,
        "touch",
        &[corner, (corner.0 + 40, corner.1 + 30), (corner.0 + 90, corner.1 + 60)],
    );
    let [width, height, x, y] = fields(&browser);
    assert!(x > 900 && y > 600, "{x} {y}");
    assert_eq!((width + x, height + y), (4272, 2848));
    agrees(&browser, &server, LARGE, [width, height, x, y]);
    let inside = middle(&browser, "#mover");
    drag_by(
        &browser,
        "touch",
        &[inside, (inside.0 - 10, inside.1 - 10), (inside.0 - 30, inside.1 - 20)],
    );
    let after = fields(&browser);
    assert_eq!(after[..2], [width, height]);
    assert!(after[2] < x && after[3] < y, "{after:?}");
    agrees(&browser, &server, LARGE, after);
    // A touch beside the frame does not change the crop.
    let outside = place(&browser, 60, 60);
    drag_by(
        &browser,
        "touch",
        &[outside, (outside.0 + 40, outside.1 + 4), (outside.0 + 60, outside.1 + 9)],
    );
    assert_eq!(fields(&browser), after);
    // Touch targets are large enough.
    let size = browser.eval("(box => [box.width, box.height])(document.querySelector('.handle.nw').getBoundingClientRect())");
    assert!(size[0].as_f64().unwrap() >= 24.0 && size[1].as_f64().unwrap() >= 24.0, "{size}");
    browser.check_layout("phone");
    browser.screenshot("studio-phone-touched.png");
}

#[test]
fn the_studio_is_accessible_and_translated() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let query = "x=1420&y=560&width=2120&height=1413&aspect=3:2&output=web-1600";
    browser.visit(&format!("{}/item/{LARGE}/crop?{query}", server.url));
    browser.check_appearance("studio");
    browser.screenshot("studio-1280-light.png");
    // The other language shows the same crop.
    browser.follow(".language button");
    assert_eq!(fields(&browser), [2120, 1413, 1420, 560]);
    assert!(browser.text("document.querySelector('h1').textContent").starts_with("Beskär"));
    let missing = browser.text("document.getElementById('studio').innerText");
    assert!(!missing.contains("Aspect") && !missing.contains("pixels"), "{missing}");
    browser.set_viewport(360, "dark");
    browser.check_layout("Swedish");
    browser.screenshot("studio-swedish.png");
    browser.set_viewport(1280, "light");
    let portrait = "image/demo-trumma-och-vin";
    browser.log_in(&server.url, "demo-buyer", &format!("/item/{portrait}/crop"));
    browser.check_appearance("studio-member");
    let here = format!("{}/item/{portrait}/crop", server.url);
    browser.visit(&format!("{here}?x=1&width=99999&height=0"));
    browser.set_viewport(360, "light");
    browser.check_accessible("mistake");
    browser.screenshot("studio-mistake.png");
}
