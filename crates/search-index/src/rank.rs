//! Ranks hits by relevance: BM25 with a boost for the headline. Hits that match only by inflected forms come after
//! all hits that match as written.

use std::cmp::Reverse;
use std::sync::Arc;

use query::{Query, TextField, WordPattern};
use roaring::RoaringBitmap;
use tantivy::query::{
    BooleanQuery, BoostQuery, EnableScoring, Occur, PhraseQuery, Query as EngineQuery,
    Scorer as _, TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Term};

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::evaluate::MatchedDocuments;
use crate::index::IndexSnapshot;
use crate::order::{self, LowestRanks};
use crate::request::ResultPage;
use crate::schema::SchemaFields;
use crate::words::fields_of;

/// The boost of a word in the headline.
const HEADLINE_BOOST: f32 = 6.0;
/// The number of documents between two deadline checks.
const DOCS_PER_DEADLINE_CHECK: usize = 4096;

/// Returns the words that make a document relevant: the searched words without the excluded ones.
fn relevant(query: &Query) -> Vec<&WordPattern> {
    if let Query::Words(words) = query {
        return vec![words];
    }
    let (Query::And(parts) | Query::Or(parts)) = query else { return Vec::new() };
    parts.iter().flat_map(relevant).collect()
}

/// Builds the query that scores documents by all words except prefixes; `None` if there are only prefixes.
fn scoring(fields: &SchemaFields, words: &[&WordPattern]) -> Option<BooleanQuery> {
    let mut parts: Vec<(Occur, Box<dyn EngineQuery>)> = Vec::new();
    // A prefix matches many words, whose separate frequencies are not meaningful; `weight_groups` weighs prefixes.
    for words in words.iter().filter(|words| !words.prefix) {
        let tokens = words.tokens();
        for field in fields_of(fields, words.place) {
            let terms: Vec<Term> =
                tokens.phrase.iter().map(|word| Term::from_field_text(field, word)).collect();
            let part: Box<dyn EngineQuery> = match terms.as_slice() {
                [] => continue,
                [term] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs)),
                _ => Box::new(PhraseQuery::new(terms)),
            };
            let part = if field == fields.headline {
                Box::new(BoostQuery::new(part, HEADLINE_BOOST))
            } else {
                part
            };
            // The documents match already; the query only scores them, so no part is required.
            parts.push((Occur::Should, part));
        }
    }
    (!parts.is_empty()).then(|| BooleanQuery::new(parts))
}

/// A group of documents in each segment that get the same weight.
struct WeightGroup {
    sets: Vec<Arc<RoaringBitmap>>,
    weight: f32,
}

/// Computes the weights of prefixes and inflected forms. All words with a prefix, and all forms of a word, count
/// together as one word that occurs once per document.
fn weight_groups(
    snapshot: &IndexSnapshot,
    words: &[&WordPattern],
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<WeightGroup>> {
    let mut groups = Vec::new();
    for words in words.iter().filter(|words| words.prefix || words.forms) {
        let sets = snapshot.documents_with(words, is_over)?;
        let idf =
            inverse_document_frequency(sets.iter().map(|set| set.len()).sum(), snapshot.len());
        groups.push(WeightGroup { sets, weight: idf });
        if words.place == TextField::Anywhere {
            let words = WordPattern { place: TextField::Headline, ..(*words).clone() };
            let sets = snapshot.documents_with(&words, is_over)?;
            // The group above counts every hit once, so this one adds the rest of the boost.
            groups.push(WeightGroup { sets, weight: idf * (HEADLINE_BOOST - 1.0) });
        }
    }
    Ok(groups)
}

/// Computes the weight of words that occur in `matching` of `all` documents: the inverse document frequency of
/// BM25, which is never negative.
#[expect(clippy::cast_precision_loss, reason = "a weight needs no more digits")]
fn inverse_document_frequency(matching: u64, all: u64) -> f32 {
    // Cached sets may contain removed documents, which `all` does not count.
    let all = all.max(matching) as f32;
    let matching = matching as f32;
    ((all - matching + 0.5) / (matching + 0.5)).ln_1p()
}

/// Returns the version numbers of a page, the most relevant first; equally relevant ones are sorted newest first.
/// All hits as written come before hits by inflected forms.
pub(crate) fn by_relevance(
    found: &MatchedDocuments<'_>,
    query: &Query,
    page: ResultPage,
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<u32>> {
    let Some(needed) = order::ranks_needed(found, page) else { return Ok(Vec::new()) };
    let snapshot = found.snapshot;
    let words = relevant(query);
    let scoring = scoring(&snapshot.shared.fields, &words);
    let groups = weight_groups(snapshot, &words, is_over)?;
    if scoring.is_none() && groups.is_empty() {
        // Without words, all hits are equally relevant.
        return Ok(order::by_order(found, true, page));
    }
    let written = query.clone().without_forms();
    let has_forms = written != *query;
    let written = has_forms.then(|| found.documents_matching(&written, is_over)).transpose()?;
    // The frequencies are taken from the whole index, so that scores of different segments can be compared.
    let enabled = EnableScoring::enabled_from_searcher(&snapshot.searcher);
    let weight = scoring.map(|scoring| scoring.weight(enabled)).transpose()?;
    let mut lowest = LowestRanks::new(needed);
    for (index, (segment, set)) in snapshot.segments.iter().zip(&found.sets).enumerate() {
        let scorer = weight.as_ref().map(|weight| weight.scorer(&segment.reader, 1.0));
        let mut scorer = scorer.transpose()?;
        for (count, doc) in set.iter().enumerate() {
            if count % DOCS_PER_DEADLINE_CHECK == 0 {
                ensure_time(is_over)?;
            }
            let mut score = scorer.as_mut().map_or(0.0, |scorer| {
                // A scorer only moves forward, and may be past this document already.
                let reached = if scorer.doc() < doc { scorer.seek(doc) } else { scorer.doc() };
                if reached == doc { scorer.score() } else { 0.0 }
            });
            for group in &groups {
                if group.sets.get(index).is_some_and(|set| set.contains(doc)) {
                    score += group.weight;
                }
            }
            // Scores are never negative, so their bits have the same order.
            let bits = Reverse(score.max(0.0).to_bits());
            let is_inflected = written.as_ref().is_some_and(|sets| !sets[index].contains(doc));
            // The score alone excludes most documents, which saves the lookup of their positions.
            if !lowest.is_beyond((is_inflected, bits, i64::MIN)) {
                let position = segment.place(doc);
                let key = (is_inflected, bits, !position.order_ms);
                lowest.add((key, !position.number, position.number));
            }
        }
    }
    Ok(order::page_numbers(lowest.finish(), page))
}
