//! The index as its users see it: what is found, in which order, and what happens when something goes
//! wrong.

#![expect(clippy::unwrap_used, reason = "a test fails that way")]

mod common;
mod dates;
mod facets;
mod faults;
mod forms;
mod relevance;
