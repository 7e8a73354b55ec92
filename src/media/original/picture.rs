//! A picture that can be entered: an original or its working copy, open for reading parts of it.

use std::ops::Range;

use super::checksums::BlockChecksums;
use super::facts::StoredIndex;
use super::reading::{read_checked, read_many};
use super::{OpenOriginal, OriginalError};
use crate::storage::blobs::{BlobReader, DerivedKind, StoreError};
use jpeg::header::JpegHeader;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::{ByteRanges, Scan, ScanError};

/// A file's bytes before the first scan's data.
pub struct JpegHead {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub header: JpegHeader,
}

/// A picture that can be entered: the original or its working copy.
pub struct IndexedPicture<'a> {
    pub(super) original: &'a OpenOriginal,
    pub(super) scan: Scan,
    pub(super) stored_index: &'a StoredIndex,
    pub(super) working: Option<(BlobReader, &'a BlockChecksums, JpegHead)>,
}

impl IndexedPicture<'_> {
    /// What its headers say.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Where it can be entered.
    #[must_use]
    pub fn index(&self) -> &ScanIndex {
        &self.stored_index.index
    }

    /// Whether it is the original and not a copy.
    #[must_use]
    pub fn is_original(&self) -> bool {
        self.working.is_none()
    }

    /// The head of the file that the picture is read from; `own` is the original's.
    #[must_use]
    pub fn head<'b>(&'b self, own: &'b JpegHead) -> &'b JpegHead {
        self.working.as_ref().map_or(own, |(_, _, head)| head)
    }

    /// The bytes at `ranges`, which rise, checked.
    pub fn read(&self, ranges: &[Range<u64>]) -> Result<ByteRanges<'static>, OriginalError> {
        let mut bytes = ByteRanges::default();
        let read = match &self.working {
            None => read_many(&self.original.reader, &self.original.facts.checksums, ranges)?,
            Some((reader, sums, _)) => self.check_working_copy(read_many(reader, sums, ranges))?,
        };
        let read = read.ok_or_else(|| self.damaged())?;
        read.into_iter().for_each(|(start, piece)| bytes.push(start, piece));
        Ok(bytes)
    }

    /// The bytes `range`, checked.
    pub fn read_all(&self, range: Range<u64>) -> Result<Vec<u8>, OriginalError> {
        match &self.working {
            None => self.original.read(range),
            Some((reader, sums, _)) => {
                let read = self.check_working_copy(read_checked(reader, sums, range))?;
                read.ok_or_else(|| self.damaged())
            }
        }
    }

    /// What was read of the working copy: one that cannot be read is as good as none.
    fn check_working_copy<T>(
        &self,
        read: Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, OriginalError> {
        match read {
            Err(away @ StoreError::Unavailable { .. }) => Err(away.into()),
            Err(_) => Err(self.damaged()),
            Ok(read) => Ok(read),
        }
    }

    fn damaged(&self) -> OriginalError {
        let hash = self.original.hash();
        match &self.working {
            None => OriginalError::Changed(hash),
            Some(_) => OriginalError::Derived { kind: DerivedKind::Working, hash },
        }
    }

    /// All bytes of its file.
    pub fn read_whole(&self) -> Result<Vec<u8>, OriginalError> {
        let length =
            self.working.as_ref().map_or(self.original.facts.length, |working| working.0.length());
        self.read_all(0..length)
    }

    /// The index contradicts the checked bytes: it is to be made again.
    #[must_use]
    pub fn index_mismatch(&self, error: ScanError) -> OriginalError {
        tracing::warn!(original = %self.original.hash(), "the index does not fit: {error}");
        OriginalError::Derived { kind: DerivedKind::Index, hash: self.original.hash() }
    }
}
