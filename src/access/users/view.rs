//! Views of users for clients (contract users-1).

use crate::access::auth::Principal;
use api::account::{PhoneNumber, Prepaids, UserBase, UserRights};
use model::account::{Account, Agreement, Permission, Product, User};

/// Creates the view of a user that the credentials of `caller` permit: properties that the contract does not require are
/// left out if a scope for them is enforced and missing.
pub fn user(account: &Account, caller: &Principal) -> api::account::User {
    let Account { user, agreements, .. } = account;
    let phone = Some(&user.phone).filter(|_| caller.allows(Permission::Name));
    api::account::User {
        base: user_base(user, caller),
        phone_number: PhoneNumber {
            direct: phone.and_then(|phone| phone.direct.clone()),
            mobile: phone.and_then(|phone| phone.mobile.clone()),
        },
        agreements: agreements.iter().map(agreement).collect(),
        access: UserRights { admin: user.access.admin, mediebank: user.access.mediebank },
    }
}

/// Creates the view of a user in a list, see [`user`].
pub fn user_base(user: &User, caller: &Principal) -> UserBase {
    let shows_name = caller.allows(Permission::Name);
    let shows_email = caller.allows(Permission::Email);
    let shows_organization = caller.allows(Permission::Organization);
    let organization = user.organization.filter(|_| shows_organization);
    UserBase {
        id: user.id.0,
        customer_id: organization.map(|organization| organization.0),
        user_name: user.user_name.clone(),
        first_name: user.first_name.clone().filter(|_| shows_name),
        last_name: user.last_name.clone().filter(|_| shows_name),
        email_address: user.email_address.clone().filter(|_| shows_email),
        department: user.department.clone().filter(|_| shows_organization),
        active: user.active,
    }
}

fn agreement(agreement: &Agreement) -> api::account::Agreement {
    let prepaids = agreement.prepaids;
    api::account::Agreement {
        id: agreement.id.0,
        kind: agreement.kind,
        super_agreement: agreement.super_agreement,
        products: agreement.products.iter().map(product).collect(),
        name: agreement.name.clone(),
        description: agreement.description.clone(),
        expires: agreement.expires,
        prepaids: prepaids
            .map(|counts| Prepaids { total: counts.total, remaining: counts.remaining }),
    }
}

fn product(product: &Product) -> api::account::Product {
    api::account::Product {
        id: product.id.0,
        code: product.code.clone(),
        name: product.name.clone(),
        description: product.description.clone(),
    }
}
