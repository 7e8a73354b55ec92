//! Links that end a notification without a login (RFC 8058).
//!
//! A link names the notification and carries a signature over that name: whoever has the mail may
//! end what sends it, and nobody else.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::Notifications;
use crate::db::Db;
use crate::db::DbError;
use crate::error::{Error, Result};

/// Name of the note that holds the key.
const KEY: &str = "unsubscribe-key";
/// Bytes of a signature in a link: enough that nobody guesses one.
const SIGNATURE_BYTES: usize = 16;

/// Signs links and checks them.
pub(super) struct Signer(hmac::Key);

impl Signer {
    /// The key of the database, which gets one when it has none.
    pub(super) fn open(db: &Db) -> Result<Self> {
        let text = match db.read_blocking(|tx| tx.find_secret_state(KEY)) {
            Ok(Some(known)) => known,
            Ok(None) => Self::draw(db)?,
            // A node that only reads sends no mails and needs no keys of the archive: a key of its own
            // checks none of their links.
            Err(DbError::Secret(_)) if db.only_reads() => random_key()?,
            Err(cause) => return Err(cause.into()),
        };
        let key = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(Error::internal)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Draws a key, unless another process was faster.
    fn draw(db: &Db) -> Result<String> {
        let fresh = random_key()?;
        Ok(db.write_blocking(move |tx| match tx.as_read().find_secret_state(KEY)? {
            Some(known) => Ok(known),
            None => tx.write_secret_state(KEY, &fresh).map(|()| fresh),
        })?)
    }

    /// The token of a link: 43 characters of the web's base64.
    pub(super) fn token(&self, id: Uuid) -> String {
        let signature = hmac::sign(&self.0, id.as_bytes());
        let mut bytes = id.as_bytes().to_vec();
        bytes.extend_from_slice(&signature.as_ref()[..SIGNATURE_BYTES]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    fn read(&self, token: &str) -> Option<Uuid> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (id, _) = bytes.split_first_chunk::<16>()?;
        let id = Uuid::from_bytes(*id);
        // Looked at in the same time wherever it differs.
        let ours = self.token(id);
        aws_lc_rs::constant_time::verify_slices_are_equal(ours.as_bytes(), token.as_bytes())
            .ok()
            .map(|()| id)
    }
}

fn random_key() -> Result<String> {
    let mut fresh = [0; 32];
    SystemRandom::new()
        .fill(&mut fresh)
        .map_err(|_| Error::internal("the system gives no random numbers"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(fresh))
}

/// What a link is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subscription {
    /// A notification that is there, with its title.
    Active(String),
    /// One that was ended.
    Ended,
}

impl Notifications {
    /// The address that ends the notification `id`.
    pub(super) fn unsubscribe_url(&self, id: Uuid) -> String {
        let site = &self.inner.settings.get().site_url;
        format!("{site}/unsubscribe/{}", self.inner.signer.token(id))
    }

    /// What the link with `token` is about; nothing for a token that we did not write.
    pub async fn subscription(&self, token: &str) -> Result<Option<Subscription>> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(None) };
        let found = self.db().read(move |tx| tx.find_notification(id)).await?;
        Ok(Some(found.map_or(Subscription::Ended, |one| Subscription::Active(one.title))))
    }

    /// Ends the notification of the link with `token`, if it is there; gives whether we wrote the
    /// token.
    pub async fn unsubscribe(&self, token: &str) -> Result<bool> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(false) };
        self.db().write(move |tx| tx.delete_notification(id, None)).await?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_and_any_other_is_none() {
        let signer = Signer(hmac::Key::new(hmac::HMAC_SHA256, b"one"));
        let other = Signer(hmac::Key::new(hmac::HMAC_SHA256, b"two"));
        let id = Uuid::from_u128(7);
        let token = signer.token(id);
        assert_eq!(signer.read(&token), Some(id));
        assert_eq!(other.read(&token), None);
        for bad in ["", "x", &token[1..], &format!("{token}A"), &token.to_uppercase()] {
            assert_eq!(signer.read(bad), None, "{bad}");
        }
    }
}
