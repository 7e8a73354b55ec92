//! Tests of the searchable content of a document.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    DateField, Facet, FiniteNumber, IndexedDocument, IndexedFacts, NumberField, PictureFacts,
    RightsTerms, property,
};
use crate::limits::{FACET_CHARS_MAX, FACET_VALUES_MAX, INDEXED_WORDS_MAX};
use model::ItemKey;
use model::item::Document;

fn indexed_as(key: &str, document: Value) -> IndexedDocument {
    let key = ItemKey::parse(key).unwrap();
    let Value::Object(fields) = document else { panic!("an object") };
    let document = Document::from_fields(&key, fields).unwrap();
    IndexedDocument::new(&key, &document, &TimeZone::get("Europe/Stockholm").unwrap())
}

fn indexed(document: Value) -> IndexedDocument {
    indexed_as("image/x-1", document)
}

/// Returns the tags without those that every item has.
fn tags(indexed: &IndexedDocument) -> String {
    let own = "i==x-1 uri=image uri=x uri=1 mediatype=image type=picture pubstatus=usable";
    let tags = spelled_out(&indexed.tags);
    let rest = tags.strip_prefix(own).expect("tags of the item itself");
    rest.strip_prefix(" ").unwrap_or(rest).to_owned()
}

/// Replaces the codes of properties in tags with their names.
fn spelled_out(tags: &str) -> String {
    let spell = |token: &str| {
        let known = property::names().find(|name| {
            let code = String::from_iter(property::code(name));
            token.strip_prefix(&code).is_some_and(|rest| rest.starts_with('='))
        });
        known.map_or_else(|| token.to_owned(), |name| format!("{name}{}", &token[2..]))
    };
    tags.split(' ').map(spell).collect::<Vec<_>>().join(" ")
}

#[test]
fn texts_are_folded_words_without_gaps() {
    let found = indexed(json!({
        "headline": "STOCKHOLM 20260302\nIsbrytare i Strömmen",
        "description_text": "En isbrytare.\nFoto: Å",
        "body_text": "Två",
    }));
    assert_eq!(found.headline, "stockholm 20260302 isbrytare i strommen");
    assert_eq!(found.description, "en isbrytare foto a");
    assert_eq!(found.body, "tva");
    assert_eq!(found.rest, "");
    assert_eq!(found.language, "");
    assert_eq!(indexed(json!({ "language": "nb-NO" })).language, "nb-NO");
    let expected = "==strömmen ==två ==å b==två d==å h==strömmen";
    assert_eq!(tags(&found), expected);
}

#[test]
fn values_are_parted_and_named() {
    let found = indexed(json!({
        "byline": "Åsa Ek/TT",
        "person": [{ "name": "Erik Berg", "rel": "mentions" }, { "name": "Eva" }],
        "subject": [
            { "code": "13000000", "name": "Teknik", "scheme": "http://tt.se/spec/subref/1.0/",
              "relevance": 5 },
            { "name": "is", "scheme": "http://tt.se/spec/keyword/1.0/", "relevance": 70 },
        ],
        "urgency": -0.5,
        "wordcount": 120.0,
        "signals": { "retransmission": true },
        "version": "1",
    }));
    assert_eq!(found.rest, "asa ek tt . erik berg . eva . 13000000 . teknik . is");
    let expected = "byline=asa byline=ek byline=tt person.name=erik person.name=berg \
        person.rel=mentions person.name=eva signals.retransmission=true \
        subject.code=13000000 subject.name=teknik . subject.name=is version=1 keyword=is ==åsa \
        byline==åsa";
    assert_eq!(tags(&found), expected);
    let number = |text| FiniteNumber::parse(text).unwrap();
    let numbers = [
        (NumberField::SubjectRelevance, number("5")),
        (NumberField::SubjectRelevance, number("70")),
        (NumberField::Urgency, number("-0.5")),
        (NumberField::WordCount, number("120")),
    ];
    assert_eq!(found.numbers, numbers);
}

#[test]
fn the_item_itself_is_named() {
    let found = indexed_as("text/250924-Ko_1", json!({ "pubstatus": "replaced" }));
    let expected = "i==250924-Ko_1 uri=text uri=250924 uri=ko uri=1 mediatype=text type=text pubstatus=replaced";
    assert_eq!(spelled_out(&found.tags), expected);
}

#[test]
fn uris_of_other_items_have_no_host() {
    let found = indexed(json!({ "replacedby": "https://tt.se/media/image/y2" }));
    assert_eq!(tags(&found), "replacedby=image replacedby=y2");
}

#[test]
fn the_body_is_the_text_or_the_text_of_the_html() {
    let html = "<p>Ett&nbsp;h&aring;l</p><p>två</p>";
    let body = |document| indexed(document).body;
    assert_eq!(body(json!({ "body_html5": html })), "ett hal tva");
    assert_eq!(body(json!({ "body_html5": html, "body_richhtml5": "<p>rik" })), "rik");
    assert_eq!(body(json!({ "body_html5": html, "body_text": "Text" })), "text");
}

#[test]
fn facets_have_each_value_once() {
    let long = "å".repeat(FACET_CHARS_MAX + 1);
    let many: Vec<_> =
        (0..FACET_VALUES_MAX + 9).map(|n| json!({ "name": n.to_string() })).collect();
    let found = indexed(json!({
        "copyrightholder": " TT ",
        "product": [{ "code": "B" }, { "code": "A" }, { "code": "B" }, { "code": " " }, {}],
        "place": [{ "name": long }],
        "person": many,
    }));
    let values = |facet: Facet| found.facets[facet.index()].as_slice();
    assert_eq!(values(Facet::CopyrightHolder), ["TT"]);
    assert_eq!(values(Facet::ProductCode), ["B", "A"]);
    assert_eq!(values(Facet::PlaceName), ["å".repeat(FACET_CHARS_MAX)]);
    assert_eq!(values(Facet::PersonName).len(), FACET_VALUES_MAX);
    assert_eq!(values(Facet::SubjectCode), [""; 0]);
}

#[test]
fn what_is_stated_besides_the_document_is_found_by_its_code_or_its_uri() {
    let key = ItemKey::parse("image/x-1").unwrap();
    let document = Document::parse(&key, "{}").unwrap();
    let art = "http://cv.iptc.org/newscodes/digitalsourcetype/digitalArt";
    let (source, mining) = (Some(art), Some("http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED"));
    let stated = RightsTerms { digital_source_type: source, data_mining: mining };
    let facts = IndexedFacts { stated, picture: None, picture_hash: None };
    let found = IndexedDocument::with_facts(&key, &document, facts, &TimeZone::UTC);
    let expected = "digitalsourcetype=digitalart datamining=dmi datamining=prohibited";
    assert_eq!(tags(&found), expected);
    assert_eq!(found.facets[Facet::DigitalSourceType.index()], ["digitalArt"]);
    assert_eq!(found.rest, "");
    let matches = |text: &str| {
        let query = super::parse(text, &TimeZone::UTC).unwrap();
        assert!(!query.matches(&indexed(json!({}))), "{text}");
        query.matches(&found)
    };
    let by_uri = format!("digitalsourcetype:\"{art}\"");
    for text in [
        "digitalsourcetype:digitalArt",
        "DigitalSourceType:DIGITALART",
        by_uri.as_str(),
        "digitalsourcetype:digital*",
        "digitalsourcetype:*",
        "datamining:DMI-PROHIBITED",
        "datamining:prohibited -digitalsourcetype:print",
    ] {
        assert!(matches(text), "{text}");
    }
    assert!(!matches("digitalsourcetype:print") && !matches("digitalArt"));
}

#[test]
fn a_picture_is_found_by_its_shape_its_size_and_its_colours() {
    let key = ItemKey::parse("image/x-1").unwrap();
    let document = json!({ "byline": "Eva Ek", "subject": [{ "code": "1", "name": "Hav" }] });
    let document = Document::parse(&key, &document.to_string()).unwrap();
    let picture = PictureFacts { width: 6000, height: 3000, is_monochrome: Some(true) };
    let facts = IndexedFacts { picture: Some(picture), ..IndexedFacts::default() };
    let found = IndexedDocument::with_facts(&key, &document, facts, &TimeZone::UTC);
    let values = |facet: Facet| found.facets[facet.index()].clone();
    assert_eq!(values(Facet::Orientation), ["landscape", "panorama"]);
    assert_eq!(values(Facet::Colour), ["monochrome"]);
    assert_eq!(values(Facet::MediaType), ["image"]);
    assert_eq!(values(Facet::Byline), ["Eva Ek"]);
    assert_eq!(values(Facet::SubjectName), ["Hav"]);
    let matches = |text: &str| super::parse(text, &TimeZone::UTC).unwrap().matches(&found);
    for text in [
        "orientation:landscape colour:monochrome",
        "orientation:panorama -orientation:portrait",
        "width:>=6000 height:[2000 TO 3000]",
        "(width:>=9000 OR height:>=3000) orientation:*",
    ] {
        assert!(matches(text), "{text}");
    }
    for text in ["orientation:square", "width:>6000", "colour:colour", "landscape"] {
        assert!(!matches(text), "{text}");
    }
    // Nothing is known about the picture of a text.
    let plain = indexed(json!({}));
    assert!(!super::parse("width:>=0 OR colour:*", &TimeZone::UTC).unwrap().matches(&plain));
}

#[test]
fn dates_begin_in_the_zone() {
    let found = indexed(json!({
        "date": "2026-03-02",
        "datetime": "2026-03-02T09:15:00+01:00",
        "versioncreated": "2026-03-02T08:00:00Z",
    }));
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let expected = [
        (DateField::VersionCreated, at("2026-03-02T08:00:00Z")),
        (DateField::Date, at("2026-03-01T23:00:00Z")),
        (DateField::DateTime, at("2026-03-02T08:15:00Z")),
    ];
    assert_eq!(found.dates, expected);
}

#[test]
fn a_long_document_keeps_its_properties() {
    let found = indexed(json!({
        "slugline": "is",
        "body_text": "ord ".repeat(INDEXED_WORDS_MAX + 5),
    }));
    assert_eq!(found.rest, "is");
    // The properties of the item itself use six words.
    assert_eq!(found.body.split(' ').count(), INDEXED_WORDS_MAX - 7);
}

#[test]
fn tokens_have_only_what_the_index_expects() {
    let found = indexed(json!({
        "headline": "½ Ⅷ ﷺ ﬁ 한국 कि Ǆ ʼn İ “citat” a=b+c . d_e",
        "person": [{ "name": "a=b . + =" }],
    }));
    let texts = [&found.headline, &found.rest, &found.description, &found.body];
    for token in texts.into_iter().flat_map(|text| text.split(' ')).filter(|token| *token != ".") {
        assert!(token.chars().all(char::is_alphanumeric), "{token:?}");
    }
    for token in found.tags.split(' ').filter(|token| *token != ".") {
        let special = token.matches(['=', '+']).count();
        assert!(special > 0 && !token.chars().any(char::is_whitespace), "{token:?}");
    }
}
