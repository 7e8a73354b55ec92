//! Words, phrases, prefixes, dates and numbers that queries share, each looked at once for an item.

use std::sync::Arc;

use super::intern_table::InternTable;
use crate::{DateRange, IndexedDocument, NumericRange, Query, TextField, WordPattern, id_token};
use model::ItemId;

/// Texts of [`IndexedDocument`] as bits, in the order of [`texts`].
pub(super) type ColumnMask = u8;

const HEADLINE: ColumnMask = 1;
const DESCRIPTION: ColumnMask = 2;
const BODY: ColumnMask = 4;
const REST: ColumnMask = 8;
pub(super) const TAGS: ColumnMask = 16;
/// Every column: what is no token stands in none of them.
pub(super) const ANY: ColumnMask = ColumnMask::MAX;

/// How many texts there are.
const TEXTS: usize = 5;

/// The token at a place where none is known.
const UNKNOWN: u32 = u32::MAX;

fn texts(indexed: &IndexedDocument) -> [&str; TEXTS] {
    let IndexedDocument { headline, description, body, rest, tags, .. } = indexed;
    [headline, description, body, rest, tags]
}

/// What a query asks of a document, with numbers for tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum QueryLeaf {
    Words {
        /// Where the phrase stands, within one of them.
        columns: ColumnMask,
        /// Tokens side by side; the last one may be a beginning.
        phrase: Box<[u32]>,
        /// Whether it is.
        prefix: bool,
        /// Tokens that all stand in `tags`.
        exact: Box<[u32]>,
    },
    Dates(DateRange),
    Numbers(NumericRange),
    Present(TextField),
}

/// One interest at a place of the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterestPosting {
    /// The interest.
    pub(super) slot: u32,
    /// Which of its keys this is.
    pub(super) which: u16,
    /// The only media type it is about, as a number, or [`EVERY_TYPE`].
    pub(super) media_type: u8,
    /// Where the token has to stand.
    pub(super) columns: ColumnMask,
}

/// Instead of a media type: each of them.
pub(super) const EVERY_TYPE: u8 = u8::MAX;

/// A token, or `isb*` for all that begin with `isb`; no token has a `*`.
#[derive(Default)]
pub(super) struct TokenEntry {
    /// The last item in which it stood.
    item: u64,
    /// Where it stood there.
    columns: ColumnMask,
    /// Interests that need it.
    pub(super) postings: Vec<InterestPosting>,
}

/// What is known of a leaf.
#[derive(Default)]
struct LeafState {
    /// The last item that was looked at.
    item: u64,
    holds: bool,
}

/// The leaves of all interests, and what the present item has of their tokens.
#[derive(Default)]
pub(super) struct LeafTable {
    leaves: InternTable<Arc<QueryLeaf>, LeafState>,
    pub(super) tokens: InternTable<Arc<str>, TokenEntry>,
    /// Lengths of beginnings in bytes, with the number of beginnings; ascending.
    prefixes: Vec<(usize, usize)>,
    /// Counts the items; 0 is none.
    item: u64,
    /// The present item's tokens, by text, in order.
    columns: [Vec<u32>; TEXTS],
    /// Those that stand in it and are known, once each.
    pub(super) present: Vec<u32>,
    /// Where a beginning is written.
    spelled: String,
}

impl LeafTable {
    /// The number of a word, phrase or beginning, in use once more.
    pub(super) fn intern_words(&mut self, words: &WordPattern) -> u32 {
        let columns = match words.place {
            TextField::Anywhere => HEADLINE | DESCRIPTION | BODY | REST,
            TextField::Headline => HEADLINE,
            TextField::Description => DESCRIPTION,
            TextField::Body => BODY,
            TextField::Named(_) => TAGS,
        };
        let tokens = words.tokens();
        let count = tokens.phrase.len();
        let phrase = tokens.phrase.into_iter().enumerate().map(|(place, token)| {
            let begins = words.prefix && place + 1 == count;
            self.intern_token(token, begins)
        });
        let phrase = phrase.collect();
        let exact =
            tokens.exact.into_iter().map(|token| self.intern_token(token, false)).collect();
        self.intern(QueryLeaf::Words { columns, phrase, prefix: words.prefix, exact })
    }

    /// The number of an id, in use once more.
    pub(super) fn intern_id(&mut self, id: &ItemId) -> u32 {
        let phrase = [self.intern_token(id_token(id), false)].into();
        self.intern(QueryLeaf::Words { columns: TAGS, phrase, prefix: false, exact: [].into() })
    }

    /// The number of a leaf, in use once more, whose tokens are in use for it.
    pub(super) fn intern(&mut self, leaf: QueryLeaf) -> u32 {
        let leaf = Arc::new(leaf);
        let (number, is_new) = self.leaves.intern(Arc::clone(&leaf));
        if !is_new {
            self.release_tokens(&leaf);
        }
        number
    }

    /// Gives a leaf back.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(leaf) = self.leaves.release(number) {
            self.release_tokens(&leaf);
        }
    }

    fn intern_token(&mut self, mut token: String, begins: bool) -> u32 {
        let length = token.len();
        if begins {
            token.push('*');
        }
        let (number, is_new) = self.tokens.intern(token.into());
        if begins && is_new {
            match self.prefixes.binary_search_by_key(&length, |(length, _)| *length) {
                Ok(place) => self.prefixes[place].1 += 1,
                Err(place) => self.prefixes.insert(place, (length, 1)),
            }
        }
        number
    }

    fn release_tokens(&mut self, leaf: &QueryLeaf) {
        let QueryLeaf::Words { phrase, exact, .. } = leaf else { return };
        for number in phrase.iter().chain(exact) {
            let Some(token) = self.tokens.release(*number) else { continue };
            let Some(beginning) = token.strip_suffix('*') else { continue };
            let places = &mut self.prefixes;
            let place = places.binary_search_by_key(&beginning.len(), |(length, _)| *length);
            let place = place.expect("the length of a beginning in use");
            places[place].1 -= 1;
            if places[place].1 == 0 {
                places.remove(place);
            }
        }
    }

    pub(super) fn leaf(&self, number: u32) -> &QueryLeaf {
        self.leaves.key(number)
    }

    /// Goes on to an item: finds which of the known tokens stand in it.
    pub(super) fn read(&mut self, indexed: &IndexedDocument) {
        self.item += 1;
        self.present.clear();
        for (place, text) in texts(indexed).into_iter().enumerate() {
            let mut column = std::mem::take(&mut self.columns[place]);
            column.clear();
            for token in text.split(' ') {
                let known = self.tokens.find(token);
                column.push(known.unwrap_or(UNKNOWN));
                let again = known.is_some_and(|number| !self.mark_present(number, 1 << place));
                if !again {
                    self.mark_prefixes(token, 1 << place);
                }
            }
            self.columns[place] = column;
        }
    }

    /// Notes that a token stands in a column of the item; `false` if that was known.
    fn mark_present(&mut self, number: u32, column: ColumnMask) -> bool {
        let token = self.tokens.value_mut(number);
        if token.item != self.item {
            token.item = self.item;
            token.columns = 0;
            self.present.push(number);
        }
        let is_new = token.columns & column == 0;
        token.columns |= column;
        is_new
    }

    fn mark_prefixes(&mut self, token: &str, column: ColumnMask) {
        for place in 0..self.prefixes.len() {
            let (length, _) = self.prefixes[place];
            let Some(beginning) = token.get(..length) else {
                if length > token.len() {
                    return;
                }
                continue;
            };
            self.spelled.clear();
            self.spelled.push_str(beginning);
            self.spelled.push('*');
            if let Some(number) = self.tokens.find(self.spelled.as_str()) {
                self.mark_present(number, column);
            }
        }
    }

    /// Where a token stands in the present item.
    pub(super) fn columns_of(&self, number: u32) -> ColumnMask {
        let token = self.tokens.value(number);
        if token.item == self.item { token.columns } else { 0 }
    }

    /// Whether a leaf holds for the present item, which is `indexed`.
    pub(super) fn holds(&mut self, number: u32, indexed: &IndexedDocument) -> bool {
        let known = self.leaves.value(number);
        if known.item == self.item {
            return known.holds;
        }
        let holds = match self.leaves.key(number).as_ref() {
            QueryLeaf::Dates(dates) => Query::Dates(*dates).matches(indexed),
            QueryLeaf::Numbers(numbers) => Query::Numbers(*numbers).matches(indexed),
            QueryLeaf::Present(place) => Query::Present(*place).matches(indexed),
            QueryLeaf::Words { columns, phrase, prefix, exact } => {
                exact.iter().all(|token| self.columns_of(*token) & TAGS != 0)
                    && self.phrase_occurs(phrase, *columns, *prefix, indexed)
            }
        };
        *self.leaves.value_mut(number) = LeafState { item: self.item, holds };
        holds
    }

    /// Whether tokens stand side by side in one of `columns`.
    fn phrase_occurs(
        &self,
        phrase: &[u32],
        columns: ColumnMask,
        prefix: bool,
        indexed: &IndexedDocument,
    ) -> bool {
        let Some((last, before)) = phrase.split_last() else { return false };
        let columns = phrase.iter().fold(columns, |left, token| left & self.columns_of(*token));
        if columns == 0 || before.is_empty() {
            return columns != 0;
        }
        let beginning = self.tokens.key(*last).trim_end_matches('*');
        let mut texts = texts(indexed).into_iter().zip(&self.columns).enumerate();
        texts.any(|(place, (text, column))| {
            let ends = |at: usize, token: u32| {
                let token = if prefix { text.split(' ').nth(at) } else { return token == *last };
                token.is_some_and(|token| token.starts_with(beginning))
            };
            let mut runs = column.windows(phrase.len()).enumerate();
            columns & (1 << place) != 0
                && runs.any(|(start, run)| {
                    let (token, whole) = run.split_last().expect("as long as the phrase");
                    whole == before && ends(start + before.len(), *token)
                })
        })
    }

    /// Whether no memory is held for leaves and tokens.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        self.leaves.is_bare() && self.tokens.is_bare() && self.prefixes.is_empty()
    }

    /// How many places the tables of leaves and of tokens have.
    #[cfg(test)]
    pub(super) fn places(&self) -> (usize, usize) {
        (self.leaves.places(), self.tokens.places())
    }

    /// The text of a token, and whether it is only a beginning.
    pub(super) fn spelling(&self, number: u32) -> (&str, bool) {
        let text: &str = self.tokens.key(number);
        text.strip_suffix('*').map_or((text, false), |beginning| (beginning, true))
    }

    /// Interests filed under a token.
    pub(super) fn postings_mut(&mut self, number: u32) -> &mut Vec<InterestPosting> {
        &mut self.tokens.value_mut(number).postings
    }
}
