//! Users, their organization, profiles and devices: views and changes.
//!
//! The caller is a [`Principal`]. Access to other users requires [`Administration`], which only an
//! administrator gets and which is limited to one organization. A change of a user takes effect at once: the
//! caches of this and other processes are invalidated.

pub mod caller_view;
mod change;
mod keys;
mod logins;
pub mod organization_view;
mod passwords;
pub mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

pub use passwords::{NewPassword, OpenedLink, PASSWORD_LINK_KEY, PasswordOutcome};

use passwords::{invite, link_event};

use crate::access::auth::{Auth, IdSigner, Principal};
use crate::runtime::error::{Error, ErrorDetail, ErrorKind, Result};
use crate::runtime::limits::{
    DEVICES_PER_USER_MAX, OUTBOX_PER_USER_MAX, USER_REQUESTS_MAX, USER_REQUESTS_WINDOW_S,
};
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{Db, NewMessage, UserRequestLimits};
use api::organization::{UserCreate, UserUpdate};
use api::user::PROFILE_BYTES_MAX;
use model::account::{
    Account, Agreement, Device, MessageContent, Organization, OrganizationId, Permission,
    ROLE_OPERATOR, ROLE_PROVIDER, User, UserId,
};

/// Users that the administrators of one organization can create.
const ORGANIZATION_USERS_MAX: u32 = 10_000;
/// User creations that all administrators of one organization together may request within an hour.
const ORGANIZATION_USER_REQUESTS_MAX: u32 = 200;
/// Requests for mails about forgotten passwords that are processed concurrently.
const RESETS_IN_FLIGHT_MAX: usize = 16;

/// Settings of the users module.
#[derive(Clone, Debug)]
pub struct UsersSettings {
    /// Base URL of links to pages.
    pub site_url: String,
    /// True if a mail server is configured, so that links are mailed.
    pub sends_mails: bool,
}

/// Views and changes of users. Cheap to clone.
#[derive(Clone)]
pub struct Users {
    auth: Auth,
    signer: IdSigner,
    settings: UsersSettings,
    /// Limits the requests for password mails that are in flight.
    resets: Arc<Semaphore>,
}

impl Users {
    /// Creates the module over the accounts of `auth`; `signer` signs links for setting passwords.
    pub fn new(auth: Auth, signer: IdSigner, settings: UsersSettings) -> Self {
        let resets = Arc::new(Semaphore::new(RESETS_IN_FLIGHT_MAX));
        Self { auth, signer, settings, resets }
    }

    fn db(&self) -> &Db {
        self.auth.db()
    }

    /// Returns the caller's agreements that are in force at `now`, for `GET /user/v1/agreement`.
    pub fn agreements(caller: &Principal, now: Timestamp) -> impl Iterator<Item = &Agreement> {
        caller.agreements().iter().filter(move |agreement| agreement.is_in_force(now))
    }

    /// Returns the caller's organization. Fails with [`ErrorKind::NotFound`] for a caller without an
    /// organization.
    pub fn organization(caller: &Principal) -> Result<&Organization> {
        caller.require(Permission::Organization)?;
        let organization = caller.account().organization.as_deref();
        organization.ok_or_else(|| Error::new(ErrorKind::NotFound, "The user has no organization"))
    }

    /// Returns the user administration of the caller's organization.
    ///
    /// Fails with [`ErrorKind::Forbidden`] unless the caller is an administrator with a token of scope
    /// `admin` (contract users-9).
    pub fn administration(&self, caller: &Principal) -> Result<Administration<'_>> {
        caller.require_admin()?;
        let organization = caller.organization()?;
        let Account { user, organization: details, .. } = caller.account().as_ref();
        Ok(Administration {
            users: self,
            organization,
            details: details.clone(),
            administrator: Administrator {
                id: user.id,
                is_provider: has_role(user, ROLE_PROVIDER),
                is_operator: has_role(user, ROLE_OPERATOR),
            },
        })
    }

    /// Returns the caller's profile; empty for a user who never wrote one.
    pub async fn profile(&self, caller: &Principal) -> Result<Map<String, Value>> {
        caller.require(Permission::Profile)?;
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.read_profile(id)).await?)
    }

    /// Replaces the caller's profile.
    ///
    /// Fails with [`ErrorKind::TooLarge`] beyond [`PROFILE_BYTES_MAX`].
    pub async fn replace_profile(
        &self,
        caller: &Principal,
        profile: Map<String, Value>,
    ) -> Result<()> {
        caller.require(Permission::Profile)?;
        let id = caller.user().id;
        let text = Value::Object(profile).to_string();
        if text.len() > PROFILE_BYTES_MAX {
            return Err(profile_too_large());
        }
        Ok(self.db().write(move |tx| tx.write_profile(id, &text)).await?)
    }

    /// Merges the properties of `changes` that `names` lists into the caller's profile; other properties of
    /// the profile stay unchanged. Two concurrent calls both have an effect.
    ///
    /// Fails with [`ErrorKind::TooLarge`] if the profile would exceed [`PROFILE_BYTES_MAX`].
    pub async fn patch_profile(
        &self,
        caller: &Principal,
        names: &[&str],
        mut changes: Map<String, Value>,
    ) -> Result<()> {
        caller.require(Permission::Profile)?;
        let id = caller.user().id;
        // A property that is not listed is ignored (contract users-6).
        changes.retain(|name, _| names.contains(&name.as_str()));
        let patch = self.db().write(move |tx| {
            // Read and written in one transaction, or one of two concurrent changes would be lost.
            let mut profile = tx.read_profile(id)?;
            profile.extend(changes);
            let text = Value::Object(profile).to_string();
            let fits = text.len() <= PROFILE_BYTES_MAX;
            if fits {
                tx.write_profile(id, &text)?;
            }
            Ok(fits)
        });
        if patch.await? { Ok(()) } else { Err(profile_too_large()) }
    }

    /// Lists the caller's devices with their times of registration, the latest at the end.
    pub async fn devices(&self, caller: &Principal) -> Result<Vec<(Device, Timestamp)>> {
        caller.require(Permission::Devices)?;
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.list_registered_devices(id)).await?)
    }

    /// Registers a device for the caller.
    ///
    /// A token that a different user registered moves to the caller, because a phone that changes hands keeps
    /// its token. The previous owner gets a mail, in case the token was stolen. Beyond
    /// [`DEVICES_PER_USER_MAX`] the device registered longest ago is removed; its token is most likely dead.
    pub async fn register(
        &self,
        caller: &Principal,
        device: Device,
        now: Timestamp,
    ) -> Result<()> {
        caller.require(Permission::Devices)?;
        let id = caller.user().id;
        let event = audit::event(AuditAction::DeviceMoved);
        let registration = self.db().write(move |tx| {
            let Some(previous_owner) = tx.write_device(id, &device, DEVICES_PER_USER_MAX, now)?
            else {
                return Ok(());
            };
            let content = MessageContent::DeviceMoved { model: device.model, name: device.name };
            tx.insert_message(
                &NewMessage::about_account(previous_owner, content),
                OUTBOX_PER_USER_MAX,
                now,
            )?;
            tx.write_audit(&event.with_object(ObjectKind::User, previous_owner))
        });
        Ok(registration.await?)
    }

    /// Removes the caller's device with this token.
    ///
    /// An unknown token is not an error, so that logging out twice works and reveals nothing about other
    /// users (contract users-7).
    pub async fn unregister(&self, caller: &Principal, token: String) -> Result<()> {
        caller.require(Permission::Devices)?;
        let id = caller.user().id;
        Ok(self.db().write(move |tx| tx.delete_device(id, &token)).await?)
    }
}

fn profile_too_large() -> Error {
    let message = format!("The profile has more than {PROFILE_BYTES_MAX} bytes");
    Error::new(ErrorKind::TooLarge, message)
}

/// User administration of one organization; only an administrator gets it.
pub struct Administration<'a> {
    users: &'a Users,
    organization: OrganizationId,
    details: Option<Arc<Organization>>,
    administrator: Administrator,
}

/// The administrator who acts.
#[derive(Clone, Copy)]
struct Administrator {
    id: UserId,
    /// True if the administrator has the role of the agency's employees.
    is_provider: bool,
    /// True if the administrator has the role of operators.
    is_operator: bool,
}

/// Rate limits for administrators who create users or send password links.
const USER_REQUESTS: UserRequestLimits = UserRequestLimits {
    administrator: USER_REQUESTS_MAX,
    organization: ORGANIZATION_USER_REQUESTS_MAX,
    window_s: USER_REQUESTS_WINDOW_S,
};

impl Administration<'_> {
    /// Lists the users of the organization by number, including inactive ones.
    pub async fn list(&self) -> Result<Vec<User>> {
        let organization = self.organization;
        let users = self.users.db().read(move |tx| tx.list_users_of_organization(organization));
        Ok(users.await?)
    }

    /// Loads the user `id` of the organization with its agreements.
    ///
    /// Fails with [`ErrorKind::NotFound`] for any other user, whether it exists or not.
    pub async fn load(&self, id: UserId) -> Result<Account> {
        let found = self.users.db().read(move |tx| tx.find_account(id)).await?;
        found
            .filter(|account| account.user.organization == Some(self.organization))
            .ok_or_else(not_found)
    }

    /// Creates a user of the organization.
    ///
    /// Its user name is the e-mail address in lower case. It is active, has the agreements of its
    /// organization and no password. If mails are configured, the user gets an invitation by mail to set a
    /// password.
    ///
    /// Fails with `phoneNumber_direct_invalid` or `format` for a telephone number that is none; with
    /// `userName_in_use` if the name is taken, ignoring case; with `mailDomain_not_allowed` for an
    /// address outside the mail domains of the organization; with [`ErrorKind::Conflict`] if the organization
    /// has [`ORGANIZATION_USERS_MAX`] users; and with [`ErrorKind::Overloaded`] after [`USER_REQUESTS_MAX`]
    /// requests in an hour.
    pub async fn create(&self, new: UserCreate, now: Timestamp) -> Result<Account> {
        // Reveals nothing about users, so it is not counted as a request.
        if !self.allows_address(&new.email_address) {
            return Err(self.outside_domains());
        }
        let administrator = self.administrator.id;
        let member = change::new_member(new, self.organization);
        let event = audit::event(AuditAction::UserCreated);
        let invited = audit::event(AuditAction::PasswordLinkSent);
        let is_mailed = self.users.can_mail(Some(member.email_address.as_str()));
        let creation = self.users.auth.write(move |tx| {
            // Count first, because the response that a name is taken also reveals information.
            let wait =
                tx.count_user_request(administrator, member.organization, USER_REQUESTS, now)?;
            // Refusals are `Ok`, so that the transaction commits the counters.
            if let Some(at) = wait {
                return Ok(Err(too_many_requests(at, now)));
            }
            if tx.is_user_name_taken(&member.user_name)? {
                let message = "emailAddress is already the user name of another user";
                return Ok(Err(invalid_address("userName_in_use", message.to_owned())));
            }
            let count = tx.count_users_of_organization(member.organization)?;
            if count >= ORGANIZATION_USERS_MAX {
                let message = format!("The organization has {ORGANIZATION_USERS_MAX} users");
                return Ok(Err(Error::new(ErrorKind::Conflict, message)));
            }
            let id = tx.insert_member(&member, now)?;
            tx.write_audit(
                &event.with_object(ObjectKind::User, id).with_detail(&member.user_name),
            )?;
            if is_mailed {
                let link = invite(tx, id, is_mailed, now)?;
                tx.write_audit(&link_event(invited, &link, is_mailed))?;
            }
            Ok(Ok(tx.find_account(id)?))
        });
        let account = creation.await??;
        account.ok_or_else(|| Error::internal("a user that was just created cannot be found"))
    }

    fn allows_address(&self, address: &str) -> bool {
        self.details.as_ref().is_none_or(|details| details.allows_address(address))
    }

    /// Creates the refusal of an address outside the mail domains of the organization.
    fn outside_domains(&self) -> Error {
        let details = self.details.as_ref();
        let domains = details.map(|details| details.mail_domains.join(", ")).unwrap_or_default();
        let message = format!("emailAddress is not in a domain of the organization: {domains}");
        invalid_address("mailDomain_not_allowed", message)
    }

    /// Changes the user `id` of the organization according to `change`.
    ///
    /// A new e-mail address does not change the user name, and an administrator may remove the access level
    /// `admin` from any user, itself included, as long as another administrator remains (contract users-12).
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, with `last_administrator` if
    /// the organization would have no administrator, with `operator_required`
    /// for a new address of a different user who is an operator, with `provider_required` for a new address
    /// of a different user who is a provider unless the administrator is a provider too, and with
    /// `mailDomain_not_allowed` for a new address outside the mail domains of the organization.
    pub async fn update(&self, id: UserId, change: UserUpdate, now: Timestamp) -> Result<Account> {
        let organization = self.organization;
        let administrator = self.administrator;
        let address = change.email_address.clone();
        let outside_address = address.filter(|address| !self.allows_address(address));
        let outside_domains = self.outside_domains();
        let event = audit::event(AuditAction::UserChanged);
        let update = self.users.auth.write(move |tx| {
            let found = tx.find_account(id)?;
            let ours = found.filter(|account| account.user.organization == Some(organization));
            let Some(mut account) = ours else { return Ok(Err(not_found())) };
            // An address from before the domains were configured may stay.
            if outside_address.is_some() && account.user.email_address != outside_address {
                return Ok(Err(outside_domains));
            }
            let before = account.user.clone();
            change::apply(change, &mut account.user);
            // Links for a new password go to the address, so an administrator who sets it could log in as the
            // user.
            let moves_mails = account.user.email_address != before.email_address;
            let protection = protection(&before, administrator);
            if let Some(refused) = protection.filter(|_| moves_mails) {
                return Ok(Err(refused));
            }
            let keeps_access = !administers(&before) || administers(&account.user);
            if !keeps_access && !tx.has_other_administrator(organization, id)? {
                return Ok(Err(last_administrator()));
            }
            // A repeated change writes nothing and records nothing.
            if account.user != before {
                tx.update_member(&account.user, now)?;
                tx.write_audit(&changed(event, &before, &account.user))?;
            }
            Ok(Ok(account))
        });
        update.await?
    }
}

/// Creates the event of a change of a user: the names of changed properties, and access levels with their
/// values.
fn changed(event: AuditEvent, before: &User, after: &User) -> AuditEvent {
    let mut parts = Vec::new();
    // Personal data stays out of the audit log, so these appear without their values.
    let names = [
        ("emailAddress", before.email_address != after.email_address),
        ("firstName", before.first_name != after.first_name),
        ("lastName", before.last_name != after.last_name),
        ("department", before.department != after.department),
        ("phoneNumber", before.phone != after.phone),
    ];
    parts.extend(
        names.iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| (*name).to_owned()),
    );
    let rights = [
        ("admin", before.access.admin, after.access.admin),
        ("mediebank", before.access.mediebank, after.access.mediebank),
    ];
    for (name, before, after) in rights {
        if before != after {
            parts.push(format!("access.{name}={after}"));
        }
    }
    event.with_object(ObjectKind::User, after.id).with_detail(parts.join(" "))
}

fn has_role(user: &User, role: &str) -> bool {
    user.roles.iter().any(|own| own == role)
}

/// Returns whether a user can administer its organization. A service account cannot, because no key has the scope
/// `admin`.
fn administers(user: &User) -> bool {
    user.access.admin && user.active && !user.service_account
}

/// Creates the refusal of a change after which only the operator could administer the organization.
fn last_administrator() -> Error {
    let message =
        "The user is the last administrator of the organization, make another user one first";
    Error::new(ErrorKind::Conflict, message).with_code("last_administrator")
}

/// Returns the refusal if `administrator` must not be able to log in as `user`: the user has a role of the
/// agency that an administrator of a customer lacks. Providers administer each other, because they may do the
/// same anyway.
fn protection(user: &User, administrator: Administrator) -> Option<Error> {
    if user.id == administrator.id {
        None
    } else if has_role(user, ROLE_OPERATOR) {
        let message =
            "The user operates the service, so only that user changes its address and password";
        Some(Error::forbidden("operator_required", message))
    } else if has_role(user, ROLE_PROVIDER) && !administrator.is_provider {
        let message = "The user works for the agency, so only that user and administrators who do \
                       so too change its address and password";
        Some(Error::forbidden("provider_required", message))
    } else {
        None
    }
}

/// Creates the refusal of a request beyond [`USER_REQUESTS`]; the next one is allowed at the time `at`.
fn too_many_requests(at: Timestamp, now: Timestamp) -> Error {
    // Rounded up below: a retry within the last second would still be refused.
    let wait_s = u32::try_from(at.duration_since(now).as_secs()).unwrap_or(0);
    let message = "Too many users have been created, try again later";
    Error::overloaded("made_users", message).retry_after(wait_s + 1)
}

fn not_found() -> Error {
    Error::new(ErrorKind::NotFound, "The organization has no such user")
}

fn invalid_address(code: &str, message: String) -> Error {
    Error::invalid_parts(vec![ErrorDetail {
        error_code: code.to_owned(),
        location: "body",
        message,
        path: "emailAddress".to_owned(),
    }])
}
