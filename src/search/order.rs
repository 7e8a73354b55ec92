//! The order of hits: the page that was asked for, without sorting all that matches.

use roaring::RoaringBitmap;

use super::SortDate;
use super::column::Column;
use super::index::Index;

/// A place in an order: the key, then the number of the item.
type Place<K> = (K, u32);

/// The items `skip..skip + size` of `found` in the order of a date.
pub(super) fn by_date(
    index: &Index,
    found: &RoaringBitmap,
    (date, descending): (SortDate, bool),
    (skip, size): (usize, usize),
) -> Vec<u32> {
    let found_len = usize::try_from(found.len()).unwrap_or(usize::MAX);
    let wanted = skip.saturating_add(size).min(found_len);
    if size == 0 || skip >= wanted {
        return Vec::new();
    }
    if date == SortDate::Order {
        // Walking takes about `wanted` times the inverse of the share that matches.
        let steps = wanted.saturating_mul(index.by_order.len()) / found_len;
        if steps < found_len.saturating_mul(2) {
            return walk(index, found, descending, (skip, wanted - skip));
        }
    }
    let column = match date {
        SortDate::Order => &index.order,
        SortDate::Date => &index.date,
        SortDate::VersionCreated => &index.created,
        SortDate::VersionStored => &index.stored,
    };
    by_column(column, found, descending, (skip, wanted))
}

/// Goes through the items in the order of `_tstamp` until there are enough.
fn walk(
    index: &Index,
    found: &RoaringBitmap,
    descending: bool,
    (skip, size): (usize, usize),
) -> Vec<u32> {
    let matches = |doc: &&u32| found.contains(**doc);
    let docs = index.by_order.iter();
    if descending {
        docs.rev().filter(matches).skip(skip).take(size).copied().collect()
    } else {
        docs.filter(matches).skip(skip).take(size).copied().collect()
    }
}

/// Takes the first of all by a column; items without a value come last.
fn by_column(
    column: &Column<i64>,
    found: &RoaringBitmap,
    descending: bool,
    (skip, wanted): (usize, usize),
) -> Vec<u32> {
    // The order of keys is turned round for the latest first; no value is the least of all.
    let places = found.iter().map(|doc| {
        let key = column.get(doc);
        match (descending, key == super::index::NO_DATE) {
            (true, _) => ((key.wrapping_neg().wrapping_sub(1), doc ^ u32::MAX), doc),
            (false, true) => ((i64::MAX, doc), doc),
            (false, false) => ((key, doc), doc),
        }
    });
    least(places, wanted).into_iter().skip(skip).map(|(_, doc)| doc).collect()
}

/// The `wanted` least of `places`, in order; takes memory for twice as many at most.
pub(super) fn least<K: Ord + Copy>(
    places: impl Iterator<Item = Place<K>>,
    wanted: usize,
) -> Vec<Place<K>> {
    if wanted == 0 {
        return Vec::new();
    }
    let room = wanted.saturating_mul(2).max(64);
    let mut kept: Vec<Place<K>> = Vec::with_capacity(room.min(65_536));
    let mut bound: Option<K> = None;
    for place in places {
        if bound.is_some_and(|bound| place.0 >= bound) {
            continue;
        }
        kept.push(place);
        if kept.len() >= room {
            kept.select_nth_unstable_by_key(wanted - 1, |place| place.0);
            kept.truncate(wanted);
            bound = kept.last().map(|place| place.0);
        }
    }
    kept.sort_unstable_by_key(|place| place.0);
    kept.truncate(wanted);
    kept
}
