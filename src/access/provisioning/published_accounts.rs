//! Accounts whose passwords and keys everybody knows, taken out again: those of the demo.
//!
//! What decides is the secret. A user whose password is still the published one goes, whatever else
//! was changed in it; one with another password is somebody's by now and stays, without the published
//! key. Agreements, products and organizations go if they are as published and nothing uses them.

use jiff::Timestamp;

use super::{
    Accounts, AccountsError,
    file::{AccountsFile, PlaintextSecret},
};
use crate::runtime::limits::IMPORT_TRIES;
use crate::storage::database::{Db, DbError, ReadTx, RemovedUser, WriteTx};
use model::account::OAuthClient;

/// What was taken out, and what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedAccounts {
    /// What is gone: its kind and its name.
    pub removed: Vec<(&'static str, String)>,
    /// What stays: its kind and name, and why.
    pub retained: Vec<(&'static str, String, &'static str)>,
}

/// What the database has of the logins of a file, in its order.
#[derive(Clone, PartialEq)]
struct StoredLogins {
    /// Hashes of passwords, of users that exist.
    users: Vec<Option<Option<String>>>,
    clients: Vec<Option<OAuthClient>>,
}

/// Which of the logins still have their published secrets.
struct PublishedLogins {
    users: Vec<bool>,
    clients: Vec<bool>,
}

/// Whether an API key of the accounts file `text` opens the archive, however it came in.
pub fn has_published_key(db: &Db, text: &str) -> Result<bool, AccountsError> {
    let file = AccountsFile::parse(text)?;
    let found = db.read_blocking(move |tx| {
        let keys = file.api_keys.iter().map(|entry| tx.find_key(&entry.value.key_hash));
        let found = keys.collect::<Result<Vec<_>, DbError>>()?;
        Ok(found.into_iter().any(|owner| owner.is_some()))
    });
    Ok(found?)
}

impl Accounts {
    /// Takes the accounts of the file `text`, which was taken in under `note`, out.
    ///
    /// Orders stay, and so does a user whom they name, who cannot log in any more.
    pub fn remove_published(
        &self,
        text: &str,
        note: &'static str,
        now: Timestamp,
    ) -> Result<RemovedAccounts, AccountsError> {
        for _ in 0..IMPORT_TRIES {
            let read = text.to_owned();
            let before = self.db.read_blocking(move |tx| {
                let file = AccountsFile::parse(&read);
                file.map(|file| stored(&file, tx))
                    .map_or_else(|error| Ok(Err(error)), |found| found.map(Ok))
            })??;
            let file = AccountsFile::parse(text)?;
            let published = self.published(&file, &before);
            // Hashes take their time, so they are compared before the transaction, which looks again.
            let removed = self.db.write_blocking(move |tx| {
                if stored(&file, &tx.as_read())? != before {
                    return Ok(None);
                }
                remove(&file, &published, tx, note, now).map(Some)
            })?;
            if let Some(removed) = removed {
                return Ok(removed);
            }
        }
        Err(AccountsError::Busy)
    }

    fn published(&self, file: &AccountsFile, before: &StoredLogins) -> PublishedLogins {
        let fits = |clear: &Option<PlaintextSecret>, hash: Option<&String>| match (clear, hash) {
            (Some(PlaintextSecret(clear)), Some(hash)) => self.hasher.verify(clear, hash),
            // A login needs one.
            (_, None) => true,
            (None, Some(_)) => false,
        };
        let users = file.users.iter().zip(&before.users).map(|(entry, stored)| {
            stored.as_ref().is_some_and(|hash| fits(&entry.value.secret, hash.as_ref()))
        });
        let clients = file.clients.iter().zip(&before.clients).map(|(entry, stored)| {
            let stated = &entry.value.entry;
            stored.as_ref().is_some_and(|client| match &client.secret {
                Some(hash) => fits(&entry.value.secret, Some(hash)),
                None => stated.public && client.redirect_uris == stated.redirect_uris,
            })
        });
        PublishedLogins { users: users.collect(), clients: clients.collect() }
    }
}

fn stored(file: &AccountsFile, tx: &ReadTx<'_>) -> Result<StoredLogins, DbError> {
    let user = |name: &str| Ok(tx.find_user_by_name(name)?.map(|(_, password)| password));
    let users = file.users.iter().map(|entry| user(&entry.value.entry.user_name));
    let clients =
        file.clients.iter().map(|entry| tx.find_stored_client(&entry.value.entry.client_id));
    Ok(StoredLogins {
        users: users.collect::<Result<_, DbError>>()?,
        clients: clients.collect::<Result<_, DbError>>()?,
    })
}

/// The transaction.
fn remove(
    file: &AccountsFile,
    published: &PublishedLogins,
    tx: &WriteTx<'_>,
    note: &str,
    now: Timestamp,
) -> Result<RemovedAccounts, DbError> {
    let mut outcome = RemovedAccounts::default();
    for entry in &file.api_keys {
        if tx.remove_key(&entry.value.key_hash, now)? {
            let name = format!("{} of {}", entry.value.name, entry.value.user_name);
            outcome.removed.push(("API key", name));
        }
    }
    for (entry, is_published) in file.users.iter().zip(&published.users) {
        let name = &entry.value.entry.user_name;
        let Some((user, _)) = tx.as_read().find_user_by_name(name)? else { continue };
        if !is_published {
            outcome.retained.push(("user", name.clone(), "its password was changed"));
            continue;
        }
        match tx.remove_user(user.id, now)? {
            RemovedUser::Removed => outcome.removed.push(("user", name.clone())),
            RemovedUser::Disabled => {
                outcome.retained.push(("user", name.clone(), "orders name it; it is disabled"));
            }
        }
    }
    for (entry, is_published) in file.clients.iter().zip(&published.clients) {
        let id = &entry.value.entry.client_id;
        if *is_published && tx.remove_client(id, now)? {
            outcome.removed.push(("client", id.clone()));
        } else if tx.as_read().find_stored_client(id)?.is_some() {
            outcome.retained.push(("client", id.clone(), "it was changed"));
        }
    }
    remove_unused(file, tx, &mut outcome)?;
    tx.remove_state(note)?;
    Ok(outcome)
}

/// Removes what belonged to the removed logins alone.
fn remove_unused(
    file: &AccountsFile,
    tx: &WriteTx<'_>,
    outcome: &mut RemovedAccounts,
) -> Result<(), DbError> {
    const USED: &str = "it is used or was changed";
    for entry in &file.agreements {
        let (id, name) = (entry.value.id, entry.value.id.to_string());
        if tx.remove_unused_agreement(&entry.value)? {
            outcome.removed.push(("agreement", name));
        } else if tx.as_read().find_agreement_owner(id)?.is_some() {
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
            None if tx.as_read().find_product_id(code)?.is_some() => {
                outcome.retained.push(("product", code.clone(), USED));
            }
            None => {}
        }
    }
    for entry in &file.organizations {
        let (id, name) = (entry.value.id, entry.value.id.to_string());
        if tx.remove_unused_organization(&entry.value)? {
            outcome.removed.push(("organization", name));
        } else if tx.as_read().find_organization(id)?.is_some() {
            outcome.retained.push(("organization", name, USED));
        }
    }
    Ok(())
}
