//! Secrets that the service generates: random strings of which only the hash is stored.

use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::runtime::error::{Error, Result};
use crate::storage::database::{DbError, WriteTx};
use model::ContentHash;

/// Random bytes in a secret: as many as in its hash.
const SECRET_BYTES: usize = 32;

/// A secret of 256 random bits as 43 characters of base64url.
///
/// Has no `Debug` and no `Display`, so that it cannot reach a log by accident.
pub struct RandomSecret(String);

impl RandomSecret {
    /// Generates a secret. Fails if the system provides no random bits.
    pub fn new() -> Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        rand::fill(&mut bytes).map_err(|_| Error::internal("no random bits"))?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Generates a secret that people copy: it does not begin with `-` or `_`, because a command line might
    /// read it as a flag.
    pub fn for_copying() -> Result<Self> {
        loop {
            let secret = Self::new()?;
            // Two of 64 first characters are refused, so a second attempt is rare.
            if secret.0.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                return Ok(secret);
            }
        }
    }

    /// Stores the secret in the database as `name`, unless a different process was faster. Returns the stored secret.
    pub(super) fn store_once(self, tx: &WriteTx<'_>, name: &str) -> Result<String, DbError> {
        if let Some(stored) = tx.find_secret_state(name)? {
            return Ok(stored);
        }
        tx.write_secret_state(name, &self.0)?;
        Ok(self.0)
    }

    /// Returns the hash that is stored. The secret is random, so a slow hash would add nothing.
    pub fn hash(&self) -> ContentHash {
        ContentHash::new(self.0.as_bytes())
    }

    /// Returns the text for the owner of the secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
