//! Holds the schema as numbered migrations, and the rules by which both engines run them.
//!
//! A release that changes the schema adds a file with the next number for each engine. A released file never
//! changes. All pending migrations run in one transaction, and a schema with a higher number than [`LATEST`]
//! is refused and left unchanged. Each engine decides which other processes may use the database meanwhile:
//! SQLite with the lock of the data directory, PostgreSQL by the incarnations of nodes.

use std::fmt::Display;

use super::error::DbError;

/// SQLite's migrations; the first one leads to schema 1.
pub(super) const SQLITE: [&str; 14] = [
    include_str!("sqlite/0001.sql"),
    include_str!("sqlite/0002.sql"),
    include_str!("sqlite/0003.sql"),
    include_str!("sqlite/0004.sql"),
    include_str!("sqlite/0005.sql"),
    include_str!("sqlite/0006.sql"),
    include_str!("sqlite/0007.sql"),
    include_str!("sqlite/0008.sql"),
    include_str!("sqlite/0009.sql"),
    include_str!("sqlite/0010.sql"),
    include_str!("sqlite/0011.sql"),
    include_str!("sqlite/0012.sql"),
    include_str!("sqlite/0013.sql"),
    include_str!("sqlite/0014.sql"),
];

/// A migration of PostgreSQL.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    /// The schema number that it leads to.
    pub(super) number: i64,
    pub(super) sql: &'static str,
}

/// PostgreSQL's migrations; the first one creates all tables of schema 8.
pub(super) const POSTGRES: [Migration; 7] = [
    Migration { number: 8, sql: include_str!("postgres/0008.sql") },
    Migration { number: 9, sql: include_str!("postgres/0009.sql") },
    Migration { number: 10, sql: include_str!("postgres/0010.sql") },
    Migration { number: 11, sql: include_str!("postgres/0011.sql") },
    Migration { number: 12, sql: include_str!("postgres/0012.sql") },
    Migration { number: 13, sql: include_str!("postgres/0013.sql") },
    Migration { number: 14, sql: include_str!("postgres/0014.sql") },
];

/// The schema number that this version works with.
pub const LATEST: i64 = POSTGRES[POSTGRES.len() - 1].number;
// PostgreSQL begins with schema 8, so it has seven migrations fewer.
const _: () = assert!(SQLITE.len() == POSTGRES.len() + 7, "both engines have the same schemas");

/// How a schema compares with the one of this version.
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
    /// Compares the schema `found`, 0 where there are no tables, with `latest`.
    ///
    /// Fails with [`DbError::Schema`], which names `database`, when a later version of the product wrote it.
    pub(super) fn of(found: i64, latest: i64, database: &dyn Display) -> Result<Self, DbError> {
        if found > latest {
            return Err(DbError::Schema(format!(
                "{database} has schema {found} and this version of wirephoto knows schemas up to \
                 {latest}: a later version wrote it, and only that one or a later one can use it"
            )));
        }
        Ok(match found {
            0 => Self::New,
            found if found < latest => Self::Older(found),
            _ => Self::Current,
        })
    }
}

/// Logs that migrations begin on tables in use; `copy` names what the operator can return to.
pub(super) fn log_upgrade(from: i64, to: i64, copy: &str) {
    tracing::warn!(
        from,
        to,
        "the schema of the database is being upgraded; earlier versions of wirephoto cannot use \
         it afterwards, and only a {copy} from before restores it"
    );
}
