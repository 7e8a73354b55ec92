//! Estimates in how many documents a word occurs, in bounded memory.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use crate::IndexedDocument;
use crate::limits::{RARITY_COUNTERS, RARITY_DOCUMENTS_MAX};

/// A count-min sketch of the documents in which tokens occur: two rows of counters, of which the smaller
/// value is the estimate. It is never below the true count since the counts were last halved.
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

    /// Estimates how many documents have the token.
    pub(super) fn count(&self, token: &str) -> u64 {
        if self.counters.is_empty() {
            return 0;
        }
        let [one, other] = self.places(token).map(|place| self.counters[place]);
        u64::from(one.min(other))
    }

    /// Returns an assumed number of documents with a word that starts with a given prefix: more than
    /// most words have.
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
