//! URLs in a document: none leads a visitor, or a client with its key, to another host.

use serde_json::{Value, json};

use crate::common::{DEMO_KEY, Server, pictures::Picture};
use crate::items::{form, provider, put};
use crate::site::Session;

/// URLs that no document may contain.
const BAD_URLS: [&str; 6] = [
    "javascript:alert(1)//media/image/x",
    "javascript://a.example/media/image/x%0aalert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "urn:x-other:1",
];

fn put_json(server: &Server, auth: &str, key: &str, document: &Value) -> (u16, Value) {
    let body = ("application/json", document.to_string().into_bytes());
    let answer = put(server, key, auth, body);
    (answer.status().as_u16(), answer.json().unwrap())
}

#[test]
fn a_document_with_an_unsafe_url_is_refused() {
    let server = Server::with_pictures::<&str>(&[], &[]);
    let auth = provider(&server);
    for bad in BAD_URLS {
        let rendition = json!({ "r0": { "href": bad, "usage": "Preview", "variant": "Normal" } });
        for (path, document) in [
            ("renditions.r0.href", json!({ "renditions": rendition })),
            ("associations.a000.uri", json!({ "associations": { "a000": { "uri": bad } } })),
            (
                "associations.a000.renditions.r0.href",
                json!({ "associations": { "a000": {
                    "uri": "http://a.example/media/image/x", "renditions": rendition,
                } } }),
            ),
            ("trustindicator.0.href", json!({ "trustindicator": [{ "href": bad }] })),
            ("rightsinfo.linkedrights", json!({ "rightsinfo": { "linkedrights": bad } })),
            ("replacing.0", json!({ "replacing": [bad] })),
        ] {
            let (status, answer) = put_json(&server, &auth, "text/x", &document);
            assert_eq!(status, 400, "{path} {bad}: {answer}");
            let named = answer["errors"].as_array().unwrap();
            let named: Vec<&str> = named.iter().map(|one| one["path"].as_str().unwrap()).collect();
            assert!(named.contains(&path), "{path} {bad}: {named:?}");
        }
    }
    assert_eq!(server.get(&format!("/media/text/x.json?ak={DEMO_KEY}")).status(), 404);
}

/// Every URL in a response that a client or a browser would follow.
fn hosts(text: &str) -> Vec<String> {
    let parts = text.split("evil.example");
    parts.skip(1).map(|rest| rest.chars().take(40).collect()).collect()
}

#[test]
fn renditions_on_other_hosts_appear_in_no_format() {
    let server = Server::with_pictures::<&str>(&[], &[]);
    let auth = provider(&server);
    let rendition = |name: &str, usage: &str| {
        json!({
            "href": format!("https://evil.example/media/{name}"), "usage": usage,
            "variant": "Normal", "mimetype": "image/jpeg", "width": 60, "height": 40,
        })
    };
    let renditions = |key: &str| {
        json!({ "r0": rendition(&format!("{key}x.jpg"), "Hires"),
                "r1": rendition("other/preview.jpg", "Preview"),
                "r2": rendition("other/thumbnail.jpg", "Thumbnail") })
    };
    let association = json!({
        "uri": "https://other.example/media/image/elsewhere", "headline": "Elsewhere",
        "renditions": renditions("image/elsewhere"),
    });
    let document = |headline: &str| {
        json!({
            "headline": headline, "product": [{ "code": "FOTO", "name": "FOTO" }],
            "renditions": renditions("x"), "associations": { "a000": association },
        })
    };
    for key in ["text/t", "graphic/g", "video/v", "page/p"] {
        let (status, answer) = put_json(&server, &auth, key, &document(key));
        assert!(status < 300, "{key}: {answer}");
    }
    let text = document("image/i").to_string();
    let picture = Picture::waves(64, 48).jpeg();
    let body = form(&[("item", text.as_bytes()), ("NormalHires.jpg", &picture)]);
    let answer = put(&server, "image/i", &auth, body);
    assert!(answer.status().is_success(), "{}", answer.text().unwrap());
    let session = Session::open(&server, "demo-editor");
    for key in ["text/t", "graphic/g", "video/v", "page/p", "image/i"] {
        for path in [format!("/media/{key}.json"), format!("/media/{key}.xml")] {
            let found = server.bytes(&format!("{path}?ak={DEMO_KEY}"));
            let found = String::from_utf8(found).unwrap();
            assert_eq!(hosts(&found), Vec::<String>::new(), "{path}");
        }
        let page = session.get(&server, &format!("/item/{key}"));
        assert_eq!(page.status(), 200, "{key}");
        assert_eq!(hosts(&page.text().unwrap()), Vec::<String>::new(), "{key}");
    }
    for layout in ["full", "bare"] {
        let path = format!("/content/v1/_all/search?layout={layout}&ak={DEMO_KEY}");
        let found = String::from_utf8(server.bytes(&path)).unwrap();
        assert_eq!(hosts(&found), Vec::<String>::new(), "{layout}");
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["total"], 5);
    }
    let page = session.get(&server, "/?type=_all").text().unwrap();
    assert_eq!(hosts(&page), Vec::<String>::new());
    // The image has its own files; the association of another archive is only a link.
    let found = server.bytes(&format!("/media/image/i.json?ak={DEMO_KEY}"));
    let found: Value = serde_json::from_slice(&found).unwrap();
    assert_eq!(found["renditions"].as_object().unwrap().len(), 5);
    let link = &found["associations"]["a000"];
    assert_eq!(link["uri"], "https://other.example/media/image/elsewhere");
    assert_eq!(
        (link.get("renditions"), &link["representationtype"]),
        (None, &json!("associated"))
    );
}

#[test]
fn a_hostile_document_runs_no_script_on_a_page_or_in_any_format() {
    let server = Server::with_pictures::<&str>(&[], &[]);
    let auth = provider(&server);
    let hostile = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7919 * 7907 }}";
    let concept = json!([{ "name": hostile, "code": hostile }]);
    let document = json!({
        "headline": hostile, "description_text": hostile, "byline": hostile, "source": hostile,
        "slug": hostile, "body_text": hostile, "copyrightholder": hostile, "ednote": hostile,
        "usageterms": hostile, "person": concept, "subject": concept, "place": concept,
        "organisation": concept, "language": "sv\" onmouseover=\"x",
        "body_html5": "<p onclick=\"alert(1)\">x<script>alert(2)</script><a href=\"javascript:alert(3)\">y</a></p>",
        "product": [{ "code": "FOTO", "name": hostile }],
        "revisions": [{ "uri": "http://a.example/media/text/older", "slug": hostile }],
        "associations": { "a000": { "uri": "http://a.example/media/image/x", "headline": hostile } },
    });
    let (status, answer) = put_json(&server, &auth, "text/x", &document);
    assert!(status < 300, "{answer}");
    let session = Session::open(&server, "demo-editor");
    for path in ["/item/text/x", "/?type=text", "/?type=text&q=alert"] {
        let page = session.get(&server, path).text().unwrap();
        for bad in ["<img src=x", "<script>alert", "onmouseover=\"x", "onclick=", "javascript:"] {
            assert!(!page.contains(bad), "{path} {bad}");
        }
        assert!(!page.contains("62615533"), "{path}: a template was evaluated");
    }
    let news =
        String::from_utf8(server.bytes(&format!("/media/text/x.xml?ak={DEMO_KEY}"))).unwrap();
    for bad in ["<script", "onclick", "javascript:", "<img src=x"] {
        assert!(!news.contains(bad), "{bad}: {news}");
    }
}
