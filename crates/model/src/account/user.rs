//! Users (contract users-1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Agreement, Organization, OrganizationId, UserId};

/// The role of the service operator's employees, who also see what is under embargo.
pub const ROLE_PROVIDER: &str = "ROLE_PROVIDER";
/// The role of customers.
pub const ROLE_OFP: &str = "ROLE_OFP";
/// The role that goes with access to the media bank.
pub const ROLE_MEDIEBANK: &str = "ROLE_MEDIEBANK";

/// Telephone numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhoneNumbers {
    /// On the desk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    /// In the pocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobile: Option<String>,
}

/// Access levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessLevels {
    /// Admin rights for user accounts of the same organization.
    pub admin: bool,
    /// Access to the media-bank product.
    pub mediebank: bool,
}

/// A user without its agreements. Passwords are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub id: UserId,
    /// The organization that it belongs to.
    pub organization: Option<OrganizationId>,
    /// The name it logs in with.
    pub user_name: String,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email_address: Option<String>,
    /// Department.
    pub department: Option<String>,
    /// Telephone numbers.
    pub phone: PhoneNumbers,
    /// Names of its roles.
    pub roles: Vec<String>,
    /// Access levels.
    pub access: AccessLevels,
    /// Whether it may use the service.
    pub active: bool,
    /// Whether it is a program and no person.
    pub service_account: bool,
}

impl User {
    /// First and last name, or the user name when there is neither.
    #[must_use]
    pub fn display_name(&self) -> String {
        let parts = [self.first_name.as_deref(), self.last_name.as_deref()];
        let name = parts.into_iter().flatten().filter(|part| !part.is_empty());
        let name = name.collect::<Vec<_>>().join(" ");
        if name.is_empty() { self.user_name.clone() } else { name }
    }
}

/// A user with what its rights depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: User,
    /// Its organization.
    pub organization: Option<Arc<Organization>>,
    /// Its agreements in the order of their numbers, expired ones too.
    pub agreements: Vec<Agreement>,
}
