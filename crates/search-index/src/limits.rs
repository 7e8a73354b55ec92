//! Every cap of the index, with its unit and reason.

/// Values of one facet in an answer, the most frequent.
pub const FACET_COUNTS_MAX: usize = 100;
