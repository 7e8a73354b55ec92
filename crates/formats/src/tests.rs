//! The three formats on documents of the whole schema.

use super::DocumentRights;
use super::MessageHeader;
use super::NewsmlVersion;
use super::newsml;
use super::newsml::PROPERTIES;
use super::newsml::SCHEMES;
use super::newsml::lexical;
use super::read_back;
use super::schemas;
use super::strategy;
use html5gum::DefaultEmitter;
use html5gum::Token;
use html5gum::Tokenizer;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use strum::IntoEnumIterator;

fn written_in(document: &Value, version: NewsmlVersion) -> Vec<u8> {
    let sender = "Agency & <sons>\n";
    let message = MessageHeader { sent: "2026-03-03T10:00:00+01:00", sender, version };
    newsml(document, &DocumentRights::default(), &message)
}

fn written(document: &Value) -> Vec<u8> {
    written_in(document, NewsmlVersion::V2_35)
}

/// Asserts that the XML has every field of the document, and no others except the defaults that the schema requires.
fn assert_same(document: &Value) {
    let xml = String::from_utf8(written(document)).unwrap();
    let mut read = as_schemes_mean(read_back::plain(&read_back::read(&xml)), "");
    let mut expected = as_schemes_mean(read_back::plain(&as_xml_has_it(document, false)), "");
    without_defaults(&mut read, &mut expected);
    let (read, expected) = (read.as_object().unwrap(), expected.as_object().unwrap());
    for (name, value) in expected {
        assert_eq!(read.get(name), Some(value), "{name} of {document:#}");
    }
    for (name, value) in read {
        assert!(expected.contains_key(name), "{name}: {value} is not in {document:#}");
    }
}

/// The document with only the characters that XML allows, and with HTML bodies replaced by their text. `exact` is
/// true within values that become extension properties.
fn as_xml_has_it(value: &Value, exact: bool) -> Value {
    match value {
        Value::String(text) => Value::String(lexical::clean(text).into_owned()),
        Value::Array(values) => values.iter().map(|value| as_xml_has_it(value, exact)).collect(),
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str);
            let news = !exact && !matches!(kind, Some("planning" | "event"));
            let members = members.iter().map(|(name, value)| {
                let body = matches!(name.as_str(), "body_html5" | "body_richhtml5") && news;
                let value = match value.as_str().filter(|_| body) {
                    Some(html) => as_xml_has_it(&json!(text_of_html(html)), exact),
                    None => as_xml_has_it(value, exact || name == "assignments"),
                };
                (name.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Removes the trailing slash of known schemes, since both spellings mean the same, and characters that XML does not
/// allow from text that was stored as JSON.
fn as_schemes_mean(value: Value, name: &str) -> Value {
    match value {
        Value::String(text) => {
            let scheme = text.strip_suffix('/').unwrap_or(&text);
            let known = name == "scheme" && SCHEMES.iter().any(|(known, _)| *known == scheme);
            Value::String(lexical::clean(if known { scheme } else { &text }).into_owned())
        }
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name.clone(), as_schemes_mean(value, &name)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => value,
    }
}

/// The visible text of HTML without elements: the oracle for the XHTML bodies.
fn text_of_html(html: &str) -> String {
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    let mut text = String::new();
    let mut hidden: Option<Vec<u8>> = None;
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) if hidden.is_none() => {
                let raw: [&[u8]; 6] =
                    [b"script", b"style", b"title", b"iframe", b"noembed", b"noframes"];
                hidden = raw.contains(&&**tag.name).then(|| tag.name.to_vec());
            }
            Token::EndTag(tag) if hidden.as_deref() == Some(&**tag.name) => hidden = None,
            Token::String(string) if hidden.is_none() => {
                text.push_str(str::from_utf8(&string).unwrap());
            }
            Token::StartTag(_)
            | Token::EndTag(_)
            | Token::String(_)
            | Token::Comment(_)
            | Token::Doctype(_)
            | Token::Error(_) => {}
        }
    }
    text
}

/// Removes values that the XML schema requires and that a document may omit.
fn without_defaults(read: &mut Value, expected: &mut Value) {
    let (read, expected) = (read.as_object_mut().unwrap(), expected.as_object_mut().unwrap());
    if !expected.contains_key("versioncreated") {
        read.shift_remove("versioncreated");
    }
    expected.entry("pubstatus").or_insert_with(|| json!("usable"));
    let associations = expected.get_mut("associations").and_then(Value::as_object_mut);
    for (key, association) in associations.into_iter().flatten() {
        without_defaults(&mut read["associations"][key], association);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_field_of_a_document_is_found_in_the_xml(document in strategy::document(40)) {
        let nested = as_keys_have_it(&document);
        assert_same(&nested);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_message_validates_against_the_standard(
        documents in vec(strategy::document(30), 25),
        full in strategy::document(95),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for version in NewsmlVersion::iter() {
            let all = documents.iter().chain([&full]);
            let messages: Vec<_> = all.map(|document| written_in(document, version)).collect();
            schemas::assert_valid(&messages, version, folder.path());
        }
    }
}

/// Keys become text, so they lose characters that XML does not allow. Documents in which two keys become equal are
/// outside this test.
fn as_keys_have_it(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (lexical::clean(key).into_owned(), as_keys_have_it(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(as_keys_have_it).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn the_property_table_has_every_property_of_the_schema_once_and_in_order() {
    let schema = schemas::document();
    let mut names: Vec<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(PROPERTIES.iter().map(|row| row.0).collect::<Vec<_>>(), names);
}

#[test]
fn an_empty_document_makes_a_valid_message() {
    let folder = tempfile::tempdir().unwrap();
    let messages = [written(&json!({})), written(&json!(null))];
    schemas::assert_valid(&messages, NewsmlVersion::V2_35, folder.path());
}

#[test]
fn every_media_type_makes_a_valid_message() {
    let kinds = [
        "picture",
        "video",
        "graphic",
        "text",
        "composite",
        "planning",
        "event",
        "audio",
        "component",
    ];
    let folder = tempfile::tempdir().unwrap();
    let messages = kinds.map(|kind| {
        let assignment = json!({"uri": "http://a.example/1", "type": kind, "ednote": "x"});
        written(&json!({
            "uri": "http://a.example/media/text/1",
            "type": kind,
            "datetime": "2026-03-03T10:00:00+01:00",
            "enddate": "2026-03-04",
            "headline": "One\ntwo",
            "body_html5": "<p>One<p>Two",
            "body_event": {"arena": "Hall", "city": "Town", "note_pm": "x"},
            "assignments": {"as1": assignment},
            "associations": {"a000": assignment},
        }))
    });
    schemas::assert_valid(&messages, NewsmlVersion::V2_35, folder.path());
}

#[test]
fn without_rights_the_versions_differ_in_their_numbers_only() {
    let document =
        json!({"uri": "http://a.example/1", "associations": {"a": {"uri": "http://a"}}});
    let [old, new] = [NewsmlVersion::V2_30, NewsmlVersion::V2_35]
        .map(|version| String::from_utf8(written_in(&document, version)).unwrap());
    let renumbered = new.replace("standardversion=\"2.35\"", "standardversion=\"2.30\"");
    assert_eq!(renumbered, old);
    assert_ne!(new, old);
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let document = json!({"uri": "http://a.example/1", "person": [{"name": "A"}, {"name": "B"}]});
    assert_eq!(written(&document), written(&document));
}

#[test]
fn output_size_is_linear_for_a_long_key_above_many_leaves() {
    let mut document = json!({"uri": "x", "type": "planning"});
    let revisions: Vec<_> = (0..1000).map(|n| json!({"uri": n.to_string()})).collect();
    document["assignments"] = json!({"k".repeat(100_000): {"uri": "a", "revisions": revisions}});
    document["body_pages"] = json!({"p".repeat(100_000): {"unit": "mm", "pagina": "1"}});
    let length = document.to_string().len();
    let written = written(&document).len();
    assert!(written < 6 * length, "{written} bytes of {length}");
}
