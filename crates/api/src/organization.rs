//! The caller's organization and its users.

use jiff::Timestamp;
use model::account::PasswordLinkKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, KnownCaller};
use crate::account::{User, UserBase};
use crate::answer::{Done, Json};
use crate::body::{JsonBody, NoBody};
use crate::endpoint;
use crate::endpoint::Section;
use crate::limits::{EMAIL_CHARS_MAX, SHORT_TEXT_CHARS_MAX};
use crate::property;

const SECTION: Section = Section {
    name: "Organization",
    description: "The caller's organization. Its users are administered with the scope `admin` and the access level \
                  `admin`.",
};
/// An access token of an administrator.
const ADMIN: Access = Access::ROLES.with_scopes(&["roles", "admin"]).without_api_key();

endpoint! {
    /// The caller's organization.
    ///
    /// Name and addresses.
    LoadOrganization: GET "/user/v1/organization", "getOrganization", KnownCaller, NoBody => Json<Organization>, NotFound {}

    /// The organization's users.
    ///
    /// Active and inactive users.
    ListOrganizationUsers: GET "/user/v1/organization/user", "getOrganizationUsers", KnownCaller: ADMIN, NoBody => Json<Vec<UserBase>> {}

    /// Create a user.
    ///
    /// The e-mail address in lower case becomes the user name; `userName_in_use` if another user has it.
    /// `phoneNumber_direct_invalid` means that `direct` is not a phone number.
    CreateOrganizationUser: POST "/user/v1/organization/user", "addOrganizationUser", KnownCaller: ADMIN, JsonBody<UserCreate> => Json<User>, Conflict {}

    /// A user of the organization.
    ///
    /// The user with this id.
    LoadOrganizationUser: GET "/user/v1/organization/user/{id}", "getOrganizationUser", KnownCaller: ADMIN, NoBody => Json<User>, NotFound {
        /// The user's id.
        pub id: i64,
    }

    /// Update a user of the organization.
    ///
    /// Omitted properties keep their value.
    UpdateOrganizationUser: PUT "/user/v1/organization/user/{id}", "updateOrganizationUser", KnownCaller: ADMIN, JsonBody<UserUpdate> => Json<User>, NotFound {
        /// The user's id.
        pub id: i64,
    }

    /// Users without a password.
    ///
    /// These users cannot log in until they set a password.
    ListPendingUsers: GET "/user/v1/organization/pending-user", "getPendingUsers", KnownCaller: ADMIN, NoBody => Json<Vec<PendingUser>> {}

    /// A user's password, sessions and keys.
    ///
    /// Password, links, sessions, applications and keys of the user.
    LoadUserAccess: GET "/user/v1/organization/user/{id}/access", "getOrganizationUserAccess", KnownCaller: ADMIN, NoBody => Json<UserAccess>, NotFound {
        /// The user's id.
        pub id: i64,
    }

    /// Deactivate or reactivate a user.
    ///
    /// Deactivation ends sessions, tokens and links immediately and suspends API keys. Administrators cannot deactivate
    /// themselves (409).
    UpdateUserAccess: PUT "/user/v1/organization/user/{id}/access", "updateOrganizationUserAccess", KnownCaller: ADMIN, JsonBody<UserAccessUpdate> => Done, NotFound, Conflict {
        /// The user's id.
        pub id: i64,
    }

    /// Send a password link.
    ///
    /// An invitation, valid for 7 days, for a user without a password; otherwise a link valid for one day. It is sent by e-mail
    /// (`mailedTo`); without a mail server, or for a user without an address, `url` is returned once for you to pass on. Earlier
    /// links are revoked. 409 for a user who cannot log in.
    SendPasswordLink: POST "/user/v1/organization/user/{id}/password-link", "sendPasswordLink", KnownCaller: ADMIN, NoBody => Json<PasswordLink>, NotFound, Conflict {
        /// The user's id.
        pub id: i64,
    }

    /// Revoke a user's password links.
    ///
    /// The links stop working.
    RevokePasswordLinks: DELETE "/user/v1/organization/user/{id}/password-link", "withdrawPasswordLink", KnownCaller: ADMIN, NoBody => Done, NotFound {
        /// The user's id.
        pub id: i64,
    }

    /// End a user's sessions.
    ///
    /// Browser sessions and the tokens of applications.
    EndUserSessions: DELETE "/user/v1/organization/user/{id}/session", "endOrganizationUserSessions", KnownCaller: ADMIN, NoBody => Done, NotFound {
        /// The user's id.
        pub id: i64,
    }

    /// Revoke a user's API keys.
    ///
    /// Revokes all keys permanently.
    RevokeUserKeys: DELETE "/user/v1/organization/user/{id}/key", "revokeOrganizationUserKeys", KnownCaller: ADMIN, NoBody => Done, NotFound {
        /// The user's id.
        pub id: i64,
    }
}

/// The organization.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    pub id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    pub address: OrganizationAddresses,
    pub phone_number: OrganizationPhoneNumber,
}

/// The addresses of an organization by purpose.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationAddresses {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Address>,
}

/// An address of an organization.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub street: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#box: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

/// The telephone number of an organization.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationPhoneNumber {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
}

/// The user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserCreate {
    /// In lower case, it is also the user name.
    #[schemars(email, length(max = EMAIL_CHARS_MAX))]
    pub email_address: String,
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub first_name: String,
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub last_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<PhoneNumberUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub department: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UserRightsUpdate")]
    pub access: Option<UserRightsUpdate>,
}

/// The changes.
///
/// Omitted properties keep their value; `null` clears an optional property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserUpdate {
    /// The user name stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", email, length(max = EMAIL_CHARS_MAX))]
    pub email_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub first_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub last_name: Option<String>,
    #[serde(
        default,
        deserialize_with = "property::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub phone_number: Option<Option<PhoneNumberUpdate>>,
    #[serde(
        default,
        deserialize_with = "property::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub department: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UserRightsUpdate")]
    pub access: Option<UserRightsUpdate>,
}

/// The telephone numbers of a user. `null` means no number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhoneNumberUpdate {
    /// A phone number: 3 to 20 digits, optionally with a leading `+`, separated by spaces, `-`, `(`, `)`, `.` or `/`.
    #[serde(
        default,
        deserialize_with = "property::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), extend("format" = "telephone"))]
    #[schemars(example = "+46 8 123 45 67")]
    pub direct: Option<Option<String>>,
    /// A phone number: 3 to 20 digits, optionally with a leading `+`, separated by spaces, `-`, `(`, `)`, `.` or `/`.
    #[serde(
        default,
        deserialize_with = "property::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), extend("format" = "telephone"))]
    #[schemars(example = "+46 8 123 45 67")]
    pub mobile: Option<Option<String>>,
}

/// The access levels of a user. An omitted one keeps its value; a new user has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRightsUpdate {
    /// Administers the organization's users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub admin: Option<bool>,
    /// Has access to the media bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub mediebank: Option<bool>,
}

/// The ids of the users, and whether they are invited.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PendingUser {
    pub id: i64,
    /// True if there is a valid invitation.
    pub invited: bool,
}

/// The user's access.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserAccess {
    pub active: bool,
    /// True if it is a service account that logs in with a key.
    pub program: bool,
    pub has_password: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PasswordLink>,
    /// Sessions in browsers.
    pub sessions: u32,
    /// Applications with a token.
    pub applications: u32,
    /// Keys that are not revoked.
    pub keys: u32,
}

/// The user's access to the service.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserAccessUpdate {
    pub active: bool,
}

/// The link.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordLink {
    #[serde(with = "property::word")]
    #[schemars(schema_with = "property::words::<PasswordLinkKind>")]
    pub kind: PasswordLinkKind,
    pub created: Timestamp,
    pub expires: Timestamp,
    /// The address it was sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailed_to: Option<String>,
    /// The link to pass on. It is not shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}
