//! A user as the sections User and Organization show it.

use jiff::Timestamp;
use model::account::AgreementType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::property;

/// The users.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserBase {
    pub id: i64,
    /// The organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<i64>,
    pub user_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub department: Option<String>,
    pub active: bool,
}

/// The user.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    #[serde(flatten)]
    pub base: UserBase,
    pub phone_number: PhoneNumber,
    pub agreements: Vec<Agreement>,
    pub access: UserRights,
}

/// The telephone numbers of a user.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PhoneNumber {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobile: Option<String>,
}

/// The access levels of a user.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Access")]
pub struct UserRights {
    /// Administers the organization's users.
    pub admin: bool,
    /// Has access to the media bank.
    pub mediebank: bool,
}

/// An agreement of an organization.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agreement {
    pub id: i64,
    #[serde(rename = "type")]
    #[schemars(schema_with = "property::words::<AgreementType>")]
    pub kind: AgreementType,
    /// True if it covers all items.
    pub super_agreement: bool,
    pub products: Vec<Product>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepaids: Option<Prepaids>,
}

/// A product that an agreement covers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Product {
    pub id: i64,
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Prepaid downloads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Prepaids {
    pub total: u32,
    pub remaining: u32,
}
