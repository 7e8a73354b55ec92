//! Verified reads of blobs whose blocks have checksums.

use std::ops::Range;

use super::checksums::BlockChecksums;
use crate::storage::blobs::{BlobReader, StoreResult};
use model::ContentHash;

/// The offset of a piece of a blob, and its bytes.
pub(super) type Piece = (u64, Vec<u8>);

/// Computes the hash of a blob and the checksums of its blocks, piece by piece.
pub(super) fn hash_and_sums(reader: &BlobReader) -> StoreResult<(ContentHash, BlockChecksums)> {
    let mut hash = ContentHash::hasher();
    let mut sums = BlockChecksums::default();
    for range in reader.pieces() {
        let piece = reader.read(range)?;
        // Both in one pass, because each reads the whole blob.
        hash.update(&piece);
        sums.extend(&piece);
    }
    Ok((hash.finish(), sums))
}

/// Reads the whole blocks around `range`, and returns their offset and bytes; `None` if a block does not match its
/// checksum.
pub(super) fn read_blocks(
    reader: &BlobReader,
    sums: &BlockChecksums,
    range: &Range<u64>,
) -> StoreResult<Option<Piece>> {
    let blocks = sums.blocks(range, reader.length);
    let bytes = reader.read(blocks.clone())?;
    Ok(sums.matches(blocks.start, &bytes).then_some((blocks.start, bytes)))
}

/// Reads `range`; `None` if a block does not match its checksum.
pub(super) fn read_checked(
    reader: &BlobReader,
    sums: &BlockChecksums,
    range: Range<u64>,
) -> StoreResult<Option<Vec<u8>>> {
    let Some((start, mut bytes)) = read_blocks(reader, sums, &range)? else { return Ok(None) };
    // Cut from the end first, so that the offsets of the front stay valid.
    bytes.truncate(index_after(start, range.end));
    bytes.drain(..index_after(start, range.start).min(bytes.len()));
    Ok(Some(bytes))
}

/// Returns the index of the offset `at` in bytes that begin at the offset `start`; `at` is at least `start`.
pub(super) fn index_after(start: u64, at: u64) -> usize {
    usize::try_from(at - start).unwrap_or(usize::MAX)
}

/// Reads ranges in ascending order as whole blocks, concurrently if that is faster. Ranges that share a block, or
/// whose blocks are adjacent, are merged into one piece. Returns `None` if a block does not match its checksum.
pub(super) fn read_many(
    reader: &BlobReader,
    sums: &BlockChecksums,
    ranges: &[Range<u64>],
) -> StoreResult<Option<Vec<Piece>>> {
    let mut pieces: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let blocks = sums.blocks(range, reader.length);
        match pieces.last_mut() {
            Some(last) if blocks.start <= last.end => last.end = last.end.max(blocks.end),
            Some(_) | None => pieces.push(blocks),
        }
    }
    let read = reader.read_many(&pieces)?;
    let starts = pieces.iter().map(|piece| piece.start);
    let read: Vec<_> = starts.zip(read).collect();
    Ok(read.iter().all(|(start, bytes)| sums.matches(*start, bytes)).then_some(read))
}
