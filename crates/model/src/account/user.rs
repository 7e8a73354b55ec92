//! Users and the accounts that determine their rights (contract users-1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::accounts_file::or_default;
use super::{Agreement, Organization, OrganizationId, UserId};

/// The role of the agency's employees, who also see items under embargo.
pub const ROLE_PROVIDER: &str = "ROLE_PROVIDER";
/// The role of users who operate the service. They see its queues, nodes and statistics, but no more of the
/// archive than other users.
pub const ROLE_OPERATOR: &str = "ROLE_OPERATOR";
/// The role of customers.
pub const ROLE_OFP: &str = "ROLE_OFP";
/// The role of users with access to the media bank.
pub const ROLE_MEDIEBANK: &str = "ROLE_MEDIEBANK";

/// The telephone numbers of a user.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhoneNumbers {
    pub direct: Option<String>,
    pub mobile: Option<String>,
}

/// The access levels of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessLevels {
    /// True if the user may administer the users of the organization.
    #[serde(deserialize_with = "or_default")]
    pub admin: bool,
    /// True if the user has access to the media-bank product.
    #[serde(deserialize_with = "or_default")]
    pub mediebank: bool,
}

/// A user without agreements and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub organization: Option<OrganizationId>,
    pub user_name: String,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub email_address: Option<String>,
    pub department: Option<String>,
    pub phone: PhoneNumbers,
    /// The names of the user's roles.
    pub roles: Vec<String>,
    pub access: AccessLevels,
    /// True if the user may log in.
    pub active: bool,
    /// True if the account belongs to a program rather than a person.
    pub service_account: bool,
}

impl User {
    /// Returns the first and last name, or the user name when both are missing.
    pub fn display_name(&self) -> String {
        let parts = [self.first_name.as_deref(), self.last_name.as_deref()];
        // An imported name may be present but empty; without this filter the result could be a lone space.
        let name = parts.into_iter().flatten().filter(|part| !part.is_empty());
        let name = name.collect::<Vec<_>>().join(" ");
        if name.is_empty() { self.user_name.clone() } else { name }
    }
}

/// A user with the organization and the agreements that determine the user's rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub user: User,
    pub organization: Option<Arc<Organization>>,
    /// The user's agreements by number, including expired ones.
    pub agreements: Vec<Agreement>,
}
