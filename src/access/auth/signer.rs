//! Signs ids for links in mails. The token in a link is an id with its HMAC: anyone can read the id, and only this
//! service can create the token.
//!
//! The database holds the ids and the key of the HMAC, which is encrypted like other secrets. A retried mail therefore
//! contains the same link, and a stolen copy of the tables yields no valid link.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::RandomSecret;
use crate::runtime::error::{Error, Result};
use crate::storage::database::{Db, DbError};

/// Bytes of a signature in a token: 128 bits cannot be guessed.
const SIGNATURE_BYTES: usize = 16;

/// Creates and verifies tokens for ids. Cheap to clone.
#[derive(Clone)]
pub struct IdSigner(hmac::Key);

impl IdSigner {
    /// Opens the signer whose key the database holds as the secret `name`; generates the key if the database
    /// has none. Blocks.
    pub fn open(db: &Db, name: &'static str) -> Result<Self> {
        let text = match db.read_blocking(move |tx| tx.find_secret_state(name)) {
            Ok(Some(stored)) => stored,
            Ok(None) => {
                let generated = RandomSecret::new()?;
                db.write_blocking(move |tx| generated.store_once(tx, name))?
            }
            // A read-only node sends no mails and may lack the encryption key. With a random key it rejects
            // every link.
            Err(DbError::Secret(_)) if db.is_read_only() => {
                RandomSecret::new()?.reveal().to_owned()
            }
            Err(cause) => return Err(cause.into()),
        };
        let key = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(Error::internal)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the token of an id: the 16 bytes of the id and its signature, as 43 characters of base64url.
    pub fn token(&self, id: Uuid) -> String {
        let signature = hmac::sign(&self.0, id.as_bytes());
        let mut bytes = id.as_bytes().to_vec();
        bytes.extend_from_slice(&signature.as_ref()[..SIGNATURE_BYTES]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the id of a token; `None` if it was not created with this key.
    pub fn read(&self, token: &str) -> Option<Uuid> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (id, _) = bytes.split_first_chunk::<16>()?;
        let id = Uuid::from_bytes(*id);
        // Tokens are compared in full, so that a token with further bytes behind its signature is refused.
        let expected = self.token(id);
        // Constant time, so that timing does not reveal where the tokens differ.
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_bytes(), token.as_bytes())
            .ok()
            .map(|()| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_tokens_are_accepted() {
        let signer = IdSigner(hmac::Key::new(hmac::HMAC_SHA256, b"one"));
        let other = IdSigner(hmac::Key::new(hmac::HMAC_SHA256, b"two"));
        let id = Uuid::from_u128(7);
        let token = signer.token(id);
        assert_eq!(signer.read(&token), Some(id));
        assert_eq!(other.read(&token), None);
        for bad in ["", "x", &token[1..], &format!("{token}A"), &token.to_uppercase()] {
            assert_eq!(signer.read(bad), None, "{bad}");
        }
    }
}
