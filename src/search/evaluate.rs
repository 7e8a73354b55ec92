//! From a request to the set of items that match.

use std::borrow::Cow;
use std::collections::{HashMap, hash_map::Entry};
use std::ops::{BitAndAssign, SubAssign};
use std::sync::Arc;

use roaring::{MultiOps, RoaringBitmap};

use super::index::{Index, NO_DATE};
use super::{Coverage, Request};
use crate::db::{DbError, Lookup};
use crate::query::{DateField, Dates, Query, Words};

/// What was looked up of the words of a request.
#[derive(Default)]
pub(super) struct LookedUp(HashMap<Lookup, Arc<RoaringBitmap>>);

impl LookedUp {
    /// Looks up with `find` whatever `query` needs.
    pub(super) fn of(
        query: &Query,
        find: &mut dyn FnMut(&Lookup) -> Result<Arc<RoaringBitmap>, DbError>,
    ) -> Result<Self, DbError> {
        let mut known = Self::default();
        for words in leaves(query) {
            known.add(Lookup::of(words), find)?;
        }
        Ok(known)
    }

    pub(super) fn add(
        &mut self,
        lookup: Lookup,
        find: &mut dyn FnMut(&Lookup) -> Result<Arc<RoaringBitmap>, DbError>,
    ) -> Result<(), DbError> {
        if let Entry::Vacant(place) = self.0.entry(lookup) {
            let docs = find(place.key())?;
            place.insert(docs);
        }
        Ok(())
    }

    pub(super) fn get(&self, lookup: &Lookup) -> Option<&RoaringBitmap> {
        self.0.get(lookup).map(Arc::as_ref)
    }
}

/// The words of a query, in its order.
fn leaves(query: &Query) -> Vec<&Words> {
    match query {
        Query::All | Query::Dates(_) => Vec::new(),
        Query::Words(words) => vec![words],
        Query::And(parts) | Query::Or(parts) => parts.iter().flat_map(leaves).collect(),
        Query::Not(part) => leaves(part),
    }
}

type Set<'a> = Cow<'a, RoaringBitmap>;

/// Evaluates on one index; the words were looked up before.
pub(super) struct Evaluation<'a> {
    pub(super) index: &'a Index,
    pub(super) words: &'a LookedUp,
}

impl<'a> Evaluation<'a> {
    /// The items that match `request` at `now_ms`.
    pub(super) fn matching(&self, request: &Request, now_ms: i64) -> RoaringBitmap {
        let index = self.index;
        let mut required: Vec<Set<'a>> = vec![Cow::Borrowed(&index.live)];
        let none = || Cow::Owned(RoaringBitmap::new());
        if let Some(media_type) = request.media_type {
            required.push(index.by_type.get(&media_type).map_or_else(none, Cow::Borrowed));
        }
        required.push(union(request.statuses.iter().filter_map(|status| index.status(*status))));
        if let Coverage::Products(codes) = &request.coverage {
            required.push(self.products(codes));
        }
        if !request.products.is_empty() {
            required.push(self.products(&request.products));
        }
        let mut excluded: Vec<Set<'a>> = Vec::new();
        match &request.query {
            Query::All => {}
            Query::And(parts) => self.split(parts, &mut required, &mut excluded),
            whole @ (Query::Words(_) | Query::Dates(_) | Query::Or(_) | Query::Not(_)) => {
                self.split(std::slice::from_ref(whole), &mut required, &mut excluded);
            }
        }
        if !request.products_excluded.is_empty() {
            excluded.push(self.products(&request.products_excluded));
        }
        if !request.sees_embargoed {
            let hidden = index.embargoed.iter().filter(|(_, until)| *until > now_ms);
            excluded.push(Cow::Owned(hidden.map(|(doc, _)| *doc).collect()));
        }
        let found = combine(required, &excluded);
        self.within(found, request)
    }

    /// Adds the parts of a conjunction to what is required and what is excluded.
    fn split(&self, parts: &[Query], required: &mut Vec<Set<'a>>, excluded: &mut Vec<Set<'a>>) {
        for part in parts {
            match part {
                Query::All => {}
                Query::Not(part) => excluded.push(self.set(part)),
                Query::Words(_) | Query::Dates(_) | Query::And(_) | Query::Or(_) => {
                    required.push(self.set(part));
                }
            }
        }
    }

    /// The items that satisfy a query, and some that are gone.
    fn set(&self, query: &Query) -> Set<'a> {
        match query {
            Query::All => Cow::Borrowed(&self.index.live),
            Query::Words(words) => match self.words.get(&Lookup::of(words)) {
                Some(docs) => Cow::Borrowed(docs),
                None => Cow::Owned(RoaringBitmap::new()),
            },
            Query::Dates(dates) => Cow::Owned(self.dates(*dates)),
            Query::And(parts) => {
                let (mut required, mut excluded) = (Vec::new(), Vec::new());
                self.split(parts, &mut required, &mut excluded);
                if required.is_empty() {
                    required.push(Cow::Borrowed(&self.index.live));
                }
                Cow::Owned(combine(required, &excluded))
            }
            Query::Or(parts) => {
                let sets: Vec<_> = parts.iter().map(|part| self.set(part)).collect();
                Cow::Owned(sets.iter().map(AsRef::as_ref).union())
            }
            Query::Not(part) => Cow::Owned(&self.index.live - self.set(part).as_ref()),
        }
    }

    /// Items with one of these product codes.
    fn products(&self, codes: &[String]) -> Set<'a> {
        let index = self.index;
        let numbers = codes.iter().filter_map(|code| index.product_numbers.get(code));
        union(numbers.filter_map(|number| index.products.get(*number)))
    }

    /// Items with a date in a range.
    fn dates(&self, dates: Dates) -> RoaringBitmap {
        let from = dates.from.map_or(i64::MIN + 1, |from| from.as_millisecond());
        let until = dates.until.map_or(i64::MAX, |until| until.as_millisecond());
        let inside = |ms: i64| ms >= from && ms < until && ms != NO_DATE;
        let index = self.index;
        let column = match dates.field {
            DateField::Date => &index.date,
            DateField::VersionCreated => &index.created,
            DateField::VersionStored => &index.stored,
            DateField::FirstCreated
            | DateField::ContentCreated
            | DateField::DateTime
            | DateField::EndDate
            | DateField::EndDateTime
            | DateField::Embargoed
            | DateField::Expires => {
                let known = index.dates.get(&dates.field).into_iter().flatten();
                return known.filter(|(_, ms)| inside(*ms)).map(|(doc, _)| *doc).collect();
            }
        };
        index.live.iter().filter(|doc| inside(column.get(*doc))).collect()
    }

    /// Those of `found` whose `_tstamp` lies in the range of the request.
    fn within(&self, mut found: RoaringBitmap, request: &Request) -> RoaringBitmap {
        if request.from.is_none() && request.until.is_none() {
            return found;
        }
        let ms = |time: Option<jiff::Timestamp>| time.map(jiff::Timestamp::as_millisecond);
        let (from, until) = (ms(request.from), ms(request.until));
        let index = self.index;
        let (start, end) = index.order_range(from, until);
        if start == 0 && end == index.by_order.len() {
            return found;
        }
        let found_len = usize::try_from(found.len()).unwrap_or(usize::MAX);
        if end - start < found_len / 4 {
            // The range is short: its items, sorted, make a set in less time than a look at all.
            let mut docs = index.by_order[start..end].to_vec();
            docs.sort_unstable();
            let range = RoaringBitmap::from_sorted_iter(docs).unwrap_or_default();
            found &= range;
            return found;
        }
        let inside = |doc: &u32| {
            let ms = index.order.get(*doc);
            from.is_none_or(|from| ms >= from) && until.is_none_or(|until| ms < until)
        };
        found.iter().filter(inside).collect()
    }
}

fn union<'a>(sets: impl Iterator<Item = &'a RoaringBitmap>) -> Set<'a> {
    let sets: Vec<_> = sets.collect();
    match sets.as_slice() {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.iter().copied().union()),
    }
}

/// What all of `required`, at least one, hold and none of `excluded` does. The smallest comes
/// first, so that every step handles as little as it can.
fn combine(mut required: Vec<Set<'_>>, excluded: &[Set<'_>]) -> RoaringBitmap {
    required.sort_by_key(|set| set.len());
    let mut sets = required.into_iter();
    let mut found = match (sets.next(), sets.next()) {
        (None, _) => RoaringBitmap::new(),
        (Some(one), None) => one.into_owned(),
        (Some(one), Some(two)) => one.as_ref() & two.as_ref(),
    };
    for set in sets {
        found.bitand_assign(set.as_ref());
    }
    for set in excluded {
        found.sub_assign(set.as_ref());
    }
    found
}
