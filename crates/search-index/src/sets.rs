//! Caches sets of documents and facet counts per segment, and builds such sets.

use std::collections::HashSet;
use std::sync::Arc;

use model::item::PubStatus;
use model::{ItemId, MediaType, PictureHash};
use query::{DateRange, Facet, NumericRange, TextField, WordPattern};
use roaring::RoaringBitmap;
use tantivy::index::SegmentId;

/// A condition whose documents are cached. They depend only on the condition and the content of the segment, which
/// never changes: a removed document stays in its segment and is only marked, so a cached set may contain it. That is
/// harmless: searches intersect the set with the live documents, and ranking only estimates frequencies from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FilterCondition {
    Words(WordPattern),
    Dates(DateRange),
    Numbers(NumericRange),
    Present(TextField),
    Item(ItemId),
    /// A value of a facet, compared whole and case-sensitively, as it is spelled in the facet counts.
    Value(Facet, String),
    MediaType(MediaType),
    /// A picture that looks nearly like the picture with this hash.
    Near(PictureHash),
    Status(PubStatus),
    /// At least one of these product codes, which are sorted.
    Products(Arc<[String]>),
}

impl FilterCondition {
    /// Estimates the memory of the condition's texts in bytes, for a key of the cache.
    fn size_bytes(&self) -> usize {
        // A word is stored without accents and, if it has any, also with them; 64 and 24 bytes stand for the strings'
        // headers and allocations.
        match self {
            Self::Words(words) => words.words.iter().map(|word| word.folded.len() * 2 + 64).sum(),
            Self::Products(codes) => codes.iter().map(|code| code.len() + 24).sum(),
            Self::Item(id) => id.as_str().len(),
            Self::Value(_, value) => value.len(),
            Self::Dates(_)
            | Self::Numbers(_)
            | Self::Present(_)
            | Self::MediaType(_)
            | Self::Near(_)
            | Self::Status(_) => 0,
        }
    }
}

/// Overhead in bytes of a cache entry besides the set.
const ENTRY_BYTES: usize = 250;

/// The cache of documents per condition and segment, and of facet counts. The least used entries are evicted.
pub(crate) struct SetCache {
    sets: moka::sync::Cache<(SegmentId, FilterCondition), Arc<RoaringBitmap>>,
    pub(crate) facets: FacetCountCache,
}

/// Facet counts may use this part of the budget: one in four bytes.
const FACETS_DIVISOR: u64 = 4;

impl SetCache {
    /// Creates a cache of at most `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let facets_bytes = bytes / FACETS_DIVISOR;
        let sets = moka::sync::Cache::builder().max_capacity(bytes - facets_bytes);
        let sets = sets.weigher(weigh_set).support_invalidation_closures().build();
        Self { sets, facets: FacetCountCache::new(facets_bytes) }
    }

    /// Evicts the entries of the `removed` segments, which no longer exist.
    pub(crate) fn evict_segments(&self, removed: HashSet<SegmentId>) {
        self.facets.evict_counts(removed.clone());
        // An error would mean that invalidation closures are disabled, but the builder enables them.
        drop(self.sets.invalidate_entries_if(move |(id, _), _| removed.contains(id)));
    }

    /// Returns the documents of `condition` in a segment, computed by `compute` on a cache miss.
    pub(crate) fn get_or_insert<E>(
        &self,
        segment: SegmentId,
        condition: FilterCondition,
        compute: impl FnOnce(&FilterCondition) -> Result<RoaringBitmap, E>,
    ) -> Result<Arc<RoaringBitmap>, E> {
        let key = (segment, condition);
        if let Some(set) = self.sets.get(&key) {
            return Ok(set);
        }
        // A search that runs out of time returns here, so no incomplete set is cached.
        let set = Arc::new(compute(&key.1)?);
        self.sets.insert(key, Arc::clone(&set));
        Ok(set)
    }
}

/// Returns the memory of an entry of the set cache in bytes.
fn weigh_set(key: &(SegmentId, FilterCondition), set: &Arc<RoaringBitmap>) -> u32 {
    let (_, condition) = key;
    // The serialized size is close to the size in memory, and cheap to compute.
    let bytes = set.serialized_size() + condition.size_bytes() + ENTRY_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A set of documents with its counts for one facet.
struct CachedCounts {
    set: RoaringBitmap,
    /// The number of documents of `set` for each value of the facet, in the order of the segment's dictionary.
    counts: Arc<Vec<u32>>,
}

/// Returns the memory of an entry of the cache of counts in bytes.
fn weigh_counts(_key: &(SegmentId, Facet, u64), cached: &Arc<CachedCounts>) -> u32 {
    let bytes = cached.set.serialized_size() + cached.counts.len() * 4 + ENTRY_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A cache of the facet counts of large sets.
///
/// The key has only the size of a set. The entry has the set itself, and serves only an equal set. So queries with the
/// same result share an entry, and of several sets of one size only the latest is cached for a segment and facet.
pub(crate) struct FacetCountCache {
    /// By segment, facet and number of documents of the set.
    counts: moka::sync::Cache<(SegmentId, Facet, u64), Arc<CachedCounts>>,
}

impl FacetCountCache {
    /// The minimum number of documents of a cached set. Below it, counting again is faster than comparing sets.
    const DOCS_MIN: u64 = 5000;

    /// Creates a cache of at most `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let counts = moka::sync::Cache::builder().max_capacity(bytes);
        let counts = counts.weigher(weigh_counts);
        Self { counts: counts.support_invalidation_closures().build() }
    }

    /// Evicts the counts of the `removed` segments.
    fn evict_counts(&self, removed: HashSet<SegmentId>) {
        drop(self.counts.invalidate_entries_if(move |(id, ..), _| removed.contains(id)));
    }

    /// Returns the counts of `facet` in `set`, computed by `compute` on a cache miss.
    pub(crate) fn get_or_count<E>(
        &self,
        segment: SegmentId,
        facet: Facet,
        set: &RoaringBitmap,
        compute: impl FnOnce() -> Result<Vec<u32>, E>,
    ) -> Result<Arc<Vec<u32>>, E> {
        let size = set.len();
        if size < Self::DOCS_MIN {
            return Ok(Arc::new(compute()?));
        }
        let key = (segment, facet, size);
        if let Some(cached) = self.counts.get(&key).filter(|cached| cached.set == *set) {
            return Ok(Arc::clone(&cached.counts));
        }
        let counts = Arc::new(compute()?);
        let cached = CachedCounts { set: set.clone(), counts: Arc::clone(&counts) };
        self.counts.insert(key, Arc::new(cached));
        Ok(counts)
    }
}

/// Collects documents of a segment, in any order and with repetitions, into one set.
pub(crate) struct SetBuilder {
    /// The number of documents of the segment, including removed ones, as in Tantivy; document numbers are below it.
    max_doc: u32,
    /// The added documents, in the order of the calls, while they are few; empty once `dense` has them.
    sparse: Vec<u32>,
    /// Many documents, as one bit for each document of the segment.
    dense: Option<Vec<u8>>,
}

/// A bitmap is faster than sorting for more than one in 64 documents of a segment.
const DENSE_DIVISOR: usize = 64;

impl SetBuilder {
    pub(crate) fn new(max_doc: u32) -> Self {
        Self { max_doc, sparse: Vec::new(), dense: None }
    }

    /// Adds documents of the segment.
    pub(crate) fn add(&mut self, docs: &[u32]) {
        if let Some(bits) = &mut self.dense {
            set_bits(bits, docs);
            return;
        }
        self.sparse.extend_from_slice(docs);
        if self.sparse.len() > usize_of(self.max_doc) / DENSE_DIVISOR {
            // From here on, memory no longer grows with the documents, and nothing needs sorting.
            let mut bits = vec![0; usize_of(self.max_doc).div_ceil(8)];
            set_bits(&mut bits, &self.sparse);
            self.sparse = Vec::new();
            self.dense = Some(bits);
        }
    }

    /// Returns the set of all documents that were added.
    pub(crate) fn finish(mut self) -> RoaringBitmap {
        match self.dense {
            Some(bits) => RoaringBitmap::from_lsb0_bytes(0, &bits),
            None => {
                self.sparse.sort_unstable();
                self.sparse.dedup();
                RoaringBitmap::from_sorted_iter(self.sparse).unwrap_or_default()
            }
        }
    }
}

fn set_bits(bits: &mut [u8], docs: &[u32]) {
    for doc in docs {
        if let Some(byte) = bits.get_mut(usize_of(*doc >> 3)) {
            *byte |= 1 << (doc & 7);
        }
    }
}

/// Converts a document number to a slice index.
pub(crate) fn usize_of(doc: u32) -> usize {
    usize::try_from(doc).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_documents_give_the_same_set() {
        for count in [3, 40, 5000] {
            let lists: Vec<Vec<u32>> =
                (1..4).map(|step| (0..count).map(|doc| doc * step % 6000).collect()).collect();
            let mut builder = SetBuilder::new(6000);
            lists.iter().for_each(|list| builder.add(list));
            let expected: RoaringBitmap = lists.concat().into_iter().collect();
            assert_eq!(builder.finish(), expected, "{count}");
        }
    }
}
