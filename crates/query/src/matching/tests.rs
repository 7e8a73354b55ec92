//! Tests of the matcher against a plain evaluation of every interest.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::samples::{indexed, plains, trees};
use crate::{Query, TextField, WordPattern, parse};

const PRODUCTS: [&str; 4] = ["FOTT", "FOIN", "TXIN", "TXUT"];
const TYPES: [MediaType; 3] = [MediaType::Image, MediaType::Text, MediaType::Stockfoto];

/// An item with owned parts.
#[derive(Clone, Debug)]
struct Owned {
    media_type: MediaType,
    indexed: IndexedDocument,
    agreements: BTreeSet<AgreementId>,
}

impl Owned {
    fn item(&self) -> MatchSubject<'_> {
        let Self { media_type, indexed, agreements } = self;
        MatchSubject { media_type: *media_type, indexed, agreements }
    }
}

fn query(text: &str) -> Query {
    parse(text, &TimeZone::UTC).unwrap()
}

fn codes() -> impl Strategy<Value = Vec<String>> {
    let code = prop::sample::select(PRODUCTS.to_vec()).prop_map(str::to_owned);
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(code, 1..4)]
}

fn agreements() -> impl Strategy<Value = Vec<AgreementId>> {
    prop::collection::vec((1..5_i64).prop_map(AgreementId), 0..4)
}

fn items() -> impl Strategy<Value = Owned> {
    (prop::sample::select(TYPES.to_vec()), plains(), codes(), agreements()).prop_map(
        |(media_type, plain, mut codes, agreements)| {
            let mut indexed = indexed(plain.document());
            codes.sort();
            codes.dedup();
            indexed.facets[Facet::ProductCode.index()] = codes;
            Owned { media_type, indexed, agreements: agreements.into_iter().collect() }
        },
    )
}

fn interests() -> impl Strategy<Value = Interest> {
    let media_type = prop::option::of(prop::sample::select(TYPES.to_vec()));
    let queries = prop_oneof![
        9 => trees().prop_map(|tree| query(&tree.text())),
        1 => Just(Query::All),
        1 => odd(),
    ];
    let cover = prop_oneof![
        1 => Just(InterestCoverage::Everything),
        1 => agreements().prop_map(InterestCoverage::Agreements),
    ];
    (media_type, queries, codes(), codes(), cover).prop_map(
        |(media_type, query, products, mut products_excluded, cover)| {
            products_excluded.truncate(1);
            Interest { media_type, query, products, products_excluded, cover }
        },
    )
}

/// Generates queries that no text parses to.
fn odd() -> impl Strategy<Value = Query> {
    let words =
        |words| WordPattern { place: TextField::Anywhere, words, prefix: false, forms: false };
    prop::sample::select(vec![
        Query::And(Vec::new()),
        Query::Or(Vec::new()),
        Query::Not(Box::new(Query::Not(Box::new(Query::All)))),
        Query::Or(vec![Query::Words(words(Vec::new())), Query::All]),
        Query::Words(WordPattern { prefix: true, ..words(Vec::new()) }),
        Query::And(vec![Query::Or(vec![query("is"), query("is ol")]), query("-aka")]),
    ])
}

/// An operation on a matcher.
#[derive(Clone, Debug)]
enum Step {
    Insert(i64, Box<Interest>),
    Remove(i64),
    Learn(Box<Owned>),
    Match(Box<Owned>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let numbers = || -3..25_i64;
    let step = prop_oneof![
        6 => (numbers(), interests()).prop_map(|(at, one)| Step::Insert(at, Box::new(one))),
        2 => numbers().prop_map(Step::Remove),
        1 => items().prop_map(|item| Step::Learn(Box::new(item))),
        4 => items().prop_map(|item| Step::Match(Box::new(item))),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_matcher_agrees_with_a_check_of_every_interest(
        steps in steps(),
        last in prop::collection::vec(items(), 4),
    ) {
        let mut matcher = InterestMatcher::new();
        let mut plain: BTreeMap<i64, Interest> = BTreeMap::new();
        let last = last.into_iter().map(|item| Step::Match(Box::new(item)));
        for step in steps.into_iter().chain(last) {
            match step {
                Step::Insert(number, interest) => {
                    matcher.insert(number, (*interest).clone());
                    plain.insert(number, *interest);
                }
                Step::Remove(number) => {
                    prop_assert_eq!(matcher.remove(number), plain.remove(&number).is_some());
                }
                Step::Learn(item) => matcher.learn(&item.indexed),
                Step::Match(item) => {
                    let matching = plain.iter().filter(|(_, one)| one.matches(&item.item()));
                    let expected: Vec<i64> = matching.map(|(number, _)| *number).collect();
                    prop_assert_eq!(matcher.matching(&item.item()), expected);
                    prop_assert!(matcher.evaluated_count() <= matcher.len());
                }
            }
            prop_assert_eq!(matcher.len(), plain.len());
        }
        for number in plain.into_keys() {
            prop_assert!(matcher.remove(number));
        }
        prop_assert!(matcher.is_empty());
        prop_assert!(matcher.is_bare());
    }
}

/// An interest in everything that matches a query.
fn any(text: &str) -> Interest {
    Interest {
        media_type: None,
        query: query(text),
        products: Vec::new(),
        products_excluded: Vec::new(),
        cover: InterestCoverage::Everything,
    }
}

fn item(headline: &str, product: &str) -> Owned {
    let indexed = indexed(json!({ "headline": headline, "product": [{ "code": product }] }));
    Owned { media_type: MediaType::Image, indexed, agreements: [AgreementId(7)].into() }
}

fn matches_and_evaluations(matcher: &mut InterestMatcher, item: &Owned) -> (Vec<i64>, usize) {
    let found = matcher.matching(&item.item());
    (found, matcher.evaluated_count())
}

#[test]
fn interests_that_share_nothing_with_an_item_are_not_evaluated() {
    let mut matcher = InterestMatcher::new();
    for _ in 0..20 {
        matcher.learn(&item("storm i norr", "FOTT").indexed);
    }
    for number in 0..1000_i64 {
        matcher.insert(5 * number, any(&format!("storm AND ort{number}")));
        matcher.insert(5 * number + 1, any(&format!("\"storm i ort{number}\" -norr")));
        matcher.insert(5 * number + 2, any(&format!("storm (ort{number} OR by{number})")));
        let products = vec![format!("P{number}")];
        matcher.insert(5 * number + 3, Interest { products, ..any("NOT regn") });
        let cover = InterestCoverage::Agreements(vec![AgreementId(1000 + number)]);
        matcher.insert(5 * number + 4, Interest { cover, ..any("") });
    }
    assert_eq!(matcher.len(), 5000);
    let (found, evaluations) =
        matches_and_evaluations(&mut matcher, &item("storm i ort12", "P40"));
    assert_eq!(found, [60, 61, 62, 203]);
    assert_eq!(evaluations, 4);
    assert_eq!(matches_and_evaluations(&mut matcher, &item("storm i norr", "FOTT")), (vec![], 0));
}

#[test]
fn interests_without_word_product_or_agreement_are_evaluated_by_media_type() {
    let mut matcher = InterestMatcher::new();
    matcher.insert(1, Interest { media_type: Some(MediaType::Image), ..any("-regn") });
    matcher.insert(2, Interest { media_type: Some(MediaType::Text), ..any("-regn") });
    matcher.insert(3, any("-storm"));
    assert_eq!(matches_and_evaluations(&mut matcher, &item("storm", "FOTT")), (vec![1], 2));
}

#[test]
fn a_word_in_another_property_is_not_evaluated() {
    let mut matcher = InterestMatcher::new();
    matcher.insert(1, any("body_text:storm"));
    matcher.insert(2, any("person.name:storm"));
    matcher.insert(3, any("headline:storm"));
    matcher.insert(4, any("headline:sto*"));
    assert_eq!(matches_and_evaluations(&mut matcher, &item("storm", "FOTT")), (vec![3, 4], 2));
}

#[test]
fn a_learned_frequent_word_is_not_used_as_a_key() {
    let mut matcher = InterestMatcher::new();
    for _ in 0..3 {
        matcher.learn(&item("statsministern", "FOTT").indexed);
    }
    matcher.insert(1, any("statsministern älg"));
    assert_eq!(
        matches_and_evaluations(&mut matcher, &item("Statsministern talar", "FOTT")),
        (vec![], 0)
    );
    assert_eq!(
        matches_and_evaluations(&mut matcher, &item("Statsministern såg en älg", "FOTT")),
        (vec![1], 1)
    );
}

#[test]
fn added_and_removed_interests_leave_nothing_behind() {
    let mut matcher = InterestMatcher::new();
    matcher.insert(-1, any("storm"));
    let mut sizes = Vec::new();
    for round in 0..3_i64 {
        for number in 0..200 {
            let text =
                format!("ord{} \"fras{number} {round}\" beg{number}* -x{round}", number * 7);
            let products = vec![format!("P{number}")];
            matcher.insert(number + 1000 * round, Interest { products, ..any(&text) });
        }
        for number in 0..200 {
            assert!(matcher.remove(number + 1000 * round));
        }
        sizes.push((matcher.entries.len(), matcher.leaves.places(), matcher.len()));
    }
    assert_eq!(sizes[0], sizes[2]);
    assert_eq!(matches_and_evaluations(&mut matcher, &item("storm", "P1")), (vec![-1], 1));
    assert!(matcher.remove(-1));
    assert!(!matcher.remove(-1));
    assert!(matcher.is_bare());
}
