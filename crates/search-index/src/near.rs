//! Finds pictures by perceptual hashes that differ in few bits.
//!
//! A hash is divided into bands, which are terms of the index. There is one band more than the hashes may differ
//! in bits, so similar hashes have at least one band in common, and only documents with a common band are
//! compared. In an archive of a million different pictures, about two thousand documents share each band.

use model::PictureHash;

/// The maximum number of bits in which the hashes of the same picture differ. Saving a photograph again, smaller
/// or at a low quality, changes up to four bits in practice. The bits of different photographs are roughly
/// independent: their hashes differ in about 32 bits, and hardly ever in as few as six.
pub(crate) const DISTANCE_MAX: u32 = 6;
/// The number of bands: one more than the number of bits that may differ.
const BANDS: u32 = DISTANCE_MAX + 1;
/// The number of bits of each band except the last one, which has the remaining bits.
const BAND_BITS: u32 = u64::BITS / BANDS;

/// Iterates over the terms of a hash: the number of each band and its bits.
pub(crate) fn terms(hash: PictureHash) -> impl Iterator<Item = String> {
    (0..BANDS).map(move |band| {
        let rest = hash.0 >> (band * BAND_BITS);
        let is_last = band + 1 == BANDS;
        let bits = if is_last { rest } else { rest & ((1 << BAND_BITS) - 1) };
        format!("{band}={bits:x}")
    })
}

/// Returns whether both hashes belong to nearly the same picture.
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
