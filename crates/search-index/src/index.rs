//! Opens the folder of an index and creates snapshots of its commits.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use roaring::RoaringBitmap;
use tantivy::directory::MmapDirectory;
use tantivy::index::SegmentId;
use tantivy::{
    IndexReader, IndexSettings, IndexSortByField, Opstamp, Order, ReloadPolicy, Searcher,
};

use crate::error::Result;
use crate::facet_dictionary::FacetDictionaries;
use crate::schema::{ORDER, SchemaFields, schema, tokenizers};
use crate::segment::{IndexSegment, SegmentColumns};
use crate::sets::SetCache;
use crate::writer::{BUILDING, CommitPosition, FOLLOWING, IndexWriter};

/// An index in a folder; cheap to clone.
#[derive(Clone)]
pub struct SearchIndex {
    inner: Arc<IndexInner>,
}

struct IndexInner {
    engine: tantivy::Index,
    reader: IndexReader,
    shared: Arc<SharedIndexState>,
    current: RwLock<Arc<IndexSnapshot>>,
}

/// State that all commits of an index share.
pub(crate) struct SharedIndexState {
    pub(crate) fields: SchemaFields,
    pub(crate) set_cache: SetCache,
    pub(crate) dictionaries: FacetDictionaries,
    /// The segments of the newest commit.
    segments: Mutex<HashMap<SegmentId, (Option<Opstamp>, IndexSegment)>>,
}

/// The state of an index at one commit.
pub struct IndexSnapshot {
    pub(crate) shared: Arc<SharedIndexState>,
    pub(crate) searcher: Searcher,
    pub(crate) segments: Vec<IndexSegment>,
    position: Option<CommitPosition>,
}

impl SearchIndex {
    /// Creates an index in the existing empty folder `path`. Cached document sets use at most `memory_bytes`.
    pub fn create(path: &Path, memory_bytes: u64) -> Result<Self> {
        let (schema, fields) = schema();
        // Most searches show the latest items first, and a page then reads only the start of a
        // segment.
        let sorting = IndexSortByField { field: ORDER.to_owned(), order: Order::Desc };
        let settings = IndexSettings { sort_by_field: Some(sorting), ..IndexSettings::default() };
        let engine = tantivy::Index::builder().schema(schema).settings(settings);
        let engine = engine.tokenizers(tokenizers()).fast_field_tokenizers(tokenizers());
        let directory = MmapDirectory::open(path).map_err(tantivy::TantivyError::from)?;
        let engine = engine.open_or_create(directory)?;
        Self::from_engine(engine, fields, memory_bytes)
    }

    /// Opens the index in the folder `path`, in constant time.
    ///
    /// Fails if the folder has no index, or if the index has a different format or schema.
    pub fn open(path: &Path, memory_bytes: u64) -> Result<Self> {
        let mut engine = tantivy::Index::open_in_dir(path)?;
        engine.set_tokenizers(tokenizers());
        engine.set_fast_field_tokenizers(tokenizers());
        let (schema, fields) = schema();
        if engine.schema() != schema {
            let message = "the index was built by another version".to_owned();
            return Err(tantivy::TantivyError::SchemaError(message).into());
        }
        Self::from_engine(engine, fields, memory_bytes)
    }

    fn from_engine(
        engine: tantivy::Index,
        fields: SchemaFields,
        memory_bytes: u64,
    ) -> Result<Self> {
        let position = position(&engine)?;
        // A reload on its own would show a commit whose position this process has not read.
        let reader = engine.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader: IndexReader = reader.try_into()?;
        let shared = Arc::new(SharedIndexState {
            fields,
            set_cache: SetCache::new(memory_bytes),
            dictionaries: FacetDictionaries::default(),
            segments: Mutex::default(),
        });
        let current = Arc::new(IndexSnapshot::new(&shared, reader.searcher(), position)?);
        let inner = IndexInner { engine, reader, shared, current: RwLock::new(current) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the only writer of the index. Fails while a different writer exists, in this or any other process.
    pub fn writer(&self) -> Result<IndexWriter> {
        IndexWriter::new(&self.inner.engine, self.inner.shared.fields.clone(), FOLLOWING)
    }

    /// Opens the writer for building an index: faster, with more memory.
    pub fn building_writer(&self) -> Result<IndexWriter> {
        IndexWriter::new(&self.inner.engine, self.inner.shared.fields.clone(), BUILDING)
    }

    /// Makes committed changes visible.
    pub fn refresh(&self) -> Result<()> {
        // The position is read before the reload, so the visible commit is this one or a later one.
        let position = position(&self.inner.engine)?;
        self.inner.reader.reload()?;
        let shared = &self.inner.shared;
        let snapshot =
            Arc::new(IndexSnapshot::new(shared, self.inner.reader.searcher(), position)?);
        *self.inner.current.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        Ok(())
    }

    /// Returns the snapshot of the visible commit.
    pub fn snapshot(&self) -> Arc<IndexSnapshot> {
        Arc::clone(&self.inner.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Verifies the checksum of every file and returns the names of the damaged files. Reads the whole index from
    /// disk.
    pub fn damaged_files(&self) -> Result<Vec<String>> {
        let damaged = self.inner.engine.validate_checksum()?;
        let mut names: Vec<_> = damaged.iter().map(|path| path.display().to_string()).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// Reads the position of the last commit; `None` before the first one.
fn position(engine: &tantivy::Index) -> Result<Option<CommitPosition>> {
    let payload = engine.load_metas()?.payload;
    // A payload of a different version counts as no position, so the caller builds a new index.
    Ok(payload.and_then(|text| serde_json::from_str(&text).ok()))
}

impl IndexSnapshot {
    fn new(
        shared: &Arc<SharedIndexState>,
        searcher: Searcher,
        position: Option<CommitPosition>,
    ) -> Result<Self> {
        let mut previous = shared.segments.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = HashMap::with_capacity(searcher.segment_readers().len());
        let mut segments = Vec::with_capacity(searcher.segment_readers().len());
        for reader in searcher.segment_readers() {
            let id = reader.segment_id();
            let removed = reader.delete_opstamp();
            let segment = match previous.get(&id) {
                // Unchanged since the last commit, deletions included.
                Some((same, segment)) if *same == removed => segment.clone(),
                // Only the live documents differ: columns are immutable, and the values cached with them stay
                // valid.
                changed => {
                    let columns = match changed {
                        Some((_, segment)) => Arc::clone(&segment.columns),
                        None => Arc::new(SegmentColumns::read(reader)?),
                    };
                    IndexSegment { reader: reader.clone(), columns, live: Arc::new(live(reader)) }
                }
            };
            next.insert(id, (removed, segment.clone()));
            segments.push(segment);
        }
        let dropped: HashSet<_> =
            previous.keys().filter(|id| !next.contains_key(id)).copied().collect();
        // Merged segments never return, and their sets would occupy memory of the cache.
        if !dropped.is_empty() {
            shared.set_cache.evict_segments(dropped);
        }
        *previous = next;
        drop(previous);
        Ok(Self { shared: Arc::clone(shared), searcher, segments, position })
    }

    /// Returns the position that was committed with the snapshot; `None` for an index without a commit.
    pub fn position(&self) -> Option<&CommitPosition> {
        self.position.as_ref()
    }

    /// Returns the number of versions in the snapshot.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live.len()).sum()
    }

    /// Returns whether the snapshot contains no versions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the end of the first embargo after `now_ms`, in milliseconds since 1970. Results change at that
    /// time without a commit.
    pub fn next_embargo(&self, now_ms: i64) -> Option<i64> {
        self.segments.iter().filter_map(|segment| segment.next_embargo(now_ms)).min()
    }

    /// Returns the number of each version in the snapshot with its [`stamp`](crate::stamp), in no particular
    /// order.
    pub fn versions(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.segments.iter().flat_map(|segment| {
            let live = segment.live.iter();
            live.map(|doc| (segment.number(doc), segment.stamp(doc))).collect::<Vec<_>>()
        })
    }
}

/// Returns the documents of a segment that were not removed.
fn live(reader: &tantivy::SegmentReader) -> RoaringBitmap {
    let mut live = RoaringBitmap::new();
    live.insert_range(0..reader.max_doc());
    if let Some(alive) = reader.alive_bitset() {
        let removed = (0..reader.max_doc()).filter(|doc| alive.is_deleted(*doc));
        live -= RoaringBitmap::from_sorted_iter(removed).unwrap_or_default();
    }
    live
}
