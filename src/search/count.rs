//! Facets: how many matches have which value (Spec §2 Facet).

use roaring::RoaringBitmap;

use super::index::Index;
use crate::limits::FACET_COUNTS_MAX;
use crate::query::Facet;

/// The most frequent values of `facet` among `found`, the most frequent first, equally frequent
/// ones by their text.
pub(super) fn count(index: &Index, found: &RoaringBitmap, facet: Facet) -> Vec<(String, u64)> {
    let column = &index.facets[facet.index()];
    let mut counts = vec![0_u32; column.values.len()];
    for doc in found {
        for value in column.lists.of(doc) {
            let at = usize::try_from(*value).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
        }
    }
    let mut found: Vec<(u32, &str)> = counts
        .iter()
        .zip(&column.values)
        .filter(|(count, _)| **count > 0)
        .map(|(count, value)| (*count, value.as_str()))
        .collect();
    let first = |one: &(u32, &str), other: &(u32, &str)| {
        other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1))
    };
    if found.len() > FACET_COUNTS_MAX {
        found.select_nth_unstable_by(FACET_COUNTS_MAX, first);
        found.truncate(FACET_COUNTS_MAX);
    }
    found.sort_unstable_by(first);
    found.into_iter().map(|(count, value)| (value.to_owned(), u64::from(count))).collect()
}
