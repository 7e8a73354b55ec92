//! Tests search through the database against a plain scan of every item.

use proptest::prelude::*;
use search_index::testing::{self as oracle, OracleAnswer, SampleSearch, SampleVersion};

use super::tests::Scene;
use super::{SearchCriteria, SearchHit};
use crate::storage::database::NewItem;

/// A version as it is written.
pub(super) fn item(version: &SampleVersion) -> NewItem {
    NewItem {
        key: version.key(),
        document: version.document().to_stored(),
        assets: None,
        pub_status: version.status,
        order_time: version.order(),
        embargoed: version.embargoed(),
        stored: oracle::start(),
        is_newly_indexed: true,
    }
}

/// Converts a sample search to a request.
pub(super) fn request(ask: &SampleSearch) -> SearchCriteria {
    let filter = &ask.filter;
    SearchCriteria {
        media_type: filter.media_type,
        query: filter.query.clone(),
        facet_values: filter.facet_values.clone(),
        near_picture: filter.near_picture,
        products: filter.products.clone(),
        products_excluded: filter.products_excluded.clone(),
        coverage: filter.coverage.clone(),
        from: filter.from,
        until: filter.until,
        statuses: filter.statuses.clone(),
        sees_embargoed: filter.hides_embargoed_at.is_none(),
        after: None,
        excluding_seen: None,
        sort: ask.page.sort,
        skip: ask.page.skip,
        size: ask.page.size,
        facets: ask.facets.clone(),
    }
}

/// Returns the answer of a search; `versions` maps numbers to items.
fn answer(scene: &Scene, ask: &SampleSearch, versions: &[(u32, SampleVersion)]) -> OracleAnswer {
    let found = scene.find(&request(ask)).unwrap();
    let number = |hit: &SearchHit| {
        versions.iter().find(|(_, one)| one.key() == hit.key).map(|(number, _)| *number)
    };
    let hits = found.hits.iter().filter_map(number).collect();
    OracleAnswer { total: found.total, hits, facets: found.facets }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_search_agrees_with_a_check_of_every_item(
        batches in proptest::collection::vec(oracle::versions(160), 1..4),
        asks in proptest::collection::vec(oracle::searches(), 24),
    ) {
        let scene = Scene::new();
        let mut written = Vec::new();
        for batch in batches {
            scene.write(batch.iter().map(item).collect());
            written.extend(batch);
            let current = oracle::current(&written);
            let indexed: Vec<_> =
                current.iter().map(|(number, one)| (*number, one.clone(), one.indexed())).collect();
            for mut ask in asks.clone() {
                // Such a position belongs to an item here, which another test covers.
                (ask.filter.after, ask.filter.newer_than) = (None, None);
                let expected = oracle::answer(&indexed, &ask);
                prop_assert_eq!(answer(&scene, &ask, &current), expected, "{:#?}", ask);
            }
        }
    }
}
