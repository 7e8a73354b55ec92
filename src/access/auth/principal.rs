//! An authenticated caller and its permissions.

use std::sync::Arc;

use crate::runtime::error::{Error, Result};
use model::account::{
    AccessLevels, Account, Agreement, FamilyId, OrganizationId, Permission, PhoneNumbers,
    ROLE_OPERATOR, ROLE_PROVIDER, Scope, ScopeSet, User, UserId,
};

/// The authentication method of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// An OAuth2 access token.
    Bearer {
        /// The family of the token: all tokens that descend from one authorization.
        family: FamilyId,
    },
    /// An API key of the user.
    ApiKey {
        /// The number of the key.
        key: i64,
    },
    /// HTTP Basic authentication with user name and password.
    Basic,
    /// A session of a browser.
    Session,
    /// No credentials: the caller requested the work earlier, and it is done now.
    Queue,
    /// The operator at the command line.
    Operator,
}

/// An authenticated caller: the user, and the permissions of its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub(super) account: Arc<Account>,
    pub(super) scopes: ScopeSet,
    /// True if permissions require the scopes that are named after them.
    pub(super) scopes_enforced: bool,
    /// True if the credentials change nothing.
    pub(super) is_read_only: bool,
    pub(super) method: AuthMethod,
}

impl Principal {
    /// Creates a caller with the permissions of an API key.
    pub(super) fn new(account: Arc<Account>, method: AuthMethod) -> Self {
        let scopes = ScopeSet::for_api_key();
        Self { account, scopes, scopes_enforced: false, is_read_only: false, method }
    }

    /// Returns the operator at the command line, who sees everything on the machine.
    ///
    /// Commands act as this principal. No request does: a caller over the network is resolved by
    /// [`Auth::find`](super::Auth::find), and `tests/tidy` checks that the HTTP layer never creates this
    /// principal.
    pub fn operator() -> Self {
        let user = User {
            id: UserId(0),
            organization: None,
            user_name: "operator".to_owned(),
            first_name: None,
            last_name: None,
            email_address: None,
            department: None,
            phone: PhoneNumbers::default(),
            roles: vec![ROLE_PROVIDER.to_owned()],
            access: AccessLevels::default(),
            active: true,
            service_account: true,
        };
        let account = Account { user, organization: None, agreements: Vec::new() };
        Self::new(Arc::new(account), AuthMethod::Operator)
    }

    /// Returns the user with its organization and agreements.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns the user of the account.
    pub fn user(&self) -> &User {
        &self.account.user
    }

    /// Returns the agreements of the user, including expired ones.
    pub fn agreements(&self) -> &[Agreement] {
        &self.account.agreements
    }

    /// Returns the user's organization.
    ///
    /// Fails for a user without an organization.
    pub fn organization(&self) -> Result<OrganizationId> {
        self.user().organization.ok_or_else(|| {
            Error::forbidden("organization_required", "The user has no organization")
        })
    }

    /// Returns the scopes of the credentials.
    pub fn scopes(&self) -> ScopeSet {
        self.scopes
    }

    /// Returns the authentication method of the caller.
    pub fn method(&self) -> AuthMethod {
        self.method
    }

    /// Returns whether the credentials change nothing.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Fails with `read_only` for credentials that change nothing (contract access-7).
    pub fn require_write(&self) -> Result<()> {
        if !self.is_read_only {
            return Ok(());
        }
        let message = "The credentials may only read; this request changes, orders or delivers";
        Err(Error::forbidden("read_only", message))
    }

    /// Returns whether the user has the role `role`.
    pub fn has_role(&self, role: &str) -> bool {
        self.user().roles.iter().any(|own| own == role)
    }

    /// Returns whether the caller works for the provider, who searches the whole archive.
    pub fn is_provider(&self) -> bool {
        self.has_role(ROLE_PROVIDER)
    }

    /// Fails with `operator_required` unless the user has the role of operators, and with `insufficient_scope`
    /// if the credentials do not carry the scopes that operating requires.
    pub fn require_operator_role(&self) -> Result<()> {
        if !self.has_role(ROLE_OPERATOR) {
            let message = "The user lacks the role ROLE_OPERATOR";
            return Err(Error::forbidden("operator_required", message));
        }
        self.require(Permission::Operate)
    }

    /// Returns whether the caller sees items under embargo.
    pub fn sees_embargoed(&self) -> bool {
        self.is_provider()
    }

    /// Returns whether the caller sees commissioned items: the provider, and administrators whose credentials
    /// carry the scope `admin`.
    ///
    /// A delivery is collected later with the rights of an API key. The scope was checked when the delivery
    /// was triggered, so only the access level counts then.
    pub fn sees_commissioned(&self) -> bool {
        let has_scope = self.allows(Permission::Commissioned) || self.method == AuthMethod::Queue;
        self.is_provider() || (self.user().access.admin && has_scope)
    }

    /// Fails with `insufficient_scope` if the credentials do not carry `scope`.
    pub fn require_scope(&self, scope: Scope) -> Result<()> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        Err(Error::insufficient_scope(scope.as_str()))
    }

    /// Returns whether the credentials carry the scopes of `permission`.
    pub fn allows(&self, permission: Permission) -> bool {
        permission.scopes(self.scopes_enforced).iter().all(|scope| self.scopes.contains(*scope))
    }

    /// Fails with `insufficient_scope`, naming the first missing scope, if the credentials do not carry the
    /// scopes of `permission`.
    pub fn require(&self, permission: Permission) -> Result<()> {
        let mut scopes = permission.scopes(self.scopes_enforced).iter();
        scopes.try_for_each(|scope| self.require_scope(*scope))
    }

    /// Fails unless the credentials carry the scope `admin` and the user has the access level `admin`
    /// (contract users-9).
    pub fn require_admin(&self) -> Result<()> {
        self.require(Permission::Administration)?;
        if self.user().access.admin {
            return Ok(());
        }
        Err(Error::forbidden("admin_required", "The user lacks the access level admin"))
    }

    /// Fails with `api_key_unsupported` for a caller with an API key, which may have leaked.
    pub fn refuse_api_key(&self) -> Result<()> {
        match self.method {
            AuthMethod::Bearer { .. }
            | AuthMethod::Basic
            | AuthMethod::Session
            | AuthMethod::Operator => Ok(()),
            // Work of the queue has the rights of an API key, so it is refused like one.
            AuthMethod::ApiKey { .. } | AuthMethod::Queue => {
                let message = "API keys are not supported here, log in instead";
                Err(Error::forbidden("api_key_unsupported", message))
            }
        }
    }

    /// Fails with `service_account_unsupported` for a service account.
    pub fn require_person(&self) -> Result<()> {
        if !self.user().service_account {
            return Ok(());
        }
        let message = "Service accounts are not supported here";
        Err(Error::forbidden("service_account_unsupported", message))
    }
}
