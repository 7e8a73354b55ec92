//! Users, agreements and organizations as the API shows them (Spec §2).

use serde::Serialize;

use crate::account::{
    Access, Account, Addresses, Agreement, AgreementId, AgreementType, Organization,
    OrganizationId, Phone, Product, User, UserId,
};

/// Spec §2 UserBase: an element of the list of an organization's users.
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

impl<'a> From<&'a User> for UserBase<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            id: user.id,
            customer_id: user.organization,
            user_name: &user.user_name,
            first_name: user.first_name.as_deref(),
            last_name: user.last_name.as_deref(),
            email_address: user.email_address.as_deref(),
            department: user.department.as_deref(),
            active: user.active,
        }
    }
}

/// Spec §2 User.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FullUser<'a> {
    #[serde(flatten)]
    base: UserBase<'a>,
    phone_number: &'a Phone,
    agreements: &'a [Agreement],
    access: Access,
}

impl<'a> From<&'a Account> for FullUser<'a> {
    fn from(account: &'a Account) -> Self {
        let Account { user, agreements, .. } = account;
        Self { base: user.into(), phone_number: &user.phone, agreements, access: user.access }
    }
}

/// Spec §2 Agreement (deprecated agreement endpoint).
///
/// Its `type` has no name for `Prepaid`, so such an agreement has none here; the property is
/// optional. `Sketch` is in the contract, but no agreement of ours is one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OldAgreement<'a> {
    id: AgreementId,
    description: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    is_super_agreement: bool,
    products: Vec<OldProduct<'a>>,
}

/// A product of [`OldAgreement`].
#[derive(Debug, Serialize)]
pub struct OldProduct<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    description: Option<&'a str>,
    code: &'a str,
}

impl<'a> From<&'a Agreement> for OldAgreement<'a> {
    fn from(agreement: &'a Agreement) -> Self {
        let product = |product: &'a Product| OldProduct {
            name: product.name.as_deref(),
            description: product.description.as_deref(),
            code: &product.code,
        };
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
            products: agreement.products.iter().map(product).collect(),
        }
    }
}

/// Spec §2 Organization.
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
    address: &'a Addresses,
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
