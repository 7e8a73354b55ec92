//! Failures: killed processes, damaged files, expired deadlines, a second writer.

use std::cell::Cell;
use std::fs;

use crate::common::{NEVER, add, filter, found, numbers, position};
use search_index::{IndexError, ResultPage, SearchIndex, SortDate, SortOrder};

const NEWEST: SortOrder = SortOrder::By { date: SortDate::Order, descending: true };

const MEMORY_BYTES: u64 = 1_000_000;

#[test]
fn uncommitted_writes_are_lost_in_a_crash_and_the_position_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), MEMORY_BYTES).unwrap();
    assert_eq!(index.snapshot().position(), None);
    let mut writer = index.writer().unwrap();
    add(&mut writer, 1, "storm", "");
    writer.commit(&position(1)).unwrap();
    add(&mut writer, 2, "storm", "");
    writer.remove(1);
    drop(writer);
    drop(index);
    let index = SearchIndex::open(folder.path(), MEMORY_BYTES).unwrap();
    assert_eq!(index.snapshot().position(), Some(&position(1)));
    assert_eq!(found(&index, "storm", NEWEST), [1]);
    // The new process continues from the last commit.
    let mut writer = index.writer().unwrap();
    writer.remove(1);
    add(&mut writer, 2, "storm", "");
    writer.commit(&position(2)).unwrap();
    assert_eq!(found(&index, "storm", NEWEST), [1], "nothing changes before it is refreshed");
    index.refresh().unwrap();
    assert_eq!(found(&index, "storm", NEWEST), [2]);
    assert_eq!(index.snapshot().position(), Some(&position(2)));
}

#[test]
fn a_second_writer_is_refused_while_the_first_one_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), MEMORY_BYTES).unwrap();
    let first = index.writer().unwrap();
    let other = SearchIndex::open(folder.path(), MEMORY_BYTES).unwrap();
    assert!(matches!(other.writer(), Err(IndexError::Engine(_))));
    drop(first);
    assert!(other.writer().is_ok());
}

#[test]
fn a_snapshot_is_stable_while_segments_are_merged_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 0).unwrap();
    let mut writer = index.writer().unwrap();
    add(&mut writer, 1, "storm", "vinter");
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    let before = index.snapshot();
    for number in 2..60 {
        add(&mut writer, number, "storm", "vinter");
        writer.remove(number - 1);
        writer.commit(&position(i64::from(number))).unwrap();
        index.refresh().unwrap();
        assert_eq!(found(&index, "storm vinter", NEWEST), [number]);
    }
    writer.finish().unwrap();
    assert_eq!(numbers(&before, "storm vinter", NEWEST), [1]);
}

#[test]
fn a_search_past_its_deadline_is_an_error_and_never_a_partial_result() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), 0).unwrap();
    let mut writer = index.writer().unwrap();
    for number in 1..=12_000 {
        let body = if number % 2 == 0 { "vinter is" } else { "is vinter" };
        add(&mut writer, number, "storm", body);
    }
    writer.commit(&position(12_000)).unwrap();
    index.refresh().unwrap();
    let snapshot = index.snapshot();
    for (query, total) in [("vint*", 12_000), ("\"vinter is\"", 6000), ("storm -is-vint*", 6000)] {
        let filter = filter(query);
        // The deadline expires after one more check each time, until the search completes.
        for looks in 0.. {
            let left = Cell::new(looks);
            let is_over = || {
                let now = left.get();
                left.set(now - i32::from(now > 0));
                now == 0
            };
            match snapshot.find(&filter, &[], &is_over) {
                Err(IndexError::TimedOut) => assert!(looks < 1000, "{query}"),
                Err(other) => panic!("{query}: {other}"),
                Ok(found) => {
                    assert!(looks > 0, "{query}: the time is looked at");
                    assert_eq!(found.total(), total, "{query}");
                    break;
                }
            }
        }
    }
}

#[test]
fn damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), MEMORY_BYTES).unwrap();
    let mut writer = index.writer().unwrap();
    add(&mut writer, 1, "storm", "vinter");
    writer.commit(&position(1)).unwrap();
    writer.finish().unwrap();
    assert_eq!(index.damaged_files().unwrap(), [""; 0]);
    let postings = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let postings: Vec<_> =
        postings.filter(|path| path.extension().is_some_and(|kind| kind == "idx")).collect();
    let [postings] = postings.as_slice() else { panic!("{postings:?}") };
    let mut bytes = fs::read(postings).unwrap();
    bytes[3] ^= 1;
    fs::remove_file(postings).unwrap();
    fs::write(postings, bytes).unwrap();
    let index = SearchIndex::open(folder.path(), MEMORY_BYTES).unwrap();
    let name = postings.file_name().unwrap().to_str().unwrap();
    assert_eq!(index.damaged_files().unwrap(), [name]);
}

#[test]
fn a_folder_that_holds_no_index_or_another_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(SearchIndex::open(folder.path(), MEMORY_BYTES).is_err());
    fs::write(folder.path().join("meta.json"), "{").unwrap();
    assert!(SearchIndex::open(folder.path(), MEMORY_BYTES).is_err());
}

#[test]
fn a_page_beyond_the_last_hit_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::create(folder.path(), MEMORY_BYTES).unwrap();
    let mut writer = index.writer().unwrap();
    add(&mut writer, 1, "storm", "");
    writer.commit(&position(1)).unwrap();
    index.refresh().unwrap();
    let (snapshot, filter) = (index.snapshot(), filter("storm"));
    let found = snapshot.find(&filter, &[], NEVER).unwrap();
    let page =
        |skip, size| found.page(ResultPage { sort: NEWEST, skip, size }, &filter.query, NEVER);
    assert_eq!(page(1, 20).unwrap(), [0; 0]);
    assert_eq!(page(0, 0).unwrap(), [0; 0]);
    assert_eq!(page(usize::MAX, usize::MAX).unwrap(), [0; 0]);
}
