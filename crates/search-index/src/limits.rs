//! Limits of the index, with units and reasons.

/// Maximum number of values of one facet in a result, the most frequent ones.
pub const FACET_COUNTS_MAX: usize = 100;
