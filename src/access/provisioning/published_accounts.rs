//! Removes accounts with published passwords and keys: the accounts of the demo.
//!
//! The secret decides. A user who still has the published password is removed, even if other properties of
//! the user were changed. A user with a different password belongs to a real person by now and stays, without
//! the published key. Agreements, products and organizations are removed if they are unchanged and unused.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Accounts, AccountsError, file::ValidAccounts};
use crate::runtime::limits::IMPORT_TRIES;
use crate::storage::database::{Db, DbError, ReadTx, RemovedUser, WriteTx};
use model::ContentHash;
use model::account::OAuthClient;
use model::account::accounts_file::{PlaintextSecret, RedirectUri};

/// The accounts that were removed, and the accounts that stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedAccounts {
    /// Kind and name of each removed object.
    pub removed: Vec<(&'static str, String)>,
    /// Kind and name of each retained object, and the reason.
    pub retained: Vec<(&'static str, String, &'static str)>,
}

/// The stored logins of a file's users and clients, in the order of the file.
#[derive(Clone, PartialEq)]
struct StoredLogins {
    /// Password hashes of users. The outer `None` means that there is no such user, the inner `None` that the
    /// user has no password.
    users: Vec<Option<Option<String>>>,
    clients: Vec<Option<OAuthClient>>,
}

/// Flags of the logins that still have their published secrets, in the order of the file.
struct PublishedLogins {
    users: Vec<bool>,
    clients: Vec<bool>,
}

/// Returns whether an API key of the accounts file `text` gives access to the archive, however it was added.
pub fn has_published_key(db: &Db, text: &str) -> Result<bool, AccountsError> {
    let file = ValidAccounts::parse(text)?;
    let found = db.read_blocking(move |tx| {
        let keys = file.api_keys.iter().map(|entry| is_usable_key(tx, &entry.value.key_hash));
        let usable = keys.collect::<Result<Vec<_>, DbError>>()?;
        Ok(usable.contains(&true))
    });
    Ok(found?)
}

impl Accounts {
    /// Lists the logins of the file `text` that work with their published secrets: active users and clients, and API
    /// keys.
    ///
    /// Compares the password hashes of the users and clients that exist, which takes a part of a second each.
    pub fn published_logins(&self, text: &str) -> Result<Vec<String>, AccountsError> {
        let file = Arc::new(ValidAccounts::parse(text)?);
        let reading = Arc::clone(&file);
        let stored = self.db.read_blocking(move |tx| usable_logins(&reading, tx))?;
        let mut found = Vec::new();
        for (entry, hash) in file.users.iter().zip(&stored.users) {
            let stated = entry.value.password.as_ref();
            if hash.is_some() && self.is_published(stated, hash.as_deref()) {
                found.push(format!("user {}", entry.value.user_name));
            }
        }
        for (entry, hash) in file.clients.iter().zip(&stored.clients) {
            let stated = entry.value.client_secret.as_ref();
            if hash.is_some() && self.is_published(stated, hash.as_deref()) {
                found.push(format!("client {}", entry.value.client_id));
            }
        }
        for (entry, is_usable) in file.api_keys.iter().zip(&stored.keys) {
            if *is_usable {
                found.push(format!("API key {} of {}", entry.value.name, entry.value.user_name));
            }
        }
        Ok(found)
    }

    /// Removes the accounts of the file `text`, which was imported under `note`.
    ///
    /// Orders are retained, and so is a user to whom they refer, who can no longer log in.
    pub fn remove_published(
        &self,
        text: &str,
        note: &'static str,
        now: Timestamp,
    ) -> Result<RemovedAccounts, AccountsError> {
        let file = Arc::new(ValidAccounts::parse(text)?);
        for _ in 0..IMPORT_TRIES {
            let reading = Arc::clone(&file);
            let before = self.db.read_blocking(move |tx| stored_logins(&reading, tx))?;
            let published = self.published(&file, &before);
            let writing = Arc::clone(&file);
            // Comparing hashes is slow, so it happens before the transaction, which then checks
            // that nothing changed.
            let removed = self.db.write_blocking(move |tx| {
                if stored_logins(&writing, tx)? != before {
                    return Ok(None);
                }
                remove(&writing, &published, tx, note, now).map(Some)
            })?;
            if let Some(removed) = removed {
                return Ok(removed);
            }
        }
        Err(AccountsError::Busy)
    }

    fn published(&self, file: &ValidAccounts, before: &StoredLogins) -> PublishedLogins {
        let users = file.users.iter().zip(&before.users).map(|(entry, stored)| {
            let stated = entry.value.password.as_ref();
            stored.as_ref().is_some_and(|hash| self.is_published(stated, hash.as_deref()))
        });
        let clients = file.clients.iter().zip(&before.clients).map(|(entry, stored)| {
            let stated = &entry.value;
            stored.as_ref().is_some_and(|client| match &client.secret {
                Some(hash) => self.is_published(stated.client_secret.as_ref(), Some(hash)),
                // A public client has no secret: it counts as published if its redirect addresses are
                // unchanged.
                None => stated.public && has_redirect_uris(client, &stated.redirect_uris),
            })
        });
        PublishedLogins { users: users.collect(), clients: clients.collect() }
    }

    /// Returns whether the stored `hash` was computed from the published secret.
    fn is_published(&self, secret: Option<&PlaintextSecret>, hash: Option<&str>) -> bool {
        match (secret, hash) {
            (Some(secret), Some(hash)) => self.hasher.verify(secret.reveal(), hash),
            // A login needs a password: an account without a password cannot be in use.
            (_, None) => true,
            (None, Some(_)) => false,
        }
    }
}

fn has_redirect_uris(client: &OAuthClient, stated: &[RedirectUri]) -> bool {
    client.redirect_uris.iter().map(String::as_str).eq(stated.iter().map(|uri| &**uri))
}

/// The stored logins of a file's users, clients and keys that can be used, in the order of the file.
struct UsableLogins {
    /// Password hashes of active users.
    users: Vec<Option<String>>,
    /// Hashes of the secrets of active clients.
    clients: Vec<Option<String>>,
    /// True for a key of an active user that is not revoked.
    keys: Vec<bool>,
}

fn usable_logins(file: &ValidAccounts, tx: &ReadTx<'_>) -> Result<UsableLogins, DbError> {
    let mut logins = UsableLogins { users: Vec::new(), clients: Vec::new(), keys: Vec::new() };
    for entry in &file.users {
        let found = tx.find_user_by_name(&entry.value.user_name)?;
        let active = found.filter(|(user, _)| user.active);
        logins.users.push(active.and_then(|(_, password)| password));
    }
    for entry in &file.clients {
        let active = tx.find_client(&entry.value.client_id)?.filter(|client| client.active);
        logins.clients.push(active.and_then(|client| client.secret));
    }
    for entry in &file.api_keys {
        logins.keys.push(is_usable_key(tx, &entry.value.key_hash)?);
    }
    Ok(logins)
}

/// Returns whether an API key is accepted: it is not revoked, and its owner is active.
fn is_usable_key(tx: &ReadTx<'_>, hash: &ContentHash) -> Result<bool, DbError> {
    let Some(key) = tx.find_key(hash)? else { return Ok(false) };
    Ok(tx.find_user(key.user)?.is_some_and(|owner| owner.active))
}

fn stored_logins(file: &ValidAccounts, tx: &ReadTx<'_>) -> Result<StoredLogins, DbError> {
    let mut logins = StoredLogins { users: Vec::new(), clients: Vec::new() };
    for entry in &file.users {
        let found = tx.find_user_by_name(&entry.value.user_name)?;
        logins.users.push(found.map(|(_, password)| password));
    }
    for entry in &file.clients {
        logins.clients.push(tx.find_client(&entry.value.client_id)?);
    }
    Ok(logins)
}

/// Performs the transaction that removes the accounts.
fn remove(
    file: &ValidAccounts,
    published: &PublishedLogins,
    tx: &WriteTx<'_>,
    note: &str,
    now: Timestamp,
) -> Result<RemovedAccounts, DbError> {
    let mut outcome = RemovedAccounts::default();
    // A published key is removed even if its user stays.
    for entry in &file.api_keys {
        if tx.remove_key(&entry.value.key_hash, now)? {
            let name = format!("{} of {}", entry.value.name, entry.value.user_name);
            outcome.removed.push(("API key", name));
        }
    }
    for (entry, is_published) in file.users.iter().zip(&published.users) {
        let name = entry.value.user_name.to_string();
        let Some((user, _)) = tx.find_user_by_name(&name)? else { continue };
        if !is_published {
            outcome.retained.push(("user", name, "its password was changed"));
            continue;
        }
        match tx.remove_user(user.id, now)? {
            RemovedUser::Removed => outcome.removed.push(("user", name)),
            RemovedUser::Disabled => {
                outcome.retained.push(("user", name, "orders name it; it is disabled"));
            }
        }
    }
    for (entry, is_published) in file.clients.iter().zip(&published.clients) {
        let id = entry.value.client_id.to_string();
        if *is_published && tx.remove_client(&id, now)? {
            outcome.removed.push(("client", id));
        } else if tx.find_client(&id)?.is_some() {
            outcome.retained.push(("client", id, "it was changed"));
        }
    }
    remove_unused(file, tx, &mut outcome)?;
    // Without the note, the archive no longer counts as an archive with demo accounts.
    tx.remove_state(note)?;
    Ok(outcome)
}

/// Removes objects that only the removed logins used.
fn remove_unused(
    file: &ValidAccounts,
    tx: &WriteTx<'_>,
    outcome: &mut RemovedAccounts,
) -> Result<(), DbError> {
    const USED: &str = "it is used or was changed";
    // In this order, because agreements refer to products and organizations.
    for entry in &file.agreements {
        let id = entry.value.id;
        let name = id.to_string();
        if tx.remove_unused_agreement(&entry.value)? {
            outcome.removed.push(("agreement", name));
        } else if tx.find_agreement_owner(id)?.is_some() {
            outcome.retained.push(("agreement", name, USED));
        }
    }
    for entry in &file.products {
        let code = &entry.value.code;
        let licenses = file.licenses.iter().filter(|license| license.value.product == *code);
        let licenses: Vec<String> =
            licenses.map(|license| license.value.uuid.to_string()).collect();
        match tx.remove_unused_product(&entry.value, &licenses)? {
            Some(count) => {
                outcome.removed.push(("product", format!("{code} with {count} licences")));
            }
            None if tx.find_product_id(code)?.is_some() => {
                outcome.retained.push(("product", code.to_string(), USED));
            }
            None => {}
        }
    }
    for entry in &file.organizations {
        let id = entry.value.id;
        let name = id.to_string();
        if tx.remove_unused_organization(&entry.value)? {
            outcome.removed.push(("organization", name));
        } else if tx.find_organization(id)?.is_some() {
            outcome.retained.push(("organization", name, USED));
        }
    }
    Ok(())
}
