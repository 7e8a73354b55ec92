//! JSON views of users, agreements and organizations for the API (contract users-1, users-2, users-3).

use jiff::Timestamp;
use serde::Serialize;

use crate::access::auth::{Principal, browser_name};
use crate::access::users::{CreatedKey, LinkDelivery, SentLink, UserLoginState};
use crate::storage::database::{ListedApplication, ListedKey, ListedSession, PasswordLink};
use model::account::{
    AccessLevels, Account, Agreement, AgreementId, AgreementType, Device, Organization,
    OrganizationAddresses, OrganizationId, Permission, PhoneNumbers, Product, Scope, User, UserId,
};

/// A device of the caller (contract users-7), with the time of its last registration.
#[derive(Debug, Serialize)]
pub struct OwnDevice<'a> {
    token: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    model: &'a str,
    registered: Timestamp,
}

impl<'a> From<&'a (Device, Timestamp)> for OwnDevice<'a> {
    fn from(listed: &'a (Device, Timestamp)) -> Self {
        let (device, registered) = listed;
        let Device { token, kind, name, model } = device;
        Self { token, kind: kind.as_str(), name: name.as_deref(), model, registered: *registered }
    }
}

/// A key of the caller. Has no `Debug`, because right after its creation it contains the secret.
#[derive(Serialize)]
pub struct OwnKey<'a> {
    id: i64,
    name: &'a str,
    created: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

impl<'a> From<&'a ListedKey> for OwnKey<'a> {
    fn from(key: &'a ListedKey) -> Self {
        Self { id: key.id, name: &key.name, created: key.created, used: key.used, key: None }
    }
}

impl<'a> From<&'a CreatedKey> for OwnKey<'a> {
    fn from(created: &'a CreatedKey) -> Self {
        Self { key: Some(created.secret.reveal()), ..Self::from(&created.key) }
    }
}

/// An element of the list of an organization's users (contract users-8).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBase<'a> {
    id: UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_id: Option<OrganizationId>,
    user_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email_address: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    department: Option<&'a str>,
    active: bool,
}

impl<'a> UserBase<'a> {
    /// Creates the view of a user that the credentials of `caller` permit: properties that the contract does
    /// not require are left out if a scope for them is enforced and missing.
    #[must_use]
    pub fn seen_by(user: &'a User, caller: &Principal) -> Self {
        let shows_name = caller.allows(Permission::Name);
        let shows_email = caller.allows(Permission::Email);
        let shows_organization = caller.allows(Permission::Organization);
        Self {
            id: user.id,
            customer_id: user.organization.filter(|_| shows_organization),
            user_name: &user.user_name,
            first_name: user.first_name.as_deref().filter(|_| shows_name),
            last_name: user.last_name.as_deref().filter(|_| shows_name),
            email_address: user.email_address.as_deref().filter(|_| shows_email),
            department: user.department.as_deref().filter(|_| shows_organization),
            active: user.active,
        }
    }
}

/// A user with its agreements and access levels (contract users-1).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FullUser<'a> {
    #[serde(flatten)]
    base: UserBase<'a>,
    phone_number: &'a PhoneNumbers,
    agreements: &'a [Agreement],
    access: AccessLevels,
}

impl<'a> FullUser<'a> {
    /// Creates the view of a user that the credentials of `caller` permit, see [`UserBase::seen_by`].
    #[must_use]
    pub fn seen_by(account: &'a Account, caller: &Principal) -> Self {
        const NONE: &PhoneNumbers = &PhoneNumbers { direct: None, mobile: None };
        let Account { user, agreements, .. } = account;
        let phone_number = if caller.allows(Permission::Name) { &user.phone } else { NONE };
        let base = UserBase::seen_by(user, caller);
        Self { base, phone_number, agreements, access: user.access }
    }
}

/// An agreement in the form of the deprecated endpoint (contract users-2).
///
/// The optional property `type` is left out for `Prepaid`, which this endpoint cannot express. `Sketch`
/// is in the contract, but no agreement has that type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OldAgreement<'a> {
    id: AgreementId,
    description: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    is_super_agreement: bool,
    products: Vec<OldAgreementProduct<'a>>,
}

/// A product of an [`OldAgreement`].
#[derive(Debug, Serialize)]
pub struct OldAgreementProduct<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    description: Option<&'a str>,
    code: &'a str,
}

impl<'a> From<&'a Agreement> for OldAgreement<'a> {
    fn from(agreement: &'a Agreement) -> Self {
        let kind = match agreement.kind {
            AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal => {
                Some(agreement.kind.as_str())
            }
            AgreementType::Prepaid => None,
        };
        Self {
            id: agreement.id,
            description: agreement.description.as_deref(),
            kind,
            is_super_agreement: agreement.super_agreement,
            products: agreement.products.iter().map(OldAgreementProduct::from).collect(),
        }
    }
}

impl<'a> From<&'a Product> for OldAgreementProduct<'a> {
    fn from(product: &'a Product) -> Self {
        Self {
            name: product.name.as_deref(),
            description: product.description.as_deref(),
            code: &product.code,
        }
    }
}

/// An organization with its addresses (contract users-3).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FullOrganization<'a> {
    id: OrganizationId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    address: &'a OrganizationAddresses,
    phone_number: DirectPhone<'a>,
}

#[derive(Debug, Serialize)]
struct DirectPhone<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    direct: Option<&'a str>,
}

impl<'a> From<&'a Organization> for FullOrganization<'a> {
    fn from(organization: &'a Organization) -> Self {
        Self {
            id: organization.id,
            name: organization.name.as_deref(),
            currency: organization.currency.as_deref(),
            country: organization.country.as_deref(),
            address: &organization.address,
            phone_number: DirectPhone { direct: organization.phone_direct.as_deref() },
        }
    }
}

/// A browser session of the caller.
#[derive(Debug, Serialize)]
pub struct OwnSession<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    created: Timestamp,
    used: Timestamp,
    expires: Timestamp,
}

impl<'a> From<&'a ListedSession> for OwnSession<'a> {
    fn from(session: &'a ListedSession) -> Self {
        Self {
            id: &session.name,
            browser: session.browser.as_deref().map(browser_name),
            address: session.address.as_deref(),
            created: session.auth_time,
            used: session.used,
            expires: session.expires,
        }
    }
}

/// An application that may act for the caller.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnApplication<'a> {
    client_id: &'a str,
    name: &'a str,
    scopes: Vec<&'static str>,
    since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Timestamp>,
}

impl<'a> From<&'a ListedApplication> for OwnApplication<'a> {
    fn from(application: &'a ListedApplication) -> Self {
        Self {
            client_id: &application.client_id,
            name: &application.name,
            scopes: application.scopes.iter().map(Scope::as_str).collect(),
            since: application.since,
            used: application.used,
        }
    }
}

/// A link by which a user sets a password; its URL is shown only when it is created.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkView<'a> {
    kind: &'static str,
    created: Timestamp,
    expires: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed_to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

impl From<&PasswordLink> for LinkView<'_> {
    fn from(link: &PasswordLink) -> Self {
        let PasswordLink { kind, created, expires, .. } = *link;
        Self { kind: kind.as_str(), created, expires, mailed_to: None, url: None }
    }
}

impl<'a> From<&'a SentLink> for LinkView<'a> {
    fn from(sent: &'a SentLink) -> Self {
        let (mailed_to, url) = match &sent.delivery {
            LinkDelivery::Mailed(address) => (Some(address.as_str()), None),
            LinkDelivery::PassedOn(url) => (None, Some(url.as_str())),
        };
        Self { mailed_to, url, ..Self::from(&sent.link) }
    }
}

/// The login state of a user of the organization.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserLoginStateView<'a> {
    active: bool,
    #[serde(rename = "program")]
    is_service_account: bool,
    has_password: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkView<'a>>,
    sessions: u32,
    applications: u32,
    keys: u32,
}

impl<'a> From<&'a UserLoginState> for UserLoginStateView<'a> {
    fn from(state: &'a UserLoginState) -> Self {
        Self {
            active: state.active,
            is_service_account: state.is_service_account,
            has_password: state.has_password,
            link: state.link.as_ref().map(LinkView::from),
            sessions: state.logins.sessions,
            applications: state.logins.applications,
            keys: state.logins.keys,
        }
    }
}
