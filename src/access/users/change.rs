//! New users and changes of users, as administrators request them (contract users-10, users-12).

use crate::storage::database::NewMember;
use api::organization::{PhoneNumberUpdate, UserCreate, UserUpdate};
use model::account::{AccessLevels, OrganizationId, PhoneNumbers, ROLE_MEDIEBANK, ROLE_OFP, User};

/// Creates the user `new` of `organization`; its address in lower case is its user name.
pub(super) fn new_member(new: UserCreate, organization: OrganizationId) -> NewMember {
    let phone = new.phone_number.unwrap_or_default();
    let rights = new.access.unwrap_or_default();
    let access = AccessLevels {
        admin: rights.admin.unwrap_or_default(),
        mediebank: rights.mediebank.unwrap_or_default(),
    };
    let mut roles = vec![ROLE_OFP.to_owned()];
    set_role(&mut roles, ROLE_MEDIEBANK, access.mediebank);
    NewMember {
        organization,
        user_name: new.email_address.to_lowercase(),
        first_name: new.first_name,
        last_name: new.last_name,
        email_address: new.email_address,
        department: new.department,
        phone: PhoneNumbers { direct: phone.direct.flatten(), mobile: phone.mobile.flatten() },
        roles,
        access,
    }
}

/// Applies `change` to `user`; the user name and omitted properties stay unchanged.
pub(super) fn apply(change: UserUpdate, user: &mut User) {
    // These properties can be replaced but not emptied (contract users-12).
    replace(&mut user.email_address, change.email_address.map(Some));
    replace(&mut user.first_name, change.first_name.map(Some));
    replace(&mut user.last_name, change.last_name.map(Some));
    replace(&mut user.department, change.department);
    if let Some(phone) = change.phone_number {
        // Clearing the object clears both numbers (contract users-12).
        let none = PhoneNumberUpdate { direct: Some(None), mobile: Some(None) };
        let phone = phone.unwrap_or(none);
        replace(&mut user.phone.direct, phone.direct);
        replace(&mut user.phone.mobile, phone.mobile);
    }
    let rights = change.access.unwrap_or_default();
    replace(&mut user.access.admin, rights.admin);
    if let Some(mediebank) = rights.mediebank {
        // The role is changed with the access level.
        user.access.mediebank = mediebank;
        set_role(&mut user.roles, ROLE_MEDIEBANK, mediebank);
    }
}

fn replace<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn set_role(roles: &mut Vec<String>, role: &str, is_needed: bool) {
    if !is_needed {
        roles.retain(|own| own != role);
    } else if !roles.iter().any(|own| own == role) {
        roles.push(role.to_owned());
    }
}
