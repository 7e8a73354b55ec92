//! OAuth2 clients: each integration has a client id and, unless it is public, a client secret.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// An OAuth2 grant type that a client may be allowed to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum GrantType {
    /// The authorization code grant, for web apps.
    AuthorizationCode,
    /// The implicit grant, for legacy single-page apps.
    Implicit,
    /// The password grant, for server-side apps that know the user's password.
    Password,
    /// Exchanges a refresh token for a new set of tokens.
    RefreshToken,
}

crate::impl_as_str!(GrantType);

/// A registered OAuth2 client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// The client id in requests; not secret.
    pub client_id: String,
    pub name: String,
    /// The argon2id hash of the client secret; `None` for a public client.
    pub secret: Option<String>,
    /// The allowed redirect URIs, compared exactly except for the port of a loopback address (`127.0.0.1` or
    /// `[::1]`).
    pub redirect_uris: Vec<String>,
    /// The grant types that the client may use.
    pub grants: Vec<GrantType>,
    /// True if the client may be used.
    pub active: bool,
    /// True if the client's tokens need the scopes of each API that they call. False by default: then the scope
    /// `roles` is enough for almost every API (contract login-14). [`Permission::scopes`](super::Permission::scopes)
    /// has both rules.
    pub scopes_enforced: bool,
    /// The maximum lifetime of the client's access tokens in seconds; `None` for the lifetime in the setting
    /// `auth.access_token_s`. A value above the setting has no effect.
    pub access_token_s: Option<u32>,
    /// True if the client's tokens may only read (contract access-7).
    pub read_only: bool,
}

impl OAuthClient {
    /// Reports whether the client may use `grant`.
    pub fn allows(&self, grant: GrantType) -> bool {
        self.grants.contains(&grant)
    }

    /// Reports whether the client is public: it cannot keep a secret and has none.
    pub fn is_public(&self) -> bool {
        self.secret.is_none()
    }

    /// Returns the lifetime of the client's access tokens in seconds: `default_s`, or the client's own if it is
    /// shorter.
    pub fn access_token_s(&self, default_s: u32) -> u32 {
        self.access_token_s.map_or(default_s, |limit| limit.min(default_s))
    }
}
