//! Who calls. An API key is resolved to a principal in memory; the keys are read again within a
//! second of a change by any process (Spec §5 Authentication).

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use crate::db::{Db, DbError, KeyOwner};
use crate::limits::{API_KEY_BYTES_MAX, API_KEYS_MAX};
use crate::types::Hash;

/// The role of the service operator's employees, who also see what is under embargo.
const ROLE_PROVIDER: &str = "ROLE_PROVIDER";

/// What a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// Nothing.
    Absent,
    /// An API key, from `Authorization: ApiKey` or the query parameter `ak`.
    ApiKey(&'a str),
    /// Something that this service does not accept.
    Unknown,
}

/// A caller that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its user name.
    pub user_name: String,
    roles: Vec<String>,
}

impl Principal {
    /// The operator at the command line, who sees everything that lies on the machine.
    ///
    /// Commands act in this name. No request does: whoever calls over the network is what
    /// [`Keys::find`] says, and `tests/tidy.rs` checks that nothing there makes this principal.
    #[must_use]
    pub fn operator() -> Self {
        Self { user_name: "operator".to_owned(), roles: vec![ROLE_PROVIDER.to_owned()] }
    }

    /// Whether the caller sees items under embargo.
    #[must_use]
    pub fn sees_embargoed(&self) -> bool {
        self.roles.iter().any(|role| role == ROLE_PROVIDER)
    }
}

/// The API keys in force.
#[derive(Clone, Default)]
pub struct Keys {
    known: Arc<RwLock<HashMap<Hash, Arc<Principal>>>>,
}

impl Keys {
    /// Reads the keys from the database in place of those known so far.
    pub fn reload(&self, db: &Db) -> Result<(), DbError> {
        let owners = db.read_blocking(|tx| tx.list_api_keys(API_KEYS_MAX))?;
        let principal = |owner: KeyOwner| {
            let KeyOwner { key_hash, user_name, roles } = owner;
            (key_hash, Arc::new(Principal { user_name, roles }))
        };
        let fresh = owners.into_iter().map(principal).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// The caller that `credentials` belong to; `None` for absent, unknown and revoked ones.
    #[must_use]
    pub fn find(&self, credentials: Credentials<'_>) -> Option<Arc<Principal>> {
        match credentials {
            Credentials::Absent | Credentials::Unknown => None,
            Credentials::ApiKey(key) if key.len() > API_KEY_BYTES_MAX => None,
            Credentials::ApiKey(key) => {
                // Comparing hashes tells nothing about the key that timing could leak.
                let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
                known.get(&Hash::of(key.as_bytes())).cloned()
            }
        }
    }
}
