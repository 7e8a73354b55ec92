//! Finds similarly spelled words for searches with words that occur in no document.

use std::cmp::Reverse;

use query::{Query, Word, WordPattern, words};

use crate::complete::{Frequencies, pattern, spelled};
use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::evaluate::MatchedDocuments;

/// The maximum number of unknown words of a text that are respelled. Each one costs a read of the dictionary.
const RESPELLED_WORDS_MAX: usize = 3;
/// The maximum number of similarly spelled words that are looked up among the matches, the nearest first.
const RESPELLING_CANDIDATES_MAX: usize = 16;

/// The minimum number of letters of a word for one edit, and for two edits. Shorter words have too many neighbours
/// for an edit to be a likely correction.
const LETTERS_FOR_EDITS: [usize; 2] = [4, 8];
/// The number of words between two deadline checks.
const WORDS_PER_DEADLINE_CHECK: usize = 1024;

impl MatchedDocuments<'_> {
    /// Replaces the words that occur in no match with similarly spelled ones, and returns all words.
    ///
    /// Returns `None` if more than [`RESPELLED_WORDS_MAX`] words occur in no match, if all words occur, if an
    /// unknown word has no replacement, or if the result has no match.
    ///
    /// Fails with [`TimedOut`](crate::IndexError::TimedOut) soon after `is_over` returns true.
    pub fn respell(
        &self,
        typed: &[Word],
        is_over: DeadlineCheck<'_>,
    ) -> Result<Option<Vec<String>>> {
        let known = typed.iter().map(|word| self.has_match(std::slice::from_ref(word), is_over));
        let known = known.collect::<Result<Vec<bool>>>()?;
        let unknown = known.iter().filter(|is_known| !**is_known).count();
        if unknown == 0 || unknown > RESPELLED_WORDS_MAX {
            return Ok(None);
        }
        let mut respelled = Vec::with_capacity(typed.len());
        for (word, is_known) in typed.iter().zip(known) {
            if is_known {
                respelled.push(spelled(word).to_owned());
                continue;
            }
            // A text with an unknown word finds nothing, even if the other words are replaced.
            let Some(other) = self.nearest(word, is_over)? else { return Ok(None) };
            respelled.push(other);
        }
        let all: Vec<Word> = respelled.iter().flat_map(|text| words(text)).collect();
        let is_useful = self.has_match(&all, is_over)?;
        Ok(is_useful.then_some(respelled))
    }

    /// Returns whether a match has all of the words, as written or inflected.
    fn has_match(&self, all: &[Word], is_over: DeadlineCheck<'_>) -> Result<bool> {
        let parts =
            all.iter().map(|word| Query::Words(WordPattern { forms: true, ..pattern(word) }));
        let query = Query::and(parts.collect());
        let found = self.documents_matching(&query, is_over)?;
        Ok(found.iter().any(|set| !set.is_empty()))
    }

    /// Finds the word among the matches that differs least from `word`, the most frequent one of equally near
    /// words.
    fn nearest(&self, word: &Word, is_over: DeadlineCheck<'_>) -> Result<Option<String>> {
        let letters: Vec<char> = word.folded.chars().collect();
        let edits_max = LETTERS_FOR_EDITS.iter().filter(|least| letters.len() >= **least).count();
        let Some(first) = letters.first().filter(|_| edits_max > 0) else { return Ok(None) };
        // Few mistakes are in the first letter, and the dictionary is sorted by it.
        let start = Word { folded: first.to_string(), exact: None };
        let mut frequencies = Frequencies::default();
        frequencies.read(
            self.snapshot,
            &start,
            // Most words are too long or too short, and need not be collected.
            &|term| term.chars().count().abs_diff(letters.len()) <= edits_max,
            is_over,
        )?;
        let mut near: Vec<(usize, Reverse<u64>, String)> = Vec::new();
        for (at, (count, text)) in frequencies.spellings(false).enumerate() {
            if at % WORDS_PER_DEADLINE_CHECK == 0 {
                ensure_time(is_over)?;
            }
            let Some(other) = words(&text).next() else { continue };
            let other: Vec<char> = other.folded.chars().collect();
            if let Some(edits) = edits(&letters, &other, edits_max).filter(|edits| *edits > 0) {
                near.push((edits, Reverse(count), text));
            }
        }
        near.sort_unstable();
        for (_, _, text) in near.into_iter().take(RESPELLING_CANDIDATES_MAX) {
            let Some(word) = words(&text).next() else { continue };
            if self.count_word(&word, &self.sets, is_over)? > 0 {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// Counts the edits between two words; `None` if there are more than `edits_max`. An edit inserts, removes or
/// replaces a letter, or swaps it with its neighbour.
fn edits(word: &[char], other: &[char], edits_max: usize) -> Option<usize> {
    if word.len().abs_diff(other.len()) > edits_max {
        return None;
    }
    // Three rows of the table of edits between word beginnings: the row before the last, the last row and the
    // present row.
    let mut earlier: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut present = vec![row + 1];
        for (column, candidate) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != candidate);
            let mut least = replaced.min(last[column + 1] + 1).min(present[column] + 1);
            let is_swapped = row > 0
                && column > 0
                && *letter == other[column - 1]
                && word[row - 1] == *candidate;
            if is_swapped {
                least = least.min(earlier[column - 1] + 1);
            }
            present.push(least);
        }
        // The minimum of later rows is never lower than the minimum of this row.
        if present.iter().all(|count| *count > edits_max) {
            return None;
        }
        earlier = std::mem::replace(&mut last, present);
    }
    last.last().copied().filter(|count| *count <= edits_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_up_to_a_limit() {
        let check = |one: &str, other: &str, expected: Option<usize>| {
            let [one, other] = [one, other].map(|text| text.chars().collect::<Vec<_>>());
            assert_eq!(edits(&one, &other, 2), expected, "{one:?} {other:?}");
            assert_eq!(edits(&other, &one, 2), expected, "{other:?} {one:?}");
        };
        check("bergen", "bergen", Some(0));
        check("bergen", "begren", Some(1));
        check("bergen", "berge", Some(1));
        check("bergen", "bergens", Some(1));
        check("bergen", "borgen", Some(1));
        check("bergen", "brgn", Some(2));
        check("bergen", "oslo", None);
        check("bergen", "b", None);
        check("", "ab", Some(2));
    }
}
