//! The claims about a user in id tokens and at the user endpoint (contract login-12, OpenID Connect Core §2).

use jiff::Timestamp;
use serde_json::{Map, Value};

use model::ContentHash;
use model::account::{Account, Scope, ScopeSet};

/// All possible claims, as published in the metadata.
pub(super) const NAMES: [&str; 17] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "nonce",
    "at_hash",
    "email",
    "roles",
    "name",
    "family_name",
    "given_name",
    "user_id",
    "customer_id",
    "customer_name",
    "department",
];

/// The content of an id token besides the claims about the user.
pub(super) struct IdToken<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) scopes: ScopeSet,
    pub(super) auth_time: Timestamp,
    pub(super) nonce: Option<&'a str>,
    /// The access token that is issued with it.
    pub(super) access_token: Option<&'a str>,
    pub(super) issued: Timestamp,
    pub(super) expires: Timestamp,
}

impl IdToken<'_> {
    /// Returns all claims of the token for `account`.
    pub(super) fn claims(&self, account: &Account) -> Map<String, Value> {
        let mut claims = Map::new();
        let mut insert = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        insert("iss", self.issuer.into());
        // `sub` is a string (OpenID Connect Core §2); `user_id` is the same id as a number.
        insert("sub", account.user.id.to_string().into());
        insert("aud", self.client_id.into());
        insert("exp", self.expires.as_second().into());
        insert("iat", self.issued.as_second().into());
        insert("auth_time", self.auth_time.as_second().into());
        if let Some(nonce) = self.nonce {
            insert("nonce", nonce.into());
        }
        if let Some(access_token) = self.access_token {
            // The left half of the token's SHA-256 as base64url (OpenID Connect Core §3.1.3.6).
            insert("at_hash", ContentHash::of(access_token.as_bytes()).short().into());
        }
        claims.extend(exposed(account, self.scopes));
        claims
    }
}

/// Returns the response of the user endpoint.
pub(super) fn user_info(account: &Account, scopes: ScopeSet) -> Value {
    let mut claims = Map::new();
    claims.insert("sub".to_owned(), account.user.id.to_string().into());
    claims.insert("scope".to_owned(), scopes.to_string().into());
    claims.extend(exposed(account, scopes));
    Value::Object(claims)
}

/// Returns the claims that `scopes` expose about a user; unknown ones are left out.
fn exposed(account: &Account, scopes: ScopeSet) -> Map<String, Value> {
    let (user, mut claims) = (&account.user, Map::new());
    let mut insert = |name: &str, value: Option<Value>| {
        claims.extend(value.map(|value| (name.to_owned(), value)));
    };
    let text = |text: &Option<String>| text.clone().map(Value::from);
    if scopes.contains(Scope::Email) {
        insert("email", text(&user.email_address));
    }
    if scopes.contains(Scope::Roles) {
        insert("roles", Some(user.roles.clone().into()));
    }
    if scopes.contains(Scope::User) {
        insert("name", Some(user.display_name().into()));
        insert("family_name", text(&user.last_name));
        insert("given_name", text(&user.first_name));
        insert("user_id", Some(user.id.0.into()));
    }
    if scopes.contains(Scope::Customer) {
        let organization = account.organization.as_ref();
        insert("customer_id", user.organization.map(|id| id.0.into()));
        insert("customer_name", organization.and_then(|one| text(&one.name)));
        insert("department", text(&user.department));
    }
    claims
}
