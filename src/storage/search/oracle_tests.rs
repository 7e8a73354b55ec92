//! Search through the database against a plain look at every item.

use proptest::prelude::*;
use search_index::oracle::{self, Answer, Ask, Version};

use super::tests::Scene;
use super::{Hit, Request};
use crate::storage::database::NewItem;

/// A version as it is written.
pub(super) fn item(version: &Version) -> NewItem {
    NewItem {
        key: version.key(),
        document: version.document().to_stored(),
        assets: None,
        pub_status: version.status(),
        order_time: version.order(),
        embargoed: version.embargoed(),
        stored: oracle::start(),
        fresh: true,
    }
}

/// The same search as a request.
pub(super) fn request(ask: &Ask) -> Request {
    let filter = &ask.filter;
    Request {
        media_type: filter.media_type,
        query: filter.query.clone(),
        products: filter.products.clone(),
        products_excluded: filter.products_excluded.clone(),
        coverage: filter.coverage.clone(),
        from: filter.from,
        until: filter.until,
        statuses: filter.statuses.clone(),
        sees_embargoed: filter.hides_embargoed_at.is_none(),
        after: None,
        unseen: None,
        sort: ask.page.sort,
        skip: ask.page.skip,
        size: ask.page.size,
        facets: ask.facets.clone(),
    }
}

/// What a search answers; `versions` say which number each item has.
fn answer(scene: &Scene, ask: &Ask, versions: &[(u32, Version)]) -> Answer {
    let found = scene.find(&request(ask)).unwrap();
    let number = |hit: &Hit| {
        versions.iter().find(|(_, one)| one.key() == hit.key).map(|(number, _)| *number)
    };
    let hits = found.hits.iter().filter_map(number).collect();
    Answer { total: found.total, hits, facets: found.facets }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_look_at_every_item_finds(
        batches in proptest::collection::vec(oracle::versions(160), 1..4),
        asks in proptest::collection::vec(oracle::asks(), 24),
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
                // Such a place is an item's here, which another test looks at.
                (ask.filter.after, ask.filter.newer_than) = (None, None);
                let expected = oracle::answer(&indexed, &ask);
                prop_assert_eq!(answer(&scene, &ask, &current), expected, "{:#?}", ask);
            }
        }
    }
}
