//! What search keeps in memory of an item, as a row of the database.
//!
//! A row is read for every item when the service starts, so it is a flat record: little-endian
//! numbers, one after the other.

use crate::db::DbError;
use crate::item::PubStatus;
use crate::query::{DateField, Facet};
use crate::types::MediaType;

/// What search keeps in memory of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The media type.
    pub media_type: MediaType,
    /// The publication status.
    pub status: PubStatus,
    /// `_tstamp`, milliseconds since 1970 like all times here.
    pub order_ms: i64,
    /// Until when the item is hidden.
    pub embargoed_ms: Option<i64>,
    /// Words of the document; more than fit count as that many.
    pub length: u16,
    /// Numbers of the values of every facet, in the order of [`Facet::ALL`].
    pub facets: [Vec<u32>; Facet::ALL.len()],
    /// The dates that the document has.
    pub dates: Vec<(DateField, i64)>,
}

/// The layout of a row; another one makes the index old.
const VERSION: u8 = 1;

/// The statuses of items that search can find, each at the place that is its code.
const STATUSES: [PubStatus; 3] = [PubStatus::Usable, PubStatus::Replaced, PubStatus::Commissioned];

impl Facts {
    /// The row; `None` for a status that search never finds.
    pub(super) fn pack(&self) -> Option<Vec<u8>> {
        let status = code(&STATUSES, &self.status)?;
        let media_type = code(&MediaType::ALL, &self.media_type)?;
        let mut row = Vec::with_capacity(96);
        row.extend([VERSION, media_type, status]);
        row.extend(self.order_ms.to_le_bytes());
        row.extend(self.embargoed_ms.unwrap_or(i64::MIN).to_le_bytes());
        row.extend(self.length.to_le_bytes());
        for values in &self.facets {
            let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
            row.push(count);
            for value in values.iter().take(usize::from(count)) {
                row.extend(value.to_le_bytes());
            }
        }
        // Each date at most once, so there are fewer than fit a byte.
        row.push(u8::try_from(self.dates.len()).unwrap_or(u8::MAX));
        for (field, ms) in self.dates.iter().take(usize::from(u8::MAX)) {
            row.push(code(&DateField::ALL, field)?);
            row.extend(ms.to_le_bytes());
        }
        Some(row)
    }

    /// What a row is read into.
    fn blank() -> Self {
        Self {
            media_type: MediaType::Image,
            status: PubStatus::Usable,
            order_ms: 0,
            embargoed_ms: None,
            length: 0,
            facets: Default::default(),
            dates: Vec::new(),
        }
    }

    /// Reads a row, using the memory of one that was read before; `None` when it is not one of this
    /// version.
    fn unpack(&mut self, row: &[u8]) -> Option<()> {
        let mut row = Reader(row);
        if row.byte()? != VERSION {
            return None;
        }
        self.media_type = *MediaType::ALL.get(usize::from(row.byte()?))?;
        self.status = *STATUSES.get(usize::from(row.byte()?))?;
        self.order_ms = row.long()?;
        self.embargoed_ms = Some(row.long()?).filter(|ms| *ms != i64::MIN);
        self.length = u16::from_le_bytes(row.array()?);
        for values in &mut self.facets {
            values.clear();
            for _ in 0..row.byte()? {
                values.push(u32::from_le_bytes(row.array()?));
            }
        }
        self.dates.clear();
        for _ in 0..row.byte()? {
            self.dates.push((*DateField::ALL.get(usize::from(row.byte()?))?, row.long()?));
        }
        row.0.is_empty().then_some(())
    }

    pub(super) fn read(doc: u32, row: &[u8]) -> Result<Self, DbError> {
        let mut rows = FactsRows::default();
        rows.read(doc, row)?;
        Ok(rows.0)
    }
}

/// Reads one row after the other into the same memory.
pub(super) struct FactsRows(Facts);

impl Default for FactsRows {
    fn default() -> Self {
        Self(Facts::blank())
    }
}

impl FactsRows {
    pub(super) fn read(&mut self, doc: u32, row: &[u8]) -> Result<&Facts, DbError> {
        let broken = "not a row of this version; `wirephoto reindex` makes it again";
        let damaged = || super::damaged(format!("facts {doc}"), &broken);
        self.0.unpack(row).ok_or_else(damaged)?;
        Ok(&self.0)
    }
}

fn code<T: PartialEq>(all: &[T], one: &T) -> Option<u8> {
    all.iter().position(|known| known == one).and_then(|at| u8::try_from(at).ok())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn long(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> impl Strategy<Value = Facts> {
        let dates = proptest::collection::vec((0..DateField::ALL.len(), any::<i64>()), 0..6);
        let values = || proptest::collection::vec(any::<u32>(), 0..5);
        let facets = [values(), values(), values(), values(), values()];
        let order = (any::<i64>(), proptest::option::of(0..i64::MAX), any::<u16>());
        (0..9_usize, 0..3_usize, order, facets, dates).prop_map(
            |(media_type, status, (order_ms, embargoed_ms, length), facets, dates)| Facts {
                media_type: MediaType::ALL[media_type],
                status: STATUSES[status],
                order_ms,
                embargoed_ms,
                length,
                facets,
                dates: dates.into_iter().map(|(at, ms)| (DateField::ALL[at], ms)).collect(),
            },
        )
    }

    proptest! {
        #[test]
        fn ok_a_row_reads_as_it_was_written(facts in facts()) {
            let row = facts.pack().unwrap();
            let mut read = Facts::blank();
            prop_assert_eq!(read.unpack(&row), Some(()));
            prop_assert_eq!(&read, &facts);
            prop_assert_eq!(read.unpack(&row[..row.len() - 1]), None);
        }

        #[test]
        fn any_bytes_are_a_row_or_refused(row in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut read = Facts::blank();
            prop_assert!(read.unpack(&row).is_none() || read.pack().is_some());
        }
    }
}
