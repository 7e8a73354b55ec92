//! Numbers the values of facets: in the whole index, and in each segment.
//!
//! Each segment has a dictionary of a facet's values. A value gets an index-wide number when a segment that
//! contains it is counted for the first time. A segment caches the index-wide numbers of its dictionary entries,
//! so counting only adds up numbers in an array.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use query::Facet;
use roaring::RoaringBitmap;
use strum::EnumCount;
use tantivy::SegmentReader;
use tantivy::columnar::{Cardinality, Column};

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::schema::facet_column;

/// Documents counted between two deadline checks.
const DOCS_PER_DEADLINE_CHECK: usize = 65_536;

/// The values of every facet in the whole index, by number.
#[derive(Default)]
pub(crate) struct FacetDictionaries(pub(crate) [RwLock<FacetDictionary>; Facet::COUNT]);

/// The numbered values of one facet.
#[derive(Default)]
pub(crate) struct FacetDictionary {
    pub(crate) values: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// The index-wide numbers of one facet's values in one segment, by position in its dictionary.
pub(crate) struct SegmentFacetValues {
    pub(crate) numbers: Vec<u32>,
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

impl FacetDictionaries {
    /// Assigns numbers to the values of a segment.
    pub(crate) fn read(&self, reader: &SegmentReader, facet: Facet) -> Result<SegmentFacetValues> {
        let column = reader.fast_fields().str(facet_column(facet))?;
        // A segment in which no document has the facet has no column.
        let Some(column) = column else {
            let column = Column::build_empty_column(reader.max_doc());
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
    /// Counts the documents of `set` with each value, by position in the segment's dictionary. The segment has
    /// `max_doc` documents, including removed ones.
    pub(crate) fn count(
        &self,
        max_doc: u32,
        set: &RoaringBitmap,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<u32>> {
        // For more than half of the documents it is faster to count the other documents and subtract them.
        let doc_count = u64::from(max_doc);
        if set.len() * 2 <= doc_count {
            let mut counts = vec![0; self.numbers.len()];
            self.each(set, is_over, |ordinal| add(&mut counts, ordinal))?;
            return Ok(counts);
        }
        let mut excluded = RoaringBitmap::new();
        excluded.insert_range(0..max_doc);
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
