//! The form of an accounts file: its entries and their properties (contract operation-14).
//!
//! The types are the format: a text has a type that accepts only valid ones, and an optional property may also be
//! `null`. Rules about several properties or several entries belong to the importer. For operators,
//! `docs/reference/accounts-file.md` describes every property.

mod objects;
mod redirect_uri;
mod texts;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::{
    AccessLevels, AgreementId, AgreementType, Approver, ChannelMethod, ChannelSettings, GrantType,
    LicensePeriod, Money, OrganizationAddresses, OrganizationId, ProductId, UserId,
};
use crate::ContentHash;
use objects::{
    JsonObject, distinct, list, object_or_default, product_id, read_hash, read_settings,
    read_time, read_uuid,
};
pub(super) use objects::{object, or_default};
pub use texts::{
    AsciiWord, EmailAddress, MailDomain, MultiLineText, PlaintextSecret, RedirectUri, SecretHash,
    SingleLineText, UserName,
};

/// The entries of an accounts file; every list may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AccountsFile {
    #[serde(deserialize_with = "list")]
    pub organizations: Vec<OrganizationEntry>,
    #[serde(deserialize_with = "list")]
    pub products: Vec<ProductEntry>,
    #[serde(deserialize_with = "list")]
    pub agreements: Vec<AgreementEntry>,
    #[serde(deserialize_with = "list")]
    pub licenses: Vec<LicenseEntry>,
    #[serde(deserialize_with = "list")]
    pub users: Vec<UserEntry>,
    #[serde(deserialize_with = "list")]
    pub clients: Vec<ClientEntry>,
    #[serde(deserialize_with = "list")]
    pub api_keys: Vec<ApiKeyEntry>,
    #[serde(deserialize_with = "list")]
    pub channels: Vec<ChannelEntry>,
}

impl AccountsFile {
    /// Reads a file, which is a JSON object.
    ///
    /// The error may repeat a value of the file, such as a password.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        JsonObject::deserialize(deserializer).map(|JsonObject(file)| file)
    }
}

/// An organization, which is identified by its id.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OrganizationEntry {
    pub id: OrganizationId,
    pub name: Option<SingleLineText>,
    pub currency: Option<SingleLineText>,
    pub country: Option<SingleLineText>,
    #[serde(default, deserialize_with = "object_or_default")]
    pub address: OrganizationAddresses,
    #[serde(default, deserialize_with = "object_or_default")]
    pub phone_number: OrganizationPhone,
    /// The domains that administrators may use in the e-mail addresses of users; empty allows every domain.
    #[serde(default, deserialize_with = "or_default")]
    pub mail_domains: Vec<MailDomain>,
}

/// The telephone number of an organization.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganizationPhone {
    pub direct: Option<SingleLineText>,
}

/// A product, which is identified by its code.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductEntry {
    /// The number of the product. `None` keeps the present number; a new product gets the next one.
    #[serde(default, deserialize_with = "product_id")]
    pub id: Option<ProductId>,
    pub code: AsciiWord,
    pub name: Option<SingleLineText>,
    pub description: Option<MultiLineText>,
}

/// An agreement, which is identified by its id.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AgreementEntry {
    pub id: AgreementId,
    /// The organization that holds the agreement.
    pub organization: OrganizationId,
    /// The method of payment for downloads.
    #[serde(rename = "type")]
    pub kind: AgreementType,
    /// True if the agreement covers every item.
    #[serde(default, deserialize_with = "or_default")]
    pub super_agreement: bool,
    /// Codes of the products that the agreement covers.
    #[serde(default, deserialize_with = "or_default")]
    pub products: Vec<AsciiWord>,
    pub name: Option<SingleLineText>,
    pub description: Option<MultiLineText>,
    /// The time at which the agreement ends; `None` if it never ends.
    #[serde(default, deserialize_with = "read_time")]
    pub expires: Option<Timestamp>,
    /// The bought and the remaining downloads; only for agreements of the type `Prepaid`.
    #[serde(default, deserialize_with = "object")]
    pub prepaids: Option<PrepaidsEntry>,
    /// The approver of orders under the agreement.
    #[serde(default, deserialize_with = "or_default")]
    pub approver: Approver,
}

/// The downloads that were bought with a prepaid agreement.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepaidsEntry {
    pub total: u32,
    /// The number of downloads left; `None`: all of them.
    pub remaining: Option<u32>,
}

impl PrepaidsEntry {
    /// Returns the number of downloads left.
    pub fn remaining(self) -> u32 {
        self.remaining.unwrap_or(self.total)
    }
}

/// A licence, which is identified by its UUID.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LicenseEntry {
    #[serde(deserialize_with = "read_uuid")]
    pub uuid: Uuid,
    /// The code of the product that the licence belongs to.
    pub product: AsciiWord,
    /// The period of use that the licence covers.
    pub period: Option<LicensePeriod>,
    /// The number of uses that the licence covers, in words.
    pub volume: Option<SingleLineText>,
    pub price: Option<Money>,
    pub description: Option<MultiLineText>,
}

/// A user, who is identified by the name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UserEntry {
    /// The number of the user. `None` keeps the present number; a new user gets the next one.
    pub id: Option<UserId>,
    pub user_name: UserName,
    /// `None` keeps the present password; a new user without one cannot log in.
    pub password: Option<PlaintextSecret>,
    /// The hash of the password, as an export has it, instead of the password.
    pub password_hash: Option<SecretHash>,
    /// The organization that the user belongs to.
    pub organization: Option<OrganizationId>,
    /// Agreements of the organization.
    #[serde(default, deserialize_with = "or_default")]
    pub agreements: Vec<AgreementId>,
    pub email_address: Option<EmailAddress>,
    pub first_name: Option<SingleLineText>,
    pub last_name: Option<SingleLineText>,
    pub department: Option<SingleLineText>,
    #[serde(default, deserialize_with = "object_or_default")]
    pub phone_number: UserPhones,
    #[serde(default, deserialize_with = "distinct")]
    pub roles: Vec<AsciiWord>,
    #[serde(default, deserialize_with = "object_or_default")]
    pub access: AccessLevels,
    /// `false` locks the user out. `None` keeps the present state; a new user is active.
    pub active: Option<bool>,
    /// True for a program, false for a person.
    #[serde(default, deserialize_with = "or_default")]
    pub service_account: bool,
}

/// The telephone numbers of a user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPhones {
    pub direct: Option<SingleLineText>,
    pub mobile: Option<SingleLineText>,
}

/// An OAuth2 client, which is identified by its client id. Properties that OAuth2 defines have their OAuth2 names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientEntry {
    pub client_id: AsciiWord,
    /// `None` keeps the present secret; a public client has none.
    pub client_secret: Option<PlaintextSecret>,
    /// The hash of the secret, as an export has it, instead of the secret.
    pub client_secret_hash: Option<SecretHash>,
    /// The display name; `None`: the client id.
    pub name: Option<SingleLineText>,
    /// True for a client that cannot keep a secret.
    #[serde(default, deserialize_with = "or_default")]
    pub public: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub redirect_uris: Vec<RedirectUri>,
    #[serde(default, deserialize_with = "distinct")]
    pub grants: Vec<GrantType>,
    #[serde(default, deserialize_with = "or_default")]
    pub scopes: ClientScopes,
    /// The lifetime of the client's access tokens in seconds; `None`: the default lifetime.
    #[serde(rename = "accessTokenSeconds")]
    pub access_token_s: Option<u32>,
    /// True for a client whose tokens change nothing.
    #[serde(rename = "readOnly", default, deserialize_with = "or_default")]
    pub read_only: bool,
    /// `false` locks the client out. `None` keeps the present state; a new client is active.
    pub active: Option<bool>,
}

/// The scopes that the tokens of a client need (contract login-14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientScopes {
    /// The scopes that the contract describes.
    #[default]
    Contract,
    /// One scope for each area of the API, named after it.
    Enforced,
}

/// An API key, which is identified by the key itself: an entry has the key or its hash.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeyEntry {
    /// User name of the owner.
    pub user: UserName,
    pub key: Option<PlaintextSecret>,
    /// The SHA-256 of the key, as an export has it.
    #[serde(rename = "keyHash", default, deserialize_with = "read_hash")]
    pub key_hash: Option<ContentHash>,
    /// The name that the owner gave it.
    pub name: Option<SingleLineText>,
    /// True for a key that changes nothing.
    #[serde(rename = "readOnly", default, deserialize_with = "or_default")]
    pub read_only: bool,
}

/// A delivery channel, which is identified by its owner and its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelEntry {
    /// User name of the owner.
    pub owner: String,
    pub name: String,
    pub method: ChannelMethod,
    /// The formats in which items are sent.
    pub formats: Vec<String>,
    #[serde(default, deserialize_with = "read_settings")]
    pub settings: ChannelSettings,
    /// `false` disables the channel. `None` keeps the present state; a new channel is active.
    pub active: Option<bool>,
    /// True if the owner defined the settings: such a channel may connect only to public addresses.
    #[serde(rename = "byUser", default, deserialize_with = "or_default")]
    pub by_user: bool,
}
