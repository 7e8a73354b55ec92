//! Marks the words of a text that match a query.

use std::ops::Range;

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::storage::search::is_form_of;
use query::{Query, TextField, Word, WordPattern, word_spans};

/// A part of a text, marked if it matches the query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MarkedPart {
    text: String,
    marked: bool,
}

/// The words for which a query searches texts.
#[derive(Debug, Default)]
pub(super) struct QueryWords {
    patterns: Vec<WordPattern>,
}

/// A word of a text, with its byte range.
type WordSpan = (Range<usize>, Word);

impl QueryWords {
    /// Parses the query `text` and collects its words, except excluded ones. Inflected forms match too, unless
    /// `is_exact`. An invalid query has no words.
    pub(super) fn parse(text: &str, is_exact: bool, zone: &TimeZone) -> Self {
        let parse = if is_exact { query::parse } else { query::parse_with_forms };
        let mut patterns = Vec::new();
        if let Ok(query) = parse(text, zone) {
            collect(&query, &mut patterns);
        }
        Self { patterns }
    }

    /// Splits a text at the words that match; empty if no word matches. `field` is the field that has the text,
    /// and `tag` the tag of its language.
    pub(super) fn mark(&self, text: &str, field: TextField, tag: &str) -> Vec<MarkedPart> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        let spans: Vec<WordSpan> = word_spans(text).collect();
        let in_field = self
            .patterns
            .iter()
            .filter(|pattern| [TextField::Anywhere, field].contains(&pattern.place));
        let patterns: Vec<&WordPattern> = in_field.collect();
        let mut parts = Vec::new();
        let mut end = 0;
        let mut at = 0;
        while at < spans.len() {
            // The longest match wins, so that a phrase is marked as a whole.
            let lengths = patterns.iter().filter(|pattern| matches(pattern, &spans[at..], tag));
            let Some(length) = lengths.map(|pattern| pattern.words.len()).max() else {
                at += 1;
                continue;
            };
            let start = spans[at].0.start;
            let last = spans[at + length - 1].0.end;
            if start > end {
                parts.push(MarkedPart { text: text[end..start].to_owned(), marked: false });
            }
            parts.push(MarkedPart { text: text[start..last].to_owned(), marked: true });
            end = last;
            at += length;
        }
        if !parts.is_empty() && end < text.len() {
            parts.push(MarkedPart { text: text[end..].to_owned(), marked: false });
        }
        parts
    }
}

/// Collects the words because of which a document can match the query.
fn collect(query: &Query, found: &mut Vec<WordPattern>) {
    match query {
        Query::Words(words) => found.push(words.clone()),
        Query::And(parts) | Query::Or(parts) => parts.iter().for_each(|part| collect(part, found)),
        // A hit contains no excluded words, and the other conditions have no words.
        Query::All
        | Query::Dates(_)
        | Query::Numbers(_)
        | Query::Present(_)
        | Query::Item(_)
        | Query::Not(_) => {}
    }
}

/// Returns whether `spans` begin with the words of the pattern.
fn matches(pattern: &WordPattern, spans: &[WordSpan], tag: &str) -> bool {
    let count = pattern.words.len();
    count > 0
        && count <= spans.len()
        && pattern.words.iter().zip(spans).enumerate().all(|(at, (searched, (_, found)))| {
            let is_prefix = pattern.prefix && at + 1 == count;
            let is_start = is_prefix && found.folded.starts_with(&searched.folded);
            // An accent in a query is significant (contract search-14).
            let is_same = found.folded == searched.folded
                && (searched.exact.is_none() || found.exact == searched.exact);
            is_start || is_same || (pattern.forms && is_form_of(found, searched, tag))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, text: &str, expected: &str) {
        let words = QueryWords::parse(query, false, &TimeZone::UTC);
        let parts = words.mark(text, TextField::Headline, "sv");
        let shown = parts.iter().map(|part| match part.marked {
            true => format!("[{}]", part.text),
            false => part.text.clone(),
        });
        assert_eq!(shown.collect::<String>(), expected, "{query}");
    }

    #[test]
    fn the_words_of_a_query_are_marked() {
        check("storm", "En STORM, till", "En [STORM], till");
        check("storm OR till", "Storm till", "[Storm] [till]");
        check("\"storm till\"", "Storm, till Storm", "[Storm, till] Storm");
        check("sto*", "Stormar", "[Stormar]");
        check("hund", "Två hundar", "Två [hundar]");
        check("headline:storm -till", "Storm till", "[Storm] till");
        check("body_text:storm byline:till", "Storm till", "");
        check("strommen", "Strömmen", "[Strömmen]");
        check("strömmen", "Strommen", "");
        check("storm", "Regn", "");
        check("(storm", "Storm", "");
        check("", "Storm", "");
    }

    #[test]
    fn exact_words_have_no_other_forms() {
        let words = QueryWords::parse("hund", true, &TimeZone::UTC);
        assert!(words.mark("hundar", TextField::Headline, "sv").is_empty());
        assert_eq!(words.mark("hund", TextField::Headline, "sv").len(), 1);
    }
}
