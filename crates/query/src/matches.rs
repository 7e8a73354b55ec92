//! Evaluates a query on one document in memory.

use super::field::TextField;
use super::indexed::IndexedDocument;
use super::tree::{DateRange, Query, WordPattern, id_token, property_token_prefix};

impl Query {
    /// Whether a document matches the query.
    ///
    /// Follows the same rules as a lookup in a search index, except that words match only as
    /// written ([`WordPattern::forms`] is ignored). Costs time in proportion to the document and the
    /// query; for many queries use [`InterestMatcher`](crate::matching::InterestMatcher).
    ///
    /// ```
    /// use jiff::tz::TimeZone;
    /// use model::{ItemKey, item::Document};
    /// use query::{IndexedDocument, parse};
    ///
    /// let key = ItemKey::parse("text/ice-1")?;
    /// let document = Document::parse(&key, r#"{"headline": "Isbrytare i Strömmen"}"#)?;
    /// let indexed = IndexedDocument::of(&key, &document, &TimeZone::UTC);
    /// assert!(parse("strommen", &TimeZone::UTC)?.matches(&indexed));
    /// assert!(!parse("headline:storm*", &TimeZone::UTC)?.matches(&indexed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn matches(&self, document: &IndexedDocument) -> bool {
        match self {
            Self::All => true,
            Self::Words(words) => words.stand_in(document),
            Self::Dates(dates) => dates.lie_in(document),
            Self::Numbers(numbers) => {
                let mut own = document.numbers.iter().filter(|(field, _)| *field == numbers.field);
                own.any(|&(_, number)| numbers.contains(number))
            }
            Self::Present(place) => is_present(*place, document),
            Self::Item(id) => {
                let token = id_token(id);
                document.tags.split(' ').any(|tag| tag == token)
            }
            Self::And(parts) => parts.iter().all(|part| part.matches(document)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(document)),
            Self::Not(inner) => !inner.matches(document),
        }
    }
}

/// Whether a document has a word in the place.
fn is_present(place: TextField, document: &IndexedDocument) -> bool {
    let has_words = |text: &str| !text.is_empty();
    match place {
        TextField::Anywhere => true,
        TextField::Headline => has_words(&document.headline),
        TextField::Description => has_words(&document.description),
        TextField::Body => has_words(&document.body),
        TextField::Named(name) => {
            let start = property_token_prefix(name);
            document.tags.split(' ').any(|tag| tag.starts_with(&start))
        }
    }
}

impl WordPattern {
    fn stand_in(&self, document: &IndexedDocument) -> bool {
        let tokens = self.tokens();
        let stand = |text: &str| stands(text, &tokens.phrase, self.prefix);
        let found = match self.place {
            TextField::Anywhere => {
                stand(&document.headline)
                    || stand(&document.description)
                    || stand(&document.body)
                    || stand(&document.rest)
            }
            TextField::Headline => stand(&document.headline),
            TextField::Description => stand(&document.description),
            TextField::Body => stand(&document.body),
            TextField::Named(_) => stand(&document.tags),
        };
        found && tokens.exact.iter().all(|exact| document.tags.split(' ').any(|tag| tag == exact))
    }
}

impl DateRange {
    fn lie_in(&self, document: &IndexedDocument) -> bool {
        let mut dates = document.dates.iter().filter(|(field, _)| *field == self.field);
        dates.any(|&(_, moment)| self.contains(moment))
    }
}

/// Whether the tokens of `phrase` are adjacent in a text.
fn stands(text: &str, phrase: &[String], prefix: bool) -> bool {
    let Some((last, before)) = phrase.split_last() else { return false };
    let mut rest = text;
    loop {
        let mut tokens = rest.split(' ');
        let whole = before.iter().all(|word| tokens.next() == Some(word));
        let end = whole.then(|| tokens.next()).flatten();
        if end.is_some_and(|end| end == last || (prefix && end.starts_with(last.as_str()))) {
            return true;
        }
        match rest.split_once(' ') {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
}
