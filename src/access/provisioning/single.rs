//! Users, clients and keys one at a time. What is new goes through the same checks as a file.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Accounts, AccountsError, file::AccountsFile, import::AccountsImport};
use crate::access::auth::RandomSecret;
use crate::runtime::limits::PASSWORD_BYTES_MAX;
use crate::storage::database::{ListedKey, ListedUser};
use model::ContentHash;
use model::account::{AgreementId, GrantType, OAuthClient, OrganizationId};

/// A user that the operator adds.
#[derive(Clone, Debug, Default)]
pub struct UserRequest {
    /// The name it logs in with.
    pub user_name: String,
    /// The organization that it belongs to.
    pub organization: Option<OrganizationId>,
    /// E-mail address.
    pub email_address: Option<String>,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// Names of its roles.
    pub roles: Vec<String>,
    /// Its agreements.
    pub agreements: Vec<AgreementId>,
    /// Whether it administers the users of its organization.
    pub admin: bool,
    /// Whether it is a program.
    pub service_account: bool,
}

/// A client that the operator adds.
#[derive(Clone, Debug, Default)]
pub struct ClientRequest {
    /// Its name in requests.
    pub client_id: String,
    /// Its name for people.
    pub name: String,
    /// Whether it can keep no secret.
    pub public: bool,
    /// Addresses that answers may be sent to.
    pub redirect_uris: Vec<String>,
    /// What it may do.
    pub grants: Vec<GrantType>,
    /// Whether its scopes are enforced.
    pub scopes_enforced: bool,
    /// Seconds of its access tokens where they end earlier than those of other clients.
    pub access_token_s: Option<u32>,
}

/// What was added. It has no `Debug`, so that a secret enters no log.
pub struct AddedAccount {
    /// Its number.
    pub id: i64,
    /// A secret that was made for it; it is nowhere else.
    pub secret: Option<String>,
}

impl Accounts {
    /// Adds a user, with `password` or one that is made for it.
    ///
    /// Fails when there is a user of that name or a property cannot be taken.
    pub fn add_user(
        &self,
        request: &UserRequest,
        password: Option<String>,
        now: Timestamp,
    ) -> Result<AddedAccount, AccountsError> {
        let (password, secret) = given_or_generated(password)?;
        let entry = json!({
            "userName": request.user_name,
            "password": password,
            "organization": request.organization,
            "emailAddress": request.email_address,
            "firstName": request.first_name,
            "lastName": request.last_name,
            "roles": request.roles,
            "agreements": request.agreements,
            "access": { "admin": request.admin },
            "serviceAccount": request.service_account,
        });
        let what = format!("user {:?}", request.user_name);
        self.add(&what, &json!({ "users": [entry] }), now)?;
        let name = request.user_name.clone();
        let found = self.db.read_blocking(move |tx| tx.find_user_by_name(&name))?;
        let (user, _) = found.ok_or(AccountsError::Unknown(what))?;
        Ok(AddedAccount { id: user.id.0, secret })
    }

    /// Adds a client. A confidential one gets a secret, which is returned.
    ///
    /// Fails when there is a client of that name or a property cannot be taken.
    pub fn add_client(
        &self,
        request: &ClientRequest,
        now: Timestamp,
    ) -> Result<Option<String>, AccountsError> {
        let secret = if request.public { None } else { given_or_generated(None)?.1 };
        let grants: Vec<_> = request.grants.iter().map(|grant| grant.as_str()).collect();
        let entry = json!({
            "client_id": request.client_id,
            "client_secret": secret,
            "name": request.name,
            "public": request.public,
            "redirect_uris": request.redirect_uris,
            "grants": grants,
            "scopes": if request.scopes_enforced { "enforced" } else { "contract" },
            "accessTokenSeconds": request.access_token_s,
        });
        let what = format!("client {:?}", request.client_id);
        self.add(&what, &json!({ "clients": [entry] }), now)?;
        Ok(secret)
    }

    /// Makes an API key for a user; it is returned as the secret.
    ///
    /// Fails when there is no user of that name.
    pub fn add_key(
        &self,
        user_name: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<AddedAccount, AccountsError> {
        let key = made()?;
        let what = format!("API key of user {user_name:?}");
        let entry = json!({ "user": user_name, "key": key, "name": name });
        self.add(&what, &json!({ "apiKeys": [entry] }), now)?;
        let hash = ContentHash::of(key.as_bytes());
        let found = self.db.read_blocking(move |tx| tx.find_key_number(&hash))?;
        let id = found.ok_or(AccountsError::Unknown(what))?;
        Ok(AddedAccount { id, secret: Some(key) })
    }

    /// Takes a file with one entry in, which must be new. Errors name it as `what`.
    pub(super) fn add(
        &self,
        what: &str,
        file: &Value,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let take_in =
            |file| self.apply_import(AccountsImport { file, only_new: true, note: None }, now);
        match AccountsFile::read(file).and_then(take_in) {
            Err(AccountsError::Entry { why, .. }) => {
                Err(AccountsError::Entry { place: what.to_owned(), why })
            }
            other => other.map(drop),
        }
    }

    /// Every user in the order of their numbers.
    pub fn list_users(&self) -> Result<Vec<ListedUser>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_users())?)
    }

    /// Every client in the order of their names.
    pub fn list_clients(&self) -> Result<Vec<OAuthClient>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_clients())?)
    }

    /// Every API key, or those of one user, in the order of their numbers.
    pub fn list_keys(&self, user: Option<String>) -> Result<Vec<ListedKey>, AccountsError> {
        let read = move |tx: &crate::storage::database::ReadTx<'_>| {
            let Some(user) = &user else { return tx.list_stored_keys(None).map(Ok) };
            if tx.find_user_by_name(user)?.is_none() {
                return Ok(Err(AccountsError::Unknown(format!("user {user:?}"))));
            }
            tx.list_stored_keys(Some(user)).map(Ok)
        };
        self.db.read_blocking(read)?
    }

    /// Sets whether a user may use the service. Its sessions and tokens end with `active: false`.
    pub fn set_user_active(
        &self,
        user_name: &str,
        active: bool,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let name = user_name.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_user_active(&name, active, now))?;
        known(found, || format!("user {user_name:?}"))
    }

    /// Gives a user another password: `password`, or one that is made and returned. Its sessions
    /// and tokens end.
    pub fn set_password(
        &self,
        user_name: &str,
        password: Option<String>,
        now: Timestamp,
    ) -> Result<Option<String>, AccountsError> {
        let (password, secret) = given_or_generated(password)?;
        let hash = self.hasher.hash(&password).map_err(AccountsError::Hash)?;
        let name = user_name.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_user_password(&name, &hash, now))?;
        known(found, || format!("user {user_name:?}"))?;
        Ok(secret)
    }

    /// Sets whether a client may be used.
    pub fn set_client_active(
        &self,
        client_id: &str,
        active: bool,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let id = client_id.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_client_active(&id, active, now))?;
        known(found, || format!("client {client_id:?}"))
    }

    /// Makes another secret for a client, which is returned.
    ///
    /// Fails for a public client, which has none.
    pub fn renew_client_secret(&self, client_id: &str) -> Result<String, AccountsError> {
        let secret = made()?;
        let hash = self.hasher.hash(&secret).map_err(AccountsError::Hash)?;
        let id = client_id.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_client_secret(&id, &hash))?;
        known(found, || format!("a client {client_id:?} that has a secret"))?;
        Ok(secret)
    }

    /// Revokes an API key for good.
    pub fn revoke_key(&self, id: i64, now: Timestamp) -> Result<(), AccountsError> {
        let found = self.db.write_blocking(move |tx| tx.revoke_key(id, now))?;
        known(found, || format!("API key {id}"))
    }
}

fn known(found: bool, what: impl FnOnce() -> String) -> Result<(), AccountsError> {
    if found { Ok(()) } else { Err(AccountsError::Unknown(what())) }
}

fn made() -> Result<String, AccountsError> {
    let secret = RandomSecret::for_copying().map_err(AccountsError::Hash)?;
    Ok(secret.reveal().to_owned())
}

/// A password to use, and the same once more if it was made here and somebody has to be told.
fn given_or_generated(given: Option<String>) -> Result<(String, Option<String>), AccountsError> {
    let Some(given) = given else {
        let made = made()?;
        return Ok((made.clone(), Some(made)));
    };
    if given.is_empty() || given.len() > PASSWORD_BYTES_MAX {
        let (place, why) = ("password".to_owned(), format!("has 1 to {PASSWORD_BYTES_MAX} bytes"));
        return Err(AccountsError::Entry { place, why });
    }
    Ok((given, None))
}
