//! The studio without scripts, its errors, and the markup that it offers.

use std::fs;

use serde_json::{Value, json};

use super::{RIGHT, Rect, agrees, document, focus, map, press_with, rendition, run, type_over};
use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
    pictures::Picture,
};

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
    // A picture with one width has no list of them.
    let small = text("?width=1&height=1");
    let markup = small.split_once("id=\"code-html\"").expect("the markup").1;
    let markup = markup.split("</pre>").next().expect("its end");
    assert_eq!(markup.matches("srcset=").count(), 1, "{markup}");
    assert!(!markup.contains("sizes="), "{markup}");
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

/// Returns what the `<picture>` of a markup says, and whether each candidate has the width that it states.
const PICTURE_OF_MARKUP: &str = "const page = new DOMParser().parseFromString(given, 'text/html');
         const image = page.querySelector('picture > img');
         const sources = [...page.querySelectorAll('picture > source')];
         const sets = sources.concat(image).map((one) => one.srcset.split(','));
         const candidates = sets.flat().map((one) => one.trim().split(/\\s+/));
         const widths = await Promise.all(candidates.map(async ([url, width]) => {
             const bitmap = await createImageBitmap(await (await fetch(url)).blob());
             return `${bitmap.width}w` === width;
         }));
         const kinds = sources.map((one) => `${one.type} ${one.sizes === image.sizes}`);
         return [image.src, image.width, image.height, image.sizes, kinds, widths];";

#[test]
fn copied_text_equals_the_displayed_text() {
    let server = Server::demo();
    let browser = Browser::open_with_profile(DESKTOP);
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
    // The markup works on any page: the candidates of each format have the stated widths.
    let html = copied("code-html");
    let found = run(&browser, PICTURE_OF_MARKUP, &json!(html));
    let preview = rendition(&reported, "Preview");
    let width = preview["width"].as_u64().unwrap();
    let sizes = format!("(max-width: {width}px) 100vw, {width}px");
    let kinds = ["image/avif true"];
    let expected = json!([preview["href"], width, preview["height"], sizes, kinds, vec![true; 6]]);
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
