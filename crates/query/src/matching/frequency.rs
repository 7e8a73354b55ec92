//! How often words stand in documents, roughly and in bounded memory.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::IndexedDocument;
use crate::limits::{RARITY_COUNTERS, RARITY_DOCUMENTS_MAX};

/// Counts the documents in which tokens stand: two rows of counters, of which the smaller one
/// counts. A token counts at least as often as it was seen since the counts were last halved.
#[derive(Default)]
pub(super) struct FrequencySketch {
    /// Both rows, one behind the other; empty until something is learned.
    counters: Vec<u32>,
    documents: u32,
    hasher: RandomState,
}

impl FrequencySketch {
    /// Counts the tokens of a document, each once.
    pub(super) fn learn(&mut self, indexed: &IndexedDocument) {
        self.counters.resize(2 * RARITY_COUNTERS, 0);
        if self.documents >= RARITY_DOCUMENTS_MAX {
            self.documents /= 2;
            self.counters.iter_mut().for_each(|count| *count /= 2);
        }
        self.documents += 1;
        let texts = [&indexed.headline, &indexed.description, &indexed.body, &indexed.rest];
        let texts = texts.into_iter().chain([&indexed.tags]);
        let tokens: HashSet<&str> = texts.flat_map(|text| text.split(' ')).collect();
        for token in tokens {
            for place in self.places(token) {
                self.counters[place] = self.counters[place].saturating_add(1);
            }
        }
    }

    /// About how many documents have the token.
    pub(super) fn count(&self, token: &str) -> u64 {
        if self.counters.is_empty() {
            return 0;
        }
        let [one, other] = self.places(token).map(|place| self.counters[place]);
        u64::from(one.min(other))
    }

    /// For how many documents to reckon with, of which one has a word with a given beginning: more
    /// than most words have.
    pub(super) fn prefix_count(&self) -> u64 {
        u64::from(self.documents / 8) + 1
    }

    fn places(&self, token: &str) -> [usize; 2] {
        let hash = self.hasher.hash_one(token);
        let place = |part: u64| {
            let place = usize::try_from(part & 0xffff_ffff).expect("32 bits fit");
            place % RARITY_COUNTERS
        };
        [place(hash), RARITY_COUNTERS + place(hash >> 32)]
    }
}
