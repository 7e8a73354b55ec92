//! The limits of the query language and of matching, each with its unit and reason.

/// Characters of a word in the index and in a query; the rest of a longer one is ignored.
pub const WORD_CHARS_MAX: usize = 64;
/// Characters of a facet value; the rest of a longer one is ignored.
pub const FACET_CHARS_MAX: usize = 200;
/// Values of one facet in one document that are counted.
pub const FACET_VALUES_MAX: usize = 100;
/// Words of one document that are indexed; a novel has 100,000.
pub const INDEXED_WORDS_MAX: usize = 100_000;
/// Words of one phrase.
pub const PHRASE_WORDS_MAX: usize = 100;
/// Letters and digits of a prefix, at least; one alone stands for a tenth of all words.
pub const PREFIX_CHARS_MIN: usize = 2;
/// Words, phrases, prefixes and ranges of one query.
pub const QUERY_CLAUSES_MAX: usize = 1000;
/// Parentheses within parentheses of a query.
pub const QUERY_DEPTH_MAX: usize = 50;
/// Prefixes of one query; each stands for all words of the archive that begin with it.
pub const QUERY_PREFIXES_MAX: usize = 20;
/// Bytes of a query; one with a hundred subjects by code takes 3 kB.
pub const QUERY_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Places of the index over interests at which one of them is filed: for each clause of a query a
/// word and an id; a parameter has fewer values. One that needs more is filed under its media
/// type.
pub const MATCHING_KEYS_MAX: usize = 2 * QUERY_CLAUSES_MAX;
/// Counters of words by which the rare ones are told, in each of two rows of 4 bytes: 2 MiB. Words
/// that share a counter seem more frequent than they are, which costs time only.
pub const RARITY_COUNTERS: usize = 1 << 18;
/// Documents after which the counts of words are halved, so that what was in the news years ago
/// counts less.
pub const RARITY_DOCUMENTS_MAX: u32 = 1_000_000;
