//! An interest as numbers.

use super::intern_table::index_of;

/// Numbers that an entry holds in itself; most interests have no more, and with so many an entry
/// is one line of the processor's cache.
const INLINE: usize = 7;

/// An interest as numbers.
pub(super) struct InterestEntry {
    /// The caller's number.
    pub(super) number: i64,
    data: EntryNumbers,
    products: u32,
    excluded: u32,
    agreements: u32,
    keys: u16,
    /// The only media type it is about, as a number, or
    /// [`EVERY_TYPE`](super::leaf::EVERY_TYPE).
    pub(super) media_type: u8,
    pub(super) key_kind: IndexKeyKind,
    pub(super) coverage_rule: CoverageRule,
}

/// What it is filed under, the place in the list of each, product codes, excluded ones,
/// agreements, the query.
enum EntryNumbers {
    Inline(u8, [u32; INLINE]),
    Boxed(Box<[u32]>),
}

/// What an interest is filed under.
#[derive(Clone, Copy)]
pub(super) enum IndexKeyKind {
    /// Tokens of its query.
    Tokens,
    /// Tokens, and whatever item has one of them satisfies its query.
    DecidingTokens,
    Products,
    Agreements,
    MediaType,
}

/// Whether an interest asks for agreements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CoverageRule {
    Everything,
    Covered,
}

/// What an item must have besides its media type, each as numbers.
#[derive(Clone, Copy)]
pub(super) struct EntryConditions<'a> {
    pub(super) products: &'a [u32],
    pub(super) excluded: &'a [u32],
    pub(super) agreements: &'a [u32],
    pub(super) program: &'a [u32],
}

impl InterestEntry {
    /// One under these keys, in the list of each of which it lies at this place.
    pub(super) fn new(
        number: i64,
        media_type: u8,
        under: IndexKeyKind,
        filed: &[(u32, u32)],
        asks: CoverageRule,
        conditions: EntryConditions<'_>,
    ) -> Self {
        let EntryConditions { products, excluded, agreements, program } = conditions;
        let (keys, places): (Vec<u32>, Vec<u32>) = filed.iter().copied().unzip();
        let all = [&keys, &places, products, excluded, agreements, program].concat();
        let mut inline = [0; INLINE];
        let data = match (inline.get_mut(..all.len()), u8::try_from(all.len())) {
            (Some(part), Ok(count)) => {
                part.copy_from_slice(&all);
                EntryNumbers::Inline(count, inline)
            }
            _ => EntryNumbers::Boxed(all.into()),
        };
        Self {
            number,
            data,
            products: length(products.len()),
            excluded: length(excluded.len()),
            agreements: length(agreements.len()),
            keys: u16::try_from(filed.len()).expect("no more keys than the limit"),
            media_type,
            key_kind: under,
            coverage_rule: asks,
        }
    }

    fn data(&self) -> &[u32] {
        match &self.data {
            EntryNumbers::Inline(count, numbers) => &numbers[..usize::from(*count)],
            EntryNumbers::Boxed(numbers) => numbers,
        }
    }

    /// What it is filed under, with the place in the list of each.
    pub(super) fn index_keys(&self) -> impl Iterator<Item = (u32, u32)> {
        let (keys, rest) = self.data().split_at(usize::from(self.keys));
        keys.iter().copied().zip(rest.iter().copied())
    }

    /// Notes where it lies in the list of one of its keys.
    pub(super) fn set_place(&mut self, which: u16, place: u32) {
        let at = usize::from(self.keys) + usize::from(which);
        match &mut self.data {
            EntryNumbers::Inline(_, numbers) => numbers[at] = place,
            EntryNumbers::Boxed(numbers) => numbers[at] = place,
        }
    }

    pub(super) fn conditions(&self) -> EntryConditions<'_> {
        let data = &self.data()[2 * usize::from(self.keys)..];
        let (products, rest) = data.split_at(index_of(self.products));
        let (excluded, rest) = rest.split_at(index_of(self.excluded));
        let (agreements, program) = rest.split_at(index_of(self.agreements));
        EntryConditions { products, excluded, agreements, program }
    }
}

pub(super) fn length(count: usize) -> u32 {
    u32::try_from(count).expect("memory ends before")
}
