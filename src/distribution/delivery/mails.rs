//! Mails of channels: whether they may be sent, and who has to learn first who has them sent.

use jiff::Timestamp;

use super::{AttemptFailure, Deliveries};
use crate::access::auth::Principal;
use crate::distribution::recipients::MailClearance;
use crate::runtime::clock;
use crate::transport::{Introduction, MailAddress};
use model::account::{Channel, ChannelMethod, UserId};

/// A mail of a channel that may be sent. Channels that send none, and those of the operator, have one
/// to nobody.
#[derive(Default)]
pub(super) struct ClearedMail {
    /// What its recipients are told in front.
    pub(super) introductions: Vec<Introduction>,
    to: Vec<MailAddress>,
    /// When it was counted.
    at: Timestamp,
}

impl Deliveries {
    /// Counts the mail that a channel is about to send.
    ///
    /// Channels of the operator are not limited. Fails for now when the mail has to wait, and for
    /// good when a recipient refused it.
    pub(super) async fn clear_mail(
        &self,
        channel: &Channel,
        user: &Principal,
    ) -> Result<ClearedMail, AttemptFailure> {
        if channel.method != ChannelMethod::Email || !channel.by_user {
            return Ok(ClearedMail::default());
        }
        let to = self.inner.sender.recipients(channel).await?;
        let at = clock::now();
        let cleared = Box::pin(self.inner.recipients.clear(user, &to, at));
        match cleared.await? {
            MailClearance::Granted(introductions) => Ok(ClearedMail { introductions, to, at }),
            MailClearance::Postponed { why, .. } => Err(AttemptFailure::temporary(why)),
            MailClearance::Refused { why, .. } => Err(AttemptFailure::permanent(why)),
        }
    }

    /// Notes that recipients whose mail went out have read who has it sent to them. Where none went out
    /// (`failed`), the mail was not counted.
    pub(super) async fn record_introductions(
        &self,
        user: UserId,
        mail: ClearedMail,
        failed: bool,
    ) {
        let ClearedMail { mut introductions, to, at } = mail;
        introductions.retain(|introduction| introduction.sent.is_set());
        let recipients = &self.inner.recipients;
        if !introductions.is_empty() {
            let told = recipients.record_introductions(user, &introductions, clock::now());
            if let Err(cause) = told.await {
                // The next mail says once more who has it sent.
                tracing::warn!("that a recipient was introduced cannot be written: {cause}");
            }
        } else if failed
            && !to.is_empty()
            && let Err(cause) = recipients.refund(user, &to, at).await
        {
            tracing::warn!("a mail that was not sent stays counted: {cause}");
        }
    }
}
