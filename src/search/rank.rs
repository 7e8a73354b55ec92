//! Relevance: BM25 over the headline and the rest, the headline weighted above.
//!
//! A word that stands in the headline counts as [`HEADLINE`] words (BM25F: weights before
//! saturation, Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields",
//! 2004). How often a word stands in the rest is known in the steps 1, 2, 4, 8, which the index
//! holds as sets: so a common word is weighted over a million items in milliseconds.

use roaring::RoaringBitmap;

use super::evaluate::LookedUp;
use super::index::Index;
use super::order;
use crate::db::{DbError, Lookup};
use crate::query::{Place, Query, Words};

/// Weight of a word in the headline, in words of the rest.
const HEADLINE: u8 = 6;
/// How fast further occurrences of a word lose weight; the usual value.
const K1: f32 = 1.2;
/// How much long documents lose; the usual value.
const B: f32 = 0.75;
/// The steps of how often a word stands in the rest.
const STEPS: [u8; 3] = [2, 4, 8];

/// The words that make a document relevant: those that are asked for, not those that are excluded.
fn wanted(query: &Query) -> Vec<&Words> {
    match query {
        Query::All | Query::Dates(_) | Query::Not(_) => Vec::new(),
        Query::Words(words) => vec![words],
        Query::And(parts) | Query::Or(parts) => parts.iter().flat_map(wanted).collect(),
    }
}

/// The same words in the headline, where that is a part of where they may stand.
fn in_headline(words: &Words) -> Option<Lookup> {
    match words.place {
        Place::Anywhere => Some(Lookup::of(&Words { place: Place::Headline, ..words.clone() })),
        Place::Headline | Place::Description | Place::Body | Place::Named(_) => None,
    }
}

/// Look-ups of how often a single word stands in the rest.
fn often(words: &Words) -> Vec<(Lookup, u8)> {
    match (words.place, words.words.as_slice(), words.prefix) {
        (Place::Anywhere, [word], false) => {
            STEPS.iter().map(|step| (Lookup::often(&word.folded, *step), *step)).collect()
        }
        _ => Vec::new(),
    }
}

/// Looks up what the weights of `query` need beyond the matches.
pub(super) fn look_up(
    query: &Query,
    known: &mut LookedUp,
    find: &mut dyn FnMut(&Lookup) -> Result<std::sync::Arc<RoaringBitmap>, DbError>,
) -> Result<(), DbError> {
    for words in wanted(query) {
        for lookup in in_headline(words).into_iter().chain(often(words).into_iter().map(first)) {
            known.add(lookup, find)?;
        }
    }
    Ok(())
}

fn first((lookup, _): (Lookup, u8)) -> Lookup {
    lookup
}

/// The items `skip..skip + size` of `found`, the most relevant first, equally relevant ones newest
/// first.
pub(super) fn by_relevance(
    index: &Index,
    query: &Query,
    (found, words): (&RoaringBitmap, &LookedUp),
    (skip, size): (usize, usize),
) -> Vec<u32> {
    let docs: Vec<u32> = found.iter().collect();
    let wanted_len = skip.saturating_add(size).min(docs.len());
    if size == 0 || skip >= wanted_len {
        return Vec::new();
    }
    let mut scores = vec![0.0_f32; docs.len()];
    let mut counts = vec![0_u8; docs.len()];
    let average = index.average_length();
    for leaf in wanted(query) {
        let Some(holding) = words.get(&Lookup::of(leaf)) else { continue };
        counts.fill(0);
        mark(&docs, found, holding, |count| *count = 1, &mut counts);
        for (lookup, step) in often(leaf) {
            let Some(holding) = words.get(&lookup) else { continue };
            mark(&docs, found, holding, |count| *count = step, &mut counts);
        }
        if leaf.place == Place::Headline {
            mark(&docs, found, holding, |count| *count = HEADLINE, &mut counts);
        }
        if let Some(holding) = in_headline(leaf).and_then(|lookup| words.get(&lookup)) {
            let raise = |count: &mut u8| *count = HEADLINE + count.saturating_sub(1);
            mark(&docs, found, holding, raise, &mut counts);
        }
        let weight = rarity(holding.len(), index.live.len());
        for ((score, count), doc) in scores.iter_mut().zip(&counts).zip(&docs) {
            if *count > 0 {
                let count = f32::from(*count);
                let long = f32::from(index.length.get(*doc)) / average;
                let saturated = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * long));
                *score += weight * saturated;
            }
        }
    }
    // Scores are above zero, so their bits order as they do; the least place is the best.
    let places = docs.iter().zip(&scores).map(|(doc, score)| {
        let newest = index.order.get(*doc).wrapping_neg().wrapping_sub(1);
        ((u32::MAX - score.to_bits(), newest, u32::MAX - doc), *doc)
    });
    order::least(places, wanted_len).into_iter().skip(skip).map(|(_, doc)| doc).collect()
}

/// Applies `change` to the count of every item of `found` that `holding` has; `docs` lists `found`.
fn mark(
    docs: &[u32],
    found: &RoaringBitmap,
    holding: &RoaringBitmap,
    change: impl Fn(&mut u8),
    counts: &mut [u8],
) {
    let both = found & holding;
    let mut at = 0;
    for doc in &both {
        while docs[at] != doc {
            at += 1;
        }
        change(&mut counts[at]);
    }
}

/// The weight of words that `holding` of `all` items have (the inverse document frequency of BM25,
/// never negative).
fn rarity(holding: u64, all: u64) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a weight needs no more digits")]
    let (holding, all) = (holding as f32, all.max(holding) as f32);
    ((all - holding + 0.5) / (holding + 0.5)).ln_1p()
}
