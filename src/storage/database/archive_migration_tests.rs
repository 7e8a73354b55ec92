//! Tests migrations of an archive between two databases: their repetition, their reversal and the comparisons.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::statements::archive_migration::ITEMS;
use super::{ArchiveMigration, CopyOriginals, Db, DbError, MigratedRows, NewItem, NewNode};
use crate::runtime::clock;
use model::ItemKey;
use model::item::PubStatus;

fn open(dir: &Path) -> Db {
    std::fs::create_dir_all(dir).unwrap();
    Db::open(dir).unwrap()
}

fn write(db: &Db, id: &str, headline: &str) {
    let key: ItemKey = format!("text/{id}").parse().unwrap();
    let json = format!(
        r#"{{"uri":"http://here/text/{id}","type":"text","headline":"{headline}",
            "versioncreated":"2026-01-01T00:00:00Z","pubstatus":"usable"}}"#
    );
    let now = clock::now();
    let item = NewItem {
        key,
        document: json,
        assets: None,
        pub_status: PubStatus::Usable,
        order_time: now,
        embargoed: None,
        stored: now,
        is_newly_indexed: true,
    };
    db.write_blocking(move |tx| tx.write_item(&item)).unwrap();
}

fn begin(from: &Db, to: &Db) -> Result<ArchiveMigration, DbError> {
    ArchiveMigration::begin(from, to, Arc::new(|_, _| {}))
}

fn finish(migration: &ArchiveMigration, switch: Option<&str>) -> Result<MigratedRows, DbError> {
    let carry: CopyOriginals = Arc::new(|_| Ok(()));
    migration.finish(i64::MAX, &carry, switch)
}

fn headlines(db: &Db) -> Vec<String> {
    db.read_blocking(|tx| {
        let mut found = Vec::new();
        tx.for_each_batch(&ITEMS, |batch| {
            found.push(format!("{batch:?}"));
            Ok(())
        })?;
        Ok(found)
    })
    .unwrap()
}

#[test]
fn a_rehearsal_is_repeated_and_then_the_archive_moves() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
    write(&from, "one", "first");
    write(&from, "two", "second");
    let migration = begin(&from, &to).unwrap();
    assert_eq!(migration.catch_up().unwrap(), 2);
    write(&from, "one", "first again");
    let moved = finish(&migration, None).unwrap();
    assert_eq!(moved.count("items"), 2);
    assert!(to.is_migration_target().unwrap());
    assert_eq!(headlines(&from), headlines(&to));
    assert_eq!(from.moved_to().unwrap(), None);
    // Another day.
    write(&from, "two", "second again");
    write(&from, "three", "third");
    let moved = finish(&begin(&from, &to).unwrap(), Some("elsewhere")).unwrap();
    assert_eq!(moved.count("items"), 3);
    assert_eq!(headlines(&from), headlines(&to));
    assert!(!to.is_migration_target().unwrap());
    assert_eq!(from.moved_to().unwrap().as_deref(), Some("elsewhere"));
    let refused = from.write_blocking(|tx| tx.mark_migration_target(false));
    assert!(matches!(refused, Err(DbError::Moved(home)) if home == "elsewhere"));
    // A target that was not in use is migrated to again; one that was in use is refused.
    write(&to, "four", "fourth");
    let refused = begin(&from, &to).map(drop);
    assert!(matches!(refused, Err(DbError::InUse(_))), "{refused:?}");
    from.cancel_move().unwrap();
    write(&from, "five", "fifth");
}

#[test]
fn a_migration_is_undone_only_if_the_new_database_was_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
    write(&from, "one", "first");
    write(&from, "two", "second");
    finish(&begin(&from, &to).unwrap(), Some("elsewhere")).unwrap();
    let refuses = |words: &str| {
        let refused = from.invalidate_target(&to);
        assert!(
            matches!(&refused, Err(DbError::InUse(why)) if why.contains(words)),
            "{words}: {refused:?}"
        );
        assert!(!to.is_migration_target().unwrap(), "{words}");
    };
    let (incarnation, now) = (Uuid::new_v4(), clock::now());
    to.write_blocking(move |tx| {
        tx.begin_incarnation(&NewNode::bare(incarnation, "node-1"), &[], now)
    })
    .unwrap();
    refuses("node-1");
    to.write_blocking(move |tx| tx.end_incarnation(incarnation, now)).unwrap();
    to.write_blocking(|tx| tx.run_sql("INSERT INTO state (name, value) VALUES ('a', 'b')"))
        .unwrap();
    refuses("state");
    to.write_blocking(|tx| tx.run_sql("DELETE FROM state WHERE name = 'a'")).unwrap();
    // Nothing is left of the incarnation: it wrote no rows.
    from.invalidate_target(&to).unwrap();
    assert!(to.is_migration_target().unwrap());
    // Interrupted before its end, and repeated.
    from.invalidate_target(&to).unwrap();
    from.cancel_move().unwrap();
    write(&from, "two", "second again");
    // Another day.
    finish(&begin(&from, &to).unwrap(), Some("elsewhere")).unwrap();
    assert_eq!(headlines(&from), headlines(&to));
    write(&to, "three", "third");
    refuses("items");
}

#[test]
fn a_dry_run_does_not_block_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
    write(&from, "one", "words");
    let migration = begin(&from, &to).unwrap();
    // Another process, in the middle of the move.
    let beside = open(&dir.path().join("from"));
    let carry: CopyOriginals = Arc::new(move |_| {
        write(&beside, "two", "words");
        Ok(())
    });
    let moved = migration.finish(i64::MAX, &carry, None).unwrap();
    assert_eq!(moved.count("items"), 1, "one state went over");
    assert_eq!(finish(&migration, Some("elsewhere")).unwrap().count("items"), 2);
}

#[test]
fn a_log_that_differs_from_the_copied_one_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
    for id in ["one", "two", "three"] {
        write(&from, id, "words");
    }
    finish(&begin(&from, &to).unwrap(), None).unwrap();
    // Rows that were trimmed here are no difference.
    from.write_blocking(|tx| tx.run_sql("DELETE FROM item_log WHERE seq = 1")).unwrap();
    finish(&begin(&from, &to).unwrap(), None).unwrap();
    from.write_blocking(|tx| tx.run_sql("UPDATE item_log SET at_ms = 1 WHERE seq = 3")).unwrap();
    let refused = begin(&from, &to).map(drop);
    assert!(matches!(refused, Err(DbError::InUse(_))), "{refused:?}");
}

#[test]
fn rows_of_any_number_go_over_as_they_are() {
    for rows in [1, 2, 7, 256, 500, 1011] {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
        from.write_blocking(move |tx| {
            tx.run_sql(&format!(
                "INSERT INTO state (name, value) WITH RECURSIVE n (n) AS
                     (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})
                 SELECT 'name ' || (n * 7919 % 2003), 'value ' || n FROM n"
            ))
        })
        .unwrap();
        // Rows left by a dry run are replaced.
        finish(&begin(&from, &to).unwrap(), None).unwrap();
        finish(&begin(&from, &to).unwrap(), Some("elsewhere")).unwrap();
        let states = |db: &Db| db.read_blocking(|tx| tx.list_states("name ")).unwrap();
        assert_eq!(states(&from).len(), rows);
        assert_eq!(states(&from), states(&to));
    }
}

#[test]
fn numbers_that_were_given_are_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (open(&dir.path().join("from")), open(&dir.path().join("to")));
    for id in ["one", "two", "three"] {
        write(&from, id, "words");
    }
    from.write_blocking(|tx| tx.run_sql("DELETE FROM item_log")).unwrap();
    finish(&begin(&from, &to).unwrap(), Some("elsewhere")).unwrap();
    write(&to, "four", "words");
    assert_eq!(to.read_blocking(|tx| tx.log_end()).unwrap().row, 4);
}
