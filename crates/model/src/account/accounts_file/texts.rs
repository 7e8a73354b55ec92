//! The text types of an accounts file, one type for each rule.

use std::{fmt, ops::Deref};

use serde::{Deserialize, Serialize};

use super::redirect_uri::redirect_uri_problem;
use crate::limits::{PASSWORD_BYTES_MAX, USER_NAME_BYTES_MAX};

/// Maximum length of a name, a description and other free text in bytes.
const FREE_TEXT_BYTES_MAX: usize = 4096;
/// Maximum length of a product code, a role name and a client id in bytes.
const WORD_BYTES_MAX: usize = 128;
/// The rule that a text breaks if it has control characters; it is shown in one line of a list, a log or a mail.
const NO_CONTROL_CHARACTERS: &str = "has control characters";

/// Defines text types. The function after the name returns the rule that a text breaks; its message never repeats
/// the text.
macro_rules! texts {
    ($($(#[doc = $doc:literal])* $Name:ident: $broken_rule:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $Name(String);

        impl TryFrom<String> for $Name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $broken_rule(&text).map_or(Ok(Self(text)), Err)
            }
        }

        impl Deref for $Name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

texts! {
    /// Text for people, without control characters except line breaks and tabs.
    MultiLineText: multi_line;
    /// One line of text for people.
    SingleLineText: single_line;
    /// A product's code, a role or a client's id: ASCII letters, digits and `_-.:/`.
    AsciiWord: word;
    /// The name with which a user logs in.
    UserName: user_name;
    /// An e-mail address that cannot break the header of a mail. The existence of the address is not checked.
    EmailAddress: email_address;
    /// The domain of e-mail addresses, such as `desk.example`.
    MailDomain: mail_domain;
    /// A redirect URI that a client may register (contract login-7).
    RedirectUri: redirect_uri;
}

fn multi_line(text: &str) -> Option<String> {
    if text.len() > FREE_TEXT_BYTES_MAX {
        return Some(format!("has more than {FREE_TEXT_BYTES_MAX} bytes"));
    }
    let has_control_characters = text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    has_control_characters.then(|| NO_CONTROL_CHARACTERS.to_owned())
}

fn single_line(text: &str) -> Option<String> {
    if text.contains(['\n', '\t']) {
        return Some(NO_CONTROL_CHARACTERS.to_owned());
    }
    multi_line(text)
}

fn word(text: &str) -> Option<String> {
    let is_valid = (1..=WORD_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte));
    (!is_valid).then(|| {
        format!("expected a word of 1 to {WORD_BYTES_MAX} ASCII letters, digits and _-.:/")
    })
}

fn user_name(text: &str) -> Option<String> {
    if !(1..=USER_NAME_BYTES_MAX).contains(&text.len()) {
        return Some(format!("a user name has 1 to {USER_NAME_BYTES_MAX} bytes"));
    }
    text.contains(char::is_control).then(|| NO_CONTROL_CHARACTERS.to_owned())
}

fn email_address(text: &str) -> Option<String> {
    let (local, domain) = text.rsplit_once('@').unwrap_or_default();
    let is_valid = !local.is_empty()
        && !domain.is_empty()
        && text.len() <= USER_NAME_BYTES_MAX
        && !text.contains(|c: char| c.is_control() || c.is_whitespace() || "<>,;".contains(c));
    (!is_valid).then(|| "expected an e-mail address".to_owned())
}

fn mail_domain(text: &str) -> Option<String> {
    // The importer stores it in lower case.
    let domain = text.to_lowercase();
    let is_valid = (1..=USER_NAME_BYTES_MAX).contains(&domain.len())
        && domain.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '.')
        && !domain.starts_with('.')
        && !domain.ends_with('.');
    (!is_valid).then(|| "expected a domain such as desk.example".to_owned())
}

fn redirect_uri(text: &str) -> Option<String> {
    redirect_uri_problem(text).map(str::to_owned)
}

/// Defines types of secrets. `Debug` hides a secret, and there is neither `Display` nor `Serialize`. The function after
/// the name returns the rule that a text breaks; its message never repeats the text.
macro_rules! secrets {
    ($($(#[doc = $doc:literal])* $Name:ident: $broken_rule:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $Name(String);

        impl $Name {
            /// Returns the secret, to be hashed or stored.
            pub fn reveal(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $Name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $broken_rule(&text).map_or(Ok(Self(text)), Err)
            }
        }

        impl fmt::Debug for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("***")
            }
        }
    )*};
}

secrets! {
    /// A password, a client's secret or an API key.
    PlaintextSecret: plaintext_secret;
    /// The argon2id hash of a password or of a client's secret, as an export has it.
    SecretHash: secret_hash;
}

fn plaintext_secret(text: &str) -> Option<String> {
    let is_valid = (1..=PASSWORD_BYTES_MAX).contains(&text.len());
    (!is_valid).then(|| format!("has 1 to {PASSWORD_BYTES_MAX} bytes"))
}

fn secret_hash(text: &str) -> Option<String> {
    let is_valid = text.starts_with("$argon2id$") && text.len() <= PASSWORD_BYTES_MAX;
    (!is_valid).then(|| "expected an argon2id hash".to_owned())
}
