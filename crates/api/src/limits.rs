//! Limits that several sections share, with their units and reasons.

/// Longest name, department or other short text of a user, in characters.
pub const SHORT_TEXT_CHARS_MAX: usize = 200;
/// Longest e-mail address, in characters (RFC 5321 §4.5.3.1.3, without the angle brackets).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Hits of a search or poll, and hits skipped by the offset of a search (contract search-6).
pub const HITS_MAX: usize = 10_000;
/// Default number of hits of a search (contract search-6).
pub const HITS_DEFAULT: usize = 20;
/// Most items that one call adds to a collection, removes from it or puts in order.
pub const COLLECTION_ELEMENTS_MAX: usize = 1000;
