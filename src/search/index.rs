//! What lies in memory of all items.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use roaring::RoaringBitmap;

use super::column::{Column, FacetColumns, chunk_start};
use crate::db::{Db, DbError, Facts, IndexChange, ReadTx};
use crate::item::PubStatus;
use crate::limits::INDEX_CHANGES_MAX;
use crate::query::{DateField, Facet};
use crate::types::MediaType;

/// A date that is not there.
pub(super) const NO_DATE: i64 = i64::MIN;

/// Items in memory, as of one row of the item log.
///
/// Numbers only ever come in rising; a version that is replaced leaves `live`, and its places in
/// the columns and bitmaps stay until the service starts anew.
#[derive(Debug)]
pub(super) struct Index {
    /// The row of the log that was taken in last.
    pub(super) seq: u32,
    /// The row of the log at which all of it was read; what was found of words before may be of
    /// another index.
    pub(super) whole_at: u32,
    /// Current versions that search may find.
    pub(super) live: RoaringBitmap,
    pub(super) by_type: HashMap<MediaType, RoaringBitmap>,
    pub(super) by_status: HashMap<&'static str, RoaringBitmap>,
    /// Items with an embargo, some of which may be over.
    pub(super) embargoed: Vec<(u32, i64)>,
    pub(super) order: Column<i64>,
    pub(super) date: Column<i64>,
    pub(super) created: Column<i64>,
    pub(super) stored: Column<i64>,
    pub(super) length: Column<u16>,
    pub(super) length_sum: u64,
    /// The other dates, of the items that have them, by number.
    pub(super) dates: HashMap<DateField, Vec<(u32, i64)>>,
    pub(super) facets: FacetColumns,
    /// Items of every value of the facets whose values are asked for most, by number.
    pub(super) products: Vec<RoaringBitmap>,
    /// The number of a product code.
    pub(super) product_numbers: HashMap<String, usize>,
    /// Every item, and some that are gone, in the order of `_tstamp` and then of their numbers.
    pub(super) by_order: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            seq: 0,
            whole_at: 0,
            live: RoaringBitmap::new(),
            by_type: HashMap::new(),
            by_status: HashMap::new(),
            embargoed: Vec::new(),
            order: Column::new(NO_DATE),
            date: Column::new(NO_DATE),
            created: Column::new(NO_DATE),
            stored: Column::new(NO_DATE),
            length: Column::new(0),
            length_sum: 0,
            dates: HashMap::new(),
            facets: FacetColumns::default(),
            products: Vec::new(),
            product_numbers: HashMap::new(),
            by_order: Vec::new(),
        }
    }
}

/// What was written since an index was read, read from the database and not yet taken in.
pub(super) struct News {
    changes: Vec<IndexChange>,
    /// New values of every facet with the number of the first.
    values: Vec<(Facet, usize, Vec<String>)>,
    /// Whether rows of the log are gone that were not read.
    incomplete: bool,
}

impl News {
    /// Whether all of the index must be read: it was made anew, or the log does not reach back.
    pub(super) fn needs_all(&self) -> bool {
        self.incomplete || self.changes.iter().any(|change| change.rebuilt)
    }
}

impl Index {
    /// Reads all of it within one transaction.
    pub(super) fn read(tx: &ReadTx<'_>) -> Result<Self, DbError> {
        let mut index = Self::read_part(tx, 0..=u32::MAX)?;
        index.read_values(tx)?;
        index.sort();
        index.whole_at = index.seq;
        Ok(index)
    }

    /// Reads all of it, half and half on two threads of the database where their transactions see
    /// the same state.
    pub(super) fn read_from(db: &Db) -> Result<Self, DbError> {
        let middle = chunk_start(db.read_blocking(|tx| tx.log_seq())? / 2);
        let (first, later) = std::thread::scope(|scope| {
            let later =
                scope.spawn(|| db.read_blocking(move |tx| Self::read_part(tx, middle..=u32::MAX)));
            let first = db.read_blocking(move |tx| {
                let mut first = match middle.checked_sub(1) {
                    Some(last) => Self::read_part(tx, 0..=last)?,
                    None => Self { seq: tx.log_seq()?, ..Self::default() },
                };
                first.read_values(tx)?;
                Ok(first)
            });
            (first, later.join())
        });
        let later = later.map_err(|_| DbError::Closed)?;
        let (mut index, later) = (first?, later?);
        if index.seq != later.seq {
            // Somebody wrote in between; what one transaction sees is whole.
            return db.read_blocking(Self::read);
        }
        index.append(later);
        index.sort();
        index.whole_at = index.seq;
        Ok(index)
    }

    fn read_part(tx: &ReadTx<'_>, range: RangeInclusive<u32>) -> Result<Self, DbError> {
        let mut index = Self { seq: tx.log_seq()?, ..Self::default() };
        tx.each_facts(range, |doc, facts| {
            index.add(doc, facts);
            index.by_order.push(doc);
        })?;
        Ok(index)
    }

    fn read_values(&mut self, tx: &ReadTx<'_>) -> Result<(), DbError> {
        for facet in Facet::ALL {
            self.add_values(facet, 0, tx.facet_values(facet, 0)?);
        }
        Ok(())
    }

    /// Takes over `later`, whose items all lie in chunks behind those of `self`.
    fn append(&mut self, later: Self) {
        self.live |= later.live;
        for (media_type, docs) in later.by_type {
            *self.by_type.entry(media_type).or_default() |= docs;
        }
        for (status, docs) in later.by_status {
            *self.by_status.entry(status).or_default() |= docs;
        }
        self.embargoed.extend(later.embargoed);
        self.order.append(later.order);
        self.date.append(later.date);
        self.created.append(later.created);
        self.stored.append(later.stored);
        self.length.append(later.length);
        self.length_sum += later.length_sum;
        for (field, dates) in later.dates {
            self.dates.entry(field).or_default().extend(dates);
        }
        for (column, later) in self.facets.iter_mut().zip(later.facets) {
            column.lists.append(later.lists);
        }
        if self.products.len() < later.products.len() {
            self.products.resize(later.products.len(), RoaringBitmap::new());
        }
        for (docs, later) in self.products.iter_mut().zip(later.products) {
            *docs |= later;
        }
        self.by_order.extend(later.by_order);
    }

    fn sort(&mut self) {
        let order = &self.order;
        let mut places: Vec<(i64, u32)> =
            self.by_order.iter().map(|doc| (order.get(*doc), *doc)).collect();
        places.sort_unstable();
        self.by_order = places.into_iter().map(|(_, doc)| doc).collect();
    }

    /// What was written behind `self`.
    pub(super) fn news(&self, tx: &ReadTx<'_>) -> Result<News, DbError> {
        let incomplete = tx.log_floor()? > self.seq.saturating_add(1);
        let changes = tx.index_changes(self.seq, INDEX_CHANGES_MAX)?;
        let mut values = Vec::new();
        for facet in Facet::ALL {
            let known = self.facets[facet.index()].values.len();
            values.push((facet, known, tx.facet_values(facet, known)?));
        }
        Ok(News { changes, values, incomplete })
    }

    /// Takes news in that were read behind this very state.
    pub(super) fn take_in(&mut self, news: News) {
        for (facet, known, values) in news.values {
            self.add_values(facet, known, values);
        }
        let mut new = Vec::new();
        for change in news.changes {
            if let Some(previous) = change.previous.filter(|doc| self.live.remove(*doc)) {
                self.length_sum -= u64::from(self.length.get(previous));
            }
            if let Some(facts) = change.facts {
                self.add(change.seq, &facts);
                new.push(change.seq);
            }
            self.seq = change.seq;
        }
        self.place_in_order(new);
    }

    fn add_values(&mut self, facet: Facet, known: usize, values: Vec<String>) {
        let column = &mut self.facets[facet.index()];
        column.values.truncate(known);
        if facet == Facet::ProductCode {
            for (at, value) in values.iter().enumerate() {
                self.product_numbers.insert(value.clone(), known + at);
            }
        }
        column.values.extend(values);
    }

    fn add(&mut self, doc: u32, facts: &Facts) {
        self.live.insert(doc);
        self.by_type.entry(facts.media_type).or_default().insert(doc);
        self.by_status.entry(facts.status.as_str()).or_default().insert(doc);
        if let Some(until) = facts.embargoed_ms {
            self.embargoed.push((doc, until));
        }
        self.order.set(doc, facts.order_ms);
        self.length.set(doc, facts.length);
        self.length_sum += u64::from(facts.length);
        for (field, ms) in &facts.dates {
            match field {
                DateField::Date => self.date.set(doc, *ms),
                DateField::VersionCreated => self.created.set(doc, *ms),
                DateField::VersionStored => self.stored.set(doc, *ms),
                DateField::FirstCreated
                | DateField::ContentCreated
                | DateField::DateTime
                | DateField::EndDate
                | DateField::EndDateTime
                | DateField::Embargoed
                | DateField::Expires => self.dates.entry(*field).or_default().push((doc, *ms)),
            }
        }
        for (column, values) in self.facets.iter_mut().zip(&facts.facets) {
            column.lists.push(doc, values);
        }
        for product in &facts.facets[Facet::ProductCode.index()] {
            let product = usize::try_from(*product).unwrap_or(usize::MAX);
            if product >= self.products.len() {
                // The numbers of values have no gaps, so this grows with the values.
                self.products.resize(product + 1, RoaringBitmap::new());
            }
            self.products[product].insert(doc);
        }
    }

    /// Puts new items at their places in the order of `_tstamp`, and takes out those that are gone
    /// once they are many.
    fn place_in_order(&mut self, mut new: Vec<u32>) {
        let order = &self.order;
        new.sort_unstable_by_key(|doc| (order.get(*doc), *doc));
        // From the back: most new items are the newest.
        let mut old_end = self.by_order.len();
        self.by_order.resize(old_end + new.len(), 0);
        let mut end = self.by_order.len();
        for doc in new.into_iter().rev() {
            let key = (order.get(doc), doc);
            let known = &self.by_order[..old_end];
            let start = known.partition_point(|other| (order.get(*other), *other) < key);
            let moved = old_end - start;
            self.by_order.copy_within(start..old_end, end - moved);
            end -= moved + 1;
            self.by_order[end] = doc;
            old_end = start;
        }
        let live = self.live.len();
        let gone = u64::try_from(self.by_order.len()).unwrap_or(u64::MAX).saturating_sub(live);
        if gone > live / 4 + 1000 {
            self.by_order.retain(|doc| self.live.contains(*doc));
        }
    }

    /// Forgets embargoes that are over; gives whether there were any.
    pub(super) fn end_embargoes(&mut self, now_ms: i64) -> bool {
        let before = self.embargoed.len();
        self.embargoed.retain(|(_, until)| *until > now_ms);
        self.embargoed.len() < before
    }

    /// Items of a status.
    pub(super) fn status(&self, status: PubStatus) -> Option<&RoaringBitmap> {
        self.by_status.get(status.as_str())
    }

    /// The places in `by_order` of items from `from` to before `until`.
    pub(super) fn order_range(&self, from: Option<i64>, until: Option<i64>) -> (usize, usize) {
        let first = |ms: i64| self.by_order.partition_point(|doc| self.order.get(*doc) < ms);
        let start = from.map_or(0, first);
        let end = until.map_or(self.by_order.len(), first);
        (start, end.max(start))
    }

    /// Those of `found` that come behind `doc` in the order of `_tstamp` and then of numbers.
    pub(super) fn behind(&self, found: &RoaringBitmap, doc: u32) -> RoaringBitmap {
        let place = |doc: u32| (self.order.get(doc), doc);
        let start = self.by_order.partition_point(|other| place(*other) <= place(doc));
        self.by_order[start..].iter().copied().filter(|other| found.contains(*other)).collect()
    }

    /// Words of a document on average.
    pub(super) fn average_length(&self) -> f32 {
        let documents = self.live.len().max(1);
        #[expect(clippy::cast_precision_loss, reason = "an average for weights, not a count")]
        let average = self.length_sum as f32 / documents as f32;
        average.max(1.0)
    }
}
