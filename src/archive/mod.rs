//! What the archive holds: ingest, search over it, collections.

pub mod collections;
pub mod content;
pub mod ingest;
