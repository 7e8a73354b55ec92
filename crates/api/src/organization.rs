//! The caller's organization and its users.

use jiff::Timestamp;
use model::account::PasswordLinkKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, KnownCaller};
use crate::account::{User, UserBase};
use crate::answer::{Done, Json};
use crate::body::{JsonBody, NoBody};
use crate::endpoint::Section;
use crate::limits::{EMAIL_CHARS_MAX, SHORT_TEXT_CHARS_MAX};
use crate::{endpoint, property};

const SECTION: Section = Section {
    name: "Organization",
    description: "The caller's organization. Its users are administered with the scope `admin` and the access level \
                  `admin`.",
};
/// An access token of an administrator.
const ADMIN: Access =
    Access { scopes: Some(&["roles", "admin"]), api_key: false, ..Access::ROLES };

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
    /// Omitted properties keep their value. `last_administrator` means that the organization would have no administrator.
    UpdateOrganizationUser: PUT "/user/v1/organization/user/{id}", "updateOrganizationUser", KnownCaller: ADMIN, JsonBody<UserUpdate> => Json<User>, NotFound, Conflict {
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
    /// themselves (409), and users with a role of the agency only if they have it too.
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    pub id: i64,
    pub name: Option<String>,
    pub currency: Option<String>,
    pub country: Option<String>,
    pub address: OrganizationAddresses,
    pub phone_number: OrganizationPhoneNumber,
}

/// The addresses of an organization by purpose.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationAddresses {
    pub visit: Option<Address>,
    pub postal: Option<Address>,
    pub billing: Option<Address>,
}

/// An address of an organization.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    pub street: Option<String>,
    pub r#box: Option<String>,
    pub zip_code: Option<String>,
    pub city: Option<String>,
    pub country: Option<String>,
}

/// The telephone number of an organization.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationPhoneNumber {
    pub direct: Option<String>,
}

/// The user.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserCreate {
    /// In lower case, it is also the user name.
    #[schemars(email, length(max = EMAIL_CHARS_MAX))]
    pub email_address: String,
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::VISIBLE_LINE))]
    pub first_name: String,
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::VISIBLE_LINE))]
    pub last_name: String,
    pub phone_number: Option<PhoneNumberUpdate>,
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub department: Option<String>,
    #[serde(default)]
    #[schemars(with = "UserRightsUpdate")]
    pub access: Option<UserRightsUpdate>,
}

/// The changes.
///
/// Omitted properties keep their value; `null` clears an optional property.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct UserUpdate {
    /// The user name stays as it is.
    #[schemars(with = "String", email, length(max = EMAIL_CHARS_MAX))]
    pub email_address: Option<String>,
    #[schemars(with = "String", length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::VISIBLE_LINE))]
    pub first_name: Option<String>,
    #[schemars(with = "String", length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::VISIBLE_LINE))]
    pub last_name: Option<String>,
    #[serde(deserialize_with = "property::present")]
    pub phone_number: Option<Option<PhoneNumberUpdate>>,
    #[serde(deserialize_with = "property::present")]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
    pub department: Option<Option<String>>,
    #[schemars(with = "UserRightsUpdate")]
    pub access: Option<UserRightsUpdate>,
}

/// The telephone numbers of a user. `null` means no number.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhoneNumberUpdate {
    /// A phone number: 3 to 20 digits, optionally with a leading `+`, separated by spaces, `-`, `(`, `)`, `.` or `/`.
    #[serde(deserialize_with = "property::present")]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), extend("format" = "telephone"))]
    #[schemars(example = "+46 8 123 45 67")]
    pub direct: Option<Option<String>>,
    /// A phone number: 3 to 20 digits, optionally with a leading `+`, separated by spaces, `-`, `(`, `)`, `.` or `/`.
    #[serde(deserialize_with = "property::present")]
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), extend("format" = "telephone"))]
    #[schemars(example = "+46 8 123 45 67")]
    pub mobile: Option<Option<String>>,
}

/// The access levels of a user. An omitted one keeps its value; a new user has none.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserRightsUpdate {
    /// Administers the organization's users.
    #[schemars(with = "bool")]
    pub admin: Option<bool>,
    /// Has access to the media bank.
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserAccess {
    pub active: bool,
    /// True if it is a service account that logs in with a key.
    pub program: bool,
    pub has_password: bool,
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordLink {
    #[serde(with = "property::Word")]
    #[schemars(schema_with = "property::words::<PasswordLinkKind>")]
    pub kind: PasswordLinkKind,
    pub created: Timestamp,
    pub expires: Timestamp,
    /// The address it was sent to.
    pub mailed_to: Option<String>,
    /// The link to pass on. It is not shown again.
    pub url: Option<String>,
}
