//! Extracts the searchable content of a document, in the form of the index.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;
use strum::{EnumCount, IntoEnumIterator};

use super::facet::Facet;
use super::field::{DateField, TextField};
use super::fold::{FoldBuffer, runs};
use super::number::{FiniteNumber, NumberField};
use super::picture::PictureFacts;
use super::property::{self, IndexedProperty};
use super::{html, time_interval, tree};
use crate::limits::{FACET_CHARS_MAX, FACET_VALUES_MAX, INDEXED_WORDS_MAX};
use model::item::Document;
use model::{ItemKey, PictureHash};

/// The indexed rights in a picture: terms of vocabularies, as URIs or codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RightsTerms<'a> {
    /// The way in which the picture was created.
    pub digital_source_type: Option<&'a str>,
    /// The permission for data mining.
    pub data_mining: Option<&'a str>,
}

/// The indexed facts about an item that its document does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexedFacts<'a> {
    /// The effective rights in the item's picture.
    pub stated: RightsTerms<'a>,
    /// The item's largest picture; `None` if it has no picture.
    pub picture: Option<PictureFacts>,
    /// The perceptual hash of the item's picture; `None` without a picture, or if the picture has nearly no
    /// contrast.
    pub picture_hash: Option<PictureHash>,
}

/// The searchable content of one document: texts as tokens, facets, dates, numbers.
///
/// Each text consists of tokens separated by single spaces. A word is in its folded form, which has only letters
/// and digits. The token `.` separates two values of a property, so that no phrase matches across them.
///
/// Tokens of `tags` never equal a word:
/// - `ek=erik`: a word of the property with the short name `ek`, in order; `.` separates adjacent values of the
///   same property;
/// - `==ö`: a word with an accent in headline, description, body or rest; `h==ö`, `d==ö`, `b==ö`, `ek==ö`: the
///   same in one text or property. Each token occurs once;
/// - `i==x-1`: the id of the item, unchanged.
///
/// Tokens have lower-case letters and digits of any script, combining marks if a script has no precomposed letter,
/// and in `tags` also `.`, `_` and `=`. Ids also have capitals and `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedDocument {
    /// Words of the headline.
    pub headline: String,
    pub description: String,
    /// Words of the body.
    pub body: String,
    /// Words of the other properties that words without a field search.
    pub rest: String,
    /// Tokens other than plain words: words of one property, words with accents, the id.
    pub tags: String,
    /// The distinct values of every facet, by [`Facet::index`].
    pub facets: [Vec<String>; Facet::COUNT],
    /// The dates of the document.
    pub dates: Vec<(DateField, Timestamp)>,
    /// The numbers of the document in order, including numbers in lists.
    pub numbers: Vec<(NumberField, FiniteNumber)>,
    /// The property `language` unchanged, a language tag such as `sv` or `en-GB`; empty if it is unknown.
    pub language: String,
    /// The perceptual hash of the picture; see [`IndexedFacts::picture_hash`].
    pub picture_hash: Option<PictureHash>,
}

/// Initial capacity in bytes for the tags, enough for most photographs; not a limit.
const TAGS_BYTES: usize = 4096;

/// The separator token between two values.
pub(super) const GAP: &str = ".";

impl IndexedDocument {
    /// Extracts the searchable content of `document`, the document of item `key`. Dates without a time begin at
    /// midnight in `zone`.
    ///
    /// If a document has more than [`INDEXED_WORDS_MAX`] words, words of properties have priority and the body is
    /// cut first.
    pub fn new(key: &ItemKey, document: &Document, zone: &TimeZone) -> Self {
        Self::with_facts(key, document, IndexedFacts::default(), zone)
    }

    /// Extracts the content of [`IndexedDocument::new`] together with `facts`.
    pub fn with_facts(
        key: &ItemKey,
        document: &Document,
        facts: IndexedFacts<'_>,
        zone: &TimeZone,
    ) -> Self {
        let mut reader =
            WordCollector { tags: String::with_capacity(TAGS_BYTES), ..WordCollector::default() };
        reader.add_identity(key, document);
        // The body comes last, because the limit on words cuts the text that is read last.
        for name in property::TOP_LEVEL_NAMES.iter().copied() {
            if let Some(value) = document.value(name) {
                reader.walk(&mut name.to_owned(), value);
            }
        }
        reader.keywords(document);
        reader.facts(facts);
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
        let mut facets: [Vec<String>; Facet::COUNT] = Default::default();
        for facet in Facet::iter() {
            facets[facet.index()] = facet_values(key, document, facts, facet);
        }
        Self {
            headline,
            description,
            body,
            rest,
            tags,
            facets,
            dates: dates(document, zone),
            numbers,
            language: document.text("language").unwrap_or_default().to_owned(),
            picture_hash: facts.picture_hash,
        }
    }
}

/// Collects the words of one document.
#[derive(Default)]
struct WordCollector {
    rest: String,
    tags: String,
    /// The property of the most recent value in `tags`.
    last: Option<&'static str>,
    /// Tokens of words with accents, which may be repeated.
    accents: Vec<String>,
    numbers: Vec<(NumberField, FiniteNumber)>,
    /// Number of words read so far.
    words_read: usize,
    fold: FoldBuffer,
}

impl WordCollector {
    /// Adds the item's identity and the properties with defaults, which its document may omit.
    fn add_identity(&mut self, key: &ItemKey, document: &Document) {
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
            // List indexes are not part of a path: `subject.name` means the names of all subjects.
            Value::Array(values) => values.iter().for_each(|value| self.walk(path, value)),
            Value::String(text) => self.named(path, text),
            Value::Number(number) => match path.parse::<NumberField>() {
                Ok(field) => {
                    // Compared as a number, not as a word.
                    let number = number.as_f64().and_then(FiniteNumber::new);
                    self.numbers.extend(number.map(|number| (field, number)));
                }
                Err(_) => self.named(path, &number_text(number)),
            },
            Value::Bool(flag) => self.named(path, if *flag { "true" } else { "false" }),
            Value::Null => {}
        }
    }

    fn keywords(&mut self, document: &Document) {
        let subjects = document.value("subject").and_then(Value::as_array);
        for subject in subjects.into_iter().flatten() {
            if member_text(subject, "scheme").contains(property::KEYWORD) {
                self.named(property::KEYWORD, member_text(subject, "name"));
            }
        }
    }

    /// Adds the facts that are not in the document.
    fn facts(&mut self, facts: IndexedFacts<'_>) {
        let RightsTerms { digital_source_type, data_mining } = facts.stated;
        self.named(property::DIGITAL_SOURCE_TYPE, digital_source_type.unwrap_or_default());
        self.named(property::DATA_MINING, data_mining.unwrap_or_default());
        let Some(picture) = facts.picture else { return };
        picture.orientations().for_each(|shape| self.named(property::ORIENTATION, shape));
        self.named(property::COLOUR, picture.colour().unwrap_or_default());
        let sides = [(NumberField::Width, picture.width), (NumberField::Height, picture.height)];
        for (field, px) in sides {
            let number = FiniteNumber::new(f64::from(px));
            self.numbers.extend(number.map(|number| (field, number)));
        }
    }

    /// Adds a value of the property with this path if the property is indexed.
    fn named(&mut self, path: &str, text: &str) {
        let Some(property) = property::property(path) else { return };
        self.value(property, &property::searched_text(path, text));
    }

    fn value(&mut self, property: IndexedProperty, text: &str) {
        let IndexedProperty { name, in_free_text, code } = property;
        let mut first = true;
        for run in runs(text) {
            if !self.read(run) {
                continue;
            }
            if first {
                // A phrase must not match across two values of a property. Values of different properties already
                // differ in their codes.
                if self.last == Some(name) {
                    gap(&mut self.tags);
                }
                self.last = Some(name);
                if in_free_text {
                    gap(&mut self.rest);
                }
            }
            first = false;
            space(&mut self.tags);
            self.tags.extend(code);
            self.tags.push('=');
            self.tags.push_str(&self.fold.folded);
            if in_free_text {
                space(&mut self.rest);
                self.rest.push_str(&self.fold.folded);
            }
            self.accent(TextField::Named(name), in_free_text);
        }
    }

    fn prose(&mut self, field: TextField, text: &str) -> String {
        let mut column = String::with_capacity(text.len());
        for run in runs(text) {
            if self.read(run) {
                space(&mut column);
                column.push_str(&self.fold.folded);
                self.accent(field, true);
            }
        }
        column
    }

    /// Folds a run; `false` if there is nothing to index.
    fn read(&mut self, run: &str) -> bool {
        if self.words_read >= INDEXED_WORDS_MAX || !self.fold.read(run) {
            return false;
        }
        self.words_read += 1;
        true
    }

    /// Adds the tokens for the accented form of the last word, if it has an accent.
    fn accent(&mut self, field: TextField, in_free_text: bool) {
        let Some(exact) = self.fold.exact() else { return };
        self.accents.push(tree::accent(field, exact));
        // A word without a field has to find this word too.
        if in_free_text {
            self.accents.push(tree::accent(TextField::Anywhere, exact));
        }
    }
}

/// Returns the text of a member of an object; empty if it is missing or not a text.
fn member_text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Formats a number as in everyday writing.
fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        // `4.0` becomes `4`: a float without a fraction prints without a decimal point.
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
    // Only the presence of these tokens is looked up, so repetitions would waste space.
    accents.dedup();
    for token in accents {
        space(tags);
        tags.push_str(&token);
    }
}

fn facet_values(
    key: &ItemKey,
    document: &Document,
    facts: IndexedFacts<'_>,
    facet: Facet,
) -> Vec<String> {
    let texts: Vec<&str> = match facet {
        Facet::SubjectCode
        | Facet::SubjectName
        | Facet::ProductCode
        | Facet::PlaceName
        | Facet::PersonName => {
            let (list, field) = facet.as_str().split_once('.').unwrap_or_default();
            document.texts(list, field).collect()
        }
        Facet::CopyrightHolder | Facet::Byline => {
            document.text(facet.as_str()).into_iter().collect()
        }
        Facet::DigitalSourceType => {
            facts.stated.digital_source_type.map(property::term_code).into_iter().collect()
        }
        Facet::Orientation => {
            facts.picture.into_iter().flat_map(PictureFacts::orientations).collect()
        }
        Facet::Colour => facts.picture.and_then(PictureFacts::colour).into_iter().collect(),
        Facet::MediaType => vec![key.media_type.as_str()],
    };
    let mut values = Vec::new();
    for text in texts {
        add_facet_value(&mut values, text);
    }
    values
}

/// Adds a shortened value of a facet, unless it is empty, repeated or beyond the limit.
fn add_facet_value(values: &mut Vec<String>, text: &str) {
    let text = text.trim();
    let end = text.char_indices().nth(FACET_CHARS_MAX).map_or(text.len(), |(end, _)| end);
    // The cut may leave a trailing space, which would make a different value.
    let text = text[..end].trim_end();
    let is_repeated = values.iter().any(|value| value == text);
    if !text.is_empty() && !is_repeated && values.len() < FACET_VALUES_MAX {
        values.push(text.to_owned());
    }
}

fn dates(document: &Document, zone: &TimeZone) -> Vec<(DateField, Timestamp)> {
    DateField::iter().filter_map(|field| Some((field, date(document, field, zone)?))).collect()
}

fn date(document: &Document, field: DateField, zone: &TimeZone) -> Option<Timestamp> {
    let text = document.text(field.as_str())?;
    if matches!(field, DateField::Date | DateField::EndDate) {
        time_interval::parse_day(text, zone)
    } else {
        time_interval::parse_time(text, zone)
    }
}
