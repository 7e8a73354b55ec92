//! OAuth2 clients: each integration has a client id and, unless it is public, a client secret.

use serde::{Deserialize, Serialize};

/// A way to get tokens that a client may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    /// Web apps.
    AuthorizationCode,
    /// Single-page apps of old.
    Implicit,
    /// Server-side apps that know the user's password.
    Password,
    /// A new token set for an old refresh token.
    RefreshToken,
}

impl GrantType {
    /// The name in `grant_type` and in the accounts file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::Implicit => "implicit",
            Self::Password => "password",
            Self::RefreshToken => "refresh_token",
        }
    }
}

/// A program that is known by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// Its name in requests; not secret.
    pub client_id: String,
    /// Its name for people.
    pub name: String,
    /// The argon2id hash of its secret; `None` for a public client.
    pub secret: Option<String>,
    /// Addresses that answers may be sent to; compared exactly.
    pub redirect_uris: Vec<String>,
    /// What it may do.
    pub grants: Vec<GrantType>,
    /// Whether it may be used.
    pub active: bool,
    /// Whether its tokens need the scopes of each [`Permission`](super::Permission); `false` is
    /// the default (contract login-14).
    pub scopes_enforced: bool,
    /// Seconds of its access tokens where they end earlier than those of other clients.
    pub access_token_s: Option<u32>,
}

impl OAuthClient {
    /// Whether the client may use `grant`.
    #[must_use]
    pub fn allows(&self, grant: GrantType) -> bool {
        self.grants.contains(&grant)
    }

    /// Whether the client can keep no secret.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.secret.is_none()
    }

    /// Seconds that an access token of the client is valid where others are for `seconds`.
    #[must_use]
    pub fn access_token_s(&self, seconds: u32) -> u32 {
        self.access_token_s.map_or(seconds, |own| own.min(seconds))
    }
}
