//! Selects the requested page of hits without sorting all matches.

use query::DateField;

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::evaluate::MatchedDocuments;
use crate::request::ResultPage;

/// The number of documents between two deadline checks.
const DOCS_PER_DEADLINE_CHECK: usize = 65_536;

/// Returns the version numbers of a page in the order of `_tstamp`, by which each segment is sorted.
pub(crate) fn by_order(
    found: &MatchedDocuments<'_>,
    descending: bool,
    page: ResultPage,
) -> Vec<u32> {
    let Some(needed) = ranks_needed(found, page) else { return Vec::new() };
    let mut ranks = Vec::new();
    for (segment, set) in found.snapshot.segments.iter().zip(&found.sets) {
        let mut lowest = LowestRanks::new(needed);
        // Documents with equal times are unsorted, so the last group with equal times is examined as a whole.
        let mut docs: Box<dyn Iterator<Item = u32>> =
            // Documents are numbered by `_tstamp`, the latest first.
            if descending { Box::new(set.iter()) } else { Box::new(set.iter().rev()) };
        let mut last = None;
        let mut seen = 0;
        docs.by_ref()
            .map(|doc| segment.place(doc))
            .take_while(|position| {
                seen += 1;
                let is_needed = seen <= needed || last == Some(position.order_ms);
                last = Some(position.order_ms);
                is_needed
            })
            .for_each(|hit| lowest.add(rank_by_time(hit.order_ms, hit.number, descending)));
        ranks.extend(lowest.finish());
    }
    page_numbers(ranks, page)
}

/// Returns the version numbers of a page in the order of `date`; versions without it come last.
pub(crate) fn by_date(
    found: &MatchedDocuments<'_>,
    date: DateField,
    descending: bool,
    page: ResultPage,
    is_over: DeadlineCheck<'_>,
) -> Result<Vec<u32>> {
    let Some(needed) = ranks_needed(found, page) else { return Ok(Vec::new()) };
    let mut lowest = LowestRanks::new(needed);
    for (segment, set) in found.snapshot.segments.iter().zip(&found.sets) {
        let column = segment.dates(date)?;
        for (count, doc) in set.iter().enumerate() {
            if count % DOCS_PER_DEADLINE_CHECK == 0 {
                ensure_time(is_over)?;
            }
            let value = column.first(doc);
            // Skipping early saves the lookup of the number for most documents.
            if value.is_some_and(|ms| lowest.is_beyond(if descending { !ms } else { ms })) {
                continue;
            }
            let number = segment.number(doc);
            lowest.add(match value {
                Some(ms) => rank_by_time(ms, number, descending),
                // Versions without the date come last in both directions, sorted by number.
                None => (i64::MAX, rank_by_time(0, number, descending).1, number),
            });
        }
    }
    Ok(page_numbers(lowest.finish(), page))
}

/// A version's rank in an order, lowest first: primary key, secondary key, version number.
pub(crate) type Rank = (i64, u32, u32);

/// Returns the rank of a version by a time and its number.
pub(crate) fn rank_by_time(ms: i64, number: u32, descending: bool) -> Rank {
    // The bitwise complement reverses the order, and unlike negation it cannot overflow.
    if descending { (!ms, !number, number) } else { (ms, number, number) }
}

/// Returns the number of lowest ranks that determine a page; `None` for an empty page.
pub(crate) fn ranks_needed(found: &MatchedDocuments<'_>, page: ResultPage) -> Option<usize> {
    let total = usize::try_from(found.total()).unwrap_or(usize::MAX);
    // The total bounds the selection: a large `skip` costs no more than there are hits.
    let needed = page.skip.saturating_add(page.size).min(total);
    (page.size > 0 && page.skip < needed).then_some(needed)
}

/// Returns the version numbers of a page from ranked versions.
pub(crate) fn page_numbers<K: Ord + Copy>(
    mut ranked: Vec<(K, u32, u32)>,
    page: ResultPage,
) -> Vec<u32> {
    ranked.sort_unstable();
    ranked.into_iter().skip(page.skip).take(page.size).map(|(_, _, number)| number).collect()
}

/// Selects the lowest of many ranks, with memory for twice as many as needed.
pub(crate) struct LowestRanks<K> {
    needed: usize,
    ranks: Vec<(K, u32, u32)>,
    /// Ranks from this one on are not among the lowest.
    bound: Option<(K, u32, u32)>,
}

impl<K: Ord + Copy> LowestRanks<K> {
    pub(crate) fn new(needed: usize) -> Self {
        Self { needed, ranks: Vec::new(), bound: None }
    }

    /// Returns whether no rank with this key can be among the lowest.
    pub(crate) fn is_beyond(&self, key: K) -> bool {
        self.bound.is_some_and(|bound| key > bound.0)
    }

    pub(crate) fn add(&mut self, rank: (K, u32, u32)) {
        if self.bound.is_some_and(|bound| rank >= bound) {
            return;
        }
        self.ranks.push(rank);
        // A selection needs linear time, so it waits until it can drop half of the ranks.
        if self.ranks.len() >= self.needed.saturating_mul(2).max(64) {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.ranks.len() > self.needed && self.needed > 0 {
            self.ranks.select_nth_unstable(self.needed - 1);
            self.ranks.truncate(self.needed);
            self.bound = self.ranks.last().copied();
        }
    }

    /// Returns the lowest ranks in no particular order.
    pub(crate) fn finish(mut self) -> Vec<(K, u32, u32)> {
        self.shrink();
        self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_kept_in_any_input_order() {
        let ranks: Vec<Rank> = (0..1000).map(|at| (at * 7919 % 1000 / 3, 0, 0)).collect();
        let ranks: Vec<Rank> =
            ranks.iter().zip(0_u32..).map(|((key, ..), number)| (*key, number, number)).collect();
        let mut lowest = LowestRanks::new(50);
        ranks.iter().for_each(|rank| lowest.add(*rank));
        let mut expected = ranks;
        expected.sort_unstable();
        expected.truncate(50);
        let mut found = lowest.finish();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
