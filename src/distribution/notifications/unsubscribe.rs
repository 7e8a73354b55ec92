//! Links that end a notification without a login (RFC 8058).
//!
//! A link names the notification and carries a signature over that name: whoever has the mail may
//! end what sends it, and nobody else.

use uuid::Uuid;

use super::Notifications;
use crate::runtime::error::Result;

/// Name of the secret in the database that links are signed with.
pub(super) const UNSUBSCRIBE_KEY: &str = "unsubscribe-key";

/// What a link is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkedSubscription {
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
    pub async fn subscription(&self, token: &str) -> Result<Option<LinkedSubscription>> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(None) };
        let found = self.db().read(move |tx| tx.find_notification(id)).await?;
        Ok(Some(
            found.map_or(LinkedSubscription::Ended, |one| LinkedSubscription::Active(one.title)),
        ))
    }

    /// Ends the notification of the link with `token`, if it is there; gives whether we wrote the
    /// token.
    pub async fn unsubscribe(&self, token: &str) -> Result<bool> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(false) };
        self.db().write(move |tx| tx.delete_notification(id, None)).await?;
        Ok(true)
    }
}
