//! Where the archive lies: the database, originals and derived files, the search index, the audit log, secrets at
//! rest.

pub mod audit;
pub mod blobs;
pub mod database;
pub mod search;
pub mod secrets;
