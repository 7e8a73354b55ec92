//! The index is emptied in portions and made anew, whatever comes in meanwhile and however often it is begun.

use jiff::tz::TimeZone;

use super::connection::Place;
use super::statements::search::WordColumn;
use super::{Db, DbError, Lookup, NewItem};
use crate::clock;
use crate::item::{Document, PubStatus};
use crate::query::Indexed;
use crate::types::ItemKey;

fn write(db: &Db, id: &str) {
    let key: ItemKey = format!("text/{id}").parse().unwrap();
    let json = format!(
        r#"{{"uri":"http://here/text/{id}","type":"text","headline":"storm {id}",
            "versioncreated":"2026-01-01T00:00:00Z","pubstatus":"usable"}}"#
    );
    let document = Document::from_stored(&json).unwrap();
    let now = clock::now();
    let item = NewItem {
        indexed: Indexed::of(&key, &document, &TimeZone::UTC),
        key,
        document: json,
        assets: None,
        pub_status: PubStatus::Usable,
        order_time: now,
        embargoed: None,
        stored: now,
        fresh: true,
    };
    db.write_blocking(move |tx| tx.write_item(&item)).unwrap();
}

fn with_items(items: &[&str]) -> (Db, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    items.iter().for_each(|id| write(&db, id));
    (db, dir)
}

/// How many items the index has, and in how many of them it finds the word that all have.
fn indexed(db: &Db) -> (usize, usize) {
    let lookup = Lookup {
        column: WordColumn::Headline,
        phrase: "storm".to_owned(),
        prefix: false,
        tags: Vec::new(),
    };
    let read = move |tx: &super::ReadTx<'_>| {
        let mut found = 0;
        tx.each_doc(&lookup, 0, |_| found += 1)?;
        Ok((tx.indexed_items()?, found))
    };
    db.read_blocking(read).unwrap()
}

fn reindex(db: &Db) {
    db.reindex(&TimeZone::UTC, clock::now(), &mut |_, _| ()).unwrap();
}

#[track_caller]
fn is_whole(db: &Db, items: usize) {
    assert!(db.index_is_current().unwrap());
    assert_eq!(indexed(db), (items, items));
    let flaws = db.read_blocking(|tx| tx.index_flaws()).unwrap();
    assert!(flaws.is_empty(), "{flaws:?}");
}

#[test]
fn an_index_larger_than_a_portion_is_emptied_whole_and_made_again() {
    let (db, _dir) = with_items(&["a", "b", "c", "d", "e", "f", "g"]);
    is_whole(&db, 7);
    let mut portions = 0;
    db.clear_index(2, &mut || portions += 1).unwrap();
    assert_eq!(indexed(&db), (0, 0));
    assert!(!db.index_is_current().unwrap());
    let in_portions = match db.threads.place() {
        Place::File(_) | Place::FileToRead(_) => 0,
        Place::Server(_) => 4,
    };
    assert_eq!(portions, in_portions);
    // What comes in meanwhile is found too.
    write(&db, "h");
    write(&db, "a");
    reindex(&db);
    is_whole(&db, 8);
}

#[test]
fn a_run_that_was_cut_short_is_begun_again_and_one_that_was_overtaken_ends() {
    let (db, _dir) = with_items(&["a", "b", "c"]);
    let (first, _) = db.write_blocking(|tx| tx.begin_reindex()).unwrap();
    let (second, last) = db.write_blocking(|tx| tx.begin_reindex()).unwrap();
    let clear = |run| db.write_blocking(move |tx| tx.clear_portion(run, (0, last), 1));
    assert!(matches!(clear(first), Err(DbError::Schema(_))));
    // Half of it is gone.
    clear(second).unwrap();
    assert!(!db.index_is_current().unwrap());
    write(&db, "b");
    reindex(&db);
    is_whole(&db, 3);
    assert!(matches!(clear(second), Err(DbError::Schema(_))), "it is over");
}
