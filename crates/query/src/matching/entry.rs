//! The compact form of an interest, as numbers.

use super::intern_table::index_of;

/// Maximum number of numbers that an entry stores inline. Most interests need no more, and an entry fits into one
/// cache line.
const INLINE: usize = 7;

/// An interest in compact form.
pub(super) struct InterestEntry {
    pub(super) number: i64,
    data: EntryNumbers,
    products: u32,
    excluded: u32,
    agreements: u32,
    keys: u16,
    /// The media type of the interest as a number, or [`EVERY_TYPE`](super::leaf::EVERY_TYPE).
    pub(super) media_type: u8,
    pub(super) key_kind: IndexKeyKind,
    /// True if one of the agreements has to cover the item.
    pub(super) needs_coverage: bool,
}

/// The numbers of an entry in order: index keys, places in the lists of these keys, product codes, excluded
/// product codes, agreements, program of the query.
enum EntryNumbers {
    Inline(u8, [u32; INLINE]),
    Boxed(Box<[u32]>),
}

/// The kind of keys under which an interest is filed.
#[derive(Clone, Copy)]
pub(super) enum IndexKeyKind {
    /// Tokens of the interest's query.
    Tokens,
    /// Tokens of the interest's query; any one of them suffices for the query to match.
    DecidingTokens,
    Products,
    Agreements,
    MediaType,
}

/// The conditions of an interest besides its media type, as numbers.
#[derive(Clone, Copy)]
pub(super) struct EntryConditions<'a> {
    pub(super) products: &'a [u32],
    pub(super) excluded: &'a [u32],
    pub(super) agreements: &'a [u32],
    pub(super) program: &'a [u32],
}

impl InterestEntry {
    /// Creates an entry filed under `postings`: pairs of a key and the place in the key's list.
    pub(super) fn new(
        number: i64,
        media_type: u8,
        key_kind: IndexKeyKind,
        postings: &[(u32, u32)],
        needs_coverage: bool,
        conditions: EntryConditions<'_>,
    ) -> Self {
        let EntryConditions { products, excluded, agreements, program } = conditions;
        let (keys, places): (Vec<u32>, Vec<u32>) = postings.iter().copied().unzip();
        // One list for all numbers: an entry of one cache line has no room for six vectors.
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
            keys: u16::try_from(postings.len()).expect("no more keys than the limit"),
            media_type,
            key_kind,
            needs_coverage,
        }
    }

    fn data(&self) -> &[u32] {
        match &self.data {
            EntryNumbers::Inline(count, numbers) => &numbers[..usize::from(*count)],
            EntryNumbers::Boxed(numbers) => numbers,
        }
    }

    /// Returns the index keys of the entry, each with the entry's place in the key's list.
    pub(super) fn index_keys(&self) -> impl Iterator<Item = (u32, u32)> {
        let (keys, rest) = self.data().split_at(usize::from(self.keys));
        keys.iter().copied().zip(rest.iter().copied())
    }

    /// Updates the entry's place in the list of one of its keys.
    pub(super) fn set_place(&mut self, which: u16, place: u32) {
        let index = usize::from(self.keys) + usize::from(which);
        match &mut self.data {
            EntryNumbers::Inline(_, numbers) => numbers[index] = place,
            EntryNumbers::Boxed(numbers) => numbers[index] = place,
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
    u32::try_from(count).expect("memory is exhausted before")
}
