//! The matcher of notifications against search through the database.

use proptest::prelude::*;

use super::tests::{STATUSES, Scene, current, drawn, request};
use super::{Coverage, Request};
use crate::account::AgreementId;
use crate::matching::{Cover, Interest, Item, Matcher};
use crate::query::Facet;
use crate::types::ItemKey;

/// A request as an interest; what the caller's agreements cover is covered by the agreement
/// `number`.
fn interest(number: i64, request: &Request) -> Interest {
    Interest {
        media_type: request.media_type,
        query: request.query.clone(),
        products: request.products.clone(),
        products_excluded: request.products_excluded.clone(),
        cover: match &request.coverage {
            Coverage::Everything => Cover::Everything,
            Coverage::Products(_) => Cover::Agreements(vec![AgreementId(number)]),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_matcher_of_notifications_agrees_with_search(
        items in proptest::collection::vec(drawn(), 0..25),
        requests in proptest::collection::vec(request(), 1..20),
    ) {
        let scene = Scene::new();
        scene.write(&items);
        let (mut matcher, mut found) = (Matcher::new(), Vec::new());
        for (number, request) in (0_i64..).zip(&requests) {
            // What an item is searched for only; when and for whom it is there is not asked.
            let whole = Request {
                from: None,
                until: None,
                statuses: STATUSES.to_vec(),
                sees_embargoed: true,
                skip: 0,
                size: 100,
                ..request.clone()
            };
            let hits = scene.find(&scene.search, &whole).hits;
            found.push(hits.into_iter().map(|hit| hit.key).collect::<Vec<_>>());
            matcher.insert(number, interest(number, request));
        }
        // Items that are not served are not searched at all.
        let served = current(&items).into_iter().filter(|(_, one)| one.status.is_served());
        for (_, one) in served {
            let indexed = one.indexed();
            let codes = &indexed.facets[Facet::ProductCode.index()];
            let covers = |request: &Request| match &request.coverage {
                Coverage::Everything => false,
                Coverage::Products(covered) => covered.iter().any(|code| codes.contains(code)),
            };
            let covering = (0..).zip(&requests).filter(|(_, request)| covers(request));
            let agreements = covering.map(|(number, _)| AgreementId(number)).collect();
            let item =
                Item { media_type: one.media_type, indexed: &indexed, agreements: &agreements };
            let finds = |(_, keys): &(i64, &Vec<ItemKey>)| keys.contains(&one.key());
            let expected: Vec<i64> =
                (0..).zip(&found).filter(finds).map(|(number, _)| number).collect();
            prop_assert_eq!(matcher.matching(&item), expected, "{:?}", one);
        }
    }
}
