//! Tests of `Query::matches`, among them against a second implementation that reads documents word by word.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::json;

use super::samples::{indexed, plains, trees};
use super::{IndexedDocument, Query, parse};

fn sample() -> IndexedDocument {
    indexed(json!({
        "headline": "Isbrytare i Strömmen",
        "description_text": "En isbrytare på måndagen. Foto: Anna Andersson",
        "body_html5": "<p>Hon åt glass</p><p>i Malmö</p>",
        "person": [{ "name": "Erik Berg" }, { "name": "Eva Ström" }],
        "subject": [{ "code": "13000000" }],
        "urgency": 4,
        "date": "2026-03-02",
    }))
}

fn check(query: &str, expected: bool) {
    let parsed = parse(query, &TimeZone::UTC).unwrap();
    assert_eq!(parsed.matches(&sample()), expected, "{query}");
}

#[test]
fn words_are_found_anywhere_and_in_their_place() {
    for query in ["", "isbrytare", "ISBRYTARE anna", "berg", "13000000", "headline:isbrytare"] {
        check(query, true);
    }
    for query in ["saknas", "headline:anna", "person.name:anna", "isbrytare saknas", "4"] {
        check(query, false);
    }
    check("saknas OR isbrytare", true);
    check("-saknas", true);
    check("isbrytare -anna", false);
    check("urgency:4", true);
    check("body_text:malmo", true);
    check("uri:https://any.host/media/image/x-1", true);
    check("uri:https://any.host/media/image/x-2", false);
    check("mediatype:image type:picture pubstatus:usable", true);
}

#[test]
fn an_accent_in_the_query_means_itself() {
    check("strommen", true);
    check("Strömmen", true);
    check("strømmen", false);
    check("isbrytåre", false);
    check("headline:strömmen", true);
    check("description_text:strömmen", false);
    check("person.name:ström", true);
    check("person.name:\"eva ström\"", true);
    check("headline:ström", false);
    check("strö*", true);
    check("malmö hon åt", true);
}

#[test]
fn phrases_stay_within_one_value() {
    check("\"isbrytare i\"", true);
    check("\"i isbrytare\"", false);
    check("\"erik berg\"", true);
    check("\"berg eva\"", false);
    check("person.name:\"erik berg\"", true);
    check("person.name:\"berg eva\"", false);
    check("\"åt glass i malmö\"", true);
    check("isbrytare-i-str*", true);
    check("person.name:eva-st*", true);
    check("person.name:berg-ev*", false);
}

#[test]
fn prefixes_find_beginnings_of_words() {
    check("isb*", true);
    check("brytare*", false);
    check("person.name:be*", true);
    check("person*", false);
    check("headline:er*", false);
}

#[test]
fn dates_lie_in_ranges() {
    check("date:2026-03-02", true);
    check("date:2026-03-01", false);
    check("date:[2026-03-01 TO 2026-03-02}", false);
    check("date:[2026 TO *]", true);
    check("date:[* TO *]", true);
    check("datetime:[* TO *]", false);
    check("-datetime:[* TO *]", true);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_matcher_agrees_with_a_word_by_word_evaluation(plain in plains(), tree in trees()) {
        let query = parse(&tree.text(), &TimeZone::UTC).unwrap();
        let found = query.matches(&indexed(plain.document()));
        prop_assert_eq!(found, tree.holds(&plain), "{}", tree.text());
    }
}

#[test]
fn a_range_includes_its_start_and_excludes_its_end() {
    let Ok(Query::Dates(day)) = parse("date:2026-03-02", &TimeZone::UTC) else {
        panic!("a range");
    };
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    assert!(day.contains(at("2026-03-02T00:00:00Z")));
    assert!(day.contains(at("2026-03-02T23:59:59.999Z")));
    assert!(!day.contains(at("2026-03-03T00:00:00Z")));
    assert!(!day.contains(at("2026-03-01T23:59:59Z")));
}

#[test]
fn a_date_is_compared_in_milliseconds() {
    let document = indexed(json!({ "datetime": "2026-03-02T09:15:00.5002Z" }));
    let found = |query: &str| parse(query, &TimeZone::UTC).unwrap().matches(&document);
    assert!(found("datetime:2026-03-02T09:15:00.5Z"));
    assert!(found("datetime:[2026-03-02T09:15:00.5009Z TO *]"));
    assert!(!found("datetime:{2026-03-02T09:15:00.5Z TO *]"));
    assert!(!found("datetime:[* TO 2026-03-02T09:15:00.5Z}"));
}
