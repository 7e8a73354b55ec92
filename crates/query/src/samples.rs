//! Generates documents and queries for tests, with a second, word-by-word implementation of matching.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::IndexedDocument;
use model::ItemKey;
use model::item::Document;

/// Indexes the document of an image.
pub(crate) fn indexed(document: Value) -> IndexedDocument {
    let key = ItemKey::parse("image/x-1").unwrap();
    let Value::Object(fields) = document else { panic!("an object") };
    let document = Document::from_fields(&key, fields).unwrap();
    IndexedDocument::new(&key, &document, &TimeZone::UTC)
}

/// A word of the test language: as written, folded, and whether it has an accent.
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

/// Returns the spelling that two written words share if they are the same word.
fn exact(term: Term) -> &'static str {
    match term.0 {
        "ÖL" => "öl",
        "ide\u{301}" => "idé",
        "Strasse" => "strasse",
        written => written,
    }
}

/// Numbers of the test language, as text and as value.
const NUMBERS: [(&str, f64); 7] = [
    ("-1.5", -1.5),
    ("-1", -1.0),
    ("0", 0.0),
    ("0.1", 0.1),
    ("3", 3.0),
    ("3.0000000000000004", 3.000_000_000_000_000_4),
    ("70", 70.0),
];

/// The document of the image `x-1` as lists of values: headline, description, body, persons, a day of March
/// 2026, and numbers, which are the urgency and the relevance of subjects.
#[derive(Clone, Debug)]
pub(crate) struct SampleDocument {
    headline: Vec<Term>,
    description: Vec<Term>,
    body: Vec<Term>,
    persons: Vec<Vec<Term>>,
    day: Option<i8>,
    urgency: Option<f64>,
    relevances: Vec<u8>,
}

impl SampleDocument {
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
        if let Some(urgency) = self.urgency {
            document["urgency"] = json!(urgency);
        }
        let relevances = self.relevances.iter().map(|number| json!({ "relevance": number }));
        document["subject"] = relevances.collect();
        document
    }

    fn numbers(&self, field: &str) -> Vec<f64> {
        match field {
            "urgency" => self.urgency.into_iter().collect(),
            _ => self.relevances.iter().copied().map(f64::from).collect(),
        }
    }

    /// Returns the values of a field; without a name, those of all fields.
    fn values(&self, field: &str) -> Vec<&[Term]> {
        let persons = || self.persons.iter().map(Vec::as_slice).collect();
        match field {
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

/// A query of the test language; operators are in their written form.
#[derive(Clone, Debug)]
pub(crate) enum SampleQuery {
    All(&'static str),
    Words(&'static str, Vec<Term>),
    Prefix(&'static str, &'static str),
    Present(&'static str),
    Days(i8, i8),
    Number(&'static str, NumberRange),
    /// The written form of an item, and whether it is the item of the document.
    Item(&'static str, bool),
    And(&'static str, Vec<SampleQuery>),
    Or(&'static str, Vec<SampleQuery>),
    Not(&'static str, Box<SampleQuery>),
}

type SampleNumber = (&'static str, f64);

/// A range of numbers as written.
#[derive(Clone, Debug)]
pub(crate) enum NumberRange {
    /// One bound: `4`, `>4`, `>=4`, `<4`, `<=4`.
    Compared(&'static str, SampleNumber),
    /// Two bounds in brackets or braces, which include or exclude the number.
    Between((bool, SampleNumber), (bool, SampleNumber)),
}

impl NumberRange {
    fn text(&self) -> String {
        match self {
            Self::Compared(sign, (text, _)) => format!("{sign}{text}"),
            Self::Between((has_from, (from, _)), (has_until, (until, _))) => {
                let opening = if *has_from { '[' } else { '{' };
                let closing = if *has_until { ']' } else { '}' };
                format!("{opening}{from} TO {until}{closing}")
            }
        }
    }

    fn contains(&self, number: f64) -> bool {
        match self {
            Self::Compared(">", (_, bound)) => number > *bound,
            Self::Compared(">=", (_, bound)) => number >= *bound,
            Self::Compared("<", (_, bound)) => number < *bound,
            Self::Compared("<=", (_, bound)) => number <= *bound,
            Self::Compared(_, (_, bound)) => number.total_cmp(bound).is_eq(),
            Self::Between((has_from, (_, from)), (has_until, (_, until))) => {
                (if *has_from { number >= *from } else { number > *from })
                    && (if *has_until { number <= *until } else { number < *until })
            }
        }
    }
}

impl SampleQuery {
    pub(crate) fn text(&self) -> String {
        let list = |parts: &[Self], between: &str| {
            let parts: Vec<_> = parts.iter().map(|part| format!("({})", part.text())).collect();
            parts.join(between)
        };
        match self {
            Self::All(text) | Self::Item(text, _) => (*text).to_owned(),
            Self::Words(field, terms) => {
                let words: Vec<_> = terms.iter().map(|term| term.0).collect();
                format!("{}\"{}\"", field_prefix(field), words.join(" "))
            }
            Self::Prefix(field, prefix) => format!("{}{prefix}*", field_prefix(field)),
            Self::Present(field) => format!("{field}:*"),
            Self::Days(from, until) => format!("date:[2026-03-{from:02} TO 2026-03-{until:02}]"),
            Self::Number(field, range) => format!("{field}:{}", range.text()),
            Self::And(operator, parts) | Self::Or(operator, parts) => list(parts, operator),
            Self::Not(operator, part) => format!("{operator}({})", part.text()),
        }
    }

    pub(crate) fn holds(&self, document: &SampleDocument) -> bool {
        match self {
            Self::All(_) => true,
            Self::Words(field, terms) => {
                let values = document.values(field);
                // As in the index, a phrase is compared folded, and the spelling of an accented
                // word may be anywhere in the same field.
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
            Self::Prefix(field, prefix) => {
                let mut words = document.values(field).into_iter().flatten();
                words.any(|word| word.1.starts_with(prefix))
            }
            Self::Present(field) => document.values(field).into_iter().flatten().next().is_some(),
            Self::Days(from, until) => {
                document.day.is_some_and(|day| (*from..=*until).contains(&day))
            }
            Self::Number(field, range) => {
                document.numbers(field).into_iter().any(|number| range.contains(number))
            }
            Self::Item(_, is_this) => *is_this,
            Self::And(_, parts) => parts.iter().all(|part| part.holds(document)),
            Self::Or(_, parts) => parts.iter().any(|part| part.holds(document)),
            Self::Not(_, part) => !part.holds(document),
        }
    }
}

fn field_prefix(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}:") }
}

fn terms(count_max: usize) -> impl Strategy<Value = Vec<Term>> {
    prop::collection::vec(prop::sample::select(TERMS.to_vec()), 1..=count_max)
}

pub(crate) fn plains() -> impl Strategy<Value = SampleDocument> {
    let persons = prop::collection::vec(terms(3), 0..3);
    let day = prop::option::of(1..=9_i8);
    // Other texts have a word at least; an empty body makes `body_text:*` fail.
    let body = prop::collection::vec(prop::sample::select(TERMS.to_vec()), 0..=6);
    let number = prop::sample::select(NUMBERS.to_vec()).prop_map(|(_, number)| number);
    let numbers = (
        prop::option::of(number),
        prop::collection::vec(prop::sample::select(vec![0, 3, 70]), 0..3),
    );
    (terms(4), terms(5), body, persons, day, numbers).prop_map(
        |(headline, description, body, persons, day, (urgency, relevances))| SampleDocument {
            headline,
            description,
            body,
            persons,
            day,
            urgency,
            relevances,
        },
    )
}

fn number_ranges() -> impl Strategy<Value = NumberRange> {
    let number = || prop::sample::select(NUMBERS.to_vec());
    let sign = prop::sample::select(vec!["", ">", ">=", "<", "<="]);
    // Generated queries have to parse, and the parser refuses an empty range.
    let is_empty = |(from, until): &((bool, SampleNumber), (bool, SampleNumber))| {
        from.1.1 > until.1.1 || (from.1.0 == until.1.0 && !(from.0 && until.0))
    };
    // No number is between two adjacent doubles, so such a range is refused as empty.
    let neighbours = ("3", "3.0000000000000004");
    let are_neighbours = move |(from, until): &((bool, SampleNumber), (bool, SampleNumber))| {
        (from.1.0, until.1.0) == neighbours && !from.0 && !until.0
    };
    prop_oneof![
        (sign, number()).prop_map(|(sign, number)| NumberRange::Compared(sign, number)),
        ((any::<bool>(), number()), (any::<bool>(), number()))
            .prop_filter("a range", move |ends| !is_empty(ends) && !are_neighbours(ends))
            .prop_map(|(from, until)| NumberRange::Between(from, until)),
    ]
}

fn items() -> impl Strategy<Value = SampleQuery> {
    let spellings = prop::sample::select(vec![
        ("x-1", true),
        ("id:x-1", true),
        ("http://a.b/media/image/x-1", true),
        ("https://a.b:80/item/image/x-1?page=2", true),
        ("HTTP://a.b/media/image/x-1-crop_w10_h10_NormalPreview.jpg", true),
        ("X-1", false),
        ("x-2", false),
        ("id:x", false),
        ("http://a.b/media/text/x-1", false),
        ("http://a.b/media/image/x", false),
        ("http://a.b/other/image/x-1", false),
    ]);
    spellings.prop_map(|(text, is_this)| SampleQuery::Item(text, is_this))
}

pub(crate) fn trees() -> impl Strategy<Value = SampleQuery> {
    let text_field = || {
        prop::sample::select(vec!["", "headline", "description_text", "body_text", "person.name"])
    };
    let prefix = prop::sample::select(vec!["is", "isb", "ol", "st", "strass", "ak"]);
    let present = prop::sample::select(vec!["headline", "body_text", "person.name"]);
    let field = prop::sample::select(vec!["urgency", "subject.relevance"]);
    let leaf = prop_oneof![
        8 => (text_field(), terms(3)).prop_map(|(field, terms)| SampleQuery::Words(field, terms)),
        2 => (text_field(), prefix).prop_map(|(field, prefix)| SampleQuery::Prefix(field, prefix)),
        2 => (1..=9_i8, 0..5_i8).prop_map(|(from, days)| SampleQuery::Days(from, from + days)),
        4 => (field, number_ranges()).prop_map(|(field, range)| SampleQuery::Number(field, range)),
        1 => present.prop_map(SampleQuery::Present),
        2 => items(),
        1 => prop::sample::select(vec!["*", "*:*"]).prop_map(SampleQuery::All),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 1..4);
        let and = prop::sample::select(vec![" ", " AND ", " && ", "&&", " – "]);
        let or = prop::sample::select(vec![" OR ", " || ", "||"]);
        let not = prop::sample::select(vec!["NOT ", "!", "-"]);
        prop_oneof![
            (and, parts.clone()).prop_map(|(operator, parts)| SampleQuery::And(operator, parts)),
            (or, parts).prop_map(|(operator, parts)| SampleQuery::Or(operator, parts)),
            (not, inner).prop_map(|(operator, part)| SampleQuery::Not(operator, Box::new(part))),
        ]
    })
}
