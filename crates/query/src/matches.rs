//! Evaluates a query on one document in memory.

use super::field::TextField;
use super::indexed::IndexedDocument;
use super::tree::{Query, WordPattern, id_token, property_token_prefix};

impl Query {
    /// Returns whether a document matches the query.
    ///
    /// Follows the same rules as a lookup in a search index, except that words match only as written
    /// ([`WordPattern::forms`] is ignored). The time is proportional to the document and the query; for many
    /// queries use [`InterestMatcher`](crate::matching::InterestMatcher).
    ///
    /// ```
    /// use jiff::tz::TimeZone;
    /// use model::{ItemKey, item::Document};
    /// use query::{IndexedDocument, parse};
    ///
    /// let key = ItemKey::parse("text/ice-1")?;
    /// let document = Document::parse(&key, r#"{"headline": "Isbrytare i Strömmen"}"#)?;
    /// let indexed = IndexedDocument::new(&key, &document, &TimeZone::UTC);
    /// assert!(parse("strommen", &TimeZone::UTC)?.matches(&indexed));
    /// assert!(!parse("headline:storm*", &TimeZone::UTC)?.matches(&indexed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn matches(&self, document: &IndexedDocument) -> bool {
        match self {
            Self::All => true,
            Self::Words(words) => words.occurs_in(document),
            Self::Dates(dates) => {
                let mut moments = document.dates.iter().filter(|(field, _)| *field == dates.field);
                moments.any(|&(_, moment)| dates.contains(moment))
            }
            Self::Numbers(numbers) => {
                let mut values =
                    document.numbers.iter().filter(|(field, _)| *field == numbers.field);
                // A property in a list, such as `subject.relevance`, has several numbers; one of them suffices.
                values.any(|&(_, number)| numbers.contains(number))
            }
            Self::Present(field) => is_present(*field, document),
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

/// Returns whether a document has a word in the field.
fn is_present(field: TextField, document: &IndexedDocument) -> bool {
    match field {
        // Every item has at least the words of its identity.
        TextField::Anywhere => true,
        TextField::Headline => !document.headline.is_empty(),
        TextField::Description => !document.description.is_empty(),
        TextField::Body => !document.body.is_empty(),
        TextField::Named(name) => {
            let start = property_token_prefix(name);
            document.tags.split(' ').any(|tag| tag.starts_with(&start))
        }
    }
}

impl WordPattern {
    fn occurs_in(&self, document: &IndexedDocument) -> bool {
        let tokens = self.tokens();
        let phrase = &tokens.phrase;
        let found = match self.place {
            TextField::Anywhere => {
                let IndexedDocument { headline, description, body, rest, .. } = document;
                let texts = [headline, description, body, rest];
                texts.iter().any(|text| has_phrase(text, phrase, self.prefix))
            }
            TextField::Headline => has_phrase(&document.headline, phrase, self.prefix),
            TextField::Description => has_phrase(&document.description, phrase, self.prefix),
            TextField::Body => has_phrase(&document.body, phrase, self.prefix),
            TextField::Named(_) => has_phrase(&document.tags, phrase, self.prefix),
        };
        // An accent in a query is significant (contract search-14).
        found && tokens.exact.iter().all(|exact| document.tags.split(' ').any(|tag| tag == exact))
    }
}

/// Returns whether the tokens of `phrase` are adjacent in a text.
fn has_phrase(text: &str, phrase: &[String], prefix: bool) -> bool {
    let Some((last, before)) = phrase.split_last() else { return false };
    let mut rest = text;
    loop {
        let mut tokens = rest.split(' ');
        let precedes = before.iter().all(|word| tokens.next() == Some(word));
        let next = precedes.then(|| tokens.next()).flatten();
        if next.is_some_and(|next| next == last || (prefix && next.starts_with(last.as_str()))) {
            return true;
        }
        match rest.split_once(' ') {
            Some((_, remainder)) => rest = remainder,
            None => return false,
        }
    }
}
