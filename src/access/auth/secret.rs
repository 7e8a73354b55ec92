//! Secrets that the service makes: random strings of which only the hash is kept.

use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::runtime::error::{Error, Result};
use model::ContentHash;

/// Bytes of randomness in a secret: as many as its hash has.
const SECRET_BYTES: usize = 32;

/// A secret of 256 random bits as 43 characters of base64url.
///
/// It has no `Debug` and no `Display`, so that it enters no log line by accident.
pub struct RandomSecret(String);

impl RandomSecret {
    /// A new one. Fails when the system gives no random bits.
    pub fn new() -> Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        rand::fill(&mut bytes).map_err(|_| Error::internal("no random bits"))?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// A new one that people copy: it does not begin with a sign, which a command line might take
    /// for a flag.
    pub fn for_copying() -> Result<Self> {
        loop {
            let secret = Self::new()?;
            if secret.0.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                return Ok(secret);
            }
        }
    }

    /// What is stored of it. The secret is random, so a slow hash would add nothing.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.0.as_bytes())
    }

    /// The text for its owner.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
