//! An original that is open for reading: its head, its bytes and the picture in it.

use std::{ops::Range, sync::Arc};

use super::facts::{OriginalFacts, RandomAccess};
use super::picture::{IndexedPicture, JpegHead, OpenWorkingCopy};
use super::reading::read_checked;
use super::{OriginalError, OriginalStore};
use crate::storage::blobs::{BlobReader, DerivedKind, StoreError};
use jpeg::header::JpegHeader;
use jpeg::scan::Scan;
use model::ContentHash;

/// An original that is open for reading.
pub struct OpenOriginal {
    pub(super) originals: OriginalStore,
    pub(super) facts: Arc<OriginalFacts>,
    pub(super) reader: Arc<BlobReader>,
}

impl OpenOriginal {
    /// Returns the key of the original.
    pub fn hash(&self) -> ContentHash {
        self.facts.source
    }

    /// Reads and parses the bytes before the first scan's data.
    pub fn head(&self) -> Result<JpegHead, OriginalError> {
        let bytes = read_checked(&self.reader, &self.facts.checksums, 0..self.facts.start)?;
        let bytes = bytes.ok_or(OriginalError::Changed(self.hash()))?;
        let end = usize::try_from(self.facts.end).unwrap_or(usize::MAX);
        let header = JpegHeader::parse_start(&bytes, &self.originals.limits, end)?;
        Ok(JpegHead { bytes, header })
    }

    /// Reads and verifies all bytes.
    pub fn read_whole(&self) -> Result<Vec<u8>, OriginalError> {
        let bytes = self.reader.read(0..self.reader.length)?;
        let is_intact = self.facts.checksums.matches(0, &bytes);
        if is_intact { Ok(bytes) } else { Err(OriginalError::Changed(self.hash())) }
    }

    /// Reads and verifies the bytes `range`.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, OriginalError> {
        let bytes = read_checked(&self.reader, &self.facts.checksums, range)?;
        bytes.ok_or(OriginalError::Changed(self.hash()))
    }

    /// Returns the reason why the picture can only be decoded as a whole; `None` if it allows random access.
    pub fn whole_decode_reason(&self) -> Option<&str> {
        match &self.facts.random_access {
            RandomAccess::None(reason) => Some(reason),
            RandomAccess::Original(_) | RandomAccess::Working(_) => None,
        }
    }

    /// Opens the picture for random access; `None` if it can only be decoded as a whole. `head` is the head
    /// of the original.
    pub fn picture(&self, head: &JpegHead) -> Result<Option<IndexedPicture>, OriginalError> {
        let hash = self.hash();
        let (scan, working) = match &self.facts.random_access {
            RandomAccess::None(_) => return Ok(None),
            RandomAccess::Original(_) => (Scan::read(&head.header, &head.bytes), None),
            RandomAccess::Working(working) => {
                let kind = DerivedKind::Working;
                let derived = &self.originals.derived;
                let reader = match derived.reader(kind, hash, working.length) {
                    Ok(reader) => reader,
                    // A bucket that does not answer is not a damaged file.
                    Err(cause @ StoreError::Unavailable { .. }) => return Err(cause.into()),
                    Err(_) => return Err(OriginalError::Derived { kind, hash }),
                };
                let start =
                    // The head of the copy ends where its first entry begins.
                    working.stored_index.index.entries.first().map_or(0, |e| e.bit_position / 8);
                let head = read_checked(&reader, &working.checksums, 0..start.min(working.length));
                let head = head.ok().flatten().ok_or(OriginalError::Derived { kind, hash })?;
                let end = usize::try_from(working.length).unwrap_or(usize::MAX);
                let header = JpegHeader::parse_start(&head, &self.originals.limits, end)?;
                let scan = Scan::read(&header, &head);
                let head = JpegHead { bytes: head, header };
                (scan, Some(OpenWorkingCopy { reader, head }))
            }
        };
        let kind = DerivedKind::Index;
        let scan = scan.map_err(|_| OriginalError::Derived { kind, hash })?;
        let reader = Arc::clone(&self.reader);
        let picture = IndexedPicture { facts: Arc::clone(&self.facts), reader, scan, working };
        // The index of a different file would decode to a wrong picture.
        if !picture.index().matches_scan(picture.scan(), picture.file_length()) {
            return Err(OriginalError::Derived { kind, hash });
        }
        Ok(Some(picture))
    }
}
