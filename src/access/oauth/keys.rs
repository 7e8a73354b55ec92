//! The keys that sign id tokens: RSA with 2048 bits, stored in the database.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Map, Value, json};

use crate::runtime::error::{Error, Result};
use crate::storage::database::{Db, DbError, SigningKey};
use model::ContentHash;

/// The current signing key, and the public keys of it and its predecessors.
pub(super) struct SigningKeySet {
    kid: String,
    /// `None` on a read-only node that cannot decrypt the archive's secrets: it signs nothing.
    signing: Option<EncodingKey>,
    published: Vec<Value>,
}

impl SigningKeySet {
    /// Loads the keys, and generates a key if there is no current one. Blocks.
    ///
    /// Generating a key lasts a tenth of a second, so it happens outside the transaction, which checks again:
    /// if two processes start at the same time, one stores its key and both use it.
    pub(super) fn load(db: &Db, now: Timestamp) -> Result<Self> {
        let mut keys = match db.read_blocking(|tx| tx.list_signing_keys()) {
            Err(DbError::Secret(_)) if db.is_read_only() => {
                return Ok(Self { kid: String::new(), signing: None, published: Vec::new() });
            }
            found => found?,
        };
        // Retired keys are only published, and a new key is needed to sign.
        if keys.iter().all(|key| key.is_retired) {
            let generated = make()?;
            keys = db.write_blocking(move |tx| {
                let stored = tx.list_signing_keys()?;
                if stored.iter().all(|key| key.is_retired) {
                    tx.write_signing_key(&generated, now)?;
                }
                tx.list_signing_keys()
            })?;
        }
        Self::from_rows(&keys)
    }

    /// Builds the set from rows, newest first; the first key that is not retired signs.
    pub(super) fn from_rows(keys: &[SigningKey]) -> Result<Self> {
        let current = keys.iter().find(|key| !key.is_retired);
        let current = current.ok_or_else(|| Error::internal("there is no signing key"))?;
        Ok(Self {
            kid: current.kid.clone(),
            signing: Some(encoding_key(&current.pkcs8)?),
            published: keys.iter().map(publish).collect::<Result<_>>()?,
        })
    }

    /// Returns the public keys (RFC 7517 §5), including retired ones, because their id tokens may still be
    /// verified.
    pub(super) fn key_set(&self) -> Value {
        json!({ "keys": self.published })
    }

    /// Signs `claims` and returns the JWT. Costs about a millisecond.
    pub(super) fn sign(&self, claims: &Map<String, Value>) -> Result<String> {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(self.kid.clone());
        let Some(signing) = &self.signing else {
            return Err(Error::internal("this node has no signing key"));
        };
        jsonwebtoken::encode(&header, claims, signing).map_err(Error::internal)
    }
}

/// Generates a key, which lasts a tenth of a second.
pub(super) fn make() -> Result<SigningKey> {
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(generation_error)?;
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der().map_err(generation_error)?;
    let pkcs8 = pkcs8.as_ref().to_vec();
    let (n, e) = components(&encoding_key(&pkcs8)?)?;
    // The thumbprint of RFC 7638: required members only, in alphabetical order.
    let thumbprint = format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#);
    let kid = URL_SAFE_NO_PAD.encode(ContentHash::new(thumbprint.as_bytes()).0);
    Ok(SigningKey { kid, pkcs8, is_retired: false })
}

fn generation_error(_: Unspecified) -> Error {
    Error::internal("a signing key cannot be created")
}

/// Converts a key for jsonwebtoken, which uses PKCS #1 inside and accepts PKCS #8 only as PEM.
fn encoding_key(pkcs8: &[u8]) -> Result<EncodingKey> {
    let text = STANDARD.encode(pkcs8);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    EncodingKey::from_rsa_pem(pem.as_bytes()).map_err(Error::internal)
}

/// Returns modulus and exponent as base64url.
fn components(key: &EncodingKey) -> Result<(String, String)> {
    let key = Jwk::from_encoding_key(key, Algorithm::RS256).map_err(Error::internal)?;
    let AlgorithmParameters::RSA(key) = key.algorithm else {
        return Err(Error::internal("not an RSA key"));
    };
    Ok((key.n, key.e))
}

fn publish(key: &SigningKey) -> Result<Value> {
    let (n, e) = components(&encoding_key(&key.pkcs8)?)?;
    Ok(json!({
        "kty": "RSA", "use": "sig", "alg": "RS256", "kid": key.kid, "n": n, "e": e,
    }))
}
