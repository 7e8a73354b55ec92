//! Stores the archive: the database, originals and derived files, the search index, the audit log,
//! diagnostics for operators, and secrets encrypted at rest.

pub mod audit;
pub mod blobs;
pub mod database;
pub mod diagnostics;
pub mod search;
pub mod secrets;
