//! Estimates the number of documents with a word, in bounded memory.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::IndexedDocument;
use crate::limits::{RARITY_COUNTERS, RARITY_DOCUMENTS_MAX};

/// A count-min sketch of the number of documents with a token: two rows of counters, of which the smaller value is
/// the estimate. It is never below the true count since the counts were last halved.
#[derive(Default)]
pub(super) struct FrequencySketch {
    /// Both rows, one after the other; empty until the first document is counted.
    counters: Vec<u32>,
    documents: u32,
    hasher: RandomState,
}

impl FrequencySketch {
    /// Counts each distinct token of a document once.
    pub(super) fn learn(&mut self, indexed: &IndexedDocument) {
        // Allocated with the first document, so that a matcher that never learns needs no memory.
        self.counters.resize(2 * RARITY_COUNTERS, 0);
        if self.documents >= RARITY_DOCUMENTS_MAX {
            self.documents /= 2;
            self.counters.iter_mut().for_each(|count| *count /= 2);
        }
        self.documents += 1;
        let texts = [&indexed.headline, &indexed.description, &indexed.body, &indexed.rest];
        let texts = texts.into_iter().chain([&indexed.tags]);
        // A word counts once per document, even if it occurs several times.
        let tokens: HashSet<&str> = texts.flat_map(|text| text.split(' ')).collect();
        for token in tokens {
            for index in self.counter_indexes(token) {
                self.counters[index] = self.counters[index].saturating_add(1);
            }
        }
    }

    /// Estimates the number of documents with the token.
    pub(super) fn count(&self, token: &str) -> u64 {
        if self.counters.is_empty() {
            return 0;
        }
        let [first, second] = self.counter_indexes(token).map(|index| self.counters[index]);
        u64::from(first.min(second))
    }

    /// Returns an assumed number of documents with a word that starts with a given prefix. It is higher than the
    /// number for most words.
    pub(super) fn prefix_count(&self) -> u64 {
        u64::from(self.documents / 8) + 1
    }

    fn counter_indexes(&self, token: &str) -> [usize; 2] {
        // The two halves of one hash are sufficiently independent for the two rows.
        let hash = self.hasher.hash_one(token);
        [counter_index(hash), RARITY_COUNTERS + counter_index(hash >> 32)]
    }
}

/// Returns the index of a counter in its row, from the lower half of a hash.
fn counter_index(hash: u64) -> usize {
    let half = usize::try_from(hash & 0xffff_ffff).expect("32 bits fit");
    half % RARITY_COUNTERS
}
