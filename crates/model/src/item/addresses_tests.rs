//! Addresses in served documents.

use serde_json::{Value, json};

use super::*;
use crate::{RenditionName, RenditionUsage, RenditionVariant, Size};

const BASE: &str = "https://cdn.example/pictures";

const SIZES: RenditionSizes = RenditionSizes {
    preview_px: 1024,
    thumbnail_px: 256,
    cropped_thumbnail_px: 256,
    web_preview_px: 512,
};

/// The document of `key` as served by a service that holds `image/held` and nothing else, checked
/// against the schema.
fn served(key: &str, document: &Value, assets: &[Asset], layout: DocumentLayout) -> Value {
    let key: ItemKey = key.parse().expect("key");
    let document = Document::parse(&key, &document.to_string()).expect("valid");
    let served = DocumentRequest {
        key: &key,
        assets,
        sizes: SIZES,
        crop: None,
        layout,
        rights: None,
        with_file_rights: false,
    };
    let holds = |key: &ItemKey| match key.to_string().as_str() {
        "image/held" => ItemPresence::Files,
        "image/bare" => ItemPresence::Document,
        _ => ItemPresence::Absent,
    };
    let links = MediaLinks::new(BASE.to_owned());
    let value = served.document(document, &links, &holds).expect("no crop");
    Document::parse(&key, &value.to_string()).expect("what is served is valid");
    value
}

#[test]
fn uris_of_the_item_are_rewritten_to_our_host() {
    let rendition = |href: &str| json!({ "usage": "Preview", "variant": "Normal", "href": href });
    let document = json!({
        "uri": "http://other.example/media/graphic/a_b-c",
        "renditions": {
            "r0": rendition("https://x.example/p/media/graphic/a_b-c_NormalPreview.jpg?v=1"),
            "r1": rendition("https://x.example/files/a_b-c.pdf"),
        },
        "replacing": ["http://other.example/media/graphic/older", "http://a/b"],
        "replacedby": "http://other.example/media/graphic/newer",
        "revisions": [{
            "uri": "http://other.example/media/graphic/older",
            "replacing": ["http://other.example/media/graphic/oldest"],
        }],
    });
    let found = served("graphic/a_b-c", &document, &[], DocumentLayout::Full);
    let ours = |path: &str| format!("{BASE}/media/graphic/{path}");
    assert_eq!(found.as_object().expect("object").keys().next().expect("one"), "uri");
    assert_eq!(found["uri"], ours("a_b-c"));
    // It was ingested without files, so each of them would be missing or at another host.
    assert_eq!(found.get("renditions"), None);
    assert_eq!(found["replacing"], json!([ours("older"), "http://a/b"]));
    assert_eq!(found["replacedby"], ours("newer"));
    let revision = json!({ "uri": ours("older"), "replacing": [ours("oldest")] });
    assert_eq!(found["revisions"], json!([revision]));
    assert_eq!(found["$standard"]["version"], "1.6");
}

#[test]
fn known_associations_are_rewritten_and_others_become_links() {
    let association = |host: &str, id: &str| {
        json!({
            "uri": format!("{host}/media/image/{id}"),
            "representationtype": "incomplete",
            "renditions": {
                "r0": { "href": format!("{host}/media/image/{id}_NormalPreview.jpg") },
            },
        })
    };
    let link = |host: &str, id: &str| json!({ "uri": format!("{host}/media/image/{id}"), "representationtype": "associated" });
    let (theirs, crop) = ("http://other.example", "held-crop_w2264_h1273_x522_y789");
    let mut foreign = association(theirs, "foreign");
    foreign["associations"] = json!({ "a000": association(theirs, "held") });
    let document = json!({
        "associations": { "a000": association(theirs, crop), "a001": foreign },
    });
    let found = served("text/t", &document, &[], DocumentLayout::Full);
    let mut expected = json!({ "a000": association(BASE, crop), "a001": link(theirs, "foreign") });
    expected["a001"]["associations"] = json!({ "a000": association(BASE, "held") });
    assert_eq!(found["associations"], expected);
    // One that was ingested as a document alone is ours and has no renditions.
    let bare = json!({ "associations": { "a000": association(theirs, "bare") } });
    let found = served("text/t", &bare, &[], DocumentLayout::Full);
    assert_eq!(found["associations"]["a000"], link(BASE, "bare"));
    let assigned = json!({ "assignments": { "a0": association(theirs, "held") } });
    let found = served("planning/p", &assigned, &[], DocumentLayout::Full);
    assert_eq!(found["assignments"]["a0"], association(BASE, "held"));
}

#[test]
fn renditions_of_an_association_at_other_addresses_are_left_out() {
    let document = |hrefs: &[&str]| {
        let rendition =
            |(place, href): (usize, &&str)| (format!("r{place}"), json!({ "href": href }));
        let renditions = hrefs.iter().enumerate().map(rendition);
        let renditions = Value::Object(renditions.collect::<Map<_, _>>());
        let association = json!({ "uri": "http://a/media/image/held", "renditions": renditions });
        json!({ "associations": { "a000": association } })
    };
    let hrefs = |hrefs: &[&str]| -> Vec<String> {
        let found = served("text/t", &document(hrefs), &[], DocumentLayout::Full);
        let renditions = found["associations"]["a000"]["renditions"].as_object().cloned();
        let href = |one: &Value| one["href"].as_str().expect("href").to_owned();
        renditions.unwrap_or_default().values().map(href).collect()
    };
    let ours = |path: &str| format!("{BASE}/media/image/{path}");
    let moved = hrefs(&[
        "https://x.example/p/media/image/held_NormalPreview.jpg?v=1",
        "https://x.example/media/image/held-crop_w1_h2_BlackAndWhite.eps",
        "https://x.example/media/image/held/a000_NormalPreview.jpg",
    ]);
    let expected = [
        "held_NormalPreview.jpg",
        "held-crop_w1_h2_BlackAndWhite.eps",
        "held/a000_NormalPreview.jpg",
    ];
    assert_eq!(moved, expected.map(ours));
    let others = hrefs(&[
        "https://x.example/media/image/held-other_NormalPreview.jpg",
        "https://x.example/files/held.pdf",
        "https://x.example/media/image/held/../../../o/logout",
        "https://x.example/media/image/held.jpg%22onload",
    ]);
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_items_to_look_up_are_those_that_the_layout_serves() {
    let association = |id: &str| json!({ "uri": format!("http://a/media/image/{id}") });
    let mut first = association("one");
    first["associations"] = json!({ "a000": association("inner-crop_w1") });
    let document = json!({
        "associations": { "a000": first, "a001": association("two") },
        "assignments": { "x": association("three") },
    });
    let key = "text/t".parse().expect("key");
    let document = Document::parse(&key, &document.to_string()).expect("valid");
    let check = |layout, expected: &[&str]| {
        let found = document.linked_items(layout);
        let mut found: Vec<_> = found.iter().map(|key| key.id.to_string()).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    };
    check(DocumentLayout::Full, &["inner", "one", "three", "two"]);
    check(DocumentLayout::Bare, &["one"]);
}

#[test]
fn renditions_of_our_files_replace_those_in_the_document() {
    let asset = Asset::own(AssetFile::Picture(PictureFile {
        name: RenditionName { variant: RenditionVariant::Normal, usage: RenditionUsage::Hires },
        blob: crate::ContentHash::new(b"x"),
        length: 1,
        stored: Size { width: 2000, height: 1000 },
        orientation: 1,
        progressive: false,
        components: 3,
        is_grey: false,
        picture_hash: None,
        rights: metadata::RightsMetadata::default(),
        source_rights: metadata::RightsMetadata::default(),
    }));
    let document = json!({
        "headline": "H", "byline": "B",
        "renditions": { "own": { "href": "http://a/media/image/held.jpg", "usage": "Thumbnail" } },
    });
    let ids = |layout| {
        let found = served("image/held", &document, std::slice::from_ref(&asset), layout);
        let ids = found["renditions"].as_object().expect("object").keys();
        (ids.cloned().collect::<Vec<_>>(), found)
    };
    let (all, _) = ids(DocumentLayout::Full);
    assert_eq!(all, ["r00", "r01", "r02", "r03", "r04"]);
    let (thumbnail, found) = ids(DocumentLayout::Bare);
    assert_eq!(thumbnail, ["r03"]);
    assert_eq!(found["renditions"]["r03"]["width"], 256);
    let keys: Vec<&String> = found.as_object().expect("object").keys().collect();
    assert_eq!(keys, ["uri", "headline", "renditions"]);
}

#[test]
fn documents_of_any_depth_are_served() {
    let mut document = json!({ "uri": "http://a/media/image/held" });
    for _ in 0..50 {
        document = json!({
            "uri": "http://a/media/image/held", "associations": { "a000": document },
        });
    }
    let found = served("image/held", &document, &[], DocumentLayout::Full);
    let mut deepest = &found;
    for _ in 0..50 {
        deepest = &deepest["associations"]["a000"];
    }
    assert_eq!(deepest["uri"], "http://a/media/image/held");
}
