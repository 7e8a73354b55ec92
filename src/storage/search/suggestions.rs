//! Suggests completions or spellings of a typed text, from the results of a search.

use jiff::Timestamp;

use super::shared::{log_position, require_replaced};
use super::{SearchCriteria, SearchEngine};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::Result;
use query::{Facet, Word};
use search_index::{CompletionRequest, Completions, IndexError};

/// Timeout for suggestions while a text is typed: later ones are of no use.
const SUGGESTION_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(2);
/// Time for another spelling of a search without hits, which anybody can ask for: after it there is none.
const RESPELLING_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(150);

/// A text that a user types, and the search that it belongs to.
#[derive(Clone, Debug)]
pub struct SuggestionRequest {
    /// The search without the text. Values of its facets are suggested.
    pub criteria: SearchCriteria,
    /// The words of the text.
    pub typed: Vec<Word>,
    /// Maximum number of words, and of values of each facet.
    pub size: usize,
    /// True if the words are complete, and are to be respelled if the search finds nothing.
    pub respells: bool,
}

/// Completions and spellings of a text. Each word and value has the number of items that the search would
/// find.
#[derive(Clone, Debug, Default)]
pub struct SearchSuggestions {
    /// Words that begin with the last word of the text.
    pub words: Vec<(String, u64)>,
    /// Values of the facets that contain the text.
    pub values: Vec<(Facet, Vec<(String, u64)>)>,
    /// The text in a spelling with which the search finds items.
    pub spelling: Option<String>,
}

impl SearchEngine {
    /// Suggests completions of `request`'s text, or a spelling. Only content that its search finds is
    /// suggested and counted.
    ///
    /// Fails if too many searches wait, if it exceeds its time limit, and while there is no complete index.
    pub async fn suggest(
        &self,
        request: SuggestionRequest,
        now: Timestamp,
    ) -> Result<SearchSuggestions> {
        let shared = &self.shared;
        let index = shared.index()?;
        let SuggestionRequest { criteria, typed, size, respells } = request;
        let prepared = shared.prepare(criteria, now).await?;
        let snapshot = index.snapshot();
        let position = log_position(snapshot.position());
        let replaced = shared.db.read(move |tx| tx.replaced_since(&position)).await?;
        let replaced = require_replaced(replaced)?;
        let suggested = shared.run_on_pool(SUGGESTION_TIME_MAX, move |is_expired| {
            let found = snapshot.find(&prepared.filter, &replaced, is_expired)?;
            if respells {
                let watch = Stopwatch::start();
                let respelled = found
                    .respell(&typed, &|| watch.elapsed() > RESPELLING_TIME_MAX || is_expired());
                let spelling = match respelled {
                    Ok(words) => words.map(|words| words.join(" ")),
                    // The search is answered without a spelling.
                    Err(IndexError::TimedOut) => None,
                    Err(cause @ (IndexError::Engine(_) | IndexError::Io(_))) => return Err(cause),
                };
                return Ok(SearchSuggestions { spelling, ..SearchSuggestions::default() });
            }
            let request = CompletionRequest { typed: &typed, facets: &prepared.facets, size };
            let Completions { words, values } = found.complete(request, is_expired)?;
            Ok(SearchSuggestions { words, values, spelling: None })
        });
        suggested.await
    }
}
