//! Evaluates searches item by item over generated archives, as the reference for any search engine.
//!
//! Items have every kind of field, statuses, embargoes, products and colliding dates. Queries use every operator,
//! and every second query finds inflected forms. [`Query::matches`](query::Query::matches) evaluates the query on
//! one document at a time; the crate `query` tests it against a reference of its own. Inflected forms are compared
//! word by word in the texts.

mod queries;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::item::{Document, PubStatus};
use model::{ItemKey, MediaType};
use proptest::prelude::*;
use proptest::sample::select;
use query::{
    DateField, FiniteNumber, IndexedDocument, NumberField, Query, TextField, Word, WordPattern,
    words,
};
use serde_json::{Map, Value, json};

pub use queries::{SampleSearch, searches};

use crate::request::{Coverage, FacetCounts, OrderPosition, SearchFilter, SortDate, SortOrder};
use crate::stems::is_form_of;

const WORDS: [&str; 27] = [
    "vinter",
    "isbrytare",
    "is",
    "för",
    "for",
    "öl",
    "ol",
    "storm",
    "Stormen",
    "idé",
    "ide",
    "Kvarken",
    "hav",
    "straße",
    // Forms of the same words, some with accents that an ending or an algorithm removes.
    "hund",
    "Hundar",
    "hunden",
    "bridge",
    "bridges",
    "möte",
    "moten",
    "möten",
    "haus",
    "häuser",
    "vene",
    "veneessä",
    "covid19",
];
/// Language tags, including one without stems.
const LANGUAGES: [&str; 8] = ["sv", "en-GB", "nb", "no", "da", "fi", "DE", "fr"];
const NAMES: [&str; 6] =
    ["Erik Berg", "Anna Berg", "Erik Anna", "Åsa Öberg", "Asa Oberg", "Bergen"];
const PRODUCTS: [&str; 5] = ["FOTT", "FOIN", "TXIN", "TXUT", "SPT"];
const SUBJECTS: [&str; 4] = ["medtop:15000000", "medtop:15000001", "sport", "väder"];
const PLACES: [&str; 4] = ["Umeå", "Umea", "Stockholm Södermalm", "Vaasa"];
/// Numbers for documents and queries, some of them close to each other.
const NUMBERS: [f64; 8] = [-2.0, -0.5, 0.0, 1.0, 3.0, 3.000_000_000_000_000_4, 4.0, 70.0];
const TYPES: [MediaType; 3] = [MediaType::Image, MediaType::Text, MediaType::Planning];
// `Usable` is repeated, because most items have that status.
const STATUSES: [PubStatus; 5] = [
    PubStatus::Usable,
    PubStatus::Usable,
    PubStatus::Usable,
    PubStatus::Replaced,
    PubStatus::Commissioned,
];

/// Returns the time around which all dates are generated.
pub fn start() -> Timestamp {
    Timestamp::from_second(1_772_438_400).unwrap_or_default()
}

/// A generated version of an item.
#[derive(Clone, Debug)]
pub struct SampleVersion {
    pub media_type: MediaType,
    id: u16,
    language: Option<&'static str>,
    headline: Vec<&'static str>,
    description: Vec<&'static str>,
    body: Vec<&'static str>,
    persons: Vec<&'static str>,
    places: Vec<&'static str>,
    subjects: Vec<&'static str>,
    products: Vec<&'static str>,
    byline: Option<&'static str>,
    holder: Option<&'static str>,
    urgency: Option<f64>,
    /// Relevances of the subjects; the last subjects have none.
    relevances: Vec<u8>,
    pub status: PubStatus,
    hours: i64,
    date: Option<i64>,
    embargo_hours: Option<i64>,
}

impl SampleVersion {
    /// Returns the key of the item.
    ///
    /// # Panics
    ///
    /// Never: generated ids are valid.
    #[expect(clippy::expect_used, reason = "generated ids are valid")]
    pub fn key(&self) -> ItemKey {
        ItemKey::parse(&format!("{}/o{}", self.media_type, self.id))
            .expect("generated ids are valid")
    }

    /// Returns the `_tstamp` of the version.
    pub fn order(&self) -> Timestamp {
        start() + SignedDuration::from_hours(self.hours)
    }

    /// Returns the end of the embargo, if there is one.
    pub fn embargoed(&self) -> Option<Timestamp> {
        self.embargo_hours.map(|hours| start() + SignedDuration::from_hours(hours))
    }

    /// Builds the document of the version.
    ///
    /// # Panics
    ///
    /// Never: the generated fields form a valid document.
    #[expect(clippy::expect_used, reason = "the fields are those of a document")]
    pub fn document(&self) -> Document {
        let mut fields = Map::new();
        set(&mut fields, "headline", self.headline.join(" "));
        set(&mut fields, "description_text", self.description.join(", "));
        set(&mut fields, "body_text", self.body.join(" – "));
        set(&mut fields, "person", list(&self.persons, "name"));
        set(&mut fields, "place", list(&self.places, "name"));
        let mut subjects = list(&self.subjects, "code");
        for (subject, relevance) in
            subjects.as_array_mut().into_iter().flatten().zip(&self.relevances)
        {
            subject["relevance"] = (*relevance).into();
        }
        set(&mut fields, "subject", subjects);
        if let Some(urgency) = self.urgency {
            set(&mut fields, "urgency", urgency);
        }
        set(&mut fields, "product", list(&self.products, "code"));
        if let Some(language) = self.language {
            set(&mut fields, "language", language);
        }
        if let Some(byline) = self.byline {
            set(&mut fields, "byline", byline);
        }
        if let Some(holder) = self.holder {
            set(&mut fields, "copyrightholder", holder);
        }
        if let Some(days) = self.date {
            let day = start() + SignedDuration::from_hours(24 * days);
            set(&mut fields, "date", &day.to_string()[..10]);
        }
        set(&mut fields, "pubstatus", self.status.as_str());
        // Between two milliseconds, to test the rounding to the resolution of the index.
        let created = self.order() + SignedDuration::from_micros(300 * i64::from(self.id % 2));
        set(&mut fields, "versioncreated", created.to_string());
        Document::from_fields(&self.key(), fields).expect("a document")
    }

    /// Returns whether one of the version's texts has a form of the single word in `pattern`.
    fn has_form(&self, pattern: &WordPattern) -> bool {
        let [word] = pattern.words.as_slice() else { return false };
        let texts = [
            (TextField::Headline, &self.headline),
            (TextField::Description, &self.description),
            (TextField::Body, &self.body),
        ];
        texts.into_iter().any(|(field, text)| {
            let text: Vec<Word> = text.iter().flat_map(|written| words(written)).collect();
            (pattern.place == TextField::Anywhere || pattern.place == field)
                && text.iter().any(|candidate| self.is_form(candidate, word, &text))
        })
    }

    /// Returns whether `candidate`, a word of `text`, is a form of `word`.
    fn is_form(&self, candidate: &Word, word: &Word, text: &[Word]) -> bool {
        // If a text has both spellings, the one with the accent counts.
        let mut others = text.iter().filter(|other| other.folded == candidate.folded);
        if candidate.exact.is_none() && others.any(|other| other.exact.is_some()) {
            return false;
        }
        is_form_of(candidate, word, self.language.unwrap_or_default())
    }

    fn has_product_of(&self, codes: &[String]) -> bool {
        self.products.iter().any(|own| codes.iter().any(|code| code == own))
    }

    /// Returns the values of a number field.
    fn numbers(&self, field: NumberField) -> Vec<f64> {
        if field == NumberField::Urgency {
            self.urgency.into_iter().collect()
        } else if field == NumberField::SubjectRelevance {
            self.relevances.iter().take(self.subjects.len()).copied().map(f64::from).collect()
        } else {
            Vec::new()
        }
    }

    /// Indexes the document of the version.
    pub fn indexed(&self) -> IndexedDocument {
        IndexedDocument::new(&self.key(), &self.document(), &TimeZone::UTC)
    }
}

fn set(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

/// Builds a list of objects with one member each.
fn list(values: &[&str], name: &str) -> Value {
    values.iter().map(|value| json!({ name: value })).collect()
}

/// Generates versions of items, several of them of the same item.
pub fn versions(count_max: usize) -> impl Strategy<Value = Vec<SampleVersion>> {
    proptest::collection::vec(version(), 0..=count_max)
}

/// Generates the words of a text.
fn some_words(count_max: usize) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(select(&WORDS[..]), 0..count_max)
}

/// Generates a list of some of `values`, sorted and without repetitions.
fn distinct(values: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    // An item has each name and code only once.
    proptest::collection::vec(select(values), 0..3).prop_map(|mut values| {
        values.sort_unstable();
        values.dedup();
        values
    })
}

fn version() -> impl Strategy<Value = SampleVersion> {
    let texts = (some_words(4), some_words(6), some_words(16));
    let lists = (distinct(&NAMES), distinct(&PLACES), distinct(&SUBJECTS), distinct(&PRODUCTS));
    let single = (
        proptest::option::of(select(&NAMES[..])),
        proptest::option::of(select(&["Agency", "Anna Berg"][..])),
    );
    let language = proptest::option::weighted(0.8, select(&LANGUAGES[..]));
    let numbers = (
        proptest::option::of(select(&NUMBERS[..])),
        proptest::collection::vec(select(&[0, 3, 70][..]), 0..3),
    );
    let what = (select(&TYPES[..]), 0..160_u16, select(&STATUSES[..]), language);
    let when = (0..60_i64, proptest::option::of(0..5_i64), proptest::option::of(-3..3_i64));
    let all = (what, texts, lists, single, numbers, when);
    all.prop_map(|(what, texts, lists, single, numbers, when)| SampleVersion {
        media_type: what.0,
        id: what.1,
        status: what.2,
        language: what.3,
        headline: texts.0,
        description: texts.1,
        body: texts.2,
        persons: lists.0,
        places: lists.1,
        subjects: lists.2,
        products: lists.3,
        byline: single.0,
        holder: single.1,
        urgency: numbers.0,
        relevances: numbers.1,
        hours: when.0,
        date: when.1,
        embargo_hours: when.2,
    })
}

/// The expected result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleAnswer {
    pub total: u64,
    /// The version numbers of the page; empty for a search by relevance.
    pub hits: Vec<u32>,
    pub facets: Vec<FacetCounts>,
}

/// Returns the last version of each item in `versions`. Versions are numbered by position, starting from 1.
pub fn current(versions: &[SampleVersion]) -> Vec<(u32, SampleVersion)> {
    let mut current = Vec::new();
    for (at, (number, version)) in (1_u32..).zip(versions).enumerate() {
        let is_last = versions[at + 1..].iter().all(|other| other.key() != version.key());
        if is_last {
            current.push((number, version.clone()));
        }
    }
    current
}

/// A version with its number and its indexed document.
type NumberedVersion = (u32, SampleVersion, IndexedDocument);

/// Evaluates `search` over `versions`, each with its number and indexed document.
pub fn answer(versions: &[NumberedVersion], search: &SampleSearch) -> OracleAnswer {
    let mut found: Vec<&NumberedVersion> = versions
        .iter()
        .filter(|(number, version, indexed)| matches(&search.filter, *number, version, indexed))
        .collect();
    let total = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let facets = search.facets.iter().map(|facet| {
        let mut counts: Vec<(String, u64)> = Vec::new();
        for value in found.iter().flat_map(|(_, _, indexed)| &indexed.facets[facet.index()]) {
            match counts.iter_mut().find(|(existing, _)| existing == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((value.clone(), 1)),
            }
        }
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (*facet, counts)
    });
    let facets = facets.collect();
    // Scores are not recomputed here: a search by relevance is compared by total and facets only.
    let SortOrder::By { date, descending } = search.page.sort else {
        return OracleAnswer { total, hits: Vec::new(), facets };
    };
    found.sort_by_key(|entry| sort_key(entry, date, descending));
    let page = found.iter().skip(search.page.skip).take(search.page.size);
    OracleAnswer { total, hits: page.map(|(number, ..)| *number).collect(), facets }
}

/// Returns the key by which hits are sorted, in ascending order.
fn sort_key(
    entry: &NumberedVersion,
    date: SortDate,
    descending: bool,
) -> (bool, Option<i64>, i64) {
    let (number, version, indexed) = entry;
    let at = match date {
        SortDate::Order => Some(version.order()),
        SortDate::Date => date_of(indexed, DateField::Date),
        SortDate::VersionCreated => date_of(indexed, DateField::VersionCreated),
        SortDate::VersionStored => date_of(indexed, DateField::VersionStored),
    };
    let at_ms = at.map(Timestamp::as_millisecond);
    let direction = if descending { -1 } else { 1 };
    // Items without the date come last in both directions; ties have the direction of the
    // dates.
    (at_ms.is_none(), at_ms.map(|ms| ms * direction), i64::from(*number) * direction)
}

fn date_of(indexed: &IndexedDocument, field: DateField) -> Option<Timestamp> {
    indexed.dates.iter().find(|(name, _)| *name == field).map(|(_, at)| *at)
}

/// Returns whether a version matches `filter`, evaluated without an index.
fn matches(
    filter: &SearchFilter,
    number: u32,
    version: &SampleVersion,
    indexed: &IndexedDocument,
) -> bool {
    let covered = match &filter.coverage {
        Coverage::Everything => true,
        Coverage::Products(codes) => version.has_product_of(codes),
    };
    let position = OrderPosition { order_ms: version.order().as_millisecond(), number };
    let hidden = match (filter.hides_embargoed_at, version.embargoed()) {
        (Some(now), Some(until)) => until > now,
        (None, _) | (_, None) => false,
    };
    filter.media_type.is_none_or(|wanted| wanted == version.media_type)
        && filter.statuses.contains(&version.status)
        && !hidden
        && covered
        && (filter.products.is_empty() || version.has_product_of(&filter.products))
        && !version.has_product_of(&filter.products_excluded)
        && filter.from.is_none_or(|from| version.order() >= from)
        && filter.until.is_none_or(|until| version.order() < until)
        && filter.after.is_none_or(|after| position > after)
        && filter.newer_than.is_none_or(|newest| number > newest)
        && filter.facet_values.iter().all(|condition| {
            let own = &indexed.facets[condition.facet.index()];
            condition.values.iter().any(|value| own.contains(value)) != condition.is_excluded
        })
        && satisfies(&filter.query, version, indexed)
}

/// Returns whether a version matches a query, including inflected forms.
fn satisfies(query: &Query, version: &SampleVersion, indexed: &IndexedDocument) -> bool {
    match query {
        Query::All | Query::Dates(_) | Query::Present(_) => query.matches(indexed),
        Query::Numbers(numbers) => {
            // The numbers of the sample, not of the indexed document, so that indexing is tested as well.
            let own = version.numbers(numbers.field);
            own.into_iter().filter_map(FiniteNumber::new).any(|number| numbers.contains(number))
        }
        Query::Item(id) => version.key().id == *id,
        Query::Words(words) => query.matches(indexed) || (words.forms && version.has_form(words)),
        Query::And(parts) => parts.iter().all(|part| satisfies(part, version, indexed)),
        Query::Or(parts) => parts.iter().any(|part| satisfies(part, version, indexed)),
        Query::Not(inner) => !satisfies(inner, version, indexed),
    }
}
