//! `GET /content/v1/{mediaType}/suggest`: suggests completions of a text that is being typed into a search box, or a
//! spelling of a complete text with which the search finds something (contract search-26).

use api::Json;
use api::content::{FacetCount, SUGGESTED_FACETS, SuggestTexts, Suggestions};

use super::parameters::{ParsedFilters, SearchContext};
use super::{BasicAuth, authenticate};
use crate::http::api::binding::ApiRequest;
use crate::http::protocol::request::ValidationErrors;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::search::{SearchSuggestions, SuggestionRequest};
use query::{Query, Word, words};

pub(super) async fn suggest(request: ApiRequest<SuggestTexts>) -> Result<Json<Suggestions>> {
    let app = &request.app;
    let now = clock::now();
    let media_type = request.segment("mediaType").unwrap_or_default();
    let caller = authenticate(app, &request.parts, media_type, BasicAuth::Refused, now).await?;
    let context = SearchContext::new(app, caller.as_deref(), now);
    let checked =
        request.checked_parameters(|read, problems| check_request(&context, &read, problems))?;
    let found = match checked {
        Some(checked) => app.shared.archive.content.engine().suggest(checked, now).await?,
        None => SearchSuggestions::default(),
    };
    Ok(Json(view(found)))
}

/// Checks the parameters; `None` if one is invalid, `Some(None)` if all are valid and there is nothing to suggest for
/// the text.
fn check_request(
    context: &SearchContext<'_>,
    read: &SuggestTexts,
    problems: &mut ValidationErrors,
) -> Option<Option<SuggestionRequest>> {
    // The text is not a query yet, so the search in which suggestions are counted is for all items.
    let criteria = context.criteria(Ok(Query::All), &read.scope, problems);
    let filters = problems.check(ParsedFilters::parse(&read.filters));
    // Every parameter is checked before the first `?`, so that all problems are reported together.
    let mut criteria = filters?.narrow(criteria?);
    criteria.media_type = read.media_type;
    (criteria.from, criteria.until) = context.bounds(&read.period);
    criteria.facets = SUGGESTED_FACETS.to_vec();
    let respells = read.spelling;
    let typed = if respells { plain_words(&read.q) } else { words_to_complete(&read.q) };
    let size = read.size;
    Some(typed.map(|typed| SuggestionRequest { criteria, typed, size, respells }))
}

/// Returns the words of a text; `None` if it has no words, or contains syntax of the query language.
fn plain_words(text: &str) -> Option<Vec<Word>> {
    let has_syntax =
        text.contains(is_query_sign) || text.split_whitespace().any(is_query_operator);
    let found: Vec<Word> = words(text).collect();
    (!has_syntax && !found.is_empty()).then_some(found)
}

/// Returns whether the query language gives the character a meaning.
fn is_query_sign(c: char) -> bool {
    "\"“”()[]{}:*^~\\/<>=&|!".contains(c)
}

/// Returns whether the query language reads the word, or its first character, as an operator.
fn is_query_operator(word: &str) -> bool {
    matches!(word, "AND" | "OR" | "NOT") || word.starts_with(['-', '+'])
}

/// Returns the words of a text whose last word is being typed, as [`plain_words`] does. `None` also after a space,
/// because the next word has no letters yet.
fn words_to_complete(text: &str) -> Option<Vec<Word>> {
    plain_words(text).filter(|_| text.chars().next_back().is_some_and(char::is_alphanumeric))
}

fn view(found: SearchSuggestions) -> Suggestions {
    let facets = found.values.into_iter();
    let facets = facets.map(|(facet, counted)| (facet.as_str().to_owned(), counts(counted)));
    Suggestions { words: counts(found.words), facets: facets.collect(), spelling: found.spelling }
}

fn counts(counted: Vec<(String, u64)>) -> Vec<FacetCount> {
    counted.into_iter().map(|(key, count)| FacetCount { key, count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_completed() {
        let folded = |found: Option<Vec<Word>>| {
            found.map(|words| words.into_iter().map(|word| word.folded).collect::<Vec<_>>())
        };
        let check = |text: &str, expected: Option<&[&str]>| {
            let expected = expected
                .map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(folded(words_to_complete(text)), expected, "{text}");
        };
        check("berg", Some(&["berg"]));
        check("Storm i Ky", Some(&["storm", "i", "ky"]));
        check("e-post", Some(&["e", "post"]));
        for text in ["", " ", "berg ", "\"berg", "byline:be", "storm OR be", "storm -be", "(be"] {
            check(text, None);
        }
        assert_eq!(folded(plain_words("berg ")), Some(vec!["berg".to_owned()]));
    }
}
