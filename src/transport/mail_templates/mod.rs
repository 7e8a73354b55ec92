//! The texts of mails: subject, text and HTML, from templates.
//!
//! Templates are in the binary; an operator's folder may hold others of the same names. Whatever
//! comes from documents is made one line and cut here, then escaped by the templates' names: those
//! that end in `.html` escape, those that end in `.txt` have nothing to escape. Who gets a mail, and
//! how it travels, is left to others.

mod line;
mod notice;
mod templates;
#[cfg(test)]
mod tests;
mod view;

use std::path::Path;

use minijinja::{Environment, context, value::Serde};

pub use self::line::line;
pub use self::notice::{Notice, NoticeContent, PasswordLine};
use self::view::View;
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits;

/// The compiled templates of mails.
pub struct Letters {
    environment: Environment<'static>,
}

/// What a mail tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Name of the service.
    pub site_name: String,
    /// Title of the notification.
    pub title: String,
    /// What it is sent for.
    pub occasion: Occasion,
    /// The items, in the order of the mail; of a digest at most
    /// [`LETTER_ENTRIES_MAX`](limits::LETTER_ENTRIES_MAX) are shown, of an item's mail one.
    pub entries: Vec<Entry>,
    /// Items that matched but are not among the entries.
    pub more: usize,
    /// Where a reader ends the notification, `http` or `https`.
    pub unsubscribe_url: String,
    /// The service's own page, `http` or `https`.
    pub site_url: String,
}

/// What a mail is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// One item that came in.
    Item,
    /// What came in since the last digest.
    Digest,
}

/// An item in a mail. Any text may be empty and hold anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
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
    pub thumbnail: Option<Thumb>,
}

/// A picture that travels with the mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumb {
    /// Id of the part that holds it: 1 to 128 letters, digits, `.`, `_` and `-`.
    pub cid: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// The texts of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// One line of at most [`MAIL_SUBJECT_CHARS_MAX`](limits::MAIL_SUBJECT_CHARS_MAX) characters and
    /// `…`.
    pub subject: String,
    /// The text for readers without HTML.
    pub text: String,
    /// The same in HTML.
    pub html: String,
}

impl Occasion {
    fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Digest => "digest",
        }
    }
}

impl Letters {
    /// Compiles the templates, those in the folder `overrides` instead of ours.
    ///
    /// Each is tried with letters of every shape, so a template that compiles here writes. Fails
    /// with the name of the template and the reason when one does not, when the folder cannot be
    /// read, and when it has a template by a name that nobody asks for.
    pub fn compile(overrides: Option<&Path>) -> Result<Self> {
        let letters = Self { environment: templates::load(overrides)? };
        let unusable = |error: Error| {
            let cause = error.cause().unwrap_or_default();
            Error::new(Kind::InvalidArgument, format!("mail template: {cause}"))
        };
        for letter in view::samples() {
            letters.write(&letter).map_err(unusable)?;
        }
        for notice in notice::samples() {
            letters.write_notice(&notice).map_err(unusable)?;
        }
        Ok(letters)
    }

    /// Writes the mail.
    ///
    /// Fails for an address that is not `http` or `https` and an id of a picture that is none, both
    /// of which are mistakes of the caller.
    pub fn write(&self, letter: &Letter) -> Result<Written> {
        let view = View::of(letter)?;
        let name = letter.occasion.name();
        let subject = self.render(&format!("{name}.subject.txt"), &view, "")?;
        let subject = line(&subject, limits::MAIL_SUBJECT_CHARS_MAX);
        let text = self.render(&format!("{name}.txt"), &view, &subject)?;
        let html = self.render(&format!("{name}.html"), &view, &subject)?;
        Ok(Written { subject, text, html })
    }

    fn render(&self, name: &str, view: &View, subject: &str) -> Result<String> {
        let template = self.environment.get_template(name).map_err(Error::internal)?;
        let context = context! { subject, ..minijinja::Value::from(Serde(view)) };
        template.render(context).map_err(Error::internal)
    }
}
