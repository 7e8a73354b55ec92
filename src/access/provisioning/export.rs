//! Exports accounts as an accounts file, which an import reads.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::agreements::{AgreementRecord, LicenseRecord, OrganizationRecord, ProductRecord};
use super::{Accounts, AccountsError};
use crate::storage::database::{DbError, ListedUser, NewApiKey, ReadTx};
use model::ContentHash;
use model::account::accounts_file::ClientScopes;
use model::account::{
    AccessLevels, AgreementId, Channel, ChannelMethod, GrantType, OAuthClient, OrganizationId,
    PhoneNumbers, UserId,
};

/// All accounts, by the lists of an accounts file. Has no `Debug`, so that secrets reach no log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedAccounts {
    organizations: Vec<OrganizationRecord>,
    products: Vec<ProductRecord>,
    agreements: Vec<AgreementRecord>,
    licenses: Vec<LicenseRecord>,
    users: Vec<ExportedUser>,
    clients: Vec<ExportedClient>,
    /// Empty without secrets, because an entry needs the key or its hash.
    api_keys: Vec<ExportedKey>,
    /// Empty without secrets, because an entry replaces all settings of the channel.
    channels: Vec<ExportedChannel>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportedUser {
    id: UserId,
    user_name: String,
    password_hash: Option<String>,
    organization: Option<OrganizationId>,
    agreements: Vec<AgreementId>,
    email_address: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    department: Option<String>,
    phone_number: PhoneNumbers,
    roles: Vec<String>,
    access: AccessLevels,
    active: bool,
    service_account: bool,
}

impl ExportedUser {
    fn new(listed: ListedUser, password_hash: Option<String>) -> Self {
        let user = listed.user;
        Self {
            id: user.id,
            user_name: user.user_name,
            password_hash,
            organization: user.organization,
            agreements: listed.agreements,
            email_address: user.email_address,
            first_name: user.first_name,
            last_name: user.last_name,
            department: user.department,
            phone_number: user.phone,
            roles: user.roles,
            access: user.access,
            active: user.active,
            service_account: user.service_account,
        }
    }
}

#[derive(Serialize)]
struct ExportedClient {
    client_id: String,
    client_secret_hash: Option<String>,
    name: String,
    public: bool,
    redirect_uris: Vec<String>,
    grants: Vec<GrantType>,
    scopes: ClientScopes,
    #[serde(rename = "accessTokenSeconds")]
    access_token_s: Option<u32>,
    #[serde(rename = "readOnly")]
    read_only: bool,
    active: bool,
}

impl ExportedClient {
    fn new(client: OAuthClient, with_secrets: bool) -> Self {
        let scopes =
            if client.scopes_enforced { ClientScopes::Enforced } else { ClientScopes::Contract };
        Self {
            public: client.is_public(),
            client_id: client.client_id,
            client_secret_hash: client.secret.filter(|_| with_secrets),
            name: client.name,
            redirect_uris: client.redirect_uris,
            grants: client.grants,
            scopes,
            access_token_s: client.access_token_s,
            read_only: client.read_only,
            active: client.active,
        }
    }
}

#[derive(Serialize)]
struct ExportedKey {
    user: String,
    #[serde(rename = "keyHash")]
    key_hash: ContentHash,
    name: String,
    #[serde(rename = "readOnly")]
    read_only: bool,
}

impl From<NewApiKey> for ExportedKey {
    fn from(key: NewApiKey) -> Self {
        Self {
            user: key.user_name,
            key_hash: key.key_hash,
            name: key.name,
            read_only: key.read_only,
        }
    }
}

#[derive(Serialize)]
struct ExportedChannel {
    owner: String,
    name: String,
    method: ChannelMethod,
    formats: Vec<String>,
    settings: Map<String, Value>,
    active: bool,
    #[serde(rename = "byUser")]
    by_user: bool,
}

impl From<Channel> for ExportedChannel {
    fn from(channel: Channel) -> Self {
        Self {
            settings: channel.settings.reveal().clone(),
            owner: channel.owner,
            name: channel.name,
            method: channel.method,
            formats: channel.formats,
            active: channel.active,
            by_user: channel.by_user,
        }
    }
}

impl ExportedAccounts {
    fn read(tx: &ReadTx<'_>, with_secrets: bool) -> Result<Self, DbError> {
        let mut hashes = HashMap::new();
        let mut api_keys = Vec::new();
        let mut channels = Vec::new();
        if with_secrets {
            hashes.extend(tx.list_password_hashes()?);
            api_keys = tx.list_key_hashes()?;
            channels = tx.list_channels(None)?;
        }
        let mut users = Vec::new();
        for listed in tx.list_stored_users()? {
            let hash = hashes.remove(&listed.user.id);
            users.push(ExportedUser::new(listed, hash));
        }
        let organizations = tx.list_stored_organizations()?;
        let products = tx.list_stored_products()?;
        let agreements = tx.list_stored_agreements()?;
        let licenses = tx.list_stored_licenses()?;
        let clients = tx.list_stored_clients()?.into_iter();
        Ok(Self {
            organizations: organizations.into_iter().map(OrganizationRecord::from).collect(),
            products: products.into_iter().map(ProductRecord::from).collect(),
            agreements: agreements.into_iter().map(AgreementRecord::from).collect(),
            licenses: licenses.into_iter().map(LicenseRecord::from).collect(),
            users,
            clients: clients.map(|client| ExportedClient::new(client, with_secrets)).collect(),
            api_keys: api_keys.into_iter().map(ExportedKey::from).collect(),
            channels: channels.into_iter().map(ExportedChannel::from).collect(),
        })
    }
}

impl Accounts {
    /// Exports all accounts as an accounts file. Revoked API keys are left out.
    ///
    /// With `with_secrets`, the file has the hashes of passwords, client secrets and API keys, and the channels
    /// with the passwords in their settings. Without, it has neither, and its import into this archive leaves
    /// them as they are.
    pub fn export(&self, with_secrets: bool) -> Result<Value, AccountsError> {
        let exported =
            self.db.read_blocking(move |tx| ExportedAccounts::read(tx, with_secrets))?;
        Ok(without_nulls(json!(exported)))
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
