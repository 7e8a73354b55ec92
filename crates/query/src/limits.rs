//! Limits of the query language and of matching, with units and reasons.

/// Characters of a word in the index and in a query; further ones are ignored.
pub const WORD_CHARS_MAX: usize = 64;
/// Characters of a facet value; further ones are ignored.
pub const FACET_CHARS_MAX: usize = 200;
/// Values of one facet that are counted per document.
pub const FACET_VALUES_MAX: usize = 100;
/// Values of all filters of one search.
pub const FILTERS_MAX: usize = 50;
/// Words of one document that are indexed, as many as a novel has.
pub const INDEXED_WORDS_MAX: usize = 100_000;
/// Words of one phrase.
pub const PHRASE_WORDS_MAX: usize = 100;
/// Minimum letters and digits of a prefix; a single one would match a tenth of all words.
pub const PREFIX_CHARS_MIN: usize = 2;
/// Words, phrases, prefixes and ranges of one query.
pub const QUERY_CLAUSES_MAX: usize = 1000;
/// Nesting depth of parentheses in a query.
pub const QUERY_DEPTH_MAX: usize = 50;
/// Prefixes of one query; each expands to all words of the archive that begin with it.
pub const QUERY_PREFIXES_MAX: usize = 20;
/// Bytes of a query; one with a hundred subjects by code takes 3 kB.
pub const QUERY_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Index keys under which one interest is filed: for each clause of a query a word and an id; a
/// parameter has fewer values. An interest that needs more is filed under its media
/// type.
pub const MATCHING_KEYS_MAX: usize = 2 * QUERY_CLAUSES_MAX;
/// Counters of word frequencies, in each of two rows of 4 bytes: 2 MiB. Words that share a counter seem more
/// frequent than they are, which costs only time.
pub const RARITY_COUNTERS: usize = 1 << 18;
/// Documents after which the word counts are halved, so that old news counts
/// less.
pub const RARITY_DOCUMENTS_MAX: u32 = 1_000_000;
