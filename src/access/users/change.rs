//! New users and changes of users, as administrators request them (contract users-10, users-12).

use crate::storage::database::NewMember;
use model::account::{AccessLevels, OrganizationId, PhoneNumbers, ROLE_MEDIEBANK, ROLE_OFP, User};

/// Minimum number of digits of a telephone number; internal numbers of a switchboard have three.
const PHONE_DIGITS_MIN: usize = 3;
/// Maximum number of digits: 15 with the country code (E.164 §6.2.1) and an extension.
const PHONE_DIGITS_MAX: usize = 20;
/// Maximum number of characters, including punctuation and spaces.
const PHONE_CHARS_MAX: usize = 40;

/// Returns whether `text` is a telephone number: 3 to 20 digits, optionally with a leading `+`, and with
/// spaces or any of `-().` and `/` between them.
#[must_use]
pub fn is_phone_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('+').unwrap_or(text);
    text.chars().count() <= PHONE_CHARS_MAX
        && (PHONE_DIGITS_MIN..=PHONE_DIGITS_MAX).contains(&digits)
        && rest.chars().all(|c| c.is_ascii_digit() || " -()./".contains(c))
}

/// A new user, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedMember {
    /// E-mail address; in lower case it is the user name.
    pub email_address: String,
    pub first_name: String,
    pub last_name: String,
    pub department: Option<String>,
    pub phone: PhoneNumbers,
    pub access: AccessLevels,
}

impl CheckedMember {
    pub(super) fn into_member(self, organization: OrganizationId) -> NewMember {
        let mut roles = vec![ROLE_OFP.to_owned()];
        set_role(&mut roles, ROLE_MEDIEBANK, self.access.mediebank);
        NewMember {
            organization,
            user_name: self.email_address.to_lowercase(),
            first_name: self.first_name,
            last_name: self.last_name,
            email_address: self.email_address,
            department: self.department,
            phone: self.phone,
            roles,
            access: self.access,
        }
    }
}

/// A change of a user, validated. The outer `None` leaves a property unchanged, the inner `None` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// E-mail address; the user name stays unchanged.
    pub email_address: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub department: Option<Option<String>>,
    /// Telephone number at the workplace.
    pub phone_direct: Option<Option<String>>,
    pub phone_mobile: Option<Option<String>>,
    pub admin: Option<bool>,
    /// Access level `mediebank`; the role is changed accordingly.
    pub mediebank: Option<bool>,
}

impl UserChange {
    pub(super) fn apply(self, user: &mut User) {
        // These properties can be replaced but not emptied (contract users-12).
        replace_if_given(&mut user.email_address, self.email_address);
        replace_if_given(&mut user.first_name, self.first_name);
        replace_if_given(&mut user.last_name, self.last_name);
        replace(&mut user.department, self.department);
        replace(&mut user.phone.direct, self.phone_direct);
        replace(&mut user.phone.mobile, self.phone_mobile);
        replace(&mut user.access.admin, self.admin);
        if let Some(mediebank) = self.mediebank {
            user.access.mediebank = mediebank;
            set_role(&mut user.roles, ROLE_MEDIEBANK, mediebank);
        }
    }
}

fn replace_if_given(target: &mut Option<String>, value: Option<String>) {
    if value.is_some() {
        *target = value;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_telephone_numbers_as_people_write_them() {
        for text in
            ["112", "+46 8 465 004 01", "08-465 004 01", "(08) 465.004/01", "0046846500401"]
        {
            assert!(is_phone_number(text), "{text:?}");
        }
    }

    #[test]
    fn err_what_is_no_telephone_number() {
        let long = format!("1{}", " 1".repeat(20));
        for text in ["", "11", "+", "none", "08+465", "++4684650", "123 ext 4", "1\n23", &long] {
            assert!(!is_phone_number(text), "{text:?}");
        }
        assert!(!is_phone_number(&"1".repeat(21)));
        assert!(!is_phone_number(&format!("123{}", " ".repeat(40))));
    }
}
