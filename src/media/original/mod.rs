//! Originals with their derived files.
//!
//! An original is never modified. Three derived files, which can be rebuilt at any time, are stored next to it:
//! the *side file* with the index and the checksums of the original's blocks (`facts`), a *working copy* if the
//! original does not allow random access, and the *standard set* with its small renditions. [`OriginalStore`]
//! creates the first two at ingest. It rebuilds a file that is missing, damaged or of an older version.
//! [`Media`](crate::media::Media) makes the set, soon after ingest or when it is needed.
//!
//! Every read is verified, of whole files too: the checksums of its blocks must match. A modified original causes
//! [`OriginalError::Changed`], never a wrong picture.

mod checksums;
mod facts;
mod open;
mod picture;
pub(super) mod picture_hash;
mod prepare;
mod reading;
mod standard_set;

use std::{ops::Range, path::Path, sync::Arc};

use moka::sync::Cache;
use strum::IntoEnumIterator;

use crate::runtime::telemetry;
use crate::storage::blobs::{
    BlobReader, BlobStore, DerivedKind, DerivedStore, NewBlobs, StoreError, StoreResult,
};
pub use checksums::BLOCK_BYTES;
use checksums::BlockChecksums;
use facts::{OriginalFacts, RandomAccess};
use imaging::{ImageFormat, ParallelMap, ShouldContinue, in_sequence};
use jpeg::header::{HeaderError, HeaderLimits, JpegHeader};
use model::{ContentHash, PictureHash};
pub use open::OpenOriginal;
pub use picture::{IndexedPicture, JpegHead};
use prepare::{PrepareRequest, PreparedOriginal};
use reading::{hash_and_sums, index_after, read_blocks};
pub use standard_set::{StandardPicture, StandardSet};

/// Delay before derived files that could not be written are rebuilt, which takes a whole decode. Until
/// then the original is used without them.
const DERIVED_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of cached scan indexes and checksums; a 100-megapixel original has 250 kB of them.
const INDEX_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of a side file; the side file of the largest original has a tenth of them.
const SIDE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The reason why a file that is not a JPEG has no random access.
const NO_PICTURE: &str = "it is not a picture";

/// The reason why an original or a derived file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OriginalError {
    /// The store failed, or has no such original.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bytes are no longer the stored bytes.
    #[error("original {0} was changed after ingest")]
    Changed(ContentHash),
    /// A derived file is damaged; it can be rebuilt.
    #[error("the {} file of original {hash} is damaged", kind.as_str())]
    Derived { kind: DerivedKind, hash: ContentHash },
    /// The original's markers cannot be parsed.
    #[error(transparent)]
    Header(#[from] HeaderError),
}

impl OriginalError {
    /// Returns whether the disk or the bucket failed, so that a retry may succeed. False if the data itself is at
    /// fault.
    pub fn is_resource(&self) -> bool {
        matches!(
            self,
            Self::Store(
                StoreError::Io { .. }
                    | StoreError::Unavailable { .. }
                    | StoreError::OtherArchive { .. }
            )
        )
    }

    /// Returns whether a derived file is damaged. It can be rebuilt.
    pub fn is_derived(&self) -> bool {
        matches!(self, Self::Derived { .. })
    }

    /// Returns whether the original is missing or modified.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Changed(_)
                | Self::Store(
                    StoreError::Missing(_) | StoreError::Length { .. } | StoreError::Corrupted(_)
                )
        )
    }
}

/// A picture to store.
pub struct NewOriginal<'a> {
    /// The bytes of the file.
    pub bytes: &'a [u8],
    /// The header that was parsed from the file.
    pub header: &'a JpegHeader,
    /// The EXIF orientation for the perceptual hash; `None` if no hash is needed.
    pub hash_orientation: Option<u8>,
}

/// The result of storing a picture.
#[derive(Debug)]
pub struct StoredOriginal {
    /// The key of the original.
    pub hash: ContentHash,
    /// The reason why the picture can only be decoded as a whole; `None` if it allows random access.
    pub whole_decode_reason: Option<String>,
    /// True if the picture was decoded, at a reduced size.
    pub decoded: bool,
    /// The decoder's warning, if any.
    pub warning: Option<String>,
    /// True if the picture has no colours; `None` if its index does not say.
    pub is_grey: Option<bool>,
    /// The perceptual hash of the upright picture; `None` if it has nearly no contrast or no random access.
    pub picture_hash: Option<PictureHash>,
}

/// A fault that [`OriginalStore::check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginalFault {
    /// The store has no blob with this hash.
    Missing,
    /// The blob's bytes do not match its hash or length.
    Changed,
    /// A derived file is damaged or outdated, or a required one is missing.
    Derived(DerivedKind),
}

/// Stores originals together with their derived files.
#[derive(Clone)]
pub struct OriginalStore {
    /// The store of the originals themselves.
    pub store: BlobStore,
    /// The store of the derived files.
    pub derived: DerivedStore,
    limits: HeaderLimits,
    facts_cache: Cache<ContentHash, Arc<OriginalFacts>>,
    /// Facts of originals whose derived files could not be written; expire after [`DERIVED_RETRY_DELAY`].
    incomplete: Cache<ContentHash, Arc<OriginalFacts>>,
}

/// Returns the weight of facts in a cache: their size in bytes.
fn weigh_facts(_: &ContentHash, facts: &Arc<OriginalFacts>) -> u32 {
    u32::try_from(facts.weight()).unwrap_or(u32::MAX)
}

impl OriginalStore {
    /// Creates the store; `limits` apply to the marker parser.
    pub fn new(store: BlobStore, derived: DerivedStore, limits: HeaderLimits) -> Self {
        let facts_cache =
            Cache::builder().max_capacity(INDEX_CACHE_BYTES).weigher(weigh_facts).build();
        let incomplete = Cache::builder()
            .max_capacity(INDEX_CACHE_BYTES)
            .weigher(weigh_facts)
            .time_to_live(DERIVED_RETRY_DELAY)
            .build();
        Self { store, derived, limits, facts_cache, incomplete }
    }

    /// Returns a handle of the same originals, and a list. The list receives the originals that the handle adds to
    /// the store.
    pub fn listing_new(&self) -> (Self, NewBlobs) {
        let (store, new_blobs) = self.store.listing_new();
        (Self { store, ..self.clone() }, new_blobs)
    }

    /// Stores an original and its derived files.
    ///
    /// When this returns, the original is durable on disk. A derived file that cannot be written is
    /// logged and rebuilt later. Returns `None`, and derives nothing, once `should_continue` is false.
    pub fn store_new(
        &self,
        new: &NewOriginal<'_>,
        parallel_map: ParallelMap<'_>,
        should_continue: ShouldContinue<'_>,
    ) -> StoreResult<Option<StoredOriginal>> {
        let length = new.bytes.len() as u64;
        // In parallel: hashing and writing wait for the disk, and deriving needs a core.
        let (hash, prepared) = std::thread::scope(|scope| {
            let writing = scope.spawn(|| self.store.write(new.bytes));
            let request =
                PrepareRequest { new, limits: &self.limits, parallel_map, should_continue };
            let prepared = prepare::prepare(&request);
            let written = writing.join().unwrap_or_else(|_| {
                let cause = std::io::Error::other("the writer panicked");
                Err(StoreError::Io { path: "store".to_owned(), cause })
            });
            written.map(|hash| (hash, prepared))
        })?;
        let stamp = self.store.reader(hash, length)?.stamp;
        let Some(prepared) = prepared else { return Ok(None) };
        let whole_decode_reason = match &prepared.facts.random_access {
            RandomAccess::None(reason) => Some(reason.clone()),
            RandomAccess::Original(_) | RandomAccess::Working(_) => None,
        };
        let warning = prepared.warning.clone();
        let PreparedOriginal { decoded, is_grey, picture_hash, .. } = prepared;
        self.store_derived(hash, stamp, prepared);
        Ok(Some(StoredOriginal {
            hash,
            whole_decode_reason,
            decoded,
            warning,
            is_grey,
            picture_hash,
        }))
    }

    /// Returns the peak memory of [`OriginalStore::store_new`] in bytes, in addition to a file of `length` bytes.
    pub fn memory_bytes(&self, header: &JpegHeader, length: u64) -> u64 {
        prepare::memory_bytes(header, length)
    }

    /// Stores a file that is not a picture, piece by piece, and returns its hash and length.
    ///
    /// When this returns, the file is durable on disk.
    pub fn store_file(&self, source: &Path) -> StoreResult<(ContentHash, u64)> {
        let mut sums = BlockChecksums::default();
        let (hash, length) = self.store.copy(source, &mut |piece| sums.extend(piece))?;
        let stamp = self.store.reader(hash, length)?.stamp;
        self.store_derived(hash, stamp, opaque(length, sums));
        Ok((hash, length))
    }

    /// Stores bytes in memory that are not a picture.
    pub fn store_bytes(&self, bytes: &[u8]) -> StoreResult<ContentHash> {
        let hash = self.store.write(bytes)?;
        let length = bytes.len() as u64;
        let stamp = self.store.reader(hash, length)?.stamp;
        self.store_derived(hash, stamp, opaque(length, BlockChecksums::for_bytes(bytes)));
        Ok(hash)
    }

    /// Writes the derived files of the original `hash`, the side file last, and caches the facts. `stamp` is the
    /// stamp of the original's file.
    ///
    /// If one cannot be written, the original is used without it for [`DERIVED_RETRY_DELAY`].
    fn store_derived(
        &self,
        hash: ContentHash,
        stamp: u64,
        mut prepared: PreparedOriginal,
    ) -> Arc<OriginalFacts> {
        prepared.facts.source = hash;
        prepared.facts.stamp = stamp;
        let side_file = prepared.facts.print();
        let is_put = self.put(DerivedKind::Working, hash, prepared.working.as_deref());
        if !is_put && prepared.working.is_some() {
            prepared.facts.random_access =
                RandomAccess::None("its working copy cannot be stored".to_owned());
            prepared.facts.is_incomplete = true;
            let facts = Arc::new(prepared.facts);
            self.incomplete.insert(hash, Arc::clone(&facts));
            return facts;
        }
        self.incomplete.invalidate(&hash);
        // Written last: a side file implies that the files it describes exist.
        self.put(DerivedKind::Index, hash, Some(&side_file));
        if let RandomAccess::None(reason) = &prepared.facts.random_access
            && reason != NO_PICTURE
        {
            metrics::counter!(telemetry::NOT_INDEXED).increment(1);
            tracing::info!(original = %hash, "no random access, renders decode the whole picture: {reason}");
        }
        let facts = Arc::new(prepared.facts);
        self.facts_cache.insert(hash, Arc::clone(&facts));
        facts
    }

    /// Writes or removes a derived file; logs a failure and returns whether it succeeded.
    fn put(&self, kind: DerivedKind, hash: ContentHash, file: Option<&[u8]>) -> bool {
        let result = match file {
            Some(bytes) => self.derived.write(kind, hash, bytes),
            // An earlier derivation may have had this file.
            None => self.derived.remove(kind, hash),
        };
        if let Err(cause) = &result {
            tracing::warn!("derived file not stored: {cause}");
        }
        result.is_ok()
    }

    /// Opens an original of `length` bytes, and rebuilds its derived files if necessary.
    pub fn open(
        &self,
        hash: ContentHash,
        length: u64,
        parallel_map: ParallelMap<'_>,
    ) -> Result<OpenOriginal, OriginalError> {
        if let Some(original) = self.open_derived(hash, length)? {
            return Ok(original);
        }
        let reader = Arc::new(self.store.reader(hash, length)?);
        let facts = self.rebuild(hash, length, parallel_map)?;
        Ok(OpenOriginal { originals: self.clone(), facts, reader })
    }

    /// Reads the facts from the side file; `None` if the file is damaged, has a different version, or was written
    /// with different settings.
    ///
    /// Fails if the bucket of the side file does not answer.
    fn read_facts(
        &self,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<Option<Arc<OriginalFacts>>> {
        let mut facts = self.read_side_file(hash, length)?;
        // The damaged or outdated file may be a local copy, so read it once more from the store.
        if facts.is_none() && self.derived.invalidate(hash) {
            facts = self.read_side_file(hash, length)?;
        }
        let facts = facts.map(Arc::new);
        if let Some(facts) = &facts {
            self.facts_cache.insert(hash, Arc::clone(facts));
        }
        Ok(facts)
    }

    fn read_side_file(
        &self,
        hash: ContentHash,
        length: u64,
    ) -> StoreResult<Option<OriginalFacts>> {
        let file = match self.derived.read(DerivedKind::Index, hash, SIDE_FILE_BYTES_MAX) {
            Err(unavailable @ StoreError::Unavailable { .. }) => return Err(unavailable),
            // A side file that cannot be read is treated as missing.
            Err(_) => return Ok(None),
            Ok(file) => file,
        };
        let facts = file.and_then(|file| OriginalFacts::parse(&file));
        Ok(facts.filter(|facts| facts.source == hash && facts.length == length))
    }

    /// Rebuilds the derived files of an original.
    ///
    /// Fails with [`OriginalError::Changed`] if the bytes do not match the hash.
    pub fn rebuild_files(
        &self,
        hash: ContentHash,
        length: u64,
        parallel_map: ParallelMap<'_>,
    ) -> Result<(), OriginalError> {
        self.rebuild(hash, length, parallel_map).map(drop)
    }

    fn rebuild(
        &self,
        hash: ContentHash,
        length: u64,
        parallel_map: ParallelMap<'_>,
    ) -> Result<Arc<OriginalFacts>, OriginalError> {
        self.facts_cache.invalidate(&hash);
        let reader = self.store.reader(hash, length)?;
        let stamp = reader.stamp;
        if !starts_like_a_jpeg(&reader)? {
            // A video may exceed the memory, so the file is hashed piece by piece.
            let (found, sums) = hash_and_sums(&reader)?;
            if found != hash {
                return Err(OriginalError::Changed(hash));
            }
            metrics::counter!(telemetry::INDEX_REBUILDS).increment(1);
            return Ok(self.store_derived(hash, stamp, opaque(length, sums)));
        }
        let bytes = self.store.read(hash, length)?;
        if ContentHash::new(&bytes) != hash {
            return Err(OriginalError::Changed(hash));
        }
        let header = JpegHeader::parse(&bytes, &self.limits)?;
        let new = NewOriginal { bytes: &bytes, header: &header, hash_orientation: None };
        let limits = &self.limits;
        let should_continue = &|| true;
        let request = PrepareRequest { new: &new, limits, parallel_map, should_continue };
        metrics::counter!(telemetry::INDEX_REBUILDS).increment(1);
        tracing::info!(original = %hash, "rebuilding derived files");
        // The callback always returns true, so `None` does not occur.
        prepare::prepare(&request)
            .map(|prepared| self.store_derived(hash, stamp, prepared))
            .ok_or(OriginalError::Changed(hash))
    }

    /// Verifies an original and its derived files, byte for byte.
    pub fn check(&self, hash: ContentHash, length: u64) -> StoreResult<Vec<OriginalFault>> {
        // Drops cached copies and facts, so that the stored bytes are verified.
        self.store.invalidate(hash);
        self.derived.invalidate(hash);
        match self.store.reader(hash, length).and_then(|reader| hash_and_sums(&reader)) {
            Err(StoreError::Missing(_)) => return Ok(vec![OriginalFault::Missing]),
            Err(StoreError::Length { .. }) => return Ok(vec![OriginalFault::Changed]),
            Err(other) => return Err(other),
            Ok((found, _)) if found != hash => return Ok(vec![OriginalFault::Changed]),
            Ok(_) => {}
        }
        self.facts_cache.invalidate(&hash);
        let mut found = Vec::new();
        match self.read_facts(hash, length)? {
            None => found.push(OriginalFault::Derived(DerivedKind::Index)),
            Some(facts) if self.is_working_copy_intact(&facts)? => {}
            Some(_) => found.push(OriginalFault::Derived(DerivedKind::Working)),
        }
        if self.is_standard_set_damaged(hash)? {
            found.push(OriginalFault::Derived(DerivedKind::Standard));
        }
        Ok(found)
    }

    /// Returns whether the working copy matches its description in the side file. True if none is described.
    fn is_working_copy_intact(&self, facts: &OriginalFacts) -> StoreResult<bool> {
        let RandomAccess::Working(working) = &facts.random_access else { return Ok(true) };
        let file = self.derived.read(DerivedKind::Working, facts.source, working.length)?;
        Ok(file.is_some_and(|file| {
            file.len() as u64 == working.length && working.checksums.matches(0, &file)
        }))
    }

    /// Lists all derived files in the store.
    pub fn list_derived(&self) -> StoreResult<Vec<(DerivedKind, ContentHash)>> {
        let mut found = Vec::new();
        for kind in DerivedKind::iter() {
            found.extend(self.derived.list(kind)?.into_iter().map(|hash| (kind, hash)));
        }
        Ok(found)
    }

    /// Removes the derived files in `listed` whose originals are not `wanted`, and returns their number. Files
    /// that were written after the listing remain.
    pub fn sweep_derived(
        &self,
        listed: &[(DerivedKind, ContentHash)],
        wanted: &dyn Fn(ContentHash) -> bool,
    ) -> StoreResult<usize> {
        let mut removed = 0;
        for (kind, hash) in listed.iter().copied().filter(|(_, hash)| !wanted(*hash)) {
            self.derived.remove(kind, hash)?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Removes the derived files of an original, and its cached facts.
    pub fn remove_derived(&self, hash: ContentHash) -> StoreResult<()> {
        self.facts_cache.invalidate(&hash);
        self.incomplete.invalidate(&hash);
        for kind in DerivedKind::iter() {
            self.derived.remove(kind, hash)?;
        }
        Ok(())
    }

    /// Returns whether an original allows random access, from the cached facts about it; `None` if no facts are
    /// cached.
    pub fn has_random_access(&self, hash: ContentHash) -> Option<bool> {
        let facts = self.facts_cache.get(&hash).or_else(|| self.incomplete.get(&hash))?;
        Some(!matches!(facts.random_access, RandomAccess::None(_)))
    }

    /// Reads and verifies the bytes `range` of an original that is sent unchanged.
    ///
    /// No excess bytes are read if the range ends at a multiple of [`BLOCK_BYTES`].
    pub fn read(
        &self,
        hash: ContentHash,
        length: u64,
        range: Range<u64>,
    ) -> Result<bytes::Bytes, OriginalError> {
        let original = self.open(hash, length, &in_sequence)?;
        let blocks = read_blocks(&original.reader, &original.facts.checksums, &range)?;
        let (start, bytes) = blocks.ok_or(OriginalError::Changed(hash))?;
        let from = index_after(start, range.start).min(bytes.len());
        let to = index_after(start, range.end).min(bytes.len());
        Ok(bytes::Bytes::from(bytes).slice(from..to))
    }

    /// Computes the CRC-32 of the bytes `range` of an original.
    ///
    /// It is combined from the checksums of the blocks. Only blocks that `range` cuts are read.
    pub fn crc32(
        &self,
        hash: ContentHash,
        length: u64,
        range: &Range<u64>,
    ) -> Result<crc32fast::Hasher, OriginalError> {
        let original = self.open(hash, length, &in_sequence)?;
        let first = range.start.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        let last =
            // The last block is complete although it may be shorter.
            if range.end == length { length } else { range.end / BLOCK_BYTES * BLOCK_BYTES };
        let mut crc = crc32fast::Hasher::new();
        // The range covers no whole block, so it is read and hashed directly.
        if first >= last {
            crc.update(&original.read(range.clone())?);
            return Ok(crc);
        }
        crc.update(&original.read(range.start..first)?);
        let middle = original.facts.checksums.crc32(&(first..last), length);
        crc.combine(&middle.ok_or(OriginalError::Changed(hash))?);
        let mut end = crc32fast::Hasher::new();
        end.update(&original.read(last..range.end)?);
        crc.combine(&end);
        Ok(crc)
    }

    /// Verifies that an original is unmodified, before any of it is sent. Compares the stamp, and the bytes only
    /// if the stamp has changed.
    pub fn verify(&self, hash: ContentHash, length: u64) -> Result<(), OriginalError> {
        let original = self.open(hash, length, &in_sequence)?;
        if original.reader.stamp == original.facts.stamp {
            return Ok(());
        }
        // The stamp also changes when a file is copied or restored, so only the bytes can decide.
        let (_, sums) = hash_and_sums(&original.reader)?;
        if sums != original.facts.checksums {
            return Err(OriginalError::Changed(hash));
        }
        let facts = OriginalFacts {
            stamp: original.reader.stamp,
            ..OriginalFacts::clone(&original.facts)
        };
        // No side file is written, because it would describe files that do not exist.
        if facts.is_incomplete {
            self.incomplete.insert(hash, Arc::new(facts));
            return Ok(());
        }
        // The new stamp saves the next check a full read.
        if let Err(cause) = self.derived.write(DerivedKind::Index, hash, &facts.print()) {
            tracing::warn!("derived file not stored: {cause}");
        }
        self.facts_cache.insert(hash, Arc::new(facts));
        Ok(())
    }
}

/// Returns the facts about a file of `length` bytes that is not a picture.
fn opaque(length: u64, checksums: BlockChecksums) -> PreparedOriginal {
    let random_access = RandomAccess::None(NO_PICTURE.to_owned());
    PreparedOriginal {
        facts: OriginalFacts::new(0..length, length, checksums, random_access),
        working: None,
        decoded: false,
        warning: None,
        is_grey: None,
        picture_hash: None,
    }
}

fn starts_like_a_jpeg(reader: &BlobReader) -> StoreResult<bool> {
    let head = reader.read(0..reader.length.min(2))?;
    Ok(ImageFormat::of_file(&head) == Some(ImageFormat::Jpeg))
}
