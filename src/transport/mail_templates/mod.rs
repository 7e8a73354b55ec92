//! Renders mails from templates: subject, text and HTML.
//!
//! Templates are embedded in the binary; an operator's folder may override them by name. Values from documents are
//! reduced to one line and truncated here, then escaped according to the template's name: `.html` templates
//! escape, `.txt` templates do not need to. Recipients and transport are handled elsewhere.

mod account_mail;
mod templates;
#[cfg(test)]
mod tests;
mod view;

use std::path::Path;

use minijinja::{Environment, Value, context};
use strum::IntoStaticStr;

pub use self::account_mail::{AccountMail, AccountMailContent, PasswordLine};
pub use self::templates::escape;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits;
pub use crate::transport::line::line;

/// The compiled templates of mails.
pub struct MailTemplates {
    environment: Environment<'static>,
}

/// The facts of a notification mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationMail {
    pub site_name: String,
    pub title: String,
    pub occasion: MailOccasion,
    /// The items, in the order of the mail. A digest shows at most
    /// [`MAIL_DIGEST_ITEMS_MAX`](limits::MAIL_DIGEST_ITEMS_MAX), an item's mail one.
    pub entries: Vec<MailEntry>,
    /// The number of matching items that are not among the entries.
    pub more: usize,
    /// The URL that ends the notification, `http` or `https`.
    pub unsubscribe_url: String,
    /// The home page of the service, `http` or `https`.
    pub site_url: String,
}

/// The occasion of a notification mail. The serialized name begins the names of its templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum MailOccasion {
    /// One new item matches.
    Item,
    /// The new items since the last digest.
    Digest,
}

/// An item in a mail. Its texts are untrusted and may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailEntry {
    pub headline: String,
    pub description: String,
    pub byline: String,
    pub source: String,
    /// The media type as in URIs, such as `image`.
    pub media_type: String,
    /// The formatted time of the version.
    pub time: String,
    /// The URL of the item's page, `http` or `https`.
    pub url: String,
    /// A picture that is embedded in the mail.
    pub thumbnail: Option<MailThumbnail>,
}

/// A picture that is embedded in the mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailThumbnail {
    /// The content id of the picture's MIME part: 1 to 128 letters, digits, `.`, `_` and `-`.
    pub cid: String,
    /// The width in pixels. The height is in pixels too.
    pub width: u32,
    pub height: u32,
}

/// The rendered texts of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailTexts {
    /// One line of at most [`MAIL_SUBJECT_CHARS_MAX`](limits::MAIL_SUBJECT_CHARS_MAX) characters and `…`.
    pub subject: String,
    pub text: String,
    pub html: String,
}

impl MailTemplates {
    /// Compiles the templates. Templates in the folder `overrides` replace the embedded ones.
    ///
    /// Renders each template with sample mails of every kind, so that a template that passes here does not fail
    /// later. Fails with the name of the template and the reason if one does not render, if the folder cannot be
    /// read, or if it contains a template with an unknown name.
    pub fn compile(overrides: Option<&Path>) -> Result<Self> {
        let compiled = Self { environment: templates::load(overrides)? };
        // A template may fail only for rare values, such as an item without a headline.
        for mail in view::samples() {
            compiled.render_notification(&mail).map_err(|error| unusable(&error))?;
        }
        for mail in account_mail::samples() {
            compiled.render_account_mail(&mail).map_err(|error| unusable(&error))?;
        }
        Ok(compiled)
    }

    /// Renders a notification mail.
    ///
    /// Fails for a URL that is not `http` or `https` and for an invalid content id, both of which are mistakes of
    /// the caller.
    pub fn render_notification(&self, mail: &NotificationMail) -> Result<MailTexts> {
        self.render_texts(mail.occasion.into(), &view::notification_context(mail)?)
    }

    /// Renders the templates whose names begin with `name`.
    fn render_texts(&self, name: &str, facts: &Value) -> Result<MailTexts> {
        // Rendered first, because text and HTML may repeat it.
        let subject = self.render(&format!("{name}.subject.txt"), facts, "")?;
        let subject = line(&subject, limits::MAIL_SUBJECT_CHARS_MAX);
        let text = self.render(&format!("{name}.txt"), facts, &subject)?;
        let html = self.render(&format!("{name}.html"), facts, &subject)?;
        Ok(MailTexts { subject, text, html })
    }

    fn render(&self, name: &str, facts: &Value, subject: &str) -> Result<String> {
        let template = self.environment.get_template(name).map_err(Error::internal)?;
        template.render(context! { subject, ..facts.clone() }).map_err(Error::internal)
    }
}

fn unusable(error: &Error) -> Error {
    let cause = error.cause().unwrap_or_default();
    Error::new(ErrorKind::InvalidArgument, format!("mail template: {cause}"))
}
