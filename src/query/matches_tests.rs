//! Tests of the matcher, among them against a second one that reads documents word by word.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Indexed, Query, parse};
use crate::item::Document;
use crate::types::ItemKey;

fn indexed(document: Value) -> Indexed {
    let key = ItemKey::parse("image/x-1").unwrap();
    let Value::Object(fields) = document else { panic!("an object") };
    let document = Document::from_fields(&key, fields).unwrap();
    Indexed::of(&key, &document, &TimeZone::UTC)
}

fn sample() -> Indexed {
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

/// A word of the test language: as it is written, folded, and whether it has an accent.
type Term = (&'static str, &'static str, bool);

const TERMS: [Term; 12] = [
    ("is", "is", false),
    ("isbrytare", "isbrytare", false),
    ("ol", "ol", false),
    ("öl", "ol", true),
    ("ÖL", "ol", true),
    ("øl", "ol", true),
    ("åka", "aka", true),
    ("aka", "aka", false),
    ("idé", "ide", true),
    ("ide\u{301}", "ide", true),
    ("straße", "strasse", true),
    ("Strasse", "strasse", false),
];

/// The spelling that two written words share when they are the same word.
fn exact(term: Term) -> &'static str {
    match term.0 {
        "ÖL" => "öl",
        "ide\u{301}" => "idé",
        "Strasse" => "strasse",
        written => written,
    }
}

/// A document as lists of values: headline, description, body, persons, and a day of March 2026.
#[derive(Clone, Debug)]
struct Plain {
    headline: Vec<Term>,
    description: Vec<Term>,
    body: Vec<Term>,
    persons: Vec<Vec<Term>>,
    day: Option<i8>,
}

impl Plain {
    fn document(&self) -> Value {
        let text = |terms: &[Term], between: &str| {
            terms.iter().map(|term| term.0).collect::<Vec<_>>().join(between)
        };
        let persons: Vec<_> =
            self.persons.iter().map(|name| json!({ "name": text(name, " ") })).collect();
        let body = format!("<p>{}</p>", text(&self.body, "</p> <p>"));
        let mut document = json!({
            "headline": text(&self.headline, " – "),
            "description_text": text(&self.description, ", "),
            "body_richhtml5": body,
            "person": persons,
        });
        if let Some(day) = self.day {
            document["date"] = json!(format!("2026-03-{day:02}"));
        }
        document
    }

    /// The values of a place, which are those of all places when it has no name.
    fn values(&self, place: &str) -> Vec<&[Term]> {
        let persons = || self.persons.iter().map(Vec::as_slice).collect();
        match place {
            "headline" => vec![&self.headline],
            "description_text" => vec![&self.description],
            "body_text" => vec![&self.body],
            "person.name" => persons(),
            _ => {
                let mut all: Vec<&[Term]> = persons();
                all.extend([self.headline.as_slice(), &self.description, &self.body]);
                all
            }
        }
    }
}

/// A query of the test language.
#[derive(Clone, Debug)]
enum Tree {
    Words(&'static str, Vec<Term>),
    Prefix(&'static str, &'static str),
    Days(i8, i8),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        let list = |parts: &[Self], between: &str| {
            let parts: Vec<_> = parts.iter().map(|part| format!("({})", part.text())).collect();
            parts.join(between)
        };
        match self {
            Self::Words(place, terms) => {
                let words: Vec<_> = terms.iter().map(|term| term.0).collect();
                format!("{}\"{}\"", named(place), words.join(" "))
            }
            Self::Prefix(place, prefix) => format!("{}{prefix}*", named(place)),
            Self::Days(from, until) => format!("date:[2026-03-{from:02} TO 2026-03-{until:02}]"),
            Self::And(parts) => list(parts, " "),
            Self::Or(parts) => list(parts, " OR "),
            Self::Not(part) => format!("NOT ({})", part.text()),
        }
    }

    fn holds(&self, plain: &Plain) -> bool {
        match self {
            Self::Words(place, terms) => {
                let values = plain.values(place);
                let same = |found: &[Term]| found.iter().zip(terms).all(|(a, b)| a.1 == b.1);
                let spelled = |term: &Term| {
                    !term.2
                        || values
                            .iter()
                            .any(|value| value.iter().any(|v| exact(*v) == exact(*term)))
                };
                values.iter().any(|value| value.windows(terms.len()).any(same))
                    && terms.iter().all(spelled)
            }
            Self::Prefix(place, prefix) => {
                let mut words = plain.values(place).into_iter().flatten();
                words.any(|word| word.1.starts_with(prefix))
            }
            Self::Days(from, until) => {
                plain.day.is_some_and(|day| (*from..=*until).contains(&day))
            }
            Self::And(parts) => parts.iter().all(|part| part.holds(plain)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(plain)),
            Self::Not(part) => !part.holds(plain),
        }
    }
}

fn named(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}:") }
}

fn terms(most: usize) -> impl Strategy<Value = Vec<Term>> {
    prop::collection::vec(prop::sample::select(TERMS.to_vec()), 1..=most)
}

fn plains() -> impl Strategy<Value = Plain> {
    let persons = prop::collection::vec(terms(3), 0..3);
    let day = prop::option::of(1..=9_i8);
    (terms(4), terms(5), terms(6), persons, day).prop_map(
        |(headline, description, body, persons, day)| Plain {
            headline,
            description,
            body,
            persons,
            day,
        },
    )
}

fn trees() -> impl Strategy<Value = Tree> {
    let place = || {
        prop::sample::select(vec!["", "headline", "description_text", "body_text", "person.name"])
    };
    let prefix = prop::sample::select(vec!["is", "isb", "ol", "st", "strass", "ak"]);
    let leaf = prop_oneof![
        4 => (place(), terms(3)).prop_map(|(place, terms)| Tree::Words(place, terms)),
        1 => (place(), prefix).prop_map(|(place, prefix)| Tree::Prefix(place, prefix)),
        1 => (1..=9_i8, 0..5_i8).prop_map(|(from, days)| Tree::Days(from, from + days)),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            parts.clone().prop_map(Tree::And),
            parts.prop_map(Tree::Or),
            inner.prop_map(|part| Tree::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_matcher_agrees_with_a_reading_word_by_word(plain in plains(), tree in trees()) {
        let query = parse(&tree.text(), &TimeZone::UTC).unwrap();
        let found = query.matches(&indexed(plain.document()));
        prop_assert_eq!(found, tree.holds(&plain), "{}", tree.text());
    }
}

#[test]
fn a_range_has_its_first_moment_and_not_its_end() {
    let Ok(Query::Dates(day)) = parse("date:2026-03-02", &TimeZone::UTC) else {
        panic!("a range");
    };
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    assert!(day.contains(at("2026-03-02T00:00:00Z")));
    assert!(day.contains(at("2026-03-02T23:59:59.999Z")));
    assert!(!day.contains(at("2026-03-03T00:00:00Z")));
    assert!(!day.contains(at("2026-03-01T23:59:59Z")));
}
