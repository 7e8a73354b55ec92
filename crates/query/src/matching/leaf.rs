//! The words, phrases, prefixes, dates and numbers that queries share. Each is stored once and evaluated once per
//! item.

use std::sync::Arc;

use super::intern_table::InternTable;
use crate::{DateRange, IndexedDocument, NumericRange, Query, TextField, WordPattern, id_token};
use model::ItemId;

/// A set of texts of [`IndexedDocument`] as bits, in the order of the function `texts`.
pub(super) type ColumnMask = u8;

const HEADLINE: ColumnMask = 1;
const DESCRIPTION: ColumnMask = 2;
const BODY: ColumnMask = 4;
const REST: ColumnMask = 8;
pub(super) const TAGS: ColumnMask = 16;
/// All columns, for keys other than tokens.
pub(super) const ANY: ColumnMask = ColumnMask::MAX;

/// The number of texts.
const TEXTS: usize = 5;

/// The number of a token that no query uses.
const UNKNOWN: u32 = u32::MAX;

fn texts(indexed: &IndexedDocument) -> [&str; TEXTS] {
    let IndexedDocument { headline, description, body, rest, tags, .. } = indexed;
    [headline, description, body, rest, tags]
}

/// A leaf of a query, with numbers instead of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum QueryLeaf {
    Words {
        /// The columns that are searched; the phrase must be within one of them.
        columns: ColumnMask,
        phrase: Box<[u32]>,
        /// True if the last token is a prefix.
        prefix: bool,
        /// Tokens that must all occur in `tags`.
        exact: Box<[u32]>,
    },
    Dates(DateRange),
    Numbers(NumericRange),
    Present(TextField),
}

/// An interest filed under a key of the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterestPosting {
    /// The slot of the interest.
    pub(super) slot: u32,
    /// The index of this key among the interest's keys.
    pub(super) which: u16,
    /// The media type of the interest as a number, or [`EVERY_TYPE`].
    pub(super) media_type: u8,
    /// The columns in which the token must occur.
    pub(super) columns: ColumnMask,
}

/// The value for an interest in all media types.
pub(super) const EVERY_TYPE: u8 = u8::MAX;

/// A token, or `isb*` for the prefix `isb`. A token itself never contains `*`.
#[derive(Default)]
pub(super) struct TokenEntry {
    /// The number of the last item with the token.
    item: u64,
    /// The columns of that item in which it occurs.
    columns: ColumnMask,
    /// The interests filed under the token.
    pub(super) postings: Vec<InterestPosting>,
}

/// The cached result of a leaf.
#[derive(Default)]
struct LeafState {
    /// The number of the item to which the result applies.
    item: u64,
    holds: bool,
}

/// The leaves of all interests, and the occurrences of their tokens in the current item.
#[derive(Default)]
pub(super) struct LeafTable {
    leaves: InternTable<Arc<QueryLeaf>, LeafState>,
    pub(super) tokens: InternTable<Arc<str>, TokenEntry>,
    /// The lengths of prefixes in bytes, ascending, each with the number of prefixes of that length.
    prefixes: Vec<(usize, usize)>,
    /// The number of the current item, from 1; 0 before the first item.
    item: u64,
    /// The tokens of the current item by column, in order.
    columns: [Vec<u32>; TEXTS],
    /// The distinct known tokens of the current item.
    pub(super) present: Vec<u32>,
    /// A buffer for the spelling of prefixes.
    prefix_buffer: String,
}

impl LeafTable {
    /// Interns a word, phrase or prefix, counts one more use of it and returns its number.
    pub(super) fn intern_words(&mut self, words: &WordPattern) -> u32 {
        let columns = match words.place {
            // Without `TAGS`, whose tokens begin with codes that a prefix could match.
            TextField::Anywhere => HEADLINE | DESCRIPTION | BODY | REST,
            TextField::Headline => HEADLINE,
            TextField::Description => DESCRIPTION,
            TextField::Body => BODY,
            TextField::Named(_) => TAGS,
        };
        let tokens = words.tokens();
        let count = tokens.phrase.len();
        let phrase = tokens.phrase.into_iter().enumerate().map(|(index, token)| {
            let is_prefix = words.prefix && index + 1 == count;
            self.intern_token(token, is_prefix)
        });
        let phrase = phrase.collect();
        let exact =
            tokens.exact.into_iter().map(|token| self.intern_token(token, false)).collect();
        self.intern(QueryLeaf::Words { columns, phrase, prefix: words.prefix, exact })
    }

    /// Interns an id, counts one more use of it and returns its number.
    pub(super) fn intern_id(&mut self, id: &ItemId) -> u32 {
        let phrase = [self.intern_token(id_token(id), false)].into();
        self.intern(QueryLeaf::Words { columns: TAGS, phrase, prefix: false, exact: [].into() })
    }

    /// Interns a leaf and returns its number. The uses of the leaf's tokens are already counted.
    pub(super) fn intern(&mut self, leaf: QueryLeaf) -> u32 {
        let leaf = Arc::new(leaf);
        let (number, is_new) = self.leaves.intern(Arc::clone(&leaf));
        // An existing leaf already holds its tokens, so the additional uses are released.
        if !is_new {
            self.release_tokens(&leaf);
        }
        number
    }

    /// Releases one use of a leaf.
    pub(super) fn release(&mut self, number: u32) {
        if let Some(leaf) = self.leaves.release(number) {
            self.release_tokens(&leaf);
        }
    }

    fn intern_token(&mut self, mut token: String, is_prefix: bool) -> u32 {
        let length = token.len();
        if is_prefix {
            token.push('*');
        }
        let (number, is_new) = self.tokens.intern(token.into());
        // Counted once per prefix, not once per use.
        if is_prefix && is_new {
            match self.prefixes.binary_search_by_key(&length, |(length, _)| *length) {
                Ok(index) => self.prefixes[index].1 += 1,
                Err(index) => self.prefixes.insert(index, (length, 1)),
            }
        }
        number
    }

    fn release_tokens(&mut self, leaf: &QueryLeaf) {
        let QueryLeaf::Words { phrase, exact, .. } = leaf else { return };
        for number in phrase.iter().chain(exact) {
            let Some(token) = self.tokens.release(*number) else { continue };
            let Some(beginning) = token.strip_suffix('*') else { continue };
            let lengths = &mut self.prefixes;
            let index = lengths.binary_search_by_key(&beginning.len(), |(length, _)| *length);
            let index = index.expect("the length of a prefix in use");
            lengths[index].1 -= 1;
            if lengths[index].1 == 0 {
                lengths.remove(index);
            }
        }
    }

    pub(super) fn leaf(&self, number: u32) -> &QueryLeaf {
        self.leaves.key(number)
    }

    /// Reads the next item and finds the known tokens in it.
    pub(super) fn read(&mut self, indexed: &IndexedDocument) {
        self.item += 1;
        self.present.clear();
        for (index, text) in texts(indexed).into_iter().enumerate() {
            let mut column = std::mem::take(&mut self.columns[index]);
            column.clear();
            // Prefixes of a token are marked once per column; a repetition of the token adds nothing.
            for token in text.split(' ') {
                let found = self.tokens.find(token);
                column.push(found.unwrap_or(UNKNOWN));
                let is_repeated =
                    found.is_some_and(|number| !self.mark_present(number, 1 << index));
                if !is_repeated {
                    self.mark_prefixes(token, 1 << index);
                }
            }
            self.columns[index] = column;
        }
    }

    /// Records that a token occurs in a column of the item. Returns `false` if that was already recorded.
    fn mark_present(&mut self, number: u32, column: ColumnMask) -> bool {
        let token = self.tokens.value_mut(number);
        // The item number makes it unnecessary to clear every token before each item.
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
        for index in 0..self.prefixes.len() {
            let (length, _) = self.prefixes[index];
            let Some(beginning) = token.get(..length) else {
                // The lengths ascend, so the following ones are too long as well.
                if length > token.len() {
                    return;
                }
                // The length ends within a character, so no prefix of this token has it.
                continue;
            };
            self.prefix_buffer.clear();
            self.prefix_buffer.push_str(beginning);
            self.prefix_buffer.push('*');
            if let Some(number) = self.tokens.find(self.prefix_buffer.as_str()) {
                self.mark_present(number, column);
            }
        }
    }

    /// Returns the columns of the current item in which a token occurs.
    pub(super) fn columns_of(&self, number: u32) -> ColumnMask {
        let token = self.tokens.value(number);
        if token.item == self.item { token.columns } else { 0 }
    }

    /// Returns whether a leaf holds for the current item, which is `indexed`. The result is cached per item.
    pub(super) fn holds(&mut self, number: u32, indexed: &IndexedDocument) -> bool {
        let cached = self.leaves.value(number);
        if cached.item == self.item {
            return cached.holds;
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

    /// Returns whether the tokens are adjacent in one of `columns`.
    fn phrase_occurs(
        &self,
        phrase: &[u32],
        columns: ColumnMask,
        prefix: bool,
        indexed: &IndexedDocument,
    ) -> bool {
        let Some((last, before)) = phrase.split_last() else { return false };
        // All tokens have to be in one column, which rules out most phrases without reading the text.
        let columns = phrase.iter().fold(columns, |left, token| left & self.columns_of(*token));
        if columns == 0 || before.is_empty() {
            return columns != 0;
        }
        let beginning = self.tokens.key(*last).trim_end_matches('*');
        for (index, (text, column)) in texts(indexed).into_iter().zip(&self.columns).enumerate() {
            if columns & (1 << index) == 0 {
                continue;
            }
            for (start, run) in column.windows(phrase.len()).enumerate() {
                let (token, leading) = run.split_last().expect("as long as the phrase");
                if leading != before {
                    continue;
                }
                let occurs = if prefix {
                    // The column does not contain the number of a prefix, so the word is read from the text.
                    let word = text.split(' ').nth(start + before.len());
                    word.is_some_and(|word| word.starts_with(beginning))
                } else {
                    token == last
                };
                if occurs {
                    return true;
                }
            }
        }
        false
    }

    /// Returns whether no memory is held for leaves and tokens.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        self.leaves.is_bare() && self.tokens.is_bare() && self.prefixes.is_empty()
    }

    /// Returns the numbers of slots in the tables of leaves and of tokens.
    #[cfg(test)]
    pub(super) fn places(&self) -> (usize, usize) {
        (self.leaves.places(), self.tokens.places())
    }

    /// Returns the text of a token, and whether it is a prefix.
    pub(super) fn spelling(&self, number: u32) -> (&str, bool) {
        let text: &str = self.tokens.key(number);
        text.strip_suffix('*').map_or((text, false), |beginning| (beginning, true))
    }
}
