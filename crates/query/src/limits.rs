//! Limits of the query language and of matching, with units and reasons.

/// Maximum number of characters of a word in the index and in a query; further characters are ignored.
pub const WORD_CHARS_MAX: usize = 64;
/// Maximum number of characters of a facet value; further characters are ignored.
pub const FACET_CHARS_MAX: usize = 200;
/// Maximum number of counted values of one facet per document.
pub const FACET_VALUES_MAX: usize = 100;
/// Maximum side length in a filter, in pixels; more than any JPEG has.
pub const FILTER_SIDE_PX_MAX: u32 = 1_000_000;
/// Maximum number of values in all filters of one search.
pub const FILTERS_MAX: usize = 50;
/// Maximum number of indexed words of one document: as many as a novel has.
pub const INDEXED_WORDS_MAX: usize = 100_000;
/// Maximum number of words of one phrase.
pub const PHRASE_WORDS_MAX: usize = 100;
/// Minimum number of letters and digits of a prefix; a single one would match a tenth of all words.
pub const PREFIX_CHARS_MIN: usize = 2;
/// Maximum number of words, phrases, prefixes and ranges of one query.
pub const QUERY_CLAUSES_MAX: usize = 1000;
/// Maximum nesting depth of parentheses in a query.
pub const QUERY_DEPTH_MAX: usize = 50;
/// Maximum number of prefixes of one query; each expands to all words of the archive that begin with it.
pub const QUERY_PREFIXES_MAX: usize = 20;
/// Maximum length of a query in bytes; a query with a hundred subjects by code has 3 kB.
pub const QUERY_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of index keys under which one interest is filed: a word and an id for each clause of a query; a
/// parameter has fewer values. An interest that needs more keys is filed under its media type.
pub const MATCHING_KEYS_MAX: usize = 2 * QUERY_CLAUSES_MAX;
/// Number of word-frequency counters in each of two rows, 4 bytes each: 2 MiB. Words that share a counter seem
/// more frequent than they are, which costs only time.
pub const RARITY_COUNTERS: usize = 1 << 18;
/// Number of documents after which the word counts are halved, so that old news counts less.
pub const RARITY_DOCUMENTS_MAX: u32 = 1_000_000;
