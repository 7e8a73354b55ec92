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
        insert(&mut claims, "iss", self.issuer);
        // `sub` is a string (OpenID Connect Core §2); `user_id` is the same id as a number.
        insert(&mut claims, "sub", account.user.id.to_string());
        insert(&mut claims, "aud", self.client_id);
        insert(&mut claims, "exp", self.expires.as_second());
        insert(&mut claims, "iat", self.issued.as_second());
        insert(&mut claims, "auth_time", self.auth_time.as_second());
        insert_known(&mut claims, "nonce", self.nonce);
        if let Some(access_token) = self.access_token {
            // The left half of the token's SHA-256 as base64url (OpenID Connect Core §3.1.3.6).
            let half = ContentHash::new(access_token.as_bytes()).short();
            insert(&mut claims, "at_hash", half);
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

/// Returns the claims that `scopes` expose about a user, without claims whose value is unknown.
fn exposed(account: &Account, scopes: ScopeSet) -> Map<String, Value> {
    let user = &account.user;
    let mut claims = Map::new();
    if scopes.contains(Scope::Email) {
        insert_known(&mut claims, "email", user.email_address.as_deref());
    }
    if scopes.contains(Scope::Roles) {
        insert(&mut claims, "roles", user.roles.clone());
    }
    if scopes.contains(Scope::User) {
        insert(&mut claims, "name", user.display_name());
        insert_known(&mut claims, "family_name", user.last_name.as_deref());
        insert_known(&mut claims, "given_name", user.first_name.as_deref());
        insert(&mut claims, "user_id", user.id.0);
    }
    if scopes.contains(Scope::Customer) {
        let organization = account.organization.as_ref();
        let customer_name = organization.and_then(|organization| organization.name.as_deref());
        insert_known(&mut claims, "customer_id", user.organization.map(|id| id.0));
        insert_known(&mut claims, "customer_name", customer_name);
        insert_known(&mut claims, "department", user.department.as_deref());
    }
    claims
}

fn insert(claims: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    claims.insert(name.to_owned(), value.into());
}

/// Inserts a claim, unless its value is unknown.
fn insert_known(claims: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        insert(claims, name, value);
    }
}
