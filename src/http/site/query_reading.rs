//! Interprets the text of the search box as a query, or as plain words if it is not a valid query.

use jiff::tz::TimeZone;
use serde::Serialize;

/// Maximum number of words that are used from a text that is not a valid query.
const WORDS_MAX: usize = 20;

/// The interpretation of the text in the search box.
#[derive(Debug)]
pub(super) struct QueryReading {
    pub(super) words: String,
    /// The notice if the text is not a valid query.
    pub(super) notice: Option<QueryNotice>,
}

/// The syntax error in a text, and the words that are searched for instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct QueryNotice {
    /// True if a quotation mark is not closed.
    pub(super) unclosed_quote: bool,
    pub(super) mistake: String,
    pub(super) words: String,
}

impl QueryReading {
    /// Interprets `text`. Dates are in the time zone `zone`.
    pub(super) fn parse(text: &str, zone: &TimeZone) -> Self {
        // Parsed without enclosing parentheses, in which `a) OR (b` would become valid.
        let Err(error) = query::parse_with_forms(text, zone) else {
            return Self { words: text.trim().to_owned(), notice: None };
        };
        let words = plain_words(text);
        // The page has a separate message for a missing quotation mark.
        let unclosed_quote = error.what == "expected a closing quote";
        let mistake = error.to_string();
        let notice = QueryNotice { unclosed_quote, mistake, words: words.clone() };
        Self { words, notice: Some(notice) }
    }
}

/// Extracts the words of a text without query syntax.
fn plain_words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // These operators could make the words an invalid query again.
    let words = words.filter(|word| !matches!(*word, "AND" | "OR" | "NOT"));
    words.take(WORDS_MAX).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &str, is_noticed: bool) {
        let reading = QueryReading::parse(text, &TimeZone::UTC);
        assert_eq!(
            (reading.words.as_str(), reading.notice.is_some()),
            (words, is_noticed),
            "{text}"
        );
        query::parse_with_forms(&reading.words, &TimeZone::UTC).unwrap();
    }

    #[test]
    fn what_is_no_query_is_searched_for_as_words() {
        check("sea OR lake", "sea OR lake", false);
        check("https://x.example/item/image/a-1", "https://x.example/item/image/a-1", false);
        check("\"Stefan", "Stefan", true);
        check("Brand:", "Brand", true);
        check("a) OR (b", "a b", true);
        check("NOT", "", true);
        check("\"", "", true);
        assert!(QueryReading::parse("\"a b", &TimeZone::UTC).notice.unwrap().unclosed_quote);
        assert!(!QueryReading::parse("(a", &TimeZone::UTC).notice.unwrap().unclosed_quote);
    }
}
