//! The OAuth2 scopes of a token (contract login-12).

use std::fmt;

use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// A right of a token, or a set of claims in its id token. Scopes are printed in this order.
///
/// [`Permission::scopes`](super::Permission::scopes) returns the scopes that an API requires.
///
/// The values make up the bit mask of a [`ScopeSet`] and may change: tokens are stored with the names of their scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
#[repr(u16)]
pub enum Scope {
    /// Adds OpenID Connect: the identity of the user.
    OpenId = 1,
    /// Exposes the claim `roles`. Every API requires this scope.
    Roles = 2,
    /// Exposes the claim `email`.
    Email = 4,
    /// Exposes the claims `name`, `family_name`, `given_name`, `user_id`.
    User = 8,
    /// Exposes the claims `customer_id`, `customer_name`, `department`.
    Customer = 16,
    /// Permits reading and updating the profile. Needed for this only by clients whose scopes
    /// [are enforced](super::OAuthClient::scopes_enforced); for other clients, `roles` suffices.
    ///
    /// Revoking API keys and writing channels are extensions of the contract; every client needs this scope for them.
    Profile = 32,
    /// Permits reading and updating collections. Needed only by clients whose scopes
    /// [are enforced](super::OAuthClient::scopes_enforced); for other clients, `roles` suffices.
    Collection = 64,
    /// Permits administering the organization's users.
    Admin = 128,
}

crate::impl_as_str!(Scope);

impl Scope {
    /// Every scope, in the order in which scopes are printed.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    fn bit(self) -> u16 {
        self as u16
    }
}

/// A set of scopes, as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(u16);

/// The reason for refusing a `scope` parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The text is not a list of words of printable ASCII without `"` and `\`, separated by single spaces.
    #[error("scope is not a list of words separated by one space")]
    Malformed,
    /// A word is not a known scope.
    #[error("unknown scope {0}")]
    Unknown(String),
}

/// Maximum number of characters of an unknown word that an error repeats.
const ECHO_CHARS_MAX: usize = 40;

/// Returns whether `byte` is a character of `scope-token` (RFC 6749 §3.3).
fn is_scope_character(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
}

impl ScopeSet {
    /// The empty set of scopes.
    pub const NONE: Self = Self(0);

    /// Returns the scopes of an API key: all but `admin` (contract access-7). A key is valid until it is revoked, and
    /// a leaked key must not administer users.
    ///
    /// A token needs all these scopes to create a key (contract access-8).
    pub fn for_api_key() -> Self {
        Self(Self::for_session().0 & !Scope::Admin.bit())
    }

    /// Returns the scopes of a browser session: all of them.
    pub fn for_session() -> Self {
        Scope::ALL.iter().copied().fold(Self::NONE, Self::with)
    }

    /// Parses a `scope` parameter (RFC 6749 §3.3).
    ///
    /// Repeated words count once. `offline_access` is accepted and ignored, because every authorization comes
    /// with a refresh token.
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        let mut scopes = Self::NONE;
        // An empty list is not an error here: each caller decides the meaning of a missing scope.
        if text.is_empty() {
            return Ok(scopes);
        }
        for word in text.split(' ') {
            if word.is_empty() || !word.bytes().all(is_scope_character) {
                return Err(ScopeError::Malformed);
            }
            if word == "offline_access" {
                continue;
            }
            let Ok(scope) = word.parse::<Scope>() else {
                // The word is echoed in the response and may be as long as the request.
                return Err(ScopeError::Unknown(word.chars().take(ECHO_CHARS_MAX).collect()));
            };
            scopes = scopes.with(scope);
        }
        Ok(scopes)
    }

    /// Returns the set with `scope` added.
    #[must_use]
    pub fn with(self, scope: Scope) -> Self {
        Self(self.0 | scope.bit())
    }

    /// Reports whether `scope` is in the set.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Reports whether every scope of this set is in `other`.
    pub fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Reports whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the scopes of the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        // The enum order makes equal sets print equally.
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_scopes_print_as_they_are_parsed() {
        for bits in 0..=ScopeSet::for_session().0 {
            let scopes = ScopeSet(bits);
            assert_eq!(ScopeSet::parse(&scopes.to_string()), Ok(scopes));
        }
        let scopes = ScopeSet::parse("roles roles offline_access email").unwrap();
        assert_eq!(scopes.to_string(), "roles email");
    }

    #[test]
    fn err_scopes_name_what_is_wrong() {
        for text in [" roles", "roles ", "roles  email", "roles\temail", "ro\"les", "rol\\es", "é"]
        {
            assert_eq!(ScopeSet::parse(text), Err(ScopeError::Malformed), "{text:?}");
        }
        assert_eq!(ScopeSet::parse("roles Roles"), Err(ScopeError::Unknown("Roles".to_owned())));
    }

    #[test]
    fn a_key_carries_everything_but_admin() {
        let key = ScopeSet::for_api_key();
        assert!(
            !key.contains(Scope::Admin)
                && key.contains(Scope::Roles)
                && key.contains(Scope::Collection)
        );
        assert!(key.is_subset(ScopeSet::for_session()) && !ScopeSet::for_session().is_subset(key));
    }
}
