//! Mails to users about their own accounts, such as a changed password.

use uuid::Uuid;

use super::Notifications;
use crate::access::auth::browser_name;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::transport::mail_templates::{AccountMail, AccountMailContent, PasswordLine};
use crate::transport::{Mail, MailAddress};
use model::account::{MessageContent, OutboxMessage, PasswordLinkKind};

impl Notifications {
    /// Renders the mail of a message about an account; `None` if it is no longer needed or the user has no valid
    /// address.
    pub(super) async fn account_mail(&self, message: &OutboxMessage) -> Result<Option<Mail>> {
        let user = self.inner.services.auth.find_user(message.user).await?;
        let Some(user) = user else { return Ok(None) };
        let address = user.user().email_address.as_deref().and_then(MailAddress::parse);
        let Some(to) = address else { return Ok(None) };
        let user_name = user.user().user_name.clone();
        let Some(content) = self.mail_content(message, user_name).await? else { return Ok(None) };
        let settings = self.inner.settings.get();
        let mail = AccountMail {
            site_name: settings.site_name.clone(),
            site_url: settings.site_url.clone(),
            content,
        };
        let rendered = self.inner.services.mail_templates.render_account_mail(&mail)?;
        Ok(Some(Mail {
            id: message.id.to_string(),
            at: message.created,
            to: vec![to],
            subject: rendered.subject,
            text: rendered.text,
            html: Some(rendered.html),
            attachments: Vec::new(),
            inline: Vec::new(),
            // Keeps vacation responders and ticket systems from answering (RFC 3834 §5).
            headers: vec![("Auto-Submitted".to_owned(), "auto-generated".to_owned())],
        }))
    }

    /// Returns the content of the mail; `None` if its links have been used or revoked, or if the message is not about
    /// an account.
    async fn mail_content(
        &self,
        message: &OutboxMessage,
        user_name: String,
    ) -> Result<Option<AccountMailContent>> {
        Ok(Some(match &message.content {
            MessageContent::Push { .. }
            | MessageContent::Item { .. }
            | MessageContent::Digest { .. } => return Ok(None),
            MessageContent::DeviceMoved { model, name } => {
                let name = name.as_deref().unwrap_or_default();
                let device =
                    if name.is_empty() { model.clone() } else { format!("{name} ({model})") };
                AccountMailContent::DeviceMoved { device }
            }
            MessageContent::SetPassword { links } => return self.password_links(links).await,
            MessageContent::PasswordChanged => AccountMailContent::PasswordChanged { user_name },
            MessageContent::KeyMade { name } => {
                AccountMailContent::KeyMade { user_name, key: name.clone() }
            }
            MessageContent::NewBrowser { browser, address } => {
                // An account has no time zone, so the time is in the service's zone.
                let zone = self.inner.settings.get().zone.clone();
                let time = message.created.to_zoned(zone);
                AccountMailContent::NewBrowser {
                    user_name,
                    browser: browser_name(browser.as_deref().unwrap_or("?")),
                    address: address.clone().unwrap_or_default(),
                    time: time.strftime("%Y-%m-%d %H:%M %Z").to_string(),
                }
            }
        }))
    }

    /// Returns the content of the mail with links for choosing a password; `None` if none of them is valid any more.
    async fn password_links(&self, links: &[Uuid]) -> Result<Option<AccountMailContent>> {
        let links = links.to_vec();
        let now = clock::now();
        let reading = self.db().read(move |tx| {
            let mut found = Vec::new();
            for id in links {
                // Links may be used or revoked while the message waits in the outbox.
                let Some(link) = tx.find_password_link(id, now)? else { continue };
                let Some(account) = tx.find_account(link.user)? else { continue };
                found.push((link, account.user.user_name));
            }
            Ok(found)
        });
        let found = reading.await?;
        let invites = found.iter().any(|(link, _)| link.kind == PasswordLinkKind::Invitation);
        let lines = found.into_iter().map(|(link, user_name)| {
            let url = self.inner.services.users.password_link_url(link.id);
            PasswordLine { user_name, url }
        });
        let mut lines: Vec<PasswordLine> = lines.collect();
        if lines.is_empty() {
            return Ok(None);
        }
        if invites && lines.len() == 1 {
            return Ok(lines.pop().map(AccountMailContent::Invitation));
        }
        // Users with the same address get one mail, whose text names each of them.
        Ok(Some(AccountMailContent::PasswordReset(lines)))
    }
}
