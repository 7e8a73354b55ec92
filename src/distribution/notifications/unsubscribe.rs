//! Links that end a notification without a login (RFC 8058).
//!
//! A link contains the notification's id and a signature over it, so that only recipients of the mail can end the
//! notification.

use uuid::Uuid;

use super::Notifications;
use crate::runtime::error::Result;

/// The name of the database secret that signs the links.
pub(super) const UNSUBSCRIBE_KEY: &str = "unsubscribe-key";

/// The notification to which a link refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkedSubscription {
    /// An existing notification, with its title.
    Active(String),
    /// The notification was removed.
    Ended,
}

impl Notifications {
    /// Returns the URL that ends the notification `id`.
    pub(super) fn unsubscribe_url(&self, id: Uuid) -> String {
        let site = &self.inner.settings.get().site_url;
        format!("{site}/unsubscribe/{}", self.inner.signer.token(id))
    }

    /// Looks up the notification of the link with `token`; `None` for a token with a wrong signature.
    pub async fn subscription(&self, token: &str) -> Result<Option<LinkedSubscription>> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(None) };
        let found = self.db().read(move |tx| tx.find_notification(id)).await?;
        Ok(Some(match found {
            Some(notification) => LinkedSubscription::Active(notification.title),
            None => LinkedSubscription::Ended,
        }))
    }

    /// Removes the notification of the link with `token`, if it exists. Returns whether the token's signature is
    /// valid.
    pub async fn unsubscribe(&self, token: &str) -> Result<bool> {
        let Some(id) = self.inner.signer.read(token) else { return Ok(false) };
        // The signature replaces the check of the owner. A notification that was already removed counts as
        // removed, since mail programs may follow a link several times.
        self.db().write(move |tx| tx.delete_notification(id, None)).await?;
        Ok(true)
    }
}
