//! Mails to users about their own accounts. They are in English and Swedish, because the recipient's language is
//! unknown.

use minijinja::{Value, context};
use strum::IntoStaticStr;

use super::{MailTemplates, MailTexts, line, view::address};
use crate::runtime::error::Result;
use crate::runtime::limits::MAIL_NAME_CHARS_MAX;

/// A mail to a user about the user's own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountMail {
    pub site_name: String,
    /// The home page of the service, `http` or `https`.
    pub site_url: String,
    pub content: AccountMailContent,
}

/// The occasion of a mail about an account, with its facts. The serialized name begins the names of its templates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AccountMailContent {
    /// A different user registered a device of the recipient.
    #[strum(serialize = "device")]
    DeviceMoved { device: String },
    /// The recipient is invited to set a first password.
    Invitation(PasswordLine),
    /// A password reset was requested: one link for each user with the recipient's address.
    PasswordReset(Vec<PasswordLine>),
    /// The recipient's password was changed.
    PasswordChanged { user_name: String },
    /// An API key was created for the recipient.
    KeyMade { user_name: String, key: String },
    /// The recipient logged in with an unknown browser.
    NewBrowser {
        user_name: String,
        /// The browser and the operating system, if known.
        browser: String,
        /// The network address; may be empty.
        address: String,
        /// The formatted time of the login.
        time: String,
    },
}

/// A user name with the link that sets its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordLine {
    pub user_name: String,
    /// The link, `http` or `https`.
    pub url: String,
}

impl AccountMailContent {
    fn facts(&self) -> Result<Value> {
        Ok(match self {
            Self::DeviceMoved { device } => context! { device => short(device) },
            Self::Invitation(password) => link(password)?,
            Self::PasswordReset(links) => {
                let links = links.iter().map(link).collect::<Result<Vec<_>>>()?;
                context! { links }
            }
            Self::PasswordChanged { user_name } => context! { user_name => short(user_name) },
            Self::KeyMade { user_name, key } => {
                context! { user_name => short(user_name), key => short(key) }
            }
            Self::NewBrowser { user_name, browser, address, time } => context! {
                user_name => short(user_name), browser => short(browser),
                address => short(address), time => short(time),
            },
        })
    }
}

/// Shortens the name of a user, device, key or browser. Clients choose most of these names.
fn short(name: &str) -> String {
    line(name, MAIL_NAME_CHARS_MAX)
}

fn link(password: &PasswordLine) -> Result<Value> {
    Ok(context! {
        user_name => short(&password.user_name), url => address(&password.url)?,
    })
}

impl MailTemplates {
    /// Renders a mail about an account.
    ///
    /// Fails for a URL that is not `http` or `https`, which is a mistake of the caller.
    pub fn render_account_mail(&self, mail: &AccountMail) -> Result<MailTexts> {
        let name: &str = (&mail.content).into();
        let site = mail.site_url.trim_end_matches('/');
        let facts = context! {
            site_name => line(&mail.site_name, MAIL_NAME_CHARS_MAX),
            site_url => address(&mail.site_url)?,
            devices_url => address(&format!("{site}/account/devices"))?,
            security_url => address(&format!("{site}/account/security"))?,
            forgotten_url => address(&format!("{site}/o/password"))?,
            ..mail.content.facts()?
        };
        self.render_texts(name, &facts)
    }
}

/// Returns a mail of each kind for the validation of templates.
pub(super) fn samples() -> impl Iterator<Item = AccountMail> {
    let user_name = "user@example.org".to_owned();
    let link = PasswordLine {
        user_name: user_name.clone(),
        url: "https://example.org/o/password/1".to_owned(),
    };
    let contents = [
        AccountMailContent::DeviceMoved { device: "Phone".to_owned() },
        AccountMailContent::Invitation(link.clone()),
        AccountMailContent::PasswordReset(vec![link.clone()]),
        // A template may handle a single link as a special case.
        AccountMailContent::PasswordReset(vec![link.clone(), link]),
        AccountMailContent::PasswordChanged { user_name: user_name.clone() },
        AccountMailContent::KeyMade { user_name: user_name.clone(), key: "Layout".to_owned() },
        AccountMailContent::NewBrowser {
            user_name,
            browser: "Firefox, Linux".to_owned(),
            address: "192.0.2.1".to_owned(),
            time: "2026-01-01 00:00".to_owned(),
        },
    ];
    contents.into_iter().map(|content| AccountMail {
        site_name: "Wirephoto".to_owned(),
        site_url: "https://example.org/".to_owned(),
        content,
    })
}
