//! Documents and queries that tests generate, with a second reading of them word by word.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Indexed;
use crate::item::Document;
use crate::types::ItemKey;

/// What of the document of an image is searched.
pub(crate) fn indexed(document: Value) -> Indexed {
    let key = ItemKey::parse("image/x-1").unwrap();
    let Value::Object(fields) = document else { panic!("an object") };
    let document = Document::from_fields(&key, fields).unwrap();
    Indexed::of(&key, &document, &TimeZone::UTC)
}

/// A word of the test language: as it is written, folded, and whether it has an accent.
pub(crate) type Term = (&'static str, &'static str, bool);

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
pub(crate) struct Plain {
    headline: Vec<Term>,
    description: Vec<Term>,
    body: Vec<Term>,
    persons: Vec<Vec<Term>>,
    day: Option<i8>,
}

impl Plain {
    pub(crate) fn document(&self) -> Value {
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
pub(crate) enum Tree {
    Words(&'static str, Vec<Term>),
    Prefix(&'static str, &'static str),
    Days(i8, i8),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<Tree>),
}

impl Tree {
    pub(crate) fn text(&self) -> String {
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

    pub(crate) fn holds(&self, plain: &Plain) -> bool {
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

pub(crate) fn plains() -> impl Strategy<Value = Plain> {
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

pub(crate) fn trees() -> impl Strategy<Value = Tree> {
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
