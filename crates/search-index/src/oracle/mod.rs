//! Evaluates searches item by item over generated archives, as the reference for any search engine.
//!
//! Items have every kind of field, statuses, embargoes, products and colliding dates. Queries use
//! every operator, and every other query finds inflected forms. The query is evaluated on one
//! document at a time by [`Query::matches`](query::Query::matches), which the crate `query` tests against its
//! own reference, and inflected forms are compared word by word in the texts.

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
use crate::stems::StemLanguage;

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

/// The time around which all generated dates are.
#[must_use]
pub fn start() -> Timestamp {
    Timestamp::from_second(1_772_438_400).unwrap_or_default()
}

/// A generated version of an item.
#[derive(Clone, Debug)]
pub struct SampleVersion {
    media_type: MediaType,
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
    status: PubStatus,
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
    #[must_use]
    #[expect(clippy::expect_used, reason = "generated ids are valid")]
    pub fn key(&self) -> ItemKey {
        ItemKey::parse(&format!("{}/o{}", self.media_type, self.id))
            .expect("generated ids are valid")
    }

    /// Returns the media type of the item.
    #[must_use]
    pub fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Returns the publication status of the version.
    #[must_use]
    pub fn status(&self) -> PubStatus {
        self.status
    }

    /// Returns the `_tstamp` of the version.
    #[must_use]
    pub fn order(&self) -> Timestamp {
        start() + SignedDuration::from_hours(self.hours)
    }

    /// Returns the end of the embargo, if there is one.
    #[must_use]
    pub fn embargoed(&self) -> Option<Timestamp> {
        self.embargo_hours.map(|hours| start() + SignedDuration::from_hours(hours))
    }

    /// Builds the document of the version.
    ///
    /// # Panics
    ///
    /// Never: the fields are those of a document.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the fields are those of a document")]
    pub fn document(&self) -> Document {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        let list = |values: &[&str], name: &str| -> Value {
            values.iter().map(|value| json!({ name: value })).collect()
        };
        set("headline", self.headline.join(" ").into());
        set("description_text", self.description.join(", ").into());
        set("body_text", self.body.join(" – ").into());
        set("person", list(&self.persons, "name"));
        set("place", list(&self.places, "name"));
        let mut subjects = list(&self.subjects, "code");
        for (subject, relevance) in
            subjects.as_array_mut().into_iter().flatten().zip(&self.relevances)
        {
            subject["relevance"] = (*relevance).into();
        }
        set("subject", subjects);
        if let Some(urgency) = self.urgency {
            set("urgency", urgency.into());
        }
        set("product", list(&self.products, "code"));
        if let Some(language) = self.language {
            set("language", language.into());
        }
        if let Some(byline) = self.byline {
            set("byline", byline.into());
        }
        if let Some(holder) = self.holder {
            set("copyrightholder", holder.into());
        }
        if let Some(days) = self.date {
            let day = start() + SignedDuration::from_hours(24 * days);
            set("date", day.to_string()[..10].into());
        }
        set("pubstatus", self.status.as_str().into());
        // Between two milliseconds, to test the rounding to the resolution of the index.
        let created = self.order() + SignedDuration::from_micros(300 * i64::from(self.id % 2));
        set("versioncreated", created.to_string().into());
        Document::from_fields(&self.key(), fields).expect("a document")
    }

    /// Whether one of its texts has a form of the single word in `pattern`.
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

    /// Whether `candidate`, a word of `text`, is a form of `word`.
    fn is_form(&self, candidate: &Word, word: &Word, text: &[Word]) -> bool {
        // If a text has both spellings, the one with the accent counts.
        let is_accented = |other: &Word| other.folded == candidate.folded && other.exact.is_some();
        if candidate.exact.is_none() && text.iter().any(is_accented) {
            return false;
        }
        // Words with digits have no stems: they are codes, years and results.
        !candidate.folded.contains(char::is_numeric)
            && StemLanguage::of(self.language.unwrap_or_default()).iter().any(|language| {
                let (candidate, searched) = (language.stem(candidate), language.stem(word));
                candidate.folded == searched.folded
                    && (searched.accented.is_none() || candidate.accented == searched.accented)
            })
    }

    /// Returns the values of a number field.
    fn numbers(&self, field: NumberField) -> Vec<f64> {
        match field {
            NumberField::Urgency => self.urgency.into_iter().collect(),
            NumberField::SubjectRelevance => {
                self.relevances.iter().take(self.subjects.len()).copied().map(f64::from).collect()
            }
            NumberField::Week
            | NumberField::WebPrio
            | NumberField::NewsValue
            | NumberField::CharCount
            | NumberField::WordCount
            | NumberField::SubjectConfidence
            | NumberField::MultiPageCount
            | NumberField::Width
            | NumberField::Height => Vec::new(),
        }
    }

    /// Indexes the document of the version.
    #[must_use]
    pub fn indexed(&self) -> IndexedDocument {
        IndexedDocument::new(&self.key(), &self.document(), &TimeZone::UTC)
    }
}

/// Generates versions of items, several of them of the same item.
pub fn versions(count_max: usize) -> impl Strategy<Value = Vec<SampleVersion>> {
    proptest::collection::vec(version(), 0..=count_max)
}

fn version() -> impl Strategy<Value = SampleVersion> {
    let some_words = |count_max| proptest::collection::vec(select(&WORDS[..]), 0..count_max);
    // Sorted and without repetitions: an item has a name or a code once.
    let some = |values: &'static [&'static str]| {
        proptest::collection::vec(select(values), 0..3).prop_map(|mut values| {
            values.sort_unstable();
            values.dedup();
            values
        })
    };
    let texts = (some_words(4), some_words(6), some_words(16));
    let lists = (some(&NAMES), some(&PLACES), some(&SUBJECTS), some(&PRODUCTS));
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

/// Returns the last version of each item in `versions`, numbered by their positions
/// from 1.
#[must_use]
pub fn current(versions: &[SampleVersion]) -> Vec<(u32, SampleVersion)> {
    let is_last =
        |at: usize| versions[at + 1..].iter().all(|other| other.key() != versions[at].key());
    let numbered = (1_u32..).zip(versions).enumerate();
    numbered
        .filter(|(at, _)| is_last(*at))
        .map(|(_, (number, one))| (number, one.clone()))
        .collect()
}

/// Evaluates `search` over `versions`, each with its number and indexed document.
#[must_use]
pub fn answer(
    versions: &[(u32, SampleVersion, IndexedDocument)],
    search: &SampleSearch,
) -> OracleAnswer {
    let mut found: Vec<_> =
        versions.iter().filter(|one| matches(&search.filter, one.0, &one.1, &one.2)).collect();
    let total = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let facets = search.facets.iter().map(|facet| {
        let mut counts: Vec<(String, u64)> = Vec::new();
        for value in found.iter().flat_map(|one| &one.2.facets[facet.index()]) {
            match counts.iter_mut().find(|(existing, _)| existing == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((value.clone(), 1)),
            }
        }
        counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        (*facet, counts)
    });
    let facets = facets.collect();
    // Scores are not recomputed here: a search by relevance is compared by total and facets.
    let SortOrder::By { date, descending } = search.page.sort else {
        return OracleAnswer { total, hits: Vec::new(), facets };
    };
    let key = |one: &(u32, SampleVersion, IndexedDocument)| {
        let (number, version, indexed) = one;
        let date_of =
            |field| indexed.dates.iter().find(|(name, _)| *name == field).map(|(_, at)| *at);
        let at = match date {
            SortDate::Order => Some(version.order()),
            SortDate::Date => date_of(DateField::Date),
            SortDate::VersionCreated => date_of(DateField::VersionCreated),
            SortDate::VersionStored => date_of(DateField::VersionStored),
        };
        let at_ms = at.map(Timestamp::as_millisecond);
        let direction = if descending { -1 } else { 1 };
        // Items without the date come last in both directions; ties have the direction of the
        // dates.
        (at_ms.is_none(), at_ms.map(|ms| ms * direction), i64::from(*number) * direction)
    };
    found.sort_by_key(|one| key(one));
    let page = found.iter().skip(search.page.skip).take(search.page.size);
    OracleAnswer { total, hits: page.map(|one| one.0).collect(), facets }
}

/// Whether a version matches, evaluated directly.
fn matches(
    filter: &SearchFilter,
    number: u32,
    version: &SampleVersion,
    indexed: &IndexedDocument,
) -> bool {
    let has =
        |codes: &[String]| version.products.iter().any(|own| codes.iter().any(|code| code == own));
    let covered = match &filter.coverage {
        Coverage::Everything => true,
        Coverage::Products(codes) => has(codes),
    };
    let position = OrderPosition { order_ms: version.order().as_millisecond(), number };
    let hidden = |now: Timestamp| version.embargoed().is_some_and(|until| until > now);
    filter.media_type.is_none_or(|wanted| wanted == version.media_type)
        && filter.statuses.contains(&version.status)
        && !filter.hides_embargoed_at.is_some_and(hidden)
        && covered
        && (filter.products.is_empty() || has(&filter.products))
        && !has(&filter.products_excluded)
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

/// Whether a version matches a query, including inflected forms.
fn satisfies(query: &Query, version: &SampleVersion, indexed: &IndexedDocument) -> bool {
    let holds = |part: &Query| satisfies(part, version, indexed);
    match query {
        Query::All | Query::Dates(_) | Query::Present(_) => query.matches(indexed),
        Query::Numbers(numbers) => {
            // Taken from the sample instead of the indexed document, so that indexing is tested as
            // well.
            let own = version.numbers(numbers.field);
            own.into_iter().filter_map(FiniteNumber::new).any(|number| numbers.contains(number))
        }
        Query::Item(id) => version.key().id == *id,
        Query::Words(words) => query.matches(indexed) || (words.forms && version.has_form(words)),
        Query::And(parts) => parts.iter().all(holds),
        Query::Or(parts) => parts.iter().any(holds),
        Query::Not(inner) => !holds(inner),
    }
}
