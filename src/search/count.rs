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
    column.lists.count(found, &mut counts);
    // Few of many values are told: how often one must be there at least is found without a look
    // at the texts.
    let mut frequent: Vec<u32> = counts.iter().copied().filter(|count| *count > 0).collect();
    let least = if frequent.len() > FACET_COUNTS_MAX {
        let (_, least, _) =
            frequent.select_nth_unstable_by(FACET_COUNTS_MAX - 1, |one, other| other.cmp(one));
        *least
    } else {
        1
    };
    let values = counts.iter().zip(&column.values).filter(|(count, _)| **count >= least);
    let mut values: Vec<(u32, &str)> =
        values.map(|(count, value)| (*count, value.as_str())).collect();
    let first = |one: &(u32, &str), other: &(u32, &str)| {
        other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1))
    };
    if values.len() > FACET_COUNTS_MAX {
        values.select_nth_unstable_by(FACET_COUNTS_MAX, first);
        values.truncate(FACET_COUNTS_MAX);
    }
    values.sort_unstable_by(first);
    values.into_iter().map(|(count, value)| (value.to_owned(), u64::from(count))).collect()
}
