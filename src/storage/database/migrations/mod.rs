//! Holds the schema as numbered migrations, and the rules by which both engines run them.
//!
//! A release that changes the schema adds a migration with the next number for each engine, and a released
//! migration never changes. Until the first release, migration 1 is edited in place. A database stores the
//! hash of the migrations that made its tables, so that tables of an abandoned edit are refused. All pending
//! migrations run in one transaction. A schema with a higher number than [`LATEST`] is refused and left
//! unchanged. Each engine decides which other processes may use the database in the meantime: SQLite with the
//! lock of the data directory, PostgreSQL by the incarnations of nodes.

use std::fmt::Display;

use super::engine::{EngineTransaction, params};
use super::error::{DbError, DbResult};
use model::ContentHash;

/// A migration of one engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Migration {
    /// The schema number that it leads to.
    pub(super) number: i64,
    pub(super) sql: &'static str,
}

/// SQLite's migrations, in order.
pub(super) const SQLITE: [Migration; 1] =
    [Migration { number: 1, sql: include_str!("sqlite/0001.sql") }];

/// PostgreSQL's migrations, in order.
pub(super) const POSTGRES: [Migration; 1] =
    [Migration { number: 1, sql: include_str!("postgres/0001.sql") }];

/// The schema number that this version works with.
pub const LATEST: i64 = SQLITE[SQLITE.len() - 1].number;
const _: () = assert!(
    POSTGRES[POSTGRES.len() - 1].number == LATEST && POSTGRES.len() == SQLITE.len(),
    "both engines have the same schemas"
);

/// The row of `state` with the hash of the migrations that made the tables.
pub(super) const SCHEMA_HASH: &str = "schema hash";

/// The schema of an existing database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredSchema {
    /// 0 if there are no tables.
    pub(super) number: i64,
    /// The hash of the migrations that made the tables.
    pub(super) hash: Option<String>,
}

/// The relation between a stored schema and the schema of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaStatus {
    /// There are no tables: all migrations run.
    New,
    /// The schema is up to date: nothing runs.
    Current,
    /// The migrations after this number run.
    Older(i64),
}

impl SchemaStatus {
    /// Compares the schema of `database` with the one that `migrations` lead to.
    ///
    /// Fails with [`DbError::Schema`], which names `database`, if the schema belongs to a later version of
    /// the product, or to a development version with different migrations.
    pub(super) fn compare(
        stored: &StoredSchema,
        migrations: &[Migration],
        database: &dyn Display,
    ) -> DbResult<Self> {
        if stored.number == 0 {
            return Ok(Self::New);
        }
        let Some(hash) = &stored.hash else { return Err(abandoned(database)) };
        let latest = latest(migrations);
        if stored.number > latest {
            return Err(later(stored.number, latest, database));
        }
        let count = migrations.partition_point(|migration| migration.number <= stored.number);
        if *hash != schema_hash(&migrations[..count]) {
            return Err(abandoned(database));
        }
        Ok(if stored.number < latest { Self::Older(stored.number) } else { Self::Current })
    }
}

/// Creates the error for a schema of a later version.
pub(super) fn later(found: i64, latest: i64, database: &dyn Display) -> DbError {
    DbError::Schema(format!(
        "{database} has schema {found} and this version of wirephoto knows schemas up to {latest}: \
         a later version wrote it, and only that one or a later one can use it"
    ))
}

/// Creates the error for a schema that was edited before its release.
fn abandoned(database: &dyn Display) -> DbError {
    DbError::Schema(format!(
        "{database} was created by a development version of wirephoto with a different schema, from \
         which no migration leads to this one: use that version, or create a new archive and ingest \
         the files again"
    ))
}

/// Returns the schema number that the migrations lead to.
pub(super) fn latest(migrations: &[Migration]) -> i64 {
    migrations.last().map_or(0, |last| last.number)
}

/// Computes the hash of the statements of all `migrations`. Comments, line breaks and indentation do not count.
pub(super) fn schema_hash(migrations: &[Migration]) -> String {
    let mut hash = ContentHash::hasher();
    for migration in migrations {
        for line in migration.sql.lines() {
            // No text in a migration contains two hyphens, so they always begin a comment.
            let code = line.split("--").next().unwrap_or_default();
            for word in code.split_whitespace() {
                hash.update(word.as_bytes());
                hash.update(b" ");
            }
        }
        hash.update(b"\n");
    }
    hash.finish().to_string()
}

/// Finds the stored hash of the migrations that made the tables.
pub(super) fn find_hash(tx: &dyn EngineTransaction) -> DbResult<Option<String>> {
    tx.find_value("SELECT value FROM state WHERE name = ?1", params![SCHEMA_HASH])
}

/// Stores the hash of the migrations that made the tables.
pub(super) fn write_hash(tx: &dyn EngineTransaction, migrations: &[Migration]) -> DbResult<()> {
    let sql = "INSERT INTO state (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    tx.run(sql, params![SCHEMA_HASH, schema_hash(migrations)])
}

/// Logs that migrations begin on tables in use. `copy` names the copy to which the operator can return.
pub(super) fn log_upgrade(from: i64, to: i64, copy: &str) {
    tracing::warn!(
        from,
        to,
        "the schema of the database is being upgraded; earlier versions of wirephoto cannot use \
         it afterwards, and only a {copy} from before restores it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes of the released schemas by engine, SQLite first. A release adds a row.
    const RELEASED: [[&str; 2]; 0] = [];

    #[test]
    fn a_released_migration_never_changes() {
        for (at, [sqlite, postgres]) in RELEASED.iter().enumerate() {
            assert_eq!(schema_hash(&SQLITE[..=at]), *sqlite);
            assert_eq!(schema_hash(&POSTGRES[..=at]), *postgres);
        }
        let is_development = env!("CARGO_PKG_VERSION").ends_with("-dev");
        assert!(
            is_development || RELEASED.len() == SQLITE.len(),
            "a release records the hashes of its schemas: {} and {}",
            schema_hash(&SQLITE),
            schema_hash(&POSTGRES)
        );
    }

    #[test]
    fn numbers_begin_at_one_and_have_no_gap() {
        for migrations in [SQLITE, POSTGRES] {
            let numbers = migrations.iter().map(|migration| migration.number);
            assert!(numbers.eq(1..=LATEST));
        }
    }

    /// Lists the columns that the statements of a schema create, each as `table.column`.
    fn created_columns(sql: &str) -> Vec<String> {
        let mut table = None;
        let mut columns = Vec::new();
        for line in sql.lines() {
            if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
                table = rest.split(' ').next();
            } else if line.starts_with(')') {
                table = None;
            }
            let name = line.strip_prefix("    ").and_then(|rest| rest.split(' ').next());
            // Constraints begin with a keyword in capital letters.
            if let (Some(table), Some(name)) = (table, name)
                && name.starts_with(|first: char| first.is_ascii_lowercase())
            {
                columns.push(format!("{table}.{name}"));
            }
        }
        columns
    }

    #[test]
    fn both_engines_have_the_same_columns() {
        let sqlite = created_columns(SQLITE[0].sql);
        let mut postgres = created_columns(POSTGRES[0].sql);
        // SQLite has this column in every table.
        postgres.retain(|column| column != "licenses.rowid");
        assert!(sqlite.len() > 100 && sqlite.contains(&"items.document".to_owned()));
        assert_eq!(sqlite, postgres);
    }

    /// Computes the hash of migrations with these statements.
    fn hash_of(texts: &[&'static str]) -> String {
        let migrations: Vec<Migration> =
            (1..).zip(texts).map(|(number, sql)| Migration { number, sql }).collect();
        schema_hash(&migrations)
    }

    #[test]
    fn comments_and_spaces_do_not_count_and_statements_do() {
        let hash = hash_of(&["CREATE TABLE a (b TEXT, c TEXT);"]);
        let same = "-- Why.\nCREATE TABLE a\n    (b TEXT, -- what\n    c TEXT);\n";
        assert_eq!(hash_of(&[same]), hash);
        for other in ["CREATE TABLE a (b TEXT, d TEXT);", "CREATE TABLE a (c TEXT, b TEXT);"] {
            assert_ne!(hash_of(&[other]), hash);
        }
        assert_ne!(hash_of(&["CREATE TABLE a (b TEXT,", "c TEXT);"]), hash);
    }

    const MADE_UP: [Migration; 2] =
        [Migration { number: 1, sql: "one" }, Migration { number: 2, sql: "two" }];

    /// Compares a stored schema with [`MADE_UP`]; `expected` is a status or a part of the error.
    fn check(number: i64, hash: Option<&str>, expected: Result<SchemaStatus, &str>) {
        let stored = StoredSchema { number, hash: hash.map(str::to_owned) };
        let found = SchemaStatus::compare(&stored, &MADE_UP, &"the database");
        let found = found.map_err(|cause| cause.to_string());
        match (&found, expected) {
            (Err(found), Err(part)) => {
                assert!(found.contains("the database") && found.contains(part), "{found}");
            }
            (_, expected) => assert_eq!(found, expected.map_err(str::to_owned)),
        }
    }

    #[test]
    fn a_stored_schema_is_new_current_older_or_refused() {
        let first = schema_hash(&MADE_UP[..1]);
        let second = schema_hash(&MADE_UP);
        check(0, None, Ok(SchemaStatus::New));
        check(1, Some(&first), Ok(SchemaStatus::Older(1)));
        check(2, Some(&second), Ok(SchemaStatus::Current));
        check(3, Some(&second), Err("has schema 3"));
        check(2, Some(&first), Err("different schema"));
        check(1, Some(&second), Err("different schema"));
        check(1, None, Err("different schema"));
        check(14, None, Err("different schema"));
    }
}
