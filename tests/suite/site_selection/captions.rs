//! Captions of a selection as files and in the clipboard, and pictures that are dragged out of the browser.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde_json::{Value, json};

use super::{center, fields, orders, uris};
use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
    news, oracle,
};
use crate::site::Session;

#[test]
fn caption_lists_are_text_and_csv_in_the_order_of_the_selection() {
    let mut fire = news::document("=Fire", &["FOTO"], "2026-10-01T10:00:00Z");
    fire["description_text"] = json!("A fire; \"big\".\nSecond line.");
    fire["byline"] = json!("Ann Ek");
    fire["source"] = json!("TT");
    fire["ednote"] = json!("Not for web");
    let sea = news::document("Sea", &["FOTO"], "2026-10-02T10:00:00Z");
    let server = news::server(&[], &[("image/fire", fire), ("image/sea", sea)]);
    let editor = Session::open(&server, "demo-editor");
    let uris =
        uris(&server, &["image/sea", "image/no-such-item", "image/fire"].map(str::to_owned));
    let list =
        |path: &str, part: &str| editor.post(&server, path, &fields(&uris, &[("part", part)]));
    let answer = list("/selection/captions.txt", "");
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    let name = answer.headers()[CONTENT_DISPOSITION].to_str().expect("ASCII").to_owned();
    assert!(
        name.starts_with("attachment; filename=\"captions-20") && name.ends_with(".txt\""),
        "{name}"
    );
    let text = answer.text().expect("text");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(
        place("1. Sea") < place("2. no-such-item") && place("2. no-such-item") < place("3. =Fire"),
        "{text}"
    );
    for part in [
        "A fire; \"big\".\nSecond line.\n",
        "Credit: Ann Ek / TT\n",
        "Note to editors: Not for web\n",
        "not available to you",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        list("/selection/captions.txt", "ids").text().expect("text"),
        "sea\nno-such-item\nfire\n"
    );
    assert_eq!(
        list("/selection/captions.txt", "credits").text().expect("text").lines().last(),
        Some("Ann Ek / TT")
    );
    let rows = |csv: &[u8], separator: &str| -> Value {
        let script = "import sys,io,csv,json\n\
            text=sys.stdin.buffer.read().decode('utf-8-sig')\n\
            print(json.dumps(list(csv.DictReader(io.StringIO(text, newline=''), delimiter=sys.argv[1]))))";
        serde_json::from_slice(&oracle::python(script, &[separator], csv)).expect("JSON")
    };
    let answer = list("/selection/captions.csv", "");
    assert!(answer.headers()[CONTENT_TYPE].to_str().expect("ASCII").starts_with("text/csv"));
    let found = rows(&answer.bytes().expect("bytes"), ",");
    assert_eq!(
        (&found[0]["id"], &found[1]["id"], &found[2]["id"]),
        (&json!("sea"), &json!("no-such-item"), &json!("fire"))
    );
    let fire = &found[2];
    assert_eq!((&fire["position"], &fire["credit"]), (&json!("3"), &json!("Ann Ek / TT")));
    assert_eq!(fire["caption"], "A fire; \"big\".\nSecond line.");
    assert_eq!(fire["headline"], "'=Fire", "a cell is no formula");
    // Swedish spreadsheets separate by semicolons.
    let mut form = fields(&uris, &[]);
    form.push(("csrf", editor.csrf.as_str()));
    let request = server.client.post(format!("{}/selection/captions.csv", server.url)).form(&form);
    let request = request.header("cookie", &editor.cookie).header("accept-language", "sv");
    let found = rows(&request.send().expect("answer").bytes().expect("bytes"), ";");
    assert_eq!(found[2]["ednote"], "Not for web");
}

#[test]
fn captions_credits_and_ids_are_copied_with_a_visible_result() {
    let server = Server::demo();
    let browser = Browser::open_with_profile(DESKTOP);
    let grant = json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    browser
        .post("/goog/cdp/execute", &json!({ "cmd": "Browser.grantPermissions", "params": grant }));
    let clipboard = || {
        let script = "navigator.clipboard.readText().then(arguments[0])";
        let found = browser.post("/execute/async", &json!({ "script": script, "args": [] }));
        found.as_str().expect("text").replace("\r\n", "\n")
    };
    let copied = |selector: &str| {
        center(&browser, selector);
        browser.click(selector);
        browser.wait(
            "the word",
            &format!("document.querySelector('{selector}').textContent === 'Copied'"),
        );
        clipboard()
    };
    browser.log_in(&server.url, "demo-editor", "/?q=bridge");
    browser.click(".picker input");
    browser.visit(&format!("{}/?q=sunset", server.url));
    browser.click(".picker input");
    browser.click(".selection-menu:nth-of-type(2) summary");
    assert_eq!(copied("[data-part=ids]"), "demo-bridge-cables\ndemo-solnedgang-over-bergen");
    let captions = copied("[data-part=captions]");
    assert!(captions.starts_with("Cables of a bridge") && captions.contains("\n\n"), "{captions}");
    let credits = copied("[data-part=credits]");
    assert!(credits.starts_with("Sander Klootwijk / Wirephoto demo\n"), "{credits}");
    browser.press("\u{E00C}");
    assert_eq!(browser.eval("document.querySelectorAll('.selection-menu[open]').length"), 0);
    // On the page of an item.
    browser.visit(&format!("{}/item/image/demo-bridge-cables", server.url));
    // The first button selects the item.
    let button = |number: usize| format!(".hero [data-copy-text]:nth-of-type({})", number + 1);
    assert!(copied(&button(1)).starts_with("Cables of a bridge against a blue sky"));
    assert_eq!(copied(&button(2)), "Sander Klootwijk / Wirephoto demo");
    assert_eq!(copied(&button(3)), "demo-bridge-cables");
    // Without the clipboard the old way works, and a failure is said.
    browser.eval("Object.defineProperty(navigator, 'clipboard', { value: undefined }) && null");
    browser.wait("the label", "![...document.querySelectorAll('.hero [data-copy-text]')].some(one => one.textContent === 'Copied')");
    browser.eval("(document.execCommand = () => false) && null");
    center(&browser, &button(3));
    browser.click(&button(3));
    browser.wait(
        "the failure",
        &format!("document.querySelector('{}').textContent === 'Could not be copied'", button(3)),
    );
}

/// The `DownloadURL` of the picture that `selector` finds, when it is dragged.
fn dragged(browser: &Browser, selector: &str) -> String {
    browser.text(&format!(
        "(data => {{ document.querySelector('{selector}').dispatchEvent(\
            new DragEvent('dragstart', {{ bubbles: true, dataTransfer: data }}));\
            return data.getData('DownloadURL'); }})(new DataTransfer())"
    ))
}

#[test]
fn a_picture_is_dragged_to_the_desktop_under_the_name_of_its_file() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    drop(browser.save_downloads());
    browser.log_in(&server.url, "demo-buyer", &format!("/item/{LARGE}"));
    let preview = "image/jpeg:demo-solnedgang-over-bergen_NormalPreview.jpg:";
    assert!(
        dragged(&browser, ".mat img").starts_with(preview),
        "{}",
        dragged(&browser, ".mat img")
    );
    // The original costs something until it is bought, and opens to no one before that.
    let address = format!("/item/{LARGE}/original");
    let buyer = Session::open(&server, "demo-buyer");
    assert_eq!(buyer.get(&server, &address).status(), 403);
    assert_eq!(server.get(&address).status(), 403);
    assert_eq!(buyer.get(&server, "/item/text/demo-aceh-rescue/original").status(), 404);
    assert_eq!(orders(&server, &buyer), Vec::<Value>::new());
    browser.click("#buy button[type=submit]");
    browser.wait(
        "the purchase",
        "document.querySelector('.download').innerText.includes('Already bought')",
    );
    let original = format!("image/jpeg:demo-solnedgang-over-bergen.jpg:{}{address}", server.url);
    browser.wait(
        "the original",
        &format!("document.querySelector('.mat').dataset.drag === '{address}'"),
    );
    assert_eq!(dragged(&browser, ".mat img"), original);
    let answer = buyer.get(&server, &address);
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()[CONTENT_DISPOSITION],
        "attachment; filename=\"demo-solnedgang-over-bergen.jpg\""
    );
    assert_eq!(answer.headers()[CONTENT_TYPE], "image/jpeg");
    assert_eq!(orders(&server, &buyer).len(), 1);
    // On the wall it is the Preview, which opens for everyone.
    browser.visit(&format!("{}/?q=sunset", server.url));
    let found = dragged(&browser, ".wall img");
    assert!(found.starts_with(preview), "{found}");
    let (_, address) = found.split_once(".jpg:").expect("an address");
    assert_eq!(server.client.get(address).send().expect("answer").status(), 200);
}
