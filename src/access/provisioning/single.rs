//! Commands for single users, clients and keys. A request becomes an accounts file with one entry, so it
//! passes the same checks.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Accounts, AccountsError, file::ValidAccounts, import::AccountsImport, require_known};
use crate::access::auth::RandomSecret;
use crate::storage::database::{DbError, ListedKey, ListedUser, ReadTx};
use model::ContentHash;
use model::account::accounts_file::{ClientScopes, PlaintextSecret};
use model::account::{AccessLevels, AgreementId, GrantType, OAuthClient, OrganizationId};

/// A user that the operator adds, as an entry of an accounts file. Has no `Debug`, so that the password
/// reaches no log.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequest {
    /// The name with which the user logs in.
    pub user_name: String,
    /// The password; `None` requests a generated password.
    pub password: Option<String>,
    /// The organization to which the user belongs.
    pub organization: Option<OrganizationId>,
    pub email_address: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// Names of the user's roles.
    pub roles: Vec<String>,
    /// Numbers of the user's agreements.
    pub agreements: Vec<AgreementId>,
    pub access: AccessLevels,
    /// True if the user is a program instead of a person.
    pub service_account: bool,
}

/// An OAuth2 client that the operator adds, as an entry of an accounts file. Has no `Debug`, so that the
/// secret reaches no log.
#[derive(Clone, Default, Serialize)]
pub struct ClientRequest {
    /// The identifier of the client in requests.
    pub client_id: String,
    /// The secret; `None` requests a generated secret, unless the client is public.
    pub client_secret: Option<String>,
    /// The display name of the client; `None` uses its identifier.
    pub name: Option<String>,
    /// True if the client is public, which means that it cannot keep a secret.
    pub public: bool,
    /// Addresses to which responses may be redirected.
    pub redirect_uris: Vec<String>,
    /// Grant types that the client may use.
    pub grants: Vec<GrantType>,
    /// The scopes that the client's tokens need.
    pub scopes: ClientScopes,
    /// Lifetime of the client's access tokens in seconds, if it is shorter than the general lifetime.
    #[serde(rename = "accessTokenSeconds")]
    pub access_token_s: Option<u32>,
    /// True if the client's tokens change nothing.
    #[serde(rename = "readOnly")]
    pub read_only: bool,
}

/// The result of an addition. Has no `Debug`, so that the secret reaches no log.
pub struct AddedAccount {
    /// The number of the new user or key.
    pub id: i64,
    /// The generated secret, which is stored nowhere in plain text; `None` if the caller stated a secret.
    pub secret: Option<String>,
}

impl Accounts {
    /// Adds a user.
    ///
    /// Fails if there is a user of that name or a property is invalid.
    pub fn add_user(
        &self,
        request: &UserRequest,
        now: Timestamp,
    ) -> Result<AddedAccount, AccountsError> {
        let (password, secret) = given_or_generated(request.password.clone())?;
        let entry = UserRequest { password: Some(password), ..request.clone() };
        let what = format!("user {:?}", request.user_name);
        self.add(&what, "users", &json!(entry), now)?;
        let name = request.user_name.clone();
        // The database assigned the number during the import.
        let found = self.db.read_blocking(move |tx| tx.find_user_by_name(&name))?;
        let (user, _) = found.ok_or(AccountsError::Unknown(what))?;
        Ok(AddedAccount { id: user.id.0, secret })
    }

    /// Adds a client, and returns its secret if it was generated.
    ///
    /// Fails if there is a client of that name or a property is invalid.
    pub fn add_client(
        &self,
        request: &ClientRequest,
        now: Timestamp,
    ) -> Result<Option<String>, AccountsError> {
        let mut entry = request.clone();
        let mut generated = None;
        if !request.public && request.client_secret.is_none() {
            generated = Some(generate_secret()?);
            entry.client_secret.clone_from(&generated);
        }
        let what = format!("client {:?}", request.client_id);
        self.add(&what, "clients", &json!(entry), now)?;
        Ok(generated)
    }

    /// Creates an API key for a user, one that changes nothing if `read_only` is true; the key is returned as the
    /// secret.
    ///
    /// Fails if there is no user of that name.
    pub fn add_key(
        &self,
        user_name: &str,
        name: &str,
        read_only: bool,
        now: Timestamp,
    ) -> Result<AddedAccount, AccountsError> {
        let key = generate_secret()?;
        let what = format!("API key of user {user_name:?}");
        let entry = json!({ "user": user_name, "key": key, "name": name, "readOnly": read_only });
        self.add(&what, "apiKeys", &entry, now)?;
        let hash = ContentHash::new(key.as_bytes());
        let found = self.db.read_blocking(move |tx| tx.find_key_number(&hash))?;
        let id = found.ok_or(AccountsError::Unknown(what))?;
        Ok(AddedAccount { id, secret: Some(key) })
    }

    /// Adds the object of `entry`, an entry of the list `list` of an accounts file. Errors name it as `what`.
    ///
    /// Fails if the object exists, if the entry refers to an object that does not exist, or if a property is
    /// invalid.
    pub fn add(
        &self,
        what: &str,
        list: &str,
        entry: &Value,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let imported = ValidAccounts::read(json!({ list: [entry] })).and_then(|file| {
            self.apply_import(AccountsImport { file, only_new: true, note: None }, now)
        });
        match imported {
            // The operator knows no file, so the error names the object instead of a position.
            Err(AccountsError::Entry { why, .. }) => {
                Err(AccountsError::Entry { entry: what.to_owned(), why })
            }
            other => other.map(drop),
        }
    }

    /// Lists all users by number.
    pub fn list_users(&self) -> Result<Vec<ListedUser>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_users())?)
    }

    /// Lists all clients by name.
    pub fn list_clients(&self) -> Result<Vec<OAuthClient>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_clients())?)
    }

    /// Lists the API keys of all users or of one user, by number.
    pub fn list_keys(&self, user: Option<String>) -> Result<Vec<ListedKey>, AccountsError> {
        self.list_of_user(user, |tx, user| tx.list_stored_keys(user))
    }

    /// Lists objects of all users or of one user, who must exist.
    pub(super) fn list_of_user<T: Send + 'static>(
        &self,
        user: Option<String>,
        list: impl FnOnce(&ReadTx<'_>, Option<&str>) -> Result<Vec<T>, DbError> + Send + 'static,
    ) -> Result<Vec<T>, AccountsError> {
        self.db.read_blocking(move |tx| {
            // A misspelled name must not look like a user without any objects.
            if let Some(user) = &user
                && tx.find_user_by_name(user)?.is_none()
            {
                return Ok(Err(AccountsError::Unknown(format!("user {user:?}"))));
            }
            list(tx, user.as_deref()).map(Ok)
        })?
    }

    /// Activates or deactivates a user. Deactivation ends its sessions and tokens.
    pub fn set_user_active(
        &self,
        user_name: &str,
        active: bool,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let name = user_name.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_user_active(&name, active, now))?;
        require_known(found, || format!("user {user_name:?}"))
    }

    /// Sets the password of a user to `password`, or to a generated password, which is returned. Ends the
    /// user's sessions and tokens.
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
        require_known(found, || format!("user {user_name:?}"))?;
        Ok(secret)
    }

    /// Activates or deactivates a client.
    pub fn set_client_active(
        &self,
        client_id: &str,
        active: bool,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let id = client_id.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_client_active(&id, active, now))?;
        require_known(found, || format!("client {client_id:?}"))
    }

    /// Generates a new secret for a client and returns it.
    ///
    /// Fails for a public client, which has no secret.
    pub fn renew_client_secret(&self, client_id: &str) -> Result<String, AccountsError> {
        let secret = generate_secret()?;
        let hash = self.hasher.hash(&secret).map_err(AccountsError::Hash)?;
        let id = client_id.to_owned();
        let found = self.db.write_blocking(move |tx| tx.set_client_secret(&id, &hash))?;
        require_known(found, || format!("a client {client_id:?} that has a secret"))?;
        Ok(secret)
    }

    /// Revokes an API key for good.
    pub fn revoke_key(&self, id: i64, now: Timestamp) -> Result<(), AccountsError> {
        let found = self.db.write_blocking(move |tx| tx.revoke_key(id, now))?;
        require_known(found, || format!("API key {id}"))
    }
}

fn generate_secret() -> Result<String, AccountsError> {
    let secret = RandomSecret::for_copying().map_err(AccountsError::Hash)?;
    Ok(secret.reveal().to_owned())
}

/// Returns the given password, or a generated password with a copy to show to the operator.
fn given_or_generated(given: Option<String>) -> Result<(String, Option<String>), AccountsError> {
    let Some(given) = given else {
        let generated = generate_secret()?;
        return Ok((generated.clone(), Some(generated)));
    };
    // Only the length is checked: the rules are for passwords that users choose (contract
    // users-16).
    match PlaintextSecret::try_from(given) {
        Ok(password) => Ok((password.reveal().to_owned(), None)),
        Err(why) => Err(AccountsError::Entry { entry: "password".to_owned(), why }),
    }
}
