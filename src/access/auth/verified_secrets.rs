//! A cache of verified secrets, so that programs that send the same secret with each request do not need a
//! slow hash each time.
//!
//! An entry is valid for the network that presented the secret, for a short time, and until the hash changes.
//! It holds a digest of the right secret, so a wrong secret is recognized without a slow hash, and counted
//! before the attempt costs anything.

use std::net::IpAddr;

use moka::sync::Cache;

use super::RandomSecret;
use crate::runtime::error::Result;
use model::{ContentHash, network};

/// Recently verified secrets in the cache that spares them another slow hash.
const VERIFIED_MAX: u64 = 10_000;
/// Time for which a verified secret is remembered.
const VERIFIED_FOR: std::time::Duration = std::time::Duration::from_secs(300);

/// Secrets that were verified recently. Only digests are stored, salted with a random number of this process.
pub(super) struct VerifiedSecrets {
    /// The digest of the right secret, by a digest of the network and the slow hash.
    digests: Cache<ContentHash, ContentHash>,
    salt: String,
}

impl VerifiedSecrets {
    pub(super) fn new() -> Result<Self> {
        let digests =
            Cache::builder().max_capacity(VERIFIED_MAX).time_to_live(VERIFIED_FOR).build();
        Ok(Self { digests, salt: RandomSecret::new()?.reveal().to_owned() })
    }

    /// Returns whether `hash` was computed from `secret`, or `None` if the network of `address` has not
    /// presented the right secret recently.
    pub(super) fn is_right(&self, secret: &str, hash: &str, address: IpAddr) -> Option<bool> {
        // The slow hash is part of the key, so a new password has no entry.
        let right = self.digests.get(&self.key(hash, address))?;
        // Digests are salted, so the time of the comparison reveals nothing about the secret.
        Some(right == self.digest(secret))
    }

    /// Remembers that `hash` was computed from `secret`.
    pub(super) fn remember(&self, secret: &str, hash: &str, address: IpAddr) {
        self.digests.insert(self.key(hash, address), self.digest(secret));
    }

    fn key(&self, hash: &str, address: IpAddr) -> ContentHash {
        self.salted(&["hash", &network(address).to_string(), hash])
    }

    fn digest(&self, secret: &str) -> ContentHash {
        self.salted(&["secret", secret])
    }

    fn salted(&self, parts: &[&str]) -> ContentHash {
        ContentHash::new([&[self.salt.as_str()], parts].concat().join("\0").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verified_secret_is_known_for_its_hash_and_its_network_alone() {
        let verified = VerifiedSecrets::new().unwrap();
        let home: IpAddr = "2001:db8::1".parse().unwrap();
        let check = |secret, hash, address: &str, expected| {
            let found = verified.is_right(secret, hash, address.parse().unwrap());
            assert_eq!(found, expected, "{secret} {hash} {address}");
        };
        check("right", "hash", "2001:db8::1", None);
        verified.remember("right", "hash", home);
        check("right", "hash", "2001:db8::2", Some(true));
        check("wrong", "hash", "2001:db8::2", Some(false));
        check("", "hash", "2001:db8::2", Some(false));
        check("right", "another", "2001:db8::1", None);
        check("right", "hash", "2001:db8:0:1::1", None);
    }
}
