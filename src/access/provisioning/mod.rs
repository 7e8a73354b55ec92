//! Accounts as the operator keeps them: the accounts file of `wirephoto import` (contract
//! operation-14) and the commands for single users, clients, keys and channels.
//!
//! A file is checked whole, its form first and then what it refers to, and taken in as one
//! transaction. Entries are upserts: what an entry states replaces what was there, and what no
//! entry names stays. Left as they are: a password, a client's secret and whether a user is active
//! when the entry does not state them, whether a client is active, what is left of prepaid
//! downloads unless another number was bought, the revocation of a key, and whether a channel is
//! active.
//!
//! No error repeats a password, a secret or a key.

mod channels;
mod check;
mod file;
mod import;
mod json;
mod published_accounts;
mod redirect;
mod single;
#[cfg(test)]
mod tests;

pub use channels::{
    ChannelProblem, ChannelRequest, channel_formats, channel_settings, shown_settings,
    typed_settings,
};
pub use import::{EntryCounts, ImportReport};
pub use published_accounts::{RemovedAccounts, has_published_key};
pub use single::{AddedAccount, ClientRequest, UserRequest};

use crate::access::auth::Argon2Hasher;
use crate::runtime::error::{Error, ErrorKind};
use crate::storage::database::{Db, DbError};

/// Why accounts were not changed. The text never repeats a password, a secret or a key.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// Not of the form.
    #[error("is not an accounts file: {0}")]
    Form(String),
    /// An entry that cannot be taken.
    #[error("{place}: {why}")]
    Entry {
        /// List, position and name: `users[3] "editor"`.
        place: String,
        /// What is wrong, with the property if it is one.
        why: String,
    },
    /// There is nothing of that name.
    #[error("{0} does not exist")]
    Unknown(String),
    /// Somebody changed accounts again and again meanwhile.
    #[error("other changes got in between; try again")]
    Busy,
    /// No hash could be made.
    #[error(transparent)]
    Hash(Error),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<AccountsError> for Error {
    fn from(error: AccountsError) -> Self {
        match error {
            AccountsError::Form(_) | AccountsError::Entry { .. } => {
                Self::new(ErrorKind::InvalidArgument, error.to_string())
            }
            AccountsError::Unknown(_) => Self::new(ErrorKind::NotFound, error.to_string()),
            AccountsError::Busy => Self::new(ErrorKind::Conflict, error.to_string()),
            AccountsError::Hash(cause) => cause,
            AccountsError::Db(cause) => cause.into(),
        }
    }
}

/// The accounts of a data directory, for the operator.
///
/// Its functions block the calling thread.
#[derive(Clone)]
pub struct Accounts {
    db: Db,
    hasher: Argon2Hasher,
    workers: usize,
}

impl Accounts {
    /// Accounts in `db`, with passwords hashed by `hasher` on `workers` threads.
    #[must_use]
    pub fn new(db: Db, hasher: Argon2Hasher, workers: usize) -> Self {
        Self { db, hasher, workers: workers.max(1) }
    }
}
