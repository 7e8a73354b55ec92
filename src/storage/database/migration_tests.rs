//! Tests migrations with a made-up second version of the schema, on the engine that tests run on.

use std::path::Path;

use super::engine::params;
use super::migrations::{LATEST, Migration, POSTGRES, SCHEMA_HASH, SQLITE};
use super::{Db, DbError};

/// A migration that adds a table, and a column to a table with rows.
const LATER: &str = "CREATE TABLE later (number INTEGER PRIMARY KEY);
    ALTER TABLE state ADD COLUMN more TEXT NOT NULL DEFAULT 'added'";

/// Opens the database of that folder with one migration more.
fn open_later(dir: &Path, sql: &'static str) -> Result<Db, DbError> {
    let later = Migration { number: LATEST + 1, sql };
    Db::scratch_with(dir, &[&SQLITE[..], &[later]].concat(), &[&POSTGRES[..], &[later]].concat())
}

/// Creates a database with a row in `state`.
fn create(dir: &Path) {
    let db = Db::scratch(dir).unwrap();
    write(&db, "INSERT INTO state (name, value) VALUES ('kept', 'value')");
}

fn write(db: &Db, sql: &str) {
    let sql = sql.to_owned();
    db.write_blocking(move |tx| tx.run_sql(&sql)).unwrap();
}

fn find(db: &Db, sql: &'static str) -> Result<Option<String>, DbError> {
    db.read_blocking(move |tx| tx.tx.find_value(sql, params![]))
}

/// Checks that the database is refused, with a message that contains `part`.
#[track_caller]
fn is_refused(opened: Result<Db, DbError>, part: &str) {
    let Err(DbError::Schema(words)) = opened.map(drop) else { panic!("it was opened: {part}") };
    assert!(words.contains(part), "{words}");
}

#[test]
fn an_archive_is_upgraded_once_and_keeps_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let db = open_later(dir.path(), LATER).unwrap();
    assert_eq!(db.upgraded, Some((LATEST, LATEST + 1)));
    let kept = "SELECT value || ' ' || more FROM state WHERE name = 'kept'";
    assert_eq!(find(&db, kept).unwrap().as_deref(), Some("value added"));
    drop(db);
    assert_eq!(open_later(dir.path(), LATER).unwrap().upgraded, None);
    is_refused(Db::scratch(dir.path()), "a later version wrote it");
}

#[test]
fn a_new_archive_runs_all_migrations_and_was_not_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let db = open_later(dir.path(), LATER).unwrap();
    assert_eq!(db.upgraded, None);
    let more = "SELECT DISTINCT more FROM state";
    assert_eq!(find(&db, more).unwrap().as_deref(), Some("added"));
}

#[test]
fn a_failed_migration_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let failing = "CREATE TABLE later (number INTEGER PRIMARY KEY); DELETE FROM nowhere";
    is_refused(open_later(dir.path(), failing), &format!("step {}", LATEST + 1));
    let db = Db::scratch(dir.path()).unwrap();
    let kept = "SELECT value FROM state WHERE name = 'kept'";
    assert_eq!(find(&db, kept).unwrap().as_deref(), Some("value"));
    assert!(find(&db, "SELECT CAST(number AS TEXT) FROM later").is_err());
    drop(db);
    // Nothing was lost: the corrected migration succeeds.
    assert!(open_later(dir.path(), LATER).unwrap().upgraded.is_some());
}

#[test]
fn an_archive_of_a_different_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    // Stays open: a running process keeps working.
    let db = Db::scratch(dir.path()).unwrap();
    let hash = find(&db, "SELECT value FROM state WHERE name = 'schema hash'").unwrap().unwrap();
    for change in ["UPDATE state SET value = 'other'", "DELETE FROM state"] {
        write(&db, &format!("{change} WHERE name = '{SCHEMA_HASH}'"));
        is_refused(Db::scratch(dir.path()), "a different schema");
        is_refused(open_later(dir.path(), LATER), "a different schema");
        write(&db, &format!("DELETE FROM state WHERE name = '{SCHEMA_HASH}'"));
        write(&db, &format!("INSERT INTO state (name, value) VALUES ('{SCHEMA_HASH}', '{hash}')"));
        assert_eq!(Db::scratch(dir.path()).unwrap().upgraded, None);
    }
}

#[test]
fn a_data_directory_in_use_is_not_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let later = [SQLITE[0], Migration { number: LATEST + 1, sql: LATER }];
    let db = Db::open(dir.path()).unwrap();
    let refused = Db::open_with(dir.path(), &later).map(drop);
    assert!(matches!(&refused, Err(DbError::InUse(why)) if why.contains("stop the service")));
    drop(db);
    let upgraded = Db::open_with(dir.path(), &later).unwrap().upgraded;
    assert_eq!(upgraded, Some((LATEST, LATEST + 1)));
}
