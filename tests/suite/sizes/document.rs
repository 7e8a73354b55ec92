//! `<id>.renditions.json`: every address in it answers with the size that it states.

use serde_json::{Value, json};

use super::{header, open, picture, with_key};
use crate::common::{DEMO_KEY, Server, news, oracle, pictures::Picture};

const PRESETS: &str = r#"media.presets={"card":{"fill":[160,90]},"wide":{"fit":[9000,0]}}"#;

/// A server over a picture of 700 x 500 pixels.
fn server(settings: &[&str]) -> Server {
    let pictures = [("one", Picture::waves(700, 500).jpeg())];
    Server::with_pictures(&[&["media.warm=false", PRESETS], settings].concat(), &pictures)
}

fn document(server: &Server) -> Value {
    let response = open(server, "one.renditions.json");
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "content-type"), "application/json");
    response.json().expect("JSON")
}

/// The file name in an address of the service.
#[track_caller]
fn file<'a>(server: &Server, href: &'a Value) -> &'a str {
    let href = href.as_str().expect("an address");
    let path = href.strip_prefix(server.url.as_str()).expect("an address of the service");
    path.strip_prefix("/media/image/").expect("a picture")
}

/// Follows the addresses in `hrefs`: each has the size, in the format of its key.
#[track_caller]
fn follow(server: &Server, hrefs: &Value, access: &Value, size: Option<(u64, u64)>) {
    for (format, href) in hrefs.as_object().expect("addresses") {
        let name = file(server, href);
        assert!(name.ends_with(&format!(".{format}")), "{format}: {name}");
        let anonymous = open(server, name).status().as_u16();
        assert_eq!(anonymous, if access == "open" { 200 } else { 401 }, "{name}");
        let (body, (width, height)) = picture(server, name);
        let is_kind = match format.as_str() {
            "webp" => body.starts_with(b"RIFF"),
            "avif" => body[4..].starts_with(b"ftypavif"),
            // The test's client has no preference.
            _ => body.starts_with(b"\xFF\xD8"),
        };
        assert!(is_kind, "{name}");
        if let Some(size) = size {
            assert_eq!((width as u64, height as u64), size, "{name}");
        }
    }
}

#[test]
fn every_rendition_and_preset_answers_with_the_size_that_is_stated() {
    let server = server(&[]);
    let document = document(&server);
    assert_eq!(document["uri"], format!("{}/media/image/one", server.url));
    assert_eq!(document["formats"], json!(["jpg", "webp", "avif", "auto"]));
    let renditions = document["renditions"].as_array().expect("renditions");
    let mut names = Vec::new();
    for rendition in renditions {
        let name = ["variant", "usage"].map(|part| rendition[part].as_str().expect("a name"));
        let is_hires = name[1] == "Hires";
        assert_eq!(rendition["access"], if is_hires { "purchase" } else { "open" }, "{name:?}");
        let formats: Vec<&String> =
            rendition["hrefs"].as_object().expect("hrefs").keys().collect();
        let expected: &[&str] = if is_hires { &["jpg"] } else { &["jpg", "webp", "avif", "auto"] };
        assert_eq!(formats, expected, "{name:?}");
        let side = |name: &str| rendition[name].as_u64().expect("a number");
        let size = (side("width"), side("height"));
        follow(&server, &rendition["hrefs"], &rendition["access"], Some(size));
        names.push(name.concat());
    }
    let expected = [
        "NormalHires",
        "NormalPreview",
        "NormalThumbnail",
        "WatermarkHires",
        "WatermarkPreview",
        "WatermarkThumbnail",
        "CroppedThumbnail",
        "WebPreview",
    ];
    assert_eq!(names, expected);
    let presets = document["presets"].as_object().expect("presets");
    assert_eq!(presets.keys().collect::<Vec<_>>(), ["card", "wide"]);
    for (name, size, shown) in
        [("card", "fill_w160_h90", (160, 90)), ("wide", "fit_w9000", (700, 500))]
    {
        let preset = &presets[name];
        assert_eq!((&preset["size"], &preset["access"]), (&json!(size), &json!("open")));
        assert_eq!((&preset["width"], &preset["height"]), (&json!(shown.0), &json!(shown.1)));
        follow(&server, &preset["hrefs"], &preset["access"], Some(shown));
    }
}

#[test]
fn previews_that_need_a_right_are_not_called_open() {
    let server = Server::demo();
    let key = format!("ApiKey {DEMO_KEY}");
    let headers = [("authorization", key.as_str())];
    let document = "/media/graphic/demo-sweden-map.renditions.json";
    assert_eq!(server.get(document).status(), 401);
    let document: Value = server.get_with(document, &headers).json().expect("JSON");
    let renditions = document["renditions"].as_array().expect("renditions");
    assert!(renditions.iter().any(|rendition| rendition["usage"] == "Preview"), "{document}");
    for rendition in renditions {
        let is_hires = rendition["usage"] == "Hires";
        let expected = if is_hires { "purchase" } else { "agreement" };
        assert_eq!(rendition["access"], expected, "{rendition}");
        let href = rendition["hrefs"]["jpg"].as_str().expect("an address");
        let path = href.strip_prefix(server.url.as_str()).expect("an address of the service");
        assert_eq!(server.get(path).status(), 401, "{path}");
        if !is_hires {
            assert_eq!(server.get_with(path, &headers).status(), 200, "{path}");
        }
    }
}

/// The candidates of a `srcset`: address and width.
fn candidates(srcset: &Value) -> Vec<(Value, u64)> {
    let parts = srcset.as_str().expect("text").split(", ");
    let candidate = |part: &str| {
        let (href, width) = part.split_once(' ').expect("an address and a width");
        assert!(!href.contains([',', '(', ')']), "{href}");
        let width = width.strip_suffix('w').expect("a width");
        (json!(href), width.parse().expect("a number"))
    };
    parts.map(candidate).collect()
}

#[test]
fn the_candidates_of_a_srcset_are_as_wide_as_they_say() {
    let server = server(&["media.widths=160, 320, 640, 1280"]);
    let found = document(&server);
    assert_eq!(found["widths"], json!([160, 320, 640, 1280]));
    let srcset = found["srcset"].as_object().expect("srcset");
    assert_eq!(srcset.keys().collect::<Vec<_>>(), ["jpg", "avif"]);
    for (format, text) in srcset {
        let candidates = candidates(text);
        let widths: Vec<u64> = candidates.iter().map(|(_, width)| *width).collect();
        assert_eq!(widths, [160, 320, 640, 700], "{format}: the picture has 700");
        for (href, width) in candidates {
            let name = file(&server, &href);
            assert!(name.ends_with(&format!(".{format}")), "{name}");
            let (_, shown) = picture(&server, name);
            assert_eq!(shown.0 as u64, width, "{name}");
        }
    }
    // Without a ladder there is one width to name.
    let server = server.restart(&["media.widths=any", "media.open_px=500", "media.warm=false"]);
    let found = document(&server);
    assert_eq!((&found["widths"], &found["presets"]), (&json!("any"), &json!({})));
    let candidates = candidates(&found["srcset"]["jpg"]);
    assert_eq!(candidates.len(), 1);
    let (_, shown) = picture(&server, file(&server, &candidates[0].0));
    assert_eq!((shown, candidates[0].1), ((500, 357), 500));
}

#[test]
fn it_is_a_document_of_its_item_with_the_rights_and_the_cache_headers_of_the_json() {
    let text = news::document("Text", &["TEXT"], "2026-03-05T09:15:00+01:00");
    let image = news::document("Picture", &["FOTO"], "2026-03-05T09:15:00+01:00");
    let server = news::server(&["media.warm=false"], &[("text/t", text), ("image/a", image)]);
    let found = open(&server, "a.renditions.json");
    let (tag, keys) = (header(&found, "etag"), header(&found, "surrogate-key"));
    assert!(keys.split(' ').any(|key| key == "image.a"), "{keys}");
    assert!(header(&found, "cache-control").starts_with("public"));
    let known = [("if-none-match", tag.as_str())];
    assert_eq!(server.get_with("/media/image/a.renditions.json", &known).status(), 304);
    let upper = open(&server, "a.RENDITIONS.JSON");
    assert_eq!((upper.status().as_u16(), header(&upper, "etag")), (200, tag));
    // The document of the item itself lists each variant and usage once, as ever.
    let item: Value = open(&server, "a.json").json().expect("JSON");
    assert_eq!(item["renditions"].as_object().expect("renditions").len(), 5);
    assert_eq!(open(&server, "none.renditions.json").status(), 404);
    assert_eq!(server.get("/media/text/t.renditions.json").status(), 401);
    let key = format!("ApiKey {DEMO_KEY}");
    let text = server.get_with("/media/text/t.renditions.json", &[("authorization", &key)]);
    assert_eq!(text.status(), 404, "a text has no picture");
    assert_eq!(with_key(&server, "a/a000.renditions.json", DEMO_KEY).status(), 400);
    let preview = oracle::describe(&open(&server, "a_NormalPreview.webp").bytes().expect("body"));
    assert_eq!(preview, "RGB 64 48 plain");
}
