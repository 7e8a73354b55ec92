//! Evaluates a filter to the set of matching documents in each segment.

use std::sync::Arc;

use model::PictureHash;
use model::item::PubStatus;
use query::{DateRange, Facet, FiniteNumber, NumericRange, Query, WordPattern, id_token};
use roaring::{MultiOps, RoaringBitmap};
use tantivy::columnar::Column;

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::index::IndexSnapshot;
use crate::request::{Coverage, FacetCondition, OrderPosition, SearchFilter};
use crate::schema::facet_column;
use crate::segment::IndexSegment;
use crate::sets::FilterCondition;
use crate::words::TermLookup;
use crate::{near, stems};

/// The documents of a snapshot that match a filter.
pub struct MatchedDocuments<'a> {
    pub(crate) snapshot: &'a IndexSnapshot,
    /// The matching documents of each segment.
    pub(crate) sets: Vec<RoaringBitmap>,
}

impl IndexSnapshot {
    /// Finds the versions that match `filter`, except the version numbers in `removed`, which the index may still
    /// contain.
    ///
    /// Fails with [`TimedOut`](crate::IndexError::TimedOut) soon after `is_over` returns true.
    pub fn find(
        &self,
        filter: &SearchFilter,
        removed: &[u32],
        is_over: DeadlineCheck<'_>,
    ) -> Result<MatchedDocuments<'_>> {
        let mut sets = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            // Checked here too: if all sets are cached, no lookup runs that would check the deadline.
            ensure_time(is_over)?;
            // A segment with only older versions needs no evaluation.
            if let Some(number) = filter.newer_than
                && segment.number_max() <= u64::from(number)
            {
                sets.push(RoaringBitmap::new());
                continue;
            }
            let evaluation = SegmentEvaluation { snapshot: self, segment, is_over };
            let mut found = evaluation.matching(filter)?;
            // The index lags behind the database. The database lists the versions that were replaced or withdrawn
            // since the last commit of the index (contract search-12).
            for number in removed {
                if let Some(doc) = segment.find(self.shared.fields.number, *number)? {
                    found.remove(doc);
                }
            }
            sets.push(found);
        }
        Ok(MatchedDocuments { snapshot: self, sets })
    }

    /// Returns the documents of each segment that contain `words`, possibly including removed ones.
    pub(crate) fn documents_with(
        &self,
        words: &WordPattern,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<Arc<RoaringBitmap>>> {
        let sets = self.segments.iter().map(|segment| {
            let evaluation = SegmentEvaluation { snapshot: self, segment, is_over };
            evaluation.cached_set(FilterCondition::Words(words.clone()))
        });
        sets.collect()
    }
}

impl MatchedDocuments<'_> {
    /// Returns the number of matching versions.
    pub fn total(&self) -> u64 {
        self.sets.iter().map(RoaringBitmap::len).sum()
    }

    /// Narrows the matches to those that also match `query`.
    pub fn narrow(
        &self,
        query: &Query,
        is_over: DeadlineCheck<'_>,
    ) -> Result<MatchedDocuments<'_>> {
        let sets = self.documents_matching(query, is_over)?;
        Ok(MatchedDocuments { snapshot: self.snapshot, sets })
    }

    /// Returns the found documents of each segment that also match `query`.
    pub(crate) fn documents_matching(
        &self,
        query: &Query,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<RoaringBitmap>> {
        let sets = self.snapshot.segments.iter().zip(&self.sets).map(|(segment, found)| {
            let evaluation = SegmentEvaluation { snapshot: self.snapshot, segment, is_over };
            evaluation.evaluate(query).map(|matching| found & &*matching)
        });
        sets.collect()
    }
}

/// The evaluation of a filter in one segment.
struct SegmentEvaluation<'a> {
    snapshot: &'a IndexSnapshot,
    segment: &'a IndexSegment,
    is_over: DeadlineCheck<'a>,
}

impl SegmentEvaluation<'_> {
    /// Returns the documents that match and are not removed.
    fn matching(&self, filter: &SearchFilter) -> Result<RoaringBitmap> {
        // Cached sets may contain removed documents, so the live documents are part of every intersection.
        let mut required = vec![Arc::clone(&self.segment.live)];
        if let Some(media_type) = filter.media_type {
            required.push(self.cached_set(FilterCondition::MediaType(media_type))?);
        }
        required.push(self.statuses(&filter.statuses)?);
        if let Coverage::Products(codes) = &filter.coverage {
            required.push(self.products(codes)?);
        }
        if !filter.products.is_empty() {
            required.push(self.products(&filter.products)?);
        }
        if let Some(hash) = filter.near_picture {
            required.push(self.cached_set(FilterCondition::Near(hash))?);
        }
        let mut excluded = Vec::new();
        // The parts of a conjunction join the other conditions, so that the smallest set of all comes first.
        let parts = if let Query::And(parts) = &filter.query {
            parts.as_slice()
        } else {
            std::slice::from_ref(&filter.query)
        };
        self.split(parts, &mut required, &mut excluded)?;
        for condition in &filter.facet_values {
            let sets = if condition.is_excluded { &mut excluded } else { &mut required };
            sets.push(self.with_values(condition)?);
        }
        if !filter.products_excluded.is_empty() {
            excluded.push(self.products(&filter.products_excluded)?);
        }
        if let Some(now) = filter.hides_embargoed_at {
            // The set of embargoed documents changes with time and not with a commit, so it is not cached.
            let hidden = self.segment.hidden(now.as_millisecond());
            excluded.push(Arc::new(hidden));
        }
        let mut found = combine(required, &excluded);
        self.restrict(&mut found, filter);
        Ok(found)
    }

    /// Removes documents outside the range of `_tstamp`.
    fn restrict(&self, found: &mut RoaringBitmap, filter: &SearchFilter) {
        let segment = self.segment;
        // Documents are sorted by `_tstamp`, the latest first, so a bound cuts off one end.
        if let Some(from) = filter.from {
            found.remove_range(segment.later_or_at(from.as_millisecond())..);
        }
        if let Some(until) = filter.until {
            found.remove_range(..segment.later_or_at(until.as_millisecond()));
        }
        // Version numbers are unsorted within a segment, so each document has to be checked.
        if let Some(newest) = filter.newer_than {
            let old: Vec<u32> =
                found.iter().filter(|doc| segment.number(*doc) <= newest).collect();
            *found -= RoaringBitmap::from_sorted_iter(old).unwrap_or_default();
        }
        if let Some(after) = filter.after {
            let OrderPosition { order_ms, .. } = after;
            let later = segment.later(order_ms);
            let end = segment.later_or_at(order_ms);
            found.remove_range(end..);
            // Documents with equal times are not sorted by number, so each of them is compared.
            for doc in later..end {
                if segment.place(doc) <= after {
                    found.remove(doc);
                }
            }
        }
    }

    /// Splits a conjunction into required and excluded sets.
    fn split(
        &self,
        parts: &[Query],
        required: &mut Vec<Arc<RoaringBitmap>>,
        excluded: &mut Vec<Arc<RoaringBitmap>>,
    ) -> Result<()> {
        for part in parts {
            if let Query::Not(part) = part {
                excluded.push(self.evaluate(part)?);
            } else if *part != Query::All {
                required.push(self.evaluate(part)?);
            }
        }
        Ok(())
    }

    /// Returns the documents that match a query, possibly including removed ones.
    fn evaluate(&self, query: &Query) -> Result<Arc<RoaringBitmap>> {
        match query {
            Query::All => Ok(Arc::clone(&self.segment.live)),
            Query::Words(words) => self.cached_set(FilterCondition::Words(words.clone())),
            Query::Dates(dates) => self.cached_set(FilterCondition::Dates(*dates)),
            Query::Numbers(numbers) => self.cached_set(FilterCondition::Numbers(*numbers)),
            Query::Present(field) => self.cached_set(FilterCondition::Present(*field)),
            Query::Item(id) => self.cached_set(FilterCondition::Item(id.clone())),
            Query::And(parts) => {
                // With exclusions only, as in `(-a -b)`, the conjunction starts from all documents.
                let mut required = vec![Arc::clone(&self.segment.live)];
                let mut excluded = Vec::new();
                self.split(parts, &mut required, &mut excluded)?;
                Ok(Arc::new(combine(required, &excluded)))
            }
            Query::Or(parts) => union(parts.iter().map(|part| self.evaluate(part))),
            Query::Not(part) => Ok(Arc::new(&*self.segment.live - &*self.evaluate(part)?)),
        }
    }

    fn statuses(&self, statuses: &[PubStatus]) -> Result<Arc<RoaringBitmap>> {
        // The usual case: a single status needs no union, and its set is shared with the cache.
        if let [status] = statuses {
            return self.cached_set(FilterCondition::Status(*status));
        }
        union(statuses.iter().map(|status| self.cached_set(FilterCondition::Status(*status))))
    }

    /// Returns the documents with at least one of the values of a facet.
    fn with_values(&self, condition: &FacetCondition) -> Result<Arc<RoaringBitmap>> {
        let sets = condition
            .values
            .iter()
            .map(|value| self.cached_set(FilterCondition::Value(condition.facet, value.clone())));
        union(sets)
    }

    /// Returns the documents with at least one of the product codes.
    fn products(&self, codes: &[String]) -> Result<Arc<RoaringBitmap>> {
        let mut codes = codes.to_vec();
        // Sorted, so that the same codes in any order share one cache entry.
        codes.sort_unstable();
        codes.dedup();
        self.cached_set(FilterCondition::Products(codes.into()))
    }

    /// Returns the documents of a condition from the cache, or looks them up.
    fn cached_set(&self, condition: FilterCondition) -> Result<Arc<RoaringBitmap>> {
        let cache = &self.snapshot.shared.set_cache;
        cache.get_or_insert(self.segment.id(), condition, |condition| self.look_up(condition))
    }

    fn look_up(&self, condition: &FilterCondition) -> Result<RoaringBitmap> {
        let fields = &self.snapshot.shared.fields;
        let lookup = TermLookup::new(self.snapshot, self.segment, self.is_over);
        match condition {
            FilterCondition::Words(words) if words.forms => self.forms(words, lookup),
            FilterCondition::Words(words) => lookup.words(words),
            FilterCondition::Dates(dates) => self.dates(*dates),
            FilterCondition::Numbers(numbers) => self.numbers(*numbers),
            FilterCondition::Present(field) => lookup.present(*field),
            FilterCondition::Item(id) => lookup.any_of(fields.accents, [id_token(id).as_str()]),
            FilterCondition::Value(facet, value) => {
                documents_with_value(self.segment, *facet, value)
            }
            FilterCondition::MediaType(name) => lookup.any_of(fields.media_type, [name.as_str()]),
            FilterCondition::Near(hash) => self.near(*hash, lookup),
            FilterCondition::Status(name) => lookup.any_of(fields.status, [name.as_str()]),
            FilterCondition::Products(codes) => {
                let field = fields.facet(Facet::ProductCode);
                lookup.any_of(field, codes.iter().map(String::as_str))
            }
        }
    }

    /// Finds documents with a word or an inflected form of it.
    fn forms(&self, words: &WordPattern, lookup: TermLookup<'_>) -> Result<RoaringBitmap> {
        let written = FilterCondition::Words(WordPattern { forms: false, ..words.clone() });
        // Cached on its own, because ranking by relevance needs the hits as written, too.
        let written = self.cached_set(written)?;
        let terms = stems::query_terms(words);
        let field = self.snapshot.shared.fields.stems;
        Ok(lookup.any_of(field, terms.iter().map(String::as_str))? | &*written)
    }

    /// Finds documents with a picture that looks nearly like the picture with this hash.
    fn near(&self, hash: PictureHash, lookup: TermLookup<'_>) -> Result<RoaringBitmap> {
        let bands: Vec<String> = near::terms(hash).collect();
        let field = self.snapshot.shared.fields.picture_bands;
        let candidates = lookup.any_of(field, bands.iter().map(String::as_str))?;
        let hashes = self.segment.picture_hashes()?;
        let docs = candidates.iter().filter(|doc| {
            hashes.first(*doc).is_some_and(|other| near::is_near(hash, PictureHash(other)))
        });
        Ok(RoaringBitmap::from_sorted_iter(docs).unwrap_or_default())
    }

    /// Finds documents with a date in a range.
    fn dates(&self, dates: DateRange) -> Result<RoaringBitmap> {
        let from = dates.from.map_or(i64::MIN, |from| from.as_millisecond());
        // The engine includes both ends of a range; the end of dates is exclusive.
        let Some(last) =
            dates.until.map_or(Some(i64::MAX), |end| end.as_millisecond().checked_sub(1))
        else {
            return Ok(RoaringBitmap::new());
        };
        Ok(self.in_range(&self.segment.dates(dates.field)?, from, last))
    }

    /// Finds documents with a number in a range.
    fn numbers(&self, numbers: NumericRange) -> Result<RoaringBitmap> {
        let from = numbers.from.map_or(i64::MIN, FiniteNumber::key);
        let last = numbers.until.map_or(i64::MAX, FiniteNumber::key);
        Ok(self.in_range(&self.segment.numbers(numbers.field)?, from, last))
    }

    /// Finds documents with a value of `column` from `from` to `last`, both inclusive.
    fn in_range(&self, column: &Column<i64>, from: i64, last: i64) -> RoaringBitmap {
        // Without this check the engine returns the segment's smallest value for a range that ends
        // before it.
        if last < from || last < column.min_value() {
            return RoaringBitmap::new();
        }
        let mut docs = Vec::new();
        column.get_docids_for_value_range(from..=last, 0..self.segment.max_doc(), &mut docs);
        RoaringBitmap::from_sorted_iter(docs).unwrap_or_default()
    }
}

/// Returns the documents of a segment with a value of `facet`, possibly including removed ones.
fn documents_with_value(
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

/// Intersects all of `required`, at least one, and subtracts `excluded`. Starts with the smallest set, so
/// that every step has as little work as possible.
fn combine(
    mut required: Vec<Arc<RoaringBitmap>>,
    excluded: &[Arc<RoaringBitmap>],
) -> RoaringBitmap {
    required.sort_by_key(|set| set.len());
    let mut sets = required.iter().map(|set| &**set);
    let mut found = match (sets.next(), sets.next()) {
        (None, _) => RoaringBitmap::new(),
        (Some(first), None) => first.clone(),
        (Some(first), Some(second)) => first & second,
    };
    for set in sets {
        found &= set;
    }
    for set in excluded {
        found -= &**set;
    }
    found
}

/// Returns the documents of all `sets`.
fn union(sets: impl Iterator<Item = Result<Arc<RoaringBitmap>>>) -> Result<Arc<RoaringBitmap>> {
    let sets: Vec<_> = sets.collect::<Result<_>>()?;
    Ok(Arc::new(sets.iter().map(|set| &**set).union()))
}
