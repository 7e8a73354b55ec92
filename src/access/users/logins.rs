//! Lists and ends the logins of a user: sessions, applications, keys.

use jiff::Timestamp;

use super::{
    Administration, Administrator, Users, administers, has_role, last_administrator, not_found,
    organization_view::password_link,
};
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{
    DbError, ListedApplication, ListedSession, LoginCount, PendingUser, WriteTx,
};
use api::organization::UserAccess;
use model::account::{Permission, ROLE_OPERATOR, ROLE_PROVIDER, User, UserId};

/// Fails for a caller with a key, because a leaked key must not reveal where its owner logs in, and for a
/// caller without the permission to see logins.
fn require_login_permission(caller: &Principal) -> Result<()> {
    caller.refuse_api_key()?;
    caller.require(Permission::Logins)
}

impl Users {
    /// Lists the caller's browser sessions, most recently used first.
    pub async fn sessions(
        &self,
        caller: &Principal,
        now: Timestamp,
    ) -> Result<Vec<ListedSession>> {
        require_login_permission(caller)?;
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.list_sessions(id, now)).await?)
    }

    /// Ends the caller's session that is listed as `name`.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no such session.
    pub async fn end_session(&self, caller: &Principal, name: &str, now: Timestamp) -> Result<()> {
        require_login_permission(caller)?;
        let id = caller.user().id;
        let event = audit::event(AuditAction::SessionEnded).with_object(ObjectKind::User, id);
        let not_found = format!("no session {name}");
        let name = name.to_owned();
        self.auth
            .end_and_record(event, not_found, move |tx| tx.end_session_named(id, &name, now))
            .await
    }

    /// Lists the applications that may act for the caller, by name.
    pub async fn applications(&self, caller: &Principal) -> Result<Vec<ListedApplication>> {
        require_login_permission(caller)?;
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.list_applications(id)).await?)
    }

    /// Withdraws the caller's consent to an application and ends its tokens.
    ///
    /// Fails with [`ErrorKind::NotFound`] if the caller has not authorized the application.
    pub async fn revoke_application(
        &self,
        caller: &Principal,
        client_id: &str,
        now: Timestamp,
    ) -> Result<()> {
        require_login_permission(caller)?;
        let id = caller.user().id;
        let event = audit::event(AuditAction::ConsentWithdrawn)
            .with_object(ObjectKind::Consent, client_id);
        let not_found = format!("no application {client_id}");
        let client = client_id.to_owned();
        self.auth
            .end_and_record(event, not_found, move |tx| tx.revoke_application(id, &client, now))
            .await
    }
}

/// Returns the refusal for a different user who has a role of the agency that `administrator` lacks: an
/// administrator of a customer must not stop the agency's feeds or its operators (contract users-18).
fn role_refusal(user: &User, administrator: Administrator) -> Option<Error> {
    if user.id == administrator.id {
        None
    } else if has_role(user, ROLE_OPERATOR) && !administrator.is_operator {
        let message =
            "The user operates the service, so only operators deactivate it and end its logins";
        Some(Error::forbidden("operator_required", message))
    } else if has_role(user, ROLE_PROVIDER) && !administrator.is_provider {
        let message =
            "The user works for the agency, so only providers deactivate it and end its logins";
        Some(Error::forbidden("provider_required", message))
    } else {
        None
    }
}

impl Administration<'_> {
    /// Runs `change` in a transaction with the user `id` of the organization.
    ///
    /// Checked in the transaction, because the user may move or get a role meanwhile. Fails with
    /// [`ErrorKind::NotFound`] for a user of a different organization, and with [`ErrorKind::Forbidden`] for a user
    /// with a role of the agency that the administrator lacks.
    async fn change_logins<T: Send + 'static>(
        &self,
        id: UserId,
        change: impl FnOnce(&WriteTx<'_>, &User) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T> {
        let organization = self.organization;
        let administrator = self.administrator;
        let changing = self.users.auth.write(move |tx| {
            let found = tx.find_user(id)?;
            let ours = found.filter(|user| user.organization == Some(organization));
            let Some(user) = ours else { return Ok(Err(not_found())) };
            if let Some(refused) = role_refusal(&user, administrator) {
                return Ok(Err(refused));
            }
            change(tx, &user).map(Ok)
        });
        changing.await?
    }

    /// Returns the login state of the user `id` of the organization.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization.
    pub async fn login_state(&self, id: UserId, now: Timestamp) -> Result<UserAccess> {
        let account = self.load(id).await?;
        let state = self.users.db().read(move |tx| {
            let LoginCount { sessions, applications, keys } = tx.count_logins(id, now)?;
            Ok(UserAccess {
                active: account.user.active,
                program: account.user.service_account,
                has_password: tx.has_password(id)?,
                // The newest link.
                link: tx.list_password_links(id, now)?.first().map(password_link),
                sessions,
                applications,
                keys,
            })
        });
        Ok(state.await?)
    }

    /// Lists the people of the organization who have no password yet.
    pub async fn users_without_password(&self, now: Timestamp) -> Result<Vec<PendingUser>> {
        let organization = self.organization;
        let users =
            self.users.db().read(move |tx| tx.list_pending_users(organization, now)).await?;
        Ok(users)
    }

    /// Deactivates the user `id` of the organization, which ends its sessions, tokens and links, or
    /// reactivates it. Its keys are refused while it is deactivated.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, with [`ErrorKind::Forbidden`]
    /// for a user with a role of the agency that the administrator lacks, and with [`ErrorKind::Conflict`] if
    /// administrators would deactivate themselves, or the last administrator.
    pub async fn set_active(&self, id: UserId, active: bool, now: Timestamp) -> Result<()> {
        if id == self.administrator.id && !active {
            let message = "You cannot deactivate yourself; another administrator can";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let event = audit::event(AuditAction::UserChanged).with_object(ObjectKind::User, id);
        let event = event.with_detail(if active { "reactivated" } else { "deactivated" });
        let organization = self.organization;
        let change = self.change_logins(id, move |tx, user| {
            // A repeated request records nothing.
            if user.active == active {
                return Ok(Ok(()));
            }
            // Two administrators may deactivate each other at the same time.
            if administers(user) && !tx.has_other_administrator(organization, id)? {
                return Ok(Err(last_administrator()));
            }
            tx.set_user_active(&user.user_name, active, now)?;
            if !active {
                // An earlier link must not work again after a reactivation.
                tx.delete_password_links(id)?;
            }
            tx.write_audit(&event)?;
            Ok(Ok(()))
        });
        change.await?
    }

    /// Ends the sessions and tokens of the user `id` of the organization.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, and with
    /// [`ErrorKind::Forbidden`] for a user with a role of the agency that the administrator lacks.
    pub async fn end_logins(&self, id: UserId, now: Timestamp) -> Result<()> {
        let event = audit::event(AuditAction::SessionEnded)
            .with_object(ObjectKind::User, id)
            .with_detail("all");
        let ending = self.change_logins(id, move |tx, _| {
            tx.end_logins(id, now)?;
            tx.write_audit(&event)
        });
        ending.await
    }

    /// Revokes all keys of the user `id` of the organization.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, and with
    /// [`ErrorKind::Forbidden`] for a user with a role of the agency that the administrator lacks.
    pub async fn revoke_keys(&self, id: UserId, now: Timestamp) -> Result<()> {
        let event = audit::event(AuditAction::KeyRevoked);
        let revocation = self.change_logins(id, move |tx, _| {
            for key in tx.revoke_keys_of(id, now)? {
                tx.write_audit(&event.clone().with_object(ObjectKind::Key, key))?;
            }
            Ok(())
        });
        revocation.await
    }
}
