//! What was found of words, remembered.
//!
//! Numbers of items only rise, so what was found up to a number stays true; only what came in
//! since is looked up anew. Versions that are gone stay in the bitmaps and are taken out of every
//! result together.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::db::{DbError, Lookup, ReadTx};

/// The items that hold some words.
#[derive(Debug)]
struct Known {
    docs: Arc<RoaringBitmap>,
    /// The last number that was looked at.
    upto: u32,
}

/// Bytes beside the bitmap that one entry takes.
const ENTRY_BYTES: usize = 200;

/// Remembers what look-ups found.
pub(super) struct Leaves {
    known: moka::sync::Cache<Lookup, Arc<Known>>,
}

impl Leaves {
    /// Remembers at most `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        let weigh = |lookup: &Lookup, known: &Arc<Known>| {
            let bytes = known.docs.serialized_size() + lookup.size_bytes() + ENTRY_BYTES;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self { known: moka::sync::Cache::builder().max_capacity(bytes).weigher(weigh).build() }
    }

    /// The items that `lookup` finds at the state of `tx`, whose log ends at `seq`; and some that
    /// are gone. The index was made at `whole_at`.
    pub(super) fn find(
        &self,
        tx: &ReadTx<'_>,
        (seq, whole_at): (u32, u32),
        lookup: &Lookup,
    ) -> Result<Arc<RoaringBitmap>, DbError> {
        // What a search found in an index that was made anew meanwhile is not believed.
        let known = self.known.get(lookup).filter(|known| known.upto >= whole_at);
        let (docs, upto) = match known {
            // A search that began before another one may find more than it sees: its own items
            // are those up to `seq`, which the caller restricts every result to.
            Some(known) if known.upto >= seq => return Ok(Arc::clone(&known.docs)),
            Some(known) => (Arc::clone(&known.docs), known.upto),
            None => (Arc::default(), 0),
        };
        let mut new = RoaringBitmap::new();
        let mut failed = false;
        tx.each_doc(lookup, upto, |doc| failed |= new.try_push(doc).is_err())?;
        debug_assert!(!failed, "numbers rise");
        let docs = if new.is_empty() { docs } else { Arc::new(&*docs | &new) };
        let known = Known { docs: Arc::clone(&docs), upto: seq };
        self.known.insert(lookup.clone(), Arc::new(known));
        Ok(docs)
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.known.invalidate_all();
    }
}
