//! Implements the engine for SQLite: connections to a file, migrations and checks.
//!
//! The file is in WAL mode with `synchronous=FULL`: a transaction is on disk when its commit returns.

mod check;
mod connection;
mod copy;
mod error;
mod migrations;
mod transaction;

pub(super) use connection::{DatabaseFile, FileConnection, migrate};
pub use copy::DatabaseSnapshot;
pub(super) use copy::{copy, inspect_schema};
