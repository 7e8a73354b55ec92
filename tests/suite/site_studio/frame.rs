//! The frame by pointer, keyboard and touch, and what the page shows of it.

use serde_json::{Value, json};

use super::{
    ALT, DOWN, LEFT, RIGHT, Rect, SHIFT, TAB, UP, agrees, drag_by, fields, focus, map, middle,
    place, press_with, shown, type_over,
};
use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
};

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
