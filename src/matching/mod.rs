//! Which of many saved interests one item meets, in memory (Spec §2 Notification, §4
//! Notifications).
//!
//! An interest is filed under what every item that meets it must have: the rarest word of its
//! query, one of each branch of an `OR`; where no word is required, its product codes, else its
//! agreements, else its media type. An item is tried on the interests that are filed under what it
//! has. The answer is that of [`Interest::matches`], which the tests compare it with, and that of
//! search.

mod interest;
mod leaf;
mod program;
mod rarity;
mod table;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::account::AgreementId;
use crate::limits::MATCHING_KEYS_MAX;
use crate::query::{Facet, Indexed};
use crate::types::MediaType;
pub use interest::{Cover, Interest, Item};
use leaf::{ANY, Columns, EVERY_TYPE, Filed, Leaves};
use rarity::Rarity;
use table::{Table, at};

/// Many interests, each under a number that the caller chose, and an index over them.
///
/// A million of them take some hundred bytes each; words, phrases and ranges that several have in
/// common are held once and looked at once for an item.
#[derive(Default)]
pub struct Matcher {
    numbers: HashMap<i64, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    leaves: Leaves,
    products: Table<Arc<str>, Name>,
    agreements: Table<AgreementId, Name>,
    by_type: [Vec<Filed>; MediaType::ALL.len()],
    of_every_type: Vec<Filed>,
    rarity: Rarity,
    /// Counts the items; 0 is none.
    item: u64,
    /// Interests that the present item may meet.
    candidates: Vec<u32>,
    tried: usize,
}

/// A product code or an agreement.
#[derive(Default)]
struct Name {
    /// The last item that had it.
    item: u64,
    /// Interests that need it.
    filed: Vec<Filed>,
}

/// An interest as numbers.
#[derive(Default)]
struct Entry {
    number: i64,
    /// As [`Filed::media_type`].
    media_type: u8,
    under: Under,
    /// Whether whatever agreements there are will do.
    everything: bool,
    /// How many numbers each of the first parts of `data` has.
    keys: u32,
    products: u32,
    excluded: u32,
    agreements: u32,
    /// What it is filed under, the place in the list of each, product codes, excluded ones,
    /// agreements, the query.
    data: Box<[u32]>,
}

/// What an interest is filed under.
#[derive(Clone, Copy, Default)]
enum Under {
    Tokens,
    Products,
    Agreements,
    #[default]
    MediaType,
}

impl Entry {
    fn key(&self, which: usize) -> u32 {
        self.data[which]
    }

    fn place_mut(&mut self, which: usize) -> &mut u32 {
        &mut self.data[at(self.keys) + which]
    }

    /// Product codes, excluded ones, agreements, the query.
    fn conditions(&self) -> [&[u32]; 4] {
        let (products, rest) = self.data[2 * at(self.keys)..].split_at(at(self.products));
        let (excluded, rest) = rest.split_at(at(self.excluded));
        let (agreements, program) = rest.split_at(at(self.agreements));
        [products, excluded, agreements, program]
    }
}

impl Matcher {
    /// One without interests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many interests there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Adds an interest; one with the same number is replaced.
    ///
    /// It is filed by what [`Self::learn`] has seen so far.
    #[expect(clippy::needless_pass_by_value, reason = "what is saved is handed over")]
    pub fn insert(&mut self, number: i64, interest: Interest) {
        self.remove(number);
        let mut program = Vec::new();
        program::compile(&interest.query, &mut self.leaves, &mut program);
        let products = self.take_products(&interest.products);
        let excluded = self.take_products(&interest.products_excluded);
        let agreements = match &interest.cover {
            Cover::Everything => None,
            Cover::Agreements(ids) => {
                let mut ids: Vec<_> = ids.iter().map(|id| self.agreements.take(*id).0).collect();
                give_back_twice(&mut ids, |id| {
                    self.agreements.give_back(id);
                });
                Some(ids)
            }
        };
        let (under, keys) = self.choose(&program, &products, agreements.as_deref());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            length(self.entries.len() - 1)
        });
        let media_type = interest.media_type.map_or(EVERY_TYPE, |media_type| media_type as u8);
        let mut data: Vec<u32> = keys.iter().map(|(key, _)| *key).collect();
        for (which, (key, columns)) in keys.iter().enumerate() {
            let which = u16::try_from(which).expect("as many keys as the limit");
            let filed = self.filed_mut(under, *key, media_type);
            data.push(length(filed.len()));
            filed.push(Filed { slot, which, media_type, columns: *columns });
        }
        let agreements_or_none = agreements.as_deref().unwrap_or_default();
        for part in [&products, &excluded, agreements_or_none, &program] {
            data.extend_from_slice(part);
        }
        self.entries[at(slot)] = Entry {
            number,
            media_type,
            under,
            everything: agreements.is_none(),
            keys: length(keys.len()),
            products: length(products.len()),
            excluded: length(excluded.len()),
            agreements: length(agreements_or_none.len()),
            data: data.into(),
        };
        self.numbers.insert(number, slot);
    }

    fn take_products(&mut self, codes: &[String]) -> Vec<u32> {
        let take = |code: &String| self.products.take(code.as_str().into()).0;
        let mut numbers: Vec<_> = codes.iter().map(take).collect();
        give_back_twice(&mut numbers, |number| drop(self.products.give_back(number)));
        numbers
    }

    /// What an interest is filed under: keys of which an item has one if it meets the interest.
    fn choose(
        &self,
        program: &[u32],
        products: &[u32],
        agreements: Option<&[u32]>,
    ) -> (Under, Vec<(u32, Columns)>) {
        if let Some(keys) = program::keys(program, &self.leaves, &self.rarity) {
            return (Under::Tokens, keys.tokens);
        }
        let fits = |keys: &&[u32]| keys.len() <= MATCHING_KEYS_MAX;
        let named = |keys: &[u32]| keys.iter().map(|key| (*key, ANY)).collect();
        if let Some(products) = Some(products).filter(fits).filter(|codes| !codes.is_empty()) {
            return (Under::Products, named(products));
        }
        if let Some(agreements) = agreements.filter(fits) {
            return (Under::Agreements, named(agreements));
        }
        (Under::MediaType, vec![(0, ANY)])
    }

    /// The interests that are filed under a key.
    fn filed_mut(&mut self, under: Under, key: u32, media_type: u8) -> &mut Vec<Filed> {
        match under {
            Under::Tokens => self.leaves.filed_mut(key),
            Under::Products => &mut self.products.value_mut(key).filed,
            Under::Agreements => &mut self.agreements.value_mut(key).filed,
            Under::MediaType => match self.by_type.get_mut(usize::from(media_type)) {
                Some(filed) => filed,
                None => &mut self.of_every_type,
            },
        }
    }

    /// Takes an interest out; `false` when there is none with that number.
    pub fn remove(&mut self, number: i64) -> bool {
        let Some(slot) = self.numbers.remove(&number) else { return false };
        let mut entry = std::mem::take(&mut self.entries[at(slot)]);
        for which in 0..at(entry.keys) {
            let (key, place) = (entry.key(which), *entry.place_mut(which));
            let filed = self.filed_mut(entry.under, key, entry.media_type);
            filed.swap_remove(at(place));
            let moved = filed.get(at(place)).copied();
            if filed.is_empty() {
                *filed = Vec::new();
            }
            if let Some(moved) = moved {
                *self.entries[at(moved.slot)].place_mut(usize::from(moved.which)) = place;
            }
        }
        let [products, excluded, agreements, program] = entry.conditions();
        for code in products.iter().chain(excluded) {
            self.products.give_back(*code);
        }
        for id in agreements {
            self.agreements.give_back(*id);
        }
        program::give_back(program, &mut self.leaves);
        self.free.push(slot);
        if self.numbers.is_empty() {
            (self.numbers, self.entries, self.free) = Default::default();
        }
        true
    }

    /// Counts the words of a document, so that interests added later are filed under rare ones.
    ///
    /// Counts take a fixed amount of memory ([`crate::limits::RARITY_COUNTERS`]).
    pub fn learn(&mut self, indexed: &Indexed) {
        self.rarity.learn(indexed);
    }

    /// The numbers of the interests that an item meets, ascending.
    pub fn matching(&mut self, item: &Item<'_>) -> Vec<i64> {
        self.item += 1;
        self.leaves.read(item.indexed);
        self.find_candidates(item);
        let candidates = std::mem::take(&mut self.candidates);
        self.tried = candidates.len();
        let meets = |slot: &&u32| self.meets(**slot, item.indexed);
        let met: Vec<u32> = candidates.iter().filter(meets).copied().collect();
        self.candidates = candidates;
        let mut found: Vec<i64> = met.iter().map(|slot| self.entries[at(*slot)].number).collect();
        found.sort_unstable();
        found
    }

    /// How many interests were tried on the last item.
    #[must_use]
    pub fn tried(&self) -> usize {
        self.tried
    }

    /// Gathers the interests that are filed under what an item has, each once.
    fn find_candidates(&mut self, item: &Item<'_>) {
        let media_type = item.media_type as u8;
        let candidates = &mut self.candidates;
        candidates.clear();
        let mut add = |filed: &[Filed], columns: Columns| {
            let fits = |one: &&Filed| {
                (one.media_type == media_type || one.media_type == EVERY_TYPE)
                    && one.columns & columns != 0
            };
            candidates.extend(filed.iter().filter(fits).map(|one| one.slot));
        };
        for token in &self.leaves.present {
            add(&self.leaves.tokens.value(*token).filed, self.leaves.columns_of(*token));
        }
        for code in &item.indexed.facets[Facet::ProductCode.index()] {
            let Some(number) = self.products.find(code.as_str()) else { continue };
            let name = self.products.value_mut(number);
            name.item = self.item;
            add(&name.filed, ANY);
        }
        for id in item.agreements {
            let Some(number) = self.agreements.find(id) else { continue };
            let name = self.agreements.value_mut(number);
            name.item = self.item;
            add(&name.filed, ANY);
        }
        add(&self.by_type[usize::from(media_type)], ANY);
        add(&self.of_every_type, ANY);
        // In their order they lie side by side in memory.
        candidates.sort_unstable();
        candidates.dedup();
    }

    /// Whether the present item, of the right media type, meets an interest.
    fn meets(&mut self, slot: u32, indexed: &Indexed) -> bool {
        let entry = &self.entries[at(slot)];
        let [products, excluded, agreements, program] = entry.conditions();
        let has_code = |code: &u32| self.products.value(*code).item == self.item;
        let has_agreement = |id: &u32| self.agreements.value(*id).item == self.item;
        (products.is_empty() || products.iter().any(has_code))
            && !excluded.iter().any(has_code)
            && (entry.everything || agreements.iter().any(has_agreement))
            && program::holds(program, &mut self.leaves, indexed)
    }

    /// Whether nothing is left of interests.
    #[cfg(test)]
    fn is_bare(&self) -> bool {
        let filed = self.by_type.iter().chain([&self.of_every_type]);
        filed.into_iter().all(|filed| filed.capacity() == 0)
            && self.numbers.capacity() + self.entries.capacity() + self.free.capacity() == 0
            && self.leaves.is_bare()
            && self.products.is_bare()
            && self.agreements.is_bare()
    }
}

/// Takes repetitions out of numbers that were taken from a table.
fn give_back_twice(numbers: &mut Vec<u32>, mut give_back: impl FnMut(u32)) {
    numbers.sort_unstable();
    numbers.dedup_by(|one, other| {
        let same = one == other;
        if same {
            give_back(*one);
        }
        same
    });
}

fn length(count: usize) -> u32 {
    u32::try_from(count).expect("memory ends before")
}
