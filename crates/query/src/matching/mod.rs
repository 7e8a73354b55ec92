//! Matches one item against many saved queries in memory (a *percolator*).
//!
//! An [`Interest`] is a saved query with further conditions. It is filed under keys of which every matching item
//! has at least one: the rarest word of its query, or one word of each branch of an `OR`. If the query requires no
//! word, the keys are its product codes, else its agreements, else its media type. An item is evaluated only
//! against the interests filed under its keys. The result is the same as for [`Interest::matches`], as the tests
//! verify, and for a search.

mod entry;
mod frequency;
mod interest;
mod intern_table;
mod leaf;
mod program;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::limits::MATCHING_KEYS_MAX;
use crate::{Facet, IndexedDocument};
use entry::{EntryConditions, IndexKeyKind, InterestEntry, length};
use frequency::FrequencySketch;
pub use interest::{Interest, InterestCoverage, MatchSubject};
use intern_table::{InternTable, index_of};
use leaf::{ANY, ColumnMask, EVERY_TYPE, InterestPosting, LeafTable};
use model::MediaType;
use model::account::AgreementId;
use strum::EnumCount;

/// Many saved queries with an index that finds the queries that match one item.
///
/// Each interest is stored under a number that the caller chooses. A million interests need a few hundred bytes
/// each, and matching an item costs about a millisecond. Words, phrases and ranges that several interests share
/// are stored once and evaluated once per item.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use jiff::tz::TimeZone;
/// use model::{ItemKey, MediaType, item::Document};
/// use query::matching::{Interest, InterestCoverage, InterestMatcher, MatchSubject};
/// use query::{IndexedDocument, parse};
///
/// let mut matcher = InterestMatcher::new();
/// for (number, text) in [(7, "strömmen"), (8, "isbrytare -strömmen")] {
///     matcher.insert(number, Interest {
///         media_type: Some(MediaType::Text),
///         query: parse(text, &TimeZone::UTC)?,
///         products: Vec::new(),
///         products_excluded: Vec::new(),
///         cover: InterestCoverage::Everything,
///     });
/// }
/// let key = ItemKey::parse("text/ice-1")?;
/// let document = Document::parse(&key, r#"{"headline": "Isbrytare i Strömmen"}"#)?;
/// let indexed = IndexedDocument::new(&key, &document, &TimeZone::UTC);
/// let agreements = BTreeSet::new();
/// let item = MatchSubject { media_type: MediaType::Text, indexed: &indexed, agreements: &agreements };
/// assert_eq!(matcher.matching(&item), [7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct InterestMatcher {
    numbers: HashMap<i64, u32>,
    /// The entries by slot; `None` for a removed interest.
    entries: Vec<Option<InterestEntry>>,
    free: Vec<u32>,
    leaves: LeafTable,
    products: InternTable<Arc<str>, ConditionPostings>,
    agreements: InternTable<AgreementId, ConditionPostings>,
    by_type: [Vec<InterestPosting>; MediaType::COUNT],
    of_every_type: Vec<InterestPosting>,
    rarity: FrequencySketch,
    /// The number of the current item, from 1; 0 before the first item.
    item: u64,
    /// One bit per slot; all are 0 between two items.
    candidates: Vec<u64>,
    evaluated_count: usize,
}

/// Number of bits per word of [`InterestMatcher::candidates`].
const BITS: usize = 64;

/// The entry of a product code or an agreement.
#[derive(Default)]
struct ConditionPostings {
    /// The number of the last item with it.
    item: u64,
    /// The interests filed under it.
    postings: Vec<InterestPosting>,
}

impl InterestMatcher {
    /// Creates a matcher without interests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of interests.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether the matcher has no interests.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Adds an interest, or replaces the interest with the same number.
    ///
    /// The interest is filed under its rarest word, according to the documents counted with [`Self::learn`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller gives up the interest that it saves"
    )]
    pub fn insert(&mut self, number: i64, interest: Interest) {
        // The former interest with this number may be filed under different keys.
        self.remove(number);
        let mut program = Vec::new();
        program::compile(&interest.query, &mut self.leaves, &mut program);
        let products = self.products.intern_distinct(arcs(&interest.products));
        let excluded = self.products.intern_distinct(arcs(&interest.products_excluded));
        let agreements = match &interest.cover {
            InterestCoverage::Everything => None,
            InterestCoverage::Agreements(ids) => {
                Some(self.agreements.intern_distinct(ids.iter().copied()))
            }
        };
        let (key_kind, keys) = self.choose_keys(&program, &products, agreements.as_deref());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            length(self.entries.len() - 1)
        });
        let media_type = interest.media_type.map_or(EVERY_TYPE, |media_type| media_type as u8);
        let mut places = Vec::with_capacity(keys.len());
        for (which, (key, columns)) in (0..).zip(keys) {
            let postings = self.postings_mut(key_kind, key, media_type);
            places.push((key, length(postings.len())));
            postings.push(InterestPosting { slot, which, media_type, columns });
        }
        let conditions = EntryConditions {
            products: &products,
            excluded: &excluded,
            agreements: agreements.as_deref().unwrap_or_default(),
            program: &program,
        };
        let needs_coverage = agreements.is_some();
        let entry =
            InterestEntry::new(number, media_type, key_kind, &places, needs_coverage, conditions);
        self.entries[index_of(slot)] = Some(entry);
        self.numbers.insert(number, slot);
    }

    /// Chooses the keys under which to file an interest. Every matching item has at least one of them.
    fn choose_keys(
        &self,
        program: &[u32],
        products: &[u32],
        agreements: Option<&[u32]>,
    ) -> (IndexKeyKind, Vec<(u32, ColumnMask)>) {
        if let Some(keys) = program::required_tokens(program, &self.leaves, &self.rarity) {
            if keys.is_sufficient {
                return (IndexKeyKind::DecidingTokens, keys.tokens);
            }
            return (IndexKeyKind::Tokens, keys.tokens);
        }
        // An agreement covers many codes, so a code is the narrower key.
        if !products.is_empty() && products.len() <= MATCHING_KEYS_MAX {
            return (IndexKeyKind::Products, for_any_column(products));
        }
        if let Some(agreements) = agreements
            && agreements.len() <= MATCHING_KEYS_MAX
        {
            return (IndexKeyKind::Agreements, for_any_column(agreements));
        }
        (IndexKeyKind::MediaType, vec![(0, ANY)])
    }

    /// Returns the interests filed under a key.
    fn postings_mut(
        &mut self,
        key_kind: IndexKeyKind,
        key: u32,
        media_type: u8,
    ) -> &mut Vec<InterestPosting> {
        match key_kind {
            IndexKeyKind::Tokens | IndexKeyKind::DecidingTokens => {
                &mut self.leaves.tokens.value_mut(key).postings
            }
            IndexKeyKind::Products => &mut self.products.value_mut(key).postings,
            IndexKeyKind::Agreements => &mut self.agreements.value_mut(key).postings,
            IndexKeyKind::MediaType => match self.by_type.get_mut(usize::from(media_type)) {
                Some(postings) => postings,
                // `EVERY_TYPE` is not an index of a media type.
                None => &mut self.of_every_type,
            },
        }
    }

    /// Removes an interest; `false` if no interest has this number.
    pub fn remove(&mut self, number: i64) -> bool {
        let Some(slot) = self.numbers.remove(&number) else { return false };
        let entry = self.entries[index_of(slot)].take().expect("a number names an entry");
        for (key, place) in entry.index_keys() {
            let postings = self.postings_mut(entry.key_kind, key, entry.media_type);
            // The last posting moves to the free place, so its entry must record the new place.
            postings.swap_remove(index_of(place));
            let moved = postings.get(index_of(place)).copied();
            // An empty list would retain its memory for a word that may never return.
            if postings.is_empty() {
                *postings = Vec::new();
            }
            if let Some(moved) = moved {
                let entry = self.entries[index_of(moved.slot)].as_mut();
                entry.expect("every posting belongs to an entry").set_place(moved.which, place);
            }
        }
        let EntryConditions { products, excluded, agreements, program } = entry.conditions();
        for code in products.iter().chain(excluded) {
            self.products.release(*code);
        }
        for id in agreements {
            self.agreements.release(*id);
        }
        program::release_leaves(program, &mut self.leaves);
        self.free.push(slot);
        if self.numbers.is_empty() {
            (self.numbers, self.entries, self.free) = Default::default();
            self.candidates = Vec::new();
        }
        true
    }

    /// Counts the words of a document, so that interests added later are filed under rare words.
    ///
    /// Optional: it affects the speed of matching, but not the results. The counts need a fixed amount of memory
    /// ([`crate::limits::RARITY_COUNTERS`]).
    pub fn learn(&mut self, indexed: &IndexedDocument) {
        self.rarity.learn(indexed);
    }

    /// Returns the numbers of the interests that match an item, in ascending order.
    pub fn matching(&mut self, item: &MatchSubject<'_>) -> Vec<i64> {
        self.item += 1;
        self.leaves.read(item.indexed);
        self.find_candidates(item);
        self.evaluated_count = 0;
        let mut found = Vec::new();
        for word in 0..self.candidates.len() {
            // `take` clears the word for the next item.
            let mut bits = std::mem::take(&mut self.candidates[word]);
            while bits != 0 {
                let slot = word * BITS + usize::try_from(bits.trailing_zeros()).expect("below 64");
                bits &= bits - 1;
                self.evaluated_count += 1;
                found.extend(self.meets(slot, item.indexed));
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns the number of interests that were evaluated on the last item, a measure of cost.
    pub fn evaluated_count(&self) -> usize {
        self.evaluated_count
    }

    /// Marks the interests filed under the keys of an item as candidates.
    fn find_candidates(&mut self, item: &MatchSubject<'_>) {
        let media_type = item.media_type as u8;
        let candidates = &mut self.candidates;
        candidates.resize(self.entries.len().div_ceil(BITS), 0);
        for token in &self.leaves.present {
            let postings = &self.leaves.tokens.value(*token).postings;
            mark_candidates(candidates, postings, media_type, self.leaves.columns_of(*token));
        }
        for code in &item.indexed.facets[Facet::ProductCode.index()] {
            let Some(number) = self.products.find(code.as_str()) else { continue };
            let condition = self.products.value_mut(number);
            condition.item = self.item;
            mark_candidates(candidates, &condition.postings, media_type, ANY);
        }
        for id in item.agreements {
            let Some(number) = self.agreements.find(id) else { continue };
            let condition = self.agreements.value_mut(number);
            condition.item = self.item;
            mark_candidates(candidates, &condition.postings, media_type, ANY);
        }
        let of_type = &self.by_type[usize::from(media_type)];
        mark_candidates(candidates, of_type, media_type, ANY);
        mark_candidates(candidates, &self.of_every_type, media_type, ANY);
    }

    /// Returns the number of a candidate if it matches the current item.
    fn meets(&mut self, slot: usize, indexed: &IndexedDocument) -> Option<i64> {
        let entry = self.entries[slot].as_ref()?;
        let EntryConditions { products, excluded, agreements, program } = entry.conditions();
        let meets = (products.is_empty() || has_any(&self.products, products, self.item))
            && !has_any(&self.products, excluded, self.item)
            && (!entry.needs_coverage || has_any(&self.agreements, agreements, self.item))
            // A candidate by a token that suffices already matches.
            && (matches!(entry.key_kind, IndexKeyKind::DecidingTokens)
                || program::holds(program, &mut self.leaves, indexed));
        meets.then_some(entry.number)
    }

    /// Returns whether no state of interests is left.
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

/// Returns `true` if the item has at least one of the numbered conditions.
fn has_any<K: Clone + Eq + Hash>(
    conditions: &InternTable<K, ConditionPostings>,
    numbers: &[u32],
    item: u64,
) -> bool {
    numbers.iter().any(|number| conditions.value(*number).item == item)
}

/// Sets the bits of the interests that fit the media type and need one of the columns.
fn mark_candidates(
    candidates: &mut [u64],
    postings: &[InterestPosting],
    media_type: u8,
    columns: ColumnMask,
) {
    for posting in postings {
        // Both conditions are in the posting, so most entries are never read.
        let fits_type = posting.media_type == media_type || posting.media_type == EVERY_TYPE;
        if fits_type && posting.columns & columns != 0 {
            let slot = index_of(posting.slot);
            candidates[slot / BITS] |= 1 << (slot % BITS);
        }
    }
}

fn for_any_column(keys: &[u32]) -> Vec<(u32, ColumnMask)> {
    keys.iter().map(|key| (*key, ANY)).collect()
}

fn arcs(codes: &[String]) -> impl Iterator<Item = Arc<str>> {
    codes.iter().map(|code| code.as_str().into())
}
