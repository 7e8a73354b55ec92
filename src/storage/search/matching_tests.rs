//! Tests that the matcher of notifications agrees with search through the database.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use search_index::testing::{self as oracle, SampleSearch};

use super::oracle_tests::{item, request};
use super::tests::Scene;
use super::{Coverage, SearchCriteria};
use model::ItemKey;
use model::account::AgreementId;
use model::item::PubStatus;
use query::matching::{Interest, InterestCoverage, InterestMatcher, MatchSubject};
use query::{Facet, parse};

/// Returns only the query of a sample search, as written: publication time and audience are not part of it,
/// and notifications never expand word forms.
fn whole(ask: &SampleSearch) -> SearchCriteria {
    SearchCriteria {
        query: parse(&ask.text, &TimeZone::UTC).unwrap(),
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable, PubStatus::Replaced, PubStatus::Commissioned],
        sees_embargoed: true,
        after: None,
        skip: 0,
        size: 1000,
        ..request(ask)
    }
}

/// Converts a request to an interest; the caller's coverage becomes the agreement `number`.
fn interest(number: i64, request: &SearchCriteria) -> Interest {
    Interest {
        media_type: request.media_type,
        query: request.query.clone(),
        products: request.products.clone(),
        products_excluded: request.products_excluded.clone(),
        cover: match &request.coverage {
            Coverage::Everything => InterestCoverage::Everything,
            Coverage::Products(_) => InterestCoverage::Agreements(vec![AgreementId(number)]),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_matcher_of_notifications_agrees_with_search(
        versions in oracle::versions(40),
        asks in proptest::collection::vec(oracle::searches(), 1..20),
    ) {
        let scene = Scene::new();
        scene.write(versions.iter().map(item).collect());
        let requests: Vec<SearchCriteria> = asks.iter().map(whole).collect();
        let (mut matcher, mut found) = (InterestMatcher::new(), Vec::new());
        for (number, request) in (0_i64..).zip(&requests) {
            let hits = scene.find(request).unwrap().hits;
            found.push(hits.into_iter().map(|hit| hit.key).collect::<Vec<_>>());
            matcher.insert(number, interest(number, request));
        }
        for (_, one) in oracle::current(&versions) {
            let indexed = one.indexed();
            let codes = &indexed.facets[Facet::ProductCode.index()];
            let covers = |request: &SearchCriteria| match &request.coverage {
                Coverage::Everything => false,
                Coverage::Products(covered) => covered.iter().any(|code| codes.contains(code)),
            };
            let covering = (0..).zip(&requests).filter(|(_, request)| covers(request));
            let agreements = covering.map(|(number, _)| AgreementId(number)).collect();
            let item =
                MatchSubject { media_type: one.media_type, indexed: &indexed, agreements: &agreements };
            let finds = |(_, keys): &(i64, &Vec<ItemKey>)| keys.contains(&one.key());
            let expected: Vec<i64> =
                (0..).zip(&found).filter(finds).map(|(number, _)| number).collect();
            prop_assert_eq!(matcher.matching(&item), expected, "{:?}", one);
        }
    }
}
