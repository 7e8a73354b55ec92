//! The texts of mails: subject, text and HTML, from templates.
//!
//! Templates are in the binary; an operator's folder may hold others of the same names. Whatever
//! comes from documents is made one line and cut here, then escaped by the templates' names: those
//! that end in `.html` escape, those that end in `.txt` have nothing to escape. Who gets a mail, and
//! how it travels, is left to others.

mod account_mail;
mod line;
mod templates;
#[cfg(test)]
mod tests;
mod view;

use std::path::Path;

use minijinja::{Environment, context, value::Serde};

pub use self::account_mail::{AccountMail, AccountMailContent, PasswordLine};
pub use self::line::line;
use self::view::MailView;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits;

/// The compiled templates of mails.
pub struct MailTemplates {
    environment: Environment<'static>,
}

/// What a mail tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationMail {
    /// Name of the service.
    pub site_name: String,
    /// Title of the notification.
    pub title: String,
    /// What it is sent for.
    pub occasion: MailOccasion,
    /// The items, in the order of the mail; of a digest at most
    /// [`LETTER_ENTRIES_MAX`](limits::MAIL_DIGEST_ITEMS_MAX) are shown, of an item's mail one.
    pub entries: Vec<MailEntry>,
    /// Items that matched but are not among the entries.
    pub more: usize,
    /// Where a reader ends the notification, `http` or `https`.
    pub unsubscribe_url: String,
    /// The service's own page, `http` or `https`.
    pub site_url: String,
}

/// What a mail is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailOccasion {
    /// One item that came in.
    Item,
    /// What came in since the last digest.
    Digest,
}

/// An item in a mail. Any text may be empty and hold anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailEntry {
    /// Headline.
    pub headline: String,
    /// Description.
    pub description: String,
    /// Byline.
    pub byline: String,
    /// Source.
    pub source: String,
    /// Word for the media type.
    pub media_type: String,
    /// When it came in, as it is shown.
    pub time: String,
    /// The item's page, `http` or `https`.
    pub url: String,
    /// A picture that travels with the mail.
    pub thumbnail: Option<MailThumbnail>,
}

/// A picture that travels with the mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailThumbnail {
    /// Id of the part that holds it: 1 to 128 letters, digits, `.`, `_` and `-`.
    pub cid: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// The texts of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailTexts {
    /// One line of at most [`MAIL_SUBJECT_CHARS_MAX`](limits::MAIL_SUBJECT_CHARS_MAX) characters and
    /// `…`.
    pub subject: String,
    /// The text for readers without HTML.
    pub text: String,
    /// The same in HTML.
    pub html: String,
}

impl MailOccasion {
    fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Digest => "digest",
        }
    }
}

impl MailTemplates {
    /// Compiles the templates, those in the folder `overrides` instead of ours.
    ///
    /// Each is tried with letters of every shape, so a template that compiles here writes. Fails
    /// with the name of the template and the reason when one does not, when the folder cannot be
    /// read, and when it has a template by a name that nobody asks for.
    pub fn compile(overrides: Option<&Path>) -> Result<Self> {
        let letters = Self { environment: templates::load(overrides)? };
        let unusable = |error: Error| {
            let cause = error.cause().unwrap_or_default();
            Error::new(ErrorKind::InvalidArgument, format!("mail template: {cause}"))
        };
        for letter in view::samples() {
            letters.render_notification(&letter).map_err(unusable)?;
        }
        for notice in account_mail::samples() {
            letters.render_account_mail(&notice).map_err(unusable)?;
        }
        Ok(letters)
    }

    /// Writes the mail.
    ///
    /// Fails for an address that is not `http` or `https` and an id of a picture that is none, both
    /// of which are mistakes of the caller.
    pub fn render_notification(&self, letter: &NotificationMail) -> Result<MailTexts> {
        let view = MailView::of(letter)?;
        let name = letter.occasion.name();
        let subject = self.render(&format!("{name}.subject.txt"), &view, "")?;
        let subject = line(&subject, limits::MAIL_SUBJECT_CHARS_MAX);
        let text = self.render(&format!("{name}.txt"), &view, &subject)?;
        let html = self.render(&format!("{name}.html"), &view, &subject)?;
        Ok(MailTexts { subject, text, html })
    }

    fn render(&self, name: &str, view: &MailView, subject: &str) -> Result<String> {
        let template = self.environment.get_template(name).map_err(Error::internal)?;
        let context = context! { subject, ..minijinja::Value::from(Serde(view)) };
        template.render(context).map_err(Error::internal)
    }
}
