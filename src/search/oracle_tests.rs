//! Search through the database against a plain look at every item.

use proptest::prelude::*;
use tempfile::TempDir;
use wirephoto_search_index::oracle::{self, Answer, Ask, Version};
use wirephoto_search_index::{Coverage as Covered, Sort as Order, SortDate as Date};

use super::{Coverage, Request, Search, Sort, SortDate};
use crate::db::{Db, NewItem};

/// A version as it is written.
fn item(version: &Version) -> NewItem {
    NewItem {
        key: version.key(),
        document: version.document().to_stored(),
        assets: None,
        pub_status: version.status(),
        order_time: version.order(),
        embargoed: version.embargoed(),
        stored: oracle::start(),
        fresh: true,
        indexed: version.indexed(),
    }
}

/// The same search as a request.
fn request(ask: &Ask) -> Request {
    let filter = &ask.filter;
    Request {
        media_type: filter.media_type,
        query: filter.query.clone(),
        products: filter.products.clone(),
        products_excluded: filter.products_excluded.clone(),
        coverage: match &filter.coverage {
            Covered::Everything => Coverage::Everything,
            Covered::Products(codes) => Coverage::Products(codes.clone()),
        },
        from: filter.from,
        until: filter.until,
        statuses: filter.statuses.clone(),
        sees_embargoed: filter.hides_embargoed_at.is_none(),
        after: None,
        sort: match ask.page.sort {
            Order::Relevance => Sort::Relevance,
            Order::By { date, descending } => {
                let date = match date {
                    Date::Order => SortDate::Order,
                    Date::Date => SortDate::Date,
                    Date::VersionCreated => SortDate::VersionCreated,
                    Date::VersionStored => SortDate::VersionStored,
                };
                Sort::By { date, descending }
            }
        },
        skip: ask.page.skip,
        size: ask.page.size,
        facets: ask.facets.clone(),
    }
}

struct Archive {
    db: Db,
    search: Search,
    _dir: TempDir,
}

impl Archive {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let search = Search::start(db.clone(), 100_000).unwrap();
        Self { db, search, _dir: dir }
    }

    fn write(&self, versions: &[Version]) {
        let items: Vec<_> = versions.iter().map(item).collect();
        let write = move |tx: &crate::db::WriteTx<'_>| {
            items.iter().try_for_each(|item| tx.write_item(item).map(|_| ()))
        };
        self.db.write_blocking(write).unwrap();
    }

    /// What a search answers; `versions` say which number each item has.
    fn answer(&self, ask: &Ask, versions: &[(u32, Version)]) -> Answer {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = self.search.search(request(ask), oracle::start(), |found, _| Ok(found));
        let found = runtime.block_on(found).unwrap();
        let number = |hit: &super::Hit| {
            versions.iter().find(|(_, one)| one.key() == hit.key).map(|(number, _)| *number)
        };
        let hits = found.hits.iter().filter_map(number).collect();
        Answer { total: found.total, hits, facets: found.facets }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_look_at_every_item_finds(
        batches in proptest::collection::vec(oracle::versions(160), 1..4),
        asks in proptest::collection::vec(oracle::asks(), 24),
    ) {
        let archive = Archive::new();
        let mut written = Vec::new();
        for batch in batches {
            archive.write(&batch);
            written.extend(batch);
            let current = oracle::current(&written);
            let indexed: Vec<_> =
                current.iter().map(|(number, one)| (*number, one.clone(), one.indexed())).collect();
            for mut ask in asks.clone() {
                // Such a place is an item's here, which another test looks at.
                ask.filter.after = None;
                let expected = oracle::answer(&indexed, &ask);
                prop_assert_eq!(archive.answer(&ask, &current), expected, "{:#?}", ask);
            }
        }
    }
}
