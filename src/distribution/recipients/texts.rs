//! Texts that introduce the sender of a mail to its recipients.
//!
//! The names in them come from users, so they are shortened to one line and escaped in HTML.

use jiff::Timestamp;
use uuid::Uuid;

use crate::transport::mail_templates::{escape, line};
use crate::transport::{Introduction, Mail, MailAddress, SentMark};
use model::account::Account;

/// Maximum length of a name or a subject, in characters.
const LINE_CHARS_MAX: usize = 80;

/// Returns the sender's name for recipients: the user's name, and the organization if there is one.
pub(super) fn sender(account: &Account) -> String {
    let name = line(&account.user.display_name(), LINE_CHARS_MAX);
    let organization = account.organization.as_ref().and_then(|found| found.name.as_deref());
    let organization = organization.map(|name| line(name, LINE_CHARS_MAX));
    match organization.filter(|organization| !organization.is_empty()) {
        Some(organization) => format!("{name} ({organization})"),
        None => name,
    }
}

/// Builds the text before the first mail to a recipient. The link `url` leads to the page on which the recipient can stop
/// further mails; `sender` comes from [`sender()`].
pub(super) fn introduction(
    to: &MailAddress,
    sender: &str,
    site_name: &str,
    url: &str,
) -> Introduction {
    let text = format!(
        "{sender} sends e-mail like this from {site_name} to your address. This is the first \
         message.\nStop e-mail from {sender}:\n{url}"
    );
    let sender = escape(sender);
    let site_name = escape(site_name);
    let url = escape(url);
    let html = format!(
        "<p style=\"max-width: 600px; margin: 16px auto; padding: 0 16px; font-family: sans-serif; \
         font-size: 14px; line-height: 21px;\"><strong dir=\"auto\">{sender}</strong> sends \
         e-mail like this from {site_name} to your address. This is the first message. \
         <a href=\"{url}\">Stop e-mail from <span dir=\"auto\">{sender}</span></a></p>"
    );
    Introduction { to: to.clone(), text, html, sent: SentMark::default() }
}

/// Builds the mail that asks a recipient to accept mails, on the page to which the link `url` leads.
pub(super) fn confirmation(
    to: &MailAddress,
    sender: &str,
    site_name: &str,
    url: &str,
    at: Timestamp,
) -> Mail {
    // The seven days are `CONFIRM_TIME`.
    let text = format!(
        "{sender} wants to send e-mail from {site_name} to your address.\n\n\
         Nothing is sent unless you accept within seven days. Accept or decline:\n{url}\n\n\
         If you do nothing, you receive no e-mail.\n"
    );
    Mail {
        id: Uuid::now_v7().to_string(),
        at,
        to: vec![to.clone()],
        subject: line(&format!("{site_name}: accept e-mail to your address?"), LINE_CHARS_MAX),
        text,
        html: None,
        inline: Vec::new(),
        attachments: Vec::new(),
        // Keeps vacation responders from answering (RFC 3834 §5).
        headers: vec![("Auto-Submitted".to_owned(), "auto-generated".to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_stay_text_in_both_forms() {
        let to = MailAddress::parse("a@b.example").unwrap();
        let found = introduction(&to, "<b>E\"ve</b>", "Wire", "https://w.example/mail/t");
        assert!(found.html.contains("&lt;b&gt;E&quot;ve&lt;/b&gt;"), "{}", found.html);
        assert!(!found.html.contains("<b>"));
        assert!(found.text.contains("<b>E\"ve</b>") && found.text.ends_with("/mail/t"));
    }
}
