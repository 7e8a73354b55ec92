//! Counts the values of facets among the matches.

use std::cmp::Reverse;
use std::sync::PoisonError;

use query::Facet;

use crate::error::{DeadlineCheck, Result};
use crate::evaluate::MatchedDocuments;
use crate::request::FacetCounts;
use crate::sets::usize_of;

/// Maximum number of values of one facet in a result, the most frequent ones.
const FACET_COUNTS_MAX: usize = 100;

impl MatchedDocuments<'_> {
    /// Counts the most frequent values of each facet among the matches.
    pub fn facets(
        &self,
        facets: &[Facet],
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<FacetCounts>> {
        let counted = facets.iter().map(|&facet| {
            let counts = most_frequent(self, facet, FACET_COUNTS_MAX, &|_| true, is_over);
            counts.map(|counts| (facet, counts))
        });
        counted.collect()
    }
}

/// Returns the most frequent values of `facet` that `is_wanted` accepts, at most `size` of them in descending
/// order, each with its number of matches; ties are ordered by text.
pub(crate) fn most_frequent(
    found: &MatchedDocuments<'_>,
    facet: Facet,
    size: usize,
    is_wanted: &dyn Fn(&str) -> bool,
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<(String, u64)>> {
    let counts = counts(found, facet, is_over)?;
    let lock = &found.snapshot.shared.dictionaries.0[facet.index()];
    let dictionary = lock.read().unwrap_or_else(PoisonError::into_inner);
    let counted = || counts.iter().zip(&dictionary.values).filter(|(count, _)| **count > 0);
    // A selection finds the smallest count among the top values without comparing texts.
    let mut frequent: Vec<u64> =
        counted().filter(|(_, value)| is_wanted(value)).map(|(count, _)| *count).collect();
    let mut threshold = 1;
    if frequent.len() > size && size > 0 {
        threshold = *frequent.select_nth_unstable_by_key(size - 1, |count| Reverse(*count)).1;
    }
    let top = counted().filter(|(count, value)| **count >= threshold && is_wanted(value));
    let mut values: Vec<(u64, &str)> = top.map(|(count, value)| (*count, &**value)).collect();
    values.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    values.truncate(size);
    Ok(values.into_iter().map(|(count, value)| (value.to_owned(), count)).collect())
}

/// Returns the number of matches with each value of `facet`, by the number of the value.
fn counts(
    found: &MatchedDocuments<'_>,
    facet: Facet,
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<u64>> {
    let dictionaries = &found.snapshot.shared.dictionaries;
    let mut counts: Vec<u64> = Vec::new();
    for (segment, set) in found.snapshot.segments.iter().zip(&found.sets) {
        // A dictionary is read at the first count, which a segment without matches does not need.
        if set.is_empty() {
            continue;
        }
        let values =
            segment.columns.values(facet, || dictionaries.read(&segment.reader, facet))?;
        let cache = &found.snapshot.shared.set_cache.facets;
        let local = cache.get_or_count(segment.id(), facet, set, || {
            values.count(segment.max_doc(), set, is_over)
        })?;
        for (number, count) in values.numbers.iter().zip(local.iter().copied()) {
            // Most values of a segment have no match. Skipping them keeps the array short.
            if count > 0 {
                let at = usize_of(*number);
                if at >= counts.len() {
                    counts.resize(at + 1, 0);
                }
                counts[at] += u64::from(count);
            }
        }
    }
    Ok(counts)
}
