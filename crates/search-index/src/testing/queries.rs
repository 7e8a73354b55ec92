//! Generates searches: queries of every kind, with filters, an order and a page.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use proptest::prelude::*;
use proptest::sample::select;
use query::{Facet, parse, parse_with_forms};
use strum::IntoEnumIterator;

use super::{NAMES, NUMBERS, PRODUCTS, STATUSES, SUBJECTS, TYPES, WORDS, start};
use crate::request::{Coverage, OrderPosition, ResultPage, SearchFilter, SortDate, SortOrder};

/// A search that was generated for a test.
#[derive(Clone, Debug)]
pub struct SampleSearch {
    pub text: String,
    /// True if the search also finds inflected forms.
    pub forms: bool,
    pub filter: SearchFilter,
    pub page: ResultPage,
    /// The facets to count.
    pub facets: Vec<Facet>,
}

/// Fields with their colons. Most queries name no field, so the empty name is repeated.
const FIELDS: [&str; 10] = [
    "",
    "",
    "",
    "headline:",
    "description_text:",
    "body_text:",
    "person.name:",
    "byline:",
    "place.name:",
    "copyrightholder:",
];

fn field() -> impl Strategy<Value = &'static str> {
    select(&FIELDS[..])
}

/// Generates the text of a query.
fn query() -> impl Strategy<Value = String> {
    let word = (field(), select(&WORDS[..])).prop_map(|(field, word)| format!("{field}{word}"));
    let phrase = (field(), proptest::collection::vec(select(&WORDS[..]), 2..4));
    let phrase = phrase.prop_map(|(field, words)| format!("{field}\"{}\"", words.join(" ")));
    let name =
        (field(), select(&NAMES[..]), any::<bool>()).prop_map(|(field, name, is_quoted)| {
            if is_quoted {
                format!("{field}\"{name}\"")
            } else {
                format!("{field}{}", &name[..4].trim())
            }
        });
    let prefixes =
        ["is", "fo", "vi", "stor", "berg", "Åsa-Ö", "storm-is", "Erik-b", "strass", "ol"];
    let prefix = (field(), select(prefixes.to_vec()));
    let prefix = prefix
        .prop_filter("two letters at least", |(_, start)| start.len() > 1)
        .prop_map(|(field, start)| format!("{field}{start}*"));
    let code = prop_oneof![
        select(&SUBJECTS[..]).prop_map(|code| format!("subject.code:\"{code}\"")),
        select(&PRODUCTS[..]).prop_map(|code| format!("product.code:{code}")),
        (0..160_u16, select(&TYPES[..])).prop_map(|(id, media_type)| format!(
            "uri:\"https://photos.example/media/{media_type}/o{id}\""
        )),
    ];
    let leaf = prop_oneof![
        10 => word,
        4 => phrase,
        4 => name,
        4 => prefix,
        4 => code,
        5 => items(),
        5 => dates(),
        5 => numbers(),
    ];
    leaf.prop_recursive(3, 14, 3, |inner| {
        let several = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several.clone().prop_map(|parts| format!("({})", parts.join(" "))),
            several.clone().prop_map(|parts| format!("({})", parts.join(" AND "))),
            several.clone().prop_map(|parts| format!("({})", parts.join(" && "))),
            several.clone().prop_map(|parts| format!("({})", parts.join(" OR "))),
            several.prop_map(|parts| format!("({})", parts.join(" || "))),
            inner.clone().prop_map(|part| format!("NOT {part}")),
            inner.clone().prop_map(|part| format!("!{part}")),
            (inner.clone(), inner).prop_map(|(part, excluded)| format!("({part} -({excluded}))")),
        ]
    })
}

/// Generates a query for one item, for all items, or for items that have a value in a field.
fn items() -> impl Strategy<Value = String> {
    let item = (0..160_u16, select(&TYPES[..]), 0..5_u8).prop_map(|(id, media_type, spelling)| {
        match spelling {
            0 => format!("o{id}"),
            1 => format!("id:o{id}"),
            2 => format!("https://photos.example/item/{media_type}/o{id}?page=2"),
            _ => format!("http://photos.example/media/{media_type}/o{id}_NormalPreview.jpg"),
        }
    });
    let present =
        select(vec!["headline", "body_text", "person.name", "byline", "urgency", "date"]);
    prop_oneof![
        6 => item,
        1 => select(vec!["*", "*:*"]).prop_map(str::to_owned),
        3 => present.prop_map(|field| format!("{field}:*")),
    ]
}

/// Generates a query for a date.
fn dates() -> impl Strategy<Value = String> {
    let range =
        (select(vec!["versioncreated", "date"]), 0..60_i64, 1..40_i64, any::<(bool, bool)>())
            .prop_map(|(field, from, length, (open, is_inclusive))| {
                let from_text = if open { "*".to_owned() } else { moment(from).to_string() };
                let until = moment(from + length);
                let (opening, closing) = if is_inclusive { ('[', ']') } else { ('{', '}') };
                format!("{field}:{opening}{from_text} TO {until}{closing}")
            });
    let compared = (select(vec!["versioncreated", "date"]), sign(), 0..60_i64)
        .prop_map(|(field, sign, hours)| format!("{field}:{sign}{}", moment(hours)));
    prop_oneof![3 => range, 2 => compared]
}

/// Returns the time `hours` after the start of the generated dates.
fn moment(hours: i64) -> Timestamp {
    start() + SignedDuration::from_hours(hours)
}

fn sign() -> impl Strategy<Value = &'static str> {
    select(vec![">", ">=", "<", "<="])
}

/// Generates a query for a number.
fn numbers() -> impl Strategy<Value = String> {
    let field = select(vec!["urgency", "subject.relevance"]);
    let compared = (field.clone(), select(vec!["", ">", ">=", "<", "<="]), select(&NUMBERS[..]))
        .prop_map(|(field, sign, number)| format!("{field}:{sign}{number}"));
    let bounds =
        (proptest::option::of(select(&NUMBERS[..])), proptest::option::of(select(&NUMBERS[..])));
    let range = (field, bounds, any::<(bool, bool)>()).prop_map(|(field, bounds, includes)| {
        let from = bounds.0.map_or("*".to_owned(), |number| number.to_string());
        let until = bounds.1.map_or("*".to_owned(), |number| number.to_string());
        let opening = if includes.0 { '[' } else { '{' };
        let closing = if includes.1 { ']' } else { '}' };
        format!("{field}:{opening}{from} TO {until}{closing}")
    });
    // Empty ranges are rejected by the parser.
    let range = range.prop_filter("a range", |text| parse(text, &TimeZone::UTC).is_ok());
    prop_oneof![compared, range]
}

/// Generates a list of product codes.
fn codes() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(select(&PRODUCTS[..]).prop_map(str::to_owned), 0..3)
}

/// Generates a search over the output of [`versions`](super::versions).
///
/// # Panics
///
/// Never: all generated texts are valid queries.
#[expect(clippy::expect_used, reason = "the generated text is a query")]
pub fn searches() -> impl Strategy<Value = SampleSearch> {
    // Some generated queries exceed the limit on the number of prefixes.
    let text = query().prop_filter("a query", |text| parse(text, &TimeZone::UTC).is_ok());
    let text = prop_oneof![1 => Just(String::new()), 6 => text];
    let media_type = proptest::option::of(select(&TYPES[..]));
    let what = (text, media_type, codes(), codes(), proptest::option::weighted(0.4, codes()));
    let from = proptest::option::weighted(0.3, 0..60_i64);
    let until = proptest::option::weighted(0.3, 0..60_i64);
    let statuses = proptest::collection::vec(select(&STATUSES[..]), 1..3);
    let after = proptest::option::weighted(0.2, (0..60_i64, 0..400_u32));
    let range = (from, until, after, proptest::option::weighted(0.2, 0..400_u32));
    let dates =
        [SortDate::Order, SortDate::Date, SortDate::VersionCreated, SortDate::VersionStored];
    let sort = (select(dates.to_vec()), any::<bool>());
    let page = (sort, 0..12_usize, 0..30_usize);
    let facets = select(vec![vec![], Facet::iter().collect(), vec![Facet::PersonName]]);
    let flags = any::<(bool, bool)>();
    (what, range, statuses, flags, page, facets).prop_map(
        move |(
            what,
            (from, until, after, newer_than),
            statuses,
            flags,
            (sort, skip, size),
            facets,
        )| {
            let (text, media_type, products, products_excluded, coverage) = what;
            let (hides, forms) = flags;
            let parse = if forms { parse_with_forms } else { parse };
            let after = after.map(|(hours, number)| OrderPosition {
                order_ms: moment(hours).as_millisecond(),
                number,
            });
            let filter = SearchFilter {
                media_type,
                query: parse(&text, &TimeZone::UTC).expect("a query"),
                facet_values: Vec::new(),
                near_picture: None,
                products,
                products_excluded,
                coverage: coverage.map_or(Coverage::Everything, Coverage::Products),
                from: from.map(moment),
                until: until.map(moment),
                statuses,
                hides_embargoed_at: hides.then(start),
                after,
                newer_than,
            };
            let sort = SortOrder::By { date: sort.0, descending: sort.1 };
            SampleSearch { text, forms, filter, page: ResultPage { sort, skip, size }, facets }
        },
    )
}
