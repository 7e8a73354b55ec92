//! The accounts file of `wirephoto import` (`operator.md`, "Accounts file").
//!
//! The whole file is checked against its form before anything is written. Users and API keys are
//! taken in; the other lists decide nothing in this version and are reported as left alone.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::db::{Db, DbError, NewApiKey, NewUser};
use crate::limits::API_KEY_BYTES_MAX;
use crate::types::Hash;

/// Characters that an API key must have at least, so that it cannot be guessed.
const KEY_CHARS_MIN: usize = 16;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct File {
    organizations: Vec<Value>,
    products: Vec<Value>,
    agreements: Vec<Value>,
    licenses: Vec<Value>,
    users: Vec<User>,
    clients: Vec<Value>,
    api_keys: Vec<ApiKey>,
    channels: Vec<Value>,
}

/// What decides about keys; the rest of a user's properties is for its other rights.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    user_name: String,
    #[serde(default = "yes")]
    active: bool,
    #[serde(default)]
    roles: Vec<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKey {
    user: String,
    key: String,
    #[serde(default)]
    name: String,
}

/// Why an accounts file was not taken in. The text never repeats a key.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// Not of the form.
    #[error("is not an accounts file: {0}")]
    Form(String),
    /// An entry that cannot be taken.
    #[error("{entry}: {why}")]
    Entry {
        /// List and position.
        entry: String,
        /// What is wrong.
        why: String,
    },
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// What was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Users.
    pub users: usize,
    /// API keys.
    pub api_keys: usize,
    /// Lists that are left alone, with their lengths.
    pub left_alone: Vec<(&'static str, usize)>,
}

/// Takes the accounts file `text` in; safe to repeat.
pub fn import(db: &Db, text: &str, now: Timestamp) -> Result<Imported, AccountsError> {
    let file: File =
        serde_json::from_str(text).map_err(|cause| AccountsError::Form(cause.to_string()))?;
    let keys = file.api_keys.iter().enumerate().map(|(index, key)| api_key(index, key));
    let keys: Vec<NewApiKey> = keys.collect::<Result<_, _>>()?;
    let user = |user: &User| NewUser {
        user_name: user.user_name.clone(),
        active: user.active,
        roles: user.roles.clone(),
    };
    let users: Vec<NewUser> = file.users.iter().map(user).collect();
    let others = [
        ("organizations", file.organizations.len()),
        ("products", file.products.len()),
        ("agreements", file.agreements.len()),
        ("licenses", file.licenses.len()),
        ("clients", file.clients.len()),
        ("channels", file.channels.len()),
    ];
    let imported = Imported {
        users: users.len(),
        api_keys: keys.len(),
        left_alone: others.into_iter().filter(|(_, count)| *count > 0).collect(),
    };
    db.write_blocking(move |tx| tx.write_accounts(&users, &keys, now))?;
    Ok(imported)
}

fn api_key(index: usize, key: &ApiKey) -> Result<NewApiKey, AccountsError> {
    let refuse = |why: &str| AccountsError::Entry {
        entry: format!("apiKeys[{index}] of {:?}", key.user),
        why: why.to_owned(),
    };
    if key.user.is_empty() {
        return Err(refuse("the user is missing"));
    }
    if key.key.chars().count() < KEY_CHARS_MIN || key.key.len() > API_KEY_BYTES_MAX {
        return Err(refuse(&format!(
            "a key has {KEY_CHARS_MIN} to {API_KEY_BYTES_MAX} characters"
        )));
    }
    if !key.key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(refuse("a key has printable ASCII characters and no spaces"));
    }
    let (user_name, name) = (key.user.clone(), key.name.clone());
    Ok(NewApiKey { key_hash: Hash::of(key.key.as_bytes()), user_name, name })
}
