//! The `.json` of an item: the served document, its renditions, and crops mapped to them.

use serde_json::{Value, json};

use crate::common::pictures::Picture;
use crate::common::{DEMO_KEY, LARGE, Server, checkout};

fn document(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "application/json");
    response.json().unwrap()
}

/// The renditions of a document, by variant and usage.
fn renditions(document: &Value) -> Vec<(&str, &Value)> {
    let entries = document["renditions"].as_object().unwrap();
    entries.iter().map(|(id, rendition)| (id.as_str(), rendition)).collect()
}

#[test]
fn every_document_validates_against_schema_1_6() {
    let schema =
        std::fs::read_to_string(checkout("crates/model/assets/ttninjs-schema_1.6.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft4);
    let validator = options.should_validate_formats(true).build(&schema).unwrap();
    let server = Server::demo();
    for entry in std::fs::read_dir(checkout("media-store/demo/image")).unwrap() {
        let id = entry.unwrap().file_name().into_string().unwrap();
        for suffix in [".json", "-crop_w10_h10_x3_y4.json"] {
            let document = document(&server, &format!("/media/image/{id}{suffix}"));
            let problems: Vec<_> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{id}{suffix}: {problems:?}");
        }
    }
}

#[test]
fn the_document_is_the_ingested_one_with_our_uri_and_renditions() {
    let server = Server::demo();
    let file = format!("media-store/demo/{LARGE}/item.json");
    let ingested: Value =
        serde_json::from_str(&std::fs::read_to_string(checkout(&file)).unwrap()).unwrap();
    let served = document(&server, &format!("/media/{LARGE}.json"));
    for (name, value) in ingested.as_object().unwrap() {
        assert_eq!(&served[name], value, "{name}");
    }
    assert_eq!(served["uri"], format!("{}/media/{LARGE}", server.url));
    assert_eq!(served["type"], "picture");
    assert_eq!(served["pubstatus"], "usable");
    assert_eq!(served["representationtype"], "complete");
    assert_eq!(served["$standard"]["version"], "1.6");
    assert!(served["versionstored"].is_string());
    assert_eq!(served.get("_tstamp"), None);
}

#[test]
fn the_renditions_have_the_ids_and_facts_of_the_contract() {
    let server = Server::demo();
    let served = document(&server, &format!("/media/{LARGE}.json"));
    let href = |name: &str| format!("{}/media/{LARGE}_{name}.jpg", server.url);
    let rendition = |variant: &str, usage: &str, width: u32, height: u32| {
        json!({
            "usage": usage,
            "variant": variant,
            "mimetype": "image/jpeg",
            "href": href(&format!("{variant}{usage}")),
            "width": width,
            "height": height,
        })
    };
    let mut hires = rendition("Normal", "Hires", 4272, 2848);
    hires["printsize"] = json!(4272 * 2848 * 3);
    let expected = json!({
        "r00": hires,
        "r01": rendition("Normal", "Preview", 1024, 683),
        "r02": rendition("Watermark", "Preview", 1024, 683),
        "r03": rendition("Normal", "Thumbnail", 256, 171),
        "r04": rendition("Web", "Preview", 512, 341),
    });
    assert_eq!(served["renditions"], expected);
}

/// Clients look renditions up by their attributes, and take the last match.
#[test]
fn no_two_renditions_of_a_document_have_the_same_attributes() {
    let server = Server::demo();
    for key in [LARGE, "graphic/demo-sweden-map", "video/demo-hubble-pan", "text/demo-aceh-rescue"]
    {
        let served = document(&server, &format!("/media/{key}.json?ak={DEMO_KEY}"));
        let objects = std::iter::once(&served)
            .chain(served["associations"].as_object().into_iter().flat_map(|all| all.values()));
        for object in objects.filter(|object| object["renditions"].is_object()) {
            let mut told = std::collections::HashSet::new();
            for (id, one) in renditions(object) {
                let name = ["variant", "usage", "mimetype"].map(|field| one[field].to_string());
                assert!(told.insert(name.clone()), "{key} {id} {name:?}");
            }
            let web = ["Web", "Preview", "image/jpeg"].map(|word| format!("\"{word}\""));
            assert!(told.contains(&web), "{key}: {object}");
        }
    }
}

#[test]
fn a_crop_is_scaled_to_the_pixels_of_every_rendition() {
    let server = Server::demo();
    let check = |crop: &str, preview: &str, web: &str, thumbnail: &str| {
        let served = document(&server, &format!("/media/{LARGE}{crop}.json"));
        for (id, rendition) in renditions(&served) {
            let operator = match id {
                "r00" => crop,
                "r01" | "r02" => preview,
                "r04" => web,
                _ => thumbnail,
            };
            let (variant, usage) = (&rendition["variant"], &rendition["usage"]);
            let name = format!("{}{}", variant.as_str().unwrap(), usage.as_str().unwrap());
            let href = format!("{}/media/{LARGE}{operator}_{name}.jpg", server.url);
            assert_eq!(rendition["href"], href);
        }
        assert_eq!(served["renditions"]["r00"]["printsize"], 4272 * 2848 * 3);
    };
    // 1024/4272 = 0.23970…, 683/2848 = 0.23982…, 512/4272 = 0.11985…, 341/2848 = 0.11973…,
    // 256/4272 = 0.05992…, 171/2848 = 0.06004…
    check(
        "-crop_w2136_h1424_x1068_y712",
        "-crop_w512_h341_x256_y171",
        "-crop_w256_h171_x128_y85",
        "-crop_w128_h85_x64_y43",
    );
    check(
        "-crop_w1_h1_x4271_y2847",
        "-crop_w1_h1_x1023_y682",
        "-crop_w1_h1_x511_y340",
        "-crop_w1_h1_x255_y170",
    );
    check(
        "-crop_w4272_h2848_x0_y0",
        "-crop_w1024_h683_x0_y0",
        "-crop_w512_h341_x0_y0",
        "-crop_w256_h171_x0_y0",
    );
}

#[test]
fn the_hrefs_of_a_cropped_document_deliver_what_they_say() {
    let server = Server::demo();
    let served = document(&server, &format!("/media/{LARGE}-crop_w1001_h777_x333_y222.json"));
    for (id, rendition) in renditions(&served) {
        let href = rendition["href"].as_str().unwrap();
        let bytes = server.client.get(format!("{href}?ak={DEMO_KEY}")).send().unwrap();
        let picture = Picture::decode(&bytes.bytes().unwrap());
        let size = (picture.width as u64, picture.height as u64);
        let said = (rendition["width"].as_u64(), rendition["height"].as_u64());
        assert_eq!((Some(size.0), Some(size.1)), said, "{id}");
    }
}

#[test]
fn links_start_with_the_configured_address() {
    let server = Server::demo_with(&["server.media_url=https://cdn.example/x"]);
    let served = document(&server, &format!("/media/{LARGE}.json"));
    assert_eq!(served["uri"], format!("https://cdn.example/x/media/{LARGE}"));
    for (_, rendition) in renditions(&served) {
        assert!(rendition["href"].as_str().unwrap().starts_with("https://cdn.example/x/media/"));
    }
    let page = server.get("/");
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("img-src 'self' https://cdn.example/x/media/;"), "{policy}");
}

#[test]
fn metadata_has_ranges_and_its_failed_conditions_are_not_cached() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}.json");
    let whole = server.bytes(&path);
    let part = server.get_with(&path, &[("range", "bytes=10-19")]);
    assert_eq!(part.status(), 206);
    assert_eq!(part.bytes().unwrap(), &whole[10..20]);
    let outside = server.get_with(&path, &[("range", "bytes=9999999-")]);
    let failed = server.get_with(&path, &[("if-match", "\"other\"")]);
    for (response, status) in [(outside, 416), (failed, 412)] {
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["cache-control"], "no-store", "{status}");
    }
}
