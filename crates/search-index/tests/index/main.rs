//! The index from its users' perspective: results, their order, and
//! failures.

#![expect(clippy::unwrap_used, reason = "a test fails that way")]

mod common;
mod complete;
mod dates;
mod facets;
mod faults;
mod forms;
mod relevance;
