//! Limits of the index, with units and reasons.

/// Maximum number of values of one facet in a result, the most frequent ones.
pub const FACET_COUNTS_MAX: usize = 100;
/// Words that are counted as completions of a text even if enough of them have matches, so that the most
/// frequent ones of the matches are among them; each costs a lookup.
pub const COMPLETION_CANDIDATES_MIN: usize = 32;
/// Words that are counted at most until enough of them have matches: those of a small product are rare in the
/// whole index.
pub const COMPLETION_CANDIDATES_MAX: usize = 512;
/// Terms with one start that are read from a field of a segment; two letters begin a few thousand.
pub const COMPLETION_TERMS_MAX: usize = 100_000;
/// Unknown words of a text that are respelled: each costs a reading of the dictionary.
pub const RESPELLED_WORDS_MAX: usize = 3;
/// Words spelled alike that are looked for among the matches, the nearest first.
pub const RESPELLING_CANDIDATES_MAX: usize = 16;
