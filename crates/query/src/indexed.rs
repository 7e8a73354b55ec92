//! The searchable content of a document, in the spelling of the index.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::facet::Facet;
use super::field::{DateField, TextField};
use super::fold::{FoldBuffer, runs};
use super::html;
use super::number::{FiniteNumber, NumberField};
use super::property::{self, IndexedProperty};
use super::time_interval;
use super::tree;
use crate::limits::{FACET_CHARS_MAX, FACET_VALUES_MAX, INDEXED_WORDS_MAX};
use model::ItemKey;
use model::item::Document;

/// The searchable content of one document: texts as tokens, facets, dates, numbers.
///
/// The texts are tokens between single spaces. A word is its folded form, which has letters and
/// digits only; the token `.` stands between two values of a property, so that no phrase reaches
/// from one into the next.
///
/// Tokens of `tags` never equal a word:
/// - `ek=erik`: a word of the property with that short name, in order, values of it that are
///   neighbours parted by `.`;
/// - `==ö`: a word with an accent that stands in headline, description, body or rest; `h==ö`,
///   `d==ö`, `b==ö`, `ek==ö`: the place where it stands. Each of them once;
/// - `i==x-1`: the id of the item, as it is.
///
/// Tokens have lower-case letters and digits of any script, combining marks where a script has no
/// letter for a letter with its mark, and in `tags` also `.`, `_` and `=`; ids have capitals and
/// `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedDocument {
    /// Words of the headline.
    pub headline: String,
    /// Words of `description_text`.
    pub description: String,
    /// Words of the body.
    pub body: String,
    /// Words of the other properties that a word without a field searches.
    pub rest: String,
    /// Tokens that are no words: words of one property, words with accents.
    pub tags: String,
    /// The distinct values of every facet, in the order of [`Facet::ALL`].
    pub facets: [Vec<String>; Facet::ALL.len()],
    /// The dates of the document.
    pub dates: Vec<(DateField, Timestamp)>,
    /// The numbers of the document in their order; of lists, those of each entry.
    pub numbers: Vec<(NumberField, FiniteNumber)>,
    /// `language` as it is written, a language tag such as `sv` or `en-GB`; empty where it is
    /// unknown.
    pub language: String,
}

/// Bytes of the tags of a photograph, so that they seldom grow; no limit.
const TAGS_BYTES: usize = 4096;

/// The token between two values.
pub(super) const GAP: &str = ".";

impl IndexedDocument {
    /// Reads the searchable content of `document`, the document of item `key`; dates without a
    /// time begin at midnight in `zone`.
    ///
    /// Of a document with more than [`INDEXED_WORDS_MAX`] words those of the properties come
    /// first, the body last.
    #[must_use]
    pub fn of(key: &ItemKey, document: &Document, zone: &TimeZone) -> Self {
        let mut reader =
            WordCollector { tags: String::with_capacity(TAGS_BYTES), ..WordCollector::default() };
        reader.own(key, document);
        for top in property::TOP {
            if let Some(value) = document.value(top) {
                reader.walk(&mut top.to_owned(), value);
            }
        }
        reader.keywords(document);
        let headline = document.text("headline").unwrap_or_default();
        let description = document.text("description_text").unwrap_or_default();
        let headline = reader.prose(TextField::Headline, headline);
        let description = reader.prose(TextField::Description, description);
        let body = match document.text("body_text") {
            Some(text) => reader.prose(TextField::Body, text),
            None => {
                let rich = document.text("body_richhtml5");
                let html = rich.or_else(|| document.text("body_html5"));
                reader.prose(TextField::Body, &html.map(html::text).unwrap_or_default())
            }
        };
        let WordCollector { rest, mut tags, accents, numbers, .. } = reader;
        push_accents(&mut tags, accents);
        let facets = Facet::ALL.map(|facet| facet_values(document, facet));
        let dates = dates(document, zone);
        let language = document.text("language").unwrap_or_default().to_owned();
        Self { headline, description, body, rest, tags, facets, dates, numbers, language }
    }
}

/// Gathers the words of one document.
#[derive(Default)]
struct WordCollector {
    rest: String,
    tags: String,
    /// The property of the last value in `tags`.
    last: Option<&'static str>,
    /// Tokens of words with accents, some of them more than once.
    accents: Vec<String>,
    numbers: Vec<(NumberField, FiniteNumber)>,
    /// Words read so far.
    read: usize,
    fold: FoldBuffer,
}

impl WordCollector {
    /// What the document says about the item itself; it may be left out there.
    fn own(&mut self, key: &ItemKey, document: &Document) {
        self.tags.push_str(&tree::id_token(&key.id));
        self.named(property::URI, &key.to_string());
        self.named(property::MEDIA_TYPE, key.media_type.as_str());
        self.named(property::TYPE, key.media_type.document_type());
        self.named(property::PUB_STATUS, document.pub_status().as_str());
    }

    fn walk(&mut self, path: &mut String, value: &Value) {
        match value {
            Value::Object(fields) => {
                let end = path.len();
                for (name, value) in fields.iter().filter(|(name, _)| *name != property::GEOMETRY)
                {
                    path.push('.');
                    path.push_str(name);
                    self.walk(path, value);
                    path.truncate(end);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.walk(path, value)),
            Value::String(text) => self.named(path, text),
            Value::Number(number) => match NumberField::find(path) {
                Some(field) => {
                    let number = number.as_f64().and_then(FiniteNumber::new);
                    self.numbers.extend(number.map(|number| (field, number)));
                }
                None => self.named(path, &number_text(number)),
            },
            Value::Bool(is) => self.named(path, if *is { "true" } else { "false" }),
            Value::Null => {}
        }
    }

    fn keywords(&mut self, document: &Document) {
        let subjects = document.value("subject").and_then(Value::as_array);
        for subject in subjects.into_iter().flatten() {
            let text = |name| subject.get(name).and_then(Value::as_str).unwrap_or_default();
            if text("scheme").contains(property::KEYWORD) {
                self.named(property::KEYWORD, text("name"));
            }
        }
    }

    /// A value of the property with this path, if there is one.
    fn named(&mut self, path: &str, text: &str) {
        let Some(property) = property::property(path) else { return };
        if property::names_items(path) {
            self.value(property, &property::item_words(text));
        } else {
            self.value(property, text);
        }
    }

    fn value(&mut self, property: IndexedProperty, text: &str) {
        let IndexedProperty { name, free, code } = property;
        let mut first = true;
        for run in runs(text) {
            if !self.read(run) {
                continue;
            }
            if first {
                // No phrase reaches from one property into another.
                if self.last == Some(name) {
                    gap(&mut self.tags);
                }
                self.last = Some(name);
                if free {
                    gap(&mut self.rest);
                }
            }
            first = false;
            space(&mut self.tags);
            self.tags.extend(code);
            self.tags.push('=');
            self.tags.push_str(&self.fold.folded);
            if free {
                space(&mut self.rest);
                self.rest.push_str(&self.fold.folded);
            }
            self.accent(TextField::Named(name), free);
        }
    }

    fn prose(&mut self, place: TextField, text: &str) -> String {
        let mut column = String::with_capacity(text.len());
        for run in runs(text) {
            if self.read(run) {
                space(&mut column);
                column.push_str(&self.fold.folded);
                self.accent(place, true);
            }
        }
        column
    }

    /// Folds a run; `false` when there is nothing of it to index.
    fn read(&mut self, run: &str) -> bool {
        if self.read >= INDEXED_WORDS_MAX || !self.fold.read(run) {
            return false;
        }
        self.read += 1;
        true
    }

    /// Notes where the word that was read stands, if it has an accent.
    fn accent(&mut self, place: TextField, free: bool) {
        let Some(exact) = self.fold.exact() else { return };
        self.accents.push(tree::accent(place, exact));
        if free {
            self.accents.push(tree::accent(TextField::Anywhere, exact));
        }
    }
}

/// A number as people write it.
fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        // `4.0` is 4; the display of such a float has no point.
        Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => float.to_string(),
        _ => number.to_string(),
    }
}

fn space(column: &mut String) {
    if !column.is_empty() {
        column.push(' ');
    }
}

fn gap(column: &mut String) {
    if !column.is_empty() {
        column.push(' ');
        column.push_str(GAP);
    }
}

fn push_accents(tags: &mut String, mut accents: Vec<String>) {
    accents.sort_unstable();
    accents.dedup();
    for token in accents {
        space(tags);
        tags.push_str(&token);
    }
}

fn facet_values(document: &Document, facet: Facet) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut add = |text: &str| {
        let text = text.trim();
        let end = text.char_indices().nth(FACET_CHARS_MAX).map_or(text.len(), |(end, _)| end);
        let text = text[..end].trim_end();
        let known = values.iter().any(|value| value == text);
        if !text.is_empty() && !known && values.len() < FACET_VALUES_MAX {
            values.push(text.to_owned());
        }
    };
    match facet.as_str().split_once('.') {
        Some((list, field)) => document.texts(list, field).for_each(add),
        None => document.text(facet.as_str()).into_iter().for_each(&mut add),
    }
    values
}

fn dates(document: &Document, zone: &TimeZone) -> Vec<(DateField, Timestamp)> {
    let read = |field: DateField| {
        let text = document.text(field.as_str())?;
        let moment = match field {
            DateField::Date | DateField::EndDate => time_interval::parse_day(text, zone),
            DateField::VersionCreated
            | DateField::VersionStored
            | DateField::FirstCreated
            | DateField::ContentCreated
            | DateField::DateTime
            | DateField::EndDateTime
            | DateField::Embargoed
            | DateField::Expires => time_interval::parse_time(text, zone),
        };
        Some((field, moment?))
    };
    DateField::ALL.into_iter().filter_map(read).collect()
}
