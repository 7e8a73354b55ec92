//! Perceptual hashes: the hashes of pictures that look alike differ in few bits.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};
use thiserror::Error;

/// Number of hex digits of a hash.
const DIGITS: usize = 16;

/// The perceptual hash of a picture, printed as 16 lower-case hex digits.
///
/// Each bit is 1 if one of 9 × 8 parts of the upright picture is brighter than the part to its right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct PictureHash(pub u64);

impl PictureHash {
    /// Returns the number of bits in which the hashes differ, 0 to 64.
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

/// The error for a text that is not the hash of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not 16 hex digits")]
pub struct PictureHashError;

impl fmt::Display for PictureHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for PictureHash {
    type Err = PictureHashError;

    fn from_str(text: &str) -> Result<Self, PictureHashError> {
        // The number parser would also accept a sign and fewer digits.
        if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(PictureHashError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| PictureHashError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_back_as_it_was_written() {
        let hash = PictureHash(0x00ff_1234_5678_9abc);
        assert_eq!(hash.to_string(), "00ff123456789abc");
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(text, "\"00ff123456789abc\"");
        assert_eq!(serde_json::from_str::<PictureHash>(&text).unwrap(), hash);
        for text in ["", "ff", "+0ff123456789abc", "00ff123456789abg", "00ff123456789abc0"] {
            assert_eq!(text.parse::<PictureHash>(), Err(PictureHashError), "{text}");
        }
    }

    #[test]
    fn the_distance_counts_bits() {
        assert_eq!(PictureHash(0b1010).distance(PictureHash(0b0110)), 2);
        assert_eq!(PictureHash(0).distance(PictureHash(u64::MAX)), 64);
    }
}
