//! Finds pictures by perceptual hashes that differ in few bits.
//!
//! A hash is divided into bands, which are terms of the index. Hashes that differ in fewer bits than there are
//! bands have at least one band in common, so only the documents with such a band are compared. In an archive of
//! a million different pictures these are about two thousand for each band.

use model::PictureHash;

/// Bits in which the hashes of the same picture may differ. Saving a photograph again, smaller or at a low
/// quality, changes up to four bits in practice; hashes of different photographs, in which each bit is even
/// roughly independent, differ in about 32, and hardly ever in as few as six.
pub(crate) const DISTANCE_MAX: u32 = 6;
/// Number of bands: one more than bits may differ.
const BANDS: u32 = DISTANCE_MAX + 1;
/// Bits of each band but the last one, which has the rest.
const BAND_BITS: u32 = u64::BITS / BANDS;

/// Iterates over the terms of a hash: the number of a band and its bits.
pub(crate) fn terms(hash: PictureHash) -> impl Iterator<Item = String> {
    (0..BANDS).map(move |band| {
        let rest = hash.0 >> (band * BAND_BITS);
        let is_last = band + 1 == BANDS;
        let bits = if is_last { rest } else { rest & ((1 << BAND_BITS) - 1) };
        format!("{band}={bits:x}")
    })
}

/// Whether both hashes are those of nearly the same picture.
pub(crate) fn is_near(hash: PictureHash, other: PictureHash) -> bool {
    hash.distance(other) <= DISTANCE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_are_near_have_a_band_in_common() {
        let hash = PictureHash(0x0123_4567_89ab_cdef);
        let known: Vec<String> = terms(hash).collect();
        assert_eq!(known.len(), 7);
        // The worst case: each differing bit is in another band.
        for kept in 0..BANDS {
            let changed = (0..BANDS).filter(|band| *band != kept);
            let flipped = changed.fold(hash.0, |bits, band| bits ^ (1 << (band * BAND_BITS)));
            let other = PictureHash(flipped);
            assert!(is_near(hash, other));
            let common = terms(other).filter(|term| known.contains(term)).count();
            assert_eq!(common, 1, "{other}");
        }
        // Every bit belongs to a band.
        for bit in 0..u64::BITS {
            let other = PictureHash(hash.0 ^ (1 << bit));
            assert_eq!(terms(other).filter(|term| known.contains(term)).count(), 6, "{bit}");
        }
        assert!(!is_near(hash, PictureHash(hash.0 ^ 0x7f)));
    }
}
