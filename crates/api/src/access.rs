//! The access rules of operations, as OpenAPI's security requirements.

use serde_json::{Value, json};

/// The kind of caller that an operation serves. The server decides how it is authenticated.
pub trait Caller {
    /// The access of operations that do not restrict it further.
    const ACCESS: Access;
}

/// A caller with an access token or an API key that has the scope `roles`.
#[derive(Clone, Copy, Debug)]
pub struct KnownCaller;

impl Caller for KnownCaller {
    const ACCESS: Access = Access::ROLES;
}

/// A caller whom the server does not authenticate before its handler runs.
#[derive(Clone, Copy, Debug)]
pub struct UnknownCaller;

impl Caller for UnknownCaller {
    const ACCESS: Access = Access::PUBLIC;
}

/// The credentials that an operation accepts, any of which suffices.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// True if a caller without credentials is served.
    pub anonymous: bool,
    /// The scopes that an access token needs; `None` if tokens are not accepted.
    pub scopes: Option<&'static [&'static str]>,
    /// True if an API key is accepted.
    pub api_key: bool,
    /// True if an API key in the query (`ak`) is accepted.
    pub ak: bool,
    /// True if a user name with its password is accepted.
    pub basic: bool,
    /// True if a client of OAuth2 is accepted, with its id and secret, or without a secret if it is public.
    pub client: bool,
}

impl Access {
    /// An access token with the scope `roles`, or an API key.
    pub const ROLES: Self = Self {
        anonymous: false,
        scopes: Some(&["roles"]),
        api_key: true,
        ak: false,
        basic: false,
        client: false,
    };
    /// No credentials.
    pub const PUBLIC: Self = Self { anonymous: true, scopes: None, api_key: false, ..Self::ROLES };
    /// A client of OAuth2.
    pub const CLIENT: Self = Self { client: true, ..Self::PUBLIC };
    /// An API key in the query.
    pub const AK: Self = Self { ak: true, scopes: None, api_key: false, ..Self::ROLES };

    /// Returns whether there are credentials that the operation accepts, and refuses if they are wrong.
    pub(crate) const fn accepts_credentials(self) -> bool {
        self.scopes.is_some() || self.api_key || self.ak || self.basic
    }

    /// Returns the security requirements of OpenAPI.
    pub(crate) fn to_security(self) -> Value {
        let mut security = Vec::new();
        if self.client {
            security.push(json!({ "client": [] }));
        }
        if self.anonymous && (self.client || self.accepts_credentials()) {
            security.push(json!({}));
        }
        if let Some(scopes) = self.scopes {
            security.push(json!({ "oauth2": scopes }));
            security.push(json!({ "bearer": [] }));
        }
        if self.api_key {
            security.push(json!({ "apiKey": [] }));
        }
        if self.ak {
            security.push(json!({ "ak": [] }));
        }
        if self.basic {
            security.push(json!({ "basic": [] }));
        }
        Value::Array(security)
    }
}
