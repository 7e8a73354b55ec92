//! Compares the index with a plain evaluation of every item.

#![expect(clippy::unwrap_used, reason = "a test fails that way")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use query::IndexedDocument;
use search_index::testing::{self as oracle, OracleAnswer, SampleSearch, SampleVersion};
use search_index::{
    CommitPosition, IndexSnapshot, IndexWriter, ItemVersion, ResultPage, SearchIndex, SortDate,
    SortOrder,
};

const MEMORY_BYTES: u64 = 100_000;

fn position(row: usize) -> CommitPosition {
    let archive = "an archive".to_owned();
    let row = i64::try_from(row).unwrap();
    let (digest, settings) = (String::new(), String::new());
    CommitPosition { archive, analysis: 1, row, digest, settings }
}

/// Adds the versions from the index `first` on, removes the previous versions of the same items, and commits.
fn write(writer: &mut IndexWriter, written: &[SampleVersion], first: usize) {
    for (at, version) in written.iter().enumerate().skip(first) {
        let same = |other: &&SampleVersion| other.key() == version.key();
        if let Some(before) = written[..at].iter().rposition(|other| same(&other)) {
            writer.remove(number(before));
        }
        let (key, indexed) = (version.key(), version.indexed());
        let item = ItemVersion {
            number: number(at),
            key: &key,
            stored_ms: oracle::start().as_millisecond(),
            status: version.status,
            order_ms: version.order().as_millisecond(),
            embargoed_ms: version.embargoed().map(|until| until.as_millisecond()),
            indexed: &indexed,
        };
        writer.add(&item).unwrap();
    }
    writer.commit(&position(written.len())).unwrap();
}

fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap()
}

/// Compares the index with the oracle.
fn check(index: &SearchIndex, written: &[SampleVersion], asks: &[SampleSearch]) {
    let current = oracle::current(written);
    let current: Vec<_> =
        current.into_iter().map(|(number, one)| (number, one.clone(), one.indexed())).collect();
    let snapshot = index.snapshot();
    assert_eq!(snapshot.len(), current.len() as u64);
    assert_eq!(snapshot.position(), Some(&position(written.len())));
    for ask in asks {
        let on = &|| false;
        let found = snapshot.find(&ask.filter, &[], on).unwrap();
        let answer = OracleAnswer {
            total: found.total(),
            hits: found.page(ask.page, &ask.filter.query, on).unwrap(),
            facets: found.facets(&ask.facets, on).unwrap(),
        };
        assert_eq!(answer, oracle::answer(&current, ask), "{ask:#?}");
        check_relevance(&snapshot, &current, ask);
        // Versions named as removed must not appear, although the index still contains them.
        let gone: Vec<u32> = answer.hits.iter().copied().step_by(2).collect();
        let left: Vec<_> =
            current.iter().filter(|(number, ..)| !gone.contains(number)).cloned().collect();
        let found = snapshot.find(&ask.filter, &gone, on).unwrap();
        let without = oracle::answer(&left, ask);
        assert_eq!(found.total(), without.total);
        assert_eq!(found.page(ask.page, &ask.filter.query, on).unwrap(), without.hits);
        assert_eq!(found.facets(&ask.facets, on).unwrap(), without.facets);
    }
}

/// Checks that a search by relevance returns all matches, those as written first.
fn check_relevance(
    snapshot: &IndexSnapshot,
    current: &[(u32, SampleVersion, IndexedDocument)],
    ask: &SampleSearch,
) {
    let on = &|| false;
    let found = snapshot.find(&ask.filter, &[], on).unwrap();
    let page = |sort| ResultPage { sort, skip: 0, size: current.len() };
    let ranked = found.page(page(SortOrder::Relevance), &ask.filter.query, on).unwrap();
    let mut written = ask.clone();
    written.filter.query = written.filter.query.without_forms();
    written.page = page(SortOrder::By { date: SortDate::Order, descending: true });
    let written = oracle::answer(current, &written);
    let (first, others) = ranked.split_at_checked(written.hits.len()).unwrap();
    let sorted = |numbers: &[u32]| -> BTreeSet<u32> { numbers.iter().copied().collect() };
    assert_eq!(sorted(first), sorted(&written.hits), "{ask:#?}");
    assert_eq!(written.total + others.len() as u64, found.total());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_agrees_with_a_check_of_every_item(
        batches in proptest::collection::vec(oracle::versions(120), 1..5),
        asks in proptest::collection::vec(oracle::searches(), 24),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let index = SearchIndex::create(folder.path(), MEMORY_BYTES).unwrap();
        let mut writer = index.writer().unwrap();
        let mut written = Vec::new();
        for batch in batches {
            let first = written.len();
            written.extend(batch);
            write(&mut writer, &written, first);
            index.refresh().unwrap();
            check(&index, &written, &asks);
        }
        // The same results after reopening the index, and after merging its segments.
        writer.finish().unwrap();
        let again = SearchIndex::open(folder.path(), 0).unwrap();
        check(&again, &written, &asks);
    }
}
