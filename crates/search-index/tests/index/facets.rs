//! Cached facet counts over large sets, while versions are added and removed.

use crate::common::{NEVER, add, filter, position};
use query::Facet;
use search_index::{FacetCondition, IndexWriter, SearchFilter, SearchIndex};

/// Number of items, half of them by each of two copyright holders.
const ITEMS: u32 = 12_000;

fn add_held(writer: &mut IndexWriter, number: u32) {
    let holder = if number.is_multiple_of(2) { "Even" } else { "Odd" };
    add(writer, number, holder, "storm");
}

fn counts(index: &SearchIndex, query: &str, gone: &[u32]) -> Vec<(String, u64)> {
    let filter = filter(query);
    let snapshot = index.snapshot();
    let found = snapshot.find(&filter, gone, NEVER).unwrap();
    found.facets(&[Facet::CopyrightHolder], NEVER).unwrap().remove(0).1
}

fn expected(even: u64, odd: u64) -> Vec<(String, u64)> {
    let mut counts = vec![("Even".to_owned(), even), ("Odd".to_owned(), odd)];
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[test]
fn counts_of_large_sets_stay_correct_while_versions_change() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 10_000_000).unwrap();
    let mut writer = index.writer().unwrap();
    (1..=ITEMS).for_each(|number| add_held(&mut writer, number));
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    let half = u64::from(ITEMS / 2);
    for _ in 0..2 {
        assert_eq!(counts(&index, "storm", &[]), expected(half, half));
        assert_eq!(counts(&index, "-odd", &[]), [("Even".to_owned(), half)]);
        // Sets of the same size with different items.
        assert_eq!(counts(&index, "", &[1]), expected(half, half - 1));
        assert_eq!(counts(&index, "", &[2]), expected(half - 1, half));
    }
    writer.remove(2);
    add_held(&mut writer, ITEMS + 1);
    add_held(&mut writer, ITEMS + 3);
    writer.commit(&position(2)).unwrap();
    index.refresh().unwrap();
    for _ in 0..2 {
        assert_eq!(counts(&index, "storm", &[]), expected(half - 1, half + 2));
    }
}

#[test]
fn a_filter_finds_what_its_facet_counts() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 1_000_000).unwrap();
    let mut writer = index.writer().unwrap();
    let holders = ["Erik Berg", "Erik Berg Olsen", "Oslo", "Oslo Airport", "oslo", "Erik Berg"];
    for (number, holder) in (1..).zip(holders) {
        add(&mut writer, number, holder, "storm");
        // Several segments.
        writer.commit(&position(i64::from(number))).unwrap();
    }
    index.refresh().unwrap();
    let snapshot = index.snapshot();
    let total = |values: &[&str], is_excluded: bool| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let condition = FacetCondition { facet: Facet::CopyrightHolder, values, is_excluded };
        let filter = SearchFilter { facet_values: vec![condition], ..filter("storm") };
        snapshot.find(&filter, &[], NEVER).unwrap().total()
    };
    for (value, count) in counts(&index, "storm", &[]) {
        assert_eq!(total(&[value.as_str()], false), count, "{value}");
        assert_eq!(total(&[value.as_str()], true), 6 - count, "{value}");
    }
    assert_eq!(total(&["Erik Berg", "Oslo"], false), 3);
    assert_eq!(total(&["Erik Berg", "Oslo"], true), 3);
    assert_eq!(total(&["Erik"], false), 0);
}
