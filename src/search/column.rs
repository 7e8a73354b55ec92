//! Columns: a value for every item, by the item's number.
//!
//! Numbers rise with every write and those of replaced versions are not used again, so columns lie
//! in chunks of 65,536, the span of one container of a bitmap; a chunk without items takes nothing.

use roaring::RoaringBitmap;

use crate::query::Facet;

/// Items of a chunk.
const CHUNK: usize = 1 << 16;

fn place(doc: u32) -> (usize, usize) {
    let doc = usize::try_from(doc).unwrap_or(usize::MAX);
    (doc / CHUNK, doc % CHUNK)
}

/// The first number of the chunk that `doc` lies in.
pub(super) fn chunk_start(doc: u32) -> u32 {
    doc & !0xffff
}

fn append<C>(chunks: &mut Vec<C>, later: Vec<C>) {
    let known = chunks.len();
    chunks.extend(later.into_iter().skip(known));
}

/// One value for every item.
#[derive(Debug, Default)]
pub(super) struct Column<T> {
    chunks: Vec<Vec<T>>,
    missing: T,
}

impl<T: Copy> Column<T> {
    /// An empty column that gives `missing` for items without a value.
    pub(super) fn new(missing: T) -> Self {
        Self { chunks: Vec::new(), missing }
    }

    pub(super) fn set(&mut self, doc: u32, value: T) {
        let (chunk, at) = place(doc);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Vec::new);
        }
        let chunk = &mut self.chunks[chunk];
        if chunk.len() <= at {
            chunk.resize(at + 1, self.missing);
        }
        chunk[at] = value;
    }

    /// Takes the chunks of `later`, whose items all lie in chunks behind those of `self`.
    pub(super) fn append(&mut self, later: Self) {
        append(&mut self.chunks, later.chunks);
    }

    #[inline]
    pub(super) fn get(&self, doc: u32) -> T {
        let (chunk, at) = place(doc);
        let value = self.chunks.get(chunk).and_then(|chunk| chunk.get(at));
        value.copied().unwrap_or(self.missing)
    }
}

/// Several values for every item: the numbers of a facet's values.
#[derive(Debug, Default)]
pub(super) struct Lists {
    chunks: Vec<ListChunk>,
}

/// `values[ends[at - 1]..ends[at]]` are the values of the item at that place.
#[derive(Debug, Default)]
struct ListChunk {
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl Lists {
    /// Adds the values of `doc`, which comes behind all that were added before.
    pub(super) fn push(&mut self, doc: u32, values: &[u32]) {
        let (chunk, at) = place(doc);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, ListChunk::default);
        }
        let chunk = &mut self.chunks[chunk];
        let end = chunk.ends.last().copied().unwrap_or_default();
        if chunk.ends.len() < at {
            chunk.ends.resize(at, end);
        }
        chunk.values.extend_from_slice(values);
        chunk.ends.push(u32::try_from(chunk.values.len()).unwrap_or(u32::MAX));
    }

    /// Takes the chunks of `later`, whose items all lie in chunks behind those of `self`.
    pub(super) fn append(&mut self, later: Self) {
        append(&mut self.chunks, later.chunks);
    }

    /// Counts the values of all of `docs`, each at the place of its number in `counts`.
    pub(super) fn count(&self, docs: &RoaringBitmap, counts: &mut [u32]) {
        for (number, chunk) in self.chunks.iter().enumerate() {
            if chunk.values.is_empty() {
                continue;
            }
            // Every item of the chunk has a number of 32 bits.
            let Ok(first) = u32::try_from(number * CHUNK) else { return };
            for doc in docs.range(first..=first | 0xffff) {
                for value in chunk.of(place(doc).1) {
                    let at = usize::try_from(*value).unwrap_or(usize::MAX);
                    if let Some(count) = counts.get_mut(at) {
                        *count += 1;
                    }
                }
            }
        }
    }

    /// The values of `doc`.
    #[cfg(test)]
    pub(super) fn of(&self, doc: u32) -> &[u32] {
        let (chunk, at) = place(doc);
        self.chunks.get(chunk).map_or(&[], |chunk| chunk.of(at))
    }
}

impl ListChunk {
    /// The values of the item at the place `at`.
    #[inline]
    fn of(&self, at: usize) -> &[u32] {
        let Some(end) = self.ends.get(at) else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        self.values.get(index(start)..index(*end)).unwrap_or_default()
    }
}

/// One facet of all items.
#[derive(Debug, Default)]
pub(super) struct FacetColumn {
    /// The text of every value, by its number.
    pub(super) values: Vec<String>,
    /// The numbers of every item's values.
    pub(super) lists: Lists,
}

/// The columns of all facets.
pub(super) type FacetColumns = [FacetColumn; Facet::ALL.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_gives_what_was_set_and_else_what_is_missing() {
        let mut column = Column::new(-1);
        column.set(3, 30);
        column.set(200_000, 7);
        let found = [0, 3, 4, 70_000, 199_999, 200_000, 900_000].map(|doc| column.get(doc));
        assert_eq!(found, [-1, 30, -1, -1, -1, 7, -1]);
    }

    #[test]
    fn later_chunks_are_taken_over() {
        let (mut column, mut later) = (Column::new(0), Column::new(0));
        column.set(5, 1);
        later.set(70_000, 2);
        column.append(later);
        assert_eq!([5, 6, 70_000].map(|doc| column.get(doc)), [1, 0, 2]);
        assert_eq!(chunk_start(70_000), 65_536);
    }

    #[test]
    fn lists_keep_each_items_values_apart() {
        let mut lists = Lists::default();
        lists.push(0, &[5]);
        lists.push(2, &[1, 2]);
        lists.push(3, &[]);
        lists.push(65_536, &[9]);
        lists.push(65_539, &[8, 7]);
        let of = |doc| lists.of(doc).to_vec();
        assert_eq!([of(0), of(1), of(2), of(3)], [vec![5], vec![], vec![1, 2], vec![]]);
        assert_eq!([of(65_536), of(65_538), of(65_539)], [vec![9], vec![], vec![8, 7]]);
        assert!([4, 65_540, 1_000_000].iter().all(|doc| of(*doc).is_empty()));
    }
}
