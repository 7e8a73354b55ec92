//! SQLite as an engine: a file that connections open, migrations, and what only SQLite does its way.
//!
//! WAL mode with `synchronous=FULL`: what a transaction promised is on disk when it returns.

mod check;
mod connection;
mod copy;
mod error;
mod migrations;
mod transaction;

pub(super) use connection::{DatabaseFile, FileConnection, migrate};
pub use copy::DatabaseSnapshot;
pub(super) use copy::{copy, inspect_schema, inspect_schema_read_only};
