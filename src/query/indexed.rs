//! What of a document is searched, in the spelling of the index.

use jiff::{Timestamp, tz::TimeZone};

use super::facet::Facet;
use super::field::DateField;
use crate::item::Document;
use crate::types::ItemKey;

/// What of a document is searched.
///
/// The texts are tokens between single spaces. A word is its folded form, which has letters and
/// digits only; the token `.` stands between two values of a property, so that no phrase reaches
/// from one into the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Words of the headline.
    pub headline: String,
    /// Words of `description_text`.
    pub description: String,
    /// Words of the body.
    pub body: String,
    /// Words of what else free words search.
    pub rest: String,
    /// Tokens that are no words: words of one property, words with accents, words that stand often.
    pub tags: String,
    /// Words in headline, description, body and rest.
    pub length: u32,
    /// The values of every facet, each value once, in the order of [`Facet::ALL`].
    pub facets: [Vec<String>; Facet::ALL.len()],
    /// The dates that the document has.
    pub dates: Vec<(DateField, Timestamp)>,
}

impl Indexed {
    /// What of `document`, which is that of the item `key`, is searched; days begin in `zone`.
    #[must_use]
    pub fn of(_key: &ItemKey, document: &Document, _zone: &TimeZone) -> Self {
        let text = |name| {
            let words = super::words(document.text(name).unwrap_or_default());
            words.map(|word| word.folded).collect::<Vec<_>>().join(" ")
        };
        Self {
            headline: text("headline"),
            description: text("description_text"),
            body: text("body_text"),
            ..Self::default()
        }
    }
}
