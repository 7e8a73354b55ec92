//! Checksums of a file's blocks, so that a part of it can be verified without reading the rest.

use std::{ops::Range, sync::OnceLock};

use jpeg::scan::index_codec::{put_varint, take_varint};

/// The length in bytes of a block with its own checksum. Small blocks reduce the bytes that a crop reads from a
/// bucket. Four bytes of checksum per block are a tenth of a percent.
pub const BLOCK_BYTES: u64 = 4 << 10;
/// [`BLOCK_BYTES`] as the length of a slice.
const BLOCK_LENGTH: usize = 4 << 10;

/// The CRC-32 of each block of a file; the last block may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockChecksums {
    sums: Vec<u32>,
}

impl BlockChecksums {
    /// Computes the checksums of all blocks of a file.
    pub(super) fn for_bytes(bytes: &[u8]) -> Self {
        let mut sums = Self::default();
        sums.extend(bytes);
        sums
    }

    /// Adds the checksums of the next bytes. The bytes before them end on a block boundary.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.sums.extend(bytes.chunks(BLOCK_LENGTH).map(crc32fast::hash));
    }

    /// Computes the CRC-32 of the bytes `range` from the checksums alone. The range begins and ends on block
    /// boundaries, or ends at the end of the file, which has `length` bytes.
    pub(super) fn crc32(&self, range: &Range<u64>, length: u64) -> Option<crc32fast::Hasher> {
        let first = usize::try_from(range.start / BLOCK_BYTES).ok()?;
        let last = usize::try_from(range.end.div_ceil(BLOCK_BYTES)).ok()?;
        let sums = self.sums.get(first..last)?;
        // Only the last block of a file may be shorter, and the shift is for full blocks.
        let full = if range.end.is_multiple_of(BLOCK_BYTES) { sums.len() } else { sums.len() - 1 };
        let shift = shift();
        let of_full = sums[..full].iter().fold(0, |sum, block| shift.by_block(sum) ^ block);
        let bytes = full as u64 * BLOCK_BYTES;
        let mut crc = crc32fast::Hasher::new_with_initial_len(of_full, bytes);
        if let Some(rest) = sums.get(full) {
            let bytes = length % BLOCK_BYTES;
            crc.combine(&crc32fast::Hasher::new_with_initial_len(*rest, bytes));
        }
        Some(crc)
    }

    /// Returns the range of whole blocks that covers `range` in a file of `length` bytes.
    pub(super) fn blocks(&self, range: &Range<u64>, length: u64) -> Range<u64> {
        let start = range.start / BLOCK_BYTES * BLOCK_BYTES;
        let end = range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES);
        // A range behind the end of the file is empty rather than reversed.
        start..end.min(length).max(start)
    }

    /// Returns whether `bytes`, which start at `offset` on a block boundary, match their checksums.
    pub(super) fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        let Ok(first) = usize::try_from(offset / BLOCK_BYTES) else { return false };
        let sums = self.sums.get(first..).unwrap_or_default();
        let chunks = bytes.chunks(BLOCK_LENGTH);
        // Bytes without a checksum are not verified, so they do not match.
        chunks.len() <= sums.len() && chunks.zip(sums).all(|(c, sum)| crc32fast::hash(c) == *sum)
    }

    /// Returns the number of blocks.
    pub(super) fn count(&self) -> usize {
        self.sums.len()
    }

    pub(super) fn print(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::try_from(self.sums.len()).unwrap_or(u64::MAX));
        out.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
    }

    /// Parses the checksums of a file of `length` bytes off the front of `bytes`.
    pub(super) fn parse(bytes: &mut &[u8], length: u64) -> Option<Self> {
        let count = take_varint(bytes)?;
        // A wrong count means that the file is not the expected one. It would also size the list below.
        if count != length.div_ceil(BLOCK_BYTES) {
            return None;
        }
        let count = usize::try_from(count).ok()?;
        let (sums, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
        *bytes = rest;
        let sums = sums.as_chunks::<4>().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        Some(Self { sums })
    }
}

/// The effect of appending a block of zeros on a CRC-32: a linear map on 32 bits, as one table per byte.
///
/// Combining the checksums of two pieces shifts the first one by the length of the second. For one fixed length,
/// four table lookups suffice. The general combination needs microseconds, and a photograph has several thousand
/// blocks.
struct ChecksumShift(Box<[[u32; 256]; 4]>);

/// Shifts a checksum by one block with the general combination.
fn shifted(sum: u32) -> u32 {
    let mut crc = crc32fast::Hasher::new_with_initial_len(sum, 0);
    // Combining adds the second checksum unchanged, so a zero leaves only the shifted first checksum.
    crc.combine(&crc32fast::Hasher::new_with_initial_len(0, BLOCK_BYTES));
    crc.finalize()
}

impl ChecksumShift {
    fn new() -> Self {
        // The map is linear, so the images of the single bits determine all others.
        let bits: [u32; 32] = std::array::from_fn(|bit| shifted(1 << bit));
        let mut tables = Box::new([[0; 256]; 4]);
        for (byte_index, table) in tables.iter_mut().enumerate() {
            for (value, entry) in table.iter_mut().enumerate() {
                let bits = (0..8)
                    .filter(|bit| value >> bit & 1 == 1)
                    .map(|bit| bits[8 * byte_index + bit]);
                *entry = bits.fold(0, |sum, bit| sum ^ bit);
            }
        }
        Self(tables)
    }

    fn by_block(&self, sum: u32) -> u32 {
        let bytes = sum.to_le_bytes();
        self.0.iter().zip(bytes).fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)])
    }
}

fn shift() -> &'static ChecksumShift {
    static SHIFT: OnceLock<ChecksumShift> = OnceLock::new();
    SHIFT.get_or_init(ChecksumShift::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_range_follows_from_those_of_its_blocks() {
        let bytes: Vec<u8> = (0..=250).cycle().take(100_000).collect();
        let length = bytes.len() as u64;
        let sums = BlockChecksums::for_bytes(&bytes);
        for (start, end) in [(0, length), (0, 3 * BLOCK_BYTES), (2 * BLOCK_BYTES, length), (0, 0)]
        {
            let range = start..end;
            let part = &bytes[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
            let found = sums.crc32(&range, length).unwrap().finalize();
            assert_eq!(found, crc32fast::hash(part), "{range:?}");
        }
    }
}
