//! Holds one segment: its documents, its removed documents and its columns.

use std::sync::{Arc, OnceLock};

use query::{DateField, Facet, NumberField};
use roaring::RoaringBitmap;
use strum::EnumCount;
use tantivy::columnar::{Column, ColumnValues};
use tantivy::index::SegmentId;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{SegmentReader, Term};

use crate::error::Result;
use crate::facet_dictionary::SegmentFacetValues;
use crate::request::OrderPosition;
use crate::schema::{HIDDEN_UNTIL, NUMBER, ORDER, PICTURE_HASH, STAMP, number_column};

/// The immutable part of a segment. It is independent of the documents that are removed from the segment.
pub(crate) struct SegmentColumns {
    pub(crate) id: SegmentId,
    /// `_tstamp` of each document, descending.
    order: Arc<dyn ColumnValues<i64>>,
    numbers: Arc<dyn ColumnValues<u64>>,
    stamps: Arc<dyn ColumnValues<u64>>,
    /// Documents with an embargo, each with its end in milliseconds.
    embargoed: Vec<(u32, i64)>,
    /// The index-wide numbers of each facet's values, by their position in the segment's dictionary. They are
    /// computed on first use.
    values: [OnceLock<Arc<SegmentFacetValues>>; Facet::COUNT],
}

/// A segment at one commit.
#[derive(Clone)]
pub(crate) struct IndexSegment {
    pub(crate) reader: SegmentReader,
    pub(crate) columns: Arc<SegmentColumns>,
    /// The documents that are not removed.
    pub(crate) live: Arc<RoaringBitmap>,
}

impl SegmentColumns {
    pub(crate) fn read(reader: &SegmentReader) -> Result<Self> {
        let columns = reader.fast_fields();
        let embargoed: Column<i64> = columns.i64(HIDDEN_UNTIL)?;
        let mut docs = Vec::new();
        // Few documents have an embargo, so searches read this list instead of the column.
        embargoed.get_docids_for_value_range(i64::MIN..=i64::MAX, 0..reader.max_doc(), &mut docs);
        let embargoed = docs.into_iter().filter_map(|doc| Some((doc, embargoed.first(doc)?)));
        Ok(Self {
            id: reader.segment_id(),
            order: columns.i64(ORDER)?.values,
            numbers: columns.u64(NUMBER)?.values,
            stamps: columns.u64(STAMP)?.values,
            embargoed: embargoed.collect(),
            values: Default::default(),
        })
    }

    /// Returns the numbers of a facet's values, computed by `compute` on first use.
    pub(crate) fn values(
        &self,
        facet: Facet,
        compute: impl FnOnce() -> Result<SegmentFacetValues>,
    ) -> Result<Arc<SegmentFacetValues>> {
        let cell = &self.values[facet.index()];
        if let Some(values) = cell.get() {
            return Ok(Arc::clone(values));
        }
        // An initializer that can fail may run twice concurrently; the first result is used.
        let computed = Arc::new(compute()?);
        Ok(Arc::clone(cell.get_or_init(|| computed)))
    }
}

impl IndexSegment {
    pub(crate) fn id(&self) -> SegmentId {
        self.columns.id
    }

    pub(crate) fn max_doc(&self) -> u32 {
        self.reader.max_doc()
    }

    /// Returns the `_tstamp` of a document.
    pub(crate) fn order(&self, doc: u32) -> i64 {
        self.columns.order.get_val(doc)
    }

    /// Returns the version number of a document.
    pub(crate) fn number(&self, doc: u32) -> u32 {
        u32::try_from(self.columns.numbers.get_val(doc)).unwrap_or(u32::MAX)
    }

    /// Returns the version stamp of a document.
    pub(crate) fn stamp(&self, doc: u32) -> u64 {
        self.columns.stamps.get_val(doc)
    }

    /// Returns the largest version number in the segment, including removed documents.
    pub(crate) fn number_max(&self) -> u64 {
        self.columns.numbers.max_value()
    }

    /// Returns the position of a document in the order of `_tstamp`.
    pub(crate) fn place(&self, doc: u32) -> OrderPosition {
        OrderPosition { order_ms: self.order(doc), number: self.number(doc) }
    }

    /// Returns the column of a date, which is empty for documents without it.
    pub(crate) fn dates(&self, date: DateField) -> Result<Column<i64>> {
        Ok(self.reader.fast_fields().i64(date.as_str())?)
    }

    /// Returns the column of a number, which is empty for documents without it.
    pub(crate) fn numbers(&self, number: NumberField) -> Result<Column<i64>> {
        Ok(self.reader.fast_fields().i64(&number_column(number))?)
    }

    /// Returns the column of perceptual hashes, which is empty for documents without a picture.
    pub(crate) fn picture_hashes(&self) -> Result<Column<u64>> {
        Ok(self.reader.fast_fields().u64(PICTURE_HASH)?)
    }

    /// Counts the leading documents with a `_tstamp` at or after `ms`.
    pub(crate) fn later_or_at(&self, ms: i64) -> u32 {
        self.partition(|order| order >= ms)
    }

    /// Counts the leading documents with a `_tstamp` after `ms`.
    pub(crate) fn later(&self, ms: i64) -> u32 {
        self.partition(|order| order > ms)
    }

    /// Returns the number of leading documents for which `holds` is true, by binary search. `holds` must be false
    /// for all documents after the first one for which it is false.
    fn partition(&self, holds: impl Fn(i64) -> bool) -> u32 {
        let mut start = 0;
        let mut end = self.max_doc();
        while start < end {
            let middle = start + (end - start) / 2;
            if holds(self.order(middle)) { start = middle + 1 } else { end = middle }
        }
        start
    }

    /// Returns the documents under embargo at `now_ms`.
    pub(crate) fn hidden(&self, now_ms: i64) -> RoaringBitmap {
        let hidden = self.columns.embargoed.iter().filter(|(_, until)| *until > now_ms);
        hidden.map(|(doc, _)| *doc).collect()
    }

    /// Returns the end of the first embargo after `now_ms`.
    pub(crate) fn next_embargo(&self, now_ms: i64) -> Option<i64> {
        let ends = self.columns.embargoed.iter().map(|(_, until)| *until);
        ends.filter(|until| *until > now_ms).min()
    }

    /// Finds the document of the version `number`, if the segment has it and it is not removed.
    pub(crate) fn find(&self, field: Field, number: u32) -> Result<Option<u32>> {
        use tantivy::DocSet as _;
        let term = Term::from_field_u64(field, u64::from(number));
        let terms = self.reader.inverted_index(field)?;
        let postings = terms.read_postings(&term, IndexRecordOption::Basic)?;
        let Some(mut postings) = postings else { return Ok(None) };
        // A number that was removed and added again has several documents, of which only one is live.
        let mut doc = postings.doc();
        while doc != tantivy::TERMINATED {
            if self.live.contains(doc) {
                return Ok(Some(doc));
            }
            doc = postings.advance();
        }
        Ok(None)
    }
}
