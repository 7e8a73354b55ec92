//! The tree of a parsed query.

use jiff::Timestamp;

use super::field::{DateField, TextField};
use super::fold::Word;
use super::number::NumericRange;
use super::property;
use model::ItemId;

/// A query as a tree, built by [`parse`](crate::parse).
///
/// The parser bounds its depth and the number of its leaves. It prints (`Display`) in a canonical spelling that
/// parses to the same tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    All,
    /// Documents with these words.
    Words(WordPattern),
    /// Documents with a date in this range.
    Dates(DateRange),
    /// Documents with a number in this range.
    Numbers(NumericRange),
    /// Documents with a word in this field, which is not [`TextField::Anywhere`].
    Present(TextField),
    /// Items with this id, of any media type.
    Item(ItemId),
    /// Documents that satisfy all these queries; at least one query.
    And(Vec<Query>),
    /// Documents that satisfy any of these queries; at least one query.
    Or(Vec<Query>),
    /// Documents that do not satisfy this query.
    Not(Box<Query>),
}

impl Query {
    /// Joins queries so that a document has to satisfy all of them. Nested `And`s are flattened. An empty list
    /// matches every document.
    pub fn and(parts: Vec<Self>) -> Self {
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            if let Self::And(inner) = part {
                all.extend(inner);
            } else if part != Self::All {
                all.push(part);
            }
        }
        // An `And` of one part is replaced by the part, so that equal queries have equal trees.
        match all.len() {
            0 => Self::All,
            1 => all.remove(0),
            _ => Self::And(all),
        }
    }

    /// Joins queries, at least one, so that a document has to satisfy any of them. Nested `Or`s are flattened. If
    /// one part matches every document, so does the result.
    pub(super) fn or(parts: Vec<Self>) -> Self {
        let mut any = Vec::with_capacity(parts.len());
        for part in parts {
            if part == Self::All {
                return Self::All;
            }
            if let Self::Or(inner) = part {
                any.extend(inner);
            } else {
                any.push(part);
            }
        }
        // As in `and`: equal queries have equal trees.
        if any.len() == 1 { any.remove(0) } else { Self::Or(any) }
    }

    /// Negates `inner`; a double negation cancels out.
    pub(super) fn negated(inner: Self) -> Self {
        if let Self::Not(inner) = inner { *inner } else { Self::Not(Box::new(inner)) }
    }

    /// Removes inflected forms: every word then matches only as written.
    #[must_use]
    pub fn without_forms(self) -> Self {
        if let Self::Words(words) = self {
            return Self::Words(WordPattern { forms: false, ..words });
        }
        self.map_parts(Self::without_forms)
    }

    /// Removes inflected forms below `Not`, so that an exclusion matches only as written.
    #[must_use]
    pub(super) fn with_exact_exclusions(self) -> Self {
        // An exclusion must remove only the written word: `-hund` leaves `hundar`.
        if let Self::Not(inner) = self {
            return Self::Not(Box::new(inner.without_forms()));
        }
        self.map_parts(Self::with_exact_exclusions)
    }

    /// Applies `change` to the queries that this query joins or negates.
    fn map_parts(self, change: fn(Self) -> Self) -> Self {
        match self {
            Self::And(parts) => Self::And(parts.into_iter().map(change).collect()),
            Self::Or(parts) => Self::Or(parts.into_iter().map(change).collect()),
            Self::Not(inner) => Self::Not(Box::new(change(*inner))),
            Self::All
            | Self::Words(_)
            | Self::Dates(_)
            | Self::Numbers(_)
            | Self::Present(_)
            | Self::Item(_) => self,
        }
    }
}

/// A word, a phrase or a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WordPattern {
    /// The part of a document to search for the words.
    pub place: TextField,
    /// One word, or several words that are adjacent within one value; at least one word.
    pub words: Vec<Word>,
    /// True if the last word is a prefix, which matches every word that begins with it.
    pub prefix: bool,
    /// True if inflected forms of a single word match too: `hund` then also finds `hundar`. The forms depend on
    /// the language of the document, so only the search index knows them; [`Query::matches`] ignores this flag.
    pub forms: bool,
}

/// The tokens to look up for a [`WordPattern`], in the spelling of the index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LookupTokens {
    /// Tokens that must be adjacent in a text of [`IndexedDocument`](super::IndexedDocument): the text of the
    /// field, `tags` for [`TextField::Named`], or any text but `tags` for [`TextField::Anywhere`]. The last token is
    /// a prefix if [`WordPattern::prefix`] is set.
    ///
    /// A whole word never equals a token of `tags`. A prefix such as `per`, however, also begins tokens of `tags`
    /// that are not words (`person.name=erik`), so a search for a prefix must exclude `tags`.
    pub phrase: Vec<String>,
    /// Tokens that must all occur in `tags`: one for each distinct word with an accent.
    pub exact: Vec<String>,
}

impl WordPattern {
    /// Returns the tokens to look up in the texts of [`IndexedDocument`](super::IndexedDocument).
    ///
    /// A word with an accent is looked up by its folded form. In addition, its exact spelling must occur anywhere
    /// in the same field, not necessarily within the phrase: `"café röd"` also matches a text with `cafe röd` and,
    /// elsewhere, `café`. A prefix with an accent is looked up only by its folded form.
    ///
    /// An index with both spellings of every word would match such phrases exactly, but would be twice as large.
    /// Searches for phrases that differ only in accents are too rare for that.
    pub fn tokens(&self) -> LookupTokens {
        // The spelling of a prefix is incomplete, so its accents cannot be compared with a whole word.
        let complete = self.words.len() - usize::from(self.prefix && !self.words.is_empty());
        let accented = self.words[..complete].iter().filter_map(|word| word.exact.as_deref());
        let mut exact = Vec::new();
        for token in accented.map(|word| accent(self.place, word)) {
            // A phrase may repeat a word, and each token costs a lookup.
            if !exact.contains(&token) {
                exact.push(token);
            }
        }
        let phrase = self.words.iter().map(|word| self.folded_token(word)).collect();
        LookupTokens { phrase, exact }
    }

    /// Returns the token of a word of the pattern without its accents.
    fn folded_token(&self, word: &Word) -> String {
        if let TextField::Named(name) = self.place {
            format!("{}{}", property_token_prefix(name), word.folded)
        } else {
            word.folded.clone()
        }
    }
}

/// Returns the prefix of all tokens of a property.
pub fn property_token_prefix(name: &str) -> String {
    let mut token = String::from_iter(property::code(name));
    token.push('=');
    token
}

/// Returns the token of an item's id. Like the tokens of words with accents, it is matched as a whole, here
/// case-sensitively.
pub fn id_token(id: &ItemId) -> String {
    format!("i=={id}")
}

/// Returns the token for an occurrence of a word with an accent in a field.
pub(super) fn accent(field: TextField, exact: &str) -> String {
    let mut token = match field {
        TextField::Anywhere => String::new(),
        TextField::Headline => "h".to_owned(),
        TextField::Description => "d".to_owned(),
        TextField::Body => "b".to_owned(),
        TextField::Named(name) => String::from_iter(property::code(name)),
    };
    token.push_str("==");
    token.push_str(exact);
    token
}

/// A range of dates in one date field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateRange {
    /// The date field to compare.
    pub field: DateField,
    /// Start of the range, inclusive; `None` for an open start.
    pub from: Option<Timestamp>,
    /// End of the range, exclusive; `None` for an open end.
    pub until: Option<Timestamp>,
}

impl DateRange {
    /// Returns whether a moment is in the range, compared in whole milliseconds, the resolution of the index.
    pub fn contains(&self, moment: Timestamp) -> bool {
        let at_ms = moment.as_millisecond();
        self.from.is_none_or(|from| from.as_millisecond() <= at_ms)
            && self.until.is_none_or(|end| at_ms < end.as_millisecond())
    }
}
