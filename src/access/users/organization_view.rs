//! Views of an organization and of its users' logins for clients (contract users-3, users-14, users-18).

use crate::storage::database::PasswordLink;
use api::organization::{Address, OrganizationAddresses, OrganizationPhoneNumber};
use model::account::{Organization, PostalAddress};

/// Creates the view of an organization with its addresses.
pub fn organization(organization: &Organization) -> api::organization::Organization {
    let addresses = &organization.address;
    api::organization::Organization {
        id: organization.id.0,
        name: organization.name.clone(),
        currency: organization.currency.clone(),
        country: organization.country.clone(),
        address: OrganizationAddresses {
            visit: addresses.visit.as_ref().map(address),
            postal: addresses.postal.as_ref().map(address),
            billing: addresses.billing.as_ref().map(address),
        },
        phone_number: OrganizationPhoneNumber { direct: organization.phone_direct.clone() },
    }
}

fn address(address: &PostalAddress) -> Address {
    Address {
        street: address.street.as_deref().map(str::to_owned),
        r#box: address.r#box.as_deref().map(str::to_owned),
        zip_code: address.zip_code.as_deref().map(str::to_owned),
        city: address.city.as_deref().map(str::to_owned),
        country: address.country.as_deref().map(str::to_owned),
    }
}

/// Creates the view of a link that is stored without its URL.
pub(super) fn password_link(link: &PasswordLink) -> api::organization::PasswordLink {
    let PasswordLink { kind, created, expires, .. } = *link;
    api::organization::PasswordLink { kind, created, expires, mailed_to: None, url: None }
}
