//! Counts the values of facets among the matches.
//!
//! Each segment has a dictionary of a facet's values. A value gets an index-wide number when a segment that
//! contains it is counted for the first time. A segment caches the index-wide numbers of its dictionary entries,
//! so counting only adds up numbers in an array.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use query::Facet;
use roaring::RoaringBitmap;
use strum::EnumCount;
use tantivy::columnar::{Cardinality, Column};

use crate::deadline::{DeadlineCheck, ensure_time};
use crate::error::Result;
use crate::evaluate::MatchedDocuments;
use crate::schema::facet_column;
use crate::segment::IndexSegment;
use crate::sets::usize_of;

/// Documents counted between two deadline checks.
const DOCS_PER_DEADLINE_CHECK: usize = 65_536;

/// The values of every facet in the whole index, by number.
#[derive(Default)]
pub(crate) struct FacetDictionaries([RwLock<FacetDictionary>; Facet::COUNT]);

/// The numbered values of one facet.
#[derive(Default)]
struct FacetDictionary {
    values: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// The index-wide numbers of one facet's values in one segment, by position in its dictionary.
pub(crate) struct SegmentFacetValues {
    numbers: Vec<u32>,
    /// Number of documents with each value in the segment, including removed ones.
    counts: Vec<u32>,
    column: Column<u64>,
}

impl FacetDictionary {
    fn number(&mut self, value: &str) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let value: Arc<str> = value.into();
        self.values.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
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

/// Returns the documents of a segment with a value of `facet`, possibly including removed ones.
pub(crate) fn documents_with(
    segment: &IndexSegment,
    facet: Facet,
    value: &str,
) -> Result<RoaringBitmap> {
    let column = segment.reader.fast_fields().str(facet_column(facet))?;
    // A segment in which no document has the facet has no column.
    let Some(column) = column else { return Ok(RoaringBitmap::new()) };
    let ordinal = column.dictionary().term_ord(value)?;
    let Some(ordinal) = ordinal else { return Ok(RoaringBitmap::new()) };
    let mut docs = Vec::new();
    let all = 0..segment.max_doc();
    column.ords().get_docids_for_value_range(ordinal..=ordinal, all, &mut docs);
    Ok(docs.into_iter().collect())
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
        let values = segment.columns.values(facet, || dictionaries.read(segment, facet))?;
        let cache = &found.snapshot.shared.set_cache.facets;
        let local = cache
            .get_or_count(segment.id(), facet, set, || values.count(segment, set, is_over))?;
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

impl FacetDictionaries {
    /// Assigns numbers to the values of a segment.
    fn read(&self, segment: &IndexSegment, facet: Facet) -> Result<SegmentFacetValues> {
        let column = segment.reader.fast_fields().str(facet_column(facet))?;
        // A segment in which no document has the facet has no column.
        let Some(column) = column else {
            let column = Column::build_empty_column(segment.max_doc());
            return Ok(SegmentFacetValues { numbers: Vec::new(), counts: Vec::new(), column });
        };
        let mut numbers = Vec::with_capacity(column.num_terms());
        {
            // The lock is held while the dictionary is read, but not while the column is counted.
            let lock = &self.0[facet.index()];
            let mut dictionary = lock.write().unwrap_or_else(PoisonError::into_inner);
            let mut entries = column.dictionary().stream()?;
            while entries.advance() {
                numbers.push(dictionary.number(&String::from_utf8_lossy(entries.key())));
            }
        }
        let column = column.ords().clone();
        let mut counts = vec![0; numbers.len()];
        for ordinal in column.values.iter() {
            add(&mut counts, ordinal);
        }
        Ok(SegmentFacetValues { numbers, counts, column })
    }
}

fn add(counts: &mut [u32], ordinal: u64) {
    if let Some(count) = usize::try_from(ordinal).ok().and_then(|at| counts.get_mut(at)) {
        *count += 1;
    }
}

impl SegmentFacetValues {
    /// Counts the documents of `set` with each value, by position in the segment's dictionary.
    fn count(
        &self,
        segment: &IndexSegment,
        set: &RoaringBitmap,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<u32>> {
        // For more than half of the documents it is faster to count the other documents and subtract them.
        let doc_count = u64::from(segment.max_doc());
        if set.len() * 2 <= doc_count {
            let mut counts = vec![0; self.numbers.len()];
            self.each(set, is_over, |ordinal| add(&mut counts, ordinal))?;
            return Ok(counts);
        }
        let mut excluded = RoaringBitmap::new();
        excluded.insert_range(0..segment.max_doc());
        excluded -= set;
        // Removed documents are in both counts, so they cancel out.
        let mut counts = self.counts.clone();
        self.each(&excluded, is_over, |ordinal| {
            if let Some(count) = usize::try_from(ordinal).ok().and_then(|at| counts.get_mut(at)) {
                *count -= 1;
            }
        })?;
        Ok(counts)
    }

    /// Calls `each` with the dictionary position of every value of every document of `set`.
    fn each(
        &self,
        set: &RoaringBitmap,
        is_over: DeadlineCheck<'_>,
        mut each: impl FnMut(u64),
    ) -> Result<()> {
        let is_single_valued = matches!(self.column.get_cardinality(), Cardinality::Full);
        for (count, doc) in set.iter().enumerate() {
            if count % DOCS_PER_DEADLINE_CHECK == 0 {
                ensure_time(is_over)?;
            }
            // If each document has one value, its number is also the index of the value.
            if is_single_valued {
                each(self.column.values.get_val(doc));
            } else {
                self.column.values_for_doc(doc).for_each(&mut each);
            }
        }
        Ok(())
    }
}
