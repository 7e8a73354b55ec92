//! Computes the layout of an archive: the source of each of its bytes.

use std::{collections::HashSet, ops::Range};

use crate::zip::entry::ArchiveEntry;
use crate::zip::error::ArchiveError;
use crate::zip::headers::{
    CentralDirectory, directory_record_bytes, local_header_bytes, put_directory_record,
    put_local_header,
};

/// The number of directory records per piece: about ten kilobytes.
const RECORDS_PER_PIECE: usize = 128;

/// The layout of an archive: for each entry its header and contents, then the directory, then the end records. The
/// layout is deterministic: the same entries give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveLayout {
    entries: Vec<ArchiveEntry>,
    /// The offset of each entry's local header.
    headers: Vec<u64>,
    /// The offset of each entry's record in the directory.
    records: Vec<u64>,
    directory: CentralDirectory,
    size_bytes: u64,
}

/// A piece of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePiece {
    /// Literal bytes of headers and records.
    Bytes(Vec<u8>),
    /// A part of an entry's contents, in the form in which the archive stores them.
    Content {
        /// The index of the entry in the order of the archive, from 0.
        entry: usize,
        /// The byte range in its contents; not empty.
        range: Range<u64>,
    },
}

impl ArchivePiece {
    /// Returns the number of archive bytes in this piece, at least 1.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => length(bytes),
            Self::Content { range, .. } => range.end - range.start,
        }
    }
}

pub(super) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("lengths fit 64 bits")
}

impl ArchiveLayout {
    /// The maximum number of entries of an archive.
    pub const ENTRIES_MAX: usize = 10_000;

    /// Lays out an archive with `entries` in this order.
    ///
    /// Fails with [`ArchiveError`] if there are no entries, too many, two with the same name (ignoring case), or
    /// if the archive would be too long for any file.
    ///
    /// Contract files-11.
    pub fn new(entries: Vec<ArchiveEntry>) -> Result<Self, ArchiveError> {
        if entries.is_empty() {
            return Err(ArchiveError::Empty);
        }
        let count = entries.len();
        let max = Self::ENTRIES_MAX;
        if count > max {
            return Err(ArchiveError::TooManyEntries { count, max });
        }
        let mut seen = HashSet::with_capacity(count);
        for entry in &entries {
            // Case-insensitive file systems would extract both names to one file.
            if !seen.insert(entry.name.as_str().to_ascii_lowercase()) {
                return Err(ArchiveError::Duplicate { name: entry.name.clone() });
            }
        }
        Self::lay_out(entries).ok_or(ArchiveError::TooLong)
    }

    /// Lays out an archive without checking its entries; `None` if it would be too long for any file.
    pub(super) fn lay_out(entries: Vec<ArchiveEntry>) -> Option<Self> {
        let mut position = 0;
        let mut headers = Vec::with_capacity(entries.len());
        for entry in &entries {
            headers.push(position);
            position = offset_after(position, local_header_bytes(entry))?;
            position = offset_after(position, entry.size_bytes)?;
        }
        let mut records = Vec::with_capacity(entries.len());
        for (entry, &header) in entries.iter().zip(&headers) {
            records.push(position);
            position = offset_after(position, directory_record_bytes(entry, header))?;
        }
        let offset = *records.first().unwrap_or(&position);
        let count = u64::try_from(entries.len()).ok()?;
        let directory = CentralDirectory { entries: count, offset, size_bytes: position - offset };
        let size_bytes = offset_after(position, directory.end_bytes())?;
        Some(Self { entries, headers, records, directory, size_bytes })
    }

    /// Returns the length of the whole archive in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Iterates over the pieces that make up bytes `range` of the archive, in order.
    ///
    /// Bytes beyond the archive are ignored. Each step costs a binary search and builds at most about ten
    /// kilobytes of records.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = ArchivePiece> {
        let mut rest = range;
        std::iter::from_fn(move || {
            let piece = self.piece(rest.clone())?;
            rest.start += piece.size_bytes();
            Some(piece)
        })
    }

    /// Returns the first piece of bytes `range`, or `None` if the range is outside the archive.
    ///
    /// For streams that own the archive: call it again with `start` advanced by the length of the piece.
    pub fn piece(&self, range: Range<u64>) -> Option<ArchivePiece> {
        let range = range.start..range.end.min(self.size_bytes);
        if range.is_empty() {
            return None;
        }
        let directory_end = self.directory.offset + self.directory.size_bytes;
        Some(if range.start < self.directory.offset {
            self.local_piece(&range)
        } else if range.start < directory_end {
            self.directory_piece(&range)
        } else {
            let mut bytes = Vec::new();
            self.directory.put_end(&mut bytes);
            cut(bytes, directory_end, &range)
        })
    }

    /// Returns a piece of a local header or of contents; `range` starts before the directory.
    fn local_piece(&self, range: &Range<u64>) -> ArchivePiece {
        let index = last_at_or_before(&self.headers, range.start);
        let entry = &self.entries[index];
        let header = self.headers[index];
        let contents = header + local_header_bytes(entry);
        if range.start < contents {
            let mut bytes = Vec::new();
            put_local_header(&mut bytes, entry);
            return cut(bytes, header, range);
        }
        let end = range.end.min(contents + entry.size_bytes);
        ArchivePiece::Content { entry: index, range: range.start - contents..end - contents }
    }

    /// Returns a piece of the directory; `range` starts in it.
    fn directory_piece(&self, range: &Range<u64>) -> ArchivePiece {
        let first = last_at_or_before(&self.records, range.start);
        let mut bytes = Vec::new();
        for index in (first..self.entries.len()).take(RECORDS_PER_PIECE) {
            // Readers first ask for the last bytes of an archive, and this check avoids building records that they
            // do not need.
            if self.records[index] >= range.end {
                break;
            }
            put_directory_record(&mut bytes, &self.entries[index], self.headers[index]);
        }
        cut(bytes, self.records[first], range)
    }
}

/// Returns the index of the last of `starts` that is not after `offset`. They must be ascending, and the first
/// must not be after `offset`.
fn last_at_or_before(starts: &[u64], offset: u64) -> usize {
    starts.partition_point(|&start| start <= offset).saturating_sub(1)
}

/// Returns the offset after a part; `None` if it exceeds the maximum length of a file.
fn offset_after(start: u64, size_bytes: u64) -> Option<u64> {
    // File offsets are signed, so an archive whose length needs 64 bits could not be stored.
    start.checked_add(size_bytes).filter(|&end| i64::try_from(end).is_ok())
}

/// Returns the part of `bytes` that is within `range`. `bytes` begins at offset `start`.
fn cut(mut bytes: Vec<u8>, start: u64, range: &Range<u64>) -> ArchivePiece {
    let from = index(range.start - start, bytes.len());
    let to = index(range.end - start, bytes.len());
    bytes.truncate(to);
    bytes.drain(..from);
    ArchivePiece::Bytes(bytes)
}

fn index(offset: u64, length: usize) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX).min(length)
}
