//! Check sums of a file's blocks, so that a part of it can be trusted without reading the rest.

use std::ops::Range;

use crate::media::jpeg::scan::pack::{put_number, take_number};

/// Bytes of a block that has a sum of its own: four bytes of sum for each are a fortieth of a percent.
pub const BLOCK_BYTES: u64 = 16 << 10;

/// The CRC-32 of each block of a file; the last block may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums(Vec<u32>);

fn block() -> usize {
    usize::try_from(BLOCK_BYTES).expect("indices have at least 32 bits")
}

impl Sums {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(bytes.chunks(block()).map(crc32fast::hash).collect())
    }

    /// The whole blocks of a file of `length` bytes that hold `range`.
    pub(super) fn blocks(range: &Range<u64>, length: u64) -> Range<u64> {
        let start = range.start / BLOCK_BYTES * BLOCK_BYTES;
        let end = range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
        start..end.min(length).max(start)
    }

    /// Whether `bytes`, which start at `offset` on a block's border, are what they were.
    pub(super) fn agree(&self, offset: u64, bytes: &[u8]) -> bool {
        let Ok(first) = usize::try_from(offset / BLOCK_BYTES) else { return false };
        let sums = self.0.get(first..).unwrap_or_default();
        let chunks = bytes.chunks(block());
        chunks.len() <= sums.len() && chunks.zip(sums).all(|(c, sum)| crc32fast::hash(c) == *sum)
    }

    /// Blocks of the file.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn print(&self, out: &mut Vec<u8>) {
        put_number(out, u64::try_from(self.0.len()).unwrap_or(u64::MAX));
        out.extend(self.0.iter().flat_map(|sum| sum.to_le_bytes()));
    }

    /// Takes the sums of a file of `length` bytes.
    pub(super) fn parse(bytes: &mut &[u8], length: u64) -> Option<Self> {
        let count = take_number(bytes)?;
        if count != length.div_ceil(BLOCK_BYTES) {
            return None;
        }
        let count = usize::try_from(count).ok()?;
        let (sums, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
        *bytes = rest;
        Some(Self(sums.as_chunks::<4>().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect()))
    }
}
