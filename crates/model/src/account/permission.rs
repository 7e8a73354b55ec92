//! The permissions of a caller in the APIs, and the scopes that each requires.
//!
//! The consent page lists the permissions of this module's table that a client would get. A test of
//! `http::site::login` compares the table with `docs/guide/scopes.md`.
//!
//! Every API checks the scope `roles` at its entrance. The scopes that a permission requires besides are checked with
//! `auth::Principal::require` or `allows`, which take them from the table. The table does not enforce the holder of a
//! permission: each API checks the access level or the role of the user, so a change of a holder has to be made there
//! too.
//!
//! Nothing checks [`Permission::Identity`]: every client learns the id of its user from the id token and the UserInfo
//! endpoint of OpenID Connect, whatever its scopes. The consent page lists this permission only for clients with
//! `openid`, because that scope says that the client uses the id to sign users in.
//!
//! By default a client's scopes are not enforced: `roles` grants almost everything, as the contract says (contract
//! login-14). With enforced scopes, `roles` still grants search, downloads, the caller's own orders and deliveries, and
//! reading notifications; most other permissions need a further scope.

use strum::{EnumMessage, VariantArray};

use super::{ROLE_OPERATOR, ROLE_PROVIDER, Scope, ScopeSet, User};

/// A right of a caller in the APIs. The message of each is its text on the consent page, in English.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumMessage, VariantArray)]
pub enum Permission {
    /// Learn the identity of the user.
    #[strum(message = "Know who you are")]
    Identity,
    /// Search, and read documents.
    #[strum(message = "Search the archive as you, and read what your agreements cover")]
    Search,
    /// List notifications, and read streams.
    #[strum(message = "See your notifications and read their streams")]
    ReadNotifications,
    /// Download items that agreements cover.
    #[strum(message = "Download under your organization's agreements, which can cost money")]
    Download,
    /// List the orders of the caller, and report their use: approve them under a licence, or reject them.
    #[strum(message = "See your orders, and approve them under a licence, which can cost money")]
    OwnOrders,
    /// Trigger deliveries, and list the caller's deliveries.
    #[strum(
        message = "Send items through your delivery channels, which can cost money, and see your \
                   deliveries"
    )]
    Deliver,
    /// Read the user name, the roles and the agreements of the caller.
    #[strum(message = "See your user name, your roles, your rights and your agreements")]
    Account,
    /// Read names and telephone numbers: the caller's own and, with `Administration`, those of the organization's
    /// users. The consent page mentions the organization's users only in the text of `Administration`.
    #[strum(message = "See your first and last name, your user ID and your phone numbers")]
    Name,
    /// Read the e-mail addresses of the same users as `Name`.
    #[strum(message = "See your e-mail address")]
    Email,
    /// Read the caller's organization, and the departments of the same users as `Name`.
    #[strum(message = "See your organization with its addresses, and your department")]
    Organization,
    /// Read and write the user's profile.
    #[strum(message = "See and change the settings in your profile")]
    Profile,
    /// Create, replace and delete notifications.
    #[strum(message = "Create, change and delete notifications, which send e-mail and push \
                   messages")]
    WriteNotifications,
    /// List, register and remove devices.
    #[strum(message = "See, register and remove the devices that receive your push messages")]
    Devices,
    /// List and test channels.
    #[strum(message = "See and test your delivery channels")]
    ReadChannels,
    /// Create, replace and remove channels.
    #[strum(message = "Create, change and delete delivery channels, which send files to other \
                   systems")]
    WriteChannels,
    /// List the names of API keys.
    #[strum(message = "See the names of your API keys")]
    ReadKeys,
    /// Revoke existing API keys.
    #[strum(message = "Revoke your API keys")]
    RevokeKeys,
    #[strum(message = "Create API keys, which keep working after this access has ended")]
    MakeKeys,
    /// List the caller's sessions and connected applications, and end them.
    #[strum(message = "See and end your sessions and the access of connected applications")]
    Logins,
    /// Read, write and download collections.
    #[strum(message = "See, create, change and delete your collections, and download them")]
    Collections,
    /// List the orders and deliveries of the organization, and report the use of its orders.
    #[strum(
        message = "See the orders and deliveries of your whole organization, and approve its \
                   orders, which can cost money"
    )]
    OrganizationOrders,
    /// List, create and change the users of the organization.
    #[strum(message = "See, add and change the users of your organization")]
    Administration,
    /// Find and read commissioned items.
    #[strum(message = "Find and read commissioned items, which others do not see")]
    Commissioned,
    /// Find and read every item, including those under embargo.
    #[strum(message = "Find and read every item, also commissioned ones and those under embargo")]
    EveryItem,
    /// Publish, replace and withdraw items.
    #[strum(message = "Publish, replace and withdraw items of the agency")]
    Ingest,
    /// See the service's queues, nodes and statistics, and send failed deliveries and messages again.
    #[strum(message = "See how the service runs and what customers download, and send failed \
                   deliveries and messages again")]
    Operate,
}

/// The users to whom a permission can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermissionHolder {
    Everybody,
    /// Users with the access level `admin`.
    Administrators,
    /// Users with the role `ROLE_PROVIDER`.
    Providers,
    /// Users with the role `ROLE_OPERATOR`.
    Operators,
}

/// A row of the permission table.
struct PermissionRow {
    permission: Permission,
    /// The scopes that a client needs by default: every one of them, and also `roles`, which every API requires even
    /// where it is not listed.
    by_default: &'static [Scope],
    /// The same for a client with enforced scopes.
    enforced: &'static [Scope],
    /// A scope that alone, without `roles`, reveals what the permission covers, or a part of it: as claims in the id
    /// token and at the UserInfo endpoint of OpenID Connect (`/o/v2/user`). `None` if no claim does.
    claims: Option<Scope>,
    holder: PermissionHolder,
}

const fn row(
    permission: Permission,
    by_default: &'static [Scope],
    enforced: &'static [Scope],
) -> PermissionRow {
    PermissionRow {
        permission,
        by_default,
        enforced,
        claims: None,
        holder: PermissionHolder::Everybody,
    }
}

impl PermissionRow {
    const fn with_claims(self, scope: Scope) -> Self {
        Self { claims: Some(scope), ..self }
    }

    const fn only_for(self, holder: PermissionHolder) -> Self {
        Self { holder, ..self }
    }
}

const ROLES: &[Scope] = &[Scope::Roles];
const PROFILE: &[Scope] = &[Scope::Profile];
const ADMIN: &[Scope] = &[Scope::Admin];
/// The scopes of an API key. A key outlives the token that creates it, so the token needs all of them (contract
/// access-8).
const KEY_SCOPES: &[Scope] = &[
    Scope::OpenId,
    Scope::Roles,
    Scope::Email,
    Scope::User,
    Scope::Customer,
    Scope::Profile,
    Scope::Collection,
];

/// Every permission, in the order of the consent page.
static TABLE: [PermissionRow; 26] = [
    row(Permission::Identity, &[Scope::OpenId], &[Scope::OpenId]).with_claims(Scope::OpenId),
    row(Permission::Search, ROLES, ROLES),
    row(Permission::Download, ROLES, ROLES),
    row(Permission::OwnOrders, ROLES, ROLES),
    // By default `roles` is enough for an administrator to see and report all orders of the organization (contract
    // login-14), with one exception: approving an order under an agreement with `Approver::Admin` needs the scope
    // `admin` too. `access::orders` checks that, not this table (contract purchases-15).
    row(Permission::OrganizationOrders, ROLES, ADMIN).only_for(PermissionHolder::Administrators),
    row(Permission::Deliver, ROLES, ROLES),
    row(Permission::Account, ROLES, ROLES),
    row(Permission::Name, ROLES, &[Scope::User]).with_claims(Scope::User),
    row(Permission::Email, ROLES, &[Scope::Email]).with_claims(Scope::Email),
    row(Permission::Organization, ROLES, &[Scope::Customer]).with_claims(Scope::Customer),
    row(Permission::Profile, ROLES, PROFILE),
    row(Permission::ReadNotifications, ROLES, ROLES),
    row(Permission::WriteNotifications, ROLES, PROFILE),
    row(Permission::Devices, ROLES, PROFILE),
    row(Permission::ReadChannels, ROLES, PROFILE),
    // Writing channels and revoking keys needs `profile`, whether scopes are enforced or not (contract deliveries-19,
    // access-8).
    row(Permission::WriteChannels, PROFILE, PROFILE),
    row(Permission::ReadKeys, ROLES, PROFILE),
    row(Permission::RevokeKeys, PROFILE, PROFILE),
    row(Permission::MakeKeys, KEY_SCOPES, KEY_SCOPES),
    // As much as creating a key, because ending logins locks the user out of applications.
    row(Permission::Logins, KEY_SCOPES, KEY_SCOPES),
    row(Permission::Collections, ROLES, &[Scope::Collection]),
    row(Permission::Administration, ADMIN, ADMIN).only_for(PermissionHolder::Administrators),
    row(Permission::Commissioned, ADMIN, ADMIN).only_for(PermissionHolder::Administrators),
    row(Permission::EveryItem, ROLES, ROLES).only_for(PermissionHolder::Providers),
    row(Permission::Ingest, ROLES, ROLES).only_for(PermissionHolder::Providers),
    // `admin` with enforced scopes: an operator's client that only searches must not see the agency's figures.
    row(Permission::Operate, ROLES, ADMIN).only_for(PermissionHolder::Operators),
];

impl Permission {
    /// Iterates over every permission, in the order of the consent page.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.permission)
    }

    fn row(self) -> Option<&'static PermissionRow> {
        TABLE.iter().find(|row| row.permission == self)
    }

    /// Returns the scopes of the permission's row, each of which is required, besides `roles`, which every API
    /// requires. `enforced` is true if the client's scopes are enforced.
    pub fn scopes(self, enforced: bool) -> &'static [Scope] {
        match self.row() {
            Some(row) if enforced => row.enforced,
            Some(row) => row.by_default,
            // Unreachable, as a test proves that the table is complete. Requiring every scope fails closed.
            None => Scope::ALL,
        }
    }

    /// Returns the text on the consent page, in English.
    pub fn text(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }

    /// Reports whether the consent page lists this permission for a client with `scopes` that acts for `user`.
    ///
    /// Every API requires `roles` besides the scopes in the table. The claims of the id token and of the
    /// UserInfo endpoint do not require it.
    pub fn is_granted(self, scopes: ScopeSet, enforced: bool, user: &User) -> bool {
        // Unreachable as above; fails closed.
        let Some(row) = self.row() else { return false };
        let is_eligible = match row.holder {
            PermissionHolder::Everybody => true,
            // Read from the user, not from the token, so that a removed access level ends at once (contract
            // users-9).
            PermissionHolder::Administrators => user.access.admin,
            PermissionHolder::Providers => user.roles.iter().any(|role| role == ROLE_PROVIDER),
            PermissionHolder::Operators => user.roles.iter().any(|role| role == ROLE_OPERATOR),
        };
        let has_scopes = scopes.contains(Scope::Roles)
            && self.scopes(enforced).iter().all(|scope| scopes.contains(*scope));
        // The id token and the UserInfo endpoint give claims without `roles`, so the consent page must list them.
        is_eligible && (has_scopes || row.claims.is_some_and(|scope| scopes.contains(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{AccessLevels, PhoneNumbers, UserId};

    fn user(admin: bool) -> User {
        User {
            id: UserId(1),
            organization: None,
            user_name: "a".to_owned(),
            first_name: None,
            last_name: None,
            email_address: None,
            department: None,
            phone: PhoneNumbers::default(),
            roles: Vec::new(),
            access: AccessLevels { admin, mediebank: false },
            active: true,
            service_account: false,
        }
    }

    fn set(scopes: &[Scope]) -> ScopeSet {
        scopes.iter().copied().fold(ScopeSet::NONE, ScopeSet::with)
    }

    fn granted(scopes: &[Scope], enforced: bool, admin: bool) -> Vec<Permission> {
        let (scopes, user) = (set(scopes), user(admin));
        Permission::all()
            .filter(|permission| permission.is_granted(scopes, enforced, &user))
            .collect()
    }

    #[test]
    fn every_permission_has_one_row() {
        for row in &TABLE {
            let same = TABLE.iter().filter(|other| other.permission == row.permission);
            assert_eq!(same.count(), 1, "{:?}", row.permission);
            assert!(
                !row.permission.text().is_empty()
                    && !row.by_default.is_empty()
                    && !row.enforced.is_empty()
            );
        }
        assert_eq!(TABLE.len(), Permission::VARIANTS.len(), "a permission without a row");
    }

    #[test]
    fn enforcement_never_grants_what_the_contract_does_not() {
        for bits in 0..256_u16 {
            let scopes: Vec<Scope> =
                Scope::ALL.iter().copied().filter(|scope| bits & *scope as u16 != 0).collect();
            let wide = granted(&scopes, false, true);
            for permission in granted(&scopes, true, true) {
                assert!(wide.contains(&permission), "{permission:?} with {scopes:?}");
            }
        }
    }

    #[test]
    fn roles_alone_grant_orders_and_collections_unless_scopes_are_enforced() {
        let wide = granted(ROLES, false, true);
        for permission in
            [Permission::Profile, Permission::Collections, Permission::OrganizationOrders]
        {
            assert!(wide.contains(&permission), "{permission:?}");
        }
        assert!(!wide.contains(&Permission::Administration));
        assert!(!wide.contains(&Permission::Commissioned));
        let narrow = granted(ROLES, true, true);
        let expected = [
            Permission::Search,
            Permission::Download,
            Permission::OwnOrders,
            Permission::Deliver,
            Permission::Account,
            Permission::ReadNotifications,
        ];
        assert_eq!(narrow, expected);
        assert!(!granted(ROLES, false, false).contains(&Permission::OrganizationOrders));
    }

    #[test]
    fn privileged_permissions_are_granted_only_to_admins_and_providers() {
        let admin = [Scope::Roles, Scope::Admin];
        for enforced in [false, true] {
            assert!(granted(&admin, enforced, true).contains(&Permission::Commissioned));
            assert!(!granted(&admin, enforced, false).contains(&Permission::Commissioned));
            assert!(!granted(&admin, enforced, true).contains(&Permission::EveryItem));
            let provider = User { roles: vec![ROLE_PROVIDER.to_owned()], ..user(false) };
            let grants = |one: Permission| one.is_granted(set(ROLES), enforced, &provider);
            assert!(grants(Permission::EveryItem) && grants(Permission::Ingest));
        }
    }

    #[test]
    fn an_operator_operates_and_sees_no_more_of_the_archive() {
        let operator = User { roles: vec![ROLE_OPERATOR.to_owned()], ..user(true) };
        let grants = |one: Permission, scopes: &[Scope], enforced| {
            one.is_granted(set(scopes), enforced, &operator)
        };
        assert!(grants(Permission::Operate, ROLES, false));
        assert!(!grants(Permission::Operate, ROLES, true));
        assert!(grants(Permission::Operate, &[Scope::Roles, Scope::Admin], true));
        assert!(!grants(Permission::EveryItem, ROLES, false));
        assert!(!grants(Permission::Ingest, ROLES, false));
        assert!(
            !granted(&[Scope::Roles, Scope::Admin], false, true).contains(&Permission::Operate)
        );
    }

    #[test]
    fn claims_are_reported_without_roles() {
        assert_eq!(granted(&[Scope::Email], true, false), [Permission::Email]);
        assert_eq!(granted(&[Scope::Email], false, false), [Permission::Email]);
        assert!(granted(&[Scope::Profile], true, true).is_empty());
    }

    #[test]
    fn a_key_takes_the_scopes_of_a_key() {
        assert_eq!(set(KEY_SCOPES), ScopeSet::for_api_key());
    }
}
