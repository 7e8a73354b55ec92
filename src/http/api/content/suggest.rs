//! `GET /content/v1/{mediaType}/suggest`: suggests completions of a text that is being typed (contract search-26).

use axum::extract::{Request, State};
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

use super::parameters::{self, ContentParameters};
use super::{BasicAuth, RequestContext, Segment};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::http::protocol::request::QueryParameters;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{SUGGESTION_CHARS_MAX, SUGGESTIONS_DEFAULT, SUGGESTIONS_MAX};
use crate::storage::search::{SearchSuggestions, SuggestionRequest};
use model::MediaType;
use query::{Facet, Query, Word, words};

/// The facets whose values are suggested.
const FACETS: [Facet; 3] = [Facet::PersonName, Facet::PlaceName, Facet::SubjectName];

pub(super) async fn suggest(
    State(app): State<AppState>,
    media_type: Segment,
    request: Request,
) -> ApiResult {
    let media_type = request::path_segment("mediaType", media_type)?;
    let context = RequestContext::new(&app, request);
    let caller = context.caller(&app, &media_type, BasicAuth::Refused).await?;
    let query = QueryParameters::from_uri(&context.uri)?;
    let parameters = ContentParameters::new(&query, &app.shared.site.zone, caller.as_deref());
    let found = match parse(parameters, &media_type, &context, &app)? {
        Some(wanted) => app.shared.archive.content.engine().suggest(wanted, context.now).await?,
        None => SearchSuggestions::default(),
    };
    api::json(&answer(&found))
}

/// Parses the parameters; `None` if the text cannot be completed.
fn parse(
    mut parameters: ContentParameters<'_>,
    media_type: &str,
    context: &RequestContext,
    app: &AppState,
) -> Result<Option<SuggestionRequest>> {
    let request = read_request(&mut parameters, media_type, context, app);
    parameters.finish(request)
}

/// Reads the parameters; `None` if one is invalid, `Some(None)` if the text cannot be completed.
fn read_request(
    parameters: &mut ContentParameters<'_>,
    media_type: &str,
    context: &RequestContext,
    app: &AppState,
) -> Option<Option<SuggestionRequest>> {
    let media_type = parameters.media_type(media_type, MediaType::iter());
    let text = parameters.read(text);
    // The text is not a query yet, so the selection does not include it.
    let selection = parameters.selection_without_query();
    let filters = parameters.filters();
    let period = parameters.period();
    let size = parameters.count("s", SUGGESTIONS_DEFAULT, SUGGESTIONS_MAX);
    let respells = parameters.read(|query| {
        query.parsed("spelling", "type", "true or false", |text| text.parse::<bool>().ok())
    });
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let text = text?;
    let size = size?;
    let respells = respells? == Some(true);
    let (filters, facet_values) = filters?;
    let mut criteria = parameters::search_request(selection?, parameters.caller(), context.now);
    criteria.query = Query::and(vec![criteria.query, filters]);
    criteria.facet_values = facet_values;
    criteria.media_type = media_type?;
    (criteria.from, criteria.until) = period?.bounds(context.now, &app.shared.site.zone);
    criteria.facets = FACETS.to_vec();
    let typed = if respells { complete_words(text) } else { words_to_complete(text) };
    Some(typed.map(|typed| SuggestionRequest { criteria, typed, size, respells }))
}

/// Reads the text, which has at most [`SUGGESTION_CHARS_MAX`] characters.
fn text(query: &QueryParameters) -> Result<&str> {
    let text = query.text("q")?.unwrap_or_default();
    if text.chars().count() > SUGGESTION_CHARS_MAX {
        let message = format!("q has more than {SUGGESTION_CHARS_MAX} characters");
        return Err(Error::invalid("query", "q", "maximum", message));
    }
    Ok(text)
}

/// Returns the words of a text; `None` if it has no words, or contains syntax of the query language.
fn complete_words(text: &str) -> Option<Vec<Word>> {
    let has_syntax = text.contains(is_sign) || text.split_whitespace().any(is_operator);
    let found: Vec<Word> = words(text).collect();
    (!has_syntax && !found.is_empty()).then_some(found)
}

/// Returns whether the query language gives the character a meaning.
fn is_sign(c: char) -> bool {
    "\"“”()[]{}:*^~\\/<>=&|!".contains(c)
}

/// Returns whether the query language reads the word, or its first character, as an operator.
fn is_operator(word: &str) -> bool {
    matches!(word, "AND" | "OR" | "NOT") || word.starts_with(['-', '+'])
}

/// Returns the words of a text whose last word is being typed. `None` also after a space, because the next word
/// has no letters yet.
fn words_to_complete(text: &str) -> Option<Vec<Word>> {
    complete_words(text).filter(|_| text.chars().next_back().is_some_and(char::is_alphanumeric))
}

/// Builds `{"words": […], "facets": {…}, "spelling": "…"}`; `spelling` is absent if there is no correction.
fn answer(found: &SearchSuggestions) -> Value {
    let facets: Map<String, Value> = found
        .values
        .iter()
        .map(|(facet, counted)| (facet.as_str().to_owned(), list_json(counted)))
        .collect();
    let mut answer = json!({ "words": list_json(&found.words), "facets": facets });
    if let Some(spelling) = &found.spelling {
        answer["spelling"] = json!(spelling);
    }
    answer
}

fn list_json(counted: &[(String, u64)]) -> Value {
    counted.iter().map(|(key, count)| json!({ "key": key, "count": count })).collect()
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
        assert_eq!(folded(complete_words("berg ")), Some(vec!["berg".to_owned()]));
    }

    #[test]
    fn an_answer_names_what_was_found() {
        let found = SearchSuggestions {
            words: vec![("berg".to_owned(), 2)],
            values: vec![(Facet::PersonName, Vec::new())],
            spelling: None,
        };
        let expected =
            json!({ "words": [{ "key": "berg", "count": 2 }], "facets": { "person.name": [] } });
        assert_eq!(answer(&found), expected);
    }
}
