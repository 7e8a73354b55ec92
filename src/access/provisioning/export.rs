//! Exports accounts as an accounts file, which an import reads.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::agreements::{agreement_entry, license_entry, organization_entry, product_entry};
use super::{Accounts, AccountsError};
use crate::storage::database::{DbError, ListedUser, NewApiKey, ReadTx};
use model::account::accounts_file::ClientScopes;
use model::account::{Channel, OAuthClient};

fn user_entry(listed: &ListedUser, password_hash: Option<&String>) -> Value {
    let user = &listed.user;
    json!({
        "id": user.id,
        "userName": user.user_name,
        "passwordHash": password_hash,
        "organization": user.organization,
        "agreements": listed.agreements,
        "emailAddress": user.email_address,
        "firstName": user.first_name,
        "lastName": user.last_name,
        "department": user.department,
        "phoneNumber": user.phone,
        "roles": user.roles,
        "access": user.access,
        "active": user.active,
        "serviceAccount": user.service_account,
    })
}

fn client_entry(client: &OAuthClient, with_secrets: bool) -> Value {
    let scopes =
        if client.scopes_enforced { ClientScopes::Enforced } else { ClientScopes::Contract };
    json!({
        "client_id": client.client_id,
        "client_secret_hash": client.secret.as_ref().filter(|_| with_secrets),
        "name": client.name,
        "public": client.is_public(),
        "redirect_uris": client.redirect_uris,
        "grants": client.grants,
        "scopes": scopes,
        "accessTokenSeconds": client.access_token_s,
        "readOnly": client.read_only,
        "active": client.active,
    })
}

fn key_entry(key: &NewApiKey) -> Value {
    let NewApiKey { key_hash, user_name, name, read_only } = key;
    json!({ "user": user_name, "keyHash": key_hash, "name": name, "readOnly": read_only })
}

fn channel_entry(channel: &Channel) -> Value {
    json!({
        "owner": channel.owner,
        "name": channel.name,
        "method": channel.method,
        "formats": channel.formats,
        "settings": channel.settings.reveal(),
        "active": channel.active,
        "byUser": channel.by_user,
    })
}

fn entries<T>(stored: &[T], entry: impl Fn(&T) -> Value) -> Value {
    stored.iter().map(entry).collect()
}

/// Reads all accounts, by the lists of an accounts file.
fn read_all(tx: &ReadTx<'_>, with_secrets: bool) -> Result<Value, DbError> {
    let mut hashes = HashMap::new();
    // Empty without secrets: an entry of a key needs the key or its hash, and an entry of a channel replaces all
    // of its settings.
    let mut api_keys = Vec::new();
    let mut channels = Vec::new();
    if with_secrets {
        hashes.extend(tx.list_password_hashes()?);
        api_keys = tx.list_key_hashes()?;
        channels = tx.list_channels(None)?;
    }
    Ok(json!({
        "organizations": entries(&tx.list_stored_organizations()?, organization_entry),
        "products": entries(&tx.list_stored_products()?, product_entry),
        "agreements": entries(&tx.list_stored_agreements()?, agreement_entry),
        "licenses": entries(&tx.list_stored_licenses()?, license_entry),
        "users": entries(&tx.list_stored_users()?, |listed| {
            user_entry(listed, hashes.get(&listed.user.id))
        }),
        "clients": entries(&tx.list_stored_clients()?, |client| {
            client_entry(client, with_secrets)
        }),
        "apiKeys": entries(&api_keys, key_entry),
        "channels": entries(&channels, channel_entry),
    }))
}

impl Accounts {
    /// Exports all accounts as an accounts file. Revoked API keys are left out.
    ///
    /// With `with_secrets`, the file has the hashes of passwords, client secrets and API keys, and the channels
    /// with the passwords in their settings. Without, it has neither, and its import into this archive leaves
    /// them as they are.
    pub fn export(&self, with_secrets: bool) -> Result<Value, AccountsError> {
        let exported = self.db.read_blocking(move |tx| read_all(tx, with_secrets))?;
        Ok(without_nulls(exported))
    }
}

/// Removes the properties that have no value: the file says the same without them.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(properties) => {
            let kept = properties.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
