//! A user as the sections User and Organization show it.

use jiff::Timestamp;
use model::account::AgreementType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::property;

/// The users.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserBase {
    pub id: i64,
    /// The organization.
    pub customer_id: Option<i64>,
    pub user_name: String,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub email_address: Option<String>,
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PhoneNumber {
    pub direct: Option<String>,
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
#[serde_with::skip_serializing_none]
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
    pub name: Option<String>,
    pub description: Option<String>,
    pub expires: Option<Timestamp>,
    pub prepaids: Option<Prepaids>,
}

/// A product that an agreement covers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Product {
    pub id: i64,
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

/// Prepaid downloads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Prepaids {
    pub total: u32,
    pub remaining: u32,
}
