//! Defines a key, which seals and opens values.

use std::{fmt, str::FromStr};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{PREFIX, SecretError};
use model::ContentHash;

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;
/// Domain separation: no other hash of a key equals its id.
const ID_DOMAIN: &[u8] = b"wirephoto key id\0";

/// The id of a key: the first 8 hex digits of a hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for KeyId {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        // `from_str_radix` accepts a sign, as in `+a`.
        let is_hex = text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let id = u32::from_str_radix(text, 16).ok().filter(|_| is_hex);
        id.map(Self).ok_or_else(|| SecretError::File(format!("{text:?} is not a key id")))
    }
}

/// A 256-bit key. Its `Debug` shows only its id.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    bytes: [u8; KEY_BYTES],
    id: KeyId,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.id)
    }
}

impl SecretKey {
    fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let ContentHash(hash) = ContentHash::new(&[ID_DOMAIN, &bytes].concat());
        let [a, b, c, d, ..] = hash;
        Self { bytes, id: KeyId(u32::from_be_bytes([a, b, c, d])) }
    }

    /// Generates a random key.
    pub fn draw() -> Result<Self, SecretError> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SecretError::NoRandom)?;
        Ok(Self::new(bytes))
    }

    /// Parses 64 hex digits. The error repeats no part of the text.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        // A key is written as a hash is, which has the same length.
        let ContentHash(bytes) = text.trim().parse().map_err(|_| {
            let why = "a key is 64 hex digits, as `openssl rand -hex 32` prints";
            SecretError::File(why.to_owned())
        })?;
        Ok(Self::new(bytes))
    }

    /// Prints the 64 hex digits that [`SecretKey::parse`] reads.
    pub fn print(&self) -> String {
        ContentHash(self.bytes).to_string()
    }

    /// Returns the id of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    fn cipher(&self) -> Result<RandomizedNonceKey, SecretError> {
        RandomizedNonceKey::new(&AES_256_GCM, &self.bytes).map_err(|_| SecretError::NoRandom)
    }

    /// Encrypts `plain` for `place`, with a random nonce.
    pub(super) fn seal(&self, place: &str, plain: &[u8]) -> Result<String, SecretError> {
        let mut text = plain.to_vec();
        // Bound to its place, so that a value copied to a different row does not decrypt.
        let aad = Aad::from(place.as_bytes());
        let sealed = self.cipher()?.seal_in_place_append_tag(aad, &mut text);
        let nonce = sealed.map_err(|_| SecretError::NoRandom)?;
        let mut value = nonce.as_ref().to_vec();
        value.extend_from_slice(&text);
        Ok(format!("{PREFIX}{}:{}", self.id, BASE64_URL_SAFE_NO_PAD.encode(value)))
    }

    /// Decrypts a sealed value of `place`. The caller has checked that it names this key.
    pub(super) fn open(&self, place: &str, stored: &[u8]) -> Result<Vec<u8>, SecretError> {
        // The part after the last colon, which base64url does not contain.
        let value = stored.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        let mut value = BASE64_URL_SAFE_NO_PAD.decode(value).map_err(|_| damaged(place))?;
        // `split_off` panics beyond the end of a truncated value.
        if value.len() < NONCE_LEN {
            return Err(damaged(place));
        }
        let mut text = value.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&value).map_err(|_| damaged(place))?;
        let aad = Aad::from(place.as_bytes());
        let plain = self.cipher()?.open_in_place(nonce, aad, &mut text);
        plain.map(|plain| plain.to_vec()).map_err(|_| damaged(place))
    }
}

fn damaged(place: &str) -> SecretError {
    SecretError::Damaged(place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_a_key_is_read_as_it_is_printed() {
        let key = SecretKey::draw().unwrap();
        assert_eq!(SecretKey::parse(&format!(" {}\n", key.print())).unwrap(), key);
        assert_eq!(key.id().to_string().parse::<KeyId>().unwrap(), key.id());
        assert!(!format!("{key:?}").contains(&key.print()));
    }

    #[test]
    fn err_what_is_no_key_is_refused_without_repeating_it() {
        let long = "a".repeat(66);
        for text in
            ["", "hunter2", "zz".repeat(32).as_str(), long.as_str(), "+a".repeat(32).as_str()]
        {
            let refused = SecretKey::parse(text).unwrap_err().to_string();
            assert!(text.is_empty() || !refused.contains(text), "{refused}");
        }
    }
}
