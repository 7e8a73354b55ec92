//! The caller: agreements, profile, mobile devices, API keys and logins.

use jiff::Timestamp;
use model::account::DeviceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::access::{Access, KnownCaller, UnknownCaller};
use crate::account::User;
use crate::answer::{Deprecated, Done, Json};
use crate::body::{JsonBody, NoBody};
use crate::endpoint::Section;
use crate::limits::SHORT_TEXT_CHARS_MAX;
use crate::{endpoint, property};

/// Largest profile of a user, in bytes.
pub const PROFILE_BYTES_MAX: usize = 1 << 16;
/// Longest device token, in bytes. Those in use are below 300; a PostgreSQL index entry has room for 2,700.
pub const DEVICE_TOKEN_BYTES_MAX: usize = 2048;

const SECTION: Section = Section {
    name: "User",
    description: "The caller's agreements, profile, mobile devices and API keys.",
};
/// A login, or a token with every scope of an API key.
const LOGIN: Access = Access {
    scopes: Some(&["openid", "roles", "email", "user", "customer", "profile", "collection"]),
    api_key: false,
    ..Access::ROLES
};
const REVOKE_KEYS: Access = Access { scopes: Some(&["roles", "profile"]), ..Access::ROLES };

endpoint! {
    /// The caller's agreements (legacy).
    ///
    /// Use `GET /user/v1/user` instead: this list does not support prepaid agreements.
    #[schemars(extend("deprecated" = true))]
    ListAgreements: GET "/user/v1/agreement", "getAgreements", UnknownCaller: Access::ROLES, NoBody => Deprecated<Vec<DeprecatedAgreement>> {}

    /// The caller.
    ///
    /// Name, address, agreements and access levels. Service accounts are not supported.
    LoadCaller: GET "/user/v1/user", "getUser", KnownCaller, NoBody => Json<User> {}

    /// The caller's profile.
    ///
    /// A JSON object that applications store for the user.
    LoadProfile: GET "/user/v1/profile", "getProfile", KnownCaller, NoBody => Json<Profile> {}

    /// Replace the profile.
    ///
    /// Replaces the whole profile: omitted properties are removed. A profile has at most 64 KiB (413).
    ReplaceProfile: PUT "/user/v1/profile", "updateProfile", KnownCaller, JsonBody<Profile, PROFILE_BYTES_MAX> => Done {}

    /// Some properties of the profile.
    ///
    /// The requested properties that exist.
    LoadProfileProperties: GET "/user/v1/profile/{property}", "getProfileByProperty", KnownCaller, NoBody => Json<Profile> {
        /// Property names separated by commas.
        #[schemars(regex(pattern = property::ELEMENTS))]
        pub property: String,
    }

    /// Update some properties of the profile.
    ///
    /// Updates the properties named in both the path and the body. Other properties keep their value.
    UpdateProfileProperties: PUT "/user/v1/profile/{property}", "updateProfileByProperty", KnownCaller, JsonBody<Profile, PROFILE_BYTES_MAX> => Done {
        /// Property names separated by commas.
        #[schemars(regex(pattern = property::ELEMENTS))]
        pub property: String,
    }

    /// The caller's mobile devices.
    ///
    /// Sorted by registration, newest last.
    ListDevices: GET "/user/v1/device", "getDevices", KnownCaller, NoBody => Json<Vec<Device>> {}

    /// Register a mobile device.
    ///
    /// Notifications of the type `mobile` are sent to this device. A token belongs to one user.
    #[derive(PartialEq, Eq)]
    RegisterDevice: PUT "/user/v1/device/{token}", "updateDevice", KnownCaller, NoBody => Done {
        /// The device token of the push service, at most 2048 bytes.
        #[schemars(length(min = 1, max = DEVICE_TOKEN_BYTES_MAX), regex(pattern = property::LINE))]
        pub token: String,
        /// The push service that reaches the device.
        #[serde(rename = "type", with = "property::Word")]
        #[schemars(schema_with = "property::words::<DeviceKind>")]
        pub kind: DeviceKind,
        /// The name that the user gave the device.
        #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub name: Option<String>,
        /// The model of the device.
        #[schemars(length(min = 1, max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub model: String,
    }

    /// Unregister a mobile device.
    ///
    /// An unknown token is not an error.
    RemoveDevice: DELETE "/user/v1/device/{token}", "removeDevice", KnownCaller, NoBody => Done {
        /// The device token of the push service, at most 2048 bytes.
        #[schemars(length(min = 1, max = DEVICE_TOKEN_BYTES_MAX), regex(pattern = property::LINE))]
        pub token: String,
    }

    /// The caller's API keys.
    ///
    /// Keys that are not revoked, without the secret values.
    ListKeys: GET "/user/v1/key", "getApiKeys", KnownCaller, NoBody => Json<Vec<Key>> {}

    /// Create an API key.
    ///
    /// The key has the caller's permissions except the scope `admin`. It is returned only once. Keys cannot be created with an
    /// API key (`api_key_unsupported`). A token needs every scope that a key has, otherwise the error is `insufficient_scope`.
    CreateKey: POST "/user/v1/key", "addApiKey", KnownCaller: LOGIN, JsonBody<KeyCreate> => Json<MadeKey>, Conflict {}

    /// Revoke an API key.
    ///
    /// Permanent: requests with the key are answered 401. A token needs the scope `profile`.
    RevokeKey: DELETE "/user/v1/key/{id}", "removeApiKey", KnownCaller: REVOKE_KEYS, NoBody => Done, NotFound {
        /// The id of the key.
        pub id: i64,
    }

    /// The caller's browser sessions.
    ///
    /// Most recently used first.
    ListSessions: GET "/user/v1/session", "getSessions", KnownCaller: LOGIN, NoBody => Json<Vec<Session>> {}

    /// End a session.
    ///
    /// The browser must log in again.
    EndSession: DELETE "/user/v1/session/{id}", "endSession", KnownCaller: LOGIN, NoBody => Done, NotFound {
        /// The session's id from the list.
        pub id: String,
    }

    /// Connected applications.
    ///
    /// Applications that the caller has allowed, and those that hold tokens.
    ListApplications: GET "/user/v1/application", "getApplications", KnownCaller: LOGIN, NoBody => Json<Vec<Application>> {}

    /// Revoke an application's access.
    ///
    /// Its tokens are revoked, and it must request access again.
    RevokeApplication: DELETE "/user/v1/application/{id}", "endApplication", KnownCaller: LOGIN, NoBody => Done, NotFound {
        /// The id of the application's client.
        pub id: String,
    }
}

/// A valid agreement in the older form.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecatedAgreement {
    pub id: i64,
    pub description: Option<String>,
    /// Omitted if this list does not support the agreement's type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DeprecatedAgreementType>,
    /// True if it overrides all Subscription agreements.
    pub is_super_agreement: bool,
    pub products: Vec<DeprecatedAgreementProduct>,
}

/// The type of an agreement in the older form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeprecatedAgreementType {
    Subscription,
    Direct,
    Normal,
    Sketch,
}

/// A product of an agreement in the older form.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeprecatedAgreementProduct {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub description: Option<String>,
    pub code: String,
}

/// A profile: application data, which is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile(pub Map<String, Value>);

/// A mobile device of the caller.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    pub token: String,
    #[serde(rename = "type", with = "property::Word")]
    #[schemars(schema_with = "property::words::<DeviceKind>")]
    pub kind: DeviceKind,
    pub name: Option<String>,
    pub model: String,
    /// The time of the last registration.
    pub registered: Timestamp,
}

/// An API key, without its secret value.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    pub id: i64,
    pub name: String,
    pub created: Timestamp,
    /// The time of the last use, to within a few minutes.
    pub used: Option<Timestamp>,
    /// True if it only reads.
    pub read_only: bool,
}

/// The properties of a new API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyCreate {
    /// The name of the key.
    #[schemars(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::VISIBLE_LINE))]
    pub name: String,
    /// True if it only reads: requests that would change, order or deliver something are refused with `read_only`.
    #[serde(default)]
    pub read_only: bool,
}

// No `Debug`, so that the secret reaches no log.
/// A new API key, with its secret value.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeKey {
    pub id: i64,
    pub name: String,
    pub created: Timestamp,
    /// True if it only reads.
    pub read_only: bool,
    /// The secret key. It is not shown again.
    pub key: String,
}

/// A browser session of the caller.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// A public identifier of the session.
    pub id: String,
    /// The browser and operating system.
    pub browser: Option<String>,
    /// The IP address of the login.
    pub address: Option<String>,
    pub created: Timestamp,
    /// The time of the last use, to within a few minutes.
    pub used: Timestamp,
    pub expires: Timestamp,
}

/// An application that may act for the caller.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    pub client_id: String,
    pub name: String,
    pub scopes: Vec<String>,
    /// The time at which the caller allowed access, or the first token was issued.
    pub since: Timestamp,
    /// The time of the last use, to within a few minutes.
    pub used: Option<Timestamp>,
}
