//! Users, their organization, profiles and devices: views and changes (Spec §4 User).
//!
//! Who calls comes as a [`Principal`]; what concerns other users goes through
//! [`Administration`], which only an administrator gets and which knows one organization. A change
//! of a user counts at once: the caches of this and other processes forget it.

mod change;
pub mod json;
mod keys;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use change::{NewUser, UserChange, is_phone_number};
pub use keys::MadeKey;

use crate::account::{Account, Agreement, Device, Organization, OrganizationId, User, UserId};
use crate::auth::{Auth, Principal};
use crate::db::Db;
use crate::error::{Detail, Error, Kind, Result};
use crate::limits::{DEVICES_PER_USER_MAX, ORGANIZATION_USERS_MAX, PROFILE_BYTES_MAX};

/// The users section; cheap to clone.
#[derive(Clone)]
pub struct Users {
    auth: Auth,
}

impl Users {
    /// The section over the accounts that `auth` knows.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self { auth }
    }

    fn db(&self) -> &Db {
        self.auth.db()
    }

    /// The caller's agreements that are in force at `now`, for `GET /user/v1/agreement`.
    pub fn agreements(caller: &Principal, now: Timestamp) -> impl Iterator<Item = &Agreement> {
        caller.agreements().iter().filter(move |agreement| agreement.is_in_force(now))
    }

    /// The caller's organization. Fails with [`Kind::NotFound`] for a caller without one.
    pub fn organization(caller: &Principal) -> Result<&Organization> {
        let none = || Error::new(Kind::NotFound, "The user has no organization");
        caller.account().organization.as_deref().ok_or_else(none)
    }

    /// The user administration of the caller's organization.
    ///
    /// Fails with [`Kind::Forbidden`] for anybody but an administrator with a token of scope
    /// `admin` (Spec §5).
    pub fn administration(&self, caller: &Principal) -> Result<Administration<'_>> {
        caller.require_admin()?;
        Ok(Administration { users: self, organization: caller.organization()? })
    }

    /// The caller's profile; empty for a user who never wrote one.
    pub async fn profile(&self, caller: &Principal) -> Result<Map<String, Value>> {
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.read_profile(id)).await?)
    }

    /// Replaces the caller's profile.
    ///
    /// Fails with [`Kind::TooLarge`] beyond [`PROFILE_BYTES_MAX`].
    pub async fn replace_profile(
        &self,
        caller: &Principal,
        profile: Map<String, Value>,
    ) -> Result<()> {
        let id = caller.user().id;
        let text = Value::Object(profile).to_string();
        if text.len() > PROFILE_BYTES_MAX {
            return Err(profile_too_large());
        }
        Ok(self.db().write(move |tx| tx.write_profile(id, &text)).await?)
    }

    /// Writes those properties of `given` that `names` lists into the caller's profile; the others
    /// stay as they are. Two calls at once both take effect.
    ///
    /// Fails with [`Kind::TooLarge`] when the profile would have more than [`PROFILE_BYTES_MAX`].
    pub async fn patch_profile(
        &self,
        caller: &Principal,
        names: &[&str],
        mut given: Map<String, Value>,
    ) -> Result<()> {
        let id = caller.user().id;
        given.retain(|name, _| names.contains(&name.as_str()));
        let write = move |tx: &crate::db::WriteTx<'_>| {
            let mut profile = tx.as_read().read_profile(id)?;
            profile.extend(given);
            let text = Value::Object(profile).to_string();
            let fits = text.len() <= PROFILE_BYTES_MAX;
            if fits {
                tx.write_profile(id, &text)?;
            }
            Ok(fits)
        };
        if self.db().write(write).await? { Ok(()) } else { Err(profile_too_large()) }
    }

    /// The caller's devices with the time at which each was registered, the last at the end.
    pub async fn devices(&self, caller: &Principal) -> Result<Vec<(Device, Timestamp)>> {
        let id = caller.user().id;
        Ok(self.db().read(move |tx| tx.list_registered_devices(id)).await?)
    }

    /// Registers a device for the caller.
    ///
    /// Spec §2 Device is silent: a token that another user registered moves to the caller, because
    /// a phone that changes hands keeps its token. Beyond [`DEVICES_PER_USER_MAX`] the device
    /// registered longest ago is forgotten; such a token is most likely dead.
    pub async fn register(
        &self,
        caller: &Principal,
        device: Device,
        now: Timestamp,
    ) -> Result<()> {
        let id = caller.user().id;
        let write = move |tx: &crate::db::WriteTx<'_>| {
            tx.write_device(id, &device, DEVICES_PER_USER_MAX, now)
        };
        Ok(self.db().write(write).await?)
    }

    /// Forgets the caller's device of that token.
    ///
    /// Spec §4 User is silent: a token that nobody or somebody else has is no failure, so that
    /// logging out twice works and tells nothing about others.
    pub async fn unregister(&self, caller: &Principal, token: String) -> Result<()> {
        let id = caller.user().id;
        Ok(self.db().write(move |tx| tx.delete_device(id, &token)).await?)
    }
}

fn profile_too_large() -> Error {
    let message = format!("The profile has more than {PROFILE_BYTES_MAX} bytes");
    Error::new(Kind::TooLarge, message)
}

/// The user administration of one organization; only an administrator gets hold of it.
pub struct Administration<'a> {
    users: &'a Users,
    organization: OrganizationId,
}

/// Why a user was not made.
enum Refused {
    NameTaken,
    TooMany,
}

impl Administration<'_> {
    /// The users of the organization in the order of their numbers, inactive ones too.
    pub async fn list(&self) -> Result<Vec<User>> {
        let organization = self.organization;
        let read = move |tx: &crate::db::ReadTx<'_>| tx.list_users_of_organization(organization);
        Ok(self.users.db().read(read).await?)
    }

    /// The user `id` of the organization with its agreements.
    ///
    /// Fails with [`Kind::NotFound`] for everybody else, be there such a user or not.
    pub async fn load(&self, id: UserId) -> Result<Account> {
        let found = self.users.db().read(move |tx| tx.find_account(id)).await?;
        let ours = |account: &Account| account.user.organization == Some(self.organization);
        found.filter(ours).ok_or_else(not_found)
    }

    /// Makes a user of the organization.
    ///
    /// Spec §2 User is silent: its user name is the e-mail address in lower case; it is active,
    /// has the agreements of its organization and no password, so that it cannot log in before
    /// the operator or an invitation sets one.
    ///
    /// Fails with `userName_in_use` when the name is taken, in whatever case, and with
    /// [`Kind::Conflict`] when the organization has [`ORGANIZATION_USERS_MAX`] users.
    pub async fn create(&self, new: NewUser, now: Timestamp) -> Result<Account> {
        let member = new.into_member(self.organization);
        let write = move |tx: &crate::db::WriteTx<'_>| {
            let read = tx.as_read();
            if read.is_user_name_taken(&member.user_name)? {
                return Ok(Err(Refused::NameTaken));
            }
            let count = read.count_users_of_organization(member.organization)?;
            if count >= ORGANIZATION_USERS_MAX {
                return Ok(Err(Refused::TooMany));
            }
            let id = tx.insert_member(&member, now)?;
            Ok(Ok(read.find_account(id)?))
        };
        match self.users.auth.write(write).await? {
            Ok(account) => account.ok_or_else(|| Error::internal("a new user cannot be found")),
            Err(Refused::NameTaken) => Err(name_taken()),
            Err(Refused::TooMany) => {
                let message = format!("The organization has {ORGANIZATION_USERS_MAX} users");
                Err(Error::new(Kind::Conflict, message))
            }
        }
    }

    /// Changes the user `id` of the organization as `change` says.
    ///
    /// Spec §2 User is silent: another e-mail address does not change the user name, and an
    /// administrator may take the access level `admin` from anybody, itself included.
    ///
    /// Fails with [`Kind::NotFound`] for a user of another organization.
    pub async fn update(&self, id: UserId, change: UserChange, now: Timestamp) -> Result<Account> {
        let organization = self.organization;
        let write = move |tx: &crate::db::WriteTx<'_>| {
            let found = tx.as_read().find_account(id)?;
            let ours = |account: &Account| account.user.organization == Some(organization);
            let Some(mut account) = found.filter(ours) else { return Ok(None) };
            let before = account.user.clone();
            change.apply(&mut account.user);
            if account.user != before {
                tx.update_member(&account.user, now)?;
            }
            Ok(Some(account))
        };
        self.users.auth.write(write).await?.ok_or_else(not_found)
    }
}

fn not_found() -> Error {
    Error::new(Kind::NotFound, "The organization has no such user")
}

fn name_taken() -> Error {
    Error::invalid_parts(vec![Detail {
        error_code: "userName_in_use".to_owned(),
        location: "body",
        message: "emailAddress is in use as the user name of somebody".to_owned(),
        path: "emailAddress".to_owned(),
    }])
}
