//! Formats of channels besides the standard JPEGs (contract deliveries-17): sizes, presets, WebP and AVIF, in deliveries
//! and in archives.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::common::{DEMO_KEY, Server, oracle};
use crate::deliveries::{ITEM, ask, id, run, trigger, until};

/// A preset, as a setting.
const PRESET: &str = r#"media.presets={"card":{"fill":[320,180]}}"#;

/// Adds a channel with these formats to the demo editor.
fn add(server: &Server, name: &str, method: &[&str], formats: &[&str]) {
    let mut arguments = vec!["channel", "add", "demo-editor", name, "--method"];
    arguments.extend(method);
    arguments.extend(formats.iter().flat_map(|format| ["--format", format]));
    run(server, &arguments, 0);
}

#[test]
fn a_channel_delivers_sizes_presets_and_other_formats() {
    let server = Server::demo_with(&[PRESET, "delivery.retry_first_ms=50"]);
    let formats = [
        "-fit_w320_NormalPreview.webp",
        "-fit_w800_NormalPreview.webp",
        "-fit_w2000_NormalHires.webp",
        "-preset_card_NormalPreview.jpg",
        "_NormalThumbnail.avif",
    ];
    add(&server, "sizes", &["directory", "--setting", "path=desk/in"], &formats);
    let delivery = id(trigger(&server, ITEM, "sizes"));
    until(&server, &delivery, "delivered");
    let folder = server.data().join("deliveries/desk/in");
    let sold = format!("ApiKey {DEMO_KEY}");
    for format in formats {
        let file = fs::read(folder.join(format!("demo-urtavla{format}"))).expect(format);
        let path = format!("{ITEM}{format}");
        let answer = server.get_with(&path, &[("authorization", &sold)]);
        assert_eq!(answer.status(), 200, "{format}");
        assert_eq!(file, answer.bytes().expect("bytes"), "{format}");
    }
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), formats.len());
    let size = server.get(&format!("{ITEM}-fit_w800_NormalPreview.webp"));
    assert_eq!(size.headers()["wirephoto-size"], "800x600");
    assert_eq!(size.headers()["content-type"], "image/webp");
    // Two regions of one photograph do not replace each other.
    for crop in ["-crop_w800_h600_x10_y20", "-crop_w800_h600_x30_y20"] {
        let delivery = id(trigger(&server, &format!("{ITEM}{crop}"), "sizes"));
        until(&server, &delivery, "delivered");
        for format in formats {
            let name = format!("demo-urtavla{crop}{format}");
            assert!(folder.join(&name).is_file(), "{name}");
        }
    }
}

#[test]
fn an_archive_holds_two_sizes_of_one_picture() {
    let server = Server::demo();
    let formats =
        ["-fit_w320_NormalPreview.webp", "-fit_w640_NormalPreview.webp", "_WebPreview.webp"];
    add(&server, "sizes", &["download"], &formats);
    let path = format!("{ITEM}.zip?channel=user:demo-editor:sizes");
    let archive = || ask(&server, &path, DEMO_KEY).bytes().expect("bytes");
    let zip = archive();
    let script = "import sys,io,json,zipfile\n\
        z=zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        assert z.testzip() is None\n\
        print(json.dumps({n: len(z.read(n)) for n in z.namelist()}))";
    let held = oracle::python(script, &[], &zip);
    let held: BTreeMap<String, usize> = serde_json::from_slice(&held).expect("JSON");
    let expected = formats.map(|format| {
        (format!("demo-urtavla{format}"), server.bytes(&format!("{ITEM}{format}")).len())
    });
    assert_eq!(held, BTreeMap::from(expected));
    assert_eq!(archive(), zip, "the same request gives the same bytes");
}

#[test]
fn a_format_that_no_delivery_can_have_is_refused_with_the_reason() {
    let server = Server::demo();
    for (format, reason) in [
        ("_NormalPreview.auto", "`.auto` is no format of a delivery"),
        ("-fit_w800_NormalPreview.auto", "`.auto` is no format of a delivery"),
        (".webp", "the full size is `.jpg`; `.webp` needs a smaller suffix"),
        (".renditions.json", "not the list `.renditions.json`"),
        ("-fit_w0_NormalPreview.webp", "is zero"),
        ("-fit_w1-fill_w1_h1_NormalPreview.webp", "a second size"),
    ] {
        let arguments =
            ["channel", "add", "demo-editor", "x", "--method", "download", "--format", format];
        let (_, refused) = run(&server, &arguments, 1);
        assert!(refused.contains(reason), "{format}: {refused}");
        let body = json!({ "method": "download", "formats": [".json", format] });
        let request = server.client.put(format!("{}/user/v1/channel/x", server.url));
        let request = request.header("authorization", format!("ApiKey {DEMO_KEY}"));
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().expect("answer");
        assert_eq!(answer.status(), 400, "{format}");
        let body: Value = answer.json().expect("JSON");
        assert_eq!(body["errors"][0]["path"], "formats.1", "{format}: {body}");
        let message = body["errors"][0]["message"].as_str().expect("a message");
        assert!(message.contains(reason), "{format}: {message}");
    }
}

#[test]
fn a_preset_that_the_settings_lost_is_named() {
    let server = Server::demo_with(&[PRESET]);
    add(&server, "cards", &["download"], &["-preset_card_NormalPreview.webp"]);
    let path = format!("{ITEM}.zip?channel=user:demo-editor:cards");
    assert_eq!(ask(&server, &path, DEMO_KEY).status(), 200);
    let server = server.restart(&[]);
    let answer = ask(&server, &path, DEMO_KEY);
    assert_eq!(answer.status(), 400);
    let body = answer.text().expect("text");
    assert!(body.contains("there is no preset card"), "{body}");
}
