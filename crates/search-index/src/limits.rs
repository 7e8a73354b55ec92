//! Limits of the index, with units and reasons.

/// Maximum number of values of one facet in a result, the most frequent ones.
pub const FACET_COUNTS_MAX: usize = 100;
/// The number of candidates that are counted even if enough of them have matches already. The most frequent words
/// among the matches may be less frequent in the whole index. Each candidate costs a lookup.
pub const COMPLETION_CANDIDATES_MIN: usize = 32;
/// The maximum number of candidates that are counted until enough of them have matches. The words of a small
/// product are rare in the whole index.
pub const COMPLETION_CANDIDATES_MAX: usize = 512;
/// The maximum number of terms with one start that are read from a field of a segment; a start of two letters has
/// a few thousand.
pub const COMPLETION_TERMS_MAX: usize = 100_000;
/// The maximum number of unknown words of a text that are respelled. Each one costs a read of the dictionary.
pub const RESPELLED_WORDS_MAX: usize = 3;
/// The maximum number of similarly spelled words that are looked up among the matches, the nearest first.
pub const RESPELLING_CANDIDATES_MAX: usize = 16;
