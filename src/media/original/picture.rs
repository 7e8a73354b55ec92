//! A picture that is open for random access: an original or its working copy.

use std::ops::Range;
use std::sync::Arc;

use super::checksums::BlockChecksums;
use super::facts::{OriginalFacts, RandomAccess, WorkingCopy};
use super::reading::{read_checked, read_many};
use super::{OpenOriginal, OriginalError, OriginalStore};
use crate::storage::blobs::{BlobReader, DerivedKind, StoreError, StoreResult};
use jpeg::header::JpegHeader;
use jpeg::rewrite::colour_segments;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError};
use model::ContentHash;

/// The head of a JPEG: its bytes before the first scan's data.
pub struct JpegHead {
    pub bytes: Vec<u8>,
    /// The header that was parsed from the bytes.
    pub header: JpegHeader,
}

impl OriginalStore {
    /// Opens an original whose derived files are stored; `None` if they are not.
    pub fn open_derived(
        &self,
        hash: ContentHash,
        length: u64,
    ) -> Result<Option<OpenOriginal>, OriginalError> {
        let reader = Arc::new(self.store.reader(hash, length)?);
        let cached = self.facts_cache.get(&hash).or_else(|| self.incomplete.get(&hash));
        let facts = match cached {
            Some(facts) => Some(facts),
            None => self.read_facts(hash, length)?,
        };
        Ok(facts.map(|facts| OpenOriginal { originals: self.clone(), facts, reader }))
    }
}

/// A picture with random access: the original or its working copy.
pub struct IndexedPicture {
    /// The facts, which include an index for random access.
    pub(super) facts: Arc<OriginalFacts>,
    /// The reader of the original.
    pub(super) reader: Arc<BlobReader>,
    pub(super) scan: Scan,
    pub(super) working: Option<OpenWorkingCopy>,
}

/// A working copy that is open for reading.
pub(super) struct OpenWorkingCopy {
    pub(super) reader: BlobReader,
    pub(super) head: JpegHead,
}

/// The file of a picture: its reader and the checksums of its blocks.
struct PictureBlocks<'a> {
    reader: &'a BlobReader,
    checksums: &'a BlockChecksums,
}

impl IndexedPicture {
    /// Returns the parameters of the picture's scan.
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Returns the index of entry points into the scan.
    pub fn index(&self) -> &ScanIndex {
        match &self.facts.random_access {
            RandomAccess::Original(stored_index)
            | RandomAccess::Working(WorkingCopy { stored_index, .. }) => &stored_index.index,
            RandomAccess::None(_) => unreachable!("a picture without random access is not opened"),
        }
    }

    /// Returns the length in bytes of the file that the picture is read from.
    pub(super) fn file_length(&self) -> u64 {
        self.blocks().reader.length
    }

    fn blocks(&self) -> PictureBlocks<'_> {
        let reader = self.working.as_ref().map_or(&*self.reader, |working| &working.reader);
        let checksums = match &self.facts.random_access {
            RandomAccess::Working(copy) => &copy.checksums,
            RandomAccess::Original(_) | RandomAccess::None(_) => &self.facts.checksums,
        };
        PictureBlocks { reader, checksums }
    }

    /// Returns whether the picture is read from the original instead of a working copy.
    pub fn is_original(&self) -> bool {
        self.working.is_none()
    }

    /// Returns the head of the file that the picture is read from, given the head of the original.
    pub fn head<'b>(&'b self, original_head: &'b JpegHead) -> &'b JpegHead {
        self.working.as_ref().map_or(original_head, |working| &working.head)
    }

    /// Returns the key of the original.
    pub fn original(&self) -> ContentHash {
        self.facts.source
    }

    /// Returns the segments that define the colours of the components, given the head of the original.
    pub fn colour_segments(&self, original_head: &JpegHead) -> Vec<u8> {
        let head = self.head(original_head);
        colour_segments(&head.header, &head.bytes)
    }

    /// Reads and verifies the bytes at `ranges`, which are in ascending order.
    pub fn read(&self, ranges: &[Range<u64>]) -> Result<ByteRanges<'static>, OriginalError> {
        let mut bytes = ByteRanges::default();
        let PictureBlocks { reader, checksums } = self.blocks();
        let read = self.check_working_copy(read_many(reader, checksums, ranges))?;
        let read = read.ok_or_else(|| self.damaged())?;
        read.into_iter().for_each(|(start, piece)| bytes.push(start, piece));
        Ok(bytes)
    }

    /// Reads and verifies the bytes `range`.
    pub fn read_all(&self, range: Range<u64>) -> Result<Vec<u8>, OriginalError> {
        let PictureBlocks { reader, checksums } = self.blocks();
        let read = self.check_working_copy(read_checked(reader, checksums, range))?;
        read.ok_or_else(|| self.damaged())
    }

    /// Treats a working copy that cannot be read as damaged, except if the bucket does not answer. An error of an
    /// original is returned unchanged.
    fn check_working_copy<T>(
        &self,
        read: StoreResult<Option<T>>,
    ) -> Result<Option<T>, OriginalError> {
        match read {
            Err(cause) if self.is_original() => Err(cause.into()),
            Err(unavailable @ StoreError::Unavailable { .. }) => Err(unavailable.into()),
            Err(_) => Err(self.damaged()),
            Ok(read) => Ok(read),
        }
    }

    fn damaged(&self) -> OriginalError {
        let hash = self.facts.source;
        match &self.working {
            // An original cannot be rebuilt, but a working copy can be derived again.
            None => OriginalError::Changed(hash),
            Some(_) => OriginalError::Derived { kind: DerivedKind::Working, hash },
        }
    }

    /// Reads and verifies all bytes of the file.
    pub fn read_whole(&self) -> Result<Vec<u8>, OriginalError> {
        self.read_all(0..self.file_length())
    }

    /// Reports an index that contradicts the verified bytes, as an error that causes a rebuild.
    pub fn index_mismatch(&self, error: ScanError) -> OriginalError {
        tracing::warn!(original = %self.facts.source, "index does not match the picture data: {error}");
        // The bytes match their checksums, so only the index can be wrong.
        OriginalError::Derived { kind: DerivedKind::Index, hash: self.facts.source }
    }
}
