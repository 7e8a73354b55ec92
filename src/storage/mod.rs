//! Stores the archive: the database, originals and derived files, the search index, the audit log, and
//! secrets encrypted at rest.

pub mod audit;
pub mod blobs;
pub mod database;
pub mod search;
pub mod secrets;
