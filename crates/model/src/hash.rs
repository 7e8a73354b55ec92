//! Content hashes: SHA-256 of files, texts and secrets.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes. The hash of a media file is its key in the blob store. Printed as 64 lower-case hex
/// digits, parsed in either case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Computes the hash of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Starts a hash of bytes that arrive in pieces.
    pub fn hasher() -> ContentHasher {
        ContentHasher(Sha256::new())
    }

    /// Returns the first 16 bytes as 22 characters of base64url, for entity tags and names that nothing decodes.
    pub fn short(&self) -> String {
        // 128 bits make an accidental collision practically impossible and keep names short.
        BASE64_URL_SAFE_NO_PAD.encode(&self.0[..16])
    }
}

/// A SHA-256 hash of bytes that arrive in pieces.
#[derive(Clone)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Adds the next bytes to the hash.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all added bytes.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// The error for a text that is not 64 hex digits.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a SHA-256 hash")]
pub struct HashError(String);

impl FromStr for ContentHash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        // The error repeats the text, which may be very long.
        let error = || HashError(text.chars().take(80).collect());
        // Checked first, because the conversion of a pair would also accept a sign.
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut hash = [0u8; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| error())?;
        }
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_prints_and_parses() {
        let hash = ContentHash::new(b"");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse::<ContentHash>().expect("valid"), hash);
        assert_eq!(hash.short(), "47DEQpj8HBSa-_TImW-5JA");
        assert!("e3".parse::<ContentHash>().is_err());
        assert!("é".repeat(32).parse::<ContentHash>().is_err());
    }
}
