//! Rules for a new password of a user, and its hash.
//!
//! A password must be long, and must not be one of the passwords that attackers try first. There are no rules
//! about kinds of characters, because they make passwords worse (NIST SP 800-63B §3.1.1.2, OWASP ASVS 5 6.2).

use std::io::{BufRead, BufReader};
use std::net::IpAddr;

use flate2::read::GzDecoder;

use super::Auth;
use crate::runtime::error::Result;
use model::account::User;
use model::limits::PASSWORD_BYTES_MAX;

/// Minimum characters of a password that a user sets (OWASP ASVS 5, 6.2.1 requires 8 and
/// recommends 15).
const PASSWORD_CHARS_MIN: usize = 12;
/// The passwords of at least 12 characters that occur most often in public leaks, in lower case and sorted;
/// see `assets/LICENSES.md`.
static LEAKED: &[u8] = include_bytes!("../../../assets/passwords/leaked.txt.gz");

/// Minimum number of characters in a password besides the names of its user.
const OWN_CHARS_MIN: usize = 8;

/// The reason why a new password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFlaw {
    /// The password has fewer than [`PASSWORD_CHARS_MIN`] characters.
    TooShort,
    /// The password has more than [`PASSWORD_BYTES_MAX`] bytes.
    TooLong,
    /// The password is one of the most frequently leaked passwords, or repeats a few characters.
    Leaked,
    /// The password is little more than the name or address of its user.
    Personal,
}

impl PasswordFlaw {
    /// Returns the code of the flaw in responses.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooShort => "password_too_short",
            Self::TooLong => "password_too_long",
            Self::Leaked => "password_leaked",
            Self::Personal => "password_personal",
        }
    }

    /// Returns the message for the user, in English.
    pub fn text(self) -> &'static str {
        match self {
            Self::TooShort => "The password needs at least 12 characters.",
            Self::TooLong => "The password is too long. At most 1,024 bytes are allowed.",
            Self::Leaked => {
                "This password is easy to guess: it is on a list of leaked ones. Choose another one."
            }
            Self::Personal => {
                "The password is little more than your name or address. Choose another one."
            }
        }
    }
}

/// Checks a new password of `user`.
///
/// Reads the list of leaked passwords, which costs some milliseconds.
pub fn check_new_password(password: &str, user: &User) -> Result<(), PasswordFlaw> {
    // Characters and not bytes: `å` has two bytes and is as easy to guess as `a`.
    if password.chars().count() < PASSWORD_CHARS_MIN {
        return Err(PasswordFlaw::TooShort);
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(PasswordFlaw::TooLong);
    }
    // The list is in lower case, and a capital letter makes a leaked password no better.
    let lower = password.to_lowercase();
    if is_personal(&lower, user) {
        return Err(PasswordFlaw::Personal);
    }
    if is_repeated(&lower) || is_leaked(&lower) {
        return Err(PasswordFlaw::Leaked);
    }
    Ok(())
}

/// Returns whether the password has too few characters besides the names of the user.
fn is_personal(lower: &str, user: &User) -> bool {
    let address = user.email_address.as_deref().unwrap_or_default();
    let names = [
        user.user_name.clone(),
        local_part(&user.user_name),
        address.to_owned(),
        local_part(address),
        user.first_name.clone().unwrap_or_default(),
        user.last_name.clone().unwrap_or_default(),
    ];
    // Names of one or two characters occur in any password by chance.
    let names =
        names.iter().map(|name| name.to_lowercase()).filter(|name| name.chars().count() > 2);
    let rest = names.fold(lower.to_owned(), |rest, name| rest.replace(&name, ""));
    rest.chars().count() < OWN_CHARS_MIN
}

/// Returns the part of an address in front of the `@`.
fn local_part(address: &str) -> String {
    address.split('@').next().unwrap_or_default().to_owned()
}

/// Returns whether the text has at most three different characters.
fn is_repeated(lower: &str) -> bool {
    let mut chars: Vec<char> = lower.chars().collect();
    chars.sort_unstable();
    chars.dedup();
    chars.len() <= 3
}

/// Returns whether the list contains the text. The list is unpacked for each check: passwords are set rarely,
/// and the memory serves other purposes better.
fn is_leaked(lower: &str) -> bool {
    let lines = BufReader::new(GzDecoder::new(LEAKED)).lines();
    lines.map_while(std::io::Result::ok).any(|line| line == lower)
}

impl Auth {
    /// Hashes a new password of `user`, or returns its flaw; both are done on a hashing thread.
    ///
    /// Fails with [`crate::runtime::error::ErrorKind::Overloaded`] if too many logins wait, in all or from
    /// the network of `address`.
    pub async fn hash_new_password(
        &self,
        password: &str,
        user: &User,
        address: IpAddr,
    ) -> Result<Result<String, PasswordFlaw>> {
        let hasher = self.inner.hasher.clone();
        let password = password.to_owned();
        let user = user.clone();
        self.inner
            .passwords
            .run(
                address,
                || None,
                move || match check_new_password(&password, &user) {
                    Ok(()) => hasher.hash(&password).map(Ok),
                    Err(flaw) => Ok(Err(flaw)),
                },
                |hash| hash,
            )
            .await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::account::{AccessLevels, PhoneNumbers, UserId};

    fn user() -> User {
        User {
            id: UserId(1),
            organization: None,
            user_name: "ada.byron@gazette.example".to_owned(),
            first_name: Some("Ada".to_owned()),
            last_name: Some("Byron".to_owned()),
            email_address: Some("ada.byron@gazette.example".to_owned()),
            department: None,
            phone: PhoneNumbers::default(),
            roles: Vec::new(),
            access: AccessLevels::default(),
            active: true,
            service_account: false,
        }
    }

    #[test]
    fn ok_long_passwords_of_any_characters() {
        for password in [
            "correct horse battery",
            "en lång mening utan siffror",
            "ØØ☂ådñkqwlmz",
            "Byron-and-tulips-9",
        ] {
            assert_eq!(check_new_password(password, &user()), Ok(()), "{password}");
        }
    }

    #[test]
    fn err_short_leaked_and_personal_ones() {
        let check = |password: &str, flaw| {
            assert_eq!(check_new_password(password, &user()), Err(flaw), "{password}");
        };
        check("", PasswordFlaw::TooShort);
        check("elevenchars", PasswordFlaw::TooShort);
        check("ååååååååååå", PasswordFlaw::TooShort);
        check(&"x1".repeat(600), PasswordFlaw::TooLong);
        check("1234567890123", PasswordFlaw::Leaked);
        check("PasswordPassword", PasswordFlaw::Leaked);
        check("Qwertyuiop123", PasswordFlaw::Leaked);
        check("aaaaaaaaaaaa", PasswordFlaw::Leaked);
        check("abababababab", PasswordFlaw::Leaked);
        check("ada.byron@gazette.example", PasswordFlaw::Personal);
        check("AdaByron2026!", PasswordFlaw::Personal);
    }

    #[test]
    fn the_list_is_sorted_and_holds_what_the_length_lets_through() {
        let lines: Vec<String> =
            BufReader::new(GzDecoder::new(LEAKED)).lines().map(|line| line.unwrap()).collect();
        assert!(lines.len() > 30_000, "{}", lines.len());
        assert!(lines.is_sorted());
        let fits = |line: &String| line.chars().count() >= PASSWORD_CHARS_MIN;
        assert!(lines.iter().all(|line| fits(line) && *line == line.to_lowercase()));
    }
}
