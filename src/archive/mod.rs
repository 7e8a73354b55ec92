//! The archive: ingest of items, search over them, collections.

pub mod collections;
pub mod content;
pub mod ingest;
