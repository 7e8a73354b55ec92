//! Rights and provenance in messages and in ninjs.

use super::DocumentRights;
use super::MessageHeader;
use super::NewsmlVersion;
use super::newsml;
use super::ninjs;
use super::read_back;
use super::schemas;
use metadata::RightsMetadata;
use serde_json::Value;
use serde_json::json;
use std::collections::BTreeMap;

const SOURCE_TYPE: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";
const DATA_MINING: &str = "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED";

fn rights(value: &Value) -> RightsMetadata {
    RightsMetadata::from_json(value).unwrap()
}

fn all() -> RightsMetadata {
    rights(&json!({
        "digitalSourceType": SOURCE_TYPE,
        "dataMining": DATA_MINING,
        "otherConstraints": { "x-default": "No <scraping>." },
        "usageTerms": { "x-default": "Editorial use" },
        "webstatementRights": "https://a.example/terms",
        "licensors": [
            { "licensorName": "Agency & sons", "licensorUrl": "https://a.example/license" },
            { "licensorId": "PLUS-1" },
        ],
        "altTextAccessibility": { "x-default": "A ship in the ice." },
        "extDescrAccessibility": { "x-default": "A red ship." },
        "aISystemUsed": "Model",
        "aIPromptInformation": "a ship",
    }))
}

fn stated() -> DocumentRights {
    let ours = rights(&json!({ "dataMining": DATA_MINING }));
    DocumentRights { own: all(), associations: BTreeMap::from([("a000".to_owned(), ours)]) }
}

fn document(kind: &str) -> Value {
    json!({
        "uri": "http://a.example/media/image/1",
        "type": kind,
        "urgency": 4,
        "contentcreated": "2026-03-03T10:00:00+01:00",
        "located": "Oslo",
        "datetime": "2026-03-03T10:00:00+01:00",
        "headline": "Ice",
        "description_text": "A ship.",
        "copyrightnotice": "(c)",
        "associations": { "a000": { "uri": "http://a.example/media/image/2" } },
    })
}

fn message(document: &Value, rights: &DocumentRights, version: NewsmlVersion) -> String {
    let header = MessageHeader { sent: "2026-03-03T10:00:00+01:00", sender: "Agency", version };
    String::from_utf8(newsml(document, rights, &header)).unwrap()
}

#[test]
fn rights_have_their_places_in_every_item_of_a_valid_message() {
    let folder = tempfile::tempdir().unwrap();
    let messages = ["picture", "text", "planning", "event"]
        .map(|kind| message(&document(kind), &stated(), NewsmlVersion::V2_35).into_bytes());
    schemas::assert_valid(&messages, NewsmlVersion::V2_35, folder.path());
}

#[test]
fn a_message_states_what_the_document_does_not_have() {
    let xml = message(&document("picture"), &stated(), NewsmlVersion::V2_35);
    for expected in [
        format!("<digitalSourceType uri=\"{SOURCE_TYPE}\"/>"),
        format!("<dataMining uri=\"{DATA_MINING}\"/></rightsInfo>"),
        "<copyrightNotice>(c)</copyrightNotice><usageTerms>Editorial use</usageTerms>".to_owned(),
        "WebStatement\" href=\"https://a.example/terms\"/>".to_owned(),
        "Licensor\" value=\"https://a.example/license\"><name>Agency &amp; sons</name>".to_owned(),
        "literal=\"PLUS-1\"".to_owned(),
        "value=\"No &lt;scraping&gt;.\"".to_owned(),
        "<description role=\"tt:alttext\">A ship in the ice.</description>".to_owned(),
        "AISystemUsed\" value=\"Model\"/>".to_owned(),
    ] {
        assert!(xml.contains(&expected), "{expected} in {xml}");
    }
    assert_eq!(xml.matches("<dataMining").count(), 2, "the picture and its associated one");
    let own = json!({ "uri": "http://a", "usageterms": "Of the editors" });
    let xml = message(&own, &stated(), NewsmlVersion::V2_35);
    assert!(xml.contains("<usageTerms>Of the editors</usageTerms>"));
    assert!(!xml.contains("Editorial use"));
}

#[test]
fn the_document_says_it_first() {
    let own = json!({
        "uri": "http://a",
        "rightsinfo": { "linkedrights": "https://b.example/terms" },
        "trustindicator": [{
            "scheme": "http://cv.iptc.org/newscodes/digitalsourcetype", "code": "digitalCapture",
        }],
    });
    let uri = "http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture";
    let xml = message(&own, &stated(), NewsmlVersion::V2_35);
    assert!(xml.contains(&format!("<digitalSourceType uri=\"{uri}\"/>")), "{xml}");
    assert!(xml.contains("WebStatement\" href=\"https://b.example/terms\"/>"), "{xml}");
    assert!(!xml.contains("a.example/terms") && !xml.contains("trainedAlgorithmic"), "{xml}");
    let found = ninjs(&own, &stated());
    assert_eq!(found["digitalSourceType"], json!({ "uri": uri, "literal": "digitalCapture" }));
    assert_eq!(found["rightsInfo"], json!({ "linkedRights": "https://b.example/terms" }));
}

#[test]
fn the_older_version_is_the_same_with_and_without_rights() {
    let without = message(&document("picture"), &DocumentRights::default(), NewsmlVersion::V2_30);
    let with = message(&document("picture"), &stated(), NewsmlVersion::V2_30);
    assert_eq!(with, without);
    assert!(with.contains("standardversion=\"2.30\""));
}

#[test]
fn the_fields_of_the_document_are_found_beside_its_rights() {
    let with = message(&document("picture"), &stated(), NewsmlVersion::V2_35);
    let without = message(&document("picture"), &DocumentRights::default(), NewsmlVersion::V2_35);
    let (mut with, without) = (read_back::read(&with), read_back::read(&without));
    // The document has no terms of its own, so those that are stated take their place.
    with.as_object_mut().unwrap().shift_remove("usageterms");
    assert_eq!(with, without);
}

#[test]
fn ninjs_states_rights_where_its_schema_has_a_place() {
    let found = ninjs(&document("picture"), &stated());
    assert_eq!(found["digitalSourceType"]["uri"], SOURCE_TYPE);
    assert_eq!(found["digitalSourceType"]["literal"], "trainedAlgorithmicMedia");
    assert_eq!(found["rightsInfo"], json!({ "linkedRights": "https://a.example/terms" }));
    assert_eq!(found["usageTerms"], "Editorial use");
    let alternative = json!({
        "role": "altText", "contentType": "text/plain", "value": "A ship in the ice.",
    });
    assert_eq!(found["descriptions"][1], alternative);
    let own = json!({
        "uri": "http://a", "usageterms": "Of the editors",
        "rightsinfo": { "encodedrights": "x", "langid": "http://a/odrl" },
        "trustindicator": [{
            "scheme": "http://cv.iptc.org/newscodes/digitalsourcetype", "code": "digitalCapture",
        }],
    });
    let found = ninjs(&own, &DocumentRights::default());
    assert_eq!(found["digitalSourceType"]["literal"], "digitalCapture");
    assert_eq!(found["rightsInfo"]["encodedRights"], "x");
    assert_eq!(ninjs(&own, &stated())["usageTerms"], "Of the editors");
}
