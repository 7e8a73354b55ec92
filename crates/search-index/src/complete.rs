//! Completes a text that is being typed, from the words and the facet values of the index. A facet is a property by
//! which hits are filtered, such as the place.
//!
//! Completing a word has two steps. The dictionary of the whole index, which knows nothing of the search, gives
//! candidates: the most frequent words that begin with the last typed word. Then candidates are counted among the
//! documents that match the search, and dropped if they are in none of them, so a suggestion always finds something.
//!
//! The index has each word without accents (folded), and a word with accents also as written: `möte` is in the
//! dictionary as `mote` and as `==möte`.

use std::collections::{HashMap, HashSet};

use query::limits::PREFIX_CHARS_MIN;
use query::{Facet, Query, TextField, Word, WordPattern, words};
use roaring::RoaringBitmap;
use tantivy::schema::Field;

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::evaluate::MatchedDocuments;
use crate::facets;
use crate::index::IndexSnapshot;
use crate::words::fields_of;

/// The number of candidates that are counted even if enough of them have matches already. The most frequent words
/// among the matches may be less frequent in the whole index. Each candidate costs a lookup.
const COMPLETION_CANDIDATES_MIN: usize = 32;
/// The maximum number of candidates that are counted until enough of them have matches. The words of a small
/// product are rare in the whole index.
const COMPLETION_CANDIDATES_MAX: usize = 512;
/// The maximum number of terms with one start that are read from a field of a segment; a start of two letters has
/// a few thousand.
const COMPLETION_TERMS_MAX: usize = 100_000;

/// The number of terms between two deadline checks.
const TERMS_PER_DEADLINE_CHECK: usize = 4096;
/// The prefix of words with accents, from any text of a document, in the field `accents`: `==möte`.
const ACCENT: &str = "==";

/// A text that is being typed.
#[derive(Clone, Copy, Debug)]
pub struct CompletionRequest<'a> {
    /// The words of the text; the last one may be incomplete.
    pub typed: &'a [Word],
    /// The facets whose values are suggested.
    pub facets: &'a [Facet],
    /// The maximum number of suggested words, and of suggested values of each facet.
    pub size: usize,
}

/// The possible completions of a text, each with the number of matching documents that have it, most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Words that begin with the last word of the text, in lower case.
    pub words: Vec<(String, u64)>,
    /// The facets of the request, each with its values that contain the text; the last word of the text may begin a
    /// word of the value.
    pub values: Vec<(Facet, Vec<(String, u64)>)>,
}

impl MatchedDocuments<'_> {
    /// Completes a text among the matches of a search.
    ///
    /// Words are counted among the matches that contain all words before the last one; facet values are counted
    /// among all matches. A last word of fewer than [`PREFIX_CHARS_MIN`] characters has no completions.
    ///
    /// Fails with [`TimedOut`](crate::IndexError::TimedOut) soon after `is_over` returns true.
    pub fn complete(
        &self,
        request: CompletionRequest<'_>,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Completions> {
        let Some((last, before)) = request.typed.split_last() else {
            return Ok(Completions::default());
        };
        if spelled(last).chars().count() < PREFIX_CHARS_MIN {
            return Ok(Completions::default());
        }
        let words = self.complete_word(last, before, request.size, is_over)?;
        let mut values = Vec::with_capacity(request.facets.len());
        for facet in request.facets {
            values.push((*facet, self.complete_value(*facet, &request, is_over)?));
        }
        Ok(Completions { words, values })
    }

    /// Lists at most `size` words that begin with `start`, counted among the matches that contain all of `before`.
    fn complete_word(
        &self,
        start: &Word,
        before: &[Word],
        size: usize,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<(String, u64)>> {
        // One set of documents for each segment, which is a part of the index.
        let narrowed = match before {
            [] => self.sets.clone(),
            before => self.documents_matching(&all_of(before), is_over)?,
        };
        let mut counted: Vec<(String, u64)> = Vec::new();
        for (at, candidate) in candidates(self.snapshot, start, is_over)?.into_iter().enumerate() {
            // The most frequent words of the index may be rare among the matches, so this many are always counted.
            if at >= COMPLETION_CANDIDATES_MIN && counted.len() >= size {
                break;
            }
            ensure_time(is_over)?;
            let found = self.count_spelling(candidate, start, &narrowed, is_over)?;
            // Candidates such as `möte` and `môte` may both become `mote`.
            if let Some(found) = found.filter(|found| !counted.contains(found)) {
                counted.push(found);
            }
        }
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counted.truncate(size);
        Ok(counted)
    }

    /// Counts the documents of `sets` that contain the candidate `text`, and decides its spelling; `None` if no
    /// document contains it or if it equals `start`. `sets` has one set for each segment.
    ///
    /// The candidate has the usual spelling of the whole index. If `start` has no accents, and fewer than half of the
    /// documents of `sets` with the word have that spelling, the result has no accents either and counts all spellings.
    fn count_spelling(
        &self,
        mut text: String,
        start: &Word,
        sets: &[RoaringBitmap],
        is_over: DeadlineCheck<'_>,
    ) -> Result<Option<(String, u64)>> {
        let Some(word) = words(&text).next() else { return Ok(None) };
        // A word with accents counts in this spelling only, a word without accents in every spelling.
        let mut count = self.count_word(&word, sets, is_over)?;
        if word.exact.is_some() && start.exact.is_none() {
            let plain = Word { folded: word.folded, exact: None };
            let all = self.count_word(&plain, sets, is_over)?;
            if count * 2 < all {
                text = plain.folded;
                count = all;
            }
        }
        Ok((count > 0 && text != spelled(start)).then_some((text, count)))
    }

    /// Lists the most frequent values of `facet` among the matches that contain the typed text.
    fn complete_value(
        &self,
        facet: Facet,
        request: &CompletionRequest<'_>,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<(String, u64)>> {
        // The words of the values are searched in the text field with the facet's name.
        let Some(place) = TextField::find(facet.as_str()) else { return Ok(Vec::new()) };
        let typed = request.typed.to_vec();
        let pattern = WordPattern { place, words: typed, prefix: true, forms: false };
        // Only these documents can have a value that contains the text.
        let sets = self.documents_matching(&Query::Words(pattern), is_over)?;
        let found = MatchedDocuments { snapshot: self.snapshot, sets };
        let size = request.size;
        facets::most_frequent(
            &found,
            facet,
            size,
            &|value| contains(value, request.typed),
            is_over,
        )
    }

    /// Counts the documents of `sets` that contain `word` as written. `sets` has one set for each segment.
    pub(crate) fn count_word(
        &self,
        word: &Word,
        sets: &[RoaringBitmap],
        is_over: DeadlineCheck<'_>,
    ) -> Result<u64> {
        let found = self.snapshot.documents_with(&pattern(word), is_over)?;
        Ok(found.iter().zip(sets).map(|(docs, set)| set.intersection_len(docs)).sum())
    }
}

/// The pattern of a word anywhere in a document; inflected forms of the word do not match.
pub(crate) fn pattern(word: &Word) -> WordPattern {
    let words = vec![word.clone()];
    WordPattern { place: TextField::Anywhere, words, prefix: false, forms: false }
}

/// The query for documents with all of the words.
pub(crate) fn all_of(words: &[Word]) -> Query {
    Query::and(words.iter().map(|word| Query::Words(pattern(word))).collect())
}

/// Returns a word as it was spelled, with its accents, in lower case.
pub(crate) fn spelled(word: &Word) -> &str {
    word.exact.as_deref().unwrap_or(&word.folded)
}

/// Returns whether a value contains the words next to each other, the last one as the start of a word. Accents do not
/// count.
fn contains(value: &str, typed: &[Word]) -> bool {
    let folded: Vec<String> = words(value).map(|word| word.folded).collect();
    let Some((last, before)) = typed.split_last() else { return false };
    folded.windows(typed.len()).any(|run| {
        let Some((end, leading)) = run.split_last() else { return false };
        let is_equal = leading.iter().zip(before).all(|(own, word)| *own == word.folded);
        is_equal && end.starts_with(&last.folded)
    })
}

/// Lists the most frequent words of the index that begin with `start` and are longer.
///
/// A `start` with accents finds only words with accents. Otherwise words are spelled as most documents spell them if
/// that spelling begins with `start`, else without accents. `mot` finds `motor`, and it finds `mote` even if every
/// document has `möte`, which does not begin with `mot`.
fn candidates(
    snapshot: &IndexSnapshot,
    start: &Word,
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<String>> {
    let mut frequencies = Frequencies::default();
    frequencies.read(snapshot, start, &|_| true, is_over)?;
    let mut found: Vec<(u64, String)> = frequencies
        .spellings(start.exact.is_some())
        .filter(|(_, text)| text != spelled(start))
        .collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(COMPLETION_CANDIDATES_MAX);
    Ok(found.into_iter().map(|(_, text)| text).collect())
}

/// The frequencies of words in all documents. They are approximate, good for sorting: in [`folded`](Self::folded) a
/// document counts once for each text field that contains the word, in [`accented`](Self::accented) once.
#[derive(Default)]
pub(crate) struct Frequencies {
    /// The counts of all words, with and without accents, by the word without accents.
    folded: HashMap<String, u64>,
    /// The counts of the words with accents, by the word with its accents.
    accented: HashMap<String, u64>,
}

impl Frequencies {
    /// Adds the words of the index that begin with `start` and that `is_wanted` accepts: folded words that begin with
    /// the folded `start`, and words with accents that begin with `start` as spelled.
    pub(crate) fn read(
        &mut self,
        snapshot: &IndexSnapshot,
        start: &Word,
        is_wanted: &dyn Fn(&str) -> bool,
        is_over: DeadlineCheck<'_>,
    ) -> Result<()> {
        let fields = &snapshot.shared.fields;
        for field in fields_of(fields, TextField::Anywhere) {
            let mut add = |term: &str, count: u64| {
                if is_wanted(term) {
                    *self.folded.entry(term.to_owned()).or_default() += count;
                }
            };
            read_terms(snapshot, field, &start.folded, &mut add, is_over)?;
        }
        let prefix = format!("{ACCENT}{}", spelled(start));
        let mut add = |term: &str, count: u64| {
            let word = term.trim_start_matches(ACCENT);
            if is_wanted(word) {
                *self.accented.entry(word.to_owned()).or_default() += count;
            }
        };
        read_terms(snapshot, fields.accents, &prefix, &mut add, is_over)
    }

    /// Lists each word with its frequency, in the spelling that at least half of its documents have, and without
    /// accents if no spelling with accents has that many. With `only_accented`, lists every spelling with accents and
    /// no other.
    pub(crate) fn spellings(self, only_accented: bool) -> impl Iterator<Item = (u64, String)> {
        let mut spelled: Vec<(u64, String)> = Vec::new();
        let mut respelled: HashSet<String> = HashSet::new();
        for (text, count) in self.accented {
            let Some(word) = words(&text).next() else { continue };
            let all = self.folded.get(&word.folded).copied().unwrap_or_default();
            if only_accented || count * 2 >= all {
                respelled.insert(word.folded);
                spelled.push((count.max(all), text));
            }
        }
        let plain = self.folded.into_iter();
        let plain = plain.filter(move |(word, _)| !only_accented && !respelled.contains(word));
        spelled.into_iter().chain(plain.map(|(word, count)| (count, word)))
    }
}

/// Calls `each` with the terms of `field` that begin with `start`, and the number of their documents.
///
/// A term is passed once for each segment that has it, with the number of documents in that segment. At most
/// [`COMPLETION_TERMS_MAX`] terms of a segment are read.
fn read_terms(
    snapshot: &IndexSnapshot,
    field: Field,
    start: &str,
    each: &mut dyn FnMut(&str, u64),
    is_over: DeadlineCheck<'_>,
) -> Result<()> {
    for segment in &snapshot.segments {
        // Checked here too: many small segments have few terms each.
        ensure_time(is_over)?;
        let terms = segment.reader.inverted_index(field)?;
        let mut range = terms.terms().range().ge(start.as_bytes()).into_stream()?;
        let mut count = 0;
        // Terms are sorted, so all terms with this start follow each other.
        while count < COMPLETION_TERMS_MAX
            && range.advance()
            && range.key().starts_with(start.as_bytes())
        {
            count += 1;
            if count % TERMS_PER_DEADLINE_CHECK == 0 {
                ensure_time(is_over)?;
            }
            if let Ok(term) = std::str::from_utf8(range.key()) {
                each(term, u64::from(range.value().doc_freq));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_contains_a_text_whose_last_word_is_incomplete() {
        let check = |value: &str, typed: &str, expected: bool| {
            let typed: Vec<Word> = words(typed).collect();
            assert_eq!(contains(value, &typed), expected, "{value} {typed:?}");
        };
        check("Erik Öberg", "erik o", true);
        check("Erik Öberg", "obe", true);
        check("Erik Öberg", "eri o", false);
        check("Erik Öberg", "berg", false);
        check("Erik", "erik berg", false);
    }

    fn counts(list: &[(&str, u64)]) -> HashMap<String, u64> {
        list.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
    }

    fn check_spellings(frequencies: Frequencies, only_accented: bool, expected: &[(u64, &str)]) {
        let mut found: Vec<(u64, String)> = frequencies.spellings(only_accented).collect();
        found.sort_unstable();
        let found: Vec<(u64, &str)> =
            found.iter().map(|(count, text)| (*count, text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_word_is_spelled_as_most_documents_spell_it() {
        let frequencies = || Frequencies {
            folded: counts(&[("mote", 5), ("moten", 9), ("motor", 2)]),
            accented: counts(&[("möte", 4), ("möten", 2)]),
        };
        check_spellings(frequencies(), false, &[(2, "motor"), (5, "möte"), (9, "moten")]);
        check_spellings(frequencies(), true, &[(5, "möte"), (9, "möten")]);
    }

    #[test]
    fn a_rare_spelling_with_accents_is_not_listed_whatever_the_order_of_spellings() {
        // The order of a hash map varies from map to map.
        for _ in 0..32 {
            let frequencies = || Frequencies {
                folded: counts(&[("mote", 7)]),
                accented: counts(&[("möte", 4), ("môte", 3)]),
            };
            check_spellings(frequencies(), false, &[(7, "möte")]);
            check_spellings(frequencies(), true, &[(7, "môte"), (7, "möte")]);
        }
    }
}
