//! Mails of channels: checks that they may be sent, and finds the recipients to whom the sender must be
//! introduced.

use jiff::Timestamp;

use super::{AttemptFailure, Deliveries};
use crate::access::auth::Principal;
use crate::distribution::recipients::MailClearance;
use crate::runtime::clock;
use crate::transport::{Introduction, MailAddress};
use model::account::{Channel, ChannelMethod, UserId};

/// A mail of a channel that may be sent. Empty for channels that send no mail and for the operator's channels.
#[derive(Default)]
pub(super) struct ClearedMail {
    /// Introductions of the sender, for recipients who have not received one.
    pub(super) introductions: Vec<Introduction>,
    to: Vec<MailAddress>,
    /// The time at which the mail was counted against the limits.
    at: Timestamp,
}

impl Deliveries {
    /// Counts the mail that a channel is about to send against the limits.
    ///
    /// The operator's channels are not limited. Fails temporarily if the mail has to wait, and permanently if a
    /// recipient refused it.
    pub(super) async fn clear_mail(
        &self,
        channel: &Channel,
        user: &Principal,
    ) -> Result<ClearedMail, AttemptFailure> {
        if channel.method != ChannelMethod::Email || !channel.by_user {
            return Ok(ClearedMail::default());
        }
        let to = self.inner.services.sender.recipients(channel).await?;
        let at = clock::now();
        let cleared = Box::pin(self.inner.services.recipients.clear(user, &to, at));
        match cleared.await? {
            MailClearance::Granted(introductions) => Ok(ClearedMail { introductions, to, at }),
            MailClearance::Postponed { why, .. } => Err(AttemptFailure::temporary(why)),
            MailClearance::Refused { why, .. } => Err(AttemptFailure::permanent(why)),
        }
    }

    /// Records that the sender was introduced to recipients whose mail was sent. If the attempt failed before any
    /// mail was sent (`failed`), the count is refunded.
    pub(super) async fn record_introductions(
        &self,
        user: UserId,
        mail: ClearedMail,
        failed: bool,
    ) {
        let ClearedMail { mut introductions, to, at } = mail;
        // An attempt can fail after some of its mails were sent; only those mails have introduced the sender.
        introductions.retain(|introduction| introduction.sent.is_set());
        let recipients = &self.inner.services.recipients;
        if !introductions.is_empty() {
            recipients.record_introductions(user, &introductions, clock::now()).await;
        } else if failed && !to.is_empty() {
            recipients.refund(user, &to, at).await;
        }
    }
}
