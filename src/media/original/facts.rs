//! The side file: facts about an original, computed at ingest so that serving need not compute them.
//!
//! ```text
//! "WPix"  version  CRC-32 of the rest, 4 bytes
//! SHA-256 of the original   length   stamp
//! first scan's data   end of the picture   checksums of its blocks
//! random access: 0 none, reason │ 1 the original, components, index │ 2 a working copy, …, index
//! ```
//!
//! Numbers are of variable length ([`jpeg::scan::index_codec`]). A file that does not match this format exactly, or that
//! belongs to a different original, is rebuilt.

use std::ops::Range;

use super::checksums::BlockChecksums;
use jpeg::scan::index::ScanIndex;
use jpeg::scan::index_codec::{put_varint, take_varint};
use model::ContentHash;

const MAGIC: &[u8; 4] = b"WPix";
/// The version; incremented when the format or the derivation of files changes.
const VERSION: u8 = 1;
/// Maximum length of a reason in bytes.
const REASON_BYTES_MAX: usize = 200;

/// The means of decoding parts of a picture (random access).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RandomAccess {
    /// No random access: the picture can only be decoded as a whole, for this reason.
    None(String),
    /// An index into the original.
    Original(StoredIndex),
    /// An index into a working copy.
    Working(WorkingCopy),
}

/// An index with the number of components, which is needed to parse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredIndex {
    pub(super) components: usize,
    pub(super) index: ScanIndex,
}

impl StoredIndex {
    /// Returns the approximate size of the index in memory, in bytes.
    fn weight(&self) -> usize {
        self.index.entries.len() * 16
    }
}

/// The facts about a working copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkingCopy {
    pub(super) length: u64,
    pub(super) checksums: BlockChecksums,
    pub(super) stored_index: StoredIndex,
}

/// The facts about an original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OriginalFacts {
    pub(super) source: ContentHash,
    pub(super) length: u64,
    /// The stamp in the store at the time when the bytes last matched the hash.
    pub(super) stamp: u64,
    /// Offset of the first scan's data.
    pub(super) start: u64,
    /// Offset of the first byte after the picture.
    pub(super) end: u64,
    pub(super) checksums: BlockChecksums,
    pub(super) random_access: RandomAccess,
    /// True if a derived file is missing because it could not be written. Never stored, because the state is
    /// temporary and a side file is permanent.
    pub(super) is_incomplete: bool,
}

impl StoredIndex {
    fn print(&self, out: &mut Vec<u8>) {
        put_varint(out, as_u64(self.components));
        self.index.pack(self.components, out);
    }

    fn parse(bytes: &mut &[u8]) -> Option<Self> {
        let components = usize::try_from(take_varint(bytes)?).ok()?;
        let index = ScanIndex::unpack(components, bytes)?;
        Some(Self { components, index })
    }
}

fn as_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl OriginalFacts {
    /// Creates the facts about a file of `length` bytes; `picture` runs from the first scan's data to the end of
    /// the picture. The source and the stamp are set when the file is stored.
    pub(super) fn new(
        picture: Range<u64>,
        length: u64,
        checksums: BlockChecksums,
        random_access: RandomAccess,
    ) -> Self {
        Self {
            source: ContentHash([0; 32]),
            length,
            stamp: 0,
            start: picture.start,
            end: picture.end,
            checksums,
            random_access,
            is_incomplete: false,
        }
    }

    pub(super) fn print(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.source.0);
        for number in [self.length, self.stamp, self.start, self.end] {
            put_varint(&mut out, number);
        }
        self.checksums.print(&mut out);
        match &self.random_access {
            RandomAccess::None(reason) => {
                // Cut by bytes, perhaps within a character. The parser reads it lossily.
                let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES_MAX)];
                put_varint(&mut out, 0);
                put_varint(&mut out, as_u64(reason.len()));
                out.extend_from_slice(reason);
            }
            RandomAccess::Original(stored_index) => {
                put_varint(&mut out, 1);
                stored_index.print(&mut out);
            }
            RandomAccess::Working(working) => {
                put_varint(&mut out, 2);
                put_varint(&mut out, working.length);
                working.checksums.print(&mut out);
                working.stored_index.print(&mut out);
            }
        }
        let sum = crc32fast::hash(&out);
        [MAGIC.as_slice(), &[VERSION], &sum.to_le_bytes(), &out].concat()
    }

    /// Parses a side file; `None` for anything that [`OriginalFacts::print`] did not write.
    pub(super) fn parse(file: &[u8]) -> Option<Self> {
        let rest = file.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])?;
        let (sum, mut rest) = rest.split_first_chunk::<4>()?;
        // Checked first, so that the parser below reads only bytes that `print` wrote.
        if crc32fast::hash(rest) != u32::from_le_bytes(*sum) {
            return None;
        }
        let bytes = &mut rest;
        let (source, tail) = bytes.split_first_chunk::<32>()?;
        *bytes = tail;
        let length = take_varint(bytes)?;
        let stamp = take_varint(bytes)?;
        let start = take_varint(bytes)?;
        let end = take_varint(bytes)?;
        let checksums = BlockChecksums::parse(bytes, length)?;
        let random_access = RandomAccess::parse(bytes)?;
        // The offsets are used for reads without further checks.
        let is_valid = bytes.is_empty() && start <= end && end <= length;
        let source = ContentHash(*source);
        is_valid.then_some(Self {
            source,
            length,
            stamp,
            start,
            end,
            checksums,
            random_access,
            is_incomplete: false,
        })
    }

    /// Returns the approximate size of the facts in memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        let index_bytes = match &self.random_access {
            RandomAccess::None(_) => 0,
            RandomAccess::Original(stored_index) => stored_index.weight(),
            RandomAccess::Working(working) => {
                working.stored_index.weight() + working.checksums.count() * 4
            }
        };
        index_bytes + self.checksums.count() * 4 + 512
    }
}

impl RandomAccess {
    fn parse(bytes: &mut &[u8]) -> Option<Self> {
        match take_varint(bytes)? {
            0 => {
                let length = usize::try_from(take_varint(bytes)?).ok()?;
                let (reason, tail) = bytes.split_at_checked(length)?;
                *bytes = tail;
                Some(Self::None(String::from_utf8_lossy(reason).into_owned()))
            }
            1 => StoredIndex::parse(bytes).map(Self::Original),
            2 => {
                let length = take_varint(bytes)?;
                let checksums = BlockChecksums::parse(bytes, length)?;
                let stored_index = StoredIndex::parse(bytes)?;
                Some(Self::Working(WorkingCopy { length, checksums, stored_index }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jpeg::scan::index::IndexEntry;

    fn all() -> Vec<OriginalFacts> {
        let entries = vec![
            IndexEntry { bit_position: 4000, dc: [0; 4] },
            IndexEntry { bit_position: 9001, dc: [7, -3, 2, 0] },
        ];
        let index = ScanIndex { spacing: 64, entries, end: 10_000, marker: 1251 };
        let stored_index = StoredIndex { components: 3, index };
        let bytes = vec![5; 40_000];
        let working = WorkingCopy {
            length: 40_000,
            checksums: BlockChecksums::for_bytes(&bytes),
            stored_index: stored_index.clone(),
        };
        let ways = [
            RandomAccess::None("process".to_owned()),
            RandomAccess::Original(stored_index),
            RandomAccess::Working(working),
        ];
        let facts = |random_access| OriginalFacts {
            source: ContentHash::new(&bytes),
            length: 40_000,
            stamp: u64::MAX,
            start: 500,
            end: 39_999,
            checksums: BlockChecksums::for_bytes(&bytes),
            random_access,
            is_incomplete: false,
        };
        ways.into_iter().map(facts).collect()
    }

    #[test]
    fn what_is_printed_is_parsed() {
        for facts in all() {
            assert_eq!(OriginalFacts::parse(&facts.print()), Some(facts));
        }
    }

    #[test]
    fn a_torn_or_damaged_side_file_is_none() {
        for facts in all() {
            let file = facts.print();
            for at in 0..file.len() {
                assert_eq!(OriginalFacts::parse(&file[..at]), None);
                let mut damaged = file.clone();
                damaged[at] ^= 0x10;
                assert_eq!(OriginalFacts::parse(&damaged), None, "byte {at}");
            }
            assert_eq!(OriginalFacts::parse(&[file, vec![0]].concat()), None);
        }
    }

    #[test]
    fn a_changed_byte_is_found_in_its_block() {
        let mut bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
        let sums = BlockChecksums::for_bytes(&bytes);
        let blocks = sums.blocks(&(20_000..30_000), 50_000);
        assert_eq!(blocks, 16_384..32_768);
        assert!(sums.matches(16_384, &bytes[16_384..32_768]));
        bytes[20_000] ^= 1;
        assert!(!sums.matches(16_384, &bytes[16_384..32_768]));
        assert!(sums.matches(32_768, &bytes[32_768..]));
        assert_eq!(sums.blocks(&(49_000..50_000), 50_000), 45_056..50_000);
    }
}
