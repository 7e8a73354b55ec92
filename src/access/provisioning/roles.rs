//! Changes the roles of users.
//!
//! If a user gets a role of the agency that runs the service, earlier links for a new password end, because an
//! administrator of a customer may have requested them.

use jiff::Timestamp;

use super::{Accounts, AccountsError};
use crate::runtime::limits::ROLES_MAX;
use crate::storage::audit::{AuditEvent, ObjectKind};
use crate::storage::database::{DbError, ReadTx, WriteTx};
use model::account::accounts_file::AsciiWord;
use model::account::{ROLE_OPERATOR, ROLE_PROVIDER};

/// The roles of the agency's employees. Other roles belong to customers and grant no access by themselves.
const AGENCY_ROLES: [&str; 2] = [ROLE_PROVIDER, ROLE_OPERATOR];

/// The outcome of a change of roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRoles {
    /// The roles of the user after the change.
    pub roles: Vec<String>,
    /// True if the user got a role of the agency.
    pub gains_agency_role: bool,
    /// The address to which links for a new password go. The caller shows it for a check, because an administrator of
    /// the user's organization may have set it before the user had the role.
    pub email_address: Option<String>,
}

/// Returns the roles of the user with this name, or no roles if there is no such user.
pub(super) fn roles_of(tx: &ReadTx<'_>, user_name: &str) -> Result<Vec<String>, DbError> {
    Ok(tx.find_user_by_name(user_name)?.map(|(user, _)| user.roles).unwrap_or_default())
}

/// Records in the audit log the roles of the agency that an import gave to a user or removed, and ends the password
/// links of a user who got one. `before` has the roles of the user before the import.
pub(super) fn record_import(
    tx: &WriteTx<'_>,
    event: &AuditEvent,
    user_name: &str,
    before: &[String],
) -> Result<(), DbError> {
    let Some((user, _)) = tx.find_user_by_name(user_name)? else { return Ok(()) };
    let changes = describe_changes(before, &user.roles);
    if changes.is_empty() {
        return Ok(());
    }
    if gains_role(before, &user.roles) {
        tx.delete_password_links(user.id)?;
    }
    let event = event.clone().with_object(ObjectKind::User, user.id);
    tx.write_audit(&event.with_detail(changes.join(" ")))
}

fn has(roles: &[String], role: &str) -> bool {
    roles.iter().any(|own| own == role)
}

/// Returns whether a user gets a role of the agency.
fn gains_role(before: &[String], after: &[String]) -> bool {
    AGENCY_ROLES.into_iter().any(|role| !has(before, role) && has(after, role))
}

/// Describes the changes of the agency's roles: `+ROLE` for an added role, `-ROLE` for a removed role.
fn describe_changes(before: &[String], after: &[String]) -> Vec<String> {
    let mut changes = Vec::new();
    for role in AGENCY_ROLES {
        let was_given = has(before, role);
        let is_given = has(after, role);
        if is_given && !was_given {
            changes.push(format!("+{role}"));
        } else if was_given && !is_given {
            changes.push(format!("-{role}"));
        }
    }
    changes
}

/// Applies changes to roles: removes `removed`, then adds the missing roles of `added`.
fn apply_changes(mut roles: Vec<String>, added: &[String], removed: &[String]) -> Vec<String> {
    roles.retain(|role| !removed.contains(role));
    for role in added {
        if !roles.contains(role) {
            roles.push(role.clone());
        }
    }
    roles
}

fn refuse(user_name: &str, why: String) -> AccountsError {
    AccountsError::Entry { entry: format!("user {user_name:?}"), why }
}

impl Accounts {
    /// Removes the roles `removed` from a user, then adds the roles `added`. A new role of the agency ends the password
    /// links of the user.
    ///
    /// Fails if there is no user of that name, if a role is not an [`AsciiWord`], or if the user would have too many.
    pub fn change_roles(
        &self,
        user_name: &str,
        added: &[String],
        removed: &[String],
        now: Timestamp,
    ) -> Result<ChangedRoles, AccountsError> {
        for role in added {
            if let Err(why) = AsciiWord::try_from(role.clone()) {
                return Err(refuse(user_name, format!("roles: {role:?}: {why}")));
            }
        }
        let name = user_name.to_owned();
        let added = added.to_vec();
        let removed = removed.to_vec();
        let found = self.db.write_blocking(move |tx| {
            let Some((user, _)) = tx.find_user_by_name(&name)? else { return Ok(None) };
            let roles = apply_changes(user.roles.clone(), &added, &removed);
            let gains_agency_role = gains_role(&user.roles, &roles);
            // With more roles, nothing is written, and the call fails below.
            if roles.len() <= ROLES_MAX {
                if gains_agency_role {
                    tx.delete_password_links(user.id)?;
                }
                tx.set_user_roles(&name, &roles, now)?;
            }
            let email_address = user.email_address;
            Ok(Some(ChangedRoles { roles, gains_agency_role, email_address }))
        })?;
        let found = found.ok_or_else(|| AccountsError::Unknown(format!("user {user_name:?}")))?;
        if found.roles.len() > ROLES_MAX {
            return Err(refuse(user_name, format!("a user has at most {ROLES_MAX} roles")));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn only_roles_of_the_agency_are_described() {
        let check = |before: &str, after: &str, expected: &str| {
            assert_eq!(
                describe_changes(&roles(before), &roles(after)),
                roles(expected),
                "{before}"
            );
        };
        check("ROLE_OFP", "ROLE_MEDIEBANK", "");
        check("", "ROLE_OPERATOR ROLE_OFP", "+ROLE_OPERATOR");
        check("ROLE_PROVIDER", "ROLE_OPERATOR", "-ROLE_PROVIDER +ROLE_OPERATOR");
        check("ROLE_PROVIDER ROLE_OPERATOR", "ROLE_OPERATOR ROLE_PROVIDER", "");
    }

    #[test]
    fn a_role_is_added_once_and_removed() {
        let check = |before: &str, added: &str, removed: &str, expected: &str| {
            let found = apply_changes(roles(before), &roles(added), &roles(removed));
            assert_eq!(found, roles(expected), "{before} +{added} -{removed}");
        };
        check("A B", "C A", "", "A B C");
        check("A B", "", "A D", "B");
        check("A", "A", "A", "A");
    }
}
